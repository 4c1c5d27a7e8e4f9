#include <criterion/criterion.h>

#include <memory>
#include <vector>

#include "async/waiter.hpp"
#include "tests/async/driver.hpp"
#include "tests/support/expect.hpp"

using namespace rowferry;
using async::Event;
using async::ReadyQueue;
using async::Task;

namespace {

Task<int> number(int value) { co_return value; }
Task<void> fails(const char* code) {
  throw Error(Category::data, code, "boom");
  co_return;
}

Task<int> adds() {
  int sum = 0;
  for (int i = 0; i < 10; ++i) sum += co_await number(i);
  co_return sum;
}

// The patterns that GCC before 13 gets wrong.
Task<int> conditions() {
  if (co_await number(1) == 1) {
    int turns = 0;
    while (co_await number(turns) < 3) ++turns;
    co_return turns == 3 ? co_await number(42) : 0;
  }
  co_return -1;
}

Task<std::uint64_t> many(std::uint64_t times) {
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < times; ++i) sum += static_cast<std::uint64_t>(co_await number(1));
  co_return sum;
}

Task<int> deep(int level) {
  if (level == 0) co_return 0;
  co_return 1 + co_await deep(level - 1);
}

Task<void> waits(Event* event) { co_await event->wait(); }

Task<std::string> catches() {
  try {
    co_await fails("inner");
  } catch (const Error& error) {
    co_return error.code();
  }
  co_return "nothing";
}

Task<std::unique_ptr<int>> move_only() { co_return std::make_unique<int>(5); }

struct Mark {
  explicit Mark(std::vector<int>& log, int id) : log_(log), id_(id) {}
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;
  ~Mark() { log_.push_back(id_); }
  std::vector<int>& log_;
  int id_;
};

Task<void> marked(std::vector<int>* log, int id) {
  const Mark mark(*log, id);
  co_await async::yield();
}

Task<void> ordered(std::vector<int>* log) {
  co_await marked(log, 1);
  log->push_back(2);
}

Task<void> yields(std::vector<int>* log, int id) {
  for (int i = 0; i < 2; ++i) {
    log->push_back(id);
    co_await async::yield();
  }
}

Task<void> point() { co_await async::throw_if_cancelled(); }

Task<void> cleans_up(Event* never, Event* cleaned, bool* ended) {
  std::exception_ptr error;
  try {
    co_await never->wait();
  } catch (...) {
    error = std::current_exception();
  }
  co_await async::shield(waits(cleaned));
  *ended = true;
  std::rethrow_exception(error);
}

Task<void> beneath(async::CancelSource* source, Event* event) { co_await async::with_cancel(*source, waits(event)); }

}  // namespace

Test(task, awaits_and_gives_results) {
  ReadyQueue queue;
  cr_expect_eq(async::run_until_done(queue, adds()), 45);
  cr_expect_eq(async::run_until_done(queue, conditions()), 42);
  cr_expect_eq(*async::run_until_done(queue, move_only()), 5);
}

Test(task, is_lazy) {
  bool began = false;
  const auto task = [](bool* flag) -> Task<void> {
    *flag = true;
    co_return;
  }(&began);
  cr_expect(!began);
}

Test(task, a_million_synchronous_awaits_need_no_stack) {
  ReadyQueue queue;
  cr_expect_eq(async::run_until_done(queue, many(1'000'000)), 1'000'000);
}

Test(task, ten_thousand_levels_unwind) {
  ReadyQueue queue;
  cr_expect_eq(async::run_until_done(queue, deep(10'000)), 10'000);
}

Test(task, exceptions_pass_through_awaits) {
  ReadyQueue queue;
  EXPECT_TEXT(async::run_until_done(queue, catches()), "inner");
  EXPECT_ERROR(async::run_until_done(queue, fails("outer")), "outer");
}

Test(task, is_pending_until_what_it_waits_for_happens) {
  ReadyQueue queue;
  Event event;
  test::Run<void> run(queue, waits(&event));
  cr_expect(!run.done());
  event.set();
  cr_expect(run.done());
  EXPECT_TEXT(run.failure(), "");
}

Test(task, a_stuck_task_is_an_error_without_a_loop) {
  ReadyQueue queue;
  Event event;
  bool stuck = false;
  try {
    async::run_until_done(queue, waits(&event));
  } catch (const std::logic_error&) {
    stuck = true;
  }
  cr_expect(stuck);
}

Test(task, locals_die_before_the_awaiter_goes_on) {
  ReadyQueue queue;
  std::vector<int> log;
  async::run_until_done(queue, ordered(&log));
  cr_expect(log == std::vector<int>({1, 2}));
}

Test(task, yield_lets_others_run_in_turn) {
  ReadyQueue queue;
  std::vector<int> log;
  test::Run<void> first(queue, yields(&log, 1));
  test::Run<void> second(queue, yields(&log, 2));
  cr_expect(first.done());
  cr_expect(second.done());
  cr_expect(log == std::vector<int>({1, 2, 1, 2}));
}

Test(cancel, ends_a_wait_at_once) {
  ReadyQueue queue;
  Event event;
  test::Run<void> run(queue, waits(&event));
  cr_expect(!run.done());
  run.cancel();
  EXPECT_TEXT(run.failure(), "cancelled");
}

Test(cancel, before_the_start_ends_the_first_wait) {
  ReadyQueue queue;
  Event event;
  test::Run<void> run(queue, waits(&event));
  run.cancel();
  EXPECT_TEXT(run.failure(), "cancelled");
}

Test(cancel, does_not_undo_what_has_happened_already) {
  ReadyQueue queue;
  Event event;
  test::Run<void> run(queue, waits(&event));
  cr_expect(!run.done());
  event.set();
  run.cancel();
  EXPECT_TEXT(run.failure(), "");  // woken first: the wait has succeeded
}

Test(cancel, a_set_event_is_no_wait) {
  ReadyQueue queue;
  Event event;
  event.set();
  test::Run<void> run(queue, waits(&event));
  run.cancel();
  EXPECT_TEXT(run.failure(), "");
}

Test(cancel, points_and_yields_notice) {
  ReadyQueue queue;
  std::vector<int> log;
  test::Run<void> at_point(queue, point());
  test::Run<void> at_yield(queue, yields(&log, 1));
  at_point.cancel();
  at_yield.cancel();
  EXPECT_TEXT(at_point.failure(), "cancelled");
  EXPECT_TEXT(at_yield.failure(), "cancelled");
}

Test(cancel, a_shielded_clean_up_runs_to_its_end) {
  ReadyQueue queue;
  Event never;
  Event cleaned;
  bool ended = false;
  test::Run<void> run(queue, cleans_up(&never, &cleaned, &ended));
  cr_expect(!run.done());
  run.cancel();
  cr_expect(!run.done(), "it waits for its clean-up");
  run.cancel();
  cr_expect(!run.done(), "a second cancellation changes nothing");
  cleaned.set();
  EXPECT_TEXT(run.failure(), "cancelled");
  cr_expect(ended);
}

Test(cancel, of_an_inner_source_leaves_the_outer_alone) {
  ReadyQueue queue;
  Event event;
  async::CancelSource outer;
  async::CancelSource inner(&outer);
  test::Run<void> run(queue, beneath(&inner, &event));
  cr_expect(!run.done());
  inner.cancel();
  EXPECT_TEXT(run.failure(), "cancelled");
  cr_expect(!outer.cancelled());
}

Test(cancel, reaches_children_made_before_and_after) {
  async::CancelSource parent;
  async::CancelSource before(&parent);
  async::CancelSource grandchild(&before);
  parent.cancel();
  async::CancelSource after(&parent);
  cr_expect(before.cancelled());
  cr_expect(grandchild.cancelled());
  cr_expect(after.cancelled());
}

namespace {

Task<void> always_ready(int turns) {
  for (int i = 0; i < turns; ++i) co_await async::yield();
}

}  // namespace

Test(ready_queue, stays_small_while_it_never_runs_empty) {
  ReadyQueue queue;
  Task<void> a = always_ready(100'000);
  Task<void> b = always_ready(100'000);
  for (Task<void>* task : {&a, &b}) {
    task->handle().promise().context = {&queue, nullptr};
    queue.post(task->handle());
  }
  std::size_t most = 0;
  while (queue.run_one()) most = std::max(most, queue.slots());
  cr_expect(a.handle().done() && b.handle().done());
  cr_expect_lt(most, 2048, "%zu slots for two tasks", most);
}
