// Connection: one client of a Server, from accept to close. Internal to src/http.
#pragma once

#include <chrono>

#include "http/server.hpp"

namespace rowferry::http {

class Connection : public async::ListNode {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Stop : std::uint8_t { none, deadline, evicted, stopping };

  Connection(Server& server, std::unique_ptr<net::TcpStream> stream);

  // The whole life of the connection; throws nothing.
  static async::Task<void> run(Server* server, std::unique_ptr<net::TcpStream> stream);

  Clock::time_point deadline() const noexcept { return deadline_; }
  // Ends the wait that it is in (it is in one of the server's lists).
  void interrupt(Stop why) noexcept;

  async::Task<std::size_t> read_body(std::span<std::uint8_t> into);
  async::Task<std::string> collect_body();

 private:
  async::Task<void> talk();
  async::Task<bool> read_head();
  async::Task<bool> answer();
  async::Task<Response> handle();
  async::Task<void> refuse(Fault fault);
  async::Task<void> send(const Response& response, bool with_body, bool keep_alive);
  async::Task<void> write(std::string_view text);
  async::Task<void> linger();
  async::Task<bool> next_piece();
  // Bytes read, 0 at the peer's end, nullopt when interrupted (stop_ says why). The buffer is empty before.
  async::Task<std::optional<std::size_t>> fill(bool idle, Clock::time_point deadline);
  ByteView buffered() const noexcept { return {buffer_.get() + begin_, end_ - begin_}; }

  Server& server_;
  std::unique_ptr<net::Stream> stream_;
  RequestParser parser_;
  std::unique_ptr<std::uint8_t[]> buffer_;
  std::size_t capacity_ = 0;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;

  async::CancelSource* waiting_ = nullptr;
  Clock::time_point deadline_{};
  Stop stop_ = Stop::none;

  ByteView piece_;  // of the body, read but not taken yet; lies in the buffer
  bool body_complete_ = false;
  bool continue_sent_ = false;
  Clock::time_point body_began_{};
};

}  // namespace rowferry::http
