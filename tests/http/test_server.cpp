#include <criterion/criterion.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include "harness.hpp"

using namespace rowferry;
using namespace rowferry::testing;
using async::Task;
using net::milliseconds;

namespace {

// GET /hello, POST /echo, POST /ignore (does not read its body), GET /big, /slow and /throw.
class TestHandler final : public http::Handler {
 public:
  explicit TestHandler(net::Loop& loop) : loop_(loop) {}
  Task<http::Response> handle(const http::Request& request, http::Body& body) override {
    if (request.path == "/echo") {
      std::string text = co_await body.collect();
      co_return http::Response{.content_type = "text/plain", .body = std::move(text)};
    }
    if (request.path == "/stream") {
      std::uint8_t room[3];
      std::size_t pieces = 0;
      std::size_t bytes = 0;
      while (const std::size_t got = co_await body.read_some(room)) {
        ++pieces;
        bytes += got;
      }
      co_return http::Response{.body = fmt::format("{} in {}", bytes, pieces)};
    }
    if (request.path == "/slow") co_await net::sleep_for(loop_, milliseconds(100));
    if (request.path == "/throw") throw std::runtime_error("secret");
    if (request.path == "/big") co_return http::Response{.body = std::string(3'000'000, 'b')};
    co_return http::Response{.content_type = "text/plain", .body = "hello"};
  }
  void served(const http::Request&, int status, std::chrono::microseconds) override { statuses.push_back(status); }
  std::vector<int> statuses;

 private:
  net::Loop& loop_;
};

http::ServerOptions quick() {
  return {.idle_time = milliseconds(200),
          .head_time = milliseconds(200),
          .transfer_grace = milliseconds(200),
          .rate_min = 1'000'000,
          .linger_time = milliseconds(200),
          .sweep_time = milliseconds(10),
          .stop_grace = milliseconds(300)};
}

struct Fixture {
  explicit Fixture(http::ServerOptions options = quick()) : handler(loop), server(loop, std::move(options), handler) {}
  void run(Task<void> client) { with_server(loop, server, std::move(client)); }
  std::string ask(const std::string& request) {
    std::string answer;
    run(note(&answer, testing::ask(&loop, server.port(), request)));
    return answer;
  }
  static Task<void> note(std::string* into, Task<std::string> task) { *into = co_await std::move(task); }

  net::Loop loop;
  TestHandler handler;
  http::Server server;
};

std::string get(const std::string& path, const std::string& fields = "") {
  return fmt::format("GET {} HTTP/1.1\r\nHost: a\r\n{}\r\n", path, fields);
}
std::string post(const std::string& path, const std::string& body, const std::string& fields = "") {
  return fmt::format("POST {} HTTP/1.1\r\nHost: a\r\n{}Content-Length: {}\r\n\r\n{}", path, fields, body.size(), body);
}

}  // namespace

Test(server, answers_with_date_length_type_and_connection) {
  Fixture f;
  const std::string answer = f.ask(get("/hello", "Connection: close\r\n"));
  cr_assert_eq(status_of(answer), "200");
  cr_expect_eq(header_of(answer, "Content-Length"), "5");
  cr_expect_eq(header_of(answer, "Content-Type"), "text/plain");
  cr_expect_eq(header_of(answer, "Connection"), "close");
  cr_expect_eq(header_of(answer, "Date").size(), 29);
  cr_expect_eq(body_of(answer), "hello");
  cr_expect_eq(f.handler.statuses, std::vector<int>{200});
}

namespace {

Task<void> keep_alive_and_pipelining(Fixture* f) {
  const auto client = co_await Client::connect(&f->loop, f->server.port());
  for (int i = 0; i < 3; ++i) {
    co_await client->send(get("/hello"));
    const std::string answer = co_await client->response();
    cr_expect_eq(header_of(answer, "connection"), "keep-alive");
    cr_expect_eq(body_of(answer), "hello");
  }
  std::string many;
  for (int i = 0; i < 200; ++i) many += post("/echo", fmt::format("number {}", i));
  co_await client->send(many + get("/hello", "Connection: close\r\n"));
  for (int i = 0; i < 200; ++i) {
    const std::string answer = co_await client->response();
    cr_assert_eq(body_of(answer), fmt::format("number {}", i));
  }
  const std::string last = co_await client->rest();
  cr_expect_eq(body_of(last), "hello");
}

}  // namespace

Test(server, keeps_connections_and_answers_pipelined_requests_in_order) {
  Fixture f;
  f.run(keep_alive_and_pipelining(&f));
  cr_expect_eq(f.server.counts().accepted, 1);
  cr_expect_eq(f.server.counts().requests, 204);
  cr_expect_eq(f.server.counts().open, 0);
}

Test(server, head_gives_the_head_of_get_without_its_body) {
  Fixture f;
  const std::string answer = f.ask("HEAD /hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  cr_expect_eq(header_of(answer, "Content-Length"), "5");
  cr_expect_eq(body_of(answer), "");
}

Test(server, large_answers_arrive_whole) {
  Fixture f;
  cr_expect_eq(body_of(f.ask(get("/big", "Connection: close\r\n"))).size(), 3'000'000);
}

Test(server, chunked_and_streamed_bodies_are_read) {
  Fixture chunked;
  const std::string answer = chunked.ask(
      "POST /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n");
  cr_expect_eq(body_of(answer), "abcdefg");
  Fixture streamed;
  cr_expect_eq(body_of(streamed.ask(post("/stream", "12345678", "Connection: close\r\n"))), "8 in 3");
}

namespace {

Task<void> continue_first(Fixture* f) {
  const auto client = co_await Client::connect(&f->loop, f->server.port());
  co_await client->send("POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  const std::string interim = co_await client->response();
  cr_expect_eq(interim, "HTTP/1.1 100 Continue\r\n\r\n");
  co_await client->send("hi");
  const std::string answer = co_await client->response();
  cr_expect_eq(body_of(answer), "hi");
}

Task<void> continue_refused(Fixture* f) {
  const auto client = co_await Client::connect(&f->loop, f->server.port());
  co_await client->send("POST /ignore HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  const std::string answer = co_await client->rest();
  cr_expect_eq(status_of(answer), "200", "no 100 before the answer: %s", answer.c_str());
  cr_expect_eq(header_of(answer, "connection"), "close", "the body was not read");
}

}  // namespace

Test(server, expect_continue_is_answered_only_when_the_body_is_wanted) {
  Fixture wanted;
  wanted.run(continue_first(&wanted));
  Fixture unwanted;
  unwanted.run(continue_refused(&unwanted));
}

Test(server, faults_are_problem_documents) {
  const auto expect = [](const std::string& request, const std::string& status, const std::string& code) {
    Fixture f;
    const std::string answer = f.ask(request);
    cr_expect_eq(status_of(answer), status, "%s", answer.c_str());
    cr_expect_eq(header_of(answer, "Content-Type"), "application/problem+json");
    cr_expect_eq(header_of(answer, "Connection"), "close");
    cr_expect_neq(body_of(answer).find(fmt::format("\"code\":\"{}\"", code)), std::string::npos, "%s", answer.c_str());
  };
  expect("GET / HTTP/1.1\r\n\r\n", "400", "bad_host");
  expect("GET / HTTP/3.0\r\nHost: a\r\n\r\n", "505", "version_not_supported");
  expect(get("/" + std::string(9000, 'x')), "414", "target_too_long");
  expect(get("/", "X: " + std::string(40000, 'x') + "\r\n"), "431", "head_too_large");
  expect(post("/echo", std::string(1024 * 1024 + 1, 'x')), "413", "body_too_large");
  expect("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "400", "bad_framing");
}

Test(server, unexpected_exceptions_end_as_a_bare_500) {
  Fixture f;
  const std::string answer = f.ask(get("/throw", "Connection: close\r\n"));
  cr_expect_eq(status_of(answer), "500");
  cr_expect_eq(answer.find("secret"), std::string::npos);
}

namespace {

// Sends a byte every 20 ms and gives what the server says to that.
Task<std::string> trickle(Fixture* f, std::string bytes) {
  const auto client = co_await Client::connect(&f->loop, f->server.port());
  std::uint8_t room[1024];
  for (const char c : bytes) {
    co_await client->send({c});
    co_await net::sleep_for(f->loop, milliseconds(20));
    if (const auto got = client->stream().try_read(room)) co_return std::string(as_text({room, *got}));
  }
  co_return "never";
}

Task<void> slow_head(Fixture* f) {
  const std::string answer = co_await trickle(f, get("/hello", "X: " + std::string(100, 'x') + "\r\n"));
  cr_expect_eq(status_of(answer), "408", "%s", answer.c_str());
}
Task<void> slow_body(Fixture* f) {
  const auto client = co_await Client::connect(&f->loop, f->server.port());
  co_await client->send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nhalf");
  const std::string answer = co_await client->rest();
  cr_expect_eq(status_of(answer), "408", "%s", answer.c_str());
  cr_expect_neq(answer.find("body_timeout"), std::string::npos);
}
Task<void> idle_client(Fixture* f) {
  const auto silent = co_await Client::connect(&f->loop, f->server.port());
  const auto used = co_await Client::connect(&f->loop, f->server.port());
  co_await used->send(get("/hello"));
  const std::string answer = co_await used->response();
  cr_expect_eq(status_of(answer), "200");
  const std::string nothing = co_await silent->rest();
  const std::string nothing_more = co_await used->rest();
  cr_expect_eq(nothing, "", "closed without a word");
  cr_expect_eq(nothing_more, "");
}
Task<void> never_reads(Fixture* f) {
  const auto client = co_await Client::connect(&f->loop, f->server.port());
  for (int i = 0; i < 4; ++i) co_await client->send(get("/big"));
  co_await net::sleep_for(f->loop, milliseconds(400));
}

}  // namespace

Test(server, slow_heads_bodies_and_readers_are_cut_off, .timeout = 20) {
  Fixture head;
  head.run(slow_head(&head));
  Fixture body;
  body.run(slow_body(&body));
  Fixture idle;
  idle.run(idle_client(&idle));
  http::ServerOptions options = quick();
  options.transfer_grace = milliseconds(50);
  options.rate_min = 100'000'000;
  Fixture reader(options);
  reader.run(never_reads(&reader));
  cr_expect_eq(reader.server.counts().open, 0);
}

namespace {

Task<void> crowd(Fixture* f, std::vector<std::unique_ptr<Client>>* clients, int count) {
  for (int i = 0; i < count; ++i) clients->push_back(co_await Client::connect(&f->loop, f->server.port()));
  const auto last = co_await Client::connect(&f->loop, f->server.port());
  co_await last->send(get("/hello", "Connection: close\r\n"));
  const std::string answer = co_await last->rest();
  cr_expect_eq(status_of(answer), "200", "%s", answer.c_str());
  const bool first_closed = co_await clients->front()->closes_within(milliseconds(50));
  const bool last_open = !co_await clients->back()->closes_within(milliseconds(1));
  cr_expect(first_closed, "the oldest idle one made room");
  cr_expect(last_open);
}

Task<void> full_house(Fixture* f) {
  std::vector<std::unique_ptr<Client>> busy;
  for (int i = 0; i < 3; ++i) {
    busy.push_back(co_await Client::connect(&f->loop, f->server.port()));
    co_await busy.back()->send(get("/slow", "Connection: close\r\n"));
  }
  co_await net::sleep_for(f->loop, milliseconds(20));
  const std::string answer = co_await testing::ask(&f->loop, f->server.port(), "");
  cr_expect_eq(status_of(answer), "503", "%s", answer.c_str());
  cr_expect_eq(header_of(answer, "Retry-After"), "1");
  for (const auto& client : busy) {
    const std::string slow = co_await client->rest();
    cr_expect_eq(status_of(slow), "200");
  }
}

}  // namespace

Test(server, full_of_idle_connections_it_makes_room) {
  http::ServerOptions options = quick();
  options.connections = 20;
  options.idle_time = milliseconds(5000);
  Fixture f(options);
  std::vector<std::unique_ptr<Client>> clients;
  f.run(crowd(&f, &clients, 30));
  cr_expect_geq(f.server.counts().evicted, 11);
  cr_expect_eq(f.server.counts().turned_away, 0);
}

Test(server, full_of_busy_connections_it_turns_clients_away) {
  http::ServerOptions options = quick();
  options.connections = 3;
  Fixture f(options);
  f.run(full_house(&f));
  cr_expect_eq(f.server.counts().turned_away, 1);
}

namespace {

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ROWFERRY_SHADOW_MEMORY
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define ROWFERRY_SHADOW_MEMORY
#endif
#ifdef ROWFERRY_SHADOW_MEMORY
constexpr bool counts_shadow_memory = true;
#else
constexpr bool counts_shadow_memory = false;
#endif

std::size_t resident_bytes() {
  long pages = 0;
  long resident = 0;
  if (FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%ld %ld", &pages, &resident) != 2) resident = 0;
    std::fclose(file);
  }
  return static_cast<std::size_t>(resident) * 4096;
}

Task<void> idle_crowd(Fixture* f, int count) {
  std::vector<std::unique_ptr<net::TcpStream>> clients;
  const auto first = co_await Client::connect(&f->loop, f->server.port());
  co_await first->send(get("/hello"));
  const std::string warm = co_await first->response();
  const std::size_t before = resident_bytes();
  for (int i = 0; i < count; ++i) {
    clients.push_back(
        co_await net::TcpStream::connect(f->loop, net::Endpoint{"127.0.0.1", "127.0.0.1", f->server.port()}));
  }
  while (f->server.counts().open < static_cast<std::size_t>(count)) co_await net::sleep_for(f->loop, milliseconds(5));
  const std::size_t each = (resident_bytes() - before) / static_cast<std::size_t>(count);
  // Both ends are in this process: the client's TcpStream and Poll are in the figure too.
  if (!counts_shadow_memory) cr_expect_lt(each, 8 * 1024, "%zu bytes for each idle connection", each);
  const auto began = std::chrono::steady_clock::now();
  co_await first->send(get("/hello"));
  const std::string answer = co_await first->response();
  cr_expect_eq(status_of(answer), "200");
  cr_expect_lt(std::chrono::steady_clock::now() - began, milliseconds(100));
}

}  // namespace

Test(server, thousands_of_idle_connections_cost_little, .timeout = 60) {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  const int count = static_cast<int>(std::min<rlim_t>(4000, (files.rlim_max - 100) / 3));
  http::ServerOptions options = quick();
  options.idle_time = milliseconds(60'000);
  options.stop_grace = milliseconds(5000);
  options.connections = 10'000;
  Fixture f(options);
  f.run(idle_crowd(&f, count));
}

namespace {

Task<void> stop_while_busy(Fixture* f) {
  const auto idle = co_await Client::connect(&f->loop, f->server.port());
  const auto busy = co_await Client::connect(&f->loop, f->server.port());
  co_await busy->send(get("/slow"));
  co_await net::sleep_for(f->loop, milliseconds(20));
  f->server.stop();
  const std::string nothing = co_await idle->rest();
  const std::string answer = co_await busy->rest();
  cr_expect_eq(nothing, "");
  cr_expect_eq(body_of(answer), "hello", "the request in progress is answered");
  cr_expect_eq(header_of(answer, "connection"), "close");
  bool refused = false;
  try {
    const auto late = co_await Client::connect(&f->loop, f->server.port());
  } catch (const Error&) {
    refused = true;
  }
  cr_expect(refused, "a stopped server does not listen");
}

}  // namespace

Test(server, stops_gracefully) {
  Fixture f;
  f.run(stop_while_busy(&f));
}

namespace {

Task<void> over_tls(Fixture* f) {
  auto tcp = co_await net::TcpStream::connect(f->loop, "127.0.0.1", f->server.port(), milliseconds(1000));
  auto tls = std::make_unique<net::TlsStream>(net::TlsContext::client({.verify = false}), std::move(tcp));
  co_await tls->handshake("localhost");
  Client client(f->loop, std::move(tls));
  co_await client.send(get("/big"));
  const std::string big = co_await client.response();
  cr_expect_eq(body_of(big).size(), 3'000'000);
  co_await client.send(get("/hello", "Connection: close\r\n"));
  const std::string answer = co_await client.rest();
  cr_expect_eq(body_of(answer), "hello");
}

Task<void> plain_to_tls(Fixture* f) {
  const std::string answer = co_await testing::ask(&f->loop, f->server.port(), get("/hello"));
  cr_expect_eq(answer.find("hello"), std::string::npos);
}

}  // namespace

Test(server, speaks_tls_when_told) {
  const net::CertificateAndKey own = net::make_self_signed();
  http::ServerOptions options = quick();
  options.tls = net::TlsContext::server({.certificate_pem = own.certificate_pem, .key_pem = own.key_pem});
  Fixture f(options);
  f.run(over_tls(&f));
  Fixture plain(options);
  plain.run(plain_to_tls(&plain));
}

Test(problem, documents_carry_what_is_known) {
  const std::string problem = http::problem_json({.status = 422,
                                                  .code = "bad_value",
                                                  .detail = "d",
                                                  .field = "f",
                                                  .hint = "h",
                                                  .context = {.table = "t", .row = 7},
                                                  .fault = ServerFault{.number = "547", .message = "m"}});
  cr_expect_eq(problem,
               R"({"type":"about:blank","title":"Unprocessable Content","status":422,"code":"bad_value","detail":"d",)"
               R"("field":"f","hint":"h","table":"t","row":7,"server":{"number":"547","message":"m"}})",
               "%s", problem.c_str());
}
