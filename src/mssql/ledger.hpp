// The ledger: what of a transfer is committed, decided by inserting a key and never by looking (design: Ledger).
//
// Every slice's transaction and every finalize begins with claim(): the key's row lock tells a second attempt to wait,
// the committed key that it is done. When a COMMIT's outcome is not known, decide() tries the key on a fresh session.
#pragma once

#include <string>

#include "mssql/session_pool.hpp"
#include "system/ledger.hpp"

namespace rowferry::mssql {

using system::attempt_of_target;
using system::ledger_table;
using system::LedgerKey;
using system::step_finalize;
using system::step_staging;

class Ledger {
 public:
  Ledger(SessionPool& pool, std::string database, std::string schema);

  // Makes the table if it is missing, in a transaction of its own; a lost race is no error.
  async::Task<void> ensure(const Lease& lease) const;
  // Within the caller's transaction. True: the key was there (the transaction is rolled back by then).
  async::Task<bool> claim(const Lease& lease, LedgerKey key, std::string staging) const;
  // What the step has done, within the same transaction.
  async::Task<void> note(const Lease& lease, LedgerKey key, std::uint64_t rows, std::string hash) const;

  using Outcome = system::Outcome;
  // On a session of its own.
  async::Task<Outcome> decide(LedgerKey key) const;

  // Committed rows of a transfer. Waits for commits in flight, up to the session's lock timeout.
  async::Task<std::vector<system::LedgerEntry>> entries(const Lease& lease, std::string transfer_id) const;
  // Forgets the rows of one attempt: its staging is gone.
  async::Task<void> forget(const Lease& lease, std::string transfer_id, int attempt) const;

  const std::string& table() const noexcept { return table_; }  // quoted
  std::string create_statement() const;
  // Forgets all rows that are older.
  std::string forget_old_statement(std::chrono::hours keep) const;
  std::string claim_statement(const LedgerKey& key, std::string_view staging) const;

 private:
  async::Task<bool> exists(const Lease* lease) const;

  SessionPool& pool_;
  std::string database_;
  std::string schema_;
  std::string table_;
};

}  // namespace rowferry::mssql
