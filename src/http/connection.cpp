#include "http/connection.hpp"

#include <algorithm>
#include <ctime>

#include "base/log.hpp"

namespace rowferry::http {

namespace {

constexpr std::size_t one_write_bytes = 16 * 1024;  // an answer up to this goes out head and body together

// The time that `bytes` may take at the slowest rate that is put up with.
net::milliseconds allowance(const ServerOptions& options, std::uint64_t bytes) {
  return options.transfer_grace + net::milliseconds(bytes * 1000 / std::max<std::size_t>(options.rate_min, 1));
}

}  // namespace

Connection::Connection(Server& server, std::unique_ptr<net::TcpStream> stream)
    : server_(server), stream_(std::move(stream)), parser_(server.options_.request) {}

async::Task<void> Connection::run(Server* server, std::unique_ptr<net::TcpStream> stream) {
  try {
    Connection connection(*server, std::move(stream));
    co_await connection.talk();
    connection.stream_->close();
  } catch (...) {
    // The peer is gone, or everything is being cancelled: nobody is left to answer.
    log::debug("a connection was cut off", {{"why", describe(std::current_exception())}});
  }
  server->closed();
}

void Connection::interrupt(Stop why) noexcept {
  unlink();
  stop_ = why;
  if (waiting_ != nullptr) waiting_->cancel();
}

async::Task<void> Connection::talk() {
  if (server_.options_.tls) {
    auto tls = std::make_unique<net::TlsStream>(*server_.options_.tls, std::move(stream_));
    net::TlsStream& stream = *tls;
    stream_ = std::move(tls);
    co_await net::with_deadline(server_.loop_, server_.options_.head_time, "the TLS handshake", stream.handshake());
  }
  bool going_on = true;
  while (going_on) {
    std::optional<Fault> fault;
    try {
      going_on = co_await read_head();
      if (going_on) going_on = co_await answer();
    } catch (const Refused& refused) {
      fault = refused.fault;
    }
    if (fault) {
      co_await refuse(std::move(*fault));
      co_return;
    }
    // Pipelined requests and a fast client must not keep the loop from others.
    if (going_on) co_await async::yield();
  }
}

async::Task<std::optional<std::size_t>> Connection::fill(bool idle, Clock::time_point deadline) {
  const std::size_t wanted = idle ? limits::http_idle_read_bytes : limits::http_read_bytes;
  if (capacity_ != wanted) buffer_ = std::make_unique_for_overwrite<std::uint8_t[]>(capacity_ = wanted);
  begin_ = end_ = 0;
  stop_ = Stop::none;
  const std::span<std::uint8_t> room(buffer_.get(), capacity_);
  if (const auto got = stream_->try_read(room)) {
    end_ = *got;
    co_return *got;
  }
  const async::Context context = co_await async::current_context();
  async::CancelSource source(context.cancel);
  struct Wait {
    Connection& connection;
    ~Wait() {
      connection.unlink();
      connection.waiting_ = nullptr;
    }
  } wait{*this};
  waiting_ = &source;
  deadline_ = deadline;
  (idle ? server_.idle_ : server_.reading_).push_back(*this);
  try {
    end_ = co_await async::with_cancel(source, stream_->read_some(room));
    co_return end_;
  } catch (const Error& error) {
    if (error.category() != Category::cancelled || stop_ == Stop::none) throw;
  }
  co_return std::nullopt;
}

// True when a request's head has come; false when the connection is to end without a word.
async::Task<bool> Connection::read_head() {
  const auto idle_until = Clock::now() + server_.options_.idle_time;
  auto head_until = Clock::time_point::max();
  while (true) {
    const RequestParser::Event event = parser_.feed(buffered());
    begin_ += event.used;
    if (event.step == RequestParser::Step::head_complete) break;
    if (event.step == RequestParser::Step::malformed) throw Refused(parser_.fault());
    if (buffered().empty()) {
      const bool idle = parser_.idle();
      if (idle && server_.stopping_) co_return false;
      if (!idle && head_until == Clock::time_point::max()) head_until = Clock::now() + server_.options_.head_time;
      const auto got = co_await fill(idle, idle ? idle_until : head_until);
      if (!got && !idle && stop_ == Stop::deadline)
        throw Refused({408, "head_timeout", "the request's head took too long"});
      if (!got || *got == 0) co_return false;
    }
  }
  // Without a body the message is complete at once, and its buffer's rest is the next one's.
  body_complete_ = !parser_.request().has_body && parser_.feed({}).step == RequestParser::Step::message_complete;
  continue_sent_ = false;
  body_began_ = Clock::now();
  piece_ = {};
  co_return true;
}

// ---- the body

// The next piece of the body into piece_; false at its end.
async::Task<bool> Connection::next_piece() {
  while (!body_complete_) {
    const RequestParser::Event event = parser_.feed(buffered());
    begin_ += event.used;
    switch (event.step) {
      case RequestParser::Step::body:
        piece_ = event.body;
        co_return true;
      case RequestParser::Step::message_complete:
        body_complete_ = true;
        co_return false;
      case RequestParser::Step::malformed:
        throw Refused(parser_.fault());
      default:
        break;
    }
    if (parser_.request().expects_continue && !continue_sent_ && parser_.body_bytes() == 0)
      co_await write("HTTP/1.1 100 Continue\r\n\r\n");
    continue_sent_ = true;
    const auto until = body_began_ + allowance(server_.options_, parser_.body_bytes());
    const auto got = co_await fill(false, until);
    if (!got) throw Refused({408, "body_timeout", "the request's body came too slowly"});
    if (*got == 0) throw Refused({400, "body_incomplete", "the connection ended within the request's body"});
  }
  co_return false;
}

async::Task<std::size_t> Connection::read_body(std::span<std::uint8_t> into) {
  if (piece_.empty() && !co_await next_piece()) co_return 0;
  const std::size_t n = std::min(piece_.size(), into.size());
  std::copy_n(piece_.begin(), n, into.begin());
  piece_ = piece_.subspan(n);
  co_return n;
}

async::Task<std::string> Connection::collect_body() {
  std::string body;
  while (!piece_.empty() || co_await next_piece()) {
    body += as_text(piece_);
    piece_ = {};
  }
  co_return body;
}

async::Task<std::size_t> Body::read_some(std::span<std::uint8_t> into) { return connection_.read_body(into); }
async::Task<std::string> Body::collect() { return connection_.collect_body(); }

// ---- the answer

async::Task<Response> Connection::handle() {
  Body body(*this);
  try {
    co_return co_await server_.handler_.handle(parser_.request(), body);
  } catch (const Refused&) {
    throw;
  } catch (...) {
    if (is_cancelled(std::current_exception())) throw;
  }
  co_return problem_response({.status = 500, .code = "internal", .detail = "an internal error"});
}

// False when the connection ends with it.
async::Task<bool> Connection::answer() {
  const auto began = Clock::now();
  const Response response = co_await handle();
  const Request& request = parser_.request();
  ++server_.counts_.requests;
  // A body that nobody wanted is not read: the connection ends instead.
  const bool keep = request.keep_alive && body_complete_ && !response.close && !server_.stopping_;
  co_await send(response, request.method != "HEAD", keep);
  server_.handler_.served(request, response.status,
                          std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - began));
  if (!keep) {
    co_await linger();
    co_return false;
  }
  parser_.next_message();
  co_return true;
}

async::Task<void> Connection::refuse(Fault fault) {
  ++server_.counts_.requests;
  if (fault.status == 408) ++server_.counts_.timed_out;
  const int status = fault.status;
  const Response response =
      problem_response({.status = status, .code = std::move(fault.code), .detail = std::move(fault.detail)});
  co_await send(response, parser_.request().method != "HEAD", false);
  server_.handler_.served(parser_.request(), status, {});
  co_await linger();
}

async::Task<void> Connection::send(const Response& response, bool with_body, bool keep_alive) {
  std::string head = response_head(response, response.body.size(),
                                   http_date(static_cast<std::int64_t>(std::time(nullptr))), keep_alive);
  const bool sends_body = with_body && response.status != 304 && response.status != 204;
  const bool together = sends_body && response.body.size() <= one_write_bytes;
  if (together) head += response.body;
  co_await write(head);
  if (sends_body && !together) co_await write(response.body);
}

async::Task<void> Connection::write(std::string_view text) {
  co_await net::with_deadline(server_.loop_, allowance(server_.options_, text.size()), "sending the answer",
                              stream_->write_all(as_bytes(text)));
}

// Closing with unread input would reset the connection, and the client might never read the answer: say that no more
// will come, then throw away what it still sends, for a while.
async::Task<void> Connection::linger() {
  co_await net::with_deadline(server_.loop_, server_.options_.linger_time, "closing", stream_->shutdown());
  const auto until = Clock::now() + server_.options_.linger_time;
  std::size_t dropped = 0;
  while (dropped < limits::http_linger_bytes) {
    const auto got = co_await fill(false, until);
    if (!got || *got == 0) co_return;
    dropped += *got;
  }
}

}  // namespace rowferry::http
