#include <fmt/format.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdio>

#include "api/api.hpp"
#include "app/commands.hpp"
#include "app/output.hpp"
#include "app/service.hpp"
#include "base/file.hpp"
#include "base/limits.hpp"
#include "base/log.hpp"
#include "net/signal.hpp"

namespace rowferry::app {

namespace {

http::ServerOptions server_options(const ServerConfig& config) {
  http::ServerOptions options;
  options.host = config.host;
  options.port = config.port;
  if (!config.tls_cert.empty()) {
    net::TlsServerOptions tls;
    tls.certificate_file = config.tls_cert;
    tls.key_file = config.tls_key;
    options.tls = net::TlsContext::server(tls);
  }
  return options;
}

api::Options api_options(const ServerConfig& config) {
  api::Options options;
  options.listen_host = config.host;
  options.allowed_hosts = config.allowed_hosts;
  options.token = config.token.read();
  return options;
}

struct Running {
  Service* service;
  http::Server* server;
  api::Api* api;
};

// The first signal ends the service within its grace; a second one cancels what still runs.
async::Task<void> stop_in_order(Running* running) {
  running->api->stop();
  co_await running->service->manager().shutdown(running->service->config().server.shutdown_grace);
  running->server->stop();
}

async::Task<void> hasten(net::Signals* signals, Running* running) {
  co_await signals->next();
  co_await running->service->manager().shutdown(std::chrono::milliseconds{0});
}

async::Task<void> until_signal(net::Loop* loop, Running* running) {
  net::Signals signals(*loop, {SIGINT, SIGTERM});
  const int number = co_await signals.next();
  log::info("stopping", {{"signal", number}, {"running", running->service->manager().running()}});
  async::Scope scope(co_await async::current_context());
  scope.spawn(hasten(&signals, running));
  std::exception_ptr error;
  try {
    co_await stop_in_order(running);
  } catch (...) {
    error = std::current_exception();
  }
  co_await scope.end();
  if (error) std::rethrow_exception(error);
}

// Shells allow 1024 open files by default and much more on request; connections of clients need them.
void allow_more_files() {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
}

// A pipeline's file is read at each run and may come later; whoever has mistyped its name hears of it now.
void warn_of_missing_specs(const Config& config) {
  for (const auto& [name, pipeline] : config.pipelines) {
    const FileText spec = read_whole_file(pipeline.spec_file, limits::spec_bytes_max, FileKind::regular);
    if (spec.problem.empty()) continue;
    log::warning("the pipeline's spec file cannot be read",
                 {{"pipeline", name}, {"file", pipeline.spec_file}, {"problem", spec.problem}});
  }
}

async::Task<int> serve_all(net::Loop* loop, Service* service) {
  const ServerConfig& config = service->config().server;
  warn_of_missing_specs(service->config());
  co_await service->manager().start();
  api::Api api(*loop, service->manager(), api_options(config));
  http::Server server(*loop, server_options(config), api);
  Running running{service, &server, &api};
  const bool v6 = config.host.find(':') != std::string::npos;
  const std::string hello =
      fmt::format("rowferry {} listens on {}://{}{}{}:{}\n", version, config.tls_cert.empty() ? "http" : "https",
                  v6 ? "[" : "", config.host, v6 ? "]" : "", server.port());
  // The service does not depend on somebody hearing of it.
  if (!put(stdout, hello)) log::info("listening", {{"host", config.host}, {"port", server.port()}});
  async::Scope all(co_await async::current_context());
  all.spawn(service->manager().serve());
  all.spawn(server.run());
  all.spawn(until_signal(loop, &running));
  try {
    co_await all.join();
  } catch (const Error& error) {
    if (error.category() != Category::cancelled) throw;
  }
  co_return exit_ok;
}

}  // namespace

int serve(const ServeOptions& options) {
  try {
    Config config = load_config(options.config);
    if (!options.listen.empty()) parse_listen(options.listen, config.server.host, config.server.port);
    allow_more_files();
    net::Loop loop;
    Service service(loop, std::move(config));
    return loop.run(serve_all(&loop, &service));
  } catch (const Error& error) {
    print_message("rowferry: {}\n", error.one_line());
    return error.category() == Category::input ? exit_bad_input : exit_failed;
  }
}

namespace {

async::Task<int> ask_health(net::Loop* loop, std::string host, std::uint16_t port) {
  const auto stream = co_await net::TcpStream::connect(*loop, host, port, limits::health_timeout);
  const std::string request =
      fmt::format("GET /healthz HTTP/1.1\r\nHost: {}:{}\r\nConnection: close\r\n\r\n", host, port);
  co_await stream->write_all(as_bytes(request));
  std::string answer;
  std::uint8_t part[4096];
  while (answer.size() < limits::health_answer_bytes) {
    const std::size_t got = co_await stream->read_some(part);
    if (got == 0) break;
    answer += as_text({part, got});
  }
  if (answer.empty()) {
    throw Error(Category::connection, "no_answer",
                fmt::format("{}:{} gave no HTTP answer; a TLS listener is asked with curl", host, port));
  }
  const std::size_t body = answer.find("\r\n\r\n");
  print_result("{}\n", body == std::string::npos ? answer : answer.substr(body + 4));
  co_return answer.rfind("HTTP/1.1 200", 0) == 0 ? exit_ok : exit_failed;
}

}  // namespace

int health(const std::string& config, const std::string& address) {
  try {
    ServerConfig server;
    if (address.empty()) {
      server = load_config(config).server;
    } else {
      parse_listen(address, server.host, server.port);
    }
    if (!server.tls_cert.empty()) {
      throw Error(Category::unsupported, "not_supported", "health speaks plain HTTP; ask a TLS listener with curl");
    }
    net::Loop loop;
    return loop.run(net::with_deadline(loop, limits::health_timeout, "asking for the service's health",
                                       ask_health(&loop, server.host, server.port)));
  } catch (const Error& error) {
    print_message("rowferry: {}\n", error.one_line());
    return error.category() == Category::input ? exit_bad_input : exit_failed;
  }
}

}  // namespace rowferry::app
