#include <fmt/format.h>

#include "base/error.hpp"
#include "mssql/dialect.hpp"
#include "mssql/errors.hpp"
#include "mssql/loading.hpp"

namespace rowferry::mssql {

using async::Task;

namespace {

// Bulk calls go to the session itself, not through the Lease: the same names and hints are added here.
Error of_connection(const Error& error, std::string_view connection) {
  return explained(error).with_connection(connection);
}

Task<std::exception_ptr> send_commit(const Lease* lease) {
  try {
    co_await lease->execute("COMMIT TRANSACTION", limits::mssql_commit_timeout);
  } catch (...) {
    co_return std::current_exception();
  }
  co_return nullptr;
}

Task<void> settle_commit(const Lease* lease, const Ledger* ledger, LedgerKey key, bool* by_ledger) {
  const std::exception_ptr error = co_await send_commit(lease);
  if (!error) co_return;
  // The ledger is asked on a session of its own: in this one's place.
  lease->give_up();
  const Ledger::Outcome outcome = co_await ledger->decide(std::move(key));
  system::settle(outcome, error);
  *by_ledger = true;
}

}  // namespace

Task<void> commit_transaction(const Lease* lease, const Ledger* ledger, LedgerKey key, bool* by_ledger) {
  co_await async::shield(settle_commit(lease, ledger, std::move(key), by_ledger));
}

LoaderImpl::LoaderImpl(LoadingImpl& loading, Lease lease)
    : loading_(loading), lease_(std::move(lease)), bulk_rows_max_(limits::mssql_bulk_rows) {
  const system::LoadOptions& options = loading.request_.what.load;
  if (loading.direct() && loading.situation_.table.columnstore()) bulk_rows_max_ = limits::mssql_bulk_rows_columnstore;
  if (options.batch_rows) bulk_rows_max_ = std::max<std::uint64_t>(1, *options.batch_rows);
  if (loading.direct()) loading.direct_loader_ = this;
}

LoaderImpl::~LoaderImpl() {
  bulk_.reset();
  if (loading_.direct_loader_ == this) loading_.direct_loader_ = nullptr;
}

Task<bool> LoaderImpl::begin_transaction(LedgerKey key) {
  co_await lease_.execute("BEGIN TRANSACTION");
  std::exception_ptr error;
  bool there = false;
  try {
    there = co_await loading_.ledger_.claim(lease_, std::move(key), loading_.staging_);
  } catch (...) {
    error = std::current_exception();
  }
  if (error) {
    co_await lease_.roll_back();
    std::rethrow_exception(error);
  }
  co_return there;
}

Task<bool> LoaderImpl::begin_slice(const system::Slice& slice) {
  slice_ = slice;
  acknowledged_ = wire_bytes_ = bulk_rows_ = 0;
  if (loading_.direct()) {
    if (direct_done_ || direct_open_) co_return direct_done_;
    direct_done_ = co_await begin_transaction(loading_.finalize_key());
    direct_open_ = !direct_done_;
    co_return direct_done_;
  }
  co_return co_await begin_transaction(loading_.slice_key(slice));
}

Task<void> LoaderImpl::open_bulk() {
  const system::LoadOptions& wish = loading_.request_.what.load;
  tds::BulkOptions options;
  options.table_lock = loading_.decision_.table_lock_bulk;
  options.keep_nulls = true;
  if (loading_.direct()) {
    options.check_constraints = wish.check_constraints;
    options.fire_triggers = wish.fire_triggers;
  }
  const std::string& table = loading_.direct() ? loading_.situation_.table.name : loading_.staging_;
  std::vector<std::string> names{loading_.place_.schema, table};
  bulk_ = co_await lease_.session().begin_bulk(std::move(names), loading_.bulk_columns_, std::move(options));
  bulk_rows_ = 0;
}

Task<void> LoaderImpl::write(rows::BatchPtr batch) {
  try {
    if (!bulk_) co_await open_bulk();
    co_await bulk_->write(*batch);
    bulk_rows_ += batch->rows();
    if (bulk_rows_ >= bulk_rows_max_) co_await finish_bulk();
  } catch (const Error& error) {
    throw of_connection(error, loading_.pool_.options().name);
  }
}

void LoaderImpl::account(const tds::BulkStats& stats) {
  wire_bytes_ += stats.wire_bytes;
  waiting_seconds_ += stats.waiting_seconds();
}

Task<void> LoaderImpl::finish_bulk() {
  if (!bulk_) co_return;
  const std::uint64_t taken = co_await bulk_->finish();
  const std::uint64_t sent = bulk_rows_;
  account(bulk_->stats());
  bulk_.reset();
  bulk_rows_ = 0;
  acknowledged_ += taken;
  if (taken != sent) {
    throw Error(Category::data, "rows_not_taken", fmt::format("of {} rows sent the server took {}", sent, taken))
        .with_hint("an index with IGNORE_DUP_KEY or an INSTEAD OF trigger drops rows");
  }
}

Task<system::SliceCommit> LoaderImpl::commit_slice(std::uint64_t rows, const rows::ContentHash& hash) {
  try {
    co_await finish_bulk();
  } catch (const Error& error) {
    throw of_connection(error, loading_.pool_.options().name);
  }
  system::SliceCommit out;
  out.acknowledged = acknowledged_;
  out.wire_bytes = wire_bytes_;
  if (loading_.direct()) co_return out;
  const LedgerKey key = loading_.slice_key(slice_);
  co_await loading_.ledger_.note(lease_, key, rows, hash.hex());
  co_await commit_transaction(&lease_, &loading_.ledger_, key, &out.already_there);
  co_return out;
}

Task<void> LoaderImpl::abort_slice() {
  if (bulk_) {
    co_await bulk_->abort();
    account(bulk_->stats());
    bulk_.reset();
  }
  if (lease_.usable()) co_await lease_.roll_back();
  direct_open_ = false;
  // What earlier slices had put into the one transaction is gone with it.
  if (loading_.direct()) lease_.close();
}

system::LoaderClocks LoaderImpl::clocks() const noexcept {
  const double running = bulk_ ? bulk_->stats().waiting_seconds() : 0;
  return {.waiting_seconds = waiting_seconds_ + running};
}

Task<void> LoaderImpl::close() {
  if (bulk_) co_await abort_slice();
  lease_.close();
  if (loading_.direct_loader_ == this) loading_.direct_loader_ = nullptr;
}

}  // namespace rowferry::mssql
