// What the manager keeps; shared by the files that implement it.
#pragma once

#include <fmt/format.h>

#include <deque>
#include <set>

#include "async/scope.hpp"
#include "transfer/entry.hpp"
#include "transfer/recover.hpp"

namespace rowferry::transfer {

using async::Task;

struct Manager::Impl {
  Impl(net::Loop& loop, Settings given, Connections& all)
      : settings(std::move(given)),
        connections(all),
        shared{loop, settings, Store(settings.state_dir), nullptr, {}, 0, {}} {}

  Settings settings;
  Connections& connections;
  Shared shared;
  std::map<std::string, EntryPtr> entries;
  std::deque<std::string> ended_order;  // of the entries that are kept for their status only
  std::deque<EntryPtr> queue;
  std::vector<EntryPtr> running;
  std::map<std::string, Key> keys;
  std::map<std::string, std::pair<std::string, State>> last_runs;  // of pipelines, before this process and in it
  async::Event work;      // the queue has grown, a transfer has ended, or shutdown has begun
  async::Event sampling;  // something runs, or the service ends
  async::Event idle;      // nothing runs
  bool shutting_down = false;
  std::vector<EntryPtr> unsaved;  // ended, and the state directory has refused their end
  async::Event unsaved_grew;
  std::set<std::string> told;  // damaged records
  bool checking = false;       // the state directory, at this moment
  std::optional<Clock::time_point> checked;
  std::string not_writable;                                       // why, at the last check; empty: it is
  std::map<std::string, std::shared_ptr<async::Event>> claiming;  // keys whose owner is being found out

  net::Loop& loop() { return shared.loop; }
  EntryPtr find(const std::string& id) const {
    const auto hit = entries.find(id);
    return hit == entries.end() ? nullptr : hit->second;
  }
  void check_room() const {
    if (shutting_down) throw Error(Category::conflict, "shutting_down", "the engine is shutting down");
    if (queue.size() < static_cast<std::size_t>(settings.queue_max)) return;
    throw Error(Category::conflict, "queue_full", fmt::format("{} transfers are waiting already", queue.size()));
  }
  void enqueue(const EntryPtr& entry) {
    queue.push_back(entry);
    work.set();
  }

  Task<Record> load_record(std::string id);
  Task<Document> read_artifact(std::string id);
  std::optional<Submitted> repeated(const SubmitRequest& request) const;
  Task<std::optional<Submitted>> repeated_with_status(const SubmitRequest& request);
  EntryPtr prepare(const SubmitRequest& request);
  Task<std::optional<Submitted>> claim(Key key);
  Task<std::optional<Submitted>> record_new(EntryPtr entry, Key key);
  Task<void> claim_settled(std::string key);
  Task<void> save_unsaved();
  Task<void> save_unsaved_once();
  void tell_damaged(const std::vector<std::string>& damaged);
  Task<EntryPtr> reopen(std::string id);
  Task<void> run_one(EntryPtr entry);
  Task<void> sample();
  Task<void> housekeep();
  void keep_ended(const EntryPtr& entry);
  void check_pipeline_free(const std::string& name) const;
  std::optional<std::pair<std::string, State>> last_run(const std::string& name) const;
  Task<void> clean_one(Record record, bool drop, std::vector<Orphan>* out);
};

}  // namespace rowferry::transfer
