// sp_rename, application locks, and the procedures that describe tables and queries.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sandbox/engine/collation.hpp"
#include "sandbox/engine/procedures.hpp"

namespace rowferry::sandbox::engine {

std::vector<OutputColumn> columns_of(const Context& context, std::string_view spec) {
  std::vector<OutputColumn> columns;
  while (!spec.empty()) {
    const std::size_t comma = spec.find(',');
    std::string_view one = spec.substr(0, comma);
    spec = comma == std::string_view::npos ? std::string_view() : spec.substr(comma + 1);
    while (!one.empty() && one.front() == ' ') one.remove_prefix(1);
    const std::size_t blank = one.find(' ');
    OutputColumn c;
    c.name = one.substr(0, blank);
    c.flags = tds::flag_updatable_unknown;
    std::string type(one.substr(blank + 1));
    c.nullable = !type.ends_with('!');
    if (!c.nullable) type.pop_back();
    c.type = type == "name"  ? sysname_type(context.collation())
             : type == "max" ? nvarchar_type(max_length, context.collation())
                             : parse_type_text(type, parse_options(context)).value();
    columns.push_back(std::move(c));
  }
  return columns;
}

namespace {

Value name_cell(std::string_view s) { return Value::of_name(s); }
Value null_cell() { return Value::of_null(int_type()); }

struct Renaming {
  const Context& context;
  std::string new_name;
};

void rename_object(const Renaming& r, const ObjectPtr& object) {
  const auto db = r.context.server.database(object->database);
  if (db->find(object->schema_id, r.new_name) != nullptr || constraint_name_taken(*db, object->schema_id, r.new_name))
    raise(15335, 11, 1,
          fmt::format("Error: The new name '{}' is already in use as a OBJECT name and would cause a duplicate that is "
                      "not permitted.",
                      r.new_name));
  lock_name(r.context, Place{db, object->schema_id}, object->name);
  lock_name(r.context, Place{db, object->schema_id}, r.new_name);
  if (object->kind == ObjectKind::table) lock_definition(r.context, *object);
  const std::string old_name = object->name, new_name = r.new_name;
  const auto move = [db, object](const std::string& from, const std::string& to) {
    db->objects.erase({object->schema_id, fold_name(from)});
    object->name = to;
    db->objects[{object->schema_id, fold_name(to)}] = object;
  };
  move(old_name, new_name);
  log_undo(r.context.session, UndoDefinition{[move, old_name, new_name] { move(new_name, old_name); }});
}

// A constraint by its name within a schema; the table's definition is remade.
bool rename_constraint(const Renaming& r, const Place& place, const std::string& old_name) {
  for (const auto& entry : place.database->objects) {
    const ObjectPtr table = entry.second;
    if (table->def == nullptr || table->schema_id != place.schema_id) continue;
    auto def = std::make_shared<TableDef>(*table->def);
    std::string* found = nullptr;
    for (IndexDef& i : def->indexes)
      if (i.object_id != 0 && same_name(i.name, old_name)) found = &i.name;
    for (CheckDef& c : def->checks)
      if (same_name(c.name, old_name)) found = &c.name;
    for (ForeignKeyDef& f : def->foreign_keys)
      if (same_name(f.name, old_name)) found = &f.name;
    for (ColumnDef& c : def->columns)
      if (c.default_id != 0 && same_name(c.default_name, old_name)) found = &c.default_name;
    if (found == nullptr) continue;
    if (constraint_name_taken(*place.database, place.schema_id, r.new_name))
      raise(15335, 11, 1,
            fmt::format("Error: The new name '{}' is already in use as a OBJECT name and would cause a duplicate that "
                        "is not permitted.",
                        r.new_name));
    *found = r.new_name;
    lock_definition(r.context, *table);
    set_definition(r.context, table, def, nullptr);
    return true;
  }
  return false;
}

bool rename_index(const Renaming& r, const ObjectPtr& table, const std::string& old_name) {
  if (table == nullptr || table->def == nullptr) return false;
  auto def = std::make_shared<TableDef>(*table->def);
  for (IndexDef& i : def->indexes) {
    if (!same_name(i.name, old_name)) continue;
    for (const IndexDef& other : def->indexes)
      if (&other != &i && same_name(other.name, r.new_name))
        raise(15335, 11, 1,
              fmt::format("Error: The new name '{}' is already in use as a INDEX name and would cause a duplicate that "
                          "is not permitted.",
                          r.new_name));
    i.name = r.new_name;
    lock_definition(r.context, *table);
    set_definition(r.context, table, def, nullptr);
    return true;
  }
  return false;
}

bool rename_column(const Renaming& r, const ObjectPtr& table, const std::string& old_name) {
  if (table == nullptr || table->def == nullptr) return false;
  auto def = std::make_shared<TableDef>(*table->def);
  const int at = def->find(old_name);
  if (at < 0) return false;
  if (const int other = def->find(r.new_name); other >= 0 && other != at)
    raise(15335, 11, 1,
          fmt::format("Error: The new name '{}' is already in use as a COLUMN name and would cause a duplicate that is "
                      "not permitted.",
                      r.new_name));
  def->columns[static_cast<std::size_t>(at)].name = r.new_name;
  lock_definition(r.context, *table);
  set_definition(r.context, table, def, nullptr);
  return true;
}

}  // namespace

std::int32_t sp_rename(BuiltinCall& call) {
  const Context& context = call.context;
  const std::string shown = call.text("@objname", 0);
  const Renaming r{context, call.text("@newname", 1)};
  const std::string type = fold_name(call.text("@objtype", 2));
  const auto missing = [&] {
    if (type.empty())
      raise(15225, 11, 1,
            fmt::format("No item by the name of '{}' could be found in the current database '{}', given that @itemtype "
                        "was input as '(null)'.",
                        shown, context.session.database->name));
    raise(15248, 11, 1,
          fmt::format("Either the parameter @objname is ambiguous or the claimed @objtype ({}) is wrong.",
                      call.text("@objtype", 2)));
  };
  const auto name = parse_name(shown);
  if (r.new_name.empty() || widen(r.new_name).size() > 128)
    raise(15223, 11, 1, "Error: The input parameter 'newname' is not allowed to be null.");
  if (!name) raise(15253, 11, 1, fmt::format("Syntax error parsing SQL identifier '{}'.", shown));
  static constexpr std::array<std::string_view, 6> known{"", "object", "column", "index", "database", "userdatatype"};
  if (std::find(known.begin(), known.end(), type) == known.end())
    raise(15249, 11, 1, fmt::format("Error: Explicit @objtype '{}' is unrecognized.", call.text("@objtype", 2)));
  ObjectName parent{{name->parts.begin(), name->parts.end() - 1}};
  const bool part_of_table = name->parts.size() >= 2;
  if (type == "column" || type == "index") {
    if (!part_of_table) missing();
    const ObjectPtr table = find_object(context, parent);
    if (type == "column" ? !rename_column(r, table, name->object()) : !rename_index(r, table, name->object()))
      missing();
  } else if (type == "database") {
    raise_unsupported("renaming databases");
  } else {
    const ObjectPtr object = find_object(context, *name);
    const Place place = place_of(context, *name, false);
    if (object != nullptr) {
      rename_object(r, object);
    } else if (place.database == nullptr || place.schema_id < 0 || !rename_constraint(r, place, name->object())) {
      const ObjectPtr table = part_of_table && type.empty() ? find_object(context, parent) : nullptr;
      if (!rename_column(r, table, name->object()) && !rename_index(r, table, name->object())) missing();
    }
  }
  send_message(context, 15477, 0, 1,
               "Caution: Changing any part of an object name could break scripts and stored procedures.", 1);
  return 0;
}

std::int32_t sp_getapplock(BuiltinCall& call) {
  constexpr std::int32_t bad_call = -999;
  SessionState& s = call.context.session;
  const std::string resource = call.text("@Resource", 0), mode = fold_name(call.text("@LockMode", 1)),
                    owner = fold_name(call.text("@LockOwner", 2));
  const auto timeout = call.value("@LockTimeout", 3);
  static constexpr std::array<std::pair<std::string_view, LockMode>, 5> modes{
      {{"exclusive", LockMode::exclusive},
       {"shared", LockMode::shared},
       {"update", LockMode::update},
       {"intentshared", LockMode::intent_shared},
       {"intentexclusive", LockMode::intent_exclusive}}};
  const auto* found = std::find_if(modes.begin(), modes.end(), [&](const auto& m) { return m.first == mode; });
  const bool by_session = owner == "session";
  if (resource.empty() || found == modes.end() || (!owner.empty() && !by_session && owner != "transaction"))
    return bad_call;
  if (!by_session && (s.transaction == nullptr || !s.transaction->user)) return bad_call;
  if (s.lock_wait_expired) {
    s.lock_wait_expired = false;
    return -1;
  }
  if (timeout) {
    s.lock_wait_ms = static_cast<int>(convert(*timeout, int_type()).number);
    if (*s.lock_wait_ms < -1) return bad_call;
    if (*s.lock_wait_ms == -1) s.lock_wait_ms = -1;
  } else {
    s.lock_wait_ms = s.settings.lock_timeout_ms;
  }
  const bool waited = s.waiting;
  // The names of locks are per database and compare byte by byte.
  call.context.server.locks.take(s.spid, "app:" + s.database->name + ":" + resource, found->second,
                                 by_session ? LockSpan::session : LockSpan::transaction);
  return waited ? 1 : 0;
}

std::int32_t sp_releaseapplock(BuiltinCall& call) {
  SessionState& s = call.context.session;
  const std::string resource = "app:" + s.database->name + ":" + call.text("@Resource", 0);
  const bool by_session = fold_name(call.text("@LockOwner", 1)) == "session";
  if (!call.context.server.locks.release(s.spid, resource, by_session ? LockSpan::session : LockSpan::transaction)) {
    send_message(call.context, 1223, 16, 1,
                 fmt::format("Cannot release the application lock (Database Principal: 'public', Resource: '{}') "
                             "because it is not currently held.",
                             call.text("@Resource", 0)),
                 1);
    return -999;
  }
  call.context.server.wake_waiting(s.spid);
  return 0;
}

namespace {

std::string collation_bytes(const tds::Collation& c) {
  std::string bytes(5, '\0');
  store_le(reinterpret_cast<std::uint8_t*>(bytes.data()), c.info);
  bytes[4] = static_cast<char>(c.sort_id);
  return bytes;
}

ObjectPtr table_argument(BuiltinCall& call, std::string_view parameter, std::size_t place) {
  const auto name = parse_name(call.text(parameter, place));
  return name ? find_object(call.context, *name) : nullptr;
}

}  // namespace

std::int32_t sp_tablecollations(BuiltinCall& call) {
  const ObjectPtr table = table_argument(call, "@object", 0);
  std::vector<Row> rows;
  if (table != nullptr && table->def != nullptr)
    for (const ColumnDef& c : table->def->columns) {
      const bool text = !c.collation.empty();
      rows.push_back(
          {Value::of_int(c.id), name_cell(c.name),
           text ? Value::of_bytes(collation_bytes(c.type.collation), make_type(Kind::binary, 5)) : null_cell(),
           text ? name_cell(c.collation) : null_cell()});
    }
  send_rows(call.context, columns_of(call.context, "colid int!, name name!, tds_collation binary(5), collation name"),
            rows, call.outcome);
  return 0;
}

namespace {

Row described(const OutputColumn& c, int ordinal) {
  const Type& t = c.type;
  const bool text = is_string(t.kind) && t.kind != Kind::xml && t.kind != Kind::json;
  const tds::TypeInfo wire = sent_form(t, c.nullable);
  const auto bit = [](bool v) { return Value::of_bit(v); };
  const Value null = null_cell();
  Row row{bit(false),
          Value::of_int(ordinal),
          c.name.empty() ? null : name_cell(c.name),
          bit(c.nullable),
          Value::of_int(system_type_id(t.kind)),
          name_cell(type_text(t)),
          Value::of_int(catalogue_length(t)),
          Value::of_int(catalogue_precision(t)),
          Value::of_int(catalogue_scale(t)),
          text ? name_cell(collation_name(t.collation)) : null};
  for (int i = 0; i < 9; ++i) row.push_back(null);
  row.push_back(bit(false));
  row.push_back(bit(text && (t.collation.info >> 20U & 1U) == 0));
  row.push_back(bit(false));
  for (int i = 0; i < 5; ++i) row.push_back(null);
  row.push_back(bit((c.flags & tds::flag_identity) != 0));
  row.push_back(null);
  row.push_back(bit((c.flags & (tds::flag_identity | tds::flag_computed)) == 0 && c.user_type != 0x50));
  row.push_back(bit((c.flags & tds::flag_computed) != 0));
  row.push_back(bit(false));
  for (int i = 0; i < 3; ++i) row.push_back(null);
  row.push_back(Value::of_int(static_cast<int>(wire.id)));
  row.push_back(Value::of_int(static_cast<std::int32_t>(wire.max_length)));
  row.push_back(text ? Value::of_int(static_cast<std::int32_t>(t.collation.info)) : null);
  row.push_back(text ? Value::of_int(t.collation.sort_id) : null);
  return row;
}

constexpr std::string_view described_columns =
    "is_hidden bit!, column_ordinal int!, name name, is_nullable bit!, system_type_id int!, system_type_name "
    "nvarchar(256), max_length smallint!, "
    "precision tinyint!, scale tinyint!, collation_name name, user_type_id int, user_type_database name, "
    "user_type_schema name, user_type_name name, "
    "assembly_qualified_type_name nvarchar(4000), xml_collection_id int, xml_collection_database name, "
    "xml_collection_schema name, "
    "xml_collection_name name, is_xml_document bit!, is_case_sensitive bit!, is_fixed_length_clr_type bit!, "
    "source_server name, source_database name, "
    "source_schema name, source_table name, source_column name, is_identity_column bit, is_part_of_unique_key bit, "
    "is_updateable bit, "
    "is_computed_column bit, is_sparse_column_set bit, ordinal_in_order_by_list smallint, order_by_list_length "
    "smallint, order_by_is_descending smallint, "
    "tds_type_id int!, tds_length int!, tds_collation_id int, tds_collation_sort_id tinyint";

}  // namespace

std::int32_t sp_describe_first_result_set(BuiltinCall& call) {
  const Context& context = call.context;
  // Names are resolved in a frame that has the declared parameters.
  auto frame = std::make_unique<Frame>();
  frame->program = parse_batch(call.text("@tsql", 0), parse_options(context));
  for (const ParameterSpec& p : parse_parameters(call.text("@params", 1), parse_options(context))) {
    Variable v;
    v.type = p.type;
    v.value = Value::of_null(p.type);
    frame->variables[fold_name(p.name)] = v;
  }
  const ProgramPtr program = frame->program;
  context.session.frames.push_back(std::move(frame));
  std::vector<Row> rows;
  try {
    for (Statement& statement : program->statements) {
      const auto* select = std::get_if<SelectStatement>(&statement.what);
      if (select == nullptr || !select->query->branches[0].items[0].assign.empty() ||
          !select->query->branches[0].into.parts.empty())
        continue;
      const auto query = compile_query(context, select->query, nullptr);
      int ordinal = 0;
      for (const OutputColumn& c : query->columns) rows.push_back(described(c, ++ordinal));
      break;
    }
  } catch (...) {
    context.session.frames.pop_back();
    throw;
  }
  context.session.frames.pop_back();
  send_rows(context, columns_of(context, described_columns), rows, call.outcome);
  return 0;
}

namespace {

bool matches_pattern(const std::string& pattern, std::string_view text) {
  return pattern.empty() || text_matches_like(widen(text), widen(pattern), u'\\', default_collation());
}

int odbc_type(Kind k) {
  switch (k) {
    case Kind::bit:
      return -7;
    case Kind::tinyint:
      return -6;
    case Kind::smallint:
      return 5;
    case Kind::integer:
      return 4;
    case Kind::bigint:
      return -5;
    case Kind::real:
      return 7;
    case Kind::float8:
      return 6;
    case Kind::decimal:
    case Kind::money:
    case Kind::smallmoney:
      return 3;
    case Kind::numeric:
      return 2;
    case Kind::character:
      return 1;
    case Kind::varchar:
      return 12;
    case Kind::text:
      return -1;
    case Kind::nchar:
      return -8;
    case Kind::nvarchar:
      return -9;
    case Kind::ntext:
      return -10;
    case Kind::binary:
    case Kind::rowversion:
      return -2;
    case Kind::varbinary:
      return -3;
    case Kind::image:
      return -4;
    case Kind::guid:
      return -11;
    case Kind::date:
      return 91;
    case Kind::time:
      return -154;
    case Kind::datetimeoffset:
      return -155;
    case Kind::xml:
      return -152;
    case Kind::variant:
      return -150;
    default:
      return 93;
  }
}

std::vector<ObjectPtr> tables_matching(BuiltinCall& call, const std::string& name, const std::string& schema) {
  std::vector<ObjectPtr> found;
  const auto& db = call.context.session.database;
  for (const auto& [key, object] : db->objects) {
    if (object->def == nullptr) continue;
    const Schema* s = db->schema_by_id(object->schema_id);
    if (matches_pattern(name, object->name) && matches_pattern(schema, s == nullptr ? "dbo" : s->name))
      found.push_back(object);
  }
  return found;
}

std::string schema_of(BuiltinCall& call, const Object& object) {
  const Schema* s = call.context.session.database->schema_by_id(object.schema_id);
  return s == nullptr ? "dbo" : s->name;
}

}  // namespace

std::int32_t sp_columns(BuiltinCall& call) {
  const std::string column_pattern = call.text("@column_name", 3);
  std::vector<Row> rows;
  for (const ObjectPtr& table : tables_matching(call, call.text("@table_name", 0), call.text("@table_owner", 1)))
    for (const ColumnDef& c : table->def->columns) {
      if (!matches_pattern(column_pattern, c.name)) continue;
      const Type& t = c.type;
      const bool sized = is_string(t.kind) || is_binary(t.kind);
      const std::int64_t length = catalogue_length(t) < 0 ? 0 : catalogue_length(t);
      rows.push_back(
          {name_cell(call.context.session.database->name), name_cell(schema_of(call, *table)), name_cell(table->name),
           name_cell(c.name), Value::of_int(odbc_type(t.kind)),
           name_cell(c.identity ? std::string(type_name(t.kind)) + " identity" : std::string(type_name(t.kind))),
           Value::of_int(sized ? (is_unicode(t.kind) ? length / 2 : length) : catalogue_precision(t)),
           Value::of_int(length), sized ? null_cell() : Value::of_int(catalogue_scale(t)),
           is_number(t.kind) ? Value::of_int(10) : null_cell(), Value::of_int(c.nullable ? 1 : 0), null_cell(),
           c.default_text.empty() ? null_cell() : name_cell(c.default_text), Value::of_int(odbc_type(t.kind)),
           null_cell(), sized ? Value::of_int(length) : null_cell(), Value::of_int(c.id),
           name_cell(c.nullable ? "YES" : "NO"), Value::of_int(system_type_id(t.kind))});
    }
  send_rows(call.context,
            columns_of(call.context,
                       "TABLE_QUALIFIER name, TABLE_OWNER name, TABLE_NAME name!, COLUMN_NAME name!, DATA_TYPE "
                       "smallint!, TYPE_NAME name!, PRECISION int, LENGTH int, SCALE "
                       "smallint, RADIX smallint, NULLABLE smallint!, REMARKS varchar(254), COLUMN_DEF nvarchar(4000), "
                       "SQL_DATA_TYPE smallint!, SQL_DATETIME_SUB smallint, "
                       "CHAR_OCTET_LENGTH int, ORDINAL_POSITION int!, IS_NULLABLE varchar(254), SS_DATA_TYPE tinyint!"),
            rows, call.outcome);
  return 0;
}

std::int32_t sp_tables(BuiltinCall& call) {
  std::vector<Row> rows;
  const auto& db = call.context.session.database;
  for (const auto& [key, object] : db->objects) {
    if (object->kind != ObjectKind::table && object->kind != ObjectKind::view) continue;
    if (!matches_pattern(call.text("@table_name", 0), object->name) ||
        !matches_pattern(call.text("@table_owner", 1), schema_of(call, *object)))
      continue;
    rows.push_back({name_cell(db->name), name_cell(schema_of(call, *object)), name_cell(object->name),
                    name_cell(object->kind == ObjectKind::table ? "TABLE" : "VIEW"), null_cell()});
  }
  send_rows(
      call.context,
      columns_of(
          call.context,
          "TABLE_QUALIFIER name, TABLE_OWNER name, TABLE_NAME name, TABLE_TYPE varchar(32), REMARKS varchar(254)"),
      rows, call.outcome);
  return 0;
}

std::int32_t sp_pkeys(BuiltinCall& call) {
  std::vector<Row> rows;
  for (const ObjectPtr& table : tables_matching(call, call.text("@table_name", 0), call.text("@table_owner", 1))) {
    const IndexDef* pk = table->def->primary_key();
    for (std::size_t i = 0; pk != nullptr && i < pk->keys.size(); ++i)
      rows.push_back({name_cell(call.context.session.database->name), name_cell(schema_of(call, *table)),
                      name_cell(table->name),
                      name_cell(table->def->columns[static_cast<std::size_t>(pk->keys[i].column)].name),
                      Value::of_int(static_cast<std::int64_t>(i) + 1), name_cell(pk->name)});
  }
  send_rows(call.context,
            columns_of(call.context,
                       "TABLE_QUALIFIER name, TABLE_OWNER name, TABLE_NAME name!, COLUMN_NAME name!, KEY_SEQ "
                       "smallint!, PK_NAME name"),
            rows, call.outcome);
  return 0;
}

std::int32_t sp_databases(BuiltinCall& call) {
  std::vector<Row> rows;
  for (const auto& [key, db] : call.context.server.databases)
    rows.push_back({name_cell(db->name), Value::of_int(1024), null_cell()});
  send_rows(call.context, columns_of(call.context, "DATABASE_NAME name, DATABASE_SIZE int, REMARKS varchar(254)"), rows,
            call.outcome);
  return 0;
}

}  // namespace rowferry::sandbox::engine
