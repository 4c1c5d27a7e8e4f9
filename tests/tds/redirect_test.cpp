// Redirections at login, between listeners on the loopback.
#include "async/scope.hpp"
#include "net/stream.hpp"
#include "tests/tds/session_support.hpp"

using namespace rowferry;
using namespace rowferry::test;

namespace {

// Answers a login with these bytes, and ends.
async::Task<void> answer_login(net::Listener* listener, std::string with) {
  const std::unique_ptr<net::TcpStream> stream = co_await listener->accept();
  std::vector<std::uint8_t> buffer(8192);
  (void)co_await stream->read_some(buffer);
  const std::string prelogin = prelogin_reply(2);
  co_await stream->write_all(as_bytes(prelogin));
  (void)co_await stream->read_some(buffer);
  co_await stream->write_all(as_bytes(with));
  (void)co_await stream->read_some(buffer);
}

std::string redirection(std::uint16_t port) {
  const std::string host = us_varchar("127.0.0.1");
  std::string value = le(static_cast<std::uint16_t>(3 + host.size()));
  value += '\0';
  value += le(port) + host + std::string(2, '\0');
  return env(20, value);
}

async::Task<void> connect_to(net::Loop* loop, tds::LoginOptions options, std::string* outcome) {
  try {
    const std::unique_ptr<tds::Session> session = co_await tds::Session::connect(*loop, std::move(options));
    *outcome = session->usable() ? "logged in" : "not usable";
  } catch (const Error& error) {
    *outcome = error.code() + ": " + error.detail();
  }
}

std::string follow(bool acknowledged) {
  net::Loop loop;
  net::Listener first(loop, "127.0.0.1", 0);
  net::Listener second(loop, "127.0.0.1", 0);
  tds::LoginOptions options = plain_options();
  options.host = "127.0.0.1";
  options.port = first.port();
  std::string outcome;
  std::vector<async::Task<void>> all;
  all.push_back(answer_login(&first, reply((acknowledged ? login_ack() : "") + redirection(second.port()) + done())));
  all.push_back(answer_login(&second, login_reply(0)));
  all.push_back(connect_to(&loop, options, &outcome));
  loop.run(async::when_all(std::move(all)));
  return outcome;
}

}  // namespace

// O-31
Test(connect, a_redirection_is_followed) {
  cr_expect_eq(follow(true), "logged in", "%s", follow(true).c_str());
  cr_expect_eq(follow(false), "logged in", "%s", follow(false).c_str());
}
