#include "harness.hpp"

#include <algorithm>

namespace rowferry::testing {

using async::Task;

namespace {
constexpr net::milliseconds patience{5000};
}

Task<std::unique_ptr<Client>> Client::connect(net::Loop* loop, std::uint16_t port) {
  auto stream = co_await net::TcpStream::connect(*loop, "127.0.0.1", port, patience);
  co_return std::make_unique<Client>(*loop, std::move(stream));
}

Task<void> Client::send(std::string text) {
  co_await net::with_deadline(loop_, patience, "the client's write", stream_->write_all(as_bytes(text)));
}

Task<bool> Client::more() {
  std::uint8_t room[4096];
  const std::size_t got = co_await net::with_deadline(loop_, patience, "the client's read", stream_->read_some(room));
  buffer_ += as_text({room, got});
  co_return got != 0;
}

Task<std::string> Client::response(bool head_only) {
  std::size_t end = std::string::npos;
  bool open = true;
  while (open && (end = buffer_.find("\r\n\r\n")) == std::string::npos) open = co_await more();
  if (end == std::string::npos) co_return std::exchange(buffer_, {});
  const std::string length = header_of(buffer_.substr(0, end + 4), "content-length");
  const std::size_t size = end + 4 + (head_only || length.empty() ? 0 : std::stoul(length));
  while (open && buffer_.size() < size) open = co_await more();
  std::string whole = buffer_.substr(0, size);
  buffer_.erase(0, size);
  co_return whole;
}

Task<std::string> Client::rest() {
  bool open = true;
  while (open) open = co_await more();
  co_return std::exchange(buffer_, {});
}

Task<bool> Client::closes_within(net::milliseconds time) {
  std::uint8_t room[256];
  try {
    while (true) {
      const std::size_t got = co_await net::with_deadline(loop_, time, "waiting", stream_->read_some(room));
      if (got == 0) co_return true;
    }
  } catch (const Error& error) {
    co_return error.category() == Category::connection;
  }
}

Task<std::string> ask(net::Loop* loop, std::uint16_t port, std::string request) {
  const auto client = co_await Client::connect(loop, port);
  co_await client->send(std::move(request));
  co_return co_await client->rest();
}

namespace {

Task<void> serve_while(http::Server* server, Task<void> client) {
  async::Scope scope(co_await async::current_context());
  scope.spawn(server->run());
  std::exception_ptr failed;
  try {
    co_await std::move(client);
  } catch (...) {
    failed = std::current_exception();
  }
  server->stop();
  co_await scope.join();
  if (failed) std::rethrow_exception(failed);
}

}  // namespace

void with_server(net::Loop& loop, http::Server& server, Task<void> client) {
  loop.run(serve_while(&server, std::move(client)));
}

std::string status_of(const std::string& response) { return response.size() < 12 ? "" : response.substr(9, 3); }

std::string header_of(const std::string& response, const std::string& name) {
  std::size_t at = response.find("\r\n");
  while (at != std::string::npos && response.compare(at, 4, "\r\n\r\n") != 0) {
    const std::size_t end = response.find("\r\n", at + 2);
    const std::string line = response.substr(at + 2, end - at - 2);
    const std::size_t colon = line.find(": ");
    if (colon != std::string::npos && http::equals_ignoring_case(line.substr(0, colon), name))
      return line.substr(colon + 2);
    at = end;
  }
  return "";
}

std::string body_of(const std::string& response) {
  const std::size_t end = response.find("\r\n\r\n");
  return end == std::string::npos ? "" : response.substr(end + 4);
}

}  // namespace rowferry::testing
