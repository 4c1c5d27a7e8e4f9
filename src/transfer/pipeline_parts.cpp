#include "transfer/pipeline_parts.hpp"

#include <algorithm>

#include "base/limits.hpp"
#include "base/log.hpp"

namespace rowferry::transfer {

using async::Task;

SliceProgress progress_of(const system::Slice& slice) {
  SliceProgress progress;
  progress.index = slice.index;
  progress.predicate = slice.predicate;
  progress.spec = slice.spec;
  progress.row_estimate = slice.row_estimate;
  progress.bounds = slice.bounds;
  return progress;
}

system::Slice slice_of(const SliceProgress& progress) {
  system::Slice slice;
  slice.index = progress.index;
  slice.predicate = progress.predicate;
  slice.spec = progress.spec;
  slice.row_estimate = progress.row_estimate;
  slice.bounds = progress.bounds;
  return slice;
}

namespace {

Task<void> within_deadline(net::Loop* loop, Task<void> task, std::string what) {
  try {
    co_await net::with_deadline(*loop, limits::cleanup_timeout, what, std::move(task));
  } catch (const Error& error) {
    log::failure(what, error);
  } catch (const std::exception& error) {
    log::warning(what, {{"error", error.what()}});
  }
}

}  // namespace

Task<void> close_quietly(net::Loop& loop, Task<void> task, std::string what) {
  co_await async::shield(within_deadline(&loop, std::move(task), std::move(what)));
}

void Pipeline::StreamSink::worked() {
  const auto now = Clock::now();
  const double spent = std::chrono::duration<double>(now - mark_).count();
  StageClock& stage = progress_.stage(Phase::source_export);
  stage.working += spent;
  stage.touch(now);
  progress_.slices[stream_.position].read_seconds += spent;
  mark_ = now;
}

void Pipeline::StreamSink::count(const rows::Batch& batch) {
  rows_ += batch.rows();
  progress_.slices[stream_.position].rows_read += batch.rows();
  progress_.rows.read += batch.rows();
  progress_.rows_seen += batch.rows();
  progress_.has_read = true;
  progress_.bytes.batch += batch.bytes();
}

Task<void> Pipeline::StreamSink::put(rows::BatchPtr batch) {
  worked();
  count(*batch);
  const std::size_t bytes = batch->bytes();
  {
    const Lap lap(progress_.stage(Phase::source_export).waiting_out);
    co_await stream_.channel.push(std::move(batch), bytes);
  }
  mark_ = Clock::now();
}

bool is_repeatable(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    return e.transient() || e.category() == Category::connection || e.category() == Category::timeout;
  } catch (...) {
    return false;
  }
}

std::chrono::milliseconds backoff(std::chrono::milliseconds first, int retry) {
  const int doublings = std::clamp(retry - 1, 0, 16);
  return std::min<std::chrono::milliseconds>(first * (1 << doublings), limits::retry_backoff_max);
}

void note_retry(Progress& progress, std::string what, const std::exception_ptr& error, double backoff_seconds) {
  const Problem problem = problem_of(error);
  log::warning("retrying",
               {{"transfer", progress.id}, {"what", what}, {"code", problem.code}, {"error", problem.detail}});
  progress.retries.push_back({std::move(what), progress.attempt, problem.code, describe(error), backoff_seconds});
}

}  // namespace rowferry::transfer
