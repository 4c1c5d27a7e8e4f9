// What Session and BulkLoad share.
#pragma once

#include "tds/response.hpp"
#include "tds/session.hpp"
#include "tds/transport.hpp"

namespace rowferry::tds {

struct Session::Impl {
  Impl(net::Loop& loop, std::unique_ptr<net::Stream> stream) : transport(loop, std::move(stream)) {}

  Transport transport;
  SessionState state;
  std::vector<ServerMessage> login_messages;
  bool closed = false;
  bool busy = false;  // a request or a bulk load is going on
  // A load was taken back after the server had answered already: the answer to that may still come, or not.
  bool stray_reply_possible = false;

  bool usable() const noexcept { return !closed && !transport.broken(); }
  void close() noexcept {
    closed = true;
    transport.close();
  }

  // Sends a batch and reads its reply, whole. Streams into `to` where it is not null. Throws the first of: what the
  // server reported, what failed here. Leaves the session drained or closed.
  async::Task<void> request(std::string sql, Response& response, system::BatchSink* to, milliseconds timeout);
  // PRELOGIN, TLS, LOGIN7.
  async::Task<void> establish(const LoginOptions& options);

  async::Task<void> run(std::string sql, Response& response, system::BatchSink* to);
  // Parses what has come. False: a batch is full and wants to be taken. Throws on malformed bytes, closing.
  bool parse(Response& response);
  // Parses and reads until the reply is complete.
  async::Task<void> read_reply(Response& response, system::BatchSink* to);
  // After a failed or cancelled wait for a reply: brings the session into order, or closes it. Never throws; shielded
  // by the caller.
  async::Task<void> recover(Response& response);
  // True when a message has ended in the reader, and was let go.
  bool end_message(Response& response);
  // Sends a message whose packets the writer holds.
  void begin_batch(const std::string& sql);

 private:
  async::Task<void> attention(Response& response);
};

// The session is taken while it lives.
class Busy {
 public:
  explicit Busy(bool& flag) : flag_(flag) { flag_ = true; }
  ~Busy() { flag_ = false; }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;

 private:
  bool& flag_;
};

}  // namespace rowferry::tds
