#include "transfer/pipeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/limits.hpp"
#include "base/log.hpp"
#include "transfer/documents.hpp"
#include "transfer/pipeline_parts.hpp"

namespace rowferry::transfer {

using async::Task;
using rows::BatchPtr;

Pipeline::Pipeline(PipelineInput input)
    : in_(std::move(input)), loop_(in_.host->loop()), progress_(in_.host->progress()) {
  for (std::size_t i = 0; i < in_.slices.size(); ++i) {
    if (progress_.slices[i].state == SliceProgress::State::kept) {
      ++done_;
    } else {
      pending_.push_back(i);
    }
  }
  sent_.resize(in_.slices.size());
  const int most = std::max<int>(1, static_cast<int>(pending_.size()));
  exporters_.resize(static_cast<std::size_t>(std::min(in_.export_workers, most)));
  importers_.resize(static_cast<std::size_t>(std::min(in_.load_workers, most)));
  if (in_.drain_budget) drain_.emplace(*in_.drain_budget);
  auto from = std::make_shared<rows::Schema>();
  auto to = std::make_shared<rows::Schema>();
  std::vector<rows::LossPolicy> policies;
  std::vector<bool> compared;
  for (const system::ColumnPlan& column : *in_.columns) {
    from->fields.push_back({column.source, column.read_type, column.source_nullable});
    to->fields.push_back({column.target, column.write_type, column.target_nullable});
    policies.push_back(column.policy);
    compared.push_back(column.compared);
  }
  std::vector<std::size_t> key;
  for (std::size_t i = 0; i < in_.columns->size(); ++i) {
    const system::ColumnPlan& column = (*in_.columns)[i];
    if (column.part == system::ColumnPart::value &&
        std::ranges::find(in_.primary_key, column.source) != in_.primary_key.end())
      key.push_back(i);
  }
  for (Importer& importer : importers_) {
    importer.converter = std::make_unique<rows::Converter>(from, to, policies);
    importer.converter->name_rows_by(key);
    if (in_.hash) importer.hasher.emplace(*to, compared);
  }
}

Pipeline::~Pipeline() = default;

Task<void> Pipeline::open() {
  std::vector<Task<void>> readers;
  for (std::size_t n = 0; n < exporters_.size(); ++n) readers.push_back(ensure_reader(static_cast<int>(n)));
  co_await async::when_all(std::move(readers));
  std::vector<Task<void>> loaders;
  for (std::size_t n = 0; n < importers_.size(); ++n) loaders.push_back(ensure_loader(static_cast<int>(n)));
  co_await async::when_all(std::move(loaders));
}

Task<void> Pipeline::run() {
  progress_.stage(Phase::source_export).workers = static_cast<int>(exporters_.size());
  progress_.stage(Phase::target_load).workers = static_cast<int>(importers_.size());
  std::exception_ptr error;
  {
    async::Scope scope(co_await async::current_context());
    scope.spawn(conclude());
    for (std::size_t n = 0; n < exporters_.size(); ++n) scope.spawn(export_worker(static_cast<int>(n)));
    for (std::size_t n = 0; n < importers_.size(); ++n) scope.spawn(load_worker(static_cast<int>(n)));
    try {
      co_await scope.join();
    } catch (...) {
      error = std::current_exception();
    }
    streams_.clear();  // their cancel sources hang on the scope's
  }
  if (error) std::rethrow_exception(error);
}

Task<void> Pipeline::close_readers() {
  for (Exporter& exporter : exporters_) {
    if (!exporter.reader) continue;
    co_await close_quietly(loop_, exporter.reader->close(), "closing a reader");
    exporter.reader.reset();
  }
}

Task<void> Pipeline::close_loaders() {
  for (Importer& importer : importers_) {
    if (!importer.loader) continue;
    co_await close_quietly(loop_, importer.loader->close(), "closing a loader");
    importer.loader.reset();
  }
}

// --- slices

// Ends when every slice is done and the source has no late one.
Task<void> Pipeline::conclude() {
  for (int round = 0;; ++round) {
    while (done_ < in_.slices.size()) {
      settled_.reset();
      co_await settled_.wait();
    }
    std::vector<system::Slice> late = co_await in_.reading->late_slices();
    if (late.empty()) break;
    if (round == limits::late_slice_rounds_max) {
      progress_.warnings.push_back(
          {"late_slices", "values that came into being while the source was read are not in the target", ""});
      break;
    }
    for (system::Slice& slice : late) {
      slice.index = static_cast<int>(in_.slices.size());
      progress_.slices.push_back(progress_of(slice));
      pending_.push_back(in_.slices.size());
      in_.slices.push_back(std::move(slice));
      sent_.emplace_back();
    }
    co_await in_.host->save();
    work_.set();
  }
  progress_.slices_final = true;
  co_await in_.host->save();
  finished_ = true;
  work_.set();
  stream_ready_.set();
}

Task<std::optional<std::size_t>> Pipeline::next_slice() {
  StageClock& stage = progress_.stage(Phase::source_export);
  for (;;) {
    if (pending_.empty()) {
      if (finished_) co_return std::nullopt;
      const Lap lap(stage.waiting_in);
      work_.reset();
      co_await work_.wait();
    } else if (streams_.size() >= importers_.size()) {
      // Slices smaller than a channel would pile up in front of a slow target.
      const Lap lap(stage.waiting_out);
      stream_taken_.reset();
      co_await stream_taken_.wait();
    } else {
      break;
    }
  }
  const std::size_t position = pending_.front();
  pending_.pop_front();
  const int retries = progress_.slices[position].retries;
  const Lap lap(stage.waiting_in);
  if (retries > 0) co_await net::sleep_for(loop_, backoff(in_.host->backoff_first(), retries));
  co_return position;
}

void Pipeline::settle(Stream& stream, const std::exception_ptr& error) {
  if (error && (!stream.error || (is_cancelled(stream.error) && !is_cancelled(error)))) stream.error = error;
  // Nothing can be read again: the first to see it ends the attempt, before others stumble over the same.
  if (error && !is_cancelled(error) && !in_.reading->alive()) std::rethrow_exception(error);
  if (--stream.sides > 0) return;
  if (stream.error && !stream.already) {
    retry_or_throw(stream);
  } else {
    slice_done(stream);
  }
}

void Pipeline::slice_done(Stream& stream) {
  SliceProgress& slice = progress_.slices[stream.position];
  slice.state = SliceProgress::State::done;
  hash_.add(stream.hash);
  log_slice(stream);
  for (std::size_t i = 0; i < progress_.columns.size() && i < stream.changed.size(); ++i) {
    progress_.columns[i].changed += stream.changed[i];
  }
  ++done_;
  settled_.set();
}

void Pipeline::log_slice(const Stream& stream) const {
  const SliceProgress& slice = progress_.slices[stream.position];
  const double seconds = seconds_since(stream.began);
  log::info("slice",
            {{"transfer", progress_.id},
             {"slice", slice.predicate},
             {"rows", slice.acknowledged},
             {"read_seconds", rounded(slice.read_seconds)},
             {"write_seconds", rounded(slice.write_seconds)},
             {"rows_per_second", seconds > 0 ? std::round(static_cast<double>(slice.acknowledged) / seconds) : 0},
             {"export_worker", slice.export_worker},
             {"load_worker", slice.load_worker},
             {"table", slice.table}});
}

void Pipeline::uncount(SliceProgress& slice) {
  progress_.rows.read -= slice.rows_read;
  progress_.rows_written -= slice.rows_written;
  progress_.rows.acknowledged -= slice.acknowledged;
  slice.rows_read = slice.rows_written = slice.acknowledged = 0;
}

// A slice that the ledger has already: an earlier COMMIT had arrived after all, with the numbers that it was sent with.
void Pipeline::take_sent(Stream& stream) {
  SliceProgress& slice = progress_.slices[stream.position];
  uncount(slice);
  const std::optional<rows::ContentHash>& sent = sent_[stream.position];
  if (!sent) {
    progress_.warnings.push_back(
        {"slice_already_committed",
         fmt::format("the ledger has slice {} from an earlier run, without its numbers", slice.index), ""});
    return;
  }
  stream.hash = *sent;
  slice.rows_read = slice.rows_written = slice.acknowledged = sent->rows;
  progress_.rows.read += sent->rows;
  progress_.rows_written += sent->rows;
  progress_.rows.acknowledged += sent->rows;
}

// The slice has been rolled back: what it counted is taken back too.
void Pipeline::retry_or_throw(Stream& stream) {
  SliceProgress& slice = progress_.slices[stream.position];
  uncount(slice);
  slice.state = SliceProgress::State::pending;
  const bool again = in_.may_retry_slices && is_repeatable(stream.error) && in_.reading->alive() &&
                     slice.retries < limits::slice_retries_max;
  if (!again) std::rethrow_exception(stream.error);
  ++slice.retries;
  slice.state = SliceProgress::State::waiting_retry;
  const double wait = std::chrono::duration<double>(backoff(in_.host->backoff_first(), slice.retries)).count();
  note_retry(progress_, fmt::format("slice {}", slice.index), stream.error, wait);
  pending_.push_back(stream.position);
  work_.set();
}

// --- export

Task<void> Pipeline::ensure_reader(int n) {
  Exporter& exporter = exporters_[static_cast<std::size_t>(n)];
  if (exporter.reader && exporter.reader->usable()) co_return;
  if (exporter.reader) {
    co_await close_quietly(loop_, exporter.reader->close(), "closing a reader");
    exporter.reader.reset();
  }
  exporter.reader = co_await in_.reading->open_reader(n);
}

void Pipeline::enqueue(const StreamPtr& stream) {
  ++stream->sides;
  streams_.push_back(stream);
  stream_ready_.set();
}

Task<void> Pipeline::export_worker(int n) {
  for (;;) {
    const std::optional<std::size_t> position = co_await next_slice();
    if (!position) co_return;
    const async::Context context = co_await async::current_context();
    const auto stream = std::make_shared<Stream>(in_.slices[*position], *position, in_.channel_bytes, context.cancel);
    SliceProgress& slice = progress_.slices[*position];
    slice.state = SliceProgress::State::reading;
    slice.export_worker = n;
    std::exception_ptr error;
    try {
      co_await ensure_reader(n);
      if (drain_) {
        co_await drain_stream(n, stream);
      } else {
        enqueue(stream);
        co_await read_stream(n, stream.get());
      }
      stream->channel.close();
    } catch (...) {
      error = std::current_exception();
      stream->channel.fail(error);
    }
    settle(*stream, error);
    co_await async::throw_if_cancelled();
  }
}

Task<void> Pipeline::read_stream(int n, Stream* stream) {
  Exporter& exporter = exporters_[static_cast<std::size_t>(n)];
  const std::vector<std::uint64_t> before = exporter.reader->changed();
  StreamSink sink(progress_, *stream);
  const system::ReadResult result =
      co_await async::with_cancel(stream->cancel, exporter.reader->read(stream->slice, sink));
  stream->count_changed(before, exporter.reader->changed());
  progress_.bytes.source_wire += result.wire_bytes;
  if (result.rows != sink.rows()) {
    throw Error(Category::internal, "rows_miscounted",
                fmt::format("the source counted {} rows and delivered {}", result.rows, sink.rows()))
        .with_slice(stream->slice.predicate);
  }
}

// --- load

Task<void> Pipeline::ensure_loader(int n) {
  Importer& importer = importers_[static_cast<std::size_t>(n)];
  if (importer.loader && importer.loader->usable()) co_return;
  if (importer.loader) {
    co_await close_quietly(loop_, importer.loader->close(), "closing a loader");
    importer.loader.reset();
  }
  importer.loader = co_await in_.loading->open_loader(n);
  importer.waited = importer.loader->clocks().waiting_seconds;
}

Task<Pipeline::StreamPtr> Pipeline::next_stream() {
  const Lap lap(progress_.stage(Phase::target_load).waiting_in);
  while (streams_.empty()) {
    if (finished_) co_return nullptr;
    stream_ready_.reset();
    co_await stream_ready_.wait();
  }
  StreamPtr stream = std::move(streams_.front());
  streams_.pop_front();
  stream_taken_.set();
  co_return stream;
}

Task<BatchPtr> Pipeline::next_batch(Stream* stream) {
  const Lap lap(progress_.stage(Phase::target_load).waiting_in);
  std::optional<BatchPtr> batch = co_await stream->channel.pop();
  co_return batch ? std::move(*batch) : nullptr;
}

Task<void> Pipeline::load_worker(int n) {
  for (;;) {
    const StreamPtr stream = co_await next_stream();
    if (!stream) co_return;
    progress_.slices[stream->position].load_worker = n;
    std::exception_ptr error;
    try {
      co_await load_stream(n, stream.get());
    } catch (...) {
      error = std::current_exception();
    }
    if (error || stream->already) {
      stream->channel.abandon();
      stream->cancel.cancel();
    }
    if (error && stream->begun) co_await async::shield(abort_stream(n, stream.get()));
    settle(*stream, error);
    co_await async::throw_if_cancelled();
  }
}

Task<void> Pipeline::load_stream(int n, Stream* stream) {
  try {
    // Nothing is opened at the target before there is something to load.
    BatchPtr batch = co_await next_batch(stream);
    co_await ensure_loader(n);
    co_await write_batches(n, stream, std::move(batch));
  } catch (Error& error) {
    error.with_slice(stream->slice.predicate);
    throw;
  }
}

// The time since then was the target's: what its server made us wait, and the rest.
void Pipeline::count_load_time(int n, Clock::time_point since) {
  Importer& importer = importers_[static_cast<std::size_t>(n)];
  StageClock& stage = progress_.stage(Phase::target_load);
  const auto now = Clock::now();
  const double spent = std::chrono::duration<double>(now - since).count();
  const double total = importer.loader->clocks().waiting_seconds;
  const double waited = std::clamp(total - importer.waited, 0.0, spent);
  importer.waited = total;
  stage.working += spent - waited;
  stage.waiting_out += waited;
  stage.touch(now);
}

Task<void> Pipeline::write_batches(int n, Stream* stream, BatchPtr batch) {
  Importer& importer = importers_[static_cast<std::size_t>(n)];
  // The reference holds: no slice is added while one is on its way.
  SliceProgress& slice = progress_.slices[stream->position];
  slice.state = SliceProgress::State::loading;
  const std::vector<std::uint64_t> before = importer.converter->changed();
  auto since = Clock::now();
  progress_.stage(Phase::target_load).touch(since);
  stream->begun = true;
  if (co_await importer.loader->begin_slice(stream->slice)) {
    stream->already = true;
    take_sent(*stream);
    co_return;
  }
  while (batch) {
    const std::uint64_t rows = batch->rows();
    BatchPtr ready = importer.converter->convert(std::move(batch));
    if (importer.hasher) importer.hasher->add(*ready, stream->hash);
    if (!importer.hasher) stream->hash.rows += rows;
    co_await importer.loader->write(std::move(ready));
    slice.rows_written += rows;
    progress_.rows_written += rows;
    count_load_time(n, since);
    slice.write_seconds += seconds_since(since);
    batch = co_await next_batch(stream);
    since = Clock::now();
  }
  stream->count_changed(before, importer.converter->changed());
  sent_[stream->position] = stream->hash;
  const system::SliceCommit commit = co_await importer.loader->commit_slice(stream->hash.rows, stream->hash);
  count_load_time(n, since);
  stream->begun = false;
  slice.write_seconds += seconds_since(since);
  slice.acknowledged = commit.acknowledged;
  slice.table = commit.table;
  progress_.rows.acknowledged += commit.acknowledged;
  progress_.bytes.target_wire += commit.wire_bytes;
}

Task<void> Pipeline::abort_stream(int n, Stream* stream) {
  Importer& importer = importers_[static_cast<std::size_t>(n)];
  co_await close_quietly(loop_, importer.loader->abort_slice(), "rolling back a slice");
  stream->begun = false;
}

}  // namespace rowferry::transfer
