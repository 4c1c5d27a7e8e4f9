#include "transfer/entry.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/limits.hpp"
#include "base/log.hpp"

namespace rowferry::transfer {

using async::Task;

namespace {

constexpr std::size_t ticks_per_second = 1000 / static_cast<std::size_t>(limits::sample_every.count());

double seconds(Clock::duration d) { return std::chrono::duration<double>(d).count(); }

// The thread pool's job owns what it touches: the file is shared, the text is its own.
Task<void> write_record(net::Loop* loop, RecordFilePtr file, std::string text) {
  co_await net::offload(*loop, [file = std::move(file), text = std::move(text)] { file->write(text); });
}

Task<void> write_artifact(net::Loop* loop, Store store, std::string id, std::string text) {
  co_await net::offload(*loop, [store = std::move(store), id = std::move(id), text = std::move(text)] {
    store.write_artifact(id, text);
  });
}

}  // namespace

Document document(std::string json) {
  const std::size_t hash = std::hash<std::string_view>{}(json);
  return {std::move(json), fmt::format("{:016x}", hash)};
}

Entry::Entry(Shared& shared, std::string id, std::string spec_text)
    : shared_(shared), spec_text_(std::move(spec_text)) {
  progress_.id = std::move(id);
}

void Entry::take(Spec spec, Route route, std::vector<system::Notice> notices) {
  spec_ = std::move(spec);
  route_ = std::move(route);
  notices_ = std::move(notices);
  spec_json_ = to_json(spec_);
  progress_.route = route_.name;
}

void Entry::take_earlier(const Record& record) {
  before_ = record.state;
  progress_.created = record.created;
  progress_.pipeline = record.pipeline;
  progress_.attempt = record.attempt;
  progress_.consistency = record.consistency;
  progress_.staging = record.staging;
  progress_.slices_final = record.slices_final;
  progress_.slices = record.slices;
  progress_.kept_plan = record.plan;
}

void Entry::accept() {
  if (progress_.created == WallClock::time_point{}) progress_.created = WallClock::now();
  progress_.accepted = Clock::now();
  progress_.engine.idle_rss_bytes = progress_.engine.peak_rss_bytes = shared_.rss.bytes();
  cpu_at_accept_ = process_cpu();
  progress_.state = State::queued;
  status_old_ = true;
}

Task<void> Entry::create_record() {
  const std::string text = record_text(progress_, spec_text_, status().json);
  Store store = shared_.store;
  if (record_) {
    co_await write_record(&shared_.loop, record_, text);
  } else {
    record_ = co_await net::offload(shared_.loop, [store, id = progress_.id, text] { return store.create(id, text); });
  }
  // Nobody hears of a transfer before it is on disk: whoever has its id can resume it.
  state_changed();
}

// Shielded: two writes of one record never overlap.
Task<void> Entry::save() {
  if (!record_) co_return;
  status_old_ = true;
  co_await async::shield(write_record(&shared_.loop, record_, record_text(progress_, spec_text_, status().json)));
  co_await async::throw_if_cancelled();
}

void Entry::state_changed() noexcept {
  status_old_ = true;
  log::info("transfer", {{"id", progress_.id}, {"state", to_string(progress_.state)}, {"attempt", progress_.attempt}});
  if (shared_.observer != nullptr) shared_.observer->on_state(progress_);
}

void Entry::spec_decided(const Spec& spec) {
  spec_json_ = to_json(spec);
  status_old_ = true;
}

Document Entry::status() {
  if (status_old_ || status_tick_ != shared_.tick) {
    std::string json = status_json(progress_, spec_json_);
    if (json != status_.json) status_ = document(std::move(json));
    status_old_ = false;
    status_tick_ = shared_.tick;
  }
  return status_;
}

void Entry::request_cancel(std::string_view reason) {
  if (!cancel_reason_.empty()) return;
  cancel_reason_ = reason;
  progress_.cancel_requested = true;
  status_old_ = true;
  if (cancel_ != nullptr) cancel_->cancel();
}

void Entry::account(Clock::time_point now) {
  const double verify = progress_.stage(Phase::verify).span_seconds;
  progress_.total_seconds = std::max(0.0, seconds(now - progress_.accepted) - progress_.queued_seconds - verify);
  const CpuSeconds cpu = process_cpu();
  progress_.engine.cpu_user_seconds = cpu.user - cpu_at_accept_.user;
  progress_.engine.cpu_system_seconds = cpu.system - cpu_at_accept_.system;
  progress_.engine.peak_rss_bytes = std::max(progress_.engine.peak_rss_bytes, shared_.rss.bytes());
}

void Entry::sample() {
  account(Clock::now());
  recent_.emplace_back(progress_.rows.read, progress_.rows_written);
  if (recent_.size() > ticks_per_second + 1) recent_.erase(recent_.begin());
  const auto rate = [&](std::uint64_t then, std::uint64_t now) {
    const double span =
        seconds(limits::sample_every) * static_cast<double>(std::max<std::size_t>(1, recent_.size() - 1));
    return now > then ? static_cast<double>(now - then) / span : 0;
  };
  progress_.export_rate = rate(recent_.front().first, recent_.back().first);
  progress_.load_rate = rate(recent_.front().second, recent_.back().second);
  status_old_ = true;
  if (shared_.observer != nullptr) shared_.observer->on_tick(progress_);
}

Task<void> Entry::run() {
  const async::Context context = co_await async::current_context();
  async::CancelSource source(context.cancel);
  cancel_ = &source;
  progress_.started = WallClock::now();
  progress_.queued_seconds = seconds(Clock::now() - progress_.accepted);
  std::exception_ptr error;
  try {
    RunInput input{this, std::move(spec_), route_, std::move(notices_), before_};
    if (!cancel_reason_.empty()) source.cancel();
    co_await async::with_cancel(source, run_transfer(std::move(input)));
  } catch (...) {
    error = std::current_exception();
  }
  cancel_ = nullptr;
  co_await async::shield(end(error));
}

Task<void> Entry::end_cancelled() { co_await async::shield(end(std::make_exception_ptr(async::cancelled_error()))); }

// Shielded. Record and artifact are on disk before anybody hears of the end; should that fail, the next start finds the
// transfer interrupted and a resume finds the truth in the ledger.
Task<void> Entry::end(std::exception_ptr error) {
  account(Clock::now());
  Progress last = progress_;
  last.ended = WallClock::now();
  last.export_rate = last.load_rate = 0;
  last.state = !error ? State::succeeded : is_cancelled(error) ? State::cancelled : State::failed;
  if (error) last.error = problem_of(error);
  if (last.state == State::cancelled && cancel_reason_ == "shutdown") {
    last.error->code = "shutdown";
    last.error->detail = "stopped by the shutdown of the engine";
    last.error->hint = "resume starts it again";
  }
  const PipelineRun this_run = run_of(last, before_ != State::queued);
  if (!last.pipeline.empty()) last.compared_with_median = compare(shared_.histories[last.pipeline], this_run);
  std::exception_ptr failure;
  try {
    unsaved_ = End{.artifact = artifact_json(last, spec_json_, shared_.settings.version),
                   .record = record_text(last, spec_text_, status_json(last, spec_json_))};
    co_await write_end();
    if (!last.pipeline.empty()) co_await write_history(this_run);
  } catch (...) {
    failure = std::current_exception();
  }
  progress_ = std::move(last);
  if (!unsaved_) record_.reset();
  if (failure) {
    log::error("the end of a transfer is not recorded", {{"id", progress_.id}, {"error", describe(failure)}});
    add_warnings(progress_, {{"state_dir", describe(failure), ""}});
  }
  if (progress_.error) {
    log::warning("transfer ended", {{"id", progress_.id},
                                    {"state", to_string(progress_.state)},
                                    {"code", progress_.error->code},
                                    {"error", progress_.error->detail}});
  }
  state_changed();
  ended_.set();
}

Task<void> Entry::write_history(PipelineRun run) {
  const std::string name = progress_.pipeline;
  shared_.histories[name] = co_await net::offload(
      shared_.loop, [store = shared_.store, name, run = std::move(run)] { return record_run(store, name, run); });
}

Task<void> Entry::write_end() {
  co_await write_artifact(&shared_.loop, shared_.store, progress_.id, unsaved_->artifact);
  if (record_) co_await write_record(&shared_.loop, record_, unsaved_->record);
  unsaved_.reset();
  record_.reset();
}

Task<void> Entry::save_end() {
  if (!unsaved_) co_return;
  try {
    // The directory itself may have gone.
    co_await net::offload(shared_.loop, [store = shared_.store] { store.open(); });
    co_await write_end();
  } catch (const Error& error) {
    log::debug("the end of a transfer is still not recorded", {{"id", progress_.id}, {"code", error.code()}});
    co_return;
  }
  log::info("the end of a transfer is recorded now", {{"id", progress_.id}});
}

}  // namespace rowferry::transfer
