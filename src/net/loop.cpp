#include "net/loop.hpp"

#include <fmt/format.h>

#include "base/limits.hpp"

namespace rowferry::net {

namespace {

void check(int code, const char* what) {
  if (code < 0) throw Error(Category::internal, "libuv", fmt::format("{}: {}", what, uv_strerror(code)));
}

template <class H>
uv_handle_t* as_handle(H* handle) {
  return reinterpret_cast<uv_handle_t*>(handle);
}

}  // namespace

Loop::Loop() {
  check(uv_loop_init(&uv_), "uv_loop_init");
  uv_prepare_init(&uv_, &prepare_);
  uv_check_init(&uv_, &check_);
  uv_idle_init(&uv_, &idle_);
  prepare_.data = check_.data = idle_.data = this;
  uv_prepare_start(&prepare_, on_prepare);
  uv_check_start(&check_, on_check);
}

Loop::~Loop() {
  uv_close(as_handle(&prepare_), nullptr);
  uv_close(as_handle(&check_), nullptr);
  uv_close(as_handle(&idle_), nullptr);
  // Handles of others free themselves in their close callbacks; abandoned jobs end by themselves.
  while (uv_run(&uv_, UV_RUN_DEFAULT) != 0) {
  }
  uv_loop_close(&uv_);
}

void Loop::run_while(const std::function<bool()>& wanted) {
  wanted_ = &wanted;
  while (wanted()) {
    if (!queue_.empty()) uv_idle_start(&idle_, [](uv_idle_t*) {});
    uv_run(&uv_, UV_RUN_ONCE);
  }
  wanted_ = nullptr;
}

// Coroutines that timers made ready run before the poll, those that I/O made ready after it.
void Loop::on_prepare(uv_prepare_t* handle) {
  auto* loop = static_cast<Loop*>(handle->data);
  loop->drain();
  // What ran just now may have been the last of it: then the poll must not block.
  if (loop->wanted_ != nullptr && !(*loop->wanted_)()) uv_idle_start(&loop->idle_, [](uv_idle_t*) {});
  const auto now = std::chrono::steady_clock::now();
  if (loop->turn_began_.time_since_epoch().count() != 0) {
    loop->longest_turn_ = std::max<std::chrono::nanoseconds>(loop->longest_turn_, now - loop->turn_began_);
  }
}

void Loop::on_check(uv_check_t* handle) {
  auto* loop = static_cast<Loop*>(handle->data);
  loop->turn_began_ = std::chrono::steady_clock::now();
  loop->drain();
}

void Loop::drain() {
  if (!queue_.empty()) queue_.run_for(limits::loop_drain_slice);
  if (queue_.empty()) {
    uv_idle_stop(&idle_);
  } else {
    uv_idle_start(&idle_, [](uv_idle_t*) {});
  }
}

// libuv frees handle memory only in or after the close callback: a timer is a heap block that frees itself there.
struct Sleep::Timer {
  uv_timer_t uv{};
  Sleep* owner = nullptr;
};

void Sleep::start() {
  timer_ = new Timer{.uv = {}, .owner = this};
  uv_timer_init(loop_.uv(), &timer_->uv);
  timer_->uv.data = timer_;
  uv_update_time(loop_.uv());
  uv_timer_start(
      &timer_->uv,
      [](uv_timer_t* handle) {
        Sleep* owner = static_cast<Timer*>(handle->data)->owner;
        owner->abandoned();
        owner->wake();
      },
      static_cast<std::uint64_t>(std::max<std::int64_t>(0, time_.count())), 0);
}

void Sleep::abandoned() noexcept {
  Timer* timer = std::exchange(timer_, nullptr);
  if (timer == nullptr) return;
  uv_close(as_handle(&timer->uv), [](uv_handle_t* handle) { delete static_cast<Timer*>(handle->data); });
}

struct DeadlineTimer::Timer {
  uv_timer_t uv{};
  DeadlineTimer* owner = nullptr;
  async::CancelSource* target = nullptr;
};

DeadlineTimer::DeadlineTimer(Loop& loop, milliseconds time, async::CancelSource& target)
    : timer_(new Timer{.uv = {}, .owner = this, .target = &target}) {
  uv_timer_init(loop.uv(), &timer_->uv);
  timer_->uv.data = timer_;
  uv_update_time(loop.uv());
  uv_timer_start(
      &timer_->uv,
      [](uv_timer_t* handle) {
        auto* timer = static_cast<Timer*>(handle->data);
        timer->owner->expired_ = true;
        timer->target->cancel();
      },
      static_cast<std::uint64_t>(std::max<std::int64_t>(0, time.count())), 0);
}

DeadlineTimer::~DeadlineTimer() {
  uv_close(as_handle(&timer_->uv), [](uv_handle_t* handle) { delete static_cast<Timer*>(handle->data); });
}

Error deadline_error(milliseconds time, std::string_view what) {
  return Error(Category::timeout, "timeout", fmt::format("{} took longer than {} ms", what, time.count()));
}

struct OffloadWait::Job {
  uv_work_t uv{};
  OffloadWait* owner = nullptr;  // null once abandoned
  std::function<void()> work;
  std::exception_ptr error;
};

void OffloadWait::start() {
  job_ = new Job{.uv = {}, .owner = this, .work = std::move(work_), .error = nullptr};
  job_->uv.data = job_;
  uv_queue_work(
      loop_.uv(), &job_->uv,
      [](uv_work_t* request) {
        auto* job = static_cast<Job*>(request->data);
        try {
          job->work();
        } catch (...) {
          job->error = std::current_exception();
        }
      },
      [](uv_work_t* request, int) {
        const std::unique_ptr<Job> job(static_cast<Job*>(request->data));
        if (job->owner == nullptr) return;
        job->owner->job_ = nullptr;
        job->owner->error_ = std::move(job->error);
        job->owner->wake();
      });
}

void OffloadWait::abandoned() noexcept {
  Job* job = std::exchange(job_, nullptr);
  if (job == nullptr) return;
  job->owner = nullptr;
  // Not started yet: libuv calls the completion with UV_ECANCELED, which frees the job.
  uv_cancel(reinterpret_cast<uv_req_t*>(&job->uv));
}

void OffloadWait::await_resume() {
  finish();
  if (error_) std::rethrow_exception(error_);
}

}  // namespace rowferry::net
