// A PostgreSQL target with tables to load into, for the tests against a server.
#pragma once

#include <criterion/criterion.h>
#include <fmt/format.h>

#include <algorithm>

#include "live.hpp"
#include "postgres/dialect.hpp"
#include "postgres/load_type.hpp"
#include "postgres/natural_type.hpp"
#include "postgres/partitions.hpp"
#include "postgres/target.hpp"

namespace rowferry::postgres::live_target {

using namespace rowferry::postgres::test;
using system::ColumnPlan;
using system::Finalizer;
using system::Mode;
using system::Slice;
using system::SliceBounds;
using system::TargetRequest;

inline const std::string schema = "rf_target";

inline TargetRequest request_for(const std::string& table, Mode mode, int workers = 2) {
  TargetRequest request;
  request.table = {{schema, table}};
  request.mode = mode;
  request.workers = workers;
  return request;
}

inline ColumnPlan planned(const std::string& name, const std::string& native, bool nullable = true) {
  ColumnPlan plan;
  plan.source = plan.target = name;
  plan.target_native = native;
  plan.target_nullable = nullable;
  plan.write_type = load_type(parse_type(native).facts, 2).type;
  return plan;
}

// The columns of an existing table that take values, as the engine plans them.
inline std::vector<ColumnPlan> columns_of(const TableFacts& table) {
  std::vector<ColumnPlan> columns;
  for (const ColumnFacts& column : table.columns) {
    if (!column.insertable()) continue;
    ColumnPlan plan;
    plan.source = plan.target = column.name;
    plan.target_native = column.native;
    plan.target_nullable = column.nullable;
    plan.write_type = load_type(column.type, 2).type;
    columns.push_back(plan);
  }
  return columns;
}

inline Place place(const std::string& table) { return {schema, table, schema}; }

inline TableFacts facts(Live& live, const std::string& table) {
  return live.run(read_table(*live.admin, schema, table));
}

// One transfer: staging made, filled by `rows` (a SELECT or VALUES), finalized.
struct Transfer {
  explicit Transfer(Live& the_live, TargetRequest the_request, std::vector<ColumnPlan> the_columns = {})
      : live(the_live), request(std::move(the_request)), columns(std::move(the_columns)) {
    const std::string& table = request.table.parts[1];
    if (columns.empty()) columns = columns_of(facts(live, table));
    situation = live.run(read_situation(*live.admin, place(table), request, columns));
    decision = decide(situation, request, columns, source_key);
  }

  void stage(const std::string& rows) {
    live.sql(create_staging(decision, schema, staging));
    std::string list;
    for (const ColumnPlan& column : columns) list += (list.empty() ? "" : ", ") + quote_name(column.target);
    live.sql(fmt::format("INSERT INTO {} ({}) {}", quote_table({{schema, staging}}), list, rows));
  }

  void finalize(const std::vector<Slice>& slices = {}) {
    live.sql("BEGIN");
    for (const FinalizeStatement& s : finalize_statements(decision, situation.table, staging, columns, request)) {
      if (s.kind == FinalizeStatement::Kind::partitions) {
        live.run(make_partitions(*live.admin, situation.table, decision, columns, slices, staging));
        continue;
      }
      const Result result = live.sql(s.sql);
      if (s.kind == FinalizeStatement::Kind::insert) inserted = result.affected();
      if (s.kind == FinalizeStatement::Kind::count) counted = result.integer(0, "rows_now");
    }
    live.sql("COMMIT");
    live.sql("DROP TABLE IF EXISTS " + quote_table({{schema, staging}}));
  }

  void load(const std::string& rows, const std::vector<Slice>& slices = {}) {
    stage(rows);
    finalize(slices);
  }

  bool noted(std::string_view code) const {
    return std::ranges::find(decision.notices, code, &system::Notice::code) != decision.notices.end();
  }

  Live& live;
  TargetRequest request;
  std::vector<ColumnPlan> columns;
  std::vector<std::string> source_key;
  Situation situation;
  Decision decision;
  std::string staging = "rowferry_t_1";
  std::uint64_t inserted = 0;
  std::int64_t counted = -1;
};

inline std::string error_code(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  return "no error";
}

inline std::string joined(const std::vector<std::string>& list) {
  std::string out;
  for (const std::string& one : list) out += (out.empty() ? "" : ", ") + one;
  return out;
}

inline std::string rows_of(Live& live, const std::string& query) {
  std::string out;
  for (const std::string& row : live.column("SELECT r::text FROM (" + query + ") AS r")) out += row;
  return out;
}

inline Slice value_slice(int index, const std::string& column, std::optional<std::string> value) {
  Slice slice;
  slice.index = index;
  slice.bounds = SliceBounds{.kind = value ? SliceBounds::Kind::value : SliceBounds::Kind::null,
                             .column = column,
                             .value = value.value_or(""),
                             .low = {},
                             .high = {}};
  return slice;
}

inline Slice range_slice(int index, const std::string& column, std::optional<std::string> low,
                         std::optional<std::string> high) {
  Slice slice;
  slice.index = index;
  slice.bounds = SliceBounds{
      .kind = SliceBounds::Kind::range, .column = column, .value = "", .low = std::move(low), .high = std::move(high)};
  return slice;
}

// One slice of per_slice, as a loader runs it, on a session of its own; `values` fill it.
class SliceRun {
 public:
  SliceRun(Transfer& transfer, const Slice& slice, const std::string& values)
      : live_(transfer.live), session_(live_.session()) {
    sql("SET lock_timeout = 2000; BEGIN");
    const TableFacts now = live_.run(read_table(*session_, schema, transfer.request.table.parts[1]));
    const auto found = live_.run(find_partitions(*session_, now, transfer.decision, transfer.columns, {slice}));
    statements_ = slice_statements(transfer.decision, now, found[0], fmt::format("rowferry_t_1_{}", slice.index));
    for (const std::string& text : statements_.before) sql(text);
    sql(fmt::format("INSERT INTO {} {}", statements_.table, values));
  }

  std::string finish() {
    for (const std::string& text : statements_.build) sql(text);
    if (!statements_.swap.empty()) sql(statements_.swap);
    for (const std::string& text : statements_.after) sql(text);
    sql("COMMIT");
    return statements_.partition;
  }

 private:
  void sql(const std::string& text) { live_.run(session_->query(text)); }

  Live& live_;
  std::unique_ptr<Session> session_;
  SliceStatements statements_;
};

inline std::string run_slice(Transfer& transfer, const Slice& slice, const std::string& values) {
  return SliceRun(transfer, slice, values).finish();
}

}  // namespace rowferry::postgres::live_target
