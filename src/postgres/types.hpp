// PostgreSQL's types as rows::Type and binary form (types.md, first table; pg_type.dat for the OIDs).
#pragma once

#include <libpq-fe.h>

#include <optional>
#include <string>

#include "postgres/wire/copy_decoder.hpp"
#include "system/source.hpp"

namespace rowferry::postgres {

// What the catalogue says of a column's type, domains resolved to their base.
struct TypeFacts {
  Oid oid = 0;
  int typmod = -1;
  char kind = 'b';     // typtype: b base, c composite, d domain, e enum, p pseudo, r range, m multirange
  bool array = false;  // a true array (typcategory A)
  std::string name;    // typname
  std::string schema;
  std::string sql;       // for a cast, without length: format_type(oid, -1)
  std::string output;    // its output function, quoted and qualified
  bool is_text = false;  // binary coercible to text (citext)
  // The operators of its default operator class, qualified: by name alone, with an empty search_path, an extension's
  // type would be compared as something else (citext as text).
  std::string equal = "=";
  std::string less = "<";
  std::string at_least = ">=";
};

struct TypeMapping {
  rows::Type type;
  wire::Form form = wire::Form::bytes;
  bool text_only = false;
  bool any_decimal = false;
  bool rewritten = false;
  bool unknown = false;  // read as text with a notice
  std::optional<std::uint32_t> text_width;
};

TypeMapping map_type(const TypeFacts& facts, int money_scale);

// Precision and scale of a numeric's typmod; nullopt without one. Scale may be negative or above the precision.
struct NumericModifier {
  int precision;
  int scale;
};
std::optional<NumericModifier> numeric_modifier(int typmod) noexcept;

// How a value is written in the SELECT of the COPY. `column` is SQL (a quoted name).
std::string as_itself(const TypeFacts& facts, const std::string& column);
// As the server prints it: its output function, and not a cast, which for some types gives other text (inet, char(n),
// xml).
std::string as_text(const TypeFacts& facts, const std::string& column);
std::string as_json(const std::string& column);

}  // namespace rowferry::postgres
