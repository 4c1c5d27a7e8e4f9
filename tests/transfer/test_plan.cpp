#include <criterion/criterion.h>

#include <algorithm>

#include "base/limits.hpp"
#include "tests/support/expect.hpp"
#include "tests/transfer/service.hpp"
#include "transfer/plan.hpp"

using namespace rowferry;
using namespace rowferry::test;
using namespace rowferry::transfer;

namespace {

struct Offline {
  FakeConnections connections;
  std::vector<system::Notice> notices;
  Spec spec;

  std::string check(const std::string& text) {
    notices.clear();
    spec = parse_spec(text);
    try {
      (void)validate_offline(spec, connections, notices);
    } catch (const Error& error) {
      return error.field().empty() ? error.code() : error.code() + " at " + error.field();
    }
    return "accepted";
  }
  bool has_notice(std::string_view code) const {
    return std::ranges::any_of(notices, [&](const system::Notice& n) { return n.code == code; });
  }
};

std::string between(std::string_view source, std::string_view target) {
  return R"({"source": {)" + std::string(source) + R"(}, "target": {)" + std::string(target) + "}}";
}
const char* const from_shop = R"("connection": "shop", "table": "t")";
const char* const to_warehouse = R"("connection": "warehouse", "table": "t", "mode": "append")";

Task<void> plan_both(Service* s) {
  s->artifact = Json::parse(co_await s->manager->plan(with(R"("columns": ["id", "note"])"), PlanFormat::json));
  s->note = co_await s->manager->plan(plain_spec, PlanFormat::text);
}

Task<void> plan_disposable(Service* s) {
  s->artifact = Json::parse(co_await s->manager->plan(with(R"("profile": "disposable_copy")"), PlanFormat::json));
}

Task<void> run_gentle(Service* s) { co_await s->transfer(with(R"("profile": "gentle_source")")); }

Task<void> plan_to_note(Service* s) {
  try {
    (void)co_await s->manager->plan(plain_spec, PlanFormat::json);
    s->note = "planned";
  } catch (const Error& error) {
    s->note = error.code() + " in " + error.context().connection;
  }
}

bool warns(const Json& plan, std::string_view code) {
  const Json::Array* warnings = at(plan, "warnings").array();
  return warnings != nullptr &&
         std::ranges::any_of(*warnings, [&](const Json& w) { return text_at(w, "code") == code; });
}

}  // namespace

Test(plan, connections_are_checked_without_a_server) {
  Offline offline;
  EXPECT_TEXT(offline.check(between(R"("connection": "shpo", "table": "t")", to_warehouse)),
              "connection_unknown at source.connection");
  EXPECT_TEXT(offline.check(between(from_shop, R"("connection": "archive", "table": "t", "mode": "append")")),
              "connection_not_writable at target.connection");
  EXPECT_TEXT(offline.check(between(R"("connection": "shop", "table": "a\"b")", to_warehouse)),
              "bad_name at source.table");
  EXPECT_TEXT(offline.check(between(R"("connection": "warehouse", "table": "t")", to_warehouse)),
              "same_table at target.table");
  EXPECT_TEXT(offline.check(between(from_shop, to_warehouse)), "accepted");
}

Test(plan, fields_that_contradict_are_refused) {
  Offline offline;
  EXPECT_TEXT(offline.check(between(R"("connection": "shop", "query": "select 1", "where": "x")", to_warehouse)),
              "conflicting_fields at source.where");
  EXPECT_TEXT(offline.check(with(R"("slices": {"by": "value"})")), "conflicting_fields at slices.column");
  for (const char* by : {"ctid", "none", "partition"}) {
    const std::string slices = std::string(R"("slices": {"column": "id", "by": ")") + by + "\"}";
    EXPECT_TEXT(offline.check(with(slices)), "conflicting_fields at slices.column");
  }
  EXPECT_TEXT(offline.check(with(R"("slices": {"by": "none", "count": 2})")), "conflicting_fields at slices.count");
  EXPECT_TEXT(offline.check(with(R"("columns": [{"source": "a", "replacement": "x"}])")),
              "conflicting_fields at columns[0].replacement");
  EXPECT_TEXT(offline.check(with(R"("columns": ["a", "a"])")), "column_repeated at columns[1]");
}

Test(plan, what_the_route_does_not_have_is_refused_by_name) {
  Offline offline;
  EXPECT_TEXT(offline.check(with(R"("read": {"isolation": "snapshot"})")), "not_supported_yet at read.isolation");
  EXPECT_TEXT(offline.check(with(R"("load": {"fire_triggers": true})")), "not_supported_yet at load.fire_triggers");
  EXPECT_TEXT(offline.check(with(R"("load": {"fire_triggers": false, "check_constraints": true})")), "accepted");
  EXPECT_TEXT(offline.check(with(R"("load": {"freeze": false})")), "not_supported_yet at load.freeze");
  EXPECT_TEXT(offline.check(with(R"("columns": [{"source": "a", "keep_offset": true}])")),
              "not_supported_yet at columns[0].keep_offset");
  EXPECT_TEXT(
      offline.check(between(from_shop, R"("connection": "warehouse", "table": "t", "mode": "merge", "key": ["id"])")),
      "not_supported_yet at target.mode");
  EXPECT_TEXT(offline.check(between(R"("connection": "shop", "arrow": "x.arrow")", to_warehouse)),
              "not_supported_yet at source.arrow");
  offline.connections.target.honoured = {"load.fire_triggers"};
  EXPECT_TEXT(offline.check(with(R"("load": {"fire_triggers": true})")), "accepted");
}

Test(plan, what_only_the_profile_asked_for_is_dropped_with_a_notice) {
  Offline offline;
  EXPECT_TEXT(offline.check(with(R"("profile": "disposable_copy")")), "accepted");
  cr_expect(offline.has_notice("profile_fallback"));
  cr_expect_eq(*offline.spec.load.commit, system::Commit::transfer);
  cr_expect_not(offline.spec.load.unlogged.has_value());
}

Test(plan, a_profile_that_the_target_refuses_falls_back_to_staging) {
  Service service;
  service.connections.target.honoured = {"load.commit", "load.freeze", "load.unlogged", "load.exchange"};
  service.connections.target.refuses_slice_commit = true;
  service.run(plan_disposable);
  EXPECT_TEXT(text_at(service.artifact, "finalizer"), "insert_select");
  EXPECT_TEXT(text_at(service.artifact, "spec.load.commit"), "transfer");
  cr_expect(warns(service.artifact, "profile_fallback"));
}

Test(plan, the_gentle_profile_reads_as_the_source_allows) {
  Service service;
  service.connections.source.honoured_isolation = "auto";
  service.run(run_gentle);
  EXPECT_TEXT(text_at(service.artifact, "state"), "succeeded");
  EXPECT_TEXT(text_at(service.artifact, "spec.profile"), "gentle_source");
  EXPECT_TEXT(text_at(service.artifact, "spec.read.isolation"), "auto");
  cr_expect(*at(service.artifact, "spec.read.drain").boolean());
  cr_expect_eq(number_at(service.artifact, "spec.workers.export"), 2);
  cr_expect_not(warns(service.artifact, "profile_fallback"));
  Service without;
  without.run(run_gentle);
  EXPECT_TEXT(text_at(without.artifact, "state"), "succeeded");
  cr_expect(at(without.artifact, "spec.read.isolation").is_null());
  cr_expect(*at(without.artifact, "spec.read.drain").boolean());
  cr_expect(warns(without.artifact, "profile_fallback"));
}

Test(plan, the_low_memory_profile_has_small_channels_and_one_worker_a_side) {
  Offline offline;
  EXPECT_TEXT(offline.check(with(R"("profile": "low_memory")")), "accepted");
  cr_expect_eq(*offline.spec.workers.export_, 1);
  cr_expect_eq(*offline.spec.workers.load, 1);
  cr_expect_eq(offline.spec.channel_bytes, limits::low_memory_channel_bytes);
  EXPECT_TEXT(offline.check(with(R"("profile": "disposable_copy")")), "accepted");
  cr_expect_eq(offline.spec.channel_bytes, limits::channel_bytes);
  cr_expect(offline.spec.load.tablespace.empty(), "the user's own");
}

Test(plan, says_what_would_be_done_as_json_and_text) {
  Service service;
  service.run(plan_both);
  EXPECT_TEXT(text_at(service.artifact, "route"), "fakepg_to_fakems");
  EXPECT_TEXT(text_at(service.artifact, "finalizer"), "insert_select");
  EXPECT_TEXT(text_at(service.artifact, "consistency"), "one_snapshot");
  cr_expect_eq(number_at(service.artifact, "slices.count"), 8);
  cr_expect_eq(at(service.artifact, "columns").array()->size(), 2);
  EXPECT_TEXT(text_at(at(service.artifact, "columns").array()->at(1), "target_type"), "nvarchar(40)");
  cr_expect(service.note.find("note") != std::string::npos);
  cr_expect(service.note.find("insert_select") != std::string::npos);
  cr_expect_eq(service.connections.source.begun, 0);
  cr_expect_eq(service.connections.target.begun, 0);
}

Test(plan, a_missing_table_wants_create) {
  Service service;
  service.connections.target.exists = false;
  service.run(plan_to_note);
  EXPECT_TEXT(service.note, "table_missing in warehouse");
}
