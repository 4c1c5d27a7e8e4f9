// Conversions between types, with SQL Server's rules and errors ("Data type conversion" of the T-SQL reference).
#pragma once

#include <optional>

#include "sandbox/engine/errors.hpp"
#include "sandbox/engine/value.hpp"

namespace rowferry::sandbox::engine {

enum class Conversion : std::uint8_t {
  cast,    // CAST, CONVERT, comparisons: too long strings are cut
  assign,  // INSERT, UPDATE: too long strings throw Truncated, implicit rules
};

// A string or binary that does not fit its column; the caller knows the column's name (error 2628).
struct Truncated {
  std::u16string value;
};

Value convert(const Value& value, const Type& to, Conversion how = Conversion::cast, int style = 0);
// Nothing where convert() would throw an SqlError.
std::optional<Value> try_convert(const Value& value, const Type& to, int style = 0);

// As PRINT and string concatenation show it.
std::u16string text_of(const Value& value, int style = 0);
std::string guid_text(std::string_view wire_bytes);
std::optional<std::string> guid_bytes(std::string_view text);
std::string hex_text(std::string_view bytes);
std::string float_text(double value, bool single, int style);

// The decimal that holds every value of an exact numeric type.
Type as_decimal(const Type& t);
// The type that both sides of an operator or all branches of a CASE are brought to.
Type common_type(const Type& a, const Type& b);
// Brings both to their common type and compares; both not NULL. Uniqueidentifiers in SQL Server's order.
std::strong_ordering compare_values(const Value& a, const Value& b);
// Of two values of one type.
std::strong_ordering compare_same(const Value& a, const Value& b);
// Equal bytes for equal values of one type; for unique indexes, DISTINCT, GROUP BY and hash joins. NULL has its own.
void append_key(const Value& value, std::string& key);

}  // namespace rowferry::sandbox::engine
