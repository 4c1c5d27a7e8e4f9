#include "postgres/catalogue.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "postgres/dialect.hpp"

namespace rowferry::postgres {

namespace {

constexpr Oid money_oid = 790;

async::Task<Relation> find_relation(Session* session, const system::TableName* table) {
  if (table->parts.size() != 2) {
    throw Error(Category::input, "bad_name", "a PostgreSQL table has two parts, schema and table");
  }
  const Result found = co_await session->query(
      fmt::format("SELECT c.oid, c.relkind, c.relhassubclass, pg_catalog.row_security_active(c.oid) AS policies, "
                  "pg_catalog.has_table_privilege(c.oid, 'SELECT') AS readable, "
                  "pg_catalog.has_any_column_privilege(c.oid, 'SELECT') AS partly_readable "
                  "FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
                  "WHERE n.nspname = {} AND c.relname = {}",
                  quote_text(table->parts[0]), quote_text(table->parts[1])));
  if (found.rows() == 0) {
    throw Error(Category::not_found, "table_missing", fmt::format("there is no table {}", table->text()))
        .with_hint("names are exact: schema, table, upper and lower case");
  }
  Relation relation;
  relation.oid = static_cast<Oid>(found.integer(0, "oid"));
  relation.sql = quote_table(*table);
  relation.alias = quote_name(table->parts[1]);
  relation.text = table->text();
  relation.kind = found.text(0, "relkind")[0];
  relation.readable = found.boolean(0, "readable");
  relation.has_children = found.boolean(0, "relhassubclass");
  if (std::string_view("rpvmf").find(relation.kind) == std::string_view::npos) {
    throw Error(Category::input, "not_a_table", fmt::format("{} is no table or view", relation.text));
  }
  if (!found.boolean(0, "partly_readable")) {
    throw Error(Category::forbidden, "no_permission", fmt::format("the role may not SELECT from {}", relation.text));
  }
  if (found.boolean(0, "policies")) {
    throw Error(Category::forbidden, "row_security",
                fmt::format("row security policies of {} would hide rows from this role", relation.text))
        .with_hint("read as the table's owner or a role with BYPASSRLS");
  }
  co_return relation;
}

// The table and all that inherit from it, at every depth, that have rows of their own.
async::Task<void> find_leaves(Session* session, Relation* relation) {
  if (relation->kind == 'v') co_return;
  const Result found = co_await session->query(fmt::format(
      "WITH RECURSIVE tree(oid) AS (SELECT {}::pg_catalog.oid "
      "UNION SELECT i.inhrelid FROM pg_catalog.pg_inherits i JOIN tree t ON i.inhparent = t.oid{}) "
      "SELECT c.oid, c.relkind, pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(c.relname) AS name, "
      "coalesce(m.amname = 'heap', false) AS heap, pg_catalog.has_table_privilege(c.oid, 'SELECT') AS readable, "
      "pg_catalog.row_security_active(c.oid) AS policies, c.reltuples, c.relpages, "
      "coalesce(CASE WHEN c.relkind <> 'f' THEN pg_catalog.pg_relation_size(c.oid) END, 0) / "
      "pg_catalog.current_setting('block_size')::pg_catalog.int8 AS blocks, "
      "coalesce(CASE WHEN c.relkind <> 'f' THEN pg_catalog.pg_table_size(c.oid) END, 0) AS bytes "
      "FROM tree t JOIN pg_catalog.pg_class c ON c.oid = t.oid "
      "JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace LEFT JOIN pg_catalog.pg_am m ON m.oid = c.relam "
      "WHERE c.relkind IN ('r', 'm', 'f') ORDER BY c.oid",
      relation->oid, session->version() >= 140000 ? " WHERE NOT i.inhdetachpending" : ""));
  for (int i = 0; i < found.rows(); ++i) {
    Leaf leaf;
    leaf.oid = static_cast<Oid>(found.integer(i, "oid"));
    leaf.sql = found.text(i, "name");
    leaf.kind = found.text(i, "relkind")[0];
    leaf.heap = found.boolean(i, "heap");
    leaf.readable = found.boolean(i, "readable") && !found.boolean(i, "policies");
    leaf.tuples = found.real(i, "reltuples");
    leaf.pages = found.integer(i, "relpages");
    leaf.blocks = found.integer(i, "blocks");
    leaf.bytes = found.integer(i, "bytes");
    relation->leaves.push_back(std::move(leaf));
  }
}

async::Task<std::vector<std::string>> find_primary_key(Session* session, Oid oid) {
  const Result found = co_await session->query(fmt::format(
      "SELECT a.attname FROM pg_catalog.pg_index i "
      "CROSS JOIN LATERAL pg_catalog.unnest(i.indkey::pg_catalog.int2[]) WITH ORDINALITY AS k(attnum, position) "
      "JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum "
      "WHERE i.indrelid = {} AND i.indisprimary AND k.position <= i.indnkeyatts ORDER BY k.position",
      oid));
  std::vector<std::string> names;
  for (int i = 0; i < found.rows(); ++i) names.emplace_back(found.text(i, "attname"));
  co_return names;
}

// An operator of a type's own default operator class, by its strategy number.
std::string operator_of(const char* btree_strategy, const char* hash_strategy, const char* fallback) {
  return fmt::format(
      "coalesce((SELECT 'OPERATOR(' || pg_catalog.quote_ident(xn.nspname) || '.' || x.oprname || ')' "
      "FROM pg_catalog.pg_opclass oc JOIN pg_catalog.pg_am om ON om.oid = oc.opcmethod JOIN pg_catalog.pg_amop op "
      "ON op.amopfamily = oc.opcfamily AND op.amoplefttype = oc.opcintype AND op.amoprighttype = oc.opcintype "
      "JOIN pg_catalog.pg_operator x ON x.oid = op.amopopr JOIN pg_catalog.pg_namespace xn ON xn.oid = x.oprnamespace "
      "WHERE oc.opcintype = t.oid AND oc.opcdefault AND ((om.amname = 'btree' AND op.amopstrategy = {}) "
      "OR (om.amname = 'hash' AND op.amopstrategy = {})) ORDER BY om.amname LIMIT 1), '{}')",
      btree_strategy, hash_strategy, fallback);
}

// `columns` is a SELECT of ord, name, typid, typmod, not_null, identity, generated.
std::string types_query(const std::string& columns) {
  return "WITH RECURSIVE cols AS (" + columns +
         "), bases(ord, typid, typmod, depth) AS (SELECT ord, typid, typmod, 0 FROM cols UNION ALL "
         "SELECT b.ord, t.typbasetype, t.typtypmod, b.depth + 1 FROM bases b "
         "JOIN pg_catalog.pg_type t ON t.oid = b.typid WHERE t.typtype = 'd'), "
         "base AS (SELECT DISTINCT ON (ord) ord, typid, typmod FROM bases ORDER BY ord, depth DESC) "
         "SELECT c.name, c.not_null, c.identity, c.generated, t.oid, b.typmod, t.typtype, t.typname, n.nspname, "
         "t.typcategory = 'A' AND t.typelem <> 0 AS is_array, "
         "pg_catalog.format_type(b.typid, b.typmod) AS native, pg_catalog.format_type(b.typid, -1) AS sql, "
         "pg_catalog.quote_ident(fn.nspname) || '.' || pg_catalog.quote_ident(f.proname) AS output, "
         "EXISTS (SELECT 1 FROM pg_catalog.pg_cast k WHERE k.castsource = t.oid "
         "AND k.casttarget = 'pg_catalog.text'::pg_catalog.regtype AND k.castmethod = 'b') AS is_text, " +
         operator_of("3", "1", "=") + " AS equal, " + operator_of("1", "NULL", "<") + " AS less, " +
         operator_of("4", "NULL", ">=") +
         " AS at_least "
         "FROM cols c JOIN base b ON b.ord = c.ord JOIN pg_catalog.pg_type t ON t.oid = b.typid "
         "JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace JOIN pg_catalog.pg_proc f ON f.oid = t.typoutput "
         "JOIN pg_catalog.pg_namespace fn ON fn.oid = f.pronamespace ORDER BY c.ord";
}

std::string table_columns(Oid oid) {
  return fmt::format(
      "SELECT a.attnum::pg_catalog.int4 AS ord, a.attname::pg_catalog.text AS name, a.atttypid AS typid, "
      "a.atttypmod AS typmod, a.attnotnull AS not_null, a.attidentity <> '' AS identity, "
      "a.attgenerated <> '' AS generated FROM pg_catalog.pg_attribute a "
      "WHERE a.attrelid = {} AND a.attnum > 0 AND NOT a.attisdropped",
      oid);
}

std::string query_columns(const std::vector<DescribedColumn>& columns) {
  std::string values;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    values += fmt::format("{}({}, {}, {}::pg_catalog.oid, {}, false, false, false)", i == 0 ? "" : ", ", i + 1,
                          quote_text(columns[i].name), columns[i].type, columns[i].typmod);
  }
  return "SELECT * FROM (VALUES " + values + ") AS v(ord, name, typid, typmod, not_null, identity, generated)";
}

TypeFacts type_facts(const Result& found, int i) {
  TypeFacts type;
  type.oid = static_cast<Oid>(found.integer(i, "oid"));
  type.typmod = static_cast<int>(found.integer(i, "typmod"));
  type.kind = found.text(i, "typtype")[0];
  type.array = found.boolean(i, "is_array");
  type.name = found.text(i, "typname");
  type.schema = found.text(i, "nspname");
  type.sql = found.text(i, "sql");
  type.output = found.text(i, "output");
  type.is_text = found.boolean(i, "is_text");
  type.equal = found.text(i, "equal");
  type.less = found.text(i, "less");
  type.at_least = found.text(i, "at_least");
  return type;
}

Column column_of(const Result& found, int i, int money_scale) {
  Column column;
  column.type = type_facts(found, i);
  const TypeMapping mapping = map_type(column.type, money_scale);
  column.form = mapping.form;
  system::SourceColumn& facts = column.facts;
  facts.name = found.text(i, "name");
  facts.native = found.text(i, "native");
  facts.type = mapping.type;
  facts.nullable = !found.boolean(i, "not_null");
  facts.identity = found.boolean(i, "identity");
  facts.generated = found.boolean(i, "generated");
  facts.any_decimal = mapping.any_decimal;
  facts.can_read_as_text = true;
  facts.can_read_as_json = true;
  facts.text_only = mapping.text_only;
  facts.text_width = mapping.text_width;
  facts.rewritten = mapping.rewritten;
  return column;
}

async::Task<int> find_money_scale(Session* session, std::string* locale) {
  const Result found = co_await session->query(
      "SELECT pg_catalog.current_setting('lc_monetary') AS locale, "
      "pg_catalog.scale('0'::pg_catalog.money::pg_catalog.numeric) AS scale");
  *locale = found.text(0, "locale");
  co_return static_cast<int>(found.integer(0, "scale"));
}

async::Task<void> find_columns(Session* session, std::string columns, Origin* origin) {
  const Result found = co_await session->query(types_query(columns));
  int money_scale = 2;
  std::set<std::string_view> names;
  for (int i = 0; i < found.rows(); ++i) {
    if (static_cast<Oid>(found.integer(i, "oid")) == money_oid && origin->money_locale.empty()) {
      money_scale = co_await find_money_scale(session, &origin->money_locale);
    }
    if (!names.insert(found.text(i, "name")).second) {
      throw Error(Category::input, "duplicate_column",
                  fmt::format("the query gives two columns \"{}\"", found.text(i, "name")))
          .with_hint("name them with AS");
    }
    origin->columns.push_back(column_of(found, i, money_scale));
  }
}

// Trailing semicolons and blanks would end the statement inside the parentheses.
std::string bare_query(std::string_view query) {
  while (!query.empty() && (query.back() == ';' || std::isspace(static_cast<unsigned char>(query.back())) != 0)) {
    query.remove_suffix(1);
  }
  return std::string(query);
}

void mark_key(Origin& origin) {
  int position = 0;
  for (const std::string& name : origin.relation->primary_key) {
    ++position;
    for (Column& column : origin.columns) {
      if (column.facts.name == name) column.facts.key_position = position;
    }
  }
}

}  // namespace

const Column& Origin::column(std::string_view name) const {
  for (const Column& column : columns) {
    if (column.facts.name == name) return column;
  }
  std::string known;
  for (const Column& column : columns) known += (known.empty() ? "" : ", ") + column.facts.name;
  throw Error(Category::not_found, "column_missing",
              fmt::format("{} has no column \"{}\"", relation ? relation->text : "the query", name))
      .with_column(name)
      .with_hint("columns: " + cut_for_message(known, 400));
}

async::Task<Origin> look_up(Session& session, const system::SourceRequest& request) {
  Origin origin;
  origin.where = request.where;
  if (!request.query.empty()) {
    const std::string query = bare_query(request.query);
    const std::vector<DescribedColumn> described = co_await session.describe(query);
    if (described.empty()) throw Error(Category::input, "query_without_rows", "the query gives no rows");
    origin.from = "(\n" + query + "\n) AS q";
    co_await find_columns(&session, query_columns(described), &origin);
    co_return origin;
  }
  origin.relation = co_await find_relation(&session, &request.table);
  co_await find_leaves(&session, &*origin.relation);
  origin.relation->primary_key = co_await find_primary_key(&session, origin.relation->oid);
  origin.from = origin.relation->sql;
  co_await find_columns(&session, table_columns(origin.relation->oid), &origin);
  mark_key(origin);
  co_return origin;
}

double estimated_rows(const Leaf& leaf) noexcept {
  if (leaf.tuples < 0) return -1;
  if (leaf.pages <= 0 || leaf.kind == 'f') return leaf.tuples;
  return leaf.tuples * static_cast<double>(leaf.blocks) / static_cast<double>(leaf.pages);
}

namespace {

// "Plan Rows" and "Plan Width" of the topmost node.
std::optional<std::uint64_t> plan_number(std::string_view json, std::string_view key) {
  const std::size_t at = json.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  return std::strtoull(std::string(json.substr(at + key.size(), 24)).c_str(), nullptr, 10);
}

}  // namespace

async::Task<Estimate> estimate(Session& session, const Origin& origin, const std::vector<std::string>& columns) {
  Estimate result;
  const bool planned = !origin.where.empty() || !origin.relation || origin.relation->kind == 'v';
  if (planned) {
    std::string list;
    for (const std::string& name : columns) list += (list.empty() ? "" : ", ") + quote_name(name);
    const Result plan = co_await session.query(
        fmt::format("EXPLAIN (FORMAT JSON) SELECT {} FROM {}{}", list.empty() ? "*" : list, origin.from,
                    origin.where.empty() ? "" : " WHERE (\n" + origin.where + "\n)"));
    const std::string_view json = plan.text(0, "\"QUERY PLAN\"");
    result.rows = plan_number(json, "\"Plan Rows\":");
    const auto width = plan_number(json, "\"Plan Width\":");
    if (result.rows && width) result.bytes = *result.rows * *width;
    co_return result;
  }
  double rows = 0;
  std::uint64_t bytes = 0;
  bool known = true;
  for (const Leaf& leaf : origin.relation->leaves) {
    const double one = estimated_rows(leaf);
    known = known && (one >= 0 || leaf.blocks == 0);
    rows += std::max(one, 0.0);
    bytes += static_cast<std::uint64_t>(leaf.bytes);
  }
  if (known) result.rows = static_cast<std::uint64_t>(rows);
  result.bytes = bytes;
  co_return result;
}

async::Task<std::vector<std::string>> not_carried(Session& session, const Relation& relation) {
  const Result found = co_await session.query(fmt::format(
      "SELECT what FROM ("
      "SELECT 1 AS class, 'index ' || c.relname AS what FROM pg_catalog.pg_index i "
      "JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid WHERE i.indrelid = {0} AND NOT i.indisprimary "
      "UNION ALL SELECT 2, CASE contype WHEN 'c' THEN 'check ' WHEN 'f' THEN 'foreign key ' WHEN 'u' THEN 'unique ' "
      "WHEN 'x' THEN 'exclusion ' WHEN 't' THEN 'constraint trigger ' END || conname FROM pg_catalog.pg_constraint "
      "WHERE conrelid = {0} AND contype IN ('c', 'f', 'u', 'x', 't') "
      "UNION ALL SELECT 3, 'trigger ' || tgname FROM pg_catalog.pg_trigger WHERE tgrelid = {0} AND NOT tgisinternal "
      "UNION ALL SELECT 4, CASE WHEN a.attgenerated <> '' THEN 'generated expression of ' ELSE 'default of ' END || "
      "a.attname FROM pg_catalog.pg_attrdef d JOIN pg_catalog.pg_attribute a ON a.attrelid = d.adrelid "
      "AND a.attnum = d.adnum WHERE d.adrelid = {0} "
      "UNION ALL SELECT 4, 'identity of ' || attname FROM pg_catalog.pg_attribute WHERE attrelid = {0} "
      "AND attidentity <> '' "
      "UNION ALL SELECT 5, 'partitioning by ' || pg_catalog.pg_get_partkeydef({0}) "
      "WHERE pg_catalog.pg_get_partkeydef({0}) IS NOT NULL "
      "UNION ALL SELECT 6, 'policy ' || polname FROM pg_catalog.pg_policy WHERE polrelid = {0} "
      "UNION ALL SELECT 7, 'rule ' || rulename FROM pg_catalog.pg_rewrite WHERE ev_class = {0} "
      "AND rulename <> '_RETURN') AS parts WHERE what IS NOT NULL ORDER BY class, what",
      relation.oid));
  std::vector<std::string> parts;
  for (int i = 0; i < found.rows(); ++i) parts.emplace_back(found.text(i, "what"));
  co_return parts;
}

async::Task<std::vector<std::string>> leading_columns(Session& session, const Relation& relation) {
  const Result found = co_await session.query(
      fmt::format("SELECT a.attname FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid "
                  "JOIN pg_catalog.pg_am m ON m.oid = c.relam JOIN pg_catalog.pg_attribute a "
                  "ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0] "
                  "WHERE i.indrelid = {} AND i.indisvalid AND i.indpred IS NULL AND m.amname = 'btree' "
                  "ORDER BY i.indisprimary DESC, i.indisunique DESC, i.indnatts, c.relname",
                  relation.oid));
  std::vector<std::string> names;
  for (int i = 0; i < found.rows(); ++i) names.emplace_back(found.text(i, "attname"));
  co_return names;
}

async::Task<std::vector<Locked>> locked_relations(Session& session) {
  const Result found = co_await session.query(
      "SELECT DISTINCT c.oid, c.relkind, "
      "pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(c.relname) AS name, "
      "c.relkind IN ('r', 'p', 'v') AND pg_catalog.has_table_privilege(c.oid, 'SELECT') AS lockable, "
      "c.relfilenode <> coalesce(pg_catalog.pg_relation_filenode(c.oid), 0) AS rewritten "
      "FROM pg_catalog.pg_locks l JOIN pg_catalog.pg_class c ON c.oid = l.relation "
      "JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
      "WHERE l.locktype = 'relation' AND l.pid = pg_catalog.pg_backend_pid() AND l.granted "
      "AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database()) "
      "AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg\\_toast%' "
      "AND c.relkind IN ('r', 'p', 'v', 'm', 'f') ORDER BY c.oid");
  std::vector<Locked> relations;
  for (int i = 0; i < found.rows(); ++i) {
    Locked one;
    one.oid = static_cast<Oid>(found.integer(i, "oid"));
    one.sql = found.text(i, "name");
    one.kind = found.text(i, "relkind")[0];
    one.lockable = found.boolean(i, "lockable");
    one.rewritten = found.boolean(i, "rewritten");
    relations.push_back(std::move(one));
  }
  co_return relations;
}

}  // namespace rowferry::postgres
