// Long statements are worked on in portions, so that other connections are answered meanwhile.
#include <fmt/format.h>

#include "common.hpp"

namespace rowferry::sandbox::engine::testing {

namespace {

constexpr int rows = 250'000;

// Table t: a from 0 to rows - 1, g = a % 7, s = a text of it; loaded in bulk.
void make_large(Client& client) {
  client.run("CREATE TABLE t (a int NOT NULL, g int NULL, s nvarchar(20) NULL)");
  const std::string statement = "INSERT BULK t (a int, g int, s nvarchar(20))";
  client.run(statement);
  cr_assert(client.session->bulk() != nullptr);
  client.session->bulk()->bind(client.session->bulk()->declared());
  std::vector<std::string> block;
  for (int a = 0; a < rows; ++a) {
    block.push_back(int_value(a) + (a % 10 == 9 ? null8() : int_value(a % 7)) +
                    nvarchar_value(a % 2 == 0 ? u"even" : u"odd"));
    if (block.size() < 5000 && a + 1 < rows) continue;
    client.append(block);
    block.clear();
  }
  client.finish_bulk();
}

// The first step leaves the statement off, another session is answered, and the statement ends as it should.
void answers_meanwhile(World& w, const std::string& statement, const std::string& wanted) {
  w.a.session->start_batch(statement);
  Progress progress = w.a.session->step(w.a.recorder);
  cr_expect(progress.step == Step::full, "%s was done in one step", statement.c_str());
  ROWS(w.b, "SELECT 1", "1");
  while (progress.step == Step::full) progress = w.a.session->step(w.a.recorder);
  cr_expect(progress.step == Step::finished);
  const std::string answer = rows_of(std::exchange(w.a.recorder.text, {}));
  cr_expect(answer == wanted, "%s\n  gave   <%s>\n  wanted <%s>", statement.c_str(), answer.substr(0, 200).c_str(),
            wanted.c_str());
}

}  // namespace

Test(portion, aggregates_leave_the_loop_to_others) {
  World w;
  make_large(w.a);
  answers_meanwhile(w, "SELECT COUNT(*) FROM t WHERE a % 2 = 0", "125000");
  answers_meanwhile(w, "SELECT MIN(a), MAX(a), SUM(CAST(a AS bigint)) FROM t", "0|249999|31249875000");
  answers_meanwhile(w, "SELECT s, COUNT(*) AS n FROM t GROUP BY s ORDER BY s", "even|125000 odd|125000");
  answers_meanwhile(w, "SELECT DISTINCT s FROM t ORDER BY s", "even odd");
}

Test(portion, sorts_and_windows_leave_the_loop_to_others) {
  World w;
  make_large(w.a);
  answers_meanwhile(w, "SELECT TOP (3) a FROM t ORDER BY a DESC", "249999 249998 249997");
  answers_meanwhile(w,
                    "SELECT MIN(k.v) AS b FROM (SELECT a AS v, NTILE(4) OVER (ORDER BY a) AS tile FROM t) AS k GROUP "
                    "BY k.tile ORDER BY b",
                    "0 62500 125000 187500");
  answers_meanwhile(w, "SELECT COUNT(*) FROM (SELECT a FROM t UNION ALL SELECT a FROM t) AS u", "500000");
  answers_meanwhile(w, "SELECT COUNT(*) FROM t AS x JOIN t AS y ON x.a = y.a WHERE y.g = 1", "32143");
}

Test(portion, scans_with_few_matches_leave_the_loop_to_others) {
  World w;
  make_large(w.a);
  answers_meanwhile(
      w, "SELECT a FROM t WHERE a + g + 0 * LEN(REVERSE(s + N'xyz')) = 250001 AND a + 0 * LEN(REVERSE(s + s)) > 249990",
      "249996");
  answers_meanwhile(w, "SELECT a FROM t WHERE REVERSE(REVERSE(s + N'x')) + REVERSE(s + s) = N'nonex'", "");
}

Test(portion, what_others_write_meanwhile_is_not_seen) {
  World w;
  make_large(w.a);
  w.a.session->start_batch("SELECT COUNT(*), MAX(a) FROM t WHERE a + 0 >= 0");
  cr_assert(w.a.session->step(w.a.recorder).step == Step::full);
  for (int i = 0; i < 50; ++i) w.b.run("INSERT t VALUES (1000000, 1, N'new')");
  SAYS(rows_of(w.a.resume()), "250000|249999");
  ROWS(w.a, "SELECT COUNT(*), MAX(a) FROM t WHERE a + 0 >= 0", "250050|1000000");
}

Test(portion, an_attention_ends_a_statement_between_two_portions) {
  World w;
  make_large(w.a);
  w.a.session->start_batch("SELECT COUNT(*) FROM t WHERE a + 0 >= 0");
  cr_assert(w.a.session->step(w.a.recorder).step == Step::full);
  w.a.session->cancel(w.a.recorder);
  cr_expect_not(w.a.session->running());
  ANSWERS(w.b, "TRUNCATE TABLE t", "");
  ROWS(w.a, "SELECT COUNT(*) FROM t", "0");
}

Test(portion, a_wait_within_an_aggregate_begins_it_anew) {
  World w;
  w.a.run("CREATE TABLE t (a int NOT NULL); INSERT t VALUES (1), (2), (3)");
  w.b.run("BEGIN TRAN; UPDATE t SET a = 30 WHERE a = 3");
  const std::string blocked = "blocked by " + std::to_string(w.b.session->spid()) + "\n";
  ANSWERS(w.a, "SELECT SUM(a) FROM t WHERE a > 0", blocked);
  w.b.run("COMMIT");
  SAYS(rows_of(w.a.resume()), "33");
}

Test(portion, conditions_on_bytes_say_what_the_evaluator_says) {
  World w;
  w.a.run(
      "CREATE TABLE t (i int NULL, b bigint NULL, n decimal(10,2) NULL, m money NULL, d date NULL, z datetime2(3) "
      "NULL, f float NULL, g uniqueidentifier NULL, s nvarchar(10) NULL, k tinyint NULL)");
  w.a.run(
      "INSERT t VALUES (-5, -5000000000, -1.25, -2.5, '2020-01-01', '2020-01-01T00:00:00.001', -1.5, "
      "'00000000-0000-0000-0000-000000000001', N'a', 0), (0, 0, 0, 0, '2020-01-02', '2020-01-02', 0, "
      "'00000000-0000-0000-0000-010000000000', N'A ', 200), (7, 5000000000, 1.25, 2.5, '9999-12-31', '9999-12-31', "
      "1.5, 'FF000000-0000-0000-0000-000000000000', N'b', 255), (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, "
      "NULL)");
  const std::vector<std::string> conditions{"i = 7",
                                            "i <> 7",
                                            "7 > i",
                                            "i >= 0 AND i < 8",
                                            "i BETWEEN -5 AND 0",
                                            "i = NULL",
                                            "i < 6.5",
                                            "i > -5.5",
                                            "i = '7'",
                                            "b < 0",
                                            "b = 5000000000",
                                            "n = 1.25",
                                            "n > 1",
                                            "n = 1.255",
                                            "m = 2.5",
                                            "m <= -2.5",
                                            "d = '2020-01-02'",
                                            "d > '20200101'",
                                            "z < '2020-01-02'",
                                            "f >= 1.5",
                                            "f < 0",
                                            "f = 0",
                                            "k = 200",
                                            "k > 100",
                                            "s = N'a'",
                                            "s <> N'a'",
                                            "DATALENGTH(s) = 4",
                                            "s IS NULL",
                                            "s IN (N'b', N'c')",
                                            "i IN (7, 0)",
                                            "g > '00000000-0000-0000-0000-000000000001'",
                                            "g = 'FF000000-0000-0000-0000-000000000000'",
                                            "NOT i = 7",
                                            "i = 7 OR i IS NULL",
                                            "CAST(s AS varbinary(40)) = 0x6100 AND s = N'a'"};
  for (const std::string& condition : conditions) {
    // A CASE is left to the evaluator.
    const std::string by_filter = rows_of(w.a.run("SELECT i, k FROM t WHERE " + condition));
    const std::string by_evaluator =
        rows_of(w.a.run("SELECT i, k FROM t WHERE CASE WHEN " + condition +
                        " THEN i + k * 0 + 1 - i + ISNULL(k, 0) * 0 "
                        "ELSE 0 END = 1 OR (CASE WHEN " +
                        condition + " THEN 1 ELSE 0 END = 1 AND (i IS NULL OR k IS NULL))"));
    cr_expect(by_filter == by_evaluator, "%s\n  filter    <%s>\n  evaluator <%s>", condition.c_str(), by_filter.c_str(),
              by_evaluator.c_str());
  }
}

Test(portion, rows_are_copied_in_whatever_order_and_form_is_asked_for) {
  World w;
  w.a.run("CREATE TABLE t (a int NOT NULL, s nvarchar(5) NULL, b bigint NULL, d date NOT NULL)");
  w.a.run("INSERT t VALUES (1, N'x', NULL, '2020-01-01'), (2, NULL, 5, '2021-01-01')");
  ROWS(w.a, "SELECT * FROM t", "1|x|NULL|2020-01-01 2|NULL|5|2021-01-01");
  ROWS(w.a, "SELECT s, b FROM t", "x|NULL NULL|5");
  ROWS(w.a, "SELECT d, a FROM t", "2020-01-01|1 2021-01-01|2");
  ROWS(w.a, "SELECT a, a + 1 AS c, d, s FROM t", "1|2|2020-01-01|x 2|3|2021-01-01|NULL");
  ROWS(w.a, "SELECT TOP (1) b, b FROM t WHERE b = 5", "5|5");
}

}  // namespace rowferry::sandbox::engine::testing
