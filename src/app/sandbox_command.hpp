// rowferry sandbox: the embedded TDS server as a subcommand. Needs no configuration.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace rowferry::app {

struct SandboxArguments {
  std::string listen = "127.0.0.1:1433";
  bool discard = false;
  std::vector<std::string> databases;
  std::string user = "sa";
  std::string password_env;
  std::string tls_cert;
  std::string tls_key;
  std::string encrypt = "off";
  std::string faults;
};

void declare_sandbox(CLI::App& command, SandboxArguments& arguments);
// Serves until SIGINT or SIGTERM; gives the exit code.
int sandbox(const SandboxArguments& arguments);

}  // namespace rowferry::app
