// The tokens of a server's reply, byte for byte against the vectors of the protocol notes.
#include <criterion/criterion.h>

#include "tds/wire/server_login.hpp"
#include "tds/wire/server_tokens.hpp"
#include "tests/support/hex.hpp"

using namespace rowferry;
using namespace rowferry::tds;
using namespace rowferry::tds::server;
using rowferry::test::from_hex;
using rowferry::test::to_hex;

namespace {

void expect(const ByteBuffer& out, std::string_view hex) { cr_assert_eq(to_hex(out.view()), to_hex(from_hex(hex))); }

}  // namespace

Test(tokens, environment_changes) {
  ByteBuffer out;
  write_env_database(out, "db", "master");
  expect(out, "E3 13 00 01 02 64 00 62 00 06 6D 00 61 00 73 00 74 00 65 00 72 00");
  out.clear();
  write_env_packet_size(out, 16192, 4096);
  expect(out, "E3 15 00 04 05 31 00 36 00 31 00 39 00 32 00 04 34 00 30 00 39 00 36 00");
  out.clear();
  write_env_collation(out, {.info = 0x00D00409, .sort_id = 0x34});
  expect(out, "E3 08 00 07 05 09 04 D0 00 34 00");
  out.clear();
  write_env_begin(out, 1);
  expect(out, "E3 0B 00 08 08 01 00 00 00 00 00 00 00 00");
  out.clear();
  write_env_commit(out, 1);
  expect(out, "E3 0B 00 09 00 08 01 00 00 00 00 00 00 00");
  out.clear();
  write_env_routing(out, "alt", 1434);
  expect(out, "E3 10 00 14 0B 00 00 9A 05 03 00 61 00 6C 00 74 00 00 00");
  out.clear();
  write_env_reset(out);
  expect(out, "E3 03 00 12 00 00");
}

Test(tokens, login_answers) {
  ByteBuffer out;
  using namespace std::string_literals;
  write_login_ack(out, {.tds_version = tds_version_7_4,
                        .program = "Microsoft SQL Server\0\0"s,
                        .major = 11,
                        .minor = 0,
                        .build = 0x08CB});
  expect(
      out,
      "AD 36 00 01 74 00 00 04 16 4D 00 69 00 63 00 72 00 6F 00 73 00 6F 00 66 00 74 00 20 00 53 00 51 00 4C 00 20 00"
      "53 00 65 00 72 00 76 00 65 00 72 00 00 00 00 00 0B 00 08 CB");
  out.clear();
  write_feature_ext_ack(out, {{feature_utf8, {1}}});
  expect(out, "AE 0A 01 00 00 00 01 FF");
  out.clear();
  write_feature_ext_ack(out, {});
  cr_assert(out.empty());
}

Test(tokens, messages) {
  ByteBuffer out;
  write_info(out, {.number = 5701, .state = 2, .severity = 10, .text = "X", .server = "S", .procedure = "", .line = 1});
  expect(out, "AB 12 00 45 16 00 00 02 00 01 00 58 00 01 53 00 00 01 00 00 00");
  out.clear();
  write_error(out,
              {.number = 208, .state = 1, .severity = 16, .text = "bad", .server = "S", .procedure = "", .line = 1});
  expect(out, "AA 16 00 D0 00 00 00 01 10 03 00 62 00 61 00 64 00 01 53 00 00 01 00 00 00");
}

Test(tokens, a_long_message_is_cut_at_a_character) {
  ByteBuffer out;
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += "\xF0\x9F\x98\x80";  // two units each
  write_error(out, {.number = 1, .text = text, .server = "S"});
  const std::size_t length = load_le<std::uint16_t>(out.data() + 1);
  cr_assert_eq(length + 3, out.size(), "the length counts what was written");
  cr_assert_eq(load_le<std::uint16_t>(out.data() + 9) % 2, 0, "no half of a pair");
}

Test(tokens, done) {
  ByteBuffer out;
  write_done(out, {.kind = DoneKind::done, .status = done_count, .command = command_insert, .rows = 3});
  expect(out, "FD 10 00 C3 00 03 00 00 00 00 00 00 00");
  mark_done_more(out, 0);
  expect(out, "FD 11 00 C3 00 03 00 00 00 00 00 00 00");
  out.clear();
  write_done(out, {.kind = DoneKind::done, .status = done_attention});
  expect(out, "FD 20 00 00 00 00 00 00 00 00 00 00 00");
}

Test(tokens, of_procedures) {
  ByteBuffer out;
  write_return_status(out, 0);
  expect(out, "79 00 00 00 00");
  out.clear();
  const std::uint16_t columns[] = {1, 2};
  write_order(out, columns);
  expect(out, "A9 04 00 01 00 02 00");
  out.clear();
  TypeInfo type;
  type.id = DataType::intn;
  type.max_length = 4;
  write_return_value_head(out, 1, "@o", type);
  out.append(as_bytes(from_hex("04 09 00 00 00")));
  expect(out, "AC 01 00 02 40 00 6F 00 01 00 00 00 00 00 00 26 04 04 09 00 00 00");
}
