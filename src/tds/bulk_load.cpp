// INSERT BULK: rows go out while the server may answer at any moment (MS-TDS 2.2.6.1, 3.2.5.10).
#include <fmt/format.h>

#include <algorithm>

#include "async/scope.hpp"
#include "base/error.hpp"
#include "tds/session_impl.hpp"

namespace rowferry::tds {

namespace {

double seconds_since(std::chrono::steady_clock::time_point began) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

}  // namespace

struct BulkLoad::Impl {
  enum class State : std::uint8_t {
    open,   // the server waits for rows; the message has no end yet
    sent,   // the message has ended, its reply is awaited
    ended,  // nothing is owed to the server
  };

  Impl(std::shared_ptr<Session::Impl> session_in, std::vector<BulkColumn> columns)
      : session(std::move(session_in)),
        encoder(std::move(columns)),
        response(session->state, Response::Rows::discard),
        bytes_before(session->transport.bytes_sent()) {}

  std::shared_ptr<Session::Impl> session;
  BulkEncoder encoder;
  Response response;
  BulkStats stats;
  ByteBuffer tokens;
  std::uint64_t bytes_before;
  State state = State::open;
  bool reply_ended = false;       // the reply has come to its end
  std::exception_ptr read_error;  // of the reader beside the writer

  Transport& transport() noexcept { return session->transport; }
  // The server has spoken before it was asked: nothing more need be sent to it.
  bool refused() const noexcept { return response.has_error() || reply_ended || read_error != nullptr; }

  void end() noexcept {
    state = State::ended;
    session->busy = false;
  }
  std::size_t rows_at_once(const rows::Batch& batch) const noexcept;
  void take_reply();
  async::Task<void> watch(async::Scope& scope);
  async::Task<void> push(async::Scope& scope);
  async::Task<void> flush();
  async::Task<void> take_back();
  async::Task<void> take_back_now();
  async::Task<void> give_up();
  async::Task<std::uint64_t> finish();
  [[noreturn]] void throw_refusal();
};

// So many rows that their tokens fill about one flush.
std::size_t BulkLoad::Impl::rows_at_once(const rows::Batch& batch) const noexcept {
  const std::size_t row_bytes = batch.bytes() / std::max<std::size_t>(batch.rows(), 1) + 1;
  return std::clamp<std::size_t>(limits::tds_bulk_flush_bytes / row_bytes, 1, limits::tds_bulk_block_rows);
}

void BulkLoad::Impl::take_reply() {
  session->parse(response);
  if (session->end_message(response) && response.finished()) reply_ended = true;
}

// Listens while push() writes. When the server refuses the load, the writer gets a little time to end its packet; a
// server that has stopped reading would hold it for ever.
async::Task<void> BulkLoad::Impl::watch(async::Scope& scope) {
  try {
    while (!refused()) {
      const bool more = co_await transport().fill();
      if (!more) {
        throw Error(Category::connection, "connection_lost", "the server closed the connection during a bulk load")
            .mark_transient();
      }
      take_reply();
    }
  } catch (const Error& error) {
    if (error.category() == Category::cancelled) co_return;
    read_error = std::current_exception();
  }
  co_await net::sleep_for(transport().loop(), limits::tds_cancel_timeout);
  scope.cancel();
}

async::Task<void> BulkLoad::Impl::push(async::Scope& scope) {
  co_await transport().flush();
  scope.cancel();
}

async::Task<void> BulkLoad::Impl::flush() {
  const auto began = std::chrono::steady_clock::now();
  const async::Context context = co_await async::current_context();
  std::exception_ptr failure;
  {
    async::Scope scope(context);
    scope.spawn(watch(scope));
    scope.spawn(push(scope));
    try {
      co_await scope.join();
    } catch (...) {
      failure = std::current_exception();
    }
  }
  stats.socket_seconds += seconds_since(began);
  stats.wire_bytes = transport().bytes_sent() - bytes_before;
  if (context.cancelled()) throw async::cancelled_error();
  if (!failure || is_cancelled(failure)) co_return;  // the reader's news, if any, are in refused()
  // A write that fails because the server hung up: what it said before is worth more.
  try {
    while (transport().fill_now()) take_reply();
  } catch (const Error&) {
    session->close();  // the failed write is the better story
  }
  if (!response.has_error()) std::rethrow_exception(failure);
}

void BulkLoad::Impl::throw_refusal() {
  if (response.fatal()) session->close();
  response.throw_server_error();
  if (read_error) std::rethrow_exception(read_error);
  throw Error(Category::server, "bulk_ended", "the server ended the bulk load before its last row");
}

// IGNORE|EOM on an empty packet takes the whole message back (MS-TDS 2.2.3.1.2), also when no packet of it was sent.
async::Task<void> BulkLoad::Impl::take_back_now() {
  PacketWriter& writer = transport().writer();
  writer.drop_open_payload();
  writer.finish(status_ignore);
  co_await transport().flush();
  if (reply_ended) {
    session->stray_reply_possible = true;
    co_return;
  }
  while (!reply_ended) {
    const bool more = co_await transport().fill();
    if (!more) throw Error(Category::connection, "connection_lost", "the server closed the connection");
    take_reply();
  }
}

async::Task<void> BulkLoad::Impl::take_back() {
  bool good = session->usable();
  if (good) {
    try {
      co_await net::with_deadline(transport().loop(), limits::tds_cancel_timeout, "taking a bulk load back",
                                  take_back_now());
    } catch (const std::exception&) {
      good = false;  // closing the session takes it back as well
    }
  }
  if (!good || response.fatal()) session->close();
  end();
}

// Ends the load whatever its state.
async::Task<void> BulkLoad::Impl::give_up() {
  if (state == State::open) {
    co_await take_back();
  } else if (state == State::sent) {
    co_await session->recover(response);
    end();
  }
}

async::Task<std::uint64_t> BulkLoad::Impl::finish() {
  tokens.clear();
  BulkEncoder::done(tokens);
  PacketWriter& writer = transport().writer();
  writer.write(tokens.view());
  writer.finish();
  state = State::sent;
  std::exception_ptr failure;
  try {
    co_await flush();
    const auto began = std::chrono::steady_clock::now();
    if (!reply_ended && !read_error) co_await session->read_reply(response, nullptr);
    stats.reply_seconds += seconds_since(began);
    if (read_error) std::rethrow_exception(read_error);
  } catch (...) {
    failure = std::current_exception();
  }
  if (failure) co_await async::shield(give_up());
  end();
  if (response.fatal()) session->close();
  if (failure && !(response.has_error() && !is_cancelled(failure))) std::rethrow_exception(failure);
  response.throw_server_error();
  co_return response.result().affected;
}

// ---- the public face ------------------------------------------------------------------------------------------------

BulkLoad::BulkLoad(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

BulkLoad::~BulkLoad() {
  if (impl_->state == Impl::State::ended) return;
  impl_->session->close();
  impl_->end();
}

async::Task<std::unique_ptr<BulkLoad>> Session::begin_bulk(std::vector<std::string> table,
                                                           std::vector<BulkColumn> columns, BulkOptions options) {
  const std::string statement = insert_bulk_statement(table, columns, options);
  // Made before anything is sent: it refuses columns that cannot be.
  std::unique_ptr<BulkLoad> load(new BulkLoad(std::make_unique<BulkLoad::Impl>(impl_, std::move(columns))));
  load->impl_->state = BulkLoad::Impl::State::ended;
  Response consent(impl_->state, Response::Rows::discard);
  co_await impl_->request(statement, consent, nullptr, limits::tds_query_timeout);
  BulkLoad::Impl& impl = *load->impl_;
  impl.state = BulkLoad::Impl::State::open;
  impl.bytes_before = impl_->transport.bytes_sent();
  impl_->busy = true;
  impl_->transport.writer().begin(PacketType::bulk);
  impl.encoder.columns(impl.tokens);
  impl_->transport.writer().write(impl.tokens.view());
  co_return load;
}

async::Task<void> BulkLoad::write(const rows::Batch& batch) {
  if (!open()) throw Error(Category::internal, "bulk_ended", "a bulk load that has ended takes no rows");
  PacketWriter& writer = impl_->transport().writer();
  const std::size_t step = impl_->rows_at_once(batch);
  for (std::size_t row = 0; row < batch.rows(); row += step) {
    const std::size_t end = std::min(row + step, batch.rows());
    impl_->tokens.clear();
    impl_->encoder.rows(batch, row, end, impl_->tokens);
    impl_->stats.rows += end - row;
    // In parts: the tokens of one huge value are not copied into packets as a whole.
    for (ByteView left = impl_->tokens.view(); !left.empty();) {
      const ByteView part = left.first(std::min(left.size(), limits::tds_bulk_flush_bytes));
      left = left.subspan(part.size());
      writer.write(part);
      if (writer.ready().size() < limits::tds_bulk_flush_bytes) continue;
      co_await impl_->flush();
      if (impl_->refused()) {
        co_await async::shield(impl_->take_back());
        impl_->throw_refusal();
      }
      co_await async::yield();
    }
    if (impl_->tokens.capacity() > 4 * limits::tds_bulk_flush_bytes) impl_->tokens = ByteBuffer();
  }
}

async::Task<std::uint64_t> BulkLoad::finish(milliseconds timeout) {
  if (!open()) throw Error(Category::internal, "bulk_ended", "a bulk load that has ended cannot be finished");
  if (timeout == milliseconds{0}) co_return co_await impl_->finish();
  co_return co_await net::with_deadline(impl_->transport().loop(), timeout, "a bulk load's reply", impl_->finish());
}

async::Task<void> BulkLoad::abort() {
  if (impl_->state != Impl::State::ended) co_await async::shield(impl_->give_up());
}

bool BulkLoad::open() const noexcept { return impl_->state == Impl::State::open; }
const BulkStats& BulkLoad::stats() const noexcept { return impl_->stats; }
const std::vector<ServerMessage>& BulkLoad::messages() const noexcept { return impl_->response.messages(); }

}  // namespace rowferry::tds
