// The parts that pipeline.cpp and drain.cpp share: streams, workers, clocks.
#pragma once

#include "transfer/pipeline.hpp"

namespace rowferry::transfer {

inline double seconds_since(Clock::time_point since) {
  return std::chrono::duration<double>(Clock::now() - since).count();
}

// Adds the time of its life to a clock.
class Lap {
 public:
  explicit Lap(double& clock) : clock_(clock) {}
  ~Lap() { clock_ += seconds_since(began_); }
  Lap(const Lap&) = delete;
  Lap& operator=(const Lap&) = delete;

 private:
  double& clock_;
  Clock::time_point began_ = Clock::now();
};

SliceProgress progress_of(const system::Slice& slice);
system::Slice slice_of(const SliceProgress& progress);

// Awaits a clean-up, shielded and within limits::cleanup_timeout; a failure is logged and goes no further.
async::Task<void> close_quietly(net::Loop& loop, async::Task<void> task, std::string what);

// One slice on its way. Shared by its export worker and its load worker; the last of the two settles it.
struct Pipeline::Stream {
  Stream(system::Slice s, std::size_t at, std::size_t channel_bytes, async::CancelSource* parent)
      : slice(std::move(s)), position(at), channel(channel_bytes), cancel(parent) {}

  void count_changed(const std::vector<std::uint64_t>& before, const std::vector<std::uint64_t>& after) {
    if (changed.size() < after.size()) changed.resize(after.size());
    for (std::size_t i = 0; i < after.size(); ++i) changed[i] += after[i] - (i < before.size() ? before[i] : 0);
  }

  system::Slice slice;
  std::size_t position;
  Clock::time_point began = Clock::now();
  async::Channel<rows::BatchPtr> channel;
  async::CancelSource cancel;  // of the reading
  int sides = 1;               // that have not ended; the load worker's counts from enqueue()
  bool begun = false;          // a transaction is open at the target
  bool already = false;        // the ledger had it
  std::exception_ptr error;
  rows::ContentHash hash;
  std::vector<std::uint64_t> changed;  // values per column
};

struct Pipeline::Exporter {
  std::unique_ptr<system::Reader> reader;
};

struct Pipeline::Importer {
  std::unique_ptr<system::Loader> loader;
  std::unique_ptr<rows::Converter> converter;
  std::optional<rows::RowHasher> hasher;
  double waited = 0;  // of the loader's own clock, counted so far
};

// Where a reader puts its batches: into the stream's channel, keeping the export clocks.
class Pipeline::StreamSink : public system::BatchSink {
 public:
  StreamSink(Progress& progress, Stream& stream) : progress_(progress), stream_(stream) {}

  ~StreamSink() override { worked(); }
  async::Task<void> put(rows::BatchPtr batch) override;
  std::uint64_t rows() const noexcept { return rows_; }

 protected:
  // Counts the time since the last put as work.
  void worked();
  void count(const rows::Batch& batch);

  Progress& progress_;
  Stream& stream_;
  std::uint64_t rows_ = 0;
  Clock::time_point mark_ = Clock::now();
};

}  // namespace rowferry::transfer
