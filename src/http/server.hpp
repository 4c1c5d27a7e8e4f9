// Server: HTTP/1.1 over a Listener. Slow or hostile clients cost a bounded buffer and a descriptor each, never a wait
// of others: limits on connections, idle time, head, body and answer times and sizes (limits::http_*), one sweep for
// all deadlines.
//
//   Server server(loop, options, handler);    // listens from here on
//   scope.spawn(server.run());                // until stop(), or until its context is cancelled
//   server.stop();                            // no new connection or request; run() ends when the last answer is sent,
//                                             // after stop_grace at the latest
// A connection handles one request after the other; pipelined ones wait in its buffer and in the socket.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/limits.hpp"
#include "http/problem.hpp"
#include "http/wire/request_parser.hpp"
#include "net/tls.hpp"

namespace rowferry::http {

class Connection;

// A request's body, read only when the handler asks for it. Whatever is wrong with it (too large, malformed, too slow,
// cut off) is thrown as a Refused, which the handler lets pass: the server answers and closes.
class Body {
 public:
  explicit Body(Connection& connection) : connection_(connection) {}
  // At least one byte, or 0 at the end of the body.
  async::Task<std::size_t> read_some(std::span<std::uint8_t> into);
  // All of it; the parser's body limit bounds it.
  async::Task<std::string> collect();

 private:
  Connection& connection_;
};

struct Refused : std::exception {
  explicit Refused(Fault what) : fault(std::move(what)) {}
  const char* what() const noexcept override { return fault.detail.c_str(); }
  Fault fault;
};

class Handler {
 public:
  virtual ~Handler() = default;
  // Request and body live until the task has ended. Refuse without reading the body wherever the head is enough: the
  // client is then not asked to send it. HEAD is handled like GET; the server leaves the body of the answer out.
  // Throws nothing but Refused and cancellation; anything else ends as a bare 500.
  virtual async::Task<Response> handle(const Request& request, Body& body) = 0;
  // After the answer was sent. Must not block.
  virtual void served(const Request& /*request*/, int /*status*/, std::chrono::microseconds /*took*/) {}
};

struct ServerOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;
  std::optional<net::TlsContext> tls;
  RequestLimits request;
  std::size_t connections = limits::http_connections;
  net::milliseconds idle_time = limits::http_idle_time;
  net::milliseconds head_time = limits::http_head_time;
  net::milliseconds transfer_grace = limits::http_transfer_grace;
  std::size_t rate_min = limits::http_rate_min;
  net::milliseconds linger_time = limits::http_linger_time;
  net::milliseconds sweep_time = limits::http_sweep_time;
  net::milliseconds stop_grace = limits::http_stop_grace;
};

struct ServerCounts {
  std::size_t open = 0;
  std::uint64_t accepted = 0;
  std::uint64_t requests = 0;
  std::uint64_t evicted = 0;      // idle ones closed to make room
  std::uint64_t turned_away = 0;  // 503: no room and none idle
  std::uint64_t timed_out = 0;
};

class Server {
 public:
  // Error(input, "listen_failed", …) when the address cannot be bound.
  Server(net::Loop& loop, ServerOptions options, Handler& handler);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::uint16_t port() const noexcept { return port_; }
  async::Task<void> run();
  void stop() noexcept;
  const ServerCounts& counts() const noexcept { return counts_; }

 private:
  friend class Connection;
  async::Task<void> accept_all(async::Scope* scope);
  async::Task<void> turn_away(std::unique_ptr<net::TcpStream> stream);
  async::Task<void> sweep();
  async::Task<void> drain();
  bool make_room();
  void closed() noexcept;

  net::Loop& loop_;
  ServerOptions options_;
  Handler& handler_;
  std::unique_ptr<net::Listener> listener_;  // gone once stopped
  std::uint16_t port_;
  std::size_t connections_max_;
  ServerCounts counts_;
  bool stopping_ = false;
  async::CancelSource* accepting_ = nullptr;
  async::List<Connection> idle_;     // between requests, the one that waits longest first
  async::List<Connection> reading_;  // waiting for more of a request
  async::Event all_closed_;
};

}  // namespace rowferry::http
