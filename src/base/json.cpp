#include "base/json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>

#include "base/text.hpp"

namespace rowferry {

namespace {

void append_escaped(std::string& out, char c) {
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned char>(c));
  }
}

bool plain(char c) noexcept { return static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\' && c != 0x7F; }

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const std::size_t bad = text::find_invalid_utf8(as_bytes(text));
    const std::string_view good = text.substr(0, bad);
    std::size_t begin = 0;
    for (std::size_t i = 0; i < good.size(); ++i) {
      if (plain(good[i])) continue;
      out.append(good, begin, i - begin);
      append_escaped(out, good[i]);
      begin = i + 1;
    }
    out.append(good, begin);
    if (bad == text::npos) break;
    out += "\uFFFD";
    text.remove_prefix(bad + 1);
  }
  out += '"';
}

void JsonWriter::new_line() {
  if (indent_ == 0) return;
  out_ += '\n';
  out_.append(levels_.size() * static_cast<std::size_t>(indent_), ' ');
}

void JsonWriter::before_value() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (levels_.empty()) {
    assert(out_.empty() && "one document only");
    return;
  }
  assert(!levels_.back().object && "a member needs its key");
  if (!std::exchange(levels_.back().empty, false)) out_ += ',';
  new_line();
}

JsonWriter& JsonWriter::key(std::string_view name) {
  assert(!levels_.empty() && levels_.back().object && !after_key_);
  if (!std::exchange(levels_.back().empty, false)) out_ += ',';
  new_line();
  append_json_string(out_, name);
  out_ += indent_ == 0 ? ":" : ": ";
  after_key_ = true;
  return *this;
}

void JsonWriter::before_end(char end) {
  assert(!levels_.empty() && levels_.back().object == (end == '}') && !after_key_);
  const bool empty = levels_.back().empty;
  levels_.pop_back();
  if (!empty) new_line();
  out_ += end;
}

JsonWriter& JsonWriter::begin_object() {
  before_value();
  out_ += '{';
  levels_.push_back({.object = true});
  return *this;
}
JsonWriter& JsonWriter::end_object() {
  before_end('}');
  return *this;
}
JsonWriter& JsonWriter::begin_array() {
  before_value();
  out_ += '[';
  levels_.push_back({.object = false});
  return *this;
}
JsonWriter& JsonWriter::end_array() {
  before_end(']');
  return *this;
}
JsonWriter& JsonWriter::value(std::string_view text) {
  before_value();
  append_json_string(out_, text);
  return *this;
}
JsonWriter& JsonWriter::value(bool flag) { return raw(flag ? "true" : "false"); }
JsonWriter& JsonWriter::value(double number) {
  if (!std::isfinite(number)) return null();
  before_value();
  const std::size_t start = out_.size();
  fmt::format_to(std::back_inserter(out_), "{}", number);
  // A whole number stays a floating one for whoever reads it.
  if (out_.find_first_of(".e", start) == std::string::npos) out_ += ".0";
  return *this;
}
JsonWriter& JsonWriter::value(std::int64_t number) {
  before_value();
  fmt::format_to(std::back_inserter(out_), "{}", number);
  return *this;
}
JsonWriter& JsonWriter::value(std::uint64_t number) {
  before_value();
  fmt::format_to(std::back_inserter(out_), "{}", number);
  return *this;
}
JsonWriter& JsonWriter::null() { return raw("null"); }
JsonWriter& JsonWriter::raw(std::string_view json) {
  before_value();
  out_ += json;
  return *this;
}

Json::Kind Json::kind() const noexcept {
  static constexpr Kind kinds[] = {Kind::null,   Kind::boolean, Kind::number, Kind::number,
                                   Kind::number, Kind::string,  Kind::array,  Kind::object};
  return kinds[value_.index()];
}

std::string_view Json::name(Kind kind) noexcept {
  static constexpr std::string_view names[] = {"null", "boolean", "number", "string", "array", "object"};
  return names[static_cast<std::size_t>(kind)];
}

std::optional<std::int64_t> Json::int64() const noexcept {
  if (const auto* number = std::get_if<std::int64_t>(&value_)) return *number;
  if (const auto* number = std::get_if<std::uint64_t>(&value_); number != nullptr && *number <= INT64_MAX) {
    return static_cast<std::int64_t>(*number);
  }
  return std::nullopt;
}

std::optional<std::uint64_t> Json::uint64() const noexcept {
  if (const auto* number = std::get_if<std::uint64_t>(&value_)) return *number;
  if (const auto* number = std::get_if<std::int64_t>(&value_); number != nullptr && *number >= 0) {
    return static_cast<std::uint64_t>(*number);
  }
  return std::nullopt;
}

std::optional<double> Json::number() const noexcept {
  if (const auto* number = std::get_if<double>(&value_)) return *number;
  if (const auto* number = std::get_if<std::int64_t>(&value_)) return static_cast<double>(*number);
  if (const auto* number = std::get_if<std::uint64_t>(&value_)) return static_cast<double>(*number);
  return std::nullopt;
}

const Json* Json::find(std::string_view name) const noexcept {
  const Object* members = object();
  if (members == nullptr) return nullptr;
  for (const Member& member : *members) {
    if (member.first == name) return &member.second;
  }
  return nullptr;
}

Json* Json::find(std::string_view name) noexcept { return const_cast<Json*>(std::as_const(*this).find(name)); }

Json& Json::set(std::string name, Json value) {
  if (is_null()) value_ = Object{};
  assert(object() != nullptr);
  if (Json* there = find(name)) {
    *there = std::move(value);
  } else {
    object()->emplace_back(std::move(name), std::move(value));
  }
  return *this;
}

Json& Json::push(Json value) {
  if (is_null()) value_ = Array{};
  assert(array() != nullptr);
  array()->push_back(std::move(value));
  return *this;
}

void Json::write(JsonWriter& to) const {
  if (const Array* items = array()) {
    to.begin_array();
    for (const Json& item : *items) item.write(to);
    to.end_array();
  } else if (const Object* members = object()) {
    to.begin_object();
    for (const auto& [name, value] : *members) {
      to.key(name);
      value.write(to);
    }
    to.end_object();
  } else {
    write_scalar(to);
  }
}

void Json::write_scalar(JsonWriter& to) const {
  std::visit(
      [&to](const auto& value) {
        using V = std::remove_cvref_t<decltype(value)>;
        if constexpr (std::is_same_v<V, std::nullptr_t>) {
          to.null();
        } else if constexpr (!std::is_same_v<V, Array> && !std::is_same_v<V, Object>) {
          to.value(value);
        }
      },
      value_);
}

std::string Json::text(int indent) const {
  JsonWriter writer(indent);
  write(writer);
  return writer.take();
}

namespace {

// Damerau-Levenshtein (adjacent transpositions count one).
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before;
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = last;
    std::swap(last, row);
  }
  return last[b.size()];
}

}  // namespace

std::string_view nearest(std::string_view name, std::span<const std::string_view> candidates) {
  if (name.size() > limits::nearest_name_chars) return {};
  std::string_view best;
  std::size_t best_distance = std::max<std::size_t>(2, name.size() / 3) + 1;
  for (const std::string_view candidate : candidates) {
    const std::size_t far = distance(name, candidate);
    if (far < best_distance && far < candidate.size()) {
      best = candidate;
      best_distance = far;
    }
  }
  return best;
}

}  // namespace rowferry
