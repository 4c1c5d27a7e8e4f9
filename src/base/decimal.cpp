#include "base/decimal.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace rowferry::decimal {

namespace {

constexpr std::uint64_t chunk = 10'000'000'000'000'000'000ULL;  // 10^19, the most that a 64-bit division handles

UInt128 magnitude(Int128 value) noexcept {
  return value < 0 ? -static_cast<UInt128>(value) : static_cast<UInt128>(value);
}

// Digits of a magnitude below 2^128, no leading zeros; returns how many. `to` has room for 39.
std::size_t write_digits(char* to, UInt128 value) noexcept {
  if (value <= UINT64_MAX)
    return static_cast<std::size_t>(std::to_chars(to, to + 20, static_cast<std::uint64_t>(value)).ptr - to);
  const std::size_t head = write_digits(to, value / chunk);
  auto tail = static_cast<std::uint64_t>(value % chunk);
  for (std::size_t i = 19; i-- > 0;) {
    to[head + i] = static_cast<char>('0' + tail % 10);
    tail /= 10;
  }
  return head + 19;
}

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

}  // namespace

int digits(Int128 value) noexcept {
  const UInt128 size = magnitude(value);
  int count = 1;
  while (count <= digits_max && size >= static_cast<UInt128>(pow10(count))) ++count;
  return count;
}

Status rescale(Int128 value, int from_scale, int to_scale, int precision, Int128& result) noexcept {
  const int shift = to_scale - from_scale;
  Int128 scaled = value;
  Status status = Status::ok;
  if (shift > 0 && value != 0) {
    if (shift > digits_max || !fits(value, digits_max)) return Status::overflow;
    if (digits(value) + shift > digits_max) return Status::overflow;
    scaled = value * pow10(shift);
  } else if (shift < 0) {
    if (-shift > digits_max) {
      // |value| < 2^127 has at most 39 digits: one may be left after 38 have gone.
      scaled = -shift == digits_max + 1 ? value / pow10(digits_max) / 10 : 0;
      if (value != 0) status = Status::inexact;
    } else {
      scaled = value / pow10(-shift);
      if (scaled * pow10(-shift) != value) status = Status::inexact;
    }
  }
  if (!fits(scaled, precision)) return Status::overflow;
  result = scaled;
  return status;
}

char* write(char* to, Int128 unscaled, int scale) noexcept {
  char text[40];
  const std::size_t count = write_digits(text, magnitude(unscaled));
  if (unscaled < 0) *to++ = '-';
  const auto fraction = static_cast<std::size_t>(scale);
  if (count > fraction) {
    std::memcpy(to, text, count - fraction);
    to += count - fraction;
  } else {
    *to++ = '0';
  }
  if (fraction == 0) return to;
  *to++ = '.';
  const std::size_t zeros = fraction > count ? fraction - count : 0;
  std::memset(to, '0', zeros);
  to += zeros;
  std::memcpy(to, text + count - (fraction - zeros), fraction - zeros);
  return to + (fraction - zeros);
}

std::string to_text(Int128 unscaled, int scale) {
  char text[text_max + digits_max];
  return {text, write(text, unscaled, scale)};
}

std::string to_text(Int128 value) { return to_text(value, 0); }

Status parse(std::string_view text, int scale, int precision, Int128& result) noexcept {
  std::size_t at = 0;
  const bool negative = !text.empty() && text[0] == '-';
  if (negative || (!text.empty() && text[0] == '+')) ++at;

  const std::size_t mantissa = at;
  std::size_t point = std::string_view::npos;
  std::size_t count = 0;
  for (; at < text.size() && (is_digit(text[at]) || text[at] == '.'); ++at) {
    if (text[at] != '.') {
      ++count;
    } else if (point != std::string_view::npos) {
      return Status::malformed;
    } else {
      point = at;
    }
  }
  const std::size_t mantissa_end = at;
  if (count == 0) return Status::malformed;

  long exponent = 0;
  if (at < text.size()) {
    if (text[at] != 'e' && text[at] != 'E') return Status::malformed;
    ++at;
    if (at < text.size() && text[at] == '+' && at + 1 < text.size() && is_digit(text[at + 1])) ++at;
    const auto [end, code] = std::from_chars(text.data() + at, text.data() + text.size(), exponent);
    if (end != text.data() + text.size() || end == text.data() + at) return Status::malformed;
    if (code != std::errc()) exponent = text[at] == '-' ? -1'000'000'000L : 1'000'000'000L;
    exponent = std::clamp(exponent, -1'000'000'000L, 1'000'000'000L);
  }

  // Digits at or above 10^-scale make the value; those below only decide whether it is exact.
  const long whole = static_cast<long>((point == std::string_view::npos ? mantissa_end : point) - mantissa);
  long keep = whole + exponent + scale;  // so many leading digits are kept
  Int128 value = 0;
  bool dropped = false;
  for (std::size_t i = mantissa; i < mantissa_end; ++i) {
    if (i == point) continue;
    const int digit = text[i] - '0';
    if (keep > 0) {
      if (value >= pow10(digits_max - 1)) return Status::overflow;
      value = value * 10 + digit;
      --keep;
    } else if (digit != 0) {
      dropped = true;
    }
  }
  for (; keep > 0 && value != 0; --keep) {
    if (value >= pow10(digits_max - 1)) return Status::overflow;
    value *= 10;
  }
  if (negative) value = -value;
  if (!fits(value, precision)) return Status::overflow;
  result = value;
  return dropped ? Status::inexact : Status::ok;
}

}  // namespace rowferry::decimal
