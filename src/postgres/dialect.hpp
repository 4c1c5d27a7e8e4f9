// PostgreSQL's quoting. Nothing of a spec reaches SQL but through these (`where` and `query` are SQL by contract).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "system/common.hpp"

namespace rowferry::postgres {

// "a""b". Throws Error(input, "bad_name") for an empty name or one with U+0000.
std::string quote_name(std::string_view name);
// 'it''s', as E'' where it has backslashes: right under both settings of standard_conforming_strings.
std::string quote_text(std::string_view text);
// "schema"."table"
std::string quote_table(const system::TableName& table);
// Splits schema.table by PostgreSQL's quoting, without folding case. Error(input, "bad_name") with the position.
system::TableName parse_table(std::string_view text);

}  // namespace rowferry::postgres
