#include "http/server.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <ctime>

#include "http/connection.hpp"

namespace rowferry::http {

namespace {

// Connections must not eat the descriptors that transfers need.
std::size_t connections_possible(std::size_t wanted) {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == RLIM_INFINITY) return wanted;
  const auto all = static_cast<std::size_t>(files.rlim_cur);
  const std::size_t spare = std::min(limits::http_spare_descriptors, all / 2);
  return std::max<std::size_t>(1, std::min(wanted, all - spare));
}

}  // namespace

Server::Server(net::Loop& loop, ServerOptions options, Handler& handler)
    : loop_(loop),
      options_(std::move(options)),
      handler_(handler),
      listener_(std::make_unique<net::Listener>(loop, options_.host, options_.port)),
      port_(listener_->port()),
      connections_max_(connections_possible(options_.connections)) {}

Server::~Server() = default;

void Server::stop() noexcept {
  stopping_ = true;
  if (accepting_ != nullptr) accepting_->cancel();
}

void Server::closed() noexcept {
  if (--counts_.open == 0) all_closed_.set();
}

async::Task<void> Server::run() {
  const async::Context context = co_await async::current_context();
  async::Scope scope(context);
  scope.spawn(sweep());
  std::exception_ptr failed;
  async::CancelSource accepting(context.cancel);
  accepting_ = &accepting;
  if (stopping_) accepting.cancel();
  try {
    co_await async::with_cancel(accepting, accept_all(&scope));
  } catch (...) {
    if (!stopping_) failed = std::current_exception();
  }
  accepting_ = nullptr;
  listener_.reset();
  try {
    if (!failed) co_await drain();
  } catch (...) {
    failed = std::current_exception();
  }
  scope.cancel();
  try {
    co_await scope.join();
  } catch (...) {
    if (!failed && !is_cancelled(std::current_exception())) failed = std::current_exception();
  }
  if (failed) std::rethrow_exception(failed);
}

async::Task<void> Server::accept_all(async::Scope* scope) {
  while (true) {
    std::unique_ptr<net::TcpStream> stream = co_await listener_->accept();
    ++counts_.accepted;
    if (counts_.open >= connections_max_ && !make_room()) {
      co_await turn_away(std::move(stream));
    } else {
      ++counts_.open;
      all_closed_.reset();
      scope->spawn(Connection::run(this, std::move(stream)));
    }
    co_await async::yield();
  }
}

// Idle connections are a courtesy: the one that has been idle longest goes first.
bool Server::make_room() {
  Connection* oldest = idle_.front();
  if (oldest == nullptr) return false;
  oldest->interrupt(Connection::Stop::evicted);
  ++counts_.evicted;
  return true;
}

async::Task<void> Server::turn_away(std::unique_ptr<net::TcpStream> stream) {
  ++counts_.turned_away;
  if (options_.tls) co_return;
  Response response = problem_response(
      {.status = 503, .code = "too_many_connections", .detail = "all connections that this server allows are in use"});
  response.headers.push_back({"Retry-After", "1"});
  const std::string text =
      response_head(response, response.body.size(), http_date(static_cast<std::int64_t>(std::time(nullptr))), false) +
      response.body;
  // A new socket's buffer takes it at once; a peer that is gone already does not matter.
  try {
    co_await net::with_deadline(loop_, options_.sweep_time, "turning a client away", stream->write_all(as_bytes(text)));
    co_await stream->shutdown();
  } catch (const Error& error) {
    if (error.category() == Category::cancelled) throw;
  }
}

async::Task<void> Server::sweep() {
  while (true) {
    co_await net::sleep_for(loop_, options_.sweep_time);
    const auto now = Connection::Clock::now();
    for (async::List<Connection>* list : {&idle_, &reading_}) {
      Connection* next = nullptr;
      for (Connection* at = list->front(); at != nullptr; at = next) {
        next = list->after(*at);
        if (at->deadline() <= now) at->interrupt(Connection::Stop::deadline);
      }
    }
  }
}

namespace {

async::Task<void> await_event(async::Event* event) { co_await event->wait(); }

}  // namespace

async::Task<void> Server::drain() {
  while (Connection* idle = idle_.front()) idle->interrupt(Connection::Stop::stopping);
  if (counts_.open == 0) co_return;
  try {
    co_await net::with_deadline(loop_, options_.stop_grace, "answering the last requests", await_event(&all_closed_));
  } catch (const Error& error) {
    if (error.category() != Category::timeout) throw;
  }
}

}  // namespace rowferry::http
