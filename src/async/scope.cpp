#include "async/scope.hpp"

#include <cstdio>
#include <cstdlib>
#include <stdexcept>

namespace rowferry::async {

// The root coroutine of a child: owns the Task in its frame, reports to the Scope, frees itself.
struct Scope::Child {
  struct promise_type {
    Context context;
    Child get_return_object() noexcept { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_always initial_suspend() const noexcept { return {}; }
    std::suspend_never final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    void unhandled_exception() const noexcept { std::abort(); }  // run() catches everything
  };
  std::coroutine_handle<promise_type> handle;
};

Scope::Child Scope::run(Scope* scope, Task<void> task) {
  std::exception_ptr error;
  {
    // The task dies before the scope hears of it: nothing of a child outlives join().
    Task<void> mine = std::move(task);
    try {
      co_await std::move(mine);
    } catch (...) {
      error = std::current_exception();
    }
  }
  scope->child_done(std::move(error));
}

Scope::~Scope() {
  if (running_ != 0) {
    std::fputs("rowferry: a Scope died with running children\n", stderr);
    std::abort();
  }
}

void Scope::spawn(Task<void> task) {
  const Child child = run(this, std::move(task));
  child.handle.promise().context = context();
  ++running_;
  idle_.reset();
  parent_.queue->post(child.handle);
}

void Scope::child_done(std::exception_ptr error) noexcept {
  // A cancellation is never the reason when there is another one.
  if (error && (!error_ || (is_cancelled(error_) && !is_cancelled(error)))) error_ = error;
  if (error) cancel_.cancel();
  if (--running_ == 0) idle_.set();
}

Task<void> Scope::join() {
  if (running_ != 0) {
    // Shielded: cancelling the parent cancels the children, whose end is awaited all the same.
    co_await shield([](Event* idle) -> Task<void> { co_await idle->wait(); }(&idle_));
  }
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

Task<void> Scope::end() {
  cancel();
  try {
    co_await join();
  } catch (const Error& error) {
    if (error.category() != Category::cancelled) throw;
  }
}

Task<void> when_all(std::vector<Task<void>> tasks) {
  Scope scope(co_await current_context());
  for (auto& task : tasks) scope.spawn(std::move(task));
  co_await scope.join();
}

void detail::throw_stuck() { throw std::logic_error("the task is pending and nothing is ready"); }

}  // namespace rowferry::async
