// The sandbox: a small TDS 7.4 server with tables in memory. It is not SQL Server, and says so.
//
// Lifecycle: a SandboxServer listens from its construction and serves each connection in a coroutine of its own on the
// loop; stop() is awaited before it dies. run() is the whole of `rowferry sandbox`.
#pragma once

#include <memory>
#include <string>

#include "async/scope.hpp"
#include "net/stream.hpp"
#include "sandbox/options.hpp"

namespace rowferry::sandbox {

class SandboxServer {
 public:
  // Error(input, "listen_failed" | "tls_settings" | …) when address, certificate or databases cannot be used.
  SandboxServer(net::Loop& loop, Options options);
  ~SandboxServer();
  SandboxServer(const SandboxServer&) = delete;
  SandboxServer& operator=(const SandboxServer&) = delete;

  std::uint16_t port() const noexcept;
  std::size_t connections() const noexcept;
  // PEM of the certificate that was made in memory, for a client's ca_file; empty when none was made.
  const std::string& certificate_pem() const noexcept;

  // Serves one connection over any stream, as if it had been accepted (tests without sockets). Await it in a scope that
  // is joined before stop().
  async::Task<void> serve(std::unique_ptr<net::Stream> stream, std::string peer);

  // Takes no more connections, ends those that are open (rolled back), and waits for them.
  async::Task<void> stop();

 private:
  struct State;
  static async::Task<void> accept_all(State* state);
  static async::Task<void> serve_one(State* state, std::unique_ptr<net::Stream> stream, std::string peer);

  std::unique_ptr<State> state_;
};

// Prints one line with the address on stdout, then serves until it is cancelled.
async::Task<void> run(net::Loop& loop, Options options);

}  // namespace rowferry::sandbox
