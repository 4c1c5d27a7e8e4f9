#include "tds/session.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "tds/session_impl.hpp"

namespace rowferry::tds {

namespace {

Error lost_error() {
  return Error(Category::connection, "connection_lost", "the server closed the connection").mark_transient();
}

// ALL_HEADERS with the one that is required (MS-TDS 2.2.5.3).
void put_headers(ByteBuffer& to, std::uint64_t transaction) {
  constexpr std::uint32_t total = 22;
  constexpr std::uint32_t header = 18;
  constexpr std::uint16_t transaction_descriptor = 2;
  to.put_le(total);
  to.put_le(header);
  to.put_le(transaction_descriptor);
  to.put_le(transaction);
  to.put_le(std::uint32_t{1});
}

}  // namespace

std::string ServerInfo::version() const { return fmt::format("{}.{}.{}", major, minor, build); }

// ---- requests -------------------------------------------------------------------------------------------------------

void Session::Impl::begin_batch(const std::string& sql) {
  ByteBuffer body(22 + 2 * sql.size());
  put_headers(body, state.transaction);
  text::append_utf16le(body, sql);
  PacketWriter& writer = transport.writer();
  writer.begin(PacketType::sql_batch);
  writer.write(body.view());
  writer.finish();
}

bool Session::Impl::parse(Response& response) {
  PacketReader& reader = transport.reader();
  std::size_t used = 0;
  const TokenParser::Status status = response.parser.feed(reader.payload(), used);
  reader.consume(used);
  if (status == TokenParser::Status::malformed) {
    close();
    throw protocol_error(response.parser.why());
  }
  return status != TokenParser::Status::paused;
}

bool Session::Impl::end_message(Response& response) {
  PacketReader& reader = transport.reader();
  if (!reader.message_ended()) return false;
  if (!reader.payload().empty() || !response.parser.at_token()) {
    close();
    throw protocol_error("a message ends within a token");
  }
  if (reader.type() != PacketType::tabular) {
    close();
    throw protocol_error("a message of another kind than a reply");
  }
  reader.next_message();
  return true;
}

async::Task<void> Session::Impl::read_reply(Response& response, system::BatchSink* to) {
  while (true) {
    while (!parse(response)) {
      if (rows::BatchPtr batch = response.take_batch(); batch && to != nullptr) co_await to->put(std::move(batch));
    }
    if (response.failure()) std::rethrow_exception(response.failure());
    if (end_message(response)) {
      if (stray_reply_possible) {
        stray_reply_possible = false;
        if (response.only_failed_done()) {
          response.restart();
          continue;
        }
      }
      if (response.finished()) co_return;
      close();
      throw protocol_error("a reply ends without its final DONE");
    }
    const bool more = co_await transport.fill();
    if (!more) throw lost_error();
    co_await async::yield();
  }
}

// Attention, then everything until it is acknowledged; the acknowledgement may follow in a message of its own.
async::Task<void> Session::Impl::attention(Response& response) {
  response.discard_rows();
  // The reply may be here already, to its end: then there is nothing to stop.
  while (!parse(response)) response.take_batch();
  if (end_message(response) && response.finished()) co_return;
  PacketWriter& writer = transport.writer();
  writer.begin(PacketType::attention);
  writer.finish();
  co_await transport.flush();
  while (true) {
    while (!parse(response)) response.take_batch();
    if (end_message(response)) {
      if (response.attention_seen()) co_return;
      response.restart();
      continue;
    }
    const bool more = co_await transport.fill();
    if (!more) throw lost_error();
    co_await async::yield();
  }
}

async::Task<void> Session::Impl::recover(Response& response) {
  if (!usable()) {
    close();
    co_return;
  }
  bool drained = true;
  try {
    co_await net::with_deadline(transport.loop(), limits::tds_cancel_timeout, "cancelling a statement",
                                attention(response));
  } catch (const std::exception&) {
    drained = false;  // the session is closed instead: the server rolls back what was open
  }
  if (!drained) close();
}

async::Task<void> Session::Impl::run(std::string sql, Response& response, system::BatchSink* to) {
  if (!usable()) throw Error(Category::connection, "connection_lost", "the session is closed").mark_transient();
  if (busy) throw Error(Category::internal, "session_busy", "the session has a request or a load going on");
  const Busy taken(busy);
  begin_batch(sql);
  std::exception_ptr failure;
  try {
    co_await transport.flush();
    co_await read_reply(response, to);
  } catch (...) {
    failure = std::current_exception();
  }
  if (failure) co_await async::shield(recover(response));
  if (response.fatal()) close();
  // What the server said last explains a lost connection better than the loss does.
  if (failure && !(response.has_error() && closed && !is_cancelled(failure))) std::rethrow_exception(failure);
  response.throw_server_error();
}

async::Task<void> Session::Impl::request(std::string sql, Response& response, system::BatchSink* to,
                                         milliseconds timeout) {
  if (timeout == milliseconds{0}) {
    co_await run(std::move(sql), response, to);
  } else {
    co_await net::with_deadline(transport.loop(), timeout, "a statement", run(std::move(sql), response, to));
  }
}

// ---- the public face ------------------------------------------------------------------------------------------------

Session::Session(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::~Session() { impl_->close(); }

async::Task<QueryResult> Session::query(std::string sql, milliseconds timeout) {
  Response response(impl_->state, Response::Rows::collect);
  co_await impl_->request(std::move(sql), response, nullptr, timeout);
  co_return std::move(response.result());
}

async::Task<std::uint64_t> Session::execute(std::string sql, milliseconds timeout) {
  Response response(impl_->state, Response::Rows::discard);
  co_await impl_->request(std::move(sql), response, nullptr, timeout);
  co_return response.result().affected;
}

async::Task<ReadStats> Session::read(std::string sql, ReadOptions options, system::BatchSink& to) {
  const std::uint64_t before = impl_->transport.bytes_received();
  Response response(impl_->state, Response::Rows::stream, &options);
  co_await impl_->request(std::move(sql), response, &to, options.timeout);
  if (rows::BatchPtr last = response.take_batch()) co_await to.put(std::move(last));
  co_return ReadStats{.rows = response.rows_seen(),
                      .wire_bytes = impl_->transport.bytes_received() - before,
                      .told = response.rows_told()};
}

bool Session::usable() const noexcept { return impl_->usable(); }
bool Session::in_transaction() const noexcept { return impl_->state.transaction != 0; }
const ServerInfo& Session::info() const noexcept { return impl_->state.info; }
const std::vector<ServerMessage>& Session::login_messages() const noexcept { return impl_->login_messages; }
void Session::close() noexcept { impl_->close(); }

}  // namespace rowferry::tds
