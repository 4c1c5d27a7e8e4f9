// A value of an expression, and its two forms: decoded here, encoded in rows (MS-TDS 2.2.5.5).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/bytes.hpp"
#include "sandbox/engine/arithmetic.hpp"
#include "sandbox/engine/types.hpp"

namespace rowferry::sandbox::engine {

// Which member holds the value depends on type.kind. datetimeoffset: days and ticks are UTC. datetime's 1/300 s are
// kept as the nearest 100 ns, from which they come back exactly.
struct Value {
  Type type;
  bool null = true;
  Int128 number = 0;        // bit, integers; money in 1/10000; decimals unscaled
  double real = 0;          // real, float
  std::int32_t days = 0;    // since 0001-01-01
  std::int64_t ticks = 0;   // 100 ns since midnight
  std::int16_t offset = 0;  // minutes
  std::u16string text;      // strings, xml, json
  std::string bytes;        // binaries, uniqueidentifier (wire order), sql_variant (inner bytes), udt, vector

  static Value of_null(const Type& type);
  static Value of_int(std::int64_t v, Kind kind = Kind::integer);
  static Value of_bit(bool v) { return of_int(v ? 1 : 0, Kind::bit); }
  static Value of_text(std::u16string text, const Type& type);
  static Value of_text(std::string_view utf8, const Type& type);
  static Value of_name(std::string_view utf8);  // a sysname in the default collation
  static Value of_bytes(std::string bytes, const Type& type);
};

inline constexpr std::int32_t days_1900 = 693'595;  // 1900-01-01
inline constexpr std::int32_t days_1753 = 639'905;
inline constexpr std::int32_t days_max = 3'652'058;  // 9999-12-31
inline constexpr std::int64_t ticks_per_second = 10'000'000;
inline constexpr std::int64_t ticks_per_day = 86'400 * ticks_per_second;

// Appends the value in the framing of `info`; value.type must be what `info` says (convert first).
void encode_value(const Value& value, const tds::TypeInfo& info, ByteBuffer& out);
// The value that starts at `at`; `type` is what `info` says.
Value decode_value(const Type& type, const tds::TypeInfo& info, const std::uint8_t* at);
// Of bit and the integer types, `size` bytes without framing; one byte is unsigned.
Int128 stored_integer(const std::uint8_t* at, std::size_t size);

// The bytes of a value without framing; for PLP and text the joined chunks.
std::string value_bytes(const tds::TypeInfo& info, Framing framing, const std::uint8_t* at);
void put_plp(std::string_view bytes, ByteBuffer& out);

// Of a sql_variant's inner bytes: the value inside.
Value variant_content(std::string_view inner);
// The inner bytes that hold this value.
std::string variant_inner(const Value& value);

// datetime's own unit
std::int64_t ticks_from_300ths(std::uint32_t v);
std::uint32_t ticks_to_300ths(std::int64_t ticks);

std::u16string widen(std::string_view utf8);    // malformed bytes become U+FFFD; surrogates as three bytes stay
std::string narrow(std::u16string_view utf16);  // unpaired surrogates become three bytes

}  // namespace rowferry::sandbox::engine
