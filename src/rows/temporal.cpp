#include "rows/temporal.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "rows/format.hpp"

namespace rowferry::rows {

namespace {

constexpr std::int64_t int64_min = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t int64_max = std::numeric_limits<std::int64_t>::max();

Int128 in_hundred_nanos(std::int64_t value, const Type& type) noexcept {
  const bool micros = type.id != TypeId::date && type.unit == TimeUnit::micro;
  return Int128{value} * (micros ? 10 : 1);
}

// Fractional digits that values of this type can have.
int used_digits(const Type& type) noexcept {
  if (type.quantum == Quantum::tick_300) return 3;
  if (type.quantum == Quantum::minute) return 0;
  return type.digits;
}

constexpr std::int64_t floor_to(std::int64_t value, std::int64_t step) noexcept {
  const std::int64_t rest = value % step;
  return value - rest - (rest < 0 ? step : 0);
}
constexpr std::int64_t floor_div(std::int64_t value, std::int64_t by) noexcept {
  return value / by - (value % by < 0 ? 1 : 0);
}

}  // namespace

bool covers(const Type& to, const Type& from) noexcept {
  return in_hundred_nanos(to.min, to) <= in_hundred_nanos(from.min, from) &&
         in_hundred_nanos(to.max, to) >= in_hundred_nanos(from.max, from);
}

bool date_fits_timestamp(const Type& date, const Type& timestamp) noexcept {
  const Int128 per_day = units_per_day(timestamp.unit);
  return date.min * per_day >= timestamp.min && date.max * per_day <= timestamp.max;
}

bool loses_digits(const Type& from, const Type& to) noexcept {
  switch (to.quantum) {
    case Quantum::none:
      return to.digits < used_digits(from);
    case Quantum::tick_300:  // every hundredth of a second is a whole number of ticks
      return from.quantum == Quantum::none && from.digits > 2;
    case Quantum::minute:
      return from.quantum != Quantum::minute;
  }
  return true;
}

ClockRule::ClockRule(const Type& from, const Type& to) noexcept : to_(to) {
  if (from.unit == TimeUnit::micro && to.unit == TimeUnit::hundred_nano) multiply_ = 10;
  if (from.unit == TimeUnit::hundred_nano && to.unit == TimeUnit::micro) divide_ = 10;
  const int unit_digits = to.unit == TimeUnit::micro ? 6 : 7;
  for (int i = to.digits; i < unit_digits; ++i) step_ *= 10;
  const std::int64_t margin = units_per_day(TimeUnit::hundred_nano);
  safe_min_ = int64_min / multiply_ + margin;
  safe_max_ = int64_max / multiply_ - margin;
}

// Rounds as SQL Server converts: to the nearest 1/300 s; minutes from that, so that 29.998 s round down and 29.999 s
// (30 s in ticks) up.
std::int64_t ClockRule::quantized(std::int64_t value) const noexcept {
  const std::int64_t per_second = to_.unit == TimeUnit::micro ? 1'000'000 : 10'000'000;
  const std::int64_t day = floor_div(value, units_per_day(to_.unit));
  const std::int64_t in_day = value - day * units_per_day(to_.unit);
  const std::int64_t ticks = (in_day * 300 + per_second / 2) / per_second;
  if (to_.quantum == Quantum::minute) {
    return day * units_per_day(to_.unit) + (ticks + 9'000) / 18'000 * 60 * per_second;
  }
  const std::int64_t millis = (ticks * 10 + 1) / 3;  // .000 .003 .007, as the server prints them
  return day * units_per_day(to_.unit) + millis * (per_second / 1'000);
}

unsigned ClockRule::convert(std::int64_t value, std::int64_t& out) const noexcept {
  out = 0;
  if (value < safe_min_ || value > safe_max_) {
    // PostgreSQL's infinities go into a column that has no bounds, and nowhere else.
    out = value;
    return value < to_.min || value > to_.max || (value != int64_min && value != int64_max) ? out_of_range : fits;
  }
  std::int64_t kept = multiply_ != 1 ? value * multiply_ : (divide_ != 1 ? floor_div(value, divide_) : value);
  const std::int64_t whole = kept;
  if (to_.quantum != Quantum::none) {
    kept = quantized(kept);
  } else if (step_ != 1) {
    kept = floor_to(kept, step_);
  }
  out = kept;
  if (kept < to_.min || kept > to_.max) return out_of_range;
  const bool same = kept == whole && (divide_ == 1 || whole * divide_ == value);
  return same ? fits : rounded;
}

std::int64_t ClockRule::bound(std::int64_t value) const noexcept {
  std::int64_t out = 0;
  convert(value, out);
  if (value < safe_min_) return to_.min;
  if (value > safe_max_) return to_.max;
  return std::clamp(out, to_.min, to_.max);
}

std::string ClockRule::range_text() const { return rows::range_text(to_); }

std::string range_text(const Type& to) {
  const auto text = [&](std::int64_t value) {
    if (to.id == TypeId::date) return date_text(value);
    return to.id == TypeId::time ? time_text(value, to.unit) : timestamp_text(value, to.unit, to.zoned);
  };
  return fmt::format("outside {} to {}", text(to.min), text(to.max));
}

}  // namespace rowferry::rows
