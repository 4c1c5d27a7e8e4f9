// Definitions of tables: columns, keys, constraints.
#include <fmt/format.h>

#include <algorithm>

#include "sandbox/engine/collation.hpp"
#include "sandbox/engine/execute.hpp"
#include "sandbox/engine/partitions.hpp"
#include "sandbox/engine/select_plan.hpp"

namespace rowferry::sandbox::engine {

namespace {

constexpr std::size_t row_bytes_max = 8060;

std::string made_name(std::string_view prefix, const std::string& table, std::string_view column, int id) {
  const std::u16string wide = widen(table);
  std::string name = fmt::format("{}__{}__", prefix, narrow(wide.substr(0, column.empty() ? 15 : 9)));
  if (!column.empty()) name += narrow(widen(column).substr(0, 5)) + "__";
  return name + fmt::format("{:08X}", static_cast<unsigned>(id));
}

int column_named(const TableDef& def, const std::string& name, const std::string& table) {
  const int at = def.find(name);
  if (at < 0)
    raise(1911, 16, 1, fmt::format("Column name '{}' does not exist in the target table or view.", name), Reach::batch);
  (void)table;
  return at;
}

void refuse_taken(const Database& db, const Object& table, const std::string& name) {
  if (!table.temporary && constraint_name_taken(db, table.schema_id, name))
    raise(2714, 16, 5, fmt::format("There is already an object named '{}' in the database.", name), Reach::batch);
}

// The column of a one-table scope that a definition's expression is bound in.
Type expression_type(const Context& context, const TableDef& def, const ExprPtr& e) {
  Scope scope;
  RangeVariable& v = scope.variables.emplace_back();
  for (const ColumnDef& c : def.columns) {
    RangeColumn r;
    r.name = c.name;
    r.type = c.type;
    r.nullable = c.nullable;
    v.columns.push_back(r);
  }
  Evaluator evaluator(context, &scope);
  evaluator.bind(e);
  return e->type;
}

}  // namespace

bool constraint_name_taken(const Database& db, int schema_id, std::string_view name) {
  for (const auto& [key, object] : db.objects) {
    if (object->schema_id != schema_id) continue;
    if (same_name(object->name, name)) return true;
    if (object->def == nullptr) continue;
    const TableDef& def = *object->def;
    for (const IndexDef& i : def.indexes)
      if (i.object_id != 0 && same_name(i.name, name)) return true;
    for (const CheckDef& c : def.checks)
      if (same_name(c.name, name)) return true;
    for (const ForeignKeyDef& f : def.foreign_keys)
      if (same_name(f.name, name)) return true;
    for (const ColumnDef& c : def.columns)
      if (c.default_id != 0 && same_name(c.default_name, name)) return true;
  }
  return false;
}

namespace {

// Collation, nullability and identity of a column that is not computed.
void set_plain_column(ColumnDef& c, const ColumnSpec& spec, const TableDef& def, const Object& table,
                      const Database& db) {
  if (is_string(c.type.kind) && c.type.kind != Kind::xml && c.type.kind != Kind::json) {
    c.type.collation = db.collation;
    c.collation = db.collation_name;
    if (!spec.collation.empty() && fold_name(spec.collation) != "database_default") {
      const auto collation = collation_by_name(spec.collation);
      if (!collation) raise(448, 16, 1, fmt::format("Invalid collation '{}'.", spec.collation), Reach::batch);
      c.type.collation = *collation;
      c.collation = spec.collation;
    }
    if (code_page_of(c.type.collation) == 0 && is_code_page_string(c.type.kind))
      raise(459, 16, 2,
            fmt::format("Collation '{}' is supported on Unicode data types only and cannot be applied to char, "
                        "varchar or text data types.",
                        c.collation),
            Reach::batch);
  } else if (!spec.collation.empty()) {
    raise(447, 16, 0, fmt::format("Expression type {} is invalid for COLLATE clause.", type_name(c.type.kind)),
          Reach::batch);
  }
  c.nullable = spec.nullable.value_or(!c.identity);
  if (c.is_rowversion() && !spec.nullable) c.nullable = false;
  if (c.identity) {
    if (def.identity_column() != nullptr)
      raise(2744, 16, 2,
            fmt::format(
                "Multiple identity columns specified for table '{}'. Only one identity column per table is allowed.",
                table.name),
            Reach::batch);
    if (!is_integer(c.type.kind) && !(is_decimal(c.type.kind) && c.type.scale == 0))
      raise(2749, 16, 2,
            fmt::format("Identity column '{}' must be of data type int, bigint, smallint, tinyint, or decimal or "
                        "numeric with a scale of 0, unencrypted, and constrained to be nonnullable.",
                        c.name),
            Reach::batch);
    c.nullable = false;
  }
}

void check_width(const TableDef& def, const Object& table) {
  if (def.columns.size() > 1024)
    raise(1702, 16, 1,
          fmt::format("CREATE TABLE failed because column '{}' in table '{}' exceeds the maximum of 1024 columns.",
                      def.columns[1024].name, table.name),
          Reach::batch);
  // A row's smallest size: fixed-length columns, a header, the NULL bitmap.
  std::size_t fixed = 7 + (def.columns.size() + 7) / 8;
  for (const ColumnDef& c : def.columns) {
    const bool sized = c.type.kind == Kind::character || c.type.kind == Kind::nchar || c.type.kind == Kind::binary ||
                       is_number(c.type.kind) || is_temporal(c.type.kind) || c.type.kind == Kind::guid;
    if (sized && c.computed == nullptr && !c.sparse) fixed += static_cast<std::size_t>(catalogue_length(c.type));
  }
  if (fixed > row_bytes_max && !table.temporary)
    raise(1701, 16, 1,
          fmt::format("Creating or altering table '{}' failed because the minimum row size would be {}, including {} "
                      "bytes of internal overhead. This exceeds the maximum allowable table row size of {} bytes.",
                      table.name, fixed, 7 + (def.columns.size() + 7) / 8, row_bytes_max),
          Reach::batch);
}

}  // namespace

void add_columns(const Context& context, TableDef& def, const Object& table, std::vector<ColumnSpec>& columns,
                 Database& db) {
  for (ColumnSpec& spec : columns) {
    if (def.find(spec.name) >= 0)
      raise(
          2705, 16, 3,
          fmt::format(
              "Column names in each table must be unique. Column name '{}' in table '{}' is specified more than once.",
              spec.name, table.name),
          Reach::batch);
    ColumnDef c;
    c.name = spec.name;
    c.id = def.next_column_id++;
    c.type = spec.type;
    c.user_type = spec.user_type;
    c.persisted = spec.persisted;
    c.rowguidcol = spec.rowguidcol;
    c.sparse = spec.sparse;
    c.hidden = spec.hidden;
    c.generated_always = spec.generated_always;
    c.identity = spec.identity;
    if (spec.computed != nullptr) {
      c.computed = spec.computed;
      c.computed_text = spec.computed_text;
      c.type = expression_type(context, def, spec.computed);
      if (is_string(c.type.kind)) c.collation = collation_name(c.type.collation);
      c.nullable = !(spec.persisted && spec.nullable.has_value() && !*spec.nullable);
    } else {
      set_plain_column(c, spec, def, table, db);
    }
    if (spec.default_value != nullptr) {
      c.default_value = spec.default_value;
      c.default_text = spec.default_text;
      c.default_id = db.new_object_id();
      c.default_name =
          spec.default_name.empty() ? made_name("DF", table.name, c.name, c.default_id) : spec.default_name;
      refuse_taken(db, table, c.default_name);
    }
    def.columns.push_back(std::move(c));
  }
  check_width(def, table);
  def.place_columns();
}

void add_index(const Context&, TableDef& def, const Object& table, const KeySpec& spec, Database& db) {
  IndexDef index;
  index.name = spec.name;
  index.primary = spec.primary;
  index.unique = spec.constraint || spec.unique;
  index.unique_constraint = spec.constraint && !spec.primary;
  index.columnstore = spec.columnstore;
  index.ignore_dup_key = spec.ignore_dup_key;
  index.filter = spec.filter;
  const auto clustered =
      std::find_if(def.indexes.begin(), def.indexes.end(), [](const IndexDef& i) { return i.clustered; });
  index.clustered = spec.clustered.value_or(spec.primary && clustered == def.indexes.end());
  if (spec.primary && def.primary_key() != nullptr)
    raise(1779, 16, 0, fmt::format("Table '{}' already has a primary key defined on it.", table.name), Reach::batch);
  if (index.clustered && clustered != def.indexes.end())
    raise(1902, 16, 3,
          fmt::format("Cannot create more than one clustered index on table '{}'. Drop the existing clustered index "
                      "'{}' before creating another.",
                      table.name, clustered->name),
          Reach::batch);
  for (const auto& [name, descending] : spec.columns) {
    const int at = column_named(def, name, table.name);
    ColumnDef& c = def.columns[static_cast<std::size_t>(at)];
    if (is_lob(c.type.kind) || (c.type.length == max_length && !spec.columnstore) || c.type.kind == Kind::json)
      raise(1919, 16, 1,
            fmt::format("Column '{}' in table '{}' is of a type that is invalid for use as a key column in an index.",
                        c.name, table.name),
            Reach::batch);
    index.keys.push_back({at, descending});
  }
  for (const std::string& name : spec.included) index.included.push_back(column_named(def, name, table.name));
  if (index.clustered && !spec.scheme.empty()) place_on_scheme(def, table.name, spec.scheme, spec.scheme_column, db);
  if (spec.constraint) {
    index.object_id = db.new_object_id();
    index.system_named = spec.name.empty();
    if (index.system_named)
      index.name = made_name(spec.primary ? "PK" : "UQ", table.name, {}, index.object_id) +
                   fmt::format("{:08X}", static_cast<unsigned>(index.object_id) * 2654435761U);
    refuse_taken(db, table, index.name);
  }
  for (const IndexDef& other : def.indexes)
    if (same_name(other.name, index.name))
      raise(1913, 16, 1,
            fmt::format(
                "The operation failed because an index or statistics with name '{}' already exists on table '{}'.",
                index.name, table.name),
            Reach::batch);
  int id = 1;
  if (!index.clustered) {
    id = 2;
    for (const IndexDef& other : def.indexes) id = std::max(id, other.index_id + 1);
  }
  index.index_id = id;
  def.indexes.push_back(std::move(index));
}

namespace {

void add_foreign_key(const Context& context, TableDef& def, const ObjectPtr& table, const ForeignKeySpec& spec,
                     Database& db) {
  ForeignKeyDef fk;
  fk.object_id = db.new_object_id();
  fk.name = spec.name.empty() ? made_name("FK", table->name, spec.columns[0], fk.object_id) : spec.name;
  refuse_taken(db, *table, fk.name);
  const bool own = same_name(spec.table.object(), table->name) &&
                   (spec.table.schema().empty() || place_of(context, spec.table).schema_id == table->schema_id);
  const ObjectPtr parent = own ? table : find_object(context, spec.table);
  if (parent == nullptr || parent->kind != ObjectKind::table)
    raise(1767, 16, 0, fmt::format("Foreign key '{}' references invalid table '{}'.", fk.name, spec.table.text()),
          Reach::batch);
  const TableDef& parent_def = own ? def : *parent->def;
  fk.referenced_id = parent->id;
  fk.on_delete = spec.on_delete;
  fk.on_update = spec.on_update;
  for (const std::string& c : spec.columns) {
    const int at = def.find(c);
    if (at < 0)
      raise(1769, 16, 1,
            fmt::format("Foreign key '{}' references invalid column '{}' in referencing table '{}'.", fk.name, c,
                        table->name),
            Reach::batch);
    fk.columns.push_back(at);
  }
  if (spec.referenced.empty()) {
    const IndexDef* pk = parent_def.primary_key();
    if (pk == nullptr)
      raise(
          1773, 16, 0,
          fmt::format(
              "Foreign key '{}' has implicit reference to object '{}' which does not have a primary key defined on it.",
              fk.name, spec.table.text()),
          Reach::batch);
    for (const KeyColumn& k : pk->keys) fk.referenced.push_back(k.column);
  }
  for (const std::string& c : spec.referenced) {
    const int at = parent_def.find(c);
    if (at < 0)
      raise(1770, 16, 0,
            fmt::format("Foreign key '{}' references invalid column '{}' in referenced table '{}'.", fk.name, c,
                        spec.table.text()),
            Reach::batch);
    fk.referenced.push_back(at);
  }
  const bool keyed = std::any_of(parent_def.indexes.begin(), parent_def.indexes.end(), [&](const IndexDef& i) {
    if (!i.unique || i.keys.size() != fk.referenced.size()) return false;
    return std::all_of(i.keys.begin(), i.keys.end(), [&](const KeyColumn& k) {
      return std::find(fk.referenced.begin(), fk.referenced.end(), k.column) != fk.referenced.end();
    });
  });
  if (!keyed || fk.referenced.size() != fk.columns.size())
    raise(1776, 16, 0,
          fmt::format("There are no primary or candidate keys in the referenced table '{}' that match the referencing "
                      "column list in the foreign key '{}'.",
                      spec.table.text(), fk.name),
          Reach::batch);
  def.foreign_keys.push_back(std::move(fk));
}

}  // namespace

void add_constraints(const Context& context, TableDef& def, const ObjectPtr& table, TableParts& parts, Database& db) {
  for (const KeySpec& key : parts.keys) {
    if (key.primary)
      for (const auto& [name, descending] : key.columns) {
        const int at = column_named(def, name, table->name);
        ColumnDef& c = def.columns[static_cast<std::size_t>(at)];
        const bool fresh = std::any_of(parts.columns.begin(), parts.columns.end(), [&](const ColumnSpec& s) {
          return same_name(s.name, name) && s.nullable != true;
        });
        if (fresh) c.nullable = false;
        if (c.nullable)
          raise(8111, 16, 1,
                fmt::format("Cannot define PRIMARY KEY constraint on nullable column in table '{}'.", table->name),
                Reach::batch);
      }
    add_index(context, def, *table, key, db);
  }
  for (const CheckSpec& spec : parts.checks) {
    CheckDef check;
    check.object_id = db.new_object_id();
    check.name = spec.name.empty() ? made_name("CK", table->name, spec.column, check.object_id) : spec.name;
    refuse_taken(db, *table, check.name);
    check.condition = spec.condition;
    check.text = spec.text;
    expression_type(context, def, spec.condition);
    if (!is_condition(*spec.condition))
      raise(4145, 15, 1, "An expression of non-boolean type specified in a context where a condition is expected.",
            Reach::batch);
    // Which column it names, if only one: error 547 shows it.
    int only = -1;
    bool several = false;
    walk(spec.condition, [&](const ExprPtr& e) {
      if (e->kind == ExprKind::column) {
        several = several || (only >= 0 && only != e->column);
        only = e->column;
      }
      return true;
    });
    check.column = several ? -1 : only;
    def.checks.push_back(std::move(check));
  }
  for (const DefaultSpec& spec : parts.defaults) {
    ColumnDef& c = def.columns[static_cast<std::size_t>(column_named(def, spec.column, table->name))];
    if (c.default_id != 0) raise(1781, 16, 1, "Column already has a DEFAULT bound to it.", Reach::batch);
    c.default_value = spec.value;
    c.default_text = spec.text;
    c.default_id = db.new_object_id();
    c.default_name = spec.name.empty() ? made_name("DF", table->name, c.name, c.default_id) : spec.name;
    refuse_taken(db, *table, c.default_name);
  }
  for (const ForeignKeySpec& spec : parts.foreign_keys) add_foreign_key(context, def, table, spec, db);
}

void lock_name(const Context& context, const Place& place, std::string_view name) {
  transaction_of(context.session);
  const std::string key = fmt::format("n:{}:{}:{}", fold_name(place.database->name), place.schema_id, fold_name(name));
  context.server.locks.take(context.session.spid, key, LockMode::schema_modification, LockSpan::transaction);
}

void lock_definition(const Context& context, const Object& table) {
  transaction_of(context.session);
  if (!table.temporary)
    context.server.locks.take(context.session.spid, lock_resource(table), LockMode::schema_modification,
                              LockSpan::transaction);
}

void set_definition(const Context& context, const ObjectPtr& table, std::shared_ptr<TableDef> def,
                    std::shared_ptr<TableData> data) {
  const TableDefPtr old_def = table->def;
  const auto old_data = table->data;
  const std::int64_t old_modified = table->modified;
  const auto old_identity = table->identity;
  table->def = std::move(def);
  if (data != nullptr) table->data = std::move(data);
  table->modified = now_ticks();
  const ColumnDef* identity = table->def->identity_column();
  if (identity == nullptr) table->identity = nullptr;
  if (identity != nullptr && table->identity == nullptr)
    table->identity = std::make_shared<IdentityState>(IdentityState{identity->identity->seed, false});
  log_undo(context.session, UndoDefinition{[=] {
             table->def = old_def;
             table->data = old_data;
             table->modified = old_modified;
             table->identity = old_identity;
           }});
}

std::shared_ptr<TableData> rebuilt(const Context& context, const Object& table, const TableDef& def,
                                   const std::function<void(ByteView, ByteBuffer&)>& convert_row) {
  auto data = make_data(def);
  const auto keys = enforced_keys(def);
  const TransactionId me = transaction_of(context.session).id;
  TableScan scan(context, table.data, ReadMode::committed);
  ByteView row;
  RowId id;
  ByteBuffer buffer;
  std::string key;
  const Layout layout = def.layout();
  while (scan.next(row, id)) {
    ByteView now = row;
    if (convert_row) {
      buffer.clear();
      convert_row(row, buffer);
      now = buffer.view();
    }
    for (std::size_t k = 0; k < keys.size(); ++k) {
      KeyIndex& index = data->keys()[k];
      data->key_of(now, index.columns(), key);
      const bool duplicate =
          index.find(TableData::hash_of(key), [&](RowId other) { return data->same_key(other, index, key); });
      if (!duplicate || keys[k]->ignore_dup_key) continue;
      std::vector<Value> values;
      for (const int c : index.columns()) values.push_back(column_value(layout, now, static_cast<std::size_t>(c)));
      const TableWriter names(context,
                              table.temporary ? context.session.temporary.at(fold_name(table.name))
                                              : context.server.database(table.database)->by_id(table.id),
                              {});
      raise(1505, 16, 1,
            fmt::format("The CREATE UNIQUE INDEX statement terminated because a duplicate key was found for the object "
                        "name '{}' and the index name '{}'. The duplicate key value is {}.",
                        names.short_name(), keys[k]->name, key_text(values)),
            Reach::batch);
    }
    const RowId place = data->append(now, me, true);
    log_undo(context.session, UndoRows{data, place, 1, false});
    if (!keys.empty()) data->index_row(place);
  }
  const auto discarded = static_cast<std::int64_t>(table.data->discarded(me));
  if (discarded != 0) {
    data->add_discarded(discarded, table.data->hash(me), false, me);
    log_undo(context.session, UndoDiscard{data, discarded, table.data->hash(me), false});
  }
  return data;
}

}  // namespace rowferry::sandbox::engine
