// The queue of coroutines that may go on. Nobody is resumed inside somebody else's callback: whoever
// makes a coroutine ready posts it here, and the loop (or a test) resumes it from an empty stack.
#pragma once

#include <chrono>
#include <coroutine>
#include <cstddef>
#include <vector>

namespace rowferry::async {

class ReadyQueue {
 public:
  void post(std::coroutine_handle<> handle) { ready_.push_back(handle); }
  bool empty() const noexcept { return at_ == ready_.size(); }

  // Resumes one; false when there was none.
  bool run_one();
  // Resumes until empty or until `slice` has passed. Returns how many were resumed.
  std::size_t run_for(std::chrono::nanoseconds slice);
  // Waiting ones and spent slots: what the queue holds memory for.
  std::size_t slots() const noexcept { return ready_.size(); }

 private:
  static constexpr std::size_t drop_at = 1024;
  std::vector<std::coroutine_handle<>> ready_;  // [at_, size) are waiting; first in, first out
  std::size_t at_ = 0;
};

}  // namespace rowferry::async
