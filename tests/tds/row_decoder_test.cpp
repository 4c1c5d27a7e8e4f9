#include "tds/wire/row_decoder.hpp"

#include <criterion/criterion.h>
#include <fmt/format.h>

#include "base/civil.hpp"
#include "base/error.hpp"
#include "tests/support/hex.hpp"
#include "tests/tds/capture.hpp"

using namespace rowferry;
using namespace rowferry::test;
using tds::Value;

namespace {

// A nullable column "c" of the given TYPE_INFO, then rows of one value each.
std::string one_column(std::string_view type_hex) {
  return "81 01 00 00 00 00 00 09 00" + std::string(type_hex) + "01 63 00";
}

// The value as printed, read whole and byte by byte.
std::string value(std::string_view type_hex, std::string_view value_hex) {
  const std::string bytes = from_hex(one_column(type_hex) + "D1" + std::string(value_hex));
  const auto whole = parse_tokens(bytes);
  cr_assert(parse_tokens(bytes, 1) == whole, "byte by byte differs: %s", std::string(value_hex).c_str());
  cr_assert(parse_tokens(bytes, 5) == whole, "in steps of 5 differs: %s", std::string(value_hex).c_str());
  if (whole.size() != 2) return whole.empty() ? "nothing" : whole.back();
  return whole[1].rfind("row | ", 0) == 0 ? whole[1].substr(6) : whole[1];
}

void expect(std::string_view type_hex, std::string_view value_hex, const std::string& wanted) {
  const std::string got = value(type_hex, value_hex);
  cr_expect_eq(got, wanted, "%s of %s is %s and not %s", std::string(value_hex).c_str(), std::string(type_hex).c_str(),
               got.c_str(), wanted.c_str());
}

}  // namespace

Test(rows, integers_and_bits) {
  expect("30", "C8", "200");
  expect("26 01", "01 C8", "200");
  expect("34", "00 80", "-32768");
  expect("38", "07 00 00 00", "7");
  expect("26 04", "04 07 00 00 00", "7");
  expect("26 04", "00", "NULL");
  expect("7F", "00 00 00 00 00 00 00 80", "-9223372036854775808");
  expect("32", "01", "1");
  expect("68 01", "01 00", "0");
  expect("68 01", "00", "NULL");
}

Test(rows, numbers) {
  expect("3B", "00 00 C0 3F", "1.5");
  expect("6D 08", "08 00 00 00 00 00 00 02 C0", "-2.25");
  expect("6A 05 09 02", "05 00 39 30 00 00", "-123.45");
  expect("6A 11 26 0A", "11 00 00 D6 11 7E 03 00 00 00 00 00 00 00 00 00 00 00", "-1.5000000000");
  expect("6A 11 26 00", "11 01 FF FF FF FF 3F 22 8A 09 7A C4 86 5A A8 4C 3B 4B",
         "99999999999999999999999999999999999999");
  expect("6A 11 26 00", "05 01 07 00 00 00", "7");
  expect("6A 0D 1C 0D", "0D 00 A0 FF 10 A6 4F 3C 7E B6 24 00 00 00", "-67723280.0928298500000");
  expect("6C 05 05 02", "05 00 05 00 00 00", "-0.05");
  expect("3C", "00 00 00 80 00 00 00 00", "-922337203685477.5808");
  expect("6E 08", "08 00 00 00 00 9C 9A D6 B0", "296685.4300");
  expect("6E 08", "08 FF FF FF FF FF FF FF FF", "-0.0001");
  expect("6E 04", "04 98 3A 00 00", "1.5000");
  expect("7A", "FF FF FF FF", "-0.0001");
}

Test(rows, dates_and_times) {
  expect("28", "03 00 00 00", "0001-01-01");
  expect("28", "03 DA B9 37", "9999-12-31");
  expect("29 07", "05 87 EE 97 76 69", "12:34:56.1234567");
  expect("29 07", "05 FF BF 69 2A C9", "23:59:59.9999999");
  expect("29 00", "03 F0 B0 00", "12:34:56");
  expect("29 03", "04 FB 29 B3 02", "12:34:56.123");
  expect("2A 07", "08 87 EE 97 76 69 07 24 0B", "2000-01-01 12:34:56.1234567");
  expect("2A 03", "07 FB 29 B3 02 07 24 0B", "2000-01-01 12:34:56.123");
  expect("2A 03", "07 83 78 41 02 53 46 0B", "2024-01-15 10:30:45.123");
  expect("2A 00", "06 F0 B0 00 07 24 0B", "2000-01-01 12:34:56");
  expect("2B 07", "0A 87 B2 DF 5C 3B 07 24 0B 4A 01", "2000-01-01 07:04:56.1234567+00:00");
  expect("2B 07", "0A 00 58 A5 C8 C0 06 24 0B 78 00", "1999-12-31 23:00:00.0000000+00:00");
  expect("2B 07", "0A 00 20 58 A3 A7 07 24 0B 20 FE", "2000-01-01 20:00:00.0000000+00:00");
  expect("3D", "AC 8E 00 00 65 59 CF 00", "2000-01-01 12:34:56.123");
  expect("6F 08", "08 7F 24 2D 00 FF 81 8B 01", "9999-12-31 23:59:59.997");
  expect("6F 04", "04 AC 8E F2 02", "2000-01-01 12:34:00");
}

Test(rows, text_and_binary) {
  expect("E7 14 00 09 04 D0 00 34", "08 00 61 00 E9 00 3D D8 00 DE", "aé😀");
  expect("E7 14 00 09 04 D0 00 34", "00 00", "");
  expect("E7 14 00 09 04 D0 00 34", "FF FF", "NULL");
  expect("A7 0A 00 09 04 D0 00 34", "01 00 E9", "é");
  expect("A7 0A 00 09 04 D0 24 00", "02 00 C3 A9", "é");
  expect("A7 0A 00 09 04 D0 00 2A", "01 00 82", "é");
  expect("A7 0A 00 19 04 D0 00 00", "01 00 CF", "П");
  expect("A7 0A 00 11 04 D0 00 00", "02 00 82 A0", "あ");
  expect("AF 05 00 09 04 D0 00 34", "05 00 61 62 20 20 20", "ab   ");
  expect("2F 05 09 04 D0 00 34", "02 61 62", "ab");
  expect("A5 10 00", "02 00 DE AD", "0xdead");
  expect("AD 08 00", "08 00 00 00 00 00 00 00 07 D1", "0x00000000000007d1");
  expect("25 05", "02 DE AD", "0xdead");
  expect("24 10", "10 33 22 11 00 55 44 77 66 88 99 AA BB CC DD EE FF", "00112233-4455-6677-8899-aabbccddeeff");
}

Test(rows, long_values) {
  const char* wide = "E7 FF FF 09 04 D0 00 34";
  expect("A7 FF FF 09 04 D0 00 34", "03 00 00 00 00 00 00 00 03 00 00 00 61 62 63 00 00 00 00", "abc");
  expect("A7 FF FF 09 04 D0 00 34", "FE FF FF FF FF FF FF FF 03 00 00 00 61 62 63 00 00 00 00", "abc");
  expect(wide, "00 00 00 00 00 00 00 00 00 00 00 00", "");
  expect(wide, "FF FF FF FF FF FF FF FF", "NULL");
  // a chunk border within a UTF-16 unit, and within a pair of surrogates
  expect(wide, "04 00 00 00 00 00 00 00 01 00 00 00 61 03 00 00 00 00 62 00 00 00 00 00", "ab");
  expect(wide, "04 00 00 00 00 00 00 00 02 00 00 00 61 00 02 00 00 00 62 00 00 00 00 00", "ab");
  expect(wide, "04 00 00 00 00 00 00 00 02 00 00 00 3D D8 02 00 00 00 00 DE 00 00 00 00", "😀");
  expect("A5 FF FF", "02 00 00 00 00 00 00 00 02 00 00 00 CA FE 00 00 00 00", "0xcafe");
  expect("F4", "FE FF FF FF FF FF FF FF 07 00 00 00 7B 22 61 22 3A 31 7D 00 00 00 00", "{\"a\":1}");
  expect("F1 00", "06 00 00 00 00 00 00 00 06 00 00 00 FF FE 3C 00 61 00 00 00 00 00", "<a");
  expect("F0 FF FF 01 61 00 01 62 00 01 63 00 01 00 64 00", "02 00 00 00 00 00 00 00 02 00 00 00 5A C0 00 00 00 00",
         "0x5ac0");
  cr_expect_neq(value("F1 00", "04 00 00 00 00 00 00 00 04 00 00 00 DF FF 01 B0 00 00 00 00").find("binary form"),
                std::string::npos);
}

Test(rows, text_ntext_image) {
  const std::string pointer = "10 FF FF FF FF FF FF FF FF FF FF FF FF FF FF FF FF 00 00 00 00 00 00 00 00";
  expect("23 FF FF FF 7F 09 04 D0 00 34 01 01 00 74 00", pointer + "02 00 00 00 68 69", "hi");
  expect("23 FF FF FF 7F 09 04 D0 00 34 01 01 00 74 00", "00", "NULL");
  expect("23 FF FF FF 7F 09 04 D0 00 34 01 01 00 74 00", pointer + "00 00 00 00", "");
  expect("63 FF FF FF 7F 09 04 D0 00 34 01 01 00 74 00", pointer + "04 00 00 00 68 00 69 00", "hi");
  expect("22 FF FF FF 7F 01 01 00 74 00", pointer + "02 00 00 00 CA FE", "0xcafe");
}

Test(rows, variants_become_text_without_loss) {
  const char* type = "62 49 1F 00 00";
  expect(type, "06 00 00 00 38 00 05 00 00 00", "5");
  expect(type, "03 00 00 00 30 00 C8", "200");
  expect(type, "0D 00 00 00 E7 07 09 04 D0 00 34 14 00 61 00 62 00", "ab");
  expect(type, "0A 00 00 00 A7 07 09 04 D0 00 34 0A 00 E9", "é");
  expect(type, "09 00 00 00 6C 02 09 02 01 7B 00 00 00", "1.23");
  expect(type, "08 00 00 00 29 01 07 87 EE 97 76 69", "12:34:56.1234567");
  expect(type, "07 00 00 00 29 01 03 00 29 64 02", "11:08:38.528");
  expect(type, "05 00 00 00 28 00 07 24 0B", "2000-01-01");
  expect(type, "0B 00 00 00 2A 01 07 87 EE 97 76 69 07 24 0B", "2000-01-01 12:34:56.1234567");
  expect(type, "0D 00 00 00 2B 01 07 87 B2 DF 5C 3B 07 24 0B 4A 01", "2000-01-01 12:34:56.1234567 +05:30");
  expect(type, "0D 00 00 00 2B 01 07 00 20 58 A3 A7 07 24 0B 20 FE", "2000-01-01 12:00:00.0000000 -08:00");
  expect(type, "03 00 00 00 32 00 01", "1");
  expect(type, "0A 00 00 00 3C 00 00 00 00 00 98 3A 00 00", "1.5000");
  expect(type, "0A 00 00 00 3D 00 AC 8E 00 00 65 59 CF 00", "2000-01-01 12:34:56.123");
  expect(type, "12 00 00 00 24 00 33 22 11 00 55 44 77 66 88 99 AA BB CC DD EE FF",
         "00112233-4455-6677-8899-aabbccddeeff");
  expect(type, "06 00 00 00 A5 02 04 00 DE AD", "\\xdead");
  expect(type, "00 00 00 00", "NULL");
}

Test(rows, vectors) {
  expect("F5 10 00 00", "10 00 A9 01 02 00 00 00 00 00 00 00 80 3F 00 00 00 C0", "[1,-2]");
  expect("F5 0C 00 01", "0C 00 A9 01 02 00 01 00 00 00 00 3C 00 C1", "[1,-2.5]");
  expect("F5 10 00 00", "FF FF", "NULL");
}

Test(rows, null_bitmap_rows) {
  const std::string columns =
      "81 03 00 00 00 00 00 09 00 26 04 01 61 00 00 00 00 00 09 00 E7 14 00 09 04 D0 00 34 01 62 00 00 00 00 00 09 00 "
      "68 "
      "01 01 63 00";
  const std::string bytes = from_hex(columns + "D1 04 07 00 00 00 04 00 68 00 69 00 01 01" + "D1 00 FF FF 00" +
                                     "D2 07" + "D2 02 04 07 00 00 00 01 01");
  for (const std::size_t step : {std::size_t{0}, std::size_t{1}, std::size_t{4}}) {
    const auto lines = parse_tokens(bytes, step);
    cr_assert_eq(lines.size(), 5u);
    cr_assert_eq(lines[1], "row | 7 | hi | 1");
    cr_assert_eq(lines[2], "row | NULL | NULL | NULL");
    cr_assert_eq(lines[3], "row | NULL | NULL | NULL");
    cr_assert_eq(lines[4], "row | 7 | NULL | 1");
  }
}

Test(rows, null_bitmap_has_a_bit_for_every_column_the_lowest_first) {
  const std::string nullable_int = "00 00 00 00 09 00 26 04 01 63 00 ";
  const auto two = parse_tokens(from_hex("81 02 00 " + nullable_int + nullable_int + "D2 02 04 04 00 00 00"));
  cr_assert_eq(two.back(), "row | 4 | NULL");
  std::string nine = "81 09 00 ";
  for (int i = 0; i < 9; ++i) nine += nullable_int;
  nine += "D2 01 01 ";
  for (int i = 1; i < 8; ++i) nine += fmt::format("04 {:02X} 00 00 00 ", i);
  cr_assert_eq(parse_tokens(from_hex(nine)).back(), "row | NULL | 1 | 2 | 3 | 4 | 5 | 6 | 7 | NULL");
}

Test(rows, null_bitmap_over_seventeen_columns_of_every_class) {
  // columns 1, 8, 9 and 17 are NULL: a PLP, a fixed-length, a variant and a text-pointer column among them
  const char* types[] = {"A5 FF FF",
                         "38",
                         "26 04",
                         "28",
                         "E7 14 00 09 04 D0 00 34",
                         "68 01",
                         "A5 FF FF",
                         "26 08",
                         "62 49 1F 00 00",
                         "24 10",
                         "F4",
                         "30",
                         "30",
                         "30",
                         "30",
                         "A7 FF FF 09 04 D0 00 34",
                         "22 FF FF FF 7F 01 01 00 74 00"};
  std::string hex = "81 11 00";
  for (const char* type : types) hex += std::string("00 00 00 00 09 00") + type + "01 63 00";
  hex += "D2 81 01 01 02 00 00 00 04 03 00 00 00 03 07 24 0B 02 00 61 00 01 01 00 00 00 00 00 00 00 00 00 00 00 00";
  hex += "10 33 22 11 00 55 44 77 66 88 99 AA BB CC DD EE FF 00 00 00 00 00 00 00 00 00 00 00 00 0A 0B 0C 0D";
  hex += "01 00 00 00 00 00 00 00 01 00 00 00 7A 00 00 00 00";
  const auto whole = parse_tokens(from_hex(hex));
  cr_assert_eq(whole.size(), 2u);
  cr_assert_eq(whole[1],
               "row | NULL | 2 | 3 | 2000-01-01 | a | 1 | 0x | NULL | NULL | 00112233-4455-6677-8899-aabbccddeeff |  | "
               "10 | 11 | 12 | 13 | z | NULL",
               "%s", whole[1].c_str());
  for (std::size_t step = 1; step < 40; ++step) cr_assert(parse_tokens(from_hex(hex), step) == whole, "step %zu", step);
}

namespace {

// Rows of many types with NULLs, both kinds of row tokens, and values that only the careful way takes.
class ManyRows {
 public:
  std::string make(int rows) {
    put_hex("81 10 00");
    for (const char* const type :
         {"26 08", "68 01", "6A 11 26 0A", "6D 08", "2A 07", "2B 03", "28", "24 10", "6E 08", "6F 08",
          "E7 50 00 09 04 D0 00 34", "A7 14 00 09 04 D0 00 34", "E7 FF FF 09 04 D0 00 34", "A5 14 00", "38", "32"}) {
      put_hex("00 00 00 00 09 00");
      put_hex(type);
      put_hex("01 63 00");
    }
    for (int row = 0; row < rows; ++row) add_row(row);
    return std::move(out_);
  }

 private:
  static constexpr int nullable = 14;
  std::uint32_t next() { return state_ = state_ * 1664525U + 1013904223U; }
  bool chance(unsigned of) { return next() >> 8U & 1U && (next() >> 10U) % of == 0; }
  void put_hex(std::string_view hex) { out_ += from_hex(hex); }
  void put(std::uint64_t value, std::size_t bytes) { out_.append(reinterpret_cast<const char*>(&value), bytes); }

  void add_row(int row) {
    const bool with_bitmap = row % 3 == 0;
    std::uint32_t nulls = 0;
    for (unsigned i = 0; i < nullable; ++i) nulls |= chance(3) ? 1U << i : 0;
    if (row < 40) nulls = 0;  // the bitmap of NULLs comes into being later
    put(with_bitmap ? 0xD2 : 0xD1, 1);
    if (with_bitmap) put(nulls, 2);
    for (unsigned i = 0; i < nullable; ++i) {
      if ((nulls >> i & 1U) == 0) {
        add_value(i);
      } else if (!with_bitmap) {
        i == 12 ? put(~std::uint64_t{0}, 8)
                : put(i == 10 || i == 11 || i == 13 ? 0xFFFF : 0, i == 10 || i == 11 || i == 13 ? 2 : 1);
      }
    }
    put(next(), 4);
    put(next() % 2, 1);
  }

  void add_value(unsigned column) {
    const std::size_t length = next() % 20;
    switch (column) {
      case 0:
        put(8, 1), put(next(), 4), put(next(), 4);
        break;
      case 1:
        put(1, 1), put(next() >> 9U & 1U, 1);
        break;
      case 2:  // also narrower than declared
        if (chance(4)) {
          put(5, 1), put(next() % 2, 1), put(next(), 4);
        } else {
          put(17, 1), put(next() % 2, 1), put(next(), 8), put(next() % 1000, 8);
        }
        break;
      case 3:
        put(8, 1), put(next(), 4), put(0x40000000 | next() % 0xFFFF, 4);
        break;
      case 4:
        put(8, 1), put(next() % 0x40, 5), put(next() % 3'652'059, 3);
        break;
      case 5:
        put(9, 1), put(next() % 86'400'000, 4), put(next() % 3'652'000, 3), put(330, 2);
        break;
      case 6:
        put(3, 1), put(next() % 3'652'059, 3);
        break;
      case 7:
        put(16, 1), put(next(), 8), put(next(), 8);
        break;
      case 8:
        put(8, 1), put(next(), 4), put(next(), 4);
        break;
      case 9:
        put(8, 1), put(next() % 70'000, 4), put(next() % 25'920'000, 4);
        break;
      case 10:
        put(2 * length, 2);
        for (std::size_t i = 0; i < length; ++i) put(chance(6) ? 0x2603 : 'a' + i, 2);
        break;
      case 11:
        put(length, 2);
        for (std::size_t i = 0; i < length; ++i) put(chance(6) ? 0xE9 : 'a' + i, 1);
        break;
      case 12:
        add_long(length);
        break;
      default:
        put(length, 2);
        for (std::size_t i = 0; i < length; ++i) put(next(), 1);
    }
  }

  // One chunk, two, or of a size that was not said.
  void add_long(std::size_t length) {
    const unsigned form = next() % 10;
    put(form == 0 ? ~std::uint64_t{1} : 2 * length + (form == 1 ? 2 : 0), 8);
    if (form == 1) put(2, 4), put('!', 2);
    if (length != 0) {
      put(2 * length, 4);
      for (std::size_t i = 0; i < length; ++i) put('k', 2);
    }
    put(0, 4);
  }

  std::string out_;
  std::uint32_t state_ = 42;
};

}  // namespace

Test(rows, whole_rows_and_cut_ones_are_the_same) {
  const std::string bytes = ManyRows().make(700);
  const auto whole = parse_tokens(bytes);
  cr_assert_eq(whole.size(), 701u, "%zu: %s", whole.size(), whole.back().c_str());
  for (const std::size_t step : {1U, 7U, 100U, 1000U, 5000U}) {
    const auto cut = parse_tokens(bytes, step);
    cr_assert_eq(cut.size(), whole.size(), "step %zu", step);
    for (std::size_t i = 0; i < whole.size(); ++i) {
      cr_assert_eq(cut[i], whole[i], "step %zu: %s and %s", step, cut[i].c_str(), whole[i].c_str());
    }
  }
}

Test(rows, a_batch_is_closed_by_its_bytes) {
  std::string bytes = from_hex(one_column("38"));
  for (int i = 0; i < 100; ++i) bytes += from_hex("D1 07 00 00 00");
  tds::RowDecoder decoder(
      {{.user_type = 0, .flags = 0, .type = {.id = tds::DataType::int4, .max_length = 4}, .name = "c"}}, {}, 50);
  const std::string rows = bytes.substr(from_hex(one_column("38")).size());
  std::size_t at = 0;
  std::size_t batches = 0;
  std::size_t total = 0;
  while (at < rows.size()) {
    const auto progress = decoder.rows(as_bytes(std::string_view(rows).substr(at)));
    at += progress.used;
    const auto batch = decoder.take();
    cr_assert(batch != nullptr);
    cr_assert_eq(batch->first_row, total);
    total += batch->rows();
    ++batches;
  }
  cr_assert_eq(total, 100u);
  cr_assert_eq(batches, 10u);
}

Test(rows, bytes_that_are_no_value_are_malformed) {
  for (const auto& [type, bytes] : std::vector<std::pair<const char*, const char*>>{
           {"26 04", "02 07 00"},
           {"68 01", "02 00 00"},
           {"28", "03 FF FF FF"},
           {"28", "02 00 00"},
           {"29 07", "05 FF FF FF FF FF"},
           {"2A 07", "08 00 C0 69 2A C9 07 24 0B"},
           {"6F 08", "08 00 00 00 00 00 82 8B 01"},
           {"24 10", "0F 33 22 11 00 55 44 77 66 88 99 AA BB CC DD EE"},
           {"6A 05 09 02", "12 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00"},
           {"E7 14 00 09 04 D0 00 34", "03 00 61 00 62"},
           {"A5 FF FF", "03 00 00 00 00 00 00 00 02 00 00 00 CA FE 00 00 00 00"},
           {"62 49 1F 00 00", "FF FF FF 00"},
           {"62 49 1F 00 00", "03 00 00 00 38 00 05"},
           {"62 49 1F 00 00", "02 00 00 00 38 09"},
           {"F5 10 00 00", "10 00 A9 01 03 00 00 00 00 00 00 00 80 3F 00 00 00 C0"},
       }) {
    cr_expect_eq(value(type, bytes).substr(0, 9), "malformed", "%s of %s gives %s", bytes, type,
                 value(type, bytes).c_str());
  }
}

Test(rows, a_huge_claimed_length_takes_no_memory) {
  const auto lines = parse_tokens(from_hex(one_column("A5 FF FF") + "D1 00 00 00 00 00 01 00 00 FF FF FF FF 01 02 03"));
  cr_assert_eq(lines.back(), "unfinished");
}

namespace {

struct LossCase {
  std::string text;
  std::uint64_t changed;
};

// One nvarchar row "a<lone surrogate>b" under a policy, then a good row "ok".
LossCase read_surrogate(rows::LossPolicy policy) {
  rows::ColumnLoss loss("c", std::move(policy));
  tds::ColumnMeta column;
  column.flags = tds::flag_nullable;
  column.name = "c";
  column.type = {.id = tds::DataType::nvarchar, .max_length = 20};
  tds::RowDecoder decoder({column}, {&loss}, 1000);
  const std::string bytes = from_hex("D1 06 00 61 00 00 D8 62 00 D1 04 00 6F 00 6B 00");
  const auto progress = decoder.rows(as_bytes(bytes));
  cr_assert_eq(progress.used, bytes.size());
  if (decoder.error()) return {"error: " + describe(decoder.error()), loss.changed()};
  const auto batch = decoder.take();
  cr_assert_eq(batch->rows(), 2u);
  cr_assert_eq(print(tds::value_of(batch->schema().fields[0].type, batch->column(0), 1)), "ok");
  return {print(tds::value_of(batch->schema().fields[0].type, batch->column(0), 0)), loss.changed()};
}

}  // namespace

Test(rows, a_lone_surrogate_goes_by_the_columns_policy) {
  using rows::OnLoss;
  cr_assert_eq(read_surrogate({.action = OnLoss::replace}).text,
               "a\xEF\xBF\xBD"
               "b");
  cr_assert_eq(read_surrogate({.action = OnLoss::replace, .replacement = "?"}).text, "a?b");
  cr_assert_eq(read_surrogate({.action = OnLoss::strip}).text, "ab");
  cr_assert_eq(read_surrogate({.action = OnLoss::null}).text, "NULL");
  cr_assert_eq(read_surrogate({.action = OnLoss::null}).changed, 1u);
  const std::string refused = read_surrogate({.action = OnLoss::error}).text;
  cr_assert_neq(refused.find("surrogate"), std::string::npos, "%s", refused.c_str());
  cr_assert_neq(refused.find("row 1"), std::string::npos, "%s", refused.c_str());
}

Test(rows, after_an_error_the_rest_is_read_past) {
  const auto lines =
      parse_tokens(from_hex(one_column("E7 14 00 09 04 D0 00 34") +
                            "D1 02 00 00 D8 D1 04 00 6F 00 6B 00 FD 10 00 C1 00 02 00 00 00 00 00 00 00"));
  cr_assert_eq(lines.size(), 3u);
  cr_assert_eq(lines[1], "done fd status 0010 command c1 rows 2");
  cr_assert_neq(lines[2].find("surrogate"), std::string::npos);
}

Test(rows, types_that_cannot_be_read_are_refused_with_the_columns_name) {
  tds::ColumnMeta column;
  column.name = "secret";
  column.flags = tds::flag_encrypted;
  column.type = {.id = tds::DataType::int4, .max_length = 4};
  try {
    const tds::RowDecoder decoder({column}, {}, 1000);
    cr_assert_fail("an encrypted column must be refused");
  } catch (const Error& error) {
    cr_assert_eq(error.code(), "type_unsupported");
    cr_assert_eq(error.context().column, "secret");
  }
}

namespace {

// "2024-07-01 12:00:00.123456 +05:30" as the instant in microseconds; the offset may be absent.
std::int64_t instant(const std::string& text) {
  const auto number = [&](std::size_t at, std::size_t n) { return std::stoll(text.substr(at, n)); };
  const std::int64_t days =
      civil::days_from({static_cast<std::int32_t>(number(0, 4)), static_cast<std::uint8_t>(number(5, 2)),
                        static_cast<std::uint8_t>(number(8, 2))});
  std::int64_t micros = ((days * 24 + number(11, 2)) * 60 + number(14, 2)) * 60 + number(17, 2);
  micros *= 1'000'000;
  std::size_t at = 19;
  if (at < text.size() && text[at] == '.') {
    std::int64_t unit = 100'000;
    for (++at; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at, unit /= 10)
      micros += (text[at] - '0') * unit;
  }
  const std::size_t sign = text.find_first_of("+-", at);
  if (sign == std::string::npos) return micros;
  const std::int64_t minutes = number(sign + 1, 2) * 60 + number(sign + 4, 2);
  return micros - (text[sign] == '-' ? -minutes : minutes) * 60'000'000;
}

bool looks_like_timestamp(const std::string& text) {
  return text.size() >= 19 && text[4] == '-' && text[10] == ' ' && text[13] == ':';
}

// The other server prints numbers, timestamps and uuids in its own style: compares what they mean.
bool same(const Value& got, const std::optional<std::string>& wanted) {
  if (got.is_null() || !wanted) return got.is_null() && !wanted;
  const std::string text = print(got);
  if (text == *wanted) return true;
  if (const auto* number = std::get_if<double>(&got.value)) {
    return *number == std::stod(*wanted) || static_cast<float>(*number) == std::stof(*wanted);
  }
  if (looks_like_timestamp(text) && looks_like_timestamp(*wanted)) return instant(text) == instant(*wanted);
  std::string lower = *wanted;
  for (char& c : lower) c = static_cast<char>(std::tolower(c));
  return text == lower;
}

void compare(const std::string& capture, const std::string& expected, std::size_t first_column_count) {
  EventLog log;
  tds::TokenParser parser(log);
  for (const std::string& message : server_messages(load_capture(capture))) {
    std::string tokens;
    for (std::size_t at = 0; at < message.size();) {
      const std::size_t size =
          static_cast<std::uint8_t>(message[at + 2]) * 256u + static_cast<std::uint8_t>(message[at + 3]);
      tokens += message.substr(at + 8, size - 8);
      at += size;
    }
    std::size_t used = 0;
    cr_assert_eq(static_cast<int>(parser.feed(as_bytes(tokens), used)),
                 static_cast<int>(tds::TokenParser::Status::need_more));
    cr_assert_eq(used, tokens.size());
    log.empty();
  }
  const auto rows = load_rows(expected);
  std::vector<std::vector<Value>> got;
  for (auto& row : log.rows) {
    if (row.size() == first_column_count) got.push_back(row);
  }
  cr_assert_eq(got.size(), rows.size(), "%zu rows and not %zu", got.size(), rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    cr_assert_eq(got[i].size(), rows[i].size());
    for (std::size_t k = 0; k < rows[i].size(); ++k) {
      cr_expect(same(got[i][k], rows[i][k]), "row %zu column %zu: %s and not %s", i, k, print(got[i][k]).c_str(),
                rows[i][k] ? rows[i][k]->c_str() : "NULL");
    }
  }
}

}  // namespace

Test(captures, every_type_reads_as_the_server_prints_it) {
  compare("02-all-types.tds", "02-all-types.expected.tsv", 38);
}

Test(captures, bulk_loaded_rows_read_back_as_the_server_prints_them) {
  compare("07-bulk-load-13-columns.tds", "07-bulk-load-13-columns.expected.tsv", 13);
}

Test(captures, long_values_over_many_small_packets) {
  std::string all;
  for (const std::string& message : server_messages(load_capture("03-long-values-512-byte-packets.tds")))
    all += message;
  bool found = false;
  for (const std::string& line : replay(all, 100)) {
    if (line.size() > 7000 && line.rfind("row | ", 0) == 0) found = true;
  }
  cr_assert(found, "the row with values of 3,003, 2,003 and 3,000 units");
}
