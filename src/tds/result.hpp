// Results of catalogue queries and other small requests, as plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "rows/batch.hpp"
#include "tds/wire/types.hpp"

namespace rowferry::tds {

// A message of the server below an error (PRINT, warnings, "Changed database context").
struct ServerMessage {
  std::int32_t number = 0;
  int severity = 0;
  int state = 0;
  std::string text;
};

// A small value, for catalogue queries. Integers and bits: int64; real, float: double; binary: bytes; all else: text as
// SQL Server prints it in ISO form ("2024-02-29 12:34:56.789", "12.50", lower-case uuid).
class Value {
 public:
  using Bytes = std::vector<std::uint8_t>;
  std::variant<std::monostate, std::int64_t, double, std::string, Bytes> value;

  bool is_null() const noexcept { return value.index() == 0; }
  // Each throws Error(internal, "unexpected_value") when the value is NULL or of another kind.
  std::int64_t integer() const;
  double number() const;  // an integer too
  const std::string& text() const;
  const Bytes& bytes() const;
  bool truth() const { return integer() != 0; }
  // What a NULL gives instead.
  std::int64_t integer_or(std::int64_t absent) const { return is_null() ? absent : integer(); }
  std::string text_or(std::string_view absent) const { return is_null() ? std::string(absent) : text(); }
};

struct ResultSet {
  std::vector<ColumnMeta> columns;
  std::vector<std::vector<Value>> rows;
  // Position of a column by its exact name; Error(internal, "no_such_column").
  std::size_t column(std::string_view name) const;
  const Value& at(std::size_t row, std::string_view name) const { return rows.at(row).at(column(name)); }
};

struct QueryResult {
  std::vector<ResultSet> sets;
  std::vector<ServerMessage> messages;
  std::uint64_t affected = 0;  // the last row count that the server reported outside of a result set
  std::optional<std::int32_t> return_status;
  // The first row of the first set; Error(internal, "no_rows").
  const Value& scalar(std::string_view name) const;
  const Value& scalar() const;  // its first column
};

// The value of a Batch's column as a Value.
Value value_of(const rows::Type& type, const rows::ColumnView& column, std::size_t row);

}  // namespace rowferry::tds
