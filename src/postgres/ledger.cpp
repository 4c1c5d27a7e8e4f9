#include "postgres/ledger.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/limits.hpp"
#include "base/log.hpp"
#include "postgres/dialect.hpp"

namespace rowferry::postgres {

using async::Task;
using system::Outcome;

namespace {

std::string state_of(const Error& error) { return error.fault() ? error.fault()->number : std::string(); }

std::string where_key(const LedgerKey& key) {
  return fmt::format("transfer_id = {} AND attempt = {} AND step = {}", quote_text(key.transfer_id), key.attempt,
                     quote_text(key.step));
}

Task<void> undo(Session* session) {
  co_await session->stop();
  if (session->open() && session->in_transaction()) co_await session->query("ROLLBACK");
}

Task<void> undo_or_close(Session* session) {
  try {
    co_await net::with_deadline(session->loop(), limits::pg_rollback_wait, "rolling back", undo(session));
  } catch (const std::exception&) {
    session->close();  // which rolls back as well
  }
}

Task<std::exception_ptr> send_commit(Session* session) {
  try {
    const Result result =
        co_await net::with_deadline(session->loop(), limits::pg_commit_wait, "COMMIT", session->query("COMMIT"));
    // A transaction that had failed is rolled back by COMMIT, and that is no error to the server.
    if (std::string_view(PQcmdStatus(result.get())) != "COMMIT") {
      throw Error(Category::internal, "not_committed", "a failed transaction was to be committed");
    }
  } catch (...) {
    co_return std::current_exception();
  }
  co_return nullptr;
}

bool is_timeout(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    return e.category() == Category::timeout || e.category() == Category::cancelled;
  } catch (...) {
    return false;
  }
}

Task<void> settle_commit(Session* session, const Ledger* ledger, LedgerKey key, bool* by_ledger) {
  const std::exception_ptr error = co_await send_commit(session);
  if (!error) co_return;
  // The server's own answer is certain; only silence is not.
  if (session->open() && !is_timeout(error)) std::rethrow_exception(error);
  session->close();
  const Outcome outcome = co_await ledger->decide(std::move(key));
  system::settle(outcome, error);
  *by_ledger = true;
}

}  // namespace

Ledger::Ledger(std::shared_ptr<Shared> shared, std::string schema)
    : shared_(std::move(shared)), table_(quote_table({{std::move(schema), std::string(system::ledger_table)}})) {}

std::string Ledger::create_statement() const {
  return fmt::format(
      "CREATE TABLE {} (transfer_id pg_catalog.text NOT NULL, attempt pg_catalog.int4 NOT NULL, step pg_catalog.text "
      "NOT NULL, staging pg_catalog.text, row_count pg_catalog.int8, content_hash pg_catalog.text, committed_at "
      "pg_catalog.timestamptz NOT NULL, PRIMARY KEY (transfer_id, attempt, step))",
      table_);
}

std::string Ledger::claim_statement(const LedgerKey& key, std::string_view staging) const {
  return fmt::format(
      "INSERT INTO {} (transfer_id, attempt, step, staging, committed_at) VALUES ({}, {}, {}, {}, "
      "pg_catalog.clock_timestamp()) ON CONFLICT DO NOTHING",
      table_, quote_text(key.transfer_id), key.attempt, quote_text(key.step),
      staging.empty() ? "NULL" : quote_text(staging));
}

Task<bool> Ledger::exists(Session& session) const {
  const Result found =
      co_await session.query(fmt::format("SELECT pg_catalog.to_regclass({}) IS NOT NULL AS there", quote_text(table_)));
  co_return found.boolean(0, "there");
}

Task<void> Ledger::ensure(Session& session) const {
  const bool there = co_await exists(session);
  if (there) co_return;
  try {
    co_await session.query(create_statement());
  } catch (const Error& error) {
    // duplicate_table, or the unique index of a catalogue where both have come this far
    if (state_of(error) != "42P07" && state_of(error) != "23505") throw;
  }
}

Task<bool> Ledger::claim(Session& session, LedgerKey key, std::string staging) const {
  const Result result = co_await session.query(claim_statement(key, staging));
  co_return result.affected() == 0;
}

Task<void> Ledger::note(Session& session, LedgerKey key, std::uint64_t rows, std::string hash,
                        std::string staging) const {
  co_await session.query(fmt::format(
      "UPDATE {} SET row_count = {}, content_hash = {}, committed_at = pg_catalog.clock_timestamp(){} WHERE {}", table_,
      rows, quote_text(hash), staging.empty() ? "" : ", staging = " + quote_text(staging), where_key(key)));
}

Task<bool> Ledger::try_key(Session* session, LedgerKey key) const {
  const bool there = co_await exists(*session);
  if (!there) co_return false;
  co_await session->query("BEGIN");
  const bool committed = co_await claim(*session, std::move(key), "");
  co_await session->query("ROLLBACK");
  co_return committed;
}

Task<Outcome> Ledger::decide(LedgerKey key) const {
  try {
    const auto wait = static_cast<int>(limits::pg_ledger_lock_wait.count());
    const std::unique_ptr<Session> session = co_await open_loading_session(shared_, wait);
    const bool committed = co_await try_key(session.get(), std::move(key));
    co_return committed ? Outcome::committed : Outcome::absent;
  } catch (const Error& error) {
    // A lock timeout, or no way to ask: the key's fate stays open.
    log::failure("asking the ledger what became of a COMMIT", error);
  }
  co_return Outcome::unknown;
}

Task<std::vector<system::LedgerEntry>> Ledger::entries(Session& session, std::string transfer_id) const {
  std::vector<system::LedgerEntry> out;
  const bool there = co_await exists(session);
  if (!there) co_return out;
  const Result found = co_await session.query(
      fmt::format("SELECT attempt, step, COALESCE(staging, '') AS staging, COALESCE(row_count, 0) "
                  "AS row_count, COALESCE(content_hash, '') AS content_hash FROM {} WHERE transfer_id = {} "
                  "ORDER BY attempt, step",
                  table_, quote_text(transfer_id)));
  for (int i = 0; i < found.rows(); ++i) {
    out.push_back({.attempt = static_cast<int>(found.integer(i, "attempt")),
                   .step = std::string(found.text(i, "step")),
                   .staging = std::string(found.text(i, "staging")),
                   .row_count = static_cast<std::uint64_t>(found.integer(i, "row_count")),
                   .content_hash = std::string(found.text(i, "content_hash"))});
  }
  co_return out;
}

Task<void> Ledger::forget(Session& session, std::string transfer_id, int attempt) const {
  co_await session.query(
      fmt::format("DELETE FROM {} WHERE transfer_id = {} AND attempt = {}", table_, quote_text(transfer_id), attempt));
}

Task<void> Ledger::forget_step(Session& session, LedgerKey key) const {
  co_await session.query(fmt::format("DELETE FROM {} WHERE {}", table_, where_key(key)));
}

std::string Ledger::forget_old_statement(std::chrono::hours keep) const {
  return fmt::format("DELETE FROM {} WHERE committed_at < pg_catalog.now() - pg_catalog.make_interval(hours => {})",
                     table_, keep.count());
}

Task<std::unique_ptr<Session>> open_loading_session(std::shared_ptr<Shared> shared, int lock_timeout_ms) {
  std::unique_ptr<Session> session = co_await Session::connect(shared->loop, shared->options);
  session->loads();
  co_await session->query(
      fmt::format("SET client_min_messages = error; SET lock_timeout = {}; "
                  "SET default_transaction_isolation = 'read committed'; "
                  "SET default_transaction_read_only = off; SET default_transaction_deferrable = off",
                  lock_timeout_ms));
  co_return session;
}

Task<void> roll_back(Session& session) { co_await async::shield(undo_or_close(&session)); }

Task<void> commit_transaction(Session& session, const Ledger& ledger, LedgerKey key, bool& by_ledger) {
  co_await async::shield(settle_commit(&session, &ledger, std::move(key), &by_ledger));
}

}  // namespace rowferry::postgres
