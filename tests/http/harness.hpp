// A server in this process and clients that speak raw bytes to it.
#pragma once

#include <functional>
#include <string>

#include "http/server.hpp"

namespace rowferry::testing {

// A raw client. Every wait has a deadline, so that a test fails instead of hanging.
class Client {
 public:
  Client(net::Loop& loop, std::unique_ptr<net::Stream> stream) : loop_(loop), stream_(std::move(stream)) {}
  static async::Task<std::unique_ptr<Client>> connect(net::Loop* loop, std::uint16_t port);

  async::Task<void> send(std::string text);
  // One whole response: head, then the body that Content-Length announces (none for `head_only`). The rest is kept.
  async::Task<std::string> response(bool head_only = false);
  // Everything up to the server's close.
  async::Task<std::string> rest();
  // Whether the server closes within the time.
  async::Task<bool> closes_within(net::milliseconds time);
  net::Stream& stream() { return *stream_; }

 private:
  async::Task<bool> more();
  net::Loop& loop_;
  std::unique_ptr<net::Stream> stream_;
  std::string buffer_;
};

// Sends one request on a new connection and gives all that comes back until the server closes.
async::Task<std::string> ask(net::Loop* loop, std::uint16_t port, std::string request);

// Runs `client` beside the server, then stops the server.
void with_server(net::Loop& loop, http::Server& server, async::Task<void> client);

std::string status_of(const std::string& response);                           // "200"
std::string header_of(const std::string& response, const std::string& name);  // "" when absent
std::string body_of(const std::string& response);

}  // namespace rowferry::testing
