#include <fmt/format.h>

#include "ferry.hpp"
#include "postgres/ledger.hpp"
#include "tests/support/error_of.hpp"

using namespace rowferry;
using namespace rowferry::postgres::test;
using rowferry::test::error_of;
using system::Finalizer;
using system::Mode;

namespace {

constexpr std::string_view schema = "live_load";

std::string table(std::string_view name) { return fmt::format("{}.{}", schema, name); }

// Both tables have the same rows, by the server's own comparison of their text.
void expect_same_rows(Live& live, const std::string& a, const std::string& b) {
  const auto differs = live.column(
      fmt::format("SELECT count(*) FROM ((SELECT t::text FROM {0} t EXCEPT ALL SELECT t::text FROM {1} t) UNION ALL "
                  "(SELECT t::text FROM {1} t EXCEPT ALL SELECT t::text FROM {0} t)) d",
                  table(a), table(b)));
  EXPECT_TEXT(differs[0], "0");
}

// No session of the engine is left but those that a test holds.
void expect_sessions(Live& live, int expected) {
  EXPECT_TEXT(live.settled("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'rowferry' AND pid <> "
                           "pg_backend_pid()",
                           std::to_string(expected)),
              std::to_string(expected));
}

void make_numbers(Live& live, std::string_view name, int rows) {
  live.sql(
      fmt::format("CREATE TABLE {0} (id int PRIMARY KEY, store int, note text); INSERT INTO {0} SELECT i, i % 3, "
                  "repeat('x', i % 50) FROM generate_series(1, {1}) i",
                  table(name), rows));
}

int backend_of(Live& live, std::string_view query) {
  return std::stoi(
      live.column(fmt::format("SELECT max(pid) FROM pg_stat_activity WHERE application_name = 'rowferry' "
                              "AND pid <> pg_backend_pid() AND query LIKE '{}'",
                              query))[0]);
}

constexpr std::string_view binary_types =
    "b bool, i2 int2, i4 int4, i8 int8, o oid, f4 float4, f8 float8, n numeric, n1 numeric(38,10), n2 numeric(5,2), "
    "m money, d date, t time, t3 time(3), ts timestamp, tz timestamptz, ts0 timestamp(0), u uuid, x text, v "
    "varchar(5), "
    "c char(5), c1 char, nm name, ci public.citext, e live_load.mood, dm live_load.positive, dt live_load.word, j "
    "json, "
    "jb jsonb, xm xml, by bytea";

void make_types(Live& live) {
  live.sql(
      "CREATE TYPE live_load.mood AS ENUM ('sad', 'it''s ok', 'glad'); CREATE DOMAIN live_load.positive AS int "
      "CHECK (VALUE > 0); CREATE DOMAIN live_load.word AS varchar(10) NOT NULL DEFAULT 'w'");
}

void fill_types(Live& live, std::string_view name) {
  live.sql(fmt::format(
      "INSERT INTO {} SELECT true, -32768, -2147483648, -9223372036854775808, 4294967295, 'NaN', '-Infinity', "
      "-0.000000000000000001, 9999999999999999999999999999.9999999999, -999.99, -12.34, '4713-01-01 BC', '24:00:00', "
      "'23:59:59.999', '294246-12-31 23:59:59.999999', '4713-01-01 00:00:00+00 BC', '2024-02-29 12:34:56', "
      "'00112233-4455-6677-8899-aabbccddeeff', E'a\\\\b\\tc\\nd', 'äöü€🚚', 'ab', ' ', 'a name', 'CiText', 'it''s ok', "
      "7, "
      "'word', '{{\"a\" : [1, null]}}', '{{\"b\":1,\"a\":2,\"a\":3}}', '<a b=\"1\">ü</a>', '\\x00ff10'",
      table(name)));
  live.sql(fmt::format("INSERT INTO {} (dt) VALUES ('only')", table(name)));
  live.sql(
      fmt::format("INSERT INTO {} (dt, d, ts, tz, x, c, by, n) VALUES ('inf', 'infinity', '-infinity', 'infinity', "
                  "'', '', '', 0)",
                  table(name)));
}

}  // namespace

Test(live_load, every_type_with_a_binary_form_arrives_as_it_was) {
  Live live(std::string{schema});
  make_types(live);
  live.sql(
      fmt::format("CREATE TABLE {} ({}); CREATE TABLE {} ({})", table("a"), binary_types, table("b"), binary_types));
  fill_types(live, "a");
  Ferry ferry(live, "a", "b");
  ferry.request.verify = system::Verify::content;
  ferry.begin();
  cr_assert(ferry.to_load.plan.finalizer == Finalizer::insert_select);
  const auto loader = live.run(ferry.loading->open_loader(0));
  const system::SliceCommit commit = ferry.load(*loader, slice_of(0));
  cr_expect_eq(commit.acknowledged, 3);
  cr_expect_gt(commit.wire_bytes, 300);
  live.run(loader->close());
  cr_expect_eq(live.run(ferry.loading->staged_rows()), 3);
  std::string why;
  const auto hash = live.run(ferry.loading->staged_hash(why));
  cr_assert(hash.has_value());
  EXPECT_TEXT(hash->hex(), ferry.loaded.hex());
  const system::FinalizeResult result = ferry.finalize();
  cr_expect_eq(result.rows, 3);
  live.run(ferry.loading->after_steps());
  ferry.end();
  expect_same_rows(live, "a", "b");
  EXPECT_TEXT(live.column(fmt::format("SELECT count(*) FROM pg_class WHERE relname LIKE 'rowferry_01T%'"))[0], "0");
}

Test(live_load, types_without_a_binary_form_are_loaded_through_their_input_function) {
  Live live(std::string{schema});
  make_types(live);
  const std::string odd =
      "id int, iv interval, ip inet, ci cidr, ma macaddr, r int4range, nr numrange, tr tstzrange, h public.hstore, a "
      "int[], ta text[], tt timetz, bt bit(5), vb varbit, ts tsvector, p point, ch \"char\", e live_load.mood[], va "
      "real[]";
  live.sql(fmt::format("CREATE TABLE {} ({}, {}); CREATE TABLE {} ({}, {})", table("a"), odd,
                       "x text, by bytea, f float8, "
                       "n numeric(9,3), at timestamptz, d date, u uuid, b bool, ok text",
                       table("b"), odd,
                       "x text, by bytea, f float8, n numeric(9,3), at timestamptz, d date, u uuid, b bool, "
                       "ok text"));
  live.sql(fmt::format(
      "INSERT INTO {} VALUES (1, '1 mon 2 days 03:04:05.6', '10.0.0.1/8', '10.0.0.0/8', '08:00:2b:01:02:03', '[1,5)', "
      "'(,1.5]', '[2024-01-01 00:00+00,)', 'a=>1, b=>NULL', '{{1,NULL,3}}', '{{\"a,b\",\"c\\\"d\",NULL,\"\"}}', "
      "'10:20:30+05:30', B'10101', B'1', 'b a a', '(1.5,2)', 'q', '{{sad,\"it''s ok\"}}', '{{1.5,-2}}', E'tab\\t "
      "back\\\\ "
      "nl\\n cr\\r \\\\. \\\\N', '\\x005c0a', 'NaN', -123456.789, '4713-01-01 00:00+00 BC', 'infinity', "
      "'00112233-4455-6677-8899-aabbccddeeff', false, '\\N'); INSERT INTO {} (id) VALUES (2)",
      table("a"), table("a")));
  Ferry ferry(live, "a", "b");
  ferry.whole();
  ferry.end();
  expect_same_rows(live, "a", "b");
}

// O-19: values are written for the target's types, whatever the source's are.
Test(live_load, columns_of_other_types_get_the_targets_binary_form) {
  Live live(std::string{schema});
  live.sql(fmt::format(
      "CREATE TABLE {} (a int, b bigint, c timestamp, d smallint, e boolean, f text, g int, h numeric(9,2)); INSERT "
      "INTO {} VALUES (5, 7, '2024-01-15', 200, true, '[1]', 12, 3.50); CREATE TABLE {} (a bigint, b int, c date, d "
      "smallint, e smallint, f jsonb, g numeric(10,2), h float8)",
      table("a"), table("a"), table("b")));
  Ferry ferry(live, "a", "b");
  ferry.whole();
  ferry.end();
  EXPECT_TEXT(live.column("SELECT t::text FROM live_load.b t")[0], "(5,7,2024-01-15,200,1,[1],12.00,3.5)");
  live.sql("UPDATE live_load.a SET b = 3000000000");
  Ferry again(live, "a", "b", "01TESTFERRY2");
  const Error error = error_of([&] { again.whole(); });
  cr_expect(error.category() == Category::data, "%s", error.what());
  EXPECT_TEXT(error.context().column, "b");
}

Test(live_load, blanks_and_empty_texts_stay_three_things) {
  Live live(std::string{schema});
  live.sql(
      "CREATE TABLE live_load.a (id int, a varchar(10), b text, c text); INSERT INTO live_load.a VALUES (1, '', '', "
      "''), (2, NULL, NULL, NULL), (3, ' ', ' ', 'ab'); CREATE TABLE live_load.b (id int, a varchar(10), b text, c "
      "char(5))");
  Ferry ferry(live, "a", "b");
  ferry.whole();
  ferry.end();
  const auto got = live.column(
      "SELECT concat_ws('|', id, quote_nullable(a), quote_nullable(b), "
      "coalesce(octet_length(c)::text, 'NULL')) FROM live_load.b ORDER BY id");
  EXPECT_TEXT(got[0], "1|''|''|5");
  EXPECT_TEXT(got[1], "2|NULL|NULL|NULL");
  EXPECT_TEXT(got[2], "3|' '|' '|5");
}

Test(live_load, a_slice_that_is_aborted_leaves_nothing) {
  Live live(std::string{schema});
  make_numbers(live, "a", 20'000);
  Ferry ferry(live, "a", "b");
  ferry.request.create = true;
  ferry.begin();
  const auto loader = live.run(ferry.loading->open_loader(0));
  cr_assert_not(live.run(loader->begin_slice(slice_of(4))));
  ferry.write(*loader);
  live.run(loader->abort_slice());
  cr_expect(loader->usable(), "an aborted slice has cost the session");
  cr_expect_eq(live.run(ferry.loading->staged_rows()), 0);
  const system::SliceCommit commit = ferry.load(*loader, slice_of(4));
  cr_expect_eq(commit.acknowledged, 20'000);
  cr_expect_not(commit.already_there);
  cr_expect(live.run(loader->begin_slice(slice_of(4))), "a committed slice is begun again");
  live.run(loader->close());
  cr_expect_eq(live.run(ferry.loading->staged_rows()), 20'000);
  ferry.end();
  expect_sessions(live, 0);
  EXPECT_TEXT(live.column("SELECT count(*) FROM pg_class WHERE relname LIKE 'rowferry_01T%'")[0], "0");
}

Test(live_load, a_missing_table_is_created_with_its_key_by_a_rename) {
  Live live(std::string{schema});
  make_numbers(live, "a", 1000);
  Ferry ferry(live, "a", "b");
  ferry.request.create = true;
  ferry.request.mode = Mode::fail_if_exists;
  ferry.request.verify = system::Verify::content;
  const system::FinalizeResult result = ferry.whole();
  ferry.end();
  cr_assert(ferry.to_load.plan.finalizer == Finalizer::rename);
  cr_expect_eq(result.rows, 1000);
  expect_same_rows(live, "a", "b");
  EXPECT_TEXT(live.column("SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = "
                          "'live_load.b'::regclass AND contype = 'p'")[0],
              "PRIMARY KEY (id)");
}

Test(live_load, duplicate_keys_fail_the_finalize_and_change_nothing) {
  Live live(std::string{schema});
  make_numbers(live, "a", 100);
  make_numbers(live, "b", 5);
  Ferry ferry(live, "a", "b");
  ferry.begin();
  cr_assert(ferry.to_load.plan.finalizer == Finalizer::insert_select);
  ferry.load_all();
  const Error error = error_of([&] { ferry.finalize(); });
  EXPECT_TEXT(error.fault() ? error.fault()->number : "", "23505");
  ferry.end();
  EXPECT_TEXT(live.column("SELECT count(*) FROM live_load.b")[0], "5");
  expect_sessions(live, 0);
}

Test(live_load, a_target_in_use_by_another_transfer_is_busy) {
  Live live(std::string{schema});
  make_numbers(live, "a", 10);
  make_numbers(live, "b", 0);
  Ferry first(live, "a", "b");
  first.begin();
  Ferry second(live, "a", "b", "01TESTFERRY2");
  second.plan();
  EXPECT_ERROR(second.begin(), "target_busy");
  first.end();
  live.settled("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid <> 1", "1");
  second.begin();
  second.end();
}

Test(live_load, a_lost_lock_is_taken_again_before_the_finalize) {
  Live live(std::string{schema});
  make_numbers(live, "a", 10);
  make_numbers(live, "b", 0);
  live.sql("INSERT INTO live_load.b VALUES (1000, 1, 'old')");
  Ferry ferry(live, "a", "b");
  ferry.begin();
  const int holder =
      std::stoi(live.column("SELECT l.pid FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE "
                            "l.locktype = 'advisory' AND a.application_name = 'rowferry' AND l.pid <> "
                            "pg_backend_pid()")[0]);
  ferry.load_all();
  live.sql(fmt::format("SELECT pg_terminate_backend({}, 5000)", holder));
  const system::FinalizeResult result = ferry.finalize();
  cr_expect_eq(result.rows, 10);
  live.run(ferry.loading->after_steps());
  ferry.end();
  EXPECT_TEXT(live.column("SELECT count(*) FROM live_load.b")[0], "11");
}

Test(live_load, a_table_that_somebody_alters_meanwhile_is_not_finalized) {
  Live live(std::string{schema});
  make_numbers(live, "a", 10);
  make_numbers(live, "b", 0);
  live.sql("INSERT INTO live_load.b VALUES (1000, 1, 'old')");
  Ferry ferry(live, "a", "b");
  ferry.begin();
  ferry.load_all();
  live.sql("ALTER TABLE live_load.b ALTER store TYPE bigint");
  EXPECT_ERROR(ferry.finalize(), "target_changed");
  ferry.end();
}

Test(live_load, a_killed_server_process_ends_the_copy_at_once_and_nothing_is_committed) {
  Live live(std::string{schema});
  make_numbers(live, "a", 200'000);
  Ferry ferry(live, "a", "b");
  ferry.request.create = true;
  ferry.begin();
  const auto loader = live.run(ferry.loading->open_loader(0));
  cr_assert_not(live.run(loader->begin_slice(slice_of(0))));
  ferry.write(*loader, "id < 1000");
  live.sql(fmt::format("SELECT pg_terminate_backend({}, 5000)", backend_of(live, "COPY%FROM STDIN%")));
  const Error error = error_of([&] {
    const rows::ContentHash hash = ferry.write(*loader);
    live.run(loader->commit_slice(hash.rows, hash));
  });
  EXPECT_TEXT(error.fault() ? error.fault()->number : error.code(), "57P01");
  cr_expect(error.transient(), "%s", error.what());
  live.run(loader->abort_slice());
  cr_expect_not(loader->usable());
  live.run(loader->close());
  const auto next = live.run(ferry.loading->open_loader(0));
  cr_expect_eq(ferry.load(*next, slice_of(0), "id < 100").acknowledged, 99);
  live.run(next->close());
  cr_expect_eq(live.run(ferry.loading->staged_rows()), 99);
  ferry.end();
}

namespace {

async::Task<void> cancelled_load(Ferry* ferry, system::Loader* loader, std::vector<system::ColumnPlan> columns) {
  (void)columns;
  co_await net::sleep_for(ferry->live.loop, std::chrono::milliseconds{0});
  rows::Schema schema_of_batch;
  for (const system::ColumnPlan& plan : ferry->to_load.columns) {
    schema_of_batch.fields.push_back({plan.target, plan.write_type, true});
  }
  const auto pool = rows::BatchPool::make(std::make_shared<const rows::Schema>(std::move(schema_of_batch)));
  for (;;) {
    rows::BatchPtr batch = pool->take();
    for (std::size_t i = 0; i < 2000; ++i) {
      batch->buffer(0).append(i, static_cast<std::int32_t>(i));
      batch->buffer(1).append(i, static_cast<std::int32_t>(i));
      batch->buffer(2).append_bytes(i, as_bytes("some text that takes room in every row of the stream"));
    }
    batch->seal(2000);
    co_await loader->write(std::move(batch));
  }
}

}  // namespace

Test(live_load, a_cancel_in_the_middle_leaves_no_session_and_no_row) {
  Live live(std::string{schema});
  make_numbers(live, "a", 10);
  Ferry ferry(live, "a", "b");
  ferry.request.create = true;
  ferry.begin();
  const auto loader = live.run(ferry.loading->open_loader(0));
  cr_assert_not(live.run(loader->begin_slice(slice_of(0))));
  const Error error = error_of([&] {
    live.run(net::with_deadline(live.loop, std::chrono::milliseconds{300}, "loading",
                                cancelled_load(&ferry, loader.get(), {})));
  });
  EXPECT_TEXT(error.code(), "timeout");
  live.run(loader->abort_slice());
  cr_expect(loader->usable(), "the COPY could not be ended in good order");
  cr_expect_eq(live.run(ferry.loading->staged_rows()), 0);
  live.run(loader->close());
  ferry.end();
  expect_sessions(live, 0);
  EXPECT_TEXT(live.column("SELECT count(*) FROM pg_class WHERE relname LIKE 'rowferry_01T%'")[0], "0");
}

Test(live_load, an_error_of_the_server_is_heard_before_the_copy_ends) {
  Live live(std::string{schema});
  make_numbers(live, "a", 10);
  live.sql("CREATE TABLE live_load.b (id int, store int CHECK (store < 1500), note text)");
  Ferry ferry(live, "a", "b");
  ferry.begin();
  cr_assert(ferry.to_load.plan.finalizer == Finalizer::direct);
  const auto loader = live.run(ferry.loading->open_loader(0));
  cr_assert_not(live.run(loader->begin_slice(slice_of(0))));
  // The stream has no end: only the server's refusal ends it.
  const Error error = error_of([&] {
    live.run(net::with_deadline(live.loop, std::chrono::milliseconds{20'000}, "loading",
                                cancelled_load(&ferry, loader.get(), {})));
  });
  EXPECT_TEXT(error.fault() ? error.fault()->number : error.code(), "23514");
  live.run(loader->abort_slice());
  live.run(loader->close());
  ferry.end();
  EXPECT_TEXT(live.column("SELECT count(*) FROM live_load.b")[0], "0");
}

Test(live_load, direct_commits_all_slices_with_the_finalize) {
  Live live(std::string{schema});
  make_numbers(live, "a", 3000);
  make_numbers(live, "b", 0);
  Ferry ferry(live, "a", "b");
  ferry.begin();
  cr_assert(ferry.to_load.plan.finalizer == Finalizer::direct);
  const auto loader = live.run(ferry.loading->open_loader(0));
  for (int i = 0; i < 3; ++i) ferry.load(*loader, slice_of(i), fmt::format("store = {}", i));
  EXPECT_TEXT(live.column("SELECT count(*) FROM live_load.b")[0], "0");
  cr_expect_eq(ferry.finalize().rows, 3000);
  live.run(loader->close());
  live.run(ferry.loading->after_steps());
  ferry.end();
  expect_same_rows(live, "a", "b");
  // The same transfer again finds its key.
  Ferry again(live, "a", "b");
  again.request.own_table = true;
  again.to_load.only_after_steps = true;
  const system::Remains remains = live.run(again.target->remains(again.request, "01TESTFERRY"));
  cr_expect(remains.finalized);
  cr_expect_eq(remains.finalize.row_count, 3000);
}

Test(live_load, direct_freezes_a_table_that_it_truncates) {
  Live live(std::string{schema});
  make_numbers(live, "a", 3000);
  make_numbers(live, "b", 7);
  Ferry ferry(live, "a", "b");
  ferry.request.mode = Mode::truncate;
  ferry.request.load.freeze = true;
  ferry.begin();
  cr_assert(ferry.to_load.plan.finalizer == Finalizer::direct);
  const auto loader = live.run(ferry.loading->open_loader(0));
  ferry.load(*loader, slice_of(0));
  const system::FinalizeResult result = ferry.finalize();
  live.run(loader->close());
  ferry.end();
  cr_expect_eq(result.rows, 3000);
  expect_same_rows(live, "a", "b");
  live.sql("CREATE EXTENSION IF NOT EXISTS pg_visibility SCHEMA live_load");
  EXPECT_TEXT(live.column("SELECT all_frozen > 0 FROM live_load.pg_visibility_map_summary('live_load.b')")[0], "t");
}

// O-20
Test(live_load, sequences_go_past_the_highest_value_and_generated_columns_are_left_out) {
  Live live(std::string{schema});
  live.sql(
      "CREATE TABLE live_load.a (id int, a int, s int); INSERT INTO live_load.a SELECT i, i, i * 10 FROM "
      "generate_series(1, 7) i; CREATE TABLE live_load.b (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, a int, s "
      "serial, b int GENERATED ALWAYS AS (a * 2) STORED)");
  Ferry ferry(live, "a", "b");
  ferry.whole();
  live.run(ferry.loading->after_steps());
  ferry.end();
  live.sql("INSERT INTO live_load.b (a) VALUES (1)");
  EXPECT_TEXT(live.column("SELECT t::text FROM live_load.b t ORDER BY id DESC LIMIT 1")[0], "(8,1,71,2)");
  EXPECT_TEXT(live.column("SELECT t::text FROM live_load.b t WHERE id = 7")[0], "(7,7,70,14)");
}

Test(live_load, what_is_in_staging_is_found_again_and_used) {
  Live live(std::string{schema});
  make_numbers(live, "a", 900);
  make_numbers(live, "b", 0);
  live.sql("INSERT INTO live_load.b VALUES (5000, 1, 'old')");
  {
    Ferry ferry(live, "a", "b");
    ferry.begin();
    const auto loader = live.run(ferry.loading->open_loader(0));
    ferry.load(*loader, slice_of(0), "store = 0");
    ferry.load(*loader, slice_of(1), "store = 1");
    live.run(loader->close());
    ferry.end(true);
  }
  Ferry ferry(live, "a", "b");
  ferry.plan();
  const system::Remains remains = live.run(ferry.target->remains(ferry.request, "01TESTFERRY"));
  cr_expect_not(remains.finalized);
  cr_expect_eq(remains.staging_attempt, 1);
  cr_assert_eq(remains.slices.size(), 2);
  EXPECT_TEXT(remains.slices[1].step, "slice 1");
  cr_expect_eq(remains.slices[0].row_count, 300);
  ferry.to_load.resume_staging = true;
  ferry.to_load.staging_attempt = 1;
  ferry.begin(2);
  const auto loader = live.run(ferry.loading->open_loader(0));
  cr_expect(live.run(loader->begin_slice(slice_of(1))));
  ferry.load(*loader, slice_of(2), "store = 2");
  live.run(loader->close());
  cr_expect_eq(live.run(ferry.loading->staged_rows()), 900);
  ferry.loaded.rows = 900;
  ferry.finalize();
  live.run(ferry.loading->after_steps());
  ferry.end();
  EXPECT_TEXT(live.column("SELECT count(*) FROM live_load.b")[0], "901");
}

Test(live_load, an_unlogged_staging_that_a_crash_has_emptied_counts_as_gone) {
  Live live(std::string{schema});
  make_numbers(live, "a", 100);
  make_numbers(live, "b", 0);
  live.sql("INSERT INTO live_load.b VALUES (5000, 1, 'old')");
  Ferry ferry(live, "a", "b");
  ferry.request.load.unlogged = true;
  ferry.begin();
  ferry.load_all();
  const std::string staging = ferry.loading->staging_name();
  EXPECT_TEXT(live.column(fmt::format("SELECT relpersistence FROM pg_class WHERE relname = '{}'", staging))[0], "u");
  ferry.end(true);
  cr_expect_eq(live.run(ferry.target->remains(ferry.request, "01TESTFERRY")).staging_attempt, 1);
  live.sql(fmt::format("TRUNCATE live_load.\"{}\"", staging));
  const system::Remains remains = live.run(ferry.target->remains(ferry.request, "01TESTFERRY"));
  cr_expect_eq(remains.staging_attempt, 0);
  cr_expect(remains.slices.empty());
}

namespace {

struct CommitCase {
  std::unique_ptr<postgres::Session> session;
  postgres::LedgerKey key;
};

}  // namespace

Test(live_load, a_commit_without_an_answer_is_decided_by_the_ledger) {
  Live live(std::string{schema});
  const auto shared = std::make_shared<postgres::Shared>(live.loop, live.options, 4);
  const postgres::Ledger ledger(shared, std::string(schema));
  live.run(ledger.ensure(*live.admin));
  live.run(ledger.ensure(*live.admin));  // again: no error
  const postgres::LedgerKey key{"01TESTFERRY", 1, "slice 0"};
  const auto killed_before_commit = [&](bool arrives) {
    const auto session = live.run(postgres::open_loading_session(shared, 1000));
    live.run(session->query("BEGIN"));
    cr_assert_not(live.run(ledger.claim(*session, key, "s")));
    live.sql(fmt::format("SELECT pg_terminate_backend({}, 5000)", session->backend_pid()));
    // As if COMMIT had arrived, and its answer not.
    if (arrives) live.run(ledger.claim(*live.admin, key, "s"));
    bool by_ledger = false;
    live.run(postgres::commit_transaction(*session, ledger, key, by_ledger));
    cr_expect_not(session->open());
    return by_ledger;
  };
  const Error error = error_of([&] { killed_before_commit(false); });
  EXPECT_TEXT(error.code(), "commit_failed");
  cr_expect(error.transient());
  cr_expect(killed_before_commit(true), "the ledger's key was there");
  const auto entries = live.run(ledger.entries(*live.admin, "01TESTFERRY"));
  cr_assert_eq(entries.size(), 1);
  // The server's own refusal is no unknown outcome.
  live.sql(
      "CREATE TABLE live_load.p (id int PRIMARY KEY); CREATE TABLE live_load.c (id int REFERENCES live_load.p "
      "DEFERRABLE INITIALLY DEFERRED)");
  const auto session = live.run(postgres::open_loading_session(shared, 1000));
  live.run(session->query("BEGIN; INSERT INTO live_load.c VALUES (1)"));
  bool by_ledger = false;
  const Error refused = error_of([&] { live.run(postgres::commit_transaction(*session, ledger, key, by_ledger)); });
  EXPECT_TEXT(refused.fault() ? refused.fault()->number : refused.code(), "23503");
  cr_expect(session->open());
}

Test(live_load, a_key_that_another_session_holds_leaves_the_outcome_unknown) {
  Live live(std::string{schema});
  const auto shared = std::make_shared<postgres::Shared>(live.loop, live.options, 4);
  const postgres::Ledger ledger(shared, std::string(schema));
  live.run(ledger.ensure(*live.admin));
  const postgres::LedgerKey key{"01TESTFERRY", 0, "finalize"};
  live.sql("BEGIN");
  cr_assert_not(live.run(ledger.claim(*live.admin, key, "")));
  const system::Outcome outcome = live.run(ledger.decide(key));
  live.sql("ROLLBACK");
  cr_expect(outcome == system::Outcome::unknown);
  cr_expect(live.run(ledger.decide(key)) == system::Outcome::absent);
  EXPECT_ERROR(system::settle_finalize(outcome), "commit_unknown");
}

Test(live_load, a_target_that_stays_locked_is_told_as_such) {
  Live live(std::string{schema});
  make_numbers(live, "a", 10);
  make_numbers(live, "b", 0);
  live.sql("INSERT INTO live_load.b VALUES (1000, 1, 'old')");
  Ferry ferry(live, "a", "b");
  ferry.request.load.lock_timeout_ms = 50;
  ferry.begin();
  ferry.load_all();
  const auto other = live.session();
  live.run(other->query("BEGIN; LOCK TABLE live_load.b IN SHARE MODE"));
  const Error error = error_of([&] { ferry.finalize(); });
  EXPECT_TEXT(error.code(), "target_locked");
  cr_expect(error.transient());
  live.run(other->query("COMMIT"));
  cr_expect_eq(ferry.finalize().rows, 10);
  ferry.end();
}
