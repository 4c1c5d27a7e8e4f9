// PacketChannel: TDS packets over one connection's stream, on the server's side; and the TLS that may lie between.
//
// Lifecycle: over a plain stream at first; start_tls() puts TLS on top, end_login_tls() takes it off again (encryption
// of the login only). One coroutine uses it: reads and writes never overlap but in wait_input(), which only reads.
#pragma once

#include <memory>
#include <optional>

#include "net/tls.hpp"
#include "tds/wire/packet.hpp"

namespace rowferry::sandbox {

// TLS of TDS 7.x (MS-TDS 2.2.6.5): the handshake's bytes travel as payload of packets of type 0x12, afterwards bare.
// Tells the wrapped bytes from bare ones by the packets' lengths alone: a TLS byte may look like a packet type.
class HandshakeWrap final : public net::Stream {
 public:
  explicit HandshakeWrap(net::Stream& inner) : inner_(inner) {}

  // Bytes that the inner stream has given already.
  void preload(ByteView bytes) { raw_.append(bytes); }
  void unwrap_no_more() noexcept { wrapping_ = false; }

  async::Task<std::size_t> read_some(std::span<std::uint8_t> into) override;
  async::Task<void> write_all(ByteView bytes) override;
  std::optional<std::size_t> try_read(std::span<std::uint8_t> into) override;
  async::Task<void> shutdown() override { co_await inner_.shutdown(); }
  void close() noexcept override { inner_.close(); }

 private:
  std::size_t take(std::span<std::uint8_t> into) noexcept;

  net::Stream& inner_;
  bool wrapping_ = true;
  std::size_t packet_left_ = 0;
  ByteBuffer raw_;
};

class PacketChannel {
 public:
  explicit PacketChannel(std::unique_ptr<net::Stream> stream);

  tds::PacketReader& reader() noexcept { return reader_; }
  tds::PacketWriter& writer() noexcept { return writer_; }

  // Gives the reader more bytes: what lies here already, else what the stream gives. False at the peer's end.
  async::Task<bool> read();
  // As read(), but only what is there without waiting. nullopt: nothing.
  std::optional<bool> try_read();
  // Until the reader has a whole message, a failure, or `bytes_max` of payload. False at the peer's end.
  async::Task<bool> read_message(std::size_t bytes_max);
  // The reader's message is done with: the next one begins, with bytes that have come already.
  void next_message();

  // Sends what the writer has closed. With TLS each packet goes out as a record of its own.
  async::Task<void> flush();
  // Closes the connection behind `bytes` of the answers to come (a fault); nullopt: never.
  void cut_writes_behind(std::optional<std::uint64_t> bytes) noexcept { cut_after_ = bytes; }

  async::Task<void> start_tls(net::TlsContext context);
  // Reads exactly one packet through TLS, then goes on in plain (MS-TDS 3.3.5.3).
  async::Task<bool> read_login_packet_and_end_tls();
  bool encrypted() const noexcept { return tls_ != nullptr; }

  // Nothing more will be written; the peer hears of it.
  async::Task<void> shutdown() { return stream_->shutdown(); }
  void close() noexcept;
  bool closed() const noexcept { return closed_; }

 private:
  void feed();
  async::Task<bool> read_exactly(std::uint8_t* into, std::size_t n);
  async::Task<void> send(ByteView bytes);

  std::unique_ptr<net::Stream> base_;
  std::unique_ptr<HandshakeWrap> wrap_;
  std::unique_ptr<net::TlsStream> tls_;
  net::Stream* stream_;
  tds::PacketReader reader_;
  tds::PacketWriter writer_;
  ByteBuffer input_;
  std::size_t input_at_ = 0;
  std::size_t input_end_ = 0;
  std::optional<std::uint64_t> cut_after_;
  bool closed_ = false;
};

}  // namespace rowferry::sandbox
