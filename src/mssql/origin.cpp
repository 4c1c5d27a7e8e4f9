#include "mssql/origin.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "mssql/dialect.hpp"
#include "mssql/errors.hpp"
#include "mssql/select.hpp"
#include "tds/wire/type_info.hpp"

namespace rowferry::mssql {

namespace {

using async::Task;
using system::SourceRequest;

constexpr std::string_view query_alias = "[rowferry_query]";

bool is_spatial(const tds::ColumnMeta& meta) {
  if (meta.type.id != tds::DataType::udt || meta.type.names.size() < 3) return false;
  const bool system = meta.type.names[1].empty() || meta.type.names[1] == "sys";
  return system && (meta.type.names[2] == "geography" || meta.type.names[2] == "geometry");
}

Reads reads_of(const ColumnFacts& column) {
  if (column.encrypted) return Reads::encrypted;
  if (is_spatial(column.meta)) return Reads::spatial;
  return column.meta.type.id == tds::DataType::udt ? Reads::clr : Reads::itself;
}

// Types that older protocols do not have arrive as text: the catalogue knows better.
rows::Type type_of(const ColumnFacts& column, Reads reads) {
  if (reads != Reads::itself) return rows::Type::text();
  if (column.declared == "json") return rows::Type::of(rows::TypeId::json);
  return logical_type(column.meta);
}

std::string native_of(const ColumnFacts& column) {
  if (column.rowversion || column.meta.user_type == 0x50) return "rowversion";
  if (column.declared == "json" || column.declared == "vector") return column.declared;
  return column.native.empty() ? tds::type_name(column.meta.type) : column.native;
}

int key_position(const TableFacts* table, const std::string& name) {
  const IndexFacts* const key = table == nullptr ? nullptr : table->primary_key();
  if (key == nullptr) return 0;
  const auto at = std::ranges::find(key->key_names, name);
  return at == key->key_names.end() ? 0 : static_cast<int>(at - key->key_names.begin()) + 1;
}

// A query is read as a derived table; what that forbids is said in the user's terms.
Error explained_query(Error error) {
  switch (fault_number(error)) {
    case 156:   // incorrect syntax near a keyword
    case 102:   // incorrect syntax
    case 319:   // a WITH that is no hint
    case 1033:  // ORDER BY
    case 8155:  // a column without a name
    case 8156:  // a name twice
      error.with_hint(
          "the query is read as SELECT … FROM (query): every column needs a name of its own, and it cannot begin with "
          "WITH or end with ORDER BY; make it a view where it has to");
      break;
    default:
      break;
  }
  return error.with_field("source.query");
}

Task<Origin> look_up_query(const Lease* lease, const SourceRequest* request) {
  Origin origin;
  origin.from = fmt::format("(\n{}\n) AS {}", request->query, query_alias);
  std::vector<tds::ColumnMeta> metadata;
  try {
    metadata = co_await read_metadata(*lease, origin.from, "*");
  } catch (const Error& error) {
    throw explained_query(error);
  }
  for (tds::ColumnMeta& meta : metadata) {
    ColumnFacts column;
    column.name = meta.name;
    column.nullable = (meta.flags & (tds::flag_nullable | tds::flag_nullability_unknown)) != 0;
    column.meta = std::move(meta);
    origin.columns.push_back(origin_column(column, nullptr));
  }
  co_return origin;
}

system::TableName synonym_target(const TableFacts& synonym) {
  const auto refuse = [&](std::string_view why) {
    return Error(Category::unsupported, "not_readable",
                 fmt::format("the synonym {} stands for {}, which {}", synonym.quoted_name(), synonym.stands_for, why))
        .with_field("source.table")
        .with_hint("name a table or view of this server");
  };
  if (synonym.stands_for.empty()) throw refuse("the login may not see");
  try {
    return parse_table(synonym.stands_for);
  } catch (const Error&) {
    throw refuse("is on another server");
  }
}

void check_kind(const TableFacts& table) {
  if (table.kind == "U" || table.kind == "V" || table.kind == "SN") return;
  throw Error(Category::unsupported, "not_readable",
              fmt::format("{} is no table, view or synonym (sys.objects.type {})", table.quoted_name(), table.kind))
      .with_field("source.table");
}

// By a name without a schema: the login's own, then dbo, as the server itself looks.
Task<TableFacts> find_relation(const Lease* lease, const system::TableName* name, const ServerFacts* server,
                               const std::vector<std::string>* columns) {
  std::string schema = name->parts.size() > 1 ? name->parts[name->parts.size() - 2] : std::string();
  const bool named = !schema.empty();
  if (!named) schema = server->default_schema;
  TableFacts table = co_await read_relation(*lease, schema, name->parts.back(), *columns);
  if (!table.exists && !named && schema != "dbo") {
    table = co_await read_relation(*lease, "dbo", name->parts.back(), *columns);
  }
  if (table.exists) co_return table;
  throw Error(Category::not_found, "table_missing",
              fmt::format("there is no table {}, or the login may not see it", quoted(schema, name->parts.back())))
      .with_field("source.table");
}

void add_columns(Origin& origin, const SourceRequest& request) {
  for (const ColumnFacts& column : origin.table->columns) {
    // Not described: not asked for, and not to be read.
    if (column.native.empty() && !column.encrypted) {
      OriginColumn unread;
      unread.facts.name = column.name;
      unread.on_demand = true;
      origin.columns.push_back(std::move(unread));
      continue;
    }
    origin.columns.push_back(origin_column(column, &*origin.table));
  }
  for (const std::string& name : request.columns) origin.column(name);  // every one must exist
}

Task<Origin> look_up_table(const Lease* lease, const SourceRequest* request, const ServerFacts* server,
                           std::optional<Elsewhere>* elsewhere) {
  Origin origin;
  system::TableName name = request->table;
  TableFacts table = co_await find_relation(lease, &name, server, &request->columns);
  check_kind(table);
  if (table.kind == "SN") {
    name = synonym_target(table);
    const std::string database = database_of(name);
    if (!database.empty() && database != server->database) {
      if (database_of(request->table) == database) {
        throw Error(Category::unsupported, "not_readable", fmt::format("{} is a chain of synonyms", name.text()));
      }
      *elsewhere = Elsewhere{name};
      co_return origin;
    }
    table = co_await find_relation(lease, &name, server, &request->columns);
    check_kind(table);
    if (table.kind == "SN") {
      throw Error(Category::unsupported, "not_readable", fmt::format("{} is a chain of synonyms", name.text()));
    }
  }
  origin.table = std::move(table);
  origin.from = origin.table->quoted_name();
  add_columns(origin, *request);
  if (origin.is_table()) origin.storage = co_await read_storage(*lease, origin.table->object_id);
  origin.filters = co_await read_filters(*lease, origin.table->object_id);
  co_return origin;
}

void add_parts(std::vector<std::string>& out, std::string_view what, const std::vector<ConstraintFacts>& parts) {
  for (const ConstraintFacts& part : parts) out.push_back(fmt::format("{} {}", what, part.name));
}

}  // namespace

std::string database_of(const system::TableName& table) {
  return table.parts.size() == 3 ? table.parts[0] : std::string();
}

const OriginColumn& Origin::column(std::string_view name) const {
  for (const OriginColumn& column : columns) {
    if (column.facts.name == name) return column;
  }
  std::string hint;
  for (const OriginColumn& column : columns) {
    const bool same = std::ranges::equal(column.facts.name, name, [](char a, char b) {
      return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
    });
    if (same) hint = fmt::format("there is \"{}\"", column.facts.name);
  }
  throw Error(Category::not_found, "column_missing", fmt::format("the source has no column \"{}\"", name))
      .with_column(name)
      .with_hint(hint);
}

std::string Origin::filtered(std::string_view predicate) const {
  std::string sql = " FROM " + from;
  if (!where.empty()) sql += fmt::format(" WHERE (\n{}\n)", where);
  if (!predicate.empty()) sql += fmt::format("{}({})", where.empty() ? " WHERE " : " AND ", predicate);
  return sql;
}

OriginColumn origin_column(const ColumnFacts& column, const TableFacts* table) {
  OriginColumn out;
  out.meta = column.meta;
  out.collation = column.collation;
  out.reads = reads_of(column);
  out.on_demand = column.hidden || column.column_set;
  out.facts.name = column.name;
  out.facts.native = native_of(column);
  out.facts.nullable = column.nullable;
  out.facts.identity = column.identity;
  out.facts.generated = column.computed || column.period || column.rowversion;
  out.facts.key_position = key_position(table, column.name);
  if (out.reads == Reads::encrypted) {
    out.why_not = "it is encrypted by the client (Always Encrypted), and the keys are not here";
    return out;
  }
  try {
    out.facts.type = type_of(column, out.reads);
  } catch (const Error& error) {
    out.why_not = error.detail();
    return out;
  }
  out.facts.text_only = out.reads != Reads::itself;
  out.facts.can_read_as_bytes = out.reads != Reads::itself;
  const std::uint32_t width = printed_width(column.meta.type);
  out.facts.can_read_as_text = width != 0;
  if (width != 0 && width != printed_unlimited) out.facts.text_width = width;
  out.facts.has_offset = column.meta.type.id == tds::DataType::datetimeoffset;
  out.facts.variant = column.meta.type.id == tds::DataType::sql_variant;
  out.facts.rewritten = column.meta.type.id == tds::DataType::xml || out.facts.type.id == rows::TypeId::json;
  return out;
}

std::vector<const OriginColumn*> chosen_columns(const Origin& origin, const std::vector<std::string>& asked) {
  std::vector<const OriginColumn*> out;
  for (const OriginColumn& column : origin.columns) {
    const bool named = std::ranges::find(asked, column.facts.name) != asked.end();
    if (!named && (!asked.empty() || column.on_demand)) continue;
    if (!column.why_not.empty()) {
      throw Error(Category::unsupported, column.reads == Reads::encrypted ? "encrypted_column" : "type_unsupported",
                  fmt::format("column \"{}\" cannot be read: {}", column.facts.name, column.why_not))
          .with_column(column.facts.name)
          .with_hint("leave it out: name the others in `columns`");
    }
    out.push_back(&column);
  }
  return out;
}

std::vector<std::string> not_carried(const TableFacts& table, const StorageFacts& storage) {
  std::vector<std::string> out;
  for (const IndexFacts& index : table.indexes) {
    if (index.id == 0 || index.primary) continue;
    const char* const what = index.unique_constraint              ? "unique"
                             : index.type == 5 || index.type == 6 ? "columnstore index"
                                                                  : "index";
    out.push_back(fmt::format("{} {}", what, index.name));
  }
  add_parts(out, "check", table.checks);
  add_parts(out, "foreign key", table.foreign_keys);
  for (const std::string& name : table.defaults) out.push_back("default " + name);
  for (const TriggerFacts& trigger : table.triggers) out.push_back("trigger " + trigger.name);
  for (const ColumnFacts& column : table.columns) {
    if (column.computed) out.push_back("expression of the computed column " + column.name);
  }
  if (!storage.partition_function.empty()) {
    out.push_back(fmt::format("partitioning by {} ({})", storage.partition_function, storage.partition_column));
  }
  if (table.temporal) out.emplace_back("system versioning (the history table is another table)");
  return out;
}

std::vector<system::Notice> notices_of(const Origin& origin, const std::vector<const OriginColumn*>& columns) {
  std::vector<system::Notice> out;
  for (const std::string& policy : origin.filters) {
    out.push_back(
        {"row_security",
         fmt::format("the security policy {} decides which rows this login sees: only those are read", policy), ""});
  }
  for (const OriginColumn* column : columns) {
    const ColumnFacts* const facts = origin.table ? origin.table->column(column->facts.name) : nullptr;
    if (facts != nullptr && facts->masked) {
      out.push_back({"masked_column",
                     "the column is masked: without the right UNMASK its values arrive masked, not as they are",
                     column->facts.name});
    }
    if (column->reads == Reads::spatial) {
      out.push_back(
          {"srid_not_in_text",
           fmt::format("{} is read as text (WKT), which does not say the SRID; \"type\": \"bytea\" reads EWKB "
                       "with SRID, Z and M",
                       column->facts.native),
           column->facts.name});
    }
  }
  if (!origin.table) return out;
  const auto left_out = std::ranges::find(origin.table->columns, true, &ColumnFacts::column_set);
  if (left_out != origin.table->columns.end() && std::ranges::find(columns, left_out->name, [](const OriginColumn* c) {
                                                   return c->facts.name;
                                                 }) == columns.end()) {
    out.push_back({"column_set", "the column set is left out: its columns are read one by one", left_out->name});
  }
  return out;
}

Task<Origin> look_up(const Lease& lease, const SourceRequest& request, std::optional<Elsewhere>* elsewhere) {
  if (request.query.empty() && (request.table.empty() || request.table.parts.size() > 3)) {
    throw Error(Category::input, "bad_name", "a table is named by one to three parts: database, schema, table")
        .with_field("source.table");
  }
  const ServerFacts server = co_await read_server(lease);
  Origin origin = request.query.empty() ? Origin() : co_await look_up_query(&lease, &request);
  if (request.query.empty()) {
    origin = co_await look_up_table(&lease, &request, &server, elsewhere);
    if (*elsewhere) co_return origin;
  }
  origin.server = server;
  origin.where = request.where;
  origin.reading = co_await read_reading_facts(lease);
  co_return origin;
}

}  // namespace rowferry::mssql
