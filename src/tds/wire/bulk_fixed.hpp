// Values of a fixed size in a bulk row: one struct a form, and the loops over them.
#pragma once

#include "tds/wire/bulk_column.hpp"
#include "tds/wire/values.hpp"

namespace rowferry::tds::bulk {

using rows::ColumnView;

// Integers of the same width on both sides.
template <class T>
struct Plain {
  static constexpr std::size_t width = sizeof(T);
  static bool put(const BulkWriter&, const ColumnView& view, std::size_t row, std::uint8_t* to) noexcept {
    std::memcpy(to, view.values + row * sizeof(T), sizeof(T));
    return true;
  }
};

// Floats: NaN and infinities would end the load with an error that names nothing.
template <class Bits, Bits exponent>
struct Finite {
  static constexpr std::size_t width = sizeof(Bits);
  static bool put(const BulkWriter&, const ColumnView& view, std::size_t row, std::uint8_t* to) noexcept {
    const auto bits = view.value<Bits>(row);
    store_le(to, bits);
    return (bits & exponent) != exponent;
  }
};
using Real = Finite<std::uint32_t, 0x7F800000U>;
using Float = Finite<std::uint64_t, 0x7FF0000000000000U>;

struct Bit {
  static constexpr std::size_t width = 1;
  static bool put(const BulkWriter&, const ColumnView& view, std::size_t row, std::uint8_t* to) noexcept {
    *to = view.boolean(row) ? 1 : 0;
    return true;
  }
};

template <std::size_t bytes>
struct DecimalOf {
  static constexpr std::size_t width = bytes;
  static bool put(const BulkWriter& self, const ColumnView& view, std::size_t row, std::uint8_t* to) noexcept {
    const auto value = view.value<Int128>(row);
    const Int128 sign = value >> 127;
    const auto magnitude = static_cast<UInt128>((value ^ sign) - sign);
    to[0] = static_cast<std::uint8_t>(1 + static_cast<int>(sign));
    std::memcpy(to + 1, &magnitude, bytes - 1);
    return magnitude <= static_cast<UInt128>(self.magnitude_max);
  }
};

struct Money {
  static constexpr std::size_t width = 8;
  static bool put(const BulkWriter&, const ColumnView& view, std::size_t row, std::uint8_t* to) noexcept {
    const auto value = view.value<Int128>(row);
    const auto units = static_cast<std::int64_t>(value);
    store_money(to, units);
    return units == value;
  }
};

struct SmallMoney {
  static constexpr std::size_t width = 4;
  static bool put(const BulkWriter&, const ColumnView& view, std::size_t row, std::uint8_t* to) noexcept {
    const auto value = view.value<Int128>(row);
    const auto units = static_cast<std::int32_t>(value);
    store_le(to, units);
    return units == value;
  }
};

struct Date {
  static constexpr std::size_t width = 3;
  static bool put(const BulkWriter&, const ColumnView& view, std::size_t row, std::uint8_t* to) noexcept {
    const auto days = view.value<std::int32_t>(row);
    store_date(to, days);
    return days >= date_min_days && days <= date_max_days;
  }
};

// Of a time in microseconds up to scale 6, in 100 ns at scale 7.
template <int scale>
struct Units {
  static constexpr std::int64_t per_unit = power_of_ten[scale > 6 ? 0 : 6 - scale];
  static constexpr std::int64_t per_day = scale > 6 ? ticks_per_day : ticks_per_day / 10;
  static constexpr std::size_t bytes = time_bytes(scale);
};

template <int scale>
struct Time {
  using U = Units<scale>;
  static constexpr std::size_t width = U::bytes;
  static bool put(const BulkWriter&, const ColumnView& view, std::size_t row, std::uint8_t* to) noexcept {
    const auto time = view.value<std::int64_t>(row);
    const std::int64_t units = time / U::per_unit;
    store_time(to, static_cast<std::uint64_t>(units), U::bytes);
    return time >= 0 && time < U::per_day && units * U::per_unit == time;
  }
};

// datetime2, and datetimeoffset (`extra` = 2) at +00:00.
template <int scale, std::size_t extra>
struct Timestamp {
  using U = Units<scale>;
  static constexpr std::size_t width = U::bytes + 3 + extra;
  static bool put(const BulkWriter&, const ColumnView& view, std::size_t row, std::uint8_t* to) noexcept {
    const auto value = view.value<std::int64_t>(row);
    constexpr std::int64_t min = date_min_days * U::per_day;
    constexpr std::int64_t max = (std::int64_t{date_max_days} + 1) * U::per_day - 1;
    if (value < min || value > max) return false;
    // counted from 0001-01-01 there are no negative values to round
    const auto since_0001 = static_cast<std::uint64_t>(value - min);
    const auto days = static_cast<std::uint32_t>(since_0001 / static_cast<std::uint64_t>(U::per_day));
    const std::uint64_t time = since_0001 - std::uint64_t{days} * static_cast<std::uint64_t>(U::per_day);
    const std::uint64_t units = time / static_cast<std::uint64_t>(U::per_unit);
    store_time(to, units, U::bytes);
    store_le(to + U::bytes, static_cast<std::uint16_t>(days));
    to[U::bytes + 2] = static_cast<std::uint8_t>(days >> 16U);
    if constexpr (extra != 0) store_le(to + U::bytes + 3, std::int16_t{0});
    return units * static_cast<std::uint64_t>(U::per_unit) == time;
  }
};

struct DateTime {
  static constexpr std::size_t width = 8;
  static bool put(const BulkWriter&, const ColumnView& view, std::size_t row, std::uint8_t* to) noexcept {
    return store_datetime(to, view.value<std::int64_t>(row));
  }
};

struct SmallDateTime {
  static constexpr std::size_t width = 4;
  static bool put(const BulkWriter&, const ColumnView& view, std::size_t row, std::uint8_t* to) noexcept {
    return store_smalldatetime(to, view.value<std::int64_t>(row));
  }
};

struct Guid {
  static constexpr std::size_t width = 16;
  static bool put(const BulkWriter&, const ColumnView& view, std::size_t row, std::uint8_t* to) noexcept {
    swap_guid(to, view.values + row * 16);
    return true;
  }
};

// A stretch without NULL whose rows all have one size.
template <class Form>
bool put_strided(const BulkWriter& self, const ColumnView& view, std::size_t row, std::size_t n, std::uint8_t* to,
                 std::size_t stride) {
  bool good = true;
  for (std::size_t i = 0; i < n; ++i, to += stride) {
    to[0] = static_cast<std::uint8_t>(Form::width);
    good &= Form::put(self, view, row + i, to + 1);
  }
  return good;
}

template <class Form>
bool put_indexed(const BulkWriter& self, const ColumnView& view, std::size_t row, std::size_t n, std::uint8_t** at) {
  bool good = true;
  if (view.validity == nullptr) {
    for (std::size_t i = 0; i < n; ++i) {
      at[i][0] = static_cast<std::uint8_t>(Form::width);
      good &= Form::put(self, view, row + i, at[i] + 1);
      at[i] += 1 + Form::width;
    }
    return good;
  }
  for (std::size_t i = 0; i < n; ++i) {
    const bool valid = view.valid(row + i);
    at[i][0] = valid ? static_cast<std::uint8_t>(Form::width) : 0;
    if (valid) good &= Form::put(self, view, row + i, at[i] + 1);
    at[i] += valid ? 1 + Form::width : 1;
  }
  return good;
}

template <class Form>
void bind(BulkWriter& writer) {
  writer.width = Form::width;
  writer.put = Form::put;
  writer.put_strided = put_strided<Form>;
  writer.put_indexed = put_indexed<Form>;
}

}  // namespace rowferry::tds::bulk
