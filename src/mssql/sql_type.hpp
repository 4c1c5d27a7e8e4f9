// SQL Server's types: as DDL writes them, as rows::Type, and what a source's column becomes here (docs/types.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "rows/type.hpp"
#include "system/target.hpp"
#include "tds/wire/types.hpp"

namespace rowferry::mssql {

inline constexpr std::uint32_t length_unlimited = 0xFFFFFFFF;  // (max)

// A type as DDL writes it, with every default filled in.
struct SqlType {
  std::string name;          // "nvarchar": lower case, the system's name ("integer" becomes "int")
  std::uint32_t length = 0;  // char, varchar, nchar, nvarchar, binary, varbinary: n, or length_unlimited
  int precision = 0;         // decimal, numeric
  int scale = 0;             // decimal, numeric, time, datetime2, datetimeoffset
  std::string collation;     // of COLLATE; empty: the database's
  bool operator==(const SqlType&) const = default;
};

// "nvarchar(200)", "decimal(10, 2)", "double precision", "varchar(20) collate Latin1_General_BIN2". In any case, with
// blanks. Error(input, "bad_type") when it is no type or one that nothing can be loaded into.
SqlType parse_type(std::string_view text);
// "nvarchar(200)", without COLLATE.
std::string type_text(const SqlType& type);
// As a column definition has it: with COLLATE where one was named.
std::string type_ddl(const SqlType& type);
// `default_code_page`: of the database's collation; char and varchar without a COLLATE of their own are in it.
rows::Type logical_type(const SqlType& type, std::uint16_t default_code_page);
// The logical type of an existing column by the server's own metadata. Floats here are finite.
rows::Type logical_type(const tds::ColumnMeta& column);
// Bytes of the row's fixed part that a column of this type takes at least (the limit is 8060 for all together).
std::size_t fixed_row_bytes(const SqlType& type);

// The code page of char and varchar under a collation, by its name; 65001 UTF-8, 0 none. The plan checks it with the
// server.
std::uint16_t code_page_of(std::string_view collation);

// What a source column becomes in a created table, or by the spec's `type`.
system::NaturalType natural_type(const system::SourceColumn& column, std::string_view wanted_type, bool in_key,
                                 std::uint16_t default_code_page);

}  // namespace rowferry::mssql
