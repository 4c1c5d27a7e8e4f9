// Scope: runs child tasks at the same time and waits for all of them.
//
// Lifecycle: made in a coroutine from its Context; children are spawned; join() is awaited before the Scope dies
// (dying with running children is a programming error and aborts). The first error cancels all the others and is
// what join() throws; when the parent is cancelled, so are the children.
#pragma once

#include <exception>
#include <vector>

#include "async/task.hpp"
#include "async/waiter.hpp"

namespace rowferry::async {

class Scope {
 public:
  explicit Scope(Context parent) : parent_(parent), cancel_(parent.cancel) {}
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  ~Scope();

  // Starts at the next turn of the queue. Nothing but more spawns and join() may stand between a spawn and the join,
  // unless it cannot throw.
  void spawn(Task<void> task);
  // Waits for every child, however long: children end because they finish, fail or are cancelled. May be awaited again
  // after further spawns.
  Task<void> join();
  void cancel() noexcept { cancel_.cancel(); }
  // Cancels the children and waits for all. That they were cancelled is no error; any other is thrown as by join().
  Task<void> end();
  bool cancelled() const noexcept { return cancel_.cancelled(); }
  std::size_t running() const noexcept { return running_; }
  Context context() noexcept { return {parent_.queue, &cancel_}; }

 private:
  struct Child;
  static Child run(Scope* scope, Task<void> task);
  void child_done(std::exception_ptr error) noexcept;

  Context parent_;
  CancelSource cancel_;
  std::size_t running_ = 0;
  std::exception_ptr error_;
  Event idle_;
};

// Awaits all tasks; the first error cancels the rest and is thrown after all have ended.
Task<void> when_all(std::vector<Task<void>> tasks);

// Runs a task to its end on a queue without a loop (tests, tools). Throws std::logic_error when the task is
// still pending and nothing is ready: it waits for something that cannot happen.
template <class T>
T run_until_done(ReadyQueue& queue, Task<T> task);

namespace detail {
[[noreturn]] void throw_stuck();
}

template <class T>
T run_until_done(ReadyQueue& queue, Task<T> task) {
  auto handle = task.handle();
  handle.promise().context = {&queue, nullptr};
  queue.post(handle);
  while (!handle.done()) {
    if (!queue.run_one()) detail::throw_stuck();
  }
  return handle.promise().result();
}

}  // namespace rowferry::async
