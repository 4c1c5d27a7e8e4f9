// Task<T>: a lazy coroutine with one owner and one awaiter.
//
// Lifecycle: made suspended; starts when awaited (or when a Scope starts it); its frame dies with the Task.
// Use: a task is awaited at once, or given to a Scope; there are no detached tasks. Parameters are values, or
// references to objects that outlive the co_await (C++ Core Guidelines CP.51 to CP.53).
// Every task inherits its awaiter's Context: the queue on which it is resumed and the cancel source that it heeds.
#pragma once

#include <cassert>
#include <coroutine>
#include <exception>
#include <optional>
#include <utility>

#include "async/cancel.hpp"
#include "async/ready_queue.hpp"

namespace rowferry::async {

struct Context {
  ReadyQueue* queue = nullptr;
  CancelSource* cancel = nullptr;  // null: cannot be cancelled

  bool cancelled() const noexcept { return cancel != nullptr && cancel->cancelled(); }
};

class PromiseBase {
 public:
  Context context;
  std::coroutine_handle<> continuation;

  std::suspend_always initial_suspend() const noexcept { return {}; }
  struct FinalAwaiter {
    bool await_ready() const noexcept { return false; }
    template <class P>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<P> self) const noexcept {
      const std::coroutine_handle<> next = self.promise().continuation;
      return next ? next : std::noop_coroutine();
    }
    void await_resume() const noexcept {}
  };
  FinalAwaiter final_suspend() const noexcept { return {}; }
  void unhandled_exception() noexcept { error_ = std::current_exception(); }

 protected:
  void rethrow() {
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  }

 private:
  std::exception_ptr error_;
};

template <class T = void>
class [[nodiscard]] Task;

namespace detail {

template <class T>
class Promise : public PromiseBase {
 public:
  Task<T> get_return_object() noexcept;
  template <class U>
  void return_value(U&& value) {
    value_.emplace(std::forward<U>(value));
  }
  T result() {
    rethrow();
    return std::move(*value_);
  }

 private:
  std::optional<T> value_;
};

template <>
class Promise<void> : public PromiseBase {
 public:
  Task<void> get_return_object() noexcept;
  void return_void() const noexcept {}
  void result() { rethrow(); }
};

}  // namespace detail

template <class T>
class [[nodiscard]] Task {
 public:
  using promise_type = detail::Promise<T>;
  using Handle = std::coroutine_handle<promise_type>;

  explicit Task(Handle handle) noexcept : handle_(handle) {}
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Task& operator=(Task&&) = delete;
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;
  ~Task() {
    if (handle_) handle_.destroy();
  }

  class Awaiter {
   public:
    explicit Awaiter(Handle handle) noexcept : handle_(handle) {}
    bool await_ready() const noexcept { return false; }
    template <class P>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<P> parent) noexcept {
      handle_.promise().context = parent.promise().context;
      handle_.promise().continuation = parent;
      return handle_;
    }
    T await_resume() { return handle_.promise().result(); }

   private:
    Handle handle_;
  };
  Awaiter operator co_await() && noexcept { return Awaiter(handle_); }

  // For the few that start a task by other means than co_await (Scope, run_until_done, in_context).
  Handle handle() const noexcept { return handle_; }

 private:
  Handle handle_;
};

template <class T>
Task<T> detail::Promise<T>::get_return_object() noexcept {
  return Task<T>(std::coroutine_handle<Promise>::from_promise(*this));
}
inline Task<void> detail::Promise<void>::get_return_object() noexcept {
  return Task<void>(std::coroutine_handle<Promise>::from_promise(*this));
}

// co_await current_context(): the running task's Context, without suspending.
class ContextAwaiter {
 public:
  bool await_ready() const noexcept { return false; }
  template <class P>
  bool await_suspend(std::coroutine_handle<P> self) noexcept {
    context_ = self.promise().context;
    return false;
  }
  Context await_resume() const noexcept { return context_; }

 private:
  Context context_;
};
inline ContextAwaiter current_context() noexcept { return {}; }

// co_await throw_if_cancelled(): a cancellation point for work that does not wait.
class CancelPoint {
 public:
  bool await_ready() const noexcept { return false; }
  template <class P>
  bool await_suspend(std::coroutine_handle<P> self) noexcept {
    cancelled_ = self.promise().context.cancelled();
    return false;
  }
  void await_resume() const {
    if (cancelled_) throw cancelled_error();
  }

 private:
  bool cancelled_ = false;
};
inline CancelPoint throw_if_cancelled() noexcept { return {}; }

// co_await yield(): lets everything else that is ready run first. Also a cancellation point.
class YieldAwaiter {
 public:
  bool await_ready() const noexcept { return false; }
  template <class P>
  void await_suspend(std::coroutine_handle<P> self) {
    context_ = self.promise().context;
    context_.queue->post(self);
  }
  void await_resume() const {
    if (context_.cancelled()) throw cancelled_error();
  }

 private:
  Context context_;
};
inline YieldAwaiter yield() noexcept { return {}; }

// Awaits a task beneath another cancel source (null: shielded from every cancellation).
template <class T>
class InContext {
 public:
  InContext(Task<T> task, CancelSource* cancel) noexcept : task_(std::move(task)), cancel_(cancel) {}
  bool await_ready() const noexcept { return false; }
  template <class P>
  std::coroutine_handle<> await_suspend(std::coroutine_handle<P> parent) noexcept {
    auto& promise = task_.handle().promise();
    promise.context = {parent.promise().context.queue, cancel_};
    promise.continuation = parent;
    return task_.handle();
  }
  T await_resume() { return task_.handle().promise().result(); }

 private:
  Task<T> task_;
  CancelSource* cancel_;
};

// co_await shield(task): runs to its end whatever is cancelled around it. For clean-up; it needs deadlines of its own.
template <class T>
InContext<T> shield(Task<T> task) noexcept {
  return {std::move(task), nullptr};
}
// co_await with_cancel(source, task): `source` should be a child of the current context's source.
template <class T>
InContext<T> with_cancel(CancelSource& source, Task<T> task) noexcept {
  return {std::move(task), &source};
}

}  // namespace rowferry::async
