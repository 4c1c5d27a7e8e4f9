// Whole loads into the sandbox: modes, finalizers, identity, names.
#include "bench.hpp"

using namespace rowferry;
using namespace rowferry::test;
using async::Task;
using system::Mode;

namespace {

const std::vector<std::vector<Row>> two_slices{{{1, "one", 100}, {2, {}, 250}}, {{3, "three ☃", {}}}};

Job job(Mode mode) {
  Job j;
  j.mode = mode;
  j.slices = two_slices;
  return j;
}

constexpr const char* table_sql =
    "CREATE TABLE dbo.orders (id int NOT NULL, note nvarchar(80) NULL, amount decimal(10,2) NULL)";
constexpr const char* all_rows = "SELECT id, note, amount FROM dbo.orders ORDER BY id";
constexpr const char* left_over = "SELECT name FROM sys.tables WHERE name LIKE 'rowferry[_]t%'";

Task<void> into_missing(Bench* bench) {
  Job j = job(Mode::append);
  j.create = true;
  bench->note(co_await transfer(bench, j));
  bench->note(co_await bench->rows(all_rows));
  bench->note(co_await bench->rows("SELECT name FROM sys.indexes WHERE object_id = OBJECT_ID('dbo.orders') AND "
                                   "is_primary_key = 1") != ""
                  ? "key"
                  : "no key");
  bench->note("left: " + co_await bench->rows(left_over));
  bench->note(co_await bench->rows("SELECT attempt, step, row_count FROM dbo.rowferry_ledger"));
}

Task<void> append(Bench* bench) {
  co_await bench->run(table_sql);
  co_await bench->run("INSERT INTO dbo.orders VALUES (9, N'old', 1)");
  bench->note(co_await transfer(bench, job(Mode::append)));
  bench->note(co_await bench->rows(all_rows));
  bench->note("left: " + co_await bench->rows(left_over));
}

Task<void> truncate(Bench* bench) {
  co_await bench->run(table_sql);
  co_await bench->run("INSERT INTO dbo.orders VALUES (9, N'old', 1)");
  bench->note(co_await transfer(bench, job(Mode::truncate)));
  bench->note(co_await bench->rows(all_rows));
}

Task<void> rebuild(Bench* bench) {
  co_await bench->run(
      "CREATE TABLE dbo.orders (id int NOT NULL CONSTRAINT pk_o PRIMARY KEY, note nvarchar(80) NULL, "
      "amount decimal(10,2) NULL)");
  co_await bench->run("INSERT INTO dbo.orders VALUES (9, N'old', 1)");
  Job j = job(Mode::replace);
  bench->note(co_await transfer(bench, j));
  j.id = "t2";
  j.types = {{"id", "bigint"}};
  bench->note(co_await transfer(bench, j));
  bench->note(co_await bench->rows(all_rows));
  bench->note(
      co_await bench->rows("SELECT name FROM sys.indexes WHERE object_id = OBJECT_ID('dbo.orders') AND "
                           "is_primary_key = 1"));
  bench->note(
      co_await bench->rows("SELECT TYPE_NAME(user_type_id) FROM sys.columns WHERE object_id = "
                           "OBJECT_ID('dbo.orders') AND name = 'id'"));
}

Task<void> exists(Bench* bench) {
  co_await bench->run(table_sql);
  bench->note(co_await transfer(bench, job(Mode::fail_if_exists)));
}

Task<void> direct(Bench* bench) {
  co_await bench->run(table_sql);
  Job j = job(Mode::append);
  j.workers = 1;
  bench->note(co_await transfer(bench, j));
  bench->note(co_await bench->rows(all_rows));
  bench->note(co_await bench->rows("SELECT attempt, step, row_count FROM dbo.rowferry_ledger"));
}

// O-08
Task<void> identity(Bench* bench) {
  co_await bench->run(
      "CREATE TABLE dbo.orders (id int IDENTITY(1,1) PRIMARY KEY, note nvarchar(80) NULL, amount "
      "decimal(10,2) NULL)");
  co_await bench->run("INSERT INTO dbo.orders (note) VALUES (N'first')");
  Job j = job(Mode::append);
  j.slices = {{{1000, "a", {}}, {1001, "b", {}}, {7, "c", {}}}};
  bench->note(co_await transfer(bench, j));
  co_await bench->run("INSERT INTO dbo.orders (note) VALUES (N'next')");
  bench->note(co_await bench->rows("SELECT id, note FROM dbo.orders ORDER BY id"));
}

// O-09
Task<void> names(Bench* bench) {
  Job j = job(Mode::append);
  j.create = true;
  j.table.parts = {"dbo", "odd]name 'x' \"y\".z ☃"};
  j.columns = {"order", "a]b", "naïve ☃"};
  j.key = {"order"};
  bench->note(co_await transfer(bench, j));
  bench->note(co_await bench->rows("SELECT [order], [a]]b], [naïve ☃] FROM dbo.[odd]]name 'x' \"y\".z ☃] ORDER BY 1"));
  j.id = "t2";
  j.mode = Mode::truncate;
  bench->note(co_await transfer(bench, j));
}

Task<void> duplicate_keys(Bench* bench) {
  co_await bench->run(
      "CREATE TABLE dbo.orders (id int NOT NULL PRIMARY KEY, note nvarchar(80) NULL, amount "
      "decimal(10,2) NULL)");
  co_await bench->run("INSERT INTO dbo.orders VALUES (9, N'old', 1)");
  Job j = job(Mode::truncate);
  j.slices = {{{1, "a", {}}, {1, "b", {}}}};
  std::string code;
  try {
    co_await transfer(bench, j);
  } catch (const Error& error) {
    code = error.code();
  }
  bench->note(code);
  bench->note(co_await bench->rows(all_rows));
  bench->note("left: " + co_await bench->rows(left_over));
}

Task<void> broken_check(Bench* bench) {
  co_await bench->run(
      "CREATE TABLE dbo.orders (id int NOT NULL CHECK (id > 1), note nvarchar(80) NULL, amount "
      "decimal(10,2) NULL)");
  std::string code;
  try {
    co_await transfer(bench, job(Mode::append));
  } catch (const Error& error) {
    code = error.code();
  }
  bench->note(code);
  bench->note("rows: " + co_await bench->rows(all_rows));
}

// O-07
Task<void> nulls_stay(Bench* bench) {
  co_await bench->run(
      "CREATE TABLE dbo.orders (id int NOT NULL, note nvarchar(80) NULL DEFAULT N'n/a', amount "
      "decimal(10,2) NULL DEFAULT 0, computed AS id + 1, rv rowversion)");
  Job j = job(Mode::append);
  j.slices = {{{1, {}, {}}}};
  bench->note(co_await transfer(bench, j));
  j.id = "t2";
  j.workers = 1;
  j.mode = Mode::truncate;
  bench->note(co_await transfer(bench, j));
  bench->note(co_await bench->rows("SELECT id, note, amount, computed FROM dbo.orders"));
}

Task<void> nothing_to_load(Bench* bench) {
  co_await bench->run(table_sql);
  Job j = job(Mode::append);
  j.slices = {};
  bench->note(co_await transfer(bench, j));
  j.id = "t2";
  j.workers = 1;
  bench->note(co_await transfer(bench, j));
  j.id = "t3";
  j.mode = Mode::truncate;
  j.slices = {{}};
  bench->note(co_await transfer(bench, j));
}

Task<void> many_statements(Bench* bench) {
  co_await bench->run(table_sql);
  Job j = job(Mode::append);
  j.load.batch_rows = 1;
  bench->note(co_await transfer(bench, j));
}

Task<void> other_database(Bench* bench) {
  co_await bench->run("CREATE DATABASE second");
  Job j = job(Mode::append);
  j.create = true;
  j.table.parts = {"second", "", "orders"};
  bench->note(co_await transfer(bench, j));
  bench->note(co_await bench->rows("SELECT COUNT(*) FROM second.dbo.orders"));
}

Task<void> discarding(Bench* bench) {
  co_await bench->run(table_sql);
  Job j = job(Mode::truncate);
  j.verify = system::Verify::content;
  bench->note(co_await transfer(bench, j));
}

Task<void> not_a_table(Bench* bench) {
  co_await bench->run(table_sql);
  co_await bench->run("CREATE VIEW dbo.v AS SELECT id, note, amount FROM dbo.orders");
  Job j = job(Mode::append);
  j.table.parts = {"dbo", "v"};
  bench->note(co_await transfer(bench, j));
}

Task<void> dependants(Bench* bench) {
  co_await bench->run(
      "CREATE TABLE dbo.orders (id int NOT NULL PRIMARY KEY, note nvarchar(80) NULL, amount "
      "decimal(10,2) NULL DEFAULT 0)");
  co_await bench->run("CREATE TABLE dbo.lines (order_id int REFERENCES dbo.orders (id))");
  Job j = job(Mode::replace);
  j.types = {{"amount", "decimal(12,2)"}};
  std::string first;
  try {
    co_await planned(bench, j);
  } catch (const Error& error) {
    first = error.code();
  }
  bench->note(first);
  j.replace_dependants = true;
  bench->note(co_await transfer(bench, j));
  bench->note("references: " + co_await bench->rows("SELECT name FROM sys.foreign_keys"));
}

}  // namespace

Test(sink, makes_a_missing_table_with_its_key) {
  EXPECT_NOTES(into_missing, "rename, staged 3, hash same, rows 3", "1,one,1.00 2,NULL,2.50 3,three ☃,NULL", "key",
               "left: ", "0,finalize,3");
}
Test(sink, appends_to_the_rows_that_are_there) {
  EXPECT_NOTES(append, "insert_select, staged 3, hash same, rows 3", "1,one,1.00 2,NULL,2.50 3,three ☃,NULL 9,old,1.00",
               "left: ");
}
Test(sink, truncate_replaces_all_rows_at_once) {
  EXPECT_NOTES(truncate, "insert_select, staged 3, hash same, rows 3, total 3",
               "1,one,1.00 2,NULL,2.50 3,three ☃,NULL");
}
Test(sink, replace_rebuilds_only_where_the_definition_differs) {
  EXPECT_NOTES(rebuild, "insert_select, staged 3, hash same, rows 3, total 3",
               "rename, staged 3, hash same, rows 3, total 3", "1,one,1.00 2,NULL,2.50 3,three ☃,NULL", "pk_o",
               "bigint");
}
Test(sink, fail_if_exists_fails) {
  EXPECT_NOTES(exists, "failed: target_exists: the target table [dbo].[orders] exists");
}
Test(sink, one_worker_loads_an_empty_table_in_one_transaction) {
  EXPECT_NOTES(direct, "direct, rows 3", "1,one,1.00 2,NULL,2.50 3,three ☃,NULL", "0,finalize,3");
}
Test(sink, identity_values_are_kept_and_the_next_one_follows) {
  EXPECT_NOTES(identity, "insert_select, staged 3, hash same, rows 3", "1,first 7,c 1000,a 1001,b 1002,next");
}
Test(sink, names_that_need_quoting_work_everywhere) {
  EXPECT_NOTES(names, "rename, staged 3, hash same, rows 3", "1,one,1.00 2,NULL,2.50 3,three ☃,NULL",
               "insert_select, staged 3, hash same, rows 3, total 3");
}
Test(sink, duplicate_keys_leave_the_target_as_it_was) {
  EXPECT_NOTES(duplicate_keys, "duplicate_key", "9,old,1.00", "left: ");
}
Test(sink, a_broken_check_leaves_the_target_as_it_was) { EXPECT_NOTES(broken_check, "constraint_violated", "rows: "); }
Test(sink, nulls_are_nulls_and_computed_columns_are_left_out) {
  EXPECT_NOTES(nulls_stay, "insert_select, staged 1, hash same, rows 1",
               "insert_select, staged 1, hash same, rows 1, total 1", "1,NULL,NULL,2");
}
Test(sink, no_rows_are_no_trouble) {
  EXPECT_NOTES(nothing_to_load, "insert_select, staged 0, hash same, rows 0", "direct, rows 0",
               "insert_select, staged 0, hash same, rows 0, total 0");
}
Test(sink, a_slice_may_take_several_statements) {
  EXPECT_NOTES(many_statements, "insert_select, staged 3, hash same, rows 3");
}
Test(sink, a_name_of_three_parts_reaches_another_database) {
  EXPECT_NOTES(other_database, "rename, staged 3, hash same, rows 3", "3");
}
Test(sink, a_view_is_no_table) { EXPECT_NOTES(not_a_table, "failed: not_a_table: [dbo].[v] is no table but a view"); }
Test(sink, what_depends_on_a_table_is_dropped_only_when_asked) {
  EXPECT_NOTES(dependants, "dependants", "rename, staged 3, hash same, rows 3, total 3", "references: ");
}
Test(sink, a_discarding_sandbox_counts_but_does_not_give_rows_back) {
  sandbox::Options options;
  options.discard = true;
  const Notes got = on_sandbox(discarding, options);
  cr_expect(got == Notes{"insert_select, staged 3, hash discard, rows 3, total 3"}, "%s", joined(got).c_str());
}
