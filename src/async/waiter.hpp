// Waiter: one suspended coroutine in the wait list of one primitive; the base of every leaf awaitable.
//
// A primitive (Event, Channel, Poll, Timer) derives from it or keeps a List of it. Exactly one of wake() and a
// cancellation happens; both post the coroutine to its queue. If the awaiter dies, it has left every list.
#pragma once

#include <coroutine>

#include "async/task.hpp"

namespace rowferry::async {

class Waiter : public ListNode {
 public:
  Waiter() = default;
  virtual ~Waiter() = default;

  // In await_suspend. False: cancelled already, do not suspend (finish() will throw).
  template <class P>
  bool suspend(std::coroutine_handle<P> self) noexcept {
    context_ = self.promise().context;
    handle_ = self;
    if (context_.cancelled()) {
      cancelled_ = true;
      return false;
    }
    if (context_.cancel != nullptr) context_.cancel->listen(hook_);
    return true;
  }
  // Makes the coroutine ready. The caller has the condition fulfilled already. Only once, only while suspended.
  void wake() {
    unlink();
    hook_.unlink();
    context_.queue->post(std::exchange(handle_, nullptr));
  }
  // In await_resume: throws when the wait was cancelled.
  void finish() const {
    if (cancelled_) throw cancelled_error();
  }
  bool was_cancelled() const noexcept { return cancelled_; }

 protected:
  // Called before the coroutine of a cancelled wait is made ready; stop timers and the like here.
  virtual void abandoned() noexcept {}

 private:
  class Hook final : public CancelListener {
   public:
    explicit Hook(Waiter& owner) : owner_(owner) {}
    void on_cancel() noexcept override {
      owner_.cancelled_ = true;
      owner_.unlink();
      owner_.abandoned();
      owner_.context_.queue->post(std::exchange(owner_.handle_, nullptr));
    }

   private:
    Waiter& owner_;
  };

  Hook hook_{*this};
  Context context_;
  std::coroutine_handle<> handle_;
  bool cancelled_ = false;
};

// A flag that is set once (or reset by its owner); wait() passes while it is set.
class Event {
 public:
  void set();
  void reset() noexcept { set_ = false; }
  bool is_set() const noexcept { return set_; }

  class Wait : public Waiter {
   public:
    explicit Wait(Event& event) : event_(event) {}
    bool await_ready() const noexcept { return event_.set_; }
    template <class P>
    bool await_suspend(std::coroutine_handle<P> self) {
      if (!suspend(self)) return false;
      event_.waiters_.push_back(*this);
      return true;
    }
    void await_resume() const { finish(); }

   private:
    Event& event_;
  };
  Wait wait() { return Wait(*this); }

 private:
  bool set_ = false;
  List<Waiter> waiters_;
};

// Units (bytes, sessions) that are taken and given back; first come, first served.
// A request larger than the whole is granted when everything is free, so that one huge item can always pass.
class Budget {
 public:
  explicit Budget(std::size_t units)
      : free_(static_cast<std::int64_t>(units)), total_(static_cast<std::int64_t>(units)) {}

  class Acquire : public Waiter {
   public:
    Acquire(Budget& budget, std::size_t units) : budget_(budget), units_(static_cast<std::int64_t>(units)) {}
    bool await_ready() noexcept { return budget_.waiters_.empty() && budget_.try_take(units_); }
    template <class P>
    bool await_suspend(std::coroutine_handle<P> self) {
      if (!suspend(self)) return false;
      budget_.waiters_.push_back(*this);
      return true;
    }
    void await_resume() { finish(); }

   private:
    friend class Budget;
    void abandoned() noexcept override { budget_.grant(); }
    Budget& budget_;
    std::int64_t units_;
  };
  Acquire acquire(std::size_t units) { return {*this, units}; }
  bool try_acquire(std::size_t units) noexcept {
    return waiters_.empty() && try_take(static_cast<std::int64_t>(units));
  }
  void release(std::size_t units);

  std::size_t total() const noexcept { return static_cast<std::size_t>(total_); }
  std::size_t used() const noexcept { return static_cast<std::size_t>(total_ - free_); }

 private:
  bool try_take(std::int64_t units) noexcept;
  void grant() noexcept;

  std::int64_t free_;
  std::int64_t total_;
  List<Acquire> waiters_;
};

}  // namespace rowferry::async
