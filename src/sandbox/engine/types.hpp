// SQL types as the engine thinks of them, and their TDS forms (MS-TDS 2.2.5.4 to 2.2.5.6).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tds/wire/types.hpp"

namespace rowferry::sandbox::engine {

// In the order of SQL Server's data type precedence, lowest first ("Data type precedence" of the T-SQL reference).
enum class Kind : std::uint8_t {
  binary,
  varbinary,
  character,
  varchar,
  nchar,
  nvarchar,
  guid,
  rowversion,
  image,
  text,
  ntext,
  bit,
  tinyint,
  smallint,
  integer,
  bigint,
  smallmoney,
  money,
  decimal,
  numeric,
  real,
  float8,
  time,
  date,
  smalldatetime,
  datetime,
  datetime2,
  datetimeoffset,
  xml,
  json,
  vector,
  udt,
  variant,
};

inline constexpr std::int32_t max_length = -1;  // Type::length of (max)

struct Type {
  Kind kind = Kind::integer;
  std::int32_t length = 0;  // n-types: UTF-16 units; other strings and binaries: bytes; max_length
  std::uint8_t precision = 0;
  std::uint8_t scale = 0;  // decimals; time, datetime2, datetimeoffset
  tds::Collation collation;
  bool operator==(const Type&) const = default;
};

inline bool is_integer(Kind k) { return k >= Kind::bit && k <= Kind::bigint; }
inline bool is_money(Kind k) { return k == Kind::smallmoney || k == Kind::money; }
inline bool is_decimal(Kind k) { return k == Kind::decimal || k == Kind::numeric; }
inline bool is_float(Kind k) { return k == Kind::real || k == Kind::float8; }
inline bool is_number(Kind k) { return k >= Kind::bit && k <= Kind::float8; }
inline bool is_exact(Kind k) { return k >= Kind::bit && k <= Kind::numeric; }
inline bool is_unicode(Kind k) {
  return k == Kind::nchar || k == Kind::nvarchar || k == Kind::ntext || k == Kind::xml || k == Kind::json;
}
inline bool is_string(Kind k) { return k == Kind::character || k == Kind::varchar || k == Kind::text || is_unicode(k); }
inline bool is_code_page_string(Kind k) { return k == Kind::character || k == Kind::varchar || k == Kind::text; }
inline bool is_binary(Kind k) {
  return k == Kind::binary || k == Kind::varbinary || k == Kind::image || k == Kind::rowversion || k == Kind::udt;
}
inline bool is_temporal(Kind k) { return k >= Kind::time && k <= Kind::datetimeoffset; }
// text, ntext, image, xml: no comparison, no key.
inline bool is_lob(Kind k) { return k == Kind::text || k == Kind::ntext || k == Kind::image || k == Kind::xml; }

Type make_type(Kind kind, std::int32_t length = 0, std::uint8_t precision = 0, std::uint8_t scale = 0);
inline Type int_type() { return make_type(Kind::integer); }
inline Type bit_type() { return make_type(Kind::bit); }
inline Type bigint_type() { return make_type(Kind::bigint); }
Type decimal_type(int precision, int scale);
Type nvarchar_type(std::int32_t length, const tds::Collation& collation);
Type varchar_type(std::int32_t length, const tds::Collation& collation);
inline Type sysname_type(const tds::Collation& collation) { return nvarchar_type(128, collation); }

// The nullable wire form, which is also the stored form (every value says itself whether it is NULL).
tds::TypeInfo stored_form(const Type& type);
// The form a server sends for a column: fixed-length ids where no NULL can stand.
tds::TypeInfo sent_form(const Type& type, bool nullable);
// Nothing for types that the engine does not know (legacy, TVP).
std::optional<Type> from_wire(const tds::TypeInfo& info);

// "decimal(10,2)", "nvarchar(max)", as sys.dm_exec_describe_first_result_set prints a type.
std::string type_text(const Type& type);
std::string_view type_name(Kind kind);                         // "nvarchar"
std::optional<Kind> kind_by_name(std::string_view lowercase);  // also synonyms: integer, dec, rowversion, character, …

// sys.columns' numbers.
int system_type_id(Kind kind);
std::int16_t catalogue_length(const Type& type);  // bytes, -1 for max, 16 for text types
std::uint8_t catalogue_precision(const Type& type);
std::uint8_t catalogue_scale(const Type& type);
// Bytes of the largest value in a key or a row (8000 for max).
inline int decimal_bytes(int precision) { return precision <= 9 ? 5 : precision <= 19 ? 9 : precision <= 28 ? 13 : 17; }
inline int time_bytes(int scale) { return scale <= 2 ? 3 : scale <= 4 ? 4 : 5; }

// How a value stands in a row (MS-TDS 2.2.5.2).
enum class Framing : std::uint8_t { fixed, length8, length16, length32, plp, text_pointer };
Framing framing_of(const tds::TypeInfo& info);
std::size_t fixed_size(tds::DataType id);  // of Framing::fixed
// Bytes of the value that starts at `at`, whole framing included. The bytes have been checked.
std::size_t value_size(const tds::TypeInfo& info, Framing framing, const std::uint8_t* at);
bool value_is_null(Framing framing, const std::uint8_t* at);

}  // namespace rowferry::sandbox::engine
