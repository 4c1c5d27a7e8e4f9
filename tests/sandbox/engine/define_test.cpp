// Definitions: CREATE, ALTER, DROP, rename, switch, truncate, constraints, and what ROLLBACK brings back.
#include <fmt/format.h>

#include "common.hpp"

using namespace rowferry::sandbox::engine;
using namespace rowferry::sandbox::engine::testing;

Test(define, constraints_are_enforced_with_the_servers_words) {
  World w;
  w.a.run(
      "CREATE TABLE p (id int CONSTRAINT pk_p PRIMARY KEY, code varchar(5) NOT NULL CONSTRAINT uq_p UNIQUE, n int "
      "CONSTRAINT ck_n CHECK (n > 0), m int DEFAULT 7)");
  w.a.run("CREATE TABLE c (id int PRIMARY KEY, p_id int CONSTRAINT fk_c REFERENCES p(id))");
  ANSWERS(w.a, "INSERT p (id, code, n) VALUES (1, 'a', 1)", "(1 rows)\n");
  ANSWERS(w.a, "INSERT p (id, code, n) VALUES (1, 'b', 1)",
          "error 2627, 14, 1: Violation of PRIMARY KEY constraint 'pk_p'. Cannot insert duplicate key in object "
          "'dbo.p'. The duplicate key value is (1).\ninfo 3621: The statement has been terminated.\n(failed)\n");
  ANSWERS(w.a, "INSERT p (id, code, n) VALUES (2, 'A', 1)",
          "error 2627, 14, 1: Violation of UNIQUE KEY constraint 'uq_p'. Cannot insert duplicate key in object "
          "'dbo.p'. The duplicate key value is (A).\ninfo 3621: The statement has been terminated.\n(failed)\n");
  ANSWERS(
      w.a, "INSERT p (id, code, n) VALUES (2, 'b', 0)",
      "error 547, 16, 0: The INSERT statement conflicted with the CHECK constraint \"ck_n\". The conflict occurred in "
      "database \"db\", table \"dbo.p\", column 'n'.\ninfo 3621: The statement has been terminated.\n(failed)\n");
  ANSWERS(w.a, "INSERT c VALUES (1, 9)",
          "error 547, 16, 0: The INSERT statement conflicted with the FOREIGN KEY constraint \"fk_c\". The conflict "
          "occurred in database \"db\", table \"dbo.p\", column 'id'.\ninfo 3621: The statement has been "
          "terminated.\n(failed)\n");
  ANSWERS(w.a, "INSERT c VALUES (1, 1), (2, NULL)", "(2 rows)\n");
  ANSWERS(
      w.a, "DELETE p WHERE id = 1",
      "error 547, 16, 0: The DELETE statement conflicted with the REFERENCE constraint \"fk_c\". The conflict occurred "
      "in database \"db\", table \"dbo.c\", column 'p_id'.\ninfo 3621: The statement has been terminated.\n(failed)\n");
  FAILS(w.a, "TRUNCATE TABLE p", 4712);
  FAILS(w.a, "DROP TABLE p", 3726);
  ROWS(w.a, "SELECT id, code, n, m FROM p", "1|a|1|7");
}

Test(define, a_failed_statement_leaves_nothing) {
  World w;
  w.a.run("CREATE TABLE t (id int PRIMARY KEY)");
  FAILS(w.a, "INSERT t VALUES (1), (2), (1)", 2627);
  ROWS(w.a, "SELECT COUNT(*) FROM t", "0");
  w.a.run("INSERT t VALUES (1), (2)");
  FAILS(w.a, "UPDATE t SET id = 5", 2627);
  ROWS(w.a, "SELECT id FROM t ORDER BY id", "1 2");
  ROWS(w.a, "UPDATE t SET id = id + 1; SELECT id FROM t ORDER BY id", "2 3");
}

Test(define, rollback_takes_definitions_back) {
  World w;
  w.a.run("CREATE TABLE t (a int NOT NULL, b varchar(5)); INSERT t VALUES (1, 'x'), (2, 'y')");
  w.a.run(
      "BEGIN TRAN; ALTER TABLE t ADD c int NOT NULL DEFAULT 5; ALTER TABLE t DROP COLUMN b; CREATE INDEX i ON t (a); "
      "EXEC sp_rename 't', 'u'; CREATE TABLE v (x int)");
  ROWS(w.a, "SELECT * FROM u", "1|5 2|5");
  w.a.run("TRUNCATE TABLE u; INSERT u (a) VALUES (9); DROP TABLE v");
  ROWS(w.a, "SELECT * FROM u", "9|5");
  w.a.run("ROLLBACK");
  ROWS(w.a, "SELECT * FROM t", "1|x 2|y");
  ROWS(w.a, "SELECT COUNT(*) FROM sys.tables; SELECT COUNT(*) FROM sys.indexes WHERE name = 'i'", "1 0");
}

Test(define, switch_moves_rows_between_like_tables) {
  World w;
  w.a.run(
      "CREATE TABLE target (id int NOT NULL CONSTRAINT pk_t PRIMARY KEY, v nvarchar(5)); CREATE TABLE staging (id int "
      "NOT NULL, v nvarchar(5)); INSERT staging VALUES (1, N'a'), (2, N'b'); INSERT target VALUES (9, N'old')");
  FAILS(w.a, "ALTER TABLE staging SWITCH TO target", 4905);
  FAILS(w.a, "BEGIN TRAN TRUNCATE TABLE target ALTER TABLE staging SWITCH TO target", 4947);
  w.a.run("ROLLBACK");
  w.a.run("ALTER TABLE staging ADD CONSTRAINT pk_s PRIMARY KEY (id)");
  ANSWERS(w.a, "BEGIN TRAN TRUNCATE TABLE target ALTER TABLE staging SWITCH TO target COMMIT", "begin\ncommit\n");
  ROWS(w.a, "SELECT id FROM target ORDER BY id; SELECT COUNT(*) FROM staging", "1 2 0");
  FAILS(w.a, "INSERT target VALUES (2, N'z')", 2627);
  w.a.run("CREATE TABLE other (id bigint NOT NULL PRIMARY KEY, v nvarchar(5))");
  FAILS(w.a, "ALTER TABLE target SWITCH TO other", 4944);
}

Test(define, identity_values_are_kept_generated_and_reseeded) {
  World w;
  w.a.run("CREATE TABLE t (id int IDENTITY(1, 1) PRIMARY KEY, v nvarchar(10))");
  FAILS(w.a, "INSERT t (id, v) VALUES (5, N'x')", 544);
  FAILS(w.a, "INSERT t VALUES (5, N'x')", 8101);
  w.a.run("SET IDENTITY_INSERT t ON");
  FAILS(w.a, "INSERT t (v) VALUES (N'x')", 545);
  ROWS(w.a,
       "INSERT t (id, v) VALUES (1000, N'a'), (7, N'b'); SET IDENTITY_INSERT t OFF; INSERT t (v) VALUES (N'c'); SELECT "
       "id FROM t ORDER BY id; SELECT SCOPE_IDENTITY()",
       "7 1000 1001 1001");
  ROWS(w.a,
       "DBCC CHECKIDENT('t', RESEED, 2000) WITH NO_INFOMSGS; INSERT t (v) VALUES (N'd'); SELECT MAX(id), "
       "IDENT_CURRENT('t') FROM t",
       "2001|2001");
  ROWS(w.a, "TRUNCATE TABLE t; INSERT t (v) VALUES (N'e'); SELECT id FROM t", "1");
  FAILS(w.a, "UPDATE t SET id = 3", 8102);
}

Test(define, computed_columns_and_rowversion_are_not_for_writing) {
  World w;
  w.a.run("CREATE TABLE t (a int, b AS a * 2, r rowversion)");
  FAILS(w.a, "INSERT t (a, b) VALUES (1, 2)", 271);
  FAILS(w.a, "INSERT t (r) VALUES (0x01)", 273);
  ROWS(w.a, "INSERT t (a) VALUES (4); SELECT a, b, DATALENGTH(r) FROM t", "4|8|8");
  ROWS(w.a, "DECLARE @r binary(8) = (SELECT r FROM t); UPDATE t SET a = 5; SELECT IIF(r > @r, 1, 0), b FROM t", "1|10");
}

Test(define, a_period_begins_now_and_ends_at_the_last_moment_of_its_columns) {
  World w;
  for (const auto& [scale, end] : std::vector<std::pair<int, std::string>>{
           {0, "9999-12-31 23:59:59"}, {3, "9999-12-31 23:59:59.999"}, {7, "9999-12-31 23:59:59.9999999"}}) {
    w.a.run(
        fmt::format("CREATE TABLE p{0} (a int PRIMARY KEY, s datetime2({0}) GENERATED ALWAYS AS ROW START NOT NULL, "
                    "e datetime2({0}) GENERATED ALWAYS AS ROW END NOT NULL, PERIOD FOR SYSTEM_TIME (s, e))",
                    scale));
    FAILS(w.a, fmt::format("INSERT p{} (a, s) VALUES (1, '2000-01-01')", scale), 13536);
    ROWS(
        w.a,
        fmt::format("INSERT p{0} (a) VALUES (1); SELECT CONVERT(varchar(30), e, 121), IIF(s > '2020-01-01', 1, 0) FROM "
                    "p{0}",
                    scale),
        end + "|1");
  }
}

Test(define, alter_changes_columns_of_tables_with_rows) {
  World w;
  w.a.run("CREATE TABLE t (a int NOT NULL, b varchar(3)); INSERT t VALUES (1, '12'), (2, NULL)");
  FAILS(w.a, "ALTER TABLE t ADD c int NOT NULL", 4901);
  ROWS(w.a, "ALTER TABLE t ALTER COLUMN b int; SELECT a + ISNULL(b, 0) FROM t", "13 2");
  FAILS(w.a, "ALTER TABLE t ALTER COLUMN b int NOT NULL", 515);
  ROWS(w.a,
       "ALTER TABLE t ALTER COLUMN a bigint NOT NULL; ALTER TABLE t ADD PRIMARY KEY (a); SELECT COUNT(*) FROM "
       "sys.key_constraints",
       "1");
  FAILS(w.a, "ALTER TABLE t DROP COLUMN a", 4922);
  FAILS(w.a, "ALTER TABLE t ADD CONSTRAINT ck CHECK (a > 1)", 547);
  FAILS(w.a, "CREATE UNIQUE INDEX i ON t (nope)", 1911);
  w.a.run("INSERT t VALUES (3, NULL)");
  FAILS(w.a, "CREATE UNIQUE INDEX i ON t (b)", 1505);
}

Test(define, rename_knows_tables_columns_indexes_and_constraints) {
  World w;
  w.a.run("CREATE TABLE [a.b] (id int CONSTRAINT pk PRIMARY KEY, v int); CREATE INDEX ix ON [a.b] (v)");
  ANSWERS(w.a, "EXEC sp_rename N'dbo.[a.b]', N'c]d'",
          "info 15477: Caution: Changing any part of an object name could break scripts and stored procedures.\nstatus "
          "0\n");
  w.a.run(
      "EXEC sp_rename N'[c]]d].v', N'w', N'COLUMN'; EXEC sp_rename N'[c]]d].ix', N'iy', N'INDEX'; EXEC sp_rename "
      "N'pk', N'pk2', N'OBJECT'");
  ROWS(w.a, "SELECT w FROM [c]]d]; SELECT name FROM sys.indexes ORDER BY name", "iy pk2");
  FAILS(w.a, "EXEC sp_rename N'nothing', N'x'", 15225);
  FAILS(w.a, "EXEC sp_rename N'[c]]d].nothing', N'x', N'COLUMN'", 15248);
  w.a.run("CREATE TABLE taken (x int)");
  FAILS(w.a, "EXEC sp_rename N'taken', N'c]d'", 15335);
}

Test(define, errors_of_definitions) {
  World w;
  w.a.run("CREATE TABLE t (a int)");
  FAILS(w.a, "CREATE TABLE t (a int)", 2714);
  FAILS(w.a, "CREATE TABLE u (a int, A int)", 2705);
  FAILS(w.a, "CREATE TABLE nowhere.t (a int)", 2760);
  FAILS(w.a, "DROP TABLE missing", 3701);
  FAILS(w.a, "ALTER TABLE missing ADD a int", 4902);
  FAILS(w.a, "TRUNCATE TABLE missing", 4701);
  FAILS(w.a, "CREATE INDEX i ON missing (a)", 1088);
  FAILS(w.a, "USE missing", 911);
  FAILS(w.a, "INSERT t VALUES (1, 2)", 213);
  FAILS(w.a, "INSERT t (a) VALUES (1, 2)", 110);
  FAILS(w.a, "CREATE TABLE u (a varchar(9000))", 131);
  FAILS(w.a, "CREATE TABLE u (a int IDENTITY, b int IDENTITY)", 2744);
  FAILS(w.a, "CREATE TABLE u (a varchar(5) COLLATE Nonsense)", 448);
}

Test(define, views_procedures_and_schemas) {
  World w;
  w.a.run("CREATE TABLE t (a int); INSERT t VALUES (1), (2)");
  w.a.run("CREATE VIEW v AS SELECT a, a * 10 AS b FROM t WHERE a > 1");
  ROWS(w.a, "SELECT b FROM v", "20");
  w.a.run("CREATE PROCEDURE add_one @x int, @y int = 5 OUTPUT AS SET @y = @x + 1 RETURN 42");
  ANSWERS(w.a, "DECLARE @r int, @o int; EXEC @r = add_one 7, @o OUTPUT; SELECT @r, @o", "status 42\n42|8\n(1 rows)\n");
  FAILS(w.a, "EXEC add_one", 201);
  FAILS(w.a, "EXEC nowhere", 2812);
  w.a.run("CREATE SCHEMA s; CREATE TABLE s.t (x int)");
  ROWS(w.a, "INSERT s.t VALUES (3); SELECT x FROM s.t; SELECT SCHEMA_NAME(schema_id) FROM sys.tables ORDER BY 1",
       "3 dbo s");
  FAILS(w.a, "DROP SCHEMA s", 3729);
}

Test(define, temporary_tables_belong_to_their_session) {
  World w;
  w.a.run("CREATE TABLE #x (a int); INSERT #x VALUES (1)");
  ROWS(w.a, "SELECT a FROM #x; SELECT COUNT(*) FROM tempdb.sys.columns WHERE object_id = OBJECT_ID('tempdb..#x')",
       "1 1");
  FAILS(w.b, "SELECT a FROM #x", 208);
  ROWS(w.b, "CREATE TABLE #x (b int); SELECT COUNT(*) FROM #x", "0");
  ROWS(w.a, "SELECT * INTO #y FROM #x; SELECT a FROM #y", "1");
}

Test(define, select_into_makes_a_table) {
  World w;
  w.a.run("CREATE TABLE t (a int NOT NULL, b nvarchar(7)); INSERT t VALUES (1, N'x')");
  ROWS(w.a,
       "SELECT a, b, a + 1 AS c INTO u FROM t; SELECT * FROM u; SELECT name, is_nullable FROM sys.columns WHERE "
       "object_id = OBJECT_ID('u') ORDER BY column_id",
       "1|x|2 a|0 b|1 c|0");
}

Test(define, table_variables_live_in_their_batch) {
  World w;
  ROWS(w.a,
       "DECLARE @t TABLE (a int PRIMARY KEY, b nvarchar(5) DEFAULT N'd'); INSERT @t (a) VALUES (1), (2); UPDATE @t SET "
       "b = N'x' WHERE a = 2; DELETE @t WHERE a = 1; SELECT * FROM @t",
       "2|x");
  FAILS(w.a, "SELECT * FROM @t", 1087);
}

Test(define, cascades_and_disabled_constraints) {
  World w;
  w.a.run(
      "CREATE TABLE p (id int PRIMARY KEY); CREATE TABLE c (id int, p int CONSTRAINT fk REFERENCES p(id) ON DELETE "
      "CASCADE); INSERT p VALUES (1), (2); INSERT c VALUES (1, 1), (2, 2)");
  ROWS(w.a, "DELETE p WHERE id = 1; SELECT id FROM c", "2");
  FAILS(w.a, "INSERT c VALUES (3, 9)", 547);
  ROWS(w.a,
       "ALTER TABLE c NOCHECK CONSTRAINT ALL; INSERT c VALUES (3, 9); SELECT is_disabled, is_not_trusted FROM "
       "sys.foreign_keys",
       "1|1");
}

Test(define, a_thousand_rows_in_one_values_list_and_no_more) {
  World w;
  w.a.run("CREATE TABLE t (a int)");
  std::string rows = "(0)";
  for (int i = 1; i < 1000; ++i) rows += ", (" + std::to_string(i) + ")";
  ANSWERS(w.a, "INSERT t VALUES " + rows, "(1000 rows)\n");
  FAILS(w.a, "INSERT t VALUES " + rows + ", (1000)", 10738);
}

Test(define, insert_select_takes_rows_over_between_tables) {
  World w;
  w.a.run(
      "CREATE TABLE s (a int, b nvarchar(10)); CREATE TABLE t (a int, b nvarchar(10)); CREATE TABLE k (a int PRIMARY "
      "KEY, b nvarchar(20))");
  w.a.run("INSERT s VALUES (1, N'x'), (2, NULL), (3, N'z'); DELETE s WHERE a = 2");
  ANSWERS(w.a, "INSERT INTO t WITH (TABLOCK) (a, b) SELECT a, b FROM s", "(2 rows)\n");
  ANSWERS(w.a, "INSERT t SELECT * FROM t", "(2 rows)\n");
  ROWS(w.a, "DELETE TOP (1) FROM t WHERE a = 3; SELECT a, b FROM t ORDER BY a", "1|x 1|x 3|z");
  ANSWERS(w.a, "INSERT k (b, a) SELECT b, a * 10 FROM s", "(2 rows)\n");
  FAILS(w.a, "INSERT k SELECT a, b FROM t", 2627);
  ROWS(w.a, "UPDATE k SET b = t.b FROM k JOIN t ON t.a * 10 = k.a AND t.a = 3; SELECT a, b FROM k ORDER BY a",
       "10|x 30|z");
  ROWS(w.a,
       "INSERT k SELECT a, b FROM s WHERE NOT EXISTS (SELECT 1 FROM k WHERE k.a = s.a * 10) UNION ALL SELECT 5, N'n'; "
       "SELECT COUNT(*) FROM k",
       "3");
}
