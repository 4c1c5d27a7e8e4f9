// T-SQL's ways to write names and texts. Names are never case-folded, nothing of a spec reaches SQL unquoted.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "system/common.hpp"

namespace rowferry::mssql {

inline constexpr std::size_t name_units_max = 128;  // sysname

// N'…' with ' doubled.
std::string literal(std::string_view utf8);
// [name] with ] doubled; Error(input, "bad_name") for an empty one, U+0000 in it, or more than 128 UTF-16 units.
std::string quoted(std::string_view name);
// [schema].[table]
std::string quoted(std::string_view schema, std::string_view table);
// [a], [b], [c]
std::string quoted_list(const std::vector<std::string>& names);

// Splits "t", "schema.t", "database.schema.t", "database..t" by T-SQL's quoting: [a]]b], "a""b", or a bare word.
// The middle part of three may be empty: the default schema. Error(input, "bad_name") with the position.
system::TableName parse_table(std::string_view text);

}  // namespace rowferry::mssql
