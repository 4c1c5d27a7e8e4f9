#include "postgres/fault.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace rowferry::postgres {

namespace {

struct Meaning {
  std::string_view sqlstate;  // whole, or the class (two characters)
  Category category;
  std::string_view code;
  std::string_view hint;
};

// Whole states before classes: the first that fits decides.
constexpr std::array meanings{
    Meaning{"28P01", Category::forbidden, "login_failed", "check user and password of the connection"},
    Meaning{"28", Category::forbidden, "login_failed", "check the server's pg_hba.conf, user and password"},
    Meaning{"3D000", Category::not_found, "database_missing", ""},
    Meaning{"42501", Category::forbidden, "no_permission", ""},
    Meaning{"42P01", Category::not_found, "table_missing",
            "names in `where` and `query` need their schema: search_path is empty"},
    Meaning{"42703", Category::not_found, "column_missing", ""},
    Meaning{"42883", Category::input, "function_missing",
            "names in `where` and `query` need their schema: search_path is empty"},
    Meaning{"42601", Category::input, "syntax_error", ""},
    Meaning{"23505", Category::data, "duplicate_key", "two rows have the same key"},
    Meaning{"23502", Category::data, "null_in_not_null", "a column takes no NULL"},
    Meaning{"23503", Category::data, "constraint_violated", "a row breaks a foreign key of the target"},
    Meaning{"23514", Category::data, "constraint_violated", "a row breaks a check of the target, or fits no partition"},
    Meaning{"53100", Category::server, "disk_full", ""},
    Meaning{"55P03", Category::conflict, "source_locked", "another session holds a lock on the table"},
    Meaning{"53300", Category::connection, "too_many_connections",
            "fewer export workers need fewer sessions (one each, and one more); or raise the server's max_connections"},
    Meaning{"57014", Category::server, "query_canceled", ""},
    Meaning{"57P03", Category::connection, "server_not_ready", "the server is starting, stopping or recovering"},
    Meaning{"57P", Category::connection, "connection_lost", ""},
    Meaning{"08", Category::connection, "connection_lost", ""},
};

// Serialization failure, deadlock, lock not available, lost and refused connections, shutdown and recovery.
constexpr std::array<std::string_view, 10> transient_states{"40001", "40P01", "55P03", "57P01", "57P02",
                                                            "57P03", "53300", "08",    "25P04", "55006"};

std::string field(const PGresult* result, int code) {
  const char* text = PQresultErrorField(result, code);
  return text == nullptr ? std::string() : std::string(text);
}

Error error_of(std::string_view sqlstate, std::string detail) {
  const auto* meaning = std::find_if(meanings.begin(), meanings.end(),
                                     [&](const Meaning& m) { return sqlstate.starts_with(m.sqlstate); });
  Error error = meaning == meanings.end() ? Error(Category::server, "server_error", std::move(detail))
                                          : Error(meaning->category, std::string(meaning->code), std::move(detail));
  if (meaning != meanings.end() && !meaning->hint.empty()) error.with_hint(std::string(meaning->hint));
  if (is_transient(sqlstate)) error.mark_transient();
  return error;
}

// "FATAL:  28P01: password authentication …\nLOCATION:  …" (PQERRORS_VERBOSE): the state, or nothing.
std::string_view state_in(std::string_view text) {
  for (std::size_t at = text.find(":  "); at != std::string_view::npos; at = text.find(":  ", at + 1)) {
    const std::string_view state = text.substr(at + 3, 5);
    const bool shaped = state.size() == 5 && std::all_of(state.begin(), state.end(), [](unsigned char c) {
                          return std::isdigit(c) != 0 || std::isupper(c) != 0;
                        });
    if (shaped && text.substr(at + 8, 2) == ": ") return state;
  }
  return {};
}

// One line, without the source location that the verbose form adds and without the state (the fault has it).
std::string readable(std::string_view text, std::string_view state) {
  std::string out(text.substr(0, text.find("\nLOCATION:")));
  if (!state.empty()) {
    const std::size_t at = out.find(std::string(state) + ": ");
    if (at != std::string::npos) out.erase(at, state.size() + 2);
  }
  while (!out.empty() && std::isspace(static_cast<unsigned char>(out.back())) != 0) out.pop_back();
  std::replace(out.begin(), out.end(), '\n', ' ');
  return out;
}

}  // namespace

bool is_transient(std::string_view sqlstate) noexcept {
  return std::any_of(transient_states.begin(), transient_states.end(),
                     [&](std::string_view state) { return sqlstate.starts_with(state); });
}

Error result_error(const PGresult* result) {
  ServerFault fault;
  fault.number = field(result, PG_DIAG_SQLSTATE);
  fault.message = field(result, PG_DIAG_MESSAGE_PRIMARY);
  if (fault.message.empty()) fault.message = readable(PQresultErrorMessage(result), {});
  if (fault.number.empty()) return lost_error(fault.message, {});
  std::string detail = fault.message;
  if (const std::string more = field(result, PG_DIAG_MESSAGE_DETAIL); !more.empty()) detail += ": " + more;
  if (const std::string at = field(result, PG_DIAG_STATEMENT_POSITION); !at.empty()) {
    detail += fmt::format(" (at character {} of the statement)", at);
  } else if (const std::string inner = field(result, PG_DIAG_INTERNAL_QUERY); !inner.empty()) {
    detail += fmt::format(" (in \"{}\")", cut_for_message(inner, 200));
  }
  // By the server's function, whatever language its messages have.
  if (fault.number == "42501" && field(result, PG_DIAG_SOURCE_FUNCTION) == "check_enable_rls") {
    return Error(Category::forbidden, "row_security", "row security policies would hide rows: " + detail)
        .with_hint("read as the table's owner or a role with BYPASSRLS")
        .with_fault(std::move(fault));
  }
  Error error = error_of(fault.number, fmt::format("{} (SQLSTATE {})", detail, fault.number));
  if (const std::string hint = field(result, PG_DIAG_MESSAGE_HINT); !hint.empty()) error.with_hint(hint);
  error.with_fault(std::move(fault));
  return error;
}

Error of_target(Error error) {
  if (error.code() != "source_locked") return error;
  Error out(error.category(), "target_locked", error.detail());
  out.with_hint("another session holds a lock on the table; load.lock_timeout_ms says how long to wait");
  if (error.fault()) out.with_fault(*error.fault());
  return out.mark_transient();
}

Error connect_error(std::string_view text, std::string_view where) {
  const std::string_view state = state_in(text);
  const std::string message = readable(text, state);
  if (state.empty()) {
    const bool no_password = message.find("no password supplied") != std::string::npos;
    if (no_password)
      return Error(Category::forbidden, "login_failed", message).with_hint("the connection has no password");
    return Error(Category::connection, "connect_failed",
                 message.empty() ? fmt::format("cannot connect to {}", where) : message);
  }
  Error error = error_of(state, message);
  error.with_fault(ServerFault{.number = std::string(state), .message = message});
  return error;
}

Error lost_error(std::string_view text, std::string_view where) {
  const std::string_view state = state_in(text);
  std::string message = readable(text, state);
  if (message.empty()) message = "the server closed the connection";
  if (!where.empty()) message = fmt::format("connection to {} lost: {}", where, message);
  Error error(Category::connection, "connection_lost", std::move(message));
  if (!state.empty()) error.with_fault(ServerFault{.number = std::string(state), .message = readable(text, state)});
  return error.mark_transient();
}

}  // namespace rowferry::postgres
