// SessionPool: the sessions of one configured connection, at most max_sessions at a time. Lease: one of them.
//
// A Lease is a session of its own, made for it and closed with it (nothing of one use leaks into another); what is
// shared is the count. Errors carry the connection's name and what explained() knows.
#pragma once

#include <memory>
#include <string>

#include "async/waiter.hpp"
#include "mssql/connection.hpp"

namespace rowferry::mssql {

struct SessionSettings {
  std::string database;  // empty: the connection's
  int lock_timeout_ms = 5000;
  bool yields_in_deadlocks = true;  // DEADLOCK_PRIORITY LOW; false: NORMAL
  std::string isolation = "READ COMMITTED";
  bool read_only_intent = false;
};

class SessionPool;

class Lease {
 public:
  Lease() = default;
  Lease(Lease&& other) noexcept;
  Lease& operator=(Lease&& other) noexcept;
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  ~Lease() { close(); }

  bool usable() const noexcept { return session_ != nullptr && session_->usable(); }
  tds::Session& session() const noexcept { return *session_; }
  void close() noexcept;
  // Closes a session that is lost and gives its place back; the lease stays, unusable.
  void give_up() const noexcept;

  async::Task<tds::QueryResult> query(std::string sql,
                                      std::chrono::milliseconds timeout = limits::tds_query_timeout) const;
  // The first result set; empty when a view that the statement names does not exist on this server (error 208).
  async::Task<tds::ResultSet> query_if_there(std::string sql) const;
  // The last row count.
  async::Task<std::uint64_t> execute(std::string sql,
                                     std::chrono::milliseconds timeout = limits::tds_query_timeout) const;
  // Rolls back what is open, or closes the session. Shielded, nothrow in effect.
  async::Task<void> roll_back() const;

 private:
  friend class SessionPool;
  explicit Lease(SessionPool* pool) : pool_(pool), has_place_(true) {}
  void release_place() const noexcept;
  SessionPool* pool_ = nullptr;
  mutable bool has_place_ = false;
  std::unique_ptr<tds::Session> session_;
};

class SessionPool {
 public:
  SessionPool(net::Loop& loop, Options options);

  ~SessionPool();
  SessionPool(const SessionPool&) = delete;
  SessionPool& operator=(const SessionPool&) = delete;

  // Takes `places` of the pool's together, as a pool of its own that gives them back at its end: whoever needs several
  // sessions never waits for another half served. Waits for them without a deadline. Error(input, "max_sessions") when
  // there are not so many.
  static async::Task<std::unique_ptr<SessionPool>> share(SessionPool* pool, std::size_t places,
                                                         std::string_view workers = "load");
  // `workers`: of which kind there may be too many, for the error.
  void check_room(std::size_t places, std::string_view workers = "load") const;

  // Logs in and sets the session up. Waits for a free place first.
  async::Task<Lease> open(SessionSettings settings);
  net::Loop& loop() noexcept { return loop_; }
  const Options& options() const noexcept { return options_; }

 private:
  friend class Lease;
  SessionPool(SessionPool& parent, std::size_t places);
  async::Task<std::unique_ptr<tds::Session>> connect(SessionSettings settings);
  async::Task<void> take_place() { co_await places_.acquire(1); }

  net::Loop& loop_;
  Options options_;
  SessionPool* parent_ = nullptr;
  async::Budget places_;
};

// Everything that changes what statements do or how long they wait, in one batch.
std::string session_setup(const SessionSettings& settings);

}  // namespace rowferry::mssql
