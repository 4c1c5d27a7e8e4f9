// The end of a load: the finalize transaction, the steps after it, and the clean-up.
#include <fmt/format.h>

#include "base/error.hpp"
#include "mssql/dialect.hpp"
#include "mssql/errors.hpp"
#include "mssql/loading.hpp"

namespace rowferry::mssql {

using async::Task;
using system::FinalizeResult;
using system::Notice;

namespace {

constexpr std::chrono::milliseconds no_timeout{0};

Notice failure(std::string code, std::string_view what, const Error& error) {
  return {std::move(code), fmt::format("{}: {}", what, error.one_line()), ""};
}

}  // namespace

Task<FinalizeResult> LoadingImpl::finalize(system::FinalizeRequest request) {
  const std::uint64_t rows = request.rows;
  const std::string hex = request.hash.hex();
  co_await keeper_.stop();
  if (direct()) co_return co_await finalize_direct(rows, hex);
  if (lock_lost_ || !lock_.usable()) co_await take_lock_again();
  const TableFacts now = co_await read_table(lock_, place_.schema, place_.table);
  if (now.definition() != situation_.table.definition()) {
    throw Error(Category::conflict, "target_changed",
                fmt::format("{} was changed while the rows were loaded", situation_.table.quoted_name()));
  }
  co_return co_await try_finalize(rows, hex);
}

// A deadlock or a lock timeout has rolled everything back: worth another try, which the artifact shows.
Task<FinalizeResult> LoadingImpl::try_finalize(std::uint64_t rows, std::string hash) {
  std::vector<Notice> retries;
  for (int tries = 1;; ++tries) {
    try {
      FinalizeResult result = co_await run_finalize(rows, hash);
      result.notices.insert(result.notices.end(), retries.begin(), retries.end());
      co_return result;
    } catch (const Error& error) {
      if (!error.transient() || tries >= limits::mssql_finalize_tries_max) throw;
      retries.push_back(failure("finalize_retried", "finalize was rolled back and tried again", error));
    }
    co_await net::sleep_for(pool_.loop(), limits::retry_backoff_first * tries);
    if (!lock_.usable()) co_await take_lock_again();
  }
}

Task<void> LoadingImpl::take_lock_again() {
  lock_.close();
  co_await take_lock();
  lock_lost_ = false;
}

Task<FinalizeResult> LoadingImpl::run_finalize(std::uint64_t rows, std::string hash) {
  std::exception_ptr error;
  FinalizeResult result;
  bool there = false;
  try {
    co_await lock_.execute("BEGIN TRANSACTION");
    there = co_await ledger_.claim(lock_, finalize_key(), staging_);
    if (!there) {
      co_await run_statements(rows, &result);
      co_await ledger_.note(lock_, finalize_key(), rows, std::move(hash));
      co_await commit(&lock_, finalize_key());
    }
  } catch (...) {
    error = std::current_exception();
  }
  if (error) {
    co_await lock_.roll_back();
    std::rethrow_exception(error);
  }
  if (there) co_return co_await done_before(&lock_);
  co_return result;
}

Task<void> LoadingImpl::run_statements(std::uint64_t rows, FinalizeResult* result) {
  using Kind = FinalizeStatement::Kind;
  for (FinalizeStatement& statement :
       finalize_statements(decision_, situation_.table, staging_, request_.columns, request_.what.mode)) {
    if (statement.kind == Kind::count) {
      const tds::QueryResult counted = co_await lock_.query(std::move(statement.sql), no_timeout);
      const auto total = static_cast<std::uint64_t>(counted.scalar("rows_now").integer());
      check_count(total, rows);
      result->rows = total;
      if (!decision_.creates || request_.what.mode != system::Mode::append) result->target_total = total;
      continue;
    }
    const std::uint64_t affected = co_await lock_.execute(std::move(statement.sql), no_timeout);
    if (statement.kind != Kind::insert) continue;
    check_count(affected, rows);
    result->rows = affected;
  }
}

void LoadingImpl::check_count(std::uint64_t got, std::uint64_t wanted) const {
  if (got == wanted) return;
  throw Error(Category::data, "finalize_count",
              fmt::format("{} rows were loaded, {} arrived in {}: everything was taken back", wanted, got,
                          situation_.table.quoted_name()))
      .with_hint("an index with IGNORE_DUP_KEY or an INSTEAD OF trigger drops rows");
}

Task<void> LoadingImpl::commit(const Lease* lease, LedgerKey key) {
  bool by_ledger = false;
  co_await commit_transaction(lease, &ledger_, std::move(key), &by_ledger);
}

Task<FinalizeResult> LoadingImpl::finalize_direct(std::uint64_t rows, std::string hash) {
  FinalizeResult result;
  if (direct_loader_ == nullptr || !direct_loader_->direct_open_) {
    const bool before = direct_loader_ != nullptr && direct_loader_->direct_done_;
    if (before) co_return co_await done_before(&lock_);
    if (rows != 0) throw Error(Category::internal, "no_transaction", "the transaction of a direct load is gone");
    // Nothing was loaded, so that no transaction was begun.
    co_return co_await run_finalize_empty(std::move(hash));
  }
  const Lease* const lease = &direct_loader_->lease_;
  std::exception_ptr error;
  try {
    co_await ledger_.note(*lease, finalize_key(), rows, std::move(hash));
    direct_loader_->direct_open_ = false;
    co_await commit(lease, finalize_key());
  } catch (...) {
    error = std::current_exception();
  }
  if (error) {
    co_await lease->roll_back();
    std::rethrow_exception(error);
  }
  result.rows = rows;
  co_return result;
}

Task<FinalizeResult> LoadingImpl::run_finalize_empty(std::string hash) {
  std::exception_ptr error;
  try {
    co_await lock_.execute("BEGIN TRANSACTION");
    const bool there = co_await ledger_.claim(lock_, finalize_key(), "");
    if (!there) {
      co_await ledger_.note(lock_, finalize_key(), 0, std::move(hash));
      co_await commit(&lock_, finalize_key());
    }
  } catch (...) {
    error = std::current_exception();
  }
  if (error) {
    co_await lock_.roll_back();
    std::rethrow_exception(error);
  }
  co_return FinalizeResult{};
}

Task<FinalizeResult> LoadingImpl::done_before(const Lease* lease) {
  FinalizeResult result;
  result.already_done = true;
  for (const system::LedgerEntry& entry : co_await ledger_.entries(*lease, request_.transfer_id)) {
    if (entry.attempt == attempt_of_target && entry.step == step_finalize) result.rows = entry.row_count;
  }
  co_return result;
}

Task<void> LoadingImpl::after_step(std::string sql, std::string code, std::vector<Notice>* notices) {
  try {
    co_await lock_.execute(std::move(sql), no_timeout);
  } catch (const Error& error) {
    if (!lock_.usable() || error.transient()) throw;
    notices->push_back(failure(std::move(code), "a step after the load failed", error));
  }
}

Task<std::vector<Notice>> LoadingImpl::after_steps() {
  co_await keeper_.stop();
  if (lock_lost_ || !lock_.usable()) co_await take_lock_again();
  std::vector<Notice> notices;
  // The table as it is now: a rename has made another of it.
  const TableFacts table = co_await read_table(lock_, place_.schema, place_.table);
  const ColumnFacts* const identity = table.identity_column();
  if (identity != nullptr) {
    // Never lowers the number that comes next; raises it above every value that was loaded.
    co_await after_step(fmt::format("DBCC CHECKIDENT ({}, RESEED) WITH NO_INFOMSGS", literal(table.quoted_name())),
                        "identity_not_reseeded", &notices);
  }
  if (request_.what.load.analyze) {
    co_await after_step("UPDATE STATISTICS " + table.quoted_name(), "statistics_not_updated", &notices);
  }
  if (!staging_.empty()) co_await drop_staging(&lock_);
  co_await after_step(ledger_.forget_old_statement(pool_.options().ledger_keep), "ledger_not_tidied", &notices);
  co_return notices;
}

Task<void> LoadingImpl::drop_staging(const Lease* lease) {
  const bool there = co_await object_exists(*lease, place_.schema, staging_);
  std::exception_ptr error;
  try {
    co_await lease->execute("BEGIN TRANSACTION");
    co_await ledger_.forget(*lease, request_.transfer_id, ledger_attempt_);
    if (there) co_await lease->execute("DROP TABLE " + quoted(place_.schema, staging_));
    co_await lease->execute("COMMIT TRANSACTION");
  } catch (...) {
    error = std::current_exception();
  }
  if (error) {
    co_await lease->roll_back();
    std::rethrow_exception(error);
  }
  staging_.clear();
}

// A loader's session that was closed may still hold staging until its server has seen that.
Task<void> LoadingImpl::drop_staging_patiently() {
  for (int tries = 1;; ++tries) {
    try {
      // The lock session, or another: the table's name is this attempt's alone.
      if (!lock_.usable()) lock_ = co_await pool_.open(settings());
      co_await lock_.roll_back();
      co_await drop_staging(&lock_);
      co_return;
    } catch (const Error& error) {
      if (!error.transient() || tries >= limits::mssql_finalize_tries_max) throw;
    }
    co_await net::sleep_for(pool_.loop(), limits::retry_backoff_first * tries);
  }
}

Task<std::vector<Notice>> LoadingImpl::end(bool keep_staging) {
  std::vector<Notice> notices;
  co_await keeper_.stop();
  try {
    if (!keep_staging && !staging_.empty()) co_await drop_staging_patiently();
  } catch (const Error& error) {
    notices.push_back(
        failure("staging_left", fmt::format("the staging table {} could not be dropped", staging_), error));
  }
  lock_.close();  // and with the session its lock
  co_return notices;
}

}  // namespace rowferry::mssql
