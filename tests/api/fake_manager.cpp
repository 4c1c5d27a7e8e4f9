#include "fake_manager.hpp"

#include <fmt/format.h>

#include <stdexcept>

#include "base/json.hpp"

namespace rowferry::testing {

FakeManager& fake() {
  static FakeManager manager;
  return manager;
}

}  // namespace rowferry::testing

namespace rowferry::transfer {

using testing::fake;

namespace {

void called(std::string what) {
  fake().calls.push_back(std::move(what));
  if (fake().unexpected) throw std::runtime_error("something with a secret");
  if (fake().error) throw Error(*std::exchange(fake().error, std::nullopt));
}

Document document(const std::string& id, std::string_view kind) {
  const auto found = fake().transfers.find(id);
  if (found == fake().transfers.end())
    throw Error(Category::not_found, "transfer_unknown", fmt::format("no transfer has the id \"{}\"", id));
  JsonWriter json;
  json.begin_object().field("id", id).field("state", to_string(found->second.state)).field("kind", kind).end_object();
  return {.json = json.take(), .etag = fmt::format("v{}", found->second.version)};
}

}  // namespace

std::string_view to_string(State value) noexcept {
  constexpr std::array<std::string_view, 9> names{"queued",    "planning", "running",   "verifying",  "finalizing",
                                                  "succeeded", "failed",   "cancelled", "interrupted"};
  return names[static_cast<std::size_t>(value)];
}
std::optional<State> state_from(std::string_view name) noexcept {
  for (int i = 0; i < 9; ++i) {
    if (to_string(static_cast<State>(i)) == name) return static_cast<State>(i);
  }
  return std::nullopt;
}
std::string_view spec_schema() noexcept { return R"({"title":"spec"})"; }

struct Manager::Impl {};
Manager::Manager(net::Loop&, Settings, Connections&) : impl_(std::make_unique<Impl>()) {}
Manager::~Manager() = default;
bool Manager::shutting_down() const noexcept { return fake().shutting_down; }
async::Task<std::optional<std::string>> Manager::not_ready() { co_return fake().not_ready; }

async::Task<Submitted> Manager::submit(SubmitRequest request) {
  called(fmt::format("submit {} key={}", request.spec, request.idempotency_key));
  Json::parse(request.spec, {.bytes = limits::spec_bytes_max, .depth = limits::spec_depth_max});
  fake().transfers["t1"] = {};
  co_return Submitted{.id = "t1", .repeated = false, .status = document("t1", "status")};
}
async::Task<std::string> Manager::plan(std::string spec, PlanFormat format) {
  called(fmt::format("plan {}", spec));
  co_return format == PlanFormat::text ? "a plan" : R"({"plan":true})";
}
async::Task<std::string> Manager::list(ListRequest request) {
  called(fmt::format("list limit={} after={} state={}", request.limit, request.after, request.state));
  co_return R"({"transfers":[],"next":null})";
}
async::Task<Document> Manager::status(std::string id) {
  called(fmt::format("status {}", id));
  co_return document(id, "status");
}
async::Task<Document> Manager::artifact(std::string id) {
  called(fmt::format("artifact {}", id));
  Document found = document(id, "artifact");
  if (!is_terminal(fake().transfers[id].state))
    throw Error(Category::conflict, "no_artifact_yet", "the transfer is still running");
  co_return found;
}
async::Task<Document> Manager::cancel(std::string id) {
  called(fmt::format("cancel {}", id));
  Document found = document(id, "status");
  if (is_terminal(fake().transfers[id].state))
    throw Error(Category::conflict, "transfer_ended", "the transfer has ended");
  co_return found;
}
async::Task<Document> Manager::resume(std::string id) {
  called(fmt::format("resume {}", id));
  Document found = document(id, "status");
  if (!is_terminal(fake().transfers[id].state))
    throw Error(Category::conflict, "transfer_active", "the transfer is running");
  co_return found;
}
async::Task<std::string> Manager::pipelines() {
  called("pipelines");
  co_return R"({"pipelines":[]})";
}
async::Task<Submitted> Manager::run_pipeline(std::string name, std::string idempotency_key) {
  called(fmt::format("run {} key={}", name, idempotency_key));
  if (name != "hourly") throw Error(Category::not_found, "pipeline_unknown", "no such pipeline");
  fake().transfers["t2"] = {};
  co_return Submitted{.id = "t2", .repeated = false, .status = document("t2", "status")};
}

}  // namespace rowferry::transfer
