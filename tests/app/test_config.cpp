#include <criterion/criterion.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "app/config.hpp"
#include "base/error.hpp"

using namespace rowferry;
using namespace rowferry::app;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

Config parse(std::string_view toml) { return parse_config(toml, "/etc/ferry/rowferry.toml"); }

// "code field" of what the text is refused with; empty when it is taken.
std::string refusal(std::string_view toml, std::string* detail = nullptr) {
  try {
    parse(toml);
  } catch (const Error& error) {
    cr_expect_eq(error.category(), Category::input);
    if (detail != nullptr) *detail = error.one_line();
    return error.code() + " " + error.field();
  }
  return "";
}

void expect_refused(std::string_view toml, std::string_view wanted) {
  std::string detail;
  const std::string got = refusal(toml, &detail);
  cr_expect_eq(got, wanted, "%s\n  gave   %s (%s)\n  wanted %s", std::string(toml).c_str(), got.c_str(), detail.c_str(),
               std::string(wanted).c_str());
}

std::string mssql(const std::string& more) {
  return "[connections.w]\ntype = \"mssql\"\nhost = \"h\"\nuser = \"sa\"\n" + more;
}
std::string postgres(const std::string& more) { return "[connections.p]\ntype = \"postgres\"\n" + more; }

}  // namespace

Test(config, an_empty_file_gives_the_defaults) {
  const Config config = parse("");
  cr_expect_eq(config.server.host, "127.0.0.1");
  cr_expect_eq(config.server.port, 8080);
  cr_expect_eq(config.server.state_dir, "/etc/ferry/state");
  cr_expect_eq(config.server.max_transfers, 4);
  cr_expect_eq(config.server.token.kind, SecretSource::Kind::none);
  cr_expect(config.connections.empty());
}

Test(config, every_key_of_the_server_is_read) {
  const ServerConfig s = parse(R"([server]
listen = "[::]:9090"
state_dir = "/var/lib/ferry"
token = { env = "T" }
tls_cert = "c.pem"
tls_key = "k.pem"
allowed_hosts = ["ferry.example", "x:1"]
data_dir = "data"
max_transfers = 7
retain = "12h"
shutdown_grace = "90s"
ledger_keep = "10d"
resume_on_start = true
)")
                             .server;
  cr_expect_eq(s.host, "::");
  cr_expect_eq(s.port, 9090);
  cr_expect_eq(s.state_dir, "/var/lib/ferry");
  cr_expect_eq(s.token.kind, SecretSource::Kind::env);
  cr_expect_eq(s.token.name, "T");
  cr_expect_eq(s.tls_cert, "c.pem");
  cr_expect_eq(s.tls_key, "k.pem");
  cr_expect_eq(s.allowed_hosts, (std::vector<std::string>{"ferry.example", "x:1"}));
  cr_expect_eq(s.max_transfers, 7);
  cr_expect_eq(s.retain, seconds(hours(12)));
  cr_expect_eq(s.shutdown_grace, seconds(90));
  cr_expect_eq(s.ledger_keep, seconds(hours(240)));
  cr_expect(s.resume_on_start);
}

Test(config, the_ledger_outlives_the_records) {
  const auto code = [](const std::string& keys) {
    try {
      parse("[server]\n" + keys);
      return std::string("taken");
    } catch (const rowferry::Error& error) {
      return error.code() + " " + error.field();
    }
  };
  cr_expect_eq(code("ledger_keep = \"1s\"\nretain = \"365d\"\n"), "bad_value server.ledger_keep");
  cr_expect_eq(code("retain = \"90d\"\n"), "bad_value server.ledger_keep", "the default is too short for it");
  cr_expect_eq(code("ledger_keep = \"47h\"\nretain = \"24h\"\n"), "bad_value server.ledger_keep");
  cr_expect_eq(code("ledger_keep = \"23h\"\nretain = \"0s\"\n"), "bad_value server.ledger_keep");
  cr_expect_eq(code("ledger_keep = \"48h\"\nretain = \"24h\"\n"), "taken");
}

Test(config, every_key_of_a_connection_is_read) {
  const Config config = parse(R"([connections.shop]
type = "postgres"
dsn = "host=127.0.0.1 dbname=shop user=ferry"
password = { file = "/run/secrets/shop" }
max_sessions = 3
connect_timeout = "250ms"
application_name = "a"
ledger_schema = "l"
[connections.warehouse]
type = "mssql"
host = "127.0.0.1"
port = 1434
database = "dw"
user = "sa"
password = { env = "DW" }
encrypt = "login"
trust_server_certificate = true
ca_file = "ca.pem"
server_name = "n"
writable = true
)");
  const ConnectionConfig& p = config.connections.at("shop");
  cr_expect_eq(p.name, "shop");
  cr_expect_eq(p.dsn, "host=127.0.0.1 dbname=shop user=ferry");
  cr_expect_eq(p.password.kind, SecretSource::Kind::file);
  cr_expect_eq(p.max_sessions, 3);
  cr_expect_eq(p.connect_timeout, milliseconds(250));
  cr_expect_eq(p.application_name, "a");
  cr_expect_eq(p.ledger_schema, "l");
  cr_expect_not(p.writable);
  const ConnectionConfig& w = config.connections.at("warehouse");
  cr_expect_eq(w.port, 1434);
  cr_expect_eq(w.database, "dw");
  cr_expect_eq(w.encrypt, Encrypt::login);
  cr_expect(w.trust_server_certificate);
  cr_expect_eq(w.ca_file, "ca.pem");
  cr_expect_eq(w.server_name, "n");
  cr_expect(w.writable);
  cr_expect_eq(parse(mssql("")).connections.at("w").encrypt, Encrypt::on, "encrypted unless told otherwise");
}

Test(config, pipelines_are_found_beside_the_file) {
  const Config config = parse("[pipelines.hourly]\nspec = \"specs/../hourly.json\"\n");
  cr_expect_eq(config.pipelines.at("hourly").spec_file, "/etc/ferry/hourly.json");
  expect_refused("[pipelines.hourly]\n", "missing_field pipelines.hourly.spec");
}

Test(config, unknown_keys_are_refused_with_the_nearest_known_one) {
  expect_refused("[server]\nlisen = \"127.0.0.1:1\"\n", "unknown_field server.lisen");
  expect_refused("[conections.a]\n", "unknown_field conections");
  expect_refused(mssql("connect_timeout = \"0s\""), "bad_value connections.w.connect_timeout");
  expect_refused(mssql("passwrd = { env = \"X\" }\n"), "unknown_field connections.w.passwrd");
  expect_refused(postgres("host = \"h\"\n"), "unknown_field connections.p.host");
  expect_refused(mssql("password = { envv = \"X\" }\n"), "unknown_field connections.w.password.envv");
  expect_refused("[pipelines.a]\nspec = \"s\"\nevery = 1\n", "unknown_field pipelines.a.every");
  std::string detail;
  refusal("[server]\n\nlisen = \"127.0.0.1:1\"\n", &detail);
  cr_expect_neq(detail.find("did you mean listen?"), std::string::npos, "%s", detail.c_str());
  cr_expect_neq(detail.find("line 3"), std::string::npos, "%s", detail.c_str());
}

Test(config, values_of_another_kind_or_out_of_range_are_refused) {
  expect_refused("[server]\nlisten = 8080\n", "bad_value server.listen");
  expect_refused("[server]\nmax_transfers = \"4\"\n", "bad_value server.max_transfers");
  expect_refused("[server]\nmax_transfers = 0\n", "bad_value server.max_transfers");
  expect_refused("[server]\nallowed_hosts = \"a\"\n", "bad_value server.allowed_hosts");
  expect_refused("[server]\nallowed_hosts = [1]\n", "bad_value server.allowed_hosts");
  expect_refused("server = 1\n", "bad_value server");
  expect_refused("[connections]\na = 1\n", "bad_value connections.a");
  expect_refused(mssql("port = 70000\n"), "bad_value connections.w.port");
  expect_refused(mssql("writable = \"yes\"\n"), "bad_value connections.w.writable");
  expect_refused(mssql("encrypt = \"yes\"\n"), "bad_value connections.w.encrypt");
  expect_refused("[server]\ntls_cert = \"c\"\n", "bad_value server.tls_cert");
  expect_refused("[connections.a]\ntype = \"oracle\"\n", "unknown_system connections.a.type");
  expect_refused("[connections.a]\ntype = \"mssql\"\nuser = \"sa\"\n", "missing_field connections.a.host");
  expect_refused("[connections.a]\ntype = \"mssql\"\nhost = \"h\"\n", "missing_field connections.a.user");
}

Test(config, broken_toml_is_refused_with_its_place) {
  std::string detail;
  cr_expect_eq(refusal("[server\nlisten", &detail), "bad_config ");
  cr_expect_neq(detail.find("rowferry.toml:1:"), std::string::npos, "%s", detail.c_str());
}

Test(config, secrets_never_stand_in_the_file) {
  expect_refused(mssql("password = \"hunter2\"\n"), "secret_in_config connections.w.password");
  expect_refused(mssql("password = {}\n"), "bad_value connections.w.password");
  expect_refused(mssql("password = { env = \"A\", file = \"B\" }\n"), "bad_value connections.w.password");
  for (const char* dsn : {"host=h password=hunter2", "host=h password = hunter2", "postgres://u:hunter2@h/db",
                          "postgresql://u@h/db?password=hunter2"}) {
    std::string detail;
    const std::string got = refusal(postgres(fmt::format("dsn = \"{}\"\n", dsn)), &detail);
    cr_expect_eq(got, "password_in_dsn connections.p.dsn", "%s gave %s", dsn, got.c_str());
    cr_expect_eq(detail.find("hunter2"), std::string::npos, "%s", detail.c_str());
  }
  for (const char* dsn : {"host=h passfile=/x", "postgres://u@h:5432/db", "postgres://h/a@b:c"})
    cr_expect_eq(refusal(postgres(fmt::format("dsn = \"{}\"\n", dsn))), "", "%s", dsn);
}

Test(config, what_comes_later_says_so) {
  expect_refused(mssql("access_token = { env = \"T\" }\n"), "not_supported connections.w.access_token");
  expect_refused(mssql("instance = \"X\"\n"), "not_supported connections.w.instance");
  expect_refused("[connections.w]\ntype = \"mssql\"\nhost = 'db\\X'\nuser = \"u\"\n",
                 "not_supported connections.w.host");
  expect_refused("[connections.w]\ntype = \"mssql\"\nhost = \"h\"\nuser = 'D\\u'\n",
                 "not_supported connections.w.user");
  expect_refused(mssql("encrypt = \"strict\"\n"), "not_supported connections.w.encrypt");
}

Test(config, other_addresses_than_loopback_need_a_token) {
  for (const char* listen : {"0.0.0.0:80", "[::]:80", "10.0.0.1:80", "ferry.example:80", "127.evil.example:80"}) {
    const std::string open = fmt::format("[server]\nlisten = \"{}\"\n", listen);
    expect_refused(open, "token_required server.token");
    cr_expect_eq(refusal(open + "token = { env = \"T\" }\n"), "", "%s", listen);
  }
  for (const char* listen : {"127.0.0.1:80", "127.1.2.3:80", "[::1]:80", "localhost:80"})
    cr_expect_eq(refusal(fmt::format("[server]\nlisten = \"{}\"\n", listen)), "", "%s", listen);
}

Test(config, addresses_and_durations_are_read_exactly) {
  for (const char* bad : {"127.0.0.1", ":80", "a:", "a:x", "a:70000", "a:-1", "a: 80"})
    expect_refused(fmt::format("[server]\nlisten = \"{}\"\n", bad), "bad_address server.listen");
  cr_expect_eq(parse_duration("250ms", "f"), milliseconds(250));
  cr_expect_eq(parse_duration("90d", "f"), hours(90 * 24));
  for (const char* bad : {"", "5", "5x", "s", "-1s", "1.5h", "5 s", "99999999999999d"}) {
    std::string code;
    try {
      parse_duration(bad, "f");
    } catch (const Error& error) {
      code = error.code();
    }
    cr_expect_eq(code, "bad_duration", "%s", bad);
  }
}

Test(config, secrets_are_read_when_they_are_needed) {
  setenv("ROWFERRY_TEST_SECRET", "one", 1);
  const SecretSource env{SecretSource::Kind::env, "ROWFERRY_TEST_SECRET"};
  cr_expect_eq(env.read().reveal(), "one");
  setenv("ROWFERRY_TEST_SECRET", "two", 1);
  cr_expect_eq(env.read().reveal(), "two");
  unsetenv("ROWFERRY_TEST_SECRET");
  char path[] = "/tmp/rowferry-test-XXXXXX";
  close(mkstemp(path));
  for (const auto& [text, secret] : {std::pair{"a b \n", "a b "}, {"a\r\n", "a"}, {"a\n\n", "a\n"}, {"a", "a"}}) {
    std::ofstream(path, std::ios::binary) << text;
    cr_expect_eq((SecretSource{SecretSource::Kind::file, path}.read().reveal()), secret);
  }
  unlink(path);
  for (const SecretSource& missing : {env, SecretSource{SecretSource::Kind::file, path}}) {
    std::string code;
    try {
      (void)missing.read();
    } catch (const Error& error) {
      code = error.code();
    }
    cr_expect_eq(code, "secret_missing");
  }
  cr_expect(SecretSource{}.read().empty());
}
