// Sessions on scripted streams, for tests: everything runs on one Loop, without a socket.
#pragma once

#include <criterion/criterion.h>

#include <chrono>

#include "net/loop.hpp"
#include "tds/session.hpp"
#include "tests/support/scripted_stream.hpp"
#include "tests/tds/capture.hpp"
#include "tests/tds/replies.hpp"

namespace rowferry::test {

using tds::PacketType;

inline tds::LoginOptions plain_options() {
  tds::LoginOptions options;
  options.host = "srv";
  options.user = "ferry";
  options.database = "dw";
  options.password = [] { return Secret("s3cr3t!"); };
  options.encrypt = tds::Encrypt::off;
  return options;
}

// A script that begins with a login without encryption.
inline std::shared_ptr<Script> logged_in(std::size_t packet_bytes = 0) {
  auto script = std::make_shared<Script>();
  script->expect(PacketType::prelogin).send(prelogin_reply(2));
  script->expect(PacketType::login7).send(login_reply(packet_bytes));
  return script;
}

// The server's side of a recording, its login included, one reply for each message that our client sends. Requests of
// the recorded client that we do not make have no place here: only sessions of plain batches and bulk loads.
inline std::shared_ptr<Script> recorded(const std::string& name, std::size_t read_at_most) {
  auto script = std::make_shared<Script>();
  script->read_at_most = read_at_most;
  std::string server;
  std::optional<PacketType> client;
  for (const CapturedPacket& packet : load_capture(name)) {
    if (!packet.from_client) {
      server += packet.bytes;
      continue;
    }
    if ((packet.bytes[1] & tds::status_eom) == 0) continue;
    if (client) script->expect(*client).send(std::exchange(server, {}));
    client = static_cast<PacketType>(packet.bytes[0]);
  }
  script->expect(*client).send(server);
  return script;
}

// Runs a step of the test: a coroutine function over the session.
class Conversation {
 public:
  explicit Conversation(std::shared_ptr<Script> script, tds::LoginOptions options = plain_options())
      : script_(std::move(script)) {
    session_ = loop_.run(tds::Session::login(loop_, std::make_unique<ScriptedStream>(script_), std::move(options)));
  }
  tds::Session& session() { return *session_; }
  net::Loop& loop() { return loop_; }
  Script& script() { return *script_; }

  tds::QueryResult query(std::string sql, std::chrono::milliseconds timeout = std::chrono::milliseconds{0}) {
    return loop_.run(session_->query(std::move(sql), timeout));
  }
  std::uint64_t execute(std::string sql) { return loop_.run(session_->execute(std::move(sql))); }
  // The Error that the statement throws; fails the test when there is none.
  Error failure(std::string sql, std::chrono::milliseconds timeout = std::chrono::milliseconds{0}) {
    try {
      (void)query(std::move(sql), timeout);
    } catch (const Error& error) {
      return error;
    }
    return Error(Category::internal, "no_error", "the statement did not fail");
  }
  void drop_session() { session_.reset(); }

 private:
  net::Loop loop_;
  std::shared_ptr<Script> script_;
  std::unique_ptr<tds::Session> session_;
};

// The Error of a login that must fail.
inline Error login_failure(std::shared_ptr<Script> script, tds::LoginOptions options = plain_options()) {
  net::Loop loop;
  try {
    (void)loop.run(tds::Session::login(loop, std::make_unique<ScriptedStream>(std::move(script)), std::move(options)));
  } catch (const Error& error) {
    return error;
  }
  return Error(Category::internal, "no_error", "the login did not fail");
}

}  // namespace rowferry::test
