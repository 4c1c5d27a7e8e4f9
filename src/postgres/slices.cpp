#include "postgres/slices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/limits.hpp"
#include "postgres/dialect.hpp"
#include "postgres/steadiness.hpp"

namespace rowferry::postgres {

namespace {

using system::SliceBy;
using system::SlicePlan;

constexpr int first_tid_ranges = 140000;  // TID range scans: PostgreSQL 14

void put_text(std::string& spec, std::string_view text) { spec += fmt::format("{}:{}", text.size(), text); }

std::string take_text(std::string_view& spec) {
  std::size_t size = 0;
  const auto [end, code] = std::from_chars(spec.data(), spec.data() + spec.size(), size);
  const auto digits = static_cast<std::size_t>(end - spec.data());
  if (code != std::errc() || digits >= spec.size() || spec[digits] != ':' || size > spec.size() - digits - 1) {
    throw Error(Category::internal, "bad_slice", "a slice's specification cannot be read");
  }
  std::string text(spec.substr(digits + 1, size));
  spec.remove_prefix(digits + 1 + size);
  return text;
}

Error impossible(std::string why) {
  return Error(Category::input, "slices_impossible", std::move(why)).with_field("slices.by");
}

void add(SlicePlan& plan, std::string predicate, const std::vector<Piece>& pieces,
         std::optional<std::uint64_t> rows = std::nullopt, std::optional<system::SliceBounds> bounds = std::nullopt) {
  if (plan.slices.size() >= static_cast<std::size_t>(limits::pg_slices_max)) {
    throw Error(Category::input, "too_many_slices", fmt::format("more than {} slices", limits::pg_slices_max))
        .with_field("slices");
  }
  plan.slices.push_back({.index = static_cast<int>(plan.slices.size()),
                         .predicate = std::move(predicate),
                         .spec = pack(pieces),
                         .row_estimate = rows,
                         .bounds = std::move(bounds)});
}

// --- what a slice holds, for a target that is partitioned by the column

// A bound's text as rows/format.hpp prints the column's type; nullopt: it does not say the same everywhere.
std::optional<std::string> bound_text(const Column& column, std::string_view printed) {
  switch (column.form) {
    case wire::Form::money:  // by the server's locale
      return std::nullopt;
    case wire::Form::boolean:
      return printed == "t" ? "true" : "false";
    case wire::Form::timestamp:
      if (column.facts.type.zoned && printed.ends_with("+00")) return std::string(printed) + ":00";
      break;
    case wire::Form::bytes:
      if (column.facts.type.id == rows::TypeId::binary && printed.starts_with("\\x")) {
        return "0x" + std::string(printed.substr(2));
      }
      break;
    default:
      break;
  }
  return std::string(printed);
}

system::SliceBounds null_bounds(const std::string& name) {
  return {.kind = system::SliceBounds::Kind::null, .column = name, .value = {}, .low = {}, .high = {}};
}

std::optional<system::SliceBounds> value_bounds(const Column& column, std::string_view printed) {
  std::optional<std::string> text = bound_text(column, printed);
  if (!text) return std::nullopt;
  return system::SliceBounds{.kind = system::SliceBounds::Kind::value,
                             .column = column.facts.name,
                             .value = std::move(*text),
                             .low = {},
                             .high = {}};
}

// Between two of the bounds; numbers and times alone have the same order everywhere.
std::optional<system::SliceBounds> range_bounds_between(const Column& column, const std::vector<std::string>& bounds,
                                                        std::size_t i) {
  using rows::TypeId;
  const TypeId id = column.facts.type.id;
  if (id == TypeId::text || id == TypeId::json || column.form == wire::Form::money) return std::nullopt;
  system::SliceBounds out{
      .kind = system::SliceBounds::Kind::range, .column = column.facts.name, .value = {}, .low = {}, .high = {}};
  if (i > 0) out.low = bound_text(column, bounds[i - 1]);
  if (i < bounds.size()) out.high = bound_text(column, bounds[i]);
  return out;
}

std::string filtered(const Origin& origin, const std::string& what) {
  return fmt::format("SELECT {} FROM {}{}", what, origin.from,
                     origin.where.empty() ? "" : " WHERE (\n" + origin.where + "\n)");
}
std::string and_where(const Origin& origin, const std::string& predicate) {
  return (origin.where.empty() ? " WHERE " : " WHERE (\n" + origin.where + "\n) AND ") + predicate;
}

bool is_integer(const Column& column) {
  return column.form == wire::Form::int16 || column.form == wire::Form::int32 || column.form == wire::Form::int64;
}

// A literal of the column's own type, from the text that the server printed.
std::string literal(const Column& column, std::string_view text) {
  return fmt::format("CAST({} AS {})", quote_text(text), column.type.sql);
}

// Why ctid ranges cannot be used; empty: they can.
std::string no_ctid(const Session& session, const Origin& origin) {
  if (!origin.relation) return "a query has no ctid ranges";
  if (session.version() < first_tid_ranges) return "ctid ranges need PostgreSQL 14";
  if (origin.relation->kind == 'v') return "a view has no ctid ranges";
  for (const Leaf& leaf : origin.relation->leaves) {
    if (leaf.kind == 'f') return fmt::format("{} is a foreign table", leaf.sql);
    if (!leaf.heap) return fmt::format("{} is not stored as a heap", leaf.sql);
    if (!leaf.readable) return fmt::format("the role may not SELECT from {} itself", leaf.sql);
  }
  return {};
}

SlicePlan whole(const Origin& origin, std::string reason) {
  SlicePlan plan{.by = SliceBy::none, .reason = std::move(reason)};
  add(plan, "all rows", {{origin.from, ""}});
  return plan;
}

// Every slice evaluates a filter, a view or a query anew.
Error unsteady(const std::string& why) {
  return impossible("the slices might not see the same rows: " + why)
      .with_hint("slices.by none reads the source in one statement; a table of the result can be sliced");
}

SlicePlan not_sliced(const Origin& origin, const std::string& why) {
  SlicePlan plan = whole(origin, "slices might not see the same rows: " + why);
  plan.notices.push_back({"not_sliced", "read by one statement: " + plan.reason, ""});
  return plan;
}

// The leaf by its own name, and by the table's to the user's `where`.
std::string from_leaf(const Origin& origin, const Leaf& leaf) {
  const std::string from = "ONLY " + leaf.sql;
  return leaf.oid == origin.relation->oid ? from : from + " AS " + origin.relation->alias;
}

SlicePlan by_leaf(const Origin& origin) {
  if (!origin.relation || !origin.relation->has_children) throw impossible("the source has no partitions");
  SlicePlan plan{.by = SliceBy::partition, .reason = "one slice for each partition"};
  for (const Leaf& leaf : origin.relation->leaves) {
    if (!leaf.readable) throw impossible(fmt::format("the role may not SELECT from {} itself", leaf.sql));
    const double rows = estimated_rows(leaf);
    add(plan, "partition " + leaf.sql, {{from_leaf(origin, leaf), ""}},
        rows < 0 ? std::nullopt : std::optional(static_cast<std::uint64_t>(rows)));
  }
  if (plan.slices.empty()) add(plan, "no partition", {{origin.from, "false"}});
  return plan;
}

std::string block_text(const BlockRange& range) {
  if (range.begin == 0 && range.end < 0) return "all blocks";
  if (range.end < 0) return fmt::format("blocks from {}", range.begin);
  return fmt::format("blocks {} to {}", range.begin, range.end - 1);
}

Piece block_piece(const Origin& origin, const Leaf& leaf, const BlockRange& range) {
  std::string predicate;
  if (range.begin > 0) predicate = fmt::format("ctid >= '({},0)'::pg_catalog.tid", range.begin);
  if (range.end >= 0) {
    predicate += fmt::format("{}ctid < '({},0)'::pg_catalog.tid", predicate.empty() ? "" : " AND ", range.end);
  }
  return {from_leaf(origin, leaf), predicate};
}

SlicePlan by_ctid(const Origin& origin, int count, std::string reason) {
  SlicePlan plan{.by = SliceBy::ctid, .reason = std::move(reason)};
  const std::vector<Leaf>& leaves = origin.relation->leaves;
  std::vector<std::int64_t> blocks;
  for (const Leaf& leaf : leaves) blocks.push_back(leaf.blocks);
  for (const std::vector<BlockRange>& part : block_ranges(blocks, count)) {
    std::string text;
    std::vector<Piece> pieces;
    double rows = 0;
    bool known = true;
    for (const BlockRange& range : part) {
      const Leaf& leaf = leaves[range.leaf];
      if (pieces.size() < 4) {
        text += (text.empty() ? "" : "; ") + (leaves.size() > 1 ? leaf.sql + " " : std::string()) + block_text(range);
      } else if (pieces.size() == 4) {
        text += "; …";
      }
      pieces.push_back(block_piece(origin, leaf, range));
      const double all = estimated_rows(leaf);
      known = known && all >= 0;
      if (leaf.blocks > 0) rows += all * static_cast<double>(range.blocks) / static_cast<double>(leaf.blocks);
    }
    add(plan, text, pieces, known ? std::optional(static_cast<std::uint64_t>(rows)) : std::nullopt);
  }
  if (plan.slices.empty()) add(plan, "no partition", {{origin.from, "false"}});
  return plan;
}

async::Task<bool> has_nulls(Session* session, const Origin* origin, const Column* column, const std::string* name) {
  if (!column->facts.nullable) co_return false;
  const Result found = co_await session->query(
      fmt::format("SELECT EXISTS (SELECT 1 FROM {}{}) AS found", origin->from, and_where(*origin, *name + " IS NULL")));
  co_return found.boolean(0, "found");
}

// Inner bounds as the server prints them, in the column's own order.
async::Task<std::vector<std::string>> find_bounds(Session* session, const Origin* origin, const Column* column,
                                                  std::string name, int count) {
  std::vector<std::string> bounds;
  if (is_integer(*column)) {
    const Result ends = co_await session->query(
        filtered(*origin, fmt::format("pg_catalog.min({0}) AS least, pg_catalog.max({0}) AS most", name)));
    if (ends.null(0, "least")) co_return bounds;
    for (const std::int64_t bound : range_bounds(ends.integer(0, "least"), ends.integer(0, "most"), count)) {
      bounds.push_back(std::to_string(bound));
    }
    co_return bounds;
  }
  std::string sample;
  if (origin->relation && origin->relation->kind == 'r' && !origin->relation->leaves.empty()) {
    double rows = 0;
    for (const Leaf& leaf : origin->relation->leaves) rows += std::max(estimated_rows(leaf), 0.0);
    const double percent = 100.0 * limits::pg_sample_rows / std::max(rows, 1.0);
    if (percent < 50) sample = fmt::format(" TABLESAMPLE SYSTEM ({:.6f})", percent);
  }
  std::string fractions;
  for (int i = 1; i < count; ++i) fractions += fmt::format("{}{}", i == 1 ? "" : ",", static_cast<double>(i) / count);
  const Result found = co_await session->query(fmt::format(
      "SELECT {} AS bound FROM (SELECT DISTINCT v FROM pg_catalog.unnest((SELECT pg_catalog.percentile_disc("
      "'{{{}}}'::pg_catalog.float8[]) WITHIN GROUP (ORDER BY {}) FROM {}{}{})) AS u(v) WHERE v IS NOT NULL) AS d ORDER "
      "BY v",
      as_text(column->type, "v"), fractions, name, origin->from, sample,
      origin->where.empty() ? "" : " WHERE (\n" + origin->where + "\n)"));
  for (int i = 0; i < found.rows(); ++i) bounds.emplace_back(found.text(i, "bound"));
  co_return bounds;
}

async::Task<SlicePlan> by_range(Session* session, const Origin* origin, std::string name, int count,
                                std::string reason) {
  const Column& column = origin->column(name);
  const std::string quoted = quote_name(name);
  SlicePlan plan{.by = SliceBy::range, .reason = std::move(reason)};
  std::vector<std::string> bounds;
  if (count > 1) bounds = co_await find_bounds(session, origin, &column, quoted, count);
  const bool nulls = co_await has_nulls(session, origin, &column, &quoted);
  for (std::size_t i = 0; i <= bounds.size(); ++i) {
    std::string predicate, text;
    if (i > 0) {
      predicate = quoted + " " + column.type.at_least + " " + literal(column, bounds[i - 1]);
      text = bounds[i - 1] + " <= " + name;
    }
    if (i < bounds.size()) {
      predicate +=
          (predicate.empty() ? "" : " AND ") + quoted + " " + column.type.less + " " + literal(column, bounds[i]);
      text += (text.empty() ? name : std::string()) + " < " + bounds[i];
    }
    if (predicate.empty() && nulls) predicate = quoted + " IS NOT NULL";
    add(plan, text.empty() ? (nulls ? name + " is not NULL" : "all rows") : cut_for_message(text, 200),
        {{origin->from, predicate}}, std::nullopt, range_bounds_between(column, bounds, i));
  }
  if (nulls) add(plan, name + " is NULL", {{origin->from, quoted + " IS NULL"}}, std::nullopt, null_bounds(name));
  co_return plan;
}

// A bound of the engine's, as PostgreSQL reads it.
std::string given_text(const Column& column, const std::string& text) {
  const bool bytes = column.facts.type.id == rows::TypeId::binary && text.starts_with("0x");
  return bytes ? "\\x" + text.substr(2) : text;
}

// Cut where the target's partitions end.
async::Task<SlicePlan> by_given(Session* session, const Origin* origin, const system::SliceRequest* request) {
  const std::string& name = request->column;
  const Column& column = origin->column(name);
  const std::string quoted = quote_name(name);
  SlicePlan plan{.by = SliceBy::range, .reason = "at the bounds of the target's partitions"};
  for (const system::SliceBounds& bounds : request->bounds) {
    std::string predicate, text;
    if (bounds.low) {
      predicate = quoted + " " + column.type.at_least + " " + literal(column, given_text(column, *bounds.low));
      text = *bounds.low + " <= " + name;
    }
    if (bounds.high) {
      predicate += (predicate.empty() ? "" : " AND ") + quoted + " " + column.type.less + " " +
                   literal(column, given_text(column, *bounds.high));
      text += (text.empty() ? name : std::string()) + " < " + *bounds.high;
    }
    if (predicate.empty()) predicate = quoted + " IS NOT NULL";
    add(plan, cut_for_message(text.empty() ? name + " is not NULL" : text, 200), {{origin->from, predicate}},
        std::nullopt, bounds);
  }
  const bool nulls = co_await has_nulls(session, origin, &column, &quoted);
  if (nulls) add(plan, name + " is NULL", {{origin->from, quoted + " IS NULL"}}, std::nullopt, null_bounds(name));
  co_return plan;
}

async::Task<SlicePlan> by_value(Session* session, const Origin* origin, std::string name) {
  const Column& column = origin->column(name);
  const std::string quoted = quote_name(name);
  SlicePlan plan{.by = SliceBy::value, .reason = fmt::format("one slice for each value of {}", name)};
  const Result found = co_await session->query(fmt::format(
      "SELECT {} AS value, n FROM (SELECT {} AS v, pg_catalog.count(*) AS n FROM {}{} GROUP BY 1 LIMIT {}) AS g "
      "ORDER BY v NULLS LAST",
      as_text(column.type, "v"), quoted, origin->from,
      origin->where.empty() ? "" : " WHERE (\n" + origin->where + "\n)", limits::pg_slices_max + 1));
  for (int i = 0; i < found.rows(); ++i) {
    const bool null = found.null(i, "value");
    const std::string_view value = found.text(i, "value");
    add(plan, null ? name + " is NULL" : fmt::format("{} = {}", name, cut_for_message(value, 100)),
        {{origin->from, null ? quoted + " IS NULL" : quoted + " " + column.type.equal + " " + literal(column, value)}},
        static_cast<std::uint64_t>(found.integer(i, "n")),
        null ? std::optional(null_bounds(name)) : value_bounds(column, value));
  }
  if (plan.slices.empty()) add(plan, "no value", {{origin->from, "false"}}, 0);
  co_return plan;
}

// The hash of the printed value: stable within one server, and the same for a row however often it is read.
SlicePlan by_hash(const Origin& origin, const std::string& name, int count) {
  const Column& column = origin.column(name);
  SlicePlan plan{.by = SliceBy::hash, .reason = fmt::format("{} classes of {}'s hash", count, name)};
  for (int i = 0; i < count; ++i) {
    add(plan, fmt::format("hash of {} in class {} of {}", name, i, count),
        {{origin.from, fmt::format("(coalesce(pg_catalog.hashtext({}), 0)::pg_catalog.int8 & 2147483647) % {} = {}",
                                   as_text(column.type, quote_name(name)), count, i)}});
  }
  return plan;
}

async::Task<std::string> key_column(Session* session, const Origin* origin, const system::SliceRequest* request) {
  if (!request->column.empty()) co_return request->column;
  if (!origin->relation) co_return "";
  const std::vector<std::string> leading = co_await leading_columns(*session, *origin->relation);
  co_return leading.empty() ? "" : leading.front();
}

async::Task<SlicePlan> choose(Session* session, const Origin* origin, const system::SliceRequest* request, int count) {
  if (!request->column.empty()) {
    co_return co_await by_range(session, origin, request->column, count, "ranges of the column that was named");
  }
  if (count == 1) co_return whole(*origin, "one slice is enough");
  const std::string why = no_ctid(*session, *origin);
  if (why.empty()) co_return by_ctid(*origin, count, "block ranges of the table");
  // Without an index every range would be a scan of the whole; a view or a query would be computed again for each.
  const std::string key = co_await key_column(session, origin, request);
  if (key.empty()) co_return whole(*origin, why + ", and no index gives key ranges");
  co_return co_await by_range(session, origin, key, count,
                              fmt::format("{}: ranges of the indexed column {}", why, key));
}

}  // namespace

std::string pack(const std::vector<Piece>& pieces) {
  std::string spec;
  for (const Piece& piece : pieces) {
    put_text(spec, piece.from);
    put_text(spec, piece.predicate);
  }
  return spec;
}

std::vector<Piece> unpack(std::string_view spec) {
  std::vector<Piece> pieces;
  while (!spec.empty()) {
    Piece piece;
    piece.from = take_text(spec);
    piece.predicate = take_text(spec);
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

std::vector<std::int64_t> range_bounds(std::int64_t min, std::int64_t max, int count) {
  std::vector<std::int64_t> bounds;
  // 128 bits: the width of [min, max] may be 2^64.
  const __int128 width = static_cast<__int128>(max) - min + 1;
  for (int i = 1; i < count; ++i) {
    const auto bound = static_cast<std::int64_t>(min + width * i / count);
    if (bound > min && bound <= max && (bounds.empty() || bound > bounds.back())) bounds.push_back(bound);
  }
  return bounds;
}

std::vector<std::vector<BlockRange>> block_ranges(const std::vector<std::int64_t>& blocks, int count) {
  std::int64_t total = 0;
  for (const std::int64_t one : blocks) total += one;
  const std::int64_t share = std::max<std::int64_t>(1, (total + count - 1) / count);
  std::vector<std::vector<BlockRange>> parts;
  std::vector<BlockRange> small;
  std::int64_t small_blocks = 0;
  const auto close = [&] {
    if (!small.empty()) parts.push_back(std::move(small));
    small.clear();
    small_blocks = 0;
  };
  for (std::size_t leaf = 0; leaf < blocks.size(); ++leaf) {
    const auto exact =
        static_cast<double>(blocks[leaf]) * count / static_cast<double>(std::max<std::int64_t>(total, 1));
    const std::int64_t cuts = std::clamp<std::int64_t>(std::llround(exact), 1, std::max<std::int64_t>(blocks[leaf], 1));
    if (cuts == 1) {
      if (small_blocks + blocks[leaf] > share) close();
      small.push_back({leaf, 0, -1, blocks[leaf]});
      small_blocks += blocks[leaf];
      continue;
    }
    for (std::int64_t i = 0; i < cuts; ++i) {
      const std::int64_t begin = blocks[leaf] * i / cuts;
      const std::int64_t end = blocks[leaf] * (i + 1) / cuts;
      parts.push_back({{leaf, begin, i + 1 == cuts ? -1 : end, end - begin}});
    }
  }
  close();
  return parts;
}

async::Task<SlicePlan> make_slices(Session& session, const Origin& origin, const system::SliceRequest& request) {
  const int count = std::max({request.count > 0 ? request.count : request.at_least, 1});
  const bool by_choice = request.by == SliceBy::automatic && request.column.empty();
  if (request.by != SliceBy::none && !(by_choice && count == 1)) {
    const std::string why = co_await why_unsteady(session, origin);
    if (!why.empty() && !by_choice) throw unsteady(why);
    if (!why.empty()) co_return not_sliced(origin, why);
  }
  switch (request.by) {
    case SliceBy::automatic:
      co_return co_await choose(&session, &origin, &request, count);
    case SliceBy::none:
      co_return whole(origin, "as asked for");
    case SliceBy::partition:
      co_return by_leaf(origin);
    case SliceBy::ctid: {
      const std::string why = no_ctid(session, origin);
      if (!why.empty()) throw impossible(why);
      co_return by_ctid(origin, count, "as asked for");
    }
    default:
      break;
  }
  const std::string key = co_await key_column(&session, &origin, &request);
  if (key.empty()) {
    throw Error(Category::input, "slices_impossible", "slices need a column: the source has no index to take one from")
        .with_field("slices.column");
  }
  if (!request.bounds.empty()) co_return co_await by_given(&session, &origin, &request);
  if (request.by == SliceBy::value) co_return co_await by_value(&session, &origin, key);
  if (request.by == SliceBy::hash) co_return by_hash(origin, key, count);
  co_return co_await by_range(&session, &origin, key, count, "as asked for");
}

}  // namespace rowferry::postgres
