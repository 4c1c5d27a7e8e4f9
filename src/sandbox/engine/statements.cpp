// SET, USE, DECLARE, transactions, RAISERROR, DBCC.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sandbox/engine/collation.hpp"
#include "sandbox/engine/execute.hpp"

namespace rowferry::sandbox::engine {

void send_message(const Context& context, int number, int severity, int state, std::string text, int line) {
  Message m;
  m.number = number;
  m.severity = severity;
  m.state = state;
  m.text = std::move(text);
  m.line = line;
  if (!context.session.frames.empty()) m.procedure = context.frame().procedure;
  context.writer.message(m);
}

namespace {

bool* switch_named(Settings& s, const std::string& name) {
  if (name == "QUOTED_IDENTIFIER") return &s.quoted_identifier;
  if (name == "ANSI_NULLS") return &s.ansi_nulls;
  if (name == "ANSI_NULL_DFLT_ON") return &s.ansi_null_dflt_on;
  if (name == "ANSI_PADDING") return &s.ansi_padding;
  if (name == "ANSI_WARNINGS") return &s.ansi_warnings;
  if (name == "ARITHABORT") return &s.arithabort;
  if (name == "CONCAT_NULL_YIELDS_NULL") return &s.concat_null_yields_null;
  if (name == "NUMERIC_ROUNDABORT") return &s.numeric_roundabort;
  if (name == "CURSOR_CLOSE_ON_COMMIT") return &s.cursor_close_on_commit;
  if (name == "IMPLICIT_TRANSACTIONS") return &s.implicit_transactions;
  if (name == "XACT_ABORT") return &s.xact_abort;
  if (name == "NOCOUNT") return &s.nocount;
  if (name == "FMTONLY") return &s.fmtonly;
  if (name == "NOEXEC") return &s.noexec;
  if (name == "PARSEONLY") return &s.parseonly;
  return nullptr;
}

void set_switches(Settings& s, const std::string& name, bool on) {
  if (name == "ANSI_DEFAULTS") {
    s.quoted_identifier = s.ansi_nulls = s.ansi_null_dflt_on = s.ansi_padding = s.ansi_warnings = on;
    s.cursor_close_on_commit = s.implicit_transactions = on;
    return;
  }
  if (bool* option = switch_named(s, name)) *option = on;
}

void set_isolation(const Context& context, const std::string& level) {
  Settings& s = context.settings();
  if (level == "READ UNCOMMITTED") s.isolation = 1;
  if (level == "READ COMMITTED") s.isolation = 2;
  if (level == "REPEATABLE READ") s.isolation = 3;
  if (level == "SERIALIZABLE") s.isolation = 4;
  if (level == "SNAPSHOT") s.isolation = 5;
}

void set_identity_insert(const Context& context, const SetOption& o) {
  const ObjectPtr table = find_object(context, o.table);
  if (table == nullptr || table->kind != ObjectKind::table)
    raise(1088, 16, 11,
          fmt::format("Cannot find the object \"{}\" because it does not exist or you do not have permissions.",
                      o.table.text()),
          Reach::batch);
  const TableWriter names(context, table, {});
  if (table->def->identity_column() == nullptr)
    raise(8106, 16, 1,
          fmt::format("Table '{}' does not have the identity property. Cannot perform SET operation.", o.table.text()));
  auto& held = context.session.identity_insert;
  if (o.words[0] == "OFF") {
    if (held && held->first == table->id) held.reset();
    return;
  }
  if (held && held->first != table->id)
    raise(8107, 16, 1,
          fmt::format("IDENTITY_INSERT is already ON for table '{}'. Cannot perform SET operation for table '{}'.",
                      held->second, o.table.text()));
  held.emplace(table->id, names.full_name());
}

}  // namespace

Outcome execute_set_option(const Context& context, SetOption& o) {
  Settings& s = context.settings();
  const Outcome done{std::nullopt, 0xB9, false};
  if (o.name == "TRANSACTION ISOLATION LEVEL") {
    set_isolation(context, o.words[0]);
    return done;
  }
  if (o.name == "IDENTITY_INSERT") {
    set_identity_insert(context, o);
    return done;
  }
  if (!o.words.empty() && (o.words[0] == "ON" || o.words[0] == "OFF")) {
    set_switches(s, o.name, o.words[0] == "ON");
    for (std::size_t i = 1; i < o.words.size(); ++i) set_switches(s, o.words[i], o.words[0] == "ON");
    return done;
  }
  std::int64_t number = 0;
  if (o.value != nullptr) {
    const Value v = constant_value(context, o.value);
    if (!v.null && is_number(v.type.kind)) number = static_cast<std::int64_t>(convert(v, bigint_type()).number);
  }
  if (o.name == "TEXTSIZE") s.textsize = number == 0 ? 4096 : number == -1 ? 2'147'483'647 : number;
  if (o.name == "ROWCOUNT") s.rowcount = number;
  if (o.name == "LOCK_TIMEOUT") s.lock_timeout_ms = static_cast<int>(number);
  if (o.name == "DATEFIRST") s.datefirst = static_cast<int>(number);
  if (o.name == "DEADLOCK_PRIORITY")
    s.deadlock_priority = o.words.empty()        ? static_cast<int>(number)
                          : o.words[0] == "LOW"  ? -5
                          : o.words[0] == "HIGH" ? 5
                                                 : 0;
  if (o.name == "LANGUAGE" && !o.words.empty()) {
    EnvChange change;
    change.kind = EnvChange::Kind::language;
    change.before = s.language;
    s.language = fold_name(o.words[0]);
    change.now = s.language;
    context.writer.env_change(change);
    send_message(context, 5703, 0, 1, fmt::format("Changed language setting to {}.", s.language), 1);
  }
  if (o.name == "DATEFORMAT" && !o.words.empty()) s.dateformat = fold_name(o.words[0]);
  return done;
}

Outcome execute_use(const Context& context, const std::string& name) {
  SessionState& session = context.session;
  const auto db = context.server.database(name);
  if (db == nullptr)
    raise(911, 16, 1, fmt::format("Database '{}' does not exist. Make sure that the name is entered correctly.", name),
          Reach::batch);
  EnvChange change;
  change.before = session.database->name;
  change.now = db->name;
  session.database = db;
  context.writer.env_change(change);
  send_message(context, 5701, 0, 1, fmt::format("Changed database context to '{}'.", db->name), 1);
  return {std::nullopt, 0xE2, false};
}

Outcome execute_declare(const Context& context, Declare& s) {
  Frame& frame = context.frame();
  for (Declare::Item& item : s.items) {
    Variable v;
    if (item.is_table) {
      auto table = std::make_shared<Object>();
      table->name = item.name;
      table->temporary = true;
      table->database = "tempdb";
      table->id = context.session.next_temporary_id--;
      auto def = std::make_shared<TableDef>();
      TableParts parts = item.table->parts;
      add_columns(context, *def, *table, parts.columns, *context.session.database);
      add_constraints(context, *def, table, parts, *context.session.database);
      if (const ColumnDef* c = def->identity_column(); c != nullptr)
        table->identity = std::make_shared<IdentityState>(IdentityState{c->identity->seed, false});
      table->data = make_data(*def);
      table->def = def;
      v.table = table;
    } else {
      v.type = item.type;
      v.value =
          item.value == nullptr ? Value::of_null(item.type) : convert(constant_value(context, item.value), item.type);
    }
    const auto [at, fresh] = frame.variables.insert_or_assign(fold_name(item.name), std::move(v));
    (void)at;
    (void)fresh;
  }
  return {std::nullopt, 0, true};
}

void save_transaction(const Context& context, const std::string& name) {
  Transaction* t = context.session.transaction.get();
  if (t == nullptr || !t->user) raise(628, 16, 0, "Cannot issue SAVE TRANSACTION when there is no active transaction.");
  t->savepoints.push_back({fold_name(name), t->undo.size()});
}

void rollback_to_name(const Context& context, const std::string& name) {
  SessionState& session = context.session;
  Transaction& t = *session.transaction;
  for (auto at = t.savepoints.rbegin(); at != t.savepoints.rend(); ++at) {
    if (at->name != fold_name(name)) continue;
    // NOLINTNEXTLINE(performance-unnecessary-copy-initialization): undo_to drops it from the list that it lies in
    const Savepoint keep = *at;
    undo_to(session, keep.undo);
    session.statement_undo = keep.undo;
    const bool still = std::any_of(t.savepoints.begin(), t.savepoints.end(),
                                   [&](const Savepoint& s) { return s.name == keep.name && s.undo == keep.undo; });
    if (!still) t.savepoints.push_back(keep);
    return;
  }
  if (same_name(t.name, name)) {
    rollback_transaction(session, &context.writer);
    return;
  }
  raise(6401, 16, 1, fmt::format("Cannot roll back {}. No transaction or savepoint of that name was found.", name));
}

Outcome execute_transaction(const Context& context, TransactionStatement& s) {
  SessionState& session = context.session;
  std::string name = s.name;
  if (s.name_variable != nullptr) name = narrow(text_of(constant_value(context, s.name_variable)));
  const bool open = session.transaction != nullptr && session.transaction->user;
  using Action = TransactionStatement::Action;
  switch (s.action) {
    case Action::begin:
      begin_user_transaction(session, name, context.writer);
      return {std::nullopt, 0xD4, false};
    case Action::commit:
      if (!open) raise(3902, 16, 1, "The COMMIT TRANSACTION request has no corresponding BEGIN TRANSACTION.");
      if (session.transaction->doomed)
        raise(3930, 16, 1,
              "The current transaction cannot be committed and cannot support operations that write to the log file. "
              "Roll back the transaction.",
              Reach::batch);
      if (--session.transaction->count == 0) commit_transaction(session, &context.writer);
      return {std::nullopt, 0xD5, false};
    case Action::save:
      save_transaction(context, name);
      return {std::nullopt, 0xD6, false};
    case Action::rollback:
      if (!open) raise(3903, 16, 1, "The ROLLBACK TRANSACTION request has no corresponding BEGIN TRANSACTION.");
      if (name.empty()) {
        rollback_transaction(session, &context.writer);
      } else {
        rollback_to_name(context, name);
      }
      return {std::nullopt, 0xD2, false};
  }
  return {};
}

namespace {

// printf as RAISERROR has it: %d %i %u %x %X %o %s with flags and width, %%.
std::string formatted(const Context& context, const std::string& text, const std::vector<ExprPtr>& args) {
  std::string out;
  std::size_t next = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    std::size_t at = i + 1;
    bool left = false, zero = false;
    std::size_t width = 0;
    while (at < text.size() && std::string_view("-+0# ").find(text[at]) != std::string_view::npos) {
      left = left || text[at] == '-';
      zero = zero || text[at] == '0';
      ++at;
    }
    while (at < text.size() && text[at] >= '0' && text[at] <= '9')
      width = width * 10 + static_cast<std::size_t>(text[at++] - '0');
    if (text.compare(at, 3, "I64") == 0) at += 3;
    while (at < text.size() && (text[at] == 'l' || text[at] == 'h')) ++at;
    if (at >= text.size()) break;
    if (text[at] == '%') {
      out += '%';
      i = at;
      continue;
    }
    std::string piece = "(null)";
    if (next < args.size()) {
      const Value v = constant_value(context, args[next++]);
      if (!v.null) {
        if (text[at] == 's') {
          piece = narrow(text_of(v));
        } else {
          const auto n = static_cast<std::int64_t>(convert(v, bigint_type()).number);
          piece = text[at] == 'x'   ? fmt::format("{:x}", n)
                  : text[at] == 'X' ? fmt::format("{:X}", n)
                  : text[at] == 'o' ? fmt::format("{:o}", n)
                                    : fmt::format("{}", n);
        }
      }
    }
    while (piece.size() < width) {
      if (left) {
        piece += ' ';
      } else {
        piece.insert(piece.begin(), zero ? '0' : ' ');
      }
    }
    out += piece;
    i = at;
  }
  return out;
}

}  // namespace

Outcome execute_raise_error(const Context& context, RaiseError& s) {
  const Value message = constant_value(context, s.message);
  const int severity = static_cast<int>(convert(constant_value(context, s.severity), int_type()).number);
  const int state =
      std::max(0, std::min(255, static_cast<int>(convert(constant_value(context, s.state), int_type()).number)));
  int number = 50000;
  std::string text;
  if (is_string(message.type.kind)) {
    text = formatted(context, narrow(message.text), s.args);
  } else {
    number = static_cast<int>(convert(message, int_type()).number);
    text = fmt::format(
        "Error {}, severity {}, state {} was raised, but no message with that error number was found in sys.messages. "
        "If error is larger than 50000, make sure the user-defined message is added using sp_addmessage.",
        number, severity, state);
    number = 18054;
  }
  if (severity > 10) raise(number, severity, state, std::move(text));
  send_message(context, number, severity == 10 ? 0 : severity, state, std::move(text), 1);
  return {std::nullopt, 0xFD, false};
}

void execute_throw(const Context& context, Throw& s) {
  if (s.number != nullptr)
    raise(static_cast<int>(convert(constant_value(context, s.number), int_type()).number), 16,
          static_cast<int>(convert(constant_value(context, s.state), int_type()).number),
          narrow(text_of(constant_value(context, s.message))), Reach::batch);
  for (auto f = context.session.frames.rbegin(); f != context.session.frames.rend(); ++f) {
    if ((*f)->caught.empty()) continue;
    SqlError again{(*f)->caught.back(), Reach::batch};
    throw again;
  }
  raise(10704, 16, 1,
        "To rethrow an error, a THROW statement must be used inside a CATCH block. Insert the THROW statement inside a "
        "CATCH block, or add error parameters to the THROW statement.",
        Reach::batch);
}

Outcome execute_waitfor(const Context& context, WaitFor& s) {
  const Value v = constant_value(context, s.delay);
  const auto time = try_convert(v, make_type(Kind::time, 0, 0, 7));
  if (v.null || !time)
    raise(148, 15, 1,
          fmt::format("Incorrect time syntax in time string '{}' used with WAITFOR.",
                      v.null ? std::string() : narrow(text_of(v))),
          Reach::batch);
  std::int64_t ticks = time->ticks;
  if (s.until) ticks = (ticks - now_ticks() % ticks_per_day + ticks_per_day) % ticks_per_day;
  context.session.delay_until = context.server.now() + std::chrono::microseconds(ticks / 10);
  return {std::nullopt, 0xF5, false};
}

Outcome execute_set_variable(const Context& context, SetVariable& s) {
  Value v = constant_value(context, s.value);
  const auto found = context.frame().variables.find(fold_name(s.name));
  if (s.op != 0 && found != context.frame().variables.end()) {
    const Value& old = found->second.value;
    const Type type = is_string(old.type.kind) ? nvarchar_type(max_length, old.type.collation) : old.type;
    v = arithmetic_value(s.op, old, v, type);
  }
  assign_variable(context, s.name, v);
  return {std::nullopt, 0xB9, true};
}

Outcome execute_dbcc(const Context& context, Dbcc& s) {
  Outcome outcome{std::nullopt, 0xFC, false};
  const bool quiet = std::find(s.words.begin(), s.words.end(), "NO_INFOMSGS") != s.words.end();
  const auto finished = [&] {
    if (!quiet)
      send_message(context, 2528, 0, 1,
                   "DBCC execution completed. If DBCC printed error messages, contact your system administrator.", 1);
  };
  if (s.command == "USEROPTIONS") {
    std::vector<Row> rows;
    const auto add = [&](std::string_view name, std::string_view value) {
      rows.push_back({Value::of_name(name), Value::of_name(value)});
    };
    add("textsize", fmt::format("{}", context.settings().textsize));
    add("language", context.settings().language);
    add("dateformat", context.settings().dateformat);
    add("lock_timeout", fmt::format("{}", context.settings().lock_timeout_ms));
    constexpr std::array<std::string_view, 6> levels{
        "", "read uncommitted", "read committed", "repeatable read", "serializable", "snapshot"};
    add("isolation level", levels.at(static_cast<std::size_t>(context.settings().isolation)));
    send_rows(context,
              {{"Set Option", sysname_type(context.collation())}, {"Value", sysname_type(context.collation())}}, rows,
              outcome);
    return outcome;
  }
  if (s.command != "CHECKIDENT") {
    finished();
    return outcome;
  }
  const auto argument_text = [&](std::size_t i) {
    const Expr& e = *s.args[i];
    if (e.kind == ExprKind::column) return ObjectName{e.name}.text();
    return narrow(text_of(constant_value(context, s.args[i])));
  };
  std::optional<ObjectName> name = s.args.empty()                        ? std::nullopt
                                   : s.args[0]->kind == ExprKind::column ? std::optional(ObjectName{s.args[0]->name})
                                                                         : parse_name(argument_text(0));
  const ObjectPtr table = name ? find_object(context, *name) : nullptr;
  if (table == nullptr || table->kind != ObjectKind::table)
    raise(2501, 16, 45,
          fmt::format("Cannot find a table or object with the name \"{}\". Check the system catalog.",
                      s.args.empty() ? std::string() : argument_text(0)));
  const ColumnDef* column = table->def->identity_column();
  if (column == nullptr) raise(7997, 16, 1, fmt::format("'{}' does not contain an identity column.", table->name));
  IdentityState& state = *table->identity;
  const std::string current = state.used ? rowferry::decimal::to_text(state.last) : "NULL";
  const std::string mode = s.args.size() > 1 ? upper_ascii(argument_text(1)) : "RESEED";
  Int128 highest = state.last;
  bool any = false;
  TableScan scan(context, table->data, lock_for_reading(context, *table, {}));
  ByteView row;
  RowId id;
  while (scan.next(row, id)) {
    const Value v = column_value(table->data->layout(), row, static_cast<std::size_t>(column->stored));
    const Int128 n = is_decimal(v.type.kind) ? rescale(v.number, v.type.scale, 0).value_or(0) : v.number;
    const bool beyond = column->identity->increment > 0 ? n > highest : n < highest;
    if (!any || beyond) highest = n;
    any = true;
  }
  const std::string found = any ? rowferry::decimal::to_text(highest) : "NULL";
  if (mode == "RESEED" && s.args.size() > 2) {
    const Value v = constant_value(context, s.args[2]);
    const bool fresh = !state.used && !any;
    state.last = convert(v, decimal_type(38, 0)).number;
    state.used = !fresh;
    if (!quiet)
      send_message(context, 7998, 0, 1,
                   fmt::format("Checking identity information: current identity value '{}'.", current), 1);
  } else {
    if (mode == "RESEED" && any) {
      const bool behind = column->identity->increment > 0 ? highest > state.last : highest < state.last;
      if (behind || !state.used) state.last = highest;
      state.used = true;
    }
    if (!quiet)
      send_message(context, 7998, 0, 1,
                   fmt::format("Checking identity information: current identity value '{}', current column value '{}'.",
                               current, found),
                   1);
  }
  finished();
  return outcome;
}

// The session itself is ended by whoever drives it.
Outcome execute_kill(const Context& context, Kill& s) {
  const Value v = constant_value(context, s.session);
  const auto spid = v.null ? 0 : static_cast<int>(convert(v, int_type()).number);
  if (spid == context.session.spid) raise(6104, 16, 1, "Cannot use KILL to kill your own process.");
  if (!context.server.sessions.contains(spid))
    raise(6106, 16, 2, fmt::format("Process ID {} is not an active process ID.", spid));
  if (context.server.kill) context.server.kill(spid);
  return {std::nullopt, 0xFD, false};
}

}  // namespace rowferry::sandbox::engine
