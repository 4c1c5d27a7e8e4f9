// What pipelines remember of their runs.
#include <criterion/criterion.h>

#include <filesystem>
#include <fstream>

#include "base/id.hpp"
#include "base/limits.hpp"
#include "tests/support/expect.hpp"
#include "tests/transfer/service.hpp"
#include "transfer/history.hpp"

using namespace rowferry;
using namespace rowferry::test;
using namespace rowferry::transfer;

namespace {

PipelineRun run(std::string id, double seconds, State state = State::succeeded) {
  PipelineRun r;
  r.id = std::move(id);
  r.state = state;
  r.ended = WallClock::now();
  r.rows = 1000;
  r.seconds = seconds;
  r.rate = 1000 / seconds;
  return r;
}

void configure(Service& service) {
  const std::string path = service.dir.path() + "/hourly.json";
  std::ofstream(path) << plain_spec;
  service.settings.pipelines["hourly"] = {path};
  service.settings.pipelines["never"] = {path};
}

Task<void> run_once(Service* s) {
  s->id = (co_await s->manager->run_pipeline("hourly", "")).id;
  co_await s->finish();
}
Task<void> run_twice(Service* s) {
  co_await run_once(s);
  co_await run_once(s);
}
Task<void> list(Service* s) { s->artifact = Json::parse(co_await s->manager->pipelines()); }
Task<void> list_while_running(Service* s) {
  Gate& gate = s->connections.source.gate;
  gate.forget();
  gate.close("read");
  s->id = (co_await s->manager->run_pipeline("hourly", "")).id;
  co_await gate.reached("read");
  const Json pipelines = Json::parse(co_await s->manager->pipelines());
  gate.open("read");
  co_await s->finish();
  s->artifact = pipelines;
}
Task<void> plain(Service* s) { co_await s->transfer(plain_spec); }
Task<void> resume_last(Service* s) {
  (void)co_await s->manager->resume(s->id);
  co_await s->finish();
}

// The entry of a pipeline in the listing.
const Json& entry_of(const Json& listing, std::string_view name) {
  static const Json none;
  for (const Json& entry : *at(listing, "pipelines").array()) {
    if (text_at(entry, "name") == name) return entry;
  }
  return none;
}

}  // namespace

Test(history, medians_are_of_whole_runs_that_succeeded) {
  PipelineRuns runs;
  cr_expect_not(medians_of(runs, "").has_value());
  add_run(runs, run("a", 10));
  add_run(runs, run("b", 1000, State::failed));
  add_run(runs, run("c", 20));
  cr_expect_eq(medians_of(runs, "")->seconds, 15);
  add_run(runs, run("d", 90));
  cr_expect_eq(medians_of(runs, "")->seconds, 20);
  cr_expect_eq(medians_of(runs, "")->rate, 50);
  cr_expect_eq(medians_of(runs, "")->runs, 3);
  cr_expect_eq(medians_of(runs, "d")->runs, 2, "a run is not compared with itself");
  PipelineRun resumed = run("e", 1);
  resumed.resumed = true;
  add_run(runs, resumed);
  cr_expect_eq(medians_of(runs, "")->runs, 3);
}

Test(history, a_run_is_compared_with_those_before_it) {
  PipelineRuns runs;
  cr_expect_not(compare(runs, run("a", 10)).has_value(), "the first");
  add_run(runs, run("a", 10));
  const std::optional<MedianComparison> second = compare(runs, run("b", 15));
  cr_assert(second.has_value());
  cr_expect_eq(second->seconds, 10);
  cr_expect_eq(*second->ratio, 1.5);
  cr_expect_eq(second->runs, 1);
  cr_expect_not(compare(runs, run("b", 15, State::failed))->ratio.has_value());
}

Test(history, is_bounded_and_has_each_run_once) {
  PipelineRuns runs;
  for (std::size_t i = 0; i < limits::pipeline_runs_kept + 5; ++i) add_run(runs, run("r" + std::to_string(i), 10));
  cr_assert_eq(runs.size(), limits::pipeline_runs_kept);
  EXPECT_TEXT(runs.front().id, "r5");
  add_run(runs, run("r50", 99));
  cr_expect_eq(runs.size(), limits::pipeline_runs_kept);
  EXPECT_TEXT(runs.back().id, "r50");
  cr_expect_leq(medians_of(runs, "")->runs, limits::pipeline_median_runs);
}

Test(history, is_read_back_as_it_was_written) {
  PipelineRuns runs;
  add_run(runs, run("a", 10.25));
  PipelineRun failed = run("b", 3, State::failed);
  failed.resumed = true;
  add_run(runs, failed);
  const auto [name, again] = parse_history(history_text("a/b \"c\"", runs));
  EXPECT_TEXT(name, "a/b \"c\"");
  cr_assert_eq(again.size(), 2);
  cr_expect_eq(again[0].seconds, 10.25);
  cr_expect_eq(again[0].rows, 1000);
  cr_expect_eq(again[1].state, State::failed);
  cr_expect(again[1].resumed);
  EXPECT_ERROR((void)parse_history("{\"pipeline\": \"x\"}"), "record_damaged");
  EXPECT_ERROR((void)parse_history("{\"pipe"), "record_damaged");
  cr_expect(parse_history(R"({"pipeline": "x", "runs": [7, {"id": "a"}, null]})").second.empty());
}

Test(history, outlives_the_process_and_is_compared_with) {
  Service service;
  configure(service);
  service.run(run_once);
  cr_assert_not_null(service.artifact.find("compared_with_median"));
  cr_expect(at(service.artifact, "compared_with_median").is_null(), "the first run");
  service.run(run_once);
  cr_expect_eq(number_at(service.artifact, "compared_with_median.runs"), 1);
  cr_expect_gt(at(service.artifact, "compared_with_median.seconds").number().value_or(0), 0);
  cr_expect_gt(at(service.artifact, "compared_with_median.rate").number().value_or(0), 0);
  cr_expect_gt(at(service.artifact, "compared_with_median.ratio").number().value_or(0), 0);
  service.run(list);
  const Json& hourly = entry_of(service.artifact, "hourly");
  cr_expect_eq(number_at(hourly, "runs"), 2);
  cr_expect_eq(number_at(hourly, "median.runs"), 2);
  EXPECT_TEXT(text_at(hourly, "last_run.id"), service.id);
  EXPECT_TEXT(text_at(hourly, "last_run.state"), "succeeded");
  cr_expect_eq(number_at(hourly, "last_run.rows"), service.connections.source.rows());
  cr_expect_not(text_at(hourly, "last_run.ended_at").empty());
  const Json& never = entry_of(service.artifact, "never");
  cr_expect_eq(number_at(never, "runs"), 0);
  cr_expect(at(never, "last_run").is_null());
  cr_expect(at(never, "median").is_null());
}

Test(history, a_run_that_goes_on_has_no_numbers_yet) {
  Service service;
  configure(service);
  service.run(run_once);
  service.run(list_while_running);
  const Json& hourly = entry_of(service.artifact, "hourly");
  EXPECT_TEXT(text_at(hourly, "last_run.id"), service.id);
  EXPECT_TEXT(text_at(hourly, "last_run.state"), "running");
  cr_expect(at(hourly, "last_run.seconds").is_null());
  cr_expect_eq(number_at(hourly, "runs"), 1);
}

Test(history, failures_are_remembered_and_a_resume_takes_their_place) {
  Service service;
  configure(service);
  service.connections.target.finalize_faults = 1;
  service.run(run_once);
  service.run(list);
  EXPECT_TEXT(text_at(entry_of(service.artifact, "hourly"), "last_run.state"), "failed");
  cr_expect(at(entry_of(service.artifact, "hourly"), "median").is_null());
  service.run(resume_last);
  service.run(list);
  EXPECT_TEXT(text_at(entry_of(service.artifact, "hourly"), "last_run.state"), "succeeded");
  cr_expect_eq(number_at(entry_of(service.artifact, "hourly"), "runs"), 1);
  cr_expect(at(entry_of(service.artifact, "hourly"), "median").is_null(), "a resumed run is no whole one");
}

Test(history, a_damaged_file_begins_anew) {
  Service service;
  configure(service);
  service.run(run_twice);
  for (const auto& file : std::filesystem::directory_iterator(service.dir.path() + "/pipelines")) {
    if (file.path().extension() == ".json") std::ofstream(file.path()) << "{\"pipeline\": \"hou";
  }
  service.run(run_once);
  EXPECT_TEXT(text_at(service.artifact, "state"), "succeeded");
  cr_expect(at(service.artifact, "compared_with_median").is_null());
  service.run(list);
  cr_expect_eq(number_at(entry_of(service.artifact, "hourly"), "runs"), 1);
}

Test(history, a_transfer_of_no_pipeline_is_not_compared) {
  Service service;
  service.run(plain);
  cr_expect_null(service.artifact.find("compared_with_median"));
}
