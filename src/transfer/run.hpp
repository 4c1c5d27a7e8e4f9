// Run: one transfer from its plan to its end; attempts, resume, verification, finalize.
#pragma once

#include "transfer/pipeline.hpp"

namespace rowferry::transfer {

struct RunInput {
  RunHost* host = nullptr;
  Spec spec;  // filled and validated
  Route route;
  std::vector<system::Notice> notices;
  State before = State::queued;  // what the record said when it is resumed: interrupted, failed, cancelled
};

// Returns when the rows are in the target and the after-steps done; throws the reason otherwise, with everything
// released that could be. Moves progress() through planning … finalizing; the caller sets the terminal state.
// progress().attempt > 0 makes it a resume: what an earlier run has left decides where it goes on.
async::Task<void> run_transfer(RunInput input);

// Where an attempt begins.
struct Start {
  enum class Kind : std::uint8_t {
    fresh,        // all slices, new staging
    keep,         // the slices of before; those in `entries` are committed already
    verify,       // every slice is in the kept staging
    after_steps,  // the ledger has finalize
  };
  Kind kind = Kind::fresh;
  int staging_attempt = 0;
  int latest_attempt = 0;
  std::vector<system::LedgerEntry> entries;  // of slices
  system::LedgerEntry finalize;
  std::vector<SliceProgress> slices;  // of before
};
Start decide_start(const Progress& before, State state_before, bool commits_slices, const system::Remains& remains);

// The ledger's 32 hex digits; zero when they are none.
rows::ContentHash parse_hash(const system::LedgerEntry& entry);
void add_warnings(Progress& progress, const std::vector<system::Notice>& notices);

// --- checks

struct VerifyInput {
  RunHost* host = nullptr;
  const Plan* plan = nullptr;
  system::Reading* reading = nullptr;  // null: the snapshot is gone (resumed after the load)
  system::Loading* loading = nullptr;
  rows::ContentHash loaded;
};
// Compares what was read, acknowledged and staged; adds the checks; throws Error(data, "verification_failed") when one
// fails: the target is untouched then.
async::Task<void> verify_staging(VerifyInput input);
void check_finalized(Progress& progress, const Plan& plan, const system::FinalizeResult& result, std::uint64_t rows);

}  // namespace rowferry::transfer
