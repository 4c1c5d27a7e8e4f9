#include "sandbox/engine/interpreter.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/limits.hpp"
#include "sandbox/engine/bulk.hpp"

namespace rowferry::sandbox::engine {

void give_done(const Context& context, Done done) {
  SessionState& s = context.session;
  const bool nested = s.is_call || s.frames.size() > 1;
  if (done.kind == Done::Kind::statement && nested) done.kind = Done::Kind::in_procedure;
  if (context.settings().nocount && !done.error) {
    if (done.kind == Done::Kind::in_procedure && !s.statement_has_rows) return;
    done.count.reset();
  }
  s.any_token = true;
  s.last_in_procedure = done.kind == Done::Kind::in_procedure;
  context.writer.done(done);
}

void push_frame(const Context& context, CallFrame call) {
  SessionState& s = context.session;
  if (s.frames.size() > limits::sandbox_nesting_max)
    raise(217, 16, 1,
          fmt::format("Maximum stored procedure, function, trigger, or view nesting level exceeded (limit {}).",
                      limits::sandbox_nesting_max),
          Reach::batch);
  auto frame = std::make_unique<Frame>();
  frame->kind = call.kind;
  frame->program = parse_batch(std::move(call.text), parse_options(context));
  frame->procedure = std::move(call.procedure);
  frame->variables = std::move(call.variables);
  frame->outputs = std::move(call.outputs);
  frame->result_variable = std::move(call.result_variable);
  frame->sends_status = call.sends_status;
  frame->restored = s.settings;
  frame->restored_database = s.database->name;
  s.frames.push_back(std::move(frame));
}

namespace {

// What is done for each kind of statement; flow of control is not among them.
struct Dispatch {
  const Context& context;
  const Statement& statement;

  Outcome operator()(SelectStatement& s) const { return begin_select(context, s); }
  Outcome operator()(Insert& s) const { return execute_insert(context, s); }
  Outcome operator()(Update& s) const { return execute_update(context, s); }
  Outcome operator()(Delete& s) const { return execute_delete(context, s); }
  Outcome operator()(Truncate& s) const { return execute_truncate(context, s); }
  Outcome operator()(CreateTable& s) const { return execute_create_table(context, s); }
  Outcome operator()(CreateIndex& s) const { return execute_create_index(context, s); }
  Outcome operator()(CreateText& s) const { return execute_create_text(context, s); }
  Outcome operator()(CreateNamed& s) const { return execute_create_named(context, s); }
  Outcome operator()(Drop& s) const { return execute_drop(context, s); }
  Outcome operator()(AlterTable& s) const { return execute_alter_table(context, s); }
  Outcome operator()(AlterDatabase& s) const { return execute_alter_database(context, s); }
  Outcome operator()(AlterIndex& s) const { return execute_alter_index(context, s); }
  Outcome operator()(TransactionStatement& s) const { return execute_transaction(context, s); }
  Outcome operator()(SetOption& s) const { return execute_set_option(context, s); }
  Outcome operator()(Declare& s) const { return execute_declare(context, s); }
  Outcome operator()(Use& s) const { return execute_use(context, s.database); }
  Outcome operator()(Execute& s) const { return execute_call(context, s); }
  Outcome operator()(InsertBulk& s) const { return execute_insert_bulk(context, s); }
  Outcome operator()(Dbcc& s) const { return execute_dbcc(context, s); }
  Outcome operator()(CreatePartition& s) const { return execute_create_partition(context, s); }
  Outcome operator()(Kill& s) const { return execute_kill(context, s); }
  Outcome operator()(RaiseError& s) const { return execute_raise_error(context, s); }
  Outcome operator()(Throw& s) const { execute_throw(context, s); }
  Outcome operator()(WaitFor& s) const { return execute_waitfor(context, s); }
  Outcome operator()(SetVariable& s) const { return execute_set_variable(context, s); }
  Outcome operator()(Print& s) const {
    const Value v = constant_value(context, s.value);
    send_message(context, 0, 0, 1, v.null ? std::string(" ") : narrow(text_of(v)), statement.line);
    return {std::nullopt, 0xF7, false};
  }
  Outcome operator()(Ignored&) const { return {std::nullopt, 0xFD, false}; }
  template <class T>
  Outcome operator()(T&) const {
    return {std::nullopt, 0, true};
  }
};

Outcome dispatch(const Context& context, Statement& statement) {
  return std::visit(Dispatch{context, statement}, statement.what);
}

bool opens_transaction(const Statement& s) {
  return std::visit(
      [](const auto& x) {
        using T = std::decay_t<decltype(x)>;
        if constexpr (std::is_same_v<T, SelectStatement>) return x.query->branches[0].from != nullptr;
        return std::is_same_v<T, Insert> || std::is_same_v<T, Update> || std::is_same_v<T, Delete> ||
               std::is_same_v<T, Truncate> || std::is_same_v<T, CreateTable> || std::is_same_v<T, AlterTable> ||
               std::is_same_v<T, Drop> || std::is_same_v<T, InsertBulk>;
      },
      s.what);
}

bool skipped_by_fmtonly(const Statement& s) {
  return std::holds_alternative<Insert>(s.what) || std::holds_alternative<Update>(s.what) ||
         std::holds_alternative<Delete>(s.what) || std::holds_alternative<Truncate>(s.what) ||
         std::holds_alternative<CreateTable>(s.what) || std::holds_alternative<AlterTable>(s.what) ||
         std::holds_alternative<Drop>(s.what) || std::holds_alternative<CreateIndex>(s.what) ||
         std::holds_alternative<InsertBulk>(s.what) || std::holds_alternative<WaitFor>(s.what);
}

bool writes(const Statement& s) {
  return std::holds_alternative<Insert>(s.what) || std::holds_alternative<Update>(s.what) ||
         std::holds_alternative<Delete>(s.what) || std::holds_alternative<InsertBulk>(s.what);
}

// The statement at hand is done: its locks, its own transaction, its DONE.
void complete(const Context& context, const Outcome& outcome) {
  SessionState& s = context.session;
  if (s.transaction != nullptr && !s.transaction->user && s.bulk == nullptr) commit_transaction(s, nullptr);
  end_statement_locks(s);
  s.last_error = 0;
  if (outcome.count) s.row_count = static_cast<std::int64_t>(*outcome.count);
  s.statement_open = false;
  if (outcome.silent) return;
  Done done;
  done.count = outcome.count;
  done.current_command = outcome.command;
  give_done(context, done);
}

void undo_statement(SessionState& s) {
  s.rows.reset();
  s.delay_until.reset();
  if (s.transaction != nullptr) {
    if (s.transaction->user) {
      undo_to(s, s.statement_undo);
    } else {
      rollback_transaction(s, nullptr);
    }
  }
  end_statement_locks(s);
  s.statement_open = false;
}

void drop_frame_tables(SessionState& s, const Frame& frame) {
  for (const std::string& name : frame.tables) s.temporary.erase(name);
}

void restore_settings(SessionState& s, const Frame& frame) {
  if (frame.kind == Frame::Kind::batch) return;
  s.settings = frame.restored;
  if (s.database->name == frame.restored_database) return;
  if (const auto db = s.server->database(frame.restored_database)) s.database = db;
}

// The program of the top frame has come to its end.
void leave_frame(const Context& context) {
  SessionState& s = context.session;
  const auto frame = std::move(s.frames.back());
  s.frames.pop_back();
  drop_frame_tables(s, *frame);
  restore_settings(s, *frame);
  if (!frame->result_variable.empty() && !s.frames.empty())
    assign_variable(context, frame->result_variable, Value::of_int(frame->status));
  if (frame->sends_status) context.writer.return_status(frame->status);
  for (const OutputBinding& o : frame->outputs) {
    const Variable& v = frame->variables.at(o.inner);
    if (!o.outer.empty()) {
      assign_variable(context, o.outer, v.value);
      continue;
    }
    ReturnValue out;
    out.ordinal = o.ordinal;
    out.name = o.name;
    OutputColumn column;
    column.name = o.name;
    column.type = v.type;
    out.column = wire_column(context, column);
    ByteBuffer bytes;
    const auto type = from_wire(out.column.type);
    encode_value(type && !(type->kind == v.type.kind) ? convert(v.value, *type) : v.value, out.column.type, bytes);
    out.value = bytes.view();
    context.writer.return_value(out);
  }
  if (frame->sends_status) {
    Done done;
    done.kind = Done::Kind::procedure;
    done.error = s.failed;
    s.any_token = true;
    s.last_in_procedure = false;
    context.writer.done(done);
  }
}

void report(const Context& context, const Message& message) {
  if (message.severity >= 20) context.session.fatal = true;
  context.writer.message(message);
}

// An error of the statement at hand: to a CATCH block, or to the client.
void handle(const Context& context, SqlError error, int line, bool terminated_note) {
  SessionState& s = context.session;
  if (error.message.line == 0) error.message.line = line;
  if (error.message.procedure.empty() && !s.frames.empty()) error.message.procedure = context.frame().procedure;
  undo_statement(s);
  s.last_error = error.message.number;
  std::size_t catcher = s.frames.size();
  while (catcher > 0 && s.frames[catcher - 1]->tries.empty()) --catcher;
  if (catcher > 0 && error.message.severity < 20) {
    if (error.reach == Reach::transaction) rollback_transaction(s, &context.writer);
    if (s.settings.xact_abort && s.transaction != nullptr && s.transaction->user) s.transaction->doomed = true;
    while (s.frames.size() > catcher) {
      drop_frame_tables(s, *s.frames.back());
      restore_settings(s, *s.frames.back());
      s.frames.pop_back();
    }
    Frame& frame = context.frame();
    frame.at = frame.tries.back().handler;
    frame.tries.pop_back();
    frame.caught.push_back(std::move(error.message));
    return;
  }
  report(context, error.message);
  if (error.reach == Reach::transaction) rollback_transaction(s, &context.writer);
  const bool raised_by_hand = error.message.number >= 50000 || error.message.number == 18054;
  const bool aborts = s.settings.xact_abort && !(raised_by_hand && error.reach == Reach::statement);
  if (terminated_note && error.reach == Reach::statement && !raised_by_hand)
    send_message(context, 3621, 0, 0, "The statement has been terminated.", error.message.line);
  if (aborts && s.transaction != nullptr && s.transaction->user) rollback_transaction(s, &context.writer);
  Done done;
  done.error = true;
  done.current_command = 0xFD;
  s.failed = true;
  if (error.reach == Reach::statement && !aborts && error.message.severity < 20) {
    give_done(context, done);
    if (!s.frames.empty() && !s.statement_advanced) ++context.frame().at;
    return;
  }
  while (!s.frames.empty()) {
    drop_frame_tables(s, *s.frames.back());
    restore_settings(s, *s.frames.back());
    s.frames.pop_back();
  }
  done.kind = s.is_call ? Done::Kind::procedure : Done::Kind::statement;
  s.any_token = true;
  s.last_in_procedure = false;
  context.writer.done(done);
}

// True when waiting for `blocker` closes a circle.
bool deadlocked(const SessionState& s, int blocker) {
  for (std::size_t hops = 0; hops < s.server->sessions.size(); ++hops) {
    if (blocker == s.spid) return true;
    const auto other = s.server->sessions.find(blocker);
    if (other == s.server->sessions.end() || !other->second->waiting) return false;
    blocker = other->second->waiting_for;
  }
  return false;
}

// Gives what to wait for, or the error when there has been enough of it.
std::optional<SqlError> start_waiting(SessionState& s, int blocker, Progress& progress) {
  const auto now = s.server->now();
  const int limit = s.lock_wait_ms.value_or(s.settings.lock_timeout_ms);
  if (!s.waiting) {
    s.waiting = true;
    s.wait_until.reset();
    if (limit >= 0) s.wait_until = now + std::chrono::milliseconds(limit);
  }
  s.waiting_for = blocker;
  if (deadlocked(s, blocker)) {
    s.waiting = false;
    return SqlError{{1205,
                     51,
                     13,
                     fmt::format("Transaction (Process ID {}) was deadlocked on lock resources with another process "
                                 "and has been chosen as the deadlock victim. Rerun the transaction.",
                                 s.spid),
                     {},
                     0},
                    Reach::transaction};
  }
  if (s.wait_until && now >= *s.wait_until) {
    s.waiting = false;
    if (s.lock_wait_ms) {
      s.lock_wait_expired = true;
      progress.step = Step::full;  // the operation itself says so
      return std::nullopt;
    }
    return SqlError{{1222, 45, 16, "Lock request time out period exceeded.", {}, 0}, Reach::statement};
  }
  progress.step = Step::would_block;
  progress.blocker = blocker;
  if (s.wait_until)
    progress.wait = std::max(std::chrono::milliseconds(1),
                             std::chrono::duration_cast<std::chrono::milliseconds>(*s.wait_until - now));
  return std::nullopt;
}

void begin_statement(const Context& context, const Statement& statement) {
  SessionState& s = context.session;
  if (s.settings.implicit_transactions && opens_transaction(statement) &&
      (s.transaction == nullptr || !s.transaction->user))
    begin_user_transaction(s, {}, context.writer);
  s.statement_undo = s.transaction == nullptr ? 0 : s.transaction->undo.size();
  s.statement_open = true;
  s.statement_advanced = false;
  if (s.transaction != nullptr && s.transaction->doomed && writes(statement))
    raise(3930, 16, 1,
          "The current transaction cannot be committed and cannot support operations that write to the log file. Roll "
          "back the transaction.",
          Reach::batch);
}

void control_flow(const Context& context, Statement& statement) {
  Frame& frame = context.frame();
  SessionState& s = context.session;
  s.statement_undo = s.transaction == nullptr ? 0 : s.transaction->undo.size();
  s.statement_advanced = false;
  if (auto* jump = std::get_if<Jump>(&statement.what)) {
    frame.at = jump->to;
  } else if (auto* unless = std::get_if<JumpUnless>(&statement.what)) {
    Scope scope;
    Evaluator evaluator(context, &scope);
    evaluator.bind_condition(unless->condition);
    const bool yes = evaluator.test(unless->condition) == Truth::yes;
    end_statement_locks(s);
    frame.at = yes ? frame.at + 1 : unless->to;
  } else if (auto* begin = std::get_if<TryBegin>(&statement.what)) {
    frame.tries.push_back({begin->handler});
    ++frame.at;
  } else if (auto* end = std::get_if<TryEnd>(&statement.what)) {
    frame.tries.pop_back();
    frame.at = end->to;
  } else if (std::holds_alternative<CatchEnd>(statement.what)) {
    frame.caught.pop_back();
    ++frame.at;
  } else if (auto* r = std::get_if<Return>(&statement.what)) {
    if (r->value != nullptr) {
      const Value v = constant_value(context, r->value);
      frame.status = v.null ? 0 : static_cast<std::int32_t>(convert(v, int_type()).number);
    }
    frame.at = frame.program->statements.size();
  }
}

bool is_control_flow(const Statement& s) {
  return std::holds_alternative<Jump>(s.what) || std::holds_alternative<JumpUnless>(s.what) ||
         std::holds_alternative<TryBegin>(s.what) || std::holds_alternative<TryEnd>(s.what) ||
         std::holds_alternative<CatchEnd>(s.what) || std::holds_alternative<Return>(s.what);
}

// Gives rows while the writer takes them and the portion lasts. True: all given.
bool drain(const Context& context) {
  SessionState& s = context.session;
  const auto limit = static_cast<std::uint64_t>(s.settings.rowcount);
  while (!context.writer.full()) {
    if (limit != 0 && s.rows_sent >= limit) return true;
    s.row_tokens.clear();
    const std::uint64_t left = limit == 0 ? ~std::uint64_t{0} : limit - s.rows_sent;
    const RowSource::Pull pull =
        s.rows->fill(s.row_tokens, std::min<std::uint64_t>(left, context.writer.rows_max()), s.turn);
    s.waiting = false;
    if (s.row_tokens.rows() != 0) context.writer.rows(s.row_tokens);
    s.rows_sent += s.row_tokens.rows();
    if (pull == RowSource::Pull::end) return true;
    if (pull == RowSource::Pull::not_yet || s.turn.expired()) return false;
  }
  return false;
}

void run_statement(const Context& context, Statement& statement) {
  SessionState& s = context.session;
  begin_statement(context, statement);
  if (s.settings.noexec && !std::holds_alternative<SetOption>(statement.what)) {
    ++context.frame().at;
    return complete(context, {std::nullopt, 0, true});
  }
  if (s.settings.fmtonly && skipped_by_fmtonly(statement)) {
    ++context.frame().at;
    return complete(context, {std::nullopt, 0xFD, false});
  }
  s.rows_sent = 0;
  s.statement_has_rows = false;
  Frame* frame = s.frames.back().get();
  const Outcome outcome = dispatch(context, statement);
  s.waiting = false;
  s.lock_wait_ms.reset();
  s.lock_wait_expired = false;
  ++frame->at;
  s.statement_advanced = true;
  if (s.rows != nullptr || s.delay_until) {
    s.statement_has_rows = s.rows != nullptr;
    s.rows_done = {};
    s.rows_done.current_command = outcome.command;
    return;
  }
  complete(context, outcome);
}

void apply_request(const Context& context, const TransactionRequest& r) {
  SessionState& s = context.session;
  using Kind = TransactionRequest::Kind;
  const auto isolate = [&](std::uint8_t level) {
    if (level != 0) s.settings.isolation = level;
  };
  TransactionStatement t;
  t.name = r.name;
  s.statement_undo = s.transaction == nullptr ? 0 : s.transaction->undo.size();
  switch (r.kind) {
    case Kind::begin:
      isolate(r.isolation);
      t.action = TransactionStatement::Action::begin;
      break;
    case Kind::commit:
      t.action = TransactionStatement::Action::commit;
      break;
    case Kind::rollback:
      t.action = TransactionStatement::Action::rollback;
      break;
    case Kind::save:
      t.action = TransactionStatement::Action::save;
      break;
  }
  const Outcome outcome = execute_transaction(context, t);
  if (r.begin_again && (r.kind == Kind::commit || r.kind == Kind::rollback)) {
    isolate(r.next_isolation);
    begin_user_transaction(s, r.next_name, context.writer);
  }
  complete(context, outcome);
}

Progress finish(const Context& context) {
  SessionState& s = context.session;
  if (s.last_in_procedure || !s.any_token) {
    Done done;
    done.kind = s.is_call ? Done::Kind::procedure : Done::Kind::statement;
    done.error = s.failed && s.is_call;
    context.writer.done(done);
  }
  s.active = false;
  s.is_call = false;
  s.call_start = nullptr;
  s.manager_request.reset();
  return {};
}

}  // namespace

void abandon_request(SessionState& session, ResultWriter& writer) {
  if (session.active || session.statement_open) undo_statement(session);
  for (auto& frame : session.frames) drop_frame_tables(session, *frame);
  if (!session.frames.empty()) restore_settings(session, *session.frames.front());
  session.frames.clear();
  if (session.active && session.settings.xact_abort) rollback_transaction(session, &writer);
  session.active = false;
  session.is_call = false;
  session.call_start = nullptr;
  session.manager_request.reset();
  session.waiting = false;
  session.lock_wait_ms.reset();
  session.lock_wait_expired = false;
}

Progress run_step(SessionState& session, ResultWriter& writer) {
  Context context{session, *session.server, writer};
  session.turn.begin();
  for (int turns = 0; session.active; ++turns) {
    if (turns == limits::sandbox_statements_per_step || (turns != 0 && session.turn.expired()))
      return {Step::full, 0, std::nullopt};
    int line = 1;
    bool dml = false;
    try {
      if (session.rows != nullptr) {
        if (!drain(context)) return {Step::full, 0, std::nullopt};
        session.rows.reset();
        complete(context, {session.rows_sent, session.rows_done.current_command, false});
        continue;
      }
      if (session.delay_until) {
        const auto now = context.server.now();
        if (now < *session.delay_until)
          return {Step::delay, 0,
                  std::chrono::duration_cast<std::chrono::milliseconds>(*session.delay_until - now) +
                      std::chrono::milliseconds(1)};
        session.delay_until.reset();
        complete(context, {std::nullopt, 0xF5, true});
        continue;
      }
      if (session.manager_request) {
        const TransactionRequest request = *std::exchange(session.manager_request, std::nullopt);
        apply_request(context, request);
        continue;
      }
      if (session.call_start) {
        session.statement_undo = session.transaction == nullptr ? 0 : session.transaction->undo.size();
        const auto start = session.call_start;
        start(context);
        session.call_start = nullptr;
        session.waiting = false;
        session.lock_wait_ms.reset();
        session.lock_wait_expired = false;
        session.rows_sent = 0;
        session.statement_has_rows = session.rows != nullptr;
        session.rows_done.current_command = 0xC1;
        if (session.rows == nullptr) complete(context, {std::nullopt, 0, true});
        continue;
      }
      if (session.frames.empty()) return finish(context);
      Frame& frame = context.frame();
      if (frame.at >= frame.program->statements.size()) {
        leave_frame(context);
        continue;
      }
      Statement& statement = frame.program->statements[frame.at];
      line = statement.line;
      dml = writes(statement);
      if (is_control_flow(statement)) {
        control_flow(context, statement);
      } else {
        run_statement(context, statement);
      }
    } catch (const WouldBlock& block) {
      if (session.rows == nullptr) undo_statement(session);
      Progress progress;
      if (auto error = start_waiting(session, block.blocker, progress)) {
        session.call_start = nullptr;
        handle(context, std::move(*error), line, dml);
      } else if (progress.step == Step::would_block) {
        return progress;
      }
    } catch (const SqlError& error) {
      session.call_start = nullptr;
      handle(context, error, line, dml);
    } catch (const Truncated&) {
      session.call_start = nullptr;
      handle(context, {{8152, 30, 16, "String or binary data would be truncated.", {}, 0}, Reach::statement}, line,
             dml);
    }
  }
  return {};
}

}  // namespace rowferry::sandbox::engine
