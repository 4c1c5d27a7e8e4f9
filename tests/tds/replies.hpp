// Replies of a server, token by token, for scripts.
#pragma once

#include <fmt/format.h>

#include <string>

#include "base/text.hpp"
#include "tds/wire/packet.hpp"
#include "tests/support/hex.hpp"

namespace rowferry::test {

// Tokens as one message of type 4.
inline std::string reply(const std::string& tokens, std::size_t packet_bytes = 4096) {
  tds::PacketWriter writer(packet_bytes);
  writer.begin(tds::PacketType::tabular);
  writer.write(as_bytes(tokens));
  writer.finish();
  return std::string(as_text(writer.ready()));
}

template <class T>
std::string le(T value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}
inline std::string b_varchar(const std::string& text) {
  const std::string units = text::to_utf16le(text);
  return le(static_cast<std::uint8_t>(units.size() / 2)) + units;
}
inline std::string us_varchar(const std::string& text) {
  const std::string units = text::to_utf16le(text);
  return le(static_cast<std::uint16_t>(units.size() / 2)) + units;
}

inline std::string done(std::uint16_t status = 0, std::uint64_t rows = 0) {
  return "\xFD" + le(status) + le(std::uint16_t{0}) + le(rows);
}
inline std::string message(char token, std::int32_t number, std::uint8_t severity, const std::string& text) {
  const std::string body = le(number) + "\x01" + static_cast<char>(severity) + us_varchar(text) + b_varchar("SRV") +
                           b_varchar("proc") + le(std::int32_t{7});
  return token + le(static_cast<std::uint16_t>(body.size())) + body;
}
inline std::string error(std::int32_t number, const std::string& text, std::uint8_t severity = 16) {
  return message('\xAA', number, severity, text);
}
inline std::string info(std::int32_t number, const std::string& text) { return message('\xAB', number, 0, text); }
inline std::string env(std::uint8_t type, const std::string& values) {
  return "\xE3" + le(static_cast<std::uint16_t>(1 + values.size())) + static_cast<char>(type) + values;
}
inline std::string packet_size(std::size_t bytes) {
  return env(4, b_varchar(std::to_string(bytes)) + b_varchar("4096"));
}
inline std::string login_ack() {
  const std::string body =
      std::string("\x01") + from_hex("74 00 00 04") + b_varchar("Microsoft SQL Server") + from_hex("10 00 10 27");
  return "\xAD" + le(static_cast<std::uint16_t>(body.size())) + body;
}
inline std::string prelogin_reply(std::uint8_t encryption) {
  return reply(
      from_hex(fmt::format("00 00 1A 00 06 01 00 20 00 01 02 00 21 00 01 03 00 22 00 00 04 00 22 00 01 FF 10 00 "
                           "10 27 00 00 {:02X} 00 00",
                           encryption)));
}
inline std::string login_reply(std::size_t packet_bytes = 0) {
  return reply(env(1, b_varchar("dw") + b_varchar("master")) + env(7, from_hex("05 09 04 D0 00 34 00")) +
               info(5701, "Changed database context to 'dw'.") + login_ack() +
               (packet_bytes == 0 ? "" : packet_size(packet_bytes)) + from_hex("AE 0A 01 00 00 00 01 FF") + done());
}
// One int column "n".
inline std::string int_column() { return from_hex("81 01 00 00 00 00 00 08 00 38 01 6E 00"); }
inline std::string int_row(std::int32_t value) { return "\xD1" + le(value); }

}  // namespace rowferry::test
