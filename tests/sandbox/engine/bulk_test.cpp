// INSERT BULK: direct rows, conversion, constraints, identity, atomicity, discarding.
#include <fmt/format.h>

#include "common.hpp"

using namespace rowferry::sandbox::engine;
using namespace rowferry::sandbox::engine::testing;

namespace {

std::string row(int id, std::u16string_view v) { return int_value(id) + nvarchar_value(v); }

}  // namespace

Test(bulk, rows_are_kept_as_they_came) {
  World w;
  w.a.run("CREATE TABLE t (id int NULL, v nvarchar(10) NULL)");
  ANSWERS(
      w.a,
      "INSERT BULK t ([id] int, [v] nvarchar(10)) WITH (TABLOCK, CHECK_CONSTRAINTS, KEEP_NULLS, ROWS_PER_BATCH = 10)",
      "");
  BulkTarget* bulk = w.a.session->bulk();
  cr_assert_not_null(bulk);
  cr_expect_eq(bulk->declared().size(), 2U);
  cr_expect(bulk->declared()[1].type.max_length == 20 && bulk->declared()[1].nullable());
  cr_expect_not(bulk->bind(bulk->declared()).has_value());
  w.a.append({row(1, u"a"), null8() + nvarchar_null(), row(2, u"")});
  SAYS(w.a.finish_bulk(), "(3 rows)\n");
  cr_assert_null(w.a.session->bulk());
  ROWS(w.a, "SELECT * FROM t; SELECT COUNT(*) FROM t", "1|a NULL|NULL 2| 3");
}

Test(bulk, fixed_forms_and_padding_are_put_right) {
  World w;
  w.a.run("CREATE TABLE t (id int NOT NULL, c char(3) NULL)");
  w.a.run("INSERT BULK t (id int, c char(3))");
  Columns stream = w.a.session->bulk()->declared();
  stream[0].type.id = rowferry::tds::DataType::int4;
  cr_assert_not(w.a.session->bulk()->bind(stream).has_value());
  w.a.append({std::string("\7\0\0\0", 4) + std::string("\1\0x", 3)});
  w.a.finish_bulk();
  ROWS(w.a, "SELECT id, c, DATALENGTH(c) FROM t", "7|x  |3");
}

Test(bulk, declared_types_are_converted_to_the_tables) {
  World w;
  w.a.run("CREATE TABLE t (d decimal(9,2), dt date, n int)");
  const std::string statement = "INSERT BULK t (d nvarchar(20), dt nvarchar(20), n nvarchar(20))";
  ANSWERS(w.a, "SELECT 1", "1\n(1 rows)\n");
  SAYS(w.a.bulk(statement, {nvarchar_value(u"12.345") + nvarchar_value(u"2024-02-29") + nvarchar_value(u"-5")}),
       "(1 rows)\n");
  ROWS(w.a, "SELECT * FROM t", "12.35|2024-02-29|-5");
  const std::string failed =
      w.a.bulk(statement, {nvarchar_value(u"1") + nvarchar_value(u"2024-01-01") + nvarchar_value(u"x")});
  cr_expect(failed.find("error 245") == 0, "%s", failed.c_str());
  ROWS(w.a, "SELECT COUNT(*) FROM t", "1");
}

Test(bulk, a_failing_row_undoes_the_statement_alone) {
  World w;
  w.a.run("CREATE TABLE t (id int NOT NULL PRIMARY KEY, v nvarchar(3))");
  w.a.run("BEGIN TRAN INSERT t VALUES (1, N'x')");
  std::string answer = w.a.bulk("INSERT BULK t (id int, v nvarchar(3))", {row(2, u"a"), row(1, u"b")});
  cr_expect(answer.find("error 2627, 14, 1") == 0 && answer.find("(failed)") != std::string::npos, "%s",
            answer.c_str());
  answer = w.a.bulk("INSERT BULK t (id int, v nvarchar(10))", {row(3, u"a"), row(4, u"too long")});
  cr_expect(answer.find("error 2628") == 0, "%s", answer.c_str());
  ROWS(w.a, "SELECT id FROM t; COMMIT", "1 commit");
  ANSWERS(w.a, "INSERT BULK t (id int, v nvarchar(3))", "");
  w.a.session->bulk()->fail({4815, 1, 17, "Received an invalid column length from the bcp client for colid 2.", {}, 1});
  cr_expect(w.a.append({row(9, u"")}).status == BulkProgress::Status::failed);
  SAYS(w.a.finish_bulk(),
       "error 4815, 17, 1: Received an invalid column length from the bcp client for colid 2.\n(failed)\n");
}

Test(bulk, nulls_and_defaults) {
  World w;
  w.a.run("CREATE TABLE t (id int NOT NULL, qty int NULL DEFAULT 3, req int NOT NULL DEFAULT 7)");
  const std::string columns = "INSERT BULK t (id int, qty int, req int)";
  w.a.bulk(columns, {int_value(1) + null8() + null8()});
  ROWS(w.a, "SELECT * FROM t", "1|3|7");
  w.a.run(columns + " WITH (KEEP_NULLS)");
  BulkTarget* bulk = w.a.session->bulk();
  cr_expect(bulk->refuses_null(0) && !bulk->refuses_null(1) && bulk->refuses_null(2));
  SAYS(bulk->null_error(2).text,
       "Cannot insert the value NULL into column 'req', table 'db.dbo.t'; column does not allow nulls. INSERT fails.");
  bulk->bind(bulk->declared());
  w.a.append({int_value(2) + null8() + int_value(5)});
  w.a.finish_bulk();
  ROWS(w.a, "DELETE t WHERE id = 1; SELECT * FROM t", "2|NULL|5");
  ROWS(w.a, "DELETE t SELECT 1", "1");
  w.a.bulk("INSERT BULK t (id int)", {int_value(4)});
  ROWS(w.a, "SELECT * FROM t", "4|3|7");
}

Test(bulk, check_constraints_only_when_asked) {
  World w;
  w.a.run("CREATE TABLE t (id int CONSTRAINT positive CHECK (id > 0))");
  const std::string answer = w.a.bulk("INSERT BULK t (id int) WITH (CHECK_CONSTRAINTS)", {int_value(1), int_value(-1)});
  cr_expect(answer.find("error 547, 16, 0") == 0, "%s", answer.c_str());
  ROWS(w.a, "SELECT COUNT(*) FROM t; SELECT is_not_trusted FROM sys.check_constraints", "0 0");
  w.a.bulk("INSERT BULK t (id int)", {int_value(-1)});
  ROWS(w.a, "SELECT id FROM t; SELECT is_not_trusted FROM sys.check_constraints", "-1 1");
}

Test(bulk, identity_is_kept_when_sent_and_made_when_not) {
  World w;
  w.a.run("CREATE TABLE t (id int IDENTITY PRIMARY KEY, v nvarchar(10))");
  w.a.bulk("INSERT BULK t (id int, v nvarchar(10))", {row(1000, u"a"), row(7, u"b")});
  w.a.bulk("INSERT BULK t (v nvarchar(10))", {nvarchar_value(u"c")});
  ROWS(w.a, "SELECT id, v FROM t ORDER BY id", "7|b 1000|a 1001|c");
  FAILS(w.a, "SET IDENTITY_INSERT t ON INSERT BULK t (v nvarchar(10))", 545);
}

Test(bulk, what_cannot_be_written_is_refused_at_the_statement) {
  World w;
  w.a.run("CREATE TABLE t (a int, b AS a + 1)");
  FAILS(w.a, "INSERT BULK t (b int)", 271);
  FAILS(w.a, "INSERT BULK t (nope int)", 207);
  FAILS(w.a, "INSERT BULK missing (a int)", 208);
  cr_assert_null(w.a.session->bulk());
}

Test(bulk, an_order_hint_is_held_to_its_word) {
  World w;
  w.a.run("CREATE TABLE t (id int PRIMARY KEY)");
  const std::string answer = w.a.bulk("INSERT BULK t (id int) WITH (ORDER (id ASC))", {int_value(6), int_value(5)});
  cr_expect(answer.find("error 4819, 16, 1") == 0, "%s", answer.c_str());
}

Test(bulk, two_loaders_fill_one_heap_and_one_of_them_leaves) {
  World w;
  w.a.run("CREATE TABLE t (id int)");
  w.a.run("BEGIN TRAN INSERT BULK t (id int) WITH (TABLOCK)");
  w.b.run("BEGIN TRAN");
  ANSWERS(w.b, "INSERT BULK t (id int) WITH (TABLOCK)", "");
  w.a.session->bulk()->bind(w.a.session->bulk()->declared());
  w.b.session->bulk()->bind(w.b.session->bulk()->declared());
  for (int i = 0; i < 100; ++i) {
    w.a.append({int_value(i)});
    w.b.append({int_value(-i)});
  }
  w.a.finish_bulk();
  w.b.finish_bulk();
  w.b.run("ROLLBACK");
  w.a.run("COMMIT");
  ROWS(w.a, "SELECT COUNT(*), MIN(id), MAX(id) FROM t", "100|0|99");
  w.a.run("BEGIN TRAN INSERT BULK t (id int) WITH (TABLOCK)");
  cr_expect(w.b.run("SELECT COUNT(*) FROM t").find("blocked") == 0, "a bulk update lock keeps readers out");
}

Test(bulk, an_uncommitted_key_makes_the_rows_wait) {
  World w;
  w.a.run("CREATE TABLE t (id int PRIMARY KEY)");
  w.b.run("BEGIN TRAN INSERT t VALUES (2)");
  w.a.run("INSERT BULK t (id int)");
  w.a.session->bulk()->bind(w.a.session->bulk()->declared());
  const BulkProgress progress = w.a.append({int_value(1), int_value(2), int_value(3)});
  cr_expect(progress.status == BulkProgress::Status::would_block);
  cr_expect_eq(progress.taken, 1U);
  w.b.run("ROLLBACK");
  cr_expect(w.a.append({int_value(2), int_value(3)}).status == BulkProgress::Status::ok);
  SAYS(w.a.finish_bulk(), "(3 rows)\n");
}

Test(bulk, aborting_leaves_the_session_usable) {
  World w;
  w.a.run("CREATE TABLE t (id int)");
  w.a.run("INSERT BULK t (id int)");
  w.a.session->bulk()->bind(w.a.session->bulk()->declared());
  w.a.append({int_value(1)});
  w.a.session->abort_bulk(w.a.recorder, std::nullopt);
  SAYS(w.a.recorder.text, "(failed)\n");
  w.a.recorder.text.clear();
  ROWS(w.a, "SELECT COUNT(*) FROM t", "0");
  w.a.run("INSERT BULK t (id int)");
  w.a.session->cancel(w.a.recorder);
  ROWS(w.b, "SELECT COUNT(*) FROM t", "0");
}

Test(discard, rows_are_counted_and_hashed_and_carried) {
  World w(true);
  w.a.run("CREATE TABLE s (id int, v nvarchar(10)); CREATE TABLE t (id int, v nvarchar(10))");
  const std::string statement = "INSERT BULK s (id int, v nvarchar(10)) WITH (TABLOCK, KEEP_NULLS)";
  w.a.bulk(statement, {row(1, u"a"), row(2, u"b")});
  w.a.bulk(statement, {row(3, u"c")});
  ROWS(w.a, "SELECT COUNT_BIG(*) FROM s", "3");
  ROWS(w.a, "SELECT id FROM s", "");
  const std::string hash = "SELECT content_hash FROM sys.dm_rowferry_content WHERE table_name = ";
  const std::string once = rows_of(w.a.run(hash + "'s'"));
  w.a.run("BEGIN TRAN INSERT t WITH (TABLOCK) SELECT id, v FROM s");
  ROWS(w.a, "SELECT COUNT(*) FROM t", "3");
  w.a.run("ROLLBACK");
  ROWS(w.a, "SELECT COUNT(*) FROM t", "0");
  ANSWERS(w.a, "INSERT t (id, v) SELECT id, v FROM s", "(3 rows)\n");
  ROWS(w.a, hash + "'t'", once);
  w.a.run("TRUNCATE TABLE s");
  ROWS(w.a, "SELECT COUNT(*) FROM s", "0");
  w.a.bulk(statement, {row(3, u"c"), row(2, u"b"), row(1, u"a")});
  ROWS(w.a, hash + "'s'", once);
  w.a.run("EXEC sp_rename 's', 'u'; TRUNCATE TABLE t; ALTER TABLE u SWITCH TO t");
  ROWS(w.a, "SELECT COUNT(*) FROM t; SELECT COUNT(*) FROM u", "3 0");
  ROWS(w.a, "DELETE t; SELECT COUNT(*) FROM t", "0");
}

Test(discard, small_tables_keep_what_insert_writes) {
  World w(true);
  w.a.run("CREATE TABLE ledger (k int PRIMARY KEY)");
  w.a.run("INSERT ledger VALUES (1)");
  FAILS(w.a, "INSERT ledger VALUES (1)", 2627);
  ROWS(w.a, "SELECT k FROM ledger", "1");
}
