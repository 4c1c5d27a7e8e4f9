#include "transfer/attempt.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/limits.hpp"
#include "base/log.hpp"
#include "transfer/kept_plan.hpp"
#include "transfer/partition.hpp"
#include "transfer/pipeline_parts.hpp"

namespace rowferry::transfer {

using async::Task;

namespace {

bool has_category(const std::exception_ptr& error, Category category) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    return e.category() == category;
  } catch (...) {
    return false;
  }
}

bool is_transient(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    return e.transient();
  } catch (...) {
    return false;
  }
}

Task<std::vector<system::Notice>> end_loading(net::Loop* loop, system::Loading* loading, bool keep) {
  co_return co_await net::with_deadline(*loop, limits::cleanup_timeout, "releasing the target", loading->end(keep));
}

}  // namespace

Attempt::Attempt(RunHost& host, Plan& plan, const Start& start)
    : host_(host), progress_(host.progress()), plan_(plan), start_(start) {}

Attempt::~Attempt() = default;

void Attempt::enter(State state) {
  progress_.state = state;
  host_.state_changed();
}

Task<void> Attempt::run() {
  std::exception_ptr error;
  try {
    co_await steps();
  } catch (Error& failure) {
    // What the source knows of itself it has said: from the load on, the rest is about the target.
    if (loading_ && failure.category() != Category::cancelled) {
      failure.with_connection(plan_.spec.target.connection).with_table(plan_.route.target_table.text());
    }
    error = std::current_exception();
  } catch (...) {
    error = std::current_exception();
  }
  snapshot_lost_ = reading_ && !reading_->alive();
  note_renewed(error != nullptr);
  co_await async::shield(release(error));
  if (error) std::rethrow_exception(error);
}

Task<void> Attempt::steps() {
  enter(State::running);
  co_await host_.save();
  if (start_.kind == Start::Kind::after_steps) {
    co_await begin_target();
    enter(State::finalizing);
    account_finalized();
  } else {
    if (start_.kind == Start::Kind::verify) {
      choose_slices();
      co_await begin_target();
      all_loaded_ = true;
    } else {
      co_await begin_source();
      choose_slices();
      co_await begin_target();
      co_await load();
    }
    co_await verify();
    co_await end_source();
    co_await finalize();
  }
  // The rows are committed: what is left is not given up for a cancellation.
  co_await async::shield(after_steps());
}

Task<void> Attempt::begin_source() {
  try {
    reading_ = co_await plan_.source->begin(read_request(plan_));
  } catch (Error& error) {
    error.with_connection(plan_.spec.source.connection).with_table(plan_.route.source_table.text());
    throw;
  }
  progress_.consistency = reading_->consistency();
  check_slices(plan_, reading_->slices());
  progress_.slices_by = system::to_string(reading_->slices().by);
  progress_.slices_column = slices_column(plan_.spec, reading_->slices());
  add_warnings(progress_, reading_->notices());
  add_warnings(progress_, reading_->slices().notices);
  co_await replan_columns(plan_, reading_->columns());
  progress_.kept_plan = keep_plan(plan_);
  note_columns(progress_, plan_);
}

Task<void> Attempt::begin_target() {
  system::LoadRequest request = load_request(plan_, progress_.id, progress_.attempt);
  request.only_after_steps = start_.kind == Start::Kind::after_steps;
  request.slices = slices_;
  request.staging_attempt = start_.staging_attempt;
  request.resume_staging = start_.kind != Start::Kind::fresh && start_.staging_attempt > 0;
  try {
    loading_ = co_await plan_.target->begin(request);
  } catch (Error& error) {
    error.with_connection(plan_.spec.target.connection).with_table(plan_.route.target_table.text());
    throw;
  }
  progress_.staging = loading_->staging_name();
}

// What the ledger has of the slices of before.
void Attempt::take_kept_slices() {
  const system::Commit commit = plan_.target_request.load.commit;
  std::map<std::string_view, const system::LedgerEntry*> committed;
  for (const system::LedgerEntry& entry : start_.entries) committed.emplace(entry.step, &entry);
  progress_.slices = start_.slices;
  for (SliceProgress& slice : progress_.slices) {
    slice.state = SliceProgress::State::pending;
    slice.rows_read = slice.rows_written = slice.acknowledged = 0;
    const auto hit = committed.find(system::slice_step(slice_of(slice), commit));
    if (hit == committed.end()) {
      slice.table.clear();
    } else {
      account_kept(slice, *hit->second);
    }
  }
}

void Attempt::account_kept(SliceProgress& slice, const system::LedgerEntry& entry) {
  slice.state = SliceProgress::State::kept;
  const bool has_partition = plan_.target_plan.finalizer == system::Finalizer::per_slice && !entry.staging.empty();
  if (has_partition) slice.table = entry.staging;
  slice.rows_read = slice.rows_written = slice.acknowledged = entry.row_count;
  progress_.rows.read += entry.row_count;
  progress_.rows.acknowledged += entry.row_count;
  progress_.rows_written += entry.row_count;
  loaded_.add(parse_hash(entry));
}

// An earlier run has finalized: its numbers are the ledger's.
void Attempt::account_finalized() {
  progress_.slices = start_.slices;
  progress_.slices_final = true;
  for (SliceProgress& slice : progress_.slices) slice.state = SliceProgress::State::kept;
  const std::uint64_t rows = start_.finalize.row_count;
  progress_.rows = {.read = rows, .acknowledged = rows, .staged = std::nullopt, .target = rows, .target_total = {}};
  progress_.rows_written = rows;
  progress_.checks.push_back({"rows_written", Check::Result::passed, std::to_string(rows), std::to_string(rows),
                              "by the ledger of an earlier run"});
  all_loaded_ = finalized_ = true;
}

// The slices of this attempt, into progress and slices_.
void Attempt::choose_slices() {
  if (start_.kind != Start::Kind::fresh) {
    // The same cuts as before: a slice that was committed must not come again in another one.
    take_kept_slices();
    if (reading_) add_new_values();
  } else {
    for (const system::Slice& slice : reading_->slices().slices) {
      if (!renews_partitions(plan_) || !holds_nothing(slice)) progress_.slices.push_back(progress_of(slice));
    }
  }
  for (const SliceProgress& slice : progress_.slices) slices_.push_back(slice_of(slice));
}

// Values that came into being since the slices were cut: no slice of before holds them. Ranges cover whatever comes,
// but not NULL.
void Attempt::add_new_values() {
  using Kind = system::SliceBounds::Kind;
  std::set<std::pair<Kind, std::string>> known;
  for (const SliceProgress& slice : progress_.slices) {
    if (slice.bounds) known.emplace(slice.bounds->kind, slice.bounds->value);
  }
  if (known.empty()) return;
  for (system::Slice slice : reading_->slices().slices) {
    if (!slice.bounds || slice.bounds->kind == Kind::range) continue;
    if (!known.emplace(slice.bounds->kind, slice.bounds->value).second) continue;
    slice.index = static_cast<int>(progress_.slices.size());
    progress_.slices.push_back(progress_of(slice));
  }
}

Task<void> Attempt::load() {
  PipelineInput input;
  input.host = &host_;
  input.reading = reading_.get();
  input.loading = loading_.get();
  input.columns = &plan_.match.columns;
  input.primary_key = plan_.match.primary_key;
  input.slices = slices_;
  input.export_workers = plan_.spec.workers.export_.value_or(1);
  input.load_workers = plan_.load_workers;
  input.hash = plan_.spec.verify == system::Verify::content;
  input.may_retry_slices = plan_.target_plan.finalizer != system::Finalizer::direct;
  input.channel_bytes = plan_.spec.channel_bytes;
  if (plan_.spec.read.drain.value_or(false)) {
    input.drain_budget = plan_.spec.read.memory_budget.value_or(limits::memory_budget_default);
  }
  co_await host_.save();
  pipeline_ = std::make_unique<Pipeline>(std::move(input));
  pipeline_->add_kept(loaded_);
  co_await pipeline_->open();
  co_await pipeline_->run();
  loaded_ = pipeline_->hash();
  all_loaded_ = true;
  // The one transaction of `direct` is the loader's: it stays open until finalize.
  if (plan_.target_plan.finalizer != system::Finalizer::direct) co_await pipeline_->close_loaders();
}

Task<void> Attempt::verify() {
  enter(State::verifying);
  co_await host_.save();
  co_await verify_staging(
      {.host = &host_, .plan = &plan_, .reading = reading_.get(), .loading = loading_.get(), .loaded = loaded_});
}

// Nothing of the source is needed any more: its locks do not outlive the finalize.
Task<void> Attempt::end_source() {
  if (pipeline_) co_await pipeline_->close_readers();
  if (!reading_) co_return;
  co_await close_quietly(host_.loop(), reading_->end(), "releasing the source");
  reading_.reset();
}

system::FinalizeRequest Attempt::finalize_request() const {
  system::FinalizeRequest request{.rows = loaded_.rows, .hash = loaded_, .slices = {}};
  for (const SliceProgress& slice : progress_.slices) request.slices.push_back(slice_of(slice));
  return request;
}

Task<void> Attempt::finalize() {
  enter(State::finalizing);
  co_await host_.save();
  StageClock& stage = progress_.stage(Phase::target_finalize);
  stage.workers = 1;
  stage.touch(Clock::now());
  system::FinalizeResult result;
  std::exception_ptr error;
  try {
    const Lap lap(stage.working);
    result = co_await loading_->finalize(finalize_request());
  } catch (...) {
    error = std::current_exception();
  }
  stage.touch(Clock::now());
  if (error) std::rethrow_exception(error);
  finalized_ = true;
  add_warnings(progress_, result.notices);
  check_finalized(progress_, plan_, result, loaded_.rows);
}

Task<void> Attempt::after_steps() {
  if (pipeline_) co_await pipeline_->close_loaders();
  StageClock& stage = progress_.stage(Phase::target_finalize);
  stage.workers = 1;
  stage.touch(Clock::now());
  std::exception_ptr error;
  for (int tries = 1; tries <= limits::after_steps_tries_max; ++tries) {
    if (error) {
      const auto wait = backoff(host_.backoff_first(), tries - 1);
      note_retry(progress_, "after_steps", error, std::chrono::duration<double>(wait).count());
      co_await net::sleep_for(host_.loop(), wait);
    }
    error = nullptr;
    try {
      const Lap lap(stage.working);
      add_warnings(progress_, co_await net::with_deadline(host_.loop(), limits::after_steps_timeout,
                                                          "the steps after finalize", loading_->after_steps()));
    } catch (...) {
      error = std::current_exception();
    }
    if (!error || !is_repeatable(error)) break;
  }
  stage.touch(Clock::now());
  if (!error) co_return;
  throw Error(Category::server, "after_steps_failed",
              "the rows are committed, but a step after it failed: " + describe(error))
      .with_hint("resume repeats the remaining steps");
}

// Partitions are renewed before the end: a run that fails says which ones.
void Attempt::note_renewed(bool failed) {
  std::size_t renewed = 0;
  std::string names;
  for (const SliceProgress& slice : progress_.slices) {
    const bool committed = slice.state == SliceProgress::State::done || slice.state == SliceProgress::State::kept;
    if (slice.table.empty() || !committed) continue;
    if (++renewed > limits::partitions_named_max) continue;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", slice.table);
  }
  // An attempt that did not get as far as its slices leaves what the one before has said.
  if (failed && renewed == 0) return;
  std::erase_if(progress_.warnings, [](const system::Notice& n) { return n.code == "partitions_renewed"; });
  if (!failed) return;
  if (renewed > limits::partitions_named_max) {
    names += fmt::format(" and {} more (see slices)", renewed - limits::partitions_named_max);
  }
  add_warnings(progress_, {{"partitions_renewed",
                            fmt::format("{} of {} partitions hold the new rows, the others are as they were: {}",
                                        renewed, progress_.slices.size(), names),
                            ""}});
}

bool Attempt::keeps_staging(const std::exception_ptr& error) const {
  if (!error || finalized_ || is_cancelled(error)) return false;
  if (has_category(error, Category::commit_unknown)) return true;
  if (!is_repeatable(error)) return false;
  const bool any_done = std::ranges::any_of(progress_.slices, [](const SliceProgress& slice) {
    return slice.state == SliceProgress::State::done || slice.state == SliceProgress::State::kept;
  });
  const bool mixes_snapshots = progress_.consistency && *progress_.consistency != system::Consistency::one_snapshot;
  return all_loaded_ || (any_done && mixes_snapshots);
}

// Shielded: runs whatever was cancelled. Nothing here throws.
Task<void> Attempt::release(std::exception_ptr error) {
  if (pipeline_) {
    co_await pipeline_->close_readers();
    co_await pipeline_->close_loaders();
  }
  if (loading_) {
    std::exception_ptr failure;
    try {
      add_warnings(progress_, co_await end_loading(&host_.loop(), loading_.get(), keeps_staging(error)));
    } catch (...) {
      failure = std::current_exception();
    }
    if (failure) {
      add_warnings(progress_, {{"target_not_released", describe(failure), ""}});
      log::warning("releasing the target failed", {{"transfer", progress_.id}, {"error", describe(failure)}});
    }
  }
  if (reading_) co_await close_quietly(host_.loop(), reading_->end(), "releasing the source");
}

bool Attempt::found_server_away(const std::exception_ptr& error) const {
  // A server that is full is there: more of the same waiting does not help.
  return !pipeline_ && is_transient(error) && has_category(error, Category::connection) &&
         problem_of(error).code != "too_many_connections";
}

bool Attempt::may_start_again(const std::exception_ptr& error) const {
  if (is_cancelled(error) || finalized_ || has_category(error, Category::commit_unknown)) return false;
  if (start_.kind == Start::Kind::verify || start_.kind == Start::Kind::after_steps) return false;
  if (has_category(error, Category::data) || has_category(error, Category::input)) return false;
  if (snapshot_lost_) return true;
  if (plan_.target_plan.finalizer == system::Finalizer::direct && !all_loaded_) return is_repeatable(error);
  return !all_loaded_ && is_transient(error) && !pipeline_;
}

}  // namespace rowferry::transfer
