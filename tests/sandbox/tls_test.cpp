// The three ways of TLS in TDS 7.x: none, the login packet only, everything.
#include "conversation.hpp"

using namespace rowferry;
using namespace rowferry::test;
using async::Task;
using sandbox::Encrypt;

namespace {

sandbox::Options encrypted(Encrypt encrypt) {
  sandbox::Options options = usual_options();
  options.encrypt = encrypt;
  return options;
}

Task<void> everything(Conversation* c) {
  for (const std::size_t piece : {std::size_t{4088}, std::size_t{7}}) {
    WireClient client(c->loop, c->server.port());
    co_await client.connect();
    c->note(fmt::format("reply {}", co_await client.pre_login(1)));
    co_await client.start_tls(piece);
    c->note(co_await client.ask(0x10, client.login7("sa", "secret", "shop", 32767)));
    client.packet_bytes = 16380;
    const std::string long_text(60'000, 'x');
    c->note(co_await client.batch("select len(N'" + long_text + "')"));
  }
}

// The first packet of a login in two packets is encrypted, the second is not, nor is anything behind it.
Task<void> login_only(Conversation* c) {
  WireClient client(c->loop, c->server.port());
  co_await client.connect();
  c->note(fmt::format("reply {}", co_await client.pre_login(0)));
  co_await client.start_tls(4088);
  const std::string login = client.login7("sa", "secret", "shop", 4096);
  const std::string whole = WireClient::packet(0x10, 0, login.substr(0, 100));
  co_await client.send(whole);
  client.end_tls();
  co_await client.send(WireClient::packet(0x10, 1, login.substr(100)));
  c->note(co_await client.receive());
  c->note(co_await client.batch("select 1"));
}

Task<void> refused(Conversation* c) {
  WireClient client(c->loop, c->server.port());
  co_await client.connect();
  c->note(fmt::format("reply {}", co_await client.pre_login(c->server.certificate_pem().empty() ? 1 : 2)));
  c->note(co_await client.receive());
}

Task<void> upgraded(Conversation* c) {
  WireClient client(c->loop, c->server.port());
  co_await client.connect();
  c->note(fmt::format("reply {}", co_await client.pre_login(0)));
  co_await client.start_tls(4088);
  c->note(co_await client.ask(0x10, client.login7("sa", "secret", "shop", 4096)));
}

constexpr const char* welcome = "env 1, info 5701, env 7, env 2, info 5703, env 4=4096, loginack 74000004, done";
constexpr const char* welcome_tls = "env 1, info 5701, env 7, env 2, info 5703, env 4=16380, loginack 74000004, done";
constexpr const char* one_row = "columns 1, rows 1, done count=1";

}  // namespace

Test(tls, covers_everything_however_the_handshake_is_cut) {
  expect_notes(converse(everything, encrypted(Encrypt::on)),
               {"reply 1", welcome_tls, one_row, "reply 1", welcome_tls, one_row});
}

Test(tls, covers_the_first_login_packet_only) {
  expect_notes(converse(login_only, encrypted(Encrypt::login)), {"reply 0", welcome, one_row});
}

Test(tls, a_client_that_offers_it_is_taken_up) {
  expect_notes(converse(upgraded, encrypted(Encrypt::on)), {"reply 3", welcome});
}

Test(tls, what_cannot_be_agreed_closes) {
  expect_notes(converse(refused, encrypted(Encrypt::on)), {"reply 3", "closed"});
  expect_notes(converse(refused, encrypted(Encrypt::off)), {"reply 2", "closed"});
}
