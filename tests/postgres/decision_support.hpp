// Situations for the tests of decisions: no server.
#pragma once

#include <criterion/criterion.h>

#include <algorithm>

#include "../support/expect.hpp"
#include "postgres/decision.hpp"
#include "postgres/partitions.hpp"
#include "tests/support/error_of.hpp"

namespace rowferry::postgres::situations {

using system::ColumnPlan;
using system::Commit;
using system::Finalizer;
using system::Mode;
using system::SliceBy;
using system::TargetRequest;
using test::error_of;

inline ColumnPlan loaded(std::string name, std::string native, bool nullable = true) {
  ColumnPlan plan;
  plan.source = plan.target = std::move(name);
  plan.target_native = std::move(native);
  plan.target_nullable = nullable;
  plan.write_type = rows::Type::of(rows::TypeId::int32);
  return plan;
}

inline ColumnFacts column(std::string name, std::string native, bool nullable = true) {
  ColumnFacts facts;
  facts.name = std::move(name);
  facts.native = std::move(native);
  facts.nullable = nullable;
  facts.type.schema = "pg_catalog";
  return facts;
}

inline Situation existing() {
  Situation s;
  s.server_version = 150000;
  s.table.exists = true;
  s.table.schema = "shop";
  s.table.name = "orders";
  s.table.sql = "\"shop\".\"orders\"";
  s.table.owner = "ferry";
  s.table.columns = {column("id", "integer", false), column("note", "text")};
  s.rights = {.role = "ferry",
              .create_in_schema = true,
              .select = true,
              .insert = true,
              .remove = true,
              .truncate = true,
              .owner = true};
  return s;
}

inline Situation missing() {
  Situation s = existing();
  s.table.exists = false;
  s.table.columns.clear();
  s.rights = {.role = "ferry", .create_in_schema = true};
  return s;
}

inline PartitionFacts partition(std::string name, std::vector<std::optional<std::string>> values) {
  PartitionFacts part;
  part.oid = 7;
  part.schema = "shop";
  part.name = std::move(name);
  part.sql = "\"shop\".\"" + part.name + "\"";
  part.owner = "ferry";
  part.bound.values = std::move(values);
  return part;
}

inline Situation partitioned(std::string by = "list") {
  Situation s = existing();
  s.table.kind = 'p';
  s.table.partition_by = std::move(by);
  s.table.partition_key = s.table.partition_by == "list" ? "LIST (id)" : "RANGE (id)";
  s.table.partition_column = "id";
  s.table.partitions = {partition("orders_1", {"1"})};
  return s;
}

const std::vector<ColumnPlan> both{loaded("id", "integer", false), loaded("note", "text")};

inline TargetRequest request(Mode mode, int workers = 2) {
  TargetRequest r;
  r.mode = mode;
  r.workers = workers;
  r.table = {{"shop", "orders"}};
  return r;
}

inline TargetRequest by_slice(Mode mode = Mode::truncate) {
  TargetRequest r = request(mode);
  r.load.commit = Commit::slice;
  return r;
}

inline std::string code_of(const Situation& s, const TargetRequest& r, const std::vector<ColumnPlan>& columns = both,
                           const std::vector<std::string>& key = {}) {
  return error_of([&] { decide(s, r, columns, key); }).code();
}

inline std::string statements(const Situation& s, const Decision& d, const TargetRequest& r) {
  std::string out;
  for (FinalizeStatement& statement : finalize_statements(d, s.table, "stage", both, r)) {
    out += (out.empty() ? "" : "\n");
    out += statement.kind == FinalizeStatement::Kind::partitions ? "<partitions>" : statement.sql;
  }
  return out;
}

inline bool has_notice(const Decision& d, std::string_view code) {
  return std::ranges::find(d.notices, code, &system::Notice::code) != d.notices.end();
}

inline IndexFacts primary_key() {
  IndexFacts key;
  key.name = "orders_key";
  key.primary = key.unique = true;
  key.constraint = "PRIMARY KEY (id)";
  key.columns = {"id"};
  return key;
}

inline constexpr std::string_view plain_insert =
    "INSERT INTO \"shop\".\"orders\" (\"id\", \"note\") SELECT \"id\", \"note\" FROM \"shop\".\"stage\"";
inline constexpr std::string_view plain_count = "SELECT count(*) AS rows_now FROM \"shop\".\"orders\"";

inline std::string lines(std::initializer_list<std::string_view> list) {
  std::string out;
  for (const std::string_view line : list) out.append(out.empty() ? "" : "\n").append(line);
  return out;
}

}  // namespace rowferry::postgres::situations
