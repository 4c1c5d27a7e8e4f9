// What PostgreSQL reports as an error becomes rowferry::Error (PostgreSQL manual, appendix A: error codes).
#pragma once

#include <libpq-fe.h>

#include <string>
#include <string_view>

#include "base/error.hpp"

namespace rowferry::postgres {

// SQLSTATEs after which the failed step may be repeated (after its rollback, or on a new connection).
bool is_transient(std::string_view sqlstate) noexcept;

// The error of a result (PGRES_FATAL_ERROR and the like). Code: login_failed, database_missing, no_permission,
// row_security, table_missing, column_missing, source_locked, connection_lost, …, else server_error; the SQLSTATE is
// fault().number.
Error result_error(const PGresult* result);
// The same of a session that loads: source_locked becomes target_locked.
Error of_target(Error error);
// The error of a connection that could not be made or is lost. Its text comes with PQERRORS_VERBOSE.
Error connect_error(std::string_view text, std::string_view where);
Error lost_error(std::string_view text, std::string_view where);

}  // namespace rowferry::postgres
