// Exact arithmetic on decimals of up to 38 digits, as unscaled 128-bit integers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/decimal.hpp"

namespace rowferry::sandbox::engine {

inline constexpr int decimal_digits_max = 38;

// 10^n, 0 <= n <= 38
UInt128 power_of_ten(int n);
// Digits of the magnitude; 1 for 0.
int digits_of(UInt128 magnitude);
inline UInt128 magnitude_of(Int128 v) { return v < 0 ? UInt128(0) - static_cast<UInt128>(v) : static_cast<UInt128>(v); }

// The value moved from one scale to another, half away from zero. Nothing when it has more than 38 digits.
std::optional<Int128> rescale(Int128 value, int from, int to, bool truncate = false);
// a*b at scale sa+sb, brought to `scale`.
std::optional<Int128> multiply(Int128 a, Int128 b, int product_scale, int scale);
// a (scale sa) / b (scale sb) at `scale`, digits below it cut. b must not be 0.
std::optional<Int128> divide(Int128 a, int sa, Int128 b, int sb, int scale);

struct ParsedDecimal {
  Int128 value = 0;
  int precision = 1;
  int scale = 0;
};
// Sign, digits, one point, blanks around. Nothing for anything else or above 38 digits.
std::optional<ParsedDecimal> parse_decimal(std::string_view text);

}  // namespace rowferry::sandbox::engine
