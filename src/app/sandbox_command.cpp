#include "app/sandbox_command.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdlib>

#include "api/guards.hpp"
#include "app/commands.hpp"
#include "app/output.hpp"
#include "base/file.hpp"
#include "base/limits.hpp"
#include "net/signal.hpp"
#include "sandbox/server.hpp"

namespace rowferry::app {

namespace {

sandbox::Options options_of(const SandboxArguments& a) {
  sandbox::Options options;
  parse_listen(a.listen, options.host, options.port);
  options.discard = a.discard;
  options.databases = a.databases;
  options.user = a.user;
  if (!a.password_env.empty()) {
    options.password = std::string(SecretSource{SecretSource::Kind::env, a.password_env}.read().reveal());
  } else if (!api::is_loopback(options.host)) {
    throw Error(Category::input, "password_needed", "a sandbox that listens beyond loopback needs --password-env")
        .with_field("--password-env");
  }
  const auto encrypt = sandbox::parse_encrypt(a.encrypt);
  if (!encrypt) {
    throw Error(Category::input, "bad_value", "--encrypt must be off, login or on (strict is not available yet)")
        .with_field("--encrypt");
  }
  options.encrypt = *encrypt;
  options.tls_cert = a.tls_cert;
  options.tls_key = a.tls_key;
  if (!a.faults.empty()) {
    const FileText file = read_whole_file(a.faults, limits::config_bytes_max, FileKind::any);
    if (!file.problem.empty()) {
      throw Error(Category::input, "faults_missing", fmt::format("cannot read {}: {}", a.faults, file.problem))
          .with_field("--faults");
    }
    options.faults = std::make_shared<sandbox::FaultPlan>(sandbox::FaultPlan::from_json(file.text));
  }
  return options;
}

async::Task<void> stop_on_signal(net::Loop* loop, async::Scope* server) {
  net::Signals signals(*loop, {SIGINT, SIGTERM});
  co_await signals.next();
  server->cancel();
}

async::Task<int> serve_until_signal(net::Loop* loop, const sandbox::Options* options) {
  async::Scope scope(co_await async::current_context());
  scope.spawn(sandbox::run(*loop, *options));
  scope.spawn(stop_on_signal(loop, &scope));
  try {
    co_await scope.join();
  } catch (const Error& error) {
    if (error.category() != Category::cancelled) throw;
  }
  co_return exit_ok;
}

}  // namespace

void declare_sandbox(CLI::App& command, SandboxArguments& a) {
  command.add_option("--listen", a.listen, "HOST:PORT; port 0 takes a free one")->capture_default_str();
  command.add_flag("--discard", a.discard, "check, count and hash loaded rows, keep none");
  command.add_option("--database", a.databases, "make this database (may be repeated)");
  command.add_option("--user", a.user, "the login's name")->capture_default_str();
  command.add_option("--password-env", a.password_env, "environment variable with the password; none: any is let in");
  command.add_option("--tls-cert", a.tls_cert, "PEM certificate; none: one is made in memory");
  command.add_option("--tls-key", a.tls_key, "PEM key");
  command.add_option("--encrypt", a.encrypt, "off, login or on")->capture_default_str();
  command.add_option("--faults", a.faults, "JSON file with faults to commit, for tests of clients");
}

int sandbox(const SandboxArguments& arguments) {
  try {
    const sandbox::Options options = options_of(arguments);
    net::Loop loop;
    return loop.run(serve_until_signal(&loop, &options));
  } catch (const Error& error) {
    print_message("rowferry: {}\n", error.one_line());
    return error.category() == Category::input ? exit_bad_input : exit_failed;
  }
}

}  // namespace rowferry::app
