// What clients send, read by the server's side of the wire: vectors of the protocol notes and recorded sessions.
#include <criterion/criterion.h>

#include "capture.hpp"
#include "tds/wire/packet.hpp"
#include "tds/wire/server_login.hpp"
#include "tds/wire/server_prelogin.hpp"
#include "tds/wire/server_request.hpp"

using namespace rowferry;
using namespace rowferry::tds;
using namespace rowferry::tds::server;
using rowferry::test::capture_packets;
using rowferry::test::from_hex;
using rowferry::test::to_hex;

namespace {

constexpr std::string_view autocommit_headers = "16000000 12000000 0200 0000000000000000 01000000";

// The payload of one packet.
std::string payload(std::string_view hex) { return from_hex(hex).substr(packet_header_bytes); }

std::string with_headers(std::string_view hex) { return from_hex(autocommit_headers) + from_hex(hex); }

std::vector<RpcCall> calls_of(const std::string& body) {
  AllHeaders headers;
  std::vector<RpcCall> calls;
  const RequestFault fault = parse_rpc(as_bytes(body), headers, calls);
  cr_assert_not(fault, "%d %s", fault.number, fault.text.c_str());
  return calls;
}

int rpc_fault(const std::string& body) {
  AllHeaders headers;
  std::vector<RpcCall> calls;
  return parse_rpc(as_bytes(body), headers, calls).number;
}

std::string batch_of(const std::string& body) {
  AllHeaders headers;
  std::string sql;
  const RequestFault fault = parse_batch(as_bytes(body), headers, sql);
  cr_assert_not(fault, "%d %s", fault.number, fault.text.c_str());
  return sql;
}

EncryptionAnswer answer(int client, TlsPolicy policy) {
  return answer_encryption(client < 0 ? std::nullopt : std::optional<std::uint8_t>(client), policy);
}

}  // namespace

Test(prelogin, reads_the_specification_sample) {
  const std::string body = payload(
      "12 01 00 2F 00 00 01 00 00 00 1A 00 06 01 00 20 00 01 02 00 21 00 01 03 00 22 00 04 04 00 26 00 01 FF"
      "09 00 00 00 00 00 01 00 B8 0D 00 00 01");
  const auto request = parse_prelogin(as_bytes(body));
  cr_assert(request.has_value());
  cr_expect_eq(request->version[0], 9);
  cr_expect_eq(request->encryption.value(), encrypt_on);
  cr_expect(request->mars);
  cr_expect(request->instance.empty());
}

Test(prelogin, reads_a_login_only_wish) {
  const auto request = parse_prelogin(as_bytes(
      payload("12 01 00 2F 00 00 01 00 00 00 1A 00 06 01 00 20 00 01 02 00 21 00 01 03 00 22 00 04 04 00 26 00 01 FF"
              "00 01 00 00 00 00 00 00 34 12 00 00 00")));
  cr_assert(request.has_value());
  cr_expect_eq(request->version[1], 1);
  cr_expect_eq(request->encryption.value(), encrypt_off);
  cr_expect_not(request->mars);
}

Test(prelogin, reads_what_tedious_sends) {
  const auto packets = capture_packets("01-login-and-versions.tds", 'C');
  const auto request = parse_prelogin(as_bytes(packets[0]).subspan(packet_header_bytes));
  cr_assert(request.has_value());
  cr_expect_eq(request->encryption.value(), encrypt_not_supported);
  cr_expect(request->fed_auth_asked);
  cr_expect_not(request->mars);
}

Test(prelogin, refuses_what_lies_outside_the_message) {
  cr_expect_not(parse_prelogin(as_bytes(from_hex("00 00 1A 00 06 FF"))).has_value(), "option beyond the end");
  cr_expect_not(parse_prelogin(as_bytes(from_hex("01 00 06 00 01 FF 00"))).has_value(), "no version");
  cr_expect_not(parse_prelogin(as_bytes(from_hex("00 00 06 00"))).has_value(), "cut");
  cr_expect_not(parse_prelogin({}).has_value(), "empty");
}

Test(prelogin, reply_has_mars_and_an_empty_thread_id) {
  ByteBuffer out;
  write_prelogin_reply(out, {.version = {16, 0, 0x10, 0x27, 0, 0}, .encryption = encrypt_not_supported});
  cr_assert_eq(to_hex(out.view()),
               to_hex(from_hex("00 00 1A 00 06 01 00 20 00 01 02 00 21 00 01 03 00 22 00 00 04 00 22 00 01"
                               "FF 10 00 10 27 00 00 02 00 00")));
}

Test(prelogin, encryption_matrix) {
  // client, policy -> reply, protection, close
  struct Line {
    int client;
    TlsPolicy policy;
    int reply;
    Protection protection;
    bool close;
  };
  const Line lines[] = {
      {0, TlsPolicy::login, 0, Protection::login_only, false}, {0, TlsPolicy::full, 3, Protection::full, false},
      {0, TlsPolicy::none, 2, Protection::none, false},        {1, TlsPolicy::login, 1, Protection::full, false},
      {1, TlsPolicy::full, 1, Protection::full, false},        {1, TlsPolicy::none, 2, Protection::none, true},
      {2, TlsPolicy::login, 2, Protection::none, false},       {2, TlsPolicy::full, 3, Protection::none, true},
      {2, TlsPolicy::none, 2, Protection::none, false},        {3, TlsPolicy::login, 1, Protection::full, false},
      {3, TlsPolicy::none, 2, Protection::none, true},         {0x80, TlsPolicy::full, 3, Protection::full, false},
      {0x82, TlsPolicy::none, 3, Protection::none, true},      {-1, TlsPolicy::none, 2, Protection::none, false},
  };
  for (const Line& line : lines) {
    const EncryptionAnswer got = answer(line.client, line.policy);
    cr_expect_eq(got.reply, line.reply, "client %d policy %d", line.client, static_cast<int>(line.policy));
    cr_expect_eq(static_cast<int>(got.protection), static_cast<int>(line.protection), "client %d", line.client);
    cr_expect_eq(got.close, line.close, "client %d policy %d", line.client, static_cast<int>(line.policy));
  }
}

Test(login7, reads_the_vector) {
  const std::string body = payload(
      "10 01 00 93 00 00 01 00 8B 00 00 00 04 00 00 74 00 10 00 00 00 00 00 07 00 01 00 00 00 00 00 00 E0 03 00 10 00 "
      "00 00 00 00 00 00 00 5E 00 01 00 60 00 02 00 64 00 03 00 6A 00 03 00 70 00 03 00 76 00 04 00 7A 00 03 00 80 00 "
      "00 00 80 00 02 00 00 00 00 00 00 00 84 00 00 00 84 00 00 00 84 00 00 00 00 00 00 00 48 00 73 00 61 00 C3 A5 53 "
      "A5 53 A5 61 00 70 00 70 00 73 00 72 00 76 00 84 00 00 00 6C 00 69 00 62 00 64 00 62 00 0A 01 00 00 00 01 FF");
  const auto login = parse_login7(as_bytes(body));
  cr_assert(login.has_value());
  cr_expect_eq(login->tds_version, tds_version_7_4);
  cr_expect_eq(login->packet_size, 4096u);
  cr_expect_str_eq(login->host.c_str(), "H");
  cr_expect_str_eq(login->user.c_str(), "sa");
  cr_expect_str_eq(login->password.c_str(), "foo");
  cr_expect_str_eq(login->application.c_str(), "app");
  cr_expect_str_eq(login->server.c_str(), "srv");
  cr_expect_str_eq(login->library.c_str(), "lib");
  cr_expect_str_eq(login->database.c_str(), "db");
  cr_expect(login->asked_for(feature_utf8));
  cr_expect_not(login->asked_for(feature_column_encryption));
  cr_expect(login->odbc());
  cr_expect(login->database_fatal());
  for (std::size_t cut = 0; cut < body.size(); ++cut) {
    cr_expect_not(parse_login7(as_bytes(std::string_view(body).substr(0, cut))).has_value(), "cut at %zu", cut);
  }
}

Test(login7, reads_what_tedious_sends) {
  const auto packets = capture_packets("01-login-and-versions.tds", 'C');
  const auto login = parse_login7(as_bytes(packets[1]).subspan(packet_header_bytes));
  cr_assert(login.has_value());
  cr_expect_str_eq(login->library.c_str(), "Tedious");
  cr_expect(login->asked_for(feature_utf8));
}

Test(login7, password_comes_back) {
  std::string hidden = from_hex("A0 A5 B3 A5 E7 A5 E7 A5 D2 A5 A6 A5 82 A5 E3 A5");
  reveal_password(reinterpret_cast<std::uint8_t*>(hidden.data()), hidden.size());
  cr_assert_eq(to_hex(hidden), to_hex(from_hex("50 00 61 00 24 00 24 00 77 00 30 00 72 00 64 00")));
}

Test(request, batch) {
  const std::string sql =
      batch_of(payload("01 01 00 2E 00 00 01 00 16 00 00 00 12 00 00 00 02 00 00 00 00 00 00 00 00 00 01 00 00 00"
                       "73 00 65 00 6C 00 65 00 63 00 74 00 20 00 31 00"));
  cr_assert_str_eq(sql.c_str(), "select 1");
}

Test(request, batch_of_an_odd_number_of_bytes_is_refused) {
  AllHeaders headers;
  std::string sql;
  cr_assert_eq(parse_batch(as_bytes(with_headers("73 00 65")), headers, sql).number, 4002);
}

Test(request, headers_are_validated) {
  AllHeaders headers;
  std::string sql;
  cr_expect_eq(parse_batch(as_bytes(from_hex("FF 00 00 00")), headers, sql).number, 4009, "total beyond the message");
  cr_expect_eq(parse_batch(as_bytes(from_hex("03 00 00 00")), headers, sql).number, 4009, "total below itself");
  cr_expect_eq(parse_batch(as_bytes(from_hex("04 00 00 00")), headers, sql).number, 4013, "no transaction header");
  cr_expect_eq(parse_batch(as_bytes(from_hex("0A 00 00 00 06 00 00 00 09 00")), headers, sql).number, 4009,
               "unknown type");
  cr_expect_eq(parse_batch(as_bytes(from_hex("0B 00 00 00 07 00 00 00 02 00 00")), headers, sql).number, 4011, "short");
  cr_expect_eq(parse_batch({}, headers, sql).number, 4009, "empty");
}

Test(request, trace_and_notification_headers_are_passed_over) {
  const std::string body = from_hex(
      "36 00 00 00"
      "1A 00 00 00 03 00 00 11 22 33 44 55 66 77 88 99 AA BB CC DD EE FF 01 00 00 00"
      "12 00 00 00 02 00 07 00 00 00 00 00 00 00 01 00 00 00"
      "06 00 00 00 01 00"
      "61 00");
  AllHeaders headers;
  std::string sql;
  cr_assert_eq(parse_batch(as_bytes(body), headers, sql).number, 0);
  cr_expect_eq(headers.transaction, 7u);
  cr_expect_str_eq(sql.c_str(), "a");
}

Test(request, sp_executesql_with_a_parameter) {
  const auto calls = calls_of(with_headers(
      "FF FF 0A 00 00 00 00 00 E7 40 1F 09 04 D0 00 34 12 00 73 00 65 00 6C 00 65 00 63 00 74 00 20 00 40 00 70 00"
      "00 00 E7 40 1F 09 04 D0 00 34 0C 00 40 00 70 00 20 00 69 00 6E 00 74 00"
      "02 40 00 70 00 00 26 04 04 2A 00 00 00"));
  cr_assert_eq(calls.size(), 1u);
  cr_expect_eq(calls[0].id, rpc_execute_sql);
  cr_assert_eq(calls[0].parameters.size(), 3u);
  cr_expect_str_eq(calls[0].parameters[2].name.c_str(), "@p");
  cr_expect_eq(to_hex(as_text(ByteView(calls[0].parameters[2].value))), to_hex(from_hex("04 2A 00 00 00")));
}

Test(request, procedure_by_name_with_a_default) {
  const auto calls =
      calls_of(payload("03 01 00 2F 00 00 01 00 16 00 00 00 12 00 00 00 02 00 00 00 00 00 00 00 00 01 00 00 00 00"
                       "04 00 66 00 6F 00 6F 00 33 00 00 00 00 02 26 02 00"));
  cr_assert_eq(calls.size(), 1u);
  cr_expect_str_eq(calls[0].name.c_str(), "foo3");
  cr_assert_eq(calls[0].parameters.size(), 1u);
  cr_expect(calls[0].parameters[0].default_value);
}

Test(request, several_calls_in_one_message) {
  const auto calls =
      calls_of(with_headers("01 00 61 00 00 00 FF 01 00 62 00 00 00 00 01 26 04 00 80 01 00 63 00 00 00"));
  cr_assert_eq(calls.size(), 3u);
  cr_expect_str_eq(calls[1].name.c_str(), "b");
  cr_expect(calls[1].parameters.at(0).output);
  cr_expect_str_eq(calls[2].name.c_str(), "c");
}

Test(request, parameters_of_every_type) {
  // NULLs and values of each framing, one after another; a wrong bound would shift all that follow.
  const auto calls = calls_of(with_headers(
      "01 00 70 00 00 00"
      "00 00 26 01 01 FF"
      "00 00 68 01 01 01"
      "00 00 6D 08 08 00 00 00 00 00 00 02 C0"
      "00 00 6E 08 08 00 00 00 00 10 27 00 00"
      "00 00 6F 08 08 AC 8E 00 00 65 59 CF 00"
      "00 00 6A 11 26 0A 11 00 00 D6 11 7E 03 00 00 00 00 00 00 00 00 00 00 00"
      "00 00 24 10 10 33 22 11 00 55 44 77 66 88 99 AA BB CC DD EE FF"
      "00 00 28 03 07 24 0B"
      "00 00 29 07 05 87 EE 97 76 69"
      "00 00 2A 03 07 FB 29 B3 02 07 24 0B"
      "00 00 2B 07 0A 87 B2 DF 5C 3B 07 24 0B 4A 01"
      "00 00 A7 10 00 09 04 D0 00 34 01 00 E9"
      "00 00 E7 10 00 09 04 D0 00 34 FF FF"
      "00 00 A5 FF FF 03 00 00 00 00 00 00 00 03 00 00 00 61 62 63 00 00 00 00"
      "00 00 E7 FF FF 09 04 D0 00 34 FE FF FF FF FF FF FF FF 02 00 00 00 61 00 02 00 00 00 62 00 00 00 00 00"
      "00 00 A7 FF FF 09 04 D0 00 34 FF FF FF FF FF FF FF FF"
      "00 00 62 49 1F 00 00 06 00 00 00 38 00 05 00 00 00"
      "00 00 38 2A 00 00 00"));
  cr_assert_eq(calls.size(), 1u);
  cr_assert_eq(calls[0].parameters.size(), 18u);
  cr_expect_eq(to_hex(as_text(ByteView(calls[0].parameters[17].value))), to_hex(from_hex("2A 00 00 00")));
}

Test(request, broken_calls_are_refused_wherever_they_are_cut) {
  const std::string whole = with_headers("01 00 70 00 00 00 00 00 26 04 04 2A 00 00 00");
  for (std::size_t cut = from_hex(autocommit_headers).size(); cut < whole.size(); ++cut) {
    if (cut == from_hex(autocommit_headers).size() + 6) continue;  // the call without its parameter is whole
    cr_expect_neq(rpc_fault(whole.substr(0, cut)), 0, "cut at %zu", cut);
  }
  cr_expect_eq(rpc_fault(with_headers("01 00 70 00 00 00 00 00 26 04 03 2A 00 00")), 8009,
               "a length that int does not have");
  cr_expect_eq(rpc_fault(with_headers("01 00 70 00 00 00 00 00 6D 08 08 00 00 00 00 00 00 F8 7F")), 8009, "NaN");
}

Test(request, transaction_manager) {
  AllHeaders headers;
  TransactionRequest request;
  cr_assert_eq(parse_transaction(as_bytes(with_headers("05 00 02 00")), headers, request).number, 0);
  cr_expect(request.kind == TransactionKind::begin);
  cr_expect_eq(request.isolation, 2);
  headers = {};
  const std::string commit =
      payload("0E 01 00 22 00 00 01 00 16 00 00 00 12 00 00 00 02 00 01 00 00 00 00 00 00 00 01 00 00 00 07 00 00 00");
  cr_assert_eq(parse_transaction(as_bytes(commit), headers, request).number, 0);
  cr_expect(request.kind == TransactionKind::commit);
  cr_expect_eq(headers.transaction, 1u);
  headers = {};
  cr_expect_eq(parse_transaction(as_bytes(with_headers("05 00")), headers, request).number, 4002, "cut");
  headers = {};
  cr_expect_eq(parse_transaction(as_bytes(with_headers("63 00")), headers, request).number, 4016, "unknown request");
}

Test(request, every_packet_of_the_recorded_clients_parses) {
  for (const char* name : {"01-login-and-versions.tds", "04-several-results-proc-rpc.tds", "06-transactions.tds",
                           "07-bulk-load-13-columns.tds", "09-attention.tds"}) {
    PacketReader reader;
    std::size_t requests = 0;
    for (const std::string& packet : capture_packets(name, 'C')) {
      cr_assert_eq(reader.feed(as_bytes(packet)), packet.size(), "%s", name);
      if (!reader.message_ended()) continue;
      AllHeaders headers;
      std::string sql;
      std::vector<RpcCall> calls;
      TransactionRequest transaction;
      RequestFault fault;
      if (reader.type() == PacketType::sql_batch) fault = parse_batch(reader.payload(), headers, sql);
      if (reader.type() == PacketType::rpc) fault = parse_rpc(reader.payload(), headers, calls);
      if (reader.type() == PacketType::transaction_manager)
        fault = parse_transaction(reader.payload(), headers, transaction);
      cr_expect_not(fault, "%s: %d %s", name, fault.number, fault.text.c_str());
      ++requests;
      reader.next_message();
    }
    cr_expect_geq(requests, 4u, "%s", name);
  }
}
