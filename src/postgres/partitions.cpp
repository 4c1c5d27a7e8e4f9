#include "postgres/partitions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <limits>
#include <map>
#include <set>

#include "base/error.hpp"
#include "base/id.hpp"
#include "postgres/dialect.hpp"

namespace rowferry::postgres {

using async::Task;
using system::ColumnPlan;
using system::Slice;
using system::SliceBounds;

namespace {

constexpr std::size_t name_bytes_max = 63;
constexpr std::string_view bound_constraint = "rowferry_bound";

// The values of a partition column as the server orders them: the same rank for what it takes for equal.
using Ranks = std::map<std::string, int, std::less<>>;
constexpr int below_all = std::numeric_limits<int>::min();
constexpr int above_all = std::numeric_limits<int>::max();

const ColumnPlan& plan_of(const std::vector<ColumnPlan>& columns, const std::string& target) {
  const auto at = std::ranges::find(columns, target, &ColumnPlan::target);
  if (at == columns.end()) {
    throw Error(Category::input, "commit_slice_needs_partition",
                fmt::format("the partition column \"{}\" is not loaded", target));
  }
  return *at;
}

const ColumnFacts& facts_of(const TableFacts& table) {
  const ColumnFacts* const column = table.column(table.partition_column);
  if (column == nullptr) {
    throw Error(Category::conflict, "target_changed", fmt::format("{} is partitioned otherwise now", table.sql));
  }
  return *column;
}

// A bound's text as PostgreSQL reads it: bytes in its own form, and no more fractional digits than the column keeps
// (the server would round them, the load drops them).
std::string server_text(const rows::Type& type, std::string text) {
  if (type.id == rows::TypeId::binary && text.starts_with("0x")) return "\\x" + text.substr(2);
  if (type.id != rows::TypeId::timestamp && type.id != rows::TypeId::time) return text;
  const std::size_t point = text.find('.');
  if (point == std::string::npos) return text;
  std::size_t end = point + 1;
  while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end])) != 0) ++end;
  const std::size_t kept = point + 1 + type.digits;
  if (end > kept) text.erase(type.digits == 0 ? point : kept, end - (type.digits == 0 ? point : kept));
  return text;
}

SliceBounds server_bounds(const SliceBounds& bounds, const rows::Type& type) {
  SliceBounds out = bounds;
  out.value = server_text(type, out.value);
  if (out.low) out.low = server_text(type, *out.low);
  if (out.high) out.high = server_text(type, *out.high);
  return out;
}

std::string literal(const ColumnFacts& column, const std::string& text) {
  return fmt::format("CAST({} AS {}){}", quote_text(text), column.native,
                     column.collation.empty() ? "" : " COLLATE " + column.collation);
}

void collect(std::set<std::string>& texts, const std::optional<std::string>& text) {
  if (text) texts.insert(*text);
}

Task<Ranks> rank(Session* session, const ColumnFacts* column, std::set<std::string> texts) {
  Ranks out;
  if (texts.empty()) co_return out;
  const std::vector<std::string> list(texts.begin(), texts.end());
  std::string values;
  for (std::size_t i = 0; i < list.size(); ++i) {
    values += fmt::format("{}({}, {})", i == 0 ? "" : ", ", i, literal(*column, list[i]));
  }
  const Result found = co_await session->query(fmt::format(
      "SELECT i, pg_catalog.dense_rank() OVER (ORDER BY v) AS rank FROM (VALUES {}) AS bounds(i, v)", values));
  for (int row = 0; row < found.rows(); ++row) {
    out[list[static_cast<std::size_t>(found.integer(row, "i"))]] = static_cast<int>(found.integer(row, "rank"));
  }
  co_return out;
}

int low_rank(const Ranks& ranks, const std::optional<std::string>& text) { return text ? ranks.at(*text) : below_all; }
int high_rank(const Ranks& ranks, const std::optional<std::string>& text) { return text ? ranks.at(*text) : above_all; }

// --- matching slices and partitions

class Places {
 public:
  Places(const TableFacts& table, Ranks ranks) : table_(table), ranks_(std::move(ranks)) {}

  // The partition with exactly these bounds; null: none. Error(conflict, "partition_bounds") for one that holds more
  // or less.
  const PartitionFacts* find(const SliceBounds& bounds) const {
    if (bounds.kind == SliceBounds::Kind::range) return find_range(bounds);
    if (table_.partition_by == "range") return default_partition();  // NULL has no other place
    return find_value(bounds);
  }

  // The partition that takes a value of a list, whatever else it holds.
  const PartitionFacts* holder(const SliceBounds& bounds) const {
    for (const PartitionFacts& part : table_.partitions) {
      if (part.bound.kind == PartitionBound::Kind::list && holds(part, bounds)) return &part;
    }
    return nullptr;
  }

  const PartitionFacts* overlapping(const SliceBounds& bounds) const {
    for (const PartitionFacts& part : table_.partitions) {
      if (part.bound.kind != PartitionBound::Kind::range) continue;
      if (part_low(part) < high_rank(ranks_, bounds.high) && low_rank(ranks_, bounds.low) < part_high(part))
        return &part;
    }
    return nullptr;
  }

  const PartitionFacts* default_partition() const {
    const auto at =
        std::ranges::find_if(table_.partitions, [](const PartitionFacts& p) { return p.bound.is_default(); });
    return at == table_.partitions.end() ? nullptr : &*at;
  }

  // The same for two slices that the server takes for one.
  std::string key(const SliceBounds& bounds) const {
    if (bounds.kind == SliceBounds::Kind::null) return "null";
    if (bounds.kind == SliceBounds::Kind::value) return fmt::format("={}", ranks_.at(bounds.value));
    return fmt::format("[{},{})", low_rank(ranks_, bounds.low), high_rank(ranks_, bounds.high));
  }

 private:
  bool holds(const PartitionFacts& part, const SliceBounds& bounds) const {
    return std::ranges::any_of(part.bound.values, [&](const std::optional<std::string>& value) {
      if (bounds.kind == SliceBounds::Kind::null) return !value;
      return value && ranks_.at(*value) == ranks_.at(bounds.value);
    });
  }

  const PartitionFacts* find_value(const SliceBounds& bounds) const {
    const PartitionFacts* const part = holder(bounds);
    if (part != nullptr && part->bound.values.size() != 1) refuse(*part, "it holds other values too");
    return part;
  }

  int part_low(const PartitionFacts& part) const { return low_rank(ranks_, part.bound.low.at(0)); }
  int part_high(const PartitionFacts& part) const { return high_rank(ranks_, part.bound.high.at(0)); }

  const PartitionFacts* find_range(const SliceBounds& bounds) const {
    const PartitionFacts* const part = overlapping(bounds);
    if (part == nullptr) return nullptr;
    if (part_low(*part) == low_rank(ranks_, bounds.low) && part_high(*part) == high_rank(ranks_, bounds.high))
      return part;
    refuse(*part, fmt::format("the slice is from {} to {}", bounds.low.value_or("MINVALUE"),
                              bounds.high.value_or("MAXVALUE")));
  }

  [[noreturn]] void refuse(const PartitionFacts& part, std::string_view why) const {
    throw Error(Category::conflict, "partition_bounds",
                fmt::format("a slice is not exactly the partition {} ({}): {}", part.sql, part.bound.text, why))
        .with_hint("slice by the partitions' own bounds, or leave `commit` at \"transfer\"");
  }

  const TableFacts& table_;
  Ranks ranks_;
};

Task<Places> places_of(Session* session, const TableFacts* table, std::vector<SliceBounds> wanted) {
  std::set<std::string> texts;
  for (const SliceBounds& bounds : wanted) {
    if (bounds.kind == SliceBounds::Kind::value) texts.insert(bounds.value);
    collect(texts, bounds.low);
    collect(texts, bounds.high);
  }
  for (const PartitionFacts& part : table->partitions) {
    for (const auto* const list : {&part.bound.values, &part.bound.low, &part.bound.high}) {
      for (const std::optional<std::string>& text : *list) collect(texts, text);
    }
  }
  co_return Places(*table, co_await rank(session, &facts_of(*table), std::move(texts)));
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

std::string cut_name(const std::string& name, std::string_view hashed, bool needs_hash) {
  if (!needs_hash && name.size() <= name_bytes_max) return name;
  const std::string suffix = "_" + fingerprint(hashed).substr(0, 8);
  std::size_t end = std::min(name.size(), name_bytes_max - suffix.size());
  while (end > 0 && end < name.size() && (static_cast<unsigned char>(name[end]) & 0xC0U) == 0x80U) --end;
  return name.substr(0, end) + suffix;
}

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
  const ColumnFacts& column = facts_of(table);
  const std::string name = quote_name(column.name);
  if (bounds.kind == SliceBounds::Kind::null) return table.partition_by == "list" ? name + " IS NULL" : "";
  std::string out = name + " IS NOT NULL";
  if (bounds.kind == SliceBounds::Kind::value)
    return out + fmt::format(" AND {} = {}", name, literal(column, bounds.value));
  if (bounds.low) out += fmt::format(" AND {} >= {}", name, literal(column, *bounds.low));
  if (bounds.high) out += fmt::format(" AND {} < {}", name, literal(column, *bounds.high));
  return out;
}

// Empty where the condition by name alone would compare otherwise (the operators of an extension's type are not found
// without its schema): ATTACH looks at the rows then.
std::string attach_check(const TableFacts& table, const SliceBounds& bounds) {
  const TypeFacts& type = facts_of(table).type;
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

}  // namespace

Task<std::vector<SlicePartition>> find_partitions(Session& session, const TableFacts& table, const Decision& decision,
                                                  const std::vector<ColumnPlan>& columns,
                                                  const std::vector<Slice>& slices) {
  const rows::Type& type = plan_of(columns, table.partition_column).write_type;
  std::vector<SliceBounds> wanted;
  for (const Slice& slice : slices) wanted.push_back(bounds_of(slice, table, type));
  const Places places = co_await places_of(&session, &table, wanted);
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

namespace {

std::string named_check(const std::string& condition) {
  return fmt::format("CONSTRAINT {} CHECK ({})", bound_constraint, condition);
}

std::string drop_check(const std::string& table) {
  return fmt::format("; ALTER TABLE {} DROP CONSTRAINT {}", table, bound_constraint);
}

SliceStatements renew(const Decision& decision, const PartitionFacts& part) {
  SliceStatements out;
  out.table = out.partition = part.sql;
  for (const TriggerFacts& trigger : part.triggers) {
    if (!decision.quiet_partitions || !trigger.fires()) continue;
    out.before.push_back(silence_statement(part.sql, trigger));
    out.after.push_back(unsilence_statement(part.sql, trigger));
  }
  out.before.push_back("TRUNCATE " + part.sql);
  // Both are cheap for an empty table.
  if (decision.unlogged && part.persistence == 'p')
    out.before.push_back(fmt::format("ALTER TABLE {} SET UNLOGGED", part.sql));
  if (!decision.tablespace.empty() && part.tablespace != decision.tablespace) {
    out.before.push_back(fmt::format("ALTER TABLE {} SET TABLESPACE {}", part.sql, quote_name(decision.tablespace)));
  }
  return out;
}

SliceStatements make(const Decision& decision, const TableFacts& table, const SlicePartition& place) {
  SliceStatements out;
  out.creates = true;
  out.table = out.partition = quote_table({{place.schema, place.name}});
  CloneParts parts = clone_parts(table);
  if (!place.check.empty()) parts.checks.push_back(named_check(place.check));
  out.before.push_back(create_table(decision, out.table, parts.columns, parts.checks));
  out.build = clone_index_statements(table, out.table, "");
  if (!decision.owner.empty()) out.swap = fmt::format("ALTER TABLE {} OWNER TO {}; ", out.table, decision.owner);
  out.swap += fmt::format("ALTER TABLE {} ATTACH PARTITION {} {}", table.sql, out.table, place.bound);
  if (!place.check.empty()) out.swap += drop_check(out.table);
  return out;
}

SliceStatements replace(const Decision& decision, const TableFacts& table, const SlicePartition& place,
                        const std::string& fresh) {
  const PartitionFacts& part = *place.existing;
  SliceStatements out;
  out.table = quote_table({{part.schema, fresh}});
  out.partition = part.sql;
  CloneParts parts = clone_parts(table);
  if (!place.check.empty()) parts.checks.push_back(named_check(place.check));
  out.before.push_back(create_table(decision, out.table, parts.columns, parts.checks));
  out.build = clone_index_statements(table, out.table, fresh);
  // The owner stays: a table of another's must not become the role's.
  out.swap = fmt::format("ALTER TABLE {} OWNER TO {}; ALTER TABLE {} DETACH PARTITION {}; DROP TABLE {}; ", out.table,
                         part.owner, table.sql, part.sql, part.sql);
  out.swap += fmt::format("ALTER TABLE {} RENAME TO {}; ALTER TABLE {} ATTACH PARTITION {} {}", out.table,
                          quote_name(part.name), table.sql, part.sql, part.bound.text);
  if (!place.check.empty()) out.swap += drop_check(part.sql);
  std::vector<std::string> names;
  for (const IndexFacts& index : table.indexes) {
    if (!index.valid) continue;
    const std::string name =
        index.primary ? part.name + "_pkey" : fmt::format("{}_{}_idx", part.name, names.size() + 1);
    names.push_back(cut_name(name, name, false));
  }
  TableFacts beside;
  beside.schema = part.schema;
  for (const std::string& sql : rename_index_statements(beside, fresh, names)) out.swap += "; " + sql;
  for (const std::string& grant : part.grants) out.swap += "; " + grant_statement(grant, part.sql);
  return out;
}

}  // namespace

SliceStatements slice_statements(const Decision& decision, const TableFacts& table, const SlicePartition& partition,
                                 const std::string& fresh) {
  if (!partition.existing) return make(decision, table, partition);
  if (decision.exchange) return replace(decision, table, partition, fresh);
  return renew(decision, *partition.existing);
}

Task<std::vector<std::string>> vanished_partitions(Session& session, const TableFacts& table,
                                                   const std::vector<ColumnPlan>& columns,
                                                   const std::vector<Slice>& slices) {
  const rows::Type& type = plan_of(columns, table.partition_column).write_type;
  std::vector<SliceBounds> wanted;
  for (const Slice& slice : slices) wanted.push_back(bounds_of(slice, table, type));
  const Places places = co_await places_of(&session, &table, wanted);
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
  const Places places = co_await places_of(&session, &now, needed);
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
    co_await run_all(&session, make(decision, now, made[one.slice]));
  }
}

// --- the bounds that a source cuts by

namespace {

// As rows/format.hpp prints the column's logical type.
std::optional<std::string> engine_text(const rows::Type& type, std::optional<std::string> text) {
  if (!text) return text;
  if (type.id == rows::TypeId::binary && text->starts_with("\\x")) text->replace(0, 2, "0x");
  if (type.id == rows::TypeId::timestamp && type.zoned && text->ends_with("+00")) text->append(":00");
  return text;
}

}  // namespace

Task<std::vector<SliceBounds>> range_bounds_of(Session& session, const TableFacts& table, const rows::Type& type) {
  std::vector<const PartitionFacts*> parts;
  std::set<std::string> texts;
  for (const PartitionFacts& part : table.partitions) {
    if (part.bound.kind != PartitionBound::Kind::range) continue;
    parts.push_back(&part);
    collect(texts, part.bound.low.at(0));
    collect(texts, part.bound.high.at(0));
  }
  const Ranks ranks = co_await rank(&session, &facts_of(table), std::move(texts));
  std::ranges::sort(parts, {}, [&](const PartitionFacts* part) { return low_rank(ranks, part->bound.low[0]); });
  std::vector<SliceBounds> out;
  const auto add = [&](std::optional<std::string> low, std::optional<std::string> high) {
    out.push_back({.kind = SliceBounds::Kind::range,
                   .column = table.partition_column,
                   .value = "",
                   .low = engine_text(type, std::move(low)),
                   .high = engine_text(type, std::move(high))});
  };
  if (parts.empty()) co_return out;
  // What lies between and outside the partitions has slices too.
  if (parts.front()->bound.low[0]) add(std::nullopt, parts.front()->bound.low[0]);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::optional<std::string>& high = parts[i]->bound.high[0];
    add(parts[i]->bound.low[0], high);
    const bool last = i + 1 == parts.size();
    if (last && high) add(high, std::nullopt);
    if (last) break;
    const std::optional<std::string>& next = parts[i + 1]->bound.low[0];
    if (high && next && ranks.at(*high) != ranks.at(*next)) add(high, next);
  }
  co_return out;
}

// --- bounds as the server prints them

namespace {

class BoundParser {
 public:
  explicit BoundParser(std::string_view text) : text_(text) {}

  PartitionBound parse() {
    PartitionBound out;
    out.text = text_;
    if (text_ == "DEFAULT") {
      out.kind = PartitionBound::Kind::other;
      return out;
    }
    if (take("FOR VALUES IN (")) {
      out.kind = PartitionBound::Kind::list;
      out.values = list();
    } else if (take("FOR VALUES FROM (")) {
      out.kind = PartitionBound::Kind::range;
      out.low = list();
      if (!take(" TO (")) fail();
      out.high = list();
    } else if (take("FOR VALUES WITH (")) {
      out.kind = PartitionBound::Kind::hash;
      return out;
    } else {
      fail();
    }
    if (at_ != text_.size()) fail();
    return out;
  }

 private:
  bool take(std::string_view what) {
    if (text_.substr(at_, what.size()) != what) return false;
    at_ += what.size();
    return true;
  }

  // Up to the closing parenthesis. NULL, MINVALUE and MAXVALUE are nullopt; texts are quoted, numbers need not be.
  std::vector<std::optional<std::string>> list() {
    std::vector<std::optional<std::string>> out;
    for (;;) {
      out.push_back(value());
      if (take(")")) return out;
      if (!take(", ")) fail();
    }
  }

  std::optional<std::string> value() {
    take("B");  // a bit string's B'0101'
    if (take("'")) return quoted();
    const std::size_t end = text_.find_first_of(",)", at_);
    if (end == std::string_view::npos || end == at_) fail();
    const std::string_view word = text_.substr(at_, end - at_);
    at_ = end;
    if (word == "NULL" || word == "MINVALUE" || word == "MAXVALUE") return std::nullopt;
    return std::string(word);
  }

  std::string quoted() {
    std::string out;
    for (; at_ < text_.size(); ++at_) {
      if (text_[at_] == '\'') {
        ++at_;
        if (at_ >= text_.size() || text_[at_] != '\'') return out;
      }
      out += text_[at_];
    }
    fail();
  }

  [[noreturn]] void fail() const {
    throw Error(Category::internal, "bad_bound", fmt::format("a partition's bound cannot be read: {}", text_));
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

PartitionBound parse_bound(std::string_view text) { return BoundParser(text).parse(); }

}  // namespace rowferry::postgres
