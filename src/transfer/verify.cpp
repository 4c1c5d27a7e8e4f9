#include <fmt/format.h>

#include "transfer/partition.hpp"
#include "transfer/pipeline_parts.hpp"
#include "transfer/run.hpp"

namespace rowferry::transfer {

namespace {

using async::Task;
using Result = Check::Result;

bool add_check(Progress& progress, std::string name, std::uint64_t expected, std::uint64_t actual) {
  const Result result = expected == actual ? Result::passed : Result::failed;
  progress.checks.push_back({std::move(name), result, std::to_string(expected), std::to_string(actual), ""});
  return result == Result::passed;
}

void add_not_done(Progress& progress, std::string name, Result result, std::string reason) {
  progress.checks.push_back({std::move(name), result, "", "", std::move(reason)});
}

[[noreturn]] void failed(const Check& check, std::string_view consequence) {
  throw Error(Category::data, "verification_failed",
              fmt::format("{}: expected {}, found {}; {}", check.name, check.expected, check.actual, consequence));
}

class Verifier {
 public:
  explicit Verifier(VerifyInput input) : in_(input), progress_(in_.host->progress()) {}

  Task<void> run() {
    need(add_check(progress_, "rows_acknowledged", progress_.rows.read, progress_.rows.acknowledged));
    co_await staged();
    if (verify() == system::Verify::source_count) co_await source_count();
    if (verify() == system::Verify::content) co_await content();
  }

 private:
  system::Verify verify() const { return in_.plan->spec.verify.value_or(system::Verify::count); }
  void need(bool passed) const {
    if (passed) return;
    failed(progress_.checks.back(), in_.plan->target_plan.finalizer == system::Finalizer::per_slice
                                        ? "the slices are committed into the target"
                                        : "the target is untouched");
  }
  system::Finalizer finalizer() const { return in_.plan->target_plan.finalizer; }
  bool in_partitions() const { return finalizer() == system::Finalizer::per_slice && renews_partitions(*in_.plan); }
  // There is something that holds this transfer's rows and no others.
  bool can_look() const {
    const bool staging = finalizer() != system::Finalizer::direct && finalizer() != system::Finalizer::per_slice;
    return staging || in_partitions();
  }

  Task<void> staged() {
    if (!can_look()) {
      add_not_done(progress_, "rows_staged", Result::not_applicable,
                   fmt::format("the finalizer {} has no staging", to_string(finalizer())));
      co_return;
    }
    const std::uint64_t rows = co_await in_.loading->staged_rows();
    if (!in_partitions()) progress_.rows.staged = rows;
    need(add_check(progress_, in_partitions() ? "rows_in_partitions" : "rows_staged", progress_.rows.read, rows));
  }

  Task<void> source_count() {
    if (in_.reading == nullptr) {
      add_not_done(progress_, "source_count", Result::not_run, "resumed after the source's snapshot had ended");
      co_return;
    }
    if (in_.reading->consistency() != system::Consistency::one_snapshot) {
      add_not_done(progress_, "source_count", Result::not_applicable, "the source has no common snapshot");
      co_return;
    }
    need(add_check(progress_, "source_count", co_await in_.reading->count_rows(), progress_.rows.read));
  }

  Task<void> content() {
    if (!can_look()) {
      add_not_done(progress_, "content", Result::not_applicable, "there is no staging to read back");
      co_return;
    }
    std::string why;
    const std::optional<rows::ContentHash> found = co_await in_.loading->staged_hash(why);
    if (!found) {
      add_not_done(progress_, "content", Result::not_run, why);
      co_return;
    }
    const auto text = [](const rows::ContentHash& hash) { return fmt::format("{} ({} rows)", hash.hex(), hash.rows); };
    const bool same = *found == in_.loaded;
    progress_.checks.push_back({"content", same ? Result::passed : Result::failed, text(in_.loaded), text(*found), ""});
    need(same);
  }

  VerifyInput in_;
  Progress& progress_;
};

}  // namespace

Task<void> verify_staging(VerifyInput input) {
  Progress& progress = input.host->progress();
  progress.checks.clear();
  StageClock& stage = progress.stage(Phase::verify);
  stage.workers = 1;
  stage.touch(Clock::now());
  Verifier verifier(input);
  std::exception_ptr error;
  try {
    const Lap lap(stage.working);
    co_await verifier.run();
  } catch (...) {
    error = std::current_exception();
  }
  stage.touch(Clock::now());
  if (error) std::rethrow_exception(error);
}

void check_finalized(Progress& progress, const Plan& plan, const system::FinalizeResult& result, std::uint64_t rows) {
  progress.rows.target = result.rows;
  progress.rows.target_total = result.target_total;
  bool right = add_check(progress, "rows_written", rows, result.rows);
  const system::Mode mode = plan.spec.target.mode;
  // A partition that no slice has filled keeps its rows where the source's `where` may have left them out.
  const bool others_stay =
      plan.target_plan.finalizer == system::Finalizer::per_slice && plan.target_request.source_filtered;
  if (result.target_total && !others_stay && (mode == system::Mode::truncate || mode == system::Mode::replace)) {
    right = add_check(progress, "target_total", rows, *result.target_total) && right;
  }
  if (!right) {
    throw Error(Category::data, "finalize_miscounted",
                fmt::format("{} rows were staged, the finalizer {} wrote {}: the transaction is committed", rows,
                            to_string(plan.target_plan.finalizer), result.rows));
  }
}

}  // namespace rowferry::transfer
