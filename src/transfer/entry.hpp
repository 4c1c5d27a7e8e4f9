// Entry: one transfer that this process holds: queued, running, or ended and kept for its status.
#pragma once

#include <functional>

#include "async/cancel.hpp"
#include "transfer/documents.hpp"
#include "transfer/history.hpp"
#include "transfer/manager.hpp"
#include "transfer/meter.hpp"
#include "transfer/record.hpp"
#include "transfer/run.hpp"
#include "transfer/store.hpp"

namespace rowferry::transfer {

// What all entries share; belongs to the manager.
struct Shared {
  net::Loop& loop;
  const Settings& settings;
  Store store;
  Observer* observer = nullptr;
  RssMeter rss;
  std::uint64_t tick = 0;  // of the sampler
  Histories histories;
};

class Entry final : public RunHost {
 public:
  Entry(Shared& shared, std::string id, std::string spec_text);

  net::Loop& loop() override { return shared_.loop; }
  Progress& progress() override { return progress_; }
  const Progress& progress() const { return progress_; }
  async::Task<void> save() override;
  void state_changed() noexcept override;
  void spec_decided(const Spec& spec) override;
  std::chrono::milliseconds backoff_first() const override { return shared_.settings.retry_backoff_first; }

  // Takes what validate_offline() has made of the spec.
  void take(Spec spec, Route route, std::vector<system::Notice> notices);
  // Becomes the next run of an earlier one; its attempt, slices and consistency decide where it goes on.
  void take_earlier(const Record& record);
  // A new run is accepted now.
  void accept();
  async::Task<void> create_record();

  // Runs it to a terminal state; throws nothing.
  async::Task<void> run();
  // Ends it without a run (cancelled in the queue).
  async::Task<void> end_cancelled();
  void request_cancel(std::string_view reason);
  void sample();

  bool ended() const noexcept { return is_terminal(progress_.state); }
  async::Event& ended_event() noexcept { return ended_; }
  Document status();
  const std::string& spec_text() const noexcept { return spec_text_; }
  // The state directory has refused record and artifact of the end: they are kept here, and the record stays owned.
  bool unsaved() const noexcept { return unsaved_.has_value(); }
  const std::string& unsaved_artifact() const noexcept { return unsaved_->artifact; }
  // Tries once more; throws nothing.
  async::Task<void> save_end();
  bool holds_record() const noexcept { return record_ != nullptr; }
  void hold(RecordFilePtr record) { record_ = std::move(record); }

 private:
  async::Task<void> end(std::exception_ptr error);
  async::Task<void> write_end();
  async::Task<void> write_history(PipelineRun run);
  void account(Clock::time_point now);

  Shared& shared_;
  std::string spec_text_;  // as submitted
  std::string spec_json_;  // filled
  Spec spec_;
  Route route_;
  std::vector<system::Notice> notices_;
  State before_ = State::queued;
  Progress progress_;
  RecordFilePtr record_;  // while it is not terminal, or its end not saved
  struct End {
    std::string artifact;
    std::string record;
  };
  std::optional<End> unsaved_;
  async::CancelSource* cancel_ = nullptr;
  std::string cancel_reason_;  // empty: not asked for
  async::Event ended_;
  CpuSeconds cpu_at_accept_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> recent_;  // rows read and written at the last ticks

  Document status_;
  std::uint64_t status_tick_ = 0;
  bool status_old_ = true;
};
using EntryPtr = std::shared_ptr<Entry>;

Document document(std::string json);

}  // namespace rowferry::transfer
