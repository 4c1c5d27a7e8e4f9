// The surface on the real manager, with connections whose servers cannot be reached.
#include <criterion/criterion.h>
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "api/api.hpp"
#include "base/json.hpp"
#include "base/log.hpp"
#include "harness.hpp"

using namespace rowferry;
using namespace rowferry::testing;
using async::Task;
using net::milliseconds;

namespace {

class Unreachable final : public system::Connection {
 public:
  Unreachable(std::string name, std::string system, bool writable)
      : name_(std::move(name)), system_(std::move(system)), writable_(writable) {}
  const std::string& name() const noexcept override { return name_; }
  std::string_view system() const noexcept override { return system_; }
  bool writable() const noexcept override { return writable_; }
  system::TableName parse_table(std::string_view text) const override { return {{"s", std::string(text)}}; }
  bool honours(std::string_view, std::string_view) const override { return true; }
  std::unique_ptr<system::Source> make_source() override { throw unreachable(); }
  std::unique_ptr<system::Target> make_target() override { throw unreachable(); }

 private:
  Error unreachable() const {
    return Error(Category::connection, "connect_failed", "cannot connect: connection refused").with_connection(name_);
  }
  std::string name_;
  std::string system_;
  bool writable_;
};

class TwoConnections final : public transfer::Connections {
 public:
  system::Connection* find(std::string_view name) override {
    if (name == "shop") return &shop_;
    return name == "warehouse" ? &warehouse_ : nullptr;
  }
  std::vector<std::string> names() const override { return {"shop", "warehouse"}; }

 private:
  Unreachable shop_{"shop", "postgres", false};
  Unreachable warehouse_{"warehouse", "mssql", true};
};

std::string temp_folder() {
  char path[] = "/tmp/rowferry-test-XXXXXX";
  cr_assert_not_null(mkdtemp(path));
  return path;
}

struct Engine {
  Engine() {
    log::setup(log::Format::text, log::Level::error);
    settings.state_dir = folder + "/state";
    settings.version = "test";
    settings.retry_backoff_first = milliseconds(1);
    manager.emplace(loop, settings, connections);
    api.emplace(loop, *manager, api::Options{});
    server.emplace(loop, http::ServerOptions{}, *api);
  }
  ~Engine() { std::filesystem::remove_all(folder); }

  Task<void> serve(Task<void> client) {
    co_await manager->start();
    async::Scope scope(co_await async::current_context());
    scope.spawn(manager->serve());
    scope.spawn(server->run());
    std::exception_ptr failed;
    try {
      co_await std::move(client);
    } catch (...) {
      failed = std::current_exception();
    }
    co_await manager->shutdown(milliseconds(1000));
    server->stop();
    co_await scope.join();
    if (failed) std::rethrow_exception(failed);
  }
  void run(Task<void> client) { loop.run(serve(std::move(client))); }

  Task<std::string> ask(std::string method, std::string path, std::string body = "") {
    std::string request = fmt::format("{} {} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n", method, path);
    if (!body.empty()) request += fmt::format("Content-Type: application/json\r\nContent-Length: {}\r\n", body.size());
    co_return co_await testing::ask(&loop, server->port(), request + "\r\n" + body);
  }

  std::string folder = temp_folder();
  net::Loop loop;
  TwoConnections connections;
  transfer::Settings settings;
  std::optional<transfer::Manager> manager;
  std::optional<api::Api> api;
  std::optional<http::Server> server;
};

std::string text_of(const std::string& answer, std::string_view name) {
  const Json body = Json::parse(body_of(answer));
  const Json* found = body.find(name);
  return found == nullptr || found->string() == nullptr ? "" : *found->string();
}

std::string spec(const std::string& source = "shop", const std::string& target = "warehouse") {
  return fmt::format(R"({{"source": {{"connection": "{}", "table": "orders"}},
                         "target": {{"connection": "{}", "table": "orders", "mode": "append"}}}})",
                     source, target);
}

Task<void> whole_life(Engine* e) {
  const std::string accepted = co_await e->ask("POST", "/v1/transfers", spec());
  cr_assert_eq(status_of(accepted), "202", "%s", accepted.c_str());
  const std::string location = header_of(accepted, "Location");
  cr_expect_eq(location, "/v1/transfers/" + text_of(accepted, "id"));
  std::string status;
  for (int i = 0; i < 500; ++i) {
    status = co_await e->ask("GET", location);
    if (text_of(status, "state") == "failed") break;
    co_await net::sleep_for(e->loop, milliseconds(10));
  }
  cr_assert_eq(text_of(status, "state"), "failed", "%s", status.c_str());
  const Json document = Json::parse(body_of(status));
  cr_expect_eq(*document.find("error")->find("code")->string(), "connect_failed");
  const std::string artifact = co_await e->ask("GET", location + "/artifact");
  cr_expect_eq(status_of(artifact), "200", "%s", artifact.c_str());
  const std::string cancelled = co_await e->ask("DELETE", location);
  cr_expect_eq(status_of(cancelled), "409");
  const std::string resumed = co_await e->ask("POST", location + "/resume");
  cr_expect_eq(status_of(resumed), "202", "%s", resumed.c_str());
  const std::string list = co_await e->ask("GET", "/v1/transfers?limit=1");
  const Json page = Json::parse(body_of(list));
  cr_assert_eq(page.find("transfers")->array()->size(), 1);
}

Task<void> refusals(Engine* e) {
  const std::pair<std::string, std::string> cases[] = {
      {"{", "400 malformed_json"},
      {"[]", "422 bad_value"},
      {R"({"sorce": {}})", "422 unknown_field"},
      {spec("shop", "nowhere"), "422 connection_unknown"},
      {spec("warehouse", "shop"), "403 connection_not_writable"},
      {std::string(40, '[') + std::string(40, ']'), "400 json_too_deep"},
  };
  for (const auto& [body, wanted] : cases) {
    const std::string answer = co_await e->ask("POST", "/v1/transfers", body);
    const std::string got = status_of(answer) + " " + text_of(answer, "code");
    cr_expect_eq(got, wanted, "%s", answer.c_str());
  }
  for (const char* id : {"none", "..%2F..%2Fetc%2Fpasswd", "%0d%0aX:%20y"}) {
    for (const char* rest : {"", "/artifact"}) {
      const std::string answer = co_await e->ask("GET", fmt::format("/v1/transfers/{}{}", id, rest));
      cr_expect_eq(status_of(answer), "404", "%s", answer.c_str());
      cr_expect_eq(text_of(answer, "code"), "transfer_unknown");
    }
  }
  const std::string plan = co_await e->ask("POST", "/v1/plan", spec());
  cr_expect_eq(status_of(plan), "502", "%s", plan.c_str());
  cr_expect_eq(text_of(plan, "connection"), "shop");
  const std::string run = co_await e->ask("POST", "/v1/pipelines/none/runs");
  cr_expect_eq(text_of(run, "code"), "pipeline_unknown");
  const std::string pipelines = co_await e->ask("GET", "/v1/pipelines");
  cr_expect_eq(body_of(pipelines), R"({"pipelines":[]})");
}

}  // namespace

Test(api_on_manager, a_transfer_runs_its_life_over_http, .timeout = 30) {
  Engine engine;
  engine.run(whole_life(&engine));
}

Test(api_on_manager, bad_input_is_refused_with_its_own_code, .timeout = 30) {
  Engine engine;
  engine.run(refusals(&engine));
}
