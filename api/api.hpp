// Api: the HTTP surface of the engine (contract.md, "HTTP (v1)"; openapi.yaml beside this file describes every route).
//
//   Api api(loop, manager, options);                 // refuses to be reachable without a token
//   http::Server server(loop, {.host = …, .port = …, .tls = …}, api);
//   scope.spawn(server.run()); … api.stop(); server.stop();
// Handlers hold no state of their own: everything is asked of the Manager, and the documents that it gives are sent as
// they are. Nothing here blocks, so polls stay fast while transfers run.
#pragma once

#include <string>
#include <vector>

#include "api/guards.hpp"
#include "http/server.hpp"
#include "transfer/manager.hpp"

namespace rowferry::api {

struct Options {
  std::string listen_host = "127.0.0.1";  // as configured, without port
  std::vector<std::string> allowed_hosts;
  Secret token;  // empty: none is asked for
};

class Api final : public http::Handler {
 public:
  // Loop and manager outlive it. Error(input, "token_required") as check_listen().
  Api(net::Loop& loop, transfer::Manager& manager, Options options);

  async::Task<http::Response> handle(const http::Request& request, http::Body& body) override;
  void served(const http::Request& request, int status, std::chrono::microseconds took) override;
  // /readyz answers 503 from here on, so that a load balancer sends no more.
  void stop() noexcept { stopping_ = true; }

 private:
  struct Call;   // one request on its route
  struct Route;  // method, path, handler
  static const std::vector<Route>& routes();

  std::optional<http::Response> refuse(const http::Request& request, bool open_to_all) const;
  async::Task<http::Response> dispatch(const http::Request& request, http::Body& body);
  async::Task<http::Response> run(const Route* route, Call* call, http::Body* body);

  async::Task<http::Response> health(Call* call);
  async::Task<http::Response> ready(Call* call);
  async::Task<http::Response> description(Call* call);
  async::Task<http::Response> schema(Call* call);
  async::Task<http::Response> start_transfer(Call* call);
  async::Task<http::Response> list_transfers(Call* call);
  async::Task<http::Response> show_transfer(Call* call);
  async::Task<http::Response> cancel_transfer(Call* call);
  async::Task<http::Response> resume_transfer(Call* call);
  async::Task<http::Response> show_artifact(Call* call);
  async::Task<http::Response> plan(Call* call);
  async::Task<http::Response> list_pipelines(Call* call);
  async::Task<http::Response> run_pipeline(Call* call);

  net::Loop& loop_;
  transfer::Manager& manager_;
  HostRule hosts_;
  Secret token_;
  bool stopping_ = false;
};

// openapi.yaml, as compiled in.
std::string_view openapi_yaml() noexcept;

}  // namespace rowferry::api
