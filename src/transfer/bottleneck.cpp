// Which phase held a transfer up.
//
// A worker is busy while it works for its own side: reading and decoding from the source's server; converting, writing
// and waiting for the target's server. It is not busy while its neighbour in the pipeline makes it wait. Busy seconds
// per worker rank the phases, also those that run alone (plan, verify, finalize).
#include <fmt/format.h>

#include "transfer/documents.hpp"

namespace rowferry::transfer {

namespace {

double busy_seconds(const Progress& progress, Phase phase) {
  const StageClock& stage = progress.stage(phase);
  if (phase != Phase::source_export && phase != Phase::target_load) return stage.span_seconds;
  const double busy = stage.working + (phase == Phase::target_load ? stage.waiting_out : 0);
  return stage.workers > 0 ? busy / stage.workers : 0;
}

std::string export_advice(const Progress& progress) {
  const int workers = progress.stage(Phase::source_export).workers;
  if (progress.slices.size() <= 1) return "one slice is one reader: `slices` by range or value lets several read";
  if (static_cast<std::size_t>(workers) >= progress.slices.size()) {
    return fmt::format("every slice has a reader: more slices (`slices.count`, now {}) let more of them read",
                       progress.slices.size());
  }
  return fmt::format("raise `workers.export` (now {}) if the source can bear it", workers);
}

std::string load_advice(const Progress& progress) {
  const StageClock& stage = progress.stage(Phase::target_load);
  const double busy = stage.working + stage.waiting_out;
  const int at_server = busy > 0 ? static_cast<int>(stage.waiting_out / busy * 100) : 0;
  std::string knob = fmt::format("raise `workers.load` (now {})", stage.workers);
  if (progress.finalizer == system::Finalizer::direct) {
    knob = "the finalizer direct has one load worker: a mode with staging loads with several";
  } else if (progress.slices.size() <= 1) {
    knob = "one slice is one writer: `slices` by range or value lets several write";
  } else if (static_cast<std::size_t>(stage.workers) >= progress.slices.size()) {
    knob = fmt::format("every slice has a writer: raise `slices.count` (now {}) with `workers.load`",
                       progress.slices.size());
  }
  return fmt::format("{}; {} % of the writers' busy time went to waiting for the target's server", knob, at_server);
}

std::string advice_for(const Progress& progress, Phase phase) {
  switch (phase) {
    case Phase::plan:
      return "the transfer is so small that describing both sides takes longest: move more tables per connection";
    case Phase::source_export:
      return export_advice(progress);
    case Phase::target_load:
      return load_advice(progress);
    case Phase::verify:
      return "`verify`: count reads nothing back; content reads the whole staging table";
    case Phase::target_finalize:
      if (progress.finalizer == system::Finalizer::insert_select) {
        return "the finalizer insert_select writes every row a second time: mode replace, or a target without "
               "dependants, allows one that swaps tables; fewer indexes on the target help as well";
      }
      return "the swap of tables waits for other sessions of the target: run when it is quiet";
  }
  return "";
}

}  // namespace

Bottleneck find_bottleneck(const Progress& progress) {
  Phase most = Phase::plan;
  double seconds = 0;
  for (std::size_t i = 0; i < phase_count; ++i) {
    const double busy = busy_seconds(progress, static_cast<Phase>(i));
    if (busy <= seconds) continue;
    seconds = busy;
    most = static_cast<Phase>(i);
  }
  if (seconds <= 0 || progress.route.empty()) return {};
  return {fmt::format("{}.{}", progress.route, to_string(most)), advice_for(progress, most)};
}

}  // namespace rowferry::transfer
