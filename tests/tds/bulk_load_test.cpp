#include "base/decimal.hpp"
#include "tds/session.hpp"
#include "tds/wire/logical_type.hpp"
#include "tests/tds/batch_builder.hpp"
#include "tests/tds/session_support.hpp"

using namespace rowferry;
using namespace rowferry::test;
using std::chrono::milliseconds;

namespace {

tds::BulkColumn column(tds::DataType id, std::uint32_t length, std::string name) {
  tds::ColumnMeta meta;
  meta.flags = 8;
  meta.name = std::move(name);
  meta.type.id = id;
  meta.type.max_length = length;
  const tds::BulkForm form = tds::bulk_form(meta);
  return {.meta = form.meta, .declared = form.declared, .collation = "", .type = tds::logical_type(meta)};
}

std::vector<tds::BulkColumn> int_target() { return {column(tds::DataType::int4, 4, "n")}; }

std::unique_ptr<rows::Batch> ints(int count) {
  BatchBuilder builder({int_target()[0].type});
  for (int i = 0; i < count; ++i) builder.value(std::int32_t{i});
  return builder.build();
}

constexpr std::size_t columns_bytes = 13;  // COLMETADATA of int_target()
constexpr std::size_t row_bytes = 6;
constexpr std::size_t done_bytes = 13;

// A script that takes INSERT BULK and consents.
std::shared_ptr<Script> consenting(std::size_t packet_bytes = 0) {
  auto script = logged_in(packet_bytes);
  script->expect(PacketType::sql_batch).send(reply(done()));
  return script;
}

class Load {
 public:
  explicit Load(std::shared_ptr<Script> script) : talk(std::move(script)) {
    load = talk.loop().run(talk.session().begin_bulk({"dbo", "t"}, int_target(), {}));
  }
  void write(int count) { write(*ints(count)); }
  void write(const rows::Batch& batch) { talk.loop().run(load->write(batch)); }
  std::uint64_t finish() { return talk.loop().run(load->finish()); }
  void abort() { talk.loop().run(load->abort()); }
  Error failure_of_write(int count) {
    try {
      write(count);
    } catch (const Error& error) {
      return error;
    }
    return Error(Category::internal, "no_error", "");
  }
  Error failure_of_finish() {
    try {
      (void)finish();
    } catch (const Error& error) {
      return error;
    }
    return Error(Category::internal, "no_error", "");
  }
  void went_well() { cr_assert_eq(talk.script().verdict(), "", "%s", talk.script().verdict().c_str()); }
  // The session answers one more request, and the answer is that request's.
  void goes_on() {
    cr_assert(talk.session().usable());
    cr_assert_eq(talk.query("select 4").scalar().integer(), 4);
    went_well();
  }

  Conversation talk;
  std::unique_ptr<tds::BulkLoad> load;
};

std::string four() { return reply(int_column() + int_row(4) + done(0x10, 1)); }
std::string refusal() { return reply(error(2627, "Violation of PRIMARY KEY constraint.", 14) + done(2)); }

}  // namespace

Test(bulk_load, statement_rows_and_the_servers_count) {
  auto script = consenting();
  script->expect(PacketType::bulk).send(reply(info(4817, "ORDER ignored") + done(0x10, 2)));
  script->expect(PacketType::sql_batch).send(four());
  Load load(script);
  load.write(2);
  load.write(1);
  cr_assert_eq(load.finish(), 2u, "the server's number, not ours");
  cr_assert_eq(load.load->stats().rows, 3u);
  cr_assert_eq(load.load->messages().size(), 1u);
  const auto& messages = load.talk.script().messages;
  cr_assert_eq(text::to_utf8(as_bytes(messages[2].payload).subspan(22)), "INSERT BULK [dbo].[t] ([n] int)");
  cr_assert_eq(to_hex(messages[3].payload),
               to_hex(from_hex("81 01 00 00 00 00 00 08 00 26 04 01 6E 00 D1 04 00 00 00 00 D1 04 01 00 00 00 D1 04 00 "
                               "00 00 00 FD 00 00 00 00 00 00 00 00 00 00 00 00")));
  cr_assert_eq(load.load->stats().wire_bytes, messages[3].packets[0]);
  load.goes_on();
}

Test(bulk_load, the_exact_packet_border_ends_with_a_full_packet) {
  constexpr std::size_t capacity = 504;
  constexpr std::size_t tiny_row_bytes = 3;
  for (const std::size_t body : {capacity - 1, capacity, capacity + 1, 2 * capacity, 2 * capacity + 1}) {
    // Rows fill three bytes each; the column's name, two bytes a letter, fills what is left.
    const std::size_t rest = body - columns_bytes - 1 - done_bytes;
    std::size_t count = rest / tiny_row_bytes - 10;
    if ((rest - count * tiny_row_bytes) % 2 != 0) --count;
    const std::string name = "n" + std::string((rest - count * tiny_row_bytes) / 2, 'x');
    auto script = consenting(512);
    script->expect(PacketType::bulk).send(reply(done(0x10, count)));
    Conversation talk(script);
    const std::vector<tds::BulkColumn> target = {column(tds::DataType::int1, 1, name)};
    auto load = talk.loop().run(talk.session().begin_bulk({"t"}, target, {}));
    BatchBuilder builder({target[0].type});
    for (std::size_t i = 0; i < count; ++i) builder.value(static_cast<std::uint8_t>(i));
    const auto batch = builder.build();
    talk.loop().run(load->write(*batch));
    cr_assert_eq(talk.loop().run(load->finish()), count);
    cr_assert_eq(talk.script().verdict(), "");
    const ClientMessage& sent = talk.script().messages.back();
    cr_assert_eq(sent.payload.size(), body, "%zu and not %zu", sent.payload.size(), body);
    cr_assert_eq(sent.packets.size(), (body + capacity - 1) / capacity, "%zu", body);
    for (std::size_t i = 0; i + 1 < sent.packets.size(); ++i) cr_assert_eq(sent.packets[i], 512u);
    cr_assert_eq(sent.packets.back(), 8 + body - (sent.packets.size() - 1) * capacity);
    cr_assert_eq(sent.last_status, tds::status_eom);
  }
}

Test(bulk_load, many_rows_go_out_in_full_packets_while_they_are_written) {
  auto script = consenting(4096);
  script->expect(PacketType::bulk).send(reply(done(0x10, 300000)));
  Load load(script);
  load.write(300000);
  cr_assert_gt(load.load->stats().wire_bytes, 1'000'000u);
  cr_assert_eq(load.finish(), 300000u);
  const ClientMessage& sent = load.talk.script().messages.back();
  cr_assert_eq(sent.payload.size(), columns_bytes + 1 + 300000 * row_bytes + done_bytes);
  for (std::size_t i = 0; i + 1 < sent.packets.size(); ++i) cr_assert_eq(sent.packets[i], 4096u);
}

Test(bulk_load, a_row_of_a_hundred_kilobytes_goes_in_full_packets_of_any_size) {
  for (const std::size_t size :
       {std::size_t{512}, std::size_t{4096}, std::size_t{16383}, std::size_t{16384}, std::size_t{32767}}) {
    auto script = consenting(size);
    script->expect(PacketType::bulk).send(reply(done(0x10, 2)));
    Conversation talk(script);
    const std::vector<tds::BulkColumn> target = {column(tds::DataType::bigvarbinary, tds::max_length_plp, "b")};
    auto load = talk.loop().run(talk.session().begin_bulk({"t"}, target, {}));
    BatchBuilder builder({target[0].type});
    builder.bytes(std::string(100'000, 'v')).bytes("");
    const auto batch = builder.build();
    talk.loop().run(load->write(*batch));
    cr_assert_eq(talk.loop().run(load->finish()), 2u);
    cr_assert_eq(talk.script().verdict(), "");
    const ClientMessage& sent = talk.script().messages.back();
    cr_assert_gt(sent.payload.size(), 100'000u);
    for (std::size_t i = 0; i + 1 < sent.packets.size(); ++i) cr_assert_eq(sent.packets[i], size);
    cr_assert_eq(sent.packets.size(), (sent.payload.size() + size - 9) / (size - 8), "%zu", size);
  }
}

Test(bulk_load, counts_of_triggers_are_not_added_to_its_own) {
  auto script = consenting();
  const std::string of_trigger = "\xFF" + done(0x11, 7).substr(1);  // DONEINPROC
  script->expect(PacketType::bulk).send(reply(of_trigger + of_trigger + done(0x10, 5)));
  Load load(script);
  load.write(5);
  cr_assert_eq(load.finish(), 5u);
  load.went_well();
}

Test(bulk_load, once_finished_nothing_more_is_sent_for_it) {
  // an attention "to be sure" would abort what comes after the load
  auto script = consenting();
  script->expect(PacketType::bulk).send(reply(done(0x10, 5)));
  script->expect(PacketType::sql_batch).send(four());
  Load load(script);
  load.write(5);
  cr_assert_eq(load.finish(), 5u);
  load.abort();
  load.load.reset();
  load.goes_on();
}

Test(bulk_load, an_empty_load_is_a_whole_message) {
  auto script = consenting();
  script->expect(PacketType::bulk).send(reply(done(0x10, 0)));
  Load load(script);
  cr_assert_eq(load.finish(), 0u);
  load.went_well();
}

Test(bulk_load, a_refused_statement_is_the_servers_error_and_no_load) {
  auto script = logged_in();
  script->expect(PacketType::sql_batch)
      .send(reply(error(4834, "You do not have permission to use the bulk load statement.") + done(2)));
  script->expect(PacketType::sql_batch).send(four());
  Conversation talk(script);
  std::string number;
  try {
    (void)talk.loop().run(talk.session().begin_bulk({"t"}, int_target(), {}));
  } catch (const Error& error) {
    number = error.fault()->number;
  }
  cr_assert_eq(number, "4834");
  cr_assert_eq(talk.query("select 4").scalar().integer(), 4);
}

Test(bulk_load, refused_at_the_end_the_error_is_told_and_the_session_goes_on) {
  auto script = consenting();
  script->expect(PacketType::bulk).send(refusal());
  script->expect(PacketType::sql_batch).send(four());
  Load load(script);
  load.write(5);
  const Error error = load.failure_of_finish();
  cr_assert_eq(error.fault()->number, "2627");
  cr_assert_not(load.load->open());
  load.goes_on();
}

Test(bulk_load, an_error_with_a_row_count_is_still_an_error) {
  auto script = consenting();
  script->expect(PacketType::bulk).send(reply(error(4815, "Received an invalid column length.", 17) + done(0x12, 3)));
  Load load(script);
  load.write(5);
  cr_assert_eq(load.failure_of_finish().fault()->number, "4815");
}

Test(bulk_load, aborted_before_its_first_packet) {
  auto script = consenting();
  script->expect(PacketType::bulk).send(reply(done(2)));
  script->expect(PacketType::sql_batch).send(four());
  Load load(script);
  load.abort();
  const ClientMessage& sent = load.talk.script().messages.back();
  cr_assert_eq(sent.payload.size(), 0u);
  cr_assert_eq(sent.packets.size(), 1u);
  cr_assert_eq(sent.last_status, tds::status_eom | tds::status_ignore);
  cr_assert_not(load.load->open());
  load.abort();  // a load that has ended is left alone
  load.goes_on();
}

Test(bulk_load, aborted_in_the_middle) {
  auto script = consenting(512);
  script->expect(PacketType::bulk).send(reply(done(2)));
  script->expect(PacketType::sql_batch).send(four());
  Load load(script);
  load.write(100000);
  load.abort();
  const ClientMessage& sent = load.talk.script().messages.back();
  cr_assert_eq(sent.last_status, tds::status_eom | tds::status_ignore);
  cr_assert_eq(sent.packets.back(), 8u, "an empty packet takes the message back");
  for (std::size_t i = 0; i + 1 < sent.packets.size(); ++i) cr_assert_eq(sent.packets[i], 512u);
  load.goes_on();
}

Test(bulk_load, an_abort_without_an_answer_closes_the_session, .timeout = 30) {
  auto script = consenting();
  script->expect(PacketType::bulk);
  Load load(script);
  load.write(5);
  load.abort();
  cr_assert_not(load.talk.session().usable());
}

Test(bulk_load, an_early_refusal_stops_the_encoding_and_is_answered_by_ignore) {
  // the server answers whole before the end of the message, and says nothing to the IGNORE packet
  auto script = consenting(512);
  script->expect_packets(PacketType::bulk, 10).send(refusal());
  script->expect(PacketType::bulk);
  script->expect(PacketType::sql_batch).send(four());
  Load load(script);
  const Error error = load.failure_of_write(1'000'000);
  cr_assert_eq(error.fault()->number, "2627");
  cr_assert_lt(load.load->stats().rows, 1'000'000u, "not everything was encoded");
  cr_assert_eq(load.talk.script().messages.back().last_status, tds::status_eom | tds::status_ignore);
  cr_assert_not(load.load->open());
  load.goes_on();
}

Test(bulk_load, an_early_error_whose_done_comes_after_the_ignore) {
  const std::string whole = refusal();
  auto script = consenting(512);
  script->expect_packets(PacketType::bulk, 10).send(whole.substr(0, whole.size() - 13));
  script->expect(PacketType::bulk).send(whole.substr(whole.size() - 13));
  script->expect(PacketType::sql_batch).send(four());
  Load load(script);
  cr_assert_eq(load.failure_of_write(1'000'000).fault()->number, "2627");
  load.goes_on();
}

Test(bulk_load, an_answer_to_the_ignore_as_well_is_not_taken_for_the_next_reply) {
  auto script = consenting(512);
  script->expect_packets(PacketType::bulk, 10).send(refusal());
  script->expect(PacketType::bulk).send(reply(done(2)));
  script->expect(PacketType::sql_batch).send(four());
  Load load(script);
  cr_assert_eq(load.failure_of_write(1'000'000).fault()->number, "2627");
  load.goes_on();
}

Test(bulk_load, a_server_that_refuses_and_stops_reading_does_not_hold_us, .timeout = 30) {
  auto script = consenting(512);
  script->expect_packets(PacketType::bulk, 10).send(refusal()).stop_reading();
  Load load(script);
  const auto began = std::chrono::steady_clock::now();
  const Error error = load.failure_of_write(1'000'000);
  cr_assert_eq(error.fault()->number, "2627", "%s", error.what());
  cr_assert_lt(std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count(), 12.0);
  cr_assert_not(load.talk.session().usable());
}

Test(bulk_load, a_connection_that_ends_while_rows_go_out) {
  auto script = consenting(512);
  script->expect_packets(PacketType::bulk, 10).close();
  Load load(script);
  const Error error = load.failure_of_write(1'000'000);
  cr_assert_eq(error.code(), "connection_lost", "%s", error.what());
  cr_assert(error.transient());
  cr_assert_not(load.talk.session().usable());
}

Test(bulk_load, what_the_server_said_before_it_hung_up) {
  auto script = consenting(512);
  script->expect_packets(PacketType::bulk, 10)
      .send(reply(error(4014, "A fatal error occurred while reading.", 20) + done(2)))
      .close();
  Load load(script);
  const Error error = load.failure_of_write(1'000'000);
  cr_assert(error.fault().has_value(), "%s", error.what());
  cr_assert_eq(error.fault()->number, "4014");
  cr_assert_not(load.talk.session().usable());
}

Test(bulk_load, a_connection_that_ends_before_the_reply_is_no_success) {
  auto script = consenting();
  script->expect(PacketType::bulk).close();
  Load load(script);
  load.write(5);
  cr_assert_eq(load.failure_of_finish().code(), "connection_lost");
  cr_assert_not(load.talk.session().usable());
}

Test(bulk_load, a_value_that_cannot_be_written_leaves_the_load_to_be_taken_back) {
  auto script = logged_in();
  script->expect(PacketType::sql_batch).send(reply(done()));
  script->expect(PacketType::bulk).send(reply(done(2)));
  script->expect(PacketType::sql_batch).send(four());
  Conversation talk(script);
  const std::vector<tds::BulkColumn> target = {column(tds::DataType::money, 8, "m")};
  auto load = talk.loop().run(talk.session().begin_bulk({"t"}, target, {}));
  BatchBuilder builder({target[0].type});
  builder.value(Int128{1}).value(Int128{INT64_MAX} + 1);
  const auto batch = builder.build();
  std::string code;
  try {
    talk.loop().run(load->write(*batch));
  } catch (const Error& error) {
    code = error.code();
    cr_assert_eq(*error.context().row, 2u);
    cr_assert_eq(error.context().column, "m");
  }
  cr_assert_eq(code, "value_does_not_fit");
  cr_assert(load->open());
  talk.loop().run(load->abort());
  cr_assert_eq(talk.query("select 4").scalar().integer(), 4);
  cr_assert_eq(talk.script().verdict(), "");
}

Test(bulk_load, one_that_is_dropped_closes_the_session) {
  auto script = consenting();
  Load load(script);
  load.write(5);
  load.load.reset();
  cr_assert_not(load.talk.session().usable());
  cr_assert(load.talk.script().closed_by_client);
}

Test(bulk_load, nothing_else_runs_on_the_session_meanwhile) {
  auto script = consenting();
  script->expect(PacketType::bulk).send(reply(done(0x10, 1)));
  Load load(script);
  cr_assert_eq(load.talk.failure("select 1").code(), "session_busy");
  load.write(1);
  cr_assert_eq(load.finish(), 1u);
  load.went_well();
}

Test(bulk_load, a_reply_that_does_not_come_in_time_is_stopped_by_an_attention) {
  auto script = consenting();
  script->expect(PacketType::bulk);
  script->expect(PacketType::attention).send(reply(done(0x20)));
  script->expect(PacketType::sql_batch).send(four());
  Load load(script);
  load.write(5);
  std::string code;
  try {
    (void)load.talk.loop().run(load.load->finish(milliseconds{20}));
  } catch (const Error& error) {
    code = error.code();
  }
  cr_assert_eq(code, "timeout");
  load.goes_on();
}

namespace {

async::Task<void> write_then_cancel(tds::BulkLoad* load, const rows::Batch* batch, async::CancelSource* source,
                                    net::Loop* loop) {
  async::Scope scope({&loop->queue(), source});
  scope.spawn(load->write(*batch));
  co_await net::sleep_for(*loop, milliseconds{20});
  source->cancel();
  try {
    co_await scope.join();
  } catch (const Error& error) {
    if (error.category() != Category::cancelled) throw;
  }
}

}  // namespace

Test(bulk_load, cancelled_while_the_socket_is_full_the_session_is_closed_at_once) {
  auto script = consenting(512);
  script->expect_packets(PacketType::bulk, 10).stop_reading();
  Load load(script);
  async::CancelSource source;
  const auto batch = ints(1'000'000);
  load.talk.loop().run(write_then_cancel(load.load.get(), batch.get(), &source, &load.talk.loop()));
  load.abort();
  cr_assert_not(load.talk.session().usable());
  cr_assert_not(load.load->open());
}

// The answers of a recorded server to one load: the statement is taken, the load accepted or refused.
namespace {

std::unique_ptr<Conversation> up_to_insert_bulk(const std::string& name, std::size_t read_at_most) {
  auto script = recorded(name, read_at_most);
  auto talk = std::make_unique<Conversation>(script);
  (void)talk->query("SET options");
  (void)talk->query("the table");
  return talk;
}

}  // namespace

Test(captures, recorded_answers_to_bulk_loads) {
  for (const std::size_t step : {std::size_t{1}, std::size_t{100}, SIZE_MAX}) {
    const auto good = up_to_insert_bulk("07-bulk-load-13-columns.tds", step);
    auto load = good->loop().run(good->session().begin_bulk({"dbo", "bl"}, int_target(), {}));
    good->loop().run(load->write(*ints(60)));
    cr_assert_eq(good->loop().run(load->finish()), 60u);
    cr_assert_eq(good->query("select *").sets.at(0).rows.size(), 60u);
    cr_assert_eq(good->script().verdict(), "");

    const auto bad = up_to_insert_bulk("08-bulk-load-duplicate-key.tds", step);
    load = bad->loop().run(bad->session().begin_bulk({"dbo", "bd"}, int_target(), {}));
    bad->loop().run(load->write(*ints(3)));
    std::string number;
    try {
      (void)bad->loop().run(load->finish());
    } catch (const Error& error) {
      number = error.fault() ? error.fault()->number : error.what();
    }
    cr_assert_eq(number, "2627");
    cr_assert(bad->session().usable());
    cr_assert_eq(bad->script().verdict(), "");
  }
}
