// Transactions, locks and waits between sessions.
#include "common.hpp"

using namespace rowferry::sandbox::engine;
using namespace rowferry::sandbox::engine::testing;
using std::chrono::milliseconds;

namespace {

// The table by which transfers know what is committed.
void make_ledger(World& w) {
  w.a.run("CREATE TABLE ledger (id varchar(20) NOT NULL, step varchar(20) NOT NULL, n bigint, PRIMARY KEY (id, step))");
}

}  // namespace

Test(transaction, commit_keeps_and_rollback_forgets) {
  World w;
  w.a.run("CREATE TABLE t (a int)");
  ANSWERS(w.a, "BEGIN TRAN; INSERT t VALUES (1); COMMIT", "begin\n(1 rows)\ncommit\n");
  cr_expect_eq(w.a.session->transaction(), 0U);
  ANSWERS(w.a, "BEGIN TRAN; BEGIN TRAN; INSERT t VALUES (2); COMMIT; SELECT @@TRANCOUNT, XACT_STATE()",
          "begin\n(1 rows)\n1|1\n(1 rows)\n");
  cr_expect_neq(w.a.session->transaction(), 0U);
  ANSWERS(w.a, "UPDATE t SET a = 9; DELETE t; ROLLBACK; SELECT a FROM t",
          "(2 rows)\n(2 rows)\nrollback\n1\n(1 rows)\n");
  FAILS(w.a, "COMMIT", 3902);
  FAILS(w.a, "ROLLBACK", 3903);
}

Test(transaction, savepoints_undo_a_part) {
  World w;
  w.a.run("CREATE TABLE t (a int)");
  ROWS(w.a,
       "BEGIN TRAN INSERT t VALUES (1) SAVE TRAN s INSERT t VALUES (2) ROLLBACK TRAN s INSERT t VALUES (3) COMMIT "
       "SELECT a FROM t",
       "begin commit 1 3");
  FAILS(w.a, "BEGIN TRAN ROLLBACK TRAN nosuch", 6401);
}

Test(transaction, xact_abort_rolls_everything_back_at_an_error) {
  World w;
  w.a.run("CREATE TABLE t (a int PRIMARY KEY); SET XACT_ABORT ON");
  const std::string answer = w.a.run("BEGIN TRAN INSERT t VALUES (1) INSERT t VALUES (1) SELECT 'not reached'");
  cr_expect(answer.find("rollback") != std::string::npos && answer.find("not reached") == std::string::npos, "%s",
            answer.c_str());
  ROWS(w.a, "SELECT COUNT(*), @@TRANCOUNT FROM t", "0|0");
  ROWS(w.a, "BEGIN TRAN BEGIN TRY SELECT 1 / 0 END TRY BEGIN CATCH SELECT XACT_STATE() ROLLBACK END CATCH",
       "begin -1 rollback");
}

Test(transaction, a_dying_session_rolls_back) {
  World w;
  w.a.run("CREATE TABLE t (a int)");
  {
    Client c(w.server, "db");
    c.run("BEGIN TRAN INSERT t VALUES (1)");
    ANSWERS(w.a, "SELECT a FROM t", "blocked by " + std::to_string(c.session->spid()) + "\n");
  }
  SAYS(w.a.resume(), "(0 rows)\n");
}

Test(transaction, readers_wait_for_changed_rows_unless_told_otherwise) {
  World w;
  w.a.run("CREATE TABLE t (a int PRIMARY KEY); INSERT t VALUES (1)");
  w.a.run("BEGIN TRAN INSERT t VALUES (2) DELETE t WHERE a = 1");
  const std::string blocked = "blocked by " + std::to_string(w.a.session->spid()) + "\n";
  ANSWERS(w.b, "SELECT COUNT(*) FROM t", blocked);
  Recorder ignored;
  w.b.session->cancel(ignored);
  ROWS(w.b, "SELECT a FROM t WITH (NOLOCK)", "2");
  ROWS(w.b, "SELECT a FROM t WITH (READPAST)", "");
  ROWS(w.b, "SELECT COUNT_BIG(*) FROM t WITH (NOLOCK)", "1");
  ROWS(
      w.b,
      "SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED SELECT a FROM t SET TRANSACTION ISOLATION LEVEL READ COMMITTED",
      "2");
  ROWS(w.a, "SELECT a FROM t", "2");
  ANSWERS(w.b, "SELECT a FROM t", blocked);
  w.a.run("ROLLBACK");
  SAYS(rows_of(w.b.resume()), "1");
}

Test(transaction, whoever_waits_is_woken) {
  World w;
  std::vector<int> woken;
  w.server.on_wake([&](int spid) { woken.push_back(spid); });
  w.a.run("CREATE TABLE t (a int PRIMARY KEY)");
  w.a.run("BEGIN TRAN INSERT t VALUES (1)");
  w.b.run("SELECT * FROM t");
  cr_expect(woken.empty());
  w.a.run("COMMIT");
  cr_expect_eq(woken.size(), 1U);
  cr_expect_eq(woken.at(0), w.b.session->spid());
}

Test(transaction, an_uncommitted_key_makes_the_second_insert_wait) {
  World w;
  make_ledger(w);
  const std::string insert = "INSERT ledger VALUES ('x', 'finalize', 1)";
  w.a.run("BEGIN TRAN " + insert);
  ANSWERS(w.b, "SELECT id FROM ledger WITH (READPAST)", "(0 rows)\n");
  ANSWERS(w.b, insert, "blocked by " + std::to_string(w.a.session->spid()) + "\n");
  w.a.run("ROLLBACK");
  SAYS(w.b.resume(), "(1 rows)\n");
  w.a.run("BEGIN TRAN INSERT ledger VALUES ('y', 'finalize', 1)");
  w.b.run("INSERT ledger VALUES ('y', 'finalize', 2)");
  w.a.run("COMMIT");
  const std::string answer = w.b.resume();
  cr_expect(answer.find("error 2627, 14, 1") == 0, "the first is committed: %s", answer.c_str());
  ROWS(w.b, "INSERT ledger VALUES ('z', 'finalize', 3); SELECT COUNT(*) FROM ledger", "3");
}

Test(transaction, lock_timeout_ends_the_wait_with_1222) {
  World w;
  make_ledger(w);
  w.a.run("BEGIN TRAN INSERT ledger VALUES ('x', 's', 1)");
  ANSWERS(w.b, "SET LOCK_TIMEOUT 500 INSERT ledger VALUES ('x', 's', 1)",
          "blocked by " + std::to_string(w.a.session->spid()) + "\n");
  const Progress progress = w.b.session->step(w.b.recorder);
  cr_assert(progress.step == Step::would_block && progress.wait == milliseconds(500));
  move_clock(milliseconds(501));
  SAYS(w.b.resume(),
       "error 1222, 16, 45: Lock request time out period exceeded.\ninfo 3621: The statement has been "
       "terminated.\n(failed)\n");
  ANSWERS(w.b, "SET LOCK_TIMEOUT 0 INSERT ledger VALUES ('x', 's', 1)",
          "error 1222, 16, 45: Lock request time out period exceeded.\ninfo 3621: The statement has been "
          "terminated.\n(failed)\n");
}

Test(transaction, a_circle_of_waits_has_a_victim) {
  World w;
  w.a.run("CREATE TABLE t (a int PRIMARY KEY)");
  w.a.run("BEGIN TRAN INSERT t VALUES (1)");
  w.b.run("BEGIN TRAN INSERT t VALUES (2)");
  w.a.run("INSERT t VALUES (2)");
  const std::string answer = w.b.run("INSERT t VALUES (1)");
  cr_expect(answer.find("error 1205, 13, 51") == 0 && answer.find("rollback") != std::string::npos, "%s",
            answer.c_str());
  SAYS(w.a.resume(), "(1 rows)\n");
}

Test(transaction, definitions_being_changed_are_not_seen) {
  World w;
  w.a.run("BEGIN TRAN CREATE TABLE t (a int)");
  const std::string blocked = "blocked by " + std::to_string(w.a.session->spid()) + "\n";
  ANSWERS(w.b, "CREATE TABLE t (a int)", blocked);
  w.a.run("COMMIT");
  cr_expect(w.b.resume().find("error 2714") == 0);
  w.a.run("BEGIN TRAN EXEC sp_rename 't', 'u'");
  ANSWERS(w.b, "SELECT a FROM t", blocked);
  w.a.run("ROLLBACK");
  SAYS(w.b.resume(), "(0 rows)\n");
}

Test(transaction, ddl_waits_for_readers_who_are_not_done) {
  World w;
  w.a.run("CREATE TABLE t (a int NOT NULL); INSERT t VALUES (1), (2), (3)");
  w.a.recorder.rows_until_full = 1;
  w.a.session->start_batch("SELECT a FROM t");
  cr_assert(w.a.session->step(w.a.recorder).step == Step::full);
  ANSWERS(w.b, "TRUNCATE TABLE t", "blocked by " + std::to_string(w.a.session->spid()) + "\n");
  w.a.recorder.rows_until_full = 0;
  w.a.resume();
  w.b.resume();
  ROWS(w.a, "SELECT COUNT(*) FROM t", "0");
}

Test(transaction, application_locks) {
  World w;
  const std::string take =
      "DECLARE @r int; EXEC @r = sp_getapplock @Resource = N'rowferry:db:t', @LockMode = 'Exclusive', @LockOwner = "
      "'Session', @LockTimeout = 100; SELECT @r";
  ROWS(w.a, take, "status 0 0");
  cr_expect(w.b.run(take).find("blocked by") == 0);
  move_clock(milliseconds(101));
  SAYS(rows_of(w.b.resume()), "status -1 -1");
  w.b.run(take);
  ROWS(w.a, "EXEC sp_releaseapplock @Resource = N'rowferry:db:t', @LockOwner = 'Session'", "status 0");
  SAYS(rows_of(w.b.resume()), "status 1 1");
  w.b.session.reset();
  ROWS(w.a, take, "status 0 0");
  ROWS(w.a, "EXEC sp_getapplock 'x', 'Exclusive'", "status -999");
  ROWS(w.a, "BEGIN TRAN EXEC sp_getapplock 'x', 'Exclusive' COMMIT", "begin status 0 commit");
}

Test(transaction, the_transaction_manager_begins_and_ends) {
  World w;
  w.a.run("CREATE TABLE t (a int)");
  TransactionRequest request;
  w.a.session->start_transaction(request);
  SAYS(w.a.resume(), "begin\n");
  w.a.run("INSERT t VALUES (1)");
  request.kind = TransactionRequest::Kind::rollback;
  request.begin_again = true;
  w.a.session->start_transaction(request);
  SAYS(w.a.resume(), "rollback\nbegin\n");
  request.kind = TransactionRequest::Kind::commit;
  request.begin_again = false;
  w.a.session->start_transaction(request);
  SAYS(w.a.resume(), "commit\n");
  ROWS(w.a, "SELECT COUNT(*) FROM t", "0");
}

Test(transaction, waitfor_gives_a_delay_and_can_be_cancelled) {
  World w;
  w.a.session->start_batch("WAITFOR DELAY '00:00:02' SELECT 1");
  Progress progress = w.a.session->step(w.a.recorder);
  cr_assert(progress.step == Step::delay && progress.wait >= milliseconds(2000));
  w.a.session->cancel(w.a.recorder);
  cr_expect_not(w.a.session->running());
  SAYS(w.a.resume(), "");
  ROWS(w.a, "SELECT 1", "1");
}

Test(transaction, implicit_transactions_begin_by_themselves) {
  World w;
  w.a.run("CREATE TABLE t (a int)");
  ANSWERS(w.a, "SET IMPLICIT_TRANSACTIONS ON INSERT t VALUES (1)", "begin\n(1 rows)\n");
  ANSWERS(w.a, "IF @@TRANCOUNT > 0 ROLLBACK TRAN", "rollback\n");
}

Test(transaction, reset_gives_a_clean_session) {
  World w;
  w.a.run("CREATE TABLE #t (a int); SET XACT_ABORT ON; USE master; BEGIN TRAN");
  w.a.session->reset(false, w.a.recorder);
  SAYS(w.a.recorder.text, "rollback\n");
  w.a.recorder.text.clear();
  ROWS(w.a, "SELECT DB_NAME(), @@OPTIONS & 16384, OBJECT_ID('tempdb..#t')", "db|0|NULL");
}
