#include <criterion/criterion.h>

#include <vector>

#include "async/waiter.hpp"
#include "tests/async/driver.hpp"
#include "tests/support/expect.hpp"

using namespace rowferry;
using async::Event;
using async::ReadyQueue;
using async::Scope;
using async::Task;

namespace {

Task<void> waits(Event* event, int* ended) {
  try {
    co_await event->wait();
  } catch (...) {
    ++*ended;
    throw;
  }
  ++*ended;
}

Task<void> fails_after(Event* event, const char* code) {
  co_await event->wait();
  throw Error(Category::data, code, "boom");
}

// Fails with its own error when it is cancelled.
Task<void> complains_when_cancelled(Event* event, const char* code) {
  try {
    co_await event->wait();
  } catch (const Error&) {
    throw Error(Category::data, code, "because of the cancellation");
  }
}

struct Parts {
  Event a;
  Event b;
  int ended = 0;
};

Task<void> two_waits(Parts* parts) {
  Scope scope(co_await async::current_context());
  scope.spawn(waits(&parts->a, &parts->ended));
  scope.spawn(waits(&parts->b, &parts->ended));
  co_await scope.join();
}

Task<void> one_fails(Parts* parts) {
  Scope scope(co_await async::current_context());
  scope.spawn(fails_after(&parts->a, "first"));
  scope.spawn(waits(&parts->b, &parts->ended));
  co_await scope.join();
}

Task<void> two_fail(Parts* parts) {
  Scope scope(co_await async::current_context());
  scope.spawn(fails_after(&parts->a, "first"));
  scope.spawn(complains_when_cancelled(&parts->b, "second"));
  co_await scope.join();
}

Task<void> cancelled_then_complains(Parts* parts) {
  Scope scope(co_await async::current_context());
  scope.spawn(waits(&parts->a, &parts->ended));
  scope.spawn(complains_when_cancelled(&parts->b, "reason"));
  scope.cancel();
  co_await scope.join();
}

Task<void> ends_two_waits(Parts* parts) {
  Scope scope(co_await async::current_context());
  scope.spawn(waits(&parts->a, &parts->ended));
  scope.spawn(waits(&parts->b, &parts->ended));
  co_await scope.end();
}

Task<void> ends_one_that_complains(Parts* parts) {
  Scope scope(co_await async::current_context());
  scope.spawn(waits(&parts->a, &parts->ended));
  scope.spawn(complains_when_cancelled(&parts->b, "reason"));
  co_await scope.end();
}

Task<void> joins_twice(Parts* parts) {
  Scope scope(co_await async::current_context());
  scope.spawn(waits(&parts->a, &parts->ended));
  co_await scope.join();
  scope.spawn(waits(&parts->b, &parts->ended));
  co_await scope.join();
}

Task<void> joins_nothing() {
  Scope scope(co_await async::current_context());
  co_await scope.join();
}

Task<void> all(Parts* parts) {
  std::vector<Task<void>> tasks;
  tasks.push_back(waits(&parts->a, &parts->ended));
  tasks.push_back(fails_after(&parts->b, "first"));
  co_await async::when_all(std::move(tasks));
}

Task<void> grandchildren(Parts* parts) {
  Scope scope(co_await async::current_context());
  scope.spawn(two_waits(parts));
  co_await scope.join();
}

}  // namespace

Test(scope, joins_when_the_last_child_has_ended) {
  ReadyQueue queue;
  Parts parts;
  test::Run<void> run(queue, two_waits(&parts));
  cr_expect(!run.done());
  parts.a.set();
  cr_expect(!run.done());
  cr_expect_eq(parts.ended, 1);
  parts.b.set();
  cr_expect(run.done());
  cr_expect_eq(parts.ended, 2);
}

Test(scope, the_first_error_cancels_the_others_and_is_thrown) {
  ReadyQueue queue;
  Parts parts;
  test::Run<void> run(queue, one_fails(&parts));
  cr_expect(!run.done());
  parts.a.set();
  EXPECT_TEXT(run.failure(), "first");
  cr_expect_eq(parts.ended, 1, "the other heard of it");
}

Test(scope, later_errors_do_not_replace_the_first) {
  ReadyQueue queue;
  Parts parts;
  test::Run<void> run(queue, two_fail(&parts));
  cr_expect(!run.done());
  parts.a.set();
  EXPECT_TEXT(run.failure(), "first");
}

Test(scope, a_cancellation_is_not_the_reason_when_there_is_another) {
  ReadyQueue queue;
  Parts parts;
  test::Run<void> run(queue, cancelled_then_complains(&parts));
  EXPECT_TEXT(run.failure(), "reason");
}

Test(scope, cancelling_the_parent_ends_children_before_join_throws) {
  ReadyQueue queue;
  Parts parts;
  test::Run<void> run(queue, grandchildren(&parts));
  cr_expect(!run.done());
  run.cancel();
  EXPECT_TEXT(run.failure(), "cancelled");
  cr_expect_eq(parts.ended, 2);
}

Test(scope, end_waits_for_the_cancelled_and_takes_that_for_no_error) {
  ReadyQueue queue;
  Parts parts;
  test::Run<void> run(queue, ends_two_waits(&parts));
  EXPECT_TEXT(run.failure(), "");
  cr_expect_eq(parts.ended, 2);
}

Test(scope, end_throws_what_is_not_a_cancellation) {
  ReadyQueue queue;
  Parts parts;
  test::Run<void> run(queue, ends_one_that_complains(&parts));
  EXPECT_TEXT(run.failure(), "reason");
  cr_expect_eq(parts.ended, 1);
}

Test(scope, may_be_joined_again_after_further_spawns) {
  ReadyQueue queue;
  Parts parts;
  test::Run<void> run(queue, joins_twice(&parts));
  cr_expect(!run.done());
  parts.a.set();
  cr_expect(!run.done());
  parts.b.set();
  EXPECT_TEXT(run.failure(), "");
}

Test(scope, nothing_to_join_is_no_wait) {
  ReadyQueue queue;
  test::Run<void> run(queue, joins_nothing());
  EXPECT_TEXT(run.failure(), "");
}

Test(scope, when_all_waits_for_every_task) {
  ReadyQueue queue;
  Parts parts;
  test::Run<void> run(queue, all(&parts));
  cr_expect(!run.done());
  parts.b.set();
  EXPECT_TEXT(run.failure(), "first");
  cr_expect_eq(parts.ended, 1);
}
