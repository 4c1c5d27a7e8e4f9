// read.drain: a slice is read wholly into memory before its load begins, so that the source never waits for the target.
// A slice reserves its estimate before it is read and may grow while the budget has room; when it cannot, it gives
// everything back and is read again alone.
#include <fmt/format.h>

#include <algorithm>

#include "transfer/pipeline_parts.hpp"

namespace rowferry::transfer {

using async::Task;

// Bytes of the budget that one slice holds; given back when it dies.
class Pipeline::Reservation {
 public:
  explicit Reservation(async::Budget& budget) : budget_(budget) {}
  ~Reservation() { release(held_); }
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;

  void took(std::size_t bytes) { held_ += bytes; }
  bool grow(std::size_t bytes) {
    if (held_ + bytes > budget_.total() || !budget_.try_acquire(bytes)) return false;
    held_ += bytes;
    return true;
  }
  void release(std::size_t bytes) {
    bytes = std::min(bytes, held_);
    held_ -= bytes;
    if (bytes > 0) budget_.release(bytes);
  }
  std::size_t held() const noexcept { return held_; }

 private:
  async::Budget& budget_;
  std::size_t held_ = 0;
};

class Pipeline::DrainSink final : public StreamSink {
 public:
  DrainSink(Progress& progress, Stream& stream, Reservation& held, std::vector<rows::BatchPtr>& to)
      : StreamSink(progress, stream), held_(held), to_(to) {}

  Task<void> put(rows::BatchPtr batch) override {
    worked();
    bytes_ += batch->bytes();
    seen_ += batch->rows();
    if (bytes_ > held_.held() && !held_.grow(bytes_ - held_.held())) {
      full_ = true;
      throw Error(Category::conflict, "drain_full", "the memory budget has no room for the rest of the slice");
    }
    count(*batch);
    to_.push_back(std::move(batch));
    co_return;
  }
  bool full() const noexcept { return full_; }
  double row_bytes() const noexcept { return seen_ > 0 ? static_cast<double>(bytes_) / static_cast<double>(seen_) : 0; }
  std::uint64_t rows_seen() const noexcept { return seen_; }

 private:
  Reservation& held_;
  std::vector<rows::BatchPtr>& to_;
  std::size_t bytes_ = 0;
  std::uint64_t seen_ = 0;  // rows, those that did not fit among them
  bool full_ = false;
};

std::uint64_t Pipeline::drain_estimate(const system::Slice& slice) const {
  constexpr std::uint64_t least = 1024 * 1024;
  std::uint64_t estimate = least;
  if (slice.row_estimate && progress_.rows_seen > 0) {
    const double row_bytes = static_cast<double>(progress_.bytes.batch) / static_cast<double>(progress_.rows_seen);
    estimate = static_cast<std::uint64_t>(static_cast<double>(*slice.row_estimate) * row_bytes);
  }
  return std::clamp<std::uint64_t>(estimate, std::min<std::uint64_t>(least, drain_->total()), drain_->total());
}

DrainFit drain_fit(std::uint64_t budget, double row_bytes, std::uint64_t rows) {
  constexpr std::uint64_t mib = 1024 * 1024;
  DrainFit fit;
  fit.needed = static_cast<std::uint64_t>(static_cast<double>(rows) * row_bytes);
  // Rows differ: a tenth is left as a margin.
  const std::uint64_t sufficient = (fit.needed + fit.needed / 10 + mib - 1) / mib;
  const auto rows_that_fit = static_cast<std::uint64_t>(static_cast<double>(budget) * 0.9 / std::max(row_bytes, 1.0));
  if (rows_that_fit == 0) {
    fit.advice = fmt::format("raise read.memory_budget to {} MiB", sufficient);
  } else {
    fit.advice =
        fmt::format("slices of at most {} rows fit (cut this one into {}), or raise read.memory_budget to {} MiB",
                    rows_that_fit, (rows + rows_that_fit - 1) / rows_that_fit, sufficient);
  }
  return fit;
}

void Pipeline::beyond_budget(const Stream& stream, const DrainSink& sink) const {
  const std::uint64_t estimate = stream.slice.row_estimate.value_or(0);
  const bool known = estimate > sink.rows_seen();
  const DrainFit fit = drain_fit(drain_->total(), sink.row_bytes(), std::max(estimate, sink.rows_seen()));
  throw Error(
      Category::data, "drain_budget",
      fmt::format("the slice {} needs {} {} bytes ({} rows of {:.0f} bytes), the whole memory budget is {} bytes",
                  stream.slice.predicate, known ? "about" : "more than", fit.needed,
                  std::max(estimate, sink.rows_seen()), sink.row_bytes(), drain_->total()))
      .with_slice(stream.slice.predicate)
      .with_field("read.memory_budget")
      .with_hint(fit.advice + ", or leave read.drain off");
}

// False: the budget had no room, and may have when the slice is alone.
Task<bool> Pipeline::drain_into_memory(int n, Stream* stream, Reservation* held, std::vector<rows::BatchPtr>* to,
                                       bool alone) {
  Exporter& exporter = exporters_[static_cast<std::size_t>(n)];
  const std::vector<std::uint64_t> before = exporter.reader->changed();
  DrainSink sink(progress_, *stream, *held, *to);
  try {
    const system::ReadResult result =
        co_await async::with_cancel(stream->cancel, exporter.reader->read(stream->slice, sink));
    progress_.bytes.source_wire += result.wire_bytes;
  } catch (...) {
    to->clear();
    if (!sink.full()) throw;
  }
  if (sink.full()) {
    if (alone) beyond_budget(*stream, sink);
    uncount(progress_.slices[stream->position]);
    co_return false;
  }
  stream->count_changed(before, exporter.reader->changed());
  co_return true;
}

Task<void> Pipeline::drain_stream(int n, StreamPtr stream) {
  StageClock& stage = progress_.stage(Phase::source_export);
  Reservation held(*drain_);
  std::vector<rows::BatchPtr> batches;
  std::size_t wanted = drain_estimate(stream->slice);
  for (bool alone = false;; alone = true) {
    {
      const Lap lap(stage.waiting_out);
      co_await drain_->acquire(wanted);
    }
    held.took(wanted);
    const bool whole = co_await drain_into_memory(n, stream.get(), &held, &batches, alone);
    if (whole) break;
    held.release(held.held());
    wanted = drain_->total();
    co_await ensure_reader(n);
  }
  enqueue(stream);
  const Lap lap(stage.waiting_out);
  for (rows::BatchPtr& batch : batches) {
    const std::size_t bytes = batch->bytes();
    co_await stream->channel.push(std::move(batch), bytes);
    held.release(bytes);
  }
}

}  // namespace rowferry::transfer
