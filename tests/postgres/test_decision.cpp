#include "tests/postgres/decision_support.hpp"

using namespace rowferry;
using namespace rowferry::postgres;
using namespace rowferry::postgres::situations;

// --- a missing table

Test(decision, a_missing_table_is_made_of_staging) {
  TargetRequest r = request(Mode::append);
  EXPECT_TEXT(code_of(missing(), r), "table_missing");
  r.create = true;
  const Situation s = missing();
  const Decision d = decide(s, r, both, {"id"});
  cr_expect(d.creates);
  cr_expect(d.finalizer == Finalizer::rename);
  EXPECT_TEXT(create_staging(d, "shop", "stage"),
              "CREATE TABLE \"shop\".\"stage\" (\"id\" integer NOT NULL, \"note\" text)");
  EXPECT_TEXT(statements(s, d, r),
              lines({"ALTER TABLE \"shop\".\"stage\" ADD CONSTRAINT \"stage_key\" PRIMARY KEY (\"id\")",
                     "ALTER TABLE \"shop\".\"stage\" RENAME TO \"orders\"; ALTER TABLE \"shop\".\"orders\" RENAME "
                     "CONSTRAINT \"stage_key\" TO \"orders_pkey\"",
                     plain_count}));
}

Test(decision, the_key_of_the_spec_comes_before_the_sources) {
  TargetRequest r = request(Mode::append);
  r.create = true;
  r.key = {"note"};
  const Decision d = decide(missing(), r, both, {"id"});
  EXPECT_TEXT(d.key, "PRIMARY KEY (\"note\")");
  EXPECT_TEXT(d.staging[1].definition, "text NOT NULL");
  r.key = {"absent"};
  EXPECT_TEXT(code_of(missing(), r), "key_impossible");
  r.key = {"note"};
  EXPECT_TEXT(code_of(missing(), r, {loaded("note", "json")}), "key_impossible");
}

Test(decision, a_source_key_that_is_not_carried_makes_no_key) {
  TargetRequest r = request(Mode::append);
  r.create = true;
  EXPECT_TEXT(decide(missing(), r, both, {"id", "other"}).key, "");
}

Test(decision, unlogged_and_tablespace_are_where_tables_are_made) {
  TargetRequest r = request(Mode::append);
  r.create = true;
  r.load.unlogged = true;
  r.load.tablespace = "fast disk";
  Situation s = missing();
  const Decision d = decide(s, r, both, {});
  EXPECT_TEXT(
      create_staging(d, "shop", "stage"),
      "CREATE UNLOGGED TABLE \"shop\".\"stage\" (\"id\" integer NOT NULL, \"note\" text) TABLESPACE \"fast disk\"");
  cr_expect(has_notice(d, "tablespace"));
  cr_expect(has_notice(d, "unlogged"));
  s.tablespace_usable = false;
  s.tablespace_why = "none";
  EXPECT_TEXT(code_of(s, r), "tablespace_missing");
}

Test(decision, freeze_creates_and_loads_in_one_transaction_of_one_worker) {
  TargetRequest r = request(Mode::append, 1);
  r.create = true;
  r.load.freeze = true;
  const Situation s = missing();
  const Decision d = decide(s, r, both, {"id"});
  cr_expect(d.finalizer == Finalizer::direct);
  cr_expect(d.freeze);
  const std::vector<std::string> before = direct_statements(d, s.table);
  cr_assert_eq(before.size(), 1u);
  EXPECT_TEXT(before[0], "CREATE TABLE \"shop\".\"orders\" (\"id\" integer NOT NULL, \"note\" text)");
  const auto after = finalize_statements(d, s.table, "", both, r);
  cr_assert_eq(after.size(), 1u);
  EXPECT_TEXT(after[0].sql, "ALTER TABLE \"shop\".\"orders\" ADD PRIMARY KEY (\"id\")");
  r.workers = 2;
  const Decision plain = decide(s, r, both, {});
  cr_expect(plain.finalizer == Finalizer::rename);
  cr_expect(not plain.freeze);
  cr_expect(has_notice(plain, "freeze_not_possible"));
}

Test(decision, names_that_are_too_long_or_fold_to_one_are_refused) {
  TargetRequest r = request(Mode::append);
  r.create = true;
  EXPECT_TEXT(code_of(missing(), r, {loaded("Id", "integer"), loaded("id", "integer")}), "names_collide");
  const std::string long_name(63, 'x');
  EXPECT_TEXT(code_of(missing(), r, {loaded(long_name + "a", "integer"), loaded(long_name + "b", "integer")}),
              "names_collide");
  EXPECT_TEXT(code_of(missing(), r, {loaded(long_name + "a", "integer")}), "name_too_long");
  EXPECT_TEXT(code_of(missing(), r, {loaded(long_name, "integer"), loaded(long_name + "b", "integer")}),
              "names_collide");
  cr_expect(decide(missing(), r, {loaded(long_name, "integer")}, {}).creates);
  EXPECT_TEXT(code_of(missing(), r, {loaded("xmin", "integer")}), "name_reserved");
  Situation s = missing();
  s.table.name = std::string(64, 't');
  EXPECT_TEXT(code_of(s, r), "name_too_long");
  std::vector<ColumnPlan> many;
  for (int i = 0; i < 1601; ++i) many.push_back(loaded("c" + std::to_string(i), "integer"));
  EXPECT_TEXT(code_of(missing(), r, many), "too_many_columns");
}

// --- an existing table, as it is

Test(decision, append_adds_staging_to_the_rows_that_are_there) {
  const Situation s = existing();
  const TargetRequest r = request(Mode::append);
  const Decision d = decide(s, r, both, {});
  cr_expect(d.finalizer == Finalizer::insert_select);
  cr_expect(d.clear == Decision::Clear::nothing);
  EXPECT_TEXT(statements(s, d, r), plain_insert);
  cr_expect(not d.reason.empty());
}

Test(decision, truncate_replaces_all_rows_at_once_and_keeps_the_table) {
  for (const Mode mode : {Mode::truncate, Mode::replace}) {
    const Situation s = existing();
    const TargetRequest r = request(mode);
    const Decision d = decide(s, r, both, {});
    cr_expect(not d.rebuilds);
    EXPECT_TEXT(statements(s, d, r), lines({"TRUNCATE \"shop\".\"orders\"", plain_insert, plain_count}));
  }
}

Test(decision, an_existing_table_is_an_error_where_the_mode_says_so) {
  TargetRequest r = request(Mode::fail_if_exists);
  EXPECT_TEXT(code_of(existing(), r), "target_exists");
  r.own_table = true;
  cr_expect(not decide(existing(), r, both, {}).creates);
  r.own_table = false;
  Situation s = existing();
  s.made_by_us = true;
  cr_expect(not decide(s, r, both, {}).creates);
}

Test(decision, rows_are_deleted_where_truncate_is_not_possible) {
  Situation s = existing();
  s.table.referenced_by = {"lines_fk of shop.lines"};
  const TargetRequest r = request(Mode::truncate);
  Decision d = decide(s, r, both, {});
  cr_expect(d.clear == Decision::Clear::remove);
  cr_expect(has_notice(d, "delete_instead_of_truncate"));
  cr_expect(statements(s, d, r).starts_with("DELETE FROM \"shop\".\"orders\""));
  s.table.referenced_by.clear();
  s.rights.truncate = false;
  d = decide(s, r, both, {});
  cr_expect(d.clear == Decision::Clear::remove);
  s.rights.remove = false;
  EXPECT_TEXT(code_of(s, r), "right_missing");
}

Test(decision, one_worker_into_an_empty_table_needs_no_staging) {
  Situation s = existing();
  s.empty = true;
  cr_expect(decide(s, request(Mode::append, 1), both, {}).finalizer == Finalizer::direct);
  cr_expect(decide(s, request(Mode::append, 2), both, {}).finalizer == Finalizer::insert_select);
  TargetRequest content = request(Mode::append, 1);
  content.verify = system::Verify::content;
  cr_expect(decide(s, content, both, {}).finalizer == Finalizer::insert_select);
  s.planned = Finalizer::direct;
  s.empty = false;
  cr_expect(decide(s, request(Mode::append, 1), both, {}).finalizer == Finalizer::direct, "the plan stays");
  s.planned = Finalizer::insert_select;
  s.empty = true;
  cr_expect(decide(s, request(Mode::append, 1), both, {}).finalizer == Finalizer::insert_select);
}

Test(decision, freeze_into_an_existing_table_truncates_in_the_loads_transaction) {
  TargetRequest r = request(Mode::truncate, 1);
  r.load.freeze = true;
  Situation s = existing();
  s.table.triggers = {{"tr", 'A'}};
  const Decision d = decide(s, r, both, {});
  cr_expect(d.finalizer == Finalizer::direct);
  cr_expect(d.freeze);
  cr_expect(has_notice(d, "locked_while_loaded"));
  const std::vector<std::string> before = direct_statements(d, s.table);
  cr_assert_eq(before.size(), 2u);
  EXPECT_TEXT(before[0], "ALTER TABLE \"shop\".\"orders\" DISABLE TRIGGER \"tr\"");
  EXPECT_TEXT(before[1], "TRUNCATE \"shop\".\"orders\"");
  EXPECT_TEXT(statements(s, d, r),
              lines({"ALTER TABLE \"shop\".\"orders\" ENABLE ALWAYS TRIGGER \"tr\"", plain_count}));
  EXPECT_TEXT(copy_statement(s.table.sql, both, "binary", d.freeze),
              "COPY \"shop\".\"orders\" (\"id\", \"note\") FROM STDIN (FORMAT binary, FREEZE)");
  // A partitioned table takes no FREEZE, and rows that stay allow none.
  cr_expect(has_notice(decide(partitioned(), r, both, {}), "freeze_not_possible"));
  r.mode = Mode::append;
  cr_expect(has_notice(decide(existing(), r, both, {}), "freeze_not_possible"));
}

Test(decision, triggers_are_quiet_for_the_insert_unless_they_are_to_fire) {
  Situation s = existing();
  s.table.triggers = {{"tr", 'O'}, {"off", 'D'}, {"replica", 'R'}};
  TargetRequest r = request(Mode::append);
  const Decision d = decide(s, r, both, {});
  EXPECT_TEXT(statements(s, d, r), lines({"ALTER TABLE \"shop\".\"orders\" DISABLE TRIGGER \"tr\"", plain_insert,
                                          "ALTER TABLE \"shop\".\"orders\" ENABLE TRIGGER \"tr\""}));
  s.rights.owner = false;
  EXPECT_TEXT(code_of(s, r), "right_missing");
  r.load.fire_triggers = true;
  const Decision fires = decide(s, r, both, {});
  EXPECT_TEXT(statements(s, fires, r), lines({"SET LOCAL search_path TO DEFAULT", plain_insert}));
  cr_expect(has_notice(fires, "triggers_fire"));
  // COPY would fire them during the whole load.
  s.rights.owner = s.empty = true;
  r = request(Mode::append, 1);
  cr_expect(decide(s, r, both, {}).finalizer == Finalizer::insert_select);
}

Test(decision, rules_that_rewrite_an_insert_are_refused) {
  Situation s = existing();
  s.table.rules = {"ru"};
  s.table.insert_rules = true;
  EXPECT_TEXT(code_of(s, request(Mode::append)), "insert_rules");
}

Test(decision, identity_columns_keep_the_sources_values) {
  Situation s = existing();
  s.table.columns[0].identity = 'a';
  s.table.columns[0].sequence = "shop.orders_id_seq";
  s.table.columns.push_back(column("twice", "integer"));
  s.table.columns[2].generated = 's';
  const TargetRequest r = request(Mode::append);
  const Decision d = decide(s, r, both, {});
  cr_expect(d.overriding);
  cr_expect(statements(s, d, r).find(" OVERRIDING SYSTEM VALUE SELECT") != std::string::npos);
  cr_expect_eq(d.staging.size(), 2u, "a generated column gets no value");
  const std::vector<std::string> sequences = sequence_statements(s.table, both);
  cr_assert_eq(sequences.size(), 1u);
  cr_expect(sequences[0].starts_with("SELECT pg_catalog.setval('shop.orders_id_seq'::pg_catalog.regclass"));
  cr_expect(sequence_statements(s.table, {loaded("note", "text")}).empty());
  // Left to the server: nothing to override.
  cr_expect(not decide(s, r, {loaded("note", "text")}, {}).overriding);
}

Test(decision, staging_has_the_tables_own_types_and_collations) {
  Situation s = existing();
  s.table.columns[1].native = "character varying(40)";
  s.table.columns[1].collation = "pg_catalog.\"C\"";
  EXPECT_TEXT(create_staging(decide(s, request(Mode::append), both, {}), "shop", "stage"),
              "CREATE TABLE \"shop\".\"stage\" (\"id\" integer NOT NULL, \"note\" character varying(40) COLLATE "
              "pg_catalog.\"C\")");
  s.table.columns.pop_back();
  EXPECT_TEXT(code_of(s, request(Mode::append)), "target_changed");
}

Test(decision, what_takes_no_rows_is_refused) {
  for (const auto& [kind, code] : {std::pair{'v', "not_a_table"}, {'m', "not_a_table"}, {'f', "table_kind"}}) {
    Situation s = existing();
    s.table.kind = kind;
    EXPECT_TEXT(code_of(s, request(Mode::append)), code);
  }
  Situation s = existing();
  s.table.row_security = true;
  EXPECT_TEXT(code_of(s, request(Mode::append)), "row_security");
}

Test(decision, rights_are_needed_for_what_will_be_done) {
  for (bool Rights::* const right : {&Rights::create_in_schema, &Rights::insert, &Rights::select}) {
    Situation s = existing();
    s.rights.*right = false;
    EXPECT_TEXT(code_of(s, request(Mode::append)), "right_missing");
  }
  Situation s = existing();
  s.rights.owner = s.rights.remove = s.rights.truncate = false;
  cr_expect(decide(s, request(Mode::append), both, {}).clear == Decision::Clear::nothing);
}

Test(decision, a_table_that_others_inherit_from_is_taken_alone) {
  Situation s = existing();
  s.table.children = {"shop.child"};
  const TargetRequest r = request(Mode::truncate);
  EXPECT_TEXT(statements(s, decide(s, r, both, {}), r),
              lines({"TRUNCATE ONLY \"shop\".\"orders\"", plain_insert,
                     "SELECT count(*) AS rows_now FROM ONLY \"shop\".\"orders\""}));
}

Test(decision, an_unlogged_table_is_said_to_be_one) {
  Situation s = existing();
  s.table.persistence = 'u';
  cr_expect(has_notice(decide(s, request(Mode::append), both, {}), "unlogged"));
  TargetRequest r = request(Mode::append);
  r.load.unlogged = true;
  const Decision d = decide(existing(), r, both, {});
  cr_expect(d.unlogged);
  cr_expect(has_notice(d, "unlogged_staging"));
}

// --- a table that gets another definition

const std::vector<ColumnPlan> retyped{loaded("id", "bigint", false), loaded("note", "text")};

Test(decision, replace_rebuilds_for_another_type) {
  Situation s = existing();
  s.table.indexes = {primary_key()};
  const TargetRequest r = request(Mode::replace);
  const Decision d = decide(s, r, retyped, {});
  cr_expect(d.rebuilds);
  cr_expect(d.finalizer == Finalizer::rename);
  EXPECT_TEXT(d.staging[0].definition, "bigint NOT NULL");
  EXPECT_TEXT(statements(s, d, r),
              lines({"ALTER TABLE \"shop\".\"stage\" ADD CONSTRAINT \"stage_key\" PRIMARY KEY (id)",
                     "DROP TABLE \"shop\".\"orders\"; ALTER TABLE \"shop\".\"stage\" RENAME TO \"orders\"; ALTER TABLE "
                     "\"shop\".\"orders\" RENAME CONSTRAINT \"stage_key\" TO \"orders_key\"",
                     plain_count}));
  for (const Mode mode : {Mode::append, Mode::truncate}) cr_expect(not decide(s, request(mode), retyped, {}).rebuilds);
}

Test(decision, a_rebuild_keeps_owner_identity_defaults_and_sequences) {
  Situation s = existing();
  s.table.owner = "boss";
  s.table.columns[0].identity = 'd';
  s.table.columns[0].sequence = "shop.orders_id_seq";
  s.table.columns.push_back(column("n", "integer", false));
  s.table.columns[2].expression = "nextval('shop.n_seq'::regclass)";
  s.table.columns[2].sequence = "shop.n_seq";
  const TargetRequest r = request(Mode::replace);
  const Decision d = decide(s, r, retyped, {});
  EXPECT_TEXT(d.staging[2].definition, "integer NOT NULL DEFAULT nextval('shop.n_seq'::regclass)");
  const std::string all = statements(s, d, r);
  cr_expect(all.find("OWNER TO boss; ALTER SEQUENCE shop.n_seq OWNED BY \"shop\".\"stage\".\"n\"; DROP TABLE") !=
                std::string::npos,
            "%s", all.c_str());
  cr_expect(all.find("ALTER COLUMN \"id\" ADD GENERATED BY DEFAULT AS IDENTITY (SEQUENCE NAME shop.orders_id_seq "
                     "INCREMENT BY 1)") != std::string::npos,
            "%s", all.c_str());
}

Test(decision, a_rebuild_that_would_drop_something_says_what) {
  Situation s = existing();
  IndexFacts index;
  index.name = "orders_note";
  index.definition = "USING btree (note)";
  s.table.indexes = {primary_key(), index};
  s.table.constraints = {{"positive", 'c', "CHECK ((id > 0))"}};
  s.table.triggers = {{"tr", 'O'}};
  s.table.policies = {"po"};
  s.table.grants = {"SELECT|reader|f"};
  s.table.columns[0].expression = "7";
  TargetRequest r = request(Mode::replace);
  EXPECT_TEXT(code_of(s, r, retyped), "dependants");
  r.replace_dependants = true;
  const Decision d = decide(s, r, retyped, {});
  const std::vector<std::string> expected{
      "default of \"id\"", "index \"orders_note\"", "check \"positive\"",
      "trigger \"tr\"",    "policy \"po\"",         "grant GRANT SELECT ON TABLE \"shop\".\"orders\" TO reader"};
  cr_expect(d.dropped == expected);
}

Test(decision, dependants_of_a_rebuilt_table_are_refused_or_dropped) {
  Situation s = existing();
  s.dependants = {{"view shop.totals", "DROP VIEW IF EXISTS shop.totals CASCADE"}};
  TargetRequest r = request(Mode::replace);
  const Error refused = error_of([&] { decide(s, r, retyped, {}); });
  EXPECT_TEXT(refused.code(), "dependants");
  cr_expect(refused.detail().find("view shop.totals") != std::string::npos);
  r.replace_dependants = true;
  const Decision d = decide(s, r, retyped, {});
  cr_expect(statements(s, d, r).find("DROP VIEW IF EXISTS shop.totals CASCADE; DROP TABLE") != std::string::npos);
  s.dependants.push_back({"function f, which has its row type", "", false});
  EXPECT_TEXT(code_of(s, r, retyped), "dependants");
}

Test(decision, what_cannot_be_rebuilt_is_refused) {
  const TargetRequest r = request(Mode::replace);
  EXPECT_TEXT(code_of(partitioned(), r, retyped), "rebuild_impossible");
  Situation s = existing();
  s.table.parent = "shop.all_orders";
  EXPECT_TEXT(code_of(s, r, retyped), "rebuild_impossible");
  EXPECT_TEXT(code_of(existing(), by_slice(Mode::replace), retyped), "rebuild_by_slices");
  s = existing();
  s.rights.owner = false;
  EXPECT_TEXT(code_of(s, r, retyped), "right_missing");
}

// --- partitions
