// Bytes as people write them in tests: hex digits, blanks ignored.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "base/bytes.hpp"

namespace rowferry::test {

inline int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  throw std::invalid_argument("not a hex digit");
}

// The bytes in a string: cheap to compare, to join, to print.
inline std::string from_hex(std::string_view text) {
  std::string bytes;
  int high = -1;
  for (const char c : text) {
    if (c == ' ' || c == '\n') continue;
    if (high < 0) {
      high = hex_digit(c);
    } else {
      bytes.push_back(static_cast<char>(high * 16 + hex_digit(c)));
      high = -1;
    }
  }
  if (high >= 0) throw std::invalid_argument("an odd number of hex digits");
  return bytes;
}

inline std::string to_hex(ByteView bytes) {
  static constexpr char digits[] = "0123456789ABCDEF";
  std::string text;
  for (const std::uint8_t byte : bytes) {
    if (!text.empty()) text += ' ';
    text += digits[byte >> 4U];
    text += digits[byte & 15U];
  }
  return text;
}
inline std::string to_hex(std::string_view bytes) { return to_hex(as_bytes(bytes)); }

}  // namespace rowferry::test
