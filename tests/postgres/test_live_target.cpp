// What the target's catalogue says and what the decisions' statements do, in a real PostgreSQL. Rows come into staging
// by INSERT: how COPY brings them is not these tests' business.
#include <fmt/format.h>

#include <algorithm>

#include "live.hpp"
#include "postgres/dialect.hpp"
#include "postgres/load_type.hpp"
#include "postgres/natural_type.hpp"
#include "postgres/partitions.hpp"
#include "postgres/target.hpp"

using namespace rowferry;
using namespace rowferry::postgres;
using namespace rowferry::postgres::test;
using system::ColumnPlan;
using system::Finalizer;
using system::Mode;
using system::Slice;
using system::SliceBounds;
using system::TargetRequest;

namespace {

const std::string schema = "rf_target";

TargetRequest request_for(const std::string& table, Mode mode, int workers = 2) {
  TargetRequest request;
  request.table = {{schema, table}};
  request.mode = mode;
  request.workers = workers;
  return request;
}

ColumnPlan planned(const std::string& name, const std::string& native, bool nullable = true) {
  ColumnPlan plan;
  plan.source = plan.target = name;
  plan.target_native = native;
  plan.target_nullable = nullable;
  plan.write_type = load_type(parse_type(native).facts, 2).type;
  return plan;
}

// The columns of an existing table that take values, as the engine plans them.
std::vector<ColumnPlan> columns_of(const TableFacts& table) {
  std::vector<ColumnPlan> columns;
  for (const ColumnFacts& column : table.columns) {
    if (!column.insertable()) continue;
    ColumnPlan plan;
    plan.source = plan.target = column.name;
    plan.target_native = column.native;
    plan.target_nullable = column.nullable;
    plan.write_type = load_type(column.type, 2).type;
    columns.push_back(plan);
  }
  return columns;
}

Place place(const std::string& table) { return {schema, table, schema}; }

TableFacts facts(Live& live, const std::string& table) { return live.run(read_table(*live.admin, schema, table)); }

// One transfer: staging made, filled by `rows` (a SELECT or VALUES), finalized.
struct Transfer {
  explicit Transfer(Live& the_live, TargetRequest the_request, std::vector<ColumnPlan> the_columns = {})
      : live(the_live), request(std::move(the_request)), columns(std::move(the_columns)) {
    const std::string& table = request.table.parts[1];
    if (columns.empty()) columns = columns_of(facts(live, table));
    situation = live.run(read_situation(*live.admin, place(table), request, columns));
    decision = decide(situation, request, columns, source_key);
  }

  void stage(const std::string& rows) {
    live.sql(create_staging(decision, schema, staging));
    std::string list;
    for (const ColumnPlan& column : columns) list += (list.empty() ? "" : ", ") + quote_name(column.target);
    live.sql(fmt::format("INSERT INTO {} ({}) {}", quote_table({{schema, staging}}), list, rows));
  }

  void finalize(const std::vector<Slice>& slices = {}) {
    live.sql("BEGIN");
    for (const FinalizeStatement& s : finalize_statements(decision, situation.table, staging, columns, request)) {
      if (s.kind == FinalizeStatement::Kind::partitions) {
        live.run(make_partitions(*live.admin, situation.table, decision, columns, slices, staging));
        continue;
      }
      const Result result = live.sql(s.sql);
      if (s.kind == FinalizeStatement::Kind::insert) inserted = result.affected();
      if (s.kind == FinalizeStatement::Kind::count) counted = result.integer(0, "rows_now");
    }
    live.sql("COMMIT");
    live.sql("DROP TABLE IF EXISTS " + quote_table({{schema, staging}}));
  }

  void load(const std::string& rows, const std::vector<Slice>& slices = {}) {
    stage(rows);
    finalize(slices);
  }

  bool noted(std::string_view code) const {
    return std::ranges::find(decision.notices, code, &system::Notice::code) != decision.notices.end();
  }

  Live& live;
  TargetRequest request;
  std::vector<ColumnPlan> columns;
  std::vector<std::string> source_key;
  Situation situation;
  Decision decision;
  std::string staging = "rowferry_t_1";
  std::uint64_t inserted = 0;
  std::int64_t counted = -1;
};

std::string error_code(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  return "no error";
}

std::string joined(const std::vector<std::string>& list) {
  std::string out;
  for (const std::string& one : list) out += (out.empty() ? "" : ", ") + one;
  return out;
}

std::string rows_of(Live& live, const std::string& query) {
  std::string out;
  for (const std::string& row : live.column("SELECT r::text FROM (" + query + ") AS r")) out += row;
  return out;
}

Slice value_slice(int index, const std::string& column, std::optional<std::string> value) {
  Slice slice;
  slice.index = index;
  slice.bounds = SliceBounds{.kind = value ? SliceBounds::Kind::value : SliceBounds::Kind::null,
                             .column = column,
                             .value = value.value_or(""),
                             .low = {},
                             .high = {}};
  return slice;
}

Slice range_slice(int index, const std::string& column, std::optional<std::string> low,
                  std::optional<std::string> high) {
  Slice slice;
  slice.index = index;
  slice.bounds = SliceBounds{
      .kind = SliceBounds::Kind::range, .column = column, .value = "", .low = std::move(low), .high = std::move(high)};
  return slice;
}

// One slice of per_slice, as a loader runs it, on a session of its own; `values` fill it.
class SliceRun {
 public:
  SliceRun(Transfer& transfer, const Slice& slice, const std::string& values)
      : live_(transfer.live), session_(live_.session()) {
    sql("SET lock_timeout = 2000; BEGIN");
    const TableFacts now = live_.run(read_table(*session_, schema, transfer.request.table.parts[1]));
    const auto found = live_.run(find_partitions(*session_, now, transfer.decision, transfer.columns, {slice}));
    statements_ = slice_statements(transfer.decision, now, found[0], fmt::format("rowferry_t_1_{}", slice.index));
    for (const std::string& text : statements_.before) sql(text);
    sql(fmt::format("INSERT INTO {} {}", statements_.table, values));
  }

  std::string finish() {
    for (const std::string& text : statements_.build) sql(text);
    if (!statements_.swap.empty()) sql(statements_.swap);
    for (const std::string& text : statements_.after) sql(text);
    sql("COMMIT");
    return statements_.partition;
  }

 private:
  void sql(const std::string& text) { live_.run(session_->query(text)); }

  Live& live_;
  std::unique_ptr<Session> session_;
  SliceStatements statements_;
};

std::string run_slice(Transfer& transfer, const Slice& slice, const std::string& values) {
  return SliceRun(transfer, slice, values).finish();
}

}  // namespace

Test(target_catalogue, says_everything_of_a_table) {
  Live live(schema);
  live.sql(R"(
    CREATE DOMAIN rf_target.positive AS numeric(12,2) NOT NULL CHECK (VALUE > 0);
    CREATE TABLE rf_target.other (id int PRIMARY KEY);
    CREATE TABLE rf_target."Odd t" (
      id int GENERATED ALWAYS AS IDENTITY (INCREMENT BY 2) PRIMARY KEY, n serial, price rf_target.positive,
      "Name ""x""" varchar(20) COLLATE "C" DEFAULT 'a''b', twice numeric GENERATED ALWAYS AS (price * 2) STORED,
      tags text[], other int REFERENCES rf_target.other, free numeric, CONSTRAINT small CHECK (n < 100),
      UNIQUE (n, price));
    CREATE INDEX odd_idx ON rf_target."Odd t" USING btree (lower("Name ""x""")) WHERE n > 1;
    CREATE FUNCTION rf_target.f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
    CREATE TRIGGER tr BEFORE INSERT ON rf_target."Odd t" FOR EACH ROW EXECUTE FUNCTION rf_target.f();
    ALTER TABLE rf_target."Odd t" ENABLE ALWAYS TRIGGER tr;
    CREATE RULE ru AS ON INSERT TO rf_target."Odd t" DO ALSO NOTHING;
    CREATE POLICY po ON rf_target."Odd t" USING (true);
    CREATE TABLE rf_target.holder (o int REFERENCES rf_target."Odd t");
    GRANT SELECT ON rf_target."Odd t" TO PUBLIC; GRANT UPDATE (other) ON rf_target."Odd t" TO pg_monitor;
    CREATE PUBLICATION rf_target_pub FOR TABLE rf_target."Odd t";
  )");
  const TableFacts table = facts(live, "Odd t");
  live.sql("DROP PUBLICATION rf_target_pub");
  cr_assert(table.exists);
  cr_assert_eq(table.columns.size(), 8u);
  cr_expect_eq(table.columns[0].identity, 'a');
  cr_expect_eq(table.columns[0].increment, 2);
  EXPECT_TEXT(table.columns[0].sequence, "rf_target.\"Odd t_id_seq\"");
  cr_expect(not table.columns[0].nullable);
  EXPECT_TEXT(table.columns[1].sequence, "rf_target.\"Odd t_n_seq\"");
  EXPECT_TEXT(table.columns[2].native, "rf_target.positive");
  cr_expect_eq(table.columns[2].type.oid, 1700u);
  cr_expect(not table.columns[2].nullable);
  EXPECT_TEXT(table.columns[3].name, "Name \"x\"");
  EXPECT_TEXT(table.columns[3].native, "character varying(20)");
  EXPECT_TEXT(table.columns[3].collation, "pg_catalog.\"C\"");
  EXPECT_TEXT(table.columns[3].expression, "'a''b'::character varying");
  cr_expect(not table.columns[4].insertable());
  cr_expect(table.columns[5].type.array);
  cr_assert_eq(table.indexes.size(), 3u);
  EXPECT_TEXT(table.indexes[0].constraint, "PRIMARY KEY (id)");
  EXPECT_TEXT(joined(table.indexes[0].columns), "id");
  const auto plain = std::ranges::find(table.indexes, "odd_idx", &IndexFacts::name);
  cr_assert(plain != table.indexes.end());
  EXPECT_TEXT(plain->definition, "USING btree (lower((\"Name \"\"x\"\"\")::text)) WHERE (n > 1)");
  EXPECT_TEXT(plain->constraint, "");
  const auto unique = std::ranges::find(table.indexes, "UNIQUE (n, price)", &IndexFacts::constraint);
  cr_assert(unique != table.indexes.end());
  cr_expect_eq(unique->columns.size(), 2u);
  cr_assert_eq(table.constraints.size(), 2u);
  EXPECT_TEXT(table.constraints[0].definition, "CHECK ((n < 100))");
  cr_assert_eq(table.triggers.size(), 1u);
  cr_expect_eq(table.triggers[0].enabled, 'A');
  cr_expect(table.insert_rules);
  EXPECT_TEXT(joined(table.policies), "po");
  EXPECT_TEXT(joined(table.grants), "SELECT|PUBLIC|f, UPDATE (other)|pg_monitor|f");
  EXPECT_TEXT(grant_statement(table.grants[1], "t"), "GRANT UPDATE (other) ON TABLE t TO pg_monitor");
  EXPECT_TEXT(joined(table.referenced_by), "holder_o_fkey of rf_target.holder");
  EXPECT_TEXT(joined(table.publications), "rf_target_pub");
  EXPECT_TEXT(table.definition(), facts(live, "Odd t").definition().empty() ? "" : table.definition());
  const Rights rights = live.run(read_rights(*live.admin, table));
  cr_expect(rights.owner and rights.insert and rights.truncate and rights.create_in_schema);
}

Test(target_catalogue, a_changed_table_has_another_definition) {
  Live live(schema);
  live.sql("CREATE TABLE rf_target.t (a int)");
  const std::string before = facts(live, "t").definition();
  EXPECT_TEXT(facts(live, "t").definition(), before);
  live.sql("ALTER TABLE rf_target.t ADD b int");
  cr_expect(facts(live, "t").definition() != before);
  cr_expect(not facts(live, "absent").exists);
  EXPECT_TEXT(error_code([&] { live.run(read_table(*live.admin, "no_such_schema", "t")); }), "schema_missing");
}

Test(target_catalogue, partitions_with_their_bounds) {
  Live live(schema);
  live.sql(R"(
    CREATE TABLE rf_target.l (s varchar(9) COLLATE "C", v int) PARTITION BY LIST (s);
    CREATE TABLE rf_target.l1 PARTITION OF rf_target.l FOR VALUES IN ('it''s', 'b\', NULL);
    CREATE TABLE rf_target.ld PARTITION OF rf_target.l DEFAULT;
    CREATE TABLE rf_target.r (d timestamp, n numeric) PARTITION BY RANGE (d);
    CREATE TABLE rf_target.r2 PARTITION OF rf_target.r FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
    CREATE TABLE rf_target.r1 PARTITION OF rf_target.r FOR VALUES FROM (MINVALUE) TO ('2023-06-01');
    CREATE TABLE rf_target.e (a int) PARTITION BY LIST ((a % 2));
    CREATE TABLE rf_target.h (a int) PARTITION BY HASH (a);
    CREATE TABLE rf_target.h0 PARTITION OF rf_target.h FOR VALUES WITH (modulus 2, remainder 0);
  )");
  const TableFacts list = facts(live, "l");
  EXPECT_TEXT(list.partition_by, "list");
  EXPECT_TEXT(list.partition_column, "s");
  cr_assert_eq(list.partitions.size(), 2u);
  const std::vector<std::optional<std::string>> values{"it's", "b\\", std::nullopt};
  cr_expect(list.partitions[0].bound.values == values);
  cr_expect(list.partitions[1].bound.is_default());
  const TableFacts range = facts(live, "r");
  EXPECT_TEXT(range.partition_by, "range");
  EXPECT_TEXT(facts(live, "e").partition_by, "list");
  EXPECT_TEXT(facts(live, "e").partition_column, "");
  EXPECT_TEXT(facts(live, "h").partition_by, "hash");
  const TableFacts leaf = facts(live, "r2");
  EXPECT_TEXT(leaf.parent, "rf_target.r");
  // The gap between the partitions and what is above them have ranges of their own.
  const auto bounds = live.run(range_bounds_of(
      *live.admin, range, range.columns[0].name.empty() ? rows::Type{} : load_type(range.columns[0].type, 2).type));
  cr_assert_eq(bounds.size(), 4u);
  cr_expect(not bounds[0].low);
  EXPECT_TEXT(bounds[0].high.value_or(""), "2023-06-01 00:00:00");
  EXPECT_TEXT(bounds[1].low.value_or(""), "2023-06-01 00:00:00");
  EXPECT_TEXT(bounds[1].high.value_or(""), "2024-01-01 00:00:00");
  cr_expect(not bounds[3].high);
}

Test(target_describe, columns_as_the_engine_sees_them) {
  Live live(schema);
  live.sql(R"(
    CREATE TYPE rf_target.mood AS ENUM ('happy', 'sad');
    CREATE TABLE rf_target.t (
      a smallint PRIMARY KEY, b numeric(12,2), c numeric, d varchar(7), e char(3), f jsonb, g timestamptz(3), h bytea,
      i rf_target.mood, j interval, k int GENERATED ALWAYS AS IDENTITY, l int GENERATED ALWAYS AS (a + 1) STORED,
      m int DEFAULT 7 NOT NULL, n xml, o time, p int[]) PARTITION BY RANGE (a);
    CREATE TABLE rf_target.t1 PARTITION OF rf_target.t FOR VALUES FROM (1) TO (10);
  )");
  const auto target = live.connection->make_target();
  const system::TargetTable table = live.run(target->describe(request_for("t", Mode::append)));
  cr_assert(table.exists);
  EXPECT_TEXT(table.server.product, "PostgreSQL");
  cr_assert_eq(table.columns.size(), 16u);
  const auto type = [&](std::size_t i) { return rows::to_string(table.columns[i].type); };
  EXPECT_TEXT(type(0), "int16");
  EXPECT_TEXT(type(1), "decimal(12,2)");
  cr_expect(table.columns[2].any_decimal);
  EXPECT_TEXT(type(3), "text(7 characters)");
  cr_expect(table.columns[3].type.no_nul);
  cr_expect(table.columns[4].type.padded);
  cr_expect(not table.columns[5].compared);
  EXPECT_TEXT(type(6), "timestamp(3) with zone");
  EXPECT_TEXT(type(7), "binary");
  EXPECT_TEXT(type(8), "text");
  cr_expect(table.columns[9].loadable);
  cr_expect(table.columns[10].identity and table.columns[10].insertable);
  cr_expect(not table.columns[11].insertable);
  EXPECT_TEXT(table.columns[11].why_not, "generated");
  cr_expect(table.columns[12].has_default and not table.columns[12].nullable);
  cr_expect(not table.columns[13].compared);
  EXPECT_TEXT(joined(table.primary_key), "a");
  EXPECT_TEXT(table.partition_by, "range");
  EXPECT_TEXT(table.partition_column, "a");
  cr_expect_eq(table.partition_bounds.size(), 3u);
  cr_expect(not live.run(target->describe(request_for("absent", Mode::append))).exists);
  live.sql("CREATE VIEW rf_target.v AS SELECT 1 AS x");
  EXPECT_TEXT(error_code([&] { live.run(target->describe(request_for("v", Mode::append))); }), "not_a_table");
  TargetRequest nowhere = request_for("t", Mode::append);
  nowhere.table.parts[0] = "no_such_schema";
  EXPECT_TEXT(error_code([&] { live.run(target->describe(nowhere)); }), "schema_missing");
}

Test(target_describe, a_plan_writes_nothing_and_says_what_would_be_run) {
  Live live(schema);
  live.sql("CREATE TABLE rf_target.t (a int, b text)");
  const auto target = live.connection->make_target();
  const TargetRequest request = request_for("t", Mode::truncate);
  live.run(target->describe(request));
  const system::TargetPlan plan = live.run(target->plan(request, {planned("a", "integer")}, {}));
  cr_expect(plan.finalizer == Finalizer::insert_select);
  EXPECT_TEXT(joined(plan.unmatched_target), "b");
  const std::string all = joined(plan.statements);
  cr_expect(all.find("TRUNCATE \"rf_target\".\"t\"") != std::string::npos, "%s", all.c_str());
  EXPECT_TEXT(live.column("SELECT count(*) FROM pg_class WHERE relnamespace = 'rf_target'::regnamespace AND relkind = "
                          "'r'")[0],
              "1");
  TargetRequest many = request;
  many.workers = 100;
  EXPECT_TEXT(error_code([&] { live.run(target->plan(many, {planned("a", "integer")}, {})); }), "max_sessions");
}

Test(target_describe, rights_are_asked_for_before_anything_is_loaded) {
  Live live(schema);
  live.sql(R"(
    DO $$ BEGIN CREATE ROLE rf_target_reader LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$;
    CREATE TABLE rf_target.t (a int);
    GRANT USAGE ON SCHEMA rf_target TO rf_target_reader;
    GRANT SELECT, INSERT ON rf_target.t TO rf_target_reader;
    SET ROLE rf_target_reader;
  )");
  EXPECT_TEXT(error_code([&] { Transfer(live, request_for("t", Mode::append)); }), "right_missing");
  live.sql("RESET ROLE; GRANT CREATE ON SCHEMA rf_target TO rf_target_reader; SET ROLE rf_target_reader");
  EXPECT_TEXT(error_code([&] { Transfer(live, request_for("t", Mode::append)); }), "no error");
  EXPECT_TEXT(error_code([&] { Transfer(live, request_for("t", Mode::truncate)); }), "right_missing");
  live.sql("RESET ROLE; ALTER TABLE rf_target.t ENABLE ROW LEVEL SECURITY; SET ROLE rf_target_reader");
  EXPECT_TEXT(error_code([&] { Transfer(live, request_for("t", Mode::append)); }), "row_security");
  live.sql("RESET ROLE; DROP SCHEMA rf_target CASCADE; DROP ROLE rf_target_reader");
}

Test(target_load, a_missing_table_is_made_of_staging_with_its_key) {
  Live live(schema);
  TargetRequest request = request_for("made", Mode::append);
  request.create = true;
  request.key = {"id"};
  Transfer transfer(live, request, {planned("id", "integer", false), planned("note", "varchar(5)")});
  cr_expect(transfer.decision.finalizer == Finalizer::rename);
  transfer.load("VALUES (1, 'a'), (2, NULL)");
  cr_expect_eq(transfer.counted, 2);
  EXPECT_TEXT(live.column("SELECT conname FROM pg_constraint WHERE conrelid = 'rf_target.made'::regclass AND "
                          "contype = 'p'")[0],
              "made_pkey");
  EXPECT_TEXT(live.column("SELECT relname FROM pg_class WHERE oid = (SELECT indexrelid FROM pg_index WHERE indrelid = "
                          "'rf_target.made'::regclass)")[0],
              "made_pkey");
  EXPECT_TEXT(rows_of(live, "SELECT * FROM rf_target.made ORDER BY id"), "(1,a)(2,)");
}

Test(target_load, truncate_keeps_the_table_its_view_and_its_triggers_quiet) {
  Live live(schema);
  live.sql(R"(
    CREATE TABLE rf_target.t (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, a int,
                              b int GENERATED ALWAYS AS (a * 2) STORED);
    CREATE TABLE rf_target.log (x int);
    INSERT INTO rf_target.t (a) VALUES (100);
    CREATE VIEW rf_target.v AS SELECT a FROM rf_target.t;
    CREATE FUNCTION rf_target.f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO rf_target.log VALUES (1); RETURN NEW; END';
    CREATE TRIGGER tr BEFORE INSERT ON rf_target.t FOR EACH ROW EXECUTE FUNCTION rf_target.f();
  )");
  const auto oid = live.column("SELECT 'rf_target.t'::regclass::oid")[0];
  Transfer transfer(live, request_for("t", Mode::truncate));
  cr_expect(transfer.decision.overriding);
  transfer.load("VALUES (5, 1), (7, 2)");
  cr_expect_eq(transfer.inserted, 2u);
  cr_expect_eq(transfer.counted, 2);
  EXPECT_TEXT(rows_of(live, "SELECT * FROM rf_target.t ORDER BY id"), "(5,1,2)(7,2,4)");
  EXPECT_TEXT(rows_of(live, "SELECT * FROM rf_target.v ORDER BY a"), "(1)(2)");
  EXPECT_TEXT(live.column("SELECT 'rf_target.t'::regclass::oid")[0], oid);
  EXPECT_TEXT(live.column("SELECT count(*) FROM rf_target.log")[0], "0");
  EXPECT_TEXT(live.column("SELECT tgenabled FROM pg_trigger WHERE tgname = 'tr'")[0], "O");
  const TableFacts now = facts(live, "t");
  for (int again = 0; again < 2; ++again) {
    for (const std::string& sql : sequence_statements(now, transfer.columns)) live.sql(sql);
  }
  live.sql("INSERT INTO rf_target.t (a) VALUES (9)");
  EXPECT_TEXT(live.column("SELECT max(id) FROM rf_target.t")[0], "8");
}

Test(target_load, sequences_are_never_set_back_and_may_run_down) {
  Live live(schema);
  live.sql(R"(
    CREATE TABLE rf_target.t (a serial, b int GENERATED BY DEFAULT AS IDENTITY (INCREMENT BY -1), c int);
    INSERT INTO rf_target.t (c) SELECT 1 FROM generate_series(1, 10);
    TRUNCATE rf_target.t; INSERT INTO rf_target.t VALUES (3, -30, 0);
  )");
  const TableFacts now = facts(live, "t");
  for (const std::string& sql : sequence_statements(now, columns_of(now))) live.sql(sql);
  live.sql("INSERT INTO rf_target.t (c) VALUES (2)");
  EXPECT_TEXT(rows_of(live, "SELECT * FROM rf_target.t WHERE c = 2"), "(11,-31,2)");
  live.sql("TRUNCATE rf_target.t");
  for (const std::string& sql : sequence_statements(now, columns_of(now))) live.sql(sql);
  live.sql("INSERT INTO rf_target.t (c) VALUES (3)");
  EXPECT_TEXT(rows_of(live, "SELECT * FROM rf_target.t WHERE c = 3"), "(12,-32,3)");
}

Test(target_load, rows_of_a_table_that_others_refer_to_are_deleted) {
  Live live(schema);
  live.sql(
      "CREATE TABLE rf_target.t (id int PRIMARY KEY); CREATE TABLE rf_target.o (t int REFERENCES rf_target.t); "
      "INSERT INTO rf_target.t VALUES (1)");
  Transfer transfer(live, request_for("t", Mode::truncate));
  cr_expect(transfer.decision.clear == Decision::Clear::remove);
  cr_expect(transfer.noted("delete_instead_of_truncate"));
  transfer.load("VALUES (2)");
  EXPECT_TEXT(rows_of(live, "SELECT * FROM rf_target.t"), "(2)");
}

Test(target_load, children_that_inherit_keep_their_rows) {
  Live live(schema);
  live.sql(
      "CREATE TABLE rf_target.t (a int); CREATE TABLE rf_target.c () INHERITS (rf_target.t); "
      "INSERT INTO rf_target.t VALUES (1); INSERT INTO rf_target.c VALUES (2)");
  Transfer transfer(live, request_for("t", Mode::truncate));
  transfer.load("VALUES (3)");
  cr_expect_eq(transfer.counted, 1);
  EXPECT_TEXT(rows_of(live, "SELECT * FROM rf_target.t ORDER BY a"), "(2)(3)");
}

Test(target_load, a_rebuild_has_the_new_types_and_the_old_names) {
  Live live(schema);
  live.sql(R"(
    CREATE TABLE rf_target.t (id int GENERATED ALWAYS AS IDENTITY, n serial, note varchar(5),
                              kept text DEFAULT 'x',
                              CONSTRAINT my_key PRIMARY KEY (id));
    INSERT INTO rf_target.t (note) VALUES ('old');
  )");
  std::vector<ColumnPlan> columns = columns_of(facts(live, "t"));
  columns[2].target_native = "text";
  Transfer transfer(live, request_for("t", Mode::replace), columns);
  cr_expect(transfer.decision.rebuilds);
  transfer.load("VALUES (4, 5, 'longer than five', 'k')");
  EXPECT_TEXT(rows_of(live, "SELECT * FROM rf_target.t"), "(4,5,\"longer than five\",k)");
  const TableFacts now = facts(live, "t");
  EXPECT_TEXT(now.columns[2].native, "text");
  cr_expect_eq(now.columns[0].identity, 'a');
  EXPECT_TEXT(now.columns[0].sequence, "rf_target.t_id_seq");
  EXPECT_TEXT(now.columns[1].sequence, "rf_target.t_n_seq");
  EXPECT_TEXT(now.columns[1].expression, "nextval('rf_target.t_n_seq'::regclass)");
  EXPECT_TEXT(now.primary_key()->name, "my_key");
  for (const std::string& sql : sequence_statements(now, columns)) live.sql(sql);
  live.sql("INSERT INTO rf_target.t (note) VALUES ('next')");
  EXPECT_TEXT(rows_of(live, "SELECT * FROM rf_target.t WHERE note = 'next'"), "(5,6,next,x)");
}

Test(target_load, a_rebuild_names_what_depends_and_drops_it_on_request) {
  Live live(schema);
  live.sql(R"(
    CREATE TABLE rf_target.t (id int PRIMARY KEY, note varchar(5));
    CREATE VIEW rf_target.v AS SELECT note FROM rf_target.t;
    CREATE VIEW rf_target.w AS SELECT * FROM rf_target.v;
    CREATE MATERIALIZED VIEW rf_target.m AS SELECT id FROM rf_target.t;
    CREATE TABLE rf_target.o (t int REFERENCES rf_target.t);
    CREATE INDEX t_note ON rf_target.t (note);
    CREATE STATISTICS rf_target.t_both ON id, note FROM rf_target.t;
    COMMENT ON COLUMN rf_target.t.note IS 'a comment';
  )");
  std::vector<ColumnPlan> columns = columns_of(facts(live, "t"));
  columns[1].target_native = "text";
  TargetRequest request = request_for("t", Mode::replace);
  EXPECT_TEXT(error_code([&] { Transfer(live, request, columns); }), "dependants");
  request.replace_dependants = true;
  Transfer transfer(live, request, columns);
  const auto drops = [&](std::string_view what) {
    return std::ranges::find(transfer.decision.dropped, what) != transfer.decision.dropped.end();
  };
  cr_expect(drops("view rf_target.v"));
  cr_expect(drops("materialized view rf_target.m"));
  cr_expect(drops("foreign key o_t_fkey of rf_target.o"));
  cr_expect(drops("index \"t_note\""));
  cr_expect(drops("extended statistics t_both"));
  cr_expect(drops("comment on column note of table rf_target.t"));
  transfer.load("VALUES (1, 'new note')");
  EXPECT_TEXT(rows_of(live, "SELECT * FROM rf_target.t"), "(1,\"new note\")");
  EXPECT_TEXT(live.column("SELECT count(*) FROM pg_class WHERE relnamespace = 'rf_target'::regnamespace AND relkind IN "
                          "('v', 'm')")[0],
              "0");
}

Test(target_load, functions_with_the_row_type_cannot_be_dropped) {
  Live live(schema);
  live.sql(
      "CREATE TABLE rf_target.t (a int); CREATE FUNCTION rf_target.g(rf_target.t) RETURNS int LANGUAGE sql AS "
      "'SELECT 1'");
  std::vector<ColumnPlan> columns = columns_of(facts(live, "t"));
  columns[0].target_native = "bigint";
  TargetRequest request = request_for("t", Mode::replace);
  request.replace_dependants = true;
  EXPECT_TEXT(error_code([&] { Transfer(live, request, columns); }), "dependants");
}

Test(target_load, partitions_are_made_for_staged_values) {
  Live live(schema);
  TargetRequest request = request_for("p", Mode::truncate);
  request.create = true;
  request.partition_by = "list";
  request.partition_column = "store";
  Transfer made(live, request, {planned("id", "integer", false), planned("store", "text")});
  cr_expect(made.decision.finalizer == Finalizer::insert_select);
  made.load("VALUES (1, 'a'), (2, 'A'), (3, NULL), (4, 'null'), (5, repeat('long', 20)), (6, '')");
  cr_expect_eq(made.inserted, 6u);
  EXPECT_TEXT(live.column("SELECT count(*) FROM pg_inherits WHERE inhparent = 'rf_target.p'::regclass")[0], "6");
  EXPECT_TEXT(rows_of(live, "SELECT * FROM rf_target.p_a"), "(1,a)");
  EXPECT_TEXT(rows_of(live, "SELECT * FROM rf_target.p_null"), "(3,)");
  Transfer again(live, request);
  again.load("VALUES (7, 'a'), (8, 'b')");
  cr_expect_eq(again.counted, 2);
  EXPECT_TEXT(rows_of(live, "SELECT * FROM rf_target.p_b"), "(8,b)");
}

Test(target_load, mode_replace_partitions_a_table_anew) {
  Live live(schema);
  live.sql(R"(
    CREATE TABLE rf_target.t (id int GENERATED BY DEFAULT AS IDENTITY, n serial, store text,
                              CONSTRAINT my_key PRIMARY KEY (id, store));
    INSERT INTO rf_target.t (store) VALUES ('old');
  )");
  TargetRequest request = request_for("t", Mode::truncate);
  request.partition_by = "list";
  request.partition_column = "store";
  EXPECT_TEXT(error_code([&] { Transfer(live, request); }), "partitioned_differently");
  request.mode = Mode::replace;
  Transfer transfer(live, request);
  cr_expect(transfer.decision.rebuilds);
  transfer.load("VALUES (4, 5, 'a'), (6, 7, 'b')");
  cr_expect_eq(transfer.counted, 2);
  const TableFacts now = facts(live, "t");
  EXPECT_TEXT(now.partition_column, "store");
  EXPECT_TEXT(now.primary_key()->name, "my_key");
  EXPECT_TEXT(now.columns[1].sequence, "rf_target.t_n_seq");
  for (const std::string& sql : sequence_statements(now, transfer.columns)) live.sql(sql);
  live.sql("INSERT INTO rf_target.t (store) VALUES ('a')");
  EXPECT_TEXT(rows_of(live, "SELECT * FROM rf_target.t ORDER BY id"), "(4,5,a)(6,7,b)(7,8,a)");
  // And by another column again, with the key given up.
  request.partition_column = "n";
  EXPECT_TEXT(error_code([&] { Transfer(live, request); }), "dependants");
  request.replace_dependants = true;
  Transfer again(live, request);
  again.load("VALUES (1, 1, 'a'), (2, 1, 'b')");
  EXPECT_TEXT(rows_of(live, "SELECT * FROM rf_target.t_1 ORDER BY id"), "(1,1,a)(2,1,b)");
}

Test(target_load, range_partitions_have_the_bounds_of_the_slices) {
  Live live(schema);
  TargetRequest request = request_for("p", Mode::truncate);
  request.create = true;
  request.partition_by = "range";
  request.partition_column = "n";
  Transfer made(live, request, {planned("n", "integer")});
  made.load("VALUES (1), (15), (NULL)", {range_slice(0, "n", std::nullopt, "10"), range_slice(1, "n", "10", "20"),
                                         range_slice(2, "n", "20", std::nullopt), value_slice(3, "n", std::nullopt)});
  cr_expect_eq(made.inserted, 3u);
  EXPECT_TEXT(joined(live.column("SELECT relname FROM pg_class WHERE relispartition AND relnamespace = "
                                 "'rf_target'::regnamespace ORDER BY 1")),
              "p_10_to_20, p_min_to_10, p_null");
}

Test(target_slices, each_slice_renews_its_partition) {
  Live live(schema);
  live.sql(R"(
    CREATE TABLE rf_target.p (id int NOT NULL, store varchar(9) COLLATE "C", CONSTRAINT pos CHECK (id > 0),
                              PRIMARY KEY (id, store)) PARTITION BY LIST (store);
    CREATE INDEX p_id ON rf_target.p (id);
    CREATE TABLE rf_target.p1 PARTITION OF rf_target.p FOR VALUES IN ('it''s');
    CREATE TABLE rf_target.gone PARTITION OF rf_target.p FOR VALUES IN ('gone');
    CREATE TABLE rf_target.log (x int);
    CREATE FUNCTION rf_target.f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO rf_target.log VALUES (1); RETURN NEW; END';
    CREATE TRIGGER tr AFTER INSERT ON rf_target.p FOR EACH ROW EXECUTE FUNCTION rf_target.f();
    INSERT INTO rf_target.p VALUES (1, 'it''s'), (2, 'gone'); TRUNCATE rf_target.log;
  )");
  TargetRequest request = request_for("p", Mode::truncate);
  request.load.commit = system::Commit::slice;
  request.load.unlogged = true;
  Transfer transfer(live, request);
  cr_expect(transfer.decision.finalizer == Finalizer::per_slice);
  EXPECT_TEXT(run_slice(transfer, value_slice(0, "store", "it's"), "VALUES (5, 'it''s')"), "\"rf_target\".\"p1\"");
  EXPECT_TEXT(run_slice(transfer, value_slice(1, "store", "New"), "VALUES (6, 'New')"),
              "\"rf_target\".\"p_new_" +
                  fmt::format("{}", live.column("SELECT right(relname, 8) FROM pg_class WHERE "
                                                "relname LIKE 'p\\_new\\_%' AND relkind = 'r'")[0]) +
                  "\"");
  EXPECT_TEXT(rows_of(live, "SELECT * FROM rf_target.p ORDER BY id"), "(2,gone)(5,it's)(6,New)");
  EXPECT_TEXT(live.column("SELECT count(*) FROM rf_target.log")[0], "0");
  EXPECT_TEXT(live.column("SELECT string_agg(DISTINCT tgenabled::text, '') FROM pg_trigger WHERE tgname = 'tr'")[0],
              "O");
  EXPECT_TEXT(live.column("SELECT relpersistence FROM pg_class WHERE oid = 'rf_target.p1'::regclass")[0], "u");
  // Every index and key of the table has its counterpart, none was made twice, and the helping check is gone.
  EXPECT_TEXT(live.column("SELECT count(*) FROM pg_index WHERE indrelid = (SELECT oid FROM pg_class WHERE relname LIKE "
                          "'p\\_new\\_%' AND relkind = 'r')")[0],
              "2");
  EXPECT_TEXT(live.column("SELECT count(*) FROM pg_constraint WHERE conname = 'rowferry_bound'")[0], "0");
  const TableFacts now = facts(live, "p");
  const std::vector<std::string> vanished = live.run(vanished_partitions(
      *live.admin, now, transfer.columns, {value_slice(0, "store", "it's"), value_slice(1, "store", "New")}));
  EXPECT_TEXT(joined(vanished), "TRUNCATE \"rf_target\".\"gone\"");
}

Test(target_slices, exchange_replaces_the_partitions_table) {
  Live live(schema);
  live.sql(R"(
    CREATE TABLE rf_target.p (id int NOT NULL, d date, twice int GENERATED ALWAYS AS (id * 2) STORED)
      PARTITION BY RANGE (d);
    CREATE INDEX p_id ON rf_target.p (id);
    CREATE TABLE rf_target.p1 PARTITION OF rf_target.p FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
    GRANT SELECT ON rf_target.p1 TO PUBLIC;
    INSERT INTO rf_target.p VALUES (1, '2024-05-05');
  )");
  TargetRequest request = request_for("p", Mode::truncate);
  request.load.commit = system::Commit::slice;
  request.load.exchange = true;
  Transfer transfer(live, request);
  const auto before = live.column("SELECT 'rf_target.p1'::regclass::oid")[0];
  const Slice slice = range_slice(0, "d", "2024-01-01", "2025-01-01");
  for (int again = 0; again < 2; ++again) {
    EXPECT_TEXT(run_slice(transfer, slice, "(id, d) VALUES (9, '2024-02-02')"), "\"rf_target\".\"p1\"");
  }
  cr_expect(live.column("SELECT 'rf_target.p1'::regclass::oid")[0] != before);
  EXPECT_TEXT(rows_of(live, "SELECT * FROM rf_target.p"), "(9,2024-02-02,18)");
  EXPECT_TEXT(live.column("SELECT has_table_privilege('pg_monitor', 'rf_target.p1', 'SELECT')")[0], "t");
  EXPECT_TEXT(
      joined(live.column("SELECT relname FROM pg_class WHERE relnamespace = 'rf_target'::regnamespace ORDER BY 1")),
      "p, p1, p1_1_idx, p_id");
}

Test(target_slices, keys_of_the_table_are_the_partitions) {
  Live live(schema);
  live.sql(R"(
    CREATE TABLE rf_target.other (id int PRIMARY KEY); INSERT INTO rf_target.other VALUES (1), (2);
    CREATE TABLE rf_target.p (id int GENERATED BY DEFAULT AS IDENTITY, v int, o int REFERENCES rf_target.other,
                              PRIMARY KEY (id, v), UNIQUE (v, o)) PARTITION BY LIST (v);
  )");
  for (const bool exchange : {false, true, true}) {
    TargetRequest request = request_for("p", Mode::truncate);
    request.load.commit = system::Commit::slice;
    request.load.exchange = exchange;
    Transfer transfer(live, request);
    run_slice(transfer, value_slice(0, "v", "7"), "VALUES (1, 7, 2)");
    cr_expect_eq(facts(live, "p").partitions.size(), 1u);
    EXPECT_TEXT(error_code([&] { run_slice(transfer, value_slice(0, "v", "7"), "VALUES (1, 7, 99)"); }),
                "server_error");
  }
  EXPECT_TEXT(live.column("SELECT count(*) FROM pg_index WHERE indrelid = 'rf_target.p_7'::regclass")[0], "2");
  EXPECT_TEXT(live.column("SELECT string_agg(contype::text, '' ORDER BY contype) FROM pg_constraint WHERE conrelid = "
                          "'rf_target.p_7'::regclass AND contype IN ('f', 'p', 'u')")[0],
              "fpu");
  EXPECT_TEXT(rows_of(live, "SELECT * FROM rf_target.p"), "(1,7,2)");
}

Test(target_slices, null_of_a_range_is_all_that_the_default_partition_holds) {
  Live live(schema);
  live.sql(R"(
    CREATE TABLE rf_target.p (v int) PARTITION BY RANGE (v);
    CREATE TABLE rf_target.pd PARTITION OF rf_target.p DEFAULT;
    INSERT INTO rf_target.p VALUES (NULL), (5);
  )");
  TargetRequest request = request_for("p", Mode::truncate);
  request.load.commit = system::Commit::slice;
  Transfer transfer(live, request);
  const Slice null = value_slice(0, "v", std::nullopt);
  EXPECT_TEXT(error_code([&] { run_slice(transfer, null, "VALUES (NULL)"); }), "default_partition_rows");
  live.sql("DELETE FROM rf_target.p WHERE v = 5");
  run_slice(transfer, null, "VALUES (NULL), (NULL)");
  EXPECT_TEXT(live.column("SELECT count(*) FROM rf_target.p")[0], "2");
}

// Each has its partition's locks only, and the table's at the very end: none waits for another's whole load.
Test(target_slices, run_side_by_side) {
  Live live(schema);
  live.sql(R"(
    CREATE TABLE rf_target.p (v int, note text DEFAULT 'x') PARTITION BY LIST (v);
    CREATE INDEX p_v ON rf_target.p (v);
    CREATE TABLE rf_target.p1 PARTITION OF rf_target.p FOR VALUES IN (1);
    CREATE TABLE rf_target.p2 PARTITION OF rf_target.p FOR VALUES IN (2);
    CREATE TABLE rf_target.pd PARTITION OF rf_target.p DEFAULT;
    INSERT INTO rf_target.p VALUES (1), (2), (9);
  )");
  for (const bool exchange : {false, true}) {
    TargetRequest request = request_for("p", Mode::truncate);
    request.load.commit = system::Commit::slice;
    request.load.exchange = exchange;
    Transfer transfer(live, request);
    SliceRun first(transfer, value_slice(0, "v", "1"), "VALUES (1, 'a')");
    SliceRun second(transfer, value_slice(1, "v", "2"), "VALUES (2, 'b')");
    SliceRun third(transfer, value_slice(2, "v", exchange ? "3" : "4"), fmt::format("VALUES ({})", exchange ? 3 : 4));
    SliceRun fourth(transfer, value_slice(3, "v", exchange ? "5" : "6"), fmt::format("VALUES ({})", exchange ? 5 : 6));
    third.finish();
    second.finish();
    first.finish();
    fourth.finish();
  }
  EXPECT_TEXT(rows_of(live, "SELECT v FROM rf_target.p ORDER BY v"), "(1)(2)(3)(4)(5)(6)(9)");
}

Test(target_slices, bounds_are_compared_in_the_columns_type) {
  Live live(schema);
  live.sql(R"(
    CREATE TABLE rf_target.n (v numeric) PARTITION BY LIST (v);
    CREATE TABLE rf_target.n1 PARTITION OF rf_target.n FOR VALUES IN (1.50);
    CREATE TABLE rf_target.n2 PARTITION OF rf_target.n FOR VALUES IN (2, 3);
    CREATE TABLE rf_target.c (v public.citext) PARTITION BY LIST (v);
    CREATE TABLE rf_target.c1 PARTITION OF rf_target.c FOR VALUES IN ('abc');
    CREATE TABLE rf_target.b (v bytea) PARTITION BY LIST (v);
    CREATE TABLE rf_target.b1 PARTITION OF rf_target.b FOR VALUES IN ('\x0102');
    CREATE TABLE rf_target.t (v timestamptz) PARTITION BY RANGE (v);
    CREATE TABLE rf_target.t1 PARTITION OF rf_target.t FOR VALUES FROM ('2024-01-01 00:00+02') TO (MAXVALUE);
  )");
  const auto find = [&](const std::string& table, const std::vector<Slice>& slices) {
    TargetRequest request = request_for(table, Mode::truncate);
    request.load.commit = system::Commit::slice;
    const Transfer transfer(live, request);
    return live.run(
        find_partitions(*live.admin, transfer.situation.table, transfer.decision, transfer.columns, slices));
  };
  EXPECT_TEXT(find("n", {value_slice(0, "v", "1.5")})[0].existing->name, "n1");
  EXPECT_TEXT(find("c", {value_slice(0, "v", "ABC")})[0].existing->name, "c1");
  EXPECT_TEXT(find("b", {value_slice(0, "v", "0x0102")})[0].existing->name, "b1");
  EXPECT_TEXT(find("t", {range_slice(0, "v", "2023-12-31 22:00:00+00:00", std::nullopt)})[0].existing->name, "t1");
  EXPECT_TEXT(error_code([&] { find("n", {value_slice(0, "v", "3")}); }), "partition_bounds");
  EXPECT_TEXT(error_code([&] { find("c", {value_slice(0, "v", "x"), value_slice(1, "v", "X")}); }), "partition_bounds");
  EXPECT_TEXT(error_code([&] { find("t", {range_slice(0, "v", "2024-05-05 00:00:00+00:00", std::nullopt)}); }),
              "partition_bounds");
  EXPECT_TEXT(error_code([&] { find("n", {range_slice(0, "v", "1", "2")}); }), "commit_slice_needs_partition");
}

Test(target_slices, a_default_partition_must_not_hold_rows_of_a_new_one) {
  Live live(schema);
  live.sql(R"(
    CREATE TABLE rf_target.p (v int) PARTITION BY LIST (v);
    CREATE TABLE rf_target.pd PARTITION OF rf_target.p DEFAULT;
    INSERT INTO rf_target.p VALUES (7);
  )");
  TargetRequest request = request_for("p", Mode::truncate);
  request.load.commit = system::Commit::slice;
  Transfer transfer(live, request);
  EXPECT_TEXT(error_code([&] { run_slice(transfer, value_slice(0, "v", "7"), "VALUES (7)"); }),
              "default_partition_rows");
  EXPECT_TEXT(run_slice(transfer, value_slice(1, "v", "8"), "VALUES (8)"), "\"rf_target\".\"p_8\"");
}

Test(target_load, one_partition_is_exchanged_for_staging) {
  Live live(schema);
  live.sql(R"(
    CREATE TABLE rf_target.p (id int NOT NULL, s text, PRIMARY KEY (id, s)) PARTITION BY LIST (s);
    CREATE TABLE rf_target.leaf PARTITION OF rf_target.p FOR VALUES IN ('a', 'b');
    INSERT INTO rf_target.p VALUES (1, 'a');
  )");
  TargetRequest request = request_for("leaf", Mode::truncate);
  request.load.exchange = true;
  Transfer transfer(live, request);
  cr_expect(transfer.decision.finalizer == Finalizer::exchange);
  transfer.load("VALUES (2, 'b')");
  cr_expect_eq(transfer.counted, 1);
  EXPECT_TEXT(rows_of(live, "SELECT * FROM rf_target.p"), "(2,b)");
  EXPECT_TEXT(
      joined(live.column("SELECT relname FROM pg_class WHERE relnamespace = 'rf_target'::regnamespace ORDER BY 1")),
      "leaf, leaf_pkey, p, p_pkey");
  EXPECT_TEXT(error_code([&] { Transfer(live, request).stage("VALUES (3, 'other')"); }), "server_error");
}

Test(target_load, a_tablespace_must_be_there) {
  Live live(schema);
  std::string why;
  cr_expect(live.run(tablespace_usable(*live.admin, "pg_default", why)));
  cr_expect(not live.run(tablespace_usable(*live.admin, "nowhere", why)));
  cr_expect(why.find("nowhere") != std::string::npos);
  cr_expect(not live.run(tablespace_usable(*live.admin, "pg_global", why)));
}
