#include "tds/session.hpp"

#include "async/scope.hpp"
#include "tests/tds/capture.hpp"
#include "tests/tds/session_support.hpp"

using namespace rowferry;
using namespace rowferry::test;
using std::chrono::milliseconds;

namespace {

constexpr std::uint8_t not_supported = 2;

void went_well(Conversation& talk) { cr_assert_eq(talk.script().verdict(), "", "%s", talk.script().verdict().c_str()); }

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

// ---- login ----------------------------------------------------------------------------------------------------------

Test(login, without_encryption) {
  Conversation talk(logged_in());
  went_well(talk);
  const tds::ServerInfo& info = talk.session().info();
  cr_assert_eq(info.program, "Microsoft SQL Server");
  cr_assert_eq(info.version(), "16.0.4135");
  cr_assert_eq(info.database, "dw");
  cr_assert_eq(info.packet_bytes, 4096u, "without an ENVCHANGE the size stays");
  cr_assert(info.utf8);
  cr_assert_not(info.encrypted);
  cr_assert_eq(talk.session().login_messages().size(), 1u);
  cr_assert(talk.session().usable());
  cr_assert_not(talk.session().in_transaction());
}

Test(login, asks_for_large_packets_and_the_odbc_defaults) {
  Conversation talk(logged_in());
  const std::string& login = talk.script().messages[1].payload;
  cr_assert_eq(load_le<std::uint32_t>(reinterpret_cast<const std::uint8_t*>(login.data()) + 8), 32764u);
  cr_assert_eq(static_cast<std::uint8_t>(login[25]) & 2, 2, "fODBC");
  cr_assert_eq(static_cast<std::uint8_t>(login[24]) & 0x20, 0x20, "USE_DB notification");
}

Test(login, packets_have_the_announced_size_from_the_next_message_on) {
  auto script = logged_in(512);
  script->expect(PacketType::sql_batch).send(reply(done()));
  Conversation talk(script);
  cr_assert_eq(talk.session().info().packet_bytes, 512u);
  cr_assert_eq(talk.script().messages[1].packets.size(), 1u);
  talk.execute(std::string(1000, 'x'));
  const ClientMessage& batch = talk.script().messages[2];
  cr_assert_eq(batch.payload.size(), 22u + 2000u);
  for (std::size_t i = 0; i + 1 < batch.packets.size(); ++i) cr_assert_eq(batch.packets[i], 512u);
  cr_assert_leq(batch.packets.back(), 512u);
}

Test(login, every_packet_size_is_asked_for_and_kept_to_in_both_directions) {
  for (const std::size_t size :
       {std::size_t{512}, std::size_t{4096}, std::size_t{16383}, std::size_t{16384}, std::size_t{32767}}) {
    const std::string value(100'000, 'v');
    auto script = logged_in(size);
    script->expect(PacketType::sql_batch)
        .send(reply(from_hex("81 01 00 00 00 00 00 09 00 A7 FF FF 09 04 D0 00 34 01 76 00 D1") +
                        le(std::uint64_t{value.size()}) + le(static_cast<std::uint32_t>(value.size())) + value +
                        le(std::uint32_t{0}) + done(0x10, 1),
                    size));
    tds::LoginOptions options = plain_options();
    options.packet_bytes = size;
    Conversation talk(script, options);
    cr_assert_eq(load_le<std::uint32_t>(reinterpret_cast<const std::uint8_t*>(script->messages[1].payload.data()) + 8),
                 size);
    cr_assert_eq(talk.query("select '" + std::string(50'000, 'x') + "'").scalar().text(), value, "%zu", size);
    went_well(talk);
    for (std::size_t i : {0, 1}) {
      for (const std::size_t packet : script->messages[i].packets) cr_assert_leq(packet, 4096u);
    }
    const std::vector<std::size_t>& packets = script->messages[2].packets;
    for (std::size_t i = 0; i + 1 < packets.size(); ++i) cr_assert_eq(packets[i], size);
    cr_assert_eq(packets.size(), (script->messages[2].payload.size() + size - 9) / (size - 8), "%zu", size);
  }
}

Test(login, batches_at_the_exact_packet_border) {
  for (const std::size_t body :
       {std::size_t{502}, std::size_t{504}, std::size_t{506}, std::size_t{1008}, std::size_t{1010}}) {
    auto script = logged_in(512);
    script->expect(PacketType::sql_batch).send(reply(done()));
    Conversation talk(script);
    talk.execute(std::string((body - 22) / 2, 'x'));
    went_well(talk);
    cr_assert_eq(talk.script().messages[2].packets.size(), (body + 503) / 504, "%zu bytes", body);
  }
}

Test(login, a_wrong_password_gives_the_servers_text_and_the_users_name_but_never_the_password) {
  auto script = std::make_shared<Script>();
  script->expect(PacketType::prelogin).send(prelogin_reply(not_supported));
  script->expect(PacketType::login7).send(reply(error(18456, "Login failed for user 'ferry'.", 14) + done(2))).close();
  const Error error = login_failure(script);
  cr_assert_eq(error.code(), "login_failed", "%s", error.what());
  cr_assert_eq(static_cast<int>(error.category()), static_cast<int>(Category::server));
  cr_assert(contains(error.detail(), "ferry"));
  cr_assert(contains(error.detail(), "Login failed for user"));
  cr_assert_not(contains(error.one_line(), "s3cr3t"));
  cr_assert_eq(error.fault()->number, "18456");
  cr_assert_not(error.transient());
}

Test(login, failures_are_told_apart) {
  const struct {
    std::string tokens;
    const char* code;
    bool transient;
  } cases[] = {
      {error(4060, "Cannot open database \"dw\".", 11) + error(18456, "Login failed.", 14), "database_unavailable",
       false},
      {error(18488, "The password must be changed.", 14), "password_expired", false},
      {error(40615, "Cannot open server: client IP not allowed.", 14), "firewall", false},
      {error(40613, "Database is not currently available.", 17), "server_error", true},
  };
  for (const auto& c : cases) {
    auto script = std::make_shared<Script>();
    script->expect(PacketType::prelogin).send(prelogin_reply(not_supported));
    script->expect(PacketType::login7).send(reply(c.tokens + done(2)));
    const Error error = login_failure(script);
    cr_expect_eq(error.code(), c.code, "%s and not %s", error.code().c_str(), c.code);
    cr_expect_eq(error.transient(), c.transient, "%s", c.code);
  }
}

Test(login, refuses_acknowledgements_of_what_was_not_asked_for) {
  auto script = std::make_shared<Script>();
  script->expect(PacketType::prelogin).send(prelogin_reply(not_supported));
  script->expect(PacketType::login7).send(reply(login_ack() + from_hex("AE 04 01 00 00 00 01 FF") + done()));
  const Error error = login_failure(script);
  cr_assert_eq(error.code(), "protocol");
  cr_assert(contains(error.detail(), "0x04"));
}

Test(login, needs_an_acknowledgement) {
  auto script = std::make_shared<Script>();
  script->expect(PacketType::prelogin).send(prelogin_reply(not_supported));
  script->expect(PacketType::login7).send(reply(done()));
  cr_assert_eq(login_failure(script).code(), "protocol");
}

Test(login, a_redirection_is_named) {
  auto script = std::make_shared<Script>();
  script->expect(PacketType::prelogin).send(prelogin_reply(not_supported));
  script->expect(PacketType::login7)
      .send(reply(from_hex("E3 12 00 14 0D 00 00 F8 2A 04 00 73 00 72 00 76 00 31 00 00 00") + done()));
  const Error error = login_failure(script);
  cr_assert_eq(error.code(), "routing");
  cr_assert(contains(error.detail(), "srv1:11000"));
}

Test(login, encryption_that_cannot_be_agreed_says_which_setting_would_help) {
  for (const std::uint8_t answer : {0, 2}) {
    auto script = std::make_shared<Script>();
    script->expect(PacketType::prelogin).send(prelogin_reply(answer));
    tds::LoginOptions options = plain_options();
    options.encrypt = tds::Encrypt::on;
    const Error error = login_failure(script, options);
    cr_assert_eq(error.code(), "encryption_refused", "a downgrade must not pass: %s", error.what());
    cr_assert(contains(error.hint(), "encrypt"));
    cr_assert_eq(script->messages.size(), 1u, "nothing of the login was sent");
  }
  auto script = std::make_shared<Script>();
  script->expect(PacketType::prelogin).send(prelogin_reply(3));
  const Error error = login_failure(script);
  cr_assert_eq(error.code(), "encryption_refused");
  cr_assert(contains(error.hint(), "encrypt = \"on\""));
}

Test(login, authentication_of_another_kind_is_named) {
  for (const char* token : {"ED 02 00 01 02", "EE 04 00 00 00 00 00 00 00"}) {
    auto script = std::make_shared<Script>();
    script->expect(PacketType::prelogin).send(prelogin_reply(not_supported));
    script->expect(PacketType::login7).send(reply(from_hex(token)));
    cr_assert_eq(login_failure(script).code(), "authentication");
  }
}

namespace {

Error connect_failure(tds::LoginOptions options) {
  net::Loop loop;
  try {
    (void)loop.run(tds::Session::connect(loop, std::move(options)));
  } catch (const Error& error) {
    return error;
  }
  return Error(Category::internal, "no_error", "the connect did not fail");
}

}  // namespace

Test(connect, nobody_listens) {
  tds::LoginOptions options = plain_options();
  options.host = "127.0.0.1";
  {
    net::Loop loop;
    net::Listener once(loop, "127.0.0.1", 0);
    options.port = once.port();
  }
  const Error error = connect_failure(options);
  cr_assert_eq(error.code(), "connect_failed", "%s", error.what());
  cr_assert(contains(error.detail(), "127.0.0.1"));
}

Test(connect, a_peer_that_never_answers_is_given_up_at_the_deadline) {
  net::Loop other;
  const net::Listener silent(other, "127.0.0.1", 0);
  tds::LoginOptions options = plain_options();
  options.host = "127.0.0.1";
  options.port = silent.port();
  options.connect_timeout = milliseconds{100};
  const Error error = connect_failure(options);
  cr_assert_eq(static_cast<int>(error.category()), static_cast<int>(Category::timeout), "%s", error.what());
}

Test(login, a_peer_that_is_no_sql_server) {
  auto script = std::make_shared<Script>();
  script->expect(PacketType::prelogin).send("HTTP/1.1 400 Bad Request\r\n\r\n");
  cr_assert_eq(login_failure(script).code(), "protocol");
  script = std::make_shared<Script>();
  script->expect(PacketType::prelogin).close();
  const Error error = login_failure(script);
  cr_assert_eq(error.code(), "protocol");
  cr_assert(contains(error.hint(), "SQL Server"));
}

Test(login, a_server_that_only_speaks_tls_from_the_first_byte_is_hinted_at) {
  for (const char* answer : {"", "15 03 03 00 02 02 46"}) {  // nothing, or an alert that is shorter than a TDS header
    auto script = std::make_shared<Script>();
    script->expect(PacketType::prelogin).send(from_hex(answer)).close();
    const Error error = login_failure(script);
    cr_assert_eq(error.code(), "protocol");
    cr_assert(contains(error.hint(), "strict"), "%s", error.hint().c_str());
  }
}

Test(login, packet_sizes_outside_the_protocol_are_refused_before_anything_is_sent) {
  tds::LoginOptions options = plain_options();
  options.packet_bytes = 100;
  auto script = std::make_shared<Script>();
  const Error error = login_failure(script, options);
  cr_assert_eq(error.code(), "bad_packet_size");
  cr_assert_eq(script->messages.size(), 0u);
}

Test(login, works_byte_by_byte) {
  auto script = logged_in(512);
  script->read_at_most = 1;
  script->expect(PacketType::sql_batch).send(reply(int_column() + int_row(5) + done(0x10, 1)));
  Conversation talk(script);
  cr_assert_eq(talk.query("select 5").scalar().integer(), 5);
}

// ---- requests -------------------------------------------------------------------------------------------------------

Test(query, gives_values_by_name) {
  auto script = logged_in();
  script->expect(PacketType::sql_batch)
      .send(reply(int_column() + int_row(1) + int_row(-2) + done(0x11, 2) + info(50000, "hello") + done(0x11, 7) +
                  int_column() + int_row(3) + done(0x10, 1)));
  Conversation talk(script);
  const tds::QueryResult result = talk.query("…");
  cr_assert_eq(result.sets.size(), 2u);
  cr_assert_eq(result.sets[0].rows.size(), 2u);
  cr_assert_eq(result.sets[0].at(1, "n").integer(), -2);
  cr_assert_eq(result.scalar("n").integer(), 1);
  cr_assert_eq(result.affected, 7u, "the count of the statement without rows");
  cr_assert_eq(result.messages.size(), 1u);
  cr_assert_eq(result.messages[0].text, "hello");
  cr_assert_throw(result.sets[0].column("m"), Error);
  cr_assert_throw(result.scalar().text(), Error);
}

Test(query, sends_the_open_transactions_descriptor) {
  auto script = logged_in();
  script->expect(PacketType::sql_batch).send(reply(from_hex("E3 0B 00 08 08 01 02 03 04 05 06 07 08 00") + done()));
  script->expect(PacketType::sql_batch).send(reply(from_hex("E3 0B 00 09 00 08 01 02 03 04 05 06 07 08") + done()));
  script->expect(PacketType::sql_batch).send(reply(done()));
  Conversation talk(script);
  talk.execute("begin tran");
  cr_assert(talk.session().in_transaction());
  talk.execute("commit");
  cr_assert_not(talk.session().in_transaction());
  talk.execute("select 1");
  const auto headers = [&](std::size_t i) {
    return to_hex(std::string_view(talk.script().messages[i].payload).substr(0, 22));
  };
  cr_assert_eq(headers(2), "16 00 00 00 12 00 00 00 02 00 00 00 00 00 00 00 00 00 01 00 00 00");
  cr_assert_eq(headers(3), "16 00 00 00 12 00 00 00 02 00 01 02 03 04 05 06 07 08 01 00 00 00");
  cr_assert_eq(headers(4), "16 00 00 00 12 00 00 00 02 00 00 00 00 00 00 00 00 00 01 00 00 00");
  cr_assert_eq(to_hex(std::string_view(talk.script().messages[4].payload).substr(22)),
               to_hex(text::to_utf16le("select 1")));
}

Test(query, an_error_is_thrown_after_its_reply_is_drained_and_the_session_goes_on) {
  auto script = logged_in();
  script->expect(PacketType::sql_batch)
      .send(reply(int_column() + int_row(1) + error(2627, "Violation of PRIMARY KEY constraint.", 14) +
                  info(3621, "The statement has been terminated.") + done(3) + int_column() + int_row(2) +
                  done(0x10, 1)));
  script->expect(PacketType::sql_batch).send(reply(int_column() + int_row(9) + done(0x10, 1)));
  Conversation talk(script);
  const Error error = talk.failure("insert …");
  cr_assert_eq(error.code(), "server_error");
  cr_assert_eq(error.fault()->number, "2627");
  cr_assert_eq(error.fault()->severity, 14);
  cr_assert_eq(error.fault()->state, 1);
  cr_assert_eq(error.fault()->line, 7);
  cr_assert_eq(error.fault()->server, "SRV");
  cr_assert_eq(error.fault()->procedure, "proc");
  cr_assert_eq(error.fault()->message, "Violation of PRIMARY KEY constraint.");
  cr_assert_not(error.transient());
  cr_assert(talk.session().usable());
  cr_assert_eq(talk.query("select 9").scalar().integer(), 9);
  went_well(talk);
}

Test(query, deadlocks_and_azures_busy_signals_are_transient) {
  for (const std::int32_t number : {1205, 40197, 40501, 40613, 49918, 49919, 49920, 10928, 10929, 4221}) {
    auto script = logged_in();
    script->expect(PacketType::sql_batch).send(reply(error(number, "again", 13) + done(2)));
    Conversation talk(script);
    cr_assert(talk.failure("…").transient(), "%d", number);
  }
}

Test(query, a_refused_load_that_azure_reports_as_its_own_failure_is_not_transient) {
  const std::string text =
      "The service has encountered an error processing your request. Please try again. Error code ";
  for (const auto& [wrapped, transient] : {std::pair{4815, false}, {4816, false}, {40143, true}}) {
    auto script = logged_in();
    script->expect(PacketType::sql_batch).send(reply(error(40197, text + std::to_string(wrapped) + ".", 20) + done(2)));
    Conversation talk(script);
    cr_assert_eq(talk.failure("…").transient(), transient, "%d", wrapped);
  }
}

Test(query, done_with_the_error_bit_is_a_failure_even_with_a_row_count) {
  auto script = logged_in();
  script->expect(PacketType::sql_batch).send(reply(done(0x12, 5)));
  Conversation talk(script);
  cr_assert_eq(talk.failure("…").code(), "server_error");
}

Test(query, a_fatal_error_closes_the_session_and_keeps_its_text) {
  auto script = logged_in();
  script->expect(PacketType::sql_batch).send(reply(error(4014, "A fatal error occurred.", 20) + done(2)));
  Conversation talk(script);
  cr_assert_eq(talk.failure("…").fault()->number, "4014");
  cr_assert_not(talk.session().usable());
  cr_assert_eq(talk.failure("…").code(), "connection_lost");
}

Test(query, a_lost_connection_is_explained_by_the_servers_last_error) {
  auto script = logged_in();
  script->expect(PacketType::sql_batch).send(reply(error(596, "Cannot continue: session killed.", 21)).substr(0, 70));
  script->close();
  Conversation talk(script);
  cr_assert_eq(talk.failure("…").code(), "connection_lost", "the error did not arrive whole");
  const std::string whole = error(596, "Cannot continue: session killed.", 21);
  auto second = logged_in();
  second->expect(PacketType::sql_batch).send(reply(whole + done(3)));
  second->close();
  Conversation other(second);
  cr_assert_eq(other.failure("…").fault()->number, "596");
}

Test(query, malformed_bytes_close_the_session) {
  for (const std::string& bytes : {reply(std::string("\x00", 1)), reply(done(1)), reply(done() + "\xFD"),
                                   std::string("\x04\x01\x00\x03\x00\x00\x00\x00", 8)}) {
    auto script = logged_in();
    script->expect(PacketType::sql_batch).send(bytes);
    Conversation talk(script);
    const Error error = talk.failure("…");
    cr_assert_eq(error.code(), "protocol", "%s: %s", to_hex(bytes).c_str(), error.what());
    cr_assert_not(talk.session().usable());
  }
}

Test(query, a_result_that_cannot_be_read_is_stopped_by_an_attention) {
  auto script = logged_in();
  script->expect(PacketType::sql_batch)
      .send(reply(from_hex("81 01 00 00 00 00 00 08 08 38 01 6E 00") + int_row(1) + done(0x11, 1)).substr(0, 30));
  script->expect(PacketType::attention)
      .send(reply(from_hex("81 01 00 00 00 00 00 08 08 38 01 6E 00") + int_row(1) + done(0x11, 1)).substr(30))
      .send(reply(done(0x20)));
  Conversation talk(script);
  // the reply's first message ends with DONE(MORE): what matters here is that the attention goes out and is awaited
  const Error error = talk.failure("…");
  cr_assert_eq(error.code(), "type_unsupported", "%s", error.what());
  cr_assert(talk.session().usable());
}

// ---- cancelling -----------------------------------------------------------------------------------------------------

namespace {

// A statement that hangs until its attention, which is answered in the given way.
std::shared_ptr<Script> hanging(const std::string& before, const std::string& answer) {
  auto script = logged_in();
  script->expect(PacketType::sql_batch).send(before);
  script->expect(PacketType::attention).send(answer);
  script->expect(PacketType::sql_batch).send(reply(int_column() + int_row(4) + done(0x10, 1)));
  return script;
}

}  // namespace

Test(cancel, a_deadline_sends_an_attention_and_waits_for_its_acknowledgement) {
  const std::string rows = int_column() + int_row(1) + int_row(2);
  const struct {
    std::string before, answer;
  } cases[] = {
      {"", reply(done(0x20))},                                                  // nothing but the acknowledgement
      {reply(rows).substr(0, 20), reply(rows).substr(20) + reply(done(0x20))},  // within a message that has no end yet
      {"", reply(done(0x10, 3)) + reply(done(0x20))},  // raced: the result, then the acknowledgement
      {"", reply(error(3617, "cancelled") + done(0x22))},
  };
  for (std::size_t i = 0; i < std::size(cases); ++i) {
    Conversation talk(hanging(cases[i].before, cases[i].answer));
    const Error error = talk.failure("waitfor …", milliseconds{20});
    cr_assert_eq(static_cast<int>(error.category()), static_cast<int>(Category::timeout), "case %zu: %s", i,
                 error.what());
    cr_assert(talk.session().usable(), "case %zu", i);
    cr_assert_eq(talk.query("select 4").scalar().integer(), 4, "case %zu: the next reply is the next request's", i);
    went_well(talk);
  }
}

Test(cancel, a_transaction_that_was_rolled_back_meanwhile_is_noticed) {
  auto script = logged_in();
  script->expect(PacketType::sql_batch).send(reply(from_hex("E3 0B 00 08 08 01 02 03 04 05 06 07 08 00") + done()));
  script->expect(PacketType::sql_batch);
  script->expect(PacketType::attention).send(reply(from_hex("E3 0B 00 0A 00 08 01 02 03 04 05 06 07 08") + done(0x20)));
  Conversation talk(script);
  talk.execute("begin tran");
  (void)talk.failure("waitfor …", milliseconds{20});
  cr_assert_not(talk.session().in_transaction());
}

Test(cancel, without_an_acknowledgement_the_session_is_closed, .timeout = 30) {
  auto script = logged_in();
  script->expect(PacketType::sql_batch);
  script->expect(PacketType::attention);
  Conversation talk(script);
  const auto began = std::chrono::steady_clock::now();
  const Error error = talk.failure("waitfor …", milliseconds{20});
  const auto took = std::chrono::steady_clock::now() - began;
  cr_assert_eq(static_cast<int>(error.category()), static_cast<int>(Category::timeout));
  cr_assert(took >= limits::tds_cancel_timeout && took < limits::tds_cancel_timeout + std::chrono::seconds(3));
  cr_assert_not(talk.session().usable(), "never reused dirty");
}

Test(cancel, a_half_sent_request_closes_the_session) {
  auto script = logged_in();
  script->expect(PacketType::sql_batch).send(reply(done())).stop_reading();
  Conversation talk(script);
  talk.execute("select 1");
  const Error error = talk.failure("select 2", milliseconds{20});
  cr_assert_eq(static_cast<int>(error.category()), static_cast<int>(Category::timeout));
  cr_assert_not(talk.session().usable());
}

// ---- reading --------------------------------------------------------------------------------------------------------

namespace {

class Collector final : public system::BatchSink {
 public:
  std::vector<std::int32_t> values;
  std::size_t batches = 0;
  std::size_t fail_at = SIZE_MAX;

  async::Task<void> put(rows::BatchPtr batch) override {
    if (batches++ == fail_at) throw Error(Category::data, "enough", "the consumer has enough");
    for (std::size_t row = 0; row < batch->rows(); ++row) values.push_back(batch->column(0).value<std::int32_t>(row));
    co_await async::yield();
  }
};

std::string many_rows(int count) {
  std::string tokens = int_column();
  for (int i = 0; i < count; ++i) tokens += int_row(i);
  return reply(tokens + done(0x10, static_cast<std::uint64_t>(count)));
}

}  // namespace

Test(read, streams_rows_in_batches) {
  auto script = logged_in();
  script->read_at_most = 1000;
  script->expect(PacketType::sql_batch).send(many_rows(5000));
  Conversation talk(script);
  Collector collector;
  tds::ReadOptions options;
  options.batch_bytes = 2000;
  const tds::ReadStats stats = talk.loop().run(talk.session().read("select …", options, collector));
  cr_assert_eq(stats.rows, 5000u);
  cr_assert_eq(stats.wire_bytes, many_rows(5000).size());
  cr_assert_eq(collector.values.size(), 5000u);
  for (int i = 0; i < 5000; ++i) cr_assert_eq(collector.values[static_cast<std::size_t>(i)], i);
  cr_assert_eq(collector.batches, 13u);
}

Test(read, a_consumer_that_fails_stops_the_statement) {
  auto script = logged_in();
  script->expect(PacketType::sql_batch).send(many_rows(5000).substr(0, 10000));
  script->expect(PacketType::attention).send(many_rows(5000).substr(10000) + reply(done(0x20)));
  script->expect(PacketType::sql_batch).send(reply(int_column() + int_row(4) + done(0x10, 1)));
  Conversation talk(script);
  Collector collector;
  collector.fail_at = 1;
  tds::ReadOptions options;
  options.batch_bytes = 2000;
  std::string code;
  try {
    (void)talk.loop().run(talk.session().read("select …", options, collector));
  } catch (const Error& error) {
    code = error.code();
  }
  cr_assert_eq(code, "enough");
  cr_assert(talk.session().usable());
  cr_assert_eq(talk.query("select 4").scalar().integer(), 4);
  went_well(talk);
}

Test(read, a_reply_that_is_here_whole_needs_no_attention) {
  auto script = logged_in();
  script->expect(PacketType::sql_batch).send(many_rows(500));
  script->expect(PacketType::sql_batch).send(reply(int_column() + int_row(4) + done(0x10, 1)));
  Conversation talk(script);
  Collector collector;
  collector.fail_at = 0;
  tds::ReadOptions options;
  options.batch_bytes = 100;
  cr_assert_throw((void)talk.loop().run(talk.session().read("select …", options, collector)), Error);
  cr_assert_eq(talk.query("select 4").scalar().integer(), 4);
  went_well(talk);
}

Test(read, more_than_one_result_is_refused) {
  auto script = logged_in();
  script->expect(PacketType::sql_batch)
      .send(reply(int_column() + int_row(1) + done(0x11, 1) + int_column() + int_row(2) + done(0x10, 1)));
  Conversation talk(script);
  Collector collector;
  std::string code;
  try {
    (void)talk.loop().run(talk.session().read("…", {}, collector));
  } catch (const Error& error) {
    code = error.code();
  }
  cr_assert_eq(code, "several_results");
  cr_assert(talk.session().usable());
}

// ---- recorded servers -----------------------------------------------------------------------------------------------

Test(captures, recorded_sessions_of_plain_batches_are_understood) {
  // how many statements of each failed
  const struct {
    const char* name;
    int failures;
    std::size_t packet_bytes;
  } sessions[] = {{"01-login-and-versions.tds", 0, 4096},
                  {"02-all-types.tds", 0, 4096},
                  {"03-long-values-512-byte-packets.tds", 0, 512},
                  {"05-errors.tds", 6, 4096},
                  {"06-transactions.tds", 0, 4096}};
  for (const auto& session : sessions) {
    for (const std::size_t step : {std::size_t{1}, std::size_t{100}, SIZE_MAX}) {
      Conversation talk(recorded(session.name, step));
      cr_assert_eq(talk.session().info().program, "Microsoft SQL Server");
      cr_assert_eq(talk.session().info().packet_bytes, session.packet_bytes, "%s: %zu", session.name,
                   talk.session().info().packet_bytes);
      int failures = 0;
      while (!talk.script().finished()) {
        try {
          (void)talk.query("as recorded");
        } catch (const Error& error) {
          cr_assert(error.fault().has_value(), "%s: %s", session.name, error.what());
          ++failures;
        }
      }
      went_well(talk);
      cr_assert_eq(failures, session.failures, "%s: %d", session.name, failures);
      cr_assert(talk.session().usable());
    }
  }
}

Test(captures, recorded_login_refusals) {
  const Error password = login_failure(recorded("11-wrong-password.tds", SIZE_MAX));
  cr_assert_eq(password.code(), "login_failed", "%s", password.what());
  const Error database = login_failure(recorded("12-wrong-database.tds", SIZE_MAX));
  cr_assert_eq(database.code(), "database_unavailable", "%s", database.what());
}
