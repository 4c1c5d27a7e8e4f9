// Decimals: a 128-bit unscaled integer with a scale. Exact text, exact rescaling; never through binary floating point.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace rowferry {

using Int128 = __int128;
using UInt128 = unsigned __int128;

namespace decimal {

inline constexpr int digits_max = 38;        // |unscaled| < 10^38
inline constexpr std::size_t text_max = 48;  // room that write() needs

inline constexpr std::array<Int128, digits_max + 1> powers = [] {
  std::array<Int128, digits_max + 1> all{};
  all[0] = 1;
  for (int i = 1; i <= digits_max; ++i) all[static_cast<std::size_t>(i)] = all[static_cast<std::size_t>(i - 1)] * 10;
  return all;
}();
// 10^exponent, 0 <= exponent <= 38.
constexpr Int128 pow10(int exponent) noexcept { return powers[static_cast<std::size_t>(exponent)]; }

// |value| < 10^precision, 1 <= precision <= 38.
constexpr bool fits(Int128 value, int precision) noexcept {
  return value < pow10(precision) && value > -pow10(precision);
}
// Decimal digits of |value|; 1 for zero, 39 above the largest decimal.
int digits(Int128 value) noexcept;

enum class Status : std::uint8_t {
  ok,
  inexact,    // digits below the scale were dropped towards zero
  overflow,   // does not fit `precision` (result untouched)
  malformed,  // text only
};

// value * 10^(to_scale - from_scale), checked against the precision (1..38). Scales 0..38 and beyond up to +-10000.
Status rescale(Int128 value, int from_scale, int to_scale, int precision, Int128& result) noexcept;

// "-12.30" for -1230 at scale 2: always `scale` fractional digits, a digit before the point, no "-0". Scale 0..38.
// Writes at most text_max characters, no terminator; returns the end.
char* write(char* to, Int128 unscaled, int scale) noexcept;
std::string to_text(Int128 unscaled, int scale);

// [+-]digits[.digits][(e|E)[+-]digits], no blanks. Dropped non-zero digits give inexact.
Status parse(std::string_view text, int scale, int precision, Int128& result) noexcept;

// Plain integers of any size within 128 bits.
std::string to_text(Int128 value);

}  // namespace decimal
}  // namespace rowferry
