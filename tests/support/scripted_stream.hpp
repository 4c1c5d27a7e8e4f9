// A peer that follows a script, on a stream in memory: TDS conversations without sockets.
//
// The Script is shared with the stream that a session owns, so that a test can look at it afterwards. It speaks TDS
// only as far as packets: a step waits for a whole message of the client, or for some packets of one, then bytes are
// sent.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "net/stream.hpp"
#include "tds/wire/packet.hpp"

namespace rowferry::test {

struct ClientMessage {
  tds::PacketType type{};
  std::uint8_t first_status = 0;
  std::uint8_t last_status = 0;
  std::string payload;
  std::vector<std::size_t> packets;  // their lengths, header included
};

class Script {
 public:
  // The client's next message must be of this type.
  Script& expect(tds::PacketType type) {
    steps_.push_back({.kind = Step::whole, .type = type});
    return *this;
  }
  // So many packets of a message of this type, which may go on.
  Script& expect_packets(tds::PacketType type, std::size_t count) {
    steps_.push_back({.kind = Step::some, .type = type, .count = count});
    return *this;
  }
  Script& send(std::string bytes) {
    steps_.push_back({.kind = Step::answer, .bytes = std::move(bytes)});
    return *this;
  }
  Script& close() {
    steps_.push_back({.kind = Step::hang_up});
    return *this;
  }
  // From here on the peer takes no bytes: writes wait for ever.
  Script& stop_reading() {
    steps_.push_back({.kind = Step::stop});
    return *this;
  }

  std::size_t read_at_most = SIZE_MAX;  // bytes that one read gives
  std::vector<ClientMessage> messages;  // that have ended
  std::vector<std::string> failures;    // what the client did against the script
  bool closed_by_client = false;
  bool finished() const noexcept { return at_ == steps_.size(); }
  // Empty when the conversation went as written.
  std::string verdict() const {
    if (!failures.empty()) return failures.front();
    return finished() ? "" : fmt::format("the script stands at step {} of {}", at_ + 1, steps_.size());
  }

  // Used by the stream.
  void start() { advance(); }
  void written(std::string_view bytes) {
    inbox_ += bytes;
    while (inbox_.size() >= tds::packet_header_bytes) {
      const auto header = tds::load_header(reinterpret_cast<const std::uint8_t*>(inbox_.data()));
      if (header.length < tds::packet_header_bytes) {
        failures.emplace_back("a packet shorter than its header");
        inbox_.clear();
        return;
      }
      if (inbox_.size() < header.length) return;
      packet(header, inbox_.substr(tds::packet_header_bytes, header.length - tds::packet_header_bytes));
      inbox_.erase(0, header.length);
    }
  }
  std::string outbox;
  bool ended = false;
  bool stopped = false;
  async::Event news;
  async::Event never;

 private:
  struct Step {
    enum Kind : std::uint8_t { whole, some, answer, hang_up, stop } kind = whole;
    tds::PacketType type{};
    std::size_t count = 0;
    std::string bytes{};
  };

  void packet(const tds::PacketHeader& header, const std::string& payload) {
    const auto type = static_cast<tds::PacketType>(header.type);
    if (open_.packets.empty()) {
      open_.type = type;
      open_.first_status = header.status;
    } else if (open_.type != type) {
      failures.push_back(
          fmt::format("type {:02x} within a message of type {:02x}", header.type, static_cast<int>(open_.type)));
    }
    open_.payload += payload;
    open_.packets.push_back(header.length);
    open_.last_status = header.status;
    const bool last = (header.status & tds::status_eom) != 0;
    if (at_ < steps_.size() && steps_[at_].kind == Step::some && steps_[at_].type == type &&
        open_.packets.size() >= steps_[at_].count) {
      ++at_;
      advance();
      if (last) {
        messages.push_back(std::exchange(open_, {}));
      }
      return;
    }
    if (!last) return;
    messages.push_back(std::exchange(open_, {}));
    if (at_ == steps_.size() || steps_[at_].kind != Step::whole || steps_[at_].type != type) {
      failures.push_back(fmt::format("a message of type {:02x} at step {}", header.type, at_ + 1));
      return;
    }
    ++at_;
    advance();
  }

  void advance() {
    for (; at_ < steps_.size(); ++at_) {
      const Step& step = steps_[at_];
      if (step.kind == Step::whole || step.kind == Step::some) return;
      if (step.kind == Step::answer) outbox += step.bytes;
      if (step.kind == Step::hang_up) ended = true;
      if (step.kind == Step::stop) stopped = true;
      news.set();
    }
  }

  std::vector<Step> steps_;
  std::size_t at_ = 0;
  std::string inbox_;
  ClientMessage open_;
};

class ScriptedStream final : public net::Stream {
 public:
  explicit ScriptedStream(std::shared_ptr<Script> script) : script_(std::move(script)) { script_->start(); }

  async::Task<std::size_t> read_some(std::span<std::uint8_t> into) override {
    while (true) {
      if (const auto got = try_read(into)) co_return *got;
      script_->news.reset();
      co_await script_->news.wait();
    }
  }
  std::optional<std::size_t> try_read(std::span<std::uint8_t> into) override {
    if (closed_) throw Error(Category::connection, "connection_lost", "the stream is closed");
    if (script_->outbox.empty()) return script_->ended ? std::optional<std::size_t>(0) : std::nullopt;
    const std::size_t n = std::min({into.size(), script_->outbox.size(), script_->read_at_most});
    std::copy_n(script_->outbox.begin(), n, into.begin());
    script_->outbox.erase(0, n);
    return n;
  }
  async::Task<void> write_all(ByteView bytes) override {
    if (closed_ || script_->ended) throw Error(Category::connection, "connection_lost", "broken pipe");
    if (script_->stopped) co_await script_->never.wait();
    script_->written(as_text(bytes));
    co_await async::yield();
  }
  async::Task<void> shutdown() override { co_return; }
  void close() noexcept override {
    closed_ = true;
    script_->closed_by_client = true;
  }

 private:
  std::shared_ptr<Script> script_;
  bool closed_ = false;
};

}  // namespace rowferry::test
