#define XXH_INLINE_ALL
#include "sandbox/engine/row_filter.hpp"

#include <xxhash.h>

#include <algorithm>
#include <bit>

#include "base/limits.hpp"
#include "sandbox/engine/errors.hpp"

namespace rowferry::sandbox::engine {

namespace {

// Types whose values are compared as numbers.
bool has_ordinal(Kind k) { return is_exact(k) || is_float(k) || is_temporal(k) || k == Kind::guid; }

Int128 real_ordinal(double real) {
  const auto bits = std::bit_cast<std::int64_t>(real == 0 ? 0.0 : real);
  return bits >= 0 ? Int128(bits) : Int128(std::numeric_limits<std::int64_t>::min()) - bits - 1;
}

Int128 guid_ordinal(const std::uint8_t* at) {
  constexpr std::array<std::size_t, 16> order{10, 11, 12, 13, 14, 15, 8, 9, 6, 7, 4, 5, 0, 1, 2, 3};
  UInt128 value = 0;
  for (const std::size_t i : order) value = value << 8U | at[i];
  return static_cast<Int128>(value ^ (UInt128(1) << 127U));
}

Int128 temporal_ordinal(std::int64_t days, std::int64_t ticks) { return Int128(days) * ticks_per_day + ticks; }

Int128 money_ordinal(const std::uint8_t* at, std::size_t size) {
  if (size == 4) return load_le<std::int32_t>(at);
  return static_cast<std::int64_t>((static_cast<std::uint64_t>(load_le<std::uint32_t>(at)) << 32U) |
                                   load_le<std::uint32_t>(at + 4));
}

// Of a value as the engine has it; the same numbers as from bytes.
Int128 ordinal_of(const Value& v) {
  const Kind k = v.type.kind;
  if (is_exact(k)) return v.number;
  if (is_float(k)) return real_ordinal(v.real);
  if (k == Kind::guid) return guid_ordinal(reinterpret_cast<const std::uint8_t*>(v.bytes.data()));
  return temporal_ordinal(k == Kind::time ? 0 : v.days, v.ticks);
}

Int128 ordinal_at(const StoredColumn& column, const std::uint8_t* at) {
  const Kind k = column.type.kind;
  const std::size_t size = *at;
  if (is_integer(k)) return stored_integer(at + 1, size);
  if (is_money(k)) return money_ordinal(at + 1, size);
  if (k == Kind::guid) return guid_ordinal(at + 1);
  if (is_float(k))
    return real_ordinal(size == 4 ? static_cast<double>(load_le<float>(at + 1)) : load_le<double>(at + 1));
  return ordinal_of(decode_value(column.type, column.info, at));
}

// Names no column, no subquery, and nothing that differs from row to row.
bool is_constant(const ExprPtr& e) {
  switch (e->kind) {
    case ExprKind::literal:
    case ExprKind::variable:
      return true;
    case ExprKind::negate:
    case ExprKind::cast:
    case ExprKind::arithmetic:
    case ExprKind::collate:
      return std::all_of(e->args.begin(), e->args.end(), is_constant);
    default:
      return false;
  }
}

bool is_pure_function(const std::string& name) {
  static constexpr std::array<std::string_view, 18> pure{
      "DATALENGTH", "LEN",  "CHECKSUM", "BINARY_CHECKSUM", "UPPER",  "LOWER", "LTRIM", "RTRIM", "ABS",
      "SUBSTRING",  "LEFT", "RIGHT",    "COALESCE",        "ISNULL", "YEAR",  "MONTH", "DAY",   "HASHBYTES"};
  return std::find(pure.begin(), pure.end(), name) != pure.end() || name.starts_with("$PARTITION");
}

// The one column that it depends on, whatever else; -1: none, -2: several, or something that must be computed each
// time.
int only_column(const ExprPtr& e) {
  constexpr int no = -2;
  switch (e->kind) {
    case ExprKind::column:
      return e->depth == 0 ? e->column : no;
    case ExprKind::literal:
    case ExprKind::variable:
      return -1;
    case ExprKind::function:
      if (e->name.empty() || !is_pure_function(upper_ascii(e->name[0]))) return no;
      break;
    case ExprKind::global:
    case ExprKind::in_query:
    case ExprKind::exists:
    case ExprKind::subquery:
    case ExprKind::quantified:
    case ExprKind::aggregate:
    case ExprKind::window:
    case ExprKind::default_value:
      return no;
    default:
      break;
  }
  int column = -1;
  for (const ExprPtr& arg : e->args) {
    const int one = only_column(arg);
    if (one == no || (one >= 0 && column >= 0 && one != column)) return no;
    column = std::max(column, one);
  }
  return column;
}

char mirrored(char op) {
  switch (op) {
    case '<':
      return '>';
    case '>':
      return '<';
    case 'L':
      return 'G';
    case 'G':
      return 'L';
    default:
      return op;
  }
}

int scale_of(const Type& t) { return is_decimal(t.kind) ? t.scale : is_money(t.kind) ? 4 : 0; }

// The constant as a value of the column's type, when comparing there says the same as comparing in their common type.
std::optional<Value> in_type_of(const Value& constant, const Type& column) {
  if (is_exact(column.kind) && is_exact(constant.type.kind)) {
    const auto there = rescale(constant.number, scale_of(constant.type), scale_of(column));
    const auto back = there ? rescale(*there, scale_of(column), scale_of(constant.type)) : std::nullopt;
    if (!back || *back != constant.number) return std::nullopt;
    Value v = Value::of_null(column);
    v.null = false;
    v.number = *there;
    return v;
  }
  const Type common = common_type(column, constant.type);
  if (common.kind != column.kind || common.scale != column.scale) return std::nullopt;
  return try_convert(constant, common);
}

}  // namespace

RowFilter::RowFilter(const Context& context, Scope& scope, std::size_t variable, const std::vector<ExprPtr>& conditions)
    : evaluator_(context, &scope),
      variable_(variable),
      range_(scope.variables[variable]),
      layout_(range_.data->layout()) {
  for (const ExprPtr& e : conditions)
    if (!take_interval(e) && !take_cached(e)) others_.push_back(e);
  std::sort(intervals_.begin(), intervals_.end(),
            [](const Interval& a, const Interval& b) { return a.column < b.column; });
}

bool RowFilter::take_interval(const ExprPtr& e) {
  const auto stored_column = [&](const ExprPtr& x) {
    if (x->kind != ExprKind::column || x->depth != 0 || x->source != static_cast<int>(variable_)) return -1;
    return range_.columns[static_cast<std::size_t>(x->column)].stored;
  };
  if (e->kind == ExprKind::between && !e->negated) {
    const int column = stored_column(e->args[0]);
    if (column < 0 || !is_constant(e->args[1]) || !is_constant(e->args[2])) return false;
    const std::vector<Interval> before = intervals_;
    if (add_bound(static_cast<std::size_t>(column), 'G', e->args[1]) &&
        add_bound(static_cast<std::size_t>(column), 'L', e->args[2]))
      return true;
    intervals_ = before;
    return false;
  }
  if (e->kind != ExprKind::compare) return false;
  for (const std::size_t side : {0U, 1U}) {
    const int column = stored_column(e->args[side]);
    if (column < 0 || !is_constant(e->args[1 - side])) continue;
    return add_bound(static_cast<std::size_t>(column), side == 0 ? e->op : mirrored(e->op), e->args[1 - side]);
  }
  return false;
}

bool RowFilter::add_bound(std::size_t column, char op, const ExprPtr& constant) {
  const StoredColumn& stored = layout_[column];
  if (stored.framing != Framing::length8 || !has_ordinal(stored.type.kind)) return false;
  Value v;
  try {
    v = evaluator_.eval(constant);
  } catch (const SqlError&) {
    return false;  // it is raised when there is a row to raise it for
  }
  std::optional<Value> bound;
  if (!v.null) {
    bound = in_type_of(v, stored.type);
    if (!bound) return false;
  }
  auto at = std::find_if(intervals_.begin(), intervals_.end(), [&](const Interval& i) { return i.column == column; });
  if (at == intervals_.end()) at = intervals_.insert(intervals_.end(), {column, &stored, {}, {}, {}, false});
  if (!bound) {
    at->never = true;  // NULL: unknown for every row
    return true;
  }
  const Int128 n = ordinal_of(*bound);
  if (op == 'N') {
    at->not_equal.push_back(n);
    return true;
  }
  if (op == '=' || op == 'G' || op == '>') at->low = std::max(at->low.value_or(n), op == '>' ? n + 1 : n);
  if (op == '=' || op == 'L' || op == '<') {
    const Int128 high = op == '<' ? n - 1 : n;
    at->high = std::min(at->high.value_or(high), high);
  }
  return true;
}

bool RowFilter::take_cached(const ExprPtr& e) {
  const int column = only_column(e);
  if (column < 0) return false;
  bool own = true;
  walk(e, [&](const ExprPtr& x) {
    own = own && (x->kind != ExprKind::column || x->source == static_cast<int>(variable_));
    return true;
  });
  const int stored = range_.columns[static_cast<std::size_t>(column)].stored;
  if (!own || stored < 0) return false;
  const auto place = static_cast<std::size_t>(stored);
  auto at = std::find_if(cached_.begin(), cached_.end(), [&](const Cached& c) { return c.column == place; });
  if (at == cached_.end()) {
    at = cached_.insert(cached_.end(), Cached{});
    at->column = place;
  }
  at->conditions.push_back(e);
  return true;
}

Truth RowFilter::test_all(const std::vector<ExprPtr>& conditions) {
  for (const ExprPtr& e : conditions)
    if (evaluator_.test(e) != Truth::yes) return Truth::no;
  return Truth::yes;
}

bool RowFilter::passes_cached(Cached& cached, ByteView value) {
  // Values that hardly come again are not worth remembering.
  constexpr std::uint32_t trial = 4096;
  if (cached.entries.empty()) cached.entries.resize(limits::sandbox_filter_cache);
  const bool worth = cached.asked < trial || cached.known >= cached.asked / 4;
  if (!worth || value.size() > cached.entries[0].bytes.size()) return test_all(cached.conditions) == Truth::yes;
  auto& entry = cached.entries[XXH3_64bits(value.data(), value.size()) % cached.entries.size()];
  ++cached.asked;
  if (entry.size == value.size() && std::memcmp(entry.bytes.data(), value.data(), value.size()) == 0) {
    ++cached.known;
    return entry.truth == Truth::yes;
  }
  const Truth truth = test_all(cached.conditions);
  std::memcpy(entry.bytes.data(), value.data(), value.size());
  entry.size = static_cast<std::uint8_t>(value.size());
  entry.truth = truth;
  return truth == Truth::yes;
}

bool RowFilter::passes(ByteView row) {
  const std::uint8_t* at = row.data();
  std::size_t column = 0;
  for (const Interval& interval : intervals_) {
    for (; column < interval.column; ++column)
      at += layout_[column].framing == Framing::length8 ? 1U + *at
                                                        : value_size(layout_[column].info, layout_[column].framing, at);
    if (interval.never || *at == 0) return false;
    const Int128 n = ordinal_at(*interval.stored, at);
    if ((interval.low && n < *interval.low) || (interval.high && n > *interval.high)) return false;
    if (std::find(interval.not_equal.begin(), interval.not_equal.end(), n) != interval.not_equal.end()) return false;
  }
  for (Cached& cached : cached_) {
    const std::uint8_t* value = column_at(layout_, row, cached.column);
    const StoredColumn& stored = layout_[cached.column];
    if (!passes_cached(cached, {value, value_size(stored.info, stored.framing, value)})) return false;
  }
  return others_.empty() || test_all(others_) == Truth::yes;
}

}  // namespace rowferry::sandbox::engine
