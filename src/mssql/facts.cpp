// What can be told from a catalogue that was read.
#include <fmt/format.h>

#include <algorithm>

#include "mssql/catalogue.hpp"
#include "mssql/dialect.hpp"

namespace rowferry::mssql {

system::Server ServerFacts::server() const {
  if (sandbox) return {"rowferry sandbox", version};
  if (banner.find("Babelfish") != std::string::npos) return {"Babelfish for PostgreSQL", version};
  constexpr int azure_database = 5;
  constexpr int managed_instance = 8;
  if (engine == azure_database) return {"Azure SQL Database", version};
  if (engine == managed_instance) return {"Azure SQL Managed Instance", version};
  return {"Microsoft SQL Server", version};
}

std::string ColumnFacts::why_not_insertable() const {
  if (computed) return "computed";
  if (rowversion) return "rowversion";
  if (period) return "a period column";
  return column_set ? "a column set" : "";
}

std::string TableFacts::quoted_name() const { return quoted(schema, name); }

const ColumnFacts* TableFacts::column(std::string_view column_name) const noexcept {
  const auto at = std::ranges::find(columns, column_name, &ColumnFacts::name);
  return at == columns.end() ? nullptr : &*at;
}
const ColumnFacts* TableFacts::identity_column() const noexcept {
  const auto at = std::ranges::find(columns, true, &ColumnFacts::identity);
  return at == columns.end() ? nullptr : &*at;
}
const IndexFacts* TableFacts::primary_key() const noexcept {
  const auto at = std::ranges::find(indexes, true, &IndexFacts::primary);
  return at == indexes.end() ? nullptr : &*at;
}
bool TableFacts::heap() const noexcept {
  return std::ranges::none_of(indexes, [](const IndexFacts& index) { return index.id == 1; });
}
bool TableFacts::has_indexes() const noexcept {
  return std::ranges::any_of(indexes, [](const IndexFacts& index) { return index.id != 0; });
}
bool TableFacts::columnstore() const noexcept {
  constexpr int clustered_columnstore = 5;
  return std::ranges::any_of(indexes, [](const IndexFacts& index) { return index.type == clustered_columnstore; });
}

std::string TableFacts::definition() const {
  std::string out = fmt::format("{} {}\n", exists ? kind : "-", quoted_name());
  for (const ColumnFacts& c : columns) {
    out += fmt::format("{} {} {} {}{}{}{}{}\n", quoted(c.name), c.native, c.collation, c.nullable ? "null" : "not null",
                       c.identity ? " identity" : "", c.insertable() ? "" : " ", c.why_not_insertable(),
                       c.has_default ? " default" : "");
  }
  for (const IndexFacts& index : indexes) {
    out += fmt::format("index {} {} {}{} ({})\n", index.id, index.name, index.unique ? "unique" : "",
                       index.ignores_duplicates ? " ignore_dup_key" : "", fmt::join(index.key, ", "));
  }
  for (const ConstraintFacts& c : checks) out += fmt::format("check {}{}\n", c.name, c.disabled ? " disabled" : "");
  for (const ConstraintFacts& c : foreign_keys) out += fmt::format("key {}{}\n", c.name, c.disabled ? " disabled" : "");
  for (const std::string& reference : referenced_by) out += "referenced by " + reference + '\n';
  for (const TriggerFacts& t : triggers) out += fmt::format("trigger {}{}\n", t.name, t.disabled ? " disabled" : "");
  return out;
}

}  // namespace rowferry::mssql
