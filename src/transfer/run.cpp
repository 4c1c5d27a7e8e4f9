#include "transfer/run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "base/limits.hpp"
#include "base/log.hpp"
#include "transfer/attempt.hpp"
#include "transfer/kept_plan.hpp"
#include "transfer/pipeline_parts.hpp"

namespace rowferry::transfer {

namespace {

using async::Task;

void enter(RunHost& host, State state) {
  host.progress().state = state;
  host.state_changed();
}

void note_plan(Progress& progress, const Plan& plan) {
  progress.route = plan.route.name;
  progress.source_server = plan.source_table.server;
  progress.target_server = plan.target_table.server;
  progress.finalizer = plan.target_plan.finalizer;
  progress.slices_by = system::to_string(plan.slices.by);
  progress.slices_column = slices_column(plan.spec, plan.slices);
  progress.slices_reason = plan.slices.reason;
  progress.row_estimate = plan.source_table.row_estimate;
  add_warnings(progress, plan.notices);
  note_columns(progress, plan);
}

// An attempt counts from nothing.
void reset_attempt(Progress& progress) {
  progress.rows = {};
  progress.bytes = {};
  progress.rows_written = progress.rows_seen = 0;
  progress.slices.clear();
  progress.slices_final = false;
  progress.checks.clear();
  for (ColumnReport& column : progress.columns) column.changed = 0;
}

// What an earlier attempt has staged and nobody will use: dropped under the target's lock.
Task<void> drop_old_staging(RunHost* host, Plan* plan, int staging_attempt) {
  Progress& progress = host->progress();
  std::string failure;
  try {
    system::LoadRequest request = load_request(*plan, progress.id, staging_attempt);
    request.only_after_steps = true;
    request.resume_staging = true;
    request.staging_attempt = staging_attempt;
    const std::unique_ptr<system::Loading> old = co_await plan->target->begin(request);
    add_warnings(progress, co_await async::shield(old->end(false)));
  } catch (const Error& error) {
    if (error.category() == Category::cancelled) throw;
    failure = error.one_line();
  }
  if (!failure.empty()) {
    add_warnings(progress,
                 {{"staging_left", "the staging table of an earlier attempt is still there: " + failure, ""}});
  }
}

// Rows that are all staged or committed need no source: the target's ledger is asked first, and what the record has
// kept of the plan is enough for the rest. Nullopt: the source has to be asked.
Task<std::optional<Plan>> kept_plan(RunInput* input, Start* start) {
  Progress& progress = input->host->progress();
  std::optional<Plan> plan = restore_plan(progress.kept_plan, input->spec, input->route);
  if (progress.attempt == 0 || !plan) co_return std::nullopt;
  try {
    const system::Remains remains = co_await plan->target->remains(plan->target_request, progress.id);
    *start = decide_start(progress, input->before, false, remains);
    if (start->kind == Start::Kind::verify) co_await check_target_unchanged(*plan);
  } catch (Error& error) {
    error.with_connection(plan->spec.target.connection).with_table(plan->route.target_table.text());
    throw;
  }
  if (start->kind != Start::Kind::verify && start->kind != Start::Kind::after_steps) co_return std::nullopt;
  plan->notices = std::move(input->notices);
  co_return plan;
}

Task<Start> resume_point(RunHost* host, Plan* plan, State before);

Task<Plan> plan_or_resume(RunInput* input, Start* start) {
  std::optional<Plan> kept = co_await kept_plan(input, start);
  if (kept) co_return std::move(*kept);
  const Progress& progress = input->host->progress();
  const std::string resumed = progress.attempt > 0 ? progress.id : "";
  Plan plan = co_await make_plan(std::move(input->spec), input->route, std::move(input->notices), resumed);
  if (progress.attempt > 0) *start = co_await resume_point(input->host, &plan, input->before);
  co_return plan;
}

Task<Plan> planned(RunInput* input, Start* start) {
  Progress& progress = input->host->progress();
  StageClock& stage = progress.stage(Phase::plan);
  stage.workers = 1;
  stage.touch(Clock::now());
  std::exception_ptr error;
  std::optional<Plan> plan;
  try {
    const Lap lap(stage.working);
    plan.emplace(co_await plan_or_resume(input, start));
  } catch (...) {
    error = std::current_exception();
  }
  stage.touch(Clock::now());
  if (error) std::rethrow_exception(error);
  co_return std::move(*plan);
}

Task<Start> resume_point(RunHost* host, Plan* plan, State before) {
  const Progress& progress = host->progress();
  const system::Remains remains = co_await plan->target->remains(plan->target_request, progress.id);
  const bool commits_slices = plan->spec.load.commit == system::Commit::slice;
  Start start = decide_start(progress, before, commits_slices, remains);
  if (start.kind == Start::Kind::fresh && remains.staging_attempt > 0) {
    co_await drop_old_staging(host, plan, remains.staging_attempt);
  }
  co_return start;
}

}  // namespace

void add_warnings(Progress& progress, const std::vector<system::Notice>& notices) {
  for (const system::Notice& notice : notices) {
    if (progress.warnings.size() >= limits::warnings_max) return;
    if (std::ranges::find(progress.warnings, notice) == progress.warnings.end()) progress.warnings.push_back(notice);
  }
}

void note_columns(Progress& progress, const Plan& plan) {
  progress.columns.clear();
  for (const system::ColumnPlan& column : plan.match.columns) {
    progress.columns.push_back({column.source, column.target, column.source_native, column.target_native,
                                std::string(to_string(column.policy.action)),
                                column.part == system::ColumnPart::value ? "" : std::string(to_string(column.part)), 0,
                                column.compared});
  }
}

rows::ContentHash parse_hash(const system::LedgerEntry& entry) {
  rows::ContentHash hash;
  hash.rows = entry.row_count;
  const std::string& hex = entry.content_hash;
  if (hex.size() != 32) return hash;
  std::from_chars(hex.data(), hex.data() + 16, hash.high, 16);
  std::from_chars(hex.data() + 16, hex.data() + 32, hash.low, 16);
  return hash;
}

Start decide_start(const Progress& before, State state_before, bool commits_slices, const system::Remains& remains) {
  Start start;
  start.latest_attempt = std::max(before.attempt, remains.latest_attempt);
  if (remains.finalized) {
    start.kind = Start::Kind::after_steps;
    start.finalize = remains.finalize;
    start.staging_attempt = remains.staging_attempt;
    start.slices = before.slices;
    return start;
  }
  std::set<std::string> steps;
  for (const system::LedgerEntry& entry : remains.slices) {
    if (!entry.step.starts_with("slice ")) continue;
    start.entries.push_back(entry);
    steps.insert(entry.step);
  }
  const bool has_all = before.slices_final && !before.slices.empty() &&
                       std::ranges::all_of(before.slices, [&](const SliceProgress& slice) {
                         return steps.contains(system::slice_step(slice_of(slice), system::Commit::transfer));
                       });
  const bool staging_is_ours = remains.staging_attempt > 0 && state_before != State::cancelled;
  const bool may_keep = commits_slices || (staging_is_ours && before.consistency &&
                                           *before.consistency != system::Consistency::one_snapshot);
  if (!commits_slices && staging_is_ours && has_all) {
    start.kind = Start::Kind::verify;
  } else if (may_keep && !before.slices.empty()) {
    start.kind = Start::Kind::keep;
  }
  if (start.kind == Start::Kind::fresh) {
    start.entries.clear();
    return start;
  }
  start.staging_attempt = remains.staging_attempt;
  start.slices = before.slices;
  return start;
}

Task<void> run_transfer(RunInput input) {
  RunHost& host = *input.host;
  Progress& progress = host.progress();
  enter(host, State::planning);
  Start start;
  Plan plan = co_await planned(&input, &start);
  note_plan(progress, plan);
  host.spec_decided(plan.spec);
  progress.kept_plan = keep_plan(plan);
  progress.attempt = std::max(progress.attempt, start.latest_attempt);
  int away = 0;  // of the tries: those that found a server gone before anything was read
  for (int tries = 1;; ++tries) {
    ++progress.attempt;
    reset_attempt(progress);
    Attempt attempt(host, plan, start);
    std::exception_ptr error;
    try {
      co_await attempt.run();
    } catch (...) {
      error = std::current_exception();
    }
    if (!error) co_return;
    if (!attempt.may_start_again(error)) std::rethrow_exception(error);
    // A server that restarts is away for longer than the pauses between ordinary attempts.
    const bool is_away = attempt.found_server_away(error) && away < limits::server_away_tries_max;
    if (is_away) ++away;
    if (!is_away && tries - away >= limits::attempts_max) std::rethrow_exception(error);
    const auto wait = backoff(host.backoff_first(), is_away ? away : tries - away);
    note_retry(progress, "attempt", error, std::chrono::duration<double>(wait).count());
    co_await net::sleep_for(host.loop(), wait);
    // What a failed attempt has committed into the target itself stays; everything else starts anew.
    start = Start{};
    if (plan.spec.load.commit == system::Commit::slice) start = co_await resume_point(&host, &plan, State::failed);
  }
}

}  // namespace rowferry::transfer
