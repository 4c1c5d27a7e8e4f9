// Loads that commit each slice into its partition.
#include <fmt/format.h>

#include <algorithm>

#include "ferry.hpp"

using namespace rowferry;
using namespace rowferry::postgres::test;
using system::Finalizer;
using system::Mode;

namespace {

constexpr std::string_view schema = "live_slice_load";

// Three stores of 1000 rows in a plain table.
void make_source(Live& live) {
  live.sql(
      "CREATE TABLE live_slice_load.a (id int, store int, note text); INSERT INTO live_slice_load.a SELECT i, i % 3, "
      "repeat('x', i % 50) FROM generate_series(1, 3000) i");
}

// Partitioned by store; those of 0, of 1 and of 9, which the source has no more.
void make_target(Live& live) {
  live.sql("CREATE TABLE live_slice_load.b (id int, store int, note text) PARTITION BY LIST (store)");
  for (const int store : {0, 1, 9}) {
    live.sql(
        fmt::format("CREATE TABLE live_slice_load.b_{0} PARTITION OF live_slice_load.b FOR VALUES IN ({0}); INSERT "
                    "INTO live_slice_load.b SELECT i, {0}, 'old' FROM generate_series(1, 5) i",
                    store));
  }
}

class SliceFerry : public Ferry {
 public:
  explicit SliceFerry(Live& live, const std::string& id = "01TESTSLICES") : Ferry(live, "a", "b", id) {
    request.mode = Mode::truncate;
    request.load.commit = system::Commit::slice;
    request.load.freeze = true;
    request.slices_by = system::SliceBy::value;
    request.slice_column = "store";
    request.workers = 2;
  }
  system::SliceCommit load_store(system::Loader& loader, int store) {
    return load(loader, slice_of_value(store, "store", std::to_string(store)), fmt::format("store = {}", store));
  }
};

std::string stores(Live& live) {
  const auto got = live.column(
      "SELECT concat_ws(' ', store, count(*), count(*) FILTER (WHERE note = 'old')) FROM live_slice_load.b GROUP BY "
      "store "
      "ORDER BY store");
  std::string out;
  for (const std::string& one : got) out += (out.empty() ? "" : ", ") + one;
  return out;
}

std::string ledger_steps(Live& live) {
  const auto got = live.column(
      "SELECT attempt || ' ' || step || ' ' || coalesce(row_count::text, '') FROM "
      "live_slice_load.rowferry_ledger ORDER BY step");
  std::string out;
  for (const std::string& one : got) out += (out.empty() ? "" : ", ") + one;
  return out;
}

}  // namespace

Test(live_slice_load, each_slice_is_committed_into_its_partition_and_vanished_ones_are_emptied) {
  Live live(std::string{schema});
  make_source(live);
  make_target(live);
  SliceFerry ferry(live);
  ferry.request.load.unlogged = true;
  ferry.begin();
  cr_assert(ferry.to_load.plan.finalizer == Finalizer::per_slice);
  const auto one = live.run(ferry.loading->open_loader(0));
  const auto two = live.run(ferry.loading->open_loader(1));
  const system::SliceCommit first = ferry.load_store(*one, 0);
  cr_expect_eq(first.acknowledged, 1000);
  cr_expect(first.table.find("b_0") != std::string::npos, "%s", first.table.c_str());
  EXPECT_TEXT(stores(live), "0 1000 0, 1 5 5, 9 5 5");  // committed by itself
  ferry.load_store(*two, 2);
  ferry.load_store(*one, 1);
  live.run(one->close());
  live.run(two->close());
  cr_expect_eq(live.run(ferry.loading->staged_rows()), 3000);
  std::string why;
  const auto hash = live.run(ferry.loading->staged_hash(why));
  cr_assert(hash.has_value());
  EXPECT_TEXT(hash->hex(), ferry.loaded.hex());
  const system::FinalizeResult result = ferry.finalize();
  cr_expect_eq(result.rows, 3000);
  live.run(ferry.loading->after_steps());
  ferry.end();
  EXPECT_TEXT(stores(live), "0 1000 0, 1 1000 0, 2 1000 0");
  EXPECT_TEXT(ledger_steps(live), "0 finalize 3000, 0 slice =0 1000, 0 slice =1 1000, 0 slice =2 1000");
  live.sql("CREATE EXTENSION IF NOT EXISTS pg_visibility SCHEMA live_slice_load");
  EXPECT_TEXT(
      live.column(
          "SELECT bool_and((live_slice_load.pg_visibility_map_summary(oid)).all_frozen > 0) FROM pg_class WHERE "
          "relname IN ('b_0', 'b_1')")[0],
      "t");
  // Unlogged as asked for, those that were there before too.
  EXPECT_TEXT(live.column("SELECT string_agg(relpersistence::text, '' ORDER BY relname) FROM pg_class WHERE relname IN "
                          "('b_0', 'b_1', 'b_2')")[0],
              "uuu");
}

Test(live_slice_load, a_slice_that_fails_leaves_its_partition_as_it_was) {
  Live live(std::string{schema});
  make_source(live);
  make_target(live);
  SliceFerry ferry(live);
  ferry.begin();
  const auto loader = live.run(ferry.loading->open_loader(0));
  const system::Slice slice = slice_of_value(0, "store", "0");
  cr_assert_not(live.run(loader->begin_slice(slice)));
  ferry.write(*loader, "store = 0 AND id < 500");
  live.run(loader->abort_slice());
  EXPECT_TEXT(stores(live), "0 5 5, 1 5 5, 9 5 5");
  // Rows that belong elsewhere are refused by the server.
  cr_assert_not(live.run(loader->begin_slice(slice)));
  std::string state = "no error";
  try {
    const rows::ContentHash hash = ferry.write(*loader, "store = 1");
    live.run(loader->commit_slice(hash.rows, hash));
  } catch (const Error& error) {
    state = error.fault() ? error.fault()->number : error.code();
  }
  EXPECT_TEXT(state, "23514");
  live.run(loader->abort_slice());
  cr_expect_eq(ferry.load_store(*loader, 0).acknowledged, 1000);
  live.run(loader->close());
  ferry.end();
  EXPECT_TEXT(stores(live), "0 1000 0, 1 5 5, 9 5 5");
}

Test(live_slice_load, a_later_attempt_meets_the_keys_of_an_earlier_one_by_their_values) {
  Live live(std::string{schema});
  make_source(live);
  make_target(live);
  {
    SliceFerry ferry(live);
    ferry.begin();
    const auto loader = live.run(ferry.loading->open_loader(0));
    ferry.load_store(*loader, 1);
    live.run(loader->close());
    ferry.end(true);
  }
  SliceFerry ferry(live);
  ferry.plan();
  const system::Remains remains = live.run(ferry.target->remains(ferry.request, "01TESTSLICES"));
  cr_assert_eq(remains.slices.size(), 1);
  EXPECT_TEXT(remains.slices[0].step, "slice =1");
  cr_expect_eq(remains.slices[0].row_count, 1000);
  ferry.begin(2);
  const auto loader = live.run(ferry.loading->open_loader(0));
  // Another number than before, the same store.
  cr_expect(live.run(loader->begin_slice(slice_of_value(7, "store", "1"))));
  cr_expect_not(ferry.load_store(*loader, 0).already_there);
  live.run(loader->close());
  cr_expect_eq(live.run(ferry.loading->staged_rows()), 2000);
  ferry.end();
}

Test(live_slice_load, a_partition_that_a_crash_has_emptied_is_loaded_again) {
  Live live(std::string{schema});
  make_source(live);
  make_target(live);
  live.sql("ALTER TABLE live_slice_load.b_0 SET UNLOGGED");
  SliceFerry ferry(live);
  ferry.begin();
  const auto loader = live.run(ferry.loading->open_loader(0));
  ferry.load_store(*loader, 0);
  ferry.load_store(*loader, 1);
  live.run(loader->close());
  ferry.end(true);
  live.sql("TRUNCATE live_slice_load.b_0");  // as recovery does
  const system::Remains remains = live.run(ferry.target->remains(ferry.request, "01TESTSLICES"));
  cr_assert_eq(remains.slices.size(), 1);
  EXPECT_TEXT(remains.slices[0].step, "slice =1");
  ferry.begin(2);
  const auto again = live.run(ferry.loading->open_loader(0));
  cr_expect_eq(ferry.load_store(*again, 0).acknowledged, 1000);
  live.run(again->close());
  ferry.end();
}

Test(live_slice_load, a_slice_without_rows_empties_its_partition_and_makes_none) {
  Live live(std::string{schema});
  make_source(live);
  make_target(live);
  live.sql("DELETE FROM live_slice_load.a WHERE store = 0");
  SliceFerry ferry(live);
  ferry.begin();
  const auto loader = live.run(ferry.loading->open_loader(0));
  cr_expect_eq(ferry.load_store(*loader, 0).acknowledged, 0);
  const system::SliceCommit none = ferry.load_store(*loader, 5);
  EXPECT_TEXT(none.table, "");
  live.run(loader->close());
  cr_expect_eq(live.run(ferry.loading->staged_rows()), 0);
  ferry.end();
  EXPECT_TEXT(stores(live), "1 5 5, 9 5 5");
  EXPECT_TEXT(live.column("SELECT count(*) FROM pg_inherits WHERE inhparent = 'live_slice_load.b'::regclass")[0], "3");
}

Test(live_slice_load, a_missing_table_is_made_partitioned_before_the_first_slice) {
  Live live(std::string{schema});
  make_source(live);
  SliceFerry ferry(live);
  ferry.request.create = true;
  ferry.request.partition_by = "list";
  ferry.request.partition_column = "store";
  ferry.request.mode = Mode::fail_if_exists;
  ferry.begin();
  const auto loader = live.run(ferry.loading->open_loader(0));
  ferry.load_store(*loader, 0);
  live.run(loader->close());
  ferry.end(true);
  // The next attempt finds its own table.
  ferry.begin(2);
  const auto again = live.run(ferry.loading->open_loader(0));
  cr_expect(live.run(again->begin_slice(slice_of_value(0, "store", "0"))));
  ferry.load_store(*again, 2);
  live.run(again->close());
  ferry.finalize();
  ferry.end();
  EXPECT_TEXT(stores(live), "0 1000 0, 2 1000 0");
}

Test(live_slice_load, exchange_swaps_a_partition_in_and_waits_for_a_busy_table) {
  Live live(std::string{schema});
  make_source(live);
  make_target(live);
  SliceFerry ferry(live);
  ferry.request.load.exchange = true;
  ferry.request.load.lock_timeout_ms = 100;
  ferry.begin();
  cr_assert(ferry.to_load.plan.finalizer == Finalizer::per_slice);
  const auto loader = live.run(ferry.loading->open_loader(0));
  // A reader holds the table for a while; the loaded rows are not lost to it.
  const auto reader = live.session();
  live.run(reader->query("BEGIN; SELECT count(*) FROM live_slice_load.b"));
  async::Scope scope(async::Context{&live.loop.queue(), nullptr});
  struct Later {
    static async::Task<void> commit(net::Loop* loop, postgres::Session* session) {
      co_await net::sleep_for(*loop, std::chrono::milliseconds{600});
      co_await session->query("COMMIT");
    }
    static async::Task<void> join(async::Scope* scope) { co_await scope->join(); }
  };
  scope.spawn(Later::commit(&live.loop, reader.get()));
  const system::SliceCommit commit = ferry.load_store(*loader, 0);
  live.run(Later::join(&scope));
  cr_expect_eq(commit.acknowledged, 1000);
  ferry.load_store(*loader, 2);
  live.run(loader->close());
  cr_expect_eq(live.run(ferry.loading->staged_rows()), 2000);
  ferry.finalize();
  live.run(ferry.loading->after_steps());
  ferry.end();
  EXPECT_TEXT(stores(live), "0 1000 0, 2 1000 0");
  EXPECT_TEXT(live.column("SELECT count(*) FROM pg_class WHERE relname LIKE 'rowferry_01T%'")[0], "0");
}
