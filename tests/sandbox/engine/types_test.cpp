// Types: wire bytes, literals, conversions and their errors.
#include <fmt/format.h>

#include "common.hpp"
#include "sandbox/engine/convert.hpp"

using namespace rowferry;
using namespace rowferry::sandbox::engine;
using namespace rowferry::sandbox::engine::testing;

namespace {

// The wire bytes of an expression as a nullable column sends it.
std::string wire(const char* expression, const char* type) {
  World w;
  w.a.run(fmt::format("CREATE TABLE t (c {} NULL); INSERT t VALUES ({})", type, expression));
  w.a.recorder.raw_rows.clear();
  const std::string answer = w.a.run("SELECT c FROM t");
  if (w.a.recorder.raw_rows.empty()) return answer;
  return hex_text(w.a.recorder.raw_rows[0]);
}

struct Vector {
  const char* type;
  const char* literal;
  const char* bytes;
};

}  // namespace

Test(types, values_have_the_bytes_of_the_protocol) {
  const Vector vectors[] = {
      {"decimal(9,2)", "-123.45", "050039300000"},
      {"decimal(10,2)", "123.45", "09013930000000000000"},
      {"decimal(28,0)", "1",
       "0D010100000000000000000000"
       "00"},
      {"decimal(38,10)", "-1.5",
       "1100"
       "00D6117E03"
       "0000000000000000000000"},
      {"decimal(38,0)", "99999999999999999999999999999999999999", "1101FFFFFFFF3F228A097AC4865AA84C3B4B"},
      {"money", "1", "080000000010270000"},
      {"money", "-1", "08FFFFFFFFF0D8FFFF"},
      {"money", "123.4567", "080000000087D61200"},
      {"money", "922337203685477.5807", "08FFFFFF7FFFFFFFFF"},
      {"smallmoney", "1.5", "04983A0000"},
      {"smallmoney", "-0.0001", "04FFFFFFFF"},
      {"real", "1.5", "040000C03F"},
      {"float", "-2.25", "0800000000000002C0"},
      {"datetime", "'19000101'", "080000000000000000"},
      {"datetime", "'17530101'", "08462EFFFF00000000"},
      {"datetime", "'2000-01-01T12:34:56.123'", "08AC8E00006559CF00"},
      {"datetime", "'9999-12-31T23:59:59.997'", "087F242D00FF818B01"},
      {"datetime", "'2025-01-01 23:59:59.999'", "0859B2000000000000"},
      {"smalldatetime", "'2000-01-01 12:34'", "04AC8EF202"},
      {"smalldatetime", "'2079-06-06 23:59'", "04FFFF9F05"},
      {"date", "'0001-01-01'", "03000000"},
      {"date", "'9999-12-31'", "03DAB937"},
      {"date", "'1970-01-01'", "033AF90A"},
      {"time(7)", "'12:34:56.1234567'", "0587EE977669"},
      {"time(0)", "'12:34:56.1234567'", "03F0B000"},
      {"time(3)", "'12:34:56.1234567'", "04FB29B302"},
      {"datetime2(7)", "'2000-01-01 12:34:56.1234567'", "0887EE97766907240B"},
      {"datetime2(3)", "'2000-01-01 12:34:56.1234567'", "07FB29B30207240B"},
      {"datetimeoffset(7)", "'2000-01-01 12:34:56.1234567 +05:30'", "0A87B2DF5C3B07240B4A01"},
      {"datetimeoffset(7)", "'2000-01-01 01:00 +02:00'", "0A0058A5C8C006240B7800"},
      {"uniqueidentifier", "'00112233-4455-6677-8899-aabbccddeeff'", "1033221100554477668899AABBCCDDEEFF"},
      {"nvarchar(10)", "N'aé😀'", "08006100E9003DD800DE"},
      {"varchar(10)", "'é'", "0100E9"},
      {"varchar(10) COLLATE Latin1_General_100_CI_AS_SC_UTF8", "N'é'", "0200C3A9"},
      {"varbinary(max)", "0x616263",
       "030000000000000003000000616263"
       "00000000"},
      {"varbinary(max)", "0x", "000000000000000000000000"},
      {"sql_variant", "5",
       "060000003800"
       "05000000"},
      {"sql_variant", "CAST(1.23 AS decimal(9,2))",
       "090000006A02"
       "0902"
       "017B000000"},
      {"bit", "1", "0101"},
      {"int", "NULL", "00"},
      {"nvarchar(5)", "NULL", "FFFF"},
      {"varchar(max)", "NULL", "FFFFFFFFFFFFFFFF"},
      {"char(4)", "'ab'", "040061622020"},
      {"nchar(2)", "N'a'", "040061002000"},
      {"binary(3)", "0x01", "0300010000"},
  };
  for (const Vector& v : vectors) {
    const std::string got = wire(v.literal, v.type);
    cr_expect(got == v.bytes, "%s %s gave %s, wanted %s", v.type, v.literal, got.c_str(), v.bytes);
  }
}

Test(types, text_comes_in_the_code_page_of_its_collation) {
  World w;
  w.a.run(
      "CREATE TABLE t (a varchar(20) COLLATE SQL_Latin1_General_CP1251_CI_AS, b varchar(20) COLLATE "
      "SQL_Latin1_General_CP850_CI_AS, "
      "c varchar(20) COLLATE Japanese_CI_AS, d varchar(20) COLLATE Polish_CI_AS)");
  ROWS(w.a,
       "INSERT t VALUES (N'П', N'é', N'あ', N'ł'); SELECT CAST(a AS varbinary(20)), CAST(b AS varbinary(20)), CAST(c "
       "AS varbinary(20)), CAST(d AS varbinary(20)), * FROM t",
       "0xCF|0x82|0x82A0|0xB3|П|é|あ|ł");
  ROWS(w.a, "DELETE t; INSERT t (a) VALUES (N'é中'); SELECT a FROM t", "??");
}

Test(types, a_utf8_column_goes_as_nvarchar_to_a_client_without_utf8) {
  World w;
  w.a.run("CREATE TABLE t (a varchar(20) COLLATE Latin1_General_100_CI_AS_SC_UTF8); INSERT t VALUES (N'é😀')");
  ROWS(w.a, "SELECT a FROM t", "é😀");
  cr_assert(w.a.recorder.last_columns[0].type.id == tds::DataType::bigvarchar);
  SessionInfo info;
  info.database = "db";
  Client old(w.server, "db");
  old.session = w.server.open_session(info);
  ROWS(old, "SELECT a FROM t", "é😀");
  cr_assert(old.recorder.last_columns[0].type.id == tds::DataType::nvarchar);
}

Test(types, not_null_columns_are_sent_in_fixed_form) {
  World w;
  w.a.run(
      "CREATE TABLE t (a int NOT NULL, b int NULL, c datetime2(3) NOT NULL, d bigint IDENTITY, e AS a * 2, f "
      "rowversion); INSERT t (a, b, c) VALUES (7, NULL, '20240102')");
  ROWS(w.a, "SELECT a, b, c, d, e FROM t", "7|NULL|2024-01-02 00:00:00.000|1|14");
  const Columns& c = w.a.recorder.last_columns;
  cr_expect(c[0].type.id == tds::DataType::int4 && c[0].flags == 0x0008);
  cr_expect(c[1].type.id == tds::DataType::intn && c[1].flags == 0x0009);
  cr_expect(c[2].type.id == tds::DataType::datetime2 && c[2].flags == 0x0008);
  cr_expect(c[3].flags == 0x0010, "identity: flags 0x%x", c[3].flags);
  cr_expect(c[4].flags == 0x0021, "computed: flags 0x%x", c[4].flags);
}

Test(types, conversions_fail_with_the_servers_errors) {
  World w;
  FAILS(w.a, "SELECT CAST('abc' AS int)", 245);
  FAILS(w.a, "SELECT CAST('abc' AS decimal(5,2))", 8114);
  FAILS(w.a, "SELECT CAST('x' AS float)", 8114);
  FAILS(w.a, "SELECT CAST('99999999999' AS int)", 248);
  FAILS(w.a, "SELECT CAST(300 AS tinyint)", 220);
  FAILS(w.a, "SELECT CAST(99999 AS smallint)", 220);
  FAILS(w.a, "SELECT CAST(3000000000 AS int)", 8115);
  FAILS(w.a, "SELECT CAST(1234.5 AS decimal(4,2))", 8115);
  FAILS(w.a, "SELECT 2147483647 + 1", 8115);
  FAILS(w.a, "SELECT CAST('2024-13-01' AS datetime)", 242);
  FAILS(w.a, "SELECT CAST('2024-13-01' AS date)", 241);
  FAILS(w.a, "SELECT CAST('nonsense' AS datetime2)", 241);
  FAILS(w.a, "SELECT CAST(CAST('1700-01-01' AS date) AS datetime)", 242);
  FAILS(w.a, "SELECT CAST('no guid' AS uniqueidentifier)", 8169);
  FAILS(w.a, "SELECT 1 / 0", 8134);
  FAILS(w.a, "SELECT CAST(1 AS date)", 529);
  ROWS(w.a, "SELECT TRY_CAST('abc' AS int), TRY_CONVERT(date, '2024-02-30'), TRY_CAST('12' AS int)", "NULL|NULL|12");
}

Test(types, decimals_round_half_away_from_zero_and_keep_38_digits) {
  World w;
  ROWS(w.a,
       "SELECT CAST(123.455 AS decimal(10,2)), CAST(-123.455 AS decimal(10,2)), CAST(0.5 AS int), CAST(-1.7 AS int)",
       "123.46|-123.46|0|-1");
  ROWS(w.a, "SELECT CAST('12345678901234567890123456789012345678' AS decimal(38,0)) - 1",
       "12345678901234567890123456789012345677");
  ROWS(w.a, "SELECT 1.0 / 3, 10.00 * 3.000, 7 / 2, 7 % 4, 7.5 % 2", "0.333333|30.00000|3|3|1.5");
  ROWS(w.a, "SELECT CAST(264.90 AS decimal(18,2)) + 0.05", "264.95");
}

Test(types, strings_compare_as_their_collation_says) {
  World w;
  ROWS(w.a,
       "SELECT IIF('abc' = 'ABC  ', 1, 0), IIF(N'é' = N'e', 1, 0), IIF(N'Привет' = N'ПРИВЕТ', 1, 0), IIF('a' COLLATE "
       "Latin1_General_BIN2 = 'A', 1, 0), "
       "IIF(N'é' COLLATE Latin1_General_CI_AI = N'E', 1, 0)",
       "1|0|1|0|1");
  ROWS(w.a,
       "SELECT IIF('a' COLLATE Latin1_General_CS_AS = 'A', 1, 0), IIF('straße' LIKE 'STRASS%', 1, 0), IIF('50%' LIKE "
       "'50[%]', 1, 0), IIF('a_c' LIKE 'a!_c' ESCAPE '!', 1, 0)",
       "0|0|1|1");
}

Test(types, unique_identifiers_sort_in_the_servers_order) {
  World w;
  w.a.run(
      "CREATE TABLE g (id uniqueidentifier); INSERT g VALUES ('FF000000-0000-0000-0000-000000000001'), "
      "('00000000-0000-0000-0000-000000000002'), ('00000000-0000-0000-0100-000000000000')");
  ROWS(
      w.a, "SELECT id FROM g ORDER BY id",
      "00000000-0000-0000-0100-000000000000 FF000000-0000-0000-0000-000000000001 00000000-0000-0000-0000-000000000002");
}

Test(types, dates_are_printed_in_the_styles_of_convert) {
  World w;
  ROWS(w.a,
       "DECLARE @d datetime = '2024-03-05 14:07:09.123'; SELECT CONVERT(varchar(30), @d), CONVERT(varchar(30), @d, "
       "120), CONVERT(varchar(30), @d, 121), CONVERT(varchar(30), @d, 112), "
       "CONVERT(varchar(30), @d, 103), CONVERT(varchar(30), @d, 126)",
       "Mar  5 2024  2:07PM|2024-03-05 14:07:09|2024-03-05 14:07:09.123|20240305|05/03/2024|2024-03-05T14:07:09.123");
  ROWS(w.a,
       "SELECT CONVERT(varchar(40), CAST('2024-03-05 01:02:03.1234567 -08:00' AS datetimeoffset), 121), "
       "CONVERT(varchar(8), CAST('23:59:59.5' AS time(0)))",
       "2024-03-05 01:02:03.1234567 -08:00|00:00:00");
  ROWS(w.a,
       "SELECT CAST('Mar 5 2024 2:07PM' AS datetime2(0)), CAST('5 March 2024' AS date), CAST('03/05/2024' AS date), "
       "CAST('20240305 10:11' AS smalldatetime)",
       "2024-03-05 14:07:00|2024-03-05|2024-03-05|2024-03-05 10:11:00.000");
}

Test(types, every_type_keeps_its_extremes) {
  World w;
  w.a.run(
      "CREATE TABLE t (a tinyint, b smallint, c int, d bigint, e float, f real, g money, h text, i ntext, j image, k "
      "xml, l nvarchar(max), m varchar(max), n sql_variant)");
  w.a.run(
      "INSERT t VALUES (255, -32768, -2147483648, -9223372036854775808, 1.7976931348623157e308, 3.4e38, "
      "-922337203685477.5808, 'long text', N'ünï', 0xDEAD, N'<a>1</a>', REPLICATE(CAST(N'x' AS "
      "nvarchar(max)), 5000), REPLICATE(CAST('y' AS varchar(max)), 9000), N'é')");
  ROWS(w.a, "SELECT a, b, c, d, e, f, g, h, i, j, k, LEN(l), DATALENGTH(m), n FROM t",
       "255|-32768|-2147483648|-9223372036854775808|1.7976931348623157e+308|3.4e+38|-922337203685477.5808|long "
       "text|ünï|0xDEAD|<a>1</a>|5000|9000|é");
}

Test(types, textsize_cuts_long_values_and_nothing_else) {
  World w;
  w.a.run(
      "CREATE TABLE t (m nvarchar(max), v nvarchar(4000), i image); INSERT t VALUES (REPLICATE(CAST(N'x' AS "
      "nvarchar(max)), 70000) + N'END', "
      "REPLICATE(N'y', 4000), 0x0102030405)");
  ROWS(w.a, "SELECT RIGHT(m, 3), LEN(m) FROM t", "END|70003");
  w.a.recorder.raw_rows.clear();
  w.a.run("SET TEXTSIZE 4; SELECT i, v FROM t");
  cr_assert_eq(w.a.recorder.raw_rows.size(), 1U);
  cr_expect_eq(w.a.recorder.raw_rows[0].size(), 1U + 24U + 4U + 4U + 2U + 8000U);
  ROWS(w.a, "SET TEXTSIZE -1; SELECT i FROM t", "0x0102030405");
}

Test(types, too_wide_a_row_is_refused_when_the_table_is_made) {
  World w;
  FAILS(w.a, "CREATE TABLE t (a char(8000), b char(100))", 1701);
  std::string many = "CREATE TABLE t (c0 int";
  for (int i = 1; i < 1025; ++i) many += fmt::format(", c{} int", i);
  FAILS(w.a, many + ")", 1702);
}
