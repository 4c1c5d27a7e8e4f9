#include "mssql/dialect.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"

namespace rowferry::mssql {

namespace {

class NameParser {
 public:
  explicit NameParser(std::string_view text) : text_(text) {}

  system::TableName parse() {
    system::TableName name;
    for (;;) {
      name.parts.push_back(part());
      if (at_ == text_.size()) break;
      if (text_[at_] != '.') fail("a dot or the end is expected here");
      ++at_;
    }
    if (name.parts.size() > 3) fail("a table has at most three parts: database.schema.table");
    for (std::size_t i = 0; i < name.parts.size(); ++i) {
      const bool default_schema = name.parts.size() == 3 && i == 1;
      if (name.parts[i].empty() && !default_schema) fail("a part of the name is empty");
    }
    return name;
  }

 private:
  std::string part() {
    if (at_ == text_.size()) return {};
    if (text_[at_] == '[') return delimited(']');
    if (text_[at_] == '"') return delimited('"');
    const std::size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != '.') {
      if (!bare(text_[at_])) fail("this character needs quoting: write [my table]");
      ++at_;
    }
    return checked(std::string(text_.substr(begin, at_ - begin)));
  }

  // T-SQL's regular identifiers, and every character beyond ASCII.
  static bool bare(char c) noexcept {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x80 || (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') || c == '_' || c == '@' || c == '#' || c == '$';
  }

  std::string delimited(char close) {
    const std::size_t begin = at_++;
    std::string name;
    for (;; ++at_) {
      if (at_ == text_.size()) {
        at_ = begin;
        fail("the quote is not closed");
      }
      if (text_[at_] == close) {
        if (at_ + 1 == text_.size() || text_[at_ + 1] != close) break;
        ++at_;
      }
      name += text_[at_];
    }
    ++at_;
    if (name.empty()) fail("a part of the name is empty");
    return checked(std::move(name));
  }

  std::string checked(std::string name) const {
    if (text::utf16_units(name) > name_units_max) fail("a part of the name has more than 128 UTF-16 units");
    return name;
  }

  [[noreturn]] void fail(std::string_view why) const {
    throw Error(
        Category::input, "bad_name",
        fmt::format("\"{}\" is no table name: at character {}: {}", cut_for_message(text_, limits::error_value_chars),
                    text::code_points(text_.substr(0, at_)) + 1, why));
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::string literal(std::string_view utf8) {
  std::string out = "N'";
  for (const char c : utf8) {
    if (c == '\'') out += '\'';
    out += c;
  }
  out += '\'';
  return out;
}

std::string quoted(std::string_view name) {
  const auto bad = [&](std::string_view why) {
    return Error(Category::input, "bad_name",
                 fmt::format("\"{}\" cannot be a name: {}", cut_for_message(name, limits::error_value_chars), why));
  };
  if (name.empty()) throw bad("it is empty");
  if (name.find('\0') != std::string_view::npos) throw bad("it holds U+0000");
  if (text::utf16_units(name) > name_units_max) throw bad("it has more than 128 UTF-16 units");
  std::string out = "[";
  for (const char c : name) {
    if (c == ']') out += ']';
    out += c;
  }
  out += ']';
  return out;
}

std::string quoted(std::string_view schema, std::string_view table) { return quoted(schema) + '.' + quoted(table); }

std::string quoted_list(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) {
    if (!out.empty()) out += ", ";
    out += quoted(name);
  }
  return out;
}

system::TableName parse_table(std::string_view text) { return NameParser(text).parse(); }

}  // namespace rowferry::mssql
