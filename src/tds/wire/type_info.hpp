// TYPE_INFO and COLMETADATA (MS-TDS 2.2.5.6, 2.2.7.4): how a column of a result or of a bulk load is described.
#pragma once

#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "tds/wire/types.hpp"

namespace rowferry::tds {

enum class Parsed : std::uint8_t { ok, need_more, malformed };

// Text behind a count of UTF-16 units, as UTF-8. On a short read the reader's failed() is set.
std::string read_b_varchar(ByteReader& from);
std::string read_us_varchar(ByteReader& from);
// Throws Error(input, "name_too_long") when the text has more units than the count can say.
void put_b_varchar(ByteBuffer& to, std::string_view utf8);
void put_us_varchar(ByteBuffer& to, std::string_view utf8);

// Where a column description stands: text, ntext and image name their table in different forms there.
enum class MetaPlace : std::uint8_t {
  result,     // server to client: parts u8, US_VARCHAR each
  bulk,       // client to server: one US_VARCHAR
  parameter,  // RETURNVALUE and RPC: no table name, a UDT without size and assembly
};

// Reads what follows (and includes) the type byte. need_more: the reader has failed() for want of bytes.
// malformed: `why` says what cannot be (a type that is not known, a length that the type does not have).
Parsed read_type_info(ByteReader& from, TypeInfo& into, MetaPlace place, std::string& why);
void put_type_info(ByteBuffer& to, const TypeInfo& type, MetaPlace place);

// One column: user type, flags, TYPE_INFO, table name, column name.
Parsed read_column(ByteReader& from, ColumnMeta& into, MetaPlace place, std::string& why);
void put_column(ByteBuffer& to, const ColumnMeta& column, MetaPlace place);

// A whole COLMETADATA token. read: `from` stands behind the token byte; a count of 0xFFFF (no metadata) gives no
// columns and `none` = true.
Parsed read_columns(ByteReader& from, std::vector<ColumnMeta>& into, bool& none, MetaPlace place, std::string& why);
void put_columns(ByteBuffer& to, const std::vector<ColumnMeta>& columns, MetaPlace place);

// How values of a type are framed in a row (MS-TDS 2.2.5.5).
enum class Framing : std::uint8_t {
  fixed,         // always there, fixed_bytes() long, never NULL
  byte_length,   // u8 length, 0 = NULL
  short_length,  // u16 length, 0xFFFF = NULL
  long_length,   // u32 length, 0 = NULL: sql_variant
  text_pointer,  // u8 pointer length (0 = NULL), pointer, timestamp, u32 length: text, ntext, image
  plp,           // u64 total or unknown, chunks
  none,          // the null type: nothing
};
Framing framing(const TypeInfo& type) noexcept;
// Of a type with Framing::fixed.
std::size_t fixed_bytes(DataType id) noexcept;
// "nvarchar(20)", "decimal(10,2)", "datetime2(7)": as in DDL, lower case.
std::string type_name(const TypeInfo& type);

}  // namespace rowferry::tds
