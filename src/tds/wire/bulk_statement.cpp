// The INSERT BULK statement (MS-TDS 2.2.6.1; the grammar is in Microsoft's documentation of the bulk protocol).
#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "tds/wire/bulk_encoder.hpp"
#include "tds/wire/type_info.hpp"

namespace rowferry::tds {

namespace {

void add(std::string& list, std::string_view option) {
  if (!list.empty()) list += ", ";
  list += option;
}

// Collation names are plain words; anything else is not one, and must not reach the statement.
void add_collation(std::string& text, const std::string& name) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  if (!std::all_of(name.begin(), name.end(), plain)) {
    throw Error(Category::input, "bad_name", fmt::format("\"{}\" is no name of a collation", name));
  }
  text += " COLLATE " + name;
}

std::string column_list(const std::vector<BulkColumn>& columns) {
  std::string list;
  for (const BulkColumn& column : columns) {
    add(list, quote_name(column.meta.name));
    list += ' ';
    list += column.declared.empty() ? type_name(column.meta.type) : column.declared;
    if (!column.collation.empty()) add_collation(list, column.collation);
  }
  return list;
}

std::string order_list(const std::vector<BulkOrder>& order) {
  std::string list;
  for (const BulkOrder& by : order) add(list, quote_name(by.column) + (by.descending ? " DESC" : " ASC"));
  return list;
}

}  // namespace

std::string quote_name(std::string_view name) {
  if (name.empty()) throw Error(Category::input, "bad_name", "a name is empty");
  std::string quoted = "[";
  for (const char c : name) {
    quoted += c;
    if (c == ']') quoted += ']';
  }
  quoted += ']';
  return quoted;
}

std::string quote_names(const std::vector<std::string>& parts) {
  if (parts.empty()) throw Error(Category::input, "bad_name", "a name is empty");
  std::string quoted;
  for (const std::string& part : parts) {
    if (!quoted.empty()) quoted += '.';
    quoted += quote_name(part);
  }
  return quoted;
}

std::string insert_bulk_statement(const std::vector<std::string>& table, const std::vector<BulkColumn>& columns,
                                  const BulkOptions& options) {
  if (columns.empty()) throw Error(Category::input, "no_columns", "a bulk load needs at least one column");
  std::string with;
  if (options.table_lock) add(with, "TABLOCK");
  if (options.check_constraints) add(with, "CHECK_CONSTRAINTS");
  if (options.fire_triggers) add(with, "FIRE_TRIGGERS");
  if (options.keep_nulls) add(with, "KEEP_NULLS");
  if (options.kilobytes_per_batch) add(with, fmt::format("KILOBYTES_PER_BATCH = {}", *options.kilobytes_per_batch));
  if (options.rows_per_batch) add(with, fmt::format("ROWS_PER_BATCH = {}", *options.rows_per_batch));
  if (!options.order.empty()) add(with, fmt::format("ORDER ({})", order_list(options.order)));
  std::string text = fmt::format("INSERT BULK {} ({})", quote_names(table), column_list(columns));
  if (!with.empty()) text += fmt::format(" WITH ({})", with);
  return text;
}

}  // namespace rowferry::tds
