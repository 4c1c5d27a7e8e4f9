#include <criterion/criterion.h>

#include <memory>
#include <vector>

#include "async/channel.hpp"
#include "tests/async/driver.hpp"
#include "tests/support/expect.hpp"

using namespace rowferry;
using async::ReadyQueue;
using async::Task;
using Items = async::Channel<int>;

namespace {

Task<void> push(Items* to, int item, std::size_t bytes) { co_await to->push(item, bytes); }
Task<std::optional<int>> pop(Items* from) { co_return co_await from->pop(); }

Task<void> push_many(Items* to, int first, int count) {
  for (int i = 0; i < count; ++i) co_await to->push(first + i, 10);
}
Task<void> pop_all(Items* from, std::vector<int>* into) {
  while (const auto item = co_await from->pop()) into->push_back(*item);
}

std::exception_ptr an_error(const char* code) { return std::make_exception_ptr(Error(Category::data, code, "boom")); }

}  // namespace

Test(channel, gives_items_in_order_and_then_the_end) {
  ReadyQueue queue;
  Items channel(100);
  std::vector<int> got;
  test::Run<void> reader(queue, pop_all(&channel, &got));
  test::Run<void> writer(queue, push_many(&channel, 0, 1000));
  cr_expect(writer.done());
  cr_expect(!reader.done(), "no end yet");
  channel.close();
  cr_expect(reader.done());
  cr_assert_eq(got.size(), 1000);
  for (int i = 0; i < 1000; ++i) cr_assert_eq(got[static_cast<std::size_t>(i)], i);
}

Test(channel, push_waits_while_it_is_full) {
  ReadyQueue queue;
  Items channel(20);
  test::Run<void> writer(queue, push_many(&channel, 0, 3));
  cr_expect(!writer.done());
  cr_expect_eq(channel.held_bytes(), 20);
  test::Run<std::optional<int>> reader(queue, pop(&channel));
  cr_expect(reader.done());
  cr_expect_eq(*reader.result(), 0);
  cr_expect(writer.done());
  cr_expect_eq(channel.held_bytes(), 20);
}

Test(channel, one_item_of_any_size_passes) {
  ReadyQueue queue;
  Items channel(20);
  test::Run<void> huge(queue, push(&channel, 1, 1'000'000));
  cr_expect(huge.done());
  test::Run<void> next(queue, push(&channel, 2, 1));
  cr_expect(!next.done());
  test::Run<std::optional<int>> reader(queue, pop(&channel));
  cr_expect(reader.done());
  cr_expect(next.done());
}

Test(channel, several_writers_stay_within_the_bound) {
  ReadyQueue queue;
  Items channel(10);
  std::vector<std::unique_ptr<test::Run<void>>> writers;
  for (int i = 0; i < 5; ++i) writers.push_back(std::make_unique<test::Run<void>>(queue, push(&channel, i, 10)));
  cr_expect(writers[0]->done());
  for (int taken = 1; taken < 5; ++taken) {
    test::Run<std::optional<int>> reader(queue, pop(&channel));
    cr_expect(reader.done());
    cr_expect_leq(channel.held_bytes(), 10);
    int ended = 0;
    for (auto& writer : writers) ended += writer->done() ? 1 : 0;
    cr_expect_eq(ended, taken + 1, "one more writer for each item taken");
  }
}

Test(channel, several_readers_each_get_different_items) {
  ReadyQueue queue;
  Items channel(100);
  std::vector<int> first;
  std::vector<int> second;
  test::Run<void> one(queue, pop_all(&channel, &first));
  test::Run<void> two(queue, pop_all(&channel, &second));
  cr_expect(!one.done());
  test::Run<void> writer(queue, push_many(&channel, 0, 50));
  cr_expect(writer.done());
  channel.close();
  cr_expect(one.done());
  cr_expect(two.done());
  cr_expect_eq(first.size() + second.size(), 50);
}

Test(channel, what_was_pushed_before_the_close_is_still_read) {
  ReadyQueue queue;
  Items channel(100);
  test::Run<void> writer(queue, push_many(&channel, 7, 2));
  cr_expect(writer.done());
  channel.close();
  std::vector<int> got;
  test::Run<void> reader(queue, pop_all(&channel, &got));
  cr_expect(reader.done());
  cr_expect(got == std::vector<int>({7, 8}));
  test::Run<std::optional<int>> again(queue, pop(&channel));
  cr_expect(again.done());
  cr_expect(!again.result(), "the end stays the end");
}

Test(channel, a_failure_is_thrown_at_once_and_again) {
  ReadyQueue queue;
  Items channel(100);
  test::Run<std::optional<int>> waiting(queue, pop(&channel));
  cr_expect(!waiting.done());
  channel.fail(an_error("first"));
  channel.fail(an_error("second"));
  EXPECT_TEXT(waiting.failure(), "first");
  test::Run<std::optional<int>> later(queue, pop(&channel));
  EXPECT_TEXT(later.failure(), "first");
}

Test(channel, a_failure_overtakes_items) {
  ReadyQueue queue;
  Items channel(100);
  test::Run<void> writer(queue, push(&channel, 1, 10));
  cr_expect(writer.done());
  channel.fail(an_error("broken"));
  test::Run<std::optional<int>> reader(queue, pop(&channel));
  EXPECT_TEXT(reader.failure(), "broken");
}

Test(channel, an_abandoned_one_ends_its_writers) {
  ReadyQueue queue;
  Items channel(10);
  test::Run<void> waiting(queue, push_many(&channel, 0, 2));
  cr_expect(!waiting.done());
  channel.abandon();
  EXPECT_TEXT(waiting.failure(), "cancelled");
  test::Run<void> later(queue, push(&channel, 9, 1));
  EXPECT_TEXT(later.failure(), "cancelled");
  cr_expect_eq(channel.held_bytes(), 0);
}

Test(channel, a_cancelled_push_adds_nothing_and_loses_nothing) {
  ReadyQueue queue;
  Items channel(10);
  test::Run<void> first(queue, push(&channel, 1, 10));
  cr_expect(first.done());
  test::Run<void> second(queue, push(&channel, 2, 10));
  test::Run<void> third(queue, push(&channel, 3, 10));
  cr_expect(!second.done());
  second.cancel();
  EXPECT_TEXT(second.failure(), "cancelled");
  cr_expect(!third.done());
  channel.close();
  std::vector<int> got;
  test::Run<void> reader(queue, pop_all(&channel, &got));
  cr_expect(reader.done());
  cr_expect_eq(got[0], 1);
}

Test(channel, a_cancelled_pop_leaves_the_item_for_the_next) {
  ReadyQueue queue;
  Items channel(10);
  test::Run<std::optional<int>> reader(queue, pop(&channel));
  cr_expect(!reader.done());
  reader.cancel();
  EXPECT_TEXT(reader.failure(), "cancelled");
  test::Run<void> writer(queue, push(&channel, 5, 10));
  cr_expect(writer.done());
  test::Run<std::optional<int>> next(queue, pop(&channel));
  cr_expect(next.done());
  cr_expect_eq(*next.result(), 5);
}

Test(channel, a_pop_that_is_cancelled_after_it_was_woken_still_gives_the_item) {
  ReadyQueue queue;
  Items channel(10);
  test::Run<std::optional<int>> reader(queue, pop(&channel));
  cr_expect(!reader.done());
  test::Run<void> writer(queue, push(&channel, 5, 10));
  cr_assert(queue.run_one(), "the writer pushes and wakes the reader");
  reader.cancel();
  cr_expect(reader.done());
  cr_expect_eq(*reader.result(), 5);
}
