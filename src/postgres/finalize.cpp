// The end of a load: the finalize transaction, the steps after it, and the clean-up.
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/limits.hpp"
#include "postgres/dialect.hpp"
#include "postgres/loading.hpp"

namespace rowferry::postgres {

using async::Task;
using system::FinalizeRequest;
using system::FinalizeResult;
using system::Notice;

namespace {

Notice failure(std::string code, std::string_view what, const Error& error) {
  return {std::move(code), fmt::format("{}: {}", what, error.one_line()), ""};
}

// Lock timeouts and deadlocks: nothing was wrong with the statement.
bool lock_failed(const Error& error) {
  return error.fault() && (error.fault()->number == "55P03" || error.fault()->number == "40P01");
}

}  // namespace

Task<void> swap_patiently(Session& session, std::string sql, std::vector<Notice>* notices) {
  for (int tries = 1;; ++tries) {
    co_await session.query("SAVEPOINT rowferry_swap");
    std::optional<Error> failed;
    try {
      co_await session.query(sql);
    } catch (const Error& error) {
      if (!lock_failed(error) || tries >= limits::pg_swap_tries_max || !session.open()) throw;
      failed = error;
    }
    if (!failed) break;
    co_await session.query("ROLLBACK TO SAVEPOINT rowferry_swap");
    if (notices != nullptr && tries == 1) {
      notices->push_back(failure("swap_retried", "a lock was not had in time and asked for again", *failed));
    }
    co_await net::sleep_for(session.loop(), limits::pg_swap_pause * tries);
  }
  co_await session.query("RELEASE SAVEPOINT rowferry_swap");
}

Task<void> LoadingImpl::ready_lock() {
  co_await keeper_.stop();
  if (lock_lost_ || !lock_->alive()) co_await take_lock_again();
}

// What the load relies on is as it was: the lock keeps other transfers out, not other people.
Task<void> LoadingImpl::check_unchanged() {
  TableFacts now = co_await read_table(*lock_, place_.schema, place_.table);
  if (now.definition() != situation_.table.definition()) {
    throw Error(Category::conflict, "target_changed",
                fmt::format("{} was changed while the rows were loaded", situation_.table.sql));
  }
  situation_.table = std::move(now);  // with the partitions that there are now
}

Task<FinalizeResult> LoadingImpl::finalize(FinalizeRequest request) {
  if (direct()) co_return co_await finalize_direct(&request);
  co_await ready_lock();
  co_await check_unchanged();
  co_return co_await try_finalize(&request);
}

// A deadlock or a lock timeout has rolled everything back: worth another try, which the artifact shows.
Task<FinalizeResult> LoadingImpl::try_finalize(const FinalizeRequest* request) {
  std::vector<Notice> retries;
  for (int tries = 1;; ++tries) {
    try {
      FinalizeResult result = co_await run_finalize(request);
      result.notices.insert(result.notices.end(), retries.begin(), retries.end());
      co_return result;
    } catch (const Error& error) {
      if (!error.transient() || tries >= limits::pg_finalize_tries_max) throw;
      retries.push_back(failure("finalize_retried", "finalize was rolled back and tried again", error));
    }
    co_await net::sleep_for(shared_->loop, limits::retry_backoff_first * tries);
    if (!lock_->alive()) {
      co_await take_lock_again();
      co_await check_unchanged();
    }
  }
}

Task<FinalizeResult> LoadingImpl::run_finalize(const FinalizeRequest* request) {
  std::exception_ptr error;
  FinalizeResult result;
  bool there = false;
  try {
    co_await lock_->query("BEGIN");
    there = co_await ledger_.claim(*lock_, finalize_key(), staging_);
    if (!there && direct()) {
      for (const std::string& sql : direct_statements(decision_, situation_.table)) co_await lock_->query(sql);
    }
    if (!there) co_await finalize_on(lock_.get(), request, &result);
  } catch (...) {
    error = std::current_exception();
  }
  if (error || there) co_await roll_back(*lock_);
  if (error) std::rethrow_exception(error);
  if (there) co_return co_await done_before();
  co_return result;
}

// Everything between the ledger's key and COMMIT, and COMMIT.
Task<void> LoadingImpl::finalize_on(Session* session, const FinalizeRequest* request, FinalizeResult* result) {
  if (per_slice()) {
    co_await empty_vanished(session, request, result);
  } else {
    co_await run_statements(session, request, result);
  }
  co_await ledger_.note(*session, finalize_key(), request->rows, request->hash.hex(), "");
  bool by_ledger = false;
  co_await commit_transaction(*session, ledger_, finalize_key(), by_ledger);
}

Task<void> LoadingImpl::run_statements(Session* session, const FinalizeRequest* request, FinalizeResult* result) {
  result->rows = direct() ? request->rows : 0;
  const std::vector<FinalizeStatement> statements =
      finalize_statements(decision_, situation_.table, staging_, request_.columns, request_.what);
  for (const FinalizeStatement& statement : statements) {
    co_await run_statement(session, &statement, request, result);
  }
}

Task<void> LoadingImpl::run_statement(Session* session, const FinalizeStatement* statement,
                                      const FinalizeRequest* request, FinalizeResult* result) {
  using Kind = FinalizeStatement::Kind;
  switch (statement->kind) {
    case Kind::plain:
      co_await session->query(statement->sql);
      break;
    case Kind::insert: {
      const Result inserted = co_await session->query(statement->sql);
      check_count(inserted.affected(), request->rows);
      result->rows = inserted.affected();
      break;
    }
    case Kind::count: {
      const Result counted = co_await session->query(statement->sql);
      const auto total = static_cast<std::uint64_t>(counted.integer(0, "rows_now"));
      check_count(total, request->rows);
      result->rows = total;
      if (!decision_.creates || request_.what.mode != system::Mode::append) result->target_total = total;
      break;
    }
    case Kind::partitions:
      co_await make_partitions(*session, situation_.table, decision_, request_.columns, request->slices, staging_);
      break;
    case Kind::swap:
      co_await swap_patiently(*session, statement->sql, &result->notices);
      break;
  }
}

Task<void> LoadingImpl::empty_vanished(Session* session, const FinalizeRequest* request, FinalizeResult* result) {
  result->rows = request->rows;
  if (request_.what.source_filtered) co_return;  // as the plan has warned
  const std::vector<std::string> statements =
      co_await vanished_partitions(*session, situation_.table, request_.columns, request->slices);
  for (const std::string& sql : statements) co_await swap_patiently(*session, sql, &result->notices);
}

void LoadingImpl::check_count(std::uint64_t got, std::uint64_t wanted) const {
  if (got == wanted) return;
  throw Error(Category::data, "finalize_count",
              fmt::format("{} rows were loaded, {} arrived in {}: everything was taken back", wanted, got,
                          situation_.table.sql))
      .with_hint("a trigger or rule of the table drops or adds rows");
}

Task<FinalizeResult> LoadingImpl::finalize_direct(const FinalizeRequest* request) {
  co_await keeper_.stop();
  if (direct_loader_ == nullptr || !direct_loader_->direct_open_) {
    const bool before = direct_loader_ != nullptr && direct_loader_->direct_done_;
    if (request->rows != 0 && !before) {
      throw Error(Category::internal, "no_transaction", "the transaction of a direct load is gone");
    }
    if (lock_lost_ || !lock_->alive()) co_await take_lock_again();
    if (before) co_return co_await done_before();
    // Nothing was loaded, so that no transaction was begun.
    co_return co_await run_finalize(request);
  }
  Session* const session = direct_loader_->session_.get();
  FinalizeResult result;
  std::exception_ptr error;
  try {
    direct_loader_->direct_open_ = false;
    co_await finalize_on(session, request, &result);
  } catch (...) {
    error = std::current_exception();
  }
  if (error) {
    co_await roll_back(*session);
    std::rethrow_exception(error);
  }
  co_return result;
}

Task<FinalizeResult> LoadingImpl::done_before() {
  FinalizeResult result;
  result.already_done = true;
  for (const system::LedgerEntry& entry : co_await ledger_.entries(*lock_, request_.transfer_id)) {
    if (entry.attempt == system::attempt_of_target && entry.step == system::step_finalize) {
      result.rows = entry.row_count;
    }
  }
  co_return result;
}

Task<void> LoadingImpl::after_step(std::string sql, std::string code, std::vector<Notice>* notices) {
  try {
    co_await lock_->query(std::move(sql));
  } catch (const Error& error) {
    if (!lock_->open() || error.transient()) throw;
    notices->push_back(failure(std::move(code), "a step after the load failed", error));
  }
}

Task<std::vector<Notice>> LoadingImpl::after_steps() {
  co_await ready_lock();
  std::vector<Notice> notices;
  // The table as it is now: a rename has made another of it.
  const TableFacts table = co_await read_table(*lock_, place_.schema, place_.table);
  for (std::string& sql : sequence_statements(table, request_.columns)) {
    co_await after_step(std::move(sql), "sequence_not_set", &notices);
  }
  if (request_.what.load.analyze) co_await after_step("ANALYZE " + table.sql, "not_analyzed", &notices);
  if (!staging_.empty()) co_await drop_staging();
  co_await after_step(ledger_.forget_old_statement(shared_->ledger_keep), "ledger_not_tidied", &notices);
  co_return notices;
}

Task<void> LoadingImpl::drop_staging() {
  std::exception_ptr error;
  try {
    co_await lock_->query("BEGIN");
    co_await ledger_.forget(*lock_, request_.transfer_id, ledger_attempt_);
    co_await lock_->query("DROP TABLE IF EXISTS " + staging_sql());
    co_await lock_->query("COMMIT");
  } catch (...) {
    error = std::current_exception();
  }
  if (error) {
    co_await roll_back(*lock_);
    std::rethrow_exception(error);
  }
  staging_.clear();
}

// A loader's session that was closed may still hold staging until its server has seen that.
Task<void> LoadingImpl::drop_staging_patiently() {
  for (int tries = 1;; ++tries) {
    try {
      // The lock session, or another: the table's name is this attempt's alone.
      if (!lock_ || !lock_->alive()) lock_ = co_await open();
      co_await roll_back(*lock_);
      co_await drop_staging();
      co_return;
    } catch (const Error& error) {
      if (!error.transient() || tries >= limits::pg_finalize_tries_max) throw;
    }
    co_await net::sleep_for(shared_->loop, limits::retry_backoff_first * tries);
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
  if (lock_) lock_->close();  // and with the session its lock
  lease_ = SessionLease();
  co_return notices;
}

}  // namespace rowferry::postgres
