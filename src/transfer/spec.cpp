#include "transfer/spec.hpp"

#include <algorithm>

#include "base/json.hpp"
#include "base/limits.hpp"

namespace rowferry::transfer {

namespace {

// What a profile says; nothing = it leaves the field alone.
struct Profile {
  int export_workers = 2;
  int load_workers = 2;
  std::optional<bool> drain;
  std::uint64_t memory_budget = limits::memory_budget_default;
  std::optional<std::string> isolation;
  system::Commit commit = system::Commit::transfer;
  std::optional<bool> freeze;
  std::optional<bool> unlogged;
  std::optional<bool> exchange;
  std::size_t channel_bytes = limits::channel_bytes;
};

Profile profile_of(const std::string& name) {
  Profile profile;
  if (name == "gentle_source") {
    profile.isolation = "auto";
    profile.drain = true;
  } else if (name == "disposable_copy") {
    profile.commit = system::Commit::slice;
    profile.freeze = profile.unlogged = profile.exchange = true;
  } else if (name == "low_memory") {
    profile.export_workers = profile.load_workers = 1;
    profile.memory_budget = 64ULL * 1024 * 1024;
    profile.channel_bytes = limits::low_memory_channel_bytes;
  }
  return profile;
}

template <class T, class U>
void fill(Spec& spec, std::string_view path, std::optional<T>& field, const U& value) {
  if (field) return;
  field = value;
  if (field) spec.from_profile.emplace_back(path);
}

void write_table(JsonWriter& json, std::string_view name, const TableRef& table) {
  if (table.empty()) return;
  json.key(name);
  if (table.parts.empty()) {
    json.value(table.text);
    return;
  }
  json.begin_array();
  for (const std::string& part : table.parts) json.value(part);
  json.end_array();
}

void write_text(JsonWriter& json, std::string_view name, const std::string& text) {
  if (!text.empty()) json.field(name, text);
}

void write_texts(JsonWriter& json, std::string_view name, const std::vector<std::string>& texts) {
  if (texts.empty()) return;
  json.key(name).begin_array();
  for (const std::string& text : texts) json.value(text);
  json.end_array();
}

template <class T>
void write_given(JsonWriter& json, std::string_view name, const std::optional<T>& value) {
  if (value) json.field(name, *value);
}

void write_source(JsonWriter& json, const SourceSpec& source) {
  json.key("source").begin_object();
  json.field("connection", source.connection);
  write_table(json, "table", source.table);
  write_text(json, "query", source.query);
  write_text(json, "arrow", source.arrow);
  write_text(json, "where", source.where);
  json.end_object();
}

void write_target(JsonWriter& json, const TargetSpec& target) {
  json.key("target").begin_object();
  json.field("connection", target.connection);
  write_table(json, "table", target.table);
  write_text(json, "arrow", target.arrow);
  json.field("mode", system::to_string(target.mode));
  json.field("create", target.create);
  write_texts(json, "key", target.key);
  json.field("replace_dependants", target.replace_dependants);
  if (target.partition) {
    json.key("partition").begin_object();
    json.field("by", target.partition->by).field("column", target.partition->column);
    json.end_object();
  }
  json.field("backend", target.backend);
  if (!target.settings_json.empty()) json.key("settings").raw(target.settings_json);
  write_texts(json, "order_by", target.order_by);
  write_text(json, "partition_by", target.partition_by);
  if (!target.arrow.empty()) json.field("compression", target.compression);
  json.end_object();
}

void write_columns(JsonWriter& json, const std::vector<ColumnSpec>& columns) {
  if (columns.empty()) return;
  json.key("columns").begin_array();
  for (const ColumnSpec& column : columns) {
    json.begin_object();
    json.field("source", column.source);
    write_text(json, "target", column.target);
    write_text(json, "type", column.type);
    json.field("on_loss", to_string(column.on_loss.value_or(rows::OnLoss::error)));
    write_given(json, "replacement", column.replacement);
    if (column.keep_offset) json.field("keep_offset", true);
    if (column.scan_numeric) json.field("scan_numeric", true);
    if (column.variant_base_type) json.field("variant_base_type", true);
    json.end_object();
  }
  json.end_array();
}

void write_slices(JsonWriter& json, const Spec& spec) {
  json.key("slices").begin_object();
  json.field("by", system::to_string(spec.slices.by));
  write_text(json, "column", spec.slices.column);
  if (spec.slices.count > 0) json.field("count", spec.slices.count);
  json.end_object();
  json.key("workers").begin_object();
  write_given(json, "export", spec.workers.export_);
  write_given(json, "load", spec.workers.load);
  json.end_object();
}

void write_read(JsonWriter& json, const ReadSpec& read) {
  json.key("read").begin_object();
  write_given(json, "isolation", read.isolation);
  write_given(json, "drain", read.drain);
  write_given(json, "memory_budget", read.memory_budget);
  json.field("read_only_intent", read.read_only_intent);
  write_given(json, "lock_timeout_ms", read.lock_timeout_ms);
  write_given(json, "maxdop", read.maxdop);
  json.end_object();
}

void write_load(JsonWriter& json, const LoadSpec& load) {
  json.key("load").begin_object();
  if (load.commit) json.field("commit", system::to_string(*load.commit));
  write_given(json, "batch_rows", load.batch_rows);
  if (load.table_lock) {
    json.key("table_lock");
    if (*load.table_lock == "auto") {
      json.value("auto");
    } else {
      json.value(*load.table_lock == "true");
    }
  }
  json.field("check_constraints", load.check_constraints);
  json.field("fire_triggers", load.fire_triggers);
  json.field("keep_identity", load.keep_identity);
  json.field("keep_nulls", load.keep_nulls);
  write_given(json, "freeze", load.freeze);
  write_given(json, "unlogged", load.unlogged);
  write_text(json, "tablespace", load.tablespace);
  write_given(json, "exchange", load.exchange);
  json.field("analyze", load.analyze);
  json.field("lock_timeout_ms", load.lock_timeout_ms);
  json.end_object();
}

}  // namespace

bool Spec::filled_by_profile(std::string_view path) const {
  return std::ranges::find(from_profile, path) != from_profile.end();
}

void fill_from_profile(Spec& spec) {
  if (spec.profile.empty()) spec.profile = "high_throughput_safe";
  const Profile profile = profile_of(spec.profile);
  fill(spec, "workers.export", spec.workers.export_, profile.export_workers);
  fill(spec, "workers.load", spec.workers.load, profile.load_workers);
  fill(spec, "read.isolation", spec.read.isolation, profile.isolation);
  fill(spec, "read.drain", spec.read.drain, profile.drain);
  fill(spec, "read.memory_budget", spec.read.memory_budget, profile.memory_budget);
  fill(spec, "load.commit", spec.load.commit, profile.commit);
  fill(spec, "load.table_lock", spec.load.table_lock, std::string("auto"));
  fill(spec, "load.freeze", spec.load.freeze, profile.freeze);
  fill(spec, "load.unlogged", spec.load.unlogged, profile.unlogged);
  fill(spec, "load.exchange", spec.load.exchange, profile.exchange);
  if (!spec.verify) spec.verify = system::Verify::count;
  spec.channel_bytes = profile.channel_bytes;
}

std::string to_json(const Spec& spec) {
  JsonWriter json;
  json.begin_object();
  write_source(json, spec.source);
  write_target(json, spec.target);
  write_columns(json, spec.columns);
  write_slices(json, spec);
  write_read(json, spec.read);
  write_load(json, spec.load);
  if (spec.verify) json.field("verify", system::to_string(*spec.verify));
  write_text(json, "profile", spec.profile);
  json.end_object();
  return json.take();
}

}  // namespace rowferry::transfer
