// PostgreSQL as a source: describes, plans slices, and reads them under one snapshot.
#pragma once

#include <memory>

#include "async/waiter.hpp"
#include "base/limits.hpp"
#include "postgres/catalogue.hpp"
#include "postgres/session.hpp"
#include "system/source.hpp"

namespace rowferry::postgres {

// What all sources and targets of one configured connection share.
struct Shared {
  Shared(net::Loop& the_loop, std::shared_ptr<const SessionOptions> the_options, std::size_t max_sessions)
      : loop(the_loop), options(std::move(the_options)), sessions(max_sessions) {}
  net::Loop& loop;
  std::shared_ptr<const SessionOptions> options;
  async::Budget sessions;
  std::chrono::hours ledger_keep = limits::ledger_keep;  // older rows are forgotten after a successful transfer
};

// Sessions that may be open; given back when it dies.
class SessionLease {
 public:
  SessionLease() = default;
  SessionLease(std::shared_ptr<Shared> shared, std::size_t count) : shared_(std::move(shared)), count_(count) {}
  SessionLease(SessionLease&& other) noexcept
      : shared_(std::move(other.shared_)), count_(std::exchange(other.count_, 0)) {}
  SessionLease& operator=(SessionLease&& other) noexcept {
    std::swap(shared_, other.shared_);
    std::swap(count_, other.count_);
    return *this;
  }
  ~SessionLease() {
    if (count_ != 0) shared_->sessions.release(count_);
  }
  // Waits until so many sessions are free, all at once: two transfers that each hold half would wait for ever.
  // Throws Error(input, "max_sessions") when the connection never allows as many.
  static async::Task<SessionLease> take(std::shared_ptr<Shared> shared, std::size_t count);

 private:
  std::shared_ptr<Shared> shared_;
  std::size_t count_ = 0;
};

class PostgresSource final : public system::Source {
 public:
  explicit PostgresSource(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}

  async::Task<system::SourceTable> describe(const system::SourceRequest& request) override;
  async::Task<system::SlicePlan> plan_slices(const system::ReadRequest& request) override;
  async::Task<std::unique_ptr<system::Reading>> begin(const system::ReadRequest& request) override;

 private:
  std::shared_ptr<Shared> shared_;
};

}  // namespace rowferry::postgres
