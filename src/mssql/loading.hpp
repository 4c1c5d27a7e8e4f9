// LoadingImpl: one attempt's hold on a SQL Server table. LoaderImpl: one load worker's session of it.
//
// Life of a Loading: begin() takes the target's lock on the lock session, makes ledger and staging; loaders come and
// go; finalize() runs on the lock session; end() gives everything back. From begin() to finalize() or end() a task of
// `keeper_` keeps the lock session alive; end() must be awaited before the Loading dies. With
// Finalizer::direct there is no staging: the one loader's transaction begins with the finalize key and stays open until
// finalize() commits it on the loader's own session.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "async/scope.hpp"
#include "mssql/decision.hpp"
#include "mssql/ledger.hpp"

namespace rowferry::mssql {

class LoaderImpl;

// The lock's session, and one for each load worker.
inline std::size_t sessions_needed(const system::TargetRequest& request) {
  return 1 + static_cast<std::size_t>(std::max(request.workers, 1));
}

// Where the target lies, all parts known.
struct Place {
  std::string database;  // to connect to; empty: the connection's own
  std::string schema;
  std::string table;
  std::string ledger_schema;
};

class LoadingImpl final : public system::Loading {
 public:
  // `planned_definition`: TableFacts::definition() of the plan. Throws Error(conflict, "target_busy" /
  // "target_changed"), Error(not_found, "staging_missing") and what decide() throws.
  static async::Task<std::unique_ptr<system::Loading>> begin(SessionPool* pool, system::LoadRequest request,
                                                             Place place, std::string planned_definition);
  LoadingImpl(std::unique_ptr<SessionPool> pool, system::LoadRequest request, Place place, async::Context context);
  ~LoadingImpl() override;

  const std::string& staging_name() const noexcept override { return staging_; }
  async::Task<std::unique_ptr<system::Loader>> open_loader(int worker) override;
  async::Task<std::uint64_t> staged_rows() override;
  async::Task<std::optional<rows::ContentHash>> staged_hash(std::string& why) override;
  async::Task<system::FinalizeResult> finalize(system::FinalizeRequest request) override;
  async::Task<std::vector<system::Notice>> after_steps() override;
  async::Task<std::vector<system::Notice>> end(bool keep_staging) override;

 private:
  friend class LoaderImpl;

  bool direct() const noexcept { return decision_.finalizer == system::Finalizer::direct; }
  SessionSettings settings() const;
  LedgerKey slice_key(const system::Slice& slice) const {
    return {request_.transfer_id, ledger_attempt_, system::slice_step(slice, system::Commit::transfer)};
  }
  LedgerKey finalize_key() const { return {request_.transfer_id, attempt_of_target, std::string(step_finalize)}; }
  std::string loaded_table() const;  // quoted: staging, or the target with direct
  std::string column_list() const;

  // begin
  async::Task<void> start(std::string planned_definition);
  async::Task<void> take_lock();
  async::Task<void> read_situation();
  async::Task<void> make_staging();
  async::Task<void> reuse_staging();
  async::Task<void> describe_columns();
  async::Task<void> keep_alive();

  // finalize
  async::Task<void> take_lock_again();
  async::Task<system::FinalizeResult> try_finalize(std::uint64_t rows, std::string hash);
  async::Task<system::FinalizeResult> run_finalize(std::uint64_t rows, std::string hash);
  async::Task<void> run_statements(std::uint64_t rows, system::FinalizeResult* result);
  async::Task<system::FinalizeResult> finalize_direct(std::uint64_t rows, std::string hash);
  async::Task<system::FinalizeResult> run_finalize_empty(std::string hash);
  async::Task<void> commit(const Lease* lease, LedgerKey key);
  async::Task<system::FinalizeResult> done_before(const Lease* lease);
  void check_count(std::uint64_t got, std::uint64_t wanted) const;

  // after
  async::Task<void> drop_staging(const Lease* lease);
  async::Task<void> drop_staging_patiently();
  async::Task<void> after_step(std::string sql, std::string code, std::vector<system::Notice>* notices);

  const std::unique_ptr<SessionPool> share_;  // one place for the lock's session, one for each load worker
  SessionPool& pool_;
  system::LoadRequest request_;
  Place place_;
  Ledger ledger_;
  async::Context context_;
  Situation situation_;
  Decision decision_;
  std::string staging_;  // bare name; empty: none
  int ledger_attempt_;   // of the slices' keys: the attempt that made the staging
  std::vector<tds::BulkColumn> bulk_columns_;
  Lease lock_;
  bool lock_lost_ = false;
  system::Keeper keeper_;
  LoaderImpl* direct_loader_ = nullptr;
};

class LoaderImpl final : public system::Loader {
 public:
  LoaderImpl(LoadingImpl& loading, Lease lease);
  ~LoaderImpl() override;

  async::Task<bool> begin_slice(const system::Slice& slice) override;
  async::Task<void> write(rows::BatchPtr batch) override;
  async::Task<system::SliceCommit> commit_slice(std::uint64_t rows, const rows::ContentHash& hash) override;
  async::Task<void> abort_slice() override;
  bool usable() const noexcept override { return lease_.usable(); }
  system::LoaderClocks clocks() const noexcept override;
  async::Task<void> close() override;

 private:
  friend class LoadingImpl;

  async::Task<bool> begin_transaction(LedgerKey key);
  async::Task<void> open_bulk();
  async::Task<void> finish_bulk();
  void account(const tds::BulkStats& stats);

  LoadingImpl& loading_;
  Lease lease_;
  system::Slice slice_;
  bool direct_open_ = false;  // the transaction of `direct` is open
  bool direct_done_ = false;  // its key was there already
  std::unique_ptr<tds::BulkLoad> bulk_;
  std::uint64_t bulk_rows_max_;
  std::uint64_t bulk_rows_ = 0;     // in the open statement
  std::uint64_t acknowledged_ = 0;  // of the slice
  std::uint64_t wire_bytes_ = 0;    // of the slice
  double waiting_seconds_ = 0;      // of ended statements
};

// Awaits a COMMIT whatever is cancelled, and settles its outcome by the ledger when it is not answered.
// Throws Error(commit_unknown) or, when the transaction is known to be gone, the error marked transient.
async::Task<void> commit_transaction(const Lease* lease, const Ledger* ledger, LedgerKey key, bool* by_ledger);

}  // namespace rowferry::mssql
