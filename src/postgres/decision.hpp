// The decision how a table is loaded: pure, from what the catalogue says and the request asks. Made once for the plan,
// and again (from the catalogue as it then is) when the load begins; both must come to the same.
#pragma once

#include <string>
#include <vector>

#include "postgres/target_catalogue.hpp"

namespace rowferry::postgres {

// Everything about the target that a decision needs, as read at one time.
struct Situation {
  int server_version = 0;  // 150020
  TableFacts table;
  Rights rights;
  std::vector<Dependant> dependants;         // read where the table is to be rebuilt only
  bool empty = false;                        // of an existing table
  bool tablespace_usable = true;             // of load.tablespace
  std::string tablespace_why;                // why not
  std::optional<system::Finalizer> planned;  // when the load begins: what the plan has chosen stays
  bool made_by_us = false;  // begin: an earlier attempt of this transfer has run `create_target` already
};

struct StagingColumn {
  std::string name;
  std::string definition;  // "numeric(12,2) NOT NULL"
};

struct Decision {
  system::Finalizer finalizer = system::Finalizer::insert_select;
  std::string reason;
  bool creates = false;   // the table is missing
  bool rebuilds = false;  // the table exists and is replaced by its new definition
  enum class Clear : std::uint8_t { nothing, truncate, remove } clear = Clear::nothing;
  bool overriding = false;  // INSERT … OVERRIDING SYSTEM VALUE: identity columns keep the source's values
  bool freeze = false;      // COPY … FREEZE (direct, per_slice)
  bool unlogged = false;    // of what is created: staging, the table, partitions
  std::string tablespace;   // of what is created
  bool exchange = false;    // per_slice: a new table takes the place of the partition
  bool make_partitions =
      false;  // insert_select into a partitioned table: missing partitions are made before the INSERT
  std::vector<TriggerFacts> silenced_triggers;  // disabled within the finalize transaction, then as they were
  std::vector<StagingColumn> staging;           // columns of staging, or of a table that is created without it

  // Statements that make the missing table where staging does not become it: direct (within its transaction, behind the
  // ledger's key) and a partitioned table (per_slice: at begin, in a transaction of its own; else by
  // finalize_statements()).
  std::vector<std::string> create_target;
  std::vector<std::string> key;          // primary key of a table that is created or rebuilt; empty: none
  std::string key_name;                  // final name; empty: the server's choice
  std::vector<std::string> before_swap;  // statements of a rebuild, before the old table goes
  std::vector<std::string> after_swap;   // and after the new one has its name: identity, owner, grants
  std::vector<std::string> dropped;
  std::vector<system::Notice> notices;
};

// Throws Error(unsupported, "not_a_table" / "table_kind") for an object that takes no rows.
void check_kind(const TableFacts& table);

// True when the mode and columns ask for a definition that the existing table does not have.
bool needs_rebuild(const TableFacts& table, const system::TargetRequest& request,
                   const std::vector<system::ColumnPlan>& columns);

// Throws Error(unsupported, "not_a_table" / "table_kind" / "exchange_needs_partitions" / …), Error(conflict,
// "target_exists" / "dependants" / "partitioned_differently"), Error(not_found, "table_missing"), Error(forbidden,
// "right_missing"), Error(input, "commit_slice_needs_partition" / "tablespace_missing" / "name_too_long" /
// "names_collide" / "too_many_columns" / "key_impossible" / …).
Decision decide(const Situation& situation, const system::TargetRequest& request,
                const std::vector<system::ColumnPlan>& columns, const std::vector<std::string>& source_key);

// CREATE [UNLOGGED] TABLE of the staging table.
std::string create_staging(const Decision& decision, const std::string& schema, const std::string& staging);
// `table` is SQL: COPY table (columns) FROM STDIN (FORMAT binary[, FREEZE]). `format` is CopyEncoder::format().
std::string copy_statement(const std::string& table, const std::vector<system::ColumnPlan>& columns,
                           std::string_view format, bool freeze);

// The statements of the finalize transaction between the ledger's key and COMMIT, in order. `staging` is the bare name.
// direct and per_slice have none.
struct FinalizeStatement {
  enum class Kind : std::uint8_t {
    plain,
    insert,      // its count of rows must be the staged rows
    count,       // SELECT … AS rows_now: the target's rows
    partitions,  // no SQL: make_partitions() of partitions.hpp
    swap,        // takes ACCESS EXCLUSIVE on a table that others use: see `swap_retries`
  };
  Kind kind = Kind::plain;
  std::string sql;
};
std::vector<FinalizeStatement> finalize_statements(const Decision& decision, const TableFacts& table,
                                                   const std::string& staging,
                                                   const std::vector<system::ColumnPlan>& columns,
                                                   const system::TargetRequest& request);

// Sets each sequence past the highest value of its column, and never back: repeatable. One statement a column, of the
// table as it is now (read again after a rename). Only columns that were loaded.
std::vector<std::string> sequence_statements(const TableFacts& table, const std::vector<system::ColumnPlan>& columns);

// One slice with Finalizer::per_slice, after the ledger's key (attempt 0, step: slice_step()).
struct SliceStatements {
  std::vector<std::string> before;  // TRUNCATE the partition, or CREATE TABLE
  std::string table;                // SQL: what COPY fills
  std::vector<std::string> build;   // after COPY: keys and indexes of a created table, which lock nothing of others
  // DETACH, ATTACH, …: run as one, under lock_timeout, behind a SAVEPOINT; on 55P03 roll back to it, pause, try again,
  // at most limits::pg_swap_tries_max times: the COPY is not lost to a busy table.
  std::vector<std::string> swap;
  std::string partition;  // SQL: the name that has the rows in the end
};

}  // namespace rowferry::postgres
