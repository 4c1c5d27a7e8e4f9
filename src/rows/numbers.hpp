// Ranges of the numeric types, for fit() and the converters.
#pragma once

#include <limits>

#include "base/decimal.hpp"
#include "rows/batch.hpp"

namespace rowferry::rows {

struct IntegerRange {
  Int128 min = 0;
  Int128 max = 0;
  bool contains(const IntegerRange& other) const noexcept { return min <= other.min && max >= other.max; }
  bool contains(Int128 value) const noexcept { return value >= min && value <= max; }
};

inline bool is_integer(TypeId id) noexcept { return id >= TypeId::int8 && id <= TypeId::uint64; }
inline bool is_float(TypeId id) noexcept { return id == TypeId::float32 || id == TypeId::float64; }

template <class T>
constexpr IntegerRange range_of() noexcept {
  return {static_cast<Int128>(std::numeric_limits<T>::min()), static_cast<Int128>(std::numeric_limits<T>::max())};
}

// Of booleans (0 and 1) and integers.
inline IntegerRange integer_range(TypeId id) noexcept {
  switch (id) {
    case TypeId::boolean:
      return range_of<bool>();
    case TypeId::int8:
      return range_of<std::int8_t>();
    case TypeId::int16:
      return range_of<std::int16_t>();
    case TypeId::int32:
      return range_of<std::int32_t>();
    case TypeId::int64:
      return range_of<std::int64_t>();
    case TypeId::uint8:
      return range_of<std::uint8_t>();
    case TypeId::uint16:
      return range_of<std::uint16_t>();
    case TypeId::uint32:
      return range_of<std::uint32_t>();
    case TypeId::uint64:
      return range_of<std::uint64_t>();
    default:
      return {};
  }
}

// Whole numbers that a decimal(precision, scale) holds.
inline IntegerRange decimal_whole_range(const Type& type) noexcept {
  const Int128 max = decimal::pow10(type.precision - type.scale) - 1;
  return {-max, max};
}

// Unscaled values that a decimal column holds: by its precision, and by `min` and `max` where they are set
// (smallmoney).
inline IntegerRange decimal_range(const Type& type) noexcept {
  const Int128 digits = decimal::pow10(type.precision) - 1;
  IntegerRange range{-digits, digits};
  if (type.min != std::numeric_limits<std::int64_t>::min() && type.min > range.min) range.min = type.min;
  if (type.max != std::numeric_limits<std::int64_t>::max() && type.max < range.max) range.max = type.max;
  return range;
}

}  // namespace rowferry::rows
