#include "transfer/history.hpp"

#include <algorithm>
#include <cmath>

#include "base/limits.hpp"
#include "base/log.hpp"
#include "base/time.hpp"
#include "transfer/documents.hpp"

namespace rowferry::transfer {

namespace {

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

std::optional<PipelineRun> parse_run(const Json& json) {
  const auto text = [&json](std::string_view name) {
    const Json* value = json.find(name);
    return value == nullptr || value->string() == nullptr ? std::string() : *value->string();
  };
  const auto number = [&json](std::string_view name) {
    const Json* value = json.find(name);
    return value == nullptr ? std::nullopt : value->number();
  };
  const Json* rows = json.find("rows");
  const Json* resumed = json.find("resumed");
  const std::optional<State> state = state_from(text("state"));
  const std::optional<WallClock::time_point> ended = time::parse_utc(text("ended_at"));
  const std::optional<double> seconds = number("seconds");
  const std::optional<double> rate = number("rate");
  if (text("id").empty() || !state || !ended || !seconds || !rate || rows == nullptr || !rows->uint64()) return {};
  PipelineRun run;
  run.id = text("id");
  run.state = *state;
  run.resumed = resumed != nullptr && resumed->boolean() != nullptr && *resumed->boolean();
  run.ended = *ended;
  run.rows = *rows->uint64();
  run.seconds = *seconds;
  run.rate = *rate;
  return run;
}

// What cannot be read counts as nothing: a history is worth less than the runs to come.
std::pair<std::string, PipelineRuns> tolerant(std::string_view text) {
  try {
    return parse_history(text);
  } catch (const Error& error) {
    log::warning("a pipeline's history is damaged and begins anew", {{"error", error.detail()}});
    return {};
  }
}

bool counts(const PipelineRun& run) { return run.state == State::succeeded && !run.resumed; }

}  // namespace

std::optional<Medians> medians_of(const PipelineRuns& runs, std::string_view except) {
  std::vector<double> seconds;
  std::vector<double> rates;
  for (auto run = runs.rbegin(); run != runs.rend() && seconds.size() < limits::pipeline_median_runs; ++run) {
    if (!counts(*run) || run->id == except) continue;
    seconds.push_back(run->seconds);
    rates.push_back(run->rate);
  }
  if (seconds.empty()) return std::nullopt;
  const std::size_t count = seconds.size();
  return Medians{median(std::move(seconds)), median(std::move(rates)), count};
}

PipelineRun run_of(const Progress& progress, bool resumed) {
  PipelineRun run;
  run.id = progress.id;
  run.state = progress.state;
  run.resumed = resumed;
  run.ended = progress.ended.value_or(WallClock::time_point{});
  run.rows = progress.rows.acknowledged;
  run.seconds = rounded(progress.total_seconds);
  run.rate = run.seconds > 0 ? std::round(static_cast<double>(run.rows) / run.seconds * 10) / 10 : 0;
  return run;
}

std::optional<MedianComparison> compare(const PipelineRuns& runs, const PipelineRun& run) {
  const std::optional<Medians> medians = medians_of(runs, run.id);
  if (!medians) return std::nullopt;
  MedianComparison comparison{medians->seconds, medians->rate, std::nullopt, medians->runs};
  if (counts(run) && medians->seconds > 0) comparison.ratio = std::round(run.seconds / medians->seconds * 1000) / 1000;
  return comparison;
}

void add_run(PipelineRuns& runs, PipelineRun run) {
  std::erase_if(runs, [&run](const PipelineRun& other) { return other.id == run.id; });
  runs.push_back(std::move(run));
  if (runs.size() <= limits::pipeline_runs_kept) return;
  runs.erase(runs.begin(), runs.end() - static_cast<std::ptrdiff_t>(limits::pipeline_runs_kept));
}

std::string history_text(std::string_view pipeline, const PipelineRuns& runs) {
  JsonWriter json;
  json.begin_object().field("schema_version", 1).field("pipeline", pipeline).key("runs").begin_array();
  for (const PipelineRun& run : runs) {
    json.begin_object();
    json.field("id", run.id).field("state", to_string(run.state)).field("resumed", run.resumed);
    json.field("ended_at", time::utc_text(run.ended)).field("rows", run.rows);
    json.field("seconds", run.seconds).field("rate", run.rate);
    json.end_object();
  }
  json.end_array().end_object();
  return json.take();
}

std::pair<std::string, PipelineRuns> parse_history(std::string_view text) {
  const auto damaged = [](const std::string& why) {
    return Error(Category::internal, "record_damaged", "a pipeline's history is damaged: " + why);
  };
  Json json;
  try {
    json = Json::parse(text);
  } catch (const Error& error) {
    throw damaged(error.detail());
  }
  const Json* name = json.find("pipeline");
  const Json* list = json.find("runs");
  if (name == nullptr || name->string() == nullptr) throw damaged("pipeline");
  if (list == nullptr || list->array() == nullptr) throw damaged("runs");
  PipelineRuns runs;
  for (const Json& item : *list->array()) {
    if (std::optional<PipelineRun> run = parse_run(item)) add_run(runs, std::move(*run));
  }
  return {*name->string(), std::move(runs)};
}

namespace {

// Its id and state, and its numbers once it has ended.
void write_last_run(JsonWriter& json, const std::optional<std::pair<std::string, State>>& last,
                    const PipelineRuns& runs) {
  json.key("last_run");
  if (!last && runs.empty()) {
    json.null();
    return;
  }
  // Ids sort by the time they were made.
  const bool known = last && (runs.empty() || last->first >= runs.back().id);
  const std::string& id = known ? last->first : runs.back().id;
  const auto ended = std::ranges::find(runs, id, &PipelineRun::id);
  json.begin_object().field("id", id);
  if (ended == runs.end() || (known && !is_terminal(last->second))) {
    json.field("state", to_string(last->second)).key("ended_at").null();
    json.key("rows").null().key("seconds").null().key("rate").null();
  } else {
    json.field("state", to_string(ended->state)).field("ended_at", time::utc_text(ended->ended));
    json.field("rows", ended->rows).field("seconds", ended->seconds).field("rate", ended->rate);
  }
  json.end_object();
}

}  // namespace

void write_runs(JsonWriter& json, const std::optional<std::pair<std::string, State>>& last, const PipelineRuns& runs) {
  write_last_run(json, last, runs);
  json.field("runs", runs.size()).key("median");
  if (const std::optional<Medians> medians = medians_of(runs, "")) {
    json.begin_object().field("seconds", medians->seconds).field("rate", medians->rate);
    json.field("runs", medians->runs).end_object();
  } else {
    json.null();
  }
}

Histories read_histories(const Store& store) {
  Histories histories;
  for (const std::string& text : store.read_histories()) {
    auto [name, runs] = tolerant(text);
    if (!name.empty()) histories.insert_or_assign(std::move(name), std::move(runs));
  }
  return histories;
}

PipelineRuns record_run(const Store& store, const std::string& pipeline, PipelineRun run) {
  const StoreLock lock = store.lock_histories();
  PipelineRuns runs;
  if (const std::optional<std::string> text = store.read_history(pipeline)) runs = tolerant(*text).second;
  add_run(runs, std::move(run));
  store.write_history(pipeline, history_text(pipeline, runs));
  return runs;
}

}  // namespace rowferry::transfer
