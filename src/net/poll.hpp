// Poll: waits for a descriptor to become readable or writable (uv_poll). Used beneath TcpStream and for libpq's socket.
//
// One active Poll per descriptor. Armed lazily and level-triggered: it stays armed between waits, and stops only when
// an event finds nobody waiting, so that a busy stream costs no epoll_ctl per wait.
#pragma once

#include "net/loop.hpp"

namespace rowferry::net {

enum class Ready : int { none = 0, readable = 1, writable = 2, both = 3 };
constexpr Ready operator|(Ready a, Ready b) { return static_cast<Ready>(static_cast<int>(a) | static_cast<int>(b)); }
constexpr Ready operator&(Ready a, Ready b) { return static_cast<Ready>(static_cast<int>(a) & static_cast<int>(b)); }

class Poll {
 public:
  // Does not own the descriptor. It must be nonblocking and stay open until the Poll is dead.
  Poll(Loop& loop, int fd);
  ~Poll();
  Poll(const Poll&) = delete;
  Poll& operator=(const Poll&) = delete;

  // Gives which of the wanted are ready (an error or hang-up counts as both). A cancellation point; several may wait.
  class Wait : public async::Waiter {
   public:
    Wait(Poll& poll, Ready wanted) : poll_(poll), wanted_(wanted) {}
    bool await_ready() const noexcept { return false; }
    template <class P>
    bool await_suspend(std::coroutine_handle<P> self) {
      if (!suspend(self)) return false;
      poll_.add(*this);
      return true;
    }
    Ready await_resume() const {
      finish();
      return got_;
    }

   private:
    friend class Poll;
    Poll& poll_;
    Ready wanted_;
    Ready got_ = Ready::none;
  };
  Wait wait(Ready wanted) { return {*this, wanted}; }

 private:
  struct Handle;
  void add(Wait& wait);
  void arm(int events);
  void on_event(int status, int events);

  Handle* handle_;
  int armed_ = 0;
  async::List<Wait> waiters_;
};

}  // namespace rowferry::net
