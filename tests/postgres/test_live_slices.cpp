#include <fmt/format.h>

#include <algorithm>

#include "live.hpp"

using namespace rowferry;
using namespace rowferry::postgres::test;
using system::SliceBy;

namespace {

std::vector<Row> sorted(std::vector<Row> rows) {
  std::sort(rows.begin(), rows.end());
  return rows;
}

// Every row exactly once, whatever the cut: the slices together are the whole.
system::SlicePlan expect_whole(Live& live, system::ReadRequest request, SliceBy by, const std::string& column,
                               int count, std::size_t slices_at_least = 1) {
  request.slices = {.by = SliceBy::none};
  const std::vector<Row> expected = sorted(live.read_all(request));
  request.slices = {.by = by, .column = column, .count = count};
  const auto reading = live.begin(request);
  const system::SlicePlan plan = reading->slices();
  const std::vector<Row> rows = sorted(live.read_slices(*reading));
  cr_expect_eq(live.run(reading->count_rows()), expected.size());
  live.run(reading->end());
  const std::string what =
      fmt::format("{} by {} of {}", request.columns.empty() ? "" : request.columns.back().source_native,
                  system::to_string(by), column);
  cr_expect_eq(rows.size(), expected.size(), "%s", what.c_str());
  cr_expect(rows == expected, "%s: other rows", what.c_str());
  cr_expect_geq(plan.slices.size(), slices_at_least, "%s: %zu slices", what.c_str(), plan.slices.size());
  return plan;
}

bool has_null_slice(const system::SlicePlan& plan) {
  return std::any_of(plan.slices.begin(), plan.slices.end(),
                     [](const system::Slice& slice) { return slice.predicate.ends_with("is NULL"); });
}

}  // namespace

Test(live_slices, every_key_type_and_every_cut_gives_every_row_once) {
  Live live("live_slices");
  struct Key {
    const char* type;
    const char* values;  // a set-returning SQL of the column v
    std::size_t ranges;
  };
  const std::vector<Key> keys{
      {"int", "SELECT generate_series(1, 10) UNION ALL SELECT NULL", 5},
      {"bigint", "SELECT unnest('{-9223372036854775808,9223372036854775807,0,NULL,NULL,-1}'::int8[])", 5},
      {"smallint", "SELECT NULL::int2 FROM generate_series(1, 5)", 2},
      {"int", "SELECT 7 FROM generate_series(1, 50)", 1},
      {"text", "SELECT chr(64 + i % 26) || chr(97 + i % 13) || i FROM generate_series(1, 200) i UNION ALL SELECT NULL",
       5},
      {"text", "SELECT unnest(ARRAY['a','A','b','B','ä','',E'back\\\\slash','quo''te'])", 2},
      {"public.citext", "SELECT unnest(ARRAY['a','A','b','B','c','C']::public.citext[])", 2},
      {"uuid", "SELECT md5(i::text)::uuid FROM generate_series(1, 200) i", 4},
      {"float8", "SELECT unnest('{NaN,Infinity,-Infinity,0,-0,1.5,NULL,0.1}'::float8[])", 3},
      {"numeric", "SELECT unnest('{-1e15,1.0,1.00,2,3,4.5,NULL}'::numeric[])", 3},
      {"date", "SELECT '2026-01-01'::date + i FROM generate_series(1, 100) i UNION ALL SELECT 'infinity'", 4},
      {"timestamptz", "SELECT now() + i * interval '1 hour' FROM generate_series(1, 100) i", 4},
      {"char(4)", "SELECT unnest('{a,ab,abc,abcd,NULL}'::char(4)[])", 3},
      {"bytea", "SELECT decode(lpad(to_hex(i), 4, '0'), 'hex') FROM generate_series(1, 40) i", 4},
      {"boolean", "SELECT unnest('{t,f,NULL,t}'::bool[])", 2},
      {"int", "SELECT 1 WHERE false", 1},
  };
  live.sql("SET search_path = pg_catalog, public");
  for (const Key& key : keys) {
    live.sql(
        fmt::format("DROP TABLE IF EXISTS live_slices.t; CREATE TABLE live_slices.t (n serial, v {}); "
                    "INSERT INTO live_slices.t (v) {}; CREATE INDEX ON live_slices.t (n)",
                    key.type, key.values));
    const auto request = live.request("t");
    const bool nulls = live.column("SELECT count(*) FROM live_slices.t WHERE v IS NULL")[0] != "0";
    if (std::string_view(key.type) != "boolean") {
      cr_expect_eq(has_null_slice(expect_whole(live, request, SliceBy::range, "v", 4, key.ranges)), nulls, "%s",
                   key.type);
    }
    cr_expect_eq(has_null_slice(expect_whole(live, request, SliceBy::value, "v", 0)), nulls, "%s", key.type);
    expect_whole(live, request, SliceBy::hash, "v", 5, 5);
    expect_whole(live, request, SliceBy::ctid, "", 4);
  }
}

Test(live_slices, one_slice_for_each_value_with_its_rows_counted) {
  Live live("live_slices");
  live.sql(
      "CREATE TABLE live_slices.t AS SELECT i AS id, CASE i % 3 WHEN 0 THEN NULL ELSE 'store ' || i % 3 END AS store "
      "FROM generate_series(1, 30) i");
  const auto plan = expect_whole(live, live.request("t"), SliceBy::value, "store", 0, 3);
  cr_assert_eq(plan.slices.size(), 3);
  for (const auto& slice : plan.slices) cr_expect_eq(slice.row_estimate.value_or(0), 10);
  EXPECT_TEXT(plan.slices[0].predicate, "store = store 1");
}

Test(live_slices, a_large_table_is_cut_by_blocks) {
  Live live("live_slices");
  live.sql(
      "CREATE TABLE live_slices.t AS SELECT i AS id, repeat('x', 50) AS pad FROM generate_series(1, 50000) i; ANALYZE "
      "live_slices.t");
  auto request = live.request("t", 8);
  const auto plan = live.run(live.source->plan_slices(request));
  cr_expect_eq(static_cast<int>(plan.by), static_cast<int>(SliceBy::ctid));
  cr_expect_eq(plan.slices.size(), 8);
  cr_expect_not(plan.reason.empty());
  expect_whole(live, request, SliceBy::automatic, "", 8, 8);
  request.what.where = "id % 2 = 0 -- even";
  expect_whole(live, request, SliceBy::ctid, "", 4, 4);
  cr_expect_eq(live.read_all(request).size(), 25000);
}

Test(live_slices, partitions_at_every_depth_with_other_column_orders) {
  Live live("live_slices");
  live.sql(
      "CREATE TABLE live_slices.t (id int, gone int, \"Odd \"\"c\"\"\" text, day date) PARTITION BY RANGE (day); "
      "ALTER TABLE live_slices.t DROP COLUMN gone; "
      "CREATE TABLE live_slices.a PARTITION OF live_slices.t FOR VALUES FROM ('2026-01-01') TO ('2026-02-01'); "
      "CREATE TABLE live_slices.b (day date, \"Odd \"\"c\"\"\" text, x int, id int); ALTER TABLE live_slices.b DROP "
      "COLUMN x; "
      "ALTER TABLE live_slices.t ATTACH PARTITION live_slices.b FOR VALUES FROM ('2026-02-01') TO ('2026-03-01'); "
      "CREATE TABLE live_slices.c PARTITION OF live_slices.t DEFAULT PARTITION BY HASH (id); "
      "CREATE TABLE live_slices.c0 PARTITION OF live_slices.c FOR VALUES WITH (MODULUS 2, REMAINDER 0); "
      "CREATE TABLE live_slices.c1 PARTITION OF live_slices.c FOR VALUES WITH (MODULUS 2, REMAINDER 1); "
      "INSERT INTO live_slices.t SELECT i, 'v' || i, CASE WHEN i % 50 = 0 THEN NULL ELSE date '2026-01-01' + i % 100 "
      "END FROM generate_series(1, 20000) i");
  auto request = live.request("t");
  expect_whole(live, request, SliceBy::ctid, "", 6, 4);
  request.what.where = "t.id % 3 <> 0 AND live_slices.t.id > 5";
  EXPECT_ERROR(expect_whole(live, request, SliceBy::ctid, "", 6, 4), "table_missing");
  request.what.where = "t.id % 3 <> 0";
  expect_whole(live, request, SliceBy::ctid, "", 6, 4);
  request.what.where.clear();
  expect_whole(live, request, SliceBy::automatic, "", 6, 4);
  expect_whole(live, request, SliceBy::range, "id", 4, 4);
  expect_whole(live, request, SliceBy::value, "day", 0, 50);
  cr_expect_eq(expect_whole(live, request, SliceBy::partition, "", 0).slices.size(), 4);
}

Test(live_slices, a_parent_of_inheritance_gives_its_childrens_rows) {
  Live live("live_slices");
  live.sql(
      "CREATE TABLE live_slices.t (id int); CREATE TABLE live_slices.kid (more text) INHERITS (live_slices.t); "
      "CREATE TABLE live_slices.grandkid () INHERITS (live_slices.kid); INSERT INTO live_slices.t SELECT "
      "generate_series(1, 10); "
      "INSERT INTO live_slices.kid SELECT generate_series(11, 20); INSERT INTO live_slices.grandkid SELECT "
      "generate_series(21, 30)");
  const auto request = live.request("t");
  cr_expect_eq(live.read_all(request).size(), 30);
  expect_whole(live, request, SliceBy::ctid, "", 3);
}

Test(live_slices, views_and_queries_are_read_whole_or_by_ranges) {
  Live live("live_slices");
  live.sql(
      "CREATE TABLE live_slices.t AS SELECT i AS id, i % 7 AS k FROM generate_series(1, 5000) i; "
      "CREATE VIEW live_slices.v AS SELECT id, k, 'x' || id AS label FROM live_slices.t WHERE k > 2; "
      "CREATE MATERIALIZED VIEW live_slices.m AS SELECT id, k FROM live_slices.t");
  auto plan = expect_whole(live, live.request("v"), SliceBy::automatic, "", 4);
  cr_expect_eq(plan.slices.size(), 1);
  expect_whole(live, live.request("v"), SliceBy::range, "id", 4, 4);
  expect_whole(live, live.request("v"), SliceBy::range, "label", 4, 4);
  EXPECT_ERROR(expect_whole(live, live.request("v"), SliceBy::ctid, "", 4), "slices_impossible");
  expect_whole(live, live.request("m"), SliceBy::ctid, "", 4, 4);
  system::SourceRequest what;
  what.query =
      "SELECT a.id, b.id AS n, NULL AS nothing FROM live_slices.t a JOIN live_slices.t b ON b.k = a.k AND b.id < "
      "10 -- all;\n ; ";
  const auto request = live.request(what);
  plan = expect_whole(live, request, SliceBy::automatic, "", 4);
  expect_whole(live, request, SliceBy::hash, "id", 3, 3);
}

Test(live_slices, what_need_not_give_the_same_rows_twice_is_never_cut) {
  Live live("live_slices");
  live.sql(
      "CREATE TABLE live_slices.t AS SELECT i AS id, i % 7 AS k, 'x' AS s, now() AS at, i::numeric AS n "
      "FROM generate_series(1, 20000) i; ANALYZE live_slices.t; "
      "CREATE FUNCTION live_slices.stable() RETURNS int LANGUAGE sql STABLE AS 'SELECT count(*)::int FROM pg_class'; "
      "CREATE FUNCTION live_slices.fixed(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1 + 1; END'");
  const auto expect = [&](const std::string& where, bool cut) {
    auto request = live.request("t", 4);
    request.what.where = where;
    request.slices = {.by = SliceBy::automatic, .count = 4};
    const auto plan = live.run(live.source->plan_slices(request));
    cr_expect_eq(plan.slices.size(), cut ? 4 : 1, "%s: %zu slices, %s", where.c_str(), plan.slices.size(),
                 plan.reason.c_str());
    const bool told = !plan.notices.empty() && plan.notices[0].code == "not_sliced";
    cr_expect_eq(told, !cut, "%s", where.c_str());
    request.slices.by = SliceBy::range;
    request.slices.column = "id";
    if (cut) {
      cr_expect_eq(live.run(live.source->plan_slices(request)).slices.size(), 4, "%s", where.c_str());
    } else {
      EXPECT_ERROR(live.run(live.source->plan_slices(request)), "slices_impossible");
    }
  };
  for (const char* where :
       {"id > 5 AND k IN (1, 2, 3) AND s LIKE 'x%'", "lower(s) = 'x' AND coalesce(k, 0) BETWEEN 1 AND 5",
        "at > '2020-01-01' AND n::numeric(10,2) < 1e9 AND s::character varying(5) = 'x'",
        "date_trunc('day', at) > 'epoch'", "s <> 'know it'", "id IN (SELECT id FROM live_slices.t WHERE k = 1)",
        "live_slices.fixed(id) > 3", "at + interval '1 day' > '2020-01-01' OR extract(year FROM at) > 2000",
        "CASE WHEN k = 1 THEN true ELSE id > 0 END"}) {
    expect(where, true);
  }
  for (const char* where :
       {"id IN (SELECT id FROM live_slices.t LIMIT 10000)", "random() < 0.5", "at < now() - interval '1 second'",
        "at < current_timestamp", "at < clock_timestamp()", "at < 'now'", "at < E'n\\x6fw'", "at::date < CURRENT_DATE",
        "id IN (SELECT DISTINCT ON (k) id FROM live_slices.t ORDER BY k)", "id > live_slices.stable()",
        "id IN (SELECT id FROM live_slices.t TABLESAMPLE SYSTEM (50))", "age(at) > interval '1 second'",
        "id IN (SELECT id FROM (SELECT id, row_number() OVER () AS r FROM live_slices.t) q WHERE r < 9000)"}) {
    expect(where, false);
  }
}

Test(live_slices, views_and_queries_without_a_fixed_result_are_read_by_one_statement) {
  Live live("live_slices");
  live.sql(
      "CREATE TABLE live_slices.t AS SELECT i AS id, i % 7 AS k FROM generate_series(1, 5000) i; "
      "CREATE VIEW live_slices.cut AS SELECT * FROM live_slices.t LIMIT 1000; "
      "CREATE VIEW live_slices.numbered AS SELECT row_number() OVER () AS id FROM live_slices.t; "
      "CREATE VIEW live_slices.stamped AS SELECT id, now() AS loaded FROM live_slices.t; "
      "CREATE VIEW live_slices.keyed AS SELECT id, gen_random_uuid() AS u FROM live_slices.t; "
      "CREATE VIEW live_slices.grouped AS SELECT max(id) AS id, k FROM live_slices.t GROUP BY k");
  for (const char* name : {"cut", "numbered", "stamped", "keyed", "grouped"}) {
    auto whole = live.request(name);
    whole.slices = {.by = SliceBy::automatic, .column = "", .count = 4};
    const auto plan = live.run(live.source->plan_slices(whole));
    cr_expect_eq(plan.slices.size(), 1, "%s", name);
    cr_expect_not(live.read_all(whole).empty(), "%s", name);
    for (const SliceBy by : {SliceBy::range, SliceBy::hash, SliceBy::value}) {
      auto request = live.request(name);
      request.slices = {.by = by, .column = "id", .count = 4};
      EXPECT_ERROR(live.run(live.source->plan_slices(request)), "slices_impossible");
    }
  }
  system::SourceRequest what;
  what.query = "SELECT id FROM live_slices.t LIMIT 1000";
  auto request = live.request(what);
  request.slices = {.by = SliceBy::hash, .column = "id", .count = 4};
  EXPECT_ERROR(live.run(live.source->plan_slices(request)), "slices_impossible");
}

Test(live_slices, queries_that_are_no_plain_select_are_refused) {
  Live live("live_slices");
  live.sql("CREATE TABLE live_slices.t (a int)");
  const auto refused = [&](const std::string& query) {
    system::SourceRequest what;
    what.query = query;
    try {
      live.read_all(live.request(what));
      return std::string("taken");
    } catch (const Error& error) {
      return error.code();
    }
  };
  EXPECT_TEXT(refused("SELECT 1 AS a; DROP TABLE live_slices.t"), "syntax_error");
  EXPECT_TEXT(refused("SELECT $1::int AS a"), "query_has_parameters");
  EXPECT_TEXT(refused("SELECT 1 AS a, 2 AS a"), "duplicate_column");
  EXPECT_TEXT(refused("SELECT * FROM t"), "table_missing");
  EXPECT_TEXT(refused("SELEC 1"), "syntax_error");
  cr_expect_neq(refused("INSERT INTO live_slices.t VALUES (1) RETURNING a"), "taken");
  EXPECT_TEXT(live.column("SELECT count(*) FROM live_slices.t")[0], "0");
}

Test(live_slices, columns_and_tables_with_odd_names) {
  Live live("live_slices");
  live.sql(
      "CREATE TABLE live_slices.\"odd]\"\"name 'x'.y\" (\"select\" int PRIMARY KEY, \"a\"\"b]c\" text, \"日本 \" int)");
  live.sql("INSERT INTO live_slices.\"odd]\"\"name 'x'.y\" SELECT i, 'v', i FROM generate_series(1, 100) i");
  const auto request = live.request("odd]\"name 'x'.y");
  expect_whole(live, request, SliceBy::range, "select", 3, 3);
  expect_whole(live, request, SliceBy::hash, "a\"b]c", 3, 3);
  expect_whole(live, request, SliceBy::ctid, "", 2);
}

Test(live_slices, an_empty_column_list_or_table_is_no_special_case) {
  Live live("live_slices");
  live.sql(
      "CREATE TABLE live_slices.t (); INSERT INTO live_slices.t DEFAULT VALUES; INSERT INTO live_slices.t DEFAULT "
      "VALUES; CREATE TABLE live_slices.e (a int)");
  cr_expect_eq(live.read_all(live.request("t")).size(), 2);
  cr_expect_eq(live.read_all(live.request("e", 4)).size(), 0);
}

namespace {

std::string bounds_text(const system::SlicePlan& plan) {
  using Kind = system::SliceBounds::Kind;
  std::string out;
  for (const system::Slice& slice : plan.slices) {
    out += out.empty() ? "" : " ";
    if (!slice.bounds) {
      out += "?";
    } else if (slice.bounds->kind == Kind::null) {
      out += "null";
    } else if (slice.bounds->kind == Kind::value) {
      out += "=" + slice.bounds->value;
    } else {
      out += fmt::format("[{},{})", slice.bounds->low.value_or(""), slice.bounds->high.value_or(""));
    }
  }
  return out;
}

}  // namespace

// As rows/format.hpp prints values: what a target that is partitioned by the column compares its bounds with.
Test(live_slices, say_what_of_their_column_they_hold) {
  Live live("live_slices");
  live.sql(R"(
    CREATE TABLE live_slices.t (n int, b boolean, y bytea, z timestamptz, s text, m money);
    INSERT INTO live_slices.t VALUES (1, true, '\x0102', '2024-01-01 00:00+00', 'it''s', 1), (30, NULL, NULL, NULL, NULL, NULL);
    CREATE TABLE live_slices.none (n int);
  )");
  const auto cut = [&](const std::string& table, system::SliceRequest slices) {
    system::ReadRequest request = live.request(table);
    request.slices = std::move(slices);
    const auto reading = live.begin(request);
    std::string text = bounds_text(reading->slices());
    live.run(reading->end());
    return text;
  };
  EXPECT_TEXT(cut("t", {.by = SliceBy::value, .column = "n"}), "=1 =30");
  EXPECT_TEXT(cut("t", {.by = SliceBy::value, .column = "b"}), "=true null");
  EXPECT_TEXT(cut("t", {.by = SliceBy::value, .column = "y"}), "=0x0102 null");
  EXPECT_TEXT(cut("t", {.by = SliceBy::value, .column = "z"}), "=2024-01-01 00:00:00+00:00 null");
  EXPECT_TEXT(cut("t", {.by = SliceBy::value, .column = "s"}), "=it's null");
  EXPECT_TEXT(cut("t", {.by = SliceBy::value, .column = "m"}), "? null");
  EXPECT_TEXT(cut("none", {.by = SliceBy::value, .column = "n"}), "?");
  EXPECT_TEXT(cut("t", {.by = SliceBy::range, .column = "n", .count = 2}), "[,16) [16,)");
  using system::SliceBounds;
  const auto range = [](std::string column, std::optional<std::string> low, std::optional<std::string> high) {
    return SliceBounds{.kind = SliceBounds::Kind::range,
                       .column = std::move(column),
                       .value = {},
                       .low = std::move(low),
                       .high = std::move(high)};
  };
  const system::SliceRequest given{.by = SliceBy::range,
                                   .column = "z",
                                   .bounds = {range("z", std::nullopt, "2024-01-01 00:00:00+00:00"),
                                              range("z", "2024-01-01 00:00:00+00:00", std::nullopt)}};
  EXPECT_TEXT(cut("t", given), "[,2024-01-01 00:00:00+00:00) [2024-01-01 00:00:00+00:00,) null");
}
