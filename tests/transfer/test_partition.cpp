// Slices that are partitions: what is decided for them, commit slice by slice, its failures and its resume.
#include <criterion/criterion.h>
#include <fmt/format.h>

#include <algorithm>

#include "base/limits.hpp"
#include "tests/support/expect.hpp"
#include "tests/transfer/service.hpp"
#include "transfer/record.hpp"

using namespace rowferry;
using namespace rowferry::test;
using namespace rowferry::transfer;

namespace {

using Kind = system::SliceBounds::Kind;

std::string into(std::string_view target, std::string_view members) {
  return R"({"source": {"connection": "shop", "table": "public.orders"},
             "target": {"connection": "warehouse", "table": "dbo.orders", )" +
         std::string(target) + "}, " + std::string(members) + "}";
}
const std::string& renewing() {
  static const std::string spec = into(R"("mode": "truncate")", R"("load": {"commit": "slice"}, "verify": "content")");
  return spec;
}

// A service whose target is partitioned, with a spec to plan or run.
struct Partitioned : Service {
  std::string spec = renewing();
  std::string first_id;

  Partitioned() {
    connections.target.honoured = {"load.commit", "load.exchange", "load.freeze", "load.unlogged", "target.partition"};
    connections.target.partition_by = "list";
    connections.target.partition_column = "id";
  }
  void by_range() {
    connections.target.partition_by = "range";
    connections.target.partition_bounds = {
        {Kind::range, "id", "", {}, "10"}, {Kind::range, "id", "", "10", "20"}, {Kind::range, "id", "", "20", {}}};
  }
};

Task<void> planned(Service* s) {
  auto* p = static_cast<Partitioned*>(s);
  try {
    s->artifact = Json::parse(co_await s->manager->plan(p->spec, PlanFormat::json));
    s->note = "planned";
  } catch (const Error& error) {
    s->note = error.field().empty() ? error.code() : error.code() + " at " + error.field();
  }
}
Task<void> ran(Service* s) { co_await s->transfer(static_cast<Partitioned*>(s)->spec); }
Task<void> resumed(Service* s) {
  (void)co_await s->manager->resume(s->id);
  co_await s->finish();
}

std::string plan_of(Partitioned& service, std::string spec) {
  service.spec = std::move(spec);
  service.run(planned);
  return service.note;
}

std::string warning(const Json& artifact, std::string_view code) {
  const Json::Array* warnings = at(artifact, "warnings").array();
  if (warnings == nullptr) return "no warnings";
  for (const Json& w : *warnings) {
    if (text_at(w, "code") == code) return text_at(w, "text");
  }
  return "absent";
}

std::uint64_t rows_in_partitions(const Service& service) {
  std::uint64_t rows = 0;
  for (const auto& [name, partition] : service.connections.target.partitions) rows += partition.rows;
  return rows;
}

}  // namespace

Test(partition, a_list_target_gets_slices_by_the_values_of_its_column) {
  Partitioned service;
  EXPECT_TEXT(plan_of(service, renewing()), "planned");
  EXPECT_TEXT(text_at(service.artifact, "slices.by"), "value");
  EXPECT_TEXT(text_at(service.artifact, "slices.column"), "id");
  EXPECT_TEXT(text_at(service.artifact, "slices.reason"), "the target is partitioned by list of \"id\"; scripted");
  EXPECT_TEXT(text_at(service.artifact, "spec.slices.by"), "value");
  EXPECT_TEXT(text_at(service.artifact, "finalizer"), "per_slice");
  const system::TargetRequest& asked = service.connections.target.asked;
  cr_expect_eq(asked.slices_by, system::SliceBy::value);
  EXPECT_TEXT(asked.slice_column, "id");
  cr_expect_not(asked.source_filtered);
}

Test(partition, the_column_is_the_targets_name_of_what_the_source_calls_otherwise) {
  Partitioned service;
  service.connections.target.columns.push_back(target_column("store", rows::Type::of(rows::TypeId::int64), "bigint"));
  service.connections.target.columns[0] = target_column("other", rows::Type::text(), "text");
  service.connections.target.partition_column = "store";
  EXPECT_TEXT(plan_of(service, into(R"("mode": "truncate")", R"("load": {"commit": "slice"},
                                    "columns": [{"source": "id", "target": "store"}, "note"])")),
              "planned");
  EXPECT_TEXT(service.connections.source.asked.column, "id");
  EXPECT_TEXT(service.connections.target.asked.slice_column, "store");
}

Test(partition, a_range_target_is_cut_at_its_own_bounds) {
  Partitioned service;
  service.by_range();
  EXPECT_TEXT(plan_of(service, into(R"("mode": "truncate")", R"("load": {"commit": "slice"}, "slices": {"count": 9})")),
              "planned");
  EXPECT_TEXT(text_at(service.artifact, "slices.by"), "range");
  const std::vector<system::SliceBounds>& bounds = service.connections.source.asked.bounds;
  cr_assert_eq(bounds.size(), 3);
  EXPECT_TEXT(bounds[1].column, "id");
  EXPECT_TEXT(*bounds[1].low, "10");
  EXPECT_TEXT(*bounds[1].high, "20");
  cr_expect_neq(warning(service.artifact, "slice_count_ignored"), "absent");
}

Test(partition, one_staging_for_all_slices_leaves_them_to_the_source) {
  Partitioned service;
  EXPECT_TEXT(plan_of(service, into(R"("mode": "truncate")", R"("verify": "count")")), "planned");
  cr_expect_eq(service.connections.source.asked.by, system::SliceBy::automatic);
  cr_expect_eq(service.connections.target.asked.slices_by, system::SliceBy::automatic);
}

Test(partition, ranges_that_are_to_be_made_are_the_slices) {
  Partitioned service;
  service.connections.target.exists = false;
  EXPECT_TEXT(plan_of(service, into(R"("mode": "append", "create": true, "partition": {"by": "range", "column": "id"})",
                                    R"("verify": "count")")),
              "planned");
  cr_expect_eq(service.connections.source.asked.by, system::SliceBy::range);
  EXPECT_TEXT(service.connections.source.asked.column, "id");
  cr_expect(service.connections.source.asked.bounds.empty(), "the source finds them");
}

Test(partition, slices_that_are_no_partitions_cannot_be_committed_one_by_one) {
  Partitioned service;
  const auto spec = [](std::string_view slices) {
    return into(R"("mode": "truncate")", R"("load": {"commit": "slice"}, "slices": )" + std::string(slices));
  };
  EXPECT_TEXT(plan_of(service, spec(R"({"by": "value", "column": "id"})")), "planned");
  EXPECT_TEXT(plan_of(service, spec(R"({"column": "id"})")), "planned");
  EXPECT_TEXT(plan_of(service, spec(R"({"by": "range", "column": "id"})")),
              "commit_slice_needs_partition at slices.by");
  EXPECT_TEXT(plan_of(service, spec(R"({"by": "none"})")), "commit_slice_needs_partition at slices.by");
  EXPECT_TEXT(plan_of(service, spec(R"({"by": "value", "column": "note"})")),
              "commit_slice_needs_partition at slices.column");
  service.connections.target.partition_by = "hash";
  EXPECT_TEXT(plan_of(service, renewing()), "commit_slice_needs_partition at load.commit");
  service.connections.target.partition_by = "range";
  service.connections.target.partition_column = "";
  EXPECT_TEXT(plan_of(service, renewing()), "commit_slice_needs_partition at load.commit");
  service.connections.target.partition_by = "";
  EXPECT_TEXT(plan_of(service, renewing()), "commit_slice_needs_partition at load.commit");
  service.connections.target.partition_by = "list";
  service.connections.target.partition_column = "note";
  EXPECT_TEXT(plan_of(service, into(R"("mode": "truncate")", R"("load": {"commit": "slice"}, "columns": ["id"])")),
              "commit_slice_needs_partition at columns");
}

Test(partition, a_target_that_is_partitioned_otherwise_is_refused) {
  Partitioned service;
  const auto spec = [](std::string_view mode, std::string_view by, std::string_view column) {
    return into(fmt::format(R"("mode": "{}", "partition": {{"by": "{}", "column": "{}"}})", mode, by, column),
                R"("load": {"commit": "slice"})");
  };
  EXPECT_TEXT(plan_of(service, spec("truncate", "list", "id")), "planned");
  EXPECT_TEXT(plan_of(service, spec("truncate", "range", "id")), "partitioned_differently at target.partition");
  EXPECT_TEXT(plan_of(service, spec("truncate", "list", "note")), "partitioned_differently at target.partition");
  EXPECT_TEXT(plan_of(service, spec("replace", "list", "note")), "planned");
  EXPECT_TEXT(service.connections.source.asked.column, "note");
  service.connections.target.partition_by = "";
  EXPECT_TEXT(plan_of(service, spec("truncate", "list", "id")), "partitioned_differently at target.partition");
  EXPECT_TEXT(plan_of(service, spec("replace", "list", "nope")), "column_missing at target.partition.column");
}

Test(partition, the_profile_falls_back_to_staging_without_partitions) {
  Partitioned service;
  service.connections.target.partition_by = "";
  EXPECT_TEXT(plan_of(service, into(R"("mode": "truncate")", R"("profile": "disposable_copy")")), "planned");
  EXPECT_TEXT(text_at(service.artifact, "spec.load.commit"), "transfer");
  EXPECT_TEXT(text_at(service.artifact, "spec.slices.by"), "auto");
  cr_expect_neq(warning(service.artifact, "profile_fallback"), "absent");
  service.run(ran);
  EXPECT_TEXT(text_at(service.artifact, "state"), "succeeded");
  EXPECT_TEXT(text_at(service.artifact, "spec.load.commit"), "transfer");
  cr_expect(at(service.artifact, "spec.load.unlogged").is_null(), "the artifact has the spec as decided");
}

Test(partition, the_profile_commits_slices_into_partitions) {
  Partitioned service;
  service.spec = into(R"("mode": "truncate")", R"("profile": "disposable_copy")");
  service.run(ran);
  EXPECT_TEXT(text_at(service.artifact, "state"), "succeeded");
  EXPECT_TEXT(text_at(service.artifact, "finalizer"), "per_slice");
  EXPECT_TEXT(text_at(service.artifact, "spec.load.commit"), "slice");
  EXPECT_TEXT(text_at(service.artifact, "spec.slices.by"), "value");
  cr_expect(*at(service.artifact, "spec.load.unlogged").boolean());
  cr_expect(*at(service.artifact, "spec.load.freeze").boolean());
  cr_expect(*at(service.artifact, "spec.load.exchange").boolean());
}

Test(partition, each_slice_renews_one_and_those_of_vanished_values_are_emptied) {
  Partitioned service;
  service.connections.target.partitions["orders_77"] = {{}, 5, {}};
  service.run(ran);
  EXPECT_TEXT(text_at(service.artifact, "state"), "succeeded");
  cr_expect_eq(rows_in_partitions(service), service.connections.source.rows());
  cr_expect_eq(service.connections.target.partitions["orders_77"].rows, 0);
  EXPECT_TEXT(check_result(service.artifact, "rows_in_partitions"), "passed");
  EXPECT_TEXT(check_result(service.artifact, "content"), "passed");
  cr_expect(at(service.artifact, "rows.staged").is_null());
  const Json& slice = at(service.artifact, "slices").array()->at(3);
  EXPECT_TEXT(text_at(slice, "partition"), "orders_3");
  EXPECT_TEXT(text_at(slice, "state"), "done");
  EXPECT_TEXT(text_at(service.artifact, "slicing.by"), "value");
  EXPECT_TEXT(text_at(service.artifact, "slicing.column"), "id");
  EXPECT_TEXT(warning(service.artifact, "partitions_renewed"), "absent");
  cr_assert_eq(service.connections.target.begun_slices.size(), 8);
  EXPECT_TEXT(service.connections.target.begun_slices[2].bounds->value, "2");
}

Test(partition, a_filtered_source_says_so_and_empties_nothing) {
  Partitioned service;
  service.connections.target.partitions["orders_77"] = {{}, 5, {}};
  service.spec = R"({"source": {"connection": "shop", "table": "t", "where": "x > 1"},
    "target": {"connection": "warehouse", "table": "t", "mode": "truncate"}, "load": {"commit": "slice"}})";
  service.run(ran);
  EXPECT_TEXT(text_at(service.artifact, "state"), "succeeded");
  cr_expect(service.connections.target.asked.source_filtered);
  cr_expect_eq(service.connections.target.partitions["orders_77"].rows, 5);
}

Test(partition, range_slices_are_committed_at_the_targets_bounds) {
  Partitioned service;
  service.by_range();
  service.run(ran);
  EXPECT_TEXT(text_at(service.artifact, "state"), "succeeded");
  cr_expect_eq(service.connections.target.partitions.count("orders_10_20"), 1);
  cr_expect_eq(service.connections.target.partitions.count("orders_20_high"), 1);
  EXPECT_TEXT(check_result(service.artifact, "rows_in_partitions"), "passed");
}

Test(partition, late_values_get_partitions_too) {
  Partitioned service;
  service.connections.source.late = {2, 1};
  service.run(ran);
  EXPECT_TEXT(text_at(service.artifact, "state"), "succeeded");
  cr_expect_eq(service.connections.target.partitions.count("orders_100"), 1);
  cr_expect_eq(service.connections.target.partitions.count("orders_200"), 1);
  cr_expect_eq(rows_in_partitions(service), 11 * 200);
}

Test(partition, what_was_committed_is_checked) {
  Partitioned service;
  service.connections.target.staged_delta = -1;
  service.run(ran);
  EXPECT_TEXT(text_at(service.artifact, "error.code"), "verification_failed");
  EXPECT_TEXT(check_result(service.artifact, "rows_in_partitions"), "failed");
  cr_expect(text_at(service.artifact, "error.detail").find("untouched") == std::string::npos);
  Partitioned content;
  content.connections.target.wrong_content = true;
  content.run(ran);
  EXPECT_TEXT(check_result(content.artifact, "content"), "failed");
}

Test(partition, a_failed_run_names_those_it_has_renewed_and_its_resume_keeps_them) {
  Partitioned service;
  service.connections.source.read_faults = {{7, 100}};
  service.run(ran);
  EXPECT_TEXT(text_at(service.artifact, "error.code"), "read_broke");
  const std::string renewed = warning(service.artifact, "partitions_renewed");
  cr_expect(renewed.find("of 8 partitions") != std::string::npos, "%s", renewed.c_str());
  cr_expect(renewed.find("orders_0") != std::string::npos, "%s", renewed.c_str());
  cr_expect(renewed.find("orders_7") == std::string::npos, "%s", renewed.c_str());
  const std::size_t kept = service.connections.target.committed.begin()->second.size();
  cr_assert_gt(kept, 0);
  cr_assert_lt(kept, 8);
  // A value that came into being meanwhile is read too, under a number of its own.
  service.connections.source.read_faults.clear();
  service.connections.source.read_log.clear();
  service.connections.source.slices = 9;
  service.run(resumed);
  EXPECT_TEXT(text_at(service.artifact, "state"), "succeeded");
  cr_expect_eq(service.connections.source.read_log.size(), 9 - kept);
  cr_expect_eq(service.connections.target.partitions.count("orders_8"), 1);
  cr_expect_eq(rows_in_partitions(service), service.connections.source.rows());
  EXPECT_TEXT(check_result(service.artifact, "content"), "passed");
  EXPECT_TEXT(warning(service.artifact, "partitions_renewed"), "absent");
  const Json& slice = at(service.artifact, "slices").array()->at(0);
  EXPECT_TEXT(text_at(slice, "state"), "kept");
  EXPECT_TEXT(text_at(slice, "partition"), "orders_0");
}

Test(partition, the_record_keeps_what_slices_hold) {
  Record record;
  record.id = "t0000000000000000000";
  record.status.set("id", record.id);
  const auto add = [&record](std::optional<system::SliceBounds> bounds, std::string table) {
    SliceProgress slice;
    slice.index = static_cast<int>(record.slices.size());
    slice.bounds = std::move(bounds);
    slice.table = std::move(table);
    record.slices.push_back(std::move(slice));
  };
  add(system::SliceBounds{Kind::value, "store", "17 \"a\"", {}, {}}, "orders_17");
  add(system::SliceBounds{Kind::value, "store", "", {}, {}}, "");
  add(system::SliceBounds{Kind::null, "store", "", {}, {}}, "orders_null");
  add(system::SliceBounds{Kind::range, "store", "", {}, "10"}, "");
  add(system::SliceBounds{Kind::range, "store", "", "10", ""}, "");
  add(system::SliceBounds{Kind::range, "store", "", "20", {}}, "");
  add(std::nullopt, "");
  const Record again = parse_record(record_text(record));
  cr_assert_eq(again.slices.size(), record.slices.size());
  for (std::size_t i = 0; i < record.slices.size(); ++i) {
    cr_expect(again.slices[i].bounds == record.slices[i].bounds, "slice %zu", i);
    EXPECT_TEXT(again.slices[i].table, record.slices[i].table);
  }
}
