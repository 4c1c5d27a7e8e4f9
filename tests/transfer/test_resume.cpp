// Cancel in each state, resume from each end, and the decisions between.
#include <criterion/criterion.h>

#include "tests/support/expect.hpp"
#include "tests/transfer/service.hpp"
#include "transfer/run.hpp"

using namespace rowferry;
using namespace rowferry::test;
using namespace rowferry::transfer;

namespace {

Task<void> plain(Service* s) { co_await s->transfer(plain_spec); }

Task<void> verified(Service* s) { co_await s->transfer(with(R"("verify": "content")")); }

Task<void> only_if_missing(Service* s) {
  co_await s->transfer(
      R"({"source": {"connection": "shop", "table": "public.orders"},
          "target": {"connection": "warehouse", "table": "dbo.orders", "mode": "fail_if_exists", "create": true}})");
}

Task<void> resume_last(Service* s) {
  (void)co_await s->manager->resume(s->id);
  co_await s->finish();
}

// Submits, waits until the transfer is held at the closed gate, cancels.
Task<void> cancel_at(Service* s, Gate* gate, std::string point) {
  gate->close(point);
  s->id = (co_await s->manager->submit({.spec = plain_spec, .idempotency_key = "", .pipeline = ""})).id;
  co_await gate->reached(point);
  s->note = text_at(Json::parse((co_await s->manager->status(s->id)).json), "state");
  (void)co_await s->manager->cancel(s->id);
  co_await s->finish();
  gate->open(point);
}
Task<void> cancel_in_describe(Service* s) { co_await cancel_at(s, &s->connections.source.gate, "describe_source"); }
Task<void> cancel_in_begin(Service* s) { co_await cancel_at(s, &s->connections.target.gate, "begin_target"); }
Task<void> cancel_in_read(Service* s) { co_await cancel_at(s, &s->connections.source.gate, "read"); }
Task<void> cancel_in_write(Service* s) { co_await cancel_at(s, &s->connections.target.gate, "write"); }
Task<void> cancel_in_verify(Service* s) { co_await cancel_at(s, &s->connections.target.gate, "staged_rows"); }
Task<void> cancel_in_finalize(Service* s) { co_await cancel_at(s, &s->connections.target.gate, "finalize"); }

// The gate opens only after the cancellation: the answer to COMMIT is awaited.
Task<void> cancel_after_commit(Service* s) {
  Gate& gate = s->connections.target.gate;
  gate.close("finalize_committed");
  s->id = (co_await s->manager->submit({.spec = plain_spec, .idempotency_key = "", .pipeline = ""})).id;
  co_await gate.reached("finalize_committed");
  (void)co_await s->manager->cancel(s->id);
  gate.open("finalize_committed");
  co_await s->finish();
}

void expect_cancelled(Service& service, std::string_view in_state) {
  EXPECT_TEXT(service.note, in_state);
  EXPECT_TEXT(std::string(to_string(service.outcome.state)), "cancelled");
  EXPECT_TEXT(text_at(service.artifact, "state"), "cancelled");
  const FakeConnections& c = service.connections;
  cr_expect_eq(c.target.rows, 0);
  cr_expect(c.target.stagings.empty(), "staging is left");
  cr_expect_not(c.target.locked);
  cr_expect_eq(c.source.begun, c.source.ended);
  cr_expect_eq(c.source.readers_open, 0);
  cr_expect_eq(c.target.loaders_open, 0);
  // And a resume makes it whole.
  service.run(resume_last);
  EXPECT_TEXT(std::string(to_string(service.outcome.state)), "succeeded");
  cr_expect_eq(service.connections.target.rows, service.connections.source.rows());
}

system::LedgerEntry entry(int slice, std::uint64_t rows) {
  return {1, "slice " + std::to_string(slice), "s", rows, "0000000000000001000000000000000f"};
}

Progress earlier(int slices, bool slices_final) {
  Progress progress;
  progress.attempt = 2;
  progress.consistency = system::Consistency::one_snapshot;
  progress.slices_final = slices_final;
  for (int i = 0; i < slices; ++i) {
    SliceProgress slice;
    slice.index = i;
    progress.slices.push_back(slice);
  }
  return progress;
}

system::Remains left(int slices, int staging_attempt) {
  system::Remains remains;
  remains.staging_attempt = remains.latest_attempt = staging_attempt;
  for (int i = 0; i < slices; ++i) remains.slices.push_back(entry(i, 10));
  return remains;
}

}  // namespace

Test(cancel, while_planning) {
  Service service;
  service.run(cancel_in_describe);
  expect_cancelled(service, "planning");
}

Test(cancel, while_the_target_is_locked) {
  Service service;
  service.run(cancel_in_begin);
  expect_cancelled(service, "running");
}

Test(cancel, while_reading) {
  Service service;
  service.run(cancel_in_read);
  expect_cancelled(service, "running");
}

Test(cancel, while_writing) {
  Service service;
  service.run(cancel_in_write);
  expect_cancelled(service, "running");
}

Test(cancel, while_verifying) {
  Service service;
  service.run(cancel_in_verify);
  expect_cancelled(service, "verifying");
}

Test(cancel, before_the_commit_of_finalize) {
  Service service;
  service.run(cancel_in_finalize);
  expect_cancelled(service, "finalizing");
}

Test(cancel, after_the_commit_of_finalize_its_outcome_is_awaited) {
  Service service;
  service.run(cancel_after_commit);
  EXPECT_TEXT(std::string(to_string(service.outcome.state)), "succeeded");
  cr_expect_eq(service.connections.target.rows, service.connections.source.rows());
  cr_expect_eq(service.connections.target.after_steps_done, 1);
}

Test(resume, after_a_finalize_that_could_not_start_nothing_is_read_again) {
  Service service;
  service.connections.target.finalize_faults = 1;
  service.run(plain);
  EXPECT_TEXT(service.outcome.error->code, "finalize_broke");
  service.run(resume_last);
  EXPECT_TEXT(std::string(to_string(service.outcome.state)), "succeeded");
  cr_expect_eq(service.connections.target.rows, service.connections.source.rows());
  cr_expect_eq(service.connections.source.begun, 1);
  cr_expect_eq(number_at(service.artifact, "attempt"), 2);
  cr_expect_eq(number_at(service.artifact, "rows.read"), service.connections.source.rows());
  cr_expect(service.connections.target.stagings.empty());
}

Test(resume, of_an_unknown_commit_that_had_arrived_only_reports) {
  Service service;
  service.connections.target.finalize_unknown = true;
  service.connections.target.finalize_arrives = true;
  service.run(plain);
  EXPECT_TEXT(service.outcome.error->code, "commit_unknown");
  service.connections.target.finalize_unknown = false;
  service.run(resume_last);
  EXPECT_TEXT(std::string(to_string(service.outcome.state)), "succeeded");
  cr_expect_eq(service.connections.target.rows, service.connections.source.rows(), "not doubled");
  cr_expect_eq(service.connections.target.after_steps_done, 1);
  cr_expect(service.connections.target.stagings.empty());
}

Test(resume, of_an_unknown_commit_that_had_not_arrived_finalizes_again) {
  Service service;
  service.connections.target.finalize_unknown = true;
  service.run(plain);
  service.connections.target.finalize_unknown = false;
  service.run(resume_last);
  EXPECT_TEXT(std::string(to_string(service.outcome.state)), "succeeded");
  cr_expect_eq(service.connections.target.rows, service.connections.source.rows());
  cr_expect_eq(service.connections.source.begun, 1);
}

Test(resume, after_failed_after_steps_repeats_only_them) {
  Service service;
  service.connections.target.after_steps_faults = 3;
  service.run(plain);
  EXPECT_TEXT(service.outcome.error->code, "after_steps_failed");
  service.run(resume_last);
  EXPECT_TEXT(std::string(to_string(service.outcome.state)), "succeeded");
  cr_expect_eq(service.connections.target.rows, service.connections.source.rows());
  cr_expect_eq(service.connections.target.after_steps_done, 1);
  cr_expect_eq(service.connections.source.begun, 1);
}

Test(resume, rows_that_are_all_staged_need_no_source) {
  Service service;
  service.connections.target.finalize_faults = 1;
  service.run(verified);
  EXPECT_TEXT(service.outcome.error->code, "finalize_broke");
  service.connections.source.gone = true;
  service.run(resume_last);
  EXPECT_TEXT(std::string(to_string(service.outcome.state)), "succeeded");
  cr_expect_eq(service.connections.target.rows, service.connections.source.rows());
  EXPECT_TEXT(check_result(service.artifact, "content"), "passed");
  EXPECT_TEXT(text_at(service.artifact, "source.product"), "Fake source");
  EXPECT_TEXT(text_at(at(service.artifact, "columns").array()->at(1), "target_type"), "nvarchar(40)");
}

Test(resume, staged_rows_keep_their_definition_when_the_source_gets_other_columns) {
  Service service;
  service.connections.target.exists = false;
  service.connections.target.finalizer = system::Finalizer::rename;
  service.connections.target.finalize_faults = 1;
  service.run(only_if_missing);
  EXPECT_TEXT(service.outcome.error->code, "finalize_broke");
  service.connections.source.columns.push_back(source_column("more", rows::Type::text(), "text"));
  service.run(resume_last);
  EXPECT_TEXT(std::string(to_string(service.outcome.state)), "succeeded");
  cr_expect_eq(at(service.artifact, "columns").array()->size(), 2);
  cr_expect_eq(service.connections.source.begun, 1);
}

Test(resume, committed_rows_are_reported_without_the_source) {
  Service service;
  service.connections.target.after_steps_faults = 3;
  service.run(plain);
  EXPECT_TEXT(service.outcome.error->code, "after_steps_failed");
  service.connections.source.gone = true;
  service.run(resume_last);
  EXPECT_TEXT(std::string(to_string(service.outcome.state)), "succeeded");
  cr_expect_eq(service.connections.target.rows, service.connections.source.rows(), "not doubled");
  cr_expect_eq(service.connections.target.after_steps_done, 1);
}

Test(resume, staged_rows_do_not_go_into_a_target_that_was_changed) {
  Service service;
  service.connections.target.finalize_faults = 1;
  service.run(plain);
  service.connections.target.columns[1].native = "nvarchar(20)";
  service.run(resume_last);
  EXPECT_TEXT(service.outcome.error->code, "target_changed");
  cr_expect_eq(service.connections.target.rows, 0);
}

Test(resume, without_staging_the_source_is_asked) {
  Service service;
  service.connections.source.read_faults = {{5, 100}};
  service.run(plain);
  service.connections.source.gone = true;
  service.run(resume_last);
  EXPECT_TEXT(service.outcome.error->code, "table_missing");
}

Test(resume, the_table_that_it_made_itself_is_no_conflict) {
  Service service;
  service.connections.target.exists = false;
  service.connections.target.after_steps_faults = 3;
  service.run(only_if_missing);
  EXPECT_TEXT(service.outcome.error->code, "after_steps_failed");
  service.connections.target.exists = true;
  service.run(resume_last);
  EXPECT_TEXT(std::string(to_string(service.outcome.state)), "succeeded");
  cr_expect_eq(service.connections.target.rows, service.connections.source.rows());
}

Test(resume, without_a_common_snapshot_finished_slices_are_kept) {
  Service service;
  service.connections.source.consistency = system::Consistency::per_slice;
  service.connections.source.read_faults = {{7, 100}};
  service.run(plain);
  EXPECT_TEXT(service.outcome.error->code, "read_broke");
  cr_assert_eq(service.connections.target.stagings.size(), 1);
  const std::size_t reads = service.connections.source.read_log.size();
  const std::size_t kept = service.connections.target.stagings.begin()->second.slices.size();
  cr_assert_gt(kept, 0);
  service.connections.source.read_faults.clear();
  service.run(resume_last);
  EXPECT_TEXT(std::string(to_string(service.outcome.state)), "succeeded");
  cr_expect_eq(service.connections.source.read_log.size() - reads, 8 - kept);
  cr_expect_eq(service.connections.target.rows, service.connections.source.rows());
}

Test(resume, a_finalize_in_the_ledger_leaves_only_the_after_steps) {
  system::Remains remains = left(4, 2);
  remains.finalized = true;
  const Start start = decide_start(earlier(4, true), State::interrupted, false, remains);
  cr_expect_eq(start.kind, Start::Kind::after_steps);
}

Test(resume, a_complete_staging_goes_on_at_verify) {
  const Start start = decide_start(earlier(4, true), State::interrupted, false, left(4, 2));
  cr_expect_eq(start.kind, Start::Kind::verify);
  cr_expect_eq(start.staging_attempt, 2);
}

Test(resume, an_incomplete_staging_of_one_snapshot_starts_anew) {
  cr_expect_eq(decide_start(earlier(4, true), State::interrupted, false, left(3, 2)).kind, Start::Kind::fresh);
  cr_expect_eq(decide_start(earlier(4, false), State::interrupted, false, left(4, 2)).kind, Start::Kind::fresh,
               "a late slice might be missing");
  cr_expect_eq(decide_start(earlier(4, true), State::interrupted, false, left(4, 0)).kind, Start::Kind::fresh,
               "the staging is gone");
}

Test(resume, a_cancelled_transfer_starts_anew) {
  cr_expect_eq(decide_start(earlier(4, true), State::cancelled, false, left(4, 2)).kind, Start::Kind::fresh);
}

Test(resume, slices_committed_one_by_one_are_always_kept) {
  const Start start = decide_start(earlier(4, false), State::cancelled, true, left(2, 0));
  cr_expect_eq(start.kind, Start::Kind::keep);
  cr_expect_eq(start.entries.size(), 2);
}

Test(resume, the_ledgers_hash_is_read_back) {
  const rows::ContentHash hash = parse_hash(entry(1, 7));
  cr_expect_eq(hash.rows, 7);
  cr_expect_eq(hash.high, 1);
  cr_expect_eq(hash.low, 15);
  EXPECT_TEXT(hash.hex(), "0000000000000001000000000000000f");
}

Test(resume, a_slices_step_is_its_number_or_what_it_holds) {
  using Kind = system::SliceBounds::Kind;
  using system::Commit;
  const auto step = [](Kind kind, const std::string& value, std::optional<std::string> low = {},
                       std::optional<std::string> high = {}) {
    system::Slice slice{.index = 3, .predicate = "p", .spec = "s", .row_estimate = {}, .bounds = {}};
    slice.bounds = {kind, "store", value, std::move(low), std::move(high)};
    return system::slice_step(slice, Commit::slice);
  };
  EXPECT_TEXT(step(Kind::value, "17"), "slice =17");
  EXPECT_TEXT(step(Kind::null, ""), "slice null");
  EXPECT_TEXT(step(Kind::range, "", "1", "20"), "slice [1,20)");
  EXPECT_TEXT(step(Kind::range, "", std::nullopt, "-5.5"), "slice [,-5.5)");
  // A ledger that ignores case and blanks must still tell them apart.
  cr_expect_neq(step(Kind::value, "a"), step(Kind::value, "A"));
  cr_expect_neq(step(Kind::value, "1"), step(Kind::value, "1 "));
  cr_expect_neq(step(Kind::range, "", "a", "bc"), step(Kind::range, "", "ab", "c"));
  cr_expect_neq(step(Kind::range, "", std::nullopt, "b"), step(Kind::range, "", "", "b"));
  cr_expect_neq(step(Kind::value, ""), step(Kind::null, ""));
  cr_expect_leq(step(Kind::value, std::string(500, 'x')).size(), 40);
  system::Slice whole{.index = 3, .predicate = "p", .spec = "s", .row_estimate = {}, .bounds = {}};
  EXPECT_TEXT(system::slice_step(whole, Commit::slice), "slice 3");
  whole.bounds = {Kind::value, "store", "17", {}, {}};
  EXPECT_TEXT(system::slice_step(whole, Commit::transfer), "slice 3");
}
