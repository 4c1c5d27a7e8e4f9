#include "transfer/manager.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/file.hpp"
#include "base/id.hpp"
#include "base/limits.hpp"
#include "base/log.hpp"
#include "transfer/manager_impl.hpp"
#include "transfer/page.hpp"

namespace rowferry::transfer {

namespace {

[[noreturn]] void unknown(std::string_view id) {
  throw Error(Category::not_found, "transfer_unknown",
              fmt::format("no transfer \"{}\"", cut_for_message(id, limits::error_value_chars)));
}

std::string read_text_file(const std::string& path) {
  FileText file = read_whole_file(path, limits::spec_bytes_max, FileKind::regular);
  if (!file.problem.empty()) {
    throw Error(Category::not_found, "spec_file",
                fmt::format("the spec file {} cannot be read: {}", path, file.problem));
  }
  return std::move(file.text);
}

}  // namespace

Manager::Manager(net::Loop& loop, Settings settings, Connections& connections)
    : impl_(std::make_unique<Impl>(loop, std::move(settings), connections)) {}

Manager::~Manager() = default;

// --- the service

Task<void> Manager::start() {
  Impl& m = *impl_;
  const Store store = m.shared.store;
  Recovered found = co_await net::offload(m.loop(), [store, retain = m.settings.retain, version = m.settings.version] {
    store.open();
    return recover(store, retain, version);
  });
  for (Key& key : found.keys) m.keys.insert_or_assign(key.key, key);
  m.last_runs = std::move(found.last_runs);
  m.shared.histories = std::move(found.histories);
  m.tell_damaged(found.damaged);
  for (const std::string& id : found.interrupted) {
    log::warning("a transfer was interrupted", {{"id", id}});
    if (!m.settings.resume_on_start) continue;
    std::exception_ptr error;
    try {
      co_await resume(id);
    } catch (...) {
      error = std::current_exception();
    }
    if (error) log::warning("an interrupted transfer is not resumed", {{"id", id}, {"error", describe(error)}});
  }
}

Task<void> Manager::serve() {
  Impl& m = *impl_;
  const async::Context context = co_await async::current_context();
  async::Scope scope(context);
  async::Scope background(context);
  std::exception_ptr error;
  background.spawn(m.sample());
  background.spawn(m.housekeep());
  background.spawn(m.save_unsaved());
  try {
    while (!m.shutting_down) {
      while (!m.queue.empty() && m.running.size() < static_cast<std::size_t>(m.settings.max_transfers)) {
        EntryPtr next = std::move(m.queue.front());
        m.queue.pop_front();
        m.running.push_back(next);
        scope.spawn(m.run_one(next));
      }
      m.work.reset();
      co_await m.work.wait();
    }
    while (!m.running.empty()) {
      m.idle.reset();
      co_await m.idle.wait();
    }
  } catch (...) {
    error = std::current_exception();
  }
  co_await scope.join();
  try {
    co_await background.end();
  } catch (const Error& failed) {
    log::failure("background work of the service", failed);
  }
  co_await m.save_unsaved_once();
  m.idle.set();
  if (error) std::rethrow_exception(error);
}

Task<void> Manager::Impl::run_one(EntryPtr entry) {
  if (running.size() > 1) {
    for (const EntryPtr& other : running) other->progress().engine.shared = true;
  }
  sampling.set();
  co_await entry->run();
  std::erase(running, entry);
  keep_ended(entry);
  work.set();
  if (running.empty()) idle.set();
}

// One whose end is not saved has its only copy here.
void Manager::Impl::keep_ended(const EntryPtr& entry) {
  if (entry->unsaved()) {
    unsaved.push_back(entry);
    unsaved_grew.set();
    return;
  }
  ended_order.push_back(entry->progress().id);
  while (ended_order.size() > limits::ended_kept_max) {
    const EntryPtr oldest = find(ended_order.front());
    if (oldest && oldest->ended()) entries.erase(ended_order.front());
    ended_order.pop_front();
  }
}

// Resident memory and rates, while something runs.
Task<void> Manager::Impl::sample() {
  for (;;) {
    if (running.empty()) {
      sampling.reset();
      co_await sampling.wait();
      continue;
    }
    ++shared.tick;
    for (const EntryPtr& entry : running) entry->sample();
    co_await net::sleep_for(shared.loop, limits::sample_every);
  }
}

// What is past its retention goes also while the service runs on for months.
Task<void> Manager::Impl::housekeep() {
  for (;;) {
    co_await net::sleep_for(shared.loop, limits::housekeeping_every);
    std::exception_ptr error;
    try {
      const Store store = shared.store;
      const std::size_t removed =
          co_await net::offload(shared.loop, [store, retain = settings.retain] { return prune(store, retain); });
      if (removed > 0) log::info("old records removed", {{"count", removed}});
    } catch (...) {
      error = std::current_exception();
    }
    if (is_cancelled(error)) std::rethrow_exception(error);
    if (error) log::warning("old records are not removed", {{"error", describe(error)}});
    const auto now = WallClock::now();
    std::erase_if(keys, [now](const auto& key) { return now - key.second.at > limits::idempotency_keep; });
  }
}

Task<void> Manager::shutdown(std::chrono::milliseconds grace) {
  Impl& m = *impl_;
  m.shutting_down = true;
  m.work.set();
  const auto until = Clock::now() + grace;
  while (!m.running.empty() && Clock::now() < until) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
    co_await net::sleep_for(m.loop(), std::min(left, limits::sample_every));
  }
  for (const EntryPtr& entry : m.running) entry->request_cancel("shutdown");
  while (!m.running.empty()) {
    m.idle.reset();
    co_await m.idle.wait();
  }
  for (const EntryPtr& entry : m.queue) entry->ended_event().set();
  m.queue.clear();
}

bool Manager::shutting_down() const noexcept { return impl_->shutting_down; }
std::size_t Manager::running() const noexcept { return impl_->running.size(); }
std::size_t Manager::queued() const noexcept { return impl_->queue.size(); }
void Manager::observe(Observer* observer) { impl_->shared.observer = observer; }
const Progress* Manager::progress(const std::string& id) const {
  const EntryPtr entry = impl_->find(id);
  return entry ? &entry->progress() : nullptr;
}

void Manager::Impl::tell_damaged(const std::vector<std::string>& damaged) {
  for (const std::string& text : damaged) {
    if (told.insert(text).second) log::warning("a record is left alone", {{"record", text}});
  }
}

// --- the state directory

Task<std::optional<std::string>> Manager::not_ready() {
  Impl& m = *impl_;
  const auto now = Clock::now();
  if (!m.checking && (!m.checked || now - *m.checked >= limits::state_dir_check_every)) {
    m.checking = true;
    std::exception_ptr error;
    try {
      const Store store = m.shared.store;
      m.not_writable = co_await net::offload(m.loop(), [store] { return store.why_not_writable(); });
    } catch (...) {
      error = std::current_exception();
    }
    m.checking = false;
    if (error) std::rethrow_exception(error);
    m.checked = Clock::now();
  }
  if (m.not_writable.empty()) co_return std::nullopt;
  co_return "the state directory cannot be written: " + m.not_writable;
}

// Ends of transfers that the state directory has refused are offered to it until it takes them.
Task<void> Manager::Impl::save_unsaved() {
  for (;;) {
    if (unsaved.empty()) {
      unsaved_grew.reset();
      co_await unsaved_grew.wait();
    }
    co_await net::sleep_for(shared.loop, limits::unsaved_retry_every);
    co_await save_unsaved_once();
  }
}

Task<void> Manager::Impl::save_unsaved_once() {
  const std::vector<EntryPtr> left = std::move(unsaved);
  unsaved.clear();
  for (const EntryPtr& entry : left) {
    co_await async::shield(entry->save_end());
    keep_ended(entry);
  }
}

Task<std::string> Manager::plan(std::string text, PlanFormat format) {
  Spec spec = parse_spec(text);
  std::vector<system::Notice> notices;
  Route route = validate_offline(spec, impl_->connections, notices);
  const Plan plan = co_await make_plan(std::move(spec), std::move(route), std::move(notices), "");
  co_return format == PlanFormat::json ? plan_to_json(plan) : plan_to_text(plan);
}

// --- documents

Task<Record> Manager::Impl::load_record(std::string id) {
  if (!is_transfer_id(id)) unknown(id);
  const Store store = shared.store;
  std::optional<Record> record = co_await net::offload(
      shared.loop, [store, id, version = settings.version] { return read_record(store, id, version); });
  if (!record) unknown(id);
  co_return std::move(*record);
}

Task<Document> Manager::status(std::string id) {
  if (const EntryPtr entry = impl_->find(id)) co_return entry->status();
  const Record record = co_await impl_->load_record(id);
  co_return document(record.status.text());
}

Task<Document> Manager::Impl::read_artifact(std::string id) {
  const Store store = shared.store;
  std::optional<std::string> text = co_await net::offload(shared.loop, [store, id] { return store.read_artifact(id); });
  if (!text) throw Error(Category::internal, "artifact_missing", fmt::format("the artifact of {} is not there", id));
  co_return document(std::move(*text));
}

Task<Document> Manager::artifact(std::string id) {
  const EntryPtr entry = impl_->find(id);
  const State state = entry ? entry->progress().state : (co_await impl_->load_record(id)).state;
  if (!is_terminal(state)) {
    throw Error(Category::conflict, "no_artifact_yet", fmt::format("the transfer is {}", to_string(state)));
  }
  if (entry && entry->unsaved()) co_return document(entry->unsaved_artifact());
  co_return co_await impl_->read_artifact(std::move(id));
}

std::string Manager::artifact_file(const std::string& id) const { return impl_->shared.store.artifact_path(id); }

Task<std::string> Manager::list(ListRequest request) {
  Impl& m = *impl_;
  const std::size_t limit =
      std::clamp<std::size_t>(static_cast<std::size_t>(std::max(request.limit, 1)), 1, limits::list_page_max);
  if (!request.state.empty() && !state_from(request.state)) {
    throw Error(Category::input, "bad_value", fmt::format("no state is named \"{}\"", request.state))
        .with_field("state");
  }
  PageRequest page{m.shared.store, std::move(request), limit, m.settings.version, {}};
  for (const auto& [id, entry] : m.entries) page.held.emplace(id, entry->progress().state);
  Page found = co_await net::offload(m.loop(), [page = std::move(page)] { return find_page(page); });
  m.tell_damaged(found.damaged);
  JsonWriter json;
  json.begin_object().key("transfers").begin_array();
  for (PageLine& line : found.lines) {
    if (const EntryPtr entry = m.find(line.id)) {
      line.status = Json::parse(entry->status().json, {.bytes = limits::record_bytes_max, .depth = limits::json_depth});
    }
    if (line.status.object() != nullptr) write_summary(json, line.status);
  }
  json.end_array().key("next");
  found.more ? json.value(found.lines.back().id) : json.null();
  json.end_object();
  co_return json.take();
}

// --- cancel, resume, wait

Task<Document> Manager::cancel(std::string id) {
  Impl& m = *impl_;
  const EntryPtr entry = m.find(id);
  if (!entry) {
    const Record record = co_await m.load_record(id);
    if (!is_terminal(record.state)) {
      throw Error(Category::conflict, "owned_elsewhere", "another process runs this transfer");
    }
  }
  if (!entry || entry->ended()) {
    throw Error(Category::conflict, "transfer_ended", fmt::format("the transfer {} has ended", id));
  }
  entry->request_cancel("request");
  const auto queued = std::ranges::find(m.queue, entry);
  if (queued != m.queue.end()) {
    m.queue.erase(queued);
    co_await entry->end_cancelled();
    m.keep_ended(entry);
  }
  co_return entry->status();
}

// The record of a terminal transfer, owned, as an entry that may run again.
Task<EntryPtr> Manager::Impl::reopen(std::string id) {
  const Store store = shared.store;
  const RecordFilePtr file = co_await net::offload(shared.loop, [store, id] { return store.own(id); });
  if (!file) throw Error(Category::conflict, "owned_elsewhere", "another process holds this transfer");
  const Record record = parse_record(co_await net::offload(shared.loop, [file] { return file->read(); }));
  refuse_newer(record);
  if (record.state == State::succeeded) {
    throw Error(Category::conflict, "transfer_ended", fmt::format("the transfer {} has succeeded", id));
  }
  Spec spec = parse_spec(record.spec);
  std::vector<system::Notice> notices;
  Route route = validate_offline(spec, connections, notices);
  auto entry = std::make_shared<Entry>(shared, id, record.spec);
  entry->take_earlier(record);
  entry->take(std::move(spec), std::move(route), std::move(notices));
  entry->hold(file);
  co_return entry;
}

Task<Document> Manager::resume(std::string id) {
  Impl& m = *impl_;
  const EntryPtr before = m.find(id);
  if (before && !before->ended()) {
    throw Error(Category::conflict, "transfer_active",
                fmt::format("the transfer {} is {}", id, to_string(before->progress().state)));
  }
  if (before && before->unsaved()) {
    throw Error(Category::internal, "state_dir", "the end of this transfer is not recorded yet")
        .with_hint("the state directory cannot be written; resume once it can");
  }
  (void)co_await m.load_record(id);
  m.check_room();
  const EntryPtr entry = co_await m.reopen(id);
  m.check_room();
  entry->accept();
  co_await async::shield(entry->create_record());
  m.entries.insert_or_assign(id, entry);
  std::erase(m.ended_order, id);
  m.enqueue(entry);
  co_return entry->status();
}

Task<Outcome> Manager::wait(std::string id) {
  EntryPtr entry = impl_->find(id);
  if (!entry) {
    const Record record = co_await impl_->load_record(id);
    Outcome outcome{.state = record.state, .error = std::nullopt};
    const Json* error = record.status.find("error");
    if (error != nullptr && error->object() != nullptr) {
      const auto part = [error](std::string_view name) {
        const Json* value = error->find(name);
        return value == nullptr || value->string() == nullptr ? std::string() : *value->string();
      };
      outcome.error = Problem{part("category"), part("code"), part("detail"), part("field"), part("hint"), {}, {}};
    }
    co_return outcome;
  }
  co_await entry->ended_event().wait();
  co_return Outcome{.state = entry->progress().state, .error = entry->progress().error};
}

// --- pipelines

std::optional<std::pair<std::string, State>> Manager::Impl::last_run(const std::string& name) const {
  // Ids sort by time: the last entry of that pipeline is its newest run in this process.
  for (auto it = entries.rbegin(); it != entries.rend(); ++it) {
    const Progress& progress = it->second->progress();
    if (progress.pipeline == name) return std::pair{progress.id, progress.state};
  }
  const auto before = last_runs.find(name);
  return before == last_runs.end() ? std::nullopt : std::optional(before->second);
}

void Manager::Impl::check_pipeline_free(const std::string& name) const {
  for (const auto& [id, entry] : entries) {
    if (entry->progress().pipeline != name || entry->ended()) continue;
    throw Error(Category::conflict, "pipeline_running", fmt::format("{} is running as transfer {}", name, id));
  }
}

Task<std::string> Manager::pipelines() {
  static const PipelineRuns none;
  JsonWriter json;
  json.begin_object().key("pipelines").begin_array();
  for (const auto& [name, pipeline] : impl_->settings.pipelines) {
    const auto history = impl_->shared.histories.find(name);
    json.begin_object().field("name", name).field("spec", pipeline.path);
    write_runs(json, impl_->last_run(name), history == impl_->shared.histories.end() ? none : history->second);
    json.end_object();
  }
  json.end_array().end_object();
  co_return json.take();
}

Task<Submitted> Manager::run_pipeline(std::string name, std::string idempotency_key) {
  Impl& m = *impl_;
  const auto hit = m.settings.pipelines.find(name);
  if (hit == m.settings.pipelines.end()) {
    throw Error(Category::not_found, "pipeline_unknown",
                fmt::format("no pipeline \"{}\"", cut_for_message(name, limits::error_value_chars)));
  }
  std::string spec = co_await net::offload(m.loop(), [path = hit->second.path] { return read_text_file(path); });
  SubmitRequest request{.spec = std::move(spec), .idempotency_key = std::move(idempotency_key), .pipeline = name};
  co_await m.claim_settled(request.idempotency_key);
  if (!m.repeated(request)) m.check_pipeline_free(name);
  co_return co_await submit(std::move(request));
}

// --- left-overs

Task<void> Manager::Impl::clean_one(Record record, bool drop, std::vector<Orphan>* out) {
  refuse_newer(record);
  Spec spec = parse_spec(record.spec);
  std::vector<system::Notice> notices;
  const Route route = validate_offline(spec, connections, notices);
  const std::unique_ptr<system::Target> target = route.target->make_target();
  system::LoadRequest request;
  request.transfer_id = record.id;
  request.what = target_request(spec, route);
  const system::Remains remains = co_await target->remains(request.what, record.id);
  if (remains.staging_attempt == 0) co_return;
  Orphan orphan{record.id,
                remains.staging_attempt,
                spec.target.connection,
                route.target_table.text(),
                fmt::format("rowferry_{}_{}", record.id, remains.staging_attempt),
                "found",
                ""};
  if (drop) {
    request.attempt = request.staging_attempt = remains.staging_attempt;
    request.only_after_steps = request.resume_staging = true;
    std::exception_ptr error;
    try {
      const std::unique_ptr<system::Loading> loading = co_await target->begin(request);
      for (const system::Notice& notice : co_await async::shield(loading->end(false))) orphan.detail += notice.text;
      orphan.state = "dropped";
    } catch (...) {
      error = std::current_exception();
    }
    if (is_cancelled(error)) std::rethrow_exception(error);
    if (error) {
      orphan.state = problem_of(error).code == "target_busy" ? "busy" : "failed";
      orphan.detail = describe(error);
    }
  }
  out->push_back(std::move(orphan));
}

Task<std::vector<Orphan>> Manager::clean(std::chrono::seconds older_than, bool drop) {
  Impl& m = *impl_;
  std::vector<Orphan> orphans;
  const Store store = m.shared.store;
  const std::vector<std::string> ids = co_await net::offload(m.loop(), [store] { return store.ids(); });
  for (const std::string& id : ids) {
    const EntryPtr entry = m.find(id);
    if (entry && !entry->ended()) continue;
    std::exception_ptr error;
    try {
      Record record = co_await m.load_record(id);
      const bool old = record.ended && WallClock::now() - *record.ended >= older_than;
      if (!is_terminal(record.state) || !old) continue;
      co_await m.clean_one(std::move(record), drop, &orphans);
    } catch (...) {
      error = std::current_exception();
    }
    if (is_cancelled(error)) std::rethrow_exception(error);
    if (error) orphans.push_back({id, 0, "", "", "", "failed", describe(error)});
  }
  co_return orphans;
}

}  // namespace rowferry::transfer
