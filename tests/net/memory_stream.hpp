// Two streams joined in memory: what one writes the other reads. For tests without sockets.
#pragma once

#include <algorithm>
#include <deque>

#include "net/stream.hpp"

namespace rowferry::testing {

class MemoryStream final : public net::Stream {
 public:
  MemoryStream() = default;
  MemoryStream(const MemoryStream&) = delete;
  MemoryStream& operator=(const MemoryStream&) = delete;
  // The other end may go on: it reads the end of the stream, and its writes fail.
  ~MemoryStream() override {
    if (peer_ == nullptr) return;
    peer_->end();
    peer_->peer_ = nullptr;
  }

  static void join(MemoryStream& a, MemoryStream& b) {
    a.peer_ = &b;
    b.peer_ = &a;
  }

  async::Task<std::size_t> read_some(std::span<std::uint8_t> into) override {
    while (true) {
      if (const auto got = try_read(into)) co_return *got;
      arrived_.reset();
      co_await arrived_.wait();
    }
  }
  std::optional<std::size_t> try_read(std::span<std::uint8_t> into) override {
    if (inbox_.empty()) return ended_ ? std::optional<std::size_t>(0) : std::nullopt;
    const std::size_t n = std::min({into.size(), inbox_.size(), read_at_most});
    std::copy_n(inbox_.begin(), n, into.begin());
    inbox_.erase(inbox_.begin(), inbox_.begin() + static_cast<std::ptrdiff_t>(n));
    return n;
  }
  async::Task<void> write_all(ByteView bytes) override {
    if (stuck) co_await never_.wait();
    if (peer_ == nullptr) throw Error(Category::connection, "connection_lost", "the other end is gone");
    writes.emplace_back(bytes.begin(), bytes.end());
    peer_->inbox_.insert(peer_->inbox_.end(), bytes.begin(), bytes.end());
    peer_->arrived_.set();
    co_await async::yield();
  }
  async::Task<void> shutdown() override {
    close();
    co_return;
  }
  void close() noexcept override {
    if (peer_ != nullptr) peer_->end();
  }

  std::size_t read_at_most = SIZE_MAX;              // bytes that one read gives
  bool stuck = false;                               // writes wait for ever
  std::vector<std::vector<std::uint8_t>> writes{};  // what each write_all took

 private:
  void end() {
    ended_ = true;
    arrived_.set();
  }
  MemoryStream* peer_ = nullptr;
  std::deque<std::uint8_t> inbox_;
  bool ended_ = false;
  async::Event arrived_;
  async::Event never_;
};

}  // namespace rowferry::testing
