#include "postgres/partitions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/error.hpp"
#include "postgres/dialect.hpp"
#include "postgres/partition_bounds.hpp"

namespace rowferry::postgres {

using async::Task;
using system::ColumnPlan;
using system::Slice;
using system::SliceBounds;

namespace {

const ColumnPlan& plan_of(const std::vector<ColumnPlan>& columns, const std::string& target) {
  const auto at = std::ranges::find(columns, target, &ColumnPlan::target);
  if (at == columns.end()) {
    throw Error(Category::input, "commit_slice_needs_partition",
                fmt::format("the partition column \"{}\" is not loaded", target));
  }
  return *at;
}

SliceBounds bounds_of(const Slice& slice, const TableFacts& table, const rows::Type& type) {
  const bool by_list = table.partition_by == "list";
  if (slice.bounds) {
    const bool right =
        by_list ? slice.bounds->kind != SliceBounds::Kind::range : slice.bounds->kind != SliceBounds::Kind::value;
    if (right) return server_bounds(*slice.bounds, type);
  }
  throw Error(Category::input, "commit_slice_needs_partition",
              fmt::format("slice {} is not cut by {} of \"{}\", by which {} is partitioned", slice.index,
                          by_list ? "value" : "range", table.partition_column, table.sql))
      .with_field("slices");
}

// --- names and conditions of new partitions

// Lower case letters, digits and underscores; `changed` when the text had anything else.
std::string safe(std::string_view text, bool& changed) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
    const bool upper = c >= 'A' && c <= 'Z';
    out += plain ? c : (upper ? static_cast<char>(c + ('a' - 'A')) : '_');
    changed = changed || !plain;
  }
  return out;
}

std::string partition_name(const std::string& table, const SliceBounds& bounds, bool hashed) {
  bool changed = hashed;
  std::string value;
  std::string whole;
  switch (bounds.kind) {
    case SliceBounds::Kind::null:
      value = whole = "null";
      break;
    case SliceBounds::Kind::value:
      value = safe(bounds.value, changed);
      whole = "=" + bounds.value;
      // Names that mean something else, or nothing.
      changed = changed || value.empty() || value == "null" || value == "default";
      break;
    case SliceBounds::Kind::range:
      value = fmt::format("{}_to_{}", bounds.low ? safe(*bounds.low, changed) : "min",
                          bounds.high ? safe(*bounds.high, changed) : "max");
      whole = fmt::format("{}|{}|{}|{}", bounds.low ? 1 : 0, bounds.low.value_or(""), bounds.high ? 1 : 0,
                          bounds.high.value_or(""));
      break;
  }
  return cut_name(table + "_" + value, whole, changed);
}

std::string bound_sql(const TableFacts& table, const SliceBounds& bounds) {
  if (bounds.kind == SliceBounds::Kind::value) return fmt::format("FOR VALUES IN ({})", quote_text(bounds.value));
  if (bounds.kind == SliceBounds::Kind::null) return table.partition_by == "list" ? "FOR VALUES IN (NULL)" : "DEFAULT";
  return fmt::format("FOR VALUES FROM ({}) TO ({})", bounds.low ? quote_text(*bounds.low) : "MINVALUE",
                     bounds.high ? quote_text(*bounds.high) : "MAXVALUE");
}

// As a condition that proves the partition's own constraint, so that ATTACH need not look at the rows.
std::string bound_check(const TableFacts& table, const SliceBounds& bounds) {
  const ColumnFacts& column = partition_column_of(table);
  const std::string name = quote_name(column.name);
  if (bounds.kind == SliceBounds::Kind::null) return table.partition_by == "list" ? name + " IS NULL" : "";
  std::string out = name + " IS NOT NULL";
  if (bounds.kind == SliceBounds::Kind::value)
    return out + fmt::format(" AND {} = {}", name, literal_of(column, bounds.value));
  if (bounds.low) out += fmt::format(" AND {} >= {}", name, literal_of(column, *bounds.low));
  if (bounds.high) out += fmt::format(" AND {} < {}", name, literal_of(column, *bounds.high));
  return out;
}

// Empty where the condition by name alone would compare otherwise (the operators of an extension's type are not found
// without its schema): ATTACH looks at the rows then.
std::string attach_check(const TableFacts& table, const SliceBounds& bounds) {
  const TypeFacts& type = partition_column_of(table).type;
  return type.schema == "pg_catalog" || type.kind == 'e' ? bound_check(table, bounds) : "";
}

Task<std::set<std::string>> taken_names(Session* session, const std::string* schema, std::set<std::string> names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + quote_text(name);
  std::set<std::string> out;
  if (list.empty()) co_return out;
  const Result found = co_await session->query(fmt::format(
      "SELECT c.relname AS name FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
      "WHERE n.nspname = {0} AND c.relname IN ({1}) UNION SELECT t.typname FROM pg_catalog.pg_type t "
      "JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace WHERE n.nspname = {0} AND t.typname IN ({1})",
      quote_text(*schema), list));
  for (int i = 0; i < found.rows(); ++i) out.emplace(found.text(i, "name"));
  co_return out;
}

struct Missing {
  std::size_t slice;  // position in the list
  SliceBounds bounds;
};

Task<void> name_missing(Session* session, const TableFacts* table, const std::vector<Missing>* missing,
                        std::vector<SlicePartition>* out) {
  std::set<std::string> candidates;
  for (const Missing& one : *missing) {
    candidates.insert(partition_name(table->name, one.bounds, false));
    candidates.insert(partition_name(table->name, one.bounds, true));
  }
  std::set<std::string> taken = co_await taken_names(session, &table->schema, std::move(candidates));
  for (const Missing& one : *missing) {
    std::string name = partition_name(table->name, one.bounds, false);
    if (taken.contains(name)) name = partition_name(table->name, one.bounds, true);
    if (!taken.insert(name).second) {
      throw Error(Category::conflict, "partition_name_taken",
                  fmt::format("the partition {} of {} cannot be made: something else has that name", quote_name(name),
                              table->sql));
    }
    SlicePartition& place = (*out)[one.slice];
    place.schema = table->schema;
    place.name = std::move(name);
    place.bound = bound_sql(*table, one.bounds);
    place.check = attach_check(*table, one.bounds);
  }
}

// The lock of a look goes with the savepoint: others attach partitions meanwhile, which locks the default one.
Task<Result> look_briefly(Session* session, std::string sql) {
  const bool within = session->in_transaction();
  if (within) co_await session->query("SAVEPOINT rowferry_look");
  Result found = co_await session->query(std::move(sql));
  if (within) co_await session->query("ROLLBACK TO SAVEPOINT rowferry_look; RELEASE SAVEPOINT rowferry_look");
  co_return found;
}

// ATTACH refuses bounds of which the default partition has rows: better known before the load than behind it.
Task<void> check_default(Session* session, const TableFacts* table, const PartitionFacts* other,
                         const std::vector<Missing>* missing) {
  if (other == nullptr) co_return;
  std::string sql;
  for (const Missing& one : *missing) {
    const std::string check = bound_check(*table, one.bounds);
    if (check.empty()) continue;
    sql += fmt::format("{}SELECT {} AS i WHERE EXISTS (SELECT 1 FROM {} WHERE {})", sql.empty() ? "" : " UNION ALL ",
                       one.slice, other->sql, check);
  }
  if (sql.empty()) co_return;
  const Result found = co_await look_briefly(session, sql + " LIMIT 1");
  if (found.rows() == 0) co_return;
  const auto at = static_cast<std::size_t>(found.integer(0, "i"));
  const auto one = std::ranges::find(*missing, at, &Missing::slice);
  throw Error(Category::conflict, "default_partition_rows",
              fmt::format("the default partition {} has rows that belong to a new partition {}", other->sql,
                          bound_sql(*table, one->bounds)))
      .with_hint("move them into a partition of their own, or delete them");
}

// NULL of a range lies in the default partition, which is emptied for it: nothing else may be there.
Task<void> check_only_null(Session* session, const TableFacts* table, const PartitionFacts* part) {
  const Result found =
      co_await look_briefly(session, fmt::format("SELECT EXISTS (SELECT 1 FROM {} WHERE {} IS NOT NULL) AS any",
                                                 part->sql, quote_name(table->partition_column)));
  if (!found.boolean(0, "any")) co_return;
  throw Error(Category::conflict, "default_partition_rows",
              fmt::format("the default partition {} has rows besides those without a value of \"{}\"", part->sql,
                          table->partition_column))
      .with_hint("move them into a partition of their own, or delete them");
}

void check_usable(const PartitionFacts& part, const Decision& decision) {
  if (part.kind != 'r') {
    throw Error(Category::unsupported, "partition_kind",
                fmt::format("the partition {} is {}: it is not renewed", part.sql,
                            part.kind == 'p' ? "partitioned itself" : "a foreign table"));
  }
  const auto need = [&](bool right, std::string_view what) {
    if (right) return;
    throw Error(Category::forbidden, "right_missing", fmt::format("the role has not the right {} {}", what, part.sql))
        .with_hint("grant it to the role");
  };
  need(part.may_insert, "INSERT on");
  need(part.may_truncate, "TRUNCATE on");
  if (decision.exchange || decision.unlogged) need(part.owned, "of the owner of");
}

std::vector<SliceBounds> wanted_bounds(const TableFacts& table, const std::vector<ColumnPlan>& columns,
                                       const std::vector<Slice>& slices) {
  const rows::Type& type = plan_of(columns, table.partition_column).write_type;
  std::vector<SliceBounds> wanted;
  for (const Slice& slice : slices) wanted.push_back(bounds_of(slice, table, type));
  return wanted;
}

}  // namespace

Task<std::vector<SlicePartition>> find_partitions(Session& session, const TableFacts& table, const Decision& decision,
                                                  const std::vector<ColumnPlan>& columns,
                                                  const std::vector<Slice>& slices) {
  const std::vector<SliceBounds> wanted = wanted_bounds(table, columns, slices);
  const Places places = co_await Places::of(&session, &table, wanted);
  std::vector<SlicePartition> out(slices.size());
  std::vector<Missing> missing;
  std::map<std::string, int> seen;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const auto [other, fresh] = seen.emplace(places.key(wanted[i]), slices[i].index);
    if (!fresh) {
      throw Error(Category::conflict, "partition_bounds",
                  fmt::format("slices {} and {} are the same partition of {}: its column takes their values for equal",
                              other->second, slices[i].index, table.sql));
    }
    if (const PartitionFacts* const part = places.find(wanted[i]); part != nullptr) {
      check_usable(*part, decision);
      if (part->bound.is_default()) co_await check_only_null(&session, &table, part);
      out[i].existing = *part;
      out[i].check = attach_check(table, wanted[i]);
    } else {
      missing.push_back({i, wanted[i]});
    }
  }
  co_await check_default(&session, &table, places.default_partition(), &missing);
  co_await name_missing(&session, &table, &missing, &out);
  co_return out;
}

Task<std::vector<std::string>> vanished_partitions(Session& session, const TableFacts& table,
                                                   const std::vector<ColumnPlan>& columns,
                                                   const std::vector<Slice>& slices) {
  const std::vector<SliceBounds> wanted = wanted_bounds(table, columns, slices);
  const Places places = co_await Places::of(&session, &table, wanted);
  std::set<Oid> filled;
  for (const SliceBounds& bounds : wanted) {
    if (const PartitionFacts* const part = places.find(bounds); part != nullptr) filled.insert(part->oid);
  }
  std::string sql;
  std::vector<std::string> left;
  for (const PartitionFacts& part : table.partitions) {
    if (filled.contains(part.oid)) continue;
    sql += fmt::format("{}SELECT {} AS i WHERE EXISTS (SELECT 1 FROM {})", sql.empty() ? "" : " UNION ALL ",
                       left.size(), part.sql);
    left.push_back("TRUNCATE " + part.sql);
  }
  std::vector<std::string> out;
  if (sql.empty()) co_return out;
  // TRUNCATE locks readers out: not for what is empty.
  const Result found = co_await session.query(std::move(sql));
  for (int i = 0; i < found.rows(); ++i) out.push_back(left[static_cast<std::size_t>(found.integer(i, "i"))]);
  co_return out;
}

namespace {

Task<void> run_all(Session* session, SliceStatements statements) {
  for (std::string& sql : statements.before) co_await session->query(std::move(sql));
  for (std::string& sql : statements.build) co_await session->query(std::move(sql));
  if (!statements.swap.empty()) co_await session->query(std::move(statements.swap));
}

// What staging needs: its distinct values (list), or the slices' ranges that have rows in it.
Task<std::vector<SliceBounds>> needed_bounds(Session* session, const TableFacts* table,
                                             const std::vector<ColumnPlan>* columns, const std::vector<Slice>* slices,
                                             std::string staging) {
  std::vector<SliceBounds> out;
  const std::string column = quote_name(table->partition_column);
  const Result nulls =
      co_await session->query(fmt::format("SELECT EXISTS (SELECT 1 FROM {} WHERE {} IS NULL) AS any", staging, column));
  if (nulls.boolean(0, "any")) {
    out.push_back(
        {.kind = SliceBounds::Kind::null, .column = table->partition_column, .value = "", .low = {}, .high = {}});
  }
  if (table->partition_by == "list") {
    const Result found = co_await session->query(
        fmt::format("SELECT DISTINCT {0} AS value FROM {1} WHERE {0} IS NOT NULL ORDER BY {0}", column, staging));
    for (int i = 0; i < found.rows(); ++i) {
      out.push_back({.kind = SliceBounds::Kind::value,
                     .column = table->partition_column,
                     .value = std::string(found.text(i, "value")),
                     .low = {},
                     .high = {}});
    }
    co_return out;
  }
  const rows::Type& type = plan_of(*columns, table->partition_column).write_type;
  for (const Slice& slice : *slices) {
    const SliceBounds bounds = bounds_of(slice, *table, type);
    if (bounds.kind != SliceBounds::Kind::range) continue;
    const Result found = co_await session->query(
        fmt::format("SELECT EXISTS (SELECT 1 FROM {} WHERE {}) AS any", staging, bound_check(*table, bounds)));
    if (found.boolean(0, "any")) out.push_back(bounds);
  }
  co_return out;
}

}  // namespace

Task<void> make_partitions(Session& session, const TableFacts& table, const Decision& decision,
                           const std::vector<ColumnPlan>& columns, const std::vector<Slice>& slices,
                           const std::string& staging) {
  // As it is now: it may have been made a moment ago.
  const TableFacts now = co_await read_table(session, table.schema, table.name);
  const std::vector<SliceBounds> needed =
      co_await needed_bounds(&session, &now, &columns, &slices, quote_table({{now.schema, staging}}));
  const Places places = co_await Places::of(&session, &now, needed);
  std::vector<Missing> missing;
  for (std::size_t i = 0; i < needed.size(); ++i) {
    const bool range = needed[i].kind == SliceBounds::Kind::range;
    // The server says which rows have no place when a range is covered in part.
    const bool there = places.default_partition() != nullptr ||
                       (range ? places.overlapping(needed[i]) : places.holder(needed[i])) != nullptr;
    if (!there) missing.push_back({i, needed[i]});
  }
  std::vector<SlicePartition> made(needed.size());
  co_await name_missing(&session, &now, &missing, &made);
  for (const Missing& one : missing) {
    co_await run_all(&session, slice_statements(decision, now, made[one.slice], ""));
  }
}

}  // namespace rowferry::postgres
