#include "sandbox/engine/errors.hpp"

#include <fmt/format.h>

namespace rowferry::sandbox::engine {

void raise(int number, int severity, int state, std::string text, Reach reach) {
  SqlError error;
  error.message.number = number;
  error.message.severity = severity;
  error.message.state = state;
  error.message.text = std::move(text);
  error.message.line = 0;  // the interpreter puts the statement's
  error.reach = reach;
  throw error;
}

void raise_syntax(std::string_view near, int line) {
  SqlError error{{102, 1, 15, fmt::format("Incorrect syntax near '{}'.", near), {}, line}, Reach::batch};
  throw error;
}

void raise_keyword_syntax(std::string_view near, int line) {
  SqlError error{{156, 1, 15, fmt::format("Incorrect syntax near the keyword '{}'.", near), {}, line}, Reach::batch};
  throw error;
}

void raise_invalid_object(std::string_view name) {
  raise(208, 16, 1, fmt::format("Invalid object name '{}'.", name), Reach::batch);
}

void raise_invalid_column(std::string_view name) {
  raise(207, 16, 1, fmt::format("Invalid column name '{}'.", name), Reach::batch);
}

void raise_unbound(std::string_view name) {
  raise(4104, 16, 1, fmt::format("The multi-part identifier \"{}\" could not be bound.", name), Reach::batch);
}

void raise_overflow(std::string_view what, std::string_view type) {
  raise(8115, 16, 2, fmt::format("Arithmetic overflow error converting {} to data type {}.", what, type));
}

void raise_unsupported(std::string_view what) {
  raise(40000, 16, 1, fmt::format("The rowferry sandbox does not support {}.", what), Reach::batch);
}

}  // namespace rowferry::sandbox::engine
