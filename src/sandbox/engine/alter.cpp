// ALTER TABLE, ALTER DATABASE, ALTER INDEX.
#include <fmt/format.h>

#include <algorithm>

#include "sandbox/engine/collation.hpp"
#include "sandbox/engine/execute.hpp"
#include "sandbox/engine/select_plan.hpp"

namespace rowferry::sandbox::engine {

namespace {

constexpr std::uint16_t command_alter = 0xD8;

ObjectPtr table_to_alter(const Context& context, const ObjectName& name) {
  const ObjectPtr table = find_object(context, name);
  if (table == nullptr || table->kind != ObjectKind::table)
    raise(4902, 16, 1,
          fmt::format("Cannot find the object \"{}\" because it does not exist or you do not have permissions.",
                      name.text()),
          Reach::batch);
  lock_definition(context, *table);
  return table;
}

// Every row under the old definition, written under the new one: columns are matched by their id.
std::shared_ptr<TableData> rewritten(const Context& context, const ObjectPtr& table, const TableDef& def) {
  const TableDefPtr old = table->def;
  TableWriter reader(context, table, {});
  auto changed = std::make_shared<Object>(*table);
  changed->def = std::make_shared<TableDef>(def);
  TableWriter writer(context, changed,
                     {.verb = "ALTER TABLE", .check_constraints = false, .identity_given = true, .bulk = true});
  std::vector<int> from(def.columns.size(), -1);
  for (std::size_t i = 0; i < def.columns.size(); ++i)
    for (std::size_t k = 0; k < old->columns.size(); ++k)
      if (old->columns[k].id == def.columns[i].id) from[i] = static_cast<int>(k);
  return rebuilt(context, *table, def, [&](ByteView row, ByteBuffer& out) {
    const auto values = reader.values_of(row);
    for (std::size_t i = 0; i < def.columns.size(); ++i) {
      const ColumnDef& c = def.columns[i];
      if (c.stored < 0) continue;
      Value v;
      if (from[i] >= 0) {
        v = writer.column_value(i, values[static_cast<std::size_t>(from[i])]);
      } else if (c.is_rowversion()) {
        v = writer.next_row_version();
      } else if (c.identity) {
        v = writer.next_identity();
      } else {
        v = writer.column_value(i, c.nullable ? Value::of_null(c.type) : writer.default_of(i));
      }
      encode_value(v, stored_form(c.type), out);
    }
  });
}

bool has_rows(const Context& context, const Object& table) {
  return table.data->count(transaction_id(context.session)) != 0;
}

Outcome add(const Context& context, const ObjectPtr& table, AlterTable& s) {
  const auto db = context.server.database(table->database);
  auto def = std::make_shared<TableDef>(*table->def);
  for (const ColumnSpec& c : s.parts.columns)
    if (c.nullable == false && c.default_value == nullptr && c.computed == nullptr && !c.rowversion && !c.identity &&
        has_rows(context, *table))
      raise(4901, 16, 1,
            fmt::format(
                "ALTER TABLE only allows columns to be added that can contain nulls, or have a DEFAULT definition "
                "specified, or the column being added is an identity or timestamp column, or alternatively if none of "
                "the previous conditions are satisfied the table must be empty to allow addition of this column. "
                "Column '{}' cannot be added to non-empty table '{}' because it does not satisfy these conditions.",
                c.name, table->name),
            Reach::batch);
  add_columns(context, *def, *table, s.parts.columns, *db);
  const std::size_t checks = def->checks.size(), keys = def->foreign_keys.size();
  add_constraints(context, *def, table, s.parts, *db);
  for (std::size_t i = checks; i < def->checks.size(); ++i) def->checks[i].not_trusted = s.with_nocheck;
  for (std::size_t i = keys; i < def->foreign_keys.size(); ++i) def->foreign_keys[i].not_trusted = s.with_nocheck;
  std::shared_ptr<TableData> data;
  if (!s.parts.columns.empty()) {
    if (table->identity == nullptr)
      if (const ColumnDef* c = def->identity_column(); c != nullptr)
        table->identity = std::make_shared<IdentityState>(IdentityState{c->identity->seed, false});
    data = rewritten(context, table, *def);
  } else if (!s.parts.keys.empty()) {
    data = rebuilt(context, *table, *def, nullptr);
  }
  set_definition(context, table, def, data);
  const bool check_rows = !s.with_nocheck && (def->checks.size() > checks || def->foreign_keys.size() > keys);
  if (check_rows) {
    Object only = *table;
    auto new_only = std::make_shared<TableDef>(*def);
    new_only->checks.erase(new_only->checks.begin(), new_only->checks.begin() + static_cast<std::ptrdiff_t>(checks));
    new_only->foreign_keys.erase(new_only->foreign_keys.begin(),
                                 new_only->foreign_keys.begin() + static_cast<std::ptrdiff_t>(keys));
    only.def = new_only;
    auto shown = std::make_shared<Object>(only);
    TableWriter writer(context, shown,
                       {.verb = "ALTER TABLE", .check_constraints = true, .identity_given = true, .bulk = true});
    TableScan scan(context, table->data, ReadMode::committed);
    ByteView row;
    RowId id;
    while (scan.next(row, id)) {
      auto values = writer.values_of(row);
      writer.check_row(values);
    }
  }
  return {std::nullopt, command_alter, false};
}

bool drop_constraint(TableDef& def, const std::string& name, bool& keys_changed) {
  const auto index = std::find_if(def.indexes.begin(), def.indexes.end(),
                                  [&](const IndexDef& i) { return i.object_id != 0 && same_name(i.name, name); });
  if (index != def.indexes.end()) {
    def.indexes.erase(index);
    keys_changed = true;
    return true;
  }
  if (std::erase_if(def.checks, [&](const CheckDef& c) { return same_name(c.name, name); }) != 0) return true;
  if (std::erase_if(def.foreign_keys, [&](const ForeignKeyDef& f) { return same_name(f.name, name); }) != 0)
    return true;
  for (ColumnDef& c : def.columns) {
    if (c.default_id == 0 || !same_name(c.default_name, name)) continue;
    c.default_id = 0;
    c.default_name.clear();
    c.default_text.clear();
    c.default_value = nullptr;
    return true;
  }
  return false;
}

void drop_column(TableDef& def, const Object& table, const std::string& name) {
  const int at = def.find(name);
  if (at < 0)
    raise(4924, 16, 1,
          fmt::format("ALTER TABLE DROP COLUMN failed because column '{}' does not exist in table '{}'.", name,
                      table.name),
          Reach::batch);
  std::string dependant;
  for (const IndexDef& i : def.indexes)
    for (const KeyColumn& k : i.keys)
      if (k.column == at) dependant = i.name;
  for (const ForeignKeyDef& f : def.foreign_keys)
    if (std::find(f.columns.begin(), f.columns.end(), at) != f.columns.end()) dependant = f.name;
  const ColumnDef& c = def.columns[static_cast<std::size_t>(at)];
  if (c.default_id != 0) dependant = c.default_name;
  for (const CheckDef& check : def.checks)
    walk(check.condition, [&](const ExprPtr& e) {
      if (e->kind == ExprKind::column && same_name(e->name.back(), name)) dependant = check.name;
      return true;
    });
  for (const ColumnDef& other : def.columns)
    walk(other.computed, [&](const ExprPtr& e) {
      if (e->kind == ExprKind::column && same_name(e->name.back(), name)) dependant = other.name;
      return true;
    });
  if (!dependant.empty())
    raise(4922, 16, 9,
          fmt::format("The object '{}' is dependent on column '{}'. ALTER TABLE DROP COLUMN {} failed because one or "
                      "more objects access this column.",
                      dependant, c.name, c.name),
          Reach::batch);
  def.columns.erase(def.columns.begin() + at);
  const auto moved = [&](int& i) {
    if (i > at) --i;
  };
  for (IndexDef& i : def.indexes) {
    for (KeyColumn& k : i.keys) moved(k.column);
    std::erase(i.included, at);
    for (int& k : i.included) moved(k);
  }
  for (ForeignKeyDef& f : def.foreign_keys)
    for (int& k : f.columns) moved(k);
  for (CheckDef& check : def.checks) moved(check.column);
  def.place_columns();
}

Outcome drop(const Context& context, const ObjectPtr& table, const AlterTable& s) {
  auto def = std::make_shared<TableDef>(*table->def);
  bool columns_changed = false, keys_changed = false;
  for (const auto& [is_column, name] : s.drops) {
    if (is_column) {
      if (def->find(name) < 0 && s.if_exists) continue;
      drop_column(*def, *table, name);
      columns_changed = true;
    } else if (!drop_constraint(*def, name, keys_changed) && !s.if_exists) {
      raise(3728, 16, 1, fmt::format("'{}' is not a constraint.", name), Reach::batch);
    }
  }
  std::shared_ptr<TableData> data;
  if (columns_changed) {
    data = rewritten(context, table, *def);
  } else if (keys_changed) {
    data = rebuilt(context, *table, *def, nullptr);
  }
  set_definition(context, table, def, data);
  return {std::nullopt, command_alter, false};
}

Outcome alter_column(const Context& context, const ObjectPtr& table, AlterTable& s) {
  const auto db = context.server.database(table->database);
  auto def = std::make_shared<TableDef>(*table->def);
  const int at = def->find(s.parts.columns[0].name);
  if (at < 0)
    raise(4924, 16, 1,
          fmt::format("ALTER TABLE ALTER COLUMN failed because column '{}' does not exist in table '{}'.",
                      s.parts.columns[0].name, table->name),
          Reach::batch);
  TableDef scratch;
  scratch.next_column_id = def->columns[static_cast<std::size_t>(at)].id;
  std::vector<ColumnSpec> one{s.parts.columns[0]};
  add_columns(context, scratch, *table, one, *db);
  ColumnDef& c = def->columns[static_cast<std::size_t>(at)];
  if (c.computed != nullptr)
    raise(4928, 16, 1, fmt::format("Cannot alter column '{}' because it is 'COMPUTED'.", c.name), Reach::batch);
  for (const IndexDef& i : def->indexes)
    for (const KeyColumn& k : i.keys)
      if (k.column == at && i.object_id != 0 && !(scratch.columns[0].type.kind == c.type.kind))
        raise(5074, 16, 1, fmt::format("The object '{}' is dependent on column '{}'.", i.name, c.name), Reach::batch);
  c.type = scratch.columns[0].type;
  c.user_type = scratch.columns[0].user_type;
  c.collation = scratch.columns[0].collation;
  c.nullable = c.identity ? false : s.parts.columns[0].nullable.value_or(true);
  set_definition(context, table, def, rewritten(context, table, *def));
  return {std::nullopt, command_alter, false};
}

std::string full_name(const Context& context, const ObjectPtr& table) {
  return TableWriter(context, table, {}).full_name();
}

bool same_index(const TableDef& a, const IndexDef& x, const TableDef& b, const IndexDef& y) {
  if (x.unique != y.unique || x.clustered != y.clustered || x.columnstore != y.columnstore ||
      x.keys.size() != y.keys.size() || x.included.size() != y.included.size())
    return false;
  for (std::size_t i = 0; i < x.keys.size(); ++i)
    if (!same_name(a.columns[static_cast<std::size_t>(x.keys[i].column)].name,
                   b.columns[static_cast<std::size_t>(y.keys[i].column)].name) ||
        x.keys[i].descending != y.keys[i].descending)
      return false;
  return true;
}

void check_switch(const Context& context, const ObjectPtr& from, const ObjectPtr& to) {
  const auto fail = [](int number, std::string text) {
    raise(number, 16, 1, "ALTER TABLE SWITCH statement failed. " + std::move(text), Reach::batch);
  };
  const TableDef& a = *from->def;
  const TableDef& b = *to->def;
  const std::string source = full_name(context, from), target = full_name(context, to);
  if (has_rows(context, *to)) fail(4905, fmt::format("The target table '{}' must be empty.", target));
  if (a.columns.size() != b.columns.size())
    fail(4943, fmt::format("Table '{}' has {} columns and table '{}' has {} columns.", source, a.columns.size(), target,
                           b.columns.size()));
  for (std::size_t i = 0; i < a.columns.size(); ++i) {
    const ColumnDef& x = a.columns[i];
    const ColumnDef& y = b.columns[i];
    if (!same_name(x.name, y.name))
      fail(4957, fmt::format("Column '{}' at ordinal {} in table '{}' has a different name than column '{}' at the "
                             "same ordinal in table '{}'.",
                             x.name, i + 1, source, y.name, target));
    tds::TypeInfo one = stored_form(x.type), two = stored_form(y.type);
    if (is_decimal(x.type.kind) && is_decimal(y.type.kind)) one.id = two.id;
    one.collation = two.collation = {};
    const bool same_type = one == two;
    if (!same_type)
      fail(4944, fmt::format("Column '{}' has data type {} in source table '{}' which is different from its type {} in "
                             "target table '{}'.",
                             x.name, type_text(x.type), source, type_text(y.type), target));
    if (!(x.type.collation == y.type.collation))
      fail(4945, fmt::format("Column '{}' does not have the same collation in tables '{}' and '{}'.", x.name, source,
                             target));
    if (x.nullable != y.nullable)
      fail(4958, fmt::format("Column '{}' does not have the same nullability attribute in tables '{}' and '{}'.",
                             x.name, source, target));
    if ((x.computed != nullptr) != (y.computed != nullptr))
      fail(4952,
           fmt::format("Column '{}' in table '{}' is computed column but the same column in '{}' is not computed.",
                       x.name, x.computed != nullptr ? source : target, x.computed != nullptr ? target : source));
  }
  for (const IndexDef& y : b.indexes) {
    const bool found =
        std::any_of(a.indexes.begin(), a.indexes.end(), [&](const IndexDef& x) { return same_index(a, x, b, y); });
    if (!found)
      fail(4947,
           fmt::format("There is no identical index in source table '{}' for the index '{}' in target table '{}' .",
                       source, y.name, target));
  }
  for (const IndexDef& x : a.indexes) {
    const bool found =
        std::any_of(b.indexes.begin(), b.indexes.end(), [&](const IndexDef& y) { return same_index(a, x, b, y); });
    if (!found && x.clustered)
      fail(4913,
           fmt::format("The table '{}' has clustered index '{}' while the table '{}' does not have clustered index.",
                       source, x.name, target));
  }
  for (const CheckDef& y : b.checks) {
    const bool found =
        std::any_of(a.checks.begin(), a.checks.end(), [&](const CheckDef& x) { return x.text == y.text; });
    if (!found && !y.disabled && !y.not_trusted && has_rows(context, *from))
      fail(4971, fmt::format("Target table '{}' has a table level check constraint '{}' but the source table '{}' does "
                             "not have a corresponding constraint.",
                             target, y.name, source));
  }
  const auto db = context.server.database(to->database);
  for (const auto& [name, other] : db->objects)
    if (other->def != nullptr && other != to)
      for (const ForeignKeyDef& fk : other->def->foreign_keys)
        if (fk.referenced_id == to->id)
          fail(4967,
               fmt::format("SWITCH is not allowed because source table '{}' contains primary key for constraint '{}'.",
                           target, fk.name));
}

// Both tables' rows change places; unique keys are found anew where the two order their indexes differently.
Outcome switch_to(const Context& context, const ObjectPtr& from, const AlterTable& s) {
  const ObjectPtr to = find_object(context, s.other);
  if (to == nullptr || to->kind != ObjectKind::table)
    raise(4911, 16, 2,
          fmt::format("Cannot find the object \"{}\" because it does not exist or you do not have permissions.",
                      s.other.text()),
          Reach::batch);
  lock_definition(context, *to);
  check_switch(context, from, to);
  const auto source_data = from->data, target_data = to->data;
  const auto keys_of = [](const TableDef& def) {
    std::vector<std::vector<int>> all;
    for (const IndexDef* i : enforced_keys(def)) {
      std::vector<int> columns;
      for (const KeyColumn& k : i->keys) columns.push_back(def.columns[static_cast<std::size_t>(k.column)].stored);
      all.push_back(columns);
    }
    return all;
  };
  to->data = keys_of(*from->def) == keys_of(*to->def) ? source_data : rebuilt(context, *from, *to->def, nullptr);
  from->data = make_data(*from->def);
  log_undo(context.session, UndoDefinition{[=] {
             from->data = source_data;
             to->data = target_data;
           }});
  return {std::nullopt, command_alter, false};
}

Outcome toggle_constraints(const Context& context, const ObjectPtr& table, const AlterTable& s) {
  const bool disable = s.action == AlterTable::Action::nocheck_constraint;
  auto def = std::make_shared<TableDef>(*table->def);
  const auto wanted = [&](const std::string& name) {
    return s.names.empty() ||
           std::any_of(s.names.begin(), s.names.end(), [&](const std::string& n) { return same_name(n, name); });
  };
  std::size_t hits = 0;
  for (CheckDef& c : def->checks) {
    if (!wanted(c.name)) continue;
    ++hits;
    c.disabled = disable;
    if (disable || s.with_nocheck) c.not_trusted = true;
  }
  for (ForeignKeyDef& f : def->foreign_keys) {
    if (!wanted(f.name)) continue;
    ++hits;
    f.disabled = disable;
    if (disable || s.with_nocheck) f.not_trusted = true;
  }
  if (hits < s.names.size())
    raise(4917, 16, 0, fmt::format("Constraint '{}' does not exist.", s.names[0]), Reach::batch);
  set_definition(context, table, def, nullptr);
  return {std::nullopt, command_alter, false};
}

Outcome toggle_triggers(const Context& context, const ObjectPtr& table, const AlterTable& s) {
  const auto db = context.server.database(table->database);
  for (const auto& entry : db->objects) {
    const ObjectPtr& object = entry.second;
    if (object->kind != ObjectKind::trigger || object->parent_id != table->id) continue;
    const std::string& shown = object->name;
    if (!s.names.empty() &&
        std::none_of(s.names.begin(), s.names.end(), [&](const std::string& n) { return same_name(n, shown); }))
      continue;
    const bool old = object->disabled;
    object->disabled = !s.enable;
    log_undo(context.session, UndoDefinition{[object, old] { object->disabled = old; }});
  }
  return {std::nullopt, command_alter, false};
}

}  // namespace

Outcome execute_alter_table(const Context& context, AlterTable& s) {
  const ObjectPtr table = table_to_alter(context, s.table);
  switch (s.action) {
    case AlterTable::Action::add:
      return add(context, table, s);
    case AlterTable::Action::drop:
      return drop(context, table, s);
    case AlterTable::Action::alter_column:
      return alter_column(context, table, s);
    case AlterTable::Action::switch_to:
      return switch_to(context, table, s);
    case AlterTable::Action::check_constraint:
    case AlterTable::Action::nocheck_constraint:
      return toggle_constraints(context, table, s);
    case AlterTable::Action::triggers:
      return toggle_triggers(context, table, s);
    case AlterTable::Action::ignored:
      break;
  }
  return {std::nullopt, command_alter, false};
}

Outcome execute_alter_database(const Context& context, const AlterDatabase& s) {
  const auto db = s.database.empty() ? context.session.database : context.server.database(s.database);
  if (db == nullptr)
    raise(5011, 14, 5,
          fmt::format("User does not have permission to alter database '{}', the database does not exist, or the "
                      "database is not in a state that allows access checks.",
                      s.database),
          Reach::batch);
  if (s.option == "RECOVERY") db->recovery_model = s.word == "FULL" ? 1 : s.word == "BULK_LOGGED" ? 2 : 3;
  if (s.option == "READ_COMMITTED_SNAPSHOT") db->read_committed_snapshot = s.on;
  if (s.option == "ALLOW_SNAPSHOT_ISOLATION") db->snapshot_isolation = s.on;
  if (s.option == "COLLATE") {
    const auto collation = collation_by_name(s.word);
    if (!collation) raise(448, 16, 3, fmt::format("Invalid collation '{}'.", s.word), Reach::batch);
    db->collation = *collation;
    db->collation_name = s.word;
  }
  return {std::nullopt, 0xD7, false};
}

Outcome execute_alter_index(const Context& context, const AlterIndex& s) {
  const ObjectPtr table = table_to_alter(context, s.table);
  auto def = std::make_shared<TableDef>(*table->def);
  bool any = s.index.empty();
  for (IndexDef& i : def->indexes) {
    if (!s.index.empty() && !same_name(i.name, s.index)) continue;
    any = true;
    if (s.action == "DISABLE") i.disabled = true;
    if (s.action == "REBUILD") i.disabled = false;
  }
  if (!any) raise(2727, 11, 1, fmt::format("Cannot find index '{}'.", s.index));
  set_definition(context, table, def, rebuilt(context, *table, *def, nullptr));
  return {std::nullopt, 0xD9, false};
}

}  // namespace rowferry::sandbox::engine
