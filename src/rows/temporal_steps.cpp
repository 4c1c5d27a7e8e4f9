// Dates, times and timestamps into one another.
#include "rows/column_step.hpp"
#include "rows/format.hpp"
#include "rows/temporal.hpp"

namespace rowferry::rows {

namespace {

// Same layout, a narrower range: the everyday check of every temporal column that goes to a server.
template <class T>
struct RangeCheck {
  using In = T;
  using Out = T;
  static constexpr bool check_only = true;
  Type to;
  T min = static_cast<T>(std::max<std::int64_t>(to.min, std::numeric_limits<T>::min()));
  T max = static_cast<T>(std::min<std::int64_t>(to.max, std::numeric_limits<T>::max()));

  unsigned convert(T value, T& out) const noexcept {
    out = value;
    return static_cast<unsigned>(value < min) | static_cast<unsigned>(value > max);
  }
  bool truncate(T, T&) const noexcept { return false; }
  bool bound(T value, T& out) const noexcept {
    out = value < min ? min : max;
    return true;
  }
  std::string text(T value) const {
    if (to.id == TypeId::date) return date_text(value);
    return to.id == TypeId::time ? time_text(value, to.unit) : timestamp_text(value, to.unit, to.zoned);
  }
  std::string reason(T) const { return range_text(to); }
};

struct ClockConversion {
  using In = std::int64_t;
  using Out = std::int64_t;
  static constexpr bool check_only = false;
  Type from;
  ClockRule rule;

  unsigned convert(std::int64_t value, std::int64_t& out) const noexcept { return rule.convert(value, out); }
  bool truncate(std::int64_t, std::int64_t&) const noexcept { return false; }
  bool bound(std::int64_t value, std::int64_t& out) const noexcept {
    out = rule.bound(value);
    return true;
  }
  std::string text(std::int64_t value) const {
    return from.id == TypeId::time ? time_text(value, from.unit) : timestamp_text(value, from.unit, from.zoned);
  }
  std::string reason(std::int64_t) const { return rule.range_text(); }
};
static_assert(static_cast<unsigned>(ClockRule::out_of_range) == fixed_lost &&
              static_cast<unsigned>(ClockRule::rounded) == fixed_warned);

struct DateToTimestamp {
  using In = std::int32_t;
  using Out = std::int64_t;
  static constexpr bool check_only = false;
  Type to;
  std::int64_t per_day = units_per_day(to.unit);

  unsigned convert(std::int32_t value, std::int64_t& out) const noexcept {
    const Int128 wide = Int128{value} * per_day;
    out = static_cast<std::int64_t>(wide);
    return wide >= to.min && wide <= to.max ? fixed_fits : fixed_lost;
  }
  bool truncate(std::int32_t, std::int64_t&) const noexcept { return false; }
  bool bound(std::int32_t value, std::int64_t& out) const noexcept {
    out = Int128{value} * per_day < to.min ? to.min : to.max;
    return true;
  }
  std::string text(std::int32_t value) const { return date_text(value); }
  std::string reason(std::int32_t) const { return range_text(to); }
};

struct TimestampToDate {
  using In = std::int64_t;
  using Out = std::int32_t;
  static constexpr bool check_only = false;
  Type from;
  Type to;
  std::int64_t per_day = units_per_day(from.unit);
  std::int64_t min = std::max<std::int64_t>(to.min, std::numeric_limits<std::int32_t>::min());
  std::int64_t max = std::min<std::int64_t>(to.max, std::numeric_limits<std::int32_t>::max());

  std::int64_t day(std::int64_t value) const noexcept { return value / per_day - (value % per_day < 0 ? 1 : 0); }
  bool in_range(std::int64_t days) const noexcept { return days >= min && days <= max; }
  unsigned convert(std::int64_t value, std::int32_t& out) const noexcept {
    const std::int64_t days = day(value);
    out = static_cast<std::int32_t>(days);
    return value % per_day == 0 && in_range(days) ? fixed_fits : fixed_lost;
  }
  bool truncate(std::int64_t value, std::int32_t& out) const noexcept {
    out = static_cast<std::int32_t>(day(value));
    return in_range(day(value));
  }
  bool bound(std::int64_t value, std::int32_t& out) const noexcept {
    if (in_range(day(value))) return false;
    out = static_cast<std::int32_t>(value < 0 ? min : max);
    return true;
  }
  std::string text(std::int64_t value) const { return timestamp_text(value, from.unit, from.zoned); }
  std::string reason(std::int64_t value) const {
    return in_range(day(value)) ? "the time of day would be lost" : range_text(to);
  }
};

}  // namespace

StepPtr temporal_step(const Type& from, const Type& to, ColumnLoss loss) {
  if (from.id == TypeId::date) {
    if (to.id == TypeId::timestamp) return fixed_step(DateToTimestamp{to}, std::move(loss));
    if (covers(to, from)) return nullptr;
    return fixed_step(RangeCheck<std::int32_t>{to}, std::move(loss));
  }
  if (to.id == TypeId::date) return fixed_step(TimestampToDate{from, to}, std::move(loss));
  if (from.unit == to.unit && !loses_digits(from, to)) {
    if (covers(to, from)) return nullptr;
    return fixed_step(RangeCheck<std::int64_t>{to}, std::move(loss));
  }
  return fixed_step(ClockConversion{from, ClockRule(from, to)}, std::move(loss));
}

}  // namespace rowferry::rows
