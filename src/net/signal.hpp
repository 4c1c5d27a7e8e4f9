// Signals: SIGTERM and the like as something to wait for.
#pragma once

#include <deque>
#include <vector>

#include "net/loop.hpp"

namespace rowferry::net {

// Catches the given signals while it lives. One waiter; signals that come while nobody waits are kept in order.
class Signals {
 public:
  Signals(Loop& loop, const std::vector<int>& numbers);
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  // The next signal's number. A cancellation point.
  async::Task<int> next();

 private:
  struct Handle;
  std::vector<Handle*> handles_;
  std::deque<int> caught_;
  async::Event arrived_;
};

}  // namespace rowferry::net
