// Attempt: one hold on source and target, from their locks to their release.
//
//   running     begin at the source (locks, snapshot), begin at the target (lock, ledger, staging), the pipeline
//   verifying   the checks; the source is released after them
//   finalizing  the one transaction into the target, then the after-steps (shielded: they are not given up)
// Whatever happens, run() closes every session, gives up both holds and says whether staging stays.
#pragma once

#include "transfer/run.hpp"

namespace rowferry::transfer {

class Attempt {
 public:
  Attempt(RunHost& host, Plan& plan, const Start& start);
  ~Attempt();
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;

  async::Task<void> run();
  // After run() has thrown: may another attempt start from the beginning?
  bool may_start_again(const std::exception_ptr& error) const;
  // And was the reason that a server could not be reached, before any row was asked for?
  bool found_server_away(const std::exception_ptr& error) const;

 private:
  async::Task<void> steps();
  async::Task<void> begin_source();
  async::Task<void> begin_target();
  async::Task<void> load();
  async::Task<void> verify();
  async::Task<void> end_source();
  system::FinalizeRequest finalize_request() const;
  async::Task<void> finalize();
  async::Task<void> after_steps();
  async::Task<void> release(std::exception_ptr error);
  void take_kept_slices();
  void account_kept(SliceProgress& slice, const system::LedgerEntry& entry);
  void account_finalized();
  void choose_slices();
  void add_new_values();
  void note_renewed(bool failed);
  bool keeps_staging(const std::exception_ptr& error) const;
  void enter(State state);

  RunHost& host_;
  Progress& progress_;
  Plan& plan_;
  const Start& start_;
  std::vector<system::Slice> slices_;  // of this attempt, without late ones
  std::unique_ptr<system::Reading> reading_;
  std::unique_ptr<system::Loading> loading_;
  std::unique_ptr<Pipeline> pipeline_;
  rows::ContentHash loaded_;
  bool snapshot_lost_ = false;
  bool all_loaded_ = false;
  bool finalized_ = false;
};

void note_columns(Progress& progress, const Plan& plan);

}  // namespace rowferry::transfer
