// The subcommands of rowferry. Each runs on its own loop and gives the process's exit code (docs/cli.md).
#pragma once

#include <string>

#include "app/config.hpp"

namespace rowferry::app {

// 0 ok · 1 failed · 2 bad input, nothing written · 3 commit unknown · 4 stopped or could not finish, resume possible ·
// 130 cancelled
enum Exit : int {
  exit_ok = 0,
  exit_failed = 1,
  exit_bad_input = 2,
  exit_commit_unknown = 3,
  exit_stopped = 4,
  exit_cancelled = 130,
};

struct ServeOptions {
  std::string config;
  std::string listen;  // overrides server.listen
};
int serve(const ServeOptions& options);

// `spec` is a file, or "-" for standard input. The artifact goes to standard output, progress to standard error.
int transfer(const std::string& config, const std::string& spec);
int plan(const std::string& config, const std::string& spec, const std::string& format);
int resume(const std::string& config, const std::string& id);
int clean(const std::string& config, const std::string& older_than, bool yes);

// Asks a running service's /healthz; for container health checks.
int health(const std::string& config, const std::string& address);

}  // namespace rowferry::app
