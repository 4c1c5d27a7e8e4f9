#include <criterion/criterion.h>

#include <string>

#include "base/error.hpp"
#include "base/text.hpp"

using namespace rowferry;
using std::string_view_literals::operator""sv;
using text::CodePage;

namespace {

std::string encode(std::uint16_t page, std::string_view utf8) {
  ByteBuffer out;
  const std::size_t bad = CodePage::get(page).encode(out, utf8);
  return bad == text::npos ? std::string(as_text(out.view())) : "unencodable at " + std::to_string(bad);
}

std::string decode(std::uint16_t page, std::string_view bytes) {
  ByteBuffer out;
  const std::size_t bad = CodePage::get(page).decode(out, as_bytes(bytes));
  return bad == text::npos ? std::string(as_text(out.view())) : "undecodable at " + std::to_string(bad);
}

constexpr std::uint16_t single_byte_pages[] = {437, 850, 874, 1250, 1251, 1252, 1253, 1254, 1255, 1256, 1257, 1258};
constexpr std::uint16_t double_byte_pages[] = {932, 936, 949, 950};

}  // namespace

Test(code_page, every_byte_of_a_single_byte_page_comes_back) {
  for (const std::uint16_t page : single_byte_pages) {
    for (unsigned byte = 0; byte < 256; ++byte) {
      const char c = static_cast<char>(byte);
      const std::string utf8 = decode(page, {&c, 1});
      cr_assert(encode(page, utf8) == std::string(1, c), "code page %u byte %02X", page, byte);
    }
  }
}

Test(code_page, every_character_of_a_double_byte_page_comes_back) {
  for (const std::uint16_t page : double_byte_pages) {
    unsigned seen = 0;
    for (unsigned first = 0x80; first < 256; ++first) {
      for (unsigned second = 0x40; second < 256; ++second) {
        const char bytes[2] = {static_cast<char>(first), static_cast<char>(second)};
        const std::string utf8 = decode(page, {bytes, 2});
        if (utf8.starts_with("undecodable") || text::code_points(utf8) != 1) continue;
        ++seen;
        // Some have two codes: the one written must decode to the same character.
        cr_assert(decode(page, encode(page, utf8)) == utf8, "code page %u %02X%02X", page, first, second);
      }
    }
    cr_assert_gt(seen, 7'000);
  }
}

Test(code_page, undefined_bytes_are_the_controls_that_windows_makes_of_them) {
  cr_expect(decode(1252, "\x80\x81\x8D\x8F\x90\x9D\xE9"sv) == "€\u0081\u008D\u008F\u0090\u009Dé");
  cr_expect(encode(1252, "\u0081\u009D") == "\x81\x9D");
  cr_expect(decode(1253, "\xAA"sv) == "\uF8F9");
  cr_expect(decode(1255, "\xCA\xD9\xFF"sv) == "\u05BA\uF88D\uF896");
  cr_expect(decode(874, "\xDB\xFF"sv) == "\uF8C1\uF8C8");
}

Test(code_page, known_letters) {
  cr_expect(encode(1252, "é") == "\xE9");
  cr_expect(encode(1251, "П") == "\xCF");
  cr_expect(encode(1250, "Ď") == "\xCF");
  cr_expect(encode(437, "é") == "\x82");
  cr_expect(encode(850, "Ë") == "\xD3");
  cr_expect(encode(1252, "€‡") == "\x80\x87");
  cr_expect(encode(932, "ああ") == "\x82\xA0\x82\xA0");
  cr_expect(encode(932, "ｱ") == "\xB1");
  cr_expect(decode(932, "\\~"sv) == "\\~");
  cr_expect(encode(936, "€中") == "\x80\xD6\xD0");
  cr_expect(encode(949, "한") == "\xC7\xD1");
  cr_expect(encode(950, "中") == "\xA4\xA4");
  cr_expect(encode(65001, "é😀") == "é😀");
}

Test(code_page, duplicates_of_932_encode_as_windows_does) {
  cr_expect(encode(932, "Ⅰ") == "\x87\x54", "NEC row 13 before IBM");
  cr_expect(encode(932, "ⅰ") == "\xFA\x40", "IBM before NEC-selected");
  cr_expect(encode(932, "￢") == "\x81\xCA");
  cr_expect(encode(932, "∵") == "\x81\xE6");
  cr_expect(encode(932, "～∥－") == "\x81\x60\x81\x61\x81\x7C");
}

Test(code_page, user_defined_characters_map_to_private_use) {
  cr_expect(decode(932, "\xF0\x40\xF9\xFC"sv) == "\uE000\uE757");
  cr_expect(encode(932, "\uE757") == "\xF9\xFC");
  cr_expect(decode(936, "\xAA\xA1\xAF\xFE\xFE\xFE\xA1\x40\xA7\xA0"sv) == "\uE000\uE233\uE4C5\uE4C6\uE765");
  cr_expect(decode(949, "\xC9\xA1\xFE\xFE"sv) == "\uE000\uE0BB");
  cr_expect(decode(950, "\xFA\x40\xFE\xFE\x8E\x40\x81\x40\xC6\xA1\xC8\xFE"sv) ==
            "\uE000\uE310\uE311\uEEB8\uF6B1\uF848");
}

Test(code_page, what_is_not_in_the_page_is_named_and_leaves_the_output) {
  ByteBuffer out;
  out.append("kept"sv);
  const CodePage& page = CodePage::get(1252);
  cr_expect_eq(page.encode(out, "éa\u2160b"), 3);
  cr_expect(as_text(out.view()) == "kept"sv);
  cr_expect_eq(page.find_unencodable("éa\u2160b"), 3);
  cr_expect_eq(page.find_unencodable("é"), text::npos);
  cr_expect_eq(page.encoded_length("\u2160"), text::npos);
  cr_expect_eq(page.encoded_length("é€x"), 3);
  cr_expect(!page.encodable(0x1F600));
  cr_expect(!page.encodable(U'ａ'), "no look-alikes");
  cr_expect_eq(CodePage::get(1258).find_unencodable("\u1EA0"), 0, "no decomposition");
  cr_expect_eq(CodePage::get(932).encoded_length("aあ"), 3);
}

Test(code_page, cuts_at_a_border_of_the_encoded_bytes) {
  const CodePage& page = CodePage::get(932);
  cr_expect(page.cut_encoded("aああ", 2) == "a"sv);
  cr_expect(page.cut_encoded("aああ", 3) == "aあ"sv);
  cr_expect(page.cut_encoded("aああ", 5) == "aああ"sv);
  cr_expect(CodePage::get(65001).cut_encoded("éé", 3) == "é"sv);
}

Test(code_page, bytes_outside_a_double_byte_page_are_named) {
  cr_expect(decode(932, "a\x82"sv) == "undecodable at 1", "a lead byte at the end");
  cr_expect(decode(932, "ab\x81\xAD"sv) == "undecodable at 2", "no such pair");
  cr_expect(decode(65001, "a\xFF"sv) == "undecodable at 1");
  ByteBuffer out;
  cr_expect_eq(CodePage::get(932).decode_lenient(out, as_bytes("a\x81\xAD\x82\xA0\x82"sv)), 2);
  cr_expect(as_text(out.view()) == "a\uFFFDあ\uFFFD"sv);
  out.clear();
  cr_expect_eq(CodePage::get(65001).decode_lenient(out, as_bytes("a\xFF"
                                                                 "b\xC3"sv)),
               2);
  cr_expect(as_text(out.view()) == "a\uFFFDb\uFFFD"sv);
}

Test(code_page, an_unknown_page_is_refused) {
  cr_assert(!CodePage::known(1259));
  try {
    CodePage::get(1259);
    cr_assert_fail("no error");
  } catch (const Error& error) {
    cr_assert_eq(error.category(), Category::unsupported);
    cr_assert_str_eq(error.code().c_str(), "code_page_unknown");
  }
}
