// The doors: Server and Session.
#include <array>

#include "base/error.hpp"
#include "sandbox/engine/bulk.hpp"
#include "sandbox/engine/collation.hpp"
#include "sandbox/engine/interpreter.hpp"

namespace rowferry::sandbox::engine {

SessionState::SessionState() = default;
SessionState::~SessionState() = default;

std::shared_ptr<Database> ServerState::database(std::string_view name) const {
  const auto found = databases.find(fold_name(name));
  return found == databases.end() ? nullptr : found->second;
}

std::shared_ptr<Database> ServerState::make_database(const std::string& name, const std::string& collation, int id) {
  auto db = std::make_shared<Database>();
  db->id = id;
  db->name = name;
  db->collation_name = collation.empty() ? options.collation : collation;
  const auto found = collation_by_name(db->collation_name);
  if (!found) throw Error(Category::input, "unknown_collation", "the sandbox knows no collation " + db->collation_name);
  db->collation = *found;
  db->created = now_ticks();
  db->schemas = {{"dbo", {1, "dbo"}},
                 {"guest", {2, "guest"}},
                 {"information_schema", {3, "INFORMATION_SCHEMA"}},
                 {"sys", {4, "sys"}}};
  databases[fold_name(name)] = db;
  return db;
}

std::chrono::steady_clock::time_point ServerState::now() const {
  return options.now != nullptr ? options.now() : std::chrono::steady_clock::now();
}

void ServerState::wake_waiting(int except) {
  if (!wake) return;
  for (const auto& [spid, session] : sessions)
    if (spid != except && session->waiting) wake(spid);
}

Server::Server(Options options) : state_(std::make_unique<ServerState>()) {
  state_->options = std::move(options);
  state_->started = now_ticks();
  state_->make_database("master", {}, 1);
  state_->make_database("tempdb", {}, 2);
  for (const std::string& name : state_->options.databases)
    if (state_->database(name) == nullptr) state_->make_database(name, {}, state_->next_database_id++);
}

Server::~Server() = default;

bool Server::has_database(std::string_view name) const { return state_->database(name) != nullptr; }

std::unique_ptr<Session> Server::open_session(SessionInfo info) {
  const std::string name = info.database.empty() ? "master" : info.database;
  const auto db = state_->database(name);
  if (db == nullptr) throw Error(Category::not_found, "unknown_database", "the sandbox has no database " + name);
  auto state = std::make_unique<SessionState>();
  state->server = state_.get();
  state->database = db;
  state->login_database = db->name;
  state->spid = 51;
  while (state_->sessions.contains(state->spid)) ++state->spid;
  if (!info.ansi_defaults) {
    Settings& s = state->settings;
    s.ansi_nulls = s.ansi_padding = s.ansi_warnings = s.quoted_identifier = s.ansi_null_dflt_on =
        s.concat_null_yields_null = s.arithabort = false;
    s.textsize = 4096;
  }
  state->info = std::move(info);
  state->initial = state->settings;
  state->login_time = state->last_request = now_ticks();
  state_->sessions[state->spid] = state.get();
  return std::make_unique<Session>(std::move(state));
}

void Server::on_wake(std::function<void(int)> handler) { state_->wake = std::move(handler); }
void Server::on_kill(std::function<void(int)> handler) { state_->kill = std::move(handler); }
const Options& Server::options() const noexcept { return state_->options; }

Session::Session(std::unique_ptr<SessionState> state) : state_(std::move(state)) {}

Session::~Session() {
  SessionState& s = *state_;
  s.rows.reset();
  s.bulk.reset();
  rollback_transaction(s, nullptr);
  end_statement_locks(s);
  s.temporary.clear();
  ServerState& server = *s.server;
  server.sessions.erase(s.spid);
  for (const LockSpan span : {LockSpan::statement, LockSpan::transaction, LockSpan::session})
    server.locks.release_all(s.spid, span);
  server.wake_waiting(s.spid);
}

int Session::spid() const noexcept { return state_->spid; }
const std::string& Session::database() const noexcept { return state_->database->name; }
std::uint64_t Session::transaction() const noexcept {
  return state_->transaction != nullptr && state_->transaction->user ? descriptor_of(*state_->transaction) : 0;
}
tds::Collation Session::default_collation() const noexcept { return state_->database->collation; }

namespace {

void begin_request(SessionState& s) {
  s.frames.clear();
  s.rows.reset();
  s.active = true;
  s.is_call = false;
  s.any_token = false;
  s.last_in_procedure = false;
  s.failed = false;
  s.waiting = false;
  s.statement_has_rows = false;
  s.last_request = now_ticks();
}

}  // namespace

void Session::start_batch(std::string text) {
  SessionState& s = *state_;
  begin_request(s);
  s.call_start = [batch = std::move(text)](Context& context) {
    auto frame = std::make_unique<Frame>();
    frame->program = parse_batch(batch, parse_options(context));
    frame->restored_database = context.session.database->name;
    context.session.frames.push_back(std::move(frame));
  };
}

void Session::start_call(std::string procedure, std::vector<Parameter> parameters) {
  begin_request(*state_);
  state_->is_call = true;
  state_->call_start = [name = std::move(procedure), all = std::move(parameters)](Context& context) {
    start_procedure(context, name, all);
  };
}

void Session::start_call(std::uint16_t procedure_id, std::vector<Parameter> parameters) {
  // MS-TDS 2.2.6.6: the numbered procedures
  static constexpr std::array<std::string_view, 16> names{"",
                                                          "sp_cursor",
                                                          "sp_cursoropen",
                                                          "sp_cursorprepare",
                                                          "sp_cursorexecute",
                                                          "sp_cursorprepexec",
                                                          "sp_cursorunprepare",
                                                          "sp_cursorfetch",
                                                          "sp_cursoroption",
                                                          "sp_cursorclose",
                                                          "sp_executesql",
                                                          "sp_prepare",
                                                          "sp_execute",
                                                          "sp_prepexec",
                                                          "sp_prepexecrpc",
                                                          "sp_unprepare"};
  start_call(procedure_id < names.size() ? std::string(names[procedure_id]) : std::string("sp_unknown"),
             std::move(parameters));
}

void Session::start_transaction(TransactionRequest request) {
  begin_request(*state_);
  state_->manager_request = std::move(request);
}

Progress Session::step(ResultWriter& writer) { return run_step(*state_, writer); }
bool Session::running() const noexcept { return state_->active; }

void Session::cancel(ResultWriter& writer) {
  SessionState& s = *state_;
  if (s.bulk != nullptr) {
    s.bulk->undo();
    s.bulk.reset();
    if (s.settings.xact_abort) rollback_transaction(s, &writer);
  }
  abandon_request(s, writer);
}

BulkTarget* Session::bulk() noexcept { return state_->bulk.get(); }

void Session::finish_bulk(ResultWriter& writer) {
  if (state_->bulk == nullptr) return;
  const auto bulk = std::move(state_->bulk);
  bulk->finish(writer);
}

void Session::abort_bulk(ResultWriter& writer, const std::optional<Message>& error) {
  if (state_->bulk == nullptr) return;
  const auto bulk = std::move(state_->bulk);
  bulk->abort(writer, error);
}

void Session::reset(bool keep_transaction, ResultWriter& writer) {
  SessionState& s = *state_;
  cancel(writer);
  if (!keep_transaction) rollback_transaction(s, &writer);
  const int isolation = s.settings.isolation;
  s.settings = s.initial;
  s.settings.isolation = isolation;
  s.temporary.clear();
  s.prepared.clear();
  s.identity_insert.reset();
  s.last_identity.reset();
  s.scope_identity.reset();
  s.row_count = 0;
  s.last_error = 0;
  if (const auto db = s.server->database(s.login_database)) s.database = db;
  if (s.server->locks.release_all(s.spid, LockSpan::session)) s.server->wake_waiting(s.spid);
}

bool Session::must_close() const noexcept { return state_->fatal; }

}  // namespace rowferry::sandbox::engine
