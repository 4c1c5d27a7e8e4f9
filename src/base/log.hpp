// Log: one line an event on stderr; text for people, JSON objects for programs (--log json).
//
// An event has a level, a message that is the same each time, and named fields with what differs. Secrets (base/secret)
// cannot become fields. Callable from any thread; setup() comes first, in main.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

#include "base/error.hpp"

namespace rowferry::log {

enum class Level : std::uint8_t { debug, info, warning, error };
enum class Format : std::uint8_t { text, json };

class Field {
 public:
  Field(std::string_view name, std::string_view value) : name_(name), value_(value) {}
  Field(std::string_view name, const char* value) : Field(name, std::string_view(value)) {}
  Field(std::string_view name, const std::string& value) : Field(name, std::string_view(value)) {}
  Field(std::string_view name, bool value) : name_(name), value_(value) {}
  Field(std::string_view name, double value) : name_(name), value_(value) {}
  template <class T>
    requires(std::is_integral_v<T> && !std::is_same_v<T, bool>)
  Field(std::string_view name, T value) : name_(name) {
    if constexpr (std::is_signed_v<T>) {
      value_ = static_cast<std::int64_t>(value);
    } else {
      value_ = static_cast<std::uint64_t>(value);
    }
  }

  using Value = std::variant<std::string_view, bool, double, std::int64_t, std::uint64_t>;
  std::string_view name() const noexcept { return name_; }
  const Value& value() const noexcept { return value_; }

 private:
  std::string_view name_;
  Value value_;
};
using Fields = std::initializer_list<Field>;

// Text or JSON to stderr. Until then: text, level info.
void setup(Format format, Level level);
// Lines go to `sink` instead (tests, a terminal with a live progress line); an empty function means stderr again.
void redirect(std::function<void(std::string_view line)> sink);
std::optional<Level> parse_level(std::string_view name);    // debug, info, warning, error
std::optional<Format> parse_format(std::string_view name);  // text, json

bool enabled(Level level) noexcept;
void write(Level level, std::string_view message, Fields fields = {});
inline void debug(std::string_view message, Fields fields = {}) { write(Level::debug, message, fields); }
inline void info(std::string_view message, Fields fields = {}) { write(Level::info, message, fields); }
inline void warning(std::string_view message, Fields fields = {}) { write(Level::warning, message, fields); }
inline void error(std::string_view message, Fields fields = {}) { write(Level::error, message, fields); }
// The error's code, one line and known context become fields.
void failure(std::string_view message, const Error& error, Fields fields = {});

}  // namespace rowferry::log
