#include <criterion/criterion.h>

#include <filesystem>
#include <fstream>

#include "tests/support/expect.hpp"
#include "tests/transfer/service.hpp"
#include "transfer/recover.hpp"

using namespace rowferry;
using namespace rowferry::test;
using namespace rowferry::transfer;

namespace {

Task<std::string> submit(Service* s, std::string spec, std::string key = "") {
  try {
    co_return (
        co_await s->manager->submit({.spec = std::move(spec), .idempotency_key = std::move(key), .pipeline = ""}))
        .id;
  } catch (const Error& error) {
    co_return error.code();
  }
}

template <class T>
Task<std::string> code_of(Task<T> task) {
  try {
    (void)co_await std::move(task);
    co_return "accepted";
  } catch (const Error& error) {
    co_return error.code();
  }
}

Task<std::string> state_of(Service* s, std::string id) {
  co_return text_at(Json::parse((co_await s->manager->status(std::move(id))).json), "state");
}

Task<void> bad_specs(Service* s) {
  s->note = co_await submit(s, "{");
  s->note += " " + co_await submit(s, R"({"source": {"connection": "nope", "table": "t"},
                                         "target": {"connection": "warehouse", "table": "t", "mode": "append"}})");
  s->note += " " + co_await submit(s, R"({"source": {"connection": "shop", "table": "t"},
                                         "target": {"connection": "archive", "table": "t", "mode": "append"}})");
}

Task<void> fill_queue(Service* s) {
  Gate& gate = s->connections.source.gate;
  gate.close("read");
  const std::string first = co_await submit(s, plain_spec);
  co_await gate.reached("read");
  const std::string second = co_await submit(s, plain_spec);
  const std::string third = co_await submit(s, plain_spec);
  s->note = third + " " + co_await state_of(s, second);
  // Cancelled in the queue: it never ran.
  (void)co_await s->manager->cancel(second);
  s->note += " " + co_await state_of(s, second) + " " + co_await code_of(s->manager->artifact(second));
  s->note += " " + co_await code_of(s->manager->artifact(first)) + " " + co_await code_of(s->manager->resume(first));
  gate.open("read");
  s->id = first;
  co_await s->finish();
  s->note += " " + co_await code_of(s->manager->cancel(first)) + " " + co_await code_of(s->manager->resume(first));
}

Task<void> same_key(Service* s) {
  const std::string first = co_await submit(s, plain_spec, "k1");
  const std::string again = co_await submit(s, plain_spec, "k1");
  s->note = first == again ? "same" : "different";
  s->note += " " + co_await submit(s, with(R"("verify": "content")"), "k1");
  s->id = first;
  co_await s->finish();
}
Task<void> same_key_later(Service* s) {
  const std::string again = co_await submit(s, plain_spec, "k1");
  s->note = again == s->id ? "same" : "different";
}

Task<void> three_of_them(Service* s) {
  for (int i = 0; i < 3; ++i) co_await s->transfer(plain_spec);
}
Task<void> list_pages(Service* s) {
  const Json first = Json::parse(co_await s->manager->list({.after = "", .limit = 2, .state = ""}));
  const Json second =
      Json::parse(co_await s->manager->list({.after = text_at(first, "next"), .limit = 2, .state = ""}));
  const Json failed = Json::parse(co_await s->manager->list({.after = "", .limit = 2, .state = "failed"}));
  s->note = std::to_string(at(first, "transfers").array()->size()) + " " +
            std::to_string(at(second, "transfers").array()->size()) + " " +
            std::to_string(at(failed, "transfers").array()->size());
  s->artifact = first;
}

Task<void> pipeline(Service* s) {
  Gate& gate = s->connections.source.gate;
  gate.close("read");
  s->id = (co_await s->manager->run_pipeline("hourly", "")).id;
  co_await gate.reached("read");
  s->note = co_await code_of(s->manager->run_pipeline("hourly", ""));
  s->note += " " + co_await code_of(s->manager->run_pipeline("daily", ""));
  gate.open("read");
  co_await s->finish();
  s->artifact = Json::parse(co_await s->manager->pipelines());
}

Task<void> etags(Service* s) {
  co_await s->transfer(plain_spec);
  const Document one = co_await s->manager->status(s->id);
  const Document two = co_await s->manager->status(s->id);
  s->note = one.etag == two.etag && !one.etag.empty() ? "stable" : "changed";
}
Task<void> status_later(Service* s) {
  s->artifact = Json::parse((co_await s->manager->status(s->id)).json);
  s->note =
      co_await code_of(s->manager->status("nope")) + " " + co_await code_of(s->manager->status("t0000000000000000000"));
}

Task<void> leave_running(Service* s) {
  s->connections.source.gate.close("read");
  s->id = co_await submit(s, plain_spec);
  co_await s->connections.source.gate.reached("read");
}
Task<void> leave_queued(Service* s) {
  s->connections.source.gate.close("read");
  (void)co_await submit(s, plain_spec);
  co_await s->connections.source.gate.reached("read");
  s->id = co_await submit(s, plain_spec);
}
Task<void> resume_it(Service* s) {
  s->connections.source.gate.open("read");
  s->note = co_await state_of(s, s->id);
  (void)co_await s->manager->resume(s->id);
  co_await s->finish();
}
Task<void> look(Service* s) {
  s->connections.source.gate.open("read");
  s->artifact = Json::parse((co_await s->manager->artifact(s->id)).json);
}
Task<void> two_at_once(Service* s) {
  s->connections.source.gate.close("read");
  s->id = co_await submit(s, plain_spec);
  co_await s->connections.source.gate.reached("read");
  const std::string other = co_await submit(s, plain_spec);
  const Outcome outcome = co_await s->manager->wait(other);
  s->note = outcome.error ? outcome.error->code : "succeeded";
  s->connections.source.gate.open("read");
  co_await s->finish();
}

Task<void> leave_staging(Service* s) { co_await s->transfer(plain_spec); }
Task<void> clean_up(Service* s) {
  const std::vector<Orphan> found = co_await s->manager->clean(std::chrono::seconds(0), false);
  const std::vector<Orphan> young = co_await s->manager->clean(std::chrono::hours(1), false);
  const std::vector<Orphan> dropped = co_await s->manager->clean(std::chrono::seconds(0), true);
  const std::vector<Orphan> after = co_await s->manager->clean(std::chrono::seconds(0), false);
  s->note = std::to_string(found.size()) + std::to_string(young.size()) + std::to_string(dropped.size()) +
            std::to_string(after.size()) + " " + (dropped.empty() ? "" : dropped[0].state);
}

class Watcher final : public Observer {
 public:
  void on_state(const Progress& progress) override { states += std::string(to_string(progress.state)) + " "; }
  std::string states;
};
Task<void> plain(Service* s) { co_await s->transfer(plain_spec); }

// A second process on the same state directory, so to say.
Task<void> same_key_elsewhere(Service* s) {
  Manager other(s->loop, s->settings, s->connections);
  co_await other.start();
  s->connections.source.gate.close("read");
  s->id = co_await submit(s, plain_spec, "k1");
  const Submitted again = co_await other.submit({.spec = plain_spec, .idempotency_key = "k1", .pipeline = ""});
  s->note = again.repeated && again.id == s->id ? "same" : "different";
  s->note += " " + co_await code_of(
                       other.submit({.spec = with(R"("verify": "content")"), .idempotency_key = "k1", .pipeline = ""}));
  s->note += " " + std::to_string(other.queued());
  s->connections.source.gate.open("read");
  co_await s->finish();
}

Task<void> both_at_once(Service* s) {
  Manager other(s->loop, s->settings, s->connections);
  co_await other.start();
  async::Scope scope(co_await async::current_context());
  std::string ids[2];
  scope.spawn([](Manager* m, std::string* id) -> Task<void> {
    *id = (co_await m->submit({.spec = plain_spec, .idempotency_key = "k2", .pipeline = ""})).id;
  }(s->manager.get(), &ids[0]));
  scope.spawn([](Manager* m, std::string* id) -> Task<void> {
    *id = (co_await m->submit({.spec = plain_spec, .idempotency_key = "k2", .pipeline = ""})).id;
  }(&other, &ids[1]));
  co_await scope.join();
  s->note = ids[0] == ids[1] && !ids[0].empty() ? "same" : "different";
}

Task<void> list_beside_damage(Service* s) {
  co_await s->transfer(plain_spec);
  const std::string folder = s->dir.path() + "/transfers/";
  std::ofstream(folder + "t0000000000000000001.json") << "";
  std::ofstream(folder + "t0000000000000000002.json") << "{}";
  const Json all = Json::parse(co_await s->manager->list({.after = "", .limit = 10, .state = ""}));
  const Json some = Json::parse(co_await s->manager->list({.after = "", .limit = 10, .state = "succeeded"}));
  s->note = std::to_string(at(all, "transfers").array()->size()) + " " +
            std::to_string(at(some, "transfers").array()->size()) + " " +
            co_await code_of(s->manager->status("t0000000000000000002"));
}

Task<void> lose_the_state_directory(Service* s) {
  Gate& gate = s->connections.source.gate;
  gate.close("read");
  s->id = co_await submit(s, plain_spec);
  co_await gate.reached("read");
  std::filesystem::remove_all(s->dir.path() + "/transfers");
  s->note = (co_await s->manager->not_ready()) ? "not ready" : "ready";
  gate.open("read");
  co_await s->finish();
  s->note += " " + text_at(s->artifact, "id");
}

}  // namespace

Test(manager, refuses_at_once_what_needs_no_server) {
  Service service;
  service.run(bad_specs);
  EXPECT_TEXT(service.note, "malformed_json connection_unknown connection_not_writable");
}

Test(manager, queues_refuses_and_cancels) {
  Service service;
  service.settings.max_transfers = 1;
  service.settings.queue_max = 1;
  service.run(fill_queue);
  EXPECT_TEXT(service.note,
              "queue_full queued cancelled accepted no_artifact_yet transfer_active transfer_ended transfer_ended");
  EXPECT_TEXT(std::string(to_string(service.outcome.state)), "succeeded");
}

Test(manager, an_idempotency_key_names_one_transfer_over_restarts) {
  Service service;
  service.run(same_key);
  EXPECT_TEXT(service.note, "same idempotency_key_reused");
  service.run(same_key_later);
  EXPECT_TEXT(service.note, "same");
  cr_expect_eq(service.connections.source.begun, 1);
}

Test(manager, lists_in_pages_newest_first) {
  Service service;
  service.run(three_of_them);
  service.run(list_pages);
  EXPECT_TEXT(service.note, "2 1 0");
  const Json::Array& page = *at(service.artifact, "transfers").array();
  EXPECT_TEXT(text_at(page[0], "id"), service.id);
  EXPECT_TEXT(text_at(page[0], "state"), "succeeded");
  cr_expect_eq(number_at(page[0], "rows.read"), service.connections.source.rows());
}

Test(manager, a_pipeline_runs_once_at_a_time) {
  Service service;
  const std::string path = service.dir.path() + "/hourly.json";
  std::ofstream(path) << plain_spec;
  service.settings.pipelines["hourly"] = {path};
  service.run(pipeline);
  EXPECT_TEXT(service.note, "pipeline_running pipeline_unknown");
  const Json& entry = at(service.artifact, "pipelines").array()->at(0);
  EXPECT_TEXT(text_at(entry, "name"), "hourly");
  EXPECT_TEXT(text_at(entry, "last_run.id"), service.id);
  EXPECT_TEXT(text_at(entry, "last_run.state"), "succeeded");
}

Test(manager, a_document_that_does_not_change_keeps_its_etag) {
  Service service;
  service.run(etags);
  EXPECT_TEXT(service.note, "stable");
}

Test(manager, the_status_outlives_the_process) {
  Service service;
  service.run(etags);
  service.run(status_later);
  EXPECT_TEXT(text_at(service.artifact, "state"), "succeeded");
  EXPECT_TEXT(service.note, "transfer_unknown transfer_unknown");
}

Test(manager, a_shutdown_cancels_what_runs_and_leaves_nothing) {
  Service service;
  service.run(leave_running);
  service.run(look);
  EXPECT_TEXT(text_at(service.artifact, "state"), "cancelled");
  EXPECT_TEXT(text_at(service.artifact, "error.code"), "shutdown");
  cr_expect(service.connections.target.stagings.empty());
  cr_expect_not(service.connections.target.locked);
}

Test(manager, what_a_shutdown_leaves_queued_is_interrupted_and_can_be_resumed) {
  Service service;
  service.settings.max_transfers = 1;
  service.run(leave_queued);
  service.run(resume_it);
  EXPECT_TEXT(service.note, "interrupted");
  EXPECT_TEXT(std::string(to_string(service.outcome.state)), "succeeded");
}

Test(manager, interrupted_transfers_are_resumed_at_start_when_configured) {
  Service service;
  service.settings.max_transfers = 1;
  service.run(leave_queued);
  service.settings.resume_on_start = true;
  service.connections.source.gate.open("read");
  service.run([](Service* s) -> Task<void> { co_await s->finish(); });
  EXPECT_TEXT(std::string(to_string(service.outcome.state)), "succeeded");
}

Test(manager, the_second_transfer_into_one_target_is_busy) {
  Service service;
  service.run(two_at_once);
  EXPECT_TEXT(service.note, "target_busy");
  EXPECT_TEXT(std::string(to_string(service.outcome.state)), "succeeded");
  cr_expect(*at(service.artifact, "engine.shared").boolean());
}

Test(manager, clean_finds_and_drops_left_over_staging) {
  Service service;
  service.connections.target.finalize_unknown = true;
  service.run(leave_staging);
  service.run(clean_up);
  EXPECT_TEXT(service.note, "1010 dropped");
  cr_expect(service.connections.target.stagings.empty());
}

Test(manager, an_observer_sees_every_state) {
  Service service;
  Watcher watcher;
  static Watcher* here = nullptr;
  here = &watcher;
  service.run([](Service* s) -> Task<void> {
    s->manager->observe(here);
    co_await plain(s);
    s->manager->observe(nullptr);
  });
  EXPECT_TEXT(watcher.states, "queued planning running verifying finalizing succeeded ");
}

Test(manager, a_key_is_honoured_by_another_process, .timeout = 30) {
  Service s;
  s.run(same_key_elsewhere);
  EXPECT_TEXT(s.note, "same idempotency_key_reused 0");
}

Test(manager, one_key_in_two_processes_at_once_is_one_transfer, .timeout = 30) {
  Service s;
  s.run(both_at_once);
  EXPECT_TEXT(s.note, "same");
}

Test(manager, damaged_records_are_left_out_of_the_list, .timeout = 30) {
  Service s;
  s.run(list_beside_damage);
  EXPECT_TEXT(s.note, "1 1 record_damaged");
}

Test(manager, an_end_that_the_state_directory_refuses_is_kept_and_written_later, .timeout = 30) {
  Service s;
  s.run(lose_the_state_directory);
  EXPECT_TEXT(s.note, "not ready " + s.id);
  const Store store(s.dir.path());
  cr_expect(store.read_artifact(s.id).has_value(), "written once the directory could be made again");
  cr_expect(is_terminal(read_record(store, s.id, "test")->state));
}
