#include "tds/wire/tokens.hpp"

#include <criterion/criterion.h>

#include "tds/wire/packet.hpp"
#include "tests/support/hex.hpp"
#include "tests/tds/capture.hpp"

using namespace rowferry;
using namespace rowferry::test;

namespace {

// The one event that the tokens give, whatever the cuts.
std::string event(std::string_view hex) {
  const std::string bytes = from_hex(hex);
  const auto whole = parse_tokens(bytes);
  for (const std::size_t step : {std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{7}}) {
    cr_assert(parse_tokens(bytes, step) == whole, "step %zu of %s", step, std::string(hex).c_str());
  }
  cr_assert_eq(whole.size(), 1u, "%s gives %zu events", std::string(hex).c_str(), whole.size());
  return whole[0];
}

void expect(std::string_view hex, const std::string& wanted) {
  const std::string got = event(hex);
  cr_expect_eq(got, wanted, "%s\n is      %s\n and not %s", std::string(hex).c_str(), got.c_str(), wanted.c_str());
}

std::string last_line(std::string_view hex) { return parse_tokens(from_hex(hex)).back(); }

}  // namespace

Test(tokens, environment_changes) {
  expect("E3 13 00 01 02 64 00 62 00 06 6D 00 61 00 73 00 74 00 65 00 72 00", "env 1 \"db\"  port 0");
  expect("E3 15 00 04 05 31 00 36 00 31 00 39 00 32 00 04 34 00 30 00 39 00 36 00", "env 4 \"16192\"  port 0");
  expect("E3 08 00 07 05 09 04 D0 00 34 00", "env 7 \"\" 09 04 D0 00 34 port 0");
  expect("E3 0B 00 08 08 01 00 00 00 00 00 00 00 00", "env 8 \"\" 01 00 00 00 00 00 00 00 port 0");
  expect("E3 0B 00 09 00 08 01 00 00 00 00 00 00 00", "env 9 \"\"  port 0");
  expect("E3 03 00 12 00 00", "env 18 \"\"  port 0");
}

Test(tokens, routing_gives_host_and_port) {
  expect("E3 10 00 14 0B 00 00 9A 05 03 00 61 00 6C 00 74 00 00 00", "env 20 \"alt\"  port 1434");
  expect("E3 12 00 14 0D 00 00 F8 2A 04 00 73 00 72 00 76 00 31 00 00 00", "env 20 \"srv1\"  port 11000");
}

Test(tokens, promotion_of_a_transaction_has_a_length_of_its_own) {
  // the token says 1 byte; behind it stand four bytes of length, the value, an empty old value, then the next token
  const auto lines = parse_tokens(from_hex("E3 01 00 0F 03 00 00 00 AA BB CC 00 79 2A 00 00 00"));
  cr_assert_eq(lines.size(), 2u);
  cr_assert_eq(lines[0], "env 15 \"\" AA BB CC port 0");
  cr_assert_eq(lines[1], "return status 42");
}

Test(tokens, unknown_environment_changes_are_skipped_by_length) {
  expect("E3 04 00 63 AA BB CC", "env 99 \"\"  port 0");
}

Test(tokens, login_acknowledgement_without_the_trailing_nuls) {
  expect(
      "AD 36 00 01 74 00 00 04 16 4D 00 69 00 63 00 72 00 6F 00 73 00 6F 00 66 00 74 00 20 00 53 00 51 00 4C 00 20 00 "
      "53 00 65 00 72 00 76 00 65 00 72 00 00 00 00 00 0B 00 08 CB",
      "loginack 74000004 \"Microsoft SQL Server\" 11.0.2251");
}

Test(tokens, feature_acknowledgements_have_no_length) {
  expect("AE 0A 01 00 00 00 01 FF", "feature 0A 01");
  const auto lines = parse_tokens(from_hex("AE 04 01 00 00 00 01 05 01 00 00 00 01 FF 79 00 00 00 00"));
  cr_assert_eq(lines.size(), 3u);
  cr_assert_eq(lines[2], "return status 0");
  // four acknowledgements, the first with 0x77 bytes of session state
  std::string session_state;
  for (int i = 0; i < 0x77; ++i) session_state += "FF ";
  const auto four = parse_tokens(from_hex("AE 01 77 00 00 00 " + session_state +
                                          "04 01 00 00 00 01 05 01 00 00 00 01 08 01 00 00 00 01 FF 79 00 00 00 00"));
  cr_assert_eq(four.size(), 5u);
  cr_assert_eq(four[0].size(), std::string("feature 01 ").size() + 0x77 * 3 - 1);
  cr_assert_eq(four[3], "feature 08 01");
  cr_assert_eq(four[4], "return status 0");
}

Test(tokens, messages_and_errors) {
  expect("AB 12 00 45 16 00 00 02 00 01 00 58 00 01 53 00 00 01 00 00 00",
         "info 5701 state 2 class 0 line 1 \"X\" server \"S\" procedure \"\"");
  expect("AA 16 00 D0 00 00 00 01 10 03 00 62 00 61 00 64 00 01 53 00 00 01 00 00 00",
         "error 208 state 1 class 16 line 1 \"bad\" server \"S\" procedure \"\"");
}

Test(tokens, errors_of_a_bulk_load_as_servers_send_them) {
  const auto units = [](int count, const char* unit) {
    std::string hex;
    for (int i = 0; i < count; ++i) hex += unit;
    return hex;
  };
  const auto refused =
      parse_tokens(from_hex("AA AA 00 CF 12 00 00 01 11 42 00 " + units(66, "61 00 ") + "0C " + units(12, "73 00 ") +
                            "00 01 00 00 00 FD 02 00 FD 00 00 00 00 00 00 00 00 00"));
  cr_assert_eq(refused.size(), 2u, "%s", refused.back().c_str());
  cr_assert_eq(refused[0], "error 4815 state 1 class 17 line 1 \"" + std::string(66, 'a') + "\" server \"" +
                               std::string(12, 's') + "\" procedure \"\"");
  cr_assert_eq(refused[1], "done fd status 0002 command fd rows 0");
  expect("AA 16 00 C4 12 00 00 01 11 03 00 62 00 61 00 64 00 01 53 00 00 01 00 00 00",
         "error 4804 state 1 class 17 line 1 \"bad\" server \"S\" procedure \"\"");
  // Azure's wrapping of a 4815
  expect("AA F4 00 05 9D 00 00 01 14 60 00 " + units(96, "61 00 ") + "13 " + units(19, "73 00 ") + "00 01 00 00 00",
         "error 40197 state 1 class 20 line 1 \"" + std::string(96, 'a') + "\" server \"" + std::string(19, 's') +
             "\" procedure \"\"");
}

Test(tokens, done_is_thirteen_bytes) {
  expect("FD 20 00 00 00 00 00 00 00 00 00 00 00", "done fd status 0020 command 00 rows 0");
  expect("FD 10 00 C3 00 03 00 00 00 00 00 00 00", "done fd status 0010 command c3 rows 3");
  expect("FD 02 00 00 00 00 00 00 00 00 00 00 00", "done fd status 0002 command 00 rows 0");
  expect("FF 11 00 C1 00 01 00 00 00 00 00 00 00", "done ff status 0011 command c1 rows 1");
  expect("FE 00 00 E0 00 00 00 00 00 00 00 00 00", "done fe status 0000 command e0 rows 0");
}

Test(tokens, done_in_procedure_may_come_before_the_login_acknowledgement) {
  const auto lines =
      parse_tokens(from_hex("FF 01 00 C1 00 00 00 00 00 00 00 00 00 FF 01 00 C1 00 00 00 00 00 00 00 00 "
                            "00 AD 0C 00 01 74 00 00 04 01 53 00 10 00 10 27 FD 00 00 00 00 00 00 00 00 "
                            "00 00 00 00"));
  cr_assert_eq(lines.size(), 4u);
  cr_assert_eq(lines[2], "loginack 74000004 \"S\" 16.0.4135");
}

Test(tokens, a_result_and_a_procedures_answer_as_packets) {
  const auto result = replay(from_hex("04 01 00 33 00 00 01 00 81 01 00 00 00 00 00 20 00 A7 03 00 09 04 D0 00 34 03 "
                                      "62 00 61 00 72 00 D1 03 00 66 6F 6F FD 10 00 C1 00 01 00 00 00 00 00 00 00"),
                             0);
  cr_assert_eq(result.size(), 3u);
  cr_assert_eq(result[0], "columns | bar varchar(3) 0020");
  cr_assert_eq(result[1], "row | foo");
  cr_assert_eq(result[2], "done fd status 0010 command c1 rows 1");
  const auto answer = replay(from_hex("04 01 00 27 00 00 01 00 FF 11 00 C1 00 01 00 00 00 00 00 00 00 79 00 00 00 00 "
                                      "FE 00 00 E0 00 00 00 00 00 00 00 00 00"),
                             0);
  cr_assert_eq(answer.size(), 3u);
  cr_assert_eq(answer[0], "done ff status 0011 command c1 rows 1");
  cr_assert_eq(answer[1], "return status 0");
  cr_assert_eq(answer[2], "done fe status 0000 command e0 rows 0");
}

Test(tokens, the_rest) {
  expect("79 00 00 00 00", "return status 0");
  expect("A9 04 00 01 00 02 00", "token A9 01 00 02 00");
  expect("AC 01 00 02 40 00 6F 00 01 00 00 00 00 00 00 26 04 04 09 00 00 00", "return value @o int 04 09 00 00 00");
  expect("E4 0B 00 00 00 01 00 00 00 01 09 04 FF FF FF FF", "token E4 01 00 00 00 01 09 04 FF FF FF FF");
  expect("ED 02 00 01 02", "token ED 01 02");
  expect("EE 04 00 00 00 00 00 00 00", "token EE 00 00 00 00");
  expect("A4 03 00 01 02 03", "token A4 01 02 03");
  expect("A5 03 00 01 01 08", "token A5 01 01 08");
  expect("78 01 02 03 04", "token 78 01 02 03 04");
}

Test(tokens, return_value_with_a_long_value) {
  expect("AC 00 00 00 01 00 00 00 00 00 00 A5 FF FF FE FF FF FF FF FF FF FF 02 00 00 00 AA BB 00 00 00 00",
         "return value  varbinary(max) FE FF FF FF FF FF FF FF 02 00 00 00 AA BB 00 00 00 00");
}

Test(tokens, info_may_stand_between_columns_and_rows) {
  const auto lines = parse_tokens(from_hex(
      "81 01 00 00 00 00 00 08 00 38 01 61 00 AB 12 00 45 16 00 00 02 00 01 00 58 00 01 53 00 00 01 00 00 00 D1 "
      "07 00 00 00 FD 10 00 C1 00 01 00 00 00 00 00 00 00"));
  cr_assert_eq(lines.size(), 4u);
  cr_assert_eq(lines[2], "row | 7");
}

Test(tokens, what_is_no_token_stream_is_malformed) {
  cr_assert_eq(last_line("00").substr(0, 9), "malformed");
  cr_assert_eq(last_line("D1 00").substr(0, 9), "malformed", "a row needs columns");
  cr_assert_eq(last_line("88 00").substr(0, 9), "malformed");
  cr_assert_eq(last_line("AA 02 00 00 00").substr(0, 9), "malformed");
  cr_assert_eq(last_line("EE FF FF FF 7F").substr(0, 9), "malformed");
  cr_assert_eq(last_line("AD 02 00 01 74").substr(0, 9), "malformed");
  cr_assert_eq(last_line("E3 02 00 01 09").substr(0, 9), "malformed");
  cr_assert_eq(last_line("81 01 00 00 00 00 00 08 00 99").substr(0, 9), "malformed");
  // rows after the DONE of their result belong to nobody
  cr_assert_eq(last_line("81 01 00 00 00 00 00 08 00 38 01 61 00 FD 00 00 00 00 00 00 00 00 00 00 00 00 D1 07 00 00 00")
                   .substr(0, 9),
               "malformed");
}

Test(tokens, unfinished_streams_say_so) {
  cr_assert_eq(last_line("FD 00 00"), "unfinished");
  cr_assert_eq(last_line("81 01 00 00 00 00 00 08 00 38 01 61 00 D1 07 00"), "unfinished");
}

namespace {

const char* const all_captures[] = {"01-login-and-versions.tds",
                                    "02-all-types.tds",
                                    "03-long-values-512-byte-packets.tds",
                                    "04-several-results-proc-rpc.tds",
                                    "05-errors.tds",
                                    "06-transactions.tds",
                                    "07-bulk-load-13-columns.tds",
                                    "08-bulk-load-duplicate-key.tds",
                                    "09-attention.tds",
                                    "10-catalogue-queries.tds",
                                    "11-wrong-password.tds",
                                    "12-wrong-database.tds"};

}  // namespace

// The lengths of the packets, in order.
std::vector<std::size_t> packet_sizes(const std::string& packets) {
  std::vector<std::size_t> sizes;
  for (std::size_t at = 0; at < packets.size(); at += sizes.back()) {
    sizes.push_back(tds::load_header(reinterpret_cast<const std::uint8_t*>(packets.data()) + at).length);
  }
  return sizes;
}

Test(captures, every_recorded_reply_parses_the_same_at_every_cut) {
  for (const char* name : all_captures) {
    std::string all;
    for (const std::string& message : server_messages(load_capture(name))) all += message;
    const auto whole = replay(all, 0);
    cr_assert_gt(whole.size(), 0u, "%s", name);
    for (const std::string& line : whole) {
      cr_assert(line.rfind("malformed", 0) != 0 && line != "unfinished", "%s: %s", name, line.c_str());
    }
    for (const std::size_t step : {std::size_t{1}, std::size_t{13}, std::size_t{512}, std::size_t{4096}}) {
      cr_assert(replay(all, step) == whole, "%s in steps of %zu", name, step);
    }
    cr_assert(replay_pieces(all, packet_sizes(all)) == whole, "%s, packet by packet", name);
  }
}

// Messages up to this size are cut at each of their bytes; the longer ones, rows of one kind, at this many places.
constexpr std::size_t cut_at_each_byte_max = 2000;
constexpr std::size_t cuts_of_longer_ones = 400;

Test(captures, a_recorded_reply_cut_in_two_at_any_byte_is_the_same_and_without_its_rest_is_unfinished, .timeout = 60) {
  for (const char* name : all_captures) {
    for (const std::string& message : server_messages(load_capture(name))) {
      const auto whole = replay(message, 0);
      const std::size_t step = message.size() <= cut_at_each_byte_max ? 1 : message.size() / cuts_of_longer_ones;
      for (std::size_t cut = 1; cut < message.size(); cut += step) {
        cr_assert(replay_pieces(message, {cut, message.size() - cut}) == whole, "%s cut at %zu", name, cut);
        auto part = replay_pieces(message.substr(0, cut), {cut});
        cr_assert_eq(part.empty() ? "" : part.back(), "unfinished", "%s ending at %zu", name, cut);
        part.pop_back();
        cr_assert_leq(part.size(), whole.size());
        for (std::size_t i = 0; i < part.size(); ++i) cr_assert_eq(part[i], whole[i], "%s ending at %zu", name, cut);
      }
    }
  }
}

Test(captures, login_is_understood) {
  const auto messages = server_messages(load_capture("01-login-and-versions.tds"));
  const auto lines = replay(messages[0], 0);
  const auto has = [&](const std::string& part) {
    for (const auto& line : lines) {
      if (line.find(part) != std::string::npos) return true;
    }
    return false;
  };
  cr_assert(has("env 1 \"testdb\""));
  cr_assert(has("env 7 \"\" 09 04 D0 00 34"));
  cr_assert(has("loginack 74000004 \"Microsoft SQL Server\""));
}
