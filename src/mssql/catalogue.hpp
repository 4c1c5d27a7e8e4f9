// What a server says of itself and of one table: read once for the plan, again before anything is written.
//
// Every query names one view and one object; a view or column that a server lacks (older versions, Azure, Babelfish,
// the sandbox) counts as "there is none of it".
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mssql/session_pool.hpp"
#include "mssql/sql_type.hpp"

namespace rowferry::mssql {

struct ServerFacts {
  std::string banner;   // @@VERSION
  std::string version;  // "16.0.4135.4"
  int engine = 0;       // SERVERPROPERTY('EngineEdition'): 5 Azure SQL Database, 8 Managed Instance, …
  bool sandbox = false;
  bool discards = false;  // the sandbox counts and hashes rows and keeps none
  std::string database;
  std::string default_schema;
  std::string login;
  std::string collation;  // of the database
  std::uint16_t code_page = 1252;
  system::Server server() const;  // product and version
};

struct ColumnFacts {
  std::string name;
  int id = 0;
  tds::ColumnMeta meta;   // as a result describes it
  std::string native;     // "nvarchar(40)", for DDL; alias types as their base
  std::string collation;  // empty: no character type
  bool nullable = true;
  bool identity = false;
  bool computed = false;
  bool rowversion = false;
  bool period = false;  // GENERATED ALWAYS
  bool encrypted = false;
  bool column_set = false;
  bool sparse = false;
  bool hidden = false;  // a period column that SELECT * does not show
  bool masked = false;  // dynamic data masking
  bool has_default = false;
  std::string declared;  // the type's name as the catalogue has it: "json", an alias type's own
  bool insertable() const noexcept { return !computed && !rowversion && !period && !column_set; }
  std::string why_not_insertable() const;
};

struct IndexFacts {
  std::string name;
  int id = 0;  // 0 heap, 1 clustered
  int type =
      0;  // 0 heap, 1 clustered, 2 nonclustered, 3 XML, 4 spatial, 5 clustered columnstore, 6 columnstore, 7 hash
  bool primary = false;
  bool unique = false;
  bool unique_constraint = false;
  bool ignores_duplicates = false;
  std::vector<std::string> key;  // quoted, with DESC where it is
  std::vector<std::string> key_names;
};

struct ConstraintFacts {
  std::string name;
  bool untrusted = false;
  bool disabled = false;
};

struct TriggerFacts {
  std::string name;
  bool disabled = false;
  bool instead_of = false;
};

struct TableFacts {
  bool exists = false;
  std::string schema;
  std::string name;  // as the catalogue has it, or as asked for
  std::int64_t object_id = 0;
  std::string kind = "U";  // sys.objects.type: U table, V view, SN synonym, …
  bool temporal = false;
  bool history = false;
  bool replicated = false;
  bool memory_optimized = false;
  bool external = false;
  std::vector<ColumnFacts> columns;
  std::vector<IndexFacts> indexes;
  std::vector<ConstraintFacts> checks;        // its own
  std::vector<ConstraintFacts> foreign_keys;  // its own
  std::vector<std::string> referenced_by;     // foreign keys of other tables: "[s].[t].[fk]"
  std::vector<std::string> drop_references;   // the statements that would drop them
  std::vector<TriggerFacts> triggers;
  std::vector<std::string> defaults;  // "DF_x (column)"
  std::string identity_seed;          // of the identity column, as text
  std::string identity_increment;
  std::string stands_for;  // synonym: the object it names, in the server's quoting

  std::string quoted_name() const;
  const ColumnFacts* column(std::string_view column_name) const noexcept;
  const ColumnFacts* identity_column() const noexcept;
  const IndexFacts* primary_key() const noexcept;
  bool heap() const noexcept;         // no clustered index
  bool has_indexes() const noexcept;  // any besides the heap
  bool columnstore() const noexcept;  // clustered
  // Everything that a load relies on, as one text: differs when somebody has changed the table.
  std::string definition() const;
};

// How a table's rows lie: for estimates and slices. None of it needs a special right.
struct StorageFacts {
  std::optional<std::uint64_t> rows;
  std::optional<std::uint64_t> bytes;  // of all pages in use
  std::string partition_function;      // empty: not partitioned
  std::string partition_column;
  std::vector<std::uint64_t> partition_rows;  // of partition 1, 2, …
};

// What of the database decides how its rows can be read.
struct ReadingFacts {
  bool snapshot_allowed = false;  // ALLOW_SNAPSHOT_ISOLATION is ON
  bool versioned_reads = false;   // READ_COMMITTED_SNAPSHOT is ON
};

// What hangs on a table that is to be replaced.
struct Dependant {
  std::string text;       // "foreign key [dbo].[lines].[fk_order]"
  std::string drop;       // the statement that removes it; empty: it goes with the table
  bool droppable = true;  // false: refused even with replace_dependants
};

struct Rights {
  // Nullopt: the server does not say.
  std::optional<bool> insert, select, alter, remove, create_table, alter_schema;
};

async::Task<ServerFacts> read_server(const Lease& lease);
// `schema` and `name` as the user wrote them; exists = false when there is no such object. Error(not_found,
// "schema_missing").
async::Task<TableFacts> read_table(const Lease& lease, std::string schema, std::string name);
// A table, view or synonym as something to read: `columns` (all where empty) get metadata, the others only their
// names; nothing that loading needs (identity's seed, foreign keys of others). exists and kind tell the rest.
async::Task<TableFacts> read_relation(const Lease& lease, std::string schema, std::string name,
                                      std::vector<std::string> columns);
async::Task<StorageFacts> read_storage(const Lease& lease, std::int64_t object_id);
async::Task<ReadingFacts> read_reading_facts(const Lease& lease);
// Security policies that filter what a reader sees of the table: "[s].[policy]".
async::Task<std::vector<std::string>> read_filters(const Lease& lease, std::int64_t object_id);
async::Task<std::vector<Dependant>> read_dependants(const Lease& lease, const TableFacts& table);
async::Task<Rights> read_rights(const Lease& lease, const TableFacts& table);
async::Task<bool> read_is_empty(const Lease& lease, const TableFacts& table);
// Nullopt: no such collation.
async::Task<std::optional<std::uint16_t>> read_code_page(const Lease& lease, std::string collation);
async::Task<bool> object_exists(const Lease& lease, std::string schema, std::string name);

// Columns of a table as the server describes them in a result, in the order asked for.
async::Task<std::vector<tds::ColumnMeta>> read_metadata(const Lease& lease, std::string quoted_table,
                                                        std::string column_list);

}  // namespace rowferry::mssql
