// Integers, booleans, floats and decimals into one another.
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

#include "rows/column_step.hpp"
#include "rows/format.hpp"
#include "rows/numbers.hpp"

namespace rowferry::rows {

namespace {

std::string range_reason(const IntegerRange& range) {
  return fmt::format("outside {} to {}", decimal::to_text(range.min), decimal::to_text(range.max));
}
std::string range_reason(const Type& to) {
  const IntegerRange range = decimal_range(to);
  return fmt::format("outside {} to {}, the range of {}", decimal::to_text(range.min, to.scale),
                     decimal::to_text(range.max, to.scale), to_string(to));
}

template <class I, class O>
struct IntegerToInteger {
  using In = I;
  using Out = O;
  static constexpr bool check_only = false;
  static constexpr bool always = range_of<O>().min <= range_of<I>().min && range_of<O>().max >= range_of<I>().max;

  unsigned convert(I value, O& out) const noexcept {
    out = static_cast<O>(value);
    if constexpr (always) {
      return fixed_fits;
    } else {
      return std::in_range<std::conditional_t<std::is_same_v<O, bool>, std::uint8_t, O>>(value) &&
                     (!std::is_same_v<O, bool> || value == 0 || value == 1)
                 ? fixed_fits
                 : fixed_lost;
    }
  }
  bool truncate(I, O&) const noexcept { return false; }
  bool bound(I value, O& out) const noexcept {
    const bool negative = Int128{value} < 0;
    out = negative ? std::numeric_limits<O>::min() : std::numeric_limits<O>::max();
    return true;
  }
  std::string text(I value) const { return decimal::to_text(Int128{value}); }
  std::string reason(I) const { return range_reason(range_of<O>()); }
};

template <class I, class O>
struct IntegerToFloat {
  using In = I;
  using Out = O;
  static constexpr bool check_only = false;

  unsigned convert(I value, O& out) const noexcept {
    out = static_cast<O>(value);
    // 2^63 and 2^64, where the way back would overflow, are not values of I.
    const O end = std::ldexp(O{1}, std::numeric_limits<I>::digits);
    return out < end && static_cast<I>(out) == value ? fixed_fits : fixed_lost;
  }
  bool truncate(I value, O& out) const noexcept {
    out = static_cast<O>(value);
    const O end = std::ldexp(O{1}, std::numeric_limits<I>::digits);
    if (out >= end || (value >= 0 ? static_cast<I>(out) > value : static_cast<I>(out) < value)) {
      out = std::nextafter(out, O{0});
    }
    return true;
  }
  bool bound(I, O&) const noexcept { return false; }
  std::string text(I value) const { return decimal::to_text(Int128{value}); }
  std::string reason(I) const { return fmt::format("more than {} significant bits", std::numeric_limits<O>::digits); }
};

template <class I>
struct IntegerToDecimal {
  using In = I;
  using Out = Int128;
  static constexpr bool check_only = false;
  Type to;
  IntegerRange whole = decimal_whole_range(to);
  IntegerRange range = decimal_range(to);
  Int128 factor = decimal::pow10(to.scale);

  unsigned convert(I value, Int128& out) const noexcept {
    // Unsigned: what does not fit may wrap, and is not used.
    out = static_cast<Int128>(static_cast<UInt128>(Int128{value}) * static_cast<UInt128>(factor));
    return whole.contains(Int128{value}) && range.contains(out) ? fixed_fits : fixed_lost;
  }
  bool truncate(I, Int128&) const noexcept { return false; }
  bool bound(I value, Int128& out) const noexcept {
    out = Int128{value} < 0 ? range.min : range.max;
    return true;
  }
  std::string text(I value) const { return decimal::to_text(Int128{value}); }
  std::string reason(I) const { return range_reason(to); }
};

template <class I>
StepPtr integer_to(const Type& to, ColumnLoss loss) {
  switch (to.id) {
    case TypeId::boolean:
      return fixed_step(IntegerToInteger<I, bool>{}, std::move(loss));
    case TypeId::int8:
      return fixed_step(IntegerToInteger<I, std::int8_t>{}, std::move(loss));
    case TypeId::int16:
      return fixed_step(IntegerToInteger<I, std::int16_t>{}, std::move(loss));
    case TypeId::int32:
      return fixed_step(IntegerToInteger<I, std::int32_t>{}, std::move(loss));
    case TypeId::int64:
      return fixed_step(IntegerToInteger<I, std::int64_t>{}, std::move(loss));
    case TypeId::uint8:
      return fixed_step(IntegerToInteger<I, std::uint8_t>{}, std::move(loss));
    case TypeId::uint16:
      return fixed_step(IntegerToInteger<I, std::uint16_t>{}, std::move(loss));
    case TypeId::uint32:
      return fixed_step(IntegerToInteger<I, std::uint32_t>{}, std::move(loss));
    case TypeId::uint64:
      return fixed_step(IntegerToInteger<I, std::uint64_t>{}, std::move(loss));
    case TypeId::float32:
      return fixed_step(IntegerToFloat<I, float>{}, std::move(loss));
    case TypeId::float64:
      return fixed_step(IntegerToFloat<I, double>{}, std::move(loss));
    default:
      return fixed_step(IntegerToDecimal<I>{to}, std::move(loss));
  }
}

template <class F>
struct FiniteCheck {
  using In = F;
  using Out = F;
  static constexpr bool check_only = true;

  unsigned convert(F value, F& out) const noexcept {
    out = value;
    return std::abs(value) <= std::numeric_limits<F>::max() ? fixed_fits : fixed_lost;
  }
  bool truncate(F, F&) const noexcept { return false; }
  bool bound(F value, F& out) const noexcept {
    out = value > 0 ? std::numeric_limits<F>::max() : std::numeric_limits<F>::lowest();
    return !std::isnan(value);
  }
  std::string text(F value) const { return real_text(value); }
  std::string reason(F) const { return "the column stores neither NaN nor infinities"; }
};

struct FloatToDouble {
  using In = float;
  using Out = double;
  static constexpr bool check_only = false;
  bool finite = false;

  unsigned convert(float value, double& out) const noexcept {
    out = value;
    return !finite || std::abs(value) <= std::numeric_limits<float>::max() ? fixed_fits : fixed_lost;
  }
  bool truncate(float, double&) const noexcept { return false; }
  bool bound(float value, double& out) const noexcept {
    out = value > 0 ? std::numeric_limits<double>::max() : std::numeric_limits<double>::lowest();
    return !std::isnan(value);
  }
  std::string text(float value) const { return real_text(value); }
  std::string reason(float) const { return "the column stores neither NaN nor infinities"; }
};

struct DoubleToFloat {
  using In = double;
  using Out = float;
  static constexpr bool check_only = false;
  bool finite = false;

  unsigned convert(double value, float& out) const noexcept {
    if (!(std::abs(value) <= std::numeric_limits<double>::max())) {
      out = std::isnan(value)
                ? std::numeric_limits<float>::quiet_NaN()
                : std::copysign(std::numeric_limits<float>::infinity(), static_cast<float>(value > 0 ? 1 : -1));
      return finite ? fixed_lost : fixed_fits;
    }
    // From halfway above the largest float on, rounding would give infinity.
    if (std::abs(value) >= 0x1.ffffffp+127) {
      out = 0;
      return fixed_lost;
    }
    out = static_cast<float>(value);
    return static_cast<double>(out) == value ? fixed_fits : fixed_warned;
  }
  bool truncate(double, float&) const noexcept { return false; }
  bool bound(double value, float& out) const noexcept {
    out = value > 0 ? std::numeric_limits<float>::max() : std::numeric_limits<float>::lowest();
    return !std::isnan(value);
  }
  std::string text(double value) const { return real_text(value); }
  std::string reason(double value) const {
    return std::isfinite(value) ? "outside -3.4028235e+38 to 3.4028235e+38"
                                : "the column stores neither NaN nor infinities";
  }
};

template <class F, class O>
struct FloatToInteger {
  using In = F;
  using Out = O;
  static constexpr bool check_only = false;

  // Powers of two are exact in F; comparisons with NaN are false.
  static bool in_range(F value) noexcept {
    const F end = std::ldexp(F{1}, std::numeric_limits<O>::digits);
    const F begin = std::is_signed_v<O> ? -end : F{0};
    return value >= begin && value < end;
  }
  unsigned convert(F value, O& out) const noexcept {
    if (!in_range(value)) return fixed_lost;
    out = static_cast<O>(value);
    return static_cast<F>(out) == value ? fixed_fits : fixed_lost;
  }
  bool truncate(F value, O& out) const noexcept {
    const F whole = std::trunc(value);
    if (!in_range(whole)) return false;
    out = static_cast<O>(whole);
    return true;
  }
  bool bound(F value, O& out) const noexcept {
    if (std::isnan(value) || in_range(value)) return false;
    out = value > 0 ? std::numeric_limits<O>::max() : std::numeric_limits<O>::min();
    return true;
  }
  std::string text(F value) const { return real_text(value); }
  std::string reason(F value) const { return in_range(value) ? "not a whole number" : range_reason(range_of<O>()); }
};

template <class F>
StepPtr float_to_integer(const Type& to, ColumnLoss loss) {
  switch (to.id) {
    case TypeId::int8:
      return fixed_step(FloatToInteger<F, std::int8_t>{}, std::move(loss));
    case TypeId::int16:
      return fixed_step(FloatToInteger<F, std::int16_t>{}, std::move(loss));
    case TypeId::int32:
      return fixed_step(FloatToInteger<F, std::int32_t>{}, std::move(loss));
    case TypeId::int64:
      return fixed_step(FloatToInteger<F, std::int64_t>{}, std::move(loss));
    case TypeId::uint8:
      return fixed_step(FloatToInteger<F, std::uint8_t>{}, std::move(loss));
    case TypeId::uint16:
      return fixed_step(FloatToInteger<F, std::uint16_t>{}, std::move(loss));
    case TypeId::uint32:
      return fixed_step(FloatToInteger<F, std::uint32_t>{}, std::move(loss));
    default:
      return fixed_step(FloatToInteger<F, std::uint64_t>{}, std::move(loss));
  }
}

struct DecimalPrecision {  // same scale, fewer digits
  using In = Int128;
  using Out = Int128;
  static constexpr bool check_only = true;
  Type to;
  IntegerRange range = decimal_range(to);

  unsigned convert(Int128 value, Int128& out) const noexcept {
    out = value;
    return range.contains(value) ? fixed_fits : fixed_lost;
  }
  bool truncate(Int128, Int128&) const noexcept { return false; }
  bool bound(Int128 value, Int128& out) const noexcept {
    out = value < 0 ? range.min : range.max;
    return true;
  }
  std::string text(Int128 value) const { return decimal::to_text(value, to.scale); }
  std::string reason(Int128) const { return range_reason(to); }
};

// Divides by a power of ten, in 64 bits where that is enough: the 128-bit division is many times slower.
struct DecimalDivision {
  Int128 by;
  std::int64_t by_small = by <= std::numeric_limits<std::int64_t>::max() ? static_cast<std::int64_t>(by) : 0;

  Int128 quotient(Int128 value, bool& exact) const noexcept {
    const auto small = static_cast<std::int64_t>(value);
    if (by_small != 0 && Int128{small} == value) {
      exact = small % by_small == 0;
      return small / by_small;
    }
    const Int128 q = value / by;
    exact = q * by == value;
    return q;
  }
};

struct DecimalUp {  // more digits after the point
  using In = Int128;
  using Out = Int128;
  static constexpr bool check_only = false;
  Type from;
  Type to;
  Int128 factor = decimal::pow10(to.scale - from.scale);
  IntegerRange range = decimal_range(to);
  // Of the values before: division towards zero gives the outermost that still fit.
  IntegerRange limit{range.min / factor, range.max / factor};

  unsigned convert(Int128 value, Int128& out) const noexcept {
    out = static_cast<Int128>(static_cast<UInt128>(value) * static_cast<UInt128>(factor));
    return limit.contains(value) ? fixed_fits : fixed_lost;
  }
  bool truncate(Int128, Int128&) const noexcept { return false; }
  bool bound(Int128 value, Int128& out) const noexcept {
    out = value < 0 ? range.min : range.max;
    return true;
  }
  std::string text(Int128 value) const { return decimal::to_text(value, from.scale); }
  std::string reason(Int128) const { return range_reason(to); }
};

struct DecimalDown {  // fewer digits after the point
  using In = Int128;
  using Out = Int128;
  static constexpr bool check_only = false;
  Type from;
  Type to;
  DecimalDivision division{decimal::pow10(from.scale - to.scale)};
  IntegerRange range = decimal_range(to);

  bool in_range(Int128 value) const noexcept { return range.contains(value); }
  unsigned convert(Int128 value, Int128& out) const noexcept {
    bool exact = false;
    out = division.quotient(value, exact);
    return exact && in_range(out) ? fixed_fits : fixed_lost;
  }
  bool truncate(Int128 value, Int128& out) const noexcept {
    bool exact = false;
    out = division.quotient(value, exact);
    return in_range(out);
  }
  bool bound(Int128 value, Int128& out) const noexcept {
    bool exact = false;
    if (in_range(division.quotient(value, exact))) return false;
    out = value < 0 ? range.min : range.max;
    return true;
  }
  std::string text(Int128 value) const { return decimal::to_text(value, from.scale); }
  std::string reason(Int128 value) const {
    bool exact = false;
    if (!in_range(division.quotient(value, exact))) return range_reason(to);
    return fmt::format("digits beyond the scale of {}", to_string(to));
  }
};

template <class O>
struct DecimalToInteger {
  using In = Int128;
  using Out = O;
  static constexpr bool check_only = false;
  Type from;
  DecimalDivision division{decimal::pow10(from.scale)};

  unsigned convert(Int128 value, O& out) const noexcept {
    bool exact = false;
    const Int128 whole = division.quotient(value, exact);
    out = static_cast<O>(whole);
    return exact && range_of<O>().contains(whole) ? fixed_fits : fixed_lost;
  }
  bool truncate(Int128 value, O& out) const noexcept {
    bool exact = false;
    const Int128 whole = division.quotient(value, exact);
    out = static_cast<O>(whole);
    return range_of<O>().contains(whole);
  }
  bool bound(Int128 value, O& out) const noexcept {
    bool exact = false;
    if (range_of<O>().contains(division.quotient(value, exact))) return false;
    out = value < 0 ? std::numeric_limits<O>::min() : std::numeric_limits<O>::max();
    return true;
  }
  std::string text(Int128 value) const { return decimal::to_text(value, from.scale); }
  std::string reason(Int128 value) const {
    bool exact = false;
    return range_of<O>().contains(division.quotient(value, exact)) ? "not a whole number" : range_reason(range_of<O>());
  }
};

template <class F>
struct DecimalToFloat {
  using In = Int128;
  using Out = F;
  static constexpr bool check_only = false;
  Type from;
  Int128 power_of_five = five_to(from.scale);

  static Int128 five_to(int exponent) noexcept {
    Int128 power = 1;
    for (int i = 0; i < exponent; ++i) power *= 5;
    return power;
  }
  // value / 10^s = (value / 5^s) / 2^s, and a float holds that when what is left has few enough significant bits.
  bool exact(Int128 value) const noexcept {
    if (value % power_of_five != 0) return false;
    Int128 rest = value / power_of_five;
    while (rest != 0 && rest % 2 == 0) rest /= 2;
    const Int128 limit = Int128{1} << std::numeric_limits<F>::digits;
    return rest < limit && rest > -limit;
  }
  unsigned convert(Int128 value, F& out) const noexcept {
    // By text: the library rounds correctly, two roundings in floating point would not.
    char text[decimal::text_max + 1];
    *decimal::write(text, value, from.scale) = '\0';
    if constexpr (std::is_same_v<F, float>) {
      out = std::strtof(text, nullptr);
    } else {
      out = std::strtod(text, nullptr);
    }
    return exact(value) ? fixed_fits : fixed_warned;
  }
  bool truncate(Int128, F&) const noexcept { return false; }
  bool bound(Int128, F&) const noexcept { return false; }
  std::string text(Int128 value) const { return decimal::to_text(value, from.scale); }
  std::string reason(Int128) const { return {}; }
};

}  // namespace

StepPtr integer_step(const Type& from, const Type& to, ColumnLoss loss) {
  if (from.id == to.id) return nullptr;
  switch (from.id) {
    case TypeId::boolean:
      return integer_to<bool>(to, std::move(loss));
    case TypeId::int8:
      return integer_to<std::int8_t>(to, std::move(loss));
    case TypeId::int16:
      return integer_to<std::int16_t>(to, std::move(loss));
    case TypeId::int32:
      return integer_to<std::int32_t>(to, std::move(loss));
    case TypeId::int64:
      return integer_to<std::int64_t>(to, std::move(loss));
    case TypeId::uint8:
      return integer_to<std::uint8_t>(to, std::move(loss));
    case TypeId::uint16:
      return integer_to<std::uint16_t>(to, std::move(loss));
    case TypeId::uint32:
      return integer_to<std::uint32_t>(to, std::move(loss));
    default:
      return integer_to<std::uint64_t>(to, std::move(loss));
  }
}

StepPtr float_step(const Type& from, const Type& to, ColumnLoss loss) {
  const bool wide = from.id == TypeId::float64;
  if (from.id == to.id) {
    if (!to.finite || from.finite) return nullptr;
    return wide ? fixed_step(FiniteCheck<double>{}, std::move(loss))
                : fixed_step(FiniteCheck<float>{}, std::move(loss));
  }
  if (to.id == TypeId::float64) return fixed_step(FloatToDouble{to.finite}, std::move(loss));
  if (to.id == TypeId::float32) return fixed_step(DoubleToFloat{to.finite}, std::move(loss));
  return wide ? float_to_integer<double>(to, std::move(loss)) : float_to_integer<float>(to, std::move(loss));
}

StepPtr decimal_step(const Type& from, const Type& to, ColumnLoss loss) {
  switch (to.id) {
    case TypeId::decimal:
      if (to.scale > from.scale) return fixed_step(DecimalUp{from, to}, std::move(loss));
      if (to.scale < from.scale) return fixed_step(DecimalDown{from, to}, std::move(loss));
      if (decimal_range(to).contains(decimal_range(from))) return nullptr;
      return fixed_step(DecimalPrecision{to}, std::move(loss));
    case TypeId::int8:
      return fixed_step(DecimalToInteger<std::int8_t>{from}, std::move(loss));
    case TypeId::int16:
      return fixed_step(DecimalToInteger<std::int16_t>{from}, std::move(loss));
    case TypeId::int32:
      return fixed_step(DecimalToInteger<std::int32_t>{from}, std::move(loss));
    case TypeId::int64:
      return fixed_step(DecimalToInteger<std::int64_t>{from}, std::move(loss));
    case TypeId::uint8:
      return fixed_step(DecimalToInteger<std::uint8_t>{from}, std::move(loss));
    case TypeId::uint16:
      return fixed_step(DecimalToInteger<std::uint16_t>{from}, std::move(loss));
    case TypeId::uint32:
      return fixed_step(DecimalToInteger<std::uint32_t>{from}, std::move(loss));
    case TypeId::uint64:
      return fixed_step(DecimalToInteger<std::uint64_t>{from}, std::move(loss));
    case TypeId::float32:
      return fixed_step(DecimalToFloat<float>{from}, std::move(loss));
    default:
      return fixed_step(DecimalToFloat<double>{from}, std::move(loss));
  }
}

}  // namespace rowferry::rows
