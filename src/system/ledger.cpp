#include "system/ledger.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/log.hpp"

namespace rowferry::system {

void settle(Outcome outcome, const std::exception_ptr& error) {
  switch (outcome) {
    case Outcome::committed:
      return;
    case Outcome::unknown:
      throw Error(Category::commit_unknown, "commit_unknown",
                  "COMMIT was sent, and neither its success nor its failure could be established: " + describe(error))
          .with_hint("resume decides it when the server answers again");
    case Outcome::absent:
      break;
  }
  throw Error(Category::connection, "commit_failed",
              "COMMIT did not arrive, the step was rolled back: " + describe(error))
      .mark_transient();
}

bool settle_finalize(Outcome outcome) {
  if (outcome != Outcome::unknown) return outcome == Outcome::committed;
  throw Error(Category::commit_unknown, "commit_unknown",
              "whether the transfer's finalize was committed cannot be told yet")
      .with_hint("another session still holds the ledger's key: resume again later");
}

Remains remains_of(std::vector<LedgerEntry> entries, bool finalized, const std::vector<std::string>& staging_there,
                   bool kept_by_attempt_0) {
  Remains out;
  out.finalized = finalized;
  for (LedgerEntry& entry : entries) {
    out.latest_attempt = std::max(out.latest_attempt, entry.attempt);
    if (entry.step == step_finalize) {
      out.finalize = entry;
    } else if (entry.step == step_staging) {
      const bool there = std::ranges::find(staging_there, entry.staging) != staging_there.end();
      if (there) out.staging_attempt = std::max(out.staging_attempt, entry.attempt);
    } else if (entry.step.starts_with("slice ")) {
      out.slices.push_back(std::move(entry));
    }
  }
  std::erase_if(out.slices, [&](const LedgerEntry& entry) {
    if (entry.attempt == attempt_of_target) return !kept_by_attempt_0;
    return entry.attempt != out.staging_attempt;
  });
  return out;
}

void Keeper::start(async::Context context, async::Task<void> task) {
  scope_ = std::make_unique<async::Scope>(async::Context{context.queue, nullptr});
  scope_->spawn(std::move(task));
}

async::Task<void> Keeper::stop() {
  if (!scope_) co_return;
  try {
    co_await scope_->end();
  } catch (const Error& error) {
    log::failure("keeping the target's lock", error);
  }
  scope_.reset();
}

}  // namespace rowferry::system
