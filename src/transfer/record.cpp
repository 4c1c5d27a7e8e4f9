#include "transfer/record.hpp"

#include <fmt/format.h>

#include "base/limits.hpp"
#include "base/time.hpp"

namespace rowferry::transfer {

namespace {

[[noreturn]] void damaged(std::string_view what) {
  throw Error(Category::internal, "record_damaged", fmt::format("a transfer's record is damaged: {}", what));
}

const Json& need(const Json& json, std::string_view name) {
  const Json* found = json.find(name);
  if (found == nullptr) damaged(name);
  return *found;
}

std::string text_of(const Json& json, std::string_view name) {
  const std::string* text = need(json, name).string();
  if (text == nullptr) damaged(name);
  return *text;
}

std::optional<WallClock::time_point> time_of(const Json& json, std::string_view name) {
  const Json& value = need(json, name);
  if (value.string() == nullptr) return std::nullopt;
  return time::parse_utc(*value.string());
}

int int_of(const Json& json, std::string_view name) {
  const std::optional<std::int64_t> value = need(json, name).int64();
  if (!value) damaged(name);
  return static_cast<int>(*value);
}

std::optional<system::Consistency> consistency_of(const Json& value) {
  using system::Consistency;
  if (value.string() == nullptr) return std::nullopt;
  for (const Consistency c : {Consistency::one_snapshot, Consistency::per_slice, Consistency::none}) {
    if (system::to_string(c) == *value.string()) return c;
  }
  damaged("consistency");
}

void write_time(JsonWriter& json, std::string_view name, const std::optional<WallClock::time_point>& at) {
  json.key(name);
  if (at) {
    json.value(time::utc_text(*at, 6));
  } else {
    json.null();
  }
}

void write_bounds(JsonWriter& json, const system::SliceBounds& bounds) {
  json.key("bounds").begin_object();
  json.field("column", bounds.column);
  switch (bounds.kind) {
    case system::SliceBounds::Kind::value:
      json.field("value", bounds.value);
      break;
    case system::SliceBounds::Kind::null:
      json.key("value").null();
      break;
    case system::SliceBounds::Kind::range:
      json.field("low", bounds.low).field("high", bounds.high);
      break;
  }
  json.end_object();
}

std::optional<std::string> bound_of(const Json& json, std::string_view name) {
  const std::string* text = need(json, name).string();
  return text == nullptr ? std::nullopt : std::optional(*text);
}

system::SliceBounds bounds_of(const Json& json) {
  using Kind = system::SliceBounds::Kind;
  system::SliceBounds bounds;
  bounds.column = text_of(json, "column");
  if (json.find("value") == nullptr) {
    bounds.kind = Kind::range;
    bounds.low = bound_of(json, "low");
    bounds.high = bound_of(json, "high");
  } else if (const std::optional<std::string> value = bound_of(json, "value")) {
    bounds.value = *value;
  } else {
    bounds.kind = Kind::null;
  }
  return bounds;
}

std::string write_record(const Record& record, std::string_view status_json) {
  JsonWriter json;
  json.begin_object();
  json.field("schema_version", record_schema_version).field("id", record.id).field("state", to_string(record.state));
  json.field("pipeline", record.pipeline).field("attempt", record.attempt);
  write_time(json, "created_at", record.created);
  write_time(json, "ended_at", record.ended);
  json.field("spec", record.spec);
  json.key("consistency");
  record.consistency ? json.value(system::to_string(*record.consistency)) : json.null();
  json.field("staging", record.staging).field("slices_final", record.slices_final);
  json.key("slices").begin_array();
  for (const SliceProgress& slice : record.slices) {
    json.begin_object();
    json.field("index", slice.index).field("predicate", slice.predicate).field("spec", slice.spec);
    json.field("row_estimate", slice.row_estimate);
    if (slice.bounds) write_bounds(json, *slice.bounds);
    if (!slice.table.empty()) json.field("table", slice.table);
    json.end_object();
  }
  json.end_array();
  json.key("plan");
  record.plan.empty() ? json.null() : json.raw(record.plan);
  json.key("status").raw(status_json);
  json.end_object();
  return json.take();
}

}  // namespace

std::string record_text(const Progress& progress, std::string_view spec, std::string_view status_json) {
  Record record;
  record.id = progress.id;
  record.state = progress.state;
  record.spec = spec;
  record.pipeline = progress.pipeline;
  record.created = progress.created;
  record.ended = progress.ended;
  record.attempt = progress.attempt;
  record.consistency = progress.consistency;
  record.staging = progress.staging;
  record.slices_final = progress.slices_final;
  record.slices = progress.slices;
  record.plan = progress.kept_plan;
  return write_record(record, status_json);
}

std::string record_text(const Record& record) { return write_record(record, record.status.text()); }

Record parse_record(std::string_view text) {
  Json json;
  try {
    json = Json::parse(text, {.bytes = limits::record_bytes_max, .depth = limits::json_depth});
  } catch (const Error& error) {
    damaged(error.detail());
  }
  Record record;
  record.schema_version = int_of(json, "schema_version");
  record.id = text_of(json, "id");
  const std::optional<State> state = state_from(text_of(json, "state"));
  if (!state) damaged("state");
  record.state = *state;
  record.status = need(json, "status");
  if (record.status.object() == nullptr) damaged("status");
  if (record.schema_version > record_schema_version) {
    if (json.find("ended_at") != nullptr) record.ended = time_of(json, "ended_at");
    return record;
  }
  record.spec = text_of(json, "spec");
  record.pipeline = text_of(json, "pipeline");
  record.attempt = int_of(json, "attempt");
  record.created = time_of(json, "created_at").value_or(WallClock::time_point{});
  record.ended = time_of(json, "ended_at");
  record.consistency = consistency_of(need(json, "consistency"));
  record.staging = text_of(json, "staging");
  const bool* slices_final = need(json, "slices_final").boolean();
  record.slices_final = slices_final != nullptr && *slices_final;
  const Json::Array* slices = need(json, "slices").array();
  if (slices == nullptr) damaged("slices");
  for (const Json& item : *slices) {
    SliceProgress slice;
    slice.index = int_of(item, "index");
    slice.predicate = text_of(item, "predicate");
    slice.spec = text_of(item, "spec");
    slice.row_estimate = need(item, "row_estimate").uint64();
    if (const Json* bounds = item.find("bounds")) slice.bounds = bounds_of(*bounds);
    if (item.find("table") != nullptr) slice.table = text_of(item, "table");
    record.slices.push_back(std::move(slice));
  }
  if (const Json* plan = json.find("plan"); plan != nullptr && plan->object() != nullptr) record.plan = plan->text();
  return record;
}

void refuse_newer(const Record& record) {
  if (record.schema_version <= record_schema_version) return;
  throw Error(Category::unsupported, "record_newer",
              fmt::format("the record of {} has schema_version {}, this version knows {}", record.id,
                          record.schema_version, record_schema_version))
      .with_hint("use the version that wrote it, or a later one");
}

// A record begins with its small members, and "spec" comes behind them; within a text its quotes would be escaped.
std::optional<RecordHead> parse_head(std::string_view head, std::string_view tail) {
  const std::size_t end = head.find(",\"spec\":");
  if (end == std::string_view::npos || tail != "}}") return std::nullopt;
  try {
    const Json json = Json::parse(std::string(head.substr(0, end)) + "}");
    const std::optional<State> state = state_from(text_of(json, "state"));
    if (!state || int_of(json, "schema_version") != record_schema_version) return std::nullopt;
    return RecordHead{.state = *state, .pipeline = text_of(json, "pipeline"), .ended = time_of(json, "ended_at")};
  } catch (const Error&) {
    return std::nullopt;
  }
}

void mark_interrupted(Record& record) {
  record.state = State::interrupted;
  record.ended = WallClock::now();
  Json& status = record.status;
  status.set("state", std::string(to_string(State::interrupted)));
  status.set("ended_at", time::utc_text(*record.ended));
  Json error;
  error.set("category", std::string(to_string(Category::internal)));
  error.set("code", "interrupted");
  error.set("detail", "the process that ran the transfer has ended");
  error.set("hint", "resume goes on with a new attempt");
  status.set("error", std::move(error));
}

void write_summary(JsonWriter& json, const Json& status) {
  json.begin_object();
  for (const std::string_view name :
       {"id", "state", "attempt", "route", "pipeline", "created_at", "started_at", "ended_at", "rows"}) {
    if (const Json* value = status.find(name)) {
      json.key(name);
      value->write(json);
    }
  }
  const Json* error = status.find("error");
  const Json* code = error == nullptr ? nullptr : error->find("code");
  json.key("error");
  code == nullptr ? json.null() : json.value(code->string() == nullptr ? "" : *code->string());
  json.end_object();
}

}  // namespace rowferry::transfer
