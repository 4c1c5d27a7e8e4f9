// The connection string of the configuration, checked before anything is connected.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rowferry::postgres {

// libpq's keywords and values (PostgreSQL manual, 34.1.2), in order, without empty ones.
using Parameters = std::vector<std::pair<std::string, std::string>>;

// Takes both forms, key=value and postgresql://. Error(input, "bad_dsn"), which never quotes the string: a mistyped one
// may hold a password. Error(input, "password_in_dsn") for `password` and `sslpassword`; `service` is refused too (its
// file could name a host behind our back).
Parameters parse_dsn(const std::string& dsn);

// The value of a keyword, or "".
std::string_view parameter(const Parameters& parameters, std::string_view keyword) noexcept;
// Replaces or adds.
void set_parameter(Parameters& parameters, std::string_view keyword, std::string value);

// "a,b" -> {"a", "b"}; "" -> {""}: libpq's lists of hosts and ports.
std::vector<std::string> split_list(std::string_view list);

}  // namespace rowferry::postgres
