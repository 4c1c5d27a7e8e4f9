// What the ledgers of all systems have in common: their keys, how a COMMIT of unknown outcome is settled by them, what
// they tell of an earlier run, and the keeping of the target's lock (docs/ARCHITECTURE.md: ledger, resume).
#pragma once

#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "async/scope.hpp"
#include "system/target.hpp"

namespace rowferry::system {

inline constexpr std::string_view ledger_table = "rowferry_ledger";

// Attempt 0 for steps that touch the target itself: any attempt meets the same key.
inline constexpr int attempt_of_target = 0;
inline constexpr std::string_view step_staging = "staging";
inline constexpr std::string_view step_finalize = "finalize";  // a slice's: slice_step()

struct LedgerKey {
  std::string transfer_id;
  int attempt = 0;
  std::string step;
};

// What inserting a key has told of a step whose COMMIT was not answered.
enum class Outcome : std::uint8_t {
  committed,  // the key is there
  absent,     // it is not: the step can be done again
  unknown,    // somebody still holds it, or nobody could be asked
};

// Returns when `outcome` is committed. Else throws Error(commit_unknown, "commit_unknown"), or Error(connection,
// "commit_failed") marked transient; `error` is what the COMMIT ended with.
void settle(Outcome outcome, const std::exception_ptr& error);
// For the finalize key, asked before anything else: committed or not; throws Error(commit_unknown) for unknown.
bool settle_finalize(Outcome outcome);

// The remains that a transfer's ledger rows tell of. `staging_there`: which of their staging tables still exist.
// `kept_by_attempt_0`: slices were committed into the target itself (commit: slice).
Remains remains_of(std::vector<LedgerEntry> entries, bool finalized, const std::vector<std::string>& staging_there,
                   bool kept_by_attempt_0);

// A task that runs beside the load until it is stopped: asks the session that holds the target's lock now and then.
class Keeper {
 public:
  // Ended by stop(), not by the cancellation of whoever started it. stop() must be awaited before the Keeper dies.
  void start(async::Context context, async::Task<void> task);
  async::Task<void> stop();

 private:
  std::unique_ptr<async::Scope> scope_;
};

}  // namespace rowferry::system
