#include "postgres/wire/numeric.hpp"

#include <algorithm>
#include <array>

#include "base/decimal.hpp"

namespace rowferry::postgres::wire {

namespace {

using rows::OnLoss;

constexpr std::uint16_t sign_negative = 0x4000;
constexpr std::uint16_t sign_nan = 0xC000;
constexpr std::uint16_t sign_plus_infinity = 0xD000;
constexpr std::uint16_t sign_minus_infinity = 0xF000;
constexpr std::size_t header_bytes = 8;
constexpr unsigned base = 10'000;
constexpr std::size_t text_chars = 80;

UInt128 power(int exponent) noexcept { return static_cast<UInt128>(decimal::pow10(exponent)); }
constexpr std::array<std::uint64_t, 5> base_powers{1, 10'000, 100'000'000, 1'000'000'000'000, 10'000'000'000'000'000};

int decimal_digits(unsigned digit) noexcept { return digit >= 1000 ? 4 : digit >= 100 ? 3 : digit >= 10 ? 2 : 1; }

Int128 bound(int precision, bool negative) noexcept {
  const auto most = decimal::pow10(precision) - 1;
  return negative ? -most : most;
}

struct Digits {
  const std::uint8_t* at;
  int count;
  int weight;
  unsigned operator[](int i) const noexcept { return load_be<std::uint16_t>(at + 2 * i); }
};

// The first `whole` digits as one integer, four at a time so that most values never touch 128-bit multiplication.
bool sum_digits(const Digits& digits, int whole, UInt128& sum) noexcept {
  sum = 0;
  bool good = true;
  for (int i = 0; i < whole;) {
    std::uint64_t chunk = 0;
    const int end = i + 4 < whole ? i + 4 : whole;
    const auto taken = static_cast<std::size_t>(end - i);
    for (; i < end; ++i) {
      const unsigned digit = digits[i];
      good &= digit < base;
      chunk = chunk * base + digit;
    }
    sum = sum == 0 ? chunk : sum * base_powers[taken] + chunk;
  }
  return good;
}

NumericFit special(std::uint16_t sign, int precision, Int128& out) noexcept {
  out = 0;
  if (sign == sign_nan) return NumericFit::nan;
  if (sign == sign_plus_infinity || sign == sign_minus_infinity) {
    out = bound(precision, sign == sign_minus_infinity);
    return sign == sign_minus_infinity ? NumericFit::minus_infinity : NumericFit::plus_infinity;
  }
  return NumericFit::malformed;
}

// Digits that count below the scale: the first of them is split, the others must be zero.
NumericFit cut_digits(const Digits& digits, int from, int exponent, UInt128& sum) noexcept {
  bool exact = true;
  for (int i = from; i < digits.count; ++i, exponent -= 4) {
    const unsigned digit = digits[i];
    if (digit >= base) return NumericFit::malformed;
    if (exponent > -4) {
      const auto part = static_cast<unsigned>(decimal::pow10(-exponent));
      sum = sum * power(4 + exponent) + digit / part;
      exact &= digit % part == 0;
    } else {
      exact &= digit == 0;
    }
  }
  return exact ? NumericFit::exact : NumericFit::inexact;
}

}  // namespace

NumericFit read_numeric(ByteView field, int precision, int scale, Int128& out) noexcept {
  const std::uint8_t* at = field.data();
  Digits digits{at + header_bytes, load_be<std::int16_t>(at), load_be<std::int16_t>(at + 2)};
  const auto sign = load_be<std::uint16_t>(at + 4);
  out = 0;
  if (digits.count < 0 || field.size() != header_bytes + 2 * static_cast<std::size_t>(digits.count)) {
    return NumericFit::malformed;
  }
  if (sign != 0 && sign != sign_negative) return special(sign, precision, out);
  const bool negative = sign == sign_negative;
  while (digits.count > 0 && digits[0] == 0) {
    digits.at += 2;
    --digits.count;
    --digits.weight;
  }
  if (digits.count == 0) return NumericFit::exact;
  if (digits[0] >= base) return NumericFit::malformed;
  // Every digit is below 10000, so the count of decimal places before the scale's end tells the size at once.
  if (decimal_digits(digits[0]) + 4 * digits.weight + scale > precision) {
    out = bound(precision, negative);
    return NumericFit::too_large;
  }
  // Digit i counts 10^(4 * (weight - i) + scale) units of the scale: digits with an exponent of 0 or more are whole.
  const int first_exponent = 4 * digits.weight + scale;
  const int fitting = first_exponent < 0 ? 0 : first_exponent / 4 + 1;
  const int whole = fitting < digits.count ? fitting : digits.count;
  UInt128 sum = 0;
  if (!sum_digits(digits, whole, sum)) return NumericFit::malformed;
  const int last_exponent = first_exponent - 4 * (whole - 1);
  NumericFit fit = NumericFit::exact;
  if (whole < digits.count) {
    fit = cut_digits(digits, whole, last_exponent - 4, sum);
  } else if (last_exponent > 0) {
    sum *= power(last_exponent);
  }
  out = negative ? -static_cast<Int128>(sum) : static_cast<Int128>(sum);
  return fit;
}

std::string numeric_text(ByteView field) {
  const std::uint8_t* at = field.data();
  const Digits digits{at + header_bytes, load_be<std::int16_t>(at), load_be<std::int16_t>(at + 2)};
  const auto sign = load_be<std::uint16_t>(at + 4);
  const int display_scale = load_be<std::uint16_t>(at + 6);
  if (sign == sign_nan) return "NaN";
  if (sign == sign_plus_infinity) return "Infinity";
  if (sign == sign_minus_infinity) return "-Infinity";
  std::string text = sign == sign_negative ? "-" : "";
  const auto group = [&](int i) {
    const std::string four = std::to_string(base + (i >= 0 && i < digits.count ? digits[i] : 0U));
    return four.substr(1);
  };
  std::string whole;
  for (int i = 0; i <= digits.weight && whole.size() < text_chars; ++i) whole += group(i);
  whole.erase(0, std::min(whole.find_first_not_of('0'), whole.size()));
  text += whole.empty() ? "0" : whole;
  if (display_scale == 0 || text.size() >= text_chars) return text;
  std::string fraction;
  for (int i = digits.weight + 1; static_cast<int>(fraction.size()) < display_scale && fraction.size() < text_chars;
       ++i) {
    fraction += group(i);
  }
  return text + "." + fraction.substr(0, static_cast<std::size_t>(display_scale));
}

void bind_numeric(const CopyColumn& column, Int128& replacement) {
  replacement = 0;
  if (column.policy.action != OnLoss::replace || !column.policy.replacement) return;
  const std::string& text = *column.policy.replacement;
  if (decimal::parse(text, column.type.scale, column.type.precision, replacement) == decimal::Status::ok) return;
  throw Error(Category::input, "policy_impossible",
              "the replacement \"" + text + "\" is no " + rows::to_string(column.type))
      .with_column(column.name);
}

bool mend_numeric(rows::ColumnLoss& loss, NumericFit fit, ByteView field, std::uint64_t row, Int128 replacement,
                  Int128& value) {
  const char* reason = fit == NumericFit::nan         ? "NaN has no decimal value"
                       : fit == NumericFit::inexact   ? "it has digits below the scale"
                       : fit == NumericFit::too_large ? "it is out of range"
                                                      : "infinity has no decimal value";
  const rows::LossPolicy& policy = loss.policy();
  const bool range =
      fit == NumericFit::too_large || fit == NumericFit::plus_infinity || fit == NumericFit::minus_infinity;
  const bool mends = policy.action == OnLoss::error || policy.action == OnLoss::null ||
                     (policy.action == OnLoss::truncate && fit == NumericFit::inexact) ||
                     (policy.action == OnLoss::replace && (policy.replacement || range || fit == NumericFit::inexact));
  const std::string text = numeric_text(field);
  if (!mends) loss.refuse(row, text, reason);
  if (loss.lost(row, text, reason) == OnLoss::null) return false;
  if (policy.action == OnLoss::replace && policy.replacement) value = replacement;
  return true;
}

}  // namespace rowferry::postgres::wire
