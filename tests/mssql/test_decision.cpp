// Decisions from catalogues as a server might give them; no server needed.
#include "mssql/decision.hpp"
#include "mssql/target.hpp"
#include "tests/support/error_of.hpp"

using namespace rowferry;
using namespace rowferry::mssql;
using system::ColumnPlan;
using system::Finalizer;
using system::Mode;
using system::TargetRequest;
using test::error_of;

namespace {

ColumnPlan loaded(std::string name, std::string native, bool nullable = true) {
  ColumnPlan plan;
  plan.source = plan.target = std::move(name);
  plan.target_native = std::move(native);
  plan.target_nullable = nullable;
  return plan;
}

ColumnFacts column(std::string name, int id, std::string native, bool nullable = true) {
  ColumnFacts facts;
  facts.name = std::move(name);
  facts.id = id;
  facts.native = std::move(native);
  facts.nullable = nullable;
  if (facts.native.find("char") != std::string::npos) facts.collation = "Latin1_General_CI_AS";
  return facts;
}

Situation existing() {
  Situation s;
  s.server.database = "dw";
  s.server.login = "ferry";
  s.table.exists = true;
  s.table.schema = "dbo";
  s.table.name = "orders";
  s.table.columns = {column("id", 1, "int", false), column("note", 2, "nvarchar(40)")};
  return s;
}

Situation missing() {
  Situation s = existing();
  s.table.exists = false;
  s.table.columns.clear();
  return s;
}

const std::vector<ColumnPlan> both{loaded("id", "int", false), loaded("note", "nvarchar(40)")};

TargetRequest request(Mode mode, int workers = 2) {
  TargetRequest r;
  r.mode = mode;
  r.workers = workers;
  return r;
}

std::vector<std::string> statements(const Situation& s, const Decision& d, Mode mode) {
  std::vector<std::string> out;
  for (FinalizeStatement& statement : finalize_statements(d, s.table, "stage", both, mode)) {
    out.push_back(std::move(statement.sql));
  }
  return out;
}

bool has_notice(const Decision& d, std::string_view code) {
  for (const system::Notice& notice : d.notices) {
    if (notice.code == code) return true;
  }
  return false;
}

IndexFacts primary_key() {
  IndexFacts key;
  key.name = "PK_orders";
  key.id = 1;
  key.type = 1;
  key.primary = key.unique = true;
  key.key = {"[id]"};
  key.key_names = {"id"};
  return key;
}

}  // namespace

Test(decision, a_missing_table_is_made_of_staging) {
  TargetRequest r = request(Mode::append);
  cr_expect(error_of([&] { decide(missing(), r, both, {}); }).code() == "table_missing");
  r.create = true;
  const Situation s = missing();
  const Decision d = decide(s, r, both, {"id"});
  cr_expect(d.creates);
  cr_expect(d.finalizer == Finalizer::rename);
  cr_expect(create_staging(d, "dbo", "stage") ==
            "CREATE TABLE [dbo].[stage] ([id] int NOT NULL, [note] nvarchar(40) NULL)");
  const std::vector<std::string> expected{"EXEC sp_rename N'[dbo].[stage]', N'orders', N'OBJECT'",
                                          "ALTER TABLE [dbo].[orders] ADD PRIMARY KEY CLUSTERED ([id])",
                                          "SELECT COUNT_BIG(*) AS rows_now FROM [dbo].[orders]"};
  cr_expect(statements(s, d, Mode::append) == expected);
}

Test(decision, the_key_of_the_spec_comes_before_the_sources) {
  TargetRequest r = request(Mode::append);
  r.create = true;
  r.key = {"note"};
  const Decision d = decide(missing(), r, both, {"id"});
  cr_expect(d.after_swap.at(0).find("PRIMARY KEY CLUSTERED ([note])") != std::string::npos);
  cr_expect(d.staging[1].definition == "nvarchar(40) NOT NULL");
  r.key = {"absent"};
  cr_expect(error_of([&] { decide(missing(), r, both, {}); }).code() == "key_impossible");
  r.key = {"note"};
  cr_expect(error_of([&] { decide(missing(), r, {loaded("note", "nvarchar(max)")}, {}); }).code() == "key_impossible");
}

Test(decision, append_adds_staging_to_the_rows_that_are_there) {
  const Situation s = existing();
  const Decision d = decide(s, request(Mode::append), both, {});
  cr_expect(d.finalizer == Finalizer::insert_select);
  cr_expect(d.clear == Decision::Clear::nothing);
  cr_expect(not d.table_lock_insert, "a live table is not locked for everybody");
  cr_expect(d.table_lock_bulk, "staging is");
  cr_expect(create_staging(d, "dbo", "stage") ==
            "CREATE TABLE [dbo].[stage] ([id] int NOT NULL, [note] nvarchar(40) COLLATE Latin1_General_CI_AS NULL)");
  cr_expect(
      statements(s, d, Mode::append) ==
      std::vector<std::string>{"INSERT INTO [dbo].[orders] ([id], [note]) SELECT [id], [note] FROM [dbo].[stage]"});
  cr_expect(not d.reason.empty());
}

Test(decision, one_worker_into_an_empty_table_needs_no_staging) {
  Situation s = existing();
  s.empty = true;
  cr_expect(decide(s, request(Mode::append, 1), both, {}).finalizer == Finalizer::direct);
  cr_expect(decide(s, request(Mode::append, 2), both, {}).finalizer == Finalizer::insert_select);
  TargetRequest content = request(Mode::append, 1);
  content.verify = system::Verify::content;
  cr_expect(decide(s, content, both, {}).finalizer == Finalizer::insert_select);
  s.planned = Finalizer::insert_select;
  cr_expect(decide(s, request(Mode::append, 1), both, {}).finalizer == Finalizer::insert_select, "the plan stays");
  s.planned = Finalizer::direct;
  s.empty = false;
  cr_expect(decide(s, request(Mode::append, 1), both, {}).finalizer == Finalizer::direct);
}

Test(decision, truncate_and_an_unchanged_replace_keep_the_table) {
  const Situation s = existing();
  for (const Mode mode : {Mode::truncate, Mode::replace}) {
    const Decision d = decide(s, request(mode), both, {});
    cr_expect(d.finalizer == Finalizer::insert_select);
    const std::vector<std::string> expected{
        "TRUNCATE TABLE [dbo].[orders]",
        "INSERT INTO [dbo].[orders] WITH (TABLOCK) ([id], [note]) SELECT [id], [note] FROM [dbo].[stage]",
        "SELECT COUNT_BIG(*) AS rows_now FROM [dbo].[orders]"};
    cr_expect(statements(s, d, mode) == expected);
  }
}

Test(decision, rows_are_deleted_where_truncate_is_not_possible) {
  Situation s = existing();
  s.table.referenced_by = {"[dbo].[lines].[fk]"};
  const Decision d = decide(s, request(Mode::truncate), both, {});
  cr_expect(d.clear == Decision::Clear::remove);
  cr_expect(has_notice(d, "delete_instead_of_truncate"));
  cr_expect(statements(s, d, Mode::truncate).front() == "DELETE FROM [dbo].[orders]");
  s = existing();
  s.rights.alter = false;
  cr_expect(decide(s, request(Mode::truncate), both, {}).clear == Decision::Clear::remove);
  s.rights.remove = false;
  const Error error = error_of([&] { decide(s, request(Mode::truncate), both, {}); });
  cr_expect(error.code() == "right_missing" && error.detail().find("DELETE on [dbo].[orders]") != std::string::npos);
}

Test(decision, fail_if_exists_fails) {
  cr_expect(error_of([] { decide(existing(), request(Mode::fail_if_exists), both, {}); }).code() == "target_exists");
}

// O-08
Test(decision, identity_values_are_kept) {
  Situation s = existing();
  s.table.columns[0].identity = true;
  const Decision d = decide(s, request(Mode::append), both, {});
  cr_expect(d.identity_insert);
  const std::vector<std::string> got = statements(s, d, Mode::append);
  cr_expect(got.front() == "SET IDENTITY_INSERT [dbo].[orders] ON");
  cr_expect(got.back() == "SET IDENTITY_INSERT [dbo].[orders] OFF");
  cr_expect(create_staging(d, "dbo", "stage").find("IDENTITY") == std::string::npos);
  cr_expect(not decide(s, request(Mode::append), {both[1]}, {}).identity_insert, "not loaded: the server numbers");
}

Test(decision, triggers_are_silenced_unless_they_are_to_fire) {
  Situation s = existing();
  s.table.triggers = {{"audit", false, false}, {"old", true, false}};
  const Decision d = decide(s, request(Mode::append), both, {});
  const std::vector<std::string> got = statements(s, d, Mode::append);
  cr_expect(got.front() == "DISABLE TRIGGER [dbo].[audit] ON [dbo].[orders]");
  cr_expect(got.back() == "ENABLE TRIGGER [dbo].[audit] ON [dbo].[orders]");
  TargetRequest r = request(Mode::append);
  r.load.fire_triggers = true;
  cr_expect(statements(s, decide(s, r, both, {}), Mode::append).size() == 1);
}

Test(decision, a_rebuild_names_what_depends_and_what_is_dropped) {
  Situation s = existing();
  s.table.indexes = {primary_key()};
  const std::vector<ColumnPlan> wider{loaded("id", "bigint", false), loaded("note", "nvarchar(40)")};
  TargetRequest r = request(Mode::replace);
  const Decision d = decide(s, r, wider, {});
  cr_expect(d.rebuilds && d.finalizer == Finalizer::rename);
  cr_expect(create_staging(d, "dbo", "stage") ==
            "CREATE TABLE [dbo].[stage] ([id] bigint NOT NULL, [note] nvarchar(40) COLLATE Latin1_General_CI_AS NULL)");
  const std::vector<std::string> expected{
      "DROP TABLE [dbo].[orders]", "EXEC sp_rename N'[dbo].[stage]', N'orders', N'OBJECT'",
      "ALTER TABLE [dbo].[orders] ADD CONSTRAINT [PK_orders] PRIMARY KEY CLUSTERED ([id])",
      "SELECT COUNT_BIG(*) AS rows_now FROM [dbo].[orders]"};
  cr_expect(statements(s, d, Mode::replace) == expected);

  s.dependants = {{"foreign key [dbo].[lines].[fk]", "ALTER TABLE [dbo].[lines] DROP CONSTRAINT [fk]", true},
                  {"trigger [audit]", "", true}};
  Error error = error_of([&] { decide(s, r, wider, {}); });
  cr_expect(error.code() == "dependants" &&
            error.detail().find("[dbo].[lines].[fk]; trigger [audit]") != std::string::npos);
  s.table.defaults = {"DF_note"};
  s.dependants.clear();
  error = error_of([&] { decide(s, r, wider, {}); });
  cr_expect(error.code() == "dependants" && error.detail().find("default [DF_note]") != std::string::npos);
  r.replace_dependants = true;
  cr_expect(decide(s, r, wider, {}).dropped == std::vector<std::string>{"default [DF_note]"});
  s.dependants = {{"replication", "", false}};
  cr_expect(error_of([&] { decide(s, r, wider, {}); }).code() == "dependants", "some things are never dropped");
}

Test(decision, a_rebuilt_identity_column_stays_one) {
  Situation s = existing();
  s.table.columns[0].identity = true;
  s.table.identity_seed = "10";
  s.table.identity_increment = "5";
  const Decision d = decide(s, request(Mode::replace), {loaded("id", "bigint", false), both[1]}, {});
  cr_expect(d.staging[0].definition == "bigint IDENTITY(10,5) NOT NULL");
}

Test(decision, what_is_no_table_is_refused) {
  Situation s = existing();
  s.table.kind = "V";
  cr_expect(error_of([&] { decide(s, request(Mode::append), both, {}); }).detail().find("a view") != std::string::npos);
  s = existing();
  s.table.history = true;
  cr_expect(error_of([&] { decide(s, request(Mode::append), both, {}); }).code() == "table_kind");
}

Test(decision, a_missing_right_is_named) {
  Situation s = existing();
  s.rights.create_table = false;
  Error error = error_of([&] { decide(s, request(Mode::append), both, {}); });
  cr_expect(error.category() == Category::forbidden);
  cr_expect(error.detail() == "the login ferry has not the right CREATE TABLE in the database [dw]");
  s = existing();
  s.rights.insert = false;
  cr_expect(error_of([&] { decide(s, request(Mode::append), both, {}); }).detail().find("INSERT on [dbo].[orders]") !=
            std::string::npos);
}

// O-02
Test(decision, a_row_that_no_page_holds_is_refused_before_the_first_row) {
  TargetRequest r = request(Mode::append);
  r.create = true;
  cr_expect(error_of([&] {
              decide(missing(), r, {loaded("a", "nchar(4000)"), loaded("b", "char(100)")}, {});
            }).code() == "row_too_large");
  std::vector<ColumnPlan> many;
  for (int i = 0; i < 1025; ++i) many.push_back(loaded("c" + std::to_string(i), "int"));
  cr_expect(error_of([&] { decide(missing(), r, many, {}); }).code() == "too_many_columns");
}

Test(decision, constraints_that_may_change_the_outcome_are_told) {
  Situation s = existing();
  s.table.checks = {{"ck", true, false}};
  IndexFacts index = primary_key();
  index.ignores_duplicates = true;
  s.table.indexes = {index};
  const Decision d = decide(s, request(Mode::append), both, {});
  cr_expect(has_notice(d, "constraint_untrusted"));
  cr_expect(has_notice(d, "ignore_dup_key"));
}

Test(decision, the_definition_tells_every_change) {
  const TableFacts before = existing().table;
  TableFacts after = before;
  cr_expect(before.definition() == after.definition());
  after.columns[1].native = "nvarchar(50)";
  cr_expect(before.definition() != after.definition());
  after = before;
  after.indexes.push_back(primary_key());
  cr_expect(before.definition() != after.definition());
  after = before;
  after.triggers.push_back({"t", false, false});
  cr_expect(before.definition() != after.definition());
}

// O-09
Test(decision, names_that_need_quoting) {
  Situation s = missing();
  s.table.schema = "my.schema";
  s.table.name = "odd]name 'x' \"y\"";
  TargetRequest r = request(Mode::append);
  r.create = true;
  const std::vector<ColumnPlan> columns{loaded("a]b", "int"), loaded("naïve ☃", "int")};
  const Decision d = decide(s, r, columns, {});
  const auto got = finalize_statements(d, s.table, "stage", columns, Mode::append);
  cr_expect(got[0].sql == "EXEC sp_rename N'[my.schema].[stage]', N'odd]name ''x'' \"y\"', N'OBJECT'");
  cr_expect(create_staging(d, "my.schema", "stage") ==
            "CREATE TABLE [my.schema].[stage] ([a]]b] int NULL, [naïve ☃] int NULL)");
}

Test(decision, created_columns_that_differ_by_case_are_refused_where_the_database_ignores_it) {
  Situation s = missing();
  TargetRequest r = request(Mode::append);
  r.create = true;
  for (const auto& [one, other] : {std::pair{"A", "a"}, {"É", "é"}, {"straße", "STRAßE"}}) {
    const std::vector<ColumnPlan> columns{loaded(one, "int"), loaded(other, "int")};
    s.server.collation = "SQL_Latin1_General_CP1_CI_AS";
    const Error error = error_of([&] { decide(s, r, columns, {}); });
    cr_expect(error.code() == "column_repeated", "%s", error.code().c_str());
    cr_expect(error.detail().find(one) != std::string::npos && error.detail().find(other) != std::string::npos);
    for (const char* collation : {"Latin1_General_CS_AS", "Latin1_General_BIN2"}) {
      s.server.collation = collation;
      cr_expect_eq(decide(s, r, columns, {}).staging.size(), 2, "%s", collation);
    }
  }
}

Test(decision, what_no_load_may_write_is_refused_by_its_name) {
  const auto code = [](std::string schema, std::string table) {
    return error_of([&] { check_place({"", std::move(schema), std::move(table), ""}); }).code();
  };
  for (const char* table : {"#tmp", "##all", "rowferry_ledger", "Rowferry_Ledger", "rowferry_t0123456789abcdefghi_1"}) {
    cr_expect_eq(code("dbo", table), "bad_name", "%s", table);
  }
  cr_expect_eq(code("sys", "objects"), "bad_name");
  cr_expect_eq(code("INFORMATION_SCHEMA", "TABLES"), "bad_name");
  for (const char* table : {"tmp#", "rowferry_totals", "system", "objects"}) check_place({"", "dbo", table, ""});
}
