#include "../support/expect.hpp"
#include "base/error.hpp"
#include "postgres/dialect.hpp"
#include "postgres/dsn.hpp"
#include "postgres/fault.hpp"

using namespace rowferry;
using namespace rowferry::postgres;

Test(dialect, names_are_quoted_with_doubled_quotes) {
  EXPECT_TEXT(quote_name("odd\"name 'x' ]"), "\"odd\"\"name 'x' ]\"");
  EXPECT_TEXT(quote_table({{"my.schema", "a\"b"}}), "\"my.schema\".\"a\"\"b\"");
  EXPECT_ERROR(quote_name(""), "bad_name");
  EXPECT_ERROR(quote_name(std::string_view("a\0b", 3)), "bad_name");
}

Test(dialect, text_is_right_under_both_string_settings) {
  EXPECT_TEXT(quote_text("it's"), "'it''s'");
  EXPECT_TEXT(quote_text("a\\'b"), "E'a\\\\''b'");
  EXPECT_TEXT(quote_text(""), "''");
}

Test(dialect, tables_are_split_by_quotes_and_never_folded) {
  EXPECT_TEXT(quote_table(parse_table("Public.Orders")), "\"Public\".\"Orders\"");
  EXPECT_TEXT(quote_table(parse_table("\"my.schema\".\"a\"\"b\"")), "\"my.schema\".\"a\"\"b\"");
  for (const char* bad : {"orders", "a.b.c", "a.", ".b", "\"a\".\"b", "\"a\"x.b", "a.b\"c\"", ""}) {
    EXPECT_ERROR(parse_table(bad), "bad_name");
  }
}

Test(dsn, both_forms_are_taken) {
  const Parameters pairs = parse_dsn("host=db.example port=5433 dbname='my db' sslmode=require");
  EXPECT_TEXT(std::string(parameter(pairs, "dbname")), "my db");
  EXPECT_TEXT(std::string(parameter(pairs, "sslmode")), "require");
  const Parameters uri = parse_dsn("postgresql://ferry@db.example:5433/shop?application_name=x");
  EXPECT_TEXT(std::string(parameter(uri, "user")), "ferry");
  EXPECT_TEXT(std::string(parameter(uri, "port")), "5433");
}

Test(dsn, a_password_is_refused_in_both_forms) {
  EXPECT_ERROR(parse_dsn("host=x password=secret"), "password_in_dsn");
  EXPECT_ERROR(parse_dsn("postgresql://u:secret@x/db"), "password_in_dsn");
  EXPECT_ERROR(parse_dsn("host=x sslpassword=secret"), "password_in_dsn");
}

Test(dsn, a_broken_string_is_told_by_position_and_never_quoted) {
  for (const char* bad : {"host=x password=secret word", "host=x password='secret", "passwort=secret", "host"}) {
    try {
      parse_dsn(bad);
      cr_expect_fail("%s was taken", bad);
    } catch (const Error& error) {
      EXPECT_TEXT(error.code(), "bad_dsn");
      cr_expect_eq(error.detail().find("secret"), std::string::npos, "%s", error.what());
    }
  }
  try {
    parse_dsn("host=x word port=1");
  } catch (const Error& error) {
    cr_expect(error.detail().find("character 8 ") != std::string::npos, "%s", error.what());
  }
}

Test(fault, a_refused_login_is_told_by_its_state) {
  const Error wrong = connect_error(
      "connection to server at \"h\" (10.0.0.1), port 5432 failed: FATAL:  28P01: password authentication failed for "
      "user "
      "\"ferry\"\nLOCATION:  auth_failed, auth.c:329\n",
      "h:5432");
  EXPECT_TEXT(wrong.code(), "login_failed");
  EXPECT_TEXT(wrong.fault()->number, "28P01");
  cr_expect(wrong.category() == Category::forbidden);
  cr_expect_eq(wrong.detail().find("LOCATION"), std::string::npos);
  cr_expect_neq(wrong.detail().find("failed for user \"ferry\""), std::string::npos);
  EXPECT_TEXT(connect_error("x FATAL:  3D000: database \"y\" does not exist", "h").code(), "database_missing");
  const Error full = connect_error("FATAL:  53300: sorry, too many clients already", "h");
  EXPECT_TEXT(full.code(), "too_many_connections");
  cr_expect(full.transient());
  cr_expect_neq(full.hint().find("workers"), std::string::npos);
  const Error starting = connect_error("FATAL:  57P03: the database system is starting up", "h");
  EXPECT_TEXT(starting.code(), "server_not_ready");
  cr_expect(starting.transient());
  EXPECT_TEXT(connect_error("connection refused", "h").code(), "connect_failed");
  cr_expect(lost_error("", "h:1").transient());
}

Test(fault, transient_states_are_the_repeatable_ones) {
  for (const char* state : {"40001", "40P01", "08006", "57P01", "57P02", "57P03", "53300", "55P03"}) {
    cr_expect(is_transient(state), "%s", state);
  }
  for (const char* state : {"42P01", "22003", "57014", "28P01", ""}) cr_expect_not(is_transient(state), "%s", state);
}
