// Isolation levels: what a reader sees of what others do.
#include <fmt/format.h>

#include "common.hpp"
#include "sandbox/engine/catalog.hpp"
#include "sandbox/engine/state.hpp"

namespace rowferry::sandbox::engine::testing {

namespace {

struct Shop : World {
  explicit Shop(const std::string& option = {}) {
    if (!option.empty()) a.run("ALTER DATABASE db SET " + option + " ON");
    a.run("CREATE TABLE t (id int NOT NULL PRIMARY KEY, v int NOT NULL); INSERT t VALUES (1, 10), (2, 20), (3, 30)");
  }
  std::string all(Client& client) { return rows_of(client.run("SELECT id, v FROM t ORDER BY id")); }
};

constexpr const char* before = "1|10 2|20 3|30";

// An insert, an update and a delete.
constexpr const char* changes = "INSERT t VALUES (4, 40); UPDATE t SET v = 21 WHERE id = 2; DELETE t WHERE id = 3";
constexpr const char* after = "1|10 2|21 4|40";

}  // namespace

Test(isolation, options_of_the_database_are_listed) {
  World w;
  const std::string listed =
      "SELECT snapshot_isolation_state, snapshot_isolation_state_desc, is_read_committed_snapshot_on FROM "
      "sys.databases WHERE name = N'db'";
  ROWS(w.a, listed, "0|OFF|0");
  w.a.run("ALTER DATABASE db SET ALLOW_SNAPSHOT_ISOLATION ON; ALTER DATABASE db SET READ_COMMITTED_SNAPSHOT ON");
  ROWS(w.a, listed, "1|ON|1");
  w.a.run("ALTER DATABASE CURRENT SET READ_COMMITTED_SNAPSHOT OFF WITH ROLLBACK IMMEDIATE");
  w.a.run("ALTER DATABASE db SET ALLOW_SNAPSHOT_ISOLATION OFF");
  ROWS(w.a, listed, "0|OFF|0");
}

Test(isolation, snapshot_is_refused_where_it_is_not_allowed) {
  Shop w;
  w.b.run("SET TRANSACTION ISOLATION LEVEL SNAPSHOT");
  FAILS(w.b, "SELECT COUNT(*) FROM t", 3952);
  FAILS(w.b, "DELETE t", 3952);
  w.b.run("SET TRANSACTION ISOLATION LEVEL READ COMMITTED");
  ROWS(w.b, "SELECT COUNT(*) FROM t", "3");
}

Test(isolation, read_committed_waits_and_read_uncommitted_does_not) {
  Shop w;
  w.a.run(std::string("BEGIN TRAN; ") + changes);
  cr_expect(w.b.run("SELECT id, v FROM t").find("blocked by") != std::string::npos);
  w.b.session->cancel(w.b.recorder);
  w.b.recorder.text.clear();
  w.b.run("SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED");
  SAYS(w.all(w.b), after);
  w.b.run("SET TRANSACTION ISOLATION LEVEL READ COMMITTED");
  w.a.run("ROLLBACK");
  SAYS(w.all(w.b), before);
}

Test(isolation, a_snapshot_stays_as_it_was_until_its_transaction_ends) {
  Shop w("ALLOW_SNAPSHOT_ISOLATION");
  w.b.run("SET TRANSACTION ISOLATION LEVEL SNAPSHOT; BEGIN TRAN");
  SAYS(w.all(w.b), before);
  w.a.run(std::string("BEGIN TRAN; ") + changes);
  SAYS(w.all(w.b), before);
  w.a.run("COMMIT");
  SAYS(w.all(w.b), before);
  ROWS(w.b, "SELECT COUNT(*) FROM t", "3");
  ROWS(w.b, "SELECT v FROM t WHERE id = 3", "30");
  SAYS(w.all(w.a), after);
  w.b.run("COMMIT");
  SAYS(w.all(w.b), after);
  ROWS(w.b, "SELECT COUNT(*) FROM t", "3");
}

Test(isolation, a_snapshot_sees_its_own_changes) {
  Shop w("ALLOW_SNAPSHOT_ISOLATION");
  w.b.run("SET TRANSACTION ISOLATION LEVEL SNAPSHOT; BEGIN TRAN");
  SAYS(w.all(w.b), before);
  w.a.run("INSERT t VALUES (4, 40)");
  w.b.run("INSERT t VALUES (5, 50); DELETE t WHERE id = 1; UPDATE t SET v = 22 WHERE id = 2");
  SAYS(w.all(w.b), "2|22 3|30 5|50");
  w.b.run("COMMIT");
  SAYS(w.all(w.b), "2|22 3|30 4|40 5|50");
}

Test(isolation, a_snapshot_that_changes_what_others_have_changed_is_aborted) {
  Shop w("ALLOW_SNAPSHOT_ISOLATION");
  w.b.run("SET TRANSACTION ISOLATION LEVEL SNAPSHOT; BEGIN TRAN");
  SAYS(w.all(w.b), before);
  w.a.run("UPDATE t SET v = 21 WHERE id = 2");
  FAILS(w.b, "UPDATE t SET v = 22 WHERE id = 2", 3960);
  ROWS(w.b, "SELECT @@TRANCOUNT", "0");
  SAYS(w.all(w.b), "1|10 2|21 3|30");
}

Test(isolation, bulk_rows_are_in_the_snapshots_behind_their_commit_only) {
  Shop w("ALLOW_SNAPSHOT_ISOLATION");
  w.a.run("CREATE TABLE h (a int NULL)");
  w.b.run("SET TRANSACTION ISOLATION LEVEL SNAPSHOT; BEGIN TRAN");
  ROWS(w.b, "SELECT COUNT(*) FROM h", "0");
  w.a.bulk("INSERT BULK h (a int)", {int_value(1), int_value(2)});
  ROWS(w.b, "SELECT COUNT(*) FROM h", "0");
  ROWS(w.b, "SELECT a FROM h", "");
  ROWS(w.a, "SELECT COUNT(*) FROM h", "2");
  w.b.run("COMMIT");
  ROWS(w.b, "SELECT a FROM h", "1 2");
}

Test(isolation, read_committed_snapshot_is_of_each_statement) {
  Shop w("READ_COMMITTED_SNAPSHOT");
  w.a.run(std::string("BEGIN TRAN; ") + changes);
  SAYS(w.all(w.b), before);
  w.b.run("BEGIN TRAN");
  SAYS(w.all(w.b), before);
  cr_expect(w.b.run("SELECT id FROM t WITH (READCOMMITTEDLOCK)").find("blocked by") != std::string::npos);
  w.a.run("COMMIT");
  w.b.resume();
  SAYS(w.all(w.b), after);
}

Test(isolation, a_statement_sees_one_version_while_rows_change_under_it) {
  Shop w("READ_COMMITTED_SNAPSHOT");
  w.b.recorder.rows_until_full = 1;
  w.b.session->start_batch("SELECT id, v FROM t");
  cr_assert(w.b.session->step(w.b.recorder).step == Step::full);
  w.a.run(changes);
  w.a.run("UPDATE t SET v = v + 1");
  SAYS(rows_of(w.b.resume()), before);
  w.b.recorder.rows_until_full = 0;
  SAYS(w.all(w.b), "1|11 2|22 4|41");
}

Test(isolation, versions_are_dropped_with_the_last_snapshot) {
  Shop w("ALLOW_SNAPSHOT_ISOLATION");
  w.b.run("SET TRANSACTION ISOLATION LEVEL SNAPSHOT; BEGIN TRAN");
  SAYS(w.all(w.b), before);
  for (int i = 0; i < 10; ++i) w.a.run("UPDATE t SET v = v + 1");
  SAYS(w.all(w.b), before);
  Client c(w.server, "db");
  c.run("SET TRANSACTION ISOLATION LEVEL SNAPSHOT; BEGIN TRAN");
  SAYS(w.all(c), "1|20 2|30 3|40");
  for (int i = 0; i < 10; ++i) w.a.run("UPDATE t SET v = v + 1");
  SAYS(w.all(w.b), before);
  SAYS(w.all(c), "1|20 2|30 3|40");
  w.b.run("COMMIT");
  SAYS(w.all(c), "1|20 2|30 3|40");
  c.run("COMMIT");
  const auto table = w.server.state().database("db")->find(1, "t");
  cr_expect_not(table->data->keeps_versions());
  SAYS(w.all(c), "1|30 2|40 3|50");
}

Test(isolation, a_session_that_is_closed_gives_its_snapshot_back) {
  Shop w("ALLOW_SNAPSHOT_ISOLATION");
  {
    Client c(w.server, "db");
    c.run("SET TRANSACTION ISOLATION LEVEL SNAPSHOT; BEGIN TRAN; SELECT id FROM t");
    cr_expect_eq(w.server.state().snapshots.size(), 1U);
  }
  cr_expect(w.server.state().snapshots.empty());
}

}  // namespace rowferry::sandbox::engine::testing
