#include <criterion/criterion.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "async/scope.hpp"
#include "async/waiter.hpp"
#include "net/poll.hpp"
#include "tests/support/expect.hpp"

using namespace rowferry;
using async::Task;
using net::Loop;
using net::milliseconds;
using std::chrono::steady_clock;

namespace {

double seconds_since(steady_clock::time_point began) {
  return std::chrono::duration<double>(steady_clock::now() - began).count();
}

Task<int> at_once() { co_return 7; }
Task<int> after_yields(int times) {
  for (int i = 0; i < times; ++i) co_await async::yield();
  co_return times;
}
Task<void> sleeps(Loop* loop, milliseconds time) { co_await net::sleep_for(*loop, time); }
Task<void> sleeps_and_logs(Loop* loop, milliseconds time, std::vector<int>* log) {
  co_await net::sleep_for(*loop, time);
  log->push_back(static_cast<int>(time.count()));
}
Task<void> sorted_sleeps(Loop* loop, std::vector<int>* log) {
  std::vector<Task<void>> tasks;
  for (const int time : {30, 5, 15}) tasks.push_back(sleeps_and_logs(loop, milliseconds(time), log));
  co_await async::when_all(std::move(tasks));
}
Task<void> cancels_after(Loop* loop, milliseconds time, async::CancelSource* source) {
  co_await net::sleep_for(*loop, time);
  source->cancel();
}
Task<void> beneath(async::CancelSource* source, Task<void> task) {
  co_await async::with_cancel(*source, std::move(task));
}
Task<void> cancelled_sleep(Loop* loop) {
  async::CancelSource source;
  async::Scope scope(co_await async::current_context());
  scope.spawn(cancels_after(loop, milliseconds(5), &source));
  scope.spawn(beneath(&source, sleeps(loop, milliseconds(60'000))));
  co_await scope.join();
}

// --- deadlines

Task<int> in_time(Loop* loop) { co_return co_await net::with_deadline(*loop, milliseconds(60'000), "work", at_once()); }
Task<void> too_late(Loop* loop) {
  co_await net::with_deadline(*loop, milliseconds(5), "waiting for the moon", sleeps(loop, milliseconds(60'000)));
}
Task<int> goes_on_when_cancelled(Loop* loop) {
  try {
    co_await net::sleep_for(*loop, milliseconds(60'000));
  } catch (const Error&) {
    co_return 9;
  }
  co_return 0;
}
Task<int> late_but_well(Loop* loop) {
  co_return co_await net::with_deadline(*loop, milliseconds(5), "work", goes_on_when_cancelled(loop));
}
Task<void> fails() {
  throw Error(Category::data, "own", "boom");
  co_return;
}
Task<void> fails_in_time(Loop* loop) { co_await net::with_deadline(*loop, milliseconds(60'000), "work", fails()); }
Task<void> cancelled_outside(Loop* loop) {
  async::CancelSource source;
  async::Scope scope(co_await async::current_context());
  scope.spawn(cancels_after(loop, milliseconds(5), &source));
  scope.spawn(
      beneath(&source, net::with_deadline(*loop, milliseconds(60'000), "work", sleeps(loop, milliseconds(60'000)))));
  co_await scope.join();
}
Task<void> inner_first(Loop* loop) {
  co_await net::with_deadline(*loop, milliseconds(60'000), "outer", too_late(loop));
}
Task<void> outer_first(Loop* loop) {
  co_await net::with_deadline(
      *loop, milliseconds(5), "outer",
      net::with_deadline(*loop, milliseconds(60'000), "inner", sleeps(loop, milliseconds(60'000))));
}

// --- the thread pool

struct Gate {
  std::mutex mutex;
  std::condition_variable changed;
  bool open = false;
  std::atomic<bool> entered{false};
  std::atomic<bool> passed{false};
  void wait() {
    entered = true;
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return open; });
    passed = true;
  }
  void release() {
    const std::lock_guard lock(mutex);
    open = true;
    changed.notify_all();
  }
};

Task<std::thread::id> where(Loop* loop) {
  co_return co_await net::offload(*loop, [] { return std::this_thread::get_id(); });
}
Task<void> throws_elsewhere(Loop* loop) {
  co_await net::offload(*loop, [] { throw Error(Category::data, "elsewhere", "boom"); });
}
Task<void> passes_gate(Loop* loop, std::shared_ptr<Gate> gate) {
  co_await net::offload(*loop, [gate] { gate->wait(); });
}
Task<void> abandoned_work(Loop* loop, std::shared_ptr<Gate> gate) {
  async::Scope scope(co_await async::current_context());
  scope.spawn(passes_gate(loop, gate));
  // Work that no thread has taken yet would be taken back, and not abandoned.
  while (!gate->entered) co_await net::sleep_for(*loop, milliseconds(1));
  co_await scope.end();
}

// --- Poll

class EventFd {
 public:
  EventFd() : fd(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}
  EventFd(const EventFd&) = delete;
  EventFd& operator=(const EventFd&) = delete;
  ~EventFd() { ::close(fd); }
  void signal() const { eventfd_write(fd, 1); }
  void clear() const {
    eventfd_t value = 0;
    eventfd_read(fd, &value);
  }
  const int fd;
};

Task<void> polls(net::Poll* poll, net::Ready wanted, int* count) {
  const net::Ready got = co_await poll->wait(wanted);
  if ((got & wanted) != net::Ready::none) ++*count;
}
Task<void> signal_later(Loop* loop, const EventFd* event) {
  co_await net::sleep_for(*loop, milliseconds(10));
  event->signal();
}
Task<void> polled_readable(Loop* loop, net::Poll* poll, const EventFd* event, int* count) {
  async::Scope scope(co_await async::current_context());
  scope.spawn(polls(poll, net::Ready::readable, count));
  scope.spawn(polls(poll, net::Ready::readable, count));
  co_await net::sleep_for(*loop, milliseconds(20));
  cr_expect_eq(*count, 0, "still pending while nothing is readable");
  event->signal();
  co_await scope.join();
}
Task<void> polled_twice(Loop* loop, net::Poll* poll, const EventFd* event, int* count) {
  for (int i = 0; i < 2; ++i) {
    async::Scope scope(co_await async::current_context());
    scope.spawn(signal_later(loop, event));
    scope.spawn(polls(poll, net::Ready::readable, count));
    co_await scope.join();
    event->clear();
  }
}
Task<void> unwanted_events(Loop* loop, net::Poll* poll, const EventFd* event, int* turns) {
  event->signal();
  int ignored = 0;
  co_await polls(poll, net::Ready::readable, &ignored);
  // Nobody waits now, and the descriptor stays readable: the loop must sleep all the same.
  const auto began = steady_clock::now();
  uv_prepare_t counter;
  uv_prepare_init(loop->uv(), &counter);
  counter.data = turns;
  uv_prepare_start(&counter, [](uv_prepare_t* handle) { ++*static_cast<int*>(handle->data); });
  co_await net::sleep_for(*loop, milliseconds(30));
  cr_expect_geq(seconds_since(began), 0.02);
  async::Event closed;
  counter.data = &closed;
  uv_close(reinterpret_cast<uv_handle_t*>(&counter),
           [](uv_handle_t* handle) { static_cast<async::Event*>(handle->data)->set(); });
  co_await closed.wait();
}
Task<void> cancelled_poll(Loop* loop, net::Poll* poll, int* count) {
  co_await net::with_deadline(*loop, milliseconds(5), "readable", polls(poll, net::Ready::readable, count));
}

}  // namespace

Test(loop, runs_a_task_that_never_waits, .timeout = 10) {
  Loop loop;
  cr_expect_eq(loop.run(at_once()), 7);
  cr_expect_eq(loop.run(after_yields(1000)), 1000);
}

// What a timer's callback makes ready runs right before the poll: it must not block when that was the last of it.
Test(loop, ends_when_a_callback_before_the_poll_ends_the_task, .timeout = 10) {
  Loop loop;
  async::Event event;
  uv_timer_t timer;
  uv_timer_init(loop.uv(), &timer);
  timer.data = &event;
  uv_timer_start(&timer, [](uv_timer_t* handle) { static_cast<async::Event*>(handle->data)->set(); }, 20, 0);
  loop.run([](async::Event* of) -> Task<void> { co_await of->wait(); }(&event));
  cr_expect(event.is_set());
  uv_close(reinterpret_cast<uv_handle_t*>(&timer), nullptr);
}

Test(loop, throws_what_the_task_throws, .timeout = 10) {
  Loop loop;
  EXPECT_ERROR(loop.run(fails()), "own");
}

Test(loop, measures_its_longest_turn, .timeout = 10) {
  Loop loop;
  loop.run(sleeps(&loop, milliseconds(2)));
  loop.reset_longest_turn();
  loop.run([](Loop* on) -> Task<void> {
    co_await net::sleep_for(*on, milliseconds(2));
    const auto until = steady_clock::now() + milliseconds(20);
    while (steady_clock::now() < until) {
    }
    co_await net::sleep_for(*on, milliseconds(2));
  }(&loop));
  cr_expect_geq(loop.longest_turn().count(), 15'000'000);
}

Test(loop, a_cancelled_root_ends, .timeout = 10) {
  Loop loop;
  async::CancelSource source;
  source.cancel();
  EXPECT_ERROR(loop.run(sleeps(&loop, milliseconds(60'000)), &source), "cancelled");
}

Test(sleep, wakes_in_the_order_of_times, .timeout = 10) {
  Loop loop;
  std::vector<int> log;
  const auto began = steady_clock::now();
  loop.run(sorted_sleeps(&loop, &log));
  cr_expect(log == std::vector<int>({5, 15, 30}));
  cr_expect_geq(seconds_since(began), 0.029);
}

Test(sleep, a_negative_time_is_none, .timeout = 10) {
  Loop loop;
  loop.run(sleeps(&loop, milliseconds(-5)));
}

Test(sleep, ends_at_once_when_cancelled, .timeout = 10) {
  Loop loop;
  const auto began = steady_clock::now();
  EXPECT_ERROR(loop.run(cancelled_sleep(&loop)), "cancelled");
  cr_expect_lt(seconds_since(began), 5);
}

Test(deadline, a_task_in_time_keeps_its_result, .timeout = 10) {
  Loop loop;
  cr_expect_eq(loop.run(in_time(&loop)), 7);
}

Test(deadline, a_late_task_is_cancelled_and_named, .timeout = 10) {
  Loop loop;
  try {
    loop.run(too_late(&loop));
    cr_assert_fail("no error");
  } catch (const Error& error) {
    cr_expect_eq(error.category(), Category::timeout);
    EXPECT_TEXT(error.detail(), "waiting for the moon took longer than 5 ms");
  }
}

Test(deadline, a_late_task_that_ends_well_keeps_its_result, .timeout = 10) {
  Loop loop;
  cr_expect_eq(loop.run(late_but_well(&loop)), 9);
}

Test(deadline, the_tasks_own_error_stays, .timeout = 10) {
  Loop loop;
  EXPECT_ERROR(loop.run(fails_in_time(&loop)), "own");
}

Test(deadline, a_cancellation_from_outside_is_no_timeout, .timeout = 10) {
  Loop loop;
  EXPECT_ERROR(loop.run(cancelled_outside(&loop)), "cancelled");
}

Test(deadline, nested_ones_name_the_one_that_passed, .timeout = 10) {
  Loop loop;
  for (const bool inner : {true, false}) {
    try {
      loop.run(inner ? inner_first(&loop) : outer_first(&loop));
      cr_assert_fail("no error");
    } catch (const Error& error) {
      EXPECT_TEXT(error.detail(), inner ? "waiting for the moon took longer than 5 ms" : "outer took longer than 5 ms");
    }
  }
}

Test(offload, runs_elsewhere_and_gives_its_result_back, .timeout = 10) {
  Loop loop;
  cr_expect(loop.run(where(&loop)) != std::this_thread::get_id());
}

Test(offload, exceptions_come_back, .timeout = 10) {
  Loop loop;
  EXPECT_ERROR(loop.run(throws_elsewhere(&loop)), "elsewhere");
}

Test(offload, a_cancelled_wait_leaves_the_work_to_end_by_itself, .timeout = 10) {
  auto gate = std::make_shared<Gate>();
  {
    Loop loop;
    loop.run(abandoned_work(&loop, gate));
    cr_expect(!gate->passed, "the work is still going on");
    gate->release();
  }
  cr_expect(gate->passed, "the loop waits for its jobs when it dies");
}

Test(poll, wakes_all_that_wait_and_only_then, .timeout = 10) {
  Loop loop;
  const EventFd event;
  int count = 0;
  {
    net::Poll poll(loop, event.fd);
    loop.run(polled_readable(&loop, &poll, &event, &count));
  }
  cr_expect_eq(count, 2);
}

Test(poll, can_be_waited_for_again, .timeout = 10) {
  Loop loop;
  const EventFd event;
  int count = 0;
  net::Poll poll(loop, event.fd);
  loop.run(polled_twice(&loop, &poll, &event, &count));
  cr_expect_eq(count, 2);
}

Test(poll, an_event_that_nobody_waits_for_does_not_spin_the_loop, .timeout = 10) {
  Loop loop;
  const EventFd event;
  int turns = 0;
  net::Poll poll(loop, event.fd);
  loop.run(unwanted_events(&loop, &poll, &event, &turns));
  cr_expect_lt(turns, 10);
}

Test(poll, a_cancelled_wait_leaves_the_poll_usable, .timeout = 10) {
  Loop loop;
  const EventFd event;
  int count = 0;
  net::Poll poll(loop, event.fd);
  EXPECT_ERROR(loop.run(cancelled_poll(&loop, &poll, &count)), "timeout");
  cr_expect_eq(count, 0);
  loop.run(polled_twice(&loop, &poll, &event, &count));
  cr_expect_eq(count, 2);
}
