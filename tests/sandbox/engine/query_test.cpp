// Queries, expressions, flow of control.
#include "common.hpp"

using namespace rowferry::sandbox::engine;
using namespace rowferry::sandbox::engine::testing;

namespace {

void make_shop(Client& c) {
  c.run(
      "CREATE TABLE item (id int NOT NULL PRIMARY KEY, name nvarchar(20), price decimal(9,2), kind varchar(5));"
      "CREATE TABLE sale (id int, item_id int, n int);"
      "INSERT item VALUES (1, N'apple', 1.50, 'fruit'), (2, N'pear', 2.25, 'fruit'), (3, N'nail', 0.05, 'iron'), (4, "
      "NULL, NULL, NULL);"
      "INSERT sale VALUES (1, 1, 10), (2, 1, 5), (3, 3, 1000), (4, 9, 1)");
}

}  // namespace

Test(query, joins_groups_and_orders) {
  World w;
  make_shop(w.a);
  ROWS(w.a,
       "SELECT i.name, SUM(s.n) AS total FROM item i INNER JOIN sale s ON s.item_id = i.id GROUP BY i.name ORDER BY "
       "total DESC",
       "nail|1000 apple|15");
  ROWS(w.a,
       "SELECT i.id, s.n FROM item AS i LEFT OUTER JOIN sale AS s ON s.item_id = i.id AND s.n > 5 ORDER BY i.id, s.n",
       "1|10 2|NULL 3|1000 4|NULL");
  ROWS(w.a, "SELECT s.id, i.id FROM item i RIGHT JOIN sale s ON s.item_id = i.id ORDER BY s.id", "1|1 2|1 3|3 4|NULL");
  ROWS(w.a, "SELECT COUNT(*) FROM item a CROSS JOIN sale b", "16");
  ROWS(w.a, "SELECT kind, COUNT(*), MIN(price), MAX(price), AVG(price) FROM item GROUP BY kind ORDER BY kind",
       "NULL|1|NULL|NULL|NULL fruit|2|1.50|2.25|1.875000 iron|1|0.05|0.05|0.050000");
  ROWS(w.a, "SELECT DISTINCT kind FROM item WHERE kind IS NOT NULL ORDER BY kind DESC", "iron fruit");
  ROWS(w.a, "SELECT TOP (2) id FROM item ORDER BY price DESC", "2 1");
  ROWS(w.a, "SELECT id FROM item ORDER BY id OFFSET 1 ROWS FETCH NEXT 2 ROWS ONLY", "2 3");
}

Test(query, subqueries_may_look_outside) {
  World w;
  make_shop(w.a);
  ROWS(w.a, "SELECT id FROM item i WHERE EXISTS (SELECT 1 FROM sale s WHERE s.item_id = i.id) ORDER BY id", "1 3");
  ROWS(w.a, "SELECT id FROM item i WHERE NOT EXISTS (SELECT * FROM sale s WHERE s.item_id = i.id) ORDER BY id", "2 4");
  ROWS(w.a, "SELECT id, (SELECT SUM(n) FROM sale WHERE item_id = item.id) FROM item ORDER BY id",
       "1|15 2|NULL 3|1000 4|NULL");
  ROWS(w.a, "SELECT id FROM item WHERE id IN (SELECT item_id FROM sale) ORDER BY id", "1 3");
  ROWS(w.a, "SELECT id FROM item WHERE id NOT IN (SELECT item_id FROM sale) ORDER BY id", "2 4");
  ROWS(w.a, "SELECT x.k, x.c FROM (SELECT kind AS k, COUNT(*) AS c FROM item GROUP BY kind) AS x WHERE x.c > 1",
       "fruit|2");
  ROWS(w.a, "SELECT v.a, v.b FROM (VALUES (1, 'x'), (2, 'y')) AS v(a, b) ORDER BY v.a DESC", "2|y 1|x");
  ROWS(w.a, "WITH big AS (SELECT * FROM sale WHERE n > 5), n AS (SELECT COUNT(*) AS c FROM big) SELECT c FROM n", "2");
  ROWS(w.a,
       "SELECT i.id, t.n FROM item i CROSS APPLY (SELECT TOP 1 n FROM sale WHERE item_id = i.id ORDER BY n DESC) t "
       "ORDER BY i.id",
       "1|10 3|1000");
  FAILS(w.a, "SELECT (SELECT id FROM item)", 512);
}

Test(query, sets_are_united_and_subtracted) {
  World w;
  ROWS(w.a, "SELECT 1 AS n UNION ALL SELECT 1 UNION ALL SELECT 2 ORDER BY n DESC", "2 1 1");
  ROWS(w.a, "SELECT 1 UNION SELECT 1 UNION SELECT 2", "1 2");
  ROWS(w.a, "SELECT 1 EXCEPT SELECT 2", "1");
  ROWS(w.a, "SELECT 1 INTERSECT SELECT 1", "1");
  FAILS(w.a, "SELECT 1, 2 UNION SELECT 1", 205);
}

Test(query, null_is_neither_true_nor_false) {
  World w;
  ROWS(w.a,
       "SELECT IIF(NULL = NULL, 1, 0), IIF(NULL IS NULL, 1, 0), ISNULL(NULL, 5), COALESCE(NULL, NULL, 'z'), NULLIF(3, "
       "3), CASE WHEN NOT (NULL = 1) THEN 1 ELSE 2 END",
       "0|1|5|z|NULL|2");
  ROWS(w.a, "SELECT 'a' + NULL, 1 + NULL, CONCAT('a', NULL, 'b')", "NULL|NULL|ab");
}

Test(query, windows_number_rows) {
  World w;
  make_shop(w.a);
  ROWS(w.a,
       "SELECT id, ROW_NUMBER() OVER (PARTITION BY kind ORDER BY price DESC), COUNT(*) OVER (PARTITION BY kind) FROM "
       "item WHERE kind = 'fruit' ORDER BY id",
       "1|2|2 2|1|2");
  ROWS(w.a, "SELECT n, NTILE(2) OVER (ORDER BY n) FROM sale ORDER BY n", "1|1 5|1 10|2 1000|2");
}

Test(query, text_functions) {
  World w;
  ROWS(w.a,
       "SELECT LEN('ab  '), DATALENGTH(N'ab'), SUBSTRING('abcdef', 2, 3), SUBSTRING('abc', 0, 2), LEFT('abc', 2), "
       "RIGHT('abc', 2), UPPER(N'é'), REPLACE('aXbx', 'x', '-'), REPLICATE('ab', 3)",
       "2|4|bcd|a|ab|bc|É|a-b-|ababab");
  ROWS(w.a,
       "SELECT QUOTENAME('a]b'), QUOTENAME('x', ''''), CHARINDEX('c', 'abc'), STUFF('abcd', 2, 2, 'X'), LTRIM(RTRIM('  "
       "x ')), REVERSE('abc'), PARSENAME('a.b.c', 2)",
       "[a]]b]|'x'|3|aXd|x|cba|b");
  ROWS(w.a,
       "SELECT ABS(-5), CEILING(1.2), FLOOR(-1.2), ROUND(2.555, 2), SIGN(-3), POWER(2, 10), CHECKSUM('a') - "
       "CHECKSUM('A')",
       "5|2|-2|2.560|-1|1024|0");
  ROWS(w.a,
       "SELECT DATEADD(month, 1, CAST('2024-01-31' AS date)), DATEDIFF(day, '20240101', '20240301'), DATEPART(year, "
       "'20240305'), YEAR('20240305'), DATENAME(month, '20240305')",
       "2024-02-29|60|2024|2024|March");
}

Test(query, select_gives_variables_values) {
  World w;
  make_shop(w.a);
  ROWS(w.a,
       "DECLARE @n int, @s nvarchar(10) = N'x'; SELECT @n = COUNT(*) FROM item; SET @s += N'y'; SELECT @n, @s, "
       "@@ROWCOUNT",
       "4|xy|1");
  FAILS(w.a, "SELECT @missing", 137);
}

Test(query, flow_of_control) {
  World w;
  ANSWERS(w.a, "IF 1 = 2 PRINT 'a' ELSE IF 2 = 2 BEGIN PRINT 'b' PRINT 'c' END ELSE PRINT 'd'",
          "info 0: b\ninfo 0: c\n");
  ANSWERS(w.a,
          "DECLARE @i int = 0 WHILE 1 = 1 BEGIN SET @i = @i + 1 IF @i = 2 CONTINUE IF @i > 3 BREAK PRINT @i END PRINT "
          "'end'",
          "info 0: 1\ninfo 0: 3\ninfo 0: end\n");
  ANSWERS(w.a, "PRINT 'x' RETURN PRINT 'y'", "info 0: x\n");
}

Test(query, errors_reach_as_far_as_the_server_says) {
  World w;
  ANSWERS(w.a, "SELECT 1 / 0; SELECT 2",
          "error 8134, 16, 1: Divide by zero error encountered.\n(failed)\n2\n(1 rows)\n");
  ANSWERS(w.a, "SELECT 1; SELECT * FROM missing; SELECT 2",
          "1\n(1 rows)\nerror 208, 16, 1: Invalid object name 'missing'.\n(failed)\n");
  ANSWERS(w.a, "SELECT CAST('x' AS int); SELECT 2",
          "error 245, 16, 1: Conversion failed when converting the varchar value 'x' to data type int.\n(failed)\n");
  ANSWERS(w.a, "RAISERROR('no %s of %d', 16, 3, 'x', 7); SELECT 1",
          "error 50000, 16, 3: no x of 7\n(failed)\n1\n(1 rows)\n");
  ANSWERS(w.a, "RAISERROR('just so', 0, 1)", "info 50000: just so\n");
  ANSWERS(w.a, "THROW 51000, 'thrown', 2; SELECT 1", "error 51000, 16, 2: thrown\n(failed)\n");
  ANSWERS(w.a, "BEGIN TRY THROW 51000, 'in', 1 END TRY BEGIN CATCH PRINT ERROR_MESSAGE(); THROW END CATCH",
          "info 0: in\nerror 51000, 16, 1: in\n(failed)\n");
}

Test(query, syntax_errors_stop_the_whole_batch_before_it_begins) {
  World w;
  ANSWERS(w.a, "SELECT 1; SELECT FROM x", "error 156, 15, 1: Incorrect syntax near the keyword 'FROM'.\n(failed)\n");
  FAILS(w.a, "SELECT 'open", 105);
  FAILS(w.a, "SELECT 1 +", 102);
  FAILS(w.a, "SELECT (1", 102);
  FAILS(w.a, "/* open", 113);
  FAILS(w.a, "CREATE TABLE t (a nosuchtype)", 243);
  FAILS(w.a, "SELECT nosuch(1)", 195);
}

Test(query, names_of_every_kind_work_in_brackets_and_quotes) {
  World w;
  w.a.run("CREATE SCHEMA [my.schema]");
  w.a.run(
      "CREATE TABLE [my.schema].[odd]]name 'x' \"y\"] ([order] int, [a]]b] int, [naïve ☃] int, [1st] int, [sel ect] "
      "int)");
  w.a.run("INSERT [my.schema].[odd]]name 'x' \"y\"] VALUES (1, 2, 3, 4, 5)");
  ROWS(w.a, "SELECT [ORDER], [A]]B], [NAÏVE ☃], \"1st\", \"sel ect\" FROM db.[MY.SCHEMA].\"odd]name 'x' \"\"y\"\"\"",
       "1|2|3|4|5");
  ROWS(w.a,
       "SELECT OBJECT_ID(N'[my.schema].[odd]]name ''x'' \"y\"]') - OBJECT_ID(N'[my.schema].[odd]]name ''x'' \"y\"]', "
       "'U')",
       "0");
  ROWS(w.a,
       "SELECT name FROM sys.columns WHERE object_id = OBJECT_ID(N'[my.schema].[odd]]name ''x'' \"y\"]') AND column_id "
       "= 2",
       "a]b");
}

Test(query, rows_are_given_as_the_writer_takes_them) {
  World w;
  w.a.run("CREATE TABLE t (a int NOT NULL)");
  for (int i = 0; i < 10; ++i) w.a.run("INSERT t VALUES (1), (2), (3)");
  w.a.recorder.rows_until_full = 7;
  const std::string all = rows_of(w.a.run("SELECT a FROM t"));
  cr_expect_eq(all.size(), 59U, "30 rows of one digit and a blank between: %s", all.c_str());
  cr_expect(rows_of(w.a.run("SELECT a FROM t ORDER BY a")).starts_with("1 1 1"));
}

Test(query, fmtonly_gives_metadata_alone) {
  World w;
  make_shop(w.a);
  ANSWERS(w.a, "SET FMTONLY ON SELECT * FROM item SET FMTONLY OFF", "(0 rows)\n");
  cr_expect_eq(w.a.recorder.last_columns.size(), 4U);
  ANSWERS(w.a, "SET FMTONLY ON; EXEC(N'SELECT id FROM item'); SET FMTONLY OFF", "(0 rows)\n");
  ROWS(w.a, "SELECT COUNT(*) FROM item", "4");
}

Test(query, nesting_has_an_end) {
  World w;
  std::string deep = "SELECT ";
  for (int i = 0; i < 5000; ++i) deep += "(";
  FAILS(w.a, deep, 191);
  std::string chain = "SELECT 1";
  for (int i = 0; i < 20000; ++i) chain += "+1";
  FAILS(w.a, chain, 8631);
  w.a.run("CREATE PROCEDURE p AS EXEC p");
  FAILS(w.a, "EXEC p", 217);
}

Test(query, order_by_follows_every_type) {
  World w;
  w.a.run(
      "CREATE TABLE t (id int, i bigint, d decimal(38,5), f float, s nvarchar(20), b nvarchar(20) COLLATE "
      "Latin1_General_BIN2, dt datetime2, g uniqueidentifier, "
      "x varbinary(9), v sql_variant)");
  w.a.run(
      "INSERT t VALUES (1, -5, -0.5, -1e10, N'b', N'b', '2024-01-01', 'FF000000-0000-0000-0000-000000000001', 0x0100, "
      "5), "
      "(2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL), "
      "(3, 7, 12.5, 2.5, N'Ba', N'B', '1999-12-31 23:59:59', '00000000-0000-0000-0000-000000000002', 0x00FF, 1.5), "
      "(4, 9223372036854775807, 1e20, -0.1, N'É', N'a', '2024-01-01 00:00:01', '00000000-0000-0000-0100-000000000000', "
      "0x01, N'text'), "
      "(5, 0, 0, 0, N'a  ', N'😀', '0001-01-01', '00000000-0000-0000-0000-000000000000', 0x, CAST('2024-01-01' AS "
      "date))");
  ROWS(w.a, "SELECT id FROM t ORDER BY i", "2 1 5 3 4");
  ROWS(w.a, "SELECT id FROM t ORDER BY i DESC", "4 3 5 1 2");
  ROWS(w.a, "SELECT id FROM t ORDER BY d", "2 1 5 3 4");
  ROWS(w.a, "SELECT id FROM t ORDER BY f", "2 1 4 5 3");
  ROWS(w.a, "SELECT id FROM t ORDER BY s", "2 5 1 3 4");
  ROWS(w.a, "SELECT id FROM t ORDER BY b", "2 3 4 1 5");
  ROWS(w.a, "SELECT id FROM t ORDER BY dt DESC", "4 1 3 5 2");
  ROWS(w.a, "SELECT id FROM t ORDER BY g", "2 5 4 1 3");
  ROWS(w.a, "SELECT id FROM t ORDER BY x, id DESC", "2 5 3 4 1");
  ROWS(w.a, "SELECT TOP 2 id FROM t ORDER BY s DESC, id", "4 3");
  ROWS(w.a, "SELECT id FROM t UNION ALL SELECT 6 ORDER BY id DESC", "6 5 4 3 2 1");
}

Test(query, the_first_of_many_rows_in_order) {
  World w;
  w.a.run(
      "CREATE TABLE t (a int, b char(20) DEFAULT 'x'); INSERT t (a) SELECT v.n FROM (VALUES (7), (3), (9), (1), (5)) "
      "v(n)");
  for (int i = 0; i < 10; ++i) w.a.run("INSERT t (a) SELECT a + " + std::to_string(10 << i) + " FROM t");
  ROWS(w.a, "SELECT COUNT(*) FROM t", "5120");
  ROWS(w.a, "SELECT TOP 3 a FROM t ORDER BY a DESC", "10239 10237 10235");
  ROWS(w.a, "SELECT TOP 3 a FROM t ORDER BY a", "1 3 5");
  ROWS(w.a, "SELECT MAX(x.n) FROM (SELECT TOP 100 a AS n FROM t ORDER BY a) x", "199");
}

Test(query, an_endless_loop_gives_way_and_can_be_cancelled) {
  World w;
  w.a.session->start_batch("DECLARE @i int = 0 WHILE 1 = 1 SET @i = @i + 1");
  for (int i = 0; i < 3; ++i) cr_assert(w.a.session->step(w.a.recorder).step == Step::full);
  w.a.session->cancel(w.a.recorder);
  ROWS(w.a, "SELECT 1", "1");
}
