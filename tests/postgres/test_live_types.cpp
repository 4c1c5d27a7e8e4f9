#include <fmt/format.h>

#include <algorithm>

#include "live.hpp"

using namespace rowferry;
using namespace rowferry::postgres::test;

namespace {

struct TypeCase {
  std::string type;
  std::vector<std::string> values;  // SQL literals
  std::string expected;             // SQL of the expected text; empty: as PostgreSQL prints the column
};

const std::vector<TypeCase> cases{
    {"boolean", {"true", "false"}, ""},
    {"smallint", {"-32768", "32767", "0"}, ""},
    {"integer", {"-2147483648", "2147483647"}, ""},
    {"bigint", {"-9223372036854775808", "9223372036854775807"}, ""},
    {"real", {"'NaN'", "'Infinity'", "'-Infinity'", "'-0'", "3.4e38", "1.4e-45"}, "encode(float4send(v), 'hex')"},
    {"double precision",
     {"'NaN'", "'Infinity'", "'-Infinity'", "'-0'", "1.7976931348623157e308", "5e-324"},
     "encode(float8send(v), 'hex')"},
    {"numeric(38,0)", {"99999999999999999999999999999999999999", "-99999999999999999999999999999999999999", "0"}, ""},
    {"numeric(38,38)", {"0.99999999999999999999999999999999999999", "0.00000000000000000000000000000000000001"}, ""},
    {"numeric(18,2)", {"264.90", "-0.05", "9999999999999999.99"}, ""},
    {"numeric(21,2)", {"92233720368547758.07"}, ""},
    {"numeric(3,-2)", {"99900", "-100"}, ""},
    {"numeric(2,4)", {"0.0099", "-0.0001"}, ""},
    {"numeric", {"1.5", "-12345678901234567890.123456789012345678", "0.000000000000000001"}, "v::numeric(38,18)::text"},
    {"numeric(40,2)", {"1.25", "99999999999999999999.75"}, "v::numeric(38,18)::text"},
    {"money", {"'92233720368547758.07'", "'-92233720368547758.08'", "'0.01'"}, "v::numeric::text"},
    {"date",
     {"'4713-01-01 BC'", "'0001-01-01'", "'9999-12-31'", "'5874897-12-31'", "'infinity'", "'-infinity'",
      "'1970-01-01'"},
     ""},
    {"time", {"'00:00:00'", "'23:59:59.999999'", "'24:00:00'", "'12:30:00.5'"}, ""},
    {"time(3)", {"'12:30:00.1235'"}, ""},
    {"timetz", {"'10:20:30+05:30'", "'24:00:00-15:59:59'", "'00:00:00.000001+00'"}, ""},
    {"timestamp",
     {"'4713-01-01 BC'", "'0001-01-01'", "'9999-12-31 23:59:59.999999'", "'infinity'", "'-infinity'",
      "'1969-12-31 23:59:59.999999'"},
     ""},
    {"timestamp(0)", {"'2026-11-30 18:00:00.5'"}, ""},
    {"timestamptz",
     {"'4713-01-01 BC'", "'2026-07-01 12:00:00+02'", "'infinity'", "'9999-12-31 23:59:59.999999+00'"},
     ""},
    {"interval",
     {"'1 mon 2 days 03:04:05'", "'-178000000 years'", "'178000000 years 11 mons -1 days 596523:59:59.999999'"},
     ""},
    {"uuid", {"'00112233-4455-6677-8899-aabbccddeeff'", "'00000000-0000-0000-0000-000000000000'"}, ""},
    {"bytea", {"''", "'\\x00ff10'", "decode(repeat('ab', 70000), 'hex')"}, ""},
    {"text", {"''", "'naïve 😀 ''quoted'' \"x\"'", "repeat('ß', 100000)", "E'tab\\tline\\n'"}, ""},
    {"varchar(10)", {"''", "'ああ😀'"}, ""},
    {"char(5)", {"''", "'a'", "'ab cd'", "'😀'"}, ""},
    {"\"char\"", {"'x'", "''", "'\\351'"}, "CASE WHEN v = '\\351' THEN '\\351' ELSE v::text END"},
    {"name", {"'a_name'"}, ""},
    {"citext", {"'MiXeD'"}, ""},
    {"json", {"'{\"b\":1,\"a\":2,\"a\":3}'", "'[1, 2]'", "'null'"}, ""},
    {"jsonb", {"'{\"b\":1,\"a\":2,\"a\":3}'", "'\"x\"'"}, ""},
    {"xml", {"'<?xml version=\"1.0\" encoding=\"UTF-8\"?><a>é</a>'", "'<b/>'"}, ""},
    {"bit(5)", {"B'10101'", "B'00000'"}, ""},
    {"bit varying(12)", {"B''", "B'101010101010'", "B'1'"}, ""},
    {"bit varying", {"repeat('10', 5000)::bit varying"}, ""},
    {"oid", {"0", "4294967295"}, ""},
    {"xid", {"'0'", "'4294967295'"}, ""},
    {"cid", {"'7'"}, ""},
    {"xid8", {"'18446744073709551615'"}, ""},
    {"pg_lsn", {"'16/B374D848'"}, ""},
    {"regclass", {"'pg_class'", "'live_types.\"odd name\"'"}, ""},
    {"inet", {"'10.0.0.1/8'", "'10.0.0.1'", "'::1'", "'2001:db8:ffff:ffff:ffff:ffff:ffff:ffff/64'"}, ""},
    {"cidr", {"'10.0.0.0/8'", "'10.0.0.1'"}, ""},
    {"macaddr", {"'08:00:2b:01:02:03'"}, ""},
    {"macaddr8", {"'08:00:2b:01:02:03:04:05'"}, ""},
    {"point", {"'(1.5,-2)'"}, ""},
    {"int4range", {"'[1,5)'", "'empty'", "'(,)'"}, ""},
    {"int4multirange", {"'{[1,2),[5,9)}'"}, ""},
    {"tsvector", {"'b a a'"}, ""},
    {"tsquery", {"'a & b'"}, ""},
    {"hstore", {"'a=>1,b=>NULL'"}, ""},
    {"integer[]", {"ARRAY[1,NULL,3]", "'{}'", "'[0:1]={1,2}'"}, ""},
    {"text[]", {"ARRAY['a,b','c\"d',NULL,'']"}, ""},
    {"numeric(5,2)[]", {"ARRAY[1.5]"}, ""},
    {"live_types.mood", {"'ok'", "'very bad'"}, ""},
    {"live_types.mood[]", {"ARRAY['ok','very bad']::live_types.mood[]"}, ""},
    {"live_types.pair", {"ROW(1,'a b')", "ROW(NULL,NULL)", "ROW(2,'')"}, ""},
    {"live_types.pair[]", {"ARRAY[ROW(1,'x')::live_types.pair]"}, ""},
    {"live_types.small_price", {"1.25", "99.99"}, ""},
    {"live_types.words", {"ARRAY['a','b']"}, ""},
    {"live_types.boxed", {"ROW(5,'in a domain')"}, ""},
};

void make_types(Live& live) {
  live.sql(
      "CREATE TYPE live_types.mood AS ENUM ('ok', 'very bad'); CREATE TYPE live_types.pair AS (a int, b text); "
      "CREATE DOMAIN live_types.price AS numeric(4,2); CREATE DOMAIN live_types.small_price AS live_types.price CHECK "
      "(VALUE < 100); "
      "CREATE DOMAIN live_types.words AS text[]; CREATE DOMAIN live_types.boxed AS live_types.pair; "
      "CREATE TABLE live_types.\"odd name\" (); SET search_path = public");
}

// The table's rows as the engine reads them, against what the server prints.
void check(Live& live, const TypeCase& one) {
  live.sql("DROP TABLE IF EXISTS live_types.t; CREATE TABLE live_types.t (n serial, v " + one.type + ")");
  for (const std::string& value : one.values) {
    live.sql(fmt::format("INSERT INTO live_types.t (v) VALUES ({}), (NULL)", value));
  }
  live.sql("SET search_path = ''");
  std::string expected = one.expected;
  if (expected.empty()) {
    const postgres::Result output = live.sql(
        "SELECT t.typoutput::pg_catalog.text AS f FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type t ON t.oid = "
        "a.atttypid "
        "WHERE a.attrelid = 'live_types.t'::pg_catalog.regclass AND a.attname = 'v'");
    expected = fmt::format("textin({}(v))", output.text(0, "f"));
  }
  const auto printed = live.column(fmt::format("SELECT {} FROM live_types.t ORDER BY n", expected));
  live.sql("SET search_path = public");
  const std::vector<Row> rows = live.read_all(live.request("t"));
  cr_assert_eq(rows.size(), printed.size(), "%s", one.type.c_str());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    cr_expect(rows[i][1] == printed[i], "%s: read %.200s, PostgreSQL prints %.200s", one.type.c_str(),
              rows[i][1].c_str(), printed[i].c_str());
  }
}

}  // namespace

Test(live_types, every_type_at_its_limits_and_null) {
  Live live("live_types");
  make_types(live);
  for (const TypeCase& one : cases) check(live, one);
}

Test(live_types, any_type_can_be_read_as_text_and_as_json) {
  Live live("live_types");
  make_types(live);
  live.sql("CREATE TABLE live_types.t (d date, p live_types.pair, c char(4), a int[])");
  live.sql("INSERT INTO live_types.t VALUES ('2026-11-30', ROW(1,'x'), 'ab', '{1,NULL}'), (NULL, NULL, NULL, NULL)");
  auto request = live.request("t");
  for (auto& plan : request.columns) {
    plan.read_as_text = true;
    plan.read_type = plan.write_type = rows::Type::text();
  }
  auto rows = live.read_all(request);
  cr_assert(rows[0] == (Row{"2026-11-30", "(1,x)", "ab  ", "{1,NULL}"}));
  for (auto& plan : request.columns) {
    plan.read_as_text = false;
    plan.read_as_json = true;
  }
  rows = live.read_all(request);
  cr_assert(rows[0] == (Row{"\"2026-11-30\"", "{\"a\":1,\"b\":\"x\"}", "\"ab  \"", "[1,null]"}));
  cr_assert(rows[1] == Row(4, std::string(null_text)));
}

Test(live_types, facts_of_columns_come_from_the_catalogue) {
  Live live("live_types");
  make_types(live);
  live.sql(
      "CREATE TABLE live_types.parent (id int PRIMARY KEY); "
      "CREATE TABLE live_types.t (a int GENERATED ALWAYS AS IDENTITY, \"B c\" live_types.small_price NOT NULL DEFAULT "
      "1, "
      "g numeric GENERATED ALWAYS AS (a * 2) STORED, z text UNIQUE CHECK (z <> ''), p int REFERENCES "
      "live_types.parent, "
      "PRIMARY KEY (\"B c\", a)); CREATE INDEX t_z ON live_types.t (lower(z)); ANALYZE live_types.t");
  system::SourceRequest what;
  what.table = live.table("t");
  const auto table = live.describe(what);
  EXPECT_TEXT(table.server.product, "PostgreSQL");
  cr_assert_eq(table.columns.size(), 5);
  cr_expect(table.columns[0].identity);
  cr_expect_eq(table.columns[0].key_position, 2);
  cr_expect_not(table.columns[0].nullable);
  EXPECT_TEXT(table.columns[1].name, "B c");
  EXPECT_TEXT(table.columns[1].native, "numeric(4,2)");
  cr_expect_eq(table.columns[1].key_position, 1);
  cr_expect(table.columns[2].generated);
  cr_expect(table.columns[2].any_decimal);
  cr_expect(table.primary_key == (std::vector<std::string>{"B c", "a"}));
  cr_expect_eq(table.row_estimate.value_or(7), 0);
  for (const char* part : {"index t_z", "unique t_z_key", "check t_z_check", "foreign key t_p_fkey", "default of B c",
                           "generated expression of g", "identity of a"}) {
    cr_expect(std::find(table.not_carried.begin(), table.not_carried.end(), part) != table.not_carried.end(), "%s",
              part);
  }
  what.columns = {"g", "a"};
  cr_expect_eq(live.describe(what).columns.size(), 2);
  what.columns = {"A"};
  EXPECT_ERROR(live.describe(what), "column_missing");
  what.columns.clear();
  what.table.parts[1] = "T";
  EXPECT_ERROR(live.describe(what), "table_missing");
}

Test(live_types, an_unknown_type_is_text_with_a_notice) {
  Live live("live_types");
  live.sql(
      "CREATE TYPE live_types.odd; "
      "CREATE FUNCTION live_types.odd_in(cstring) RETURNS live_types.odd AS 'int4in' LANGUAGE internal IMMUTABLE "
      "STRICT; "
      "CREATE FUNCTION live_types.odd_out(live_types.odd) RETURNS cstring AS 'int4out' LANGUAGE internal IMMUTABLE "
      "STRICT; "
      "CREATE TYPE live_types.odd (INPUT = live_types.odd_in, OUTPUT = live_types.odd_out, LIKE = int4); "
      "CREATE TABLE live_types.t (v live_types.odd); INSERT INTO live_types.t VALUES ('42'), (NULL)");
  system::SourceRequest what;
  what.table = live.table("t");
  const auto table = live.describe(what);
  cr_assert_eq(table.notices.size(), 1);
  EXPECT_TEXT(table.notices[0].code, "unknown_type");
  EXPECT_TEXT(table.notices[0].column, "v");
  cr_expect(live.read_all(live.request("t")) == (std::vector<Row>{{"42"}, {std::string(null_text)}}));
}

Test(live_types, the_largest_scale_is_found_under_the_snapshot) {
  Live live("live_types");
  live.sql(
      "CREATE TABLE live_types.t (v numeric, w numeric); INSERT INTO live_types.t VALUES (1.5000, 7), "
      "(0.12345678901234567890123, 'NaN'), ('NaN', NULL)");
  auto request = live.request("t");
  request.what.scan_numeric = {"v", "w"};
  const auto reading = live.begin(request);
  cr_expect(reading->columns()[0].read_type == rows::Type::decimal(38, 23));
  cr_expect(reading->columns()[1].read_type == rows::Type::decimal(38, 0));
  live.run(reading->end());
}

Test(live_types, a_value_that_does_not_fit_names_its_place_and_the_reader_goes_on) {
  Live live("live_types");
  live.sql(
      "CREATE TABLE live_types.t (n int, v numeric); INSERT INTO live_types.t SELECT i, CASE WHEN i = 2500 THEN 'NaN' "
      "ELSE i / 2.0 END FROM generate_series(1, 3000) i");
  auto request = live.request("t");
  const auto reading = live.begin(request);
  const auto reader = live.run(reading->open_reader(0));
  Collect collect;
  try {
    live.run(reader->read(reading->slices().slices[0], collect));
    cr_assert_fail("no error");
  } catch (const Error& error) {
    EXPECT_TEXT(error.code(), "value_does_not_fit");
    EXPECT_TEXT(error.context().column, "v");
    EXPECT_TEXT(error.context().table, "live_types.t");
    cr_expect_eq(error.context().row.value_or(0), 2500);
  }
  cr_assert(reader->usable());
  request.columns[1].policy.action = rows::OnLoss::null;
  cr_expect_eq(reader->changed()[1], 0);
  live.run(reader->close());
  live.run(reading->end());
  const auto again = live.begin(request);
  const auto second = live.run(again->open_reader(0));
  cr_expect_eq(live.run(second->read(again->slices().slices[0], collect)).rows, 3000);
  cr_expect_eq(second->changed()[1], 1);
  live.run(second->close());
  live.run(again->end());
}
