// Logins, packets and their rules, as clients see them.
#include "conversation.hpp"

using namespace rowferry;
using namespace rowferry::test;
using async::Task;

namespace {

constexpr const char* welcome = "env 1, info 5701, env 7, env 2, info 5703, env 4=4096, loginack 74000004, done";

Task<void> good_login(Conversation* c) {
  WireClient client(c->loop, c->server.port());
  c->note(co_await client.log_in());
  c->note(co_await client.batch("select 1"));
}

Task<void> bad_logins(Conversation* c) {
  WireClient wrong(c->loop, c->server.port());
  c->note(co_await wrong.log_in("sa", "wrong"));
  c->note(co_await wrong.receive());
  WireClient nobody(c->loop, c->server.port());
  c->note(co_await nobody.log_in("nobody", "secret"));
  WireClient nowhere(c->loop, c->server.port());
  c->note(co_await nowhere.log_in("sa", "secret", "nowhere"));
  c->note(co_await nowhere.receive());
}

Task<void> packet_wishes(Conversation* c) {
  for (const std::uint32_t wish : {0U, 512U, 1000U, 16384U, 32767U, 100'000U}) {
    WireClient client(c->loop, c->server.port());
    co_await client.log_in("sa", "secret", "shop", wish);
    c->note(std::to_string(client.packet_bytes));
  }
}

Task<void> garbage(Conversation* c) {
  for (const char* bytes : {"47 45 54 20 2F 20 48 54 54 50 2F 31 2E 31 0D 0A", "12 01 00 09 00 00 00 00 00",
                            "16 03 01 00 05 01 00 00 01 00", "01 01 00 09 00 00 00 00 00", "12 01 00 04 00 00 00 00"}) {
    WireClient client(c->loop, c->server.port());
    co_await client.connect();
    co_await client.send(from_hex(bytes));
    c->note(co_await client.receive());
  }
  WireClient client(c->loop, c->server.port());
  c->note(co_await client.log_in());
}

Task<void> login_without_prelogin(Conversation* c) {
  WireClient client(c->loop, c->server.port());
  co_await client.connect();
  c->note(co_await client.ask(0x10, client.login7("sa", "secret", "shop", 4096)));
}

// A statement text that makes the message exactly `bytes` long.
std::string sized_statement(std::size_t bytes) {
  std::string sql = "select 1";
  const std::size_t head = 22;
  sql.append((bytes - head) / 2 - sql.size(), ' ');
  return sql;
}

Task<void> packet_borders(Conversation* c) {
  WireClient client(c->loop, c->server.port());
  co_await log_in(&client, 512);
  for (const std::size_t bytes : {502U, 504U, 506U, 1008U, 1010U, 5040U}) {
    c->note(co_await client.batch(sized_statement(bytes)));
  }
}

Task<void> empty_last_packet(Conversation* c) {
  WireClient client(c->loop, c->server.port());
  co_await log_in(&client, 512);
  const std::string body = client.headers() + text::to_utf16le(sized_statement(504));
  co_await client.send(WireClient::packet(1, 0, body) + WireClient::packet(1, 1, ""));
  c->note(co_await client.receive());
}

Task<void> short_middle_packet(Conversation* c) {
  WireClient client(c->loop, c->server.port());
  co_await log_in(&client, 512);
  const std::string body = client.headers() + text::to_utf16le("select 1");
  co_await client.send(WireClient::packet(1, 0, body.substr(0, 20)) + WireClient::packet(1, 1, body.substr(20)));
  c->note(co_await client.receive());
  c->note(co_await client.receive());
}

Task<void> large_last_packet(Conversation* c) {
  WireClient client(c->loop, c->server.port());
  co_await log_in(&client, 512);
  const std::string body = client.headers() + text::to_utf16le(sized_statement(600));
  co_await client.send(WireClient::packet(1, 1, body));
  c->note(co_await client.receive());
  c->note(co_await client.receive());
}

Task<void> bytewise(Conversation* c) {
  WireClient client(c->loop, c->server.port());
  co_await log_in(&client);
  const std::string message = WireClient::packet(1, 1, client.headers() + text::to_utf16le("select 1"));
  for (const char byte : message) {
    co_await client.send(std::string(1, byte));
    co_await async::yield();
  }
  c->note(co_await client.receive());
}

Task<void> broken_headers(Conversation* c) {
  WireClient client(c->loop, c->server.port());
  co_await log_in(&client);
  c->note(co_await client.ask(1, from_hex("04 00 00 00") + text::to_utf16le("select 1")));
  c->note(co_await client.ask(1, client.headers() + "odd"));
  c->note(co_await client.ask(3, client.headers() + from_hex("01 00 70 00 00 00 00 00 26 04 03 00 00 00")));
  c->note(co_await client.batch("select 1"));
}

Task<void> unknown_packet_type(Conversation* c) {
  WireClient client(c->loop, c->server.port());
  co_await log_in(&client);
  c->note(co_await client.ask(0x09, "x"));
}

Task<void> one_too_many(Conversation* c) {
  WireClient first(c->loop, c->server.port());
  WireClient second(c->loop, c->server.port());
  WireClient third(c->loop, c->server.port());
  c->note(co_await first.log_in());
  c->note(co_await second.log_in());
  c->note(co_await third.log_in());
}

Task<void> wrong_encryption_answer(Conversation* c) {
  WireClient client(c->loop, c->server.port());
  co_await client.log_in("sa", "secret", "shop", 4096, 1);
  c->note(to_hex(client.pre_login_reply.substr(client.pre_login_reply.size() - 3, 1)));
}

Task<void> just_log_in(Conversation* c) {
  WireClient client(c->loop, c->server.port());
  c->note(co_await client.log_in());
}

}  // namespace

Test(login, is_welcomed) { expect_notes(converse(good_login), {welcome, "columns 1, rows 1, done count=1"}); }

Test(login, wrong_names_are_refused_and_the_connection_closed) {
  expect_notes(converse(bad_logins), {"error 18456, done error", "closed", "error 18456, done error",
                                      "error 4060, error 18456, done error", "closed"});
}

Test(login, packet_size_is_bounded_and_rounded) {
  expect_notes(converse(packet_wishes), {"4096", "512", "1000", "16384", "32764", "32764"});
}

Test(login, garbage_closes_only_itself) {
  expect_notes(converse(garbage), {"closed", "closed", "closed", "closed", "closed", welcome});
}

Test(login, may_come_without_prelogin) { expect_notes(converse(login_without_prelogin), {welcome}); }

Test(login, connections_above_the_limit_are_closed) {
  sandbox::Options options = usual_options();
  options.connections_max = 2;
  expect_notes(converse(one_too_many, std::move(options)), {welcome, welcome, "closed"});
}

Test(packets, a_message_may_end_exactly_at_a_packet) {
  expect_notes(converse(packet_borders), std::vector<std::string>(6, "columns 1, rows 1, done count=1"));
  expect_notes(converse(empty_last_packet), {"columns 1, rows 1, done count=1"});
}

Test(packets, of_a_wrong_size_end_the_connection) {
  expect_notes(converse(short_middle_packet), {"error 4014, done error", "closed"});
  expect_notes(converse(large_last_packet), {"error 4014, done error", "closed"});
}

Test(packets, may_come_byte_by_byte) { expect_notes(converse(bytewise), {"columns 1, rows 1, done count=1"}); }

Test(packets, broken_requests_get_their_error_and_the_connection_goes_on) {
  expect_notes(converse(broken_headers), {"error 4013, done error", "error 4002, done error", "error 8009, done error",
                                          "columns 1, rows 1, done count=1"});
}

Test(packets, an_unknown_type_closes) { expect_notes(converse(unknown_packet_type), {"closed"}); }

Test(faults, login_can_be_refused_lowered_and_acknowledged_wrongly) {
  using sandbox::FaultKind;
  expect_notes(converse(just_log_in, with_fault({.kind = FaultKind::login_error, .number = 40613, .severity = 20})),
               {"error 40613, error 18456, done error"});
  expect_notes(converse(just_log_in, with_fault({.kind = FaultKind::packet_size, .bytes = 512})),
               {"env 1, info 5701, env 7, env 2, info 5703, env 4=512, loginack 74000004, done"});
  expect_notes(converse(just_log_in, with_fault({.kind = FaultKind::feature_ack, .feature = 4})),
               {"env 1, info 5701, env 7, env 2, info 5703, env 4=4096, loginack 74000004, features 04, done"});
  expect_notes(converse(wrong_encryption_answer, with_fault({.kind = FaultKind::encryption_reply, .reply = 2})),
               {"02"});
}
