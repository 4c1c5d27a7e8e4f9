#include <emmintrin.h>
#include <fmt/format.h>
#include <iconv.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"

namespace rowferry::text {

namespace {

constexpr std::array<std::uint16_t, 17> pages = {437,  850,  874,  932,  936,  949,  950,  1250, 1251,
                                                 1252, 1253, 1254, 1255, 1256, 1257, 1258, 65001};

constexpr std::uint16_t undefined = 0xFFFF;  // not a character; no page maps to it

bool double_byte(std::uint16_t page) noexcept { return page == 932 || page == 936 || page == 949 || page == 950; }

// One direction of iconv, one character at a time; only used while tables are built.
class Iconv {
 public:
  Iconv(const char* to, const char* from) : handle_(iconv_open(to, from)) {
    if (handle_ == reinterpret_cast<iconv_t>(-1)) {  // NOLINT(performance-no-int-to-ptr): iconv_open says so
      throw Error(Category::internal, "code_page_tables",
                  fmt::format("iconv has no conversion from {} to {}", from, to))
          .with_hint("the C library's gconv modules are missing");
    }
  }
  Iconv(const Iconv&) = delete;
  Iconv& operator=(const Iconv&) = delete;
  ~Iconv() { iconv_close(handle_); }

  // Empty when the input is no whole character of the page.
  std::string_view one(std::string_view input) {
    char* from = const_cast<char*>(input.data());  // NOLINT(cppcoreguidelines-pro-type-const-cast): iconv's signature
    std::size_t from_left = input.size();
    char* to = buffer_.data();
    std::size_t to_left = buffer_.size();
    iconv(handle_, nullptr, nullptr, nullptr, nullptr);
    if (iconv(handle_, &from, &from_left, &to, &to_left) != 0 || from_left != 0) return {};
    // 1255 and 1258 hold a base letter back until they know that no mark follows.
    if (iconv(handle_, nullptr, nullptr, &to, &to_left) != 0) return {};
    return {buffer_.data(), buffer_.size() - to_left};
  }

 private:
  iconv_t handle_;
  std::array<char, 32> buffer_{};
};

}  // namespace

struct CodePage::Tables {
  std::array<std::uint16_t, 256> single{};  // character of a single byte, or undefined
  std::array<bool, 256> lead{};             // first byte of two
  std::vector<std::uint16_t> pair;          // [lead * 256 + trail], double-byte pages only
  std::array<std::unique_ptr<std::array<std::uint16_t, 256>>, 256> reverse;  // code of a character, 0 = not in the page

  void decode_all(std::uint16_t page);
  void patch(std::uint16_t page);
  void invert(std::uint16_t page);
  void single_if_free(unsigned byte, std::uint16_t c) {
    if (single[byte] == undefined && !lead[byte]) single[byte] = c;
  }
  struct Area {
    unsigned lead_first, lead_last, trail_first, trail_last;
    unsigned gap_last = 0x7F;  // trail bytes from 7F to this one are not used
  };
  void users_area(const Area& area, unsigned c);
  void set_reverse(std::uint16_t c, std::uint16_t code, bool overwrite);
};

void CodePage::Tables::decode_all(std::uint16_t page) {
  Iconv decode("UTF-16LE", fmt::format("CP{}", page).c_str());
  const auto character = [&](std::string_view bytes) {
    const std::string_view got = decode.one(bytes);
    return got.size() == 2 ? load_le<std::uint16_t>(as_bytes(got).data()) : undefined;
  };
  single.fill(undefined);
  for (unsigned byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    single[byte] = character({&c, 1});
  }
  if (!double_byte(page)) return;
  pair.assign(256 * 256, undefined);
  for (unsigned first = 0x81; first <= 0xFE; ++first) {
    if (single[first] != undefined) continue;  // a half-width katakana of 932
    for (unsigned second = 0x40; second <= 0xFE; ++second) {
      const char bytes[2] = {static_cast<char>(first), static_cast<char>(second)};
      const std::uint16_t c = character({bytes, 2});
      pair[first * 256 + second] = c;
      if (c != undefined) lead[first] = true;
    }
  }
}

// Fills an end-user-defined area row by row with the private-use characters from `c` on.
void CodePage::Tables::users_area(const Area& area, unsigned c) {
  for (unsigned first = area.lead_first; first <= area.lead_last; ++first) {
    lead[first] = true;
    for (unsigned second = area.trail_first; second <= area.trail_last; ++second) {
      if (second >= 0x7F && second <= area.gap_last) continue;
      std::uint16_t& at = pair[first * 256 + second];
      if (at == undefined) at = static_cast<std::uint16_t>(c);
      ++c;
    }
  }
}

// What Windows does with the bytes that a page leaves undefined (its bestfit*.txt tables, published by Unicode).
void CodePage::Tables::patch(std::uint16_t page) {
  switch (page) {
    case 874:
      for (unsigned byte = 0xDB; byte <= 0xDE; ++byte)
        single_if_free(byte, static_cast<std::uint16_t>(0xF8C1 + byte - 0xDB));
      for (unsigned byte = 0xFC; byte <= 0xFF; ++byte)
        single_if_free(byte, static_cast<std::uint16_t>(0xF8C5 + byte - 0xFC));
      break;
    case 932:
      users_area({0xF0, 0xF9, 0x40, 0xFC}, 0xE000);
      single_if_free(0xA0, 0xA0);
      for (unsigned byte = 0xFD; byte <= 0xFF; ++byte)
        single_if_free(byte, static_cast<std::uint16_t>(0xF8F1 + byte - 0xFD));
      break;
    case 936:
      users_area({0xAA, 0xAF, 0xA1, 0xFE}, 0xE000);
      users_area({0xF8, 0xFE, 0xA1, 0xFE}, 0xE234);
      users_area({0xA1, 0xA7, 0x40, 0xA0}, 0xE4C6);
      single_if_free(0xFF, 0xF8F5);
      break;
    case 949:
      users_area({0xC9, 0xC9, 0xA1, 0xFE}, 0xE000);
      users_area({0xFE, 0xFE, 0xA1, 0xFE}, 0xE05E);
      single_if_free(0xFF, 0xF8F7);
      break;
    case 950:
      users_area({0xFA, 0xFE, 0x40, 0xFE, 0xA0}, 0xE000);
      users_area({0x8E, 0xA0, 0x40, 0xFE, 0xA0}, 0xE311);
      users_area({0x81, 0x8D, 0x40, 0xFE, 0xA0}, 0xEEB8);
      single_if_free(0xFF, 0xF8F8);
      break;
    case 1253:
      single_if_free(0xAA, 0xF8F9);
      single_if_free(0xD2, 0xF8FA);
      single_if_free(0xFF, 0xF8FB);
      break;
    case 1255:
      single_if_free(0xCA, 0x05BA);
      for (unsigned byte = 0xD9; byte <= 0xDF; ++byte)
        single_if_free(byte, static_cast<std::uint16_t>(0xF88D + byte - 0xD9));
      for (unsigned byte : {0xFBU, 0xFCU, 0xFFU})
        single_if_free(byte, static_cast<std::uint16_t>(byte == 0xFF ? 0xF896 : 0xF894 + byte - 0xFB));
      break;
    case 1257:
      single_if_free(0xA1, 0xF8FC);
      single_if_free(0xA5, 0xF8FD);
      break;
    default:
      break;
  }
  for (unsigned byte = 0x80; byte < 0xA0; ++byte) single_if_free(byte, static_cast<std::uint16_t>(byte));
}

void CodePage::Tables::set_reverse(std::uint16_t c, std::uint16_t code, bool overwrite) {
  auto& page = reverse[c >> 8U];
  if (!page) page = std::make_unique<std::array<std::uint16_t, 256>>();
  std::uint16_t& at = (*page)[c & 0xFFU];
  if (at == 0 || overwrite) at = code;
}

void CodePage::Tables::invert(std::uint16_t page) {
  for (unsigned byte = 0; byte < 256; ++byte) {
    if (single[byte] != undefined && !lead[byte]) set_reverse(single[byte], static_cast<std::uint16_t>(byte), false);
  }
  if (pair.empty()) return;
  // Where two codes give one character (932 has 400 such), iconv knows which one Windows writes.
  Iconv encode(fmt::format("CP{}", page).c_str(), "UTF-16LE");
  for (std::size_t code = 0; code < pair.size(); ++code) {
    const std::uint16_t c = pair[code];
    if (c == undefined) continue;
    const char utf16[2] = {static_cast<char>(c & 0xFFU), static_cast<char>(c >> 8U)};
    const std::string_view got = encode.one({utf16, 2});
    const bool preferred = got.size() == 2 && load_be<std::uint16_t>(as_bytes(got).data()) == code;
    set_reverse(c, static_cast<std::uint16_t>(code), preferred);
  }
}

CodePage::CodePage(std::uint16_t number) : number_(number) {
  if (utf8()) return;
  tables_ = std::make_unique<Tables>();
  tables_->decode_all(number);
  tables_->patch(number);
  tables_->invert(number);
}

CodePage::~CodePage() = default;

bool CodePage::known(std::uint16_t number) noexcept {
  return std::find(pages.begin(), pages.end(), number) != pages.end();
}

const CodePage& CodePage::get(std::uint16_t number) {
  if (!known(number)) {
    throw Error(Category::unsupported, "code_page_unknown", fmt::format("code page {} is not supported", number));
  }
  static std::mutex mutex;
  static std::map<std::uint16_t, std::unique_ptr<CodePage>> all;
  const std::lock_guard lock(mutex);
  auto& page = all[number];
  if (!page) page.reset(new CodePage(number));
  return *page;
}

std::size_t CodePage::bytes_per_unit_max() const noexcept { return utf8() ? 3 : tables_->pair.empty() ? 1 : 2; }

// The code of a character in the page; 0 when it has none (U+0000 is handled by the callers' ASCII path).
std::uint32_t CodePage::code(char32_t c) const noexcept {
  if (c > 0xFFFF) return 0;
  const auto& page = tables_->reverse[c >> 8U];
  return page ? (*page)[c & 0xFFU] : 0;
}

bool CodePage::encodable(char32_t c) const noexcept {
  if (utf8()) return c <= 0x10FFFF && (c < 0xD800 || c > 0xDFFF);
  return c < 0x80 || code(c) != 0;
}

std::size_t CodePage::encode(ByteBuffer& out, std::string_view utf8) const {
  if (this->utf8()) {
    const std::size_t bad = find_invalid_utf8(as_bytes(utf8));
    if (bad == npos) out.append(utf8);
    return bad;
  }
  const std::size_t before = out.size();
  // No character takes more bytes in a code page than in UTF-8.
  std::uint8_t* const start = out.extend(utf8.size());
  std::uint8_t* to = start;
  std::size_t at = 0;
  while (at < utf8.size()) {
    const auto byte = static_cast<std::uint8_t>(utf8[at]);
    if (byte < 0x80) {
      *to++ = byte;
      ++at;
      continue;
    }
    const std::size_t here = at;
    const std::uint32_t code = this->code(next_code_point(utf8, at));
    if (code == 0) {
      out.resize(before);
      return here;
    }
    if (code > 0xFF) *to++ = static_cast<std::uint8_t>(code >> 8U);
    *to++ = static_cast<std::uint8_t>(code);
  }
  out.resize(before + static_cast<std::size_t>(to - start));
  return npos;
}

std::size_t CodePage::find_unencodable(std::string_view utf8) const noexcept {
  if (this->utf8()) return find_invalid_utf8(as_bytes(utf8));
  std::size_t at = 0;
  while (at < utf8.size()) {
    const std::size_t here = at;
    const char32_t c = next_code_point(utf8, at);
    if (c >= 0x80 && code(c) == 0) return here;
  }
  return npos;
}

std::size_t CodePage::encoded_length(std::string_view utf8) const noexcept {
  if (this->utf8()) return find_invalid_utf8(as_bytes(utf8)) == npos ? utf8.size() : npos;
  std::size_t length = 0;
  std::size_t at = 0;
  while (at < utf8.size()) {
    const char32_t c = next_code_point(utf8, at);
    const std::uint32_t code = c < 0x80 ? 1 : this->code(c);
    if (code == 0) return npos;
    length += code > 0xFF ? 2 : 1;
  }
  return length;
}

std::string_view CodePage::cut_encoded(std::string_view utf8, std::size_t n) const noexcept {
  if (this->utf8()) return cut_bytes(utf8, n);
  if (utf8.size() <= n) return utf8;
  std::size_t length = 0;
  std::size_t at = 0;
  while (at < utf8.size()) {
    const std::size_t here = at;
    const char32_t c = next_code_point(utf8, at);
    length += c >= 0x80 && code(c) > 0xFF ? 2 : 1;
    if (length > n) return utf8.substr(0, here);
  }
  return utf8;
}

std::size_t CodePage::decode_impl(ByteBuffer& out, ByteView bytes, bool lenient) const {
  std::size_t faults = 0;
  const std::size_t before = out.size();
  // Each byte becomes at most three; no page leaves the Basic Multilingual Plane.
  std::uint8_t* const start = out.extend(bytes.size() * 3);
  std::uint8_t* to = start;
  for (std::size_t at = 0; at < bytes.size();) {
    while (bytes.size() - at >= 16) {
      const __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes.data() + at));
      if (_mm_movemask_epi8(block) != 0) break;
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to), block);
      at += 16;
      to += 16;
    }
    if (at == bytes.size()) break;
    const std::uint8_t byte = bytes[at];
    if (byte < 0x80) {
      *to++ = byte;
      ++at;
      continue;
    }
    std::size_t used = 1;
    std::uint16_t c = tables_->single[byte];
    if (tables_->lead[byte]) {
      const bool whole = at + 1 < bytes.size();
      c = whole ? tables_->pair[byte * 256U + bytes[at + 1]] : undefined;
      // An ASCII byte behind a stray lead byte is kept as itself.
      used = whole && (c != undefined || bytes[at + 1] >= 0x80) ? 2 : 1;
    }
    if (c == undefined) {
      if (!lenient) {
        out.resize(before);
        return at;
      }
      ++faults;
      c = 0xFFFD;
    }
    if (c < 0x800) {
      *to++ = static_cast<std::uint8_t>(0xC0U | (c >> 6U));
    } else {
      *to++ = static_cast<std::uint8_t>(0xE0U | (c >> 12U));
      *to++ = static_cast<std::uint8_t>(0x80U | ((c >> 6U) & 0x3FU));
    }
    *to++ = static_cast<std::uint8_t>(0x80U | (c & 0x3FU));
    at += used;
  }
  out.resize(before + static_cast<std::size_t>(to - start));
  return lenient ? faults : npos;
}

std::size_t CodePage::decode(ByteBuffer& out, ByteView bytes) const {
  if (!utf8()) return decode_impl(out, bytes, false);
  const std::size_t bad = find_invalid_utf8(bytes);
  if (bad == npos) out.append(bytes);
  return bad;
}

std::size_t CodePage::decode_lenient(ByteBuffer& out, ByteView bytes) const {
  if (!utf8()) return decode_impl(out, bytes, true);
  std::size_t faults = 0;
  while (!bytes.empty()) {
    const std::size_t bad = find_invalid_utf8(bytes);
    out.append(bytes.subspan(0, std::min(bad, bytes.size())));
    if (bad == npos) break;
    out.append(std::string_view("\xEF\xBF\xBD"));
    ++faults;
    bytes = bytes.subspan(bad + 1);
  }
  return faults;
}

}  // namespace rowferry::text
