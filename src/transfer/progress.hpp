// Progress: what is known of one transfer while it runs and after. One writer (the run), read by the status document,
// the artifact and observers; everything on the loop's thread.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "system/system.hpp"

namespace rowferry::transfer {

using Clock = std::chrono::steady_clock;
using WallClock = std::chrono::system_clock;

enum class State : std::uint8_t {
  queued,       // accepted; nothing is connected
  planning,     // both sides are described; nothing is locked or written
  running,      // source locked, target locked, slices on their way into staging
  verifying,    // staging is complete; the target is untouched
  finalizing,   // the one transaction into the target, then the after-steps
  succeeded,    // terminal
  failed,       // terminal; `error` says why
  cancelled,    // terminal
  interrupted,  // terminal; its process died: set at the next start-up
};
std::string_view to_string(State value) noexcept;
std::optional<State> state_from(std::string_view name) noexcept;
inline bool is_terminal(State s) noexcept { return s >= State::succeeded; }

enum class Phase : std::uint8_t { plan, source_export, target_load, verify, target_finalize };
inline constexpr std::size_t phase_count = 5;
std::string_view to_string(Phase value) noexcept;

// An Error that can be kept, written and read again.
struct Problem {
  std::string category;
  std::string code;
  std::string detail;
  std::string field;
  std::string hint;
  ErrorContext context;
  std::optional<ServerFault> fault;
};
Problem problem_of(const std::exception_ptr& error);
std::string_view to_string(Category value) noexcept;

// Worker-seconds of one phase. working: on the own side's business (reading and decoding; converting, writing,
// committing). waiting_in: nothing to do. waiting_out: for the other side of its output (the channel is full; the
// target's server has not taken or answered yet).
struct StageClock {
  double working = 0;
  double waiting_in = 0;
  double waiting_out = 0;
  int workers = 0;
  std::optional<Clock::time_point> first;
  std::optional<Clock::time_point> last;
  double span_seconds = 0;

  void touch(Clock::time_point now) noexcept {
    if (!first) first = now;
    last = now;
    span_seconds = std::chrono::duration<double>(*last - *first).count();
  }
};

struct SliceProgress {
  enum class State : std::uint8_t { pending, reading, loading, done, waiting_retry, kept };
  int index = 0;
  std::string predicate;
  std::string spec;
  std::optional<std::uint64_t> row_estimate;
  std::optional<system::SliceBounds> bounds;
  std::string table;  // the partition that was renewed by it (Finalizer::per_slice)
  State state = State::pending;
  int export_worker = -1;
  int load_worker = -1;
  std::uint64_t rows_read = 0;
  std::uint64_t rows_written = 0;
  std::uint64_t acknowledged = 0;
  double read_seconds = 0;
  double write_seconds = 0;
  int retries = 0;
};
std::string_view to_string(SliceProgress::State value) noexcept;

struct Retry {
  std::string what;  // "slice 3", "attempt", "after_steps"
  int attempt = 0;
  std::string code;
  std::string detail;
  double backoff_seconds = 0;
};

struct Check {
  enum class Result : std::uint8_t { passed, failed, not_run, not_applicable };
  std::string name;
  Result result = Result::not_run;
  std::string expected;
  std::string actual;
  std::string reason;
};
std::string_view to_string(Check::Result value) noexcept;

struct ColumnReport {
  std::string source;
  std::string target;
  std::string source_type;
  std::string target_type;
  std::string policy;
  std::string part;  // offset | base_type; empty: the value
  std::uint64_t changed = 0;
  bool compared = true;
};

struct RowCounts {
  std::uint64_t read = 0;
  std::uint64_t acknowledged = 0;
  std::optional<std::uint64_t> staged;
  std::optional<std::uint64_t> target;
  std::optional<std::uint64_t> target_total;
};

struct ByteCounts {
  std::uint64_t source_wire = 0;
  std::uint64_t batch = 0;
  std::uint64_t target_wire = 0;
};

struct EngineUse {
  std::uint64_t idle_rss_bytes = 0;
  std::uint64_t peak_rss_bytes = 0;
  double cpu_user_seconds = 0;
  double cpu_system_seconds = 0;
  bool shared = false;
};

// A pipeline's run beside the median of those before it.
struct MedianComparison {
  double seconds = 0;           // the median's
  double rate = 0;              // the median's
  std::optional<double> ratio;  // this run's seconds / the median's; nothing: it is no whole run that succeeded
  std::size_t runs = 0;         // that the medians are of
};

struct Progress {
  std::string id;
  State state = State::queued;
  int attempt = 0;
  std::string route;     // postgres_to_mssql
  std::string pipeline;  // its name, when one started it
  WallClock::time_point created{};
  Clock::time_point accepted{};  // of this run: submitted or resumed
  std::optional<WallClock::time_point> started;
  std::optional<WallClock::time_point> ended;

  std::optional<system::Server> source_server;
  std::optional<system::Server> target_server;
  std::optional<system::Consistency> consistency;
  std::optional<system::Finalizer> finalizer;
  std::string staging;
  std::string kept_plan;  // JSON, for a resume without the source (kept_plan.hpp); empty: none
  std::string slices_by;
  std::string slices_column;
  std::string slices_reason;

  RowCounts rows;
  ByteCounts bytes;
  std::uint64_t rows_written = 0;  // handed to the target's writer, over all slices of this attempt
  std::uint64_t rows_seen = 0;     // in batches from the source, those of slices that were read again among them
  bool has_read = false;           // rows have come in this run, also those of slices and attempts that were given up
  std::optional<std::uint64_t> row_estimate;
  std::array<StageClock, phase_count> stages{};
  double queued_seconds = 0;
  double total_seconds = 0;  // accepted to finalized, without queue and verify
  double export_rate = 0;    // rows per second, over the last second
  double load_rate = 0;

  std::vector<SliceProgress> slices;
  bool slices_final = false;  // no late slice can come any more
  std::vector<ColumnReport> columns;
  std::vector<Check> checks;
  std::vector<system::Notice> warnings;
  std::vector<Retry> retries;
  EngineUse engine;
  bool cancel_requested = false;
  std::optional<MedianComparison> compared_with_median;
  std::optional<Problem> error;

  StageClock& stage(Phase p) noexcept { return stages[static_cast<std::size_t>(p)]; }
  const StageClock& stage(Phase p) const noexcept { return stages[static_cast<std::size_t>(p)]; }
};

// Hears of every change, on the loop's thread; must not block, and must not call the manager back.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void on_state(const Progress& progress) = 0;
  virtual void on_tick(const Progress& /*progress*/) {}  // every 100 ms while it runs
};

}  // namespace rowferry::transfer
