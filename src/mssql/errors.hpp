// What SQL Server's error numbers mean for a transfer: category, stable code, hint, and whether repeating may help.
#pragma once

#include <string>

#include "base/error.hpp"

namespace rowferry::mssql {

// The server's number, 0 when the error is not a server's.
int fault_number(const Error& error);

inline constexpr int error_duplicate_key = 2627;
inline constexpr int error_duplicate_index_key = 2601;
inline constexpr int error_lock_timeout = 1222;
inline constexpr int error_object_exists = 2714;
inline constexpr int error_no_object = 208;

// The same error, with our code and hint where the number is known; others come back as they are.
Error explained(const Error& error);

}  // namespace rowferry::mssql
