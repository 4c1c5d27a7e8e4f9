#include <criterion/criterion.h>
#include <sys/socket.h>

#include <memory>
#include <numeric>
#include <vector>

#include "base/error.hpp"
#include "net/stream.hpp"
#include "tests/support/expect.hpp"

using namespace rowferry;
using async::Task;
using net::Listener;
using net::Loop;
using net::milliseconds;
using net::TcpStream;
using Socket = std::unique_ptr<TcpStream>;

namespace {

struct Pair {
  Socket client;
  Socket server;
};

Task<void> accept_into(Listener* listener, Socket* to) { *to = co_await listener->accept(); }
Task<void> connect_into(Loop* loop, std::uint16_t port, Socket* to) {
  *to = co_await TcpStream::connect(*loop, "127.0.0.1", port, milliseconds(5'000));
}
Task<Pair> make_pair(Loop* loop) {
  Listener listener(*loop, "127.0.0.1", 0);
  Pair pair;
  async::Scope scope(co_await async::current_context());
  scope.spawn(accept_into(&listener, &pair.server));
  scope.spawn(connect_into(loop, listener.port(), &pair.client));
  co_await scope.join();
  co_return pair;
}

std::vector<std::uint8_t> pattern(std::size_t size) {
  std::vector<std::uint8_t> bytes(size);
  std::uint32_t state = 1;
  for (auto& byte : bytes) byte = static_cast<std::uint8_t>((state = state * 1'664'525 + 1'013'904'223) >> 24U);
  return bytes;
}

Task<void> write_and_finish(TcpStream* to, const std::vector<std::uint8_t>* bytes) {
  co_await to->write_all(*bytes);
  co_await to->shutdown();
}
Task<void> read_to_end(TcpStream* from, std::vector<std::uint8_t>* into, std::size_t piece) {
  std::vector<std::uint8_t> buffer(piece);
  while (const std::size_t got = co_await from->read_some(buffer)) {
    into->insert(into->end(), buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(got));
  }
}

Task<void> both_ways(Loop* loop, const std::vector<std::uint8_t>* there, const std::vector<std::uint8_t>* back) {
  const Pair pair = co_await make_pair(loop);
  std::vector<std::uint8_t> at_server;
  std::vector<std::uint8_t> at_client;
  async::Scope scope(co_await async::current_context());
  scope.spawn(write_and_finish(pair.client.get(), there));
  scope.spawn(write_and_finish(pair.server.get(), back));
  scope.spawn(read_to_end(pair.server.get(), &at_server, 100'000));
  scope.spawn(read_to_end(pair.client.get(), &at_client, 333));
  co_await scope.join();
  cr_expect(at_server == *there);
  cr_expect(at_client == *back);
}

Task<void> write_and_flag(TcpStream* to, const std::vector<std::uint8_t>* bytes, bool* written) {
  co_await to->write_all(*bytes);
  *written = true;
  co_await to->shutdown();
}
Task<void> back_pressure(Loop* loop, const std::vector<std::uint8_t>* bytes) {
  const Pair pair = co_await make_pair(loop);
  bool written = false;
  std::vector<std::uint8_t> got;
  async::Scope scope(co_await async::current_context());
  scope.spawn(write_and_flag(pair.client.get(), bytes, &written));
  co_await net::sleep_for(*loop, milliseconds(50));
  cr_expect(!written, "nobody reads: the writer waits");
  scope.spawn(read_to_end(pair.server.get(), &got, 65'536));
  co_await scope.join();
  cr_expect(written);
  cr_expect(got == *bytes);
}

Task<std::size_t> read_once(TcpStream* from) {
  std::vector<std::uint8_t> buffer(16);
  co_return co_await from->read_some(buffer);
}
Task<void> half_closed(Loop* loop) {
  const Pair pair = co_await make_pair(loop);
  std::vector<std::uint8_t> buffer(16);
  cr_expect(!pair.client->try_read(buffer), "nothing yet");
  const std::vector<std::uint8_t> hello = {1, 2, 3};
  co_await pair.client->write_all(hello);
  co_await pair.client->shutdown();
  cr_expect_eq(co_await read_once(pair.server.get()), 3);
  cr_expect_eq(co_await read_once(pair.server.get()), 0, "end of stream");
  cr_expect_eq(co_await read_once(pair.server.get()), 0, "and again");
  co_await pair.server->write_all(hello);
  cr_expect_eq(co_await read_once(pair.client.get()), 3, "the other direction still works");
}

Task<void> reads_with_deadline(Loop* loop) {
  const Pair pair = co_await make_pair(loop);
  bool timed_out = false;
  try {
    co_await net::with_deadline(*loop, milliseconds(10), "reading", read_once(pair.server.get()));
  } catch (const Error& error) {
    timed_out = error.category() == Category::timeout;
  }
  cr_expect(timed_out);
  const std::vector<std::uint8_t> hello = {1, 2, 3};
  co_await pair.client->write_all(hello);
  cr_expect_eq(co_await read_once(pair.server.get()), 3, "a cancelled read loses nothing");
}

Task<void> reset_by_peer(Loop* loop, bool reading) {
  Pair pair = co_await make_pair(loop);
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  setsockopt(pair.client->fd(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  pair.client->close();
  pair.client->close();
  if (reading) {
    co_await read_once(pair.server.get());
  } else {
    const std::vector<std::uint8_t> much(1'000'000);
    for (int i = 0; i < 100; ++i) co_await pair.server->write_all(much);
  }
}

Task<void> uses_closed(Loop* loop) {
  Pair pair = co_await make_pair(loop);
  pair.server->close();
  co_await read_once(pair.server.get());
}

Task<void> connects(Loop* loop, std::string host, std::uint16_t port, milliseconds timeout) {
  co_await TcpStream::connect(*loop, std::move(host), port, timeout);
}

Task<void> accepts(Loop* loop, Listener* listener, std::vector<Socket>* clients, std::vector<Socket>* servers,
                   int count) {
  for (int i = 0; i < count; ++i) {
    clients->push_back(co_await TcpStream::connect(*loop, "127.0.0.1", listener->port(), milliseconds(5'000)));
  }
  for (int i = 0; i < count; ++i) servers->push_back(co_await listener->accept());
}
Task<void> no_more_clients(Loop* loop, Listener* listener) {
  Socket socket;
  co_await net::with_deadline(*loop, milliseconds(10), "a connection", accept_into(listener, &socket));
}

Task<std::vector<net::Endpoint>> resolves(Loop* loop, std::string host) {
  co_return co_await net::resolve(*loop, std::move(host), 80);
}

std::string failure(Loop& loop, Task<void> task, Category category) {
  try {
    loop.run(std::move(task));
  } catch (const Error& error) {
    cr_expect_eq(error.category(), category);
    return error.code();
  }
  return "";
}

}  // namespace

Test(tcp, carries_bytes_both_ways_at_once, .timeout = 30) {
  Loop loop;
  const auto there = pattern(9'000'001);
  const auto back = pattern(3'000'003);
  loop.run(both_ways(&loop, &there, &back));
}

Test(tcp, a_slow_reader_stops_the_writer, .timeout = 30) {
  Loop loop;
  const auto bytes = pattern(32'000'000);
  loop.run(back_pressure(&loop, &bytes));
}

Test(tcp, one_direction_ends_while_the_other_goes_on, .timeout = 10) {
  Loop loop;
  loop.run(half_closed(&loop));
}

Test(tcp, a_cancelled_read_leaves_the_stream_usable, .timeout = 10) {
  Loop loop;
  loop.run(reads_with_deadline(&loop));
}

Test(tcp, a_reset_is_a_lost_connection, .timeout = 10) {
  Loop loop;
  EXPECT_TEXT(failure(loop, reset_by_peer(&loop, true), Category::connection), "connection_lost");
  EXPECT_TEXT(failure(loop, reset_by_peer(&loop, false), Category::connection), "connection_lost");
}

Test(tcp, a_closed_stream_refuses_to_be_used, .timeout = 10) {
  Loop loop;
  EXPECT_TEXT(failure(loop, uses_closed(&loop), Category::connection), "connection_lost");
}

Test(tcp, a_refused_connection_names_the_address, .timeout = 10) {
  Loop loop;
  std::uint16_t port = 0;
  {
    const Listener listener(loop, "127.0.0.1", 0);
    port = listener.port();
  }
  try {
    loop.run(connects(&loop, "127.0.0.1", port, milliseconds(5'000)));
    cr_assert_fail("no error");
  } catch (const Error& error) {
    EXPECT_TEXT(error.code(), "connect_failed");
    EXPECT_TEXT(error.detail(), "cannot connect to 127.0.0.1:" + std::to_string(port) + ": Connection refused");
    cr_expect(error.transient());
  }
}

Test(tcp, connecting_has_a_deadline, .timeout = 30) {
  Loop loop;
  // A listener whose queue is full drops further handshakes.
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  cr_assert_eq(::bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
  cr_assert_eq(::listen(fd, 0), 0);
  cr_assert_eq(::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const std::uint16_t port = ntohs(address.sin_port);
  std::string got;
  for (int i = 0; i < 10 && got.empty(); ++i) {
    try {
      loop.run([](Loop* on, std::uint16_t to) -> Task<void> {
        // Left in the queue: nobody accepts.
        const Socket socket = co_await TcpStream::connect(*on, "127.0.0.1", to, milliseconds(100));
        static std::vector<int> kept;
        kept.push_back(::dup(socket->fd()));
      }(&loop, port));
    } catch (const Error& error) {
      got = error.code();
      cr_expect_eq(error.category(), Category::timeout);
    }
  }
  EXPECT_TEXT(got, "timeout");
}

Test(listener, accepts_in_order_and_then_waits, .timeout = 10) {
  Loop loop;
  Listener listener(loop, "127.0.0.1", 0);
  std::vector<Socket> clients;
  std::vector<Socket> servers;
  loop.run(accepts(&loop, &listener, &clients, &servers, 20));
  cr_expect_eq(servers.size(), 20);
  EXPECT_TEXT(failure(loop, no_more_clients(&loop, &listener), Category::timeout), "timeout");
}

Test(listener, a_taken_address_is_an_input_error, .timeout = 10) {
  Loop loop;
  const Listener first(loop, "127.0.0.1", 0);
  EXPECT_ERROR(Listener(loop, "127.0.0.1", first.port()), "listen_failed");
  EXPECT_ERROR(Listener(loop, "192.0.2.1", 0), "listen_failed");
}

Test(resolver, numeric_addresses_need_no_thread, .timeout = 10) {
  Loop loop;
  const auto v4 = loop.run(resolves(&loop, "127.0.0.1"));
  cr_assert_eq(v4.size(), 1);
  EXPECT_TEXT(v4[0].text(), "127.0.0.1:80");
  const auto v6 = loop.run(resolves(&loop, "::1"));
  cr_assert_eq(v6.size(), 1);
  EXPECT_TEXT(v6[0].address, "::1");
}

Test(resolver, names_go_through_the_pool, .timeout = 30) {
  Loop loop;
  const auto all = loop.run(resolves(&loop, "localhost"));
  cr_assert_geq(all.size(), 1);
  EXPECT_TEXT(all[0].host, "localhost");
}

Test(resolver, an_unknown_name_is_a_connection_error, .timeout = 30) {
  Loop loop;
  EXPECT_TEXT(failure(loop, connects(&loop, "no-such-host.invalid", 1, milliseconds(20'000)), Category::connection),
              "resolve_failed");
}
