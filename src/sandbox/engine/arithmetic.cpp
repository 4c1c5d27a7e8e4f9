#include "sandbox/engine/arithmetic.hpp"

#include <algorithm>
#include <array>

namespace rowferry::sandbox::engine {

namespace {

constexpr std::array<UInt128, 39> powers = [] {
  std::array<UInt128, 39> all{};
  UInt128 value = 1;
  for (auto& p : all) {
    p = value;
    value *= 10;
  }
  return all;
}();

// 256 bits, for products and for dividends.
struct Wide {
  UInt128 high = 0;
  UInt128 low = 0;
};

Wide multiply_wide(UInt128 a, UInt128 b) {
  constexpr UInt128 mask = ~std::uint64_t{0};
  const UInt128 a0 = a & mask, a1 = a >> 64U, b0 = b & mask, b1 = b >> 64U;
  const UInt128 p00 = a0 * b0, p01 = a0 * b1, p10 = a1 * b0, p11 = a1 * b1;
  const UInt128 middle = (p00 >> 64U) + (p01 & mask) + (p10 & mask);
  return {p11 + (p01 >> 64U) + (p10 >> 64U) + (middle >> 64U), (middle << 64U) | (p00 & mask)};
}

// Quotient and remainder by shift and subtract; a quotient above 128 bits gives nothing.
struct Quotient {
  UInt128 value;
  UInt128 rest;
};
std::optional<Quotient> divide_wide(Wide n, UInt128 d) {
  if (n.high >= d) return std::nullopt;
  UInt128 rest = n.high;
  UInt128 quotient = 0;
  for (int bit = 127; bit >= 0; --bit) {
    const bool carry = (rest >> 127U) != 0;
    rest = (rest << 1U) | ((n.low >> static_cast<unsigned>(bit)) & 1U);
    if (carry || rest >= d) {
      rest -= d;
      quotient |= UInt128(1) << static_cast<unsigned>(bit);
    }
  }
  return Quotient{quotient, rest};
}

std::optional<Int128> with_sign(UInt128 magnitude, bool negative) {
  if (magnitude >= powers[38]) return std::nullopt;
  const auto value = static_cast<Int128>(magnitude);
  return negative ? -value : value;
}

}  // namespace

UInt128 power_of_ten(int n) { return powers.at(static_cast<std::size_t>(n)); }

int digits_of(UInt128 magnitude) {
  int digits = 1;
  while (digits < 39 && magnitude >= powers[static_cast<std::size_t>(digits)] && digits < 38) ++digits;
  return digits;
}

std::optional<Int128> rescale(Int128 value, int from, int to, bool truncate) {
  const bool negative = value < 0;
  const UInt128 magnitude = magnitude_of(value);
  if (to >= from) {
    const Wide product = multiply_wide(magnitude, power_of_ten(std::min(to - from, 38)));
    if (product.high != 0) return std::nullopt;
    return with_sign(product.low, negative);
  }
  const int drop = from - to;
  if (drop > 38) return Int128{0};
  const UInt128 divisor = power_of_ten(drop);
  UInt128 quotient = magnitude / divisor;
  if (!truncate && magnitude % divisor >= divisor - divisor / 2) ++quotient;
  return with_sign(quotient, negative);
}

std::optional<Int128> multiply(Int128 a, Int128 b, int product_scale, int scale) {
  const bool negative = (a < 0) != (b < 0);
  const Wide product = multiply_wide(magnitude_of(a), magnitude_of(b));
  const int drop = product_scale - scale;
  if (drop <= 0) {
    if (product.high != 0) return std::nullopt;
    return with_sign(product.low, negative);
  }
  const UInt128 divisor = power_of_ten(std::min(drop, 38));
  const auto q = divide_wide(product, divisor);
  if (!q) return std::nullopt;
  return with_sign(q->value + (q->rest >= divisor - divisor / 2 ? 1 : 0), negative);
}

std::optional<Int128> divide(Int128 a, int sa, Int128 b, int sb, int scale) {
  const bool negative = (a < 0) != (b < 0);
  const int shift = scale - sa + sb;
  if (shift > 76) return std::nullopt;
  Wide dividend{0, magnitude_of(a)};
  if (shift >= 0) {
    dividend = multiply_wide(magnitude_of(a), power_of_ten(std::min(shift, 38)));
    if (shift > 38) {
      if (dividend.high != 0) return std::nullopt;
      dividend = multiply_wide(dividend.low, power_of_ten(shift - 38));
    }
  } else {
    dividend.low /= power_of_ten(std::min(-shift, 38));
  }
  const auto q = divide_wide(dividend, magnitude_of(b));
  if (!q) return std::nullopt;
  return with_sign(q->value, negative);
}

std::optional<ParsedDecimal> parse_decimal(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  ParsedDecimal parsed;
  bool negative = false;
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) {
    negative = text.front() == '-';
    text.remove_prefix(1);
  }
  UInt128 magnitude = 0;
  int digits = 0;
  bool point = false;
  bool any = false;
  for (const char c : text) {
    if (c == '.' && !point) {
      point = true;
      continue;
    }
    if (c < '0' || c > '9') return std::nullopt;
    any = true;
    if (digits >= decimal_digits_max) {
      if (point) continue;  // fraction digits beyond what any decimal holds
      return std::nullopt;
    }
    magnitude = magnitude * 10 + static_cast<UInt128>(c - '0');
    if (magnitude != 0) ++digits;
    if (point) ++parsed.scale;
  }
  if (!any) return std::nullopt;
  parsed.value = negative ? -static_cast<Int128>(magnitude) : static_cast<Int128>(magnitude);
  parsed.scale = std::min(parsed.scale, decimal_digits_max);
  parsed.precision = std::max({digits_of(magnitude), parsed.scale, 1});
  return parsed;
}

}  // namespace rowferry::sandbox::engine
