#include <criterion/criterion.h>

#include <memory>
#include <vector>

#include "async/waiter.hpp"
#include "tests/async/driver.hpp"
#include "tests/support/expect.hpp"

using namespace rowferry;
using async::Budget;
using async::Event;
using async::ReadyQueue;
using async::Task;

namespace {

Task<void> waits(Event* event) { co_await event->wait(); }
Task<void> acquires(Budget* budget, std::size_t units, std::vector<std::size_t>* order) {
  co_await budget->acquire(units);
  order->push_back(units);
}

}  // namespace

Test(event, wakes_everybody_and_stays_set_until_reset) {
  ReadyQueue queue;
  Event event;
  test::Run<void> one(queue, waits(&event));
  test::Run<void> two(queue, waits(&event));
  cr_expect(!one.done());
  event.set();
  event.set();
  cr_expect(one.done());
  cr_expect(two.done());
  test::Run<void> later(queue, waits(&event));
  cr_expect(later.done());
  event.reset();
  test::Run<void> last(queue, waits(&event));
  cr_expect(!last.done());
  last.cancel();
  EXPECT_TEXT(last.failure(), "cancelled");
}

Test(budget, grants_what_is_free_and_takes_it_back) {
  ReadyQueue queue;
  Budget budget(10);
  std::vector<std::size_t> order;
  test::Run<void> first(queue, acquires(&budget, 6, &order));
  cr_expect(first.done());
  cr_expect_eq(budget.used(), 6);
  cr_expect(budget.try_acquire(4));
  cr_expect(!budget.try_acquire(1));
  test::Run<void> second(queue, acquires(&budget, 5, &order));
  cr_expect(!second.done());
  budget.release(4);
  cr_expect(!second.done());
  budget.release(6);
  cr_expect(second.done());
  cr_expect_eq(budget.used(), 5);
}

Test(budget, is_first_come_first_served) {
  ReadyQueue queue;
  Budget budget(10);
  std::vector<std::size_t> order;
  cr_expect(budget.try_acquire(8));
  test::Run<void> large(queue, acquires(&budget, 9, &order));
  test::Run<void> small(queue, acquires(&budget, 1, &order));
  cr_expect(!large.done());
  cr_expect(!small.done(), "a small one does not overtake a large one that waits");
  cr_expect(!budget.try_acquire(1), "nor does one that would not wait");
  budget.release(8);
  cr_expect(large.done());
  cr_expect(small.done());
  cr_expect(order == std::vector<std::size_t>({9, 1}));
}

Test(budget, a_request_larger_than_the_whole_passes_when_all_is_free) {
  ReadyQueue queue;
  Budget budget(10);
  std::vector<std::size_t> order;
  cr_expect(budget.try_acquire(1));
  test::Run<void> huge(queue, acquires(&budget, 100, &order));
  cr_expect(!huge.done());
  budget.release(1);
  cr_expect(huge.done());
  cr_expect(!budget.try_acquire(1));
  budget.release(100);
  cr_expect_eq(budget.used(), 0);
}

Test(budget, a_cancelled_wait_makes_room_for_the_next) {
  ReadyQueue queue;
  Budget budget(10);
  std::vector<std::size_t> order;
  cr_expect(budget.try_acquire(8));
  test::Run<void> large(queue, acquires(&budget, 9, &order));
  test::Run<void> small(queue, acquires(&budget, 2, &order));
  cr_expect(!small.done());
  large.cancel();
  EXPECT_TEXT(large.failure(), "cancelled");
  cr_expect(small.done());
  cr_expect_eq(budget.used(), 10);
}
