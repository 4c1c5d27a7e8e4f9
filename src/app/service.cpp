#include "app/service.hpp"

namespace rowferry::app {

namespace {

transfer::Settings manager_settings(const Config& config) {
  transfer::Settings settings;
  settings.state_dir = config.server.state_dir;
  settings.version = version;
  settings.max_transfers = config.server.max_transfers;
  settings.retain = config.server.retain;
  settings.resume_on_start = config.server.resume_on_start;
  for (const auto& [name, pipeline] : config.pipelines) settings.pipelines[name] = {.path = pipeline.spec_file};
  return settings;
}

}  // namespace

Registry::Registry(net::Loop& loop, const Config& config) {
  for (const auto& [name, connection] : config.connections) {
    connections_.emplace(name, make_connection(loop, connection, config.server));
  }
}

system::Connection* Registry::find(std::string_view name) {
  const auto found = connections_.find(name);
  return found == connections_.end() ? nullptr : found->second.get();
}

std::vector<std::string> Registry::names() const {
  std::vector<std::string> all;
  for (const auto& [name, connection] : connections_) all.push_back(name);
  return all;
}

Service::Service(net::Loop& loop, Config config)
    : config_(std::move(config)), registry_(loop, config_), manager_(loop, manager_settings(config_), registry_) {}

}  // namespace rowferry::app
