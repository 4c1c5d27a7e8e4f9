// Recover: what the manager does with the state directory when it starts. Blocking; runs on the thread pool.
#pragma once

#include <chrono>
#include <map>

#include "transfer/history.hpp"
#include "transfer/record.hpp"
#include "transfer/store.hpp"

namespace rowferry::transfer {

struct Key {  // of an idempotent request
  std::string key;
  std::string body;  // its fingerprint
  std::string id;
  WallClock::time_point at{};
};
std::string key_text(const Key& key);
std::optional<Key> parse_key(std::string_view text);  // nullopt: damaged

struct Recovered {
  std::vector<std::string> interrupted;                            // ids, newest first
  std::vector<Key> keys;                                           // not older than limits::idempotency_keep
  std::map<std::string, std::pair<std::string, State>> last_runs;  // of each pipeline
  Histories histories;                                             // of pipelines
  std::vector<std::string> damaged;                                // records that cannot be read, with the reason
};

// Sets unowned records that are not terminal to `interrupted` (their artifact with it); removes terminal ones that
// ended longer than `retain` ago, and old keys.
Recovered recover(const Store& store, std::chrono::seconds retain, std::string_view engine_version);

// A record as it stands: one that a process has left behind since start-up becomes `interrupted` now. Nullopt: absent.
std::optional<Record> read_record(const Store& store, const std::string& id, std::string_view engine_version);

std::optional<RecordHead> read_head(const Store& store, const std::string& id);

// Only the removals of recover(): for a service that runs on. Gives how many records went.
std::size_t prune(const Store& store, std::chrono::seconds retain);

}  // namespace rowferry::transfer
