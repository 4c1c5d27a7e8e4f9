// Origin: what a source reads from, looked up in the catalogue: a table, a view, what a synonym stands for, or a query.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mssql/catalogue.hpp"
#include "system/source.hpp"

namespace rowferry::mssql {

// How a column's value comes to be what its logical type says.
enum class Reads : std::uint8_t {
  itself,
  spatial,    // geography, geometry: ToString(), or EWKB
  clr,        // hierarchyid and other CLR types: ToString(), or their bytes
  encrypted,  // Always Encrypted: not at all
};

struct OriginColumn {
  system::SourceColumn facts;
  tds::ColumnMeta meta;
  std::string collation;  // of character columns, where the catalogue names it
  Reads reads = Reads::itself;
  std::string why_not;     // not empty: cannot be read, with this reason
  bool on_demand = false;  // hidden period columns and column sets: only when named
};

struct Origin {
  ServerFacts server;
  ReadingFacts reading;
  std::optional<TableFacts> table;  // none: a query
  StorageFacts storage;
  std::vector<std::string> filters;  // security policies
  std::string from;                  // of FROM
  std::string where;                 // the user's, or empty
  std::vector<OriginColumn> columns;

  bool is_table() const noexcept { return table && table->kind == "U"; }
  // Error(not_found, "column_missing") naming the nearest.
  const OriginColumn& column(std::string_view name) const;
  // FROM with the user's condition and `predicate` (either may be empty).
  std::string filtered(std::string_view predicate = {}) const;
};

// The database that a request names; empty: the connection's.
std::string database_of(const system::TableName& table);

// What stands behind a synonym in another database: look there.
struct Elsewhere {
  system::TableName table;
};

// The columns that the request names (all that SELECT * shows where it names none) with their metadata. `elsewhere`
// is filled, and the rest is not, when the table is a synonym for one in another database. Errors: Error(not_found,
// "table_missing"), Error(unsupported, "not_readable" / "encrypted_column" / "type_unsupported"), Error(not_found,
// "column_missing"), and what the server says of a query.
async::Task<Origin> look_up(const Lease& lease, const system::SourceRequest& request,
                            std::optional<Elsewhere>* elsewhere);

// The columns of a description: in the table's order, those asked for.
std::vector<const OriginColumn*> chosen_columns(const Origin& origin, const std::vector<std::string>& asked);
std::vector<std::string> not_carried(const TableFacts& table, const StorageFacts& storage);
std::vector<system::Notice> notices_of(const Origin& origin, const std::vector<const OriginColumn*>& columns);

// One column by its catalogue facts, or by a query's metadata alone.
OriginColumn origin_column(const ColumnFacts& column, const TableFacts* table);

}  // namespace rowferry::mssql
