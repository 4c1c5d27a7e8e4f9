// TDS data types and column metadata (MS-TDS 2.2.5.4 to 2.2.5.6, 2.2.7.4), shared by client and sandbox.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rowferry::tds {

enum class DataType : std::uint8_t {
  null = 0x1F,
  int1 = 0x30,
  bit = 0x32,
  int2 = 0x34,
  int4 = 0x38,
  datetim4 = 0x3A,
  flt4 = 0x3B,
  money = 0x3C,
  datetime = 0x3D,
  flt8 = 0x3E,
  money4 = 0x7A,
  int8 = 0x7F,
  guid = 0x24,
  intn = 0x26,
  date = 0x28,
  time = 0x29,
  datetime2 = 0x2A,
  datetimeoffset = 0x2B,
  decimal_legacy = 0x37,
  numeric_legacy = 0x3F,
  bitn = 0x68,
  decimaln = 0x6A,
  numericn = 0x6C,
  fltn = 0x6D,
  moneyn = 0x6E,
  datetimn = 0x6F,
  char_legacy = 0x2F,
  varchar_legacy = 0x27,
  binary_legacy = 0x2D,
  varbinary_legacy = 0x25,
  bigvarbinary = 0xA5,
  bigvarchar = 0xA7,
  bigbinary = 0xAD,
  bigchar = 0xAF,
  nvarchar = 0xE7,
  nchar = 0xEF,
  xml = 0xF1,
  udt = 0xF0,
  tvp = 0xF3,
  json = 0xF4,
  vector = 0xF5,
  text = 0x23,
  image = 0x22,
  ntext = 0x63,
  sql_variant = 0x62,
};

// MS-TDS 2.2.5.1.2. Bits of `info`: 0-19 LCID, 20 ignore case, 21 accent, 22 width, 23 kana, 24 BIN, 25 BIN2, 26 UTF-8,
// 28-31 version.
struct Collation {
  std::uint32_t info = 0;
  std::uint8_t sort_id = 0;
  bool utf8() const noexcept { return ((info >> 26U) & 1U) != 0; }
  bool operator==(const Collation&) const = default;
};

inline constexpr std::uint32_t max_length_plp = 0xFFFF;  // TypeInfo::max_length of (MAX) types

struct TypeInfo {
  DataType id = DataType::null;
  std::uint32_t max_length = 0;     // bytes; max_length_plp for varchar(max), nvarchar(max), varbinary(max)
  std::uint8_t precision = 0;       // decimal
  std::uint8_t scale = 0;           // decimal, time, datetime2, datetimeoffset
  Collation collation;              // char types
  std::uint8_t dimension_type = 0;  // vector
  std::vector<std::string> names;   // xml: database, owner, collection; udt: database, schema, type, assembly
  bool plp() const noexcept {
    return id == DataType::xml || id == DataType::udt || id == DataType::json ||
           ((id == DataType::bigvarchar || id == DataType::nvarchar || id == DataType::bigvarbinary) &&
            max_length == max_length_plp);
  }
  bool operator==(const TypeInfo&) const = default;
};

// COLMETADATA flags (MS-TDS 2.2.7.4)
enum ColumnFlag : std::uint16_t {
  flag_nullable = 0x0001,
  flag_case_sensitive = 0x0002,
  flag_updatable = 0x0004,
  flag_updatable_unknown = 0x0008,
  flag_identity = 0x0010,
  flag_computed = 0x0020,
  flag_sparse_column_set = 0x0400,
  flag_encrypted = 0x0800,
  flag_hidden = 0x2000,
  flag_key = 0x4000,
  flag_nullability_unknown = 0x8000,
};

struct ColumnMeta {
  std::uint32_t user_type = 0;  // 0x50 = rowversion
  std::uint16_t flags = 0;
  TypeInfo type;
  std::vector<std::string> table;  // text, ntext, image only: parts of the table's name
  std::string name;                // UTF-8
  bool nullable() const noexcept { return (flags & flag_nullable) != 0; }
  bool operator==(const ColumnMeta&) const = default;
};

// Where one row lies in a block of bytes, without its token byte.
struct RowSpan {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};

}  // namespace rowferry::tds
