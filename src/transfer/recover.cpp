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

bool removed_as_old(const Store& store, const RecordFilePtr& file, const Record& record, WallClock::time_point now,
                    std::chrono::seconds retain) {
  if (!is_terminal(record.state) || !record.ended || now - *record.ended <= retain) return false;
  store.remove(file, record.id);
  return true;
}

// A record that nobody owns and that has not ended: its process has.
bool interrupted_if_left(const Store& store, const RecordFilePtr& file, Record& record, std::string_view version) {
  if (is_terminal(record.state)) return false;
  mark_interrupted(record);
  store.write_artifact(record.id, interrupted_artifact(record, version));
  file->write(record_text(record));
  return true;
}

// The keys that still count; the files of the others are removed.
std::vector<Key> living_keys(const Store& store, WallClock::time_point now) {
  std::vector<Key> keys;
  for (const std::string& text : store.read_keys()) {
    Json json;
    try {
      json = Json::parse(text);
    } catch (const Error&) {
      continue;  // half of a file that a dying machine has left: the key is unknown again
    }
    const auto part = [&json](std::string_view name) {
      const Json* value = json.find(name);
      return value == nullptr || value->string() == nullptr ? std::string() : *value->string();
    };
    Key key{part("key"), part("body"), part("id"), time::parse_utc(part("at")).value_or(WallClock::time_point{})};
    if (now - key.at > limits::idempotency_keep) {
      store.remove_key(key.key);
    } else {
      keys.push_back(std::move(key));
    }
  }
  return keys;
}

class Recovery {
 public:
  Recovery(const Store& store, std::chrono::seconds retain, std::string_view version)
      : store_(store), retain_(retain), version_(version) {}

  Recovered run() {
    for (const std::string& id : store_.ids()) {
      try {
        look_at(id);
      } catch (const Error& error) {
        out_.damaged.push_back(fmt::format("{}: {}", id, error.detail()));
      }
    }
    out_.keys = living_keys(store_, now_);
    return std::move(out_);
  }

 private:
  void look_at(const std::string& id) {
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
    const RecordFilePtr file = store.own(id);
    if (!file) continue;
    try {
      if (removed_as_old(store, file, parse_record(file->read()), now, retain)) ++removed;
    } catch (const Error& error) {
      log::debug("a damaged record is left alone, as told at start-up", {{"transfer", id}, {"code", error.code()}});
    }
  }
  (void)living_keys(store, now);
  return removed;
}

}  // namespace rowferry::transfer
