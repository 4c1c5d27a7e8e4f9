// The decision how a table is loaded: pure, from what the catalogue says and the request asks. Made once for the plan,
// and again (from the catalogue as it then is) when the load begins; both must come to the same.
#pragma once

#include <string>
#include <vector>

#include "mssql/catalogue.hpp"

namespace rowferry::mssql {

// Everything about the target that a decision needs, as read at one time.
struct Situation {
  ServerFacts server;
  TableFacts table;
  Rights rights;
  std::vector<Dependant> dependants;         // read where the table is to be rebuilt only
  bool empty = false;                        // of an existing table
  std::optional<system::Finalizer> planned;  // when the load begins: what the plan has chosen stays
};

struct StagingColumn {
  std::string name;
  std::string definition;  // "nvarchar(40) COLLATE Latin1_General_CI_AS NOT NULL"
};

struct Decision {
  system::Finalizer finalizer = system::Finalizer::insert_select;
  std::string reason;
  bool creates = false;   // the table is missing
  bool rebuilds = false;  // the table exists and is replaced by its new definition
  enum class Clear : std::uint8_t { nothing, truncate, remove } clear = Clear::nothing;
  bool identity_insert = false;                // the target's identity column is among the loaded ones
  bool table_lock_insert = false;              // INSERT … SELECT WITH (TABLOCK)
  bool table_lock_bulk = true;                 // INSERT BULK WITH (TABLOCK)
  std::vector<std::string> silenced_triggers;  // disabled within the finalize transaction, then enabled again
  std::vector<StagingColumn> staging;
  std::vector<std::string> before_swap;  // statements of a rebuild, before the rename
  std::vector<std::string> after_swap;   // and after it: the primary key
  std::vector<std::string> dropped;
  std::vector<system::Notice> notices;
};

// Throws Error(unsupported, "not_a_table" / "table_kind") for an object that takes no rows.
void check_kind(const TableFacts& table);

// True when the mode and columns ask for a definition that the existing table does not have.
bool needs_rebuild(const TableFacts& table, const system::TargetRequest& request,
                   const std::vector<system::ColumnPlan>& columns);

// Throws Error(unsupported, "not_a_table" / "table_kind"), Error(conflict, "target_exists" / "dependants"),
// Error(not_found, "table_missing"), Error(forbidden, "right_missing"), Error(input, "row_too_large" /
// "too_many_columns" / "key_impossible" / …).
Decision decide(const Situation& situation, const system::TargetRequest& request,
                const std::vector<system::ColumnPlan>& columns, const std::vector<std::string>& source_key);

// The statements of the finalize transaction between the ledger's key and COMMIT, in order. `staging` is the bare name.
struct FinalizeStatement {
  enum class Kind : std::uint8_t { plain, insert, count } kind = Kind::plain;
  std::string sql;
};
std::vector<FinalizeStatement> finalize_statements(const Decision& decision, const TableFacts& table,
                                                   const std::string& staging,
                                                   const std::vector<system::ColumnPlan>& columns, system::Mode mode);
// CREATE TABLE of the staging table.
std::string create_staging(const Decision& decision, const std::string& schema, const std::string& staging);

}  // namespace rowferry::mssql
