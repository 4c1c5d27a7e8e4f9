// rowferry: the command line. Parses arguments, sets up logging, hands over to one subcommand.
#include <CLI/CLI.hpp>

#include "app/commands.hpp"
#include "app/output.hpp"
#include "app/sandbox_command.hpp"
#include "app/service.hpp"
#include "base/error.hpp"
#include "base/limits.hpp"
#include "base/log.hpp"
#include "base/text.hpp"

namespace {

using namespace rowferry;  // NOLINT(google-build-using-namespace): the program's own namespace

struct Arguments {
  std::string config = "rowferry.toml";
  std::string log = "text";
  std::string log_level;
  app::ServeOptions serve;
  std::string spec;
  std::string format = "text";
  std::string id;
  std::string older_than = "7d";
  bool yes = false;
  std::string address;
  app::SandboxArguments sandbox;
};

CLI::App* with_config(CLI::App* command, Arguments& a) {
  command->add_option("--config", a.config, "configuration file (TOML)")->capture_default_str();
  return command;
}

void declare(CLI::App& cli, Arguments& a) {
  cli.add_option("--log", a.log, "log format")->check(CLI::IsMember({"text", "json"}))->capture_default_str();
  cli.add_option("--log-level", a.log_level, "least level that is logged; default: info for serve, else warning")
      ->check(CLI::IsMember({"debug", "info", "warning", "error"}));
  cli.set_version_flag("--version", std::string(app::version));
  cli.require_subcommand(1);
  cli.fallthrough();

  CLI::App* serve = with_config(cli.add_subcommand("serve", "serve the HTTP interface"), a);
  serve->add_option("--listen", a.serve.listen, "HOST:PORT instead of server.listen; port 0 takes a free one");

  CLI::App* transfer = with_config(cli.add_subcommand("transfer", "run one transfer; prints its artifact"), a);
  transfer->add_option("spec", a.spec, "spec file (JSON), or - for standard input")->required();

  CLI::App* plan = with_config(cli.add_subcommand("plan", "say what a transfer would do; writes nothing"), a);
  plan->add_option("spec", a.spec, "spec file (JSON), or - for standard input")->required();
  plan->add_option("--format", a.format, "json or text")->check(CLI::IsMember({"json", "text"}))->capture_default_str();

  CLI::App* resume =
      with_config(cli.add_subcommand("resume", "go on with an interrupted, failed or cancelled transfer"), a);
  resume->add_option("id", a.id, "the transfer's id")->required();

  CLI::App* clean = with_config(cli.add_subcommand("clean", "list (or drop) staging tables that nobody needs"), a);
  clean->add_option("--older-than", a.older_than, "only of transfers that ended so long ago")->capture_default_str();
  clean->add_flag("--yes", a.yes, "drop them");

  CLI::App* health = with_config(cli.add_subcommand("health", "ask a running service whether it is well"), a);
  health->add_option("--address", a.address, "HOST:PORT instead of server.listen");

  app::declare_sandbox(*cli.add_subcommand("sandbox", "a small TDS server for first runs, tests and measurements"),
                       a.sandbox);
}

int run(const CLI::App& cli, const Arguments& a) {
  if (cli.got_subcommand("serve")) {
    app::ServeOptions serve = a.serve;
    serve.config = a.config;
    return app::serve(serve);
  }
  if (cli.got_subcommand("transfer")) return app::transfer(a.config, a.spec);
  if (cli.got_subcommand("plan")) return app::plan(a.config, a.spec, a.format);
  if (cli.got_subcommand("resume")) return app::resume(a.config, a.id);
  if (cli.got_subcommand("clean")) return app::clean(a.config, a.older_than, a.yes);
  if (cli.got_subcommand("health")) return app::health(a.config, a.address);
  return app::sandbox(a.sandbox);
}

// Help and version, or what is wrong with the arguments. CLI11 misses a subcommand before it looks at what was given.
int answer_parse_error(const CLI::App& cli, const CLI::ParseError& error) {
  const std::vector<std::string> unknown = cli.remaining();
  if (error.get_exit_code() == 0) {
    (void)cli.exit(error, std::cout, std::cerr);
    return std::cout.flush() ? app::exit_ok : app::exit_failed;
  }
  if (cli.get_subcommands().empty() && !unknown.empty()) {
    std::string names;
    for (const CLI::App* command : cli.get_subcommands({})) names += (names.empty() ? "" : ", ") + command->get_name();
    app::print_message("rowferry: unknown argument \"{}\"; the subcommands are {}\n",
                       cut_for_message(unknown.front(), limits::error_value_chars), names);
  } else {
    (void)cli.exit(error, std::cout, std::cerr);
  }
  return app::exit_bad_input;
}

}  // namespace

int main(int argc, char** argv) {
  app::prepare_standard_streams();
  CLI::App cli("rowferry moves whole tables, fast and exactly.", "rowferry");
  Arguments arguments;
  declare(cli, arguments);
  try {
    cli.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return answer_parse_error(cli, error);
  }
  try {
    // A command's own progress lines say what the events of a service would say.
    if (arguments.log_level.empty()) arguments.log_level = cli.got_subcommand("serve") ? "info" : "warning";
    log::setup(*log::parse_format(arguments.log), *log::parse_level(arguments.log_level));
    return run(cli, arguments);
  } catch (const std::exception& error) {
    app::print_message("rowferry: {}\n", error.what());
    return app::exit_failed;
  }
}
