#include "api/api.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "api/errors.hpp"
#include "base/json.hpp"
#include "base/log.hpp"

namespace rowferry::api {

using async::Task;
using http::Request;
using http::Response;

// `parts` are the values of the path's {…}, decoded; `body` is the collected one.
struct Api::Call {
  const Request& request;
  std::vector<std::string> parts{};
  std::string body{};
};

struct Api::Route {
  enum class Needs : std::uint8_t { nothing, json };
  std::string_view method;
  std::string_view path;  // segments; one in braces takes any single segment
  Needs body;
  bool open_to_all;                          // no token, any Host: for probes
  std::vector<std::string_view> parameters;  // of the query
  Task<Response> (Api::*run)(Call*);
};

const std::vector<Api::Route>& Api::routes() {
  using enum Route::Needs;
  static const std::vector<Route> all{
      {"GET", "/healthz", nothing, true, {}, &Api::health},
      {"GET", "/readyz", nothing, true, {}, &Api::ready},
      {"GET", "/openapi.yaml", nothing, false, {}, &Api::description},
      {"GET", "/spec.schema.json", nothing, false, {}, &Api::schema},
      {"POST", "/v1/transfers", json, false, {}, &Api::start_transfer},
      {"GET", "/v1/transfers", nothing, false, {"limit", "after", "state"}, &Api::list_transfers},
      {"GET", "/v1/transfers/{id}", nothing, false, {}, &Api::show_transfer},
      {"DELETE", "/v1/transfers/{id}", nothing, false, {}, &Api::cancel_transfer},
      {"POST", "/v1/transfers/{id}/resume", nothing, false, {}, &Api::resume_transfer},
      {"GET", "/v1/transfers/{id}/artifact", nothing, false, {}, &Api::show_artifact},
      {"POST", "/v1/plan", json, false, {"format"}, &Api::plan},
      {"GET", "/v1/pipelines", nothing, false, {}, &Api::list_pipelines},
      {"POST", "/v1/pipelines/{name}/runs", nothing, false, {}, &Api::run_pipeline},
  };
  return all;
}

namespace {

Error bad_parameter(std::string_view name, std::string detail) {
  return Error(Category::input, "bad_parameter", std::move(detail)).with_field(std::string(name));
}

// The values of the braces when the path fits the pattern. A broken escape is no value.
std::optional<std::vector<std::string>> match(std::string_view pattern, std::string_view path) {
  std::vector<std::string> parts;
  while (!pattern.empty() && !path.empty()) {
    pattern.remove_prefix(1);
    path.remove_prefix(1);
    const std::string_view want = pattern.substr(0, pattern.find('/'));
    const std::string_view have = path.substr(0, path.find('/'));
    pattern.remove_prefix(want.size());
    path.remove_prefix(have.size());
    if (!want.starts_with('{')) {
      if (want != have) return std::nullopt;
      continue;
    }
    auto value = http::percent_decode(have);
    if (!value || value->empty()) return std::nullopt;
    parts.push_back(std::move(*value));
  }
  if (!pattern.empty() || !path.empty()) return std::nullopt;
  return parts;
}

void check_parameters(const Request& request, const std::vector<std::string_view>& known) {
  std::string_view rest = request.query;
  std::set<std::string> seen;
  while (!rest.empty()) {
    const std::string_view pair = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(pair.size() + 1, rest.size()));
    if (pair.empty()) continue;
    const auto name = http::percent_decode(pair.substr(0, pair.find('=')));
    const auto value = http::percent_decode(pair.substr(std::min(pair.find('='), pair.size())));
    if (!name || !value) throw bad_parameter("", "the query has a broken percent-escape");
    if (std::find(known.begin(), known.end(), *name) != known.end()) {
      if (value->find('\0') != std::string::npos) throw bad_parameter(*name, "a query parameter holds no zero byte");
      if (!seen.insert(*name).second) throw bad_parameter(*name, "the query parameter is given twice");
      continue;
    }
    Error unknown = bad_parameter(*name, fmt::format("unknown query parameter \"{}\"", cut_for_message(*name, 64)));
    const std::string_view near = nearest(*name, known);
    if (!near.empty()) unknown.with_hint(fmt::format("did you mean \"{}\"?", near));
    throw unknown;
  }
}

// RFC 9110 section 13.1.2, by weak comparison.
bool etag_known(const Request& request, const std::string& etag) {
  std::string_view rest = request.header("if-none-match");
  if (rest == "*") return true;
  while (!rest.empty()) {
    std::string_view one = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(one.size() + 1, rest.size()));
    while (!one.empty() && (one.front() == ' ' || one.front() == '\t')) one.remove_prefix(1);
    while (!one.empty() && (one.back() == ' ' || one.back() == '\t')) one.remove_suffix(1);
    if (one.starts_with("W/")) one.remove_prefix(2);
    if (one.size() == etag.size() + 2 && one.front() == '"' && one.substr(1, etag.size()) == etag) return true;
  }
  return false;
}

Response json_response(int status, std::string body) {
  return {.status = status,
          .content_type = "application/json",
          .body = std::move(body),
          .headers = {{"Cache-Control", "no-store"}}};
}

Response document_response(const Request& request, transfer::Document document) {
  Response response{.status = 200, .content_type = "application/json"};
  response.headers = {{"ETag", fmt::format("\"{}\"", document.etag)}, {"Cache-Control", "no-cache"}};
  if (etag_known(request, document.etag)) {
    response.status = 304;
    response.content_type.clear();
  } else {
    response.body = std::move(document.json);
  }
  return response;
}

Response accepted(const std::string& id, std::string status_document) {
  Response response = json_response(202, std::move(status_document));
  response.headers.push_back({"Location", fmt::format("/v1/transfers/{}", id)});
  return response;
}

}  // namespace

Api::Api(net::Loop& loop, transfer::Manager& manager, Options options)
    : loop_(loop),
      manager_(manager),
      hosts_(options.listen_host, std::move(options.allowed_hosts)),
      token_(std::move(options.token)) {
  check_listen(options.listen_host, !token_.empty());
}

Task<Response> Api::handle(const Request& request, http::Body& body) {
  std::exception_ptr failed;
  Response response;
  try {
    response = co_await dispatch(request, body);
  } catch (const http::Refused&) {
    throw;
  } catch (...) {
    if (is_cancelled(std::current_exception())) throw;
    failed = std::current_exception();
  }
  if (failed) response = error_response(failed);
  response.headers.push_back({"X-Content-Type-Options", "nosniff"});
  co_return response;
}

void Api::served(const Request& request, int status, std::chrono::microseconds took) {
  if (!log::enabled(log::Level::debug)) return;
  log::debug("request", {{"method", request.method},
                         {"path", request.path},
                         {"status", status},
                         {"microseconds", static_cast<std::int64_t>(took.count())}});
}

std::optional<Response> Api::refuse(const Request& request, bool open_to_all) const {
  if (open_to_all) return std::nullopt;
  if (!hosts_.allows(request.host)) {
    return http::problem_response(
        {.status = 421,
         .code = "host_not_allowed",
         .detail = fmt::format("this server is not known as \"{}\"", cut_for_message(request.host, 64)),
         .hint = "use the address that it listens on, or add the name to server.allowed_hosts"});
  }
  if (!origin_allowed(request)) {
    return http::problem_response(
        {.status = 403, .code = "origin_not_allowed", .detail = "requests from pages of other sites are refused"});
  }
  if (token_.empty() || request.path == "/openapi.yaml" || token_matches(request, token_)) return std::nullopt;
  Response response = http::problem_response({.status = 401,
                                              .code = "token_wrong",
                                              .detail = "the token is missing or wrong",
                                              .hint = "send the header Authorization: Bearer <token>"});
  response.headers.push_back({"WWW-Authenticate", "Bearer realm=\"rowferry\""});
  return response;
}

Task<Response> Api::dispatch(const Request& request, http::Body& body) {
  const std::string_view method = request.method == "HEAD" ? "GET" : std::string_view(request.method);
  const Route* found = nullptr;
  Call call{request};
  std::string allow;
  bool open_to_all = false;
  for (const Route& route : routes()) {
    auto parts = match(route.path, request.path);
    if (!parts) continue;
    open_to_all = route.open_to_all;
    allow += fmt::format("{}{}{}", allow.empty() ? "" : ", ", route.method, route.method == "GET" ? ", HEAD" : "");
    if (route.method != method) continue;
    found = &route;
    call.parts = std::move(*parts);
  }
  // Before anything is told about routes.
  if (auto refused = refuse(request, open_to_all)) co_return std::move(*refused);
  if (found != nullptr) co_return co_await run(found, &call, &body);
  if (allow.empty()) {
    throw Error(Category::not_found, "route_unknown",
                fmt::format("nothing is at {}", cut_for_message(request.path, 64)))
        .with_hint("/openapi.yaml lists the routes");
  }
  Response response = http::problem_response({.status = 405,
                                              .code = "method_not_allowed",
                                              .detail = fmt::format("{} is not possible here", request.method),
                                              .hint = fmt::format("allowed: {}", allow)});
  response.headers.push_back({"Allow", allow});
  co_return response;
}

Task<Response> Api::run(const Route* route, Call* call, http::Body* body) {
  const Request& request = call->request;
  check_parameters(request, route->parameters);
  if (route->body == Route::Needs::json) {
    if (!request.has_body) throw Error(Category::input, "body_missing", "the request needs a JSON body");
    if (!is_json_type(request.header("content-type"))) {
      throw Error(Category::input, "media_type_not_supported", "the body's Content-Type must be application/json")
          .with_hint("send the header Content-Type: application/json");
    }
    call->body = co_await body->collect();
    if (call->body.empty()) throw Error(Category::input, "body_missing", "the request needs a JSON body");
  } else if (request.has_body) {
    throw Error(Category::input, "body_not_expected", "this request takes no body");
  }
  co_return co_await net::with_deadline(loop_, limits::http_handler_time, "answering the request",
                                        (this->*route->run)(call));
}

Task<Response> Api::health(Call*) { co_return json_response(200, R"({"status":"ok"})"); }

Task<Response> Api::ready(Call*) {
  if (stopping_ || manager_.shutting_down()) {
    co_return error_response(Error(Category::conflict, "shutting_down", "the engine takes no more work"));
  }
  if (std::optional<std::string> reason = co_await manager_.not_ready()) {
    co_return error_response(Error(Category::internal, "state_dir_not_writable", std::move(*reason)));
  }
  co_return json_response(200, R"({"status":"ready"})");
}

Task<Response> Api::description(Call*) {
  co_return Response{.content_type = "application/yaml", .body = std::string(openapi_yaml())};
}

Task<Response> Api::schema(Call*) {
  co_return Response{.content_type = "application/schema+json", .body = std::string(transfer::spec_schema())};
}

Task<Response> Api::start_transfer(Call* call) {
  transfer::SubmitRequest submit;
  submit.spec = std::move(call->body);
  submit.idempotency_key = call->request.header("idempotency-key");
  transfer::Submitted submitted = co_await manager_.submit(std::move(submit));
  co_return accepted(submitted.id, std::move(submitted.status.json));
}

Task<Response> Api::list_transfers(Call* call) {
  const std::string_view query = call->request.query;
  transfer::ListRequest list;
  if (const auto limit = http::query_parameter(query, "limit")) {
    const auto [end, error] = std::from_chars(limit->data(), limit->data() + limit->size(), list.limit);
    if (error != std::errc{} || end != limit->data() + limit->size() || list.limit < 1 ||
        list.limit > static_cast<int>(limits::list_page_max)) {
      throw bad_parameter("limit", fmt::format("limit must be a number from 1 to {}", limits::list_page_max));
    }
  }
  list.after = http::query_parameter(query, "after").value_or("");
  list.state = http::query_parameter(query, "state").value_or("");
  if (!list.state.empty() && !transfer::state_from(list.state))
    throw bad_parameter("state", fmt::format("no state is called \"{}\"", cut_for_message(list.state, 64)));
  co_return json_response(200, co_await manager_.list(std::move(list)));
}

Task<Response> Api::show_transfer(Call* call) {
  co_return document_response(call->request, co_await manager_.status(call->parts[0]));
}

Task<Response> Api::cancel_transfer(Call* call) {
  transfer::Document status = co_await manager_.cancel(call->parts[0]);
  co_return accepted(call->parts[0], std::move(status.json));
}

Task<Response> Api::resume_transfer(Call* call) {
  transfer::Document status = co_await manager_.resume(call->parts[0]);
  co_return accepted(call->parts[0], std::move(status.json));
}

Task<Response> Api::show_artifact(Call* call) {
  co_return document_response(call->request, co_await manager_.artifact(call->parts[0]));
}

Task<Response> Api::plan(Call* call) {
  const std::string format = http::query_parameter(call->request.query, "format").value_or("json");
  if (format != "json" && format != "text") throw bad_parameter("format", "format must be json or text");
  const bool text = format == "text";
  std::string plan =
      co_await manager_.plan(std::move(call->body), text ? transfer::PlanFormat::text : transfer::PlanFormat::json);
  Response response = json_response(200, std::move(plan));
  if (text) response.content_type = "text/plain; charset=utf-8";
  co_return response;
}

Task<Response> Api::list_pipelines(Call*) { co_return json_response(200, co_await manager_.pipelines()); }

Task<Response> Api::run_pipeline(Call* call) {
  std::string key(call->request.header("idempotency-key"));
  transfer::Submitted submitted = co_await manager_.run_pipeline(call->parts[0], std::move(key));
  co_return accepted(submitted.id, std::move(submitted.status.json));
}

}  // namespace rowferry::api
