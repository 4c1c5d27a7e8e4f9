// The source against the sandbox: descriptions, readings, isolation, errors.
#include <fmt/format.h>

#include "reads.hpp"

using namespace rowferry;
using namespace rowferry::test;
using async::Task;
using system::SliceBy;

namespace {

std::string column_line(const system::SourceColumn& c) {
  return fmt::format("{} {} as {}{}{}{}{}", c.name, c.native, rows::to_string(c.type), c.nullable ? "" : " not null",
                     c.identity ? " identity" : "", c.generated ? " generated" : "",
                     c.key_position != 0 ? fmt::format(" key {}", c.key_position) : "");
}

Task<void> describe(Bench* bench, ReadJob job) {
  const std::unique_ptr<system::Source> source = bench->connection->make_source();
  const system::SourceTable table = co_await source->describe(source_request(job));
  for (const system::SourceColumn& column : table.columns) bench->note(column_line(column));
  bench->note("key: " + lines(table.primary_key, ", "));
  if (table.row_estimate) bench->note(fmt::format("rows: {}", *table.row_estimate));
  for (const system::Notice& notice : table.notices) bench->note(notice.code + " " + notice.column);
  for (const std::string& part : table.not_carried) bench->note("not carried: " + part);
}

Task<void> every_column(Bench* bench) {
  co_await bench->run(
      "CREATE TABLE dbo.t (id int IDENTITY(1,1) NOT NULL CONSTRAINT pk_t PRIMARY KEY, a tinyint, b varchar(20) COLLATE "
      "Cyrillic_General_CI_AS, c nchar(5) NOT NULL, d decimal(18,4), e AS (d * 2), f datetime2(7), g money, h "
      "uniqueidentifier, i varbinary(max), j sql_variant, k xml, l rowversion, m varchar(max), n float)");
  co_await bench->run("CREATE INDEX ix_a ON dbo.t (a)");
  co_await bench->run("INSERT INTO dbo.t (c) VALUES (N'x')");
  co_await describe(bench, {});
}

Task<void> hidden_columns(Bench* bench) {
  co_await bench->run(
      "CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY, s datetime2 GENERATED ALWAYS AS ROW START HIDDEN NOT NULL, e "
      "datetime2 GENERATED ALWAYS AS ROW END HIDDEN NOT NULL, PERIOD FOR SYSTEM_TIME (s, e))");
  co_await describe(bench, {});
  ReadJob named;
  named.columns = {"id", "s"};
  co_await describe(bench, named);
}

Task<void> a_view(Bench* bench) {
  co_await bench->run("CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY, a varchar(5))");
  co_await bench->run("INSERT INTO dbo.t VALUES (1, 'x'), (2, NULL)");
  co_await bench->run("CREATE VIEW dbo.v AS SELECT id, a FROM dbo.t WHERE id > 1");
  ReadJob job;
  job.table.parts = {"v"};
  co_await describe(bench, job);
  co_await read_all(bench, job);
}

Task<void> synonyms(Bench* bench) {
  co_await bench->run("CREATE DATABASE other");
  co_await bench->run("CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY, a varchar(5))");
  co_await bench->run("CREATE TABLE other.dbo.u (id bigint NOT NULL)");
  co_await bench->run("INSERT INTO dbo.t VALUES (1, 'x')");
  co_await bench->run("INSERT INTO other.dbo.u VALUES (7)");
  co_await bench->run("CREATE SYNONYM dbo.here FOR dbo.t");
  co_await bench->run("CREATE SYNONYM dbo.there FOR other.dbo.u");
  co_await bench->run("CREATE SYNONYM dbo.far FOR remote.other.dbo.u");
  for (const char* name : {"here", "there", "far"}) {
    ReadJob job;
    job.table.parts = {"dbo", name};
    co_await read_all(bench, job);
  }
}

Task<void> too_many_sessions(Bench* bench) {
  co_await bench->run("CREATE TABLE dbo.t (id int)");
  ReadJob job;
  job.workers = 8;
  co_await read_all(bench, job);
}

Task<void> a_query(Bench* bench) {
  co_await bench->run("CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY, a varchar(5))");
  co_await bench->run("INSERT INTO dbo.t VALUES (1, 'x'), (2, NULL)");
  ReadJob job;
  job.query = "SELECT id * 10 AS ten, a FROM dbo.t -- all of it";
  co_await describe(bench, job);
  co_await read_all(bench, job);
  job.query = "SELECT id * 10 FROM dbo.t";
  co_await describe(bench, job);
}

Task<void> missing_table(Bench* bench) { co_await describe(bench, {}); }

Task<void> missing_column(Bench* bench) {
  co_await bench->run("CREATE TABLE dbo.t (id int)");
  ReadJob job;
  job.columns = {"ID"};
  co_await describe(bench, job);
}

Task<void> values(Bench* bench) {
  co_await bench->run(
      "CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY, a bit, b tinyint, c bigint, d real, e float, f decimal(38,10), "
      "g "
      "money, h date, i time(7), j datetime2(7), k datetime, l smalldatetime, m datetimeoffset(3), n uniqueidentifier, "
      "o "
      "varchar(10) COLLATE Cyrillic_General_CI_AS, p nvarchar(10), q varbinary(10), r char(5), s sql_variant)");
  co_await bench->run(
      "INSERT INTO dbo.t VALUES (1, 1, 200, -9223372036854775808, 1.5, 0.1, 1234567890.0123456789, "
      "-922337203685477.5808, "
      "'2024-02-29', '23:59:59.9999999', '9999-12-31 23:59:59.9999999', '2025-05-16 16:33:33.123', '2024-02-29 12:34', "
      "'2024-01-01 00:00:00.500 +05:30', '00112233-4455-6677-8899-aabbccddeeff', N'П', N'☃', 0x0102, 'ab', CAST(11.77 "
      "AS "
      "decimal(10,4))), (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, "
      "NULL, NULL, NULL, NULL)");
  co_await read_all(bench, {});
}

Task<void> slices_cover(Bench* bench, std::string type, std::vector<std::string> values) {
  co_await bench->run(fmt::format("CREATE TABLE dbo.t (id int NOT NULL IDENTITY(1,1), k {}, PRIMARY KEY (id))", type));
  for (const std::string& value : values) co_await bench->run("INSERT INTO dbo.t (k) VALUES (" + value + ")");
  for (const SliceBy by : {SliceBy::range, SliceBy::value, SliceBy::hash}) {
    ReadJob job;
    job.columns = {"id"};  // the column that cuts is not one that is read
    job.slices = {.by = by, .column = "k", .count = 4};
    bench->note(co_await coverage(bench, job));
  }
}

// O-40
Task<void> nullable_integers(Bench* bench) {
  co_await slices_cover(bench, "int NULL", {"1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "NULL"});
}
Task<void> only_nulls(Bench* bench) { co_await slices_cover(bench, "int NULL", {"NULL", "NULL"}); }
Task<void> no_rows(Bench* bench) { co_await slices_cover(bench, "int NULL", {}); }
Task<void> extreme_integers(Bench* bench) {
  co_await slices_cover(bench, "bigint NOT NULL", {"-9223372036854775808", "-1", "0", "1", "9223372036854775807"});
}
Task<void> one_value(Bench* bench) { co_await slices_cover(bench, "int NOT NULL", {"7", "7", "7"}); }
Task<void> skewed(Bench* bench) {
  co_await slices_cover(bench, "int NOT NULL", {"1", "1", "1", "1", "1", "1", "1", "2", "900", "100000"});
}
Task<void> case_insensitive(Bench* bench) {
  co_await slices_cover(bench, "varchar(10) COLLATE Latin1_General_CI_AS NULL",
                        {"'a'", "'A'", "'a '", "'b'", "'B'", "''", "' '", "'z'", "'é'", "'É'", "NULL"});
}
Task<void> case_insensitive_wide(Bench* bench) {
  co_await slices_cover(bench, "nvarchar(10) COLLATE Latin1_General_100_CI_AI NOT NULL",
                        {"N'a'", "N'A'", "N'a '", "N'it''s'", "N'☃'", "N''", "N'ß'", "N'ss'"});
}
Task<void> another_code_page(Bench* bench) {
  co_await slices_cover(bench, "varchar(10) COLLATE Cyrillic_General_CI_AS NOT NULL",
                        {"N'П'", "N'п'", "N'Я'", "N'я '", "N'a'"});
}
Task<void> padded(Bench* bench) { co_await slices_cover(bench, "char(4) NOT NULL", {"'a'", "'ab'", "'A'", "''"}); }
Task<void> uuids(Bench* bench) {
  co_await slices_cover(bench, "uniqueidentifier NULL",
                        {"'00112233-4455-6677-8899-aabbccddeeff'", "'ffffffff-0000-0000-0000-000000000000'",
                         "'00000000-0000-0000-0000-000000000001'", "'00000000-0000-0000-0001-000000000000'",
                         "'10000000-0000-0000-0000-000000000000'", "NULL"});
}
Task<void> decimals(Bench* bench) {
  co_await slices_cover(
      bench, "decimal(38,10) NOT NULL",
      {"-9999999999999999999999999999.9999999999", "0", "0.0000000001", "9999999999999999999999999999.9999999999"});
}
Task<void> moneys(Bench* bench) {
  co_await slices_cover(bench, "money NULL", {"-922337203685477.5808", "922337203685477.5807", "0.0001", "1", "NULL"});
}
Task<void> floats(Bench* bench) {
  co_await slices_cover(bench, "float NULL", {"0.1", "0.30000000000000004", "0.3", "1e300", "-1e-300", "0", "NULL"});
}
Task<void> reals(Bench* bench) { co_await slices_cover(bench, "real NOT NULL", {"0.1", "0.2", "1e30", "-3.4e38"}); }
Task<void> dates(Bench* bench) {
  co_await slices_cover(bench, "date NULL", {"'0001-01-01'", "'9999-12-31'", "'2024-02-29'", "'2024-03-01'", "NULL"});
}
Task<void> datetimes(Bench* bench) {
  co_await slices_cover(
      bench, "datetime NOT NULL",
      {"'1753-01-01'", "'9999-12-31 23:59:59.997'", "'2024-01-01 00:00:00.003'", "'2024-01-01 00:00:00.007'"});
}
Task<void> times(Bench* bench) {
  co_await slices_cover(bench, "time(7) NOT NULL", {"'00:00'", "'23:59:59.9999999'", "'12:00:00.0000001'", "'12:00'"});
}
Task<void> timestamps(Bench* bench) {
  co_await slices_cover(
      bench, "datetime2(7) NOT NULL",
      {"'0001-01-01'", "'9999-12-31 23:59:59.9999999'", "'2024-01-01 00:00:00.0000001'", "'2024-01-01'"});
}
Task<void> offsets(Bench* bench) {
  co_await slices_cover(bench, "datetimeoffset(3) NOT NULL",
                        {"'2024-01-01 12:00:00 +00:00'", "'2024-01-01 14:00:00 +02:00'", "'2024-01-01 12:00:00 -05:00'",
                         "'0001-01-01 00:00:00 +00:00'"});
}
Task<void> small_datetimes(Bench* bench) {
  co_await slices_cover(bench, "smalldatetime NOT NULL", {"'1900-01-01'", "'2079-06-06 23:59'", "'2024-02-29 12:34'"});
}
Task<void> binaries(Bench* bench) {
  co_await slices_cover(bench, "varbinary(8) NULL", {"0x", "0x00", "0x01", "0x0100", "0x010000", "0xFF", "NULL"});
}
Task<void> bits(Bench* bench) { co_await slices_cover(bench, "bit NULL", {"0", "1", "1", "NULL"}); }

}  // namespace

Test(mssql_source, describes_every_column) {
  EXPECT_NOTES(every_column, "id int as int32 not null identity key 1", "a tinyint as uint8",
               "b varchar(20) as text(20 bytes, code page 1251)", "c nchar(5) as text(5 UTF-16 units, padded) not null",
               "d decimal(18,4) as decimal(18,4)", "e numeric(20,4) as decimal(20,4) generated",
               "f datetime2(7) as timestamp(7)", "g money as decimal(19,4)", "h uniqueidentifier as uuid",
               "i varbinary(max) as binary", "j sql_variant as text", "k xml as text",
               "l rowversion as binary(8 bytes, padded) not null generated", "m varchar(max) as text(code page 1252)",
               "n float(53) as float64", "key: id", "rows: 1", "not carried: index ix_a",
               "not carried: expression of the computed column e");
}
Test(mssql_source, hidden_period_columns_only_when_named) {
  EXPECT_NOTES(hidden_columns, "id int as int32 not null key 1", "key: id", "rows: 0", "id int as int32 not null key 1",
               "s datetime2(7) as timestamp(7) not null generated", "key: id", "rows: 0");
}
Test(mssql_source, a_view_is_read) {
  EXPECT_NOTES(a_view, "id int as int32 not null", "a varchar(5) as text(5 bytes, code page 1252)",
               "key: ", "all rows: 2,NULL");
}
Test(mssql_source, a_query_is_read_as_a_derived_table) {
  EXPECT_NOTES(
      a_query, "ten int as int32 not null", "a varchar(5) as text(5 bytes, code page 1252)",
      "key: ", "all rows: 10,x 20,NULL",
      "failed: server_error: SQL Server error 8155: No column name was specified for column 1 of 'rowferry_query'.");
}
Test(mssql_source, a_synonym_is_what_it_stands_for) {
  EXPECT_NOTES(
      synonyms, "all rows: 1,x", "all rows: 7",
      "failed: not_readable: the synonym [dbo].[far] stands for [remote].[other].[dbo].[u], which is on another "
      "server");
}
Test(mssql_source, more_workers_than_sessions) {
  EXPECT_NOTES(too_many_sessions,
               "failed: max_sessions: 9 sessions are needed at the same time, and the connection allows 8");
}
Test(mssql_source, a_missing_table) {
  EXPECT_NOTES(missing_table, "failed: table_missing: there is no table [dbo].[t], or the login may not see it");
}
Test(mssql_source, a_missing_column) {
  EXPECT_NOTES(missing_column, "failed: column_missing: the source has no column \"ID\"");
}
Test(mssql_source, values_arrive) {
  EXPECT_NOTES(values,
               "all rows: "
               "1,true,200,-9223372036854775808,1.5,0.1,1234567890.0123456789,-922337203685477.5808,2024-02-29,23:59:"
               "59.9999999,9999-12-31 23:59:59.9999999,2025-05-16 16:33:33.123,2024-02-29 12:34:00,2023-12-31 "
               "18:30:00.5+00:00,00112233-4455-6677-8899-aabbccddeeff,П,☃,0x0102,ab   ,11.7700 "
               "2,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL");
}
Test(mssql_slices, cover_each_row_once_nullable_integers) {
  EXPECT_NOTES(nullable_integers, "each once (11 rows, 5 slices by range)", "each once (11 rows, 11 slices by value)",
               "each once (11 rows, 4 slices by hash)");
}
Test(mssql_slices, cover_each_row_once_only_nulls) {
  EXPECT_NOTES(only_nulls, "each once (2 rows, 2 slices by range)", "each once (2 rows, 1 slices by value)",
               "each once (2 rows, 4 slices by hash)");
}
Test(mssql_slices, cover_each_row_once_no_rows) {
  EXPECT_NOTES(no_rows, "each once (0 rows, 1 slices by range)", "each once (0 rows, 1 slices by value)",
               "each once (0 rows, 4 slices by hash)");
}
Test(mssql_slices, cover_each_row_once_extreme_integers) {
  EXPECT_NOTES(extreme_integers, "each once (5 rows, 4 slices by range)", "each once (5 rows, 5 slices by value)",
               "each once (5 rows, 4 slices by hash)");
}
Test(mssql_slices, cover_each_row_once_one_value) {
  EXPECT_NOTES(one_value, "each once (3 rows, 1 slices by range)", "each once (3 rows, 1 slices by value)",
               "each once (3 rows, 4 slices by hash)");
}
Test(mssql_slices, cover_each_row_once_skewed) {
  EXPECT_NOTES(skewed, "each once (10 rows, 2 slices by range)", "each once (10 rows, 4 slices by value)",
               "each once (10 rows, 4 slices by hash)");
}
Test(mssql_slices, cover_each_row_once_case_insensitive) {
  EXPECT_NOTES(case_insensitive, "each once (11 rows, 5 slices by range)", "each once (11 rows, 11 slices by value)",
               "each once (11 rows, 4 slices by hash)");
}
Test(mssql_slices, cover_each_row_once_case_insensitive_wide) {
  EXPECT_NOTES(case_insensitive_wide, "each once (8 rows, 4 slices by range)", "each once (8 rows, 8 slices by value)",
               "each once (8 rows, 4 slices by hash)");
}
Test(mssql_slices, cover_each_row_once_another_code_page) {
  EXPECT_NOTES(another_code_page, "each once (5 rows, 3 slices by range)", "each once (5 rows, 5 slices by value)",
               "each once (5 rows, 4 slices by hash)");
}
Test(mssql_slices, cover_each_row_once_padded) {
  EXPECT_NOTES(padded, "each once (4 rows, 3 slices by range)", "each once (4 rows, 4 slices by value)",
               "each once (4 rows, 4 slices by hash)");
}
Test(mssql_slices, cover_each_row_once_uuids) {
  EXPECT_NOTES(uuids, "each once (6 rows, 5 slices by range)", "each once (6 rows, 6 slices by value)",
               "each once (6 rows, 4 slices by hash)");
}
Test(mssql_slices, cover_each_row_once_decimals) {
  EXPECT_NOTES(decimals, "each once (4 rows, 4 slices by range)", "each once (4 rows, 4 slices by value)",
               "each once (4 rows, 4 slices by hash)");
}
Test(mssql_slices, cover_each_row_once_moneys) {
  EXPECT_NOTES(moneys, "each once (5 rows, 5 slices by range)", "each once (5 rows, 5 slices by value)",
               "each once (5 rows, 4 slices by hash)");
}
Test(mssql_slices, cover_each_row_once_floats) {
  EXPECT_NOTES(floats, "each once (7 rows, 5 slices by range)", "each once (7 rows, 7 slices by value)",
               "each once (7 rows, 4 slices by hash)");
}
Test(mssql_slices, cover_each_row_once_reals) {
  EXPECT_NOTES(reals, "each once (4 rows, 4 slices by range)", "each once (4 rows, 4 slices by value)",
               "each once (4 rows, 4 slices by hash)");
}
Test(mssql_slices, cover_each_row_once_dates) {
  EXPECT_NOTES(dates, "each once (5 rows, 5 slices by range)", "each once (5 rows, 5 slices by value)",
               "each once (5 rows, 4 slices by hash)");
}
Test(mssql_slices, cover_each_row_once_datetimes) {
  EXPECT_NOTES(datetimes, "each once (4 rows, 4 slices by range)", "each once (4 rows, 4 slices by value)",
               "each once (4 rows, 4 slices by hash)");
}
Test(mssql_slices, cover_each_row_once_times) {
  EXPECT_NOTES(times, "each once (4 rows, 3 slices by range)", "each once (4 rows, 4 slices by value)",
               "each once (4 rows, 4 slices by hash)");
}
Test(mssql_slices, cover_each_row_once_timestamps) {
  EXPECT_NOTES(timestamps, "each once (4 rows, 3 slices by range)", "each once (4 rows, 4 slices by value)",
               "each once (4 rows, 4 slices by hash)");
}
Test(mssql_slices, cover_each_row_once_offsets) {
  EXPECT_NOTES(offsets, "each once (4 rows, 3 slices by range)", "each once (4 rows, 3 slices by value)",
               "each once (4 rows, 4 slices by hash)");
}
Test(mssql_slices, cover_each_row_once_small_datetimes) {
  EXPECT_NOTES(small_datetimes, "each once (3 rows, 3 slices by range)", "each once (3 rows, 3 slices by value)",
               "each once (3 rows, 4 slices by hash)");
}
Test(mssql_slices, cover_each_row_once_binaries) {
  EXPECT_NOTES(binaries, "each once (7 rows, 4 slices by range)", "each once (7 rows, 7 slices by value)",
               "each once (7 rows, 4 slices by hash)");
}
Test(mssql_slices, cover_each_row_once_bits) {
  EXPECT_NOTES(bits, "each once (4 rows, 3 slices by range)", "each once (4 rows, 3 slices by value)",
               "each once (4 rows, 4 slices by hash)");
}
