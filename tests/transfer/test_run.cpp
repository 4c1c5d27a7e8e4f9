#include <criterion/criterion.h>

#include <algorithm>
#include <set>

#include "base/limits.hpp"
#include "base/log.hpp"
#include "tests/support/expect.hpp"
#include "tests/transfer/service.hpp"
#include "transfer/pipeline.hpp"

using namespace rowferry;
using namespace rowferry::test;
using namespace rowferry::transfer;

namespace {

Task<void> plain(Service* s) { co_await s->transfer(plain_spec); }
Task<void> content(Service* s) { co_await s->transfer(with(R"("verify": "content")")); }
Task<void> source_count(Service* s) { co_await s->transfer(with(R"("verify": "source_count")")); }
Task<void> four_workers(Service* s) { co_await s->transfer(with(R"("workers": {"export": 4, "load": 3})")); }
Task<void> one_and_one(Service* s) { co_await s->transfer(with(R"("workers": {"export": 1, "load": 1})")); }
Task<void> drained(Service* s) {
  co_await s->transfer(
      with(R"("read": {"drain": true, "memory_budget": "1 MiB"}, "workers": {"export": 3, "load": 1})"));
}
Task<void> truncating(Service* s) {
  co_await s->transfer(with(R"("columns": ["id", {"source": "note", "on_loss": "truncate"}])"));
}
Task<void> with_offset(Service* s) {
  co_await s->transfer(
      R"({"source": {"connection": "shop", "table": "t"}, "verify": "content",
          "target": {"connection": "warehouse", "table": "t", "mode": "append", "create": true},
          "columns": ["id", {"source": "note", "keep_offset": true}]})");
}
Task<void> by_slice(Service* s) { co_await s->transfer(with(R"("load": {"commit": "slice"})")); }

// Nothing may be left, whatever happened.
void expect_released(const Service& service) {
  const FakeConnections& c = service.connections;
  cr_expect_eq(c.source.begun, c.source.ended, "%d begun, %d ended", c.source.begun, c.source.ended);
  cr_expect_eq(c.source.readers_open, 0);
  cr_expect_eq(c.target.loaders_open, 0);
  cr_expect_not(c.target.locked);
}

void expect_whole(const Service& service) {
  const std::uint64_t rows = service.connections.source.rows();
  EXPECT_TEXT(std::string(to_string(service.outcome.state)), "succeeded");
  cr_expect_eq(number_at(service.artifact, "rows.read"), rows);
  cr_expect_eq(number_at(service.artifact, "rows.acknowledged"), rows);
  cr_expect_eq(number_at(service.artifact, "rows.target"), rows);
  cr_expect_eq(service.connections.target.rows, rows);
  cr_expect(service.connections.target.stagings.empty(), "staging is left");
  expect_released(service);
}

void expect_failed(const Service& service, std::string_view code) {
  EXPECT_TEXT(std::string(to_string(service.outcome.state)), "failed");
  EXPECT_TEXT(service.outcome.error ? service.outcome.error->code : "no error", code);
  EXPECT_TEXT(text_at(service.artifact, "error.code"), code);
  cr_expect_eq(service.connections.target.rows, 0, "the target is as before");
  expect_released(service);
}

// The problem says where it happened, whatever the system knew of that.
void expect_names_the_target(const Service& service) {
  EXPECT_TEXT(text_at(service.artifact, "error.connection"), "warehouse");
  EXPECT_TEXT(text_at(service.artifact, "error.table"), "dbo.orders");
}

std::size_t retries(const Service& service) {
  const Json::Array* list = at(service.artifact, "retries").array();
  return list == nullptr ? 0 : list->size();
}

}  // namespace

Test(run, moves_all_rows_and_leaves_nothing_behind) {
  Service service;
  service.run(plain);
  expect_whole(service);
  cr_expect_eq(number_at(service.artifact, "rows.staged"), service.connections.source.rows());
  EXPECT_TEXT(check_result(service.artifact, "rows_acknowledged"), "passed");
  EXPECT_TEXT(check_result(service.artifact, "rows_staged"), "passed");
  EXPECT_TEXT(check_result(service.artifact, "rows_written"), "passed");
  EXPECT_TEXT(check_result(service.artifact, "content"), "absent");
  EXPECT_TEXT(text_at(service.artifact, "consistency"), "one_snapshot");
  EXPECT_TEXT(text_at(service.artifact, "finalizer"), "insert_select");
  cr_expect_eq(service.connections.target.after_steps_done, 1);
}

Test(run, content_is_compared_when_asked_for) {
  Service service;
  service.run(content);
  expect_whole(service);
  EXPECT_TEXT(check_result(service.artifact, "content"), "passed");
}

Test(run, different_content_leaves_the_target_untouched) {
  Service service;
  service.connections.target.wrong_content = true;
  service.run(content);
  expect_failed(service, "verification_failed");
  EXPECT_TEXT(check_result(service.artifact, "content"), "failed");
  expect_names_the_target(service);
  cr_expect(service.connections.target.stagings.empty());
}

Test(run, a_staged_row_too_few_leaves_the_target_untouched) {
  Service service;
  service.connections.target.staged_delta = -1;
  service.run(plain);
  expect_failed(service, "verification_failed");
  EXPECT_TEXT(check_result(service.artifact, "rows_staged"), "failed");
}

Test(run, the_sources_count_is_checked_when_asked_for) {
  Service service;
  service.run(source_count);
  expect_whole(service);
  EXPECT_TEXT(check_result(service.artifact, "source_count"), "passed");
  Service wrong;
  wrong.connections.source.count_delta = 1;
  wrong.run(source_count);
  expect_failed(wrong, "verification_failed");
}

Test(run, a_source_that_counts_otherwise_than_it_delivers_is_an_error) {
  Service service;
  service.connections.source.wrong_row_count = 1;
  service.run(plain);
  expect_failed(service, "rows_miscounted");
}

Test(run, a_slice_that_fails_is_rolled_back_and_read_again) {
  Service service;
  service.connections.source.read_faults = {{3, 2}};
  service.run(plain);
  expect_whole(service);
  cr_expect_eq(retries(service), 2);
  cr_expect_eq(std::ranges::count(service.connections.source.read_log, 3), 3);
  cr_expect_eq(service.connections.source.begun, 1, "the same snapshot");
  cr_expect_geq(service.connections.target.aborted, 1);
}

Test(run, a_slice_that_keeps_failing_ends_the_transfer) {
  Service service;
  service.connections.source.read_faults = {{3, 100}};
  service.run(plain);
  expect_failed(service, "read_broke");
  cr_expect_eq(retries(service), limits::slice_retries_max);
  cr_expect(service.connections.target.stagings.empty(), "one snapshot: no slice can be kept");
}

Test(run, an_error_that_is_not_transient_is_not_repeated) {
  Service service;
  service.connections.source.read_faults = {{3, 1}};
  service.connections.source.fault_is_transient = false;
  service.run(plain);
  expect_failed(service, "read_broke");
  cr_expect_eq(retries(service), 0);
}

Test(run, a_commit_that_fails_is_repeated) {
  Service service;
  service.connections.target.commit_faults = 2;
  service.run(plain);
  expect_whole(service);
  cr_expect_eq(retries(service), 2);
}

Test(run, a_commit_whose_answer_is_lost_is_found_in_the_ledger) {
  Service service;
  service.connections.target.commits_lost = 2;
  service.run(content);
  expect_whole(service);
  EXPECT_TEXT(check_result(service.artifact, "content"), "passed");
}

Test(run, a_lost_snapshot_starts_a_new_attempt) {
  Service service;
  service.connections.source.read_faults = {{5, 1}};
  service.connections.source.snapshots_to_lose = 1;
  service.run(plain);
  expect_whole(service);
  cr_expect_eq(number_at(service.artifact, "attempt"), 2);
  cr_expect_eq(service.connections.source.begun, 2);
}

Test(run, a_source_that_restarts_is_waited_for) {
  Service service;
  service.connections.source.read_faults = {{5, 1}};
  service.connections.source.snapshots_to_lose = 1;
  service.connections.source.begins_away = limits::server_away_tries_max;
  service.run(plain);
  expect_whole(service);
}

Test(run, a_source_that_stays_away_is_given_up) {
  Service service;
  service.connections.source.begins_away = 1000;
  service.run(plain);
  expect_failed(service, "connect_failed");
  cr_expect_eq(1000 - service.connections.source.begins_away, limits::server_away_tries_max + limits::attempts_max);
}

Test(run, attempts_are_bounded) {
  Service service;
  service.connections.source.read_faults = {{5, 100}};
  service.connections.source.snapshots_to_lose = 100;
  service.run(plain);
  expect_failed(service, "read_broke");
  cr_expect_eq(service.connections.source.begun, limits::attempts_max);
}

Test(run, a_value_that_does_not_fit_names_row_column_and_slice) {
  Service service;
  service.connections.source.text_is_bad = true;
  service.run(plain);
  expect_failed(service, "value_does_not_fit");
  EXPECT_TEXT(text_at(service.artifact, "error.column"), "note");
  EXPECT_TEXT(text_at(service.artifact, "error.slice"), "part = 2");
  cr_expect_eq(number_at(service.artifact, "error.row"), 8);
  cr_expect(text_at(service.artifact, "error.value").starts_with("xxx"));
}

Test(run, values_that_a_policy_changed_are_counted) {
  Service service;
  service.connections.source.text_is_bad = true;
  service.run(truncating);
  expect_whole(service);
  cr_expect_eq(number_at(at(service.artifact, "columns").array()->at(1), "changed"), 1);
  EXPECT_TEXT(text_at(at(service.artifact, "columns").array()->at(1), "policy"), "truncate");
}

Test(run, every_slice_is_read_once_by_several_workers) {
  Service service;
  service.connections.source.slices = 13;
  service.connections.target.slow_write_ms = 1;
  service.run(four_workers);
  expect_whole(service);
  std::vector<int> log = service.connections.source.read_log;
  std::ranges::sort(log);
  cr_assert_eq(log.size(), 13);
  cr_expect(std::ranges::adjacent_find(log) == log.end());
  cr_expect_eq(service.connections.source.readers_made, 4);
  std::set<std::string> workers;
  for (const std::string& line : service.connections.target.slice_log) workers.insert(line.substr(0, 8));
  cr_expect_eq(workers.size(), 3);
}

Test(run, late_slices_are_read_too) {
  Service service;
  service.connections.source.late = {2, 1};
  service.run(plain);
  EXPECT_TEXT(std::string(to_string(service.outcome.state)), "succeeded");
  cr_expect_eq(number_at(service.artifact, "rows.read"), 11 * 200);
  cr_expect_eq(service.connections.target.rows, 11 * 200);
}

Test(run, endless_late_slices_end_with_a_warning) {
  Service service;
  service.connections.source.late = std::vector<int>(50, 1);
  service.run(plain);
  EXPECT_TEXT(std::string(to_string(service.outcome.state)), "succeeded");
  cr_expect_eq(number_at(service.artifact, "rows.read"), (8 + limits::late_slice_rounds_max) * 200);
  EXPECT_TEXT(text_at(at(service.artifact, "warnings").array()->at(0), "code"), "late_slices");
}

Test(run, an_empty_source_is_a_transfer_of_no_rows) {
  Service service;
  service.connections.source.slices = 1;
  service.connections.source.batches_per_slice = 0;
  service.run(content);
  expect_whole(service);
}

Test(run, a_slow_target_stops_the_source) {
  Service service;
  SourceScript& source = service.connections.source;
  source.slices = 1;
  source.batches_per_slice = 40;
  source.rows_per_batch = 8000;
  service.connections.target.slow_write_ms = 30;
  service.run(one_and_one);
  expect_whole(service);
  const std::size_t batch = source.bytes_given / 40;
  // What waits in the channel, one batch on its way in, one on its way out.
  cr_expect_leq(source.most_unwritten, limits::channel_bytes + 3 * batch);
  cr_expect_gt(source.bytes_given, 4 * limits::channel_bytes);
  cr_expect_gt(at(service.artifact, "stages.source_export.waiting_out").number().value_or(0), 0.01);
  EXPECT_TEXT(text_at(service.artifact, "bottleneck"), "fakepg_to_fakems.target_load");
  cr_expect_not(text_at(service.artifact, "advice").empty());
}

Test(run, small_slices_do_not_pile_up_before_a_slow_target) {
  Service service;
  SourceScript& source = service.connections.source;
  source.slices = 40;
  source.batches_per_slice = 1;
  source.rows_per_batch = 4000;
  service.connections.target.slow_write_ms = 10;
  service.run(plain);
  expect_whole(service);
  const std::size_t slice = source.bytes_given / 40;
  // Two wait in the queue, two are written, two are read.
  cr_expect_leq(source.most_unwritten, 7 * slice);
}

Test(run, drained_slices_stay_within_the_budget) {
  Service service;
  service.connections.source.rows_per_batch = 2000;
  service.connections.source.slices = 12;
  service.connections.target.slow_write_ms = 1;
  service.run(drained);
  expect_whole(service);
  // The budget, one slice on its way through a channel, one batch at the writer.
  cr_expect_leq(service.connections.source.most_unwritten, (1U << 20U) + limits::channel_bytes + (1U << 18U));
}

Test(run, a_slice_beyond_the_whole_budget_is_an_error) {
  Service service;
  service.connections.source.rows_per_batch = 40'000;
  service.run(drained);
  expect_failed(service, "drain_budget");
  const std::string detail = text_at(service.artifact, "error.detail");
  cr_expect(text_at(service.artifact, "error.slice").starts_with("part = "));
  cr_expect(detail.find(text_at(service.artifact, "error.slice")) != std::string::npos, "%s", detail.c_str());
  cr_expect(detail.find("160000 rows") != std::string::npos, "%s", detail.c_str());
  cr_expect(detail.find("1048576 bytes") != std::string::npos, "%s", detail.c_str());
  const std::string hint = text_at(service.artifact, "error.hint");
  cr_expect(hint.starts_with("slices of at most "), "%s", hint.c_str());
  cr_expect(hint.find("read.memory_budget to ") != std::string::npos, "%s", hint.c_str());
}

Test(run, a_fitting_drain_is_computed_with_a_margin) {
  const DrainFit fit = drain_fit(1 << 20, 100, 30'000);
  cr_expect_eq(fit.needed, 3'000'000);
  EXPECT_TEXT(fit.advice,
              "slices of at most 9437 rows fit (cut this one into 4), or raise read.memory_budget to 4 MiB");
  EXPECT_TEXT(drain_fit(1 << 20, 2e6, 1).advice, "raise read.memory_budget to 3 MiB");
}

Test(run, a_drain_that_will_not_fit_is_told_in_the_plan) {
  Service service;
  service.connections.source.byte_estimate = service.connections.source.rows() * 20'000;
  service.run(drained);
  EXPECT_TEXT(std::string(to_string(service.outcome.state)), "succeeded");
  EXPECT_TEXT(text_at(at(service.artifact, "warnings").array()->at(0), "code"), "drain_budget");
  const std::string text = text_at(at(service.artifact, "warnings").array()->at(0), "text");
  cr_expect(text.starts_with("8 of 8 slices may be larger than the memory budget of 1048576 bytes; the largest, "
                             "part = 0, has about 200 rows and 4000000 bytes: "),
            "%s", text.c_str());
}

Test(run, every_slice_has_a_line_in_the_log_when_it_ends) {
  Service service;
  std::vector<std::string> lines;
  log::redirect([&lines](std::string_view line) {
    if (line.find("read_seconds") != std::string_view::npos) lines.emplace_back(line);
  });
  service.connections.source.read_faults = {{3, 1}};
  service.run(plain);
  log::redirect([](std::string_view) {});
  cr_assert_eq(lines.size(), 8, "one a slice, also of one that was read again");
  for (const std::string_view part : {"part = ", "rows=200", "write_seconds=", "rows_per_second=", "load_worker="}) {
    cr_expect(lines[0].find(part) != std::string::npos, "%s", lines[0].c_str());
  }
}

Test(run, parts_of_values_travel_beside_them) {
  Service service;
  service.connections.source.honours_parts = true;
  service.connections.source.columns[1].has_offset = true;
  service.connections.target.exists = false;
  service.run(with_offset);
  EXPECT_TEXT(std::string(to_string(service.outcome.state)), "succeeded");
  const Json::Array& columns = *at(service.artifact, "columns").array();
  cr_assert_eq(columns.size(), 3);
  EXPECT_TEXT(text_at(columns[2], "target"), "note_offset");
  EXPECT_TEXT(text_at(columns[2], "part"), "offset");
  EXPECT_TEXT(check_result(service.artifact, "content"), "passed");
}

Test(run, a_busy_target_is_an_error) {
  Service service;
  service.connections.target.busy = true;
  service.run(plain);
  expect_failed(service, "target_busy");
}

Test(run, an_unknown_commit_keeps_staging) {
  Service service;
  service.connections.target.finalize_unknown = true;
  service.run(plain);
  expect_failed(service, "commit_unknown");
  cr_expect_eq(service.connections.target.stagings.size(), 1);
}

Test(run, a_finalize_that_could_not_start_keeps_staging_for_resume) {
  Service service;
  service.connections.target.finalize_faults = 1;
  service.run(plain);
  expect_failed(service, "finalize_broke");
  cr_expect_eq(service.connections.target.stagings.size(), 1);
}

Test(run, a_finalize_that_is_refused_drops_staging) {
  Service service;
  service.connections.target.finalize_faults = 1;
  service.connections.target.finalize_category = Category::server;
  service.run(plain);
  expect_failed(service, "finalize_broke");
  expect_names_the_target(service);
  cr_expect(service.connections.target.stagings.empty());
}

Test(run, a_finalizer_that_miscounts_is_told) {
  Service service;
  service.connections.target.finalize_delta = 1;
  service.run(plain);
  EXPECT_TEXT(text_at(service.artifact, "error.code"), "finalize_miscounted");
  expect_names_the_target(service);
  EXPECT_TEXT(check_result(service.artifact, "rows_written"), "failed");
  expect_released(service);
}

Test(run, after_steps_are_repeated) {
  Service service;
  service.connections.target.after_steps_faults = 2;
  service.run(plain);
  expect_whole(service);
  cr_expect_eq(retries(service), 2);
}

Test(run, after_steps_that_keep_failing_say_that_the_rows_are_committed) {
  Service service;
  service.connections.target.after_steps_faults = 100;
  service.run(plain);
  EXPECT_TEXT(text_at(service.artifact, "error.code"), "after_steps_failed");
  cr_expect_eq(service.connections.target.rows, service.connections.source.rows());
  expect_names_the_target(service);
  expect_released(service);
}

Test(run, direct_loads_in_one_transaction_and_restarts_whole) {
  Service service;
  service.connections.target.finalizer = system::Finalizer::direct;
  service.connections.source.read_faults = {{3, 1}};
  service.run(plain);
  EXPECT_TEXT(std::string(to_string(service.outcome.state)), "succeeded");
  cr_expect_eq(number_at(service.artifact, "attempt"), 2);
  cr_expect(at(service.artifact, "rows.staged").is_null());
  EXPECT_TEXT(check_result(service.artifact, "rows_staged"), "not_applicable");
  cr_expect_eq(number_at(service.artifact, "stages.target_load.workers"), 1);
  expect_released(service);
}

Test(run, slices_committed_one_by_one_have_no_staging_count) {
  Service service;
  service.connections.target.honoured = {"load.commit"};
  service.run(by_slice);
  expect_whole(service);
  EXPECT_TEXT(text_at(service.artifact, "finalizer"), "per_slice");
  cr_expect(at(service.artifact, "rows.staged").is_null());
}

Test(run, slices_committed_one_by_one_are_not_doubled_by_a_new_attempt) {
  Service service;
  service.connections.target.honoured = {"load.commit"};
  service.connections.source.read_faults = {{6, 1}};
  service.connections.source.snapshots_to_lose = 1;
  service.run(by_slice);
  expect_whole(service);
  cr_expect_eq(number_at(service.artifact, "attempt"), 2);
}

Test(run, clocks_rates_and_use_are_in_the_artifact) {
  Service service;
  service.connections.target.slow_write_ms = 3;
  service.run(plain);
  const Json& a = service.artifact;
  cr_expect_gt(at(a, "seconds.total").number().value_or(0), 0);
  cr_expect_gt(at(a, "seconds.target_load").number().value_or(0), 0);
  cr_expect_gt(at(a, "stages.target_load.waiting_out").number().value_or(0), 0.01);
  cr_expect_gt(at(a, "rows_per_second.total").number().value_or(0), 0);
  cr_expect_gt(number_at(a, "engine.idle_rss_bytes"), 1'000'000);
  cr_expect_geq(number_at(a, "engine.peak_rss_bytes"), number_at(a, "engine.idle_rss_bytes"));
  EXPECT_TEXT(text_at(a, "engine.version"), "test");
  cr_expect_not(*at(a, "engine.shared").boolean());
}

Test(run, the_artifact_has_every_field_of_the_contract) {
  Service service;
  service.run(plain);
  for (const std::string_view name :
       {"schema_version", "id",      "attempt",         "state",  "route",    "spec",    "source", "target",
        "consistency",    "columns", "finalizer",       "rows",   "bytes",    "seconds", "stages", "bottleneck",
        "advice",         "slices",  "rows_per_second", "checks", "warnings", "parts",   "engine", "error"}) {
    cr_expect_not_null(service.artifact.find(name), "%s is missing", std::string(name).c_str());
  }
  for (const std::string_view path :
       {"rows.read", "rows.acknowledged", "rows.staged", "rows.target", "bytes.source_wire", "bytes.batch",
        "bytes.target_wire", "seconds.queued", "seconds.plan", "seconds.source_export", "seconds.verify",
        "seconds.target_finalize", "spec.source.connection", "spec.profile"}) {
    cr_expect_not(at(service.artifact, path).is_null(), "%s is missing", std::string(path).c_str());
  }
  const Json& slice = at(service.artifact, "slices").array()->at(0);
  cr_expect_not_null(slice.find("predicate"));
  cr_expect_not_null(slice.find("read_seconds"));
}
