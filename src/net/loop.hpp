// The one loop: libuv's, with the queue of ready coroutines drained around each poll for I/O.
//
// Lifecycle: one Loop a process (tests make more); everything of src/net belongs to a Loop and dies before it.
// The destructor waits until libuv has closed every handle.
#pragma once

#include <uv.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>

#include "async/scope.hpp"
#include "async/task.hpp"

namespace rowferry::net {

using std::chrono::milliseconds;

class Loop {
 public:
  Loop();
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  async::ReadyQueue& queue() noexcept { return queue_; }
  uv_loop_t* uv() noexcept { return &uv_; }

  // Runs the loop until the task has ended, and returns its result. `cancel` (may be null) is the root's cancel source.
  template <class T>
  T run(async::Task<T> task, async::CancelSource* cancel = nullptr) {
    auto handle = task.handle();
    handle.promise().context = {&queue_, cancel};
    queue_.post(handle);
    run_while([&] { return !handle.done(); });
    return handle.promise().result();
  }

  // The longest single turn (resumed coroutines and callbacks between two polls) since the last reset.
  std::chrono::nanoseconds longest_turn() const noexcept { return longest_turn_; }
  void reset_longest_turn() noexcept { longest_turn_ = {}; }

 private:
  void run_while(const std::function<bool()>& wanted);
  void drain();
  static void on_prepare(uv_prepare_t* handle);
  static void on_check(uv_check_t* handle);

  uv_loop_t uv_{};
  uv_prepare_t prepare_{};
  uv_check_t check_{};
  uv_idle_t idle_{};  // active while coroutines are ready, so that the poll does not block
  async::ReadyQueue queue_;
  const std::function<bool()>* wanted_ = nullptr;  // of the running run_while()
  std::chrono::steady_clock::time_point turn_began_{};
  std::chrono::nanoseconds longest_turn_{};
};

// A wait of the given time. A cancellation point.
class Sleep : public async::Waiter {
 public:
  Sleep(Loop& loop, milliseconds time) : loop_(loop), time_(time) {}
  bool await_ready() const noexcept { return false; }
  template <class P>
  bool await_suspend(std::coroutine_handle<P> self) {
    if (!suspend(self)) return false;
    start();
    return true;
  }
  void await_resume() const { finish(); }

 private:
  void start();
  void abandoned() noexcept override;

  struct Timer;
  Loop& loop_;
  milliseconds time_;
  Timer* timer_ = nullptr;
};
inline Sleep sleep_for(Loop& loop, milliseconds time) { return {loop, time}; }

// Fires once: cancels a source when the time is over. Stopped by its destructor.
class DeadlineTimer {
 public:
  DeadlineTimer(Loop& loop, milliseconds time, async::CancelSource& target);
  ~DeadlineTimer();
  DeadlineTimer(const DeadlineTimer&) = delete;
  DeadlineTimer& operator=(const DeadlineTimer&) = delete;
  bool expired() const noexcept { return expired_; }

 private:
  struct Timer;
  Timer* timer_;
  bool expired_ = false;
};

Error deadline_error(milliseconds time, std::string_view what);

// Awaits the task; when it takes longer than `time` it is cancelled, and Error(timeout, "timeout", "<what> took longer
// than …") is thrown after it has ended. A task that ends well all the same keeps its result.
template <class T>
async::Task<T> with_deadline(Loop& loop, milliseconds time, std::string what, async::Task<T> task) {
  const async::Context context = co_await async::current_context();
  async::CancelSource source(context.cancel);
  const DeadlineTimer timer(loop, time, source);
  try {
    co_return co_await async::with_cancel(source, std::move(task));
  } catch (const Error& error) {
    if (error.category() != Category::cancelled || !timer.expired() || context.cancelled()) throw;
  }
  throw deadline_error(time, what);
}

// Runs `work` on libuv's thread pool and gives its result back on the loop. The work must own what it touches: when the
// wait is cancelled it is left to end by itself (its result is dropped), the awaiter goes on at once.
class OffloadWait : public async::Waiter {
 public:
  OffloadWait(Loop& loop, std::function<void()> work) : loop_(loop), work_(std::move(work)) {}
  bool await_ready() const noexcept { return false; }
  template <class P>
  bool await_suspend(std::coroutine_handle<P> self) {
    if (!suspend(self)) return false;
    start();
    return true;
  }
  void await_resume();

 private:
  void start();
  void abandoned() noexcept override;

  struct Job;
  Loop& loop_;
  std::function<void()> work_;
  Job* job_ = nullptr;
  std::exception_ptr error_;
};

template <class F>
auto offload(Loop& loop, F work) -> async::Task<decltype(work())> {
  using R = decltype(work());
  if constexpr (std::is_void_v<R>) {
    co_await OffloadWait(loop, std::move(work));
  } else {
    // Shared with the job: it may outlive this coroutine.
    auto result = std::make_shared<std::optional<R>>();
    co_await OffloadWait(loop, [result, work = std::move(work)]() mutable { result->emplace(work()); });
    co_return std::move(**result);
  }
}

}  // namespace rowferry::net
