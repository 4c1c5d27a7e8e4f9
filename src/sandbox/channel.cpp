#include "sandbox/channel.hpp"

#include <algorithm>

#include "base/limits.hpp"

namespace rowferry::sandbox {

namespace {

Error broken(const char* why) { return Error(Category::connection, "protocol_violation", why); }

}  // namespace

// Gives what can be given of raw_: payload of the packet that is open, opening the next where its header is complete.
std::size_t HandshakeWrap::take(std::span<std::uint8_t> into) noexcept {
  if (!wrapping_ && packet_left_ == 0) {
    const std::size_t n = std::min(into.size(), raw_.size());
    std::copy_n(raw_.data(), n, into.data());
    raw_.consume(n);
    return n;
  }
  while (packet_left_ == 0 && raw_.size() >= tds::packet_header_bytes) {
    const tds::PacketHeader header = tds::load_header(raw_.data());
    raw_.consume(tds::packet_header_bytes);
    packet_left_ = header.length < tds::packet_header_bytes ? 0 : header.length - tds::packet_header_bytes;
  }
  const std::size_t n = std::min({into.size(), raw_.size(), packet_left_});
  std::copy_n(raw_.data(), n, into.data());
  raw_.consume(n);
  packet_left_ -= n;
  return n;
}

async::Task<std::size_t> HandshakeWrap::read_some(std::span<std::uint8_t> into) {
  while (true) {
    if (const std::size_t n = take(into); n != 0) co_return n;
    if (!wrapping_ && packet_left_ == 0) co_return co_await inner_.read_some(into);
    std::uint8_t chunk[tds::packet_bytes_default];
    const std::size_t got = co_await inner_.read_some(chunk);
    if (got == 0) co_return 0;
    raw_.append({chunk, got});
  }
}

std::optional<std::size_t> HandshakeWrap::try_read(std::span<std::uint8_t> into) {
  if (const std::size_t n = take(into); n != 0) return n;
  if (wrapping_) return std::nullopt;
  return inner_.try_read(into);
}

async::Task<void> HandshakeWrap::write_all(ByteView bytes) {
  if (!wrapping_) {
    co_await inner_.write_all(bytes);
    co_return;
  }
  tds::PacketWriter packets;
  packets.begin(tds::PacketType::prelogin);
  packets.write(bytes);
  packets.finish();
  co_await inner_.write_all(packets.ready());
}

PacketChannel::PacketChannel(std::unique_ptr<net::Stream> stream) : base_(std::move(stream)), stream_(base_.get()) {
  reader_.set_limit(tds::packet_bytes_default);
  input_.resize(limits::socket_read_bytes);
}

void PacketChannel::feed() {
  input_at_ += reader_.feed({input_.data() + input_at_, input_end_ - input_at_});
  if (input_at_ == input_end_) input_at_ = input_end_ = 0;
}

async::Task<bool> PacketChannel::read() {
  if (input_at_ == input_end_) {
    const std::size_t got = co_await stream_->read_some({input_.data(), input_.size()});
    if (got == 0) co_return false;
    input_at_ = 0;
    input_end_ = got;
  }
  feed();
  co_return true;
}

std::optional<bool> PacketChannel::try_read() {
  if (input_at_ == input_end_) {
    const auto got = stream_->try_read({input_.data(), input_.size()});
    if (!got) return std::nullopt;
    if (*got == 0) return false;
    input_at_ = 0;
    input_end_ = *got;
  }
  feed();
  return true;
}

async::Task<bool> PacketChannel::read_message(std::size_t bytes_max) {
  while (!reader_.message_ended() && !reader_.failed() && reader_.payload().size() <= bytes_max) {
    const bool more = co_await read();
    if (!more) co_return false;
  }
  co_return true;
}

void PacketChannel::next_message() {
  reader_.next_message();
  if (input_at_ != input_end_) feed();
}

async::Task<void> PacketChannel::send(ByteView bytes) {
  if (cut_after_) {
    const bool cut = bytes.size() >= *cut_after_;
    if (cut) bytes = bytes.first(static_cast<std::size_t>(*cut_after_));
    *cut_after_ -= bytes.size();
    co_await stream_->write_all(bytes);
    if (cut) {
      close();
      throw broken("cut by the fault plan");
    }
    co_return;
  }
  co_await stream_->write_all(bytes);
}

async::Task<void> PacketChannel::flush() {
  const ByteView ready = writer_.ready();
  if (!encrypted()) {
    if (!ready.empty()) co_await send(ready);
  } else {
    for (std::size_t at = 0; at < ready.size();) {
      const std::size_t n = tds::load_header(ready.data() + at).length;
      co_await send(ready.subspan(at, n));
      at += n;
    }
  }
  writer_.drop_ready();
}

async::Task<void> PacketChannel::start_tls(net::TlsContext context) {
  wrap_ = std::make_unique<HandshakeWrap>(*base_);
  wrap_->preload({input_.data() + input_at_, input_end_ - input_at_});
  input_at_ = input_end_ = 0;
  tls_ = std::make_unique<net::TlsStream>(std::move(context), *wrap_);
  co_await tls_->handshake();
  wrap_->unwrap_no_more();
  stream_ = tls_.get();
}

async::Task<bool> PacketChannel::read_exactly(std::uint8_t* into, std::size_t n) {
  while (n != 0) {
    const std::size_t got = co_await stream_->read_some({into, n});
    if (got == 0) co_return false;
    into += got;
    n -= got;
  }
  co_return true;
}

async::Task<bool> PacketChannel::read_login_packet_and_end_tls() {
  std::uint8_t packet[tds::packet_bytes_default];
  bool whole = co_await read_exactly(packet, tds::packet_header_bytes);
  if (!whole) co_return false;
  const std::size_t length = tds::load_header(packet).length;
  if (length < tds::packet_header_bytes || length > sizeof packet) throw broken("a login packet of impossible size");
  whole = co_await read_exactly(packet + tds::packet_header_bytes, length - tds::packet_header_bytes);
  if (!whole) co_return false;
  reader_.feed({packet, length});
  // The client encrypts this packet alone; bytes in its record behind it would be a violation, and are lost.
  net::TlsStream::Released released = tls_->release();
  tls_.reset();
  stream_ = wrap_.get();
  input_.clear();
  input_.resize(std::max(limits::socket_read_bytes, released.unread.size()));
  std::copy_n(released.unread.data(), released.unread.size(), input_.data());
  input_at_ = 0;
  input_end_ = released.unread.size();
  if (input_end_ != 0) feed();
  co_return true;
}

void PacketChannel::close() noexcept {
  if (closed_) return;
  closed_ = true;
  base_->close();
}

}  // namespace rowferry::sandbox
