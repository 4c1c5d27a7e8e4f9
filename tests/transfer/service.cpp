#include "tests/transfer/service.hpp"

#include <unistd.h>

#include <filesystem>
#include <stdexcept>

#include "async/scope.hpp"
#include "base/log.hpp"

namespace rowferry::test {

const char* const plain_spec =
    R"({"source": {"connection": "shop", "table": "public.orders"},
        "target": {"connection": "warehouse", "table": "dbo.orders", "mode": "append"}})";

std::string with(std::string_view members) {
  std::string spec = plain_spec;
  spec.insert(spec.rfind('}'), ", " + std::string(members));
  return spec;
}

TempDir::TempDir() {
  std::string name = (std::filesystem::temp_directory_path() / "rowferry-test-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp");
  path_ = name;
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

Service::Service() {
  log::redirect([](std::string_view) {});
  settings.state_dir = dir.path();
  settings.version = "test";
  settings.retry_backoff_first = std::chrono::milliseconds(1);
  connections.target.loop = &loop;
}

namespace {

Task<void> serve_around(Service* service, Task<void> (*scenario)(Service*)) {
  async::Scope scope(co_await async::current_context());
  co_await service->manager->start();
  scope.spawn(service->manager->serve());
  std::exception_ptr error;
  try {
    co_await scenario(service);
  } catch (...) {
    error = std::current_exception();
  }
  co_await service->manager->shutdown(std::chrono::milliseconds(0));
  co_await scope.join();
  if (error) std::rethrow_exception(error);
}

}  // namespace

void Service::run(Task<void> (*scenario)(Service*)) {
  manager = std::make_unique<transfer::Manager>(loop, settings, connections);
  loop.run(serve_around(this, scenario));
  manager.reset();
}

Task<void> Service::transfer(std::string spec) {
  id = (co_await manager->submit({.spec = std::move(spec), .idempotency_key = "", .pipeline = ""})).id;
  co_await finish();
}

Task<void> Service::finish() {
  outcome = co_await manager->wait(id);
  artifact = Json::parse((co_await manager->artifact(id)).json);
}

const Json& at(const Json& json, std::string_view path) {
  static const Json none;
  const Json* here = &json;
  while (!path.empty() && here != nullptr) {
    const std::size_t dot = path.find('.');
    here = here->find(path.substr(0, dot));
    path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
  }
  return here == nullptr ? none : *here;
}

std::string text_at(const Json& json, std::string_view path) {
  const std::string* text = at(json, path).string();
  return text == nullptr ? "" : *text;
}

std::uint64_t number_at(const Json& json, std::string_view path) {
  return at(json, path).uint64().value_or(static_cast<std::uint64_t>(-1));
}

std::string check_result(const Json& artifact, std::string_view name) {
  const Json::Array* checks = at(artifact, "checks").array();
  if (checks == nullptr) return "no checks";
  for (const Json& check : *checks) {
    if (text_at(check, "name") == name) return text_at(check, "result");
  }
  return "absent";
}

}  // namespace rowferry::test
