#include "tds/wire/packet.hpp"

#include <criterion/criterion.h>

#include "tests/support/hex.hpp"

using namespace rowferry;
using namespace rowferry::tds;
using rowferry::test::from_hex;
using rowferry::test::to_hex;

namespace {

// Frames `size` bytes of payload, written in pieces of `step`.
std::string framed(std::size_t packet_bytes, std::size_t size, std::size_t step, std::uint8_t first_status = 0) {
  PacketWriter writer(packet_bytes);
  writer.begin(PacketType::bulk, first_status);
  std::string payload;
  for (std::size_t i = 0; i < size; ++i) payload.push_back(static_cast<char>(i));
  for (std::size_t at = 0; at < size; at += step) writer.write(as_bytes(std::string_view(payload).substr(at, step)));
  writer.finish();
  return std::string(as_text(writer.ready()));
}

std::size_t count_packets(std::string_view wire) {
  std::size_t count = 0;
  for (std::size_t at = 0; at < wire.size(); ++count) {
    at += load_header(reinterpret_cast<const std::uint8_t*>(wire.data()) + at).length;
  }
  return count;
}

}  // namespace

Test(packet, header_is_big_endian_and_eight_bytes) {
  std::uint8_t bytes[8];
  store_header(bytes, {.type = 4, .status = 1, .length = 0x1234, .spid = 0x0102, .id = 7, .window = 0});
  cr_assert_eq(to_hex(ByteView(bytes)), "04 01 12 34 01 02 07 00");
  const PacketHeader back = load_header(bytes);
  cr_assert_eq(back.length, 0x1234);
  cr_assert_eq(back.spid, 0x0102);
}

Test(packet, the_exact_border_ends_with_a_full_packet) {
  // 512 - 8 = 504 bytes of payload fit; a message never ends without EOM nor with a packet that is not needed.
  const struct {
    std::size_t payload, packets, last;
  } cases[] = {{0, 1, 8}, {503, 1, 511}, {504, 1, 512}, {505, 2, 9}, {1008, 2, 512}, {1009, 3, 9}};
  for (const auto& c : cases) {
    for (const std::size_t step : {std::size_t{1}, std::size_t{7}, std::size_t{504}, std::size_t{4000}}) {
      const std::string wire = framed(512, c.payload, step);
      cr_assert_eq(count_packets(wire), c.packets, "payload %zu step %zu", c.payload, step);
      const std::size_t last_at = (c.packets - 1) * 512;
      const PacketHeader last = load_header(reinterpret_cast<const std::uint8_t*>(wire.data()) + last_at);
      cr_assert_eq(last.length, c.last, "payload %zu", c.payload);
      cr_assert_eq(last.status, status_eom);
      cr_assert_eq(wire.size(), last_at + c.last);
    }
  }
}

Test(packet, only_the_first_packet_carries_the_reset) {
  const std::string wire = framed(512, 600, 600, status_reset);
  cr_assert_eq(wire[1], status_reset);
  cr_assert_eq(wire[512 + 1], status_eom);
  cr_assert_eq(wire[512 + 6], 2, "packet ids count up");
}

Test(packet, writer_holds_back_a_full_packet_until_more_comes) {
  PacketWriter writer(512);
  writer.begin(PacketType::bulk);
  const std::string payload(504, 'x');
  writer.write(as_bytes(payload));
  cr_assert_eq(writer.ready().size(), 0u);
  writer.write(as_bytes("y"));
  cr_assert_eq(writer.ready().size(), 512u);
  writer.drop_ready();
  cr_assert_eq(writer.ready().size(), 0u);
  writer.drop_open_payload();
  writer.finish(status_ignore);
  cr_assert_eq(to_hex(writer.ready()), "07 03 00 08 00 00 02 00");
}

Test(packet, reader_gives_the_same_payload_however_the_bytes_come) {
  const std::string wire = framed(512, 1300, 1300) + framed(512, 10, 10);
  for (const std::size_t step : {std::size_t{1}, std::size_t{3}, std::size_t{511}, std::size_t{5000}}) {
    PacketReader reader;
    std::string first;
    std::string left = wire;
    while (!reader.message_ended()) {
      const std::size_t n = std::min(step, left.size());
      const std::size_t taken = reader.feed(as_bytes(std::string_view(left).substr(0, n)));
      left.erase(0, taken);
      first += as_text(reader.payload().first(reader.payload().size() / 2));
      reader.consume(reader.payload().size() / 2);
    }
    first += as_text(reader.payload());
    cr_assert_eq(first.size(), 1300u, "step %zu", step);
    for (std::size_t i = 0; i < first.size(); ++i) cr_assert_eq(first[i], static_cast<char>(i));
    cr_assert_eq(reader.packets(), 3u);
    reader.next_message();
    cr_assert_eq(reader.feed(as_bytes(left)), left.size());
    cr_assert(reader.message_ended());
    cr_assert_eq(reader.payload().size(), 10u);
  }
}

Test(packet, reader_refuses_what_cannot_be) {
  const struct {
    const char* wire;
    const char* why;
  } cases[] = {
      {"04 01 00 07 00 00 01 00", "shorter than its header"},
      {"04 00 00 08 00 00 01 00", "empty packet"},
      {"04 00 00 09 00 00 01 00 00 12 01 00 09 00 00 01 00 00", "type changes"},
      {"04 01 02 01 00 00 01 00", "larger than"},
  };
  for (const auto& c : cases) {
    PacketReader reader(512);
    reader.feed(as_bytes(from_hex(c.wire)));
    cr_assert(reader.failed(), "%s", c.wire);
    cr_assert_neq(reader.why().find(c.why), std::string_view::npos, "%s", std::string(reader.why()).c_str());
  }
}

Test(packet, an_empty_last_packet_is_legal) {
  PacketReader reader;
  reader.feed(as_bytes(from_hex("07 00 00 09 00 00 01 00 AA 07 01 00 08 00 00 02 00")));
  cr_assert(reader.message_ended());
  cr_assert_eq(reader.payload().size(), 1u);
}

Test(packet, exact_rule_refuses_a_short_middle_packet) {
  PacketReader reader;
  reader.set_exact(512);
  reader.feed(as_bytes(from_hex("07 00 00 09 00 00 01 00 AA")));
  cr_assert(reader.failed());
}

Test(packet, ignored_messages_say_so) {
  PacketReader reader;
  reader.feed(as_bytes(from_hex("07 03 00 08 00 00 01 00")));
  cr_assert(reader.message_ended());
  cr_assert(reader.ignored());
}
