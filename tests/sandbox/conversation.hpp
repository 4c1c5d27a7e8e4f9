// Runs a scripted conversation against a sandbox on the loopback and gives what was noted in it.
#pragma once

#include <criterion/criterion.h>

#include "sandbox/server.hpp"
#include "wire_client.hpp"

namespace rowferry::test {

struct Conversation {
  net::Loop& loop;
  sandbox::SandboxServer& server;
  std::vector<std::string> notes;

  void note(const Answer& answer) { notes.push_back(answer.story); }
  void note(std::string words) { notes.push_back(std::move(words)); }
};

using Scenario = async::Task<void> (*)(Conversation*);

inline async::Task<void> converse_on(net::Loop* loop, sandbox::Options options, Scenario scenario,
                                     std::vector<std::string>* notes) {
  sandbox::SandboxServer server(*loop, std::move(options));
  Conversation conversation{*loop, server, {}};
  std::exception_ptr error;
  try {
    co_await net::with_deadline(*loop, std::chrono::milliseconds(30'000), "the conversation", scenario(&conversation));
  } catch (...) {
    error = std::current_exception();
  }
  co_await server.stop();
  if (error) conversation.note("failed: " + describe(error));
  *notes = std::move(conversation.notes);
}

inline sandbox::Options usual_options() {
  sandbox::Options options;
  options.databases = {"shop"};
  options.password = "secret";
  return options;
}

inline sandbox::Options with_fault(sandbox::Fault fault) {
  sandbox::Options options = usual_options();
  options.faults = std::make_shared<sandbox::FaultPlan>(std::vector<sandbox::Fault>{std::move(fault)});
  return options;
}

inline std::vector<std::string> converse(Scenario scenario, sandbox::Options options = usual_options()) {
  net::Loop loop;
  std::vector<std::string> notes;
  loop.run(converse_on(&loop, std::move(options), scenario, &notes));
  return notes;
}

inline void expect_notes(const std::vector<std::string>& got, const std::vector<std::string>& wanted) {
  for (std::size_t i = 0; i < std::max(got.size(), wanted.size()); ++i) {
    const std::string g = i < got.size() ? got[i] : "(nothing)";
    const std::string w = i < wanted.size() ? wanted[i] : "(nothing)";
    cr_expect(g == w, "note %zu: \"%s\", wanted \"%s\"", i, g.c_str(), w.c_str());
  }
}

// A connected and logged-in client, or a note of why not.
inline async::Task<void> log_in(WireClient* client, std::uint32_t packet_wish = 4096) {
  const Answer answer = co_await client->log_in("sa", "secret", "shop", packet_wish);
  if (answer.story.find("loginack") == std::string::npos) {
    throw Error(Category::internal, "no_login", "the login failed: " + answer.story);
  }
}

// The bulk stream of a table (id int not null, v nvarchar(20) null).
inline std::string bulk_columns() {
  return from_hex(
      "81 02 00"
      "00 00 00 00 08 00 26 04 02 69 00 64 00"
      "00 00 00 00 09 00 E7 28 00 09 04 D0 00 34 01 76 00");
}
inline std::string bulk_row(std::int32_t id, std::string_view text = "x") {
  std::string row = from_hex("D1 04 00 00 00 00 00 00") + text::to_utf16le(text);
  store_le(reinterpret_cast<std::uint8_t*>(row.data()) + 2, id);
  store_le(reinterpret_cast<std::uint8_t*>(row.data()) + 6, static_cast<std::uint16_t>(row.size() - 8));
  return row;
}
inline std::string bulk_rows(int n) {
  std::string rows;
  for (int i = 1; i <= n; ++i) rows += bulk_row(i);
  return rows;
}
inline const char* const create_t = "create table dbo.t (id int not null primary key, v nvarchar(20) null)";
inline const char* const insert_bulk_t = "insert bulk dbo.t ([id] int, [v] nvarchar(20)) with (keep_nulls)";

}  // namespace rowferry::test
