#include "net/signal.hpp"

namespace rowferry::net {

struct Signals::Handle {
  uv_signal_t uv{};
  Signals* owner = nullptr;
};

Signals::Signals(Loop& loop, const std::vector<int>& numbers) {
  for (const int number : numbers) {
    auto* handle = new Handle{.uv = {}, .owner = this};
    uv_signal_init(loop.uv(), &handle->uv);
    handle->uv.data = handle;
    uv_signal_start(
        &handle->uv,
        [](uv_signal_t* signal, int caught) {
          Signals* owner = static_cast<Handle*>(signal->data)->owner;
          owner->caught_.push_back(caught);
          owner->arrived_.set();
        },
        number);
    handles_.push_back(handle);
  }
}

Signals::~Signals() {
  for (Handle* handle : handles_) {
    uv_signal_stop(&handle->uv);
    uv_close(reinterpret_cast<uv_handle_t*>(&handle->uv),
             [](uv_handle_t* closed) { delete static_cast<Handle*>(closed->data); });
  }
}

async::Task<int> Signals::next() {
  while (caught_.empty()) {
    arrived_.reset();
    co_await arrived_.wait();
  }
  const int number = caught_.front();
  caught_.pop_front();
  co_return number;
}

}  // namespace rowferry::net
