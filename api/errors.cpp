#include "api/errors.hpp"

#include <array>
#include <utility>

#include "base/log.hpp"

namespace rowferry::api {

namespace {

// Codes that say more than their category.
constexpr std::array<std::pair<std::string_view, int>, 13> by_code{{
    {"malformed_json", 400},
    {"json_too_deep", 400},
    {"json_too_large", 413},
    {"bad_parameter", 400},
    {"body_missing", 400},
    {"body_not_expected", 400},
    {"transfer_unknown", 404},
    {"pipeline_unknown", 404},
    {"route_unknown", 404},
    {"queue_full", 429},
    {"shutting_down", 503},
    {"state_dir_not_writable", 503},
    {"media_type_not_supported", 415},
}};

}  // namespace

int status_of(const Error& error) noexcept {
  for (const auto& [code, status] : by_code) {
    if (error.code() == code) return status;
  }
  switch (error.category()) {
    case Category::input:
    case Category::not_found:  // of a connection, table or column that the body names
    case Category::unsupported:
    case Category::data:
      return 422;
    case Category::forbidden:
      return 403;
    case Category::conflict:
    case Category::commit_unknown:
      return 409;
    case Category::connection:
    case Category::server:
      return 502;
    case Category::timeout:
      return 504;
    case Category::cancelled:
      return 503;
    case Category::internal:
      return 500;
  }
  return 500;
}

http::Response error_response(const Error& error) {
  const int status = status_of(error);
  if (status == 500) log::failure("a request failed", error);
  http::Response response = http::problem_response({.status = status,
                                                    .code = error.code(),
                                                    .detail = error.detail(),
                                                    .field = error.field(),
                                                    .hint = error.hint(),
                                                    .context = error.context(),
                                                    .fault = error.fault()});
  if (status == 429 || status == 503) response.headers.push_back({"Retry-After", "5"});
  return response;
}

http::Response error_response(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& known) {
    return error_response(known);
  } catch (const std::exception& unknown) {
    log::error("a request failed", {{"error", unknown.what()}});
  } catch (...) {
    log::error("a request failed", {{"error", "unknown exception"}});
  }
  return http::problem_response(
      {.status = 500, .code = "internal", .detail = "an internal error", .hint = "the log says more"});
}

}  // namespace rowferry::api
