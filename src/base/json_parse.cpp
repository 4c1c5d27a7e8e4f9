#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/text.hpp"

namespace rowferry {

namespace {

[[noreturn]] void malformed(const std::string& what) { throw Error(Category::input, "malformed_json", what); }

// Walks a document that simdjson has refused, only to tell a person where it goes wrong: simdjson's document parser
// does not say.
class FaultFinder {
 public:
  explicit FaultFinder(std::string_view text) : text_(text) {}

  // "…, line 3, column 7"; empty when no fault of syntax is found (a number out of range).
  std::string find() {
    if (const std::size_t bad = text::find_invalid_utf8(as_bytes(text_)); bad != text::npos) {
      at_ = bad;
      return place("text that is not UTF-8");
    }
    if (value()) {
      blanks();
      if (at_ == text_.size()) return {};
      fail("nothing more");
    }
    return place(at_ >= text_.size() ? "the text ends too early; expected " + expected_
                                     : fmt::format("expected {}, found {}", expected_, found()));
  }

 private:
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool fail(std::string_view expected) {
    expected_ = expected;
    return false;
  }
  bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r'))
      ++at_;
  }
  std::string found() const {
    std::string shown;
    append_json_string(shown, cut_for_message(text_.substr(at_), 12));
    return shown;
  }
  std::string place(const std::string& what) const {
    const std::string_view before = text_.substr(0, at_);
    const auto line = std::count(before.begin(), before.end(), '\n') + 1;
    const std::size_t line_start = before.rfind('\n') + 1;
    return fmt::format("{}, line {}, column {}", what, line, text::code_points(before.substr(line_start)) + 1);
  }

  bool value() {
    blanks();
    switch (peek()) {
      case '{':
      case '[': {
        if (++depth_ > depth_max) return fail("less nesting");
        const bool good = peek() == '{' ? members() : items();
        --depth_;
        return good;
      }
      case '"':
        return string();
      default:
        return word() || number();
    }
  }
  bool word() {
    for (const std::string_view name : {"true", "false", "null"}) {
      if (text_.substr(at_, name.size()) != name) continue;
      at_ += name.size();
      return true;
    }
    return false;
  }
  bool digits() {
    const std::size_t start = at_;
    while (peek() >= '0' && peek() <= '9') ++at_;
    return at_ != start || fail("a digit");
  }
  bool number() {
    const bool minus = take('-');
    if (!minus && (peek() < '0' || peek() > '9')) return fail("a value");
    if (!take('0') && !digits()) return false;
    if (take('.') && !digits()) return false;
    if (!take('e') && !take('E')) return true;
    if (!take('+')) take('-');
    return digits();
  }
  bool string() {
    if (!take('"')) return fail("a string");
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (static_cast<unsigned char>(c) < 0x20) return fail("an escaped control character (such as \\n)");
      ++at_;
      if (c == '"') return true;
      if (c == '\\' && !escape()) return false;
    }
    return fail("the end of a string");
  }
  bool escape() {
    if (take('u')) {
      for (int i = 0; i < 4; ++i) {
        if (std::string_view("0123456789abcdefABCDEF").find(peek()) == std::string_view::npos || peek() == '\0')
          return fail("four hexadecimal digits");
        ++at_;
      }
      return true;
    }
    if (peek() == '\0' || std::string_view("\"\\/bfnrt").find(peek()) == std::string_view::npos)
      return fail("an escape sequence");
    ++at_;
    return true;
  }
  bool items() {
    ++at_;
    blanks();
    if (take(']')) return true;
    while (value()) {
      blanks();
      if (take(']')) return true;
      if (!take(',')) return fail("\",\" or \"]\"");
    }
    return false;
  }
  bool members() {
    ++at_;
    blanks();
    if (take('}')) return true;
    while (true) {
      blanks();
      if (!string()) return false;
      blanks();
      if (!take(':')) return fail("\":\"");
      if (!value()) return false;
      blanks();
      if (take('}')) return true;
      if (!take(',')) return fail("\",\" or \"}\"");
    }
  }

  std::string_view text_;
  static constexpr std::size_t depth_max = 1'000;  // of this function's own recursion

  std::size_t at_ = 0;
  std::size_t depth_ = 0;
  std::string expected_;
};

Json build(simdjson::dom::element element, std::size_t depth_left);

Json::Object build_object(simdjson::dom::object members, std::size_t depth_left) {
  Json::Object object;
  for (const auto& [key, value] : members) object.emplace_back(std::string(key), build(value, depth_left));
  std::vector<std::string_view> names;
  for (const auto& [name, value] : object) names.push_back(name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end())
    malformed(
        fmt::format("the key \"{}\" appears twice in one object", cut_for_message(*twice, limits::error_value_chars)));
  return object;
}

[[noreturn]] void too_deep() {
  throw Error(Category::input, "json_too_deep", "arrays and objects are nested too deep");
}

Json build(simdjson::dom::element element, std::size_t depth_left) {
  if ((element.is_object() || element.is_array()) && depth_left-- == 0) too_deep();
  switch (element.type()) {
    case simdjson::dom::element_type::OBJECT:
      return build_object(element.get_object(), depth_left);
    case simdjson::dom::element_type::ARRAY: {
      Json::Array items;
      for (const simdjson::dom::element item : element.get_array()) items.push_back(build(item, depth_left));
      return items;
    }
    case simdjson::dom::element_type::STRING:
      return std::string_view(element.get_string());
    case simdjson::dom::element_type::INT64:
      return std::int64_t(element.get_int64());
    case simdjson::dom::element_type::UINT64:
      return std::uint64_t(element.get_uint64());
    case simdjson::dom::element_type::DOUBLE:
      return double(element.get_double());
    case simdjson::dom::element_type::BOOL:
      return bool(element.get_bool());
    default:
      return nullptr;
  }
}

}  // namespace

Json Json::parse(std::string_view text, Limits limits) {
  if (text.size() > limits.bytes) {
    throw Error(Category::input, "json_too_large",
                fmt::format("the JSON text has {} bytes, more than {}", text.size(), limits.bytes));
  }
  simdjson::dom::parser parser;
  // simdjson's own bound keeps its stack; how it counts empty arrays differs, so the exact one is kept by build().
  simdjson::error_code code = parser.allocate(std::max<std::size_t>(text.size(), 64), limits.depth + 2);
  if (code != simdjson::SUCCESS) throw Error(Category::internal, "json", simdjson::error_message(code));
  simdjson::dom::element root;
  code = parser.parse(text.data(), text.size()).get(root);
  if (code == simdjson::DEPTH_ERROR) too_deep();
  if (code != simdjson::SUCCESS) {
    const std::string fault = FaultFinder(text).find();
    malformed(fault.empty() ? simdjson::error_message(code) : fault);
  }
  return build(root, limits.depth);
}

}  // namespace rowferry
