// Logical types: Arrow's plus what databases need. A Type says how values lie in a Batch and what the column can hold.
//
// Layout in a Batch (Arrow columnar format): boolean = bits; integers, floats = native width; decimal = 16 bytes, two's
// complement, unscaled at `scale`; date = int32 days since 1970-01-01; time = int64 since midnight in `unit`;
// timestamp = int64 since 1970-01-01 00:00 (UTC when `zoned`) in `unit`; uuid = 16 bytes in printed order;
// text, json = int32 offsets + UTF-8; binary = int32 offsets + bytes; null = no buffers.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

namespace rowferry::rows {

enum class TypeId : std::uint8_t {
  null,
  boolean,
  int8,
  int16,
  int32,
  int64,
  uint8,
  uint16,
  uint32,
  uint64,
  float32,
  float64,
  decimal,
  date,
  time,
  timestamp,
  uuid,
  text,
  json,
  binary,
};

enum class TimeUnit : std::uint8_t { micro, hundred_nano };
// How a temporal column rounds what it holds, beyond its digits.
enum class Quantum : std::uint8_t {
  none,
  tick_300,  // SQL Server datetime: 1/300 s, held as the millisecond it prints (.000 .003 .007)
  minute,    // SQL Server smalldatetime
};
enum class LengthUnit : std::uint8_t { code_points, utf16_units, bytes };

struct Type {
  TypeId id = TypeId::null;

  // decimal: 1 <= precision <= 38, 0 <= scale <= precision
  std::uint8_t precision = 0;
  std::uint8_t scale = 0;

  // time, timestamp
  TimeUnit unit = TimeUnit::micro;
  std::uint8_t digits = 6;  // fractional digits that the column keeps, 0..7
  Quantum quantum = Quantum::none;
  bool zoned = false;

  // text, json, binary
  std::uint32_t length = 0;  // at most so many `length_unit`s; 0 = no limit
  LengthUnit length_unit = LengthUnit::code_points;
  bool padded = false;          // char(n), nchar(n), binary(n): the column pads to its length
  std::uint16_t code_page = 0;  // text must be encodable in it (1252, 932, …); 0 = all of Unicode
  bool no_nul = false;          // text, json: U+0000 cannot be stored (PostgreSQL)

  // float32, float64: NaN and infinities cannot be stored (SQL Server)
  bool finite = false;

  // date, time, timestamp: the column's range in the value's own unit, both ends included; decimal: of the unscaled
  // value where it is narrower than the precision's (smallmoney)
  std::int64_t min = std::numeric_limits<std::int64_t>::min();
  std::int64_t max = std::numeric_limits<std::int64_t>::max();

  bool operator==(const Type&) const = default;

  static Type of(TypeId id) {
    Type t;
    t.id = id;
    return t;
  }
  static Type decimal(int precision, int scale) {
    Type t = of(TypeId::decimal);
    t.precision = static_cast<std::uint8_t>(precision);
    t.scale = static_cast<std::uint8_t>(scale);
    return t;
  }
  static Type timestamp(TimeUnit unit, int digits, bool zoned) {
    Type t = of(TypeId::timestamp);
    t.unit = unit;
    t.digits = static_cast<std::uint8_t>(digits);
    t.zoned = zoned;
    return t;
  }
  static Type time(TimeUnit unit, int digits) {
    Type t = of(TypeId::time);
    t.unit = unit;
    t.digits = static_cast<std::uint8_t>(digits);
    return t;
  }
  static Type text(std::uint32_t length = 0, LengthUnit unit = LengthUnit::code_points) {
    Type t = of(TypeId::text);
    t.length = length;
    t.length_unit = unit;
    return t;
  }
  static Type binary(std::uint32_t length = 0) {
    Type t = of(TypeId::binary);
    t.length = length;
    t.length_unit = LengthUnit::bytes;
    return t;
  }
};

// Bytes of one value in a Batch; 0 for boolean (bits), variable-size types and null.
std::size_t fixed_width(TypeId id) noexcept;
inline bool is_variable(TypeId id) noexcept { return id == TypeId::text || id == TypeId::json || id == TypeId::binary; }
// "decimal(18,2)", "timestamp(6) with zone", "text(40 UTF-16 units)": for messages and plans.
std::string to_string(const Type& type);

}  // namespace rowferry::rows
