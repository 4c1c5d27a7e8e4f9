#include "async/waiter.hpp"

namespace rowferry::async {

void Event::set() {
  set_ = true;
  while (Waiter* waiter = waiters_.pop_front()) waiter->wake();
}

bool Budget::try_take(std::int64_t units) noexcept {
  if (units > free_ && free_ != total_) return false;
  free_ -= units;
  return true;
}

void Budget::grant() noexcept {
  while (Acquire* next = waiters_.front()) {
    if (!try_take(next->units_)) return;
    next->wake();
  }
}

void Budget::release(std::size_t units) {
  free_ += static_cast<std::int64_t>(units);
  grant();
}

}  // namespace rowferry::async
