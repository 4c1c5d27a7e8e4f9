// The SQL that reads: expressions of columns, literals, bounds, isolation. No server.
#include <fmt/format.h>

#include "mssql/bounds.hpp"
#include "mssql/select.hpp"
#include "mssql/slices.hpp"
#include "tests/support/error_of.hpp"

using namespace rowferry;
using namespace rowferry::mssql;
using system::SliceBounds;
using tds::DataType;

namespace {

tds::ColumnMeta meta_of(DataType id, std::uint32_t length, std::uint8_t precision = 0, std::uint8_t scale = 0) {
  tds::ColumnMeta meta;
  meta.name = "c";
  meta.flags = tds::flag_nullable;
  meta.type.id = id;
  meta.type.max_length = length;
  meta.type.precision = precision;
  meta.type.scale = scale;
  meta.type.collation = {.info = 0x00D00409, .sort_id = 52};
  return meta;
}

OriginColumn column_of(tds::ColumnMeta meta, std::string collation = "", std::string declared = "") {
  ColumnFacts facts;
  facts.name = meta.name;
  facts.meta = std::move(meta);
  facts.collation = std::move(collation);
  facts.declared = std::move(declared);
  return origin_column(facts, nullptr);
}
OriginColumn column_of(DataType id, std::uint32_t length, std::uint8_t precision = 0, std::uint8_t scale = 0) {
  return column_of(meta_of(id, length, precision, scale));
}
OriginColumn udt(std::string schema, std::string name) {
  tds::ColumnMeta meta = meta_of(DataType::udt, 0xFFFF);
  meta.type.names = {"dw", std::move(schema), std::move(name), ""};
  return column_of(std::move(meta));
}

system::ColumnPlan as(rows::TypeId id, system::ColumnPart part = system::ColumnPart::value) {
  system::ColumnPlan plan;
  plan.source = "c";
  plan.read_type = rows::Type::of(id);
  plan.part = part;
  return plan;
}
system::ColumnPlan printed_text() {
  system::ColumnPlan plan = as(rows::TypeId::text);
  plan.read_as_text = true;
  return plan;
}

void same(const std::string& got, const std::string& expected) {
  cr_expect_eq(got, expected, "got:      %s\nexpected: %s", got.c_str(), expected.c_str());
}

void expect_text(const OriginColumn& column, const std::string& sql) {
  same(column_expression(column, printed_text()), sql);
}

tds::Value text(std::string value) { return {std::move(value)}; }
tds::Value number(std::int64_t value) { return {value}; }

void expect_literal(const OriginColumn& column, const tds::Value& value, const std::string& sql) {
  const std::optional<std::string> found = literal_of(column, value);
  same(found.value_or("none"), sql);
}

SliceBounds range(std::optional<std::string> low, std::optional<std::string> high) {
  return {.kind = SliceBounds::Kind::range, .column = "c", .value = {}, .low = std::move(low), .high = std::move(high)};
}
void expect_range(const OriginColumn& column, const std::optional<std::string>& low,
                  const std::optional<std::string>& high, const std::string& sql) {
  same(given_condition(column, range(low, high), true), sql);
}
void refused(const OriginColumn& column, const std::string& bound) {
  const Error error = test::error_of([&] { given_bound(column, bound); });
  same(error.code(), "slices_impossible");
}

}  // namespace

Test(select, a_column_is_read_as_itself) {
  OriginColumn odd = column_of(DataType::intn, 4);
  odd.facts.name = "a]b";
  same(column_expression(odd, as(rows::TypeId::int32)), "[a]]b]");
}

Test(select, text_of_each_type_hangs_on_no_setting) {
  expect_text(column_of(DataType::intn, 4), "CAST([c] AS varchar(48)) AS [c]");
  expect_text(column_of(DataType::bitn, 1), "CAST([c] AS varchar(48)) AS [c]");
  expect_text(column_of(DataType::decimaln, 17, 38, 10), "CAST([c] AS varchar(48)) AS [c]");
  expect_text(column_of(DataType::moneyn, 8), "CONVERT(varchar(48), [c], 2) AS [c]");
  expect_text(column_of(DataType::fltn, 8), "CONVERT(varchar(48), [c], 3) AS [c]");
  expect_text(column_of(DataType::date, 3), "CONVERT(varchar(48), [c], 121) AS [c]");
  expect_text(column_of(DataType::datetime2, 8, 0, 7), "CONVERT(varchar(48), [c], 121) AS [c]");
  expect_text(column_of(DataType::datetimn, 8), "CONVERT(varchar(48), [c], 121) AS [c]");
  expect_text(column_of(DataType::bigvarbinary, 10), "CONVERT(varchar(max), [c], 1) AS [c]");
  expect_text(column_of(DataType::nvarchar, 20), "[c]");
}

Test(select, clr_types_are_printed_or_give_their_bytes) {
  same(column_expression(udt("sys", "hierarchyid"), as(rows::TypeId::text)), "[c].ToString() AS [c]");
  same(column_expression(udt("sys", "hierarchyid"), as(rows::TypeId::binary)), "CAST([c] AS varbinary(max)) AS [c]");
  same(column_expression(udt("dbo", "point"), as(rows::TypeId::text)), "[c].ToString() AS [c]");
  same(column_expression(udt("sys", "geography"), as(rows::TypeId::text)), "[c].ToString() AS [c]");
}

Test(select, spatial_bytes_carry_the_srid) {
  const std::string sql = column_expression(udt("sys", "geography"), as(rows::TypeId::binary));
  same(sql,
       "CAST(SUBSTRING([c].AsBinaryZM(), 1, 4) + 0x20 + SUBSTRING(CAST([c].STSrid AS binary(4)), 4, 1) + "
       "SUBSTRING(CAST([c].STSrid AS binary(4)), 3, 1) + SUBSTRING(CAST([c].STSrid AS binary(4)), 2, 1) + "
       "SUBSTRING(CAST([c].STSrid AS binary(4)), 1, 1) + SUBSTRING([c].AsBinaryZM(), 6, "
       "DATALENGTH([c].AsBinaryZM())) AS varbinary(max)) AS [c]");
}

Test(select, spatial_columns_are_text_that_can_be_bytes) {
  const OriginColumn column = udt("sys", "geometry");
  same(column.facts.native, "geometry");
  cr_expect(column.facts.type.id == rows::TypeId::text);
  cr_expect(column.facts.can_read_as_bytes && column.facts.text_only && !column.facts.can_read_as_text);
}

Test(select, json_is_json_though_it_arrives_as_text) {
  const OriginColumn column = column_of(meta_of(DataType::nvarchar, 0xFFFF), "Latin1_General_BIN2", "json");
  cr_expect(column.facts.type.id == rows::TypeId::json);
  same(column.facts.native, "json");
  cr_expect(order_of(column) == Order::none);
}

Test(select, an_offset_is_read_beside_its_moment) {
  const OriginColumn column = column_of(DataType::datetimeoffset, 10, 0, 7);
  same(column_expression(column, as(rows::TypeId::text, system::ColumnPart::offset)),
       "RIGHT(CONVERT(varchar(34), [c], 121), 6) AS [c]");
  const Error error = test::error_of(
      [] { column_expression(column_of(DataType::date, 3), as(rows::TypeId::text, system::ColumnPart::offset)); });
  same(error.code(), "bad_plan");
}

Test(select, literals_have_the_columns_own_type) {
  expect_literal(column_of(DataType::intn, 8), number(std::numeric_limits<std::int64_t>::min()),
                 "CAST(-9223372036854775808 AS bigint)");
  expect_literal(column_of(DataType::intn, 1), number(200), "CAST(200 AS tinyint)");
  expect_literal(column_of(DataType::bitn, 1), number(1), "CAST(1 AS bit)");
  expect_literal(column_of(DataType::decimaln, 17, 38, 10), text("0.0000000001"),
                 "CAST(0.0000000001 AS decimal(38,10))");
  expect_literal(column_of(DataType::moneyn, 8), text("-922337203685477.5808"), "CAST(-922337203685477.5808 AS money)");
  expect_literal(column_of(DataType::fltn, 8), {0.1}, "CAST(1.0000000000000001e-01 AS float(53))");
  expect_literal(column_of(DataType::fltn, 4), {0.5}, "CAST(5.0000000000000000e-01 AS real)");
  expect_literal(column_of(DataType::date, 3), text("2024-02-29"), "CAST('2024-02-29' AS date)");
  expect_literal(column_of(DataType::datetimn, 8), text("2024-02-29 12:34:56.003"),
                 "CAST('2024-02-29T12:34:56.003' AS datetime)");
  expect_literal(column_of(DataType::datetimeoffset, 10, 0, 3), text("2024-02-29 12:34:56.003+00:00"),
                 "CAST('2024-02-29T12:34:56.003+00:00' AS datetimeoffset(3))");
  expect_literal(column_of(DataType::guid, 16), text("00112233-4455-6677-8899-aabbccddeeff"),
                 "CAST('00112233-4455-6677-8899-aabbccddeeff' AS uniqueidentifier)");
  expect_literal(column_of(DataType::bigvarbinary, 8), {tds::Value::Bytes{1, 0xAB}}, "0x01AB");
}

Test(select, text_literals_keep_code_page_and_collation) {
  const OriginColumn narrow = column_of(meta_of(DataType::bigvarchar, 20), "Cyrillic_General_CI_AS");
  expect_literal(narrow, text("it's П"), "CAST(N'it''s П' COLLATE Cyrillic_General_CI_AS AS varchar(20))");
  expect_literal(column_of(meta_of(DataType::nvarchar, 40), "Latin1_General_CI_AS"), text("☃"), "N'☃'");
  // Of a query: no collation is known; compared as Unicode.
  expect_literal(column_of(meta_of(DataType::bigvarchar, 20)), text("a"), "N'a'");
  expect_literal(narrow, text(std::string("a\0b", 3)), "none");
}

Test(select, types_without_an_order_are_known) {
  cr_expect(order_of(column_of(DataType::xml, 0)) == Order::none);
  cr_expect(order_of(column_of(DataType::text, 0x7FFFFFFF)) == Order::none);
  cr_expect(order_of(column_of(DataType::nvarchar, 0xFFFF)) == Order::none);
  cr_expect(order_of(column_of(DataType::sql_variant, 8009)) == Order::none);
  cr_expect(order_of(udt("sys", "geography")) == Order::none);
  cr_expect(order_of(column_of(DataType::bigbinary, 8)) == Order::binary);
}

Test(bounds, of_whole_numbers) {
  const OriginColumn column = column_of(DataType::intn, 4);
  expect_range(column, "1", "20", "[c] >= CAST(1 AS int) AND [c] < CAST(20 AS int)");
  expect_range(column, {}, "-5.0", "[c] < CAST(-5 AS int)");
  expect_range(column, "3000000000", {}, "1 = 0");
  expect_range(column, "-3000000000", "99999999999999999999999", "[c] IS NOT NULL");
  expect_range(column, {}, "-3000000000", "1 = 0");
  refused(column, "1.5");
  refused(column, "1; DROP TABLE x");
}

Test(bounds, of_decimals_and_money) {
  const OriginColumn column = column_of(DataType::decimaln, 9, 10, 2);
  expect_range(column, "0.50", "10", "[c] >= CAST(0.50 AS decimal(10,2)) AND [c] < CAST(10 AS decimal(10,2))");
  expect_range(column, "0.500", {}, "[c] >= CAST(0.500 AS decimal(10,2))");
  expect_range(column, "123456789", {}, "1 = 0");
  refused(column, "0.505");
  expect_range(column_of(DataType::moneyn, 8), "999999999999999", {}, "[c] >= CAST(999999999999999 AS decimal(38,4))");
}

Test(bounds, of_floats) {
  const OriginColumn column = column_of(DataType::fltn, 8);
  expect_range(column, "0.5", "Infinity", "[c] >= CAST(5.0000000000000000e-01 AS float(53))");
  expect_range(column, "NaN", {}, "1 = 0");
  refused(column, "half");
}

Test(bounds, of_dates_and_times) {
  const OriginColumn date = column_of(DataType::date, 3);
  expect_range(date, "2024-02-29", "infinity", "[c] >= CAST('2024-02-29' AS date)");
  expect_range(date, "2024-02-29 00:00:00", "10000-01-01", "[c] >= CAST('2024-02-29' AS date)");
  expect_range(date, "0044-03-15 BC", {}, "[c] IS NOT NULL");
  refused(date, "2024-02-29 12:00:00");
  refused(date, "'); DROP TABLE x --");
  const OriginColumn fine = column_of(DataType::datetime2, 8, 0, 7);
  expect_range(fine, "2024-02-29", "2024-03-01 10:00:00.5",
               "[c] >= CAST('2024-02-29T00:00:00' AS datetime2(7)) AND [c] < CAST('2024-03-01T10:00:00.5' AS "
               "datetime2(7))");
  const OriginColumn old = column_of(DataType::datetimn, 8);
  expect_range(old, "1000-01-01", {}, "[c] >= CAST('1000-01-01T00:00:00' AS datetime2(7))");
  refused(old, "2024-02-29 12:00:00.001");
  expect_range(column_of(DataType::datetimeoffset, 10, 0, 3), "2024-02-29 12:00:00+00:00", {},
               "[c] >= CAST('2024-02-29T12:00:00+00:00' AS datetimeoffset(3))");
  expect_range(column_of(DataType::time, 5, 0, 6), "12:00:00", "24:00:00", "[c] >= CAST('12:00:00' AS time(6))");
}

Test(bounds, of_types_that_systems_order_differently_are_refused) {
  refused(column_of(meta_of(DataType::nvarchar, 40), "Latin1_General_CI_AS"), "m");
  refused(column_of(DataType::guid, 16), "00112233-4455-6677-8899-aabbccddeeff");
}

Test(isolation, decides_what_consistency_can_be_had) {
  struct Case {
    const char* wanted;
    bool snapshot, versioned;
    const char* level;
    const char* one;
    const char* several;
    bool dirty;
  };
  const std::vector<Case> cases{
      {"", false, false, "READ COMMITTED", "none", "none", false},
      {"", false, true, "READ COMMITTED", "one_snapshot", "per_slice", false},
      {"read_committed", true, false, "READ COMMITTED", "none", "none", false},
      {"read_committed", true, true, "READ COMMITTED", "one_snapshot", "per_slice", false},
      {"snapshot", true, false, "SNAPSHOT", "one_snapshot", "per_slice", false},
      {"read_uncommitted", true, true, "READ UNCOMMITTED", "none", "none", true},
      {"auto", true, true, "SNAPSHOT", "one_snapshot", "per_slice", false},
      {"auto", false, true, "READ COMMITTED", "one_snapshot", "per_slice", false},
      {"auto", false, false, "READ UNCOMMITTED", "none", "none", true},
  };
  for (const Case& c : cases) {
    const Isolation isolation = choose_isolation(c.wanted, {c.snapshot, c.versioned}, "dw");
    same(fmt::format("{}: {}", c.wanted, isolation.sql()), fmt::format("{}: {}", c.wanted, c.level));
    same(fmt::format("{}: {}", c.wanted, to_string(consistency_of(isolation, 1))),
         fmt::format("{}: {}", c.wanted, c.one));
    same(fmt::format("{}: {}", c.wanted, to_string(consistency_of(isolation, 4))),
         fmt::format("{}: {}", c.wanted, c.several));
    cr_expect_eq(!isolation.notices.empty(), c.dirty, "%s", c.wanted);
    if (c.dirty) same(isolation.notices[0].code, "dirty_read");
  }
}

Test(isolation, snapshot_that_the_database_refuses_is_an_error) {
  const Error error = test::error_of([] { choose_isolation("snapshot", {false, true}, "dw"); });
  same(error.code(), "snapshot_not_allowed");
  cr_expect(error.detail().find("snapshot_isolation_state") != std::string::npos);
  same(error.field(), "read.isolation");
}

Test(slices, of_partitions_leave_none_out) {
  StorageFacts storage;
  storage.partition_function = "pf";
  storage.partition_column = "store";
  storage.partition_rows = {0, 10, 0, 0, 20, 5, 0};
  system::SlicePlan plan;
  add_partitions(plan, storage);
  cr_assert_eq(plan.slices.size(), 3);
  same(plan.slices[0].spec, "$PARTITION.[pf]([store]) BETWEEN 1 AND 2");
  same(plan.slices[1].spec, "$PARTITION.[pf]([store]) BETWEEN 3 AND 5");
  same(plan.slices[2].spec, "$PARTITION.[pf]([store]) >= 6");
  cr_expect_eq(plan.slices[2].row_estimate.value_or(0), 5);
}

Test(slices, equal_widths_never_overflow) {
  constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  cr_expect(equal_widths(least, most, 2) == std::vector<std::int64_t>{0});
  cr_expect(equal_widths(5, 5, 4).empty());
  cr_expect((equal_widths(1, 3, 10) == std::vector<std::int64_t>{2, 3}));
}
