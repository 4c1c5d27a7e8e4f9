#include "sandbox/engine/table_writer.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace rowferry::sandbox::engine {

std::vector<const IndexDef*> enforced_keys(const TableDef& def) {
  std::vector<const IndexDef*> keys;
  for (const IndexDef& index : def.indexes) {
    if (!index.unique || index.disabled || !index.filter.empty()) continue;
    const bool computed = std::any_of(index.keys.begin(), index.keys.end(), [&](const KeyColumn& k) {
      return def.columns[static_cast<std::size_t>(k.column)].stored < 0;
    });
    if (!computed) keys.push_back(&index);
  }
  return keys;
}

std::shared_ptr<TableData> make_data(const TableDef& def) {
  auto data = std::make_shared<TableData>(def.layout());
  for (const IndexDef* index : enforced_keys(def)) {
    std::vector<int> columns;
    for (const KeyColumn& k : index->keys) columns.push_back(def.columns[static_cast<std::size_t>(k.column)].stored);
    data->keys().emplace_back(std::move(columns));
  }
  return data;
}

std::string key_text(const std::vector<Value>& values) {
  std::string out = "(";
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i != 0) out += ", ";
    out += values[i].null                   ? "<NULL>"
           : is_binary(values[i].type.kind) ? "0x" + fold_name(hex_text(values[i].bytes))
                                            : narrow(text_of(values[i]));
  }
  return out + ")";
}

TableWriter::TableWriter(const Context& context, ObjectPtr table, WriteOptions options)
    : context_(context),
      table_(std::move(table)),
      def_(table_->def),
      data_(table_->data),
      options_(options),
      layout_(data_->layout()),
      unique_(enforced_keys(*def_)) {
  for (std::size_t i = 0; i < def_->columns.size(); ++i)
    if (def_->columns[i].stored >= 0) stored_columns_.push_back(i);
}

std::string TableWriter::short_name() const {
  const auto db = context_.server.database(table_->database);
  const Schema* schema = db == nullptr ? nullptr : db->schema_by_id(table_->schema_id);
  return (schema == nullptr ? std::string("dbo") : schema->name) + "." + table_->name;
}

std::string TableWriter::full_name() const { return table_->database + "." + short_name(); }

Value TableWriter::next_row_version() {
  std::string bytes(8, '\0');
  store_be(reinterpret_cast<std::uint8_t*>(bytes.data()), ++context_.server.row_version);
  return Value::of_bytes(std::move(bytes), make_type(Kind::rowversion, 8));
}

Value TableWriter::next_identity() {
  IdentityState& state = *table_->identity;
  const ColumnDef& column = *def_->identity_column();
  const Int128 next = state.used ? state.last + column.identity->increment : state.last;
  Value v = Value::of_null(decimal_type(38, 0));
  v.null = false;
  v.number = next;
  Value out;
  try {
    out = convert(v, column.type);
  } catch (const SqlError&) {
    raise(8115, 16, 1,
          fmt::format("Arithmetic overflow error converting IDENTITY to data type {}.", type_name(column.type.kind)));
  }
  state.last = next;
  state.used = true;
  context_.session.scope_identity = next;
  context_.session.last_identity = next;
  return out;
}

void TableWriter::note_identity(Int128 value) {
  IdentityState& state = *table_->identity;
  const Int128 increment = def_->identity_column()->identity->increment;
  if (!state.used || (increment > 0 ? value > state.last : value < state.last)) state.last = value;
  state.used = true;
  context_.session.scope_identity = value;
  context_.session.last_identity = value;
}

Value TableWriter::default_of(std::size_t column) {
  const ColumnDef& c = def_->columns[column];
  if (c.default_value == nullptr) return Value::of_null(c.type);
  return constant_value(context_, c.default_value);
}

Value TableWriter::column_value(std::size_t column, const Value& given) {
  const ColumnDef& c = def_->columns[column];
  if (given.null) {
    if (!c.nullable)
      raise(515, 16, 2,
            fmt::format(
                "Cannot insert the value NULL into column '{}', table '{}'; column does not allow nulls. {} fails.",
                c.name, full_name(), options_.verb));
    return Value::of_null(c.type);
  }
  try {
    return convert(given, c.type, Conversion::assign);
  } catch (const Truncated& t) {
    raise(2628, 16, 1,
          fmt::format("String or binary data would be truncated in table '{}', column '{}'. Truncated value: '{}'.",
                      full_name(), c.name, narrow(t.value.substr(0, 100))));
  }
}

namespace {

// A row's start is now; its end the last moment that the column can hold, not one rounded beyond it.
Value period_value(const ColumnDef& column) {
  std::int64_t ticks = now_ticks();
  if (column.generated_always != 1) {
    std::int64_t unit = ticks_per_second;
    for (int digits = column.type.scale; digits > 0; --digits) unit /= 10;
    ticks = static_cast<std::int64_t>(days_max) * ticks_per_day + ticks_per_day - unit;
  }
  Value moment = Value::of_null(make_type(Kind::datetime2, 0, 0, 7));
  moment.null = false;
  moment.days = static_cast<std::int32_t>(ticks / ticks_per_day);
  moment.ticks = ticks % ticks_per_day;
  return convert(moment, column.type);
}

}  // namespace

ByteView TableWriter::make_row(std::vector<std::optional<Value>>& given) {
  std::vector<Value> values(def_->columns.size());
  for (const std::size_t i : stored_columns_) {
    const ColumnDef& c = def_->columns[i];
    if (c.is_rowversion()) {
      values[i] = next_row_version();
    } else if (c.identity && !given[i]) {
      values[i] = next_identity();
    } else if (c.generated_always != 0) {
      values[i] = period_value(c);
    } else {
      values[i] = column_value(i, given[i] ? *given[i] : default_of(i));
      if (c.identity)
        note_identity(is_decimal(c.type.kind) ? rescale(values[i].number, c.type.scale, 0).value_or(0)
                                              : values[i].number);
    }
  }
  if (needs_checks()) check_row(values);
  encode_row(values);
  return buffer_.view();
}

bool TableWriter::insert(std::vector<std::optional<Value>>& given) { return insert_stored(make_row(given)); }

void TableWriter::encode_row(const std::vector<Value>& values) {
  buffer_.clear();
  for (const std::size_t i : stored_columns_)
    encode_value(values[i], layout_[static_cast<std::size_t>(def_->columns[i].stored)].info, buffer_);
}

bool TableWriter::needs_checks() const {
  return options_.check_constraints && (!def_->checks.empty() || !def_->foreign_keys.empty());
}

bool TableWriter::insert_values(std::vector<Value>& values) {
  if (needs_checks()) check_row(values);
  encode_row(values);
  return insert_stored(buffer_.view());
}

bool TableWriter::insert_stored(ByteView row) {
  if (!unique_.empty() && !check_keys(row)) return false;
  const RowId id = data_->append(row, transaction_of(context_.session).id, options_.bulk);
  log_undo(context_.session, UndoRows{data_, id, 1, false});
  if (!unique_.empty()) data_->index_row(id);
  return true;
}

void TableWriter::raise_duplicate(std::size_t key, ByteView row) {
  const IndexDef& index = *unique_[key];
  std::vector<Value> values;
  for (const int c : data_->keys()[key].columns())
    values.push_back(engine::column_value(layout_, row, static_cast<std::size_t>(c)));
  if (index.object_id != 0)
    raise(2627, 14, 1,
          fmt::format("Violation of {} constraint '{}'. Cannot insert duplicate key in object '{}'. The duplicate key "
                      "value is {}.",
                      index.primary ? "PRIMARY KEY" : "UNIQUE KEY", index.name, short_name(), key_text(values)));
  raise(2601, 14, 1,
        fmt::format(
            "Cannot insert duplicate key row in object '{}' with unique index '{}'. The duplicate key value is {}.",
            short_name(), index.name, key_text(values)));
}

bool TableWriter::check_keys(ByteView row) {
  const TransactionId me = transaction_of(context_.session).id;
  for (std::size_t k = 0; k < unique_.size(); ++k) {
    KeyIndex& key = data_->keys()[k];
    data_->key_of(row, key.columns(), key_);
    bool duplicate = false;
    TransactionId wait_for = 0;
    key.find(TableData::hash_of(key_), [&](RowId id) {
      TransactionId other = 0;
      const Sight sight = data_->sight(id, me, &other);
      if (sight == Sight::gone || !data_->same_key(id, key, key_)) return false;
      if (sight == Sight::visible) {
        duplicate = true;
        return true;
      }
      wait_for = other;
      return false;
    });
    if (duplicate) {
      if (unique_[k]->ignore_dup_key) return false;
      raise_duplicate(k, row);
    }
    if (wait_for != 0) block_on_transaction(context_.server, wait_for);
  }
  return true;
}

void TableWriter::check_row(std::vector<Value>& values) {
  if (!def_->checks.empty()) {
    row_values_ = values;
    Scope scope;
    scope.variables.push_back(range_of(table_, {}));
    scope.variables[0].values = &row_values_;
    Evaluator evaluator(context_, &scope);
    for (std::size_t i = 0; i < def_->columns.size(); ++i) {
      const ColumnDef& c = def_->columns[i];
      if (c.computed == nullptr) continue;
      evaluator.bind(c.computed);
      row_values_[i] = convert(evaluator.eval(c.computed), c.type);
    }
    for (const CheckDef& check : def_->checks) {
      if (check.disabled) continue;
      evaluator.bind(check.condition);
      if (evaluator.test(check.condition) != Truth::no) continue;
      const std::string column =
          check.column < 0 ? std::string()
                           : fmt::format(", column '{}'", def_->columns[static_cast<std::size_t>(check.column)].name);
      raise(547, 16, 0,
            fmt::format("The {} statement conflicted with the CHECK constraint \"{}\". The conflict occurred in "
                        "database \"{}\", table \"{}\"{}.",
                        options_.verb, check.name, table_->database, short_name(), column));
    }
  }
  for (const ForeignKeyDef& fk : def_->foreign_keys)
    if (!fk.disabled) check_foreign_key(fk, values);
}

namespace {

// Key bytes of some columns of a row, in the types of `types`; nothing when one is NULL.
std::optional<std::string> key_of_values(const std::vector<Value>& values, const std::vector<int>& columns,
                                         const std::vector<Type>& types) {
  std::string key;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const Value& v = values[static_cast<std::size_t>(columns[i])];
    if (v.null) return std::nullopt;
    append_key(convert(v, types[i]), key);
  }
  return key;
}

std::vector<Type> types_of(const TableDef& def, const std::vector<int>& columns) {
  std::vector<Type> types;
  for (const int c : columns) types.push_back(def.columns[static_cast<std::size_t>(c)].type);
  return types;
}

std::vector<Value> stored_values(const TableDef& def, const Layout& layout, ByteView row) {
  std::vector<Value> values(def.columns.size());
  const std::uint8_t* at = row.data();
  for (std::size_t i = 0; i < def.columns.size(); ++i) {
    if (def.columns[i].stored < 0) {
      values[i] = Value::of_null(def.columns[i].type);
      continue;
    }
    const StoredColumn& c = layout[static_cast<std::size_t>(def.columns[i].stored)];
    values[i] = decode_value(c.type, c.info, at);
    at += value_size(c.info, c.framing, at);
  }
  return values;
}

}  // namespace

std::vector<Value> TableWriter::values_of(ByteView row) { return stored_values(*def_, layout_, row); }

void TableWriter::check_foreign_key(const ForeignKeyDef& fk, const std::vector<Value>& values) {
  const auto db = context_.server.database(table_->database);
  const ObjectPtr parent = db->by_id(fk.referenced_id);
  if (parent == nullptr) return;
  const auto types = types_of(*parent->def, fk.referenced);
  const auto key = key_of_values(values, fk.columns, types);
  if (!key) return;
  if (parent == table_) {  // a row may point at itself
    const auto own = key_of_values(values, fk.referenced, types);
    if (own && *own == *key) return;
  }
  TableScan scan(context_, parent->data, ReadMode::committed);
  ByteView row;
  RowId id;
  const Layout& layout = parent->data->layout();
  for (KeyIndex& index : parent->data->keys()) {
    std::vector<int> wanted;
    for (const int c : fk.referenced) wanted.push_back(parent->def->columns[static_cast<std::size_t>(c)].stored);
    if (index.columns() != wanted) continue;
    TransactionId wait_for = 0;
    const bool found = index.find(TableData::hash_of(*key), [&](RowId at) {
      TransactionId other = 0;
      const Sight sight = parent->data->sight(at, transaction_id(context_.session), &other);
      if (sight == Sight::gone || !parent->data->same_key(at, index, *key)) return false;
      if (sight != Sight::visible) wait_for = other;
      return sight == Sight::visible;
    });
    if (found) return;
    if (wait_for != 0) block_on_transaction(context_.server, wait_for);
    break;
  }
  while (scan.next(row, id)) {
    const auto other = key_of_values(stored_values(*parent->def, layout, row), fk.referenced, types);
    if (other && *other == *key) return;
  }
  const TableWriter shown(context_, parent, {});
  raise(547, 16, 0,
        fmt::format("The {} statement conflicted with the FOREIGN KEY constraint \"{}\". The conflict occurred in "
                    "database \"{}\", table \"{}\", column '{}'.",
                    options_.verb, fk.name, parent->database, shown.short_name(),
                    parent->def->columns[static_cast<std::size_t>(fk.referenced[0])].name));
}

// A row of a snapshot may have another version by now.
void TableWriter::check_unchanged(RowId id) {
  TransactionId other = 0;
  const Sight sight = data_->sight(id, transaction_of(context_.session).id, &other);
  if (sight == Sight::visible) return;
  if (sight == Sight::gone)
    raise(
        3960, 16, 2,
        fmt::format("Snapshot isolation transaction aborted due to update conflict. You cannot use snapshot isolation "
                    "to access table '{}' directly or indirectly in database '{}' to update, delete, or insert the "
                    "row that has been modified or deleted by another transaction. Retry the transaction or change "
                    "the isolation level for the update/delete statement.",
                    short_name(), table_->database),
        Reach::transaction);
  block_on_transaction(context_.server, other);
}

void TableWriter::remove(RowId id) {
  if (!removed_known_) {
    removed_known_ = true;
    const auto db = context_.server.database(table_->database);
    if (!table_->temporary && db != nullptr)
      for (const auto& [name, child] : db->objects)
        if (child->def != nullptr)
          for (const ForeignKeyDef& fk : child->def->foreign_keys)
            if (fk.referenced_id == table_->id && !fk.disabled) removed_.push_back({&fk, child, {}});
  }
  if (!removed_.empty()) {
    const auto values = values_of(data_->row(id));
    for (Removed& r : removed_)
      if (const auto key = key_of_values(values, r.fk->referenced, types_of(*r.child->def, r.fk->columns)))
        r.keys.insert(*key);
  }
  check_unchanged(id);
  data_->mark_deleted(id, transaction_of(context_.session).id);
  log_undo(context_.session, UndoRows{data_, id, 1, true});
}

void TableWriter::check_references() {
  for (Removed& r : removed_) {
    if (r.keys.empty()) continue;
    const auto types = types_of(*r.child->def, r.fk->columns);
    // Keys that an UPDATE has put back are no loss.
    TableScan again(context_, data_, ReadMode::committed);
    ByteView row;
    RowId id;
    while (!r.keys.empty() && again.next(row, id))
      if (const auto key = key_of_values(values_of(row), r.fk->referenced, types)) r.keys.erase(*key);
    if (r.keys.empty()) continue;
    TableWriter child(context_, r.child,
                      {.verb = options_.verb, .check_constraints = true, .identity_given = false, .bulk = false});
    TableScan scan(context_, r.child->data, ReadMode::committed);
    std::vector<RowId> hit;
    while (scan.next(row, id)) {
      const auto key = key_of_values(child.values_of(row), r.fk->columns, types);
      if (key && r.keys.contains(*key)) hit.push_back(id);
    }
    if (hit.empty()) continue;
    if (options_.verb == "DELETE" && r.fk->on_delete == 1) {
      lock_table(context_, *r.child, LockMode::intent_exclusive, LockSpan::transaction);
      for (const RowId h : hit) child.remove(h);
      child.check_references();
      continue;
    }
    raise(547, 16, 0,
          fmt::format("The {} statement conflicted with the REFERENCE constraint \"{}\". The conflict occurred in "
                      "database \"{}\", table \"{}\", column '{}'.",
                      options_.verb, r.fk->name, r.child->database, child.short_name(),
                      r.child->def->columns[static_cast<std::size_t>(r.fk->columns[0])].name));
  }
}

}  // namespace rowferry::sandbox::engine
