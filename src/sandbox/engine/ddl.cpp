// CREATE and DROP.
#include <fmt/format.h>

#include <algorithm>

#include "sandbox/engine/collation.hpp"
#include "sandbox/engine/execute.hpp"
#include "sandbox/engine/partitions.hpp"

namespace rowferry::sandbox::engine {

namespace {

void put_object(const Context& context, const Place& place, const ObjectPtr& object) {
  const auto key = std::make_pair(object->schema_id, fold_name(object->name));
  const auto db = place.database;
  db->objects[key] = object;
  log_undo(context.session, UndoDefinition{[db, key] { db->objects.erase(key); }});
}

void take_object(const Context& context, const std::shared_ptr<Database>& db, const ObjectPtr& object) {
  const auto key = std::make_pair(object->schema_id, fold_name(object->name));
  db->objects.erase(key);
  log_undo(context.session, UndoDefinition{[db, key, object] { db->objects[key] = object; }});
}

ObjectPtr new_object(const Context& context, const Place& place, const std::string& name, ObjectKind kind) {
  auto object = std::make_shared<Object>();
  object->kind = kind;
  object->name = name;
  object->schema_id = place.schema_id;
  object->database = place.database->name;
  object->id = place.database->new_object_id();
  object->created = object->modified = now_ticks();
  (void)context;
  return object;
}

void refuse_existing(const Place& place, const std::string& name) {
  if (place.database->find(place.schema_id, name) != nullptr ||
      constraint_name_taken(*place.database, place.schema_id, name))
    raise(2714, 16, 6, fmt::format("There is already an object named '{}' in the database.", name), Reach::batch);
}

}  // namespace

ObjectPtr create_table(const Context& context, const ObjectName& name, TableParts& parts) {
  const Place place = place_of(context, name);
  const bool temporary = name.temporary();
  if (temporary) {
    if (context.session.temporary.contains(fold_name(name.object())))
      raise(2714, 16, 6, fmt::format("There is already an object named '{}' in the database.", name.object()),
            Reach::batch);
  } else {
    lock_name(context, place, name.object());
    refuse_existing(place, name.object());
  }
  ObjectPtr table = new_object(context, place, name.object(), ObjectKind::table);
  table->temporary = temporary;
  if (temporary) table->id = context.session.next_temporary_id--;
  auto def = std::make_shared<TableDef>();
  add_columns(context, *def, *table, parts.columns, *place.database);
  add_constraints(context, *def, table, parts, *place.database);
  if (!parts.period_start.empty()) {
    def->period_start = def->find(parts.period_start);
    def->period_end = def->find(parts.period_end);
  }
  if (parts.temporal) def->temporal = 2;
  if (!parts.scheme.empty()) place_on_scheme(*def, name.object(), parts.scheme, parts.scheme_column, *place.database);
  if (const ColumnDef* c = def->identity_column(); c != nullptr)
    table->identity = std::make_shared<IdentityState>(IdentityState{c->identity->seed, false});
  table->data = make_data(*def);
  table->def = def;
  if (temporary) {
    const std::string key = fold_name(name.object());
    SessionState& session = context.session;
    session.temporary[key] = table;
    if (context.frame().kind != Frame::Kind::batch) context.frame().tables.push_back(key);
    log_undo(session, UndoDefinition{[&session, key] { session.temporary.erase(key); }});
  } else {
    put_object(context, place, table);
    lock_definition(context, *table);
  }
  return table;
}

Outcome execute_create_table(const Context& context, CreateTable& s) {
  create_table(context, s.name, s.parts);
  return {std::nullopt, 0xC6, false};
}

Outcome execute_create_index(const Context& context, CreateIndex& s) {
  const ObjectPtr table = find_object(context, s.table);
  if (table == nullptr || table->kind != ObjectKind::table)
    raise(1088, 16, 12,
          fmt::format("Cannot find the object \"{}\" because it does not exist or you do not have permissions.",
                      s.table.text()),
          Reach::batch);
  lock_definition(context, *table);
  const auto db = context.server.database(table->database);
  auto def = std::make_shared<TableDef>(*table->def);
  if (s.drop_existing) std::erase_if(def->indexes, [&](const IndexDef& i) { return same_name(i.name, s.key.name); });
  add_index(context, *def, *table, s.key, *db);
  set_definition(context, table, def, s.key.unique ? rebuilt(context, *table, *def, nullptr) : nullptr);
  return {std::nullopt, 0xC8, false};
}

Outcome execute_create_text(const Context& context, const CreateText& s) {
  const Place place = place_of(context, s.name);
  lock_name(context, place, s.name.object());
  const ObjectPtr old = place.database->find(place.schema_id, s.name.object());
  if (old != nullptr && !s.alter && !s.or_alter) refuse_existing(place, s.name.object());
  if (old == nullptr && s.alter) raise_invalid_object(s.name.text());
  ObjectPtr object = new_object(context, place, s.name.object(), s.kind);
  object->text = s.text;
  object->body = s.body;
  if (old != nullptr) object->id = old->id;
  if (s.kind == ObjectKind::synonym) object->stands_for = s.parent.parts;
  if (s.kind == ObjectKind::trigger) object->parent_id = find_table(context, s.parent)->id;
  if (s.kind == ObjectKind::view) {
    const auto query = parse_query(std::string_view(object->text).substr(object->body), parse_options(context));
    compile_query(context, query, nullptr);
  }
  const std::uint16_t command = s.kind == ObjectKind::view ? 0xCF : s.kind == ObjectKind::procedure ? 0xDE : 0xDD;
  if (old != nullptr) {
    const auto key = std::make_pair(object->schema_id, fold_name(object->name));
    const auto db = place.database;
    db->objects[key] = object;
    log_undo(context.session, UndoDefinition{[db, key, old] { db->objects[key] = old; }});
    return {std::nullopt, command, false};
  }
  put_object(context, place, object);
  return {std::nullopt, command, false};
}

Outcome execute_create_named(const Context& context, const CreateNamed& s) {
  if (s.database) {
    if (context.session.transaction != nullptr && context.session.transaction->user)
      raise(226, 16, 5, "CREATE DATABASE statement not allowed within multi-statement transaction.", Reach::batch);
    if (context.server.database(s.name) != nullptr)
      raise(1801, 16, 3, fmt::format("Database '{}' already exists. Choose a different database name.", s.name),
            Reach::batch);
    if (!s.collation.empty() && !collation_by_name(s.collation))
      raise(448, 16, 3, fmt::format("Invalid collation '{}'.", s.collation), Reach::batch);
    context.server.make_database(s.name, s.collation, context.server.next_database_id++);
    return {std::nullopt, 0xCB, false};
  }
  const auto db = context.session.database;
  if (db->schema(s.name) != nullptr)
    raise(2714, 16, 6, fmt::format("There is already an object named '{}' in the database.", s.name), Reach::batch);
  const std::string key = fold_name(s.name);
  db->schemas[key] = Schema{db->next_schema_id++, s.name};
  log_undo(context.session, UndoDefinition{[db, key] { db->schemas.erase(key); }});
  return {std::nullopt, 0xDF, false};
}

namespace {

[[noreturn]] void raise_cannot_drop(const std::string& kind, const std::string& name) {
  raise(3701, 11, 5,
        fmt::format("Cannot drop the {} '{}', because it does not exist or you do not have permission.",
                    fold_name(kind), name));
}

void drop_table(const Context& context, const ObjectPtr& table) {
  const auto db = context.server.database(table->database);
  if (table->temporary) {
    SessionState& session = context.session;
    const std::string key = fold_name(table->name);
    session.temporary.erase(key);
    log_undo(session, UndoDefinition{[&session, key, table] { session.temporary[key] = table; }});
    return;
  }
  for (const auto& [name, other] : db->objects)
    if (other != table && other->def != nullptr)
      for (const ForeignKeyDef& fk : other->def->foreign_keys)
        if (fk.referenced_id == table->id)
          raise(3726, 16, 1,
                fmt::format("Could not drop object '{}' because it is referenced by a FOREIGN KEY constraint.",
                            table->name));
  const Place place{db, table->schema_id};
  lock_name(context, place, table->name);
  lock_definition(context, *table);
  std::vector<ObjectPtr> triggers;
  for (const auto& [name, other] : db->objects)
    if (other->kind == ObjectKind::trigger && other->parent_id == table->id) triggers.push_back(other);
  for (const ObjectPtr& t : triggers) take_object(context, db, t);
  take_object(context, db, table);
}

void drop_index(const Context& context, const Drop& s, std::size_t n) {
  ObjectName table_name =
      n < s.on.size() ? s.on[n] : ObjectName{{s.names[n].parts.begin(), s.names[n].parts.end() - 1}};
  const std::string& name = s.names[n].object();
  if (table_name.parts.empty())
    raise(159, 15, 1, "Must specify the table name and index name for the DROP INDEX statement.", Reach::batch);
  const ObjectPtr table = find_object(context, table_name);
  const auto missing = [&] { raise_cannot_drop("index", table_name.text() + "." + name); };
  if (table == nullptr || table->def == nullptr) {
    if (s.if_exists) return;
    missing();
  }
  lock_definition(context, *table);
  auto def = std::make_shared<TableDef>(*table->def);
  const auto at = std::find_if(def->indexes.begin(), def->indexes.end(),
                               [&](const IndexDef& i) { return same_name(i.name, name); });
  if (at == def->indexes.end()) {
    if (s.if_exists) return;
    missing();
  }
  if (at->object_id != 0)
    raise(3723, 16, 4,
          fmt::format(
              "An explicit DROP INDEX is not allowed on index '{}.{}'. It is being used for {} constraint enforcement.",
              table_name.text(), name, at->primary ? "PRIMARY KEY" : "UNIQUE KEY"));
  const bool unique = at->unique;
  def->indexes.erase(at);
  set_definition(context, table, def, unique ? rebuilt(context, *table, *def, nullptr) : nullptr);
}

void drop_database(const Context& context, const Drop& s, const std::string& name) {
  const auto db = context.server.database(name);
  if (db == nullptr) {
    if (s.if_exists) return;
    raise_cannot_drop("database", name);
  }
  for (const auto& [spid, session] : context.server.sessions)
    if (session->database == db)
      raise(3702, 16, 4, fmt::format("Cannot drop database \"{}\" because it is currently in use.", name),
            Reach::batch);
  if (db->id <= 4)
    raise(3708, 16, 5, fmt::format("Cannot drop the database '{}' because it is a system database.", name));
  context.server.databases.erase(fold_name(name));
}

void drop_schema(const Context& context, const Drop& s, const std::string& name) {
  const auto db = context.session.database;
  const Schema* schema = db->schema(name);
  if (schema == nullptr) {
    if (s.if_exists) return;
    raise(15151, 16, 1,
          fmt::format("Cannot drop the schema '{}', because it does not exist or you do not have permission.", name));
  }
  for (const auto& [key, object] : db->objects)
    if (object->schema_id == schema->id)
      raise(3729, 16, 1,
            fmt::format("Cannot drop schema '{}' because it is being referenced by object '{}'.", name, object->name));
  const Schema kept = *schema;
  const std::string key = fold_name(name);
  db->schemas.erase(key);
  log_undo(context.session, UndoDefinition{[db, key, kept] { db->schemas[key] = kept; }});
}

}  // namespace

Outcome execute_drop(const Context& context, const Drop& s) {
  for (std::size_t n = 0; n < s.names.size(); ++n) {
    const ObjectName& name = s.names[n];
    if (s.kind == "INDEX") {
      drop_index(context, s, n);
    } else if (s.kind == "DATABASE") {
      drop_database(context, s, name.object());
    } else if (s.kind.starts_with("PARTITION")) {
      drop_partition(context, s.kind, name.object(), s.if_exists);
    } else if (s.kind == "SCHEMA") {
      drop_schema(context, s, name.object());
    } else {
      const ObjectPtr object = find_object(context, name);
      const bool right = object != nullptr && ((s.kind == "TABLE" && object->kind == ObjectKind::table) ||
                                               (s.kind == "VIEW" && object->kind == ObjectKind::view) ||
                                               (s.kind == "PROCEDURE" && object->kind == ObjectKind::procedure) ||
                                               (s.kind == "SYNONYM" && object->kind == ObjectKind::synonym) ||
                                               (s.kind == "TRIGGER" && object->kind == ObjectKind::trigger));
      if (!right) {
        if (s.if_exists) continue;
        raise_cannot_drop(s.kind, name.text());
      }
      if (object->kind == ObjectKind::table) {
        drop_table(context, object);
      } else {
        const auto db = context.server.database(object->database);
        lock_name(context, Place{db, object->schema_id}, object->name);
        take_object(context, db, object);
      }
    }
  }
  return {std::nullopt,
          static_cast<std::uint16_t>(s.kind == "TABLE"      ? 0xC7
                                     : s.kind == "VIEW"     ? 0xD0
                                     : s.kind == "INDEX"    ? 0xC9
                                     : s.kind == "DATABASE" ? 0xCC
                                                            : 0xE5),
          false};
}

}  // namespace rowferry::sandbox::engine
