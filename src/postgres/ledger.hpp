// The ledger: what of a transfer is committed, decided by inserting a key and never by looking (design: Ledger).
//
// Every slice's transaction and every finalize begins with claim(): ON CONFLICT DO NOTHING waits for another
// transaction that holds the same key, and inserts nothing where it is committed. When a COMMIT's outcome is not known,
// decide() tries the key on a session of its own.
#pragma once

#include <string>

#include "postgres/source.hpp"
#include "system/ledger.hpp"

namespace rowferry::postgres {

using system::LedgerKey;

class Ledger {
 public:
  Ledger(std::shared_ptr<Shared> shared, std::string schema);

  // Makes the table if it is missing, in a transaction of its own; a lost race is no error.
  async::Task<void> ensure(Session& session) const;
  // Within the caller's transaction. True: the key was there.
  async::Task<bool> claim(Session& session, LedgerKey key, std::string staging) const;
  // What the step has done, within the same transaction. `staging`: empty leaves it as claim() has set it.
  async::Task<void> note(Session& session, LedgerKey key, std::uint64_t rows, std::string hash,
                         std::string staging) const;

  // On a session of its own.
  async::Task<system::Outcome> decide(LedgerKey key) const;

  // Committed rows of a transfer; none where the table is missing.
  async::Task<std::vector<system::LedgerEntry>> entries(Session& session, std::string transfer_id) const;
  // Forgets the rows of one attempt: its staging is gone.
  async::Task<void> forget(Session& session, std::string transfer_id, int attempt) const;
  async::Task<void> forget_step(Session& session, LedgerKey key) const;

  const std::string& table() const noexcept { return table_; }  // SQL
  std::string create_statement() const;
  std::string forget_old_statement(std::chrono::hours keep) const;
  std::string claim_statement(const LedgerKey& key, std::string_view staging) const;

 private:
  async::Task<bool> exists(Session& session) const;
  async::Task<bool> try_key(Session* session, LedgerKey key) const;

  std::shared_ptr<Shared> shared_;
  std::string table_;
};

// A session that loads: lock_timeout as the spec has it, and silent but for errors (Session::start_copy_in).
async::Task<std::unique_ptr<Session>> open_loading_session(std::shared_ptr<Shared> shared, int lock_timeout_ms);

// Rolls back what is open, stopping what runs, or closes the session. Shielded, nothrow in effect.
async::Task<void> roll_back(Session& session);

// Awaits a COMMIT whatever is cancelled. Throws the server's error where it has answered with one; when it has not, the
// ledger settles the outcome (`by_ledger`; the session is closed then), see system::settle().
async::Task<void> commit_transaction(Session& session, const Ledger& ledger, LedgerKey key, bool& by_ledger);

}  // namespace rowferry::postgres
