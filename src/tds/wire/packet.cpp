#include "tds/wire/packet.hpp"

#include <algorithm>

namespace rowferry::tds {

PacketHeader load_header(const std::uint8_t* from) noexcept {
  return {.type = from[0],
          .status = from[1],
          .length = load_be<std::uint16_t>(from + 2),
          .spid = load_be<std::uint16_t>(from + 4),
          .id = from[6],
          .window = from[7]};
}

void store_header(std::uint8_t* to, const PacketHeader& header) noexcept {
  to[0] = header.type;
  to[1] = header.status;
  store_be(to + 2, header.length);
  store_be(to + 4, header.spid);
  to[6] = header.id;
  to[7] = header.window;
}

bool PacketReader::fail(std::string_view why) noexcept {
  why_ = why;
  return false;
}

// Checks a complete header.
bool PacketReader::begin_packet() {
  header_ = load_header(header_bytes_);
  const bool last = (header_.status & status_eom) != 0;
  if (header_.length < packet_header_bytes) return fail("a packet is shorter than its header");
  if (header_.length > limit_) return fail("a packet is larger than the negotiated size");
  if (!last && header_.length == packet_header_bytes) return fail("an empty packet does not end its message");
  if (packets_ == 0) {
    first_ = header_;
  } else if (header_.type == static_cast<std::uint8_t>(PacketType::attention) && last) {
    interrupted_ = true;
  } else if (header_.type != first_.type) {
    return fail("the packet type changes within a message");
  }
  if (exact_ != 0 && (header_.length > exact_ || (!last && header_.length != exact_))) {
    return fail("a packet does not have the negotiated size");
  }
  ++packets_;
  packet_left_ = header_.length - packet_header_bytes;
  return true;
}

void PacketReader::take_payload(ByteView bytes) {
  // The consumed front is reclaimed only when that is cheaper than growing.
  if (at_ != 0 && (at_ == payload_.size() || at_ >= payload_.size() / 2)) {
    payload_.consume(at_);
    at_ = 0;
  }
  payload_.append(bytes);
}

std::size_t PacketReader::feed(ByteView bytes) {
  std::size_t taken = 0;
  while (!failed() && !ended_) {
    if (header_have_ < packet_header_bytes) {
      const std::size_t n = std::min(packet_header_bytes - header_have_, bytes.size() - taken);
      if (n == 0) break;
      std::copy_n(bytes.data() + taken, n, header_bytes_ + header_have_);
      header_have_ += n;
      taken += n;
      if (header_have_ < packet_header_bytes) break;
      if (!begin_packet()) break;
    }
    const std::size_t n = std::min(packet_left_, bytes.size() - taken);
    if (n == 0 && packet_left_ != 0) break;
    take_payload(bytes.subspan(taken, n));
    taken += n;
    packet_left_ -= n;
    if (packet_left_ != 0) break;
    header_have_ = 0;
    if ((header_.status & status_eom) != 0) {
      ended_ = true;
      ignored_ = (header_.status & status_ignore) != 0;
    }
  }
  return taken;
}

void PacketReader::consume(std::size_t n) noexcept {
  assert(n <= payload_.size() - at_);
  at_ += n;
}

void PacketReader::next_message() noexcept {
  assert(ended_);
  ended_ = false;
  ignored_ = false;
  interrupted_ = false;
  packets_ = 0;
  payload_.clear();
  at_ = 0;
}

void PacketWriter::set_packet_bytes(std::size_t packet_bytes) noexcept {
  assert(!open_ && packet_bytes > packet_header_bytes && packet_bytes <= packet_bytes_max);
  packet_bytes_ = packet_bytes;
}

void PacketWriter::begin(PacketType type, std::uint8_t first_status) {
  assert(!open_);
  type_ = type;
  first_status_ = first_status;
  id_ = 1;
  closed_ = 0;
  open_ = true;
  open_packet();
}

void PacketWriter::open_packet() {
  packet_at_ = out_.size();
  out_.extend(packet_header_bytes);
}

void PacketWriter::close_packet(std::uint8_t status) noexcept {
  const auto length = static_cast<std::uint16_t>(out_.size() - packet_at_);
  if (closed_ == 0) status |= first_status_;
  store_header(out_.data() + packet_at_, {.type = static_cast<std::uint8_t>(type_),
                                          .status = status,
                                          .length = length,
                                          .spid = spid_,
                                          .id = id_++,
                                          .window = 0});
  ++closed_;
  packet_at_ = out_.size();
}

void PacketWriter::write(ByteView payload) {
  assert(open_);
  while (!payload.empty()) {
    const std::size_t room = packet_bytes_ - (out_.size() - packet_at_);
    if (room == 0) {
      close_packet(status_normal);
      open_packet();
      continue;
    }
    const std::size_t n = std::min(room, payload.size());
    out_.append(payload.first(n));
    payload = payload.subspan(n);
  }
}

void PacketWriter::finish(std::uint8_t extra) {
  assert(open_);
  close_packet(static_cast<std::uint8_t>(status_eom | extra));
  open_ = false;
}

void PacketWriter::drop_ready() noexcept {
  out_.consume(packet_at_);
  packet_at_ = 0;
}

void PacketWriter::wipe() noexcept {
  assert(!open_);
  volatile std::uint8_t* at = out_.data();
  for (std::size_t i = 0; i < out_.capacity(); ++i) at[i] = 0;
  out_.clear();
  packet_at_ = 0;
}

void PacketWriter::drop_open_payload() noexcept {
  assert(open_);
  out_.resize(packet_at_ + packet_header_bytes);
}

}  // namespace rowferry::tds
