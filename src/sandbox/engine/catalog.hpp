// Databases, schemas, tables and their parts.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "sandbox/engine/collation.hpp"
#include "sandbox/engine/storage.hpp"

namespace rowferry::sandbox::engine {

struct Expr;
struct PartitionFunction;
struct PartitionScheme;
using ExprPtr = std::shared_ptr<Expr>;

struct Identity {
  Int128 seed = 1;
  Int128 increment = 1;
};

struct ColumnDef {
  std::string name;
  int id = 0;  // column_id
  Type type;
  std::string user_type;  // sysname and the like; empty: the system type
  std::string collation;  // name as written; strings only
  bool nullable = true;
  std::optional<Identity> identity;
  std::string default_name;
  int default_id = 0;
  std::string default_text;  // "((0))"
  ExprPtr default_value;
  std::string computed_text;
  ExprPtr computed;
  bool persisted = false;
  bool rowguidcol = false;
  bool sparse = false;
  bool hidden = false;
  int generated_always = 0;  // 1 row start, 2 row end
  int stored = -1;           // place in the stored row; -1: computed
  bool is_rowversion() const noexcept { return type.kind == Kind::rowversion; }
  bool insertable() const noexcept { return computed == nullptr && !is_rowversion() && generated_always == 0; }
};

struct KeyColumn {
  int column = 0;  // index into TableDef::columns
  bool descending = false;
};

struct IndexDef {
  std::string name;
  int object_id = 0;  // of the key constraint; 0: a plain index
  int index_id = 0;   // 1 clustered, 2… others
  bool primary = false;
  bool unique_constraint = false;
  bool unique = false;
  bool clustered = false;
  bool columnstore = false;
  bool ignore_dup_key = false;
  bool disabled = false;
  bool system_named = false;
  std::vector<KeyColumn> keys;
  std::vector<int> included;
  std::string filter;
};

struct CheckDef {
  std::string name;
  int object_id = 0;
  std::string text;
  ExprPtr condition;
  bool not_trusted = false;
  bool disabled = false;
  int column = -1;
};

struct ForeignKeyDef {
  std::string name;
  int object_id = 0;
  std::vector<int> columns;
  int referenced_id = 0;  // object
  std::vector<int> referenced;
  int on_delete = 0;  // 0 no action, 1 cascade, 2 set null, 3 set default
  int on_update = 0;
  bool not_trusted = false;
  bool disabled = false;
};

// Never changed once it is in the catalogue: ALTER makes a new one.
struct TableDef {
  std::vector<ColumnDef> columns;
  std::vector<IndexDef> indexes;
  std::vector<CheckDef> checks;
  std::vector<ForeignKeyDef> foreign_keys;
  int next_column_id = 1;
  int temporal = 0;  // 2: system versioned
  int period_start = -1, period_end = -1;
  std::shared_ptr<const PartitionScheme> partition_scheme;
  int partition_column = -1;

  int find(std::string_view name) const;  // index into columns, -1
  const IndexDef* primary_key() const;
  const ColumnDef* identity_column() const;
  Layout layout() const;
  // Gives every stored column its place; call after columns have changed.
  void place_columns();
};
using TableDefPtr = std::shared_ptr<const TableDef>;

// Of the identity column: outside transactions, as SQL Server's.
struct IdentityState {
  Int128 last = 0;
  bool used = false;
};

enum class ObjectKind : std::uint8_t { table, view, procedure, trigger, constraint, synonym };

struct Object {
  int id = 0;
  ObjectKind kind = ObjectKind::table;
  int schema_id = 1;
  std::string name;
  TableDefPtr def;
  std::shared_ptr<TableData> data;
  std::shared_ptr<IdentityState> identity;
  std::string text;      // of views, procedures, triggers: the whole CREATE statement
  std::size_t body = 0;  // where in `text` the body begins
  int parent_id = 0;     // triggers
  bool disabled = false;
  std::vector<std::string> stands_for;     // synonyms: the parts of that name
  std::int64_t created = 0, modified = 0;  // 100 ns since 0001-01-01
  std::string database;
  bool temporary = false;
};
using ObjectPtr = std::shared_ptr<Object>;

struct Schema {
  int id = 1;
  std::string name;
};

struct Database {
  int id = 1;
  std::string name;
  std::string collation_name;
  tds::Collation collation;
  std::int64_t created = 0;
  int recovery_model = 3;  // SIMPLE
  bool snapshot_isolation = false;
  bool read_committed_snapshot = false;
  std::map<std::string, Schema> schemas;                                                // by folded name
  std::map<std::pair<int, std::string>, ObjectPtr> objects;                             // by schema id and folded name
  std::map<std::string, std::shared_ptr<const PartitionFunction>> partition_functions;  // by folded name
  std::map<std::string, std::shared_ptr<const PartitionScheme>> partition_schemes;
  int next_partition_id = 0;
  int next_schema_id = 5;
  int next_object_id = 245'575'913;

  Schema* schema(std::string_view schema_name);
  const Schema* schema_by_id(int schema_id) const;
  ObjectPtr find(int schema_id, std::string_view object_name) const;
  ObjectPtr by_id(int object_id) const;
  int new_object_id();
};

// A name as written: up to four parts, the last is the object's.
struct ObjectName {
  std::vector<std::string> parts;
  const std::string& object() const { return parts.back(); }
  std::string schema() const { return parts.size() >= 2 ? parts[parts.size() - 2] : std::string(); }
  std::string database() const { return parts.size() >= 3 ? parts[parts.size() - 3] : std::string(); }
  std::string text() const;  // joined by dots, as error messages show it
  bool temporary() const { return !parts.empty() && parts.back().starts_with('#') && !parts.back().starts_with("##"); }
};
// Splits "[a].b" and "db..t"; nothing when it is no name.
std::optional<ObjectName> parse_name(std::string_view text);
std::string quote_name(std::string_view name);  // [a]]b]

std::int64_t now_ticks();  // 100 ns since 0001-01-01, UTC

}  // namespace rowferry::sandbox::engine
