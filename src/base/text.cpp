#include "base/text.hpp"

#include <emmintrin.h>
#include <simdjson.h>

namespace rowferry::text {

namespace {

constexpr char32_t replacement = 0xFFFD;

bool continues(std::uint8_t byte) noexcept { return (byte & 0xC0U) == 0x80U; }

// Length of the well-formed sequence at `at`, 0 when there is none (Unicode 15, table 3-7).
std::size_t sequence_length(const std::uint8_t* at, std::size_t left) noexcept {
  const std::uint8_t b = at[0];
  if (b < 0x80) return 1;
  if (b < 0xC2 || b > 0xF4) return 0;
  const std::size_t length = b < 0xE0 ? 2 : b < 0xF0 ? 3 : 4;
  if (left < length) return 0;
  const std::uint8_t low = b == 0xE0 ? 0xA0 : b == 0xF0 ? 0x90 : 0x80;
  const std::uint8_t high = b == 0xED ? 0x9F : b == 0xF4 ? 0x8F : 0xBF;
  if (at[1] < low || at[1] > high) return 0;
  for (std::size_t i = 2; i < length; ++i) {
    if (!continues(at[i])) return 0;
  }
  return length;
}

char32_t decode_sequence(const std::uint8_t* at, std::size_t length) noexcept {
  switch (length) {
    case 1:
      return at[0];
    case 2:
      return ((at[0] & 0x1FU) << 6U) | (at[1] & 0x3FU);
    case 3:
      return ((at[0] & 0x0FU) << 12U) | ((at[1] & 0x3FU) << 6U) | (at[2] & 0x3FU);
    default:
      return ((at[0] & 0x07U) << 18U) | ((at[1] & 0x3FU) << 12U) | ((at[2] & 0x3FU) << 6U) | (at[3] & 0x3FU);
  }
}

// How many bytes from `at` are ASCII, in whole blocks of 16.
std::size_t ascii_blocks(const std::uint8_t* at, std::size_t size) noexcept {
  std::size_t done = 0;
  while (size - done >= 16) {
    const __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at + done));
    if (_mm_movemask_epi8(block) != 0) break;
    done += 16;
  }
  return done;
}

std::uint8_t* put_utf8(std::uint8_t* to, char32_t c) noexcept {
  if (c < 0x80) {
    *to++ = static_cast<std::uint8_t>(c);
  } else if (c < 0x800) {
    *to++ = static_cast<std::uint8_t>(0xC0U | (c >> 6U));
    *to++ = static_cast<std::uint8_t>(0x80U | (c & 0x3FU));
  } else if (c < 0x10000) {
    *to++ = static_cast<std::uint8_t>(0xE0U | (c >> 12U));
    *to++ = static_cast<std::uint8_t>(0x80U | ((c >> 6U) & 0x3FU));
    *to++ = static_cast<std::uint8_t>(0x80U | (c & 0x3FU));
  } else {
    *to++ = static_cast<std::uint8_t>(0xF0U | (c >> 18U));
    *to++ = static_cast<std::uint8_t>(0x80U | ((c >> 12U) & 0x3FU));
    *to++ = static_cast<std::uint8_t>(0x80U | ((c >> 6U) & 0x3FU));
    *to++ = static_cast<std::uint8_t>(0x80U | (c & 0x3FU));
  }
  return to;
}

std::uint8_t* put_utf16(std::uint8_t* to, char32_t c) noexcept {
  if (c < 0x10000) {
    store_le(to, static_cast<std::uint16_t>(c));
    return to + 2;
  }
  c -= 0x10000;
  store_le(to, static_cast<std::uint16_t>(0xD800U | (c >> 10U)));
  store_le(to + 2, static_cast<std::uint16_t>(0xDC00U | (c & 0x3FFU)));
  return to + 4;
}

const std::uint8_t* data_of(std::string_view text) noexcept {
  return reinterpret_cast<const std::uint8_t*>(text.data());
}

}  // namespace

std::size_t find_invalid_utf8(ByteView bytes) noexcept {
  const std::uint8_t* at = bytes.data();
  std::size_t i = ascii_blocks(at, bytes.size());
  // Long text that is not plain ASCII: simdjson's validator decides, the loop below only finds the place of a fault.
  if (bytes.size() - i >= 64 && simdjson::validate_utf8(reinterpret_cast<const char*>(at) + i, bytes.size() - i)) {
    return npos;
  }
  while (i < bytes.size()) {
    const std::size_t length = sequence_length(at + i, bytes.size() - i);
    if (length == 0) return i;
    i += length;
  }
  return npos;
}

std::size_t code_points(std::string_view utf8) noexcept {
  std::size_t count = 0;
  for (const char c : utf8) count += continues(static_cast<std::uint8_t>(c)) ? 0U : 1U;
  return count;
}

std::size_t utf16_units(std::string_view utf8) noexcept {
  std::size_t count = 0;
  for (const char c : utf8) {
    const auto byte = static_cast<std::uint8_t>(c);
    count += (continues(byte) ? 0U : 1U) + (byte >= 0xF0U ? 1U : 0U);
  }
  return count;
}

char32_t next_code_point(std::string_view utf8, std::size_t& at) noexcept {
  const std::uint8_t* from = data_of(utf8) + at;
  const std::size_t length = sequence_length(from, utf8.size() - at);
  at += length == 0 ? 1 : length;
  return length == 0 ? replacement : decode_sequence(from, length);
}

void append_code_point(std::string& out, char32_t c) {
  if (c > 0x10FFFF || (c >= 0xD800 && c < 0xE000)) c = replacement;
  std::uint8_t bytes[4];
  out.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(put_utf8(bytes, c) - bytes));
}

std::string_view cut_code_points(std::string_view utf8, std::size_t n) noexcept {
  if (utf8.size() <= n) return utf8;
  std::size_t seen = 0;
  for (std::size_t i = 0; i < utf8.size(); ++i) {
    if (!continues(static_cast<std::uint8_t>(utf8[i])) && seen++ == n) return utf8.substr(0, i);
  }
  return utf8;
}

std::string_view cut_utf16_units(std::string_view utf8, std::size_t n) noexcept {
  if (utf8.size() <= n) return utf8;
  std::size_t units = 0;
  for (std::size_t i = 0; i < utf8.size(); ++i) {
    const auto byte = static_cast<std::uint8_t>(utf8[i]);
    if (continues(byte)) continue;
    units += byte >= 0xF0U ? 2U : 1U;
    if (units > n) return utf8.substr(0, i);
  }
  return utf8;
}

std::string_view cut_bytes(std::string_view utf8, std::size_t n) noexcept {
  if (utf8.size() <= n) return utf8;
  while (n > 0 && continues(static_cast<std::uint8_t>(utf8[n]))) --n;
  return utf8.substr(0, n);
}

std::size_t write_utf16le(std::uint8_t* to, std::string_view utf8) noexcept {
  const std::uint8_t* at = data_of(utf8);
  const std::uint8_t* const end = at + utf8.size();
  std::uint8_t* const start = to;
  const __m128i zero = _mm_setzero_si128();
  while (at != end) {
    while (end - at >= 16) {
      const __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
      if (_mm_movemask_epi8(block) != 0) break;
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm_unpacklo_epi8(block, zero));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 16), _mm_unpackhi_epi8(block, zero));
      at += 16;
      to += 32;
    }
    if (end - at >= 8) {
      const __m128i half = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(at));
      if (_mm_movemask_epi8(half) == 0) {
        _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm_unpacklo_epi8(half, zero));
        at += 8;
        to += 16;
      }
    }
    // One run of up to 16 characters before the fast path is tried again.
    for (int i = 0; i < 16 && at != end; ++i) {
      const std::uint8_t byte = *at;
      if (byte < 0x80) {
        store_le(to, static_cast<std::uint16_t>(byte));
        to += 2;
        ++at;
        continue;
      }
      const std::size_t length = sequence_length(at, static_cast<std::size_t>(end - at));
      to = put_utf16(to, length == 0 ? replacement : decode_sequence(at, length));
      at += length == 0 ? 1 : length;
    }
  }
  return static_cast<std::size_t>(to - start);
}

void append_utf16le(ByteBuffer& out, std::string_view utf8) {
  const std::size_t before = out.size();
  std::uint8_t* to = out.extend(utf8.size() * 2);
  out.resize(before + write_utf16le(to, utf8));
}

std::string to_utf16le(std::string_view utf8) {
  std::string out(utf8.size() * 2, '\0');
  out.resize(write_utf16le(reinterpret_cast<std::uint8_t*>(out.data()), utf8));
  return out;
}

namespace {

// Appends; in strict mode stops at the first fault and returns its offset. `faults` counts in lenient mode.
std::size_t utf16_to_utf8(ByteBuffer& out, ByteView utf16le, bool lenient, std::size_t& faults) {
  const std::uint8_t* at = utf16le.data();
  const std::uint8_t* const begin = at;
  const std::uint8_t* const end = at + (utf16le.size() & ~std::size_t{1});
  const std::size_t before = out.size();
  std::uint8_t* const start = out.extend(((utf16le.size() + 1) / 2) * 3);
  std::uint8_t* to = start;
  const __m128i not_ascii = _mm_set1_epi16(static_cast<short>(0xFF80));
  const __m128i zero = _mm_setzero_si128();
  while (at != end) {
    while (end - at >= 16) {
      const __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
      if (_mm_movemask_epi8(_mm_cmpeq_epi16(_mm_and_si128(block, not_ascii), zero)) != 0xFFFF) break;
      _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm_packus_epi16(block, block));
      at += 16;
      to += 8;
    }
    if (end - at >= 8) {
      const __m128i half = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(at));
      if (_mm_movemask_epi8(_mm_cmpeq_epi16(_mm_and_si128(half, not_ascii), zero)) == 0xFFFF) {
        store_le(to, _mm_cvtsi128_si32(_mm_packus_epi16(half, half)));
        at += 8;
        to += 4;
      }
    }
    for (int i = 0; i < 8 && at != end; ++i) {
      char32_t c = load_le<std::uint16_t>(at);
      at += 2;
      if ((c & 0xF800U) == 0xD800U) {
        const char32_t next = at != end ? load_le<std::uint16_t>(at) : 0;
        if (c < 0xDC00 && (next & 0xFC00U) == 0xDC00U) {
          c = 0x10000 + ((c & 0x3FFU) << 10U) + (next & 0x3FFU);
          at += 2;
        } else if (lenient) {
          c = replacement;
          ++faults;
        } else {
          out.resize(before);
          return static_cast<std::size_t>(at - 2 - begin);
        }
      }
      to = put_utf8(to, c);
    }
  }
  if (utf16le.size() % 2 != 0) {
    if (!lenient) {
      out.resize(before);
      return utf16le.size() - 1;
    }
    to = put_utf8(to, replacement);
    ++faults;
  }
  out.resize(before + static_cast<std::size_t>(to - start));
  return npos;
}

}  // namespace

std::size_t append_utf8(ByteBuffer& out, ByteView utf16le) {
  std::size_t faults = 0;
  return utf16_to_utf8(out, utf16le, false, faults);
}

std::size_t append_utf8_lenient(ByteBuffer& out, ByteView utf16le) {
  std::size_t faults = 0;
  utf16_to_utf8(out, utf16le, true, faults);
  return faults;
}

std::string to_utf8(ByteView utf16le) {
  ByteBuffer out;
  append_utf8_lenient(out, utf16le);
  return std::string(as_text(out.view()));
}

namespace {

char32_t fold(char32_t c) {
  const auto within = [c](char32_t low, char32_t high) { return c >= low && c <= high; };
  if (within(U'A', U'Z') || (within(0xC0, 0xDE) && c != 0xD7)) return c + 0x20;
  if (within(0x391, 0x3A9) || within(0x410, 0x42F)) return c + 0x20;
  if (within(0x400, 0x40F)) return c + 0x50;
  if (within(0x100, 0x17E) && c != 0x130 && c != 0x131 && c != 0x138 && c != 0x149 && c != 0x178) {
    const bool odd_upper = within(0x139, 0x148) || within(0x179, 0x17E);
    return (c % 2 == 1) == odd_upper ? c + 1 : c;
  }
  return c;
}

}  // namespace

bool same_without_case(std::string_view a, std::string_view b) noexcept {
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < a.size() && j < b.size()) {
    if (fold(next_code_point(a, i)) != fold(next_code_point(b, j))) return false;
  }
  return i == a.size() && j == b.size();
}

}  // namespace rowferry::text
