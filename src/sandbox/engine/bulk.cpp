#include "sandbox/engine/bulk.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sandbox/engine/collation.hpp"
#include "sandbox/engine/execute.hpp"
#include "sandbox/engine/select_plan.hpp"

namespace rowferry::sandbox::engine {

Outcome execute_insert_bulk(const Context& context, InsertBulk& s) {
  SessionState& session = context.session;
  const ObjectPtr table = find_table(context, s.table);
  LockMode mode = LockMode::intent_exclusive;
  if (s.tablock) mode = table->def->indexes.empty() ? LockMode::bulk_update : LockMode::exclusive;
  lock_table(context, *table, mode, LockSpan::transaction);
  transaction_of(session);
  session.bulk = std::make_unique<BulkLoad>(session, table, s);
  return {std::nullopt, 0xFD, false};
}

BulkLoad::BulkLoad(SessionState& session, ObjectPtr table, const InsertBulk& statement)
    : session_(session),
      context_{session, *session.server, null_},
      table_(std::move(table)),
      def_(table_->def),
      writer_(
          context_, table_,
          {.verb = "INSERT", .check_constraints = statement.check_constraints, .identity_given = true, .bulk = true}),
      statement_(statement) {
  if (session.transaction != nullptr) undo_place_ = session.transaction->undo.size();
  if (!statement_.has_columns) {
    for (const ColumnDef& c : def_->columns) {
      if (c.computed != nullptr || c.is_rowversion() || c.generated_always != 0) continue;
      statement_.columns.push_back({c.name, c.type, false, c.collation});
    }
  }
  bool identity_given = false;
  for (const InsertBulk::Column& c : statement_.columns) {
    Column column;
    column.target = def_->find(c.name);
    if (column.target < 0) raise_invalid_column(c.name);
    for (const Column& other : columns_)
      if (other.target == column.target)
        raise(264, 16, 1,
              fmt::format("The column name '{}' is specified more than once in the SET clause or column list of an "
                          "INSERT. A column cannot be assigned more than one value in the same clause. Modify the "
                          "clause to make sure that a column is updated only once. If this statement updates or "
                          "inserts columns into a view, column aliasing can conceal the duplication in your code.",
                          c.name),
              Reach::batch);
    const ColumnDef& target = def_->columns[static_cast<std::size_t>(column.target)];
    if (target.computed != nullptr)
      raise(271, 16, 1,
            fmt::format("The column \"{}\" cannot be modified because it is either a computed column or is the result "
                        "of a UNION operator.",
                        c.name),
            Reach::batch);
    if (target.generated_always != 0)
      raise(13536, 16, 1,
            fmt::format(
                "Cannot insert an explicit value into a GENERATED ALWAYS column in table '{}'. Use INSERT with a "
                "column list to exclude the GENERATED ALWAYS column, or insert a DEFAULT into GENERATED ALWAYS column.",
                writer_.full_name()),
            Reach::batch);
    identity_given = identity_given || target.identity.has_value();
    column.declared = c.type;
    if (is_string(c.type.kind) && c.type.kind != Kind::xml && c.type.kind != Kind::json) {
      column.declared.collation = session.database->collation;
      if (!c.collation.empty()) {
        const auto collation = collation_by_name(c.collation);
        if (!collation) raise(448, 16, 1, fmt::format("Invalid collation '{}'.", c.collation), Reach::batch);
        column.declared.collation = *collation;
      }
    }
    if (column.declared.kind == Kind::rowversion) column.declared = make_type(Kind::binary, 8);
    tds::ColumnMeta meta;
    meta.name = target.name;
    meta.type = stored_form(column.declared);
    if (column.declared.kind == Kind::xml) {  // XMLTYPE itself may not stand in bulk data
      meta.type = stored_form(nvarchar_type(max_length, {}));
      column.declared = nvarchar_type(max_length, {});
    }
    meta.flags = static_cast<std::uint16_t>((target.nullable ? tds::flag_nullable : 0) |
                                            (target.identity ? tds::flag_identity : 0));
    column.stream = meta.type;
    column.framing = framing_of(meta.type);
    columns_.push_back(column);
    declared_.push_back(std::move(meta));
  }
  if (!identity_given && def_->identity_column() != nullptr && session.identity_insert &&
      session.identity_insert->first == table_->id)
    raise(
        545, 16, 1,
        fmt::format("Explicit value must be specified for identity column in table '{}' either when IDENTITY_INSERT is "
                    "set to ON or when a replication user is inserting into a NOT FOR REPLICATION identity column.",
                    table_->name),
        Reach::batch);
  for (const IndexDef& index : def_->indexes) {
    if (!index.clustered || statement_.order.empty() || statement_.order.size() > index.keys.size()) continue;
    bool matches = true;
    for (std::size_t i = 0; i < statement_.order.size(); ++i)
      matches = matches && def_->find(statement_.order[i].first) == index.keys[i].column &&
                statement_.order[i].second == index.keys[i].descending;
    if (!matches) continue;
    for (const auto& [name, descending] : statement_.order) {
      order_.push_back(def_->columns[static_cast<std::size_t>(def_->find(name))].stored);
      order_descending_.push_back(descending);
    }
  }
  if (const ColumnDef* c = def_->identity_column(); c != nullptr && identity_given) identity_stored_ = c->stored;
}

std::optional<Message> BulkLoad::bind(const Columns& stream) {
  bound_ = true;
  const auto refuse = [&](std::size_t colid) {
    Message m{4816, 1, 17, fmt::format("Invalid column type from bcp client for colid {}.", colid + 1), {}, 1};
    fail(m);
    return m;
  };
  if (stream.size() != columns_.size()) return refuse(std::min(stream.size(), columns_.size()));
  for (std::size_t i = 0; i < stream.size(); ++i) {
    if (!from_wire(stream[i].type)) return refuse(i);
    columns_[i].stream = stream[i].type;
    columns_[i].framing = framing_of(stream[i].type);
    const auto type = from_wire(stream[i].type);
    if (is_string(type->kind) && !is_unicode(type->kind) && stream[i].type.collation == tds::Collation{} &&
        columns_[i].declared.kind != Kind::json)
      continue;  // raw collation: the declared one
  }
  choose_mode();
  return std::nullopt;
}

bool BulkLoad::refuses_null(std::size_t column) const {
  const ColumnDef& c = def_->columns[static_cast<std::size_t>(columns_[column].target)];
  if (c.nullable || c.is_rowversion()) return false;
  return statement_.keep_nulls || c.default_value == nullptr;
}

Message BulkLoad::null_error(std::size_t column) const {
  const ColumnDef& c = def_->columns[static_cast<std::size_t>(columns_[column].target)];
  return {515,
          2,
          16,
          fmt::format(
              "Cannot insert the value NULL into column '{}', table '{}'; column does not allow nulls. INSERT fails.",
              c.name, writer_.full_name()),
          {},
          1};
}

// The stream's values are the table's, byte for byte (exact), or but for a length byte or padding.
bool BulkLoad::same_shape(const Column& c, bool& exact) const {
  const ColumnDef& target = def_->columns[static_cast<std::size_t>(c.target)];
  if (target.stored < 0 || target.is_rowversion()) return false;
  if (target.default_value != nullptr && !statement_.keep_nulls) return false;
  const tds::TypeInfo table_form = stored_form(target.type);
  if (target.type.kind == Kind::xml) return false;
  tds::TypeInfo stream = c.stream;
  const bool padded =
      target.type.kind == Kind::character || target.type.kind == Kind::nchar || target.type.kind == Kind::binary;
  if (is_unicode(target.type.kind)) stream.collation = table_form.collation;  // UTF-16 whatever the collation
  if (is_code_page_string(target.type.kind)) {
    if (!(c.declared.collation == target.type.collation)) return false;
    stream.collation = table_form.collation;
  }
  if (is_decimal(target.type.kind)) {
    stream.id = table_form.id;
    if (stream.precision != table_form.precision || stream.scale != table_form.scale) return false;
    stream.max_length = table_form.max_length;
  }
  // TYPE_INFO of these says no length.
  const bool unsized = target.type.kind == Kind::date || target.type.kind == Kind::time ||
                       target.type.kind == Kind::datetime2 || target.type.kind == Kind::datetimeoffset;
  if (unsized || is_lob(target.type.kind) || target.type.kind == Kind::variant)
    stream.max_length = table_form.max_length;
  // A shorter declaration of a type of varying length: the same bytes.
  const bool varying =
      target.type.kind == Kind::varchar || target.type.kind == Kind::nvarchar || target.type.kind == Kind::varbinary;
  if (varying && target.type.length != max_length && stream.max_length <= table_form.max_length)
    stream.max_length = table_form.max_length;
  stream.names = table_form.names;
  if (stream == table_form) {
    exact = exact && !padded;
    return true;
  }
  const auto type = from_wire(stream);
  if (!type || type->kind != target.type.kind) return false;
  if (c.framing != Framing::fixed || framing_of(table_form) != Framing::length8) return false;
  exact = false;
  return true;
}

void BulkLoad::choose_mode() {
  mode_ = Mode::convert;
  if (writer_.needs_checks()) return;
  const Layout layout = def_->layout();
  if (columns_.size() != layout.size()) return;
  bool exact = true;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const ColumnDef& target = def_->columns[static_cast<std::size_t>(columns_[i].target)];
    if (target.stored != static_cast<int>(i) || !same_shape(columns_[i], exact)) return;
  }
  mode_ = exact ? Mode::direct : Mode::reshape;
}

ByteView BulkLoad::reshaped(const std::uint8_t* at) {
  buffer_.clear();
  for (const Column& c : columns_) {
    const Type& type = def_->columns[static_cast<std::size_t>(c.target)].type;
    const std::size_t size = value_size(c.stream, c.framing, at);
    if (c.framing == Framing::fixed) {
      buffer_.push(static_cast<std::uint8_t>(size));
      buffer_.append(ByteView{at, size});
    } else if ((type.kind == Kind::character || type.kind == Kind::nchar || type.kind == Kind::binary) &&
               !value_is_null(c.framing, at)) {
      const auto full = static_cast<std::size_t>(type.kind == Kind::nchar ? type.length * 2 : type.length);
      buffer_.put_le(static_cast<std::uint16_t>(full));
      buffer_.append(ByteView{at + 2, size - 2});
      for (std::size_t n = size - 2; n < full; n += type.kind == Kind::nchar ? 2 : 1) {
        buffer_.push(type.kind == Kind::binary ? 0 : ' ');
        if (type.kind == Kind::nchar) buffer_.push(0);
      }
    } else {
      buffer_.append(ByteView{at, size});
    }
    at += size;
  }
  return buffer_.view();
}

ByteView BulkLoad::converted(const std::uint8_t* at) {
  std::vector<std::optional<Value>> values(def_->columns.size());
  for (const Column& c : columns_) {
    const auto target = static_cast<std::size_t>(c.target);
    Type type = *from_wire(c.stream);
    if (is_code_page_string(type.kind))
      type.collation = c.declared.kind == Kind::json ? c.stream.collation : c.declared.collation;
    Value v;
    if (def_->columns[target].type.kind == Kind::json && type.kind == Kind::varchar) {
      v = Value::of_null(make_type(Kind::json));
      if (!value_is_null(c.framing, at))
        v = Value::of_text(value_bytes(c.stream, c.framing, at), make_type(Kind::json));
    } else {
      v = decode_value(type, c.stream, at);
    }
    at += value_size(c.stream, c.framing, at);
    const ColumnDef& def = def_->columns[target];
    if (def.is_rowversion() || (v.null && def.default_value != nullptr && !statement_.keep_nulls)) continue;
    if (def.type.kind == Kind::udt || is_binary(def.type.kind)) {
      if (is_binary(v.type.kind)) v.type = make_type(Kind::varbinary, max_length);
    }
    values[target] = std::move(v);
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    const ColumnDef& def = def_->columns[i];
    if (!values[i] || !def.identity || !values[i]->null) continue;
    values[i] = Value::of_null(def.type);  // 515
  }
  return writer_.make_row(values);
}

void BulkLoad::check_order(ByteView stored) {
  const Layout& layout = table_->data->layout();
  std::vector<Value> key;
  for (const int c : order_) key.push_back(column_value(layout, stored, static_cast<std::size_t>(c)));
  if (!last_key_.empty()) {
    int order = 0;
    for (std::size_t i = 0; i < key.size() && order == 0; ++i) {
      order = compare_for_order(last_key_[i], key[i]);
      if (order_descending_[i]) order = -order;
    }
    if (order > 0)
      raise(4819, 16, 1,
            fmt::format("Cannot bulk load. The bulk data stream was incorrectly specified as sorted or the data "
                        "violates a uniqueness constraint imposed by the target table. Sort order incorrect for the "
                        "following two rows: primary key of first row: {}, primary key of second row: {}.",
                        key_text(last_key_), key_text(key)));
  }
  last_key_ = std::move(key);
}

void BulkLoad::note_identity(ByteView stored) {
  const Value v = column_value(table_->data->layout(), stored, static_cast<std::size_t>(identity_stored_));
  if (!v.null)
    writer_.note_identity(is_decimal(v.type.kind) ? rescale(v.number, v.type.scale, 0).value_or(0) : v.number);
}

void BulkLoad::append_discarded(const BulkRows& rows, std::size_t& taken) {
  HashSum sum;
  for (std::size_t i = 0; i < rows.count; ++i) {
    const RowSpan& span = rows.rows[i];
    const std::uint8_t* at = rows.bytes + span.begin;
    const ByteView stored = mode_ == Mode::direct    ? ByteView{at, span.end - span.begin}
                            : mode_ == Mode::reshape ? reshaped(at)
                                                     : converted(at);
    if (rows.hash == nullptr) sum.add(hash_row(stored));
    if (identity_stored_ >= 0 && mode_ != Mode::convert) note_identity(stored);
  }
  if (rows.hash != nullptr) sum = *rows.hash;
  const TransactionId me = transaction_of(session_).id;
  const auto count = static_cast<std::int64_t>(rows.count);
  table_->data->add_discarded(count, sum, false, me);
  auto& log = session_.transaction->undo;
  auto* last = log.size() > undo_place_ ? std::get_if<UndoDiscard>(&log.back()) : nullptr;
  if (last != nullptr && last->data == table_->data && !last->taken_away) {
    last->rows += count;
    last->hash.add(sum);
  } else {
    log_undo(session_, UndoDiscard{table_->data, count, sum, false});
  }
  taken = rows.count;
  rows_ += rows.count;
}

void BulkLoad::append_direct(const BulkRows& rows) {
  pieces_.clear();
  table_->data->append_rows(rows, transaction_of(session_).id, pieces_);
  for (const TableData::Piece& p : pieces_) log_undo(session_, UndoRows{table_->data, p.first, p.count, false});
  if (identity_stored_ >= 0)
    for (std::size_t i = 0; i < rows.count; ++i)
      note_identity({rows.bytes + rows.rows[i].begin, rows.rows[i].end - rows.rows[i].begin});
  rows_ += rows.count;
}

void BulkLoad::append_checked(const BulkRows& rows, std::size_t& taken) {
  for (std::size_t i = 0; i < rows.count; ++i) {
    const RowSpan& span = rows.rows[i];
    const std::uint8_t* at = rows.bytes + span.begin;
    const ByteView stored = mode_ == Mode::direct    ? ByteView{at, span.end - span.begin}
                            : mode_ == Mode::reshape ? reshaped(at)
                                                     : converted(at);
    if (!order_.empty()) check_order(stored);
    if (writer_.insert_stored(stored)) ++rows_;
    if (identity_stored_ >= 0 && mode_ != Mode::convert) note_identity(stored);
    taken = i + 1;
  }
}

void BulkLoad::remember(const SqlError& error) {
  Message m = error.message;
  if (m.line == 0) m.line = 1;
  fail(m);
}

BulkProgress BulkLoad::append(const BulkRows& rows) {
  BulkProgress progress;
  if (error_) return {BulkProgress::Status::failed, 0, 0, std::nullopt};
  if (!bound_) choose_mode();
  session_.statement_undo = undo_place_;
  try {
    if (context_.server.options.discard && !table_->temporary) {
      append_discarded(rows, progress.taken);
    } else if (mode_ == Mode::direct && order_.empty() && enforced_keys(*def_).empty()) {
      append_direct(rows);
      progress.taken = rows.count;
    } else {
      append_checked(rows, progress.taken);
    }
    waiting_ = false;
    session_.waiting = false;
  } catch (const WouldBlock& block) {
    const auto now = context_.server.now();
    if (!waiting_) {
      waiting_ = true;
      wait_until_.reset();
      if (session_.settings.lock_timeout_ms >= 0)
        wait_until_ = now + std::chrono::milliseconds(session_.settings.lock_timeout_ms);
    }
    if (wait_until_ && now >= *wait_until_) {
      fail({1222, 45, 16, "Lock request time out period exceeded.", {}, 1});
      progress.status = BulkProgress::Status::failed;
      return progress;
    }
    session_.waiting = true;
    session_.waiting_for = block.blocker;
    progress.status = BulkProgress::Status::would_block;
    progress.blocker = block.blocker;
    if (wait_until_)
      progress.wait =
          std::chrono::duration_cast<std::chrono::milliseconds>(*wait_until_ - now) + std::chrono::milliseconds(1);
  } catch (const SqlError& error) {
    remember(error);
    progress.status = BulkProgress::Status::failed;
  } catch (const Truncated&) {
    fail({8152, 30, 16, "String or binary data would be truncated.", {}, 1});
    progress.status = BulkProgress::Status::failed;
  }
  return progress;
}

void BulkLoad::fail(const Message& error) {
  if (!error_) error_ = error;
}

void BulkLoad::undo() {
  session_.waiting = false;
  if (session_.transaction == nullptr) return;
  if (session_.transaction->user) {
    undo_to(session_, undo_place_);
  } else {
    rollback_transaction(session_, nullptr);
  }
}

void BulkLoad::finish(ResultWriter& writer) {
  Done done;
  done.current_command = 0xC3;
  session_.waiting = false;
  if (error_) {
    undo();
    writer.message(*error_);
    if (error_->severity >= 20) session_.fatal = true;
    session_.last_error = error_->number;
    const bool ends_statement = error_->number == 515 || error_->number == 547 || error_->number == 2627 ||
                                error_->number == 2601 || error_->number == 2628;
    if (ends_statement) writer.message({3621, 0, 0, "The statement has been terminated.", {}, 1});
    if (session_.settings.xact_abort && session_.transaction != nullptr && session_.transaction->user)
      rollback_transaction(session_, &writer);
    done.error = true;
    done.current_command = 0xFD;
    writer.done(done);
    return;
  }
  const bool untrusted =
      !statement_.check_constraints && rows_ != 0 && (!def_->checks.empty() || !def_->foreign_keys.empty());
  if (untrusted) {
    auto def = std::make_shared<TableDef>(*table_->def);
    for (CheckDef& c : def->checks) c.not_trusted = true;
    for (ForeignKeyDef& f : def->foreign_keys) f.not_trusted = true;
    set_definition(context_, table_, def, nullptr);
  }
  session_.row_count = static_cast<std::int64_t>(rows_);
  session_.last_error = 0;
  if (session_.transaction != nullptr && !session_.transaction->user) commit_transaction(session_, nullptr);
  done.count = rows_;
  writer.done(done);
}

void BulkLoad::abort(ResultWriter& writer, const std::optional<Message>& error) {
  undo();
  if (error) {
    writer.message(*error);
    if (session_.settings.xact_abort && session_.transaction != nullptr && session_.transaction->user)
      rollback_transaction(session_, &writer);
  }
  Done done;
  done.error = true;
  done.current_command = 0xFD;
  writer.done(done);
}

}  // namespace rowferry::sandbox::engine
