#include "mssql/errors.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace rowferry::mssql {

namespace {

struct Known {
  int number;
  Category category;
  std::string_view code;
  std::string_view hint;
  bool transient = false;
};

constexpr int azure_node_failed = 40197;
constexpr std::string_view azure_hint = "the service is busy or moving the database; the transfer tries again";

// Numbers and meanings: SQL Server's "Database engine errors" and Azure SQL's list of transient faults.
constexpr auto known_errors = std::to_array<Known>({
    {18456, Category::server, "login_failed", "check user and password of the connection; the server's log says more"},
    {18488, Category::server, "password_expired", "the login must change its password first"},
    {18487, Category::server, "password_expired", "the login's password has expired"},
    {4060, Category::server, "database_unavailable", "check the database's name, and that the login may use it"},
    {40615, Category::server, "firewall", "the server's firewall does not admit this address"},
    {102, Category::input, "syntax_error", ""},
    {156, Category::input, "syntax_error", ""},
    {207, Category::not_found, "column_missing", ""},
    {208, Category::not_found, "table_missing", "or the login may not see it"},
    {1205, Category::server, "deadlock", "chosen as deadlock victim; the step is tried again", true},
    {1222, Category::server, "lock_timeout",
     "somebody else holds a lock on the table; load.lock_timeout_ms says how long to wait", true},
    {2627, Category::data, "duplicate_key", "two rows have the same key; the target's collation may hold them equal"},
    {2601, Category::data, "duplicate_key", "two rows have the same key; the target's collation may hold them equal"},
    {1505, Category::data, "duplicate_key",
     "the rows have no unique key; the target's collation may hold two of them equal"},
    {547, Category::data, "constraint_violated", "a row breaks a foreign key or check constraint of the target"},
    {515, Category::data, "null_in_not_null", "a column of the target takes no NULL"},
    {2628, Category::data, "value_does_not_fit", "a value is longer than its column"},
    {8152, Category::data, "value_does_not_fit", "a value is longer than its column"},
    {9002, Category::server, "log_full", "the database's transaction log is full: back it up or let it grow"},
    {1105, Category::server, "disk_full", "the filegroup is full: add space to the database"},
    {1101, Category::server, "disk_full", "the filegroup is full: add space to the database"},
    {229, Category::forbidden, "right_missing", "grant the login the right that the message names"},
    {230, Category::forbidden, "right_missing", "grant the login the right that the message names"},
    {262, Category::forbidden, "right_missing", "grant the login the right that the message names"},
    {1088, Category::forbidden, "right_missing", "the table is missing, or the login may not alter it"},
    {2760, Category::forbidden, "right_missing", "the schema is missing, or the login may not use it"},
    {4834, Category::forbidden, "right_missing",
     "bulk loading needs the right to insert, and to alter where constraints or triggers are off"},
    {1934, Category::server, "set_options", "an indexed view or computed column needs other session options"},
    {978, Category::server, "read_intent_required",
     "this replica admits only readers that say so: read.read_only_intent does"},
    {601, Category::server, "rows_moved", "rows moved while they were read uncommitted; the slice is read again", true},
    {3952, Category::unsupported, "snapshot_not_allowed",
     "the database does not allow SNAPSHOT isolation; read.isolation \"auto\" takes what there is"},
    {3961, Category::server, "source_changed", "the table was altered while it was read; the slice is read again",
     true},
    {3960, Category::server, "snapshot_conflict", "another transaction has changed the rows", true},
    {10928, Category::server, "server_busy", azure_hint, true},
    {10929, Category::server, "server_busy", azure_hint, true},
    {azure_node_failed, Category::server, "server_busy", azure_hint, true},
    {40501, Category::server, "server_busy", azure_hint, true},
    {40613, Category::server, "server_busy", azure_hint, true},
    {49918, Category::server, "server_busy", azure_hint, true},
    {49919, Category::server, "server_busy", azure_hint, true},
    {49920, Category::server, "server_busy", azure_hint, true},
});

}  // namespace

int fault_number(const Error& error) {
  if (!error.fault()) return 0;
  const std::string& digits = error.fault()->number;
  int number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

Error explained(const Error& error) {
  const int number = fault_number(error);
  const auto* const known = std::ranges::find(known_errors, number, &Known::number);
  if (known == known_errors.end()) return error;
  // Azure's number for every failure behind its gateway: when the one inside will not pass, it says nothing more.
  if (number == azure_node_failed && !error.transient()) return error;
  Error out(known->category, std::string(known->code), error.detail());
  out.with_field(error.field()).with_fault(*error.fault()).with_hint(error.hint());
  out.with_hint(std::string(known->hint));
  const ErrorContext& context = error.context();
  out.with_connection(context.connection).with_table(context.table).with_slice(context.slice);
  out.with_column(context.column).with_value(context.value);
  if (context.row) out.with_row(*context.row);
  if (known->transient || error.transient()) out.mark_transient();
  return out;
}

}  // namespace rowferry::mssql
