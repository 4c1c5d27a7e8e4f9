// Stream: bytes to and from one peer. TcpStream and TlsStream are the only implementations outside tests.
//
// One reader and one writer at a time, each its own coroutine if need be; no overlapping reads, no overlapping writes.
// Every wait is a cancellation point; deadlines come from net::with_deadline. Errors: Error(connection, …).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "net/poll.hpp"

namespace rowferry::net {

class Stream {
 public:
  virtual ~Stream() = default;
  // At least one byte, or 0 at the peer's end of stream.
  virtual async::Task<std::size_t> read_some(std::span<std::uint8_t> into) = 0;
  // All of it. After a cancelled or failed write the stream is unusable: how much was sent is unknown.
  virtual async::Task<void> write_all(ByteView bytes) = 0;
  // What can be read without waiting: 0 bytes in `.value()` is end of stream, nullopt is "nothing yet".
  virtual std::optional<std::size_t> try_read(std::span<std::uint8_t> into) = 0;
  // Tells the peer that no more will be written (FIN, or TLS close_notify and FIN).
  virtual async::Task<void> shutdown() = 0;
  // Closes now; waiting reads and writes must have ended or been cancelled. Idempotent.
  virtual void close() noexcept = 0;
};

// A resolved address.
struct Endpoint {
  std::string host;     // as the user typed it
  std::string address;  // numeric
  std::uint16_t port = 0;
  std::string text() const;  // "host (address):port"
};

// Every address of a host, in the resolver's order. Error(connection, "resolve_failed", …). Numeric hosts need no
// thread.
async::Task<std::vector<Endpoint>> resolve(Loop& loop, std::string host, std::uint16_t port);

class TcpStream final : public Stream {
 public:
  // Takes over a connected nonblocking socket.
  TcpStream(Loop& loop, int fd, std::string peer);
  ~TcpStream() override;
  // TCP_NODELAY and keep-alive (30 s idle, MS-TDS 3.2.2) are set. Error(connection, "connect_failed", …).
  static async::Task<std::unique_ptr<TcpStream>> connect(Loop& loop, Endpoint to);
  // Tries each address in turn within the deadline.
  static async::Task<std::unique_ptr<TcpStream>> connect(Loop& loop, std::string host, std::uint16_t port,
                                                         milliseconds timeout);

  async::Task<std::size_t> read_some(std::span<std::uint8_t> into) override;
  async::Task<void> write_all(ByteView bytes) override;
  std::optional<std::size_t> try_read(std::span<std::uint8_t> into) override;
  async::Task<void> shutdown() override;
  void close() noexcept override;

  const std::string& peer() const noexcept { return peer_; }
  int fd() const noexcept { return fd_; }

 private:
  Error broken(const char* what, int code) const;

  int fd_;
  std::string peer_;
  std::unique_ptr<Poll> poll_;
};

// A listening socket. Port 0 picks a free one.
class Listener {
 public:
  // Of a name's addresses the first IPv4 one, where there is one: clients that are told a name or an address find it.
  // Error(input, "listen_failed", …) when the address cannot be bound.
  Listener(Loop& loop, const std::string& host, std::uint16_t port);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // The next connection; waits out a shortage of descriptors instead of failing.
  async::Task<std::unique_ptr<TcpStream>> accept();
  std::uint16_t port() const noexcept { return port_; }

 private:
  Loop& loop_;
  int fd_ = -1;
  std::uint16_t port_ = 0;
  std::unique_ptr<Poll> poll_;
};

}  // namespace rowferry::net
