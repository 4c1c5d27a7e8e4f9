// What a source's column becomes in a created table: docs/types.md, the tables with PostgreSQL on the right.
#pragma once

#include <string>
#include <string_view>

#include "postgres/types.hpp"
#include "system/target.hpp"

namespace rowferry::postgres {

// A type as a spec names it, of those that a created column can have.
struct NamedType {
  TypeFacts facts;
  std::string ddl;  // "numeric(12,2)", "varchar(20) COLLATE pg_catalog.\"C\""
};
// Error(input, "bad_type") for what is no type or has wrong arguments, Error(unsupported, "unloadable_type") for one
// that cannot be loaded.
NamedType parse_type(std::string_view text);

// `money_scale`: of the server's lc_monetary.
system::NaturalType natural_type(const system::SourceColumn& column, std::string_view wanted_type, int money_scale);

}  // namespace rowferry::postgres
