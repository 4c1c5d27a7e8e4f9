// Requests, bulk loads, attention, transactions and faults over a real socket.
#include "conversation.hpp"

using namespace rowferry;
using namespace rowferry::test;
using async::Task;
using sandbox::FaultKind;

namespace {

Task<void> count_rows(Conversation* c, WireClient* client, std::string table = "dbo.t") {
  const Answer answer = co_await client->batch("select count(*) from " + table);
  // An int, with or without a length byte before it: the lowest of the last four bytes.
  const std::size_t at = answer.rows.empty() ? 0 : answer.rows[0].size() - 11;
  c->note(answer.rows.empty() ? answer.story : "count " + answer.rows[0].substr(at, 2));
}

Task<void> start_bulk(WireClient* client) {
  co_await client->batch(create_t);
  co_await client->batch(insert_bulk_t);
}

Task<void> bulk_endings(Conversation* c) {
  WireClient client(c->loop, c->server.port());
  co_await log_in(&client);
  co_await client.batch(create_t);
  int id = 0;
  for (const char* done : {"", "FD 00 00 00 00 00 00 00 00", "FD 00 00 00 00 00 00 00 00 00 00 00 00"}) {
    c->note(co_await client.batch(insert_bulk_t));
    id += 2;
    c->note(co_await client.bulk(bulk_columns() + bulk_row(id - 1) + bulk_row(id) + from_hex(done)));
  }
  co_await count_rows(c, &client);
}

// A batch where bulk data is due; the statement is gone, the connection goes on.
Task<void> batch_instead_of_bulk(Conversation* c) {
  WireClient client(c->loop, c->server.port());
  co_await log_in(&client);
  co_await start_bulk(&client);
  c->note(co_await client.batch("select 1"));
  c->note(co_await client.batch("select 1"));
  c->note(co_await client.bulk(bulk_columns() + bulk_row(1)));
  co_await count_rows(c, &client);
}

Task<void> abort_by_ignore(Conversation* c) {
  WireClient client(c->loop, c->server.port());
  co_await log_in(&client, 512);
  co_await start_bulk(&client);
  co_await client.send(WireClient::packet(7, 3, ""));
  c->note(co_await client.receive());
  co_await client.batch(insert_bulk_t);
  const std::string rows = bulk_columns() + bulk_rows(200);
  co_await client.send(WireClient::packet(7, 0, rows.substr(0, 504)) + WireClient::packet(7, 0, rows.substr(504, 504)) +
                       WireClient::packet(7, 3, ""));
  c->note(co_await client.receive());
  co_await count_rows(c, &client);
}

Task<void> abort_by_attention(Conversation* c) {
  WireClient client(c->loop, c->server.port());
  co_await log_in(&client, 512);
  co_await start_bulk(&client);
  const std::string rows = bulk_columns() + bulk_rows(200);
  co_await client.send(WireClient::packet(7, 0, rows.substr(0, 504)) + WireClient::packet(7, 0, rows.substr(504, 504)) +
                       WireClient::packet(6, 1, ""));
  c->note(co_await client.receive());
  co_await client.batch(insert_bulk_t);
  co_await client.send(WireClient::packet(6, 1, ""));
  c->note(co_await client.receive());
  co_await count_rows(c, &client);
  c->note(co_await client.batch(insert_bulk_t));
  c->note(co_await client.bulk(bulk_columns() + bulk_rows(3)));
}

Task<void> batch_taken_back(Conversation* c) {
  WireClient client(c->loop, c->server.port());
  co_await log_in(&client, 512);
  std::string body = client.headers() + text::to_utf16le("create table dbo.never (id int)");
  body.resize(504, ' ');
  co_await client.send(WireClient::packet(1, 0, body) + WireClient::packet(1, 3, ""));
  c->note(co_await client.receive());
  c->note(co_await client.batch("select object_id('dbo.never')"));
}

Task<void> bad_bulk(Conversation* c) {
  WireClient client(c->loop, c->server.port());
  co_await log_in(&client);
  co_await client.batch(create_t);
  std::string long_value = bulk_row(3, "twenty-one characters");
  for (const std::string& tail : {bulk_row(3).substr(0, 7), from_hex("D2 00"), long_value, from_hex("00"),
                                  from_hex("D1 00 FF FF"), bulk_row(2)}) {
    c->note(co_await client.batch(insert_bulk_t));
    c->note(co_await client.bulk(bulk_columns() + bulk_row(1) + bulk_row(2) + tail));
    co_await count_rows(c, &client);
  }
  c->note(co_await client.batch(insert_bulk_t));
  c->note(co_await client.bulk(""));
}

// The error does not wait for the end of what is sent, and the rest of a long message is read and dropped.
Task<void> long_refused_bulk(Conversation* c) {
  WireClient client(c->loop, c->server.port());
  co_await log_in(&client, 32764);
  co_await start_bulk(&client);
  c->note(co_await client.bulk(bulk_columns() + from_hex("D2 00") + bulk_rows(300'000)));
  co_await count_rows(c, &client);
}

Task<void> idle_attention(Conversation* c) {
  WireClient client(c->loop, c->server.port());
  co_await log_in(&client);
  co_await client.send(WireClient::packet(6, 1, ""));
  c->note(co_await client.receive());
  c->note(co_await client.batch("select 1"));
}

Task<void> attention_in_waitfor(Conversation* c) {
  WireClient client(c->loop, c->server.port());
  co_await log_in(&client);
  co_await client.send_message(1, client.headers() + text::to_utf16le("waitfor delay '00:01:00'; select 1"));
  co_await net::sleep_for(c->loop, std::chrono::milliseconds(50));
  co_await client.send(WireClient::packet(6, 1, ""));
  c->note(co_await client.receive());
  c->note(co_await client.receive());
  c->note(co_await client.batch("select 1"));
}

Task<void> leave_in_waitfor(Conversation* c) {
  {
    WireClient client(c->loop, c->server.port());
    co_await log_in(&client);
    co_await client.send_message(1, client.headers() + text::to_utf16le("waitfor delay '00:01:00'"));
    co_await net::sleep_for(c->loop, std::chrono::milliseconds(50));
    client.close();
  }
  for (int i = 0; i < 100 && c->server.connections() != 0; ++i) {
    co_await net::sleep_for(c->loop, std::chrono::milliseconds(20));
  }
  c->note(std::to_string(c->server.connections()));
}

// KILL of a session that has an open transaction and waits for nothing.
Task<void> kill_idle(Conversation* c) {
  WireClient victim(c->loop, c->server.port());
  co_await log_in(&victim);
  co_await victim.batch(create_t);
  co_await victim.batch("begin tran insert dbo.t values (1, N'x')");
  WireClient client(c->loop, c->server.port());
  co_await log_in(&client);
  c->note(co_await client.batch("kill 51"));
  c->note(co_await victim.receive());
  for (int i = 0; i < 100 && c->server.connections() != 1; ++i) {
    co_await net::sleep_for(c->loop, std::chrono::milliseconds(20));
  }
  c->note(co_await client.batch("select session_id from sys.dm_exec_sessions"));
  co_await count_rows(c, &client);
  c->note(co_await client.batch("kill 52"));
  c->note(co_await client.batch("kill 51"));
}

// A long statement on one connection, short ones on another meanwhile.
Task<void> ask_meanwhile(Conversation* c) {
  WireClient slow(c->loop, c->server.port());
  co_await log_in(&slow, 32764);
  co_await slow.batch(create_t);
  co_await slow.batch(insert_bulk_t);
  co_await slow.bulk(bulk_columns() + bulk_rows(1'000'000) + from_hex("FD 00 00 00 00 00 00 00 00 00 00 00 00"));
  WireClient client(c->loop, c->server.port());
  co_await log_in(&client);
  co_await slow.send_message(
      1, slow.headers() + text::to_utf16le("select count(*), sum(id % 7) from dbo.t where v + N'y' = N'xy'"));
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < 3; ++i) co_await client.batch("select 1");
  const auto short_ones = std::chrono::steady_clock::now() - began;
  c->note(co_await slow.receive());
  const auto long_one = std::chrono::steady_clock::now() - began;
  c->note(short_ones < long_one / 2 ? "answers long before it" : "the answers had to wait");
}

Task<void> reset_connection(Conversation* c) {
  WireClient client(c->loop, c->server.port());
  co_await log_in(&client);
  co_await client.batch("create table #mine (id int)");
  co_await client.batch("use master");
  c->note(co_await client.batch("select db_name()", 0x08));
  c->note(co_await client.batch("select * from #mine"));
}

// As connection pools do: the next request after a failed load resets the connection.
Task<void> reset_after_failed_bulk(Conversation* c) {
  WireClient client(c->loop, c->server.port());
  co_await log_in(&client);
  co_await start_bulk(&client);
  c->note(co_await client.bulk(bulk_columns() + bulk_row(1) + bulk_row(1)));
  c->note(co_await client.batch("select 1", 0x08));
  co_await client.batch("begin tran");
  co_await client.batch(insert_bulk_t);
  c->note(co_await client.bulk(bulk_columns() + bulk_row(1) + bulk_row(1)));
  client.descriptor = 0;
  c->note(co_await client.batch("select 1", 0x08));
  c->note(co_await client.batch("select @@trancount"));
  co_await count_rows(c, &client);
  co_await client.batch(insert_bulk_t);
  c->note(co_await client.bulk(bulk_columns() + bulk_rows(3)));
}

Task<void> transactions(Conversation* c) {
  WireClient client(c->loop, c->server.port());
  co_await log_in(&client);
  co_await client.batch(create_t);
  c->note(co_await client.ask(0x0E, client.headers() + from_hex("05 00 02 00")));
  c->note(client.descriptor != 0 ? "a descriptor" : "none");
  c->note(co_await client.batch("insert into dbo.t values (1, N'a')"));
  const std::uint64_t own = std::exchange(client.descriptor, 0);
  c->note(co_await client.batch("select 1"));  // without the descriptor
  client.descriptor = own;
  c->note(co_await client.ask(0x0E, client.headers() + from_hex("08 00 00 00")));
  client.descriptor = 0;
  co_await count_rows(c, &client);
  c->note(co_await client.batch("begin tran; insert into dbo.t values (1, N'a')"));
  c->note(co_await client.batch("commit"));
  client.descriptor = 0;
  co_await count_rows(c, &client);
}

Task<void> remote_calls(Conversation* c) {
  WireClient client(c->loop, c->server.port());
  co_await log_in(&client);
  const std::string call = from_hex(
      "FF FF 0A 00 00 00 00 00 E7 40 1F 09 04 D0 00 34 12 00 73 00 65 00 6C 00 65 00 63 00 74 00 20 00 40 00 70 00"
      "00 00 E7 40 1F 09 04 D0 00 34 0C 00 40 00 70 00 20 00 69 00 6E 00 74 00"
      "02 40 00 70 00 00 26 04 04 2A 00 00 00");
  const Answer one = co_await client.ask(3, client.headers() + call);
  c->note(one);
  c->note(one.rows.at(0));
  const Answer two = co_await client.ask(3, client.headers() + call + from_hex("FF") + call);
  c->note(two);
}

// A client that does not read holds nobody else up, and gets every row when it reads at last.
Task<void> slow_reader(Conversation* c) {
  WireClient slow(c->loop, c->server.port());
  co_await log_in(&slow, 32764);
  co_await start_bulk(&slow);
  co_await slow.bulk(bulk_columns() + bulk_rows(20'000));
  co_await slow.send_message(
      1, slow.headers() +
             text::to_utf16le("select a.id, b.id, a.v from dbo.t a cross join (select top 50 id from dbo.t) b"));
  co_await net::sleep_for(c->loop, std::chrono::milliseconds(100));
  WireClient other(c->loop, c->server.port());
  co_await log_in(&other);
  c->note(co_await other.batch("select 1"));
  const Answer all = co_await slow.receive();
  c->note(all);
}

Task<void> cut_bulk(Conversation* c) {
  WireClient client(c->loop, c->server.port());
  co_await log_in(&client, 512);
  co_await start_bulk(&client);
  try {
    c->note(co_await client.bulk(bulk_columns() + bulk_rows(20'000)));
  } catch (const Error& error) {
    if (error.category() != Category::connection) throw;
    c->note("closed");
  }
  WireClient again(c->loop, c->server.port());
  co_await log_in(&again);
  co_await count_rows(c, &again);
}

Task<void> commit_and_look(Conversation* c) {
  WireClient client(c->loop, c->server.port());
  co_await log_in(&client);
  co_await client.batch(create_t);
  co_await client.batch("begin tran; insert into dbo.t values (1, N'a')");
  c->note(co_await client.batch("COMMIT"));
  WireClient again(c->loop, c->server.port());
  co_await log_in(&again);
  co_await count_rows(c, &again);
}

Task<void> three_inserts(Conversation* c) {
  WireClient client(c->loop, c->server.port());
  co_await log_in(&client);
  co_await client.batch(create_t);
  for (int i = 1; i <= 3; ++i) {
    const Answer answer = co_await client.batch(fmt::format("insert into dbo.t values ({}, N'a')", i));
    c->note(answer);
    if (answer.closed) co_return;
  }
  co_await count_rows(c, &client);
}

Task<void> timed_bulk(Conversation* c) {
  WireClient client(c->loop, c->server.port());
  co_await log_in(&client);
  co_await start_bulk(&client);
  const auto began = std::chrono::steady_clock::now();
  c->note(co_await client.bulk(bulk_columns() + bulk_rows(3)));
  const auto took = std::chrono::steady_clock::now() - began;
  c->note(took >= std::chrono::milliseconds(150) ? "stalled" : "not stalled");
}

constexpr const char* one_row = "columns 1, rows 1, done count=1";

}  // namespace

Test(bulk, takes_every_ending_that_clients_use) {
  expect_notes(converse(bulk_endings),
               {"done", "done count=2", "done", "done count=2", "done", "done count=2", "count 06"});
}

Test(bulk, something_else_instead_is_4022) {
  expect_notes(converse(batch_instead_of_bulk),
               {"error 4022, done error", one_row, "error 4805, done error", "count 00"});
}

Test(bulk, is_taken_back_by_ignore) {
  expect_notes(converse(abort_by_ignore), {"done error", "done error", "count 00"});
}

Test(bulk, is_taken_back_by_attention) {
  expect_notes(converse(abort_by_attention), {"done attention", "done attention", "count 00", "done", "done count=3"});
}

Test(bulk, bad_streams_are_refused_whole) {
  expect_notes(converse(bad_bulk), {"done",
                                    "error 4804, done error",
                                    "count 00",
                                    "done",
                                    "error 4807, done error",
                                    "count 00",
                                    "done",
                                    "error 4815, done error",
                                    "count 00",
                                    "done",
                                    "error 4807, done error",
                                    "count 00",
                                    "done",
                                    "error 515, info 3621, done error",
                                    "count 00",
                                    "done",
                                    "error 2627, info 3621, done error",
                                    "count 00",
                                    "done",
                                    "error 4894, done error"});
}

Test(bulk, a_refused_message_is_read_to_its_end) {
  expect_notes(converse(long_refused_bulk), {"error 4807, done error", "count 00"});
}

Test(request, can_be_taken_back_while_it_is_sent) { expect_notes(converse(batch_taken_back), {"done error", one_row}); }

Test(attention, is_acknowledged_when_idle) { expect_notes(converse(idle_attention), {"done attention", one_row}); }

Test(attention, ends_a_wait_and_is_acknowledged_on_its_own) {
  expect_notes(converse(attention_in_waitfor), {"done error", "done attention", one_row});
}

Test(connection, ends_when_its_client_goes_in_a_wait) { expect_notes(converse(leave_in_waitfor), {"0"}); }

Test(connection, is_ended_by_kill) {
  expect_notes(converse(kill_idle), {"done", "closed", "columns 1, rows 1, done count=1", "count 00",
                                     "error 6104, done error", "error 6106, done error"});
}

Test(connection, is_answered_while_another_has_a_long_statement, .timeout = 120) {
  expect_notes(converse(ask_meanwhile), {"columns 2, rows 1, done count=1", "answers long before it"});
}

Test(connection, is_reset_on_request) {
  expect_notes(converse(reset_connection), {"env 18, columns 1, rows 1, done count=1", "error 208, done error"});
}

Test(connection, can_be_reset_right_after_a_failed_load) {
  const std::string refused = "error 2627, info 3621, done error";
  const std::string reset = std::string("env 18, ") + one_row;
  expect_notes(converse(reset_after_failed_bulk), {refused, reset, refused, std::string("env 18, env 10, ") + one_row,
                                                   one_row, "count 00", "done count=3"});
}

Test(transactions, are_announced_and_demand_their_descriptor) {
  expect_notes(converse(transactions),
               {"env 8, done", "a descriptor", "done count=1", "error 3989, done error", "env 10, done", "count 00",
                "env 8, done more, done count=1", "env 9, done", "count 01"});
}

Test(request, calls_answer_with_status_and_doneproc) {
  expect_notes(converse(remote_calls),
               {"columns 1, rows 1, doneinproc count=1 more, status 0, doneproc", "04 2A 00 00 00",
                "columns 1, rows 1, doneinproc count=1 more, status 0, doneproc more, "
                "columns 1, rows 1, doneinproc count=1 more, status 0, doneproc"});
}

Test(connection, a_slow_reader_holds_nobody_up) {
  expect_notes(converse(slow_reader), {one_row, "columns 3, rows 1000000, done count=1000000"});
}

Test(faults, a_bulk_message_is_cut) {
  expect_notes(converse(cut_bulk, with_fault({.kind = FaultKind::cut_bulk, .bytes = 5000})), {"closed", "count 00"});
}

Test(faults, the_connection_is_cut_around_commit) {
  expect_notes(converse(commit_and_look, with_fault({.kind = FaultKind::cut_before_commit})), {"closed", "count 00"});
  expect_notes(converse(commit_and_look, with_fault({.kind = FaultKind::cut_after_commit})), {"closed", "count 01"});
}

Test(faults, the_nth_statement_gets_an_error) {
  expect_notes(
      converse(three_inserts, with_fault({.kind = FaultKind::error, .nth = 2, .match = "INSERT", .number = 1205})),
      {"done count=1", "error 1205, done error", "done count=1", "count 02"});
}

Test(faults, an_answer_is_cut) {
  expect_notes(converse(three_inserts, with_fault({.kind = FaultKind::cut_reply, .match = "insert", .bytes = 5})),
               {"closed"});
}

Test(faults, reading_stalls) {
  expect_notes(
      converse(timed_bulk, with_fault({.kind = FaultKind::stall_bulk, .wait = std::chrono::milliseconds(200)})),
      {"done count=3", "stalled"});
}

Test(faults, are_read_from_json) {
  auto plan = sandbox::FaultPlan::from_json(
      R"({"faults": [{"kind": "error", "nth": 2, "times": 2, "match": "select", "number": 1205, "severity": 13}]})");
  std::string struck;
  for (int i = 0; i < 5; ++i) struck += plan.strike(FaultKind::error, "SELECT 1") != nullptr ? 'x' : '.';
  cr_expect_str_eq(struck.c_str(), ".xx..");
  cr_expect_null(plan.strike(FaultKind::error, "insert"));
  for (const char* bad :
       {"", "[]", "{}", R"({"faults": [1]})", R"({"faults": [{}]})", R"({"faults": [{"kind": "no"}]})",
        R"({"faults": [{"kind": "error", "nth": -1}]})", R"({"faults": [{"kind": "error", "what": 1}]})"}) {
    bool refused = false;
    try {
      sandbox::FaultPlan::from_json(bad);
    } catch (const Error& error) {
      refused = error.category() == Category::input;
    }
    cr_expect(refused, "%s", bad);
  }
}

Test(faults, commit_is_a_word) {
  cr_expect(sandbox::is_commit("COMMIT"));
  cr_expect(sandbox::is_commit("if @@trancount > 0 commit tran;"));
  cr_expect_not(sandbox::is_commit("set cursor_close_on_commit off"));
  cr_expect_not(sandbox::is_commit("select committed from t"));
}
