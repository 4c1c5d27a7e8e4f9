#include "async/ready_queue.hpp"

namespace rowferry::async {

bool ReadyQueue::run_one() {
  if (empty()) return false;
  const std::coroutine_handle<> next = ready_[at_++];
  // Two tasks that are always ready would never let it run empty: what was resumed is dropped in large steps.
  if (at_ == ready_.size() || at_ >= drop_at) {
    ready_.erase(ready_.begin(), ready_.begin() + static_cast<std::ptrdiff_t>(at_));
    at_ = 0;
  }
  next.resume();
  return true;
}

std::size_t ReadyQueue::run_for(std::chrono::nanoseconds slice) {
  const auto end = std::chrono::steady_clock::now() + slice;
  std::size_t count = 0;
  while (run_one()) {
    ++count;
    if (std::chrono::steady_clock::now() >= end) break;
  }
  return count;
}

}  // namespace rowferry::async
