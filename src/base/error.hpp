// Errors: one exception type that carries category, stable code and the context a person needs.
//
// Failures are exceptions; expected outcomes (end of data, absent) are return values. Whoever knows
// more on the way up adds it with the with_* calls and rethrows; nobody else catches.
// The whole of it reaches the HTTP response (problem+json), the artifact and the log.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>

namespace rowferry {

enum class Category : std::uint8_t {
  input,           // the spec, the configuration or the command line is wrong (exit 2, HTTP 400/422)
  forbidden,       // not writable, no right, wrong token
  not_found,       // connection, table, column, transfer
  conflict,        // state does not allow it (HTTP 409), another transfer into the same target
  unsupported,     // types or features that cannot map
  data,            // one value cannot be held by the target
  connection,      // cannot reach, TLS refused, peer closed
  timeout,         // a named wait passed its deadline
  server,          // a database answered with an error
  commit_unknown,  // COMMIT was sent and its outcome could not be told
  cancelled,       // somebody asked for it
  internal,        // a broken invariant of ours
};

// What a database said, as it said it.
struct ServerFault {
  std::string number;  // SQL Server error number or PostgreSQL SQLSTATE
  int severity = 0;    // SQL Server class
  int state = 0;
  int line = 0;
  std::string server;
  std::string procedure;
  std::string message;
};

// Where it happened. Empty strings are unknown parts.
struct ErrorContext {
  std::string connection;
  std::string table;
  std::string slice;
  std::string column;
  std::optional<std::uint64_t> row;  // ordinal within the slice, 1 = first row read
  std::string value;                 // cut at limits::error_value_chars
};

class Error : public std::exception {
 public:
  Error(Category category, std::string code, std::string detail);

  // Each adds only where the part is still unknown: the innermost knowledge wins. They chain, also on a
  // temporary: throw Error(...).with_field("source.table").with_hint("...").
  Error& with_field(std::string field);
  Error& with_hint(std::string hint);
  Error& with_connection(std::string_view name);
  Error& with_table(std::string_view table);
  Error& with_slice(std::string_view slice);
  Error& with_column(std::string_view column);
  Error& with_row(std::uint64_t row);
  Error& with_value(std::string_view value);
  Error& with_fault(ServerFault fault);
  Error& mark_transient();

  // "detail [hint]" without context; what() is the same text.
  const char* what() const noexcept override { return detail_.c_str(); }
  // One line: detail, then the known context in brackets, then the hint.
  std::string one_line() const;

  Category category() const noexcept { return category_; }
  const std::string& code() const noexcept { return code_; }  // snake_case, stable
  const std::string& detail() const noexcept { return detail_; }
  const std::string& field() const noexcept { return field_; }
  const std::string& hint() const noexcept { return hint_; }
  const ErrorContext& context() const noexcept { return context_; }
  const std::optional<ServerFault>& fault() const noexcept { return fault_; }
  // True when repeating the failed step (after its rollback) may succeed.
  bool transient() const noexcept { return transient_; }

 private:
  Category category_;
  bool transient_ = false;
  std::string code_;
  std::string detail_;
  std::string field_;
  std::string hint_;
  ErrorContext context_;
  std::optional<ServerFault> fault_;
};

// Cuts text to at most `chars` Unicode code points, never inside one, and adds "…" when it cut.
std::string cut_for_message(std::string_view utf8, std::size_t chars);

// What Error::one_line() gives, of parts that were kept.
std::string one_line_of(std::string_view detail, const ErrorContext& context, std::string_view hint);

// The text of any exception, one line.
std::string describe(const std::exception_ptr& error);
// True when it is an Error of Category::cancelled.
bool is_cancelled(const std::exception_ptr& error);

}  // namespace rowferry
