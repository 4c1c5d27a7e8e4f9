#include "sandbox/connection.hpp"

#include <fmt/format.h>

#include "base/limits.hpp"
#include "base/text.hpp"

namespace rowferry::sandbox {

namespace server = tds::server;

namespace {

bool is_attention(const tds::PacketReader& reader) {
  return reader.message_ended() && reader.type() == tds::PacketType::attention;
}

// What a fault's `match` is compared with: the procedure, and the statement text of the sp_executesql family.
std::string call_text(const server::RpcCall& call) {
  std::string text = call.id == server::rpc_by_name ? call.name : fmt::format("#{}", call.id);
  for (const server::RpcParameter& parameter : call.parameters) {
    if (parameter.type.id != tds::DataType::nvarchar) continue;
    const std::size_t head = parameter.type.plp() ? 12 : 2;
    if (parameter.value.size() <= head) continue;
    text += ' ' + text::to_utf8(ByteView(parameter.value).subspan(head));
    break;
  }
  return text;
}

engine::TransactionRequest to_engine(const server::TransactionRequest& request) {
  return {.kind = static_cast<engine::TransactionRequest::Kind>(request.kind),
          .isolation = request.isolation,
          .name = request.name,
          .begin_again = request.begin_next,
          .next_isolation = request.next_isolation,
          .next_name = request.next_name};
}

std::vector<engine::Parameter> to_engine(std::vector<server::RpcParameter>& parameters) {
  std::vector<engine::Parameter> all;
  all.reserve(parameters.size());
  for (server::RpcParameter& p : parameters) {
    all.push_back({std::move(p.name), p.output, p.default_value, std::move(p.type), std::move(p.value)});
  }
  return all;
}

// Says that no more will come, and reads what still does: a close at once would destroy the answer on its way.
async::Task<void> part(PacketChannel* channel) {
  co_await channel->shutdown();
  while (!channel->reader().failed()) {
    if (channel->reader().message_ended()) channel->next_message();
    channel->reader().consume(channel->reader().payload().size());
    const bool more = co_await channel->read();
    if (!more) co_return;
  }
}

}  // namespace

Connection::Connection(Shared& shared, std::unique_ptr<net::Stream> stream, std::string peer)
    : shared_(shared), peer_(std::move(peer)), channel_(std::move(stream)), reply_(channel_.writer(), server_name) {}

Connection::~Connection() {
  if (session_ != nullptr) shared_.by_spid.erase(session_->spid());
}

async::Task<void> Connection::run() {
  const bool admitted = co_await net::with_deadline(shared_.loop, limits::sandbox_login_timeout, "login", log_in());
  if (admitted) co_await serve_until_killed();
  session_broken_off();
  if (!channel_.closed() && !peer_ended_) {
    co_await net::with_deadline(shared_.loop, limits::sandbox_close_wait, "closing", part(&channel_));
  }
  channel_.close();
}

async::Task<void> Connection::serve_until_killed() {
  const async::Context context = co_await async::current_context();
  async::CancelSource killer(context.cancel);
  killer_ = &killer;
  try {
    co_await async::with_cancel(killer, serve());
  } catch (const Error& error) {
    killer_ = nullptr;
    if (!killer.cancelled() || context.cancelled()) throw;
    channel_.close();  // in the middle of an answer, perhaps
  }
  killer_ = nullptr;
}

// The session's locks are free before the client's socket is.
void Connection::session_broken_off() {
  if (session_ == nullptr) return;
  shared_.by_spid.erase(session_->spid());
  session_.reset();
}

async::Task<void> Connection::serve() {
  tds::PacketReader& reader = channel_.reader();
  while (true) {
    while (!reader.message_started() && !reader.failed()) {
      const bool more = co_await channel_.read();
      if (!more) {
        peer_ended_ = true;
        co_return;
      }
    }
    const Flow flow = co_await serve_message();
    if (flow == Flow::close || peer_ended_ || channel_.closed()) co_return;
  }
}

async::Task<Connection::Flow> Connection::serve_message() {
  tds::PacketReader& reader = channel_.reader();
  if (!reader.failed() && reader.type() == tds::PacketType::bulk) {
    const Flow flow = co_await receive_bulk();
    co_return flow;
  }
  const bool whole = co_await channel_.read_message(limits::sandbox_request_bytes_max);
  if (!whole) {
    peer_ended_ = true;
    co_return Flow::close;
  }
  if (reader.failed() || !reader.message_ended()) {
    const Flow flow = co_await close_with_4014();
    co_return flow;
  }
  if (is_attention(reader) || reader.interrupted()) {
    channel_.next_message();
    reply_.begin();
    session_->cancel(reply_);
    reply_.attention();
    const Flow flow = co_await finish_reply();
    co_return flow;
  }
  if (reader.ignored() || session_->bulk() != nullptr) {
    const Flow flow = co_await refuse_message(reader.ignored());
    co_return flow;
  }
  request_ = {};
  request_.status = reader.first_status();
  switch (reader.type()) {
    case tds::PacketType::sql_batch: {
      const Flow flow = co_await run_batch();
      co_return flow;
    }
    case tds::PacketType::rpc: {
      const Flow flow = co_await run_calls();
      co_return flow;
    }
    case tds::PacketType::transaction_manager: {
      const Flow flow = co_await run_transaction();
      co_return flow;
    }
    default:
      co_return Flow::close;  // MS-TDS 2.2.3.1.1: an unknown type ends the connection
  }
}

// A message that the client took back, or one where bulk data was due.
async::Task<Connection::Flow> Connection::refuse_message(bool ignored) {
  channel_.next_message();
  reply_.begin();
  if (session_->bulk() != nullptr) {
    session_->abort_bulk(
        reply_, engine::Message{.number = 4022,
                                .state = 1,
                                .severity = 16,
                                .text = "Bulk load data was expected but not sent. The batch will be terminated.",
                                .procedure = {},
                                .line = 1});
  } else if (ignored) {
    reply_.done({.kind = engine::Done::Kind::statement, .error = true, .count = {}, .current_command = 0});
  }
  const Flow flow = co_await finish_reply();
  co_return flow;
}

async::Task<Connection::Flow> Connection::close_with_4014() {
  reply_.begin();
  reply_.refuse(
      4014, 20, 17,
      fmt::format("A fatal error occurred while reading the input stream from the network. The session will be "
                  "terminated ({}).",
                  channel_.reader().failed() ? channel_.reader().why() : "the request is too large"));
  reply_.finish();
  co_await channel_.flush();
  co_return Flow::close;
}

async::Task<Connection::Flow> Connection::finish_reply() {
  reply_.finish();
  co_await channel_.flush();
  channel_.cut_writes_behind(std::nullopt);
  co_return session_->must_close() || fatal_ ? Flow::close : Flow::go_on;
}

// What every request begins its answer with. False: the answer is a refusal, and complete.
bool Connection::begin_answer(const server::RequestFault& fault, const server::AllHeaders& headers) {
  reply_.begin();
  if ((request_.status & (tds::status_reset | tds::status_reset_keep_transaction)) != 0) {
    reply_.reset_acknowledged();
    session_->reset((request_.status & tds::status_reset_keep_transaction) != 0, reply_);
  }
  if (fault) {
    reply_.refuse(fault);
    return false;
  }
  // In autocommit the descriptor is not looked at: samples of the specification and clients send odd ones.
  if (session_->transaction() != 0 && headers.transaction != session_->transaction()) {
    reply_.refuse(3989, 16, 1,
                  "New request is not allowed to start because it should come with valid transaction descriptor.");
    return false;
  }
  return true;
}

// Faults of the plan that strike before a statement. False: the statement is not executed.
async::Task<bool> Connection::before_statement(std::string_view statement) {
  FaultPlan* plan = shared_.options.faults.get();
  if (plan == nullptr || plan->empty()) co_return true;
  if (const Fault* fault = plan->strike(FaultKind::cut_reply, statement)) channel_.cut_writes_behind(fault->bytes);
  if (const Fault* fault = plan->strike(FaultKind::delay, statement)) {
    co_await net::sleep_for(shared_.loop, fault->wait);
  }
  if (const Fault* fault = plan->strike(FaultKind::error, statement)) {
    reply_.refuse(fault->number, fault->severity, fault->state, fault->text);
    fatal_ = fault->severity >= 20;
    co_return false;
  }
  request_.commits = request_.commits || is_commit(statement);
  if (request_.commits && plan->strike(FaultKind::cut_before_commit, statement) != nullptr) {
    channel_.close();
    throw Error(Category::connection, "cut", "cut before COMMIT by the fault plan");
  }
  co_return true;
}

void Connection::after_statement(std::string_view statement) {
  FaultPlan* plan = shared_.options.faults.get();
  if (plan == nullptr || !request_.commits) return;
  if (plan->strike(FaultKind::cut_after_commit, statement) != nullptr) {
    channel_.close();
    throw Error(Category::connection, "cut", "cut after COMMIT by the fault plan");
  }
}

async::Task<Connection::Flow> Connection::run_batch() {
  server::AllHeaders headers;
  std::string sql;
  const server::RequestFault fault = server::parse_batch(channel_.reader().payload(), headers, sql);
  channel_.next_message();
  if (begin_answer(fault, headers)) {
    const bool go = co_await before_statement(sql);
    if (go) {
      session_->start_batch(sql);
      co_await execute();
      after_statement(sql);
    }
  }
  const Flow flow = co_await finish_reply();
  co_return flow;
}

async::Task<Connection::Flow> Connection::run_calls() {
  server::AllHeaders headers;
  std::vector<server::RpcCall> calls;
  const server::RequestFault fault = server::parse_rpc(channel_.reader().payload(), headers, calls);
  channel_.next_message();
  if (begin_answer(fault, headers)) {
    for (std::size_t i = 0; i < calls.size(); ++i) {
      server::RpcCall& call = calls[i];
      if (i != 0) reply_.next_call();
      const std::string text = shared_.options.faults == nullptr ? std::string() : call_text(call);
      const bool go = co_await before_statement(text);
      if (!go) break;
      if (call.id == server::rpc_by_name) {
        session_->start_call(call.name, to_engine(call.parameters));
      } else {
        session_->start_call(call.id, to_engine(call.parameters));
      }
      const bool whole = co_await execute();
      after_statement(text);
      if (!whole) break;
    }
  }
  const Flow flow = co_await finish_reply();
  co_return flow;
}

async::Task<Connection::Flow> Connection::run_transaction() {
  server::AllHeaders headers;
  server::TransactionRequest request;
  const server::RequestFault fault = server::parse_transaction(channel_.reader().payload(), headers, request);
  channel_.next_message();
  if (begin_answer(fault, headers)) {
    const std::string_view text = request.kind == server::TransactionKind::commit ? "COMMIT" : "";
    const bool go = co_await before_statement(text);
    if (go) {
      session_->start_transaction(to_engine(request));
      co_await execute();
      after_statement(text);
    }
  }
  const Flow flow = co_await finish_reply();
  co_return flow;
}

// Steps until the request is finished; sends and waits between them. False: an attention has ended it.
async::Task<bool> Connection::execute() {
  while (true) {
    wake_.reset();
    const engine::Progress progress = session_->step(reply_);
    if (progress.step == engine::Step::finished) co_return true;
    co_await channel_.flush();
    if (progress.step == engine::Step::full) {
      co_await async::yield();
      poll_input();
    } else {
      co_await wait_input(progress.wait);
    }
    if (is_attention(channel_.reader())) {
      channel_.next_message();
      acknowledge_cancel();
      co_return false;
    }
    if (peer_ended_)
      throw Error(Category::connection, "connection_lost", "the client has gone in the middle of a request");
  }
}

// The answer that was on its way ends as a message of its own, then the acknowledgement follows: clients (tedious) wait
// for it in the next message, all others take both forms (MS-TDS 3.3.5.7).
void Connection::acknowledge_cancel() {
  session_->cancel(reply_);
  reply_.done({.kind = engine::Done::Kind::statement, .error = true, .count = {}, .current_command = 0});
  reply_.finish();
  reply_.begin();
  reply_.attention();
}

// True while bytes from the client may still turn out to be an attention; anything else waits its turn unread.
bool Connection::may_read_attention() {
  const tds::PacketReader& reader = channel_.reader();
  if (reader.failed() || reader.message_ended()) return false;
  return !reader.message_started() || reader.type() == tds::PacketType::attention;
}

void Connection::poll_input() {
  if (!may_read_attention()) return;
  if (const auto more = channel_.try_read(); more && !*more) peer_ended_ = true;
}

async::Task<void> Connection::watch_input() {
  try {
    while (may_read_attention()) {
      const bool more = co_await channel_.read();
      if (!more) {
        peer_ended_ = true;
        wake_.set();
        co_return;
      }
    }
  } catch (const Error& error) {
    if (error.category() == Category::cancelled) co_return;  // the wait is over
    throw;
  }
  if (is_attention(channel_.reader())) wake_.set();
}

async::Task<void> Connection::wait_wake() { co_await wake_.wait(); }

async::Task<void> Connection::wait_wake_for(std::optional<std::chrono::milliseconds> time, async::Scope* scope) {
  try {
    if (time) {
      co_await net::with_deadline(shared_.loop, *time, "a wait", wait_wake());
    } else {
      co_await wake_.wait();
    }
  } catch (const Error& error) {
    if (error.category() != Category::timeout) throw;
  }
  scope->cancel();
}

// Until the engine wakes this session, the time is over, or the client sends an attention or goes.
async::Task<void> Connection::wait_input(std::optional<std::chrono::milliseconds> time) {
  async::Scope scope(co_await async::current_context());
  scope.spawn(watch_input());
  scope.spawn(wait_wake_for(time, &scope));
  co_await scope.join();
}

}  // namespace rowferry::sandbox
