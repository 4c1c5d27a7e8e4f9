// The sandbox alone, for tests that drive it with other people's clients: the arguments of `rowferry sandbox`. Ends on
// SIGTERM.
#include <signal.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "net/signal.hpp"
#include "sandbox/server.hpp"

using namespace rowferry;

namespace {

std::string file_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

sandbox::Options parse(int argc, char** argv) {
  sandbox::Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--discard") {
      options.discard = true;
      continue;
    }
    const std::string value = i + 1 < argc ? argv[++i] : "";
    if (name == "--listen") {
      options.host = value.substr(0, value.rfind(':'));
      options.port = static_cast<std::uint16_t>(std::stoi(value.substr(value.rfind(':') + 1)));
    } else if (name == "--database") {
      options.databases.push_back(value);
    } else if (name == "--user") {
      options.user = value;
    } else if (name == "--password-env") {
      const char* const secret = std::getenv(value.c_str());
      options.password = secret == nullptr ? "" : secret;
    } else if (name == "--encrypt") {
      options.encrypt = sandbox::parse_encrypt(value).value();
    } else if (name == "--faults") {
      options.faults = std::make_shared<sandbox::FaultPlan>(sandbox::FaultPlan::from_json(file_text(value)));
    } else {
      throw Error(Category::input, "bad_argument", "unknown argument " + name);
    }
  }
  return options;
}

async::Task<void> stop_on_signal(net::Loop* loop, async::Scope* server) {
  net::Signals signals(*loop, {SIGTERM});
  co_await signals.next();
  server->cancel();
}

async::Task<void> serve(net::Loop* loop, const sandbox::Options* options) {
  async::Scope scope(co_await async::current_context());
  scope.spawn(sandbox::run(*loop, *options));
  scope.spawn(stop_on_signal(loop, &scope));
  try {
    co_await scope.join();
  } catch (const Error& error) {
    if (error.category() != Category::cancelled) throw;
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const sandbox::Options options = parse(argc, argv);
    net::Loop loop;
    loop.run(serve(&loop, &options));
    return 0;
  } catch (const Error& error) {
    std::fprintf(stderr, "sandbox: %s\n", error.one_line().c_str());
    return error.category() == Category::input ? 2 : 1;
  }
}
