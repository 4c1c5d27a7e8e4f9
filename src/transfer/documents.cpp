#include "transfer/documents.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/time.hpp"

namespace rowferry::transfer {

namespace {

void write_text(JsonWriter& json, std::string_view name, const std::string& text) {
  if (!text.empty()) json.field(name, text);
}

void write_rows(JsonWriter& json, const RowCounts& rows) {
  json.key("rows").begin_object();
  json.field("read", rows.read).field("acknowledged", rows.acknowledged).field("staged", rows.staged);
  json.field("target", rows.target).field("target_total", rows.target_total);
  json.end_object();
}

void write_bytes(JsonWriter& json, const ByteCounts& bytes) {
  json.key("bytes").begin_object();
  json.field("source_wire", bytes.source_wire).field("batch", bytes.batch).field("target_wire", bytes.target_wire);
  json.end_object();
}

void write_stage(JsonWriter& json, const StageClock& stage) {
  json.begin_object();
  json.field("working", rounded(stage.working)).field("waiting_in", rounded(stage.waiting_in));
  json.field("waiting_out", rounded(stage.waiting_out)).field("workers", stage.workers);
  json.end_object();
}

void write_seconds(JsonWriter& json, const Progress& progress) {
  json.key("seconds").begin_object();
  json.field("queued", rounded(progress.queued_seconds));
  for (std::size_t i = 0; i < phase_count; ++i) {
    json.field(to_string(static_cast<Phase>(i)), rounded(progress.stages[i].span_seconds));
  }
  json.field("total", rounded(progress.total_seconds));
  json.end_object();
}

double per_second(std::uint64_t rows, double seconds) {
  return seconds > 0 ? std::round(static_cast<double>(rows) / seconds * 10) / 10 : 0;
}

void write_rates(JsonWriter& json, const Progress& progress) {
  json.key("rows_per_second").begin_object();
  json.field("source_export", per_second(progress.rows.read, progress.stage(Phase::source_export).span_seconds));
  json.field("target_load", per_second(progress.rows.acknowledged, progress.stage(Phase::target_load).span_seconds));
  json.field("total", per_second(progress.rows.acknowledged, progress.total_seconds));
  json.end_object();
}

void write_slices(JsonWriter& json, const Progress& progress, bool live) {
  json.key("slices").begin_array();
  for (const SliceProgress& slice : progress.slices) {
    json.begin_object();
    json.field("index", slice.index).field("predicate", slice.predicate);
    if (live) json.field("row_estimate", slice.row_estimate);
    json.field("state", to_string(slice.state));
    json.key("worker").begin_object();
    json.key("export");
    slice.export_worker < 0 ? json.null() : json.value(slice.export_worker);
    json.key("load");
    slice.load_worker < 0 ? json.null() : json.value(slice.load_worker);
    json.end_object();
    json.field("rows", slice.rows_read).field("rows_written", slice.rows_written);
    json.field("acknowledged", slice.acknowledged);
    json.field("read_seconds", rounded(slice.read_seconds)).field("write_seconds", rounded(slice.write_seconds));
    json.field("retries", slice.retries);
    write_text(json, "partition", slice.table);
    json.end_object();
  }
  json.end_array();
}

void write_columns(JsonWriter& json, const Progress& progress) {
  json.key("columns").begin_array();
  for (const ColumnReport& column : progress.columns) {
    json.begin_object();
    json.field("source", column.source).field("target", column.target);
    json.field("source_type", column.source_type).field("target_type", column.target_type);
    write_text(json, "part", column.part);
    json.field("policy", column.policy).field("changed", column.changed).field("compared", column.compared);
    json.end_object();
  }
  json.end_array();
}

void write_not_compared(JsonWriter& json, const Progress& progress) {
  json.key("columns_not_compared").begin_array();
  for (const ColumnReport& column : progress.columns) {
    if (!column.compared) json.value(column.target);
  }
  json.end_array();
}

void write_checks(JsonWriter& json, const Progress& progress) {
  json.key("checks").begin_array();
  for (const Check& check : progress.checks) {
    json.begin_object();
    json.field("name", check.name).field("result", to_string(check.result));
    json.field("expected", check.expected).field("actual", check.actual).field("reason", check.reason);
    json.end_object();
  }
  json.end_array();
}

void write_retries(JsonWriter& json, const Progress& progress) {
  json.key("retries").begin_array();
  for (const Retry& retry : progress.retries) {
    json.begin_object();
    json.field("what", retry.what).field("attempt", retry.attempt).field("code", retry.code);
    json.field("detail", retry.detail).field("backoff_seconds", rounded(retry.backoff_seconds));
    json.end_object();
  }
  json.end_array();
}

void write_comparison(JsonWriter& json, const std::optional<MedianComparison>& comparison) {
  json.key("compared_with_median");
  if (!comparison) {
    json.null();
    return;
  }
  json.begin_object().field("seconds", comparison->seconds).field("rate", comparison->rate);
  json.field("ratio", comparison->ratio).field("runs", comparison->runs).end_object();
}

void write_engine(JsonWriter& json, const Progress& progress, std::string_view version) {
  const EngineUse& engine = progress.engine;
  json.key("engine").begin_object();
  json.field("version", version);
  json.field("idle_rss_bytes", engine.idle_rss_bytes).field("peak_rss_bytes", engine.peak_rss_bytes);
  json.field("cpu_user_seconds", rounded(engine.cpu_user_seconds));
  json.field("cpu_system_seconds", rounded(engine.cpu_system_seconds));
  json.field("shared", engine.shared);
  json.end_object();
}

void write_time(JsonWriter& json, std::string_view name, const std::optional<WallClock::time_point>& at) {
  json.key(name);
  at ? json.value(time::utc_text(*at)) : json.null();
}

void write_spec(JsonWriter& json, std::string_view spec_json) {
  json.key("spec");
  spec_json.empty() ? json.null() : json.raw(spec_json);
}

// What status and artifact begin with alike.
void write_head(JsonWriter& json, const Progress& progress) {
  json.field("id", progress.id).field("attempt", progress.attempt).field("state", to_string(progress.state));
  json.field("route", progress.route);
  if (!progress.pipeline.empty()) json.field("pipeline", progress.pipeline);
  write_time(json, "created_at", progress.created);
  write_time(json, "started_at", progress.started);
  write_time(json, "ended_at", progress.ended);
}

void write_decided(JsonWriter& json, const Progress& progress) {
  json.key("consistency");
  progress.consistency ? json.value(system::to_string(*progress.consistency)) : json.null();
  json.key("finalizer");
  progress.finalizer ? json.value(system::to_string(*progress.finalizer)) : json.null();
  json.key("slicing");
  if (progress.slices_by.empty()) {
    json.null();
    return;
  }
  json.begin_object().field("by", progress.slices_by).key("column");
  progress.slices_column.empty() ? json.null() : json.value(progress.slices_column);
  json.field("reason", progress.slices_reason).end_object();
}

void write_phases(JsonWriter& json, const Progress& progress) {
  json.key("phases").begin_array();
  for (std::size_t i = 0; i < phase_count; ++i) {
    const StageClock& stage = progress.stages[i];
    json.begin_object();
    json.field("name", to_string(static_cast<Phase>(i))).field("seconds", rounded(stage.span_seconds));
    json.field("working", rounded(stage.working)).field("waiting_in", rounded(stage.waiting_in));
    json.field("waiting_out", rounded(stage.waiting_out)).field("workers", stage.workers);
    json.end_object();
  }
  json.end_array();
}

}  // namespace

double rounded(double seconds) { return std::round(seconds * 1e6) / 1e6; }

void write_notices(JsonWriter& json, std::string_view name, const std::vector<system::Notice>& notices) {
  json.key(name).begin_array();
  for (const system::Notice& notice : notices) {
    json.begin_object();
    json.field("code", notice.code).field("text", notice.text);
    write_text(json, "column", notice.column);
    json.end_object();
  }
  json.end_array();
}

void write_texts(JsonWriter& json, std::string_view name, const std::vector<std::string>& texts) {
  json.key(name).begin_array();
  for (const std::string& text : texts) json.value(text);
  json.end_array();
}

void write_server(JsonWriter& json, std::string_view name, const std::optional<system::Server>& server) {
  json.key(name);
  if (!server) {
    json.null();
    return;
  }
  json.begin_object();
  json.field("product", server->product).field("version", server->version);
  json.end_object();
}

void write_problem(JsonWriter& json, std::string_view name, const std::optional<Problem>& problem) {
  json.key(name);
  if (!problem) {
    json.null();
    return;
  }
  json.begin_object();
  json.field("category", problem->category).field("code", problem->code).field("detail", problem->detail);
  write_text(json, "field", problem->field);
  write_text(json, "hint", problem->hint);
  const ErrorContext& context = problem->context;
  write_text(json, "connection", context.connection);
  write_text(json, "table", context.table);
  write_text(json, "slice", context.slice);
  write_text(json, "column", context.column);
  if (context.row) json.field("row", *context.row);
  write_text(json, "value", context.value);
  if (problem->fault) {
    const ServerFault& fault = *problem->fault;
    json.key("server").begin_object();
    json.field("number", fault.number).field("severity", fault.severity).field("state", fault.state);
    json.field("line", fault.line).field("server", fault.server).field("procedure", fault.procedure);
    json.field("message", fault.message);
    json.end_object();
  }
  json.end_object();
}

std::optional<double> eta_seconds(const Progress& progress) {
  if (progress.state != State::running) return std::nullopt;
  std::uint64_t total = 0;
  bool known = !progress.slices.empty();
  for (const SliceProgress& slice : progress.slices) {
    const bool done = slice.state == SliceProgress::State::done || slice.state == SliceProgress::State::kept;
    if (!done && !slice.row_estimate) known = false;
    total += done ? slice.rows_written : std::max(slice.row_estimate.value_or(0), slice.rows_written);
  }
  if (!known) total = progress.row_estimate.value_or(0);
  const double seconds = progress.stage(Phase::target_load).span_seconds;
  if (total == 0 || progress.rows_written == 0 || seconds < 0.5) return std::nullopt;
  const double rate = static_cast<double>(progress.rows_written) / seconds;
  const std::uint64_t left = total > progress.rows_written ? total - progress.rows_written : 0;
  return std::round(static_cast<double>(left) / rate * 10) / 10;
}

std::string status_json(const Progress& progress, std::string_view spec_json) {
  JsonWriter json;
  json.begin_object();
  write_head(json, progress);
  json.field("cancel_requested", progress.cancel_requested);
  write_spec(json, spec_json);
  write_server(json, "source", progress.source_server);
  write_server(json, "target", progress.target_server);
  write_decided(json, progress);
  write_phases(json, progress);
  write_rows(json, progress.rows);
  json.field("rows_written", progress.rows_written).field("row_estimate", progress.row_estimate);
  write_bytes(json, progress.bytes);
  json.key("rates").begin_object();
  json.field("source_export", std::round(progress.export_rate)).field("target_load", std::round(progress.load_rate));
  json.end_object();
  json.field("eta_seconds", eta_seconds(progress));
  write_slices(json, progress, true);
  write_retries(json, progress);
  write_notices(json, "warnings", progress.warnings);
  write_problem(json, "error", progress.error);
  json.end_object();
  return json.take();
}

std::string artifact_json(const Progress& progress, std::string_view spec_json, std::string_view engine_version) {
  const Bottleneck bottleneck = find_bottleneck(progress);
  JsonWriter json(2);
  json.begin_object();
  json.field("schema_version", 1);
  write_head(json, progress);
  write_spec(json, spec_json);
  write_server(json, "source", progress.source_server);
  write_server(json, "target", progress.target_server);
  write_decided(json, progress);
  write_columns(json, progress);
  write_not_compared(json, progress);
  write_rows(json, progress.rows);
  write_bytes(json, progress.bytes);
  write_seconds(json, progress);
  write_rates(json, progress);
  json.key("stages").begin_object();
  for (std::size_t i = 0; i < phase_count; ++i) {
    json.key(to_string(static_cast<Phase>(i)));
    write_stage(json, progress.stages[i]);
  }
  json.end_object();
  json.key("bottleneck");
  bottleneck.phase.empty() ? json.null() : json.value(bottleneck.phase);
  json.key("advice");
  bottleneck.advice.empty() ? json.null() : json.value(bottleneck.advice);
  write_slices(json, progress, false);
  write_checks(json, progress);
  write_retries(json, progress);
  write_notices(json, "warnings", progress.warnings);
  if (!progress.pipeline.empty()) write_comparison(json, progress.compared_with_median);
  json.key("parts").null();
  write_engine(json, progress, engine_version);
  write_problem(json, "error", progress.error);
  json.end_object();
  return json.take();
}

}  // namespace rowferry::transfer
