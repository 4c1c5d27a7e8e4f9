#include "postgres/dialect.hpp"

#include <fmt/format.h>

namespace rowferry::postgres {

namespace {

std::string doubled(std::string_view text, char quote, bool backslash) {
  std::string out;
  out.reserve(text.size() + 2);
  for (const char c : text) {
    if (c == quote || (backslash && c == '\\')) out += c;
    out += c;
  }
  return out;
}

Error bad_name(std::string_view text, std::size_t at, std::string_view what) {
  return Error(Category::input, "bad_name", fmt::format("table name {}: {} at character {}", text, what, at + 1));
}

// One part from `at`, which moves behind it.
std::string parse_part(std::string_view text, std::size_t& at) {
  std::string part;
  if (at < text.size() && text[at] == '"') {
    const std::size_t start = at++;
    for (;; ++at) {
      if (at == text.size()) throw bad_name(text, start, "a quote that is not closed");
      if (text[at] != '"') {
        part += text[at];
      } else if (at + 1 < text.size() && text[at + 1] == '"') {
        part += text[++at];
      } else {
        break;
      }
    }
    ++at;
  } else {
    while (at < text.size() && text[at] != '.' && text[at] != '"') part += text[at++];
  }
  if (part.empty()) throw bad_name(text, at, "an empty part");
  if (at < text.size() && text[at] != '.') throw bad_name(text, at, "a character that does not belong here");
  return part;
}

}  // namespace

std::string quote_name(std::string_view name) {
  if (name.empty() || name.find('\0') != std::string_view::npos) {
    throw Error(Category::input, "bad_name", "a name is empty or has a zero byte");
  }
  return '"' + doubled(name, '"', false) + '"';
}

std::string quote_text(std::string_view text) {
  if (text.find('\0') != std::string_view::npos) {
    throw Error(Category::input, "bad_value", "PostgreSQL cannot hold U+0000 in text");
  }
  const bool escaped = text.find('\\') != std::string_view::npos;
  return (escaped ? "E'" : "'") + doubled(text, '\'', escaped) + '\'';
}

std::string quote_table(const system::TableName& table) {
  std::string out;
  for (const std::string& part : table.parts) {
    if (!out.empty()) out += '.';
    out += quote_name(part);
  }
  return out;
}

system::TableName parse_table(std::string_view text) {
  system::TableName table;
  std::size_t at = 0;
  for (;;) {
    table.parts.push_back(parse_part(text, at));
    if (at == text.size()) break;
    ++at;
  }
  if (table.parts.size() == 2) return table;
  throw Error(Category::input, "bad_name",
              fmt::format("table name {}: a PostgreSQL table has two parts, schema and table", text))
      .with_hint(table.parts.size() == 1 ? fmt::format("public.{}?", text) : "the database is the connection's");
}

}  // namespace rowferry::postgres
