#include "net/poll.hpp"

#include <fmt/format.h>

namespace rowferry::net {

struct Poll::Handle {
  uv_poll_t uv{};
  Poll* owner = nullptr;
};

Poll::Poll(Loop& loop, int fd) : handle_(new Handle{.owner = this}) {
  const int code = uv_poll_init(loop.uv(), &handle_->uv, fd);
  if (code < 0) {
    delete handle_;
    throw Error(Category::internal, "libuv", fmt::format("uv_poll_init: {}", uv_strerror(code)));
  }
  handle_->uv.data = handle_;
}

Poll::~Poll() {
  uv_poll_stop(&handle_->uv);
  handle_->owner = nullptr;
  uv_close(reinterpret_cast<uv_handle_t*>(&handle_->uv),
           [](uv_handle_t* handle) { delete static_cast<Handle*>(handle->data); });
}

void Poll::add(Wait& wait) {
  waiters_.push_back(wait);
  const int wanted = static_cast<int>(wait.wanted_);
  if ((armed_ & wanted) != wanted) arm(armed_ | wanted);
}

void Poll::arm(int events) {
  static_assert(UV_READABLE == static_cast<int>(Ready::readable) && UV_WRITABLE == static_cast<int>(Ready::writable));
  if (events == armed_) return;
  armed_ = events;
  if (events == 0) {
    uv_poll_stop(&handle_->uv);
    return;
  }
  uv_poll_start(&handle_->uv, events, [](uv_poll_t* poll, int status, int got) {
    if (Poll* owner = static_cast<Handle*>(poll->data)->owner) owner->on_event(status, got);
  });
}

void Poll::on_event(int status, int events) {
  if (status < 0) {
    events = UV_READABLE | UV_WRITABLE;
    armed_ = 0;  // libuv stops a handle whose descriptor has an error: the next wait must start it again
  }
  int unwanted = events;
  Wait* next = nullptr;
  for (Wait* wait = waiters_.front(); wait != nullptr; wait = next) {
    next = waiters_.after(*wait);
    const int hit = static_cast<int>(wait->wanted_) & events;
    if (hit == 0) continue;
    unwanted &= ~hit;
    wait->got_ = static_cast<Ready>(hit);
    wait->wake();
  }
  // A level-triggered event that nobody waits for would fire for ever.
  if (unwanted != 0) arm(armed_ & ~unwanted);
}

}  // namespace rowferry::net
