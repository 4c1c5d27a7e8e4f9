#include "postgres/partition_bounds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/error.hpp"
#include "postgres/dialect.hpp"
#include "postgres/partitions.hpp"

namespace rowferry::postgres {

using async::Task;
using system::SliceBounds;

namespace {

constexpr int below_all = std::numeric_limits<int>::min();
constexpr int above_all = std::numeric_limits<int>::max();

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

void collect(std::set<std::string>& texts, const std::optional<std::string>& text) {
  if (text) texts.insert(*text);
}

int low_rank(const Ranks& ranks, const std::optional<std::string>& text) { return text ? ranks.at(*text) : below_all; }
int high_rank(const Ranks& ranks, const std::optional<std::string>& text) { return text ? ranks.at(*text) : above_all; }

[[noreturn]] void refuse(const PartitionFacts& part, std::string_view why) {
  throw Error(Category::conflict, "partition_bounds",
              fmt::format("a slice is not exactly the partition {} ({}): {}", part.sql, part.bound.text, why))
      .with_hint("slice by the partitions' own bounds, or leave `commit` at \"transfer\"");
}

}  // namespace

const ColumnFacts& partition_column_of(const TableFacts& table) {
  const ColumnFacts* const column = table.column(table.partition_column);
  if (column == nullptr) {
    throw Error(Category::conflict, "target_changed", fmt::format("{} is partitioned otherwise now", table.sql));
  }
  return *column;
}

SliceBounds server_bounds(const SliceBounds& bounds, const rows::Type& type) {
  SliceBounds out = bounds;
  out.value = server_text(type, out.value);
  if (out.low) out.low = server_text(type, *out.low);
  if (out.high) out.high = server_text(type, *out.high);
  return out;
}

std::string literal_of(const ColumnFacts& column, const std::string& text) {
  return fmt::format("CAST({} AS {}){}", quote_text(text), column.native,
                     column.collation.empty() ? "" : " COLLATE " + column.collation);
}

Task<Ranks> rank(Session* session, const ColumnFacts* column, std::set<std::string> texts) {
  Ranks out;
  if (texts.empty()) co_return out;
  const std::vector<std::string> list(texts.begin(), texts.end());
  std::string values;
  for (std::size_t i = 0; i < list.size(); ++i) {
    values += fmt::format("{}({}, {})", i == 0 ? "" : ", ", i, literal_of(*column, list[i]));
  }
  const Result found = co_await session->query(fmt::format(
      "SELECT i, pg_catalog.dense_rank() OVER (ORDER BY v) AS rank FROM (VALUES {}) AS bounds(i, v)", values));
  for (int row = 0; row < found.rows(); ++row) {
    out[list[static_cast<std::size_t>(found.integer(row, "i"))]] = static_cast<int>(found.integer(row, "rank"));
  }
  co_return out;
}

// --- which partition

const PartitionFacts* Places::find(const SliceBounds& bounds) const {
  if (bounds.kind == SliceBounds::Kind::range) return find_range(bounds);
  if (table_.partition_by == "range") return default_partition();  // NULL has no other place
  return find_value(bounds);
}

const PartitionFacts* Places::holder(const SliceBounds& bounds) const {
  for (const PartitionFacts& part : table_.partitions) {
    if (part.bound.kind == PartitionBound::Kind::list && holds(part, bounds)) return &part;
  }
  return nullptr;
}

const PartitionFacts* Places::overlapping(const SliceBounds& bounds) const {
  for (const PartitionFacts& part : table_.partitions) {
    if (part.bound.kind != PartitionBound::Kind::range) continue;
    if (low_rank(ranks_, part.bound.low[0]) < high_rank(ranks_, bounds.high) &&
        low_rank(ranks_, bounds.low) < high_rank(ranks_, part.bound.high[0]))
      return &part;
  }
  return nullptr;
}

const PartitionFacts* Places::default_partition() const {
  const auto at = std::ranges::find_if(table_.partitions, [](const PartitionFacts& p) { return p.bound.is_default(); });
  return at == table_.partitions.end() ? nullptr : &*at;
}

std::string Places::key(const SliceBounds& bounds) const {
  if (bounds.kind == SliceBounds::Kind::null) return "null";
  if (bounds.kind == SliceBounds::Kind::value) return fmt::format("={}", ranks_.at(bounds.value));
  return fmt::format("[{},{})", low_rank(ranks_, bounds.low), high_rank(ranks_, bounds.high));
}

bool Places::holds(const PartitionFacts& part, const SliceBounds& bounds) const {
  return std::ranges::any_of(part.bound.values, [&](const std::optional<std::string>& value) {
    if (bounds.kind == SliceBounds::Kind::null) return !value;
    return value && ranks_.at(*value) == ranks_.at(bounds.value);
  });
}

const PartitionFacts* Places::find_value(const SliceBounds& bounds) const {
  const PartitionFacts* const part = holder(bounds);
  if (part != nullptr && part->bound.values.size() != 1) refuse(*part, "it holds other values too");
  return part;
}

const PartitionFacts* Places::find_range(const SliceBounds& bounds) const {
  const PartitionFacts* const part = overlapping(bounds);
  if (part == nullptr) return nullptr;
  if (low_rank(ranks_, part->bound.low[0]) == low_rank(ranks_, bounds.low) &&
      high_rank(ranks_, part->bound.high[0]) == high_rank(ranks_, bounds.high))
    return part;
  refuse(*part,
         fmt::format("the slice is from {} to {}", bounds.low.value_or("MINVALUE"), bounds.high.value_or("MAXVALUE")));
}

Task<Places> Places::of(Session* session, const TableFacts* table, std::vector<SliceBounds> wanted) {
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
  co_return Places(*table, co_await rank(session, &partition_column_of(*table), std::move(texts)));
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
  const Ranks ranks = co_await rank(&session, &partition_column_of(table), std::move(texts));
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
