#include "postgres/dsn.hpp"

#include <fmt/format.h>
#include <libpq-fe.h>

#include <algorithm>
#include <memory>

#include "base/error.hpp"

namespace rowferry::postgres {

namespace {

struct OptionsFree {
  void operator()(PQconninfoOption* options) const noexcept { PQconninfoFree(options); }
};

// libpq's rules for key=value, only to say where they were broken; 0: not found by this scan.
std::size_t broken_at(std::string_view dsn) {
  const auto blank = [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); };
  std::size_t at = 0;
  for (;;) {
    while (at < dsn.size() && blank(dsn[at])) ++at;
    if (at == dsn.size()) return 0;
    const std::size_t word = at;
    while (at < dsn.size() && dsn[at] != '=' && !blank(dsn[at])) ++at;
    while (at < dsn.size() && blank(dsn[at])) ++at;
    if (at == dsn.size() || dsn[at] != '=' || at == word) return word + 1;
    ++at;
    while (at < dsn.size() && blank(dsn[at])) ++at;
    if (at < dsn.size() && dsn[at] == '\'') {
      const std::size_t quote = at++;
      while (at < dsn.size() && dsn[at] != '\'') at += dsn[at] == '\\' ? 2 : 1;
      if (at >= dsn.size()) return quote + 1;
      ++at;
    } else {
      while (at < dsn.size() && !blank(dsn[at])) at += dsn[at] == '\\' ? 2 : 1;
    }
  }
}

Error refused(std::string code, std::string detail) {
  return Error(Category::input, std::move(code), std::move(detail)).with_field("dsn");
}

}  // namespace

Parameters parse_dsn(const std::string& dsn) {
  char* message = nullptr;
  const std::unique_ptr<PQconninfoOption, OptionsFree> options(PQconninfoParse(dsn.c_str(), &message));
  PQfreemem(message);  // it may quote a piece of the string
  if (!options) {
    const std::size_t at = broken_at(dsn);
    throw refused("bad_dsn",
                  at == 0 ? "dsn is no connection string that libpq knows: an unknown keyword, or a URI with errors"
                          : fmt::format("dsn cannot be read from character {} on", at))
        .with_hint("keyword=value pairs, values with blanks in single quotes");
  }
  Parameters parameters;
  for (const PQconninfoOption* option = options.get(); option->keyword != nullptr; ++option) {
    if (option->val == nullptr) continue;
    const std::string_view keyword = option->keyword;
    if (keyword == "password" || keyword == "sslpassword") {
      throw refused("password_in_dsn", fmt::format("dsn holds a {}", keyword))
          .with_hint("use `password = { env = … }` or `{ file = … }`");
    }
    if (keyword == "service") throw refused("bad_dsn", "`service` is not supported in dsn");
    parameters.emplace_back(keyword, option->val);
  }
  return parameters;
}

std::string_view parameter(const Parameters& parameters, std::string_view keyword) noexcept {
  const auto found =
      std::find_if(parameters.begin(), parameters.end(), [&](const auto& p) { return p.first == keyword; });
  return found == parameters.end() ? std::string_view() : std::string_view(found->second);
}

void set_parameter(Parameters& parameters, std::string_view keyword, std::string value) {
  const auto found =
      std::find_if(parameters.begin(), parameters.end(), [&](const auto& p) { return p.first == keyword; });
  if (found == parameters.end()) {
    parameters.emplace_back(keyword, std::move(value));
  } else {
    found->second = std::move(value);
  }
}

std::vector<std::string> split_list(std::string_view list) {
  std::vector<std::string> parts;
  for (;;) {
    const std::size_t comma = list.find(',');
    parts.emplace_back(list.substr(0, comma));
    if (comma == std::string_view::npos) return parts;
    list.remove_prefix(comma + 1);
  }
}

}  // namespace rowferry::postgres
