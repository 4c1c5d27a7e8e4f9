#include "tds/wire/type_info.hpp"

#include <criterion/criterion.h>

#include "base/error.hpp"
#include "tds/wire/collation.hpp"
#include "tests/support/hex.hpp"

using namespace rowferry;
using namespace rowferry::tds;
using rowferry::test::from_hex;
using rowferry::test::to_hex;

namespace {

constexpr Collation latin1 = {.info = 0x00D00409, .sort_id = 52};

std::vector<ColumnMeta> parse(std::string_view hex, MetaPlace place) {
  const std::string wire = from_hex(hex);
  ByteReader from(as_bytes(std::string_view(wire).substr(1)));
  std::vector<ColumnMeta> columns;
  bool none = false;
  std::string why;
  cr_assert_eq(static_cast<int>(read_columns(from, columns, none, place, why)), static_cast<int>(Parsed::ok), "%s",
               why.c_str());
  cr_assert_eq(from.left(), 0u);
  return columns;
}

// Parses, writes again, and expects the same bytes.
void round_trip(std::string_view hex, MetaPlace place) {
  ByteBuffer out;
  put_columns(out, parse(hex, place), place);
  cr_assert_eq(to_hex(out.view()), to_hex(from_hex(hex)));
}

std::string parse_type(std::string_view hex) {
  const std::string wire = from_hex(hex);
  ByteReader from(as_bytes(wire));
  TypeInfo type;
  std::string why;
  switch (read_type_info(from, type, MetaPlace::result, why)) {
    case Parsed::ok:
      return from.left() == 0 ? type_name(type) : "left over";
    case Parsed::need_more:
      return "need_more";
    case Parsed::malformed:
      return "malformed: " + why;
  }
  return "";
}

std::uint16_t page(std::string_view hex) {
  const std::string bytes = from_hex(hex);
  return code_page_or_throw(load_collation(reinterpret_cast<const std::uint8_t*>(bytes.data())));
}

}  // namespace

Test(type_info, columns_of_a_result) {
  const auto columns = parse(
      "81 03 00 00 00 00 00 09 00 26 04 01 61 00 00 00 00 00 09 00 E7 14 00 09 04 D0 00 34 01 62 00 00 00 00 00 09 "
      "00 68 01 01 63 00",
      MetaPlace::result);
  cr_assert_eq(columns.size(), 3u);
  cr_assert_eq(columns[0].name, "a");
  cr_assert_eq(type_name(columns[0].type), "int");
  cr_assert(columns[0].nullable());
  cr_assert_eq(type_name(columns[1].type), "nvarchar(10)");
  cr_assert(columns[1].type.collation == latin1);
  cr_assert_eq(type_name(columns[2].type), "bit");
}

Test(type_info, columns_are_written_as_they_were_read) {
  round_trip(
      "81 05 00 00 00 00 00 09 00 26 04 01 69 00 00 00 00 00 09 00 E7 14 00 09 04 D0 00 34 01 73 00 00 00 00 00 09 00 "
      "6A 09 0A 02 01 64 00 00 00 00 00 09 00 2A 07 01 74 00 00 00 00 00 09 00 A5 FF FF 01 62 00",
      MetaPlace::bulk);
  round_trip("81 01 00 00 00 00 00 09 00 23 FF FF FF 7F 09 04 D0 00 34 01 01 00 74 00 01 63 00", MetaPlace::result);
  round_trip("81 01 00 00 00 00 00 09 00 23 FF FF FF 7F 09 04 D0 00 34 01 00 74 00 01 63 00", MetaPlace::bulk);
  // date has nothing behind its id; xml with a schema; a UDT
  round_trip("81 02 00 00 00 00 00 08 00 28 01 64 00 00 00 00 00 08 00 F1 00 01 78 00", MetaPlace::result);
  round_trip("81 01 00 00 00 00 00 08 00 F1 01 01 61 00 01 62 00 01 00 63 00 01 78 00", MetaPlace::result);
  round_trip("81 01 00 00 00 00 00 08 00 F0 FF FF 01 61 00 01 62 00 01 63 00 01 00 64 00 01 78 00", MetaPlace::result);
}

Test(type_info, text_names_its_table_differently_in_results_and_bulk) {
  const auto result =
      parse("81 01 00 00 00 00 00 09 00 22 FF FF FF 7F 02 01 00 73 00 01 00 74 00 01 63 00", MetaPlace::result);
  cr_assert_eq(result[0].table.size(), 2u);
  cr_assert_eq(result[0].table[1], "t");
  ByteBuffer out;
  put_columns(out, result, MetaPlace::bulk);
  const auto bulk = parse(to_hex(out.view()), MetaPlace::bulk);
  cr_assert_eq(bulk[0].table.size(), 1u);
  cr_assert_eq(bulk[0].table[0], "s.t");
}

Test(type_info, every_type_has_a_name) {
  const struct {
    const char* hex;
    const char* name;
  } cases[] = {
      {"30", "tinyint"},
      {"34", "smallint"},
      {"38", "int"},
      {"7F", "bigint"},
      {"32", "bit"},
      {"3B", "real"},
      {"3E", "float(53)"},
      {"3C", "money"},
      {"7A", "smallmoney"},
      {"3D", "datetime"},
      {"3A", "smalldatetime"},
      {"26 01", "tinyint"},
      {"26 08", "bigint"},
      {"68 01", "bit"},
      {"6D 04", "real"},
      {"6E 04", "smallmoney"},
      {"6F 08", "datetime"},
      {"6A 09 0A 02", "decimal(10,2)"},
      {"6C 11 26 00", "numeric(38,0)"},
      {"24 10", "uniqueidentifier"},
      {"28", "date"},
      {"29 00", "time(0)"},
      {"2A 07", "datetime2(7)"},
      {"2B 03", "datetimeoffset(3)"},
      {"AF 05 00 09 04 D0 00 34", "char(5)"},
      {"A7 FF FF 09 04 D0 00 34", "varchar(max)"},
      {"EF 0A 00 09 04 D0 00 34", "nchar(5)"},
      {"E7 40 1F 09 04 D0 00 34", "nvarchar(4000)"},
      {"AD 08 00", "binary(8)"},
      {"A5 FF FF", "varbinary(max)"},
      {"F4", "json"},
      {"F5 10 00 00", "vector(2)"},
      {"62 49 1F 00 00", "sql_variant"},
      {"F1 00", "xml"},
  };
  for (const auto& c : cases) cr_assert_eq(parse_type(c.hex), c.name, "%s", c.hex);
}

Test(type_info, what_cannot_be_is_malformed) {
  for (const char* hex : {"26 03", "68 02", "24 0F", "6A 05 27 00", "6A 05 09 0A", "6A 12 09 02", "2A 08", "F3", "99",
                          "E7 41 1F 09 04 D0 00 34", "AF FF FF 09 04 D0 00 34"}) {
    cr_assert_eq(parse_type(hex).substr(0, 9), "malformed", "%s gives %s", hex, parse_type(hex).c_str());
  }
  for (const char* hex : {"", "26", "6A 09 0A", "E7 14 00 09 04", "F1", "F1 01 01 61"}) {
    cr_assert_eq(parse_type(hex), "need_more", "%s", hex);
  }
}

Test(collation, code_page_by_utf8_bit_then_sort_id_then_locale) {
  cr_assert_eq(page("09 04 D0 00 34"), 1252);  // SQL_Latin1_General_CP1_CI_AS
  cr_assert_eq(page("09 04 D0 00 00"), 1252);
  cr_assert_eq(page("09 04 D0 24 00"), code_page_utf8);
  cr_assert_eq(page("09 04 00 26 00"), code_page_utf8);
  cr_assert_eq(page("11 04 D0 00 00"), 932);
  cr_assert_eq(page("04 08 D0 00 00"), 936);
  cr_assert_eq(page("19 04 D0 00 00"), 1251);
  cr_assert_eq(page("15 04 D0 00 00"), 1250);
  cr_assert_eq(page("09 04 D0 00 6A"), 1251);  // SQL_Latin1_General_CP1251_CI_AS
  cr_assert_eq(page("09 04 D0 00 2A"), 850);   // SQL_Latin1_General_CP850_CI_AS
  cr_assert_eq(page("09 04 D0 00 1F"), 437);
  cr_assert_eq(page("2A 04 D0 00 00"), 1258);
  cr_assert_eq(page("01 40 D0 00 00"), 1256);
  cr_assert_eq(page("39 04 D0 00 00"), code_page_unicode_only);
  cr_assert_eq(page("00 00 00 00 00"), 1252);
}

Test(collation, an_unknown_sort_id_is_an_error_that_names_it) {
  try {
    (void)page("09 04 D0 00 63");
    cr_assert_fail("SortId 99 must not become 1252");
  } catch (const Error& error) {
    cr_assert_eq(error.code(), "unknown_collation");
    cr_assert_neq(error.detail().find("SortId 99"), std::string::npos, "%s", error.what());
  }
}

Test(collation, bytes_round_trip) {
  const std::string bytes = from_hex("09 04 D0 24 34");
  std::uint8_t back[collation_bytes];
  store_collation(back, load_collation(reinterpret_cast<const std::uint8_t*>(bytes.data())));
  cr_assert_eq(as_text(ByteView(back)), bytes);
}
