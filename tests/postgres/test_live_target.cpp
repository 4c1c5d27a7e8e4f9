#include "tests/postgres/live_target.hpp"

using namespace rowferry;
using namespace rowferry::postgres;
using namespace rowferry::postgres::live_target;

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
