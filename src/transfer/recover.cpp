#include "transfer/recover.hpp"

#include <fmt/format.h>

#include "base/limits.hpp"
#include "base/log.hpp"
#include "base/time.hpp"
#include "transfer/documents.hpp"

namespace rowferry::transfer {

namespace {

std::string interrupted_artifact(const Record& record, std::string_view engine_version) {
  Progress progress;
  progress.id = record.id;
  progress.state = record.state;
  progress.attempt = record.attempt;
  progress.pipeline = record.pipeline;
  progress.created = record.created;
  progress.ended = record.ended;
  progress.consistency = record.consistency;
  progress.slices = record.slices;
  progress.error.emplace();
  progress.error->category = to_string(Category::internal);
  progress.error->code = "interrupted";
  progress.error->detail = "the process that ran the transfer has ended";
  progress.error->hint = "resume goes on with a new attempt";
  const Json* route = record.status.find("route");
  if (route != nullptr && route->string() != nullptr) progress.route = *route->string();
  const Json* spec = record.status.find("spec");
  return artifact_json(progress, spec == nullptr ? "" : spec->text(), engine_version);
}

PipelineRun interrupted_run(const Record& record) {
  PipelineRun run;
  run.id = record.id;
  run.state = record.state;
  run.ended = record.ended.value_or(WallClock::time_point{});
  const Json* rows = record.status.find("rows");
  const Json* acknowledged = rows == nullptr ? nullptr : rows->find("acknowledged");
  if (acknowledged != nullptr) run.rows = acknowledged->uint64().value_or(0);
  return run;
}

bool removed_as_old(const Store& store, const RecordFilePtr& file, const Record& record, WallClock::time_point now,
                    std::chrono::seconds retain) {
  if (record.schema_version > record_schema_version) return false;
  if (!is_terminal(record.state) || !record.ended || now - *record.ended <= retain) return false;
  store.remove(file, record.id);
  return true;
}

// A record that nobody owns and that has not ended: its process has.
bool interrupted_if_left(const Store& store, const RecordFilePtr& file, Record& record, std::string_view version) {
  if (is_terminal(record.state) || record.schema_version > record_schema_version) return false;
  mark_interrupted(record);
  try {
    store.write_artifact(record.id, interrupted_artifact(record, version));
    file->write(record_text(record));
  } catch (const Error& error) {
    // It is interrupted whether the disk takes it or not; who reads it next tries again.
    log::failure("an interrupted transfer is not recorded as such", error, {{"id", record.id}});
    return true;
  }
  if (!record.pipeline.empty()) record_run(store, record.pipeline, interrupted_run(record));
  return true;
}

// The keys that still count; the files of the others are removed.
std::vector<Key> living_keys(const Store& store, WallClock::time_point now) {
  std::vector<Key> keys;
  for (const std::string& text : store.read_keys()) {
    std::optional<Key> key = parse_key(text);
    if (!key) continue;  // half of a file that a dying machine has left: the key is unknown again
    if (now - key->at > limits::idempotency_keep) {
      store.remove_key(key->key, text);
    } else {
      keys.push_back(std::move(*key));
    }
  }
  return keys;
}

class Recovery {
 public:
  Recovery(const Store& store, std::chrono::seconds retain, std::string_view version)
      : store_(store), retain_(retain), version_(version) {}

  Recovered run() {
    store_.remove_unfinished(limits::left_file_age);
    for (const std::string& id : store_.ids()) {
      try {
        look_at(id);
      } catch (const Error& error) {
        out_.damaged.push_back(fmt::format("{}: {}", id, error.detail()));
      }
    }
    out_.keys = living_keys(store_, now_);
    out_.histories = read_histories(store_);
    return std::move(out_);
  }

 private:
  void look_at(const std::string& id) {
    if (const auto head = read_head(store_, id);
        head && is_terminal(head->state) && head->ended && now_ - *head->ended <= retain_) {
      if (!head->pipeline.empty()) out_.last_runs.try_emplace(head->pipeline, id, head->state);
      return;
    }
    const RecordFilePtr file = store_.own(id);
    if (!file) return;  // another process is at work on it
    Record record = parse_record(file->read());
    if (removed_as_old(store_, file, record, now_, retain_)) return;
    if (interrupted_if_left(store_, file, record, version_)) out_.interrupted.push_back(id);
    if (!record.pipeline.empty()) out_.last_runs.try_emplace(record.pipeline, id, record.state);
  }

  const Store& store_;
  std::chrono::seconds retain_;
  std::string_view version_;
  WallClock::time_point now_ = WallClock::now();
  Recovered out_;
};

}  // namespace

std::string key_text(const Key& key) {
  JsonWriter json;
  json.begin_object();
  json.field("key", key.key).field("body", key.body).field("id", key.id).field("at", time::utc_text(key.at));
  json.end_object();
  return json.take();
}

std::optional<Key> parse_key(std::string_view text) {
  try {
    const Json json = Json::parse(text);
    const auto part = [&json](std::string_view name) {
      const Json* value = json.find(name);
      return value == nullptr || value->string() == nullptr ? std::string() : *value->string();
    };
    return Key{part("key"), part("body"), part("id"), time::parse_utc(part("at")).value_or(WallClock::time_point{})};
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::optional<RecordHead> read_head(const Store& store, const std::string& id) {
  const std::optional<RecordEnds> ends = store.read_ends(id);
  return ends ? parse_head(ends->head, ends->tail) : std::nullopt;
}

Recovered recover(const Store& store, std::chrono::seconds retain, std::string_view engine_version) {
  return Recovery(store, retain, engine_version).run();
}

std::optional<Record> read_record(const Store& store, const std::string& id, std::string_view engine_version) {
  const std::optional<std::string> text = store.read(id);
  if (!text) return std::nullopt;
  Record record = parse_record(*text);
  if (is_terminal(record.state)) return record;
  // Its process may have ended since start-up: then nobody holds the file.
  if (const RecordFilePtr file = store.own(id)) {
    record = parse_record(file->read());
    interrupted_if_left(store, file, record, engine_version);
  }
  return record;
}

std::size_t prune(const Store& store, std::chrono::seconds retain) {
  const auto now = WallClock::now();
  std::size_t removed = 0;
  for (const std::string& id : store.ids()) {
    try {
      if (const auto head = read_head(store, id); head && head->ended && now - *head->ended <= retain) continue;
      const RecordFilePtr file = store.own(id);
      if (!file) continue;
      if (removed_as_old(store, file, parse_record(file->read()), now, retain)) ++removed;
    } catch (const Error& error) {
      log::debug("a damaged record is left alone, as told at start-up", {{"transfer", id}, {"code", error.code()}});
    }
  }
  (void)living_keys(store, now);
  return removed;
}

}  // namespace rowferry::transfer
