// The catalogue: what is read and what it is made of (PostgreSQL 12 to 18; chapter 53, System Catalogs).
//
// Every function runs in the transaction that the session is in; parameters outlive the await.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "postgres/session.hpp"
#include "postgres/types.hpp"
#include "system/source.hpp"

namespace rowferry::postgres {

// A table with storage: the table itself, or a leaf of its partition or inheritance tree.
struct Leaf {
  Oid oid = 0;
  std::string sql;          // quoted
  char kind = 'r';          // relkind: r table, m materialized view, f foreign table
  bool heap = false;        // its access method is heap: ctids are block and line
  bool readable = false;    // SELECT on itself, which reading it by its own name needs
  double tuples = -1;       // reltuples; -1: never analysed
  std::int64_t pages = 0;   // relpages, of the same time
  std::int64_t blocks = 0;  // now
  std::int64_t bytes = 0;   // now, with TOAST
  bool operator==(const Leaf& other) const noexcept { return oid == other.oid && kind == other.kind; }
};

struct Relation {
  Oid oid = 0;
  std::string sql;
  std::string alias;      // its name without schema, quoted
  std::string text;       // for messages
  char kind = 'r';        // r, p partitioned, v view, m, f
  bool readable = false;  // SELECT on the whole table
  bool has_children = false;
  std::vector<Leaf> leaves;  // a view has none; in order of OID
  std::vector<std::string> primary_key;
};

struct Column {
  system::SourceColumn facts;
  TypeFacts type;
  wire::Form form = wire::Form::bytes;
};

// What a transfer reads: a table or a query, with all its columns.
struct Origin {
  std::optional<Relation> relation;  // none: a query
  std::string from;                  // SQL behind FROM
  std::string where;                 // SQL of the filter, or empty
  std::vector<Column> columns;
  std::string money_locale;  // lc_monetary, where a column is money

  const Column& column(std::string_view name) const;  // Error(not_found, "column_missing")
};

// Errors: table_missing, not_a_table, row_security, no_permission, column_missing, query_has_parameters, …
async::Task<Origin> look_up(Session& session, const system::SourceRequest& request);
// The server's own estimate of rows and bytes. `columns`: those that are read; empty: all.
struct Estimate {
  std::optional<std::uint64_t> rows;
  std::optional<std::uint64_t> bytes;
};
async::Task<Estimate> estimate(Session& session, const Origin& origin, const std::vector<std::string>& columns);
double estimated_rows(const Leaf& leaf) noexcept;

// Indexes, constraints, triggers, defaults, …: what a created target will lack.
async::Task<std::vector<std::string>> not_carried(Session& session, const Relation& relation);

// Leading columns of btree indexes, best first (primary key, unique, others), that `where`-less ranges can use.
async::Task<std::vector<std::string>> leading_columns(Session& session, const Relation& relation);

// The relations on which this session holds a lock, in quoted form, other than the system's own.
struct Locked {
  Oid oid = 0;
  std::string sql;
  char kind = 'r';
  bool lockable = false;   // LOCK TABLE can name it
  bool rewritten = false;  // its storage is no longer the one that the transaction's snapshot knows
};
async::Task<std::vector<Locked>> locked_relations(Session& session);

}  // namespace rowferry::postgres
