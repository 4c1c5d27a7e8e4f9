// LoadingImpl: one attempt's hold on a PostgreSQL table. LoaderImpl: one load worker's session of it.
//
// Life of a Loading: begin() takes the target's lock on the lock session, makes ledger and staging; loaders come and
// go; finalize() runs on the lock session; end() gives everything back and must be awaited before the Loading dies.
// From begin() to finalize() or end() a task of `keeper_` keeps the lock session alive. With Finalizer::direct there is
// no staging: the one loader's transaction begins with the finalize key and stays open until finalize() commits it on
// the loader's own session. With Finalizer::per_slice each slice is committed into its partition, under keys of attempt
// 0.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "postgres/ledger.hpp"
#include "postgres/load_type.hpp"
#include "postgres/partitions.hpp"
#include "postgres/target.hpp"

namespace rowferry::postgres {

class LoaderImpl;

// How the COPY of these columns into `table` writes them. Throws Error(conflict, "target_changed") for a column that
// is gone or takes another type now.
std::vector<wire::CopyTarget> copy_targets(const TableFacts& table, const std::vector<system::ColumnPlan>& columns,
                                           int money_scale);

class LoadingImpl final : public system::Loading {
 public:
  // `planned_definition`: TableFacts::definition() of the plan. Throws Error(conflict, "target_busy" /
  // "target_changed"), Error(not_found, "staging_missing") and what decide() throws.
  static async::Task<std::unique_ptr<system::Loading>> begin(std::shared_ptr<Shared> shared,
                                                             system::LoadRequest request, Place place,
                                                             std::string planned_definition);
  LoadingImpl(std::shared_ptr<Shared> shared, SessionLease lease, system::LoadRequest request, Place place,
              async::Context context);
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
  bool per_slice() const noexcept { return decision_.finalizer == system::Finalizer::per_slice; }
  LedgerKey slice_key(const system::Slice& slice) const;
  LedgerKey finalize_key() const {
    return {request_.transfer_id, system::attempt_of_target, std::string(system::step_finalize)};
  }
  std::string staging_sql() const;
  async::Task<std::unique_ptr<Session>> open();

  // begin
  async::Task<void> start(std::string planned_definition);
  async::Task<void> prepare(std::string planned_definition);
  async::Task<void> take_lock();
  async::Task<bool> try_lock();
  async::Task<void> read_target();
  async::Task<void> create_target();
  async::Task<void> make_staging();
  async::Task<void> reuse_staging();
  async::Task<void> keep_alive();

  // verify
  async::Task<std::vector<std::string>> loaded_tables(Session* session) const;
  async::Task<void> hash_table(std::string table, system::BatchSink* to) const;

  // finalize
  async::Task<void> take_lock_again();
  async::Task<void> ready_lock();
  async::Task<void> check_unchanged();
  async::Task<system::FinalizeResult> try_finalize(const system::FinalizeRequest* request);
  async::Task<system::FinalizeResult> run_finalize(const system::FinalizeRequest* request);
  async::Task<void> finalize_on(Session* session, const system::FinalizeRequest* request,
                                system::FinalizeResult* result);
  async::Task<void> run_statements(Session* session, const system::FinalizeRequest* request,
                                   system::FinalizeResult* result);
  async::Task<void> run_statement(Session* session, const FinalizeStatement* statement,
                                  const system::FinalizeRequest* request, system::FinalizeResult* result);
  async::Task<void> empty_vanished(Session* session, const system::FinalizeRequest* request,
                                   system::FinalizeResult* result);
  async::Task<system::FinalizeResult> finalize_direct(const system::FinalizeRequest* request);
  async::Task<system::FinalizeResult> done_before();
  void check_count(std::uint64_t got, std::uint64_t wanted) const;

  // after
  async::Task<void> drop_staging();
  async::Task<void> drop_staging_patiently();
  async::Task<void> after_step(std::string sql, std::string code, std::vector<system::Notice>* notices);

  std::shared_ptr<Shared> shared_;
  SessionLease lease_;  // one for the lock's session, one for each load worker
  system::LoadRequest request_;
  Place place_;
  Ledger ledger_;
  async::Context context_;
  Situation situation_;
  Decision decision_;
  std::string staging_;  // bare name; empty: none
  int ledger_attempt_;   // of the slices' keys: the attempt that made the staging
  std::unique_ptr<Session> lock_;
  bool lock_lost_ = false;
  system::Keeper keeper_;
  LoaderImpl* direct_loader_ = nullptr;
  std::set<std::string> begun_steps_;  // of slices that loaders have begun
};

// Runs statements that take strong locks, as one, behind a savepoint: a lock that is not had in time is asked for again
// without losing what the transaction has done so far. Within a transaction; `notices` may be null.
async::Task<void> swap_patiently(Session& session, std::string sql, std::vector<system::Notice>* notices);

class LoaderImpl final : public system::Loader {
 public:
  LoaderImpl(LoadingImpl& loading, std::unique_ptr<Session> session);
  ~LoaderImpl() override;

  async::Task<bool> begin_slice(const system::Slice& slice) override;
  async::Task<void> write(rows::BatchPtr batch) override;
  async::Task<system::SliceCommit> commit_slice(std::uint64_t rows, const rows::ContentHash& hash) override;
  async::Task<void> abort_slice() override;
  bool usable() const noexcept override { return session_->open(); }
  system::LoaderClocks clocks() const noexcept override;
  async::Task<void> close() override;

 private:
  friend class LoadingImpl;

  void forget() noexcept;
  async::Task<bool> begin_transaction(LedgerKey key);
  async::Task<bool> begin_direct();
  async::Task<void> begin_partition();
  async::Task<void> bind();
  async::Task<void> open_copy();
  async::Task<void> finish_copy();
  async::Task<void> send(bool all);
  async::Task<void> finish_partition();

  LoadingImpl& loading_;
  std::unique_ptr<Session> session_;
  system::Slice slice_;
  std::optional<SliceStatements> partition_;  // per_slice: of the slice
  bool known_ = true;                         // to the Loading, until closed
  bool direct_open_ = false;                  // the transaction of `direct` is open
  bool direct_done_ = false;                  // its key was there already
  std::optional<wire::CopyEncoder> encoder_;  // bound at the first row
  bool copying_ = false;
  ByteBuffer out_;                  // encoded, not yet sent
  std::uint64_t copied_rows_ = 0;   // into the open COPY
  std::uint64_t acknowledged_ = 0;  // of the slice
  std::uint64_t wire_bytes_ = 0;    // of the slice
  double waiting_seconds_ = 0;      // for replies; for the socket: the session's clock
};

}  // namespace rowferry::postgres
