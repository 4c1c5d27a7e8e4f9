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
    if (bytes_ > held_.held() && !held_.grow(bytes_ - held_.held())) {
      full_ = true;
      throw Error(Category::conflict, "drain_full", "the memory budget has no room for the rest of the slice");
    }
    count(*batch);
    to_.push_back(std::move(batch));
    co_return;
  }
  bool full() const noexcept { return full_; }

 private:
  Reservation& held_;
  std::vector<rows::BatchPtr>& to_;
  std::size_t bytes_ = 0;
  bool full_ = false;
};

std::uint64_t Pipeline::drain_estimate(const system::Slice& slice) const {
  constexpr std::uint64_t least = 1024 * 1024;
  std::uint64_t estimate = least;
  if (slice.row_estimate && progress_.rows.read > 0) {
    const double row_bytes = static_cast<double>(progress_.bytes.batch) / static_cast<double>(progress_.rows.read);
    estimate = static_cast<std::uint64_t>(static_cast<double>(*slice.row_estimate) * row_bytes);
  }
  return std::clamp<std::uint64_t>(estimate, std::min<std::uint64_t>(least, drain_->total()), drain_->total());
}

// False: the budget had no room.
Task<bool> Pipeline::drain_into_memory(int n, Stream* stream, Reservation* held, std::vector<rows::BatchPtr>* to) {
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
    const bool whole = co_await drain_into_memory(n, stream.get(), &held, &batches);
    if (whole) break;
    if (alone) {
      throw Error(Category::data, "drain_budget",
                  fmt::format("the slice is larger than the whole memory budget of {} bytes", drain_->total()))
          .with_slice(stream->slice.predicate)
          .with_hint("raise read.memory_budget, cut smaller slices, or leave read.drain off");
    }
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
