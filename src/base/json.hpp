// JSON: a writer that streams into a string, and an owning model of a document that was read.
//
// Reading is for what people and programs send us (specs, configuration, records): small, bounded, strict (RFC 8259,
// UTF-8, no duplicate keys). Integers stay exact within 64 bits. Everything written is valid UTF-8.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/limits.hpp"

namespace rowferry {

// --- writing

// begin_object/key/value/end_object, begin_array/value/end_array. Misuse (a value without its key, unbalanced ends) is
// a programming error and asserts.
class JsonWriter {
 public:
  // indent 0: one line without blanks; else that many blanks a level.
  explicit JsonWriter(int indent = 0) : indent_(indent) {}

  JsonWriter& begin_object();
  JsonWriter& end_object();
  JsonWriter& begin_array();
  JsonWriter& end_array();
  JsonWriter& key(std::string_view name);

  JsonWriter& value(std::string_view text);  // malformed UTF-8 is written as U+FFFD
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(const std::string& text) { return value(std::string_view(text)); }
  JsonWriter& value(bool flag);
  JsonWriter& value(double number);  // the shortest text that reads back the same; NaN and infinities as null
  JsonWriter& value(std::int64_t number);
  JsonWriter& value(std::uint64_t number);
  template <class T>
    requires(std::is_integral_v<T> && !std::is_same_v<T, bool>)
  JsonWriter& value(T number) {
    if constexpr (std::is_signed_v<T>) {
      return value(static_cast<std::int64_t>(number));
    } else {
      return value(static_cast<std::uint64_t>(number));
    }
  }
  template <class T>
  JsonWriter& value(const std::optional<T>& maybe) {
    return maybe ? value(*maybe) : null();
  }
  JsonWriter& null();
  JsonWriter& raw(std::string_view json);  // a whole JSON value, written as it is

  template <class T>
  JsonWriter& field(std::string_view name, const T& content) {
    return key(name).value(content);
  }

  // The document so far; complete once every begin has its end.
  const std::string& text() const noexcept { return out_; }
  std::string take() { return std::move(out_); }

 private:
  void before_value();
  void before_end(char end);
  void new_line();

  struct Level {
    bool object;
    bool empty = true;
  };
  int indent_;
  bool after_key_ = false;
  std::vector<Level> levels_;
  std::string out_;
};

// Appends the text as a JSON string, quotes included.
void append_json_string(std::string& out, std::string_view text);

// --- reading

class Json {
 public:
  using Array = std::vector<Json>;
  using Member = std::pair<std::string, Json>;
  using Object = std::vector<Member>;  // in the document's order

  enum class Kind : std::uint8_t { null, boolean, number, string, array, object };

  Json() = default;
  Json(std::nullptr_t) {}
  Json(bool flag) : value_(flag) {}
  Json(double number) : value_(number) {}
  template <class T>
    requires(std::is_integral_v<T> && !std::is_same_v<T, bool>)
  Json(T number) {
    if constexpr (std::is_signed_v<T>) {
      value_ = static_cast<std::int64_t>(number);
    } else {
      value_ = static_cast<std::uint64_t>(number);
    }
  }
  Json(std::string text) : value_(std::move(text)) {}
  Json(std::string_view text) : value_(std::string(text)) {}
  Json(const char* text) : value_(std::string(text)) {}
  Json(Array items) : value_(std::move(items)) {}
  Json(Object members) : value_(std::move(members)) {}

  struct Limits {
    std::size_t bytes = limits::json_bytes;
    std::size_t depth = limits::json_depth;  // of nested arrays and objects
  };
  // Error(input, "malformed_json") saying what is wrong and at which line and column; "json_too_large",
  // "json_too_deep".
  static Json parse(std::string_view text, Limits limits);
  static Json parse(std::string_view text) { return parse(text, Limits{}); }

  Kind kind() const noexcept;
  static std::string_view name(Kind kind) noexcept;  // "object", "string", …
  bool is_null() const noexcept { return kind() == Kind::null; }

  // Null, or nothing, when the value is of another kind.
  const bool* boolean() const noexcept { return std::get_if<bool>(&value_); }
  const std::string* string() const noexcept { return std::get_if<std::string>(&value_); }
  const Array* array() const noexcept { return std::get_if<Array>(&value_); }
  const Object* object() const noexcept { return std::get_if<Object>(&value_); }
  Array* array() noexcept { return std::get_if<Array>(&value_); }
  Object* object() noexcept { return std::get_if<Object>(&value_); }
  std::optional<std::int64_t> int64() const noexcept;    // integers only; 1.0 is none
  std::optional<std::uint64_t> uint64() const noexcept;  // integers only
  std::optional<double> number() const noexcept;         // any number

  // The member of that name; null when there is none or this is no object.
  const Json* find(std::string_view name) const noexcept;
  Json* find(std::string_view name) noexcept;
  // Sets a member of an object (null becomes an object), replacing one of that name.
  Json& set(std::string name, Json value);
  // Adds to an array (null becomes an array).
  Json& push(Json value);

  void write(JsonWriter& to) const;
  std::string text(int indent = 0) const;

  bool operator==(const Json&) const = default;

 private:
  void write_scalar(JsonWriter& to) const;

  std::variant<std::nullptr_t, bool, std::int64_t, std::uint64_t, double, std::string, Array, Object> value_;
};

// The candidate that `name` was most likely meant to be (a few typing mistakes away); empty when none is near.
std::string_view nearest(std::string_view name, std::span<const std::string_view> candidates);

}  // namespace rowferry
