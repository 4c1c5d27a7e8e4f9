#include <fmt/format.h>

#include "live.hpp"
#include "net/stream.hpp"
#include "tests/support/error_of.hpp"

using namespace rowferry;
using namespace rowferry::postgres::test;
using namespace std::chrono_literals;
using rowferry::test::error_of;

namespace {

std::unique_ptr<postgres::Session> connect(Live& live, const std::string& more, const std::string& password = "") {
  auto options = std::make_shared<postgres::SessionOptions>(*live.options);
  for (const auto& [keyword, value] : postgres::parse_dsn(more))
    postgres::set_parameter(options->parameters, keyword, value);
  if (!password.empty()) options->password = [password] { return Secret(std::string(password)); };
  options->connect_timeout = 2000ms;
  return live.run(postgres::Session::connect(live.loop, options));
}

// Puts a line at the head of pg_hba.conf while it lives.
class HbaLine {
 public:
  HbaLine(Live& live, const std::string& line)
      : live_(live), before_(live.column("SELECT pg_read_file(current_setting('hba_file'))")[0]) {
    write(line + "\n" + before_);
  }
  ~HbaLine() { write(before_); }

 private:
  void write(const std::string& text) {
    std::string quoted;
    for (const char c : text) quoted += c == '\'' ? "''" : std::string(1, c);
    const std::string file = live_.column("SELECT current_setting('hba_file')")[0];
    const std::string object = live_.column("SELECT lo_from_bytea(0, convert_to('" + quoted + "', 'UTF8'))")[0];
    live_.sql(fmt::format("SELECT lo_export({0}, '{1}'); SELECT lo_unlink({0})", object, file));
    live_.sql("SELECT pg_reload_conf()");
    live_.sql("SELECT pg_sleep(0.3)");
  }
  Live& live_;
  std::string before_;
};

}  // namespace

Test(live_session, settings_that_change_results_are_set) {
  Live live("live_session");
  live.sql(
      "DROP ROLE IF EXISTS live_session_role; CREATE ROLE live_session_role LOGIN; ALTER ROLE live_session_role SET "
      "DateStyle = 'German'; ALTER ROLE "
      "live_session_role SET TimeZone = 'Asia/Tokyo'; "
      "ALTER ROLE live_session_role SET statement_timeout = 1; ALTER ROLE live_session_role SET extra_float_digits = "
      "-5; "
      "ALTER ROLE live_session_role SET standard_conforming_strings = off; ALTER ROLE live_session_role SET "
      "search_path = public");
  const auto session = connect(live, "user=live_session_role");
  const auto found = live.run(session->query(
      "SELECT '2026-11-30'::date::text || ' ' || '2026-11-30 12:00+00'::timestamptz AS d, 0.1::float8 AS f, "
      "current_setting('search_path') AS p, current_setting('statement_timeout') AS s"));
  live.sql("DROP ROLE live_session_role");
  EXPECT_TEXT(std::string(found.text(0, "d")), "2026-11-30 2026-11-30 12:00:00+00");
  EXPECT_TEXT(std::string(found.text(0, "f")), "0.1");
  EXPECT_TEXT(std::string(found.text(0, "p")), "\"\"");
  EXPECT_TEXT(std::string(found.text(0, "s")), "0");
}

Test(live_session, failed_connects_say_why) {
  Live live("live_session");
  EXPECT_TEXT(error_of([&] { connect(live, "dbname=no_such_database"); }).code(), "database_missing");
  EXPECT_TEXT(error_of([&] { connect(live, "user=no_such_user"); }).code(), "login_failed");
  EXPECT_TEXT(error_of([&] { connect(live, "port=1"); }).code(), "connect_failed");
  EXPECT_TEXT(error_of([&] { connect(live, "host=no-such-host.invalid"); }).code(), "resolve_failed");
  EXPECT_TEXT(error_of([&] { connect(live, "sslmode=require"); }).code(), "connect_failed");
  const Error named = error_of([&] { connect(live, "port=1"); });
  EXPECT_TEXT(named.context().connection, "shop");
}

Test(live_session, a_silent_server_is_left_after_the_deadline) {
  Live live("live_session");
  net::Listener silent(live.loop, "127.0.0.1", 0);
  const auto begin = std::chrono::steady_clock::now();
  const Error error = error_of([&] { connect(live, fmt::format("port={}", silent.port())); });
  EXPECT_TEXT(error.code(), "timeout");
  cr_expect_lt(std::chrono::steady_clock::now() - begin, 4s);
}

Test(live_session, passwords_of_every_kind_log_in_and_wrong_ones_are_not_echoed) {
  Live live("live_session");
  const std::string odd = "a;b{c}d'e\"f=g%h@i:j/k?l#m[n]é ";
  live.sql("DROP ROLE IF EXISTS live_login; CREATE ROLE live_login LOGIN");
  {
    const HbaLine line(live, "host all live_login 127.0.0.1/32 scram-sha-256");
    for (const std::string& password : {odd, std::string(128, 'x')}) {
      live.sql("SET standard_conforming_strings = on");
      std::string quoted;
      for (const char c : password) quoted += c == '\'' ? "''" : std::string(1, c);
      live.sql("ALTER ROLE live_login PASSWORD '" + quoted + "'");
      cr_expect(connect(live, "user=live_login", password)->open());
    }
    const Error wrong = error_of([&] { connect(live, "user=live_login", "s3cret"); });
    EXPECT_TEXT(wrong.code(), "login_failed");
    EXPECT_TEXT(wrong.fault() ? wrong.fault()->number : "", "28P01");
    cr_expect_eq(wrong.one_line().find("s3cret"), std::string::npos);
    cr_expect_neq(wrong.detail().find("live_login"), std::string::npos);
    EXPECT_TEXT(error_of([&] { connect(live, "user=live_login"); }).code(), "login_failed");
  }
  live.sql("DROP ROLE live_login");
}

Test(live_session, errors_carry_state_position_and_hint) {
  Live live("live_session");
  const Error error = error_of([&] { live.sql("SELECT no_column FROM pg_class"); });
  EXPECT_TEXT(error.code(), "column_missing");
  EXPECT_TEXT(error.fault()->number, "42703");
  cr_expect_neq(error.detail().find("character 8"), std::string::npos, "%s", error.what());
  cr_expect(live.admin->open());
  EXPECT_TEXT(live.column("SELECT 1")[0], "1");
  const Error value = error_of([&] { live.sql("SELECT 1/0"); });
  EXPECT_TEXT(value.code(), "server_error");
  cr_expect_not(value.transient());
}

Test(live_session, a_cancelled_statement_is_stopped_at_the_server) {
  Live live("live_session");
  const auto session = live.session();
  const auto begin = std::chrono::steady_clock::now();
  const Error error = error_of(
      [&] { live.run(net::with_deadline(live.loop, 300ms, "sleeping", session->query("SELECT pg_sleep(60)"))); });
  EXPECT_TEXT(error.code(), "timeout");
  cr_expect_lt(std::chrono::steady_clock::now() - begin, 3s);
  cr_assert(session->open());
  EXPECT_TEXT(live.column(fmt::format("SELECT state FROM pg_stat_activity WHERE pid = {}", session->backend_pid()))[0],
              "idle");
  cr_expect_eq(live.run(session->query("SELECT 1")).rows(), 1);
}

Test(live_session, a_killed_server_process_is_a_transient_loss) {
  Live live("live_session");
  const auto session = live.session();
  cr_expect(session->alive());
  live.sql(fmt::format("SELECT pg_terminate_backend({}, 5000)", session->backend_pid()));
  live.run(net::with_deadline(live.loop, 2000ms, "x", [](net::Loop* loop) -> async::Task<void> {
    co_await net::sleep_for(*loop, 100ms);
  }(&live.loop)));
  cr_expect_not(session->alive());
  const Error error = error_of([&] { live.run(session->query("SELECT 1")); });
  EXPECT_TEXT(error.code(), "connection_lost");
  cr_expect(error.transient());
  const auto other = live.session();
  const Error inside = error_of([&] { live.run(other->query("SELECT pg_terminate_backend(pg_backend_pid())")); });
  EXPECT_TEXT(inside.code(), "connection_lost");
  EXPECT_TEXT(inside.fault()->number, "57P01");
  cr_expect(inside.transient());
  cr_expect_not(other->open());
}

Test(live_session, no_statement_is_lost_in_large_texts) {
  Live live("live_session");
  const std::string big(3'000'000, 'x');
  EXPECT_TEXT(live.column("SELECT length('" + big + "')")[0], "3000000");
}
