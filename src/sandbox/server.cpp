#include "sandbox/server.hpp"

#include <fmt/format.h>

#include <cstdio>

#include "sandbox/connection.hpp"

namespace rowferry::sandbox {

std::optional<Encrypt> parse_encrypt(std::string_view text) noexcept {
  if (text == "off") return Encrypt::off;
  if (text == "login") return Encrypt::login;
  if (text == "on") return Encrypt::on;
  return std::nullopt;
}

struct SandboxServer::State {
  State(net::Loop& on, Options with)
      : options(std::move(with)),
        engine({.discard = options.discard, .server_name = server_name, .databases = options.databases}),
        shared{on, options, engine, {}, {}},
        scope({&on.queue(), nullptr}) {}

  Options options;
  engine::Server engine;
  Shared shared;
  std::string certificate;
  std::unique_ptr<net::Listener> listener;
  std::size_t connections = 0;
  async::Scope scope;
};

namespace {

// The handshake travels in TDS packets, which only works up to TLS 1.2 (MS-TDS 2.2.6.5).
net::TlsContext make_tls(const Options& options, std::string& certificate) {
  net::TlsServerOptions tls;
  tls.max_version = net::TlsVersion::tls1_2;
  if (options.tls_cert.empty()) {
    net::CertificateAndKey made = net::make_self_signed();
    certificate = made.certificate_pem;
    tls.certificate_pem = std::move(made.certificate_pem);
    tls.key_pem = std::move(made.key_pem);
  } else {
    tls.certificate_file = options.tls_cert;
    tls.key_file = options.tls_key;
  }
  return net::TlsContext::server(tls);
}

}  // namespace

SandboxServer::SandboxServer(net::Loop& loop, Options options)
    : state_(std::make_unique<State>(loop, std::move(options))) {
  State& state = *state_;
  if (state.options.encrypt != Encrypt::off) {
    state.shared.tls.emplace(make_tls(state.options, state.certificate));
  }
  state.engine.on_wake([shared = &state.shared](int spid) {
    const auto found = shared->by_spid.find(spid);
    if (found != shared->by_spid.end()) found->second->wake();
  });
  state.engine.on_kill([shared = &state.shared](int spid) {
    const auto found = shared->by_spid.find(spid);
    if (found != shared->by_spid.end()) found->second->kill();
  });
  state.listener = std::make_unique<net::Listener>(loop, state.options.host, state.options.port);
  state.scope.spawn(accept_all(&state));
}

SandboxServer::~SandboxServer() = default;

std::uint16_t SandboxServer::port() const noexcept { return state_->listener->port(); }
std::size_t SandboxServer::connections() const noexcept { return state_->connections; }
const std::string& SandboxServer::certificate_pem() const noexcept { return state_->certificate; }

async::Task<void> SandboxServer::accept_all(State* state) {
  while (true) {
    std::unique_ptr<net::TcpStream> stream = co_await state->listener->accept();
    if (state->connections >= state->options.connections_max) continue;  // closed at once
    std::string peer = stream->peer();
    state->scope.spawn(serve_one(state, std::move(stream), std::move(peer)));
  }
}

// A connection that fails is over; it must not end the others.
async::Task<void> SandboxServer::serve_one(State* state, std::unique_ptr<net::Stream> stream, std::string peer) {
  ++state->connections;
  try {
    Connection connection(state->shared, std::move(stream), std::move(peer));
    co_await connection.run();
  } catch (const Error& error) {
    const bool ordinary = error.category() == Category::connection || error.category() == Category::timeout ||
                          error.category() == Category::cancelled;
    if (!ordinary) std::fprintf(stderr, "sandbox: a connection ended: %s\n", error.one_line().c_str());
  }
  --state->connections;
}

async::Task<void> SandboxServer::serve(std::unique_ptr<net::Stream> stream, std::string peer) {
  return serve_one(state_.get(), std::move(stream), std::move(peer));
}

async::Task<void> SandboxServer::stop() {
  state_->scope.cancel();
  try {
    co_await state_->scope.join();
  } catch (const Error& error) {
    if (error.category() != Category::cancelled) throw;
  }
}

namespace {

async::Task<void> serve_for_ever() {
  async::Event never;
  co_await never.wait();
}

}  // namespace

async::Task<void> run(net::Loop& loop, Options options) {
  const std::string host = options.host;
  const bool discard = options.discard;
  SandboxServer server(loop, std::move(options));
  const bool v6 = host.find(':') != std::string::npos;
  // Not fmt::print, which throws when nobody hears of it.
  std::fputs(fmt::format("rowferry sandbox (not SQL Server) listening on {}{}{}:{}{}\n", v6 ? "[" : "", host,
                         v6 ? "]" : "", server.port(), discard ? ", rows are discarded" : "")
                 .c_str(),
             stdout);
  std::fflush(stdout);
  std::exception_ptr ended;
  try {
    co_await serve_for_ever();
  } catch (...) {
    ended = std::current_exception();
  }
  co_await async::shield(server.stop());
  std::rethrow_exception(ended);
}

}  // namespace rowferry::sandbox
