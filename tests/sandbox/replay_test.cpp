// What a recorded client sent to another server, sent to the sandbox packet by packet.
#include "capture.hpp"
#include "conversation.hpp"

using namespace rowferry;
using namespace rowferry::test;
using async::Task;

namespace {

// Each message of the recording and the sandbox's answer to it.
Task<void> replay(Conversation* c, std::string name) {
  WireClient client(c->loop, c->server.port());
  co_await client.connect();
  for (const std::string& packet : capture_packets(name, 'C')) {
    co_await client.send(packet);
    const bool last = (static_cast<std::uint8_t>(packet[1]) & tds::status_eom) != 0;
    const bool prelogin = packet[0] == 0x12;
    if (!last) continue;
    const Answer answer = co_await client.receive();
    if (!prelogin) c->note(answer);
  }
}

Task<void> replay_bulk_load(Conversation* c) { return replay(c, "07-bulk-load-13-columns.tds"); }
Task<void> replay_login(Conversation* c) { return replay(c, "01-login-and-versions.tds"); }

sandbox::Options for_recordings() {
  sandbox::Options options;
  options.databases = {"testdb"};
  return options;
}

}  // namespace

Test(replay, a_recorded_bulk_load_is_taken_and_read_back) {
  const auto notes = converse(replay_bulk_load, for_recordings());
  cr_assert_eq(notes.size(), 6u, "%s", notes.empty() ? "" : notes.back().c_str());
  cr_expect(notes[0].ends_with("loginack 74000004, features 0A, done"), "%s", notes[0].c_str());
  cr_expect(notes[1].find("error") == std::string::npos, "SET options: %s", notes[1].c_str());
  cr_expect(notes[2] == "done more, done", "create: %s", notes[2].c_str());
  cr_expect(notes[3] == "done", "INSERT BULK: %s", notes[3].c_str());
  cr_expect(notes[4] == "done count=60", "the load: %s", notes[4].c_str());
  cr_expect(notes[5].ends_with("rows 60, done count=60"), "read back: %s", notes[5].c_str());
}

Test(replay, a_recorded_login_and_query) {
  const auto notes = converse(replay_login, for_recordings());
  cr_assert_eq(notes.size(), 3u);
  cr_expect(notes[2] == "columns 3, rows 1, done count=1", "%s", notes[2].c_str());
}
