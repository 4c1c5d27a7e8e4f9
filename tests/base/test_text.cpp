#include <criterion/criterion.h>

#include <string>
#include <vector>

#include "base/text.hpp"

using namespace rowferry;
using std::string_view_literals::operator""sv;

namespace {

std::string utf16(std::u16string_view units) {
  std::string bytes;
  for (const char16_t unit : units) {
    bytes += static_cast<char>(unit & 0xFFU);
    bytes += static_cast<char>(unit >> 8U);
  }
  return bytes;
}

std::string encoded(std::string_view utf8) {
  ByteBuffer out;
  text::append_utf16le(out, utf8);
  return std::string(as_text(out.view()));
}

}  // namespace

Test(utf8, accepts_every_length_and_border) {
  for (const auto good : {""sv, "a"sv, "\x7f"sv, "\xC2\x80"sv, "\xDF\xBF"sv, "\xE0\xA0\x80"sv, "\xED\x9F\xBF"sv,
                          "\xEE\x80\x80"sv, "\xEF\xBF\xBF"sv, "\xF0\x90\x80\x80"sv, "\xF4\x8F\xBF\xBF"sv, "\0"sv}) {
    cr_expect(text::valid_utf8(good));
  }
}

Test(utf8, names_the_first_malformed_byte) {
  struct Case {
    std::string_view tail;
    std::size_t at;
  };
  const std::vector<Case> cases = {
      {"\x80"sv, 0},         {"\xC0\x80"sv, 0},         {"\xC1\xBF"sv, 0},         {"\xE0\x9F\xBF"sv, 0},
      {"\xED\xA0\x80"sv, 0}, {"\xF0\x8F\xBF\xBF"sv, 0}, {"\xF4\x90\x80\x80"sv, 0}, {"\xF5\x80\x80\x80"sv, 0},
      {"\xC3"sv, 0},         {"\xE2\x82"sv, 0},         {"\xF0\x9F\x98"sv, 0},     {"\xC3\xA9\xFF"sv, 2}};
  for (const std::size_t before : {0U, 1U, 15U, 16U, 17U, 63U, 64U, 200U}) {
    for (const Case& c : cases) {
      const std::string input = std::string(before, 'x') + std::string(c.tail);
      cr_expect_eq(text::find_invalid_utf8(as_bytes(input)), before + c.at, "%zu bytes before", before);
      const std::string wide = std::string(before * 2, ' ') + "é" + input;
      cr_expect_eq(text::find_invalid_utf8(as_bytes(wide)), before * 3 + 2 + c.at);
    }
  }
}

Test(utf8, counts_code_points_and_utf16_units) {
  const std::string_view sample = "aé€😀"sv;
  cr_assert_eq(text::code_points(sample), 4);
  cr_assert_eq(text::utf16_units(sample), 5);
}

Test(utf8, cuts_only_at_a_character_border) {
  const std::string_view sample = "é😀x"sv;  // 2 + 4 + 1 bytes, 1 + 2 + 1 units
  cr_expect(text::cut_bytes(sample, 1).empty());
  cr_expect(text::cut_bytes(sample, 2) == "é"sv);
  cr_expect(text::cut_bytes(sample, 5) == "é"sv);
  cr_expect(text::cut_bytes(sample, 6) == "é😀"sv);
  cr_expect(text::cut_bytes(sample, 99) == sample);
  cr_expect(text::cut_utf16_units(sample, 2) == "é"sv);
  cr_expect(text::cut_utf16_units(sample, 3) == "é😀"sv);
  cr_expect(text::cut_utf16_units(sample, 4) == sample);
  cr_expect(text::cut_code_points(sample, 0).empty());
  cr_expect(text::cut_code_points(sample, 2) == "é😀"sv);
  cr_expect(text::cut_code_points(sample, 3) == sample);
}

Test(utf16, encodes_as_little_endian_with_surrogates) {
  cr_assert(encoded("aé€😀\U0010FFFF") == utf16(u"aé€😀\U0010FFFF"));
  cr_assert(encoded("") == "");
  cr_assert(text::to_utf16le("é") == "\xE9\0"sv);
}

Test(utf16, fast_and_slow_paths_agree_at_every_length_and_place) {
  for (std::size_t length = 0; length < 70; ++length) {
    for (std::size_t place = 0; place <= length; ++place) {
      std::string utf8(length, 'q');
      std::u16string expected(length, u'q');
      utf8.insert(place, "😀");
      expected.insert(place, u"😀");
      const std::string wire = utf16(expected);
      cr_assert(encoded(utf8) == wire, "length %zu place %zu", length, place);
      ByteBuffer back;
      cr_assert_eq(text::append_utf8(back, as_bytes(wire)), text::npos);
      cr_assert(as_text(back.view()) == utf8, "length %zu place %zu", length, place);
    }
  }
}

Test(utf16, every_code_point_round_trips) {
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string utf8;
    text::append_code_point(utf8, c);
    ByteBuffer back;
    cr_assert_eq(text::append_utf8(back, as_bytes(text::to_utf16le(utf8))), text::npos);
    cr_assert(as_text(back.view()) == utf8, "U+%04X", static_cast<unsigned>(c));
  }
}

Test(utf16, reports_the_first_unpaired_surrogate_and_leaves_the_output) {
  ByteBuffer out;
  out.append("kept"sv);
  const std::u16string lone_high{u'a', 0xD83D, u'b'};
  const std::u16string lone_low{u'a', u'b', 0xDE00};
  const std::u16string high_at_end{u'a', 0xD83D};
  const std::u16string swapped{0xDE00, 0xD83D};
  cr_expect_eq(text::append_utf8(out, as_bytes(utf16(lone_high))), 2);
  cr_expect_eq(text::append_utf8(out, as_bytes(utf16(lone_low))), 4);
  cr_expect_eq(text::append_utf8(out, as_bytes(utf16(high_at_end))), 2);
  cr_expect_eq(text::append_utf8(out, as_bytes(utf16(swapped))), 0);
  cr_expect_eq(text::append_utf8(out, as_bytes("a\0b"sv)), 2, "an odd last byte");
  cr_expect(as_text(out.view()) == "kept"sv);
}

Test(utf16, lenient_mode_writes_replacement_characters) {
  ByteBuffer out;
  const std::u16string two{u'a', 0xD83D, u'b', 0xDE00};
  cr_assert_eq(text::append_utf8_lenient(out, as_bytes(utf16(two))), 2);
  cr_assert(as_text(out.view()) == "a\uFFFDb\uFFFD"sv);
  cr_assert(text::to_utf8(as_bytes("a\0b"sv)) == "a\uFFFD");
}

Test(utf8, malformed_input_becomes_replacement_characters) {
  cr_assert(encoded("a\xFF\xC3") == utf16(u"a\uFFFD\uFFFD"));
  std::size_t at = 0;
  cr_assert_eq(text::next_code_point("\xE2\x82"sv, at), U'\uFFFD');
  cr_assert_eq(at, 1);
}

Test(same_without_case, letters_beyond_ascii_fold_too) {
  cr_expect(text::same_without_case("naïve", "NAÏVE"));
  cr_expect(text::same_without_case("заказ", "ЗАКАЗ"));
  cr_expect(text::same_without_case("ŻÓŁĆ", "żółć"));
  cr_expect_not(text::same_without_case("a", "ab"));
  cr_expect_not(text::same_without_case("×", "÷"));
}
