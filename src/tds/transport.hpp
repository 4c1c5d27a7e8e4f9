// Packets over a stream: sends what a PacketWriter has framed, fills a PacketReader, puts TLS beneath when asked.
//
// Lifecycle: made over a connected stream; start_tls() at most once, before LOGIN7. One reader and one writer at a
// time.
#pragma once

#include <memory>
#include <string>

#include "net/stream.hpp"
#include "net/tls.hpp"
#include "tds/wire/packet.hpp"

namespace rowferry::tds {

// The TLS handshake of TDS 7.x travels in packets of type 0x12; afterwards TLS records lie on the stream as they are
// (MS-TDS 3.2.5.3). Borrows the inner stream.
class HandshakeStream final : public net::Stream {
 public:
  explicit HandshakeStream(net::Stream& inner) : inner_(inner) {}
  // The handshake is over.
  void pass_through() noexcept { wrapped_ = false; }
  // Bytes that were read from the inner stream and not handed on.
  ByteBuffer take_unread() noexcept { return std::move(unread_); }

  async::Task<std::size_t> read_some(std::span<std::uint8_t> into) override;
  async::Task<void> write_all(ByteView bytes) override;
  std::optional<std::size_t> try_read(std::span<std::uint8_t> into) override;
  async::Task<void> shutdown() override { return inner_.shutdown(); }
  void close() noexcept override { inner_.close(); }

 private:
  std::optional<std::size_t> take(std::span<std::uint8_t> into);

  net::Stream& inner_;
  bool wrapped_ = true;
  ByteBuffer unread_;
  std::size_t packet_left_ = 0;
};

class Transport {
 public:
  Transport(net::Loop& loop, std::unique_ptr<net::Stream> stream);
  ~Transport();
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  net::Loop& loop() noexcept { return loop_; }
  PacketWriter& writer() noexcept { return writer_; }
  PacketReader& reader() noexcept { return reader_; }

  // Sends the writer's ready packets. A packet is one TLS record. After a failure or cancellation: broken().
  async::Task<void> flush();
  // Brings at least one byte more into the reader: what lay behind the last message first. Returns false at the end of
  // the stream. Throws Error(connection, "protocol") on packets that are none. Loses nothing when cancelled.
  async::Task<bool> fill();
  // True when bytes for the reader are there without waiting; they are fed to it.
  bool fill_now();

  // The handshake within 0x12 packets; then the stream is TLS.
  async::Task<void> start_tls(net::TlsContext context, std::string server_name);
  // Sends the first ready packet through TLS, the rest as plain bytes, and TLS is gone (encryption of the login only,
  // MS-TDS 3.2.5.3).
  async::Task<void> flush_first_then_stop_tls();
  bool tls() const noexcept { return tls_ != nullptr; }

  // Closed, ended by the peer, or cut within a write: of no more use.
  bool broken() const noexcept { return broken_ || writing_; }
  void close() noexcept;
  std::uint64_t bytes_sent() const noexcept { return bytes_sent_; }
  std::uint64_t bytes_received() const noexcept { return bytes_received_; }

 private:
  bool feed(std::size_t got);
  bool feed_left();
  async::Task<void> send(ByteView bytes, std::size_t step);
  void stop_tls();

  net::Loop& loop_;
  std::unique_ptr<net::Stream> socket_;
  std::unique_ptr<HandshakeStream> handshake_;
  std::unique_ptr<net::TlsStream> tls_;
  net::Stream* stream_;
  PacketWriter writer_;
  PacketReader reader_;
  std::unique_ptr<std::uint8_t[]> inbox_;  // allocated at the first read
  std::size_t inbox_at_ = 0;               // bytes [at, end) wait for the next message
  std::size_t inbox_end_ = 0;
  bool broken_ = false;
  bool writing_ = false;  // stays true when a write was cut short: half a packet cannot be taken back
  std::uint64_t bytes_sent_ = 0;
  std::uint64_t bytes_received_ = 0;
};

// "the server's bytes are not TDS: <why>", Error(connection, "protocol").
Error protocol_error(std::string_view why);

}  // namespace rowferry::tds
