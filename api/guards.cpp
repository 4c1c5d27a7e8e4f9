#include "api/guards.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace rowferry::api {

namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
  return out;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// "[::1]:80" -> "::1", "a:80" -> "a", "::1" -> "::1".
std::string without_port(std::string_view host) {
  if (host.starts_with('[')) return lower(host.substr(1, std::min(host.find(']'), host.size()) - 1));
  const std::size_t colon = host.find(':');
  const bool one_colon = colon != std::string_view::npos && host.find(':', colon + 1) == std::string_view::npos;
  std::string name = lower(one_colon ? host.substr(0, colon) : host);
  if (name.ends_with('.')) name.pop_back();
  return name;
}

// RFC 3986 section 3.2.2 and 3.2.3: a name or address, then nothing or a colon and the digits of a port. "::1" without
// brackets is no Host field.
bool well_formed(std::string_view host) {
  const bool bracket = host.starts_with('[');
  const std::size_t closing = bracket ? host.find(']') : 0;
  if (closing == std::string_view::npos) return false;
  const std::string_view rest = bracket ? host.substr(closing + 1) : host.substr(std::min(host.find(':'), host.size()));
  if (rest.empty()) return true;
  unsigned port = 0;
  const char* const end = rest.data() + rest.size();
  const auto [stop, error] = std::from_chars(rest.data() + 1, end, port);
  return rest.front() == ':' && rest.size() > 1 && rest.size() <= 6 && error == std::errc{} && stop == end &&
         port <= 65535;
}

bool is_ip_address(const std::string& host) {
  unsigned char room[sizeof(in6_addr)];
  return inet_pton(AF_INET, host.c_str(), room) == 1 || inet_pton(AF_INET6, host.c_str(), room) == 1;
}

bool is_wildcard(std::string_view host) { return host.empty() || host == "0.0.0.0" || host == "::" || host == "*"; }

}  // namespace

bool is_loopback(std::string_view host) noexcept {
  in_addr v4{};
  const std::string name = without_port(host);
  if (inet_pton(AF_INET, name.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  return name == "::1" || name == "localhost";
}

void check_listen(std::string_view host, bool has_token) {
  if (has_token || is_loopback(host)) return;
  throw Error(Category::input, "token_required",
              fmt::format("listening on {} would let anybody on the network start transfers", host))
      .with_field("server.token")
      .with_hint("set server.token, or listen on a loopback address");
}

HostRule::HostRule(std::string_view listen, std::vector<std::string> allowed)
    : listen_(without_port(listen)),
      loopback_(is_loopback(listen)),
      wildcard_(is_wildcard(listen_)),
      allowed_(std::move(allowed)) {
  for (std::string& name : allowed_) name = lower(name);
}

bool HostRule::allows(std::string_view host) const {
  if (!well_formed(host)) return false;
  const std::string name = without_port(host);
  if (name.empty()) return false;
  if (name == listen_ || (loopback_ && (name == "localhost" || (listen_ == "localhost" && is_loopback(name)))))
    return true;
  if (wildcard_ && (is_ip_address(name) || name == "localhost")) return true;
  const std::string whole = lower(host);
  return std::any_of(allowed_.begin(), allowed_.end(),
                     [&](const std::string& one) { return one == whole || one == name; });
}

bool origin_allowed(const http::Request& request) {
  const std::string_view origin = request.header("origin");
  if (origin.empty()) return true;
  const std::size_t mark = origin.find("://");
  return mark != std::string_view::npos && http::equals_ignoring_case(origin.substr(mark + 3), request.host);
}

bool token_matches(const http::Request& request, const Secret& token) {
  constexpr std::string_view scheme = "bearer ";
  const std::string_view given = request.header("authorization");
  if (given.size() < scheme.size() || !http::equals_ignoring_case(given.substr(0, scheme.size()), scheme)) return false;
  return token.equals(trim(given.substr(scheme.size())));
}

bool is_json_type(std::string_view content_type) {
  const std::size_t semicolon = std::min(content_type.find(';'), content_type.size());
  if (!http::equals_ignoring_case(trim(content_type.substr(0, semicolon)), "application/json")) return false;
  const std::string parameters = lower(content_type.substr(semicolon));
  const std::size_t charset = parameters.find("charset=");
  if (charset == std::string::npos) return true;
  std::string_view value = trim(std::string_view(parameters).substr(charset + 8));
  value = value.substr(0, value.find(';'));
  return value == "utf-8" || value == "\"utf-8\"";
}

}  // namespace rowferry::api
