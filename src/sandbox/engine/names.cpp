// Names to objects, and the locks that go with it.
#include <fmt/format.h>

#include <algorithm>

#include "sandbox/engine/query.hpp"

namespace rowferry::sandbox::engine {

std::string lock_resource(const Object& table) { return fmt::format("t:{}:{}", fold_name(table.database), table.id); }

void lock_table(const Context& context, const Object& table, LockMode mode, LockSpan span) {
  if (table.temporary) return;
  if (span == LockSpan::transaction) transaction_of(context.session);
  context.server.locks.take(context.session.spid, lock_resource(table), mode, span);
}

Place place_of(const Context& context, const ObjectName& name, bool must_exist) {
  Place place;
  const std::string database = name.temporary() ? "tempdb" : name.database();
  place.database = database.empty() ? context.session.database : context.server.database(database);
  if (place.database == nullptr) {
    if (!must_exist) return place;
    if (name.parts.size() == 4)
      raise(
          7202, 11, 2,
          fmt::format("Could not find server '{}' in sys.servers. Verify that the correct server name was specified. "
                      "If necessary, execute the stored procedure sp_addlinkedserver to add the server to sys.servers.",
                      name.parts[0]));
    raise_invalid_object(name.text());
  }
  const std::string schema = name.temporary() || name.schema().empty() ? "dbo" : name.schema();
  if (const Schema* s = place.database->schema(schema); s != nullptr) {
    place.schema_id = s->id;
  } else if (must_exist) {
    raise(2760, 16, 1,
          fmt::format("The specified schema name \"{}\" either does not exist or you do not have permission to use it.",
                      schema),
          Reach::batch);
  } else {
    place.schema_id = -1;
  }
  return place;
}

ObjectPtr find_object(const Context& context, const ObjectName& name) {
  if (name.temporary()) {
    const auto found = context.session.temporary.find(fold_name(name.object()));
    return found == context.session.temporary.end() ? nullptr : found->second;
  }
  const Place place = place_of(context, name, false);
  if (place.database == nullptr || place.schema_id < 0) return nullptr;
  const std::string key =
      fmt::format("n:{}:{}:{}", fold_name(place.database->name), place.schema_id, fold_name(name.object()));
  if (const int holder = context.server.locks.blocker(context.session.spid, key, LockMode::schema_stability);
      holder != 0)
    throw WouldBlock{holder};
  ObjectPtr object = place.database->find(place.schema_id, name.object());
  if (object != nullptr) lock_table(context, *object, LockMode::schema_stability, LockSpan::statement);
  return object;
}

ObjectPtr find_table(const Context& context, const ObjectName& name) {
  if (name.parts.size() == 1 && name.parts[0].starts_with('@')) {
    const auto& variables = context.frame().variables;
    const auto found = variables.find(fold_name(name.parts[0]));
    if (found == variables.end() || found->second.table == nullptr)
      raise(1087, 16, 1, fmt::format("Must declare the table variable \"{}\".", name.parts[0]), Reach::batch);
    return found->second.table;
  }
  ObjectPtr object = find_object(context, name);
  if (object == nullptr || object->kind != ObjectKind::table) raise_invalid_object(name.text());
  return object;
}

void check_snapshot_allowed(const Context& context, const Object& table) {
  if (table.temporary || context.settings().isolation != 5) return;
  const auto database = context.server.database(table.database);
  if (database != nullptr && database->snapshot_isolation) return;
  raise(3952, 16, 1,
        fmt::format("Snapshot isolation transaction failed accessing database '{}' because snapshot isolation is not "
                    "allowed in this database. Use ALTER DATABASE to allow snapshot isolation.",
                    table.database),
        Reach::batch);
}

ReadMode lock_for_reading(const Context& context, const Object& table, const std::vector<std::string>& hints) {
  const auto has = [&](std::string_view hint) { return std::find(hints.begin(), hints.end(), hint) != hints.end(); };
  const int isolation = context.settings().isolation;
  if (has("TABLOCKX") || (has("XLOCK") && has("TABLOCK")))
    lock_table(context, table, LockMode::exclusive, LockSpan::transaction);
  if (has("UPDLOCK") || has("XLOCK")) lock_table(context, table, LockMode::update, LockSpan::transaction);
  const auto database = table.temporary ? nullptr : context.server.database(table.database);
  check_snapshot_allowed(context, table);
  const bool dirty = has("NOLOCK") || has("READUNCOMMITTED") ||
                     (isolation == 1 && !has("READCOMMITTED") && !has("HOLDLOCK") && !has("SERIALIZABLE"));
  if (dirty) return ReadMode::dirty;
  const bool locking = has("READCOMMITTEDLOCK") || has("HOLDLOCK") || has("SERIALIZABLE") || has("REPEATABLEREAD") ||
                       has("READPAST") || has("UPDLOCK") || has("XLOCK") || has("TABLOCKX");
  const bool versions =
      database != nullptr && !locking && (isolation == 5 || (isolation == 2 && database->read_committed_snapshot));
  if (versions) {
    take_snapshot(context.session, isolation == 5);
    return ReadMode::snapshot;
  }
  const bool hold = has("HOLDLOCK") || has("SERIALIZABLE") || has("REPEATABLEREAD") || isolation == 3 || isolation == 4;
  if (hold) {
    lock_table(context, table, LockMode::shared,
               context.session.transaction != nullptr ? LockSpan::transaction : LockSpan::statement);
  } else {
    lock_table(context, table, has("TABLOCK") ? LockMode::shared : LockMode::intent_shared, LockSpan::statement);
  }
  return has("READPAST") ? ReadMode::skip_locked : ReadMode::committed;
}

RangeVariable range_of(const ObjectPtr& object, const std::string& alias) {
  RangeVariable v;
  v.object = object;
  v.def = object->def;
  v.data = object->data;
  v.alias = alias.empty() ? object->name : alias;
  v.table_name = object->name;
  for (const ColumnDef& c : object->def->columns) {
    RangeColumn r;
    r.name = c.name;
    r.type = c.type;
    r.nullable = c.nullable;
    r.stored = c.stored;
    r.definition = &c;
    r.flags = static_cast<std::uint16_t>((c.identity ? tds::flag_identity : 0) |
                                         (c.computed != nullptr ? tds::flag_computed : 0));
    if (!c.identity && c.computed == nullptr && !c.is_rowversion()) r.flags |= tds::flag_updatable_unknown;
    r.user_type = c.is_rowversion() ? 0x50 : 0;
    v.columns.push_back(std::move(r));
  }
  return v;
}

namespace {

bool names_a_column(const ExprPtr& e) {
  return e->kind == ExprKind::column || e->query != nullptr ||
         std::any_of(e->args.begin(), e->args.end(), [](const ExprPtr& arg) { return names_a_column(arg); });
}

// The column of `place` that the condition compares with something without columns; -1 when it is of another form.
int sought_column(const Expr& e, std::size_t place) {
  if (e.kind != ExprKind::compare || e.op != '=') return -1;
  for (const std::size_t side : {0U, 1U}) {
    const Expr& column = *e.args[side];
    if (column.kind != ExprKind::column || column.depth != 0 || column.source != static_cast<int>(place)) continue;
    if (!names_a_column(e.args[1 - side])) return column.column;
  }
  return -1;
}

}  // namespace

std::vector<ExprPtr> seek_conditions(const RangeVariable& variable, std::size_t place,
                                     const std::vector<ExprPtr>& conditions) {
  if (variable.def == nullptr) return {};
  for (const IndexDef& index : variable.def->indexes) {
    std::vector<ExprPtr> found;
    bool leads = false;
    for (const ExprPtr& e : conditions) {
      const int column = sought_column(*e, place);
      for (std::size_t key = 0; column >= 0 && key < index.keys.size(); ++key) {
        if (index.keys[key].column != column) continue;
        found.push_back(e);
        leads = leads || key == 0;
      }
    }
    if (leads) return found;
  }
  return {};
}

}  // namespace rowferry::sandbox::engine
