// What a server says of the table that is to be loaded: read once for the plan, again before anything is written.
//
// Every function runs in whatever transaction the session is in; parameters outlive the await. Texts marked SQL are
// quoted and qualified, ready for a statement.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "postgres/session.hpp"
#include "postgres/types.hpp"
#include "system/target.hpp"

namespace rowferry::postgres {

struct ColumnFacts {
  std::string name;
  TypeFacts type;              // domains resolved to their base
  std::string native;          // as format_type prints it, for DDL: "numeric(12,2)", a domain by its own name
  std::string collation;       // SQL; empty: the type's own
  bool nullable = true;        // a NOT NULL of the domain counts
  char identity = 0;           // 'a' always, 'd' by default, 0 none
  char generated = 0;          // 's' stored, 'v' virtual (18), 0 none
  std::string expression;      // SQL of the default, or of the generated value
  std::string sequence;        // SQL; of an identity or serial column
  std::int64_t increment = 1;  // of the sequence
  bool insertable() const noexcept { return generated == 0; }
};

struct IndexFacts {
  std::string name;
  std::string definition;  // as pg_get_indexdef prints it behind the table: "USING btree (note)"
  std::string constraint;  // what ALTER TABLE … ADD takes: "PRIMARY KEY (id)"; empty: a plain index
  bool primary = false;
  bool unique = false;
  bool valid = true;
  std::vector<std::string> columns;  // key columns, in order; "" for an expression
};

struct ConstraintFacts {
  std::string name;
  char type = 'c';         // c check, f foreign key; keys and exclusions are indexes
  std::string definition;  // as pg_get_constraintdef prints it
};

struct TriggerFacts {
  std::string name;
  char enabled = 'O';  // pg_trigger.tgenabled: O origin, A always, R replica, D disabled
  bool fires() const noexcept { return enabled == 'O' || enabled == 'A'; }
};

// A partition's bounds, as FOR VALUES has them.
struct PartitionBound {
  enum class Kind : std::uint8_t { list, range, hash, other } kind = Kind::list;  // other: DEFAULT
  std::vector<std::optional<std::string>> values;                                 // list; nullopt: NULL
  std::vector<std::optional<std::string>> low;   // range, one for each key column; nullopt: MINVALUE
  std::vector<std::optional<std::string>> high;  // nullopt: MAXVALUE
  std::string text;                              // "FOR VALUES IN ('a')", "DEFAULT"
  bool is_default() const noexcept { return kind == Kind::other; }
};
// From the text that pg_get_expr gives. Throws Error(internal) for what it cannot read.
PartitionBound parse_bound(std::string_view text);

struct PartitionFacts {
  Oid oid = 0;
  std::string schema;
  std::string name;
  std::string sql;
  char kind = 'r';         // r table, p partitioned itself, f foreign
  char persistence = 'p';  // p permanent, u unlogged
  std::string tablespace;  // empty: the database's
  PartitionBound bound;
  bool may_insert = true;
  bool may_truncate = true;
  bool owned = true;
  std::string owner;                   // SQL
  std::vector<std::string> grants;     // as TableFacts::grants
  std::vector<TriggerFacts> triggers;  // of users, those cloned from the table among them
};

struct TableFacts {
  bool exists = false;
  Oid oid = 0;
  std::string schema;
  std::string name;
  std::string sql;
  char kind = 'r';         // pg_class.relkind: r table, p partitioned, v view, m materialized view, f foreign, …
  char persistence = 'p';  // p permanent, u unlogged, t temporary
  std::string tablespace;  // empty: the database's
  std::string owner;       // SQL
  std::vector<ColumnFacts> columns;
  std::vector<IndexFacts> indexes;
  std::vector<ConstraintFacts> constraints;  // its own checks and foreign keys
  std::vector<TriggerFacts> triggers;        // of users
  std::vector<std::string> rules;
  bool insert_rules = false;  // some of them rewrite an INSERT
  std::vector<std::string> policies;
  std::vector<std::string> grants;         // to others than the owner: "SELECT|reader|f", see grant_statement()
  std::vector<std::string> referenced_by;  // foreign keys of other tables: "lines_order_fk of shop.lines"
  std::vector<std::string> children;       // that inherit without being partitions, SQL
  std::vector<std::string> publications;
  bool row_security = false;  // policies would apply to this role
  int money_scale = 2;        // of lc_monetary, where a column is money
  bool typed = false;         // CREATE TABLE … OF type

  // A partitioned table.
  std::string partition_by;      // list, range, hash; empty: not partitioned
  std::string partition_key;     // as pg_get_partkeydef prints it: "LIST (store)"
  std::string partition_column;  // of a key that is one plain column
  std::vector<PartitionFacts> partitions;

  // A partition.
  bool parent_owned = false;
  std::string parent;           // SQL; empty: none
  std::string parent_bound;     // "FOR VALUES IN ('a')"
  std::string partition_check;  // as pg_get_partition_constraintdef prints it

  const ColumnFacts* column(std::string_view column_name) const noexcept;
  const IndexFacts* primary_key() const noexcept;
  bool partitioned() const noexcept { return kind == 'p'; }
  // Everything that a load relies on, as one text: differs when somebody has changed the table. Partitions are not part
  // of it: a load makes them itself.
  std::string definition() const;
};

// What hangs on a table that is to be replaced.
struct Dependant {
  std::string text;       // "view shop.totals"
  std::string drop;       // the statement that removes it; empty: it goes with the table
  bool droppable = true;  // false: refused even with replace_dependants
};

struct Rights {
  std::string role;  // current_user, SQL
  bool create_in_schema = false;
  bool select = false;
  bool insert = false;
  bool remove = false;
  bool truncate = false;
  bool owner = false;  // a member of the owner: ALTER, DROP, rename, ATTACH, DETACH
};

// The table's name as the request has it, and where its ledger lies.
struct Place {
  std::string schema;
  std::string table;
  std::string ledger_schema;
};
// `ledger_schema` of the connection; empty: the target's. Error(input, "bad_name").
Place place_of(const system::TargetRequest& request, const std::string& ledger_schema);

// exists = false when there is no such object. Error(not_found, "schema_missing").
async::Task<TableFacts> read_table(Session& session, std::string schema, std::string name);
async::Task<std::vector<PartitionFacts>> read_partitions(Session& session, Oid parent);
// Digits behind the point of `money`, by lc_monetary.
async::Task<int> read_money_scale(Session& session);
async::Task<std::vector<Dependant>> read_dependants(Session& session, const TableFacts& table);
async::Task<Rights> read_rights(Session& session, const TableFacts& table);
async::Task<bool> read_is_empty(Session& session, const TableFacts& table);
// False: the server has no such tablespace, or this role may not create in it (`why` says which).
async::Task<bool> tablespace_usable(Session& session, std::string tablespace, std::string& why);

}  // namespace rowferry::postgres
