#include "mssql/ledger.hpp"

#include <fmt/format.h>

#include <chrono>

#include "base/civil.hpp"
#include "base/log.hpp"
#include "mssql/catalogue.hpp"
#include "mssql/dialect.hpp"
#include "mssql/errors.hpp"

namespace rowferry::mssql {

using async::Task;

namespace {

bool duplicate(const Error& error) {
  const int number = fault_number(error);
  return number == error_duplicate_key || number == error_duplicate_index_key;
}

std::string where_key(const LedgerKey& key) {
  return fmt::format("transfer_id = {} AND attempt = {} AND step = {}", literal(key.transfer_id), key.attempt,
                     literal(key.step));
}

}  // namespace

Ledger::Ledger(SessionPool& pool, std::string database, std::string schema)
    : pool_(pool), database_(std::move(database)), schema_(std::move(schema)), table_(quoted(schema_, ledger_table)) {}

std::string Ledger::create_statement() const {
  return fmt::format(
      "CREATE TABLE {} (transfer_id nvarchar(64) NOT NULL, attempt int NOT NULL, step nvarchar(128) NOT NULL, staging "
      "nvarchar(128) NULL, row_count bigint NULL, content_hash nvarchar(64) NULL, committed_at datetime2(3) NOT NULL, "
      "PRIMARY KEY (transfer_id, attempt, step))",
      table_);
}

std::string Ledger::claim_statement(const LedgerKey& key, std::string_view staging) const {
  return fmt::format(
      "INSERT INTO {} (transfer_id, attempt, step, staging, committed_at) VALUES ({}, {}, {}, {}, SYSUTCDATETIME())",
      table_, literal(key.transfer_id), key.attempt, literal(key.step), staging.empty() ? "NULL" : literal(staging));
}

Task<bool> Ledger::exists(const Lease* lease) const {
  co_return co_await object_exists(*lease, schema_, std::string(ledger_table));
}

Task<void> Ledger::ensure(const Lease& lease) const {
  const bool there = co_await exists(&lease);
  if (there) co_return;
  try {
    co_await lease.execute(create_statement());
  } catch (const Error& error) {
    if (fault_number(error) != error_object_exists) throw;
  }
}

Task<bool> Ledger::claim(const Lease& lease, LedgerKey key, std::string staging) const {
  bool there = false;
  try {
    co_await lease.execute(claim_statement(key, staging));
  } catch (const Error& error) {
    if (!duplicate(error)) throw;
    there = true;
  }
  if (there) co_await lease.roll_back();
  co_return there;
}

Task<void> Ledger::note(const Lease& lease, LedgerKey key, std::uint64_t rows, std::string hash) const {
  co_await lease.execute(
      fmt::format("UPDATE {} SET row_count = {}, content_hash = {}, committed_at = SYSUTCDATETIME() "
                  "WHERE {}",
                  table_, rows, literal(hash), where_key(key)));
}

Task<Ledger::Outcome> Ledger::decide(LedgerKey key) const {
  const auto wait = static_cast<int>(limits::mssql_ledger_lock_timeout.count());
  Outcome outcome = Outcome::unknown;
  try {
    Lease lease = co_await pool_.open({.database = database_, .lock_timeout_ms = wait, .yields_in_deadlocks = false});
    const bool there = co_await exists(&lease);
    if (!there) co_return Outcome::absent;
    co_await lease.execute("BEGIN TRANSACTION");
    const bool committed = co_await claim(lease, std::move(key), "");
    outcome = committed ? Outcome::committed : Outcome::absent;
    co_await lease.roll_back();
  } catch (const Error& error) {
    // A lock timeout, or no way to ask: the key's fate stays open.
    log::failure("asking the ledger what became of a COMMIT", error);
  }
  co_return outcome;
}

Task<std::vector<system::LedgerEntry>> Ledger::entries(const Lease& lease, std::string transfer_id) const {
  std::vector<system::LedgerEntry> out;
  tds::ResultSet set;
  // Locking reads even where the database reads row versions: a version would not show a COMMIT in flight.
  try {
    set = co_await lease.query_if_there(
        fmt::format("SELECT attempt, step, staging, row_count, content_hash FROM {} WITH (READCOMMITTEDLOCK) WHERE "
                    "transfer_id = {} ORDER BY attempt, step",
                    table_, literal(transfer_id)));
  } catch (const Error& error) {
    if (fault_number(error) != error_lock_timeout) throw;
    throw Error(Category::commit_unknown, "commit_unknown", "a slice's COMMIT is in flight and did not end in time")
        .with_hint("resume again later");
  }
  for (std::size_t i = 0; i < set.rows.size(); ++i) {
    out.push_back({.attempt = static_cast<int>(set.at(i, "attempt").integer()),
                   .step = set.at(i, "step").text(),
                   .staging = set.at(i, "staging").text_or(""),
                   .row_count = static_cast<std::uint64_t>(set.at(i, "row_count").integer_or(0)),
                   .content_hash = set.at(i, "content_hash").text_or("")});
  }
  co_return out;
}

Task<void> Ledger::forget(const Lease& lease, std::string transfer_id, int attempt) const {
  co_await lease.execute(
      fmt::format("DELETE FROM {} WHERE transfer_id = {} AND attempt = {}", table_, literal(transfer_id), attempt));
}

std::string Ledger::forget_old_statement(std::chrono::hours keep) const {
  const auto since = std::chrono::system_clock::now() - keep;
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(since.time_since_epoch()).count();
  const std::string when = civil::timestamp_text(micros, civil::Fraction::micro, 3, false);
  // Not waiting for the rows of transfers that are running: those are not old.
  return fmt::format("DELETE FROM {} WITH (READPAST) WHERE committed_at < {}", table_, literal(when));
}

}  // namespace rowferry::mssql
