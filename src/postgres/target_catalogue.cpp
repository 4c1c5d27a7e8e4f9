#include "postgres/target_catalogue.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "postgres/dialect.hpp"

namespace rowferry::postgres {

using async::Task;

namespace {

constexpr Oid money_oid = 790;

std::vector<std::string> texts(const Result& found, const char* column) {
  std::vector<std::string> out;
  for (int i = 0; i < found.rows(); ++i) out.emplace_back(found.text(i, column));
  return out;
}

char letter(std::string_view text) { return text.empty() ? '\0' : text[0]; }

// "SELECT|role|t": privileges of others than the owner.
std::string grants_of(std::string_view relation) {
  return fmt::format(
      "pg_catalog.aclexplode({0}.relacl) AS g LEFT JOIN pg_catalog.pg_roles AS grantee ON grantee.oid = g.grantee "
      "WHERE g.grantee <> {0}.relowner",
      relation);
}
constexpr std::string_view grant_text =
    "g.privilege_type || '|' || coalesce(pg_catalog.quote_ident(grantee.rolname), 'PUBLIC') || '|' || "
    "CASE WHEN g.is_grantable THEN 't' ELSE 'f' END";

Task<bool> find_table(Session* session, TableFacts* table) {
  const Result found = co_await session->query(fmt::format(
      "SELECT c.oid, c.relkind, c.relpersistence, c.relhassubclass, c.reloftype <> 0 AS typed, "
      "coalesce(t.spcname, '') AS tablespace, pg_catalog.quote_ident(o.rolname) AS owner, "
      "pg_catalog.row_security_active(c.oid) AS policies, "
      "coalesce(p.partstrat, '') AS strategy, coalesce(pg_catalog.pg_get_partkeydef(c.oid), '') AS key, "
      "coalesce(k.attname, '') AS key_column, "
      "coalesce(pg_catalog.pg_get_expr(c.relpartbound, 0), '') AS bound, "
      "CASE WHEN c.relkind = 'r' THEN coalesce(pg_catalog.pg_get_partition_constraintdef(c.oid), '') ELSE '' END "
      "AS bound_check, coalesce(pg_catalog.quote_ident(hn.nspname) || '.' || pg_catalog.quote_ident(h.relname), '') AS "
      "parent, "
      "coalesce(pg_catalog.pg_has_role(h.relowner, 'USAGE'), false) AS parent_owned "
      "FROM pg_catalog.pg_namespace n LEFT JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = {1} "
      "AND c.relkind <> 't' "
      "LEFT JOIN pg_catalog.pg_roles o ON o.oid = c.relowner "
      "LEFT JOIN pg_catalog.pg_tablespace t ON t.oid = c.reltablespace "
      "LEFT JOIN pg_catalog.pg_partitioned_table p ON p.partrelid = c.oid "
      "LEFT JOIN pg_catalog.pg_attribute k ON k.attrelid = c.oid AND p.partnatts = 1 AND k.attnum = p.partattrs[0] "
      "AND k.attnum > 0 "
      "LEFT JOIN pg_catalog.pg_inherits i ON i.inhrelid = c.oid AND c.relispartition "
      "LEFT JOIN pg_catalog.pg_class h ON h.oid = i.inhparent "
      "LEFT JOIN pg_catalog.pg_namespace hn ON hn.oid = h.relnamespace WHERE n.nspname = {0}",
      quote_text(table->schema), quote_text(table->name)));
  if (found.rows() == 0) {
    throw Error(Category::not_found, "schema_missing", fmt::format("there is no schema {}", quote_name(table->schema)))
        .with_field("target.table")
        .with_hint("names are exact: upper and lower case");
  }
  if (found.null(0, "oid")) co_return false;
  table->exists = true;
  table->oid = static_cast<Oid>(found.integer(0, "oid"));
  table->kind = letter(found.text(0, "relkind"));
  table->persistence = letter(found.text(0, "relpersistence"));
  table->typed = found.boolean(0, "typed");
  table->tablespace = found.text(0, "tablespace");
  table->owner = found.text(0, "owner");
  table->row_security = found.boolean(0, "policies");
  table->partition_key = found.text(0, "key");
  table->partition_column = found.text(0, "key_column");
  table->parent = found.text(0, "parent");
  table->parent_owned = found.boolean(0, "parent_owned");
  if (!table->parent.empty()) {
    table->parent_bound = found.text(0, "bound");
    table->partition_check = found.text(0, "bound_check");
  }
  switch (letter(found.text(0, "strategy"))) {
    case 'l':
      table->partition_by = "list";
      break;
    case 'r':
      table->partition_by = "range";
      break;
    case 'h':
      table->partition_by = "hash";
      break;
    default:
      break;
  }
  co_return true;
}

// A serial column's default names its sequence whether the column owns it or not: "nextval('s.q'::regclass)".
std::string sequence_in(std::string_view expression) {
  constexpr std::string_view head = "nextval('";
  constexpr std::string_view tail = "'::regclass)";
  if (!expression.starts_with(head) || !expression.ends_with(tail)) return {};
  expression.remove_prefix(head.size());
  expression.remove_suffix(tail.size());
  std::string out;
  for (std::size_t i = 0; i < expression.size(); ++i) {
    if (expression[i] == '\'') ++i;
    if (i < expression.size()) out += expression[i];
  }
  return out;
}

Task<void> find_columns(Session* session, TableFacts* table) {
  const Result found = co_await session->query(fmt::format(
      "WITH RECURSIVE bases(attnum, typid, typmod, not_null, depth) AS ("
      "SELECT a.attnum, a.atttypid, a.atttypmod, a.attnotnull, 0 FROM pg_catalog.pg_attribute a "
      "WHERE a.attrelid = {0} AND a.attnum > 0 AND NOT a.attisdropped UNION ALL "
      "SELECT b.attnum, t.typbasetype, t.typtypmod, b.not_null OR t.typnotnull, b.depth + 1 FROM bases b "
      "JOIN pg_catalog.pg_type t ON t.oid = b.typid WHERE t.typtype = 'd'), "
      "base AS (SELECT DISTINCT ON (attnum) attnum, typid, typmod, not_null FROM bases ORDER BY attnum, depth DESC) "
      "SELECT a.attname, a.attidentity, a.attgenerated, b.not_null, t.oid, b.typmod, t.typtype, t.typname, n.nspname, "
      "t.typcategory = 'A' AND t.typelem <> 0 AS is_array, "
      "pg_catalog.format_type(a.atttypid, a.atttypmod) AS native, pg_catalog.format_type(b.typid, -1) AS sql, "
      "EXISTS (SELECT 1 FROM pg_catalog.pg_cast k WHERE k.castsource = t.oid "
      "AND k.casttarget = 'pg_catalog.text'::pg_catalog.regtype AND k.castmethod = 'b') AS is_text, "
      "CASE WHEN a.attcollation <> 0 AND a.attcollation <> own.typcollation "
      "THEN pg_catalog.quote_ident(cn.nspname) || '.' || pg_catalog.quote_ident(co.collname) ELSE '' END AS coll, "
      "coalesce(pg_catalog.pg_get_expr(d.adbin, d.adrelid), '') AS expression, "
      "coalesce(pg_catalog.pg_get_serial_sequence({1}, a.attname), '') AS sequence "
      "FROM pg_catalog.pg_attribute a JOIN base b ON b.attnum = a.attnum "
      "JOIN pg_catalog.pg_type own ON own.oid = a.atttypid JOIN pg_catalog.pg_type t ON t.oid = b.typid "
      "JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace "
      "LEFT JOIN pg_catalog.pg_collation co ON co.oid = a.attcollation "
      "LEFT JOIN pg_catalog.pg_namespace cn ON cn.oid = co.collnamespace "
      "LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum "
      "WHERE a.attrelid = {0} ORDER BY a.attnum",
      table->oid, quote_text(table->sql)));
  bool money = false;
  for (int i = 0; i < found.rows(); ++i) {
    ColumnFacts column;
    column.name = found.text(i, "attname");
    column.native = found.text(i, "native");
    column.collation = found.text(i, "coll");
    column.nullable = !found.boolean(i, "not_null");
    column.identity = letter(found.text(i, "attidentity"));
    column.generated = letter(found.text(i, "attgenerated"));
    column.expression = found.text(i, "expression");
    column.sequence = found.text(i, "sequence");
    if (column.sequence.empty()) column.sequence = sequence_in(column.expression);
    column.type.oid = static_cast<Oid>(found.integer(i, "oid"));
    column.type.typmod = static_cast<int>(found.integer(i, "typmod"));
    column.type.kind = letter(found.text(i, "typtype"));
    column.type.array = found.boolean(i, "is_array");
    column.type.name = found.text(i, "typname");
    column.type.schema = found.text(i, "nspname");
    column.type.sql = found.text(i, "sql");
    column.type.is_text = found.boolean(i, "is_text");
    money = money || column.type.oid == money_oid;
    table->columns.push_back(std::move(column));
  }
  if (money) table->money_scale = co_await read_money_scale(*session);
}

Task<void> find_increments(Session* session, TableFacts* table) {
  for (ColumnFacts& column : table->columns) {
    if (column.sequence.empty()) continue;
    const Result found = co_await session->query(
        fmt::format("SELECT seqincrement FROM pg_catalog.pg_sequence WHERE seqrelid = {}::pg_catalog.regclass",
                    quote_text(column.sequence)));
    if (found.rows() == 1) column.increment = found.integer(0, "seqincrement");
  }
}

Task<void> find_indexes(Session* session, TableFacts* table) {
  const Result found = co_await session->query(fmt::format(
      "SELECT c.relname, i.indisprimary, i.indisunique, i.indisvalid, "
      "pg_catalog.substr(pg_catalog.pg_get_indexdef(i.indexrelid), pg_catalog.length('CREATE ' || "
      "CASE WHEN i.indisunique THEN 'UNIQUE ' ELSE '' END || 'INDEX ' || pg_catalog.quote_ident(c.relname) || ' ON ' "
      "|| "
      "CASE WHEN c.relkind = 'I' THEN 'ONLY ' ELSE '' END || pg_catalog.format('%I.%I ', {1}, {2})) + 1) AS tail, "
      "coalesce((SELECT pg_catalog.pg_get_constraintdef(k.oid) FROM pg_catalog.pg_constraint k "
      "WHERE k.conindid = i.indexrelid AND k.conrelid = i.indrelid AND k.contype IN ('p', 'u', 'x')), '') AS constr, "
      "(SELECT pg_catalog.string_agg(coalesce(a.attname, ''), pg_catalog.chr(1) ORDER BY k.position) "
      "FROM pg_catalog.unnest(i.indkey::pg_catalog.int2[]) WITH ORDINALITY AS k(attnum, position) "
      "LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum "
      "WHERE k.position <= i.indnkeyatts) AS key_columns "
      "FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid "
      "WHERE i.indrelid = {0} ORDER BY i.indisprimary DESC, c.relname",
      table->oid, quote_text(table->schema), quote_text(table->name)));
  for (int i = 0; i < found.rows(); ++i) {
    IndexFacts index;
    index.name = found.text(i, "relname");
    index.definition = found.text(i, "tail");
    index.constraint = found.text(i, "constr");
    index.primary = found.boolean(i, "indisprimary");
    index.unique = found.boolean(i, "indisunique");
    index.valid = found.boolean(i, "indisvalid");
    std::string_view names = found.text(i, "key_columns");
    for (std::size_t end = 0; end != std::string_view::npos;) {
      end = names.find('\x01');
      index.columns.emplace_back(names.substr(0, end));
      if (end != std::string_view::npos) names.remove_prefix(end + 1);
    }
    table->indexes.push_back(std::move(index));
  }
}

Task<void> find_parts(Session* session, TableFacts* table) {
  const Result constraints = co_await session->query(fmt::format(
      "SELECT conname, contype, pg_catalog.pg_get_constraintdef(oid) AS definition "
      "FROM pg_catalog.pg_constraint WHERE conrelid = {} AND contype IN ('c', 'f') ORDER BY contype, conname",
      table->oid));
  for (int i = 0; i < constraints.rows(); ++i) {
    table->constraints.push_back({std::string(constraints.text(i, "conname")), letter(constraints.text(i, "contype")),
                                  std::string(constraints.text(i, "definition"))});
  }
  const Result triggers = co_await session->query(
      fmt::format("SELECT tgname, tgenabled FROM pg_catalog.pg_trigger WHERE tgrelid = {} AND NOT tgisinternal "
                  "ORDER BY tgname",
                  table->oid));
  for (int i = 0; i < triggers.rows(); ++i) {
    table->triggers.push_back({std::string(triggers.text(i, "tgname")), letter(triggers.text(i, "tgenabled"))});
  }
  const Result rules = co_await session->query(
      fmt::format("SELECT rulename, ev_type = '3' AND ev_enabled IN ('O', 'A') AS inserts FROM pg_catalog.pg_rewrite "
                  "WHERE ev_class = {} AND rulename <> '_RETURN' ORDER BY rulename",
                  table->oid));
  table->rules = texts(rules, "rulename");
  for (int i = 0; i < rules.rows(); ++i) table->insert_rules = table->insert_rules || rules.boolean(i, "inserts");
  table->policies = texts(co_await session->query(fmt::format("SELECT polname FROM pg_catalog.pg_policy "
                                                              "WHERE polrelid = {} ORDER BY polname",
                                                              table->oid)),
                          "polname");
  // Of the table and of single columns.
  table->grants = texts(
      co_await session->query(fmt::format(
          "SELECT {0} AS text FROM pg_catalog.pg_class c, {1} AND c.oid = {2} UNION ALL "
          "SELECT g.privilege_type || ' (' || pg_catalog.quote_ident(a.attname) || ')' || "
          "pg_catalog.substr({0}, pg_catalog.length(g.privilege_type) + 1) FROM "
          "pg_catalog.pg_attribute a, pg_catalog.aclexplode(a.attacl) AS g LEFT JOIN pg_catalog.pg_roles AS grantee ON "
          "grantee.oid = g.grantee WHERE a.attrelid = {2} AND NOT a.attisdropped ORDER BY text",
          grant_text, grants_of("c"), table->oid)),
      "text");
}

Task<void> find_neighbours(Session* session, TableFacts* table) {
  table->referenced_by = texts(
      co_await session->query(fmt::format(
          "SELECT DISTINCT pg_catalog.quote_ident(k.conname) || ' of ' || pg_catalog.quote_ident(n.nspname) || '.' || "
          "pg_catalog.quote_ident(c.relname) AS text FROM pg_catalog.pg_constraint k "
          "JOIN pg_catalog.pg_class c ON c.oid = k.conrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
          "WHERE k.contype = 'f' AND k.confrelid = {0} AND k.conrelid <> {0} ORDER BY text",
          table->oid)),
      "text");
  if (!table->partitioned()) {
    table->children =
        texts(co_await session->query(fmt::format(
                  "SELECT pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(c.relname) AS text "
                  "FROM pg_catalog.pg_inherits i JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid "
                  "JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE i.inhparent = {} ORDER BY text",
                  table->oid)),
              "text");
  }
  // By name: those of all tables or of a schema take a new table by themselves.
  table->publications = texts(
      co_await session->query(fmt::format("SELECT p.pubname FROM pg_catalog.pg_publication_rel r "
                                          "JOIN pg_catalog.pg_publication p ON p.oid = r.prpubid WHERE r.prrelid = {} "
                                          "ORDER BY p.pubname",
                                          table->oid)),
      "pubname");
}

PartitionFacts partition_of(const Result& found, int i) {
  PartitionFacts part;
  part.oid = static_cast<Oid>(found.integer(i, "oid"));
  part.schema = found.text(i, "nspname");
  part.name = found.text(i, "relname");
  part.sql = quote_table({{part.schema, part.name}});
  part.kind = letter(found.text(i, "relkind"));
  part.persistence = letter(found.text(i, "relpersistence"));
  part.tablespace = found.text(i, "tablespace");
  part.owner = found.text(i, "owner");
  part.bound = parse_bound(found.text(i, "bound"));
  part.may_insert = found.boolean(i, "may_insert");
  part.may_truncate = found.boolean(i, "may_truncate");
  part.owned = found.boolean(i, "owned");
  return part;
}

}  // namespace

// Runs at the begin of every slice's transaction while others empty and attach partitions: it neither takes locks that
// last nor waits for theirs (pg_get_partition_constraintdef() and pg_get_expr() with the table would).
Task<std::vector<PartitionFacts>> read_partitions(Session& session, Oid parent) {
  const Result found = co_await session.query(fmt::format(
      "SELECT c.oid, n.nspname, c.relname, c.relkind, c.relpersistence, coalesce(t.spcname, '') AS tablespace, "
      "pg_catalog.quote_ident(o.rolname) AS owner, pg_catalog.pg_get_expr(c.relpartbound, 0) AS bound, "
      "pg_catalog.has_table_privilege(c.oid, 'INSERT') AS may_insert, "
      "pg_catalog.has_table_privilege(c.oid, 'TRUNCATE') AS may_truncate, "
      "pg_catalog.pg_has_role(c.relowner, 'USAGE') AS owned "
      "FROM pg_catalog.pg_inherits i JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid "
      "JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace JOIN pg_catalog.pg_roles o ON o.oid = c.relowner "
      "LEFT JOIN pg_catalog.pg_tablespace t ON t.oid = c.reltablespace "
      "WHERE i.inhparent = {}{} AND c.relpartbound IS NOT NULL ORDER BY c.relname, c.oid",
      parent, session.version() >= 140000 ? " AND NOT i.inhdetachpending" : ""));
  std::vector<PartitionFacts> out;
  for (int i = 0; i < found.rows(); ++i) out.push_back(partition_of(found, i));
  const Result grants = co_await session.query(fmt::format(
      "SELECT c.oid, {} AS text FROM pg_catalog.pg_inherits i JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid, {} "
      "AND i.inhparent = {} ORDER BY c.oid, text",
      grant_text, grants_of("c"), parent));
  const Result triggers = co_await session.query(
      fmt::format("SELECT t.tgrelid AS oid, t.tgname, t.tgenabled FROM pg_catalog.pg_inherits i "
                  "JOIN pg_catalog.pg_trigger t ON t.tgrelid = i.inhrelid WHERE i.inhparent = {} AND "
                  "(NOT t.tgisinternal OR EXISTS (SELECT 1 FROM pg_catalog.pg_trigger p WHERE p.tgrelid = i.inhparent "
                  "AND p.tgname = t.tgname AND NOT p.tgisinternal)) ORDER BY t.tgrelid, t.tgname",
                  parent));
  for (PartitionFacts& part : out) {
    for (int i = 0; i < grants.rows(); ++i) {
      if (static_cast<Oid>(grants.integer(i, "oid")) == part.oid) part.grants.emplace_back(grants.text(i, "text"));
    }
    for (int i = 0; i < triggers.rows(); ++i) {
      if (static_cast<Oid>(triggers.integer(i, "oid")) != part.oid) continue;
      part.triggers.push_back({std::string(triggers.text(i, "tgname")), letter(triggers.text(i, "tgenabled"))});
    }
  }
  co_return out;
}

const ColumnFacts* TableFacts::column(std::string_view column_name) const noexcept {
  const auto at = std::ranges::find(columns, column_name, &ColumnFacts::name);
  return at == columns.end() ? nullptr : &*at;
}

const IndexFacts* TableFacts::primary_key() const noexcept {
  const auto at = std::ranges::find_if(indexes, &IndexFacts::primary);
  return at == indexes.end() ? nullptr : &*at;
}

std::string TableFacts::definition() const {
  std::string out =
      fmt::format("{} {} {} {} {} {} {}", exists, oid, kind, persistence, owner, partition_key, parent_bound);
  for (const ColumnFacts& c : columns) {
    out += fmt::format("\n{} {} {} {} {} {} {}", c.name, c.native, c.collation, c.nullable,
                       static_cast<int>(c.identity), static_cast<int>(c.generated), c.expression);
  }
  for (const IndexFacts& i : indexes) out += fmt::format("\n{} {} {} {}", i.name, i.definition, i.constraint, i.valid);
  for (const ConstraintFacts& c : constraints) out += fmt::format("\n{} {} {}", c.type, c.name, c.definition);
  for (const TriggerFacts& t : triggers) out += fmt::format("\n{} {}", t.name, t.enabled);
  for (const auto* const list : {&rules, &policies, &grants, &referenced_by, &children, &publications}) {
    for (const std::string& text : *list) out += "\n" + text;
  }
  return out;
}

Place place_of(const system::TargetRequest& request, const std::string& ledger_schema) {
  const std::vector<std::string>& parts = request.table.parts;
  if (parts.size() != 2) {
    throw Error(Category::input, "bad_name", "a PostgreSQL table has two parts, schema and table")
        .with_field("target.table");
  }
  return {parts[0], parts[1], ledger_schema.empty() ? parts[0] : ledger_schema};
}

Task<int> read_money_scale(Session& session) {
  const Result found =
      co_await session.query("SELECT pg_catalog.scale('0'::pg_catalog.money::pg_catalog.numeric) AS scale");
  co_return static_cast<int>(found.integer(0, "scale"));
}

Task<TableFacts> read_table(Session& session, std::string schema, std::string name) {
  TableFacts table;
  table.schema = std::move(schema);
  table.name = std::move(name);
  table.sql = quote_table({{table.schema, table.name}});
  const bool there = co_await find_table(&session, &table);
  if (!there) co_return table;
  co_await find_columns(&session, &table);
  co_await find_increments(&session, &table);
  co_await find_indexes(&session, &table);
  co_await find_parts(&session, &table);
  co_await find_neighbours(&session, &table);
  if (table.partitioned()) table.partitions = co_await read_partitions(session, table.oid);
  co_return table;
}

Task<std::vector<Dependant>> read_dependants(Session& session, const TableFacts& table) {
  std::vector<Dependant> out;
  // Views and what else a rule of theirs makes depend on the table or on a column of it.
  const Result found = co_await session.query(fmt::format(
      "SELECT DISTINCT c.oid, c.relkind, pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(c.relname) "
      "AS name FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_rewrite r ON r.oid = d.objid "
      "JOIN pg_catalog.pg_class c ON c.oid = r.ev_class JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
      "WHERE d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass AND d.refclassid = "
      "'pg_catalog.pg_class'::pg_catalog.regclass AND d.refobjid = {0} AND r.ev_class <> {0} ORDER BY name",
      table.oid));
  for (int i = 0; i < found.rows(); ++i) {
    const bool stored = found.text(i, "relkind") == "m";
    const std::string_view kind = stored ? "materialized view" : "view";
    const std::string_view verb = stored ? "DROP MATERIALIZED VIEW" : "DROP VIEW";
    // A view may hang on another of the list, which is gone then.
    out.push_back({fmt::format("{} {}", kind, found.text(i, "name")),
                   fmt::format("{} IF EXISTS {} CASCADE", verb, found.text(i, "name"))});
  }
  const Result keys = co_await session.query(fmt::format(
      "SELECT pg_catalog.quote_ident(k.conname) AS name, pg_catalog.quote_ident(n.nspname) || '.' || "
      "pg_catalog.quote_ident(c.relname) AS holder FROM pg_catalog.pg_constraint k "
      "JOIN pg_catalog.pg_class c ON c.oid = k.conrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
      "WHERE k.contype = 'f' AND k.confrelid = {0} AND k.conrelid <> {0} AND k.conparentid = 0 ORDER BY 2, 1",
      table.oid));
  for (int i = 0; i < keys.rows(); ++i) {
    out.push_back(
        {fmt::format("foreign key {} of {}", keys.text(i, "name"), keys.text(i, "holder")),
         fmt::format("ALTER TABLE {} DROP CONSTRAINT IF EXISTS {}", keys.text(i, "holder"), keys.text(i, "name"))});
  }
  // Functions that take or give rows of the table, and columns of its type: no statement of ours mends those.
  const Result rows = co_await session.query(fmt::format(
      "SELECT DISTINCT pg_catalog.pg_describe_object(d.classid, d.objid, d.objsubid) AS text "
      "FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_type t ON (d.refobjid = t.oid OR d.refobjid = t.typarray) "
      "WHERE t.typrelid = {0} AND d.refclassid = 'pg_catalog.pg_type'::pg_catalog.regclass AND d.deptype = 'n' "
      "AND NOT (d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.objid = {0}) ORDER BY text",
      table.oid));
  for (const std::string& text : texts(rows, "text")) out.push_back({text + ", which has its row type", "", false});
  for (const std::string& child : table.children) out.push_back({child + ", which inherits from it", "", false});
  const Result parents = co_await session.query(fmt::format(
      "SELECT pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(c.relname) AS text "
      "FROM pg_catalog.pg_inherits i JOIN pg_catalog.pg_class c ON c.oid = i.inhparent "
      "JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace JOIN pg_catalog.pg_class self ON self.oid = i.inhrelid "
      "WHERE i.inhrelid = {} AND NOT self.relispartition ORDER BY text",
      table.oid));
  for (const std::string& parent : texts(parents, "text"))
    out.push_back({parent + ", from which it inherits", "", false});
  const Result extras = co_await session.query(fmt::format(
      "SELECT 'extended statistics ' || pg_catalog.quote_ident(stxname) AS text FROM pg_catalog.pg_statistic_ext "
      "WHERE stxrelid = {0} UNION ALL SELECT 'comment on ' || pg_catalog.pg_describe_object(classoid, objoid, "
      "objsubid) "
      "FROM pg_catalog.pg_description WHERE classoid = 'pg_catalog.pg_class'::pg_catalog.regclass AND objoid = {0} "
      "ORDER BY text",
      table.oid));
  for (const std::string& text : texts(extras, "text")) out.push_back({text, ""});
  for (const std::string& publication : table.publications) {
    out.push_back({"publication " + quote_name(publication) + " has it", ""});
  }
  co_return out;
}

Task<Rights> read_rights(Session& session, const TableFacts& table) {
  const std::string oid = std::to_string(table.oid);
  const auto has = [&](std::string_view what) {
    return table.exists ? fmt::format("pg_catalog.has_table_privilege({}::pg_catalog.oid, '{}')", oid, what) : "false";
  };
  const Result found = co_await session.query(fmt::format(
      "SELECT pg_catalog.quote_ident(current_user) AS role, pg_catalog.has_schema_privilege({}, 'CREATE') AS creates, "
      "{} AS selects, "
      "{} AS inserts, {} AS removes, {} AS truncates, {} AS owns",
      quote_text(table.schema), has("SELECT"), has("INSERT"), has("DELETE"), has("TRUNCATE"),
      table.exists ? fmt::format("(SELECT pg_catalog.pg_has_role(c.relowner, 'USAGE') FROM pg_catalog.pg_class c "
                                 "WHERE c.oid = {})",
                                 oid)
                   : "false"));
  Rights rights;
  rights.role = found.text(0, "role");
  rights.create_in_schema = found.boolean(0, "creates");
  rights.select = found.boolean(0, "selects");
  rights.insert = found.boolean(0, "inserts");
  rights.remove = found.boolean(0, "removes");
  rights.truncate = found.boolean(0, "truncates");
  rights.owner = found.boolean(0, "owns");
  co_return rights;
}

Task<bool> read_is_empty(Session& session, const TableFacts& table) {
  const Result found = co_await session.query(
      fmt::format("SELECT NOT EXISTS (SELECT 1 FROM {}{}) AS empty", table.children.empty() ? "" : "ONLY ", table.sql));
  co_return found.boolean(0, "empty");
}

Task<bool> tablespace_usable(Session& session, std::string tablespace, std::string& why) {
  const Result found = co_await session.query(fmt::format(
      "SELECT spcname = 'pg_global' AS global, pg_catalog.has_tablespace_privilege(oid, 'CREATE') AS creates "
      "FROM pg_catalog.pg_tablespace WHERE spcname = {}",
      quote_text(tablespace)));
  if (found.rows() == 0) {
    why = fmt::format("the server has no tablespace \"{}\"", tablespace);
  } else if (found.boolean(0, "global")) {
    why = "the tablespace pg_global is the server's own";
  } else if (!found.boolean(0, "creates")) {
    why = fmt::format("the role may not create tables in the tablespace \"{}\"", tablespace);
  } else {
    co_return true;
  }
  co_return false;
}

}  // namespace rowferry::postgres
