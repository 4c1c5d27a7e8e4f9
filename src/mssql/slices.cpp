#include "mssql/slices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/error.hpp"
#include "base/limits.hpp"
#include "mssql/bounds.hpp"
#include "mssql/dialect.hpp"
#include "tds/wire/type_info.hpp"

namespace rowferry::mssql {

namespace {

using async::Task;
using system::Slice;
using system::SliceBounds;
using system::SliceBy;
using system::SlicePlan;

constexpr std::size_t predicate_chars = 200;  // of a slice's name, for people

Error impossible(std::string why, std::string field = "slices.by") {
  return Error(Category::input, "slices_impossible", std::move(why)).with_field(std::move(field));
}

void add(SlicePlan& plan, Slice slice) {
  if (plan.slices.size() >= static_cast<std::size_t>(limits::mssql_slices_max)) {
    throw Error(Category::input, "too_many_slices", fmt::format("more than {} slices", limits::mssql_slices_max))
        .with_field("slices");
  }
  slice.index = static_cast<int>(plan.slices.size());
  plan.slices.push_back(std::move(slice));
}

SlicePlan whole(const Origin& origin, std::string reason) {
  SlicePlan plan{.by = SliceBy::none, .reason = std::move(reason)};
  const bool counted = origin.where.empty();
  add(plan, {.predicate = "all rows", .spec = "", .row_estimate = counted ? origin.storage.rows : std::nullopt});
  return plan;
}

// A column that slices are cut by need not be one that is read: its metadata is asked for then.
Task<OriginColumn> column_to_cut(const Lease* lease, const Origin* origin, const std::string* name) {
  OriginColumn column = origin->column(*name);
  if (column.facts.native.empty() && column.why_not.empty()) {
    ColumnFacts facts = *origin->table->column(*name);
    std::vector<tds::ColumnMeta> meta = co_await read_metadata(*lease, origin->from, quoted(*name));
    facts.meta = std::move(meta.at(0));
    facts.native = tds::type_name(facts.meta.type);
    column = origin_column(facts, &*origin->table);
  }
  if (!column.why_not.empty()) {
    throw impossible(fmt::format("column \"{}\" cannot cut slices: {}", *name, column.why_not), "slices.column")
        .with_column(*name);
  }
  co_return column;
}

void need_order(const OriginColumn& column) {
  if (order_of(column) != Order::none) return;
  throw impossible(fmt::format("column \"{}\" cannot cut slices: {} has no order that the server compares by",
                               column.facts.name, column.facts.native),
                   "slices.column")
      .with_column(column.facts.name)
      .with_hint("name a number, date, uniqueidentifier or a text or binary column with a length");
}

Task<bool> has_nulls(const Lease* lease, const Origin* origin, const OriginColumn* column) {
  if (!column->facts.nullable) co_return false;
  const tds::ResultSet found = co_await lease->query_if_there(
      "SELECT TOP (1) 1 AS one" + origin->filtered(quoted(column->facts.name) + " IS NULL"));
  const bool any = !found.rows.empty();
  co_return any;
}

// A bound may be any value: without the seventh digit of a second, which other systems do not have.
tds::Value coarse(const OriginColumn& column, tds::Value value) {
  constexpr int finest = 7;
  if (order_of(column) != Order::temporal || column.facts.type.digits != finest) return value;
  std::string text = value.text();
  const std::size_t point = text.find('.');
  if (point != std::string::npos && text.size() > point + finest) text[point + finest] = '0';
  value.value = std::move(text);
  return value;
}

std::vector<Found> found_bounds(const OriginColumn& column, const tds::ResultSet& set) {
  std::vector<Found> bounds;
  // The first is the least value: below it there is nothing.
  for (std::size_t row = 1; row < set.rows.size(); ++row) {
    const tds::Value value = coarse(column, set.at(row, "bound"));
    // A bound that cannot be written is left out: two ranges become one.
    const std::optional<std::string> sql = literal_of(column, value);
    if (sql && (bounds.empty() || bounds.back().literal != *sql)) bounds.push_back({*sql, printed(column, value)});
  }
  return bounds;
}

// The least key of each of `count` parts with as many rows, in the server's order. With `sample`: of some pages only.
std::string quantiles_sql(const Origin& origin, const std::string& name, int count, double sample_percent) {
  std::string from = origin.from;
  if (sample_percent > 0) from += fmt::format(" TABLESAMPLE SYSTEM ({:.6f} PERCENT)", sample_percent);
  std::string where = fmt::format(" WHERE {} IS NOT NULL", name);
  if (!origin.where.empty()) where = fmt::format(" WHERE (\n{}\n) AND {} IS NOT NULL", origin.where, name);
  return fmt::format(
      "SELECT DISTINCT t.bound AS bound FROM (SELECT MIN(k.v) AS bound FROM (SELECT {0} AS v, NTILE({1}) OVER (ORDER "
      "BY {0}) AS tile FROM {2}{3}) AS k GROUP BY k.tile) AS t ORDER BY bound",
      name, count, from, where);
}

Task<std::vector<Found>> quantiles(const Lease* lease, const Origin* origin, const OriginColumn* column, int count) {
  const std::string name = quoted(column->facts.name);
  const std::uint64_t rows = origin->storage.rows.value_or(0);
  if (origin->is_table() && origin->where.empty() && rows > limits::mssql_sample_from_rows) {
    const double percent = 100.0 * static_cast<double>(limits::mssql_sample_rows) / static_cast<double>(rows);
    const tds::QueryResult found =
        co_await lease->query(quantiles_sql(*origin, name, count, percent), limits::mssql_slices_timeout);
    // A sample takes whole pages; too few of them say little.
    if (!found.sets.empty() && found.sets[0].rows.size() * 2 > static_cast<std::size_t>(count)) {
      co_return found_bounds(*column, found.sets[0]);
    }
  }
  const tds::QueryResult found =
      co_await lease->query(quantiles_sql(*origin, name, count, 0), limits::mssql_slices_timeout);
  co_return found.sets.empty() ? std::vector<Found>{} : found_bounds(*column, found.sets[0]);
}

// Nullopt: the keys have gaps, or are no integers.
Task<std::optional<std::vector<Found>>> dense_bounds(const Lease* lease, const Origin* origin,
                                                     const OriginColumn* column, int count) {
  std::optional<std::vector<Found>> none;
  const bool whole_numbers = order_of(*column) == Order::number && column->facts.type.id != rows::TypeId::decimal;
  if (!whole_numbers || !origin->storage.rows || !origin->where.empty()) co_return none;
  const std::string name = quoted(column->facts.name);
  const tds::QueryResult ends =
      co_await lease->query(fmt::format("SELECT MIN({0}) AS low, MAX({0}) AS high{1}", name, origin->filtered()),
                            limits::mssql_slices_timeout);
  if (ends.sets.empty() || ends.sets[0].rows.empty() || ends.sets[0].at(0, "low").is_null()) co_return none;
  const std::int64_t low = ends.sets[0].at(0, "low").integer();
  const std::int64_t high = ends.sets[0].at(0, "high").integer();
  const auto width = static_cast<unsigned __int128>(static_cast<__int128>(high) - low + 1);
  if (width > static_cast<unsigned __int128>(*origin->storage.rows) * 2) co_return none;
  std::vector<Found> bounds;
  for (const std::int64_t bound : equal_widths(low, high, count)) {
    tds::Value value;
    value.value = bound;
    bounds.push_back({*literal_of(*column, value), printed(*column, value)});
  }
  co_return bounds;
}

Task<std::vector<Found>> bounds_of(const Lease* lease, const Origin* origin, const OriginColumn* column, int count) {
  if (count <= 1) co_return std::vector<Found>{};
  if (order_of(*column) == Order::bit) co_return std::vector<Found>{{"CAST(1 AS bit)", "true"}};
  std::optional<std::vector<Found>> dense = co_await dense_bounds(lease, origin, column, count);
  if (dense) co_return std::move(*dense);
  co_return co_await quantiles(lease, origin, column, count);
}

Task<SlicePlan> by_range(const Lease* lease, const Origin* origin, std::string name, int count, std::string reason) {
  const OriginColumn column = co_await column_to_cut(lease, origin, &name);
  need_order(column);
  SlicePlan plan{.by = SliceBy::range, .reason = std::move(reason)};
  const std::vector<Found> bounds = co_await bounds_of(lease, origin, &column, count);
  const bool nulls = co_await has_nulls(lease, origin, &column);
  add_ranges(plan, column, bounds, nulls, origin->where.empty() ? origin->storage.rows : std::nullopt);
  co_return plan;
}

std::string range_text(const std::string& name, const SliceBounds& bounds) {
  std::string text;
  if (bounds.low) text = *bounds.low + " <= " + name;
  if (bounds.high) text += (text.empty() ? name : std::string()) + " < " + *bounds.high;
  return text.empty() ? name + " is not NULL" : cut_for_message(text, predicate_chars);
}

Slice null_slice(const std::string& name) {
  return {.predicate = name + " is NULL",
          .spec = quoted(name) + " IS NULL",
          .row_estimate = {},
          .bounds = SliceBounds{.kind = SliceBounds::Kind::null, .column = name, .value = {}, .low = {}, .high = {}}};
}

// Cut where the target's partitions are.
Task<SlicePlan> by_given(const Lease* lease, const Origin* origin, const system::SliceRequest* request) {
  const OriginColumn column = co_await column_to_cut(lease, origin, &request->column);
  need_order(column);
  SlicePlan plan{.by = SliceBy::range, .reason = "cut where the target's partitions are"};
  const bool nulls = co_await has_nulls(lease, origin, &column);
  for (const SliceBounds& bounds : request->bounds) {
    add(plan, {.predicate = range_text(request->column, bounds),
               .spec = given_condition(column, bounds, nulls),
               .row_estimate = {},
               .bounds = bounds});
  }
  if (nulls) add(plan, null_slice(request->column));
  co_return plan;
}

Task<SlicePlan> by_value(const Lease* lease, const Origin* origin, std::string name) {
  SlicePlan plan{.by = SliceBy::value, .reason = fmt::format("one slice for each value of {}", name)};
  for (Slice& slice : co_await value_slices(*lease, *origin, name)) add(plan, std::move(slice));
  if (plan.slices.empty()) add(plan, {.predicate = "no value", .spec = "1 = 0", .row_estimate = 0});
  co_return plan;
}

Task<SlicePlan> by_hash(const Lease* lease, const Origin* origin, std::string name, int count, std::string reason) {
  const OriginColumn column = co_await column_to_cut(lease, origin, &name);
  const bool too_long = column.meta.type.plp();
  if (order_of(column) == Order::none &&
      !(too_long && column.reads == Reads::itself && column.meta.type.id != tds::DataType::xml &&
        column.facts.native != "json" && column.facts.native != "vector")) {
    need_order(column);
  }
  SlicePlan plan{.by = SliceBy::hash, .reason = std::move(reason)};
  const std::optional<std::uint64_t> rows = origin->where.empty() ? origin->storage.rows : std::nullopt;
  for (int i = 0; i < count; ++i) {
    // Equal values have equal checksums, NULL has one too; whatever it is, a row has the same at every read.
    add(plan, {.predicate = fmt::format("hash of {} in class {} of {}", name, i, count),
               .spec = fmt::format("(CHECKSUM({}) & 2147483647) % {} = {}", quoted(name), count, i),
               .row_estimate = rows ? std::optional(*rows / static_cast<std::uint64_t>(count)) : std::nullopt});
  }
  co_return plan;
}

SlicePlan by_partition(const Origin& origin, std::string reason) {
  if (origin.storage.partition_function.empty()) throw impossible("the source is not partitioned");
  SlicePlan plan{.by = SliceBy::partition, .reason = std::move(reason)};
  add_partitions(plan, origin.storage);
  return plan;
}

const IndexFacts* clustered(const Origin& origin) {
  for (const IndexFacts& index : origin.table->indexes) {
    if (index.id == 1) return &index;
  }
  return nullptr;
}

// The column whose ranges cost no more than they read: the leading one of the clustered index, else of the primary key.
std::string key_column(const Origin& origin) {
  if (!origin.is_table()) return {};
  const IndexFacts* const index = clustered(origin);
  if (index != nullptr && !index->key_names.empty()) return index->key_names.front();
  const IndexFacts* const key = origin.table->primary_key();
  return key == nullptr || key->key_names.empty() ? std::string() : key->key_names.front();
}

// Partitions are good slices when they are many enough and no single one holds most of the rows.
bool partitions_serve(const StorageFacts& storage, int count) {
  if (storage.partition_function.empty()) return false;
  const auto filled = std::ranges::count_if(storage.partition_rows, [](std::uint64_t rows) { return rows != 0; });
  const std::uint64_t largest = storage.partition_rows.empty() ? 0 : std::ranges::max(storage.partition_rows);
  return filled >= count && largest <= storage.rows.value_or(0) / 2;
}

Task<SlicePlan> choose(const Lease* lease, const Origin* origin, const system::SliceRequest* request, int count) {
  if (!request->column.empty()) {
    co_return co_await by_range(lease, origin, request->column, count, "ranges of the column that was named");
  }
  if (count == 1) co_return whole(*origin, "one slice is enough");
  if (!origin->table) co_return whole(*origin, "a query would be run again for every slice");
  if (!origin->is_table()) co_return whole(*origin, "a view would be computed again for every slice");
  const std::optional<std::uint64_t> rows = origin->storage.rows;
  if (rows && *rows < limits::mssql_small_table_rows && request->count == 0) {
    co_return whole(*origin, fmt::format("about {} rows: one slice is enough", *rows));
  }
  if (partitions_serve(origin->storage, count)) {
    co_return by_partition(*origin,
                           fmt::format("the table is partitioned by {} into {} parts", origin->storage.partition_column,
                                       origin->storage.partition_rows.size()));
  }
  const IndexFacts* const index = clustered(*origin);
  if (index == nullptr) co_return whole(*origin, "a heap: every key range would scan all of it");
  if (index->key_names.empty()) {
    co_return whole(*origin, "a clustered columnstore index has no order: every key range would look at all of it");
  }
  const std::string key = index->key_names.front();
  const OriginColumn column = co_await column_to_cut(lease, origin, &key);
  if (order_of(column) == Order::none) {
    co_return whole(*origin, fmt::format("the clustered index leads with {} ({}), which cannot cut ranges", key,
                                         column.facts.native));
  }
  co_return co_await by_range(lease, origin, key, count,
                              fmt::format("about {} rows: ranges of {}, which leads the clustered index {}",
                                          rows ? std::to_string(*rows) : "an unknown number of", key, index->name));
}

std::string value_condition(const OriginColumn& column, const tds::Value& value, const tds::Value& bytes) {
  const std::string name = quoted(column.facts.name);
  const std::optional<std::string> sql = literal_of(column, value);
  switch (order_of(column)) {
    case Order::text:
    case Order::binary: {
      // The equality leads to an index where there is one; bytes and length decide.
      const std::string exact = fmt::format("CAST({0} AS varbinary(8000)) = {1} AND DATALENGTH({0}) = {2}", name,
                                            hex_literal(bytes.bytes()), bytes.bytes().size());
      return sql ? fmt::format("{} = {} AND {}", name, *sql, exact) : exact;
    }
    case Order::real:
      return fmt::format("CAST({} AS binary({})) = {}", name, bytes.bytes().size(), hex_literal(bytes.bytes()));
    default:
      return fmt::format("{} = {}", name, sql.value_or("NULL"));
  }
}

std::string values_sql(const Origin& origin, const OriginColumn& column) {
  const std::string name = quoted(column.facts.name);
  const int most = limits::mssql_slices_max + 1;
  switch (order_of(column)) {
    case Order::text:
    case Order::binary:
      return fmt::format(
          "SELECT TOP ({0}) MIN({1}) AS v, CAST({1} AS varbinary(8000)) AS b, COUNT_BIG(*) AS n{2} GROUP BY CAST({1} "
          "AS varbinary(8000)), DATALENGTH({1}) ORDER BY MIN({1})",
          most, name, origin.filtered());
    case Order::real: {
      const int width = column.facts.type.id == rows::TypeId::float32 ? 4 : 8;
      return fmt::format(
          "SELECT TOP ({0}) MIN({1}) AS v, CAST({1} AS binary({3})) AS b, COUNT_BIG(*) AS n{2} GROUP BY CAST({1} AS "
          "binary({3})) ORDER BY MIN({1})",
          most, name, origin.filtered(), width);
    }
    default:
      return fmt::format("SELECT TOP ({0}) {1} AS v, COUNT_BIG(*) AS n{2} GROUP BY {1} ORDER BY {1}", most, name,
                         origin.filtered());
  }
}

}  // namespace

std::string_view Isolation::sql() const noexcept {
  switch (level) {
    case Level::read_uncommitted:
      return "READ UNCOMMITTED";
    case Level::read_committed:
      return "READ COMMITTED";
    case Level::snapshot:
      return "SNAPSHOT";
  }
  return "READ COMMITTED";
}

Isolation choose_isolation(std::string_view wanted, const ReadingFacts& facts, const std::string& database) {
  const auto uncommitted = [](std::string reason) {
    Isolation out{Level::read_uncommitted, false, std::move(reason), {}};
    out.notices.push_back({"dirty_read",
                           "rows are read uncommitted (NOLOCK): a row may be missed, read twice, or be one that is "
                           "rolled back later",
                           ""});
    return out;
  };
  if (wanted == "read_uncommitted") return uncommitted("as asked for");
  if (wanted == "auto") {
    if (facts.snapshot_allowed) return {Level::snapshot, true, "the database allows SNAPSHOT", {}};
    if (facts.versioned_reads) return {Level::read_committed, true, "READ_COMMITTED_SNAPSHOT is on", {}};
    return uncommitted("the database has neither SNAPSHOT nor READ_COMMITTED_SNAPSHOT on");
  }
  if (wanted == "snapshot") {
    if (facts.snapshot_allowed) return {Level::snapshot, true, "as asked for", {}};
    throw Error(Category::unsupported, "snapshot_not_allowed",
                fmt::format("the database {} does not allow SNAPSHOT isolation: sys.databases.snapshot_isolation_state "
                            "is not ON",
                            quoted(database)))
        .with_field("read.isolation")
        .with_hint("ALTER DATABASE … SET ALLOW_SNAPSHOT_ISOLATION ON allows it; \"auto\" takes what there is");
  }
  return {Level::read_committed,
          facts.versioned_reads,
          facts.versioned_reads ? "READ_COMMITTED_SNAPSHOT is on" : "locking reads",
          {}};
}

system::Consistency consistency_of(const Isolation& isolation, std::size_t slices) {
  if (!isolation.one_moment) return system::Consistency::none;
  return slices <= 1 ? system::Consistency::one_snapshot : system::Consistency::per_slice;
}

std::vector<std::int64_t> equal_widths(std::int64_t low, std::int64_t high, int count) {
  std::vector<std::int64_t> bounds;
  // 128 bits: the width may be 2^64.
  const __int128 width = static_cast<__int128>(high) - low + 1;
  for (int i = 1; i < count; ++i) {
    const auto bound = static_cast<std::int64_t>(low + width * i / count);
    if (bound > low && bound <= high && (bounds.empty() || bound > bounds.back())) bounds.push_back(bound);
  }
  return bounds;
}

void add_ranges(SlicePlan& plan, const OriginColumn& column, const std::vector<Found>& bounds, bool nulls,
                std::optional<std::uint64_t> rows) {
  const std::string& name = column.facts.name;
  const std::string sql = quoted(name);
  // Other systems have other orders of text and uuid: a range of these means nothing to a target.
  const Order order = order_of(column);
  const bool same_everywhere = order != Order::text && order != Order::uuid;
  for (std::size_t i = 0; i <= bounds.size(); ++i) {
    Slice slice;
    SliceBounds part{.kind = SliceBounds::Kind::range, .column = name, .value = {}, .low = {}, .high = {}};
    if (i > 0) {
      slice.spec = fmt::format("{} >= {}", sql, bounds[i - 1].literal);
      part.low = bounds[i - 1].printed;
    }
    if (i < bounds.size()) {
      slice.spec += fmt::format("{}{} < {}", slice.spec.empty() ? "" : " AND ", sql, bounds[i].literal);
      part.high = bounds[i].printed;
    }
    if (slice.spec.empty() && nulls) slice.spec = sql + " IS NOT NULL";
    slice.predicate = slice.spec.empty() ? "all rows" : range_text(name, part);
    if (rows) slice.row_estimate = *rows / (bounds.size() + 1);
    if (same_everywhere) slice.bounds = std::move(part);
    add(plan, std::move(slice));
  }
  if (nulls) add(plan, null_slice(name));
}

void add_partitions(SlicePlan& plan, const StorageFacts& storage) {
  const std::string number =
      fmt::format("$PARTITION.{}({})", quoted(storage.partition_function), quoted(storage.partition_column));
  const std::size_t last = storage.partition_rows.size();
  std::size_t left = std::accumulate(storage.partition_rows.begin(), storage.partition_rows.end(), std::size_t{0},
                                     [](std::size_t n, std::uint64_t rows) { return n + (rows != 0 ? 1 : 0); });
  std::size_t first = 1;
  for (std::size_t p = 1; p <= last; ++p) {
    const std::uint64_t rows = storage.partition_rows[p - 1];
    if (rows == 0) continue;
    --left;
    const bool open = left == 0;  // the empty ones behind the last that is filled, and those made meanwhile
    std::string spec;
    if (open) {
      spec = fmt::format("{} >= {}", number, first);
    } else {
      spec = first == p ? fmt::format("{} = {}", number, p) : fmt::format("{} BETWEEN {} AND {}", number, first, p);
    }
    const std::string text = open         ? fmt::format("partitions from {}", first)
                             : first == p ? fmt::format("partition {}", p)
                                          : fmt::format("partitions {} to {}", first, p);
    add(plan, {.predicate = text, .spec = std::move(spec), .row_estimate = rows});
    first = p + 1;
  }
  if (plan.slices.empty()) add(plan, {.predicate = "all partitions (empty)", .spec = "", .row_estimate = 0});
}

Slice value_slice(const OriginColumn& column, const tds::Value& value, const tds::Value& bytes) {
  const std::string& name = column.facts.name;
  if (value.is_null()) return null_slice(name);
  const std::string text = printed(column, value);
  return {
      .predicate = fmt::format("{} = {}", name, cut_for_message(text, predicate_chars / 2)),
      .spec = value_condition(column, value, bytes),
      .row_estimate = {},
      .bounds = SliceBounds{.kind = SliceBounds::Kind::value, .column = name, .value = text, .low = {}, .high = {}}};
}

Task<std::vector<Slice>> value_slices(const Lease& lease, const Origin& origin, std::string name) {
  const OriginColumn column = co_await column_to_cut(&lease, &origin, &name);
  need_order(column);
  tds::QueryResult found;
  try {
    found = co_await lease.query(values_sql(origin, column), limits::mssql_slices_timeout);
  } catch (Error& error) {
    if (error.category() != Category::data) throw;
    throw impossible(fmt::format("a value of column \"{}\" cannot name a slice: {}", name, error.detail()),
                     "slices.column")
        .with_column(name);
  }
  std::vector<Slice> slices;
  if (found.sets.empty()) co_return slices;
  const tds::ResultSet& set = found.sets[0];
  if (set.rows.size() > static_cast<std::size_t>(limits::mssql_slices_max)) {
    throw Error(Category::input, "too_many_slices",
                fmt::format("column \"{}\" has more than {} values", name, limits::mssql_slices_max))
        .with_field("slices.column")
        .with_column(name);
  }
  const bool with_bytes = set.columns.size() == 3;
  for (std::size_t row = 0; row < set.rows.size(); ++row) {
    slices.push_back(value_slice(column, set.at(row, "v"), with_bytes ? set.at(row, "b") : tds::Value()));
    slices.back().index = static_cast<int>(row);
    slices.back().row_estimate = static_cast<std::uint64_t>(set.at(row, "n").integer());
  }
  co_return slices;
}

Task<SlicePlan> make_slices(const Lease& lease, const Origin& origin, const system::SliceRequest& request) {
  const int count = std::max({request.count > 0 ? request.count : request.at_least, 1});
  if (!request.bounds.empty()) co_return co_await by_given(&lease, &origin, &request);
  if (request.by == SliceBy::automatic) co_return co_await choose(&lease, &origin, &request, count);
  if (request.by == SliceBy::none) co_return whole(origin, "as asked for");
  if (request.by == SliceBy::partition) co_return by_partition(origin, "one slice for each partition that has rows");
  if (request.by == SliceBy::ctid) throw impossible("ctid ranges are PostgreSQL's");
  const std::string key = request.column.empty() ? key_column(origin) : request.column;
  if (key.empty()) {
    throw impossible("slices need a column: the source has no clustered index or primary key to take one from",
                     "slices.column");
  }
  if (request.by == SliceBy::value) co_return co_await by_value(&lease, &origin, key);
  if (request.by == SliceBy::hash) {
    co_return co_await by_hash(&lease, &origin, key, count, fmt::format("{} classes of {}'s hash", count, key));
  }
  co_return co_await by_range(&lease, &origin, key, count, "as asked for");
}

}  // namespace rowferry::mssql
