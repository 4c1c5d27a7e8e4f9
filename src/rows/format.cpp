#include "rows/format.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/civil.hpp"
#include "base/decimal.hpp"
#include "base/limits.hpp"

namespace rowferry::rows {

namespace {

struct Fraction {
  civil::Fraction unit;
  int digits;
};
Fraction fraction_of(TimeUnit unit) noexcept {
  return unit == TimeUnit::micro ? Fraction{civil::Fraction::micro, 6} : Fraction{civil::Fraction::hundred_nano, 7};
}

// Two hex digits a byte; as many as a message can show, and more, so that the cut is seen.
std::string binary_text(ByteView bytes) {
  std::string out = "0x";
  for (const std::uint8_t byte : bytes.first(std::min(bytes.size(), limits::error_value_chars))) {
    fmt::format_to(std::back_inserter(out), "{:02X}", byte);
  }
  return out;
}

std::string fixed_text(const Type& type, const ColumnView& column, std::size_t row) {
  switch (type.id) {
    case TypeId::int8:
      return fmt::format("{}", static_cast<int>(column.value<std::int8_t>(row)));
    case TypeId::int16:
      return fmt::format("{}", column.value<std::int16_t>(row));
    case TypeId::int32:
      return fmt::format("{}", column.value<std::int32_t>(row));
    case TypeId::int64:
      return fmt::format("{}", column.value<std::int64_t>(row));
    case TypeId::uint8:
      return fmt::format("{}", static_cast<unsigned>(column.value<std::uint8_t>(row)));
    case TypeId::uint16:
      return fmt::format("{}", column.value<std::uint16_t>(row));
    case TypeId::uint32:
      return fmt::format("{}", column.value<std::uint32_t>(row));
    case TypeId::uint64:
      return fmt::format("{}", column.value<std::uint64_t>(row));
    case TypeId::float32:
      return real_text(column.value<float>(row));
    case TypeId::float64:
      return real_text(column.value<double>(row));
    default:
      return {};
  }
}

template <class Real>
std::string shortest(Real value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
  return fmt::format("{}", value);
}

}  // namespace

std::string without_trailing_zeros(std::string text) {
  const std::size_t point = text.find('.');
  if (point == std::string::npos) return text;
  std::size_t end = text.find_first_not_of("0123456789", point + 1);
  if (end == std::string::npos) end = text.size();
  std::size_t keep = end;
  while (text[keep - 1] == '0') --keep;
  if (keep == point + 1) keep = point;
  return text.erase(keep, end - keep);
}

std::string real_text(float value) { return shortest(value); }
std::string real_text(double value) { return shortest(value); }

std::string date_text(std::int64_t days) {
  if (days >= std::numeric_limits<std::int32_t>::max()) return "infinity";
  if (days <= std::numeric_limits<std::int32_t>::min()) return "-infinity";
  return civil::date_text(static_cast<std::int32_t>(days));
}

std::string time_text(std::int64_t value, TimeUnit unit) {
  const Fraction fraction = fraction_of(unit);
  if (value < 0) return fmt::format("{} units before midnight", value);
  return without_trailing_zeros(civil::time_text(value, fraction.unit, fraction.digits));
}

std::string timestamp_text(std::int64_t value, TimeUnit unit, bool zoned) {
  if (value == std::numeric_limits<std::int64_t>::max()) return "infinity";
  if (value == std::numeric_limits<std::int64_t>::min()) return "-infinity";
  // The first day of the range has no midnight in it.
  constexpr std::int64_t day = civil::ticks_per_day;
  if (value < std::numeric_limits<std::int64_t>::min() + day) return fmt::format("{} units since 1970", value);
  const Fraction fraction = fraction_of(unit);
  return without_trailing_zeros(civil::timestamp_text(value, fraction.unit, fraction.digits, zoned));
}

std::string uuid_text(const std::uint8_t* bytes) {
  static constexpr char hex[] = "0123456789abcdef";
  std::string out;
  out.reserve(36);
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) out += '-';
    out += hex[bytes[i] >> 4U];
    out += hex[bytes[i] & 15U];
  }
  return out;
}

std::string value_text(const Type& type, const ColumnView& column, std::size_t row) {
  if (type.id == TypeId::null || !column.valid(row)) return "NULL";
  switch (type.id) {
    case TypeId::boolean:
      return column.boolean(row) ? "true" : "false";
    case TypeId::decimal:
      return decimal::to_text(column.value<Int128>(row), type.scale);
    case TypeId::date:
      return date_text(column.value<std::int32_t>(row));
    case TypeId::time:
      return time_text(column.value<std::int64_t>(row), type.unit);
    case TypeId::timestamp:
      return timestamp_text(column.value<std::int64_t>(row), type.unit, type.zoned);
    case TypeId::uuid:
      return uuid_text(column.values + row * 16);
    case TypeId::text:
    case TypeId::json:
      return std::string(column.text(row));
    case TypeId::binary:
      return binary_text(column.bytes(row));
    default:
      return fixed_text(type, column, row);
  }
}

}  // namespace rowferry::rows
