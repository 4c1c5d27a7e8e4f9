// Cancellation: a CancelSource asks, everything that waits beneath it hears and throws Cancelled.
//
// Lifecycle: sources form a tree (Scope, with_cancel, deadlines); a source outlives every task that runs
// beneath it. Cancelling is a request: a task goes on until its next wait, and may clean up in a shielded
// section (task.hpp: shield). One thread only.
#pragma once

#include "async/list.hpp"
#include "base/error.hpp"

namespace rowferry::async {

class CancelSource;

// Something that hears of a cancellation once. Unregisters itself when it dies.
class CancelListener : public ListNode {
 public:
  virtual void on_cancel() noexcept = 0;

 protected:
  ~CancelListener() = default;
};

class CancelSource final : private CancelListener {
 public:
  CancelSource() = default;
  // A child: cancelled when its parent is. The parent (may be null) must outlive it.
  explicit CancelSource(CancelSource* parent);

  void cancel() noexcept;
  bool cancelled() const noexcept { return cancelled_; }
  void listen(CancelListener& listener) noexcept { listeners_.push_back(listener); }

 private:
  void on_cancel() noexcept override { cancel(); }

  bool cancelled_ = false;
  List<CancelListener> listeners_;
};

// What a cancelled wait throws.
Error cancelled_error();

}  // namespace rowferry::async
