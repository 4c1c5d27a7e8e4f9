// Turn: how long one portion of a request may take, so that every connection of the one loop is answered soon.
//
// Lifecycle: one per session; begin() starts a portion. Work that can be left off and gone on with is a coroutine
// (async::Task) that says `co_await turn.pass()` between two rows: when the portion is over it stands there until
// Portions::go() is called again. Nothing that another session's request may change is held across pass() but row
// blocks that a TableScan keeps.
#pragma once

#include <chrono>
#include <coroutine>
#include <optional>

#include "async/task.hpp"
#include "base/limits.hpp"

namespace rowferry::sandbox::engine {

class Turn {
 public:
  void begin() noexcept {
    end_ = std::chrono::steady_clock::now() + limits::sandbox_portion;
    pieces_ = 0;
  }
  // One more piece of work is done. True: the portion is over.
  bool over() noexcept { return (++pieces_ & 63U) == 0 && expired(); }
  bool expired() const noexcept { return bounded_ && std::chrono::steady_clock::now() >= end_; }

  struct Pass {
    Turn& turn;
    bool go_on = false;
    bool await_ready() const noexcept { return go_on; }
    void await_suspend(std::coroutine_handle<> self) const noexcept { turn.standing_ = self; }
    void await_resume() const noexcept {}
  };
  Pass pass() noexcept { return {*this, !over()}; }
  Pass stand() noexcept { return {*this, false}; }

  // Never over: for work that has to be done at once.
  static Turn whole() noexcept {
    Turn turn;
    turn.bounded_ = false;
    return turn;
  }

 private:
  friend class Portions;
  std::chrono::steady_clock::time_point end_{};
  unsigned pieces_ = 0;
  bool bounded_ = true;
  std::coroutine_handle<> standing_;
};

// Owns a work and goes on with it where it stands.
class Portions {
 public:
  explicit Portions(async::Task<void> work) : work_(std::move(work)), at_(work_.handle()) {}
  // True: done. Throws what the work has thrown; it is done then too.
  bool go(Turn& turn) {
    at_.resume();
    at_ = turn.standing_;
    if (!work_.handle().done()) return false;
    work_.handle().promise().result();
    return true;
  }

 private:
  async::Task<void> work_;
  std::coroutine_handle<> at_;
};

inline void do_whole(async::Task<void> work, Turn& whole) { Portions(std::move(work)).go(whole); }

}  // namespace rowferry::sandbox::engine
