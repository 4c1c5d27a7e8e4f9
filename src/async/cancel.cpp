#include "async/cancel.hpp"

namespace rowferry::async {

CancelSource::CancelSource(CancelSource* parent) {
  if (parent == nullptr) return;
  if (parent->cancelled()) {
    cancelled_ = true;
  } else {
    parent->listen(*this);
  }
}

void CancelSource::cancel() noexcept {
  if (cancelled_) return;
  cancelled_ = true;
  while (CancelListener* listener = listeners_.pop_front()) listener->on_cancel();
}

Error cancelled_error() { return Error(Category::cancelled, "cancelled", "cancelled"); }

}  // namespace rowferry::async
