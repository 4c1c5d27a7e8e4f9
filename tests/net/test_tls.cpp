#include <criterion/criterion.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <numeric>

#include "memory_stream.hpp"
#include "net/tls.hpp"

using namespace rowferry;
using namespace rowferry::net;
using async::Task;
using testing::MemoryStream;

namespace {

struct Pair {
  MemoryStream client_side;
  MemoryStream server_side;
  Pair() { MemoryStream::join(client_side, server_side); }
};

std::string temp_file(const std::string& text) {
  char path[] = "/tmp/rowferry-test-XXXXXX";
  const int fd = mkstemp(path);
  cr_assert_geq(fd, 0);
  cr_assert_eq(write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  close(fd);
  return path;
}

TlsContext server_context(const CertificateAndKey& pair, TlsServerOptions options = {}) {
  options.certificate_pem = pair.certificate_pem;
  options.key_pem = pair.key_pem;
  return TlsContext::server(options);
}

TlsContext trusting() { return TlsContext::client({.verify = false}); }

struct Outcome {
  std::string code;
  std::string hint;
  std::string detail;
};

Task<void> noting(Task<void> task, Outcome* outcome) {
  try {
    co_await std::move(task);
  } catch (const Error& error) {
    *outcome = {error.code(), error.hint(), error.detail()};
  }
}

Task<void> both(Task<void> a, Task<void> b) {
  std::vector<Task<void>> tasks;
  tasks.push_back(std::move(a));
  tasks.push_back(std::move(b));
  co_await async::when_all(std::move(tasks));
}

void run(Task<void> task) {
  async::ReadyQueue queue;
  async::run_until_done(queue, std::move(task));
}

Task<void> connecting(TlsStream* stream, std::string name, Outcome* outcome) {
  co_await noting(stream->handshake(std::move(name)), outcome);
  if (!outcome->code.empty()) stream->close();
}

// What the client meets when it connects to a server with this certificate.
Outcome connect(const TlsContext& client, const TlsContext& server, const std::string& name) {
  Pair wire;
  TlsStream c(client, wire.client_side);
  TlsStream s(server, wire.server_side);
  Outcome at_client;
  Outcome at_server;
  run(both(connecting(&c, name, &at_client), connecting(&s, "", &at_server)));
  return at_client;
}

Task<void> read_exactly(Stream* stream, std::vector<std::uint8_t>* into) {
  std::size_t have = 0;
  while (have < into->size()) {
    const std::size_t got = co_await stream->read_some(std::span(*into).subspan(have));
    if (got == 0) throw Error(Category::connection, "short", "short");
    have += got;
  }
}

Task<void> write_vector(Stream* stream, const std::vector<std::uint8_t>* bytes) { co_await stream->write_all(*bytes); }

std::vector<std::uint8_t> pattern(std::size_t size, std::uint8_t first) {
  std::vector<std::uint8_t> bytes(size);
  std::iota(bytes.begin(), bytes.end(), first);
  return bytes;
}

// A connected pair of TLS streams over memory.
struct Connected {
  Pair wire;
  TlsStream client;
  TlsStream server;
  explicit Connected(const TlsContext& c = trusting(), const TlsContext& s = server_context(make_self_signed()))
      : client(c, wire.client_side), server(s, wire.server_side) {
    run(both(client.handshake("localhost"), server.handshake()));
  }
};

void exchange_both_ways(Connected& pair, std::size_t size) {
  const auto up = pattern(size, 1);
  const auto down = pattern(size, 101);
  std::vector<std::uint8_t> got_up(size);
  std::vector<std::uint8_t> got_down(size);
  run(both(both(write_vector(&pair.client, &up), read_exactly(&pair.client, &got_down)),
           both(write_vector(&pair.server, &down), read_exactly(&pair.server, &got_up))));
  cr_assert(got_up == up, "client to server");
  cr_assert(got_down == down, "server to client");
}

}  // namespace

Test(tls, reads_and_writes_at_the_same_time_in_both_directions) {
  Connected pair;
  exchange_both_ways(pair, 300'000);
  exchange_both_ways(pair, 1);
}

Test(tls, works_over_an_inner_stream_that_gives_single_bytes) {
  Pair wire;
  wire.client_side.read_at_most = wire.server_side.read_at_most = 1;
  TlsStream client(trusting(), wire.client_side);
  TlsStream server(server_context(make_self_signed()), wire.server_side);
  run(both(client.handshake("localhost"), server.handshake()));
  const auto sent = pattern(5000, 7);
  std::vector<std::uint8_t> got(sent.size());
  run(both(write_vector(&client, &sent), read_exactly(&server, &got)));
  cr_assert(got == sent);
}

Test(tls, one_packet_is_one_record_and_one_inner_write) {
  for (const TlsVersion version : {TlsVersion::tls1_2, TlsVersion::tls1_3}) {
    Connected pair(TlsContext::client({.verify = false, .max_version = version}));
    for (const std::size_t size : {std::size_t{1}, std::size_t{4096}, std::size_t{16383}, std::size_t{16384}}) {
      pair.wire.client_side.writes.clear();
      const auto packet = pattern(size, 3);
      run(write_vector(&pair.client, &packet));
      cr_assert_eq(pair.wire.client_side.writes.size(), 1, "%zu bytes", size);
      const auto& record = pair.wire.client_side.writes.front();
      cr_assert_eq(record[0], 0x17, "application data");
      cr_assert_eq(load_be<std::uint16_t>(&record[3]) + 5U, record.size(), "one record for %zu bytes", size);
    }
  }
}

Test(tls, versions_are_capped_and_named) {
  Connected classic(TlsContext::client({.verify = false, .max_version = TlsVersion::tls1_2}));
  cr_assert_eq(classic.client.version(), "TLSv1.2");
  exchange_both_ways(classic, 40'000);
  Connected modern;
  cr_assert_eq(modern.client.version(), "TLSv1.3");
}

Test(tls, alpn_is_agreed_or_left_out) {
  const CertificateAndKey own = make_self_signed();
  Connected agreed(TlsContext::client({.verify = false, .alpn = {"tds/8.0"}}),
                   server_context(own, {.alpn = {"x", "tds/8.0"}}));
  cr_assert_eq(agreed.client.alpn(), "tds/8.0");
  cr_assert_eq(agreed.server.alpn(), "tds/8.0");
  Connected other(TlsContext::client({.verify = false, .alpn = {"h2"}}), server_context(own, {.alpn = {"tds/8.0"}}));
  cr_assert_eq(other.client.alpn(), "");
}

Test(tls, self_signed_certificate_is_refused_with_the_settings_that_help) {
  const Outcome outcome = connect(TlsContext::client({}), server_context(make_self_signed()), "localhost");
  cr_assert_eq(outcome.code, "certificate_not_trusted");
  cr_expect_neq(outcome.detail.find("self-signed"), std::string::npos, "%s", outcome.detail.c_str());
  cr_expect_neq(outcome.hint.find("ca_file"), std::string::npos);
  cr_expect_neq(outcome.hint.find("trust_server_certificate"), std::string::npos);
}

Test(tls, ca_file_makes_a_certificate_trusted_by_name_and_by_address) {
  const CertificateAndKey own = make_self_signed({.names = {"db.example", "192.0.2.7"}});
  const std::string ca = temp_file(own.certificate_pem);
  const TlsContext client = TlsContext::client({.ca_file = ca});
  cr_expect_eq(connect(client, server_context(own), "db.example").detail, "");
  cr_expect_eq(connect(client, server_context(own), "192.0.2.7").detail, "");
  for (const char* wrong : {"other.example", "192.0.2.8"}) {
    const Outcome outcome = connect(client, server_context(own), wrong);
    cr_expect_eq(outcome.code, "certificate_name_mismatch", "%s", outcome.code.c_str());
    cr_expect_neq(outcome.hint.find("server_name"), std::string::npos);
    cr_expect_neq(outcome.detail.find(wrong), std::string::npos);
  }
  unlink(ca.c_str());
}

Test(tls, certificate_outside_its_time_is_refused) {
  using std::chrono::seconds;
  for (const auto& [from, until] :
       {std::pair{seconds(-7200), seconds(-3600)}, std::pair{seconds(3600), seconds(7200)}}) {
    const CertificateAndKey own = make_self_signed({.valid_from = from, .valid_until = until});
    const std::string ca = temp_file(own.certificate_pem);
    const Outcome outcome = connect(TlsContext::client({.ca_file = ca}), server_context(own), "localhost");
    cr_expect_eq(outcome.code, "certificate_expired", "%s", outcome.detail.c_str());
    unlink(ca.c_str());
  }
}

Test(tls, trusting_client_takes_any_certificate) {
  const auto expired = make_self_signed({.names = {"other"}, .valid_until = std::chrono::seconds(-60)});
  cr_expect_eq(connect(trusting(), server_context(expired), "localhost").detail, "");
  const auto negative = make_self_signed({.negative_serial = true});
  cr_expect_eq(connect(trusting(), server_context(negative), "localhost").detail, "");
}

Test(tls, nothing_can_be_verified_without_a_name) {
  const Outcome outcome = connect(TlsContext::client({}), server_context(make_self_signed()), "");
  cr_assert_eq(outcome.code, "tls_settings");
}

Test(tls, unreadable_settings_are_input_errors) {
  const auto code_of = [](const std::function<void()>& make) {
    try {
      make();
    } catch (const Error& error) {
      return error.code();
    }
    return std::string("none");
  };
  const CertificateAndKey a = make_self_signed();
  const CertificateAndKey b = make_self_signed();
  cr_expect_eq(code_of([] { TlsContext::client({.ca_file = "/nonexistent/ca.pem"}); }), "tls_settings");
  cr_expect_eq(
      code_of([] { TlsContext::server({.certificate_file = "/nonexistent/c", .key_file = "/nonexistent/k"}); }),
      "tls_settings");
  cr_expect_eq(code_of([&] { server_context({"junk", a.key_pem}); }), "tls_settings");
  cr_expect_eq(code_of([&] { server_context({a.certificate_pem, b.key_pem}); }), "tls_settings");
}

namespace {

Task<void> plain_answer(MemoryStream* stream) {
  co_await stream->write_all(as_bytes("HTTP/1.1 400 Bad Request\r\n\r\n"));
}
Task<void> hang_up(MemoryStream* stream) {
  stream->close();
  co_return;
}

}  // namespace

Test(tls, peer_without_tls_gives_a_clear_error) {
  Pair wire;
  TlsStream client(trusting(), wire.client_side);
  Outcome outcome;
  run(both(noting(client.handshake("x"), &outcome), plain_answer(&wire.server_side)));
  cr_assert_eq(outcome.code, "tls_failed");
  cr_assert_eq(outcome.hint, "the peer does not speak TLS here", "%s", outcome.detail.c_str());
}

Test(tls, peer_that_hangs_up_during_the_handshake_gives_a_clear_error) {
  Pair wire;
  TlsStream client(trusting(), wire.client_side);
  Outcome outcome;
  run(both(noting(client.handshake("x"), &outcome), hang_up(&wire.server_side)));
  cr_assert_eq(outcome.code, "tls_failed");
  cr_assert_neq(outcome.detail.find("closed the connection"), std::string::npos);
}

Test(tls, peer_without_an_accepted_version_gives_a_clear_error) {
  const Outcome outcome = connect(TlsContext::client({.verify = false, .min_version = TlsVersion::tls1_3}),
                                  server_context(make_self_signed(), {.max_version = TlsVersion::tls1_2}), "x");
  cr_assert_eq(outcome.code, "tls_failed");
  cr_assert_neq(outcome.hint.find("no TLS version"), std::string::npos, "%s", outcome.detail.c_str());
}

namespace {

Task<void> read_end(TlsStream* stream, std::size_t* got) {
  std::uint8_t room[16];
  *got = co_await stream->read_some(room);
}

}  // namespace

Test(tls, end_of_stream_tells_whether_it_was_said) {
  Connected said;
  std::size_t got = 99;
  run(both(said.client.shutdown(), read_end(&said.server, &got)));
  cr_expect_eq(got, 0);
  cr_expect(said.server.ended_cleanly());

  Connected cut;
  got = 99;
  cut.client.close();
  run(read_end(&cut.server, &got));
  cr_expect_eq(got, 0);
  cr_expect_not(cut.server.ended_cleanly());
}

Test(tls, try_read_gives_what_is_there_without_waiting) {
  Connected pair;
  std::vector<std::uint8_t> room(64);
  cr_assert_not(pair.client.try_read(room).has_value(), "nothing yet");
  const auto sent = pattern(5, 9);
  run(write_vector(&pair.server, &sent));
  const auto got = pair.client.try_read(room);
  cr_assert(got.has_value());
  cr_assert_eq(*got, 5);
  cr_assert_eq(room[4], 13);
  pair.server.close();
  cr_assert_eq(pair.client.try_read(room).value(), 0, "end of stream");
}

Test(tls, damaged_record_is_an_error_not_an_end) {
  Connected pair;
  run(pair.wire.server_side.write_all(pattern(64, 0x17)));
  Outcome outcome;
  std::size_t got = 0;
  run(noting(read_end(&pair.client, &got), &outcome));
  cr_assert_eq(outcome.code, "tls_failed");
}

Test(tls, release_goes_on_in_plain_and_hands_back_unread_bytes) {
  for (const TlsVersion version : {TlsVersion::tls1_2, TlsVersion::tls1_3}) {
    Connected pair(TlsContext::client({.verify = false, .max_version = version}));
    const auto login = pattern(100, 1);
    std::vector<std::uint8_t> got(login.size());
    run(write_vector(&pair.client, &login));
    auto client = pair.client.release();
    cr_assert(client.unread.empty());
    // Plain bytes arrive together with the last record.
    run(pair.wire.client_side.write_all(as_bytes("plain")));
    run(read_exactly(&pair.server, &got));
    cr_assert(got == login);
    const auto server = pair.server.release();
    cr_assert_eq(as_text(server.unread.view()), "plain", "%zu bytes", server.unread.size());
    cr_assert_null(server.inner.get(), "it was borrowed");
  }
}

namespace {

Task<void> cancel_now(async::CancelSource* source) {
  source->cancel();
  co_return;
}

Task<void> under(async::CancelSource* source, Task<void> task) {
  co_await async::with_cancel(*source, std::move(task));
}

}  // namespace

Test(tls, cancelled_read_loses_nothing) {
  Connected pair;
  async::CancelSource source;
  Outcome outcome;
  std::size_t got = 0;
  run(both(noting(under(&source, read_end(&pair.client, &got)), &outcome), cancel_now(&source)));
  cr_assert_eq(outcome.code, "cancelled");
  exchange_both_ways(pair, 2000);
}

Test(tls, cancelled_write_leaves_the_stream_unusable_for_writing) {
  Connected pair;
  pair.wire.client_side.stuck = true;
  async::CancelSource source;
  const auto bytes = pattern(10, 0);
  Outcome outcome;
  run(both(noting(under(&source, write_vector(&pair.client, &bytes)), &outcome), cancel_now(&source)));
  cr_assert_eq(outcome.code, "cancelled");
  pair.wire.client_side.stuck = false;
  run(noting(write_vector(&pair.client, &bytes), &outcome));
  cr_assert_eq(outcome.code, "connection_lost");
}
