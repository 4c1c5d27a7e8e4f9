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

// A serial column of a table that is rebuilt: its sequence goes with the new table.
struct OwnedSequence {
  std::string sequence;  // SQL
  std::string column;
};

struct Decision {
  system::Finalizer finalizer = system::Finalizer::insert_select;
  std::string reason;
  bool creates = false;   // the table is missing
  bool rebuilds = false;  // the table exists and is replaced by its new definition
  enum class Clear : std::uint8_t { nothing, truncate, remove } clear = Clear::nothing;
  bool overriding = false;        // INSERT … OVERRIDING SYSTEM VALUE: identity columns keep the source's values
  bool freeze = false;            // COPY … FREEZE (direct, per_slice)
  bool unlogged = false;          // of what is created: staging, the table, partitions
  std::string tablespace;         // of what is created
  bool exchange = false;          // per_slice: a new table takes the place of the partition
  bool quiet_partitions = false;  // per_slice: a partition's triggers do not fire while it is filled
  bool make_partitions =
      false;  // insert_select into a partitioned table: missing partitions are made before the INSERT
  std::vector<TriggerFacts> silenced_triggers;  // disabled within the finalize transaction, then as they were
  std::vector<StagingColumn> staging;           // columns of staging, or of a table that is created without it
  std::vector<std::string> staging_checks;      // exchange: constraints that the partition's place asks for

  // Statements that make the missing table where staging does not become it. direct: within its transaction (see
  // direct_statements()); per_slice: at begin, in a transaction of its own, before any slice; else they are the first
  // of finalize_statements().
  std::vector<std::string> create_target;
  std::string key;       // "PRIMARY KEY (\"id\")" of a table that is created or rebuilt; empty: none, or made already
  std::string key_name;  // its final name; empty: the server's choice
  std::string owner;     // SQL; of a table that takes another's place; empty: stays the role's
  std::vector<OwnedSequence> sequences;
  std::vector<std::string> drops;       // statements that drop what depends on a rebuilt table
  std::vector<std::string> after_swap;  // once the new table has its name: identity, grants
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

// Before what fires triggers, to the end of its transaction: the functions of others may look for names without a
// schema, as they do in any session of the role.
inline constexpr std::string_view own_search_path = "SET LOCAL search_path TO DEFAULT";

// CREATE [UNLOGGED] TABLE of the staging table.
std::string create_staging(const Decision& decision, const std::string& schema, const std::string& staging);
// `table` is SQL: COPY table (columns) FROM STDIN (FORMAT binary[, FREEZE]). `format` is CopyEncoder::format().
std::string copy_statement(const std::string& table, const std::vector<system::ColumnPlan>& columns,
                           std::string_view format, bool freeze);

// direct: what its transaction does between the ledger's key and the first COPY: CREATE TABLE, or TRUNCATE.
std::vector<std::string> direct_statements(const Decision& decision, const TableFacts& table);

// The statements of the finalize transaction between the ledger's key and COMMIT, in order (direct: between the last
// COPY and COMMIT). `staging` is the bare name. per_slice: none, see vanished_partitions() of partitions.hpp.
struct FinalizeStatement {
  enum class Kind : std::uint8_t {
    plain,
    insert,      // its count of rows must be the staged rows
    count,       // SELECT … AS rows_now: the target's rows
    partitions,  // no SQL: make_partitions() of partitions.hpp
    // Several statements in one text that take ACCESS EXCLUSIVE on what others use: run as one, under lock_timeout,
    // behind a SAVEPOINT; on 55P03 and 40P01 roll back to it, pause, try again, at most limits::pg_swap_tries_max
    // times.
    swap,
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

// The parts of CREATE TABLE that make a table which can take a partition's place: every column of the table but its
// identity, and its checks. By itself, not by LIKE, which would keep a lock on the table to the end of the transaction.
struct CloneParts {
  std::vector<StagingColumn> columns;
  std::vector<std::string> checks;  // "CONSTRAINT positive CHECK (total > 0)"
};
CloneParts clone_parts(const TableFacts& table);
// Its keys, indexes and foreign keys, to be made when it is filled; ATTACH finds them and makes none of its own.
// `clone` is SQL. With a prefix the indexes are named <prefix>_1, …; else as the server chooses.
std::vector<std::string> clone_index_statements(const TableFacts& table, const std::string& clone,
                                                const std::string& prefix);
// Then gives those of a prefix their final names, in the order of the table's valid indexes.
std::vector<std::string> rename_index_statements(const TableFacts& table, const std::string& prefix,
                                                 const std::vector<std::string>& names);
// CREATE [UNLOGGED] TABLE … [TABLESPACE …]; `table` is SQL.
std::string create_table(const Decision& decision, const std::string& table, const std::vector<StagingColumn>& columns,
                         const std::vector<std::string>& constraints);
// "ALTER TABLE t DISABLE TRIGGER x", and back to what it was.
std::string silence_statement(const std::string& table, const TriggerFacts& trigger);
std::string unsilence_statement(const std::string& table, const TriggerFacts& trigger);
// "GRANT SELECT ON TABLE t TO reader" of an element of TableFacts::grants.
std::string grant_statement(const std::string& grant, const std::string& table);

}  // namespace rowferry::postgres
