#include <fmt/format.h>

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

[[noreturn]] void failed(const Check& check) {
  throw Error(
      Category::data, "verification_failed",
      fmt::format("{}: expected {}, found {}; the target is untouched", check.name, check.expected, check.actual));
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
    if (!passed) failed(progress_.checks.back());
  }
  bool has_staging() const {
    const system::Finalizer finalizer = in_.plan->target_plan.finalizer;
    return finalizer != system::Finalizer::direct && finalizer != system::Finalizer::per_slice;
  }

  Task<void> staged() {
    if (!has_staging()) {
      add_not_done(progress_, "rows_staged", Result::not_applicable,
                   fmt::format("the finalizer {} has no staging", to_string(in_.plan->target_plan.finalizer)));
      co_return;
    }
    progress_.rows.staged = co_await in_.loading->staged_rows();
    need(add_check(progress_, "rows_staged", progress_.rows.read, *progress_.rows.staged));
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
    if (!has_staging()) {
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
  if (result.target_total && (mode == system::Mode::truncate || mode == system::Mode::replace)) {
    right = add_check(progress, "target_total", rows, *result.target_total) && right;
  }
  if (!right) {
    throw Error(Category::data, "finalize_miscounted",
                fmt::format("{} rows were staged, the finalizer {} wrote {}: the transaction is committed", rows,
                            to_string(plan.target_plan.finalizer), result.rows));
  }
}

}  // namespace rowferry::transfer
