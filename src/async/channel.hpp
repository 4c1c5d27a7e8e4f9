// Channel<T>: items from one side to the other, bounded by bytes.
//
// push() waits while the channel holds `capacity` bytes or more (so one item of any size passes); pop() waits while it
// is empty. close() is the writer's end of data: pop() drains and then gives nullopt. fail() is the writer's error:
// pop() throws it at once. abandon() is the reader's end: push() throws cancelled. No item is lost by a cancelled wait.
#pragma once

#include <deque>
#include <exception>
#include <optional>
#include <utility>

#include "async/waiter.hpp"

namespace rowferry::async {

template <class T>
class Channel {
 public:
  explicit Channel(std::size_t capacity_bytes) : capacity_(capacity_bytes) {}

  Task<void> push(T item, std::size_t bytes) {
    while (held_ >= capacity_ && !abandoned_) {
      room_.reset();
      co_await room_.wait();
    }
    if (abandoned_) throw cancelled_error();
    held_ += bytes;
    items_.emplace_back(std::move(item), bytes);
    filled_.set();
  }

  Task<std::optional<T>> pop() {
    while (items_.empty() && !closed_ && !error_) {
      filled_.reset();
      co_await filled_.wait();
    }
    if (error_) std::rethrow_exception(error_);
    if (items_.empty()) co_return std::nullopt;
    T item = std::move(items_.front().first);
    held_ -= items_.front().second;
    items_.pop_front();
    if (held_ < capacity_) room_.set();
    co_return std::optional<T>(std::move(item));
  }

  void close() {
    closed_ = true;
    filled_.set();
  }
  void fail(std::exception_ptr error) {
    if (!error_) error_ = std::move(error);
    filled_.set();
  }
  void abandon() {
    abandoned_ = true;
    items_.clear();
    held_ = 0;
    room_.set();
  }
  std::size_t held_bytes() const noexcept { return held_; }

 private:
  std::size_t capacity_;
  std::size_t held_ = 0;
  bool closed_ = false;
  bool abandoned_ = false;
  std::exception_ptr error_;
  std::deque<std::pair<T, std::size_t>> items_;
  Event filled_;
  Event room_;
};

}  // namespace rowferry::async
