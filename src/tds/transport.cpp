#include "tds/transport.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/limits.hpp"

namespace rowferry::tds {

Error protocol_error(std::string_view why) {
  return Error(Category::connection, "protocol", fmt::format("the server's bytes are not as TDS says: {}", why));
}

// ---- the wrapped handshake ------------------------------------------------------------------------------------------

// Payload that is there already; nullopt: more must be read first.
std::optional<std::size_t> HandshakeStream::take(std::span<std::uint8_t> into) {
  while (wrapped_ && packet_left_ == 0) {
    if (unread_.size() < packet_header_bytes) return std::nullopt;
    const PacketHeader header = load_header(unread_.data());
    const auto type = static_cast<PacketType>(header.type);
    if ((type != PacketType::prelogin && type != PacketType::tabular) || header.length < packet_header_bytes) {
      throw protocol_error("a packet of the TLS handshake is expected");
    }
    packet_left_ = header.length - packet_header_bytes;
    unread_.consume(packet_header_bytes);
  }
  std::size_t n = std::min(unread_.size(), into.size());
  // What is left of the last wrapped packet still belongs to TLS when the handshake is over.
  if (wrapped_) n = std::min(n, packet_left_);
  if (n == 0) return std::nullopt;
  std::copy_n(unread_.data(), n, into.begin());
  unread_.consume(n);
  packet_left_ -= std::min(n, packet_left_);
  return n;
}

async::Task<std::size_t> HandshakeStream::read_some(std::span<std::uint8_t> into) {
  while (true) {
    if (const auto got = take(into)) co_return *got;
    if (!wrapped_) co_return co_await inner_.read_some(into);
    std::uint8_t room[packet_bytes_default];
    const std::size_t got = co_await inner_.read_some(room);
    if (got == 0) co_return 0;
    unread_.append(ByteView(room, got));
  }
}

std::optional<std::size_t> HandshakeStream::try_read(std::span<std::uint8_t> into) {
  while (true) {
    if (const auto got = take(into)) return got;
    if (!wrapped_) return inner_.try_read(into);
    std::uint8_t room[packet_bytes_default];
    const auto got = inner_.try_read(room);
    if (!got || *got == 0) return got;
    unread_.append(ByteView(room, *got));
  }
}

async::Task<void> HandshakeStream::write_all(ByteView bytes) {
  if (!wrapped_) {
    co_await inner_.write_all(bytes);
    co_return;
  }
  PacketWriter packets(packet_bytes_default);
  packets.begin(PacketType::prelogin);
  packets.write(bytes);
  packets.finish();
  co_await inner_.write_all(packets.ready());
}

// ---- packets --------------------------------------------------------------------------------------------------------

Transport::Transport(net::Loop& loop, std::unique_ptr<net::Stream> stream)
    : loop_(loop), socket_(std::move(stream)), stream_(socket_.get()) {}

Transport::~Transport() { close(); }

void Transport::close() noexcept {
  broken_ = true;
  socket_->close();
}

async::Task<void> Transport::send(ByteView bytes, std::size_t step) {
  if (broken()) throw Error(Category::connection, "connection_lost", "the connection to the server is closed");
  writing_ = true;
  bytes_sent_ += bytes.size();
  while (!bytes.empty()) {
    const std::size_t n = std::min(step, bytes.size());
    co_await stream_->write_all(bytes.first(n));
    bytes = bytes.subspan(n);
  }
  writing_ = false;
}

async::Task<void> Transport::flush() {
  const ByteView bytes = writer_.ready();
  co_await send(bytes, tls() ? writer_.packet_bytes() : bytes.size());
  writer_.drop_ready();
}

async::Task<void> Transport::flush_first_then_stop_tls() {
  const ByteView bytes = writer_.ready();
  const std::size_t first = std::min(bytes.size(), writer_.packet_bytes());
  co_await send(bytes.first(first), first);
  stop_tls();
  const ByteView rest = bytes.subspan(first);
  if (!rest.empty()) co_await send(rest, rest.size());
}

// Hands bytes that were read before to the reader. False: there are none, or the message has ended.
bool Transport::feed_left() {
  if (inbox_at_ == inbox_end_ || reader_.message_ended()) return false;
  inbox_at_ += reader_.feed(ByteView(inbox_.get() + inbox_at_, inbox_end_ - inbox_at_));
  if (reader_.failed()) {
    broken_ = true;
    throw protocol_error(reader_.why());
  }
  return true;
}

bool Transport::feed(std::size_t got) {
  inbox_at_ = 0;
  inbox_end_ = got;
  bytes_received_ += got;
  if (got == 0) broken_ = true;
  return feed_left();
}

async::Task<bool> Transport::fill() {
  if (feed_left()) co_return true;
  if (!inbox_) inbox_ = std::make_unique_for_overwrite<std::uint8_t[]>(limits::socket_read_bytes);
  const std::size_t got = co_await stream_->read_some({inbox_.get(), limits::socket_read_bytes});
  co_return feed(got);
}

bool Transport::fill_now() {
  if (feed_left()) return true;
  if (!inbox_) inbox_ = std::make_unique_for_overwrite<std::uint8_t[]>(limits::socket_read_bytes);
  const auto got = stream_->try_read({inbox_.get(), limits::socket_read_bytes});
  return got && feed(*got);
}

async::Task<void> Transport::start_tls(net::TlsContext context, std::string server_name) {
  handshake_ = std::make_unique<HandshakeStream>(*socket_);
  auto tls = std::make_unique<net::TlsStream>(std::move(context), *handshake_);
  co_await tls->handshake(std::move(server_name));
  handshake_->pass_through();
  tls_ = std::move(tls);
  stream_ = tls_.get();
}

void Transport::stop_tls() {
  const net::TlsStream::Released released = tls_->release();
  const ByteBuffer unread = handshake_->take_unread();
  stream_ = socket_.get();
  tls_.reset();
  handshake_.reset();
  if (!inbox_) inbox_ = std::make_unique_for_overwrite<std::uint8_t[]>(limits::socket_read_bytes);
  inbox_at_ = 0;
  inbox_end_ = 0;
  for (const ByteView bytes : {released.unread.view(), unread.view()}) {
    const std::size_t n = std::min(bytes.size(), limits::socket_read_bytes - inbox_end_);
    std::copy_n(bytes.data(), n, inbox_.get() + inbox_end_);
    inbox_end_ += n;
  }
}

}  // namespace rowferry::tds
