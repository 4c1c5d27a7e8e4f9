#include "mssql/catalogue.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.hpp"
#include "mssql/dialect.hpp"
#include "mssql/errors.hpp"
#include "tds/wire/type_info.hpp"

namespace rowferry::mssql {

namespace {

using async::Task;
using tds::ResultSet;
using tds::Value;

// A row of a catalogue view by column name; what the server's view does not have is absent.
class Row {
 public:
  Row(const ResultSet& set, std::size_t row) : set_(set), row_(row) {}

  const Value* find(std::string_view name) const {
    for (std::size_t i = 0; i < set_.columns.size(); ++i) {
      if (set_.columns[i].name == name) return &set_.rows[row_][i];
    }
    return nullptr;
  }
  std::string text(std::string_view name) const {
    const Value* const value = find(name);
    return value == nullptr ? std::string() : value->text_or("");
  }
  std::int64_t integer(std::string_view name, std::int64_t absent = 0) const {
    const Value* const value = find(name);
    return value == nullptr ? absent : value->integer_or(absent);
  }
  bool truth(std::string_view name) const { return integer(name) != 0; }

 private:
  const ResultSet& set_;
  std::size_t row_;
};

template <class F>
void for_each_row(const ResultSet& set, F call) {
  for (std::size_t i = 0; i < set.rows.size(); ++i) call(Row(set, i));
}

std::optional<bool> right_of(const Row& row, std::string_view name) {
  const Value* const value = row.find(name);
  if (value == nullptr || value->is_null()) return std::nullopt;
  return value->truth();
}

// sys.columns.max_length and scale are not needed: the metadata of a result says the same in TDS's terms.
ColumnFacts column_of(const Row& row) {
  ColumnFacts column;
  column.name = row.text("name");
  column.id = static_cast<int>(row.integer("column_id"));
  column.collation = row.text("collation_name");
  column.nullable = row.truth("is_nullable");
  column.identity = row.truth("is_identity");
  column.computed = row.truth("is_computed");
  column.period = row.integer("generated_always_type") != 0;
  column.encrypted = row.integer("encryption_type") != 0;
  column.column_set = row.truth("is_column_set");
  column.sparse = row.truth("is_sparse");
  column.hidden = row.truth("is_hidden");
  column.masked = row.truth("is_masked");
  column.declared = row.text("declared_type");
  column.has_default = row.integer("default_object_id") != 0;
  constexpr std::int64_t timestamp_type = 189;
  column.rowversion = row.integer("system_type_id") == timestamp_type;
  return column;
}

Task<void> read_object(const Lease* lease, TableFacts* table) {
  const ResultSet set = co_await lease->query_if_there(
      fmt::format("SELECT object_id, name, type FROM sys.objects WHERE schema_id = SCHEMA_ID({}) AND name = {}",
                  literal(table->schema), literal(table->name)));
  if (set.rows.empty()) co_return;
  const Row row(set, 0);
  table->exists = true;
  table->object_id = row.integer("object_id");
  table->name = row.text("name");
  table->kind = row.text("type");
  while (table->kind.ends_with(' ')) table->kind.pop_back();
}

Task<void> check_schema(const Lease* lease, const TableFacts* table) {
  const ResultSet set =
      co_await lease->query_if_there(fmt::format("SELECT SCHEMA_ID({}) AS id", literal(table->schema)));
  if (set.rows.empty() || !set.at(0, "id").is_null()) co_return;
  throw Error(Category::not_found, "schema_missing", fmt::format("there is no schema {}", quoted(table->schema)))
      .with_hint("create it, or name another one in target.table");
}

Task<void> read_properties(const Lease* lease, TableFacts* table) {
  const ResultSet set =
      co_await lease->query_if_there(fmt::format("SELECT * FROM sys.tables WHERE object_id = {}", table->object_id));
  if (set.rows.empty()) co_return;
  const Row row(set, 0);
  table->temporal = row.integer("temporal_type") == 2;
  table->history = row.integer("temporal_type") == 1;
  table->replicated = row.truth("is_replicated") || row.truth("is_published") || row.truth("is_merge_published");
  table->memory_optimized = row.truth("is_memory_optimized");
  table->external = row.truth("is_external");
}

// The catalogue of all columns, the metadata of those wanted (all where none are named): a login may be denied others.
Task<void> read_columns(const Lease* lease, TableFacts* table, const std::vector<std::string>* wanted) {
  const ResultSet set = co_await lease->query_if_there(
      fmt::format("SELECT *, TYPE_NAME(user_type_id) AS declared_type FROM sys.columns WHERE object_id = {} ORDER BY "
                  "column_id",
                  table->object_id));
  for_each_row(set, [&](const Row& row) { table->columns.push_back(column_of(row)); });
  std::string list;
  std::vector<ColumnFacts*> described;
  for (ColumnFacts& column : table->columns) {
    if (!wanted->empty() && std::ranges::find(*wanted, column.name) == wanted->end()) continue;
    list += (list.empty() ? "" : ", ") + quoted(column.name);
    described.push_back(&column);
  }
  if (described.empty()) co_return;
  std::vector<tds::ColumnMeta> metadata = co_await read_metadata(*lease, table->quoted_name(), std::move(list));
  for (std::size_t i = 0; i < described.size(); ++i) {
    described[i]->meta = std::move(metadata[i]);
    described[i]->native = tds::type_name(described[i]->meta.type);
  }
}

Task<void> read_indexes(const Lease* lease, TableFacts* table) {
  const ResultSet set = co_await lease->query_if_there(
      fmt::format("SELECT * FROM sys.indexes WHERE object_id = {} ORDER BY index_id", table->object_id));
  for_each_row(set, [&](const Row& row) {
    table->indexes.push_back({.name = row.text("name"),
                              .id = static_cast<int>(row.integer("index_id")),
                              .type = static_cast<int>(row.integer("type")),
                              .primary = row.truth("is_primary_key"),
                              .unique = row.truth("is_unique"),
                              .unique_constraint = row.truth("is_unique_constraint"),
                              .ignores_duplicates = row.truth("ignore_dup_key"),
                              .key = {},
                              .key_names = {}});
  });
  const ResultSet parts = co_await lease->query_if_there(fmt::format(
      "SELECT * FROM sys.index_columns WHERE object_id = {} ORDER BY index_id, key_ordinal", table->object_id));
  for_each_row(parts, [&](const Row& row) {
    if (row.integer("key_ordinal") == 0) return;
    const auto index = std::ranges::find(table->indexes, static_cast<int>(row.integer("index_id")), &IndexFacts::id);
    const auto column = std::ranges::find(table->columns, static_cast<int>(row.integer("column_id")), &ColumnFacts::id);
    if (index == table->indexes.end() || column == table->columns.end()) return;
    index->key.push_back(quoted(column->name) + (row.truth("is_descending_key") ? " DESC" : ""));
    index->key_names.push_back(column->name);
  });
}

Task<void> read_constraints(const Lease* lease, TableFacts* table) {
  const auto constraint = [](const Row& row) {
    return ConstraintFacts{row.text("name"), row.truth("is_not_trusted"), row.truth("is_disabled")};
  };
  const ResultSet checks = co_await lease->query_if_there(
      fmt::format("SELECT * FROM sys.check_constraints WHERE parent_object_id = {}", table->object_id));
  for_each_row(checks, [&](const Row& row) { table->checks.push_back(constraint(row)); });
  const ResultSet own = co_await lease->query_if_there(
      fmt::format("SELECT * FROM sys.foreign_keys WHERE parent_object_id = {}", table->object_id));
  for_each_row(own, [&](const Row& row) { table->foreign_keys.push_back(constraint(row)); });
  const ResultSet others = co_await lease->query_if_there(
      fmt::format("SELECT name, OBJECT_SCHEMA_NAME(parent_object_id) AS schema_name, OBJECT_NAME(parent_object_id) AS "
                  "table_name FROM sys.foreign_keys WHERE referenced_object_id = {} AND parent_object_id <> {}",
                  table->object_id, table->object_id));
  for_each_row(others, [&](const Row& row) {
    const std::string of = quoted(row.text("schema_name"), row.text("table_name"));
    table->referenced_by.push_back(of + '.' + quoted(row.text("name")));
    table->drop_references.push_back(fmt::format("ALTER TABLE {} DROP CONSTRAINT {}", of, quoted(row.text("name"))));
  });
  const ResultSet defaults = co_await lease->query_if_there(
      fmt::format("SELECT name FROM sys.default_constraints WHERE parent_object_id = {}", table->object_id));
  for_each_row(defaults, [&](const Row& row) { table->defaults.push_back(row.text("name")); });
}

Task<void> read_triggers(const Lease* lease, TableFacts* table) {
  const ResultSet set = co_await lease->query_if_there(fmt::format(
      "SELECT name, is_disabled, is_instead_of_trigger FROM sys.triggers WHERE parent_id = {}", table->object_id));
  for_each_row(set, [&](const Row& row) {
    table->triggers.push_back({row.text("name"), row.truth("is_disabled"), row.truth("is_instead_of_trigger")});
  });
}

Task<void> read_identity(const Lease* lease, TableFacts* table) {
  if (table->identity_column() == nullptr) co_return;
  const ResultSet set = co_await lease->query_if_there(
      fmt::format("SELECT CAST(seed_value AS nvarchar(50)) AS seed, CAST(increment_value AS nvarchar(50)) AS step FROM "
                  "sys.identity_columns WHERE object_id = {}",
                  table->object_id));
  if (set.rows.empty()) co_return;
  table->identity_seed = Row(set, 0).text("seed");
  table->identity_increment = Row(set, 0).text("step");
}

}  // namespace

Task<ServerFacts> read_server(const Lease& lease) {
  const ResultSet set = co_await lease.query_if_there(
      "SELECT @@VERSION AS banner, CAST(SERVERPROPERTY('ProductVersion') AS nvarchar(128)) AS version, "
      "CAST(SERVERPROPERTY('EngineEdition') AS int) AS engine, CAST(SERVERPROPERTY('RowferryDiscard') AS int) AS "
      "discards, DB_NAME() AS database_name, SCHEMA_NAME() AS default_schema, SUSER_SNAME() AS login_name, "
      "CAST(DATABASEPROPERTYEX(DB_NAME(), 'Collation') AS nvarchar(128)) AS collation_name");
  if (set.rows.empty()) throw Error(Category::internal, "no_rows", "the server does not say what it is");
  const Row row(set, 0);
  ServerFacts facts;
  facts.banner = row.text("banner");
  facts.version = row.text("version");
  facts.engine = static_cast<int>(row.integer("engine"));
  facts.sandbox = facts.banner.find("rowferry sandbox") != std::string::npos;
  facts.discards = row.integer("discards") == 1;
  facts.database = row.text("database_name");
  facts.default_schema = row.text("default_schema");
  if (facts.default_schema.empty()) facts.default_schema = "dbo";
  facts.login = row.text("login_name");
  facts.collation = row.text("collation_name");
  facts.code_page = code_page_of(facts.collation);
  co_return facts;
}

Task<TableFacts> read_table(const Lease& lease, std::string schema, std::string name) {
  TableFacts table;
  table.schema = std::move(schema);
  table.name = std::move(name);
  co_await check_schema(&lease, &table);
  co_await read_object(&lease, &table);
  if (!table.exists || table.kind != "U") co_return table;
  const std::vector<std::string> all;
  co_await read_properties(&lease, &table);
  co_await read_columns(&lease, &table, &all);
  co_await read_indexes(&lease, &table);
  co_await read_constraints(&lease, &table);
  co_await read_triggers(&lease, &table);
  co_await read_identity(&lease, &table);
  co_return table;
}

Task<TableFacts> read_relation(const Lease& lease, std::string schema, std::string name,
                               std::vector<std::string> columns) {
  TableFacts table;
  table.schema = std::move(schema);
  table.name = std::move(name);
  co_await read_object(&lease, &table);
  if (!table.exists) co_return table;
  if (table.kind == "SN") {
    const ResultSet set = co_await lease.query_if_there(
        fmt::format("SELECT base_object_name FROM sys.synonyms WHERE object_id = {}", table.object_id));
    if (!set.rows.empty()) table.stands_for = Row(set, 0).text("base_object_name");
  }
  if (table.kind != "U" && table.kind != "V") co_return table;
  co_await read_columns(&lease, &table, &columns);
  if (table.kind != "U") co_return table;
  co_await read_properties(&lease, &table);
  co_await read_indexes(&lease, &table);
  co_await read_constraints(&lease, &table);
  co_await read_triggers(&lease, &table);
  co_return table;
}

Task<StorageFacts> read_storage(const Lease& lease, std::int64_t object_id) {
  StorageFacts facts;
  const ResultSet parts = co_await lease.query_if_there(
      fmt::format("SELECT partition_number, SUM(rows) AS row_count FROM sys.partitions WHERE object_id = {} AND "
                  "index_id IN (0, 1) GROUP BY partition_number ORDER BY partition_number",
                  object_id));
  for_each_row(parts, [&](const Row& row) {
    const auto rows = static_cast<std::uint64_t>(std::max<std::int64_t>(row.integer("row_count"), 0));
    facts.partition_rows.push_back(rows);
    facts.rows = facts.rows.value_or(0) + rows;
  });
  const ResultSet pages = co_await lease.query_if_there(
      fmt::format("SELECT SUM(u.used_pages) AS pages FROM sys.partitions AS p JOIN sys.allocation_units AS u ON "
                  "u.container_id = p.partition_id WHERE p.object_id = {} AND p.index_id IN (0, 1)",
                  object_id));
  constexpr std::uint64_t page_bytes = 8192;
  if (!pages.rows.empty() && !pages.at(0, "pages").is_null()) {
    facts.bytes = static_cast<std::uint64_t>(pages.at(0, "pages").integer()) * page_bytes;
  }
  const ResultSet function = co_await lease.query_if_there(
      fmt::format("SELECT f.name AS function_name, c.name AS column_name FROM sys.indexes AS i JOIN "
                  "sys.partition_schemes AS s ON s.data_space_id = i.data_space_id JOIN sys.partition_functions AS f "
                  "ON f.function_id = s.function_id JOIN sys.index_columns AS k ON k.object_id = i.object_id AND "
                  "k.index_id = i.index_id AND k.partition_ordinal = 1 JOIN sys.columns AS c ON c.object_id = "
                  "i.object_id AND c.column_id = k.column_id WHERE i.object_id = {} AND i.index_id IN (0, 1)",
                  object_id));
  if (!function.rows.empty()) {
    facts.partition_function = Row(function, 0).text("function_name");
    facts.partition_column = Row(function, 0).text("column_name");
  }
  co_return facts;
}

Task<ReadingFacts> read_reading_facts(const Lease& lease) {
  const ResultSet set = co_await lease.query_if_there("SELECT * FROM sys.databases WHERE database_id = DB_ID()");
  if (set.rows.empty()) co_return ReadingFacts{};
  const Row row(set, 0);
  co_return ReadingFacts{.snapshot_allowed = row.integer("snapshot_isolation_state") == 1,
                         .versioned_reads = row.truth("is_read_committed_snapshot_on")};
}

Task<std::vector<std::string>> read_filters(const Lease& lease, std::int64_t object_id) {
  const ResultSet set = co_await lease.query_if_there(
      fmt::format("SELECT OBJECT_SCHEMA_NAME(p.object_id) AS schema_name, p.name AS policy_name FROM "
                  "sys.security_predicates AS f JOIN sys.security_policies AS p ON p.object_id = f.object_id WHERE "
                  "f.target_object_id = {} AND f.predicate_type = 0 AND p.is_enabled = 1",
                  object_id));
  std::vector<std::string> out;
  for_each_row(set, [&](const Row& row) { out.push_back(quoted(row.text("schema_name"), row.text("policy_name"))); });
  co_return out;
}

Task<std::vector<Dependant>> read_dependants(const Lease& lease, const TableFacts& table) {
  std::vector<Dependant> out;
  for (std::size_t i = 0; i < table.referenced_by.size(); ++i) {
    out.push_back({"foreign key " + table.referenced_by[i], table.drop_references[i], true});
  }
  for (const TriggerFacts& trigger : table.triggers) out.push_back({"trigger " + quoted(trigger.name), "", true});
  if (table.temporal || table.history) out.push_back({"system versioning (a temporal table)", "", false});
  if (table.replicated) out.push_back({"replication", "", false});
  const ResultSet bound = co_await lease.query_if_there(
      fmt::format("SELECT DISTINCT OBJECT_SCHEMA_NAME(referencing_id) AS schema_name, OBJECT_NAME(referencing_id) AS "
                  "object_name FROM sys.sql_expression_dependencies WHERE referenced_id = {} AND "
                  "is_schema_bound_reference = 1 AND referencing_id <> {} AND referencing_class = 1",
                  table.object_id, table.object_id));
  for_each_row(bound, [&](const Row& row) {
    // The table's own computed columns and checks are not objects by this name.
    if (row.text("object_name").empty()) return;
    const bool own =
        std::ranges::any_of(table.checks, [&](const ConstraintFacts& c) { return c.name == row.text("object_name"); });
    if (own) return;
    out.push_back({"schema-bound " + quoted(row.text("schema_name"), row.text("object_name")), "", false});
  });
  const ResultSet grants = co_await lease.query_if_there(
      fmt::format("SELECT permission_name, state_desc, USER_NAME(grantee_principal_id) AS grantee FROM "
                  "sys.database_permissions WHERE class = 1 AND major_id = {}",
                  table.object_id));
  for_each_row(grants, [&](const Row& row) {
    out.push_back({fmt::format("{} {} to {}", row.text("state_desc"), row.text("permission_name"), row.text("grantee")),
                   "", true});
  });
  const ResultSet policies = co_await lease.query_if_there(
      fmt::format("SELECT OBJECT_NAME(object_id) AS policy FROM sys.security_predicates WHERE target_object_id = {}",
                  table.object_id));
  for_each_row(policies,
               [&](const Row& row) { out.push_back({"security policy " + quoted(row.text("policy")), "", false}); });
  co_return out;
}

Task<Rights> read_rights(const Lease& lease, const TableFacts& table) {
  const std::string object = literal(table.quoted_name());
  const std::string schema = literal(quoted(table.schema));
  const ResultSet set = co_await lease.query_if_there(fmt::format(
      "SELECT HAS_PERMS_BY_NAME({0}, 'OBJECT', 'INSERT') AS may_insert, HAS_PERMS_BY_NAME({0}, 'OBJECT', 'SELECT') AS "
      "may_select, HAS_PERMS_BY_NAME({0}, 'OBJECT', 'ALTER') AS may_alter, HAS_PERMS_BY_NAME({0}, 'OBJECT', 'DELETE') "
      "AS may_delete, HAS_PERMS_BY_NAME(NULL, 'DATABASE', 'CREATE TABLE') AS may_create, HAS_PERMS_BY_NAME({1}, "
      "'SCHEMA', 'ALTER') AS may_alter_schema",
      object, schema));
  if (set.rows.empty()) co_return Rights{};
  const Row row(set, 0);
  co_return Rights{.insert = right_of(row, "may_insert"),
                   .select = right_of(row, "may_select"),
                   .alter = right_of(row, "may_alter"),
                   .remove = right_of(row, "may_delete"),
                   .create_table = right_of(row, "may_create"),
                   .alter_schema = right_of(row, "may_alter_schema")};
}

Task<bool> read_is_empty(const Lease& lease, const TableFacts& table) {
  const ResultSet set =
      co_await lease.query_if_there(fmt::format("SELECT TOP (1) 1 AS one FROM {}", table.quoted_name()));
  const bool empty = set.rows.empty();
  co_return empty;
}

Task<std::optional<std::uint16_t>> read_code_page(const Lease& lease, std::string collation) {
  const ResultSet set = co_await lease.query_if_there(
      fmt::format("SELECT CAST(COLLATIONPROPERTY({}, 'CodePage') AS int) AS code_page", literal(collation)));
  if (set.rows.empty() || set.at(0, "code_page").is_null()) co_return std::nullopt;
  co_return static_cast<std::uint16_t>(set.at(0, "code_page").integer());
}

Task<bool> object_exists(const Lease& lease, std::string schema, std::string name) {
  const ResultSet set =
      co_await lease.query_if_there(fmt::format("SELECT OBJECT_ID({}) AS id", literal(quoted(schema, name))));
  co_return !set.rows.empty() && !set.at(0, "id").is_null();
}

Task<std::vector<tds::ColumnMeta>> read_metadata(const Lease& lease, std::string quoted_table,
                                                 std::string column_list) {
  tds::QueryResult result = co_await lease.query(fmt::format("SELECT TOP (0) {} FROM {}", column_list, quoted_table));
  if (result.sets.empty()) throw Error(Category::internal, "no_metadata", "no columns came for " + quoted_table);
  co_return std::move(result.sets.front().columns);
}

}  // namespace rowferry::mssql
