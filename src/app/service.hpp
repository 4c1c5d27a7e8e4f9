// Service: the configured connections and the manager that drives them. main wires; nothing here is global.
#pragma once

#include <map>
#include <memory>

#include "app/config.hpp"
#include "net/loop.hpp"
#include "transfer/manager.hpp"

namespace rowferry::app {

inline constexpr std::string_view version = ROWFERRY_VERSION;

// One configured entry becomes a connection of its system; the table of systems is in systems.cpp.
std::unique_ptr<system::Connection> make_connection(net::Loop& loop, const ConnectionConfig& config,
                                                    const ServerConfig& server);

class Registry final : public transfer::Connections {
 public:
  Registry(net::Loop& loop, const Config& config);
  system::Connection* find(std::string_view name) override;
  std::vector<std::string> names() const override;

 private:
  std::map<std::string, std::unique_ptr<system::Connection>, std::less<>> connections_;
};

class Service {
 public:
  Service(net::Loop& loop, Config config);
  const Config& config() const noexcept { return config_; }
  transfer::Manager& manager() noexcept { return manager_; }

 private:
  Config config_;
  Registry registry_;
  transfer::Manager manager_;
};

}  // namespace rowferry::app
