// The SQL that reads a table: expressions of columns, literals of bounds. Pure.
#pragma once

#include <optional>
#include <string>

#include "mssql/origin.hpp"
#include "tds/result.hpp"

namespace rowferry::mssql {

// What a column of the SELECT is: the column itself, its text, its bytes, or a part of it, named as the column is.
// Errors: Error(internal, "bad_plan") for a plan that the column cannot follow.
std::string column_expression(const OriginColumn& column, const system::ColumnPlan& plan);

// Characters of a type's printed form at most; 0: read_as_text is not for this type (it is text already, or converted
// here from its bytes); printed_unlimited: no limit.
inline constexpr std::uint32_t printed_unlimited = 0xFFFFFFFF;
std::uint32_t printed_width(const tds::TypeInfo& type);

// How values of a column can be told apart and put in order, for slices.
enum class Order : std::uint8_t {
  none,      // the server does not compare them, or they may be too long
  number,    // integers, decimal, money
  real,      // float: equal bits, not equal printed digits
  temporal,  // dates and times
  bit,
  text,  // by the column's collation
  binary,
  uuid,  // the server's own order
};
Order order_of(const OriginColumn& column);

// A literal of the column's own type, from a value that the server gave; nullopt where no literal can say it (text
// with U+0000). Nothing of it depends on the session's language.
std::optional<std::string> literal_of(const OriginColumn& column, const tds::Value& value);
// As rows/format.hpp prints it.
std::string printed(const OriginColumn& column, const tds::Value& value);
// 0x0A0B
std::string hex_literal(const std::vector<std::uint8_t>& bytes);

}  // namespace rowferry::mssql
