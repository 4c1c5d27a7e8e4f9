#include <criterion/criterion.h>
#include <fmt/format.h>

#include "api/api.hpp"
#include "api/errors.hpp"
#include "base/json.hpp"
#include "fake_manager.hpp"
#include "harness.hpp"

using namespace rowferry;
using namespace rowferry::testing;
using async::Task;

namespace {

class NoConnections final : public transfer::Connections {
 public:
  system::Connection* find(std::string_view) override { return nullptr; }
  std::vector<std::string> names() const override { return {}; }
};

struct Fixture {
  explicit Fixture(api::Options options = {}) : api(loop, manager, std::move(options)) {}

  // One request on a connection of its own. `fields` are whole lines; Host is 127.0.0.1 unless given there.
  std::string send(const std::string& method, const std::string& target, const std::string& fields = "",
                   const std::string& body = "") {
    http::Server server(loop, {}, api);
    const std::string host = fields.find("Host:") == std::string::npos ? "Host: 127.0.0.1:8080\r\n" : "";
    std::string request = fmt::format("{} {} HTTP/1.1\r\nConnection: close\r\n{}{}", method, target, host, fields);
    if (!body.empty()) request += fmt::format("Content-Length: {}\r\n", body.size());
    std::string answer;
    with_server(loop, server, note(&answer, ask(&loop, server.port(), request + "\r\n" + body)));
    return answer;
  }
  static Task<void> note(std::string* into, Task<std::string> task) { *into = co_await std::move(task); }

  net::Loop loop;
  NoConnections connections;
  transfer::Manager manager{loop, {}, connections};
  api::Api api;
};

const std::string json_type = "Content-Type: application/json\r\n";

std::string member(const std::string& answer, std::string_view name) {
  const Json body = Json::parse(body_of(answer));
  const Json* found = body.find(name);
  return found == nullptr || found->string() == nullptr ? "" : *found->string();
}

void expect_problem(const std::string& answer, const std::string& status, const std::string& code) {
  cr_expect_eq(status_of(answer), status, "wanted %s %s: %s", status.c_str(), code.c_str(), answer.c_str());
  cr_expect_eq(header_of(answer, "Content-Type"), "application/problem+json");
  cr_expect_eq(member(answer, "code"), code, "wanted %s %s: %s", status.c_str(), code.c_str(), answer.c_str());
  const Json body = Json::parse(body_of(answer));
  cr_expect_eq(std::to_string(body.find("status")->int64().value()), status);
  cr_expect_eq(member(answer, "title"), http::reason_phrase(std::stoi(status)));
}

}  // namespace

// ---- routes

Test(api, a_transfer_is_accepted_with_its_location_and_status) {
  Fixture f;
  const std::string answer = f.send("POST", "/v1/transfers", json_type + "Idempotency-Key: k1\r\n", R"({"a": 1})");
  cr_assert_eq(status_of(answer), "202", "%s", answer.c_str());
  cr_expect_eq(header_of(answer, "Location"), "/v1/transfers/t1");
  cr_expect_eq(header_of(answer, "Content-Type"), "application/json");
  cr_expect_eq(header_of(answer, "X-Content-Type-Options"), "nosniff");
  cr_expect_eq(member(answer, "id"), "t1");
  cr_expect_eq(fake().calls, std::vector<std::string>{R"(submit {"a": 1} key=k1)"});
}

Test(api, status_documents_carry_an_etag_and_cost_a_304_when_known) {
  Fixture f;
  fake().transfers["t1"] = {};
  const std::string first = f.send("GET", "/v1/transfers/t1");
  cr_assert_eq(status_of(first), "200");
  cr_expect_eq(header_of(first, "ETag"), "\"v1\"");
  cr_expect_eq(member(first, "state"), "running");
  for (const char* known : {"\"v1\"", "W/\"v1\"", "\"x\", \"v1\"", "*"}) {
    const std::string again = f.send("GET", "/v1/transfers/t1", fmt::format("If-None-Match: {}\r\n", known));
    cr_expect_eq(status_of(again), "304", "%s", known);
    cr_expect_eq(body_of(again), "");
    cr_expect_eq(header_of(again, "ETag"), "\"v1\"");
  }
  fake().transfers["t1"].version = 2;
  for (const char* stale : {"\"v1\"", "v2", "\"v\"", ""}) {
    const std::string again = f.send("GET", "/v1/transfers/t1", fmt::format("If-None-Match: {}\r\n", stale));
    cr_expect_eq(status_of(again), "200", "%s", stale);
  }
}

Test(api, head_is_get_without_a_body) {
  Fixture f;
  fake().transfers["t1"] = {};
  const std::string answer = f.send("HEAD", "/v1/transfers/t1");
  cr_expect_eq(status_of(answer), "200");
  cr_expect_eq(body_of(answer), "");
  cr_expect_neq(header_of(answer, "Content-Length"), "0");
}

Test(api, transfers_are_cancelled_resumed_and_reported_as_their_state_allows) {
  Fixture f;
  fake().transfers["t1"] = {};
  cr_expect_eq(status_of(f.send("DELETE", "/v1/transfers/t1")), "202");
  expect_problem(f.send("POST", "/v1/transfers/t1/resume"), "409", "transfer_active");
  expect_problem(f.send("GET", "/v1/transfers/t1/artifact"), "409", "no_artifact_yet");
  fake().transfers["t1"].state = transfer::State::failed;
  expect_problem(f.send("DELETE", "/v1/transfers/t1"), "409", "transfer_ended");
  const std::string resumed = f.send("POST", "/v1/transfers/t1/resume");
  cr_expect_eq(status_of(resumed), "202");
  cr_expect_eq(header_of(resumed, "Location"), "/v1/transfers/t1");
  const std::string artifact = f.send("GET", "/v1/transfers/t1/artifact");
  cr_expect_eq(status_of(artifact), "200");
  cr_expect_eq(header_of(artifact, "ETag"), "\"v1\"");
  for (const auto& [method, rest] : {std::pair{"GET", ""}, {"DELETE", ""}, {"POST", "/resume"}, {"GET", "/artifact"}}) {
    expect_problem(f.send(method, fmt::format("/v1/transfers/none{}", rest)), "404", "transfer_unknown");
  }
}

Test(api, lists_are_paged_and_their_parameters_checked) {
  Fixture f;
  cr_expect_eq(status_of(f.send("GET", "/v1/transfers?limit=7&after=t%31&state=failed")), "200");
  cr_expect_eq(fake().calls.back(), "list limit=7 after=t1 state=failed");
  cr_expect_eq(status_of(f.send("GET", "/v1/transfers")), "200");
  cr_expect_eq(fake().calls.back(), "list limit=50 after= state=");
  for (const char* query : {"limit=0", "limit=201", "limit=x", "limit=", "limit=99999999999", "state=dead", "%=1",
                            "limit=1%00", "after=%00", "limit=1&limit=1", "limit=1&after=t&l%69mit=2", "after=%zz"}) {
    expect_problem(f.send("GET", fmt::format("/v1/transfers?{}", query)), "400", "bad_parameter");
  }
  const std::string typo = f.send("GET", "/v1/transfers?limt=3");
  expect_problem(typo, "400", "bad_parameter");
  cr_expect_eq(member(typo, "field"), "limt");
  cr_expect_eq(member(typo, "hint"), "did you mean \"limit\"?");
}

Test(api, plans_come_as_json_or_text) {
  Fixture f;
  const std::string json = f.send("POST", "/v1/plan", json_type, "{}");
  cr_expect_eq(status_of(json), "200");
  cr_expect_eq(body_of(json), R"({"plan":true})");
  const std::string text = f.send("POST", "/v1/plan?format=text", json_type, "{}");
  cr_expect_eq(header_of(text, "Content-Type"), "text/plain; charset=utf-8");
  cr_expect_eq(body_of(text), "a plan");
  expect_problem(f.send("POST", "/v1/plan?format=xml", json_type, "{}"), "400", "bad_parameter");
}

Test(api, pipelines_are_listed_and_run) {
  Fixture f;
  cr_expect_eq(body_of(f.send("GET", "/v1/pipelines")), R"({"pipelines":[]})");
  const std::string run = f.send("POST", "/v1/pipelines/hourly/runs", "Idempotency-Key: k\r\n");
  cr_expect_eq(status_of(run), "202");
  cr_expect_eq(header_of(run, "Location"), "/v1/transfers/t2");
  cr_expect_eq(fake().calls.back(), "run hourly key=k");
  expect_problem(f.send("POST", "/v1/pipelines/daily%20/runs"), "404", "pipeline_unknown");
  cr_expect_eq(fake().calls.back(), "run daily  key=");
  fake().error = Error(Category::conflict, "pipeline_running", "it runs");
  expect_problem(f.send("POST", "/v1/pipelines/hourly/runs"), "409", "pipeline_running");
}

Test(api, probes_answer_anybody_and_readiness_ends_with_the_shutdown) {
  api::Options options;
  options.token = Secret("t");
  Fixture f(std::move(options));
  cr_expect_eq(status_of(f.send("GET", "/healthz", "Host: 10.1.2.3\r\n")), "200");
  cr_expect_eq(status_of(f.send("GET", "/readyz", "Host: pod-7.example\r\n")), "200");
  fake().shutting_down = true;
  expect_problem(f.send("GET", "/readyz"), "503", "shutting_down");
  cr_expect_eq(status_of(f.send("GET", "/healthz")), "200");
  fake().shutting_down = false;
  fake().not_ready = "the disk is full";
  expect_problem(f.send("GET", "/readyz"), "503", "state_dir_not_writable");
  fake().not_ready.reset();
  cr_expect_eq(status_of(f.send("GET", "/readyz")), "200");
  f.api.stop();
  expect_problem(f.send("GET", "/readyz"), "503", "shutting_down");
}

// ---- refusals

Test(api, unknown_paths_and_methods_are_told_apart) {
  Fixture f;
  for (const char* path : {"/v1", "/v1/transfer", "/v1/transfers/", "/v1/transfers/t1/x", "//v1/transfers", "/V1/plan",
                           "/v1/transfers/%zz", "/v1/transfers//artifact"}) {
    expect_problem(f.send("GET", path), "404", "route_unknown");
  }
  const auto allow = [&](const std::string& method, const std::string& path) {
    const std::string answer = f.send(method, path);
    expect_problem(answer, "405", "method_not_allowed");
    return header_of(answer, "Allow");
  };
  cr_expect_eq(allow("PUT", "/v1/transfers"), "POST, GET, HEAD");
  cr_expect_eq(allow("POST", "/v1/transfers/t1"), "GET, HEAD, DELETE");
  cr_expect_eq(allow("GET", "/v1/plan"), "POST");
  cr_expect_eq(allow("OPTIONS", "/healthz"), "GET, HEAD");
}

Test(api, bodies_must_be_json_by_type_and_by_content) {
  Fixture f;
  for (const char* type :
       {"", "Content-Type: text/plain\r\n", "Content-Type: application/jsonx\r\n",
        "Content-Type: application/x-www-form-urlencoded\r\n", "Content-Type: application/json; charset=latin1\r\n"}) {
    expect_problem(f.send("POST", "/v1/transfers", type, "{}"), "415", "media_type_not_supported");
    expect_problem(f.send("POST", "/v1/plan", type, "{}"), "415", "media_type_not_supported");
  }
  for (const char* type : {"Content-Type: Application/JSON\r\n", "Content-Type: application/json; charset=UTF-8\r\n"}) {
    cr_expect_eq(status_of(f.send("POST", "/v1/transfers", type, "{}")), "202", "%s", type);
  }
  expect_problem(f.send("POST", "/v1/transfers", json_type), "400", "body_missing");
  expect_problem(f.send("POST", "/v1/transfers", json_type + "Transfer-Encoding: chunked\r\n\r\n0\r\n"), "400",
                 "body_missing");
  expect_problem(f.send("POST", "/v1/transfers", json_type, "{\"a\": "), "400", "malformed_json");
  expect_problem(f.send("POST", "/v1/transfers", json_type, std::string(50, '[') + std::string(50, ']')), "400",
                 "json_too_deep");
  expect_problem(f.send("POST", "/v1/transfers", json_type, "\"" + std::string(1024 * 1024, 'x') + "\""), "413",
                 "body_too_large");
  expect_problem(f.send("DELETE", "/v1/transfers/t1", json_type, "{}"), "400", "body_not_expected");
}

Test(api, hosts_that_do_not_name_this_server_are_refused) {
  api::Options options;
  options.allowed_hosts = {"Ferry.example", "proxy.example:8443"};
  Fixture f(std::move(options));
  for (const char* host : {"127.0.0.1", "127.0.0.1:8080", "localhost", "LOCALHOST:9", "ferry.example",
                           "ferry.example:1", "proxy.example:8443"}) {
    cr_expect_eq(status_of(f.send("GET", "/v1/pipelines", fmt::format("Host: {}\r\n", host))), "200", "%s", host);
  }
  for (const char* host :
       {"evil.example", "127.0.0.1.evil.example", "10.0.0.1", "proxy.example", "", "[::1]",
        "127.0.0.1:8080.evil.example", "127.0.0.1:", "localhost:x", "localhost:65536", "127.0.0.1:+80"}) {
    expect_problem(f.send("GET", "/v1/pipelines", fmt::format("Host: {}\r\n", host)), "421", "host_not_allowed");
  }
  expect_problem(f.send("GET", "http://evil.example/v1/pipelines"), "421", "host_not_allowed");
  cr_expect_eq(fake().calls.size(), 7, "refused before anything is asked of the manager");
}

Test(api, pages_of_other_sites_are_refused) {
  Fixture f;
  const auto from = [&](const char* origin) {
    return f.send("POST", "/v1/pipelines/hourly/runs", fmt::format("Origin: {}\r\n", origin));
  };
  cr_expect_eq(status_of(from("http://127.0.0.1:8080")), "202");
  for (const char* other : {"http://evil.example", "null", "http://127.0.0.1:9090", "http://127.0.0.1", "garbage"}) {
    expect_problem(from(other), "403", "origin_not_allowed");
  }
}

Test(api, a_configured_token_is_asked_for) {
  api::Options options;
  options.token = Secret("correct horse");
  options.listen_host = "0.0.0.0";
  Fixture f(std::move(options));
  const auto with = [&](const std::string& fields) { return f.send("GET", "/v1/pipelines", fields); };
  cr_expect_eq(status_of(with("Authorization: Bearer correct horse\r\n")), "200");
  cr_expect_eq(status_of(with("Authorization: bearer correct horse \r\n")), "200");
  for (const char* wrong :
       {"", "Authorization: Bearer\r\n", "Authorization: Bearer correct hors\r\n",
        "Authorization: Bearer correct horse!\r\n", "Authorization: Basic correct horse\r\n",
        "Authorization: Bearer correct horsecorrect horse\r\n", "Authorization: correct horse\r\n"}) {
    const std::string answer = with(wrong);
    expect_problem(answer, "401", "token_wrong");
    cr_expect_eq(header_of(answer, "WWW-Authenticate"), "Bearer realm=\"rowferry\"");
  }
  expect_problem(f.send("GET", "/no/such/path"), "401", "token_wrong");
  cr_expect_eq(status_of(f.send("GET", "/openapi.yaml")), "200");
  cr_expect_eq(status_of(f.send("GET", "/healthz")), "200");
}

Test(api, a_refused_body_is_not_read) {
  api::Options options;
  options.token = Secret("t");
  Fixture f(std::move(options));
  const std::string answer =
      f.send("POST", "/v1/transfers", json_type + "Expect: 100-continue\r\nContent-Length: 100000\r\n");
  cr_expect_eq(status_of(answer), "401", "no 100 Continue before it: %s", answer.c_str());
}

// ---- errors

Test(api, errors_of_the_manager_become_problems) {
  Fixture f;
  const auto answer_to = [&](Error error) {
    fake().error = std::move(error);
    return f.send("POST", "/v1/transfers", json_type, "{}");
  };
  const std::string unknown =
      answer_to(Error(Category::input, "unknown_field", "unknown field \"taget\"").with_field("taget").with_hint("h"));
  expect_problem(unknown, "422", "unknown_field");
  cr_expect_eq(member(unknown, "field"), "taget");
  cr_expect_eq(member(unknown, "hint"), "h");
  expect_problem(answer_to(Error(Category::not_found, "connection_unknown", "d")), "422", "connection_unknown");
  expect_problem(answer_to(Error(Category::forbidden, "connection_not_writable", "d")), "403",
                 "connection_not_writable");
  const std::string full = answer_to(Error(Category::conflict, "queue_full", "d"));
  expect_problem(full, "429", "queue_full");
  cr_expect_eq(header_of(full, "Retry-After"), "5");
  const std::string stopping = answer_to(Error(Category::conflict, "shutting_down", "d"));
  expect_problem(stopping, "503", "shutting_down");
  cr_expect_eq(header_of(stopping, "Retry-After"), "5");
  expect_problem(answer_to(Error(Category::input, "idempotency_key_reused", "d")), "422", "idempotency_key_reused");
}

Test(api, what_a_database_said_reaches_the_client) {
  Fixture f;
  fake().error = Error(Category::server, "server_error", "d")
                     .with_connection("warehouse")
                     .with_fault({.number = "4060", .severity = 11, .message = "Cannot open database"});
  const std::string answer = f.send("POST", "/v1/plan", json_type, "{}");
  expect_problem(answer, "502", "server_error");
  cr_expect_eq(member(answer, "connection"), "warehouse");
  const Json body = Json::parse(body_of(answer));
  cr_expect_eq(*body.find("server")->find("number")->string(), "4060");
}

Test(api, unexpected_exceptions_do_not_reach_the_client) {
  Fixture f;
  fake().unexpected = true;
  const std::string answer = f.send("GET", "/v1/pipelines");
  expect_problem(answer, "500", "internal");
  cr_expect_eq(answer.find("secret"), std::string::npos);
}

Test(api, every_category_has_a_status) {
  const std::pair<Category, int> expected[] = {
      {Category::input, 422},          {Category::forbidden, 403},   {Category::not_found, 422},
      {Category::conflict, 409},       {Category::unsupported, 422}, {Category::data, 422},
      {Category::connection, 502},     {Category::timeout, 504},     {Category::server, 502},
      {Category::commit_unknown, 409}, {Category::cancelled, 503},   {Category::internal, 500}};
  for (const auto& [category, status] : expected) cr_expect_eq(api::status_of(Error(category, "x", "d")), status);
}

// ---- the description

Test(api, the_description_names_every_route) {
  Fixture f;
  const std::string yaml = body_of(f.send("GET", "/openapi.yaml"));
  cr_expect_eq(yaml, api::openapi_yaml());
  for (const char* path : {"/v1/transfers:", "/v1/transfers/{id}:", "/v1/transfers/{id}/resume:",
                           "/v1/transfers/{id}/artifact:", "/v1/plan:", "/v1/pipelines:", "/v1/pipelines/{name}/runs:",
                           "/healthz:", "/readyz:", "/openapi.yaml:", "/spec.schema.json:"}) {
    cr_expect_neq(yaml.find(fmt::format("\n  {}\n", path)), std::string::npos, "%s", path);
  }
  cr_expect_eq(body_of(f.send("GET", "/spec.schema.json")), R"({"title":"spec"})");
}

// ---- the listen rule

Test(guards, only_a_token_opens_other_addresses_than_loopback) {
  const auto refused = [](const char* host, bool token) {
    try {
      api::check_listen(host, token);
    } catch (const Error& error) {
      return error.code() == "token_required";
    }
    return false;
  };
  for (const char* host : {"127.0.0.1", "127.9.9.9", "::1", "localhost"})
    cr_expect_not(refused(host, false), "%s", host);
  for (const char* host : {"0.0.0.0", "::", "10.0.0.1", "ferry.example", "", "1270.0.1"}) {
    cr_expect(refused(host, false), "%s", host);
    cr_expect_not(refused(host, true), "%s", host);
  }
}

Test(guards, a_wildcard_address_is_named_by_any_address_but_by_no_foreign_name) {
  const api::HostRule rule("0.0.0.0", {"ferry.example"});
  for (const char* host : {"10.1.2.3:80", "[fe80::1]:80", "localhost:80", "ferry.example"})
    cr_expect(rule.allows(host), "%s", host);
  for (const char* host : {"evil.example", "localhost.evil.example", "10.1.2.3.evil.example"})
    cr_expect_not(rule.allows(host), "%s", host);
  const api::HostRule v6("::1", {});
  cr_expect(v6.allows("[::1]:8080"));
  cr_expect(v6.allows("localhost"));
  cr_expect_not(v6.allows("[::2]:8080"));
}
