// The catalogue, the server's own facts, and procedures that describe.
#include "common.hpp"

using namespace rowferry::sandbox::engine;
using namespace rowferry::sandbox::engine::testing;

namespace {

void make_table(Client& c) {
  c.run(
      "CREATE TABLE dbo.t (id int IDENTITY(10, 5) CONSTRAINT pk_t PRIMARY KEY, v nvarchar(20) COLLATE Polish_CI_AS "
      "NULL, d decimal(10,2) NOT NULL CONSTRAINT df_d DEFAULT ((1.5)), "
      "m varchar(max), twice AS d * 2, r rowversion, dt datetime2(3), CONSTRAINT ck_d CHECK (d > 0)); CREATE UNIQUE "
      "INDEX ux ON t (v DESC) INCLUDE (d); INSERT t (v) VALUES (N'a'), (N'b')");
}

}  // namespace

Test(catalog, columns_say_what_they_are) {
  World w;
  make_table(w.a);
  ROWS(w.a,
       "SELECT c.name, ty.name, c.max_length, c.precision, c.scale, c.collation_name, c.is_nullable, c.is_identity, "
       "c.is_computed FROM sys.columns c JOIN sys.types ty ON ty.user_type_id = "
       "c.user_type_id WHERE c.object_id = OBJECT_ID(N'dbo.t') ORDER BY c.column_id",
       "id|int|4|10|0|NULL|0|1|0 v|nvarchar|40|0|0|Polish_CI_AS|1|0|0 d|decimal|9|10|2|NULL|0|0|0 "
       "m|varchar|-1|0|0|SQL_Latin1_General_CP1_CI_AS|1|0|0 twice|numeric|9|12|2|NULL|1|0|1 "
       "r|timestamp|8|0|0|NULL|0|0|0 dt|datetime2|7|23|3|NULL|1|0|0");
  ROWS(w.a, "SELECT seed_value, increment_value, last_value FROM sys.identity_columns", "10|5|15");
  ROWS(w.a, "SELECT name, definition FROM sys.default_constraints", "df_d|((1.5))");
  ROWS(w.a, "SELECT name, definition FROM sys.check_constraints", "ck_d|(d > 0)");
  ROWS(w.a, "SELECT name, definition, is_persisted FROM sys.computed_columns", "twice|(d * 2)|0");
}

Test(catalog, indexes_and_rows) {
  World w;
  make_table(w.a);
  ROWS(w.a,
       "SELECT i.name, i.type, i.is_unique, i.is_primary_key, c.name, ic.key_ordinal, ic.is_descending_key, "
       "ic.is_included_column FROM sys.indexes i JOIN sys.index_columns ic ON ic.object_id = "
       "i.object_id AND ic.index_id = i.index_id JOIN sys.columns c ON c.object_id = ic.object_id AND c.column_id = "
       "ic.column_id ORDER BY i.index_id, ic.index_column_id",
       "pk_t|1|1|1|id|1|0|0 ux|2|1|0|v|1|1|0 ux|2|1|0|d|0|0|1");
  ROWS(w.a,
       "SELECT SUM(row_count) FROM sys.dm_db_partition_stats WHERE object_id = OBJECT_ID('t') AND index_id IN (0, 1)",
       "2");
  ROWS(w.a, "SELECT rows FROM sys.partitions WHERE index_id < 2", "2");
  ROWS(w.a, "SELECT type, name FROM sys.objects ORDER BY name", "C |ck_d D |df_d PK|pk_t U |t");
  ROWS(w.a, "SELECT kc.name, kc.type FROM sys.key_constraints kc WHERE parent_object_id = OBJECT_ID('t')", "pk_t|PK");
}

Test(catalog, information_schema) {
  World w;
  make_table(w.a);
  ROWS(w.a, "SELECT table_schema, table_name, table_type FROM INFORMATION_SCHEMA.TABLES", "dbo|t|BASE TABLE");
  ROWS(w.a,
       "SELECT column_name, data_type, character_maximum_length, numeric_precision, is_nullable FROM "
       "information_schema.columns WHERE table_name = 't' AND ordinal_position < 5",
       "id|int|NULL|10|NO v|nvarchar|20|NULL|YES d|decimal|NULL|10|NO m|varchar|-1|NULL|YES");
}

Test(catalog, functions_about_objects) {
  World w;
  make_table(w.a);
  ROWS(w.a,
       "SELECT OBJECT_NAME(OBJECT_ID('dbo.t')), OBJECT_SCHEMA_NAME(OBJECT_ID('t')), COLUMNPROPERTY(OBJECT_ID('t'), "
       "'id', 'IsIdentity'), COL_LENGTH('t', 'v'), TYPE_NAME(231), SCHEMA_ID('dbo'), "
       "OBJECT_ID('missing'), IDENT_CURRENT('t'), OBJECT_ID('pk_t') - OBJECT_ID('dbo.pk_t', 'PK')",
       "t|dbo|1|40|nvarchar|1|NULL|15|0");
  ROWS(w.a,
       "SELECT HAS_PERMS_BY_NAME('dbo.t', 'OBJECT', 'INSERT'), COLLATIONPROPERTY('Cyrillic_General_CI_AS', "
       "'CodePage'), DATABASEPROPERTYEX('db', 'Collation')",
       "1|1251|SQL_Latin1_General_CP1_CI_AS");
}

Test(catalog, the_server_says_what_it_is) {
  World w;
  const std::string version = w.a.run("SELECT @@VERSION");
  cr_expect(version.find("rowferry sandbox") == 0 && version.find("not Microsoft SQL Server") != std::string::npos,
            "%s", version.c_str());
  ROWS(w.a,
       "SELECT SERVERPROPERTY('ProductVersion'), SERVERPROPERTY('EngineEdition'), SERVERPROPERTY('IsClustered'), "
       "@@MAX_PRECISION, @@LANGUAGE, @@TEXTSIZE",
       "16.0.4135.0|3|0|38|us_english|2147483647");
  ROWS(w.a,
       "SELECT name, snapshot_isolation_state, is_read_committed_snapshot_on, recovery_model_desc FROM sys.databases "
       "ORDER BY database_id",
       "master|0|0|SIMPLE tempdb|0|0|SIMPLE db|0|0|SIMPLE");
  ROWS(w.a, "SELECT session_id, encrypt_option, auth_scheme FROM sys.dm_exec_connections WHERE session_id = @@SPID",
       std::to_string(w.a.session->spid()) + "|FALSE|SQL");
  ROWS(w.a, "SELECT COUNT(*) FROM sys.dm_exec_sessions WHERE is_user_process = 1", "2");
}

Test(catalog, databases_are_made_and_used) {
  World w;
  ANSWERS(w.a, "CREATE DATABASE [my db] COLLATE Cyrillic_General_CI_AS", "");
  ANSWERS(w.a, "USE [my db]", "database my db\ninfo 5701: Changed database context to 'my db'.\n");
  ROWS(w.a,
       "CREATE TABLE t (a varchar(5)); INSERT t VALUES ('П'); SELECT CAST(a AS varbinary(5)) FROM [my db].dbo.t; "
       "SELECT DB_NAME()",
       "0xCF my db");
  FAILS(w.a, "CREATE DATABASE db", 1801);
  FAILS(w.a, "DROP DATABASE [my db]", 3702);
  ROWS(w.a, "USE db DROP DATABASE [my db] SELECT DB_ID('my db')",
       "database db info 5701: Changed database context to 'db'. NULL");
}

Test(catalog, tablecollations_and_first_result_set) {
  World w;
  make_table(w.a);
  ROWS(w.a, "EXEC db..sp_tablecollations_100 N'dbo.t'",
       "1|id|NULL|NULL 2|v|0x1504D00000|Polish_CI_AS 3|d|NULL|NULL 4|m|0x0904D00034|SQL_Latin1_General_CP1_CI_AS "
       "5|twice|NULL|NULL 6|r|NULL|NULL 7|dt|NULL|NULL status 0");
  w.a.run("EXEC sp_describe_first_result_set N'SELECT id, v FROM t WHERE id = @p', N'@p int'");
  cr_expect_eq(w.a.recorder.last_columns.size(), 39U);
  cr_expect_eq(w.a.recorder.raw_rows.size() >= 2U, true);
}

Test(procedure, remote_calls_answer_like_the_server) {
  World w;
  SAYS(w.a.call("sp_executesql",
                {text_parameter("", u"SELECT @p + 1; SET @o = 5"), text_parameter("", u"@p int, @o int OUTPUT"),
                 int_parameter("@p", 42), int_parameter("@o", 0, true)}),
       "43\n(1 rows)\nstatus 0\n@o=5\n");
  w.a.session->start_call(13, {int_parameter("@handle", 0, true), text_parameter("", u"@p int"),
                               text_parameter("", u"SELECT @p * 2"), int_parameter("", 4)});
  SAYS(w.a.resume(), "8\n(1 rows)\nstatus 0\n@handle=1\n");
  w.a.session->start_call(12, {int_parameter("", 1), int_parameter("", 8)});
  SAYS(w.a.resume(), "16\n(1 rows)\nstatus 0\n");
  w.a.session->start_call(15, {int_parameter("", 1)});
  SAYS(w.a.resume(), "status 0\n");
  cr_expect(w.a.call("sp_execute", {int_parameter("", 1)}).find("error 8179") == 0);
  cr_expect(w.a.call("nowhere.p", {}).find("error 2812, 16, 62") == 0);
}

Test(procedure, settings_end_with_the_procedure) {
  World w;
  ROWS(w.a, "EXEC sp_executesql N'SET NOCOUNT ON; SET XACT_ABORT ON'; SELECT @@OPTIONS & 16896", "status 0 0");
  ROWS(w.a, "EXEC('USE master'); SELECT DB_NAME()",
       "database master info 5701: Changed database context to 'master'. db");
}
