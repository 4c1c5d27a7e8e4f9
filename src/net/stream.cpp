#include "net/stream.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/limits.hpp"

namespace rowferry::net {

namespace {

struct AddrInfoFree {
  void operator()(addrinfo* list) const noexcept { freeaddrinfo(list); }
};
using AddrInfo = std::unique_ptr<addrinfo, AddrInfoFree>;

AddrInfo lookup(const std::string& host, std::uint16_t port, int flags, int& code) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  code = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  return AddrInfo(code == 0 ? list : nullptr);
}

std::string numeric(const sockaddr* address, socklen_t size) {
  char text[NI_MAXHOST];
  if (getnameinfo(address, size, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0) return "?";
  return text;
}

std::vector<Endpoint> endpoints(const AddrInfo& list, const std::string& host, std::uint16_t port) {
  std::vector<Endpoint> all;
  for (const addrinfo* at = list.get(); at != nullptr; at = at->ai_next) {
    all.push_back({host, numeric(at->ai_addr, at->ai_addrlen), port});
  }
  return all;
}

// The pool's thread owns its copy of everything: a resolver may hang long after the wait was cancelled.
std::vector<Endpoint> resolve_blocking(const std::string& host, std::uint16_t port) {
  int code = 0;
  const AddrInfo list = lookup(host, port, AI_ADDRCONFIG, code);
  if (!list) {
    throw Error(Category::connection, "resolve_failed",
                fmt::format("cannot resolve host \"{}\": {}", host, gai_strerror(code)));
  }
  return endpoints(list, host, port);
}

void set_option(int fd, int level, int name, int value) { setsockopt(fd, level, name, &value, sizeof value); }

void tune(int fd) {
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, 30);
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, 1);
}

// A descriptor that closes itself unless released.
class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const noexcept { return fd_; }
  int release() noexcept { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

std::string error_text(int code) { return std::generic_category().message(code); }

}  // namespace

std::string Endpoint::text() const {
  return host == address ? fmt::format("{}:{}", host, port) : fmt::format("{} ({}):{}", host, address, port);
}

async::Task<std::vector<Endpoint>> resolve(Loop& loop, std::string host, std::uint16_t port) {
  int code = 0;
  if (const AddrInfo list = lookup(host, port, AI_NUMERICHOST, code)) co_return endpoints(list, host, port);
  co_return co_await offload(loop, [host, port] { return resolve_blocking(host, port); });
}

TcpStream::TcpStream(Loop& loop, int fd, std::string peer)
    : fd_(fd), peer_(std::move(peer)), poll_(std::make_unique<Poll>(loop, fd)) {
  tune(fd);
}

TcpStream::~TcpStream() { close(); }

async::Task<std::unique_ptr<TcpStream>> TcpStream::connect(Loop& loop, Endpoint to) {
  int code = 0;
  const AddrInfo list = lookup(to.address, to.port, AI_NUMERICHOST, code);
  if (!list)
    throw Error(Category::connection, "connect_failed", fmt::format("cannot connect to {}: bad address", to.text()));
  Fd fd(::socket(list->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  int failure = fd.get() < 0 ? errno : 0;
  if (failure == 0 && ::connect(fd.get(), list->ai_addr, list->ai_addrlen) < 0) failure = errno;
  if (failure == EINPROGRESS) {
    {
      Poll poll(loop, fd.get());
      co_await poll.wait(Ready::writable);
    }
    socklen_t size = sizeof failure;
    getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &failure, &size);
  }
  if (failure != 0) {
    throw Error(Category::connection, "connect_failed",
                fmt::format("cannot connect to {}: {}", to.text(), error_text(failure)))
        .mark_transient();
  }
  co_return std::make_unique<TcpStream>(loop, fd.release(), to.text());
}

namespace {

async::Task<std::unique_ptr<TcpStream>> connect_any(Loop& loop, std::string host, std::uint16_t port) {
  const std::vector<Endpoint> all = co_await resolve(loop, host, port);
  std::exception_ptr last;
  for (const Endpoint& endpoint : all) {
    try {
      co_return co_await TcpStream::connect(loop, endpoint);
    } catch (const Error& error) {
      if (error.category() == Category::cancelled) throw;
      last = std::current_exception();
    }
  }
  std::rethrow_exception(last);
}

}  // namespace

async::Task<std::unique_ptr<TcpStream>> TcpStream::connect(Loop& loop, std::string host, std::uint16_t port,
                                                           milliseconds timeout) {
  co_return co_await with_deadline(loop, timeout, fmt::format("connecting to {}:{}", host, port),
                                   connect_any(loop, host, port));
}

Error TcpStream::broken(const char* what, int code) const {
  return Error(Category::connection, "connection_lost", fmt::format("{} {}: {}", what, peer_, error_text(code)))
      .mark_transient();
}

std::optional<std::size_t> TcpStream::try_read(std::span<std::uint8_t> into) {
  while (true) {
    if (fd_ < 0) throw broken("reading from", EBADF);
    const ssize_t got = ::recv(fd_, into.data(), into.size(), 0);
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno == EAGAIN) return std::nullopt;
    if (errno != EINTR) throw broken("reading from", errno);
  }
}

async::Task<std::size_t> TcpStream::read_some(std::span<std::uint8_t> into) {
  while (true) {
    if (const auto got = try_read(into)) co_return *got;
    co_await poll_->wait(Ready::readable);
  }
}

async::Task<void> TcpStream::write_all(ByteView bytes) {
  while (!bytes.empty()) {
    if (fd_ < 0) throw broken("writing to", EBADF);
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN) {
      co_await poll_->wait(Ready::writable);
    } else if (errno != EINTR) {
      throw broken("writing to", errno);
    }
  }
}

async::Task<void> TcpStream::shutdown() {
  if (fd_ >= 0) ::shutdown(fd_, SHUT_WR);
  co_return;
}

void TcpStream::close() noexcept {
  if (fd_ < 0) return;
  poll_.reset();
  ::close(std::exchange(fd_, -1));
}

Listener::Listener(Loop& loop, const std::string& host, std::uint16_t port) : loop_(loop) {
  int code = 0;
  AddrInfo list = lookup(host, port, AI_NUMERICHOST | AI_PASSIVE, code);
  if (!list) list = lookup(host, port, AI_PASSIVE, code);
  const auto fail = [&](const std::string& why) {
    throw Error(Category::input, "listen_failed", fmt::format("cannot listen on {}:{}: {}", host, port, why));
  };
  if (!list) fail(gai_strerror(code));
  const addrinfo* at = list.get();
  while (at != nullptr && at->ai_family != AF_INET) at = at->ai_next;
  if (at == nullptr) at = list.get();
  Fd fd(::socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (fd.get() < 0) fail(error_text(errno));
  set_option(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (::bind(fd.get(), at->ai_addr, at->ai_addrlen) < 0 || ::listen(fd.get(), limits::listen_backlog) < 0)
    fail(error_text(errno));
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  getsockname(fd.get(), reinterpret_cast<sockaddr*>(&bound), &size);
  port_ = ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(bound).sin6_port
                                            : reinterpret_cast<const sockaddr_in&>(bound).sin_port);
  poll_ = std::make_unique<Poll>(loop, fd.get());
  fd_ = fd.release();
}

Listener::~Listener() {
  poll_.reset();
  if (fd_ >= 0) ::close(fd_);
}

async::Task<std::unique_ptr<TcpStream>> Listener::accept() {
  while (true) {
    sockaddr_storage peer{};
    socklen_t size = sizeof peer;
    const int fd = ::accept4(fd_, reinterpret_cast<sockaddr*>(&peer), &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) co_return std::make_unique<TcpStream>(loop_, fd, numeric(reinterpret_cast<sockaddr*>(&peer), size));
    if (errno == EAGAIN) {
      co_await poll_->wait(Ready::readable);
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      co_await sleep_for(loop_, limits::accept_retry_wait);
    } else if (errno != EINTR && errno != ECONNABORTED && errno != EPROTO) {
      throw Error(Category::internal, "accept_failed", error_text(errno));
    }
  }
}

}  // namespace rowferry::net
