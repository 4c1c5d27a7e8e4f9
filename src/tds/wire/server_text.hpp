// Small pieces that the server's token writers share: counted UTF-16 text, tokens with a length.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/bytes.hpp"

namespace rowferry::tds::server {

// UTF-16LE behind a one-byte (two-byte) count of units, cut at a character border where the count ends: texts that came
// from a client are echoed in messages and may be longer than a token can say.
void put_text_u8(ByteBuffer& out, std::string_view utf8);
void put_text_u16(ByteBuffer& out, std::string_view utf8);

// A token with a two-byte length: begin gives the place of the length, end fills it in.
std::size_t begin_token(ByteBuffer& out, std::uint8_t token);
void end_token(ByteBuffer& out, std::size_t length_at) noexcept;

}  // namespace rowferry::tds::server
