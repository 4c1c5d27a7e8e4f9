// TDS packets (MS-TDS 2.2.3): the header, a reader that strips it, a writer that cuts messages into packets.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/bytes.hpp"

namespace rowferry::tds {

enum class PacketType : std::uint8_t {
  sql_batch = 0x01,
  pre_tds7_login = 0x02,
  rpc = 0x03,
  tabular = 0x04,  // every reply of a server
  attention = 0x06,
  bulk = 0x07,
  fedauth_token = 0x08,
  transaction_manager = 0x0E,
  login7 = 0x10,
  sspi = 0x11,
  prelogin = 0x12,  // also wraps the TLS handshake
};

enum PacketStatus : std::uint8_t {
  status_normal = 0x00,
  status_eom = 0x01,     // last packet of the message
  status_ignore = 0x02,  // client only, with status_eom: the server drops the message
  status_reset = 0x08,
  status_reset_keep_transaction = 0x10,
};

inline constexpr std::size_t packet_header_bytes = 8;
inline constexpr std::size_t packet_bytes_min = 512;       // of a negotiated size
inline constexpr std::size_t packet_bytes_default = 4096;  // and the maximum until login has ended
inline constexpr std::size_t packet_bytes_max = 32767;
inline constexpr std::size_t packet_bytes_max_tls = 16383;  // a packet must fit one TLS record

struct PacketHeader {
  std::uint8_t type = 0;
  std::uint8_t status = 0;
  std::uint16_t length = 0;  // whole packet, header included
  std::uint16_t spid = 0;
  std::uint8_t id = 0;
  std::uint8_t window = 0;
};

// `from` and `to` point at packet_header_bytes bytes.
PacketHeader load_header(const std::uint8_t* from) noexcept;
void store_header(std::uint8_t* to, const PacketHeader& header) noexcept;

// Takes bytes as the socket gives them and keeps the payload of one message, contiguous and without packet headers.
//
// Lifecycle: feed() until message_ended(), consuming payload() meanwhile or at the end; next_message() begins anew.
// feed() never takes bytes behind the end of a message: the caller keeps them for the next.
class PacketReader {
 public:
  // Packets larger than this are malformed.
  explicit PacketReader(std::size_t packet_bytes_limit = packet_bytes_max) : limit_(packet_bytes_limit) {}

  void set_limit(std::size_t packet_bytes_limit) noexcept { limit_ = packet_bytes_limit; }
  // Server side, after login: a packet that is not its message's last must be exactly `packet_bytes` long, the last at
  // most (MS-TDS 2.2.3.1.3). 0 switches the rule off.
  void set_exact(std::size_t packet_bytes) noexcept { exact_ = packet_bytes; }

  // Returns how many bytes were taken: all, unless the message has ended or failed().
  std::size_t feed(ByteView bytes);

  bool failed() const noexcept { return !why_.empty(); }
  std::string_view why() const noexcept { return why_; }

  bool message_started() const noexcept { return packets_ != 0; }  // at least one header is complete
  bool message_ended() const noexcept { return ended_; }
  // Valid once message_started().
  PacketType type() const noexcept { return static_cast<PacketType>(first_.type); }
  std::uint8_t first_status() const noexcept { return first_.status; }
  std::uint16_t spid() const noexcept { return first_.spid; }
  bool ignored() const noexcept { return ignored_; }  // the last packet carried status_ignore
  // The message was ended by an attention packet between two of its packets (MS-TDS 2.2.1.7).
  bool interrupted() const noexcept { return interrupted_; }
  std::size_t packets() const noexcept { return packets_; }

  // What has arrived and was not consumed; valid until the next feed() or consume().
  ByteView payload() const noexcept { return payload_.view().subspan(at_); }
  void consume(std::size_t n) noexcept;
  // Forgets what is left of an ended message.
  void next_message() noexcept;

 private:
  bool begin_packet();
  bool fail(std::string_view why) noexcept;
  void take_payload(ByteView bytes);

  std::size_t limit_;
  std::size_t exact_ = 0;
  std::uint8_t header_bytes_[packet_header_bytes] = {};
  std::size_t header_have_ = 0;  // 8: within a packet's payload
  std::size_t packet_left_ = 0;
  PacketHeader header_;
  PacketHeader first_;
  std::size_t packets_ = 0;
  bool ended_ = false;
  bool ignored_ = false;
  bool interrupted_ = false;
  std::string_view why_;
  ByteBuffer payload_;
  std::size_t at_ = 0;
};

// Cuts messages into packets. A full packet is closed only when a further byte of its message comes, so that the last
// one, full or not, carries EOM and no message needs an empty packet at its end.
//
// Lifecycle: begin(), write() ..., finish(); ready() may be sent and dropped at any time between.
class PacketWriter {
 public:
  explicit PacketWriter(std::size_t packet_bytes = packet_bytes_default) : packet_bytes_(packet_bytes) {}

  // Only between messages.
  void set_packet_bytes(std::size_t packet_bytes) noexcept;
  std::size_t packet_bytes() const noexcept { return packet_bytes_; }
  void set_spid(std::uint16_t spid) noexcept { spid_ = spid; }

  // `first_status`: status_reset or status_reset_keep_transaction, on the message's first packet.
  void begin(PacketType type, std::uint8_t first_status = status_normal);
  void write(ByteView payload);
  // Ends the message; `extra` may be status_ignore.
  void finish(std::uint8_t extra = status_normal);
  bool open() const noexcept { return open_; }
  // Packets of the current message that were closed so far.
  std::size_t packets_closed() const noexcept { return closed_; }

  // Whole packets for the wire: each packet_bytes() long, but for the last of a message.
  ByteView ready() const noexcept { return {out_.data(), packet_at_}; }
  void drop_ready() noexcept;
  // Overwrites what ready() has held; for passwords.
  void wipe() noexcept;
  // Forgets the packet that is being filled, closed ones stay ready. The message goes on with an empty packet.
  void drop_open_payload() noexcept;

 private:
  void open_packet();
  void close_packet(std::uint8_t status) noexcept;

  std::size_t packet_bytes_;
  std::uint16_t spid_ = 0;
  PacketType type_ = PacketType::sql_batch;
  std::uint8_t first_status_ = 0;
  std::uint8_t id_ = 0;
  std::size_t closed_ = 0;
  bool open_ = false;
  ByteBuffer out_;
  std::size_t packet_at_ = 0;  // where the open packet begins in out_; behind everything that is ready
};

}  // namespace rowferry::tds
