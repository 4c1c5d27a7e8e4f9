// HTTP/1.1 messages as values (RFC 9110, RFC 9112).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rowferry::http {

struct Header {
  std::string name;  // lower case
  std::string value;
};

using Headers = std::vector<Header>;

// The first field of that name (lower case); null when absent.
const std::string* find_header(const Headers& headers, std::string_view name) noexcept;

struct Request {
  std::string method;
  std::string path;   // as sent, percent-encoding and all; begins with '/', or is "*"
  std::string query;  // without '?'
  std::string host;   // of the target in absolute form, else of Host; with its port
  int minor_version = 1;
  Headers headers;
  bool keep_alive = true;
  bool expects_continue = false;
  bool has_body = false;                        // Content-Length above zero, or chunked
  std::optional<std::uint64_t> content_length;  // absent: no body, or chunked
  std::string body;                             // collected by the server

  std::string_view header(std::string_view name) const noexcept {
    const std::string* value = find_header(headers, name);
    return value == nullptr ? std::string_view{} : std::string_view(*value);
  }
};

struct Response {
  int status = 200;
  std::string content_type;  // empty: none
  std::string body;
  Headers headers;     // beyond Date, Content-Length, Content-Type and Connection
  bool close = false;  // the connection ends after it
};

// "Not Found"; empty for a status that HTTP does not name.
std::string_view reason_phrase(int status) noexcept;

// The head of a response: status line, Date, Connection, Content-Type, Content-Length and the rest, with the blank
// line. `content_length` is that of the body a GET would get (HEAD sends none of it).
std::string response_head(const Response& response, std::uint64_t content_length, std::string_view date,
                          bool keep_alive);

// IMF-fixdate of RFC 9110 section 5.6.7.
std::string http_date(std::int64_t unix_seconds);

// Percent-decoding; nullopt for a broken escape or an encoded NUL.
std::optional<std::string> percent_decode(std::string_view text);
// A parameter of a query string, decoded ('+' is a blank); nullopt when absent or not decodable.
std::optional<std::string> query_parameter(std::string_view query, std::string_view name);

bool equals_ignoring_case(std::string_view a, std::string_view b) noexcept;

}  // namespace rowferry::http
