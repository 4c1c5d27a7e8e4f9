// Pipeline: moves all slices of one attempt into staging.
//
//   slices ─► export worker ─► Channel (bounded by bytes) ─► load worker ─► commit
//
// Each export worker takes a slice, opens a Stream for it and reads into the stream's channel; a load worker takes the
// next open stream and is bound to it from its first batch to its commit. Whoever of the two ends last settles the
// slice: done, to be read again (after its rollback, under the same snapshot, bounded, with backoff), or the end of the
// attempt. Lifecycle: open() ─► run() ─► close_readers(), close_loaders() (shielded; also after a failure).
#pragma once

#include <deque>
#include <memory>

#include "async/channel.hpp"
#include "async/scope.hpp"
#include "net/loop.hpp"
#include "rows/convert.hpp"
#include "rows/hash.hpp"
#include "transfer/plan.hpp"
#include "transfer/progress.hpp"

namespace rowferry::transfer {

// What a run needs of whoever keeps its record. Outlives the run.
class RunHost {
 public:
  virtual ~RunHost() = default;
  virtual net::Loop& loop() = 0;
  virtual Progress& progress() = 0;
  virtual async::Task<void> save() = 0;             // the record, as it is now, to disk
  virtual void state_changed() noexcept = 0;        // progress().state is new
  virtual void spec_decided(const Spec& spec) = 0;  // as the plan has filled it, for status and artifact
  virtual std::chrono::milliseconds backoff_first() const = 0;
};

struct PipelineInput {
  RunHost* host = nullptr;
  system::Reading* reading = nullptr;
  system::Loading* loading = nullptr;
  const std::vector<system::ColumnPlan>* columns = nullptr;
  std::vector<std::string> primary_key;  // of the source: names rows in errors
  std::vector<system::Slice> slices;     // progress().slices holds one entry for each, in this order
  int export_workers = 1;
  int load_workers = 1;
  bool hash = false;
  bool may_retry_slices = true;  // false: one transaction holds all slices (direct)
  std::size_t channel_bytes = 0;
  std::optional<std::uint64_t> drain_budget;  // drain: bytes that slices may hold in memory together
};

class Pipeline {
 public:
  explicit Pipeline(PipelineInput input);
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  async::Task<void> open();
  // Returns when every slice is committed and no late one has come; throws the reason that ended it otherwise.
  async::Task<void> run();
  async::Task<void> close_readers();
  async::Task<void> close_loaders();
  // Of all committed slices; rows and, when asked for, the content.
  const rows::ContentHash& hash() const noexcept { return hash_; }
  void add_kept(const rows::ContentHash& hash) { hash_.add(hash); }

 private:
  struct Stream;
  struct Exporter;
  struct Importer;
  class StreamSink;
  class DrainSink;
  class Reservation;
  using StreamPtr = std::shared_ptr<Stream>;

  async::Task<void> export_worker(int n);
  async::Task<void> read_stream(int n, Stream* stream);
  async::Task<void> drain_stream(int n, StreamPtr stream);
  async::Task<bool> drain_into_memory(int n, Stream* stream, Reservation* held, std::vector<rows::BatchPtr>* to,
                                      bool alone);
  async::Task<void> ensure_reader(int n);
  async::Task<std::optional<std::size_t>> next_slice();
  void enqueue(const StreamPtr& stream);

  async::Task<void> load_worker(int n);
  async::Task<void> load_stream(int n, Stream* stream);
  async::Task<void> write_batches(int n, Stream* stream, rows::BatchPtr batch);
  async::Task<rows::BatchPtr> next_batch(Stream* stream);
  async::Task<void> abort_stream(int n, Stream* stream);
  async::Task<void> ensure_loader(int n);
  async::Task<StreamPtr> next_stream();
  void count_load_time(int n, Clock::time_point since);

  async::Task<void> conclude();
  void settle(Stream& stream, const std::exception_ptr& error);
  void slice_done(Stream& stream);
  void take_sent(Stream& stream);
  void uncount(SliceProgress& slice);
  void retry_or_throw(Stream& stream);
  void log_slice(const Stream& stream) const;
  std::uint64_t drain_estimate(const system::Slice& slice) const;
  [[noreturn]] void beyond_budget(const Stream& stream, const DrainSink& sink) const;

  PipelineInput in_;
  net::Loop& loop_;
  Progress& progress_;
  std::vector<Exporter> exporters_;
  std::vector<Importer> importers_;
  std::deque<std::size_t> pending_;  // positions in in_.slices
  std::deque<StreamPtr> streams_;    // open, not yet taken by a load worker; no more of them than load workers
  async::Event work_;                // pending_ has grown, or finished_
  async::Event stream_ready_;        // streams_ has grown, or finished_
  async::Event stream_taken_;        // streams_ has shrunk
  async::Event settled_;             // done_ has grown
  std::size_t done_ = 0;
  bool finished_ = false;
  std::optional<async::Budget> drain_;
  rows::ContentHash hash_;
  // What was in flight when a slice's COMMIT was sent: its numbers, should the ledger say that it had arrived.
  std::vector<std::optional<rows::ContentHash>> sent_;
};

// How a slice that is drained would fit into the memory budget.
struct DrainFit {
  std::uint64_t needed = 0;  // bytes
  std::string advice;        // "slices of at most 5000 rows fit (2 of this one), or a read.memory_budget of 12 MiB"
};
DrainFit drain_fit(std::uint64_t budget, double row_bytes, std::uint64_t rows);

// May the failed step be repeated after its rollback?
bool is_repeatable(const std::exception_ptr& error);
std::chrono::milliseconds backoff(std::chrono::milliseconds first, int retry);
void note_retry(Progress& progress, std::string what, const std::exception_ptr& error, double backoff_seconds);

}  // namespace rowferry::transfer
