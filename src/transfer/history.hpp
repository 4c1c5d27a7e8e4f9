// History: the last runs of each pipeline, in the state directory; what a run is compared with.
//
//   <state_dir>/pipelines/<fingerprint of the name>.json   {"pipeline": name, "runs": [{id, state, …}]}, oldest first
//
// Bounded (limits::pipeline_runs_kept) and independent of the transfers' records, which go with their retention. A file
// that cannot be read is an empty history. The functions with a Store block: call them on the thread pool.
#pragma once

#include <map>

#include "base/json.hpp"
#include "transfer/progress.hpp"
#include "transfer/store.hpp"

namespace rowferry::transfer {

struct PipelineRun {
  std::string id;
  State state = State::failed;
  bool resumed = false;  // its seconds are not those of a whole run: left out of the medians
  WallClock::time_point ended{};
  std::uint64_t rows = 0;  // acknowledged by the target
  double seconds = 0;      // `seconds.total` of the artifact
  double rate = 0;         // rows per second, over those seconds
};
using PipelineRuns = std::vector<PipelineRun>;
using Histories = std::map<std::string, PipelineRuns>;

struct Medians {
  double seconds = 0;
  double rate = 0;
  std::size_t runs = 0;
};
// Over the last limits::pipeline_median_runs that succeeded, `except` left out. Nothing: there is none.
std::optional<Medians> medians_of(const PipelineRuns& runs, std::string_view except);

PipelineRun run_of(const Progress& progress, bool resumed);
// Null where there is nothing to compare with.
std::optional<MedianComparison> compare(const PipelineRuns& runs, const PipelineRun& run);

// The newest last; one with the same id is replaced; the oldest go.
void add_run(PipelineRuns& runs, PipelineRun run);
std::string history_text(std::string_view pipeline, const PipelineRuns& runs);
// Error(internal, "record_damaged") when it is no history; single runs that make no sense are left out.
std::pair<std::string, PipelineRuns> parse_history(std::string_view text);

// Members of an object: "last_run", "runs", "median". `last`: the newest run that is known, ended or not.
void write_runs(JsonWriter& json, const std::optional<std::pair<std::string, State>>& last, const PipelineRuns& runs);

Histories read_histories(const Store& store);
// Adds a run to what the disk has, whoever wrote that; gives the history as it is now.
PipelineRuns record_run(const Store& store, const std::string& pipeline, PipelineRun run);

}  // namespace rowferry::transfer
