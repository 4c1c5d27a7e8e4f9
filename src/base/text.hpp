// Text: UTF-8 inside, UTF-16LE and code pages on the wire. Nothing here allocates per value.
//
// Batches hold well-formed UTF-8 (Unicode 15, table 3-7); decoders prove it with find_invalid_utf8() or produce it
// themselves. Functions that take `utf8` expect it; malformed input gives U+FFFD, never a read out of bounds.
// Offsets count bytes of the input; npos = nothing found.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/bytes.hpp"

namespace rowferry::text {

inline constexpr std::size_t npos = static_cast<std::size_t>(-1);

// --- UTF-8

// Offset of the first byte that begins no well-formed sequence (overlong forms and surrogates are malformed).
std::size_t find_invalid_utf8(ByteView bytes) noexcept;
inline bool valid_utf8(std::string_view text) noexcept { return find_invalid_utf8(as_bytes(text)) == npos; }

std::size_t code_points(std::string_view utf8) noexcept;
std::size_t utf16_units(std::string_view utf8) noexcept;

// The code point at `at` < utf8.size(), and moves `at` behind it. Malformed: U+FFFD, and behind one byte.
char32_t next_code_point(std::string_view utf8, std::size_t& at) noexcept;
// Appends a code point as UTF-8; surrogates and what is above U+10FFFF as U+FFFD.
void append_code_point(std::string& out, char32_t c);

// Equal without case: ASCII, Latin-1, Latin Extended-A, Greek and Cyrillic letters; other characters as they are.
bool same_without_case(std::string_view a, std::string_view b) noexcept;

// The longest prefix of at most n code points, UTF-16 units, bytes; never cut inside a character.
std::string_view cut_code_points(std::string_view utf8, std::size_t n) noexcept;
std::string_view cut_utf16_units(std::string_view utf8, std::size_t n) noexcept;
std::string_view cut_bytes(std::string_view utf8, std::size_t n) noexcept;

// --- UTF-16LE

// `to` has room for 2 * utf8.size() bytes. Returns the bytes written: twice the units.
std::size_t write_utf16le(std::uint8_t* to, std::string_view utf8) noexcept;
void append_utf16le(ByteBuffer& out, std::string_view utf8);

// Appends as UTF-8. Returns the offset of the first unpaired surrogate (or of an odd last byte); `out` then is as it
// was before.
std::size_t append_utf8(ByteBuffer& out, ByteView utf16le);
// The same, writing U+FFFD for each of them. Returns how many there were.
std::size_t append_utf8_lenient(ByteBuffer& out, ByteView utf16le);
std::string to_utf8(ByteView utf16le);  // lenient; for names and messages
std::string to_utf16le(std::string_view utf8);

// --- code pages

// One Windows code page: 437, 850, 874, 932, 936, 949, 950, 1250 to 1258, 65001 (UTF-8).
// Decodes by Windows's tables, with the bytes that a page leaves undefined mapped as Windows does (C1 controls, private
// use) so that any stored byte comes back; encodes exactly those characters that decode to themselves (no "?" and no
// look-alikes: what is not in the page is for the caller to refuse or replace). Tables live as long as the process.
class CodePage {
 public:
  // Error(unsupported, "code_page_unknown").
  static const CodePage& get(std::uint16_t number);
  static bool known(std::uint16_t number) noexcept;

  CodePage(const CodePage&) = delete;
  CodePage& operator=(const CodePage&) = delete;
  ~CodePage();

  std::uint16_t number() const noexcept { return number_; }
  bool utf8() const noexcept { return number_ == 65001; }
  // Bytes that one UTF-16 unit of text may need at most: 1, 2 (932, 936, 949, 950) or 3 (UTF-8).
  std::size_t bytes_per_unit_max() const noexcept;

  // Appends the page's bytes. Returns the offset in `utf8` of the first character that is not in the page; `out` then
  // is as it was before.
  std::size_t encode(ByteBuffer& out, std::string_view utf8) const;
  std::size_t find_unencodable(std::string_view utf8) const noexcept;
  bool encodable(char32_t c) const noexcept;
  // Bytes after encoding; npos when something is not in the page.
  std::size_t encoded_length(std::string_view utf8) const noexcept;
  // The longest prefix that encodes to at most n bytes; what is not in the page counts as one byte.
  std::string_view cut_encoded(std::string_view utf8, std::size_t n) const noexcept;

  // Appends as UTF-8. Returns the offset of the first byte that is not in the page; `out` then is as it was before.
  std::size_t decode(ByteBuffer& out, ByteView bytes) const;
  // The same, writing U+FFFD for each. Returns how many there were.
  std::size_t decode_lenient(ByteBuffer& out, ByteView bytes) const;

 private:
  struct Tables;
  explicit CodePage(std::uint16_t number);
  std::uint32_t code(char32_t c) const noexcept;
  std::size_t decode_impl(ByteBuffer& out, ByteView bytes, bool lenient) const;

  std::uint16_t number_;
  std::unique_ptr<Tables> tables_;  // null for UTF-8
};

}  // namespace rowferry::text
