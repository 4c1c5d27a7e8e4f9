#include "tds/wire/server_text.hpp"

#include "base/text.hpp"

namespace rowferry::tds::server {

void put_text_u8(ByteBuffer& out, std::string_view utf8) {
  const std::size_t at = out.size();
  out.push(0);
  text::append_utf16le(out, text::cut_utf16_units(utf8, 0xFF));
  out.data()[at] = static_cast<std::uint8_t>((out.size() - at - 1) / 2);
}

void put_text_u16(ByteBuffer& out, std::string_view utf8) {
  const std::size_t at = out.size();
  out.put_le(std::uint16_t{0});
  text::append_utf16le(out, text::cut_utf16_units(utf8, 0xFFFF));
  store_le(out.data() + at, static_cast<std::uint16_t>((out.size() - at - 2) / 2));
}

std::size_t begin_token(ByteBuffer& out, std::uint8_t token) {
  out.push(token);
  out.put_le(std::uint16_t{0});
  return out.size() - 2;
}

void end_token(ByteBuffer& out, std::size_t length_at) noexcept {
  store_le(out.data() + length_at, static_cast<std::uint16_t>(out.size() - length_at - 2));
}

}  // namespace rowferry::tds::server
