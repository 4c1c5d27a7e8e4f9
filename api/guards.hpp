// Who may ask: the rules on Host, Origin, token and listen address (contract.md, "HTTP").
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/secret.hpp"
#include "http/problem.hpp"

namespace rowferry::api {

// True for 127.0.0.0/8, ::1 and localhost.
bool is_loopback(std::string_view host) noexcept;

// A server that others can reach needs a token. Error(input, "token_required").
void check_listen(std::string_view host, bool has_token);

// Which Host fields name this server. A browser can be made to resolve a foreign name to a local address; it then sends
// that name, and is refused.
class HostRule {
 public:
  // `listen` as configured, without port; `allowed` are names with or without a port (without: any port).
  HostRule(std::string_view listen, std::vector<std::string> allowed);
  bool allows(std::string_view host) const;

 private:
  std::string listen_;
  bool loopback_;
  bool wildcard_;  // any address of this machine: every IP address is its own, names are not
  std::vector<std::string> allowed_;
};

// True when there is no Origin, or when it is this very host.
bool origin_allowed(const http::Request& request);

// True when the request carries `Authorization: Bearer <token>`. The time does not tell how much of it was right.
bool token_matches(const http::Request& request, const Secret& token);

// True for application/json, with charset=utf-8 at most.
bool is_json_type(std::string_view content_type);

}  // namespace rowferry::api
