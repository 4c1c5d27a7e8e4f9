#include "base/error.hpp"

#include <utility>

#include "base/limits.hpp"

namespace rowferry {

namespace {

void set_once(std::string& part, std::string_view value) {
  if (part.empty()) part = value;
}

void add_context(std::string& out, std::string_view name, std::string_view value) {
  if (value.empty()) return;
  out += out.empty() ? "" : ", ";
  out += name;
  out += ' ';
  out += value;
}

}  // namespace

Error::Error(Category category, std::string code, std::string detail)
    : category_(category), code_(std::move(code)), detail_(std::move(detail)) {}

Error& Error::with_field(std::string field) {
  set_once(field_, field);
  return *this;
}
Error& Error::with_hint(std::string hint) {
  set_once(hint_, hint);
  return *this;
}
Error& Error::with_connection(std::string_view name) {
  set_once(context_.connection, name);
  return *this;
}
Error& Error::with_table(std::string_view table) {
  set_once(context_.table, table);
  return *this;
}
Error& Error::with_slice(std::string_view slice) {
  set_once(context_.slice, slice);
  return *this;
}
Error& Error::with_column(std::string_view column) {
  set_once(context_.column, column);
  return *this;
}
Error& Error::with_row(std::uint64_t row) {
  if (!context_.row) context_.row = row;
  return *this;
}
Error& Error::with_value(std::string_view value) {
  set_once(context_.value, cut_for_message(value, limits::error_value_chars));
  return *this;
}
Error& Error::with_fault(ServerFault fault) {
  if (!fault_) fault_ = std::move(fault);
  return *this;
}
Error& Error::mark_transient() {
  transient_ = true;
  return *this;
}

std::string Error::one_line() const { return one_line_of(detail_, context_, hint_); }

std::string one_line_of(std::string_view detail, const ErrorContext& context, std::string_view hint) {
  std::string where;
  add_context(where, "connection", context.connection);
  add_context(where, "table", context.table);
  add_context(where, "slice", context.slice);
  add_context(where, "column", context.column);
  if (context.row) add_context(where, "row", std::to_string(*context.row));
  add_context(where, "value", context.value);
  std::string line(detail);
  if (!where.empty()) line += " [" + where + "]";
  if (!hint.empty()) line += " (" + std::string(hint) + ")";
  for (char& c : line) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  return line;
}

std::string cut_for_message(std::string_view utf8, std::size_t chars) {
  std::size_t seen = 0;
  for (std::size_t i = 0; i < utf8.size(); ++i) {
    const bool starts = (static_cast<unsigned char>(utf8[i]) & 0xC0U) != 0x80U;
    if (starts && seen++ == chars) return std::string(utf8.substr(0, i)) + "…";
  }
  return std::string(utf8);
}

std::string describe(const std::exception_ptr& error) {
  if (!error) return {};
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    return e.one_line();
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "unknown exception";
  }
}

bool is_cancelled(const std::exception_ptr& error) {
  if (!error) return false;
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    return e.category() == Category::cancelled;
  } catch (...) {
    return false;
  }
}

}  // namespace rowferry
