#include <criterion/criterion.h>

#include "base/error.hpp"
#include "tds/wire/login7.hpp"
#include "tds/wire/packet.hpp"
#include "tds/wire/prelogin.hpp"
#include "tds/wire/server_login.hpp"
#include "tests/support/hex.hpp"
#include "tests/tds/capture.hpp"

using namespace rowferry;
using namespace rowferry::tds;
using rowferry::test::from_hex;
using rowferry::test::to_hex;

namespace {

std::string login_hex(const Login7& login) {
  ByteBuffer out;
  put_login7(out, login);
  return to_hex(out.view());
}

std::optional<PreloginReply> reply(std::string_view hex) {
  std::string why;
  return parse_prelogin_reply(as_bytes(from_hex(hex)), why);
}

}  // namespace

Test(prelogin, what_we_ask) {
  ByteBuffer out;
  put_prelogin(out, PreloginEncryption::on);
  cr_assert_eq(
      to_hex(out.view()),
      "00 00 1A 00 06 01 00 20 00 01 02 00 21 00 01 03 00 22 00 04 04 00 26 00 01 FF 00 00 00 00 00 00 01 00 00 "
      "00 00 00 00");
}

Test(prelogin, answers_of_servers) {
  const auto sql_2022 =
      reply("00 00 1A 00 06 01 00 20 00 01 02 00 21 00 01 03 00 22 00 00 04 00 22 00 01 FF 10 00 10 27 00 00 02 00 00");
  cr_assert(sql_2022.has_value());
  cr_assert_eq(sql_2022->major, 16);
  cr_assert_eq(sql_2022->build, 4135);
  cr_assert_eq(static_cast<int>(*sql_2022->encryption), static_cast<int>(PreloginEncryption::not_supported));
  // SQL Server 2008 R2 with encryption
  const auto sql_2008 =
      reply("00 00 1A 00 06 01 00 20 00 01 02 00 21 00 01 03 00 22 00 00 04 00 22 00 01 FF 0A 00 0F A0 00 00 01 00 00");
  cr_assert(sql_2008.has_value());
  cr_assert_eq(sql_2008->major, 10);
  cr_assert_eq(sql_2008->build, 4000);
  cr_assert_eq(static_cast<int>(*sql_2008->encryption), static_cast<int>(PreloginEncryption::on));
  // some servers leave MARS out
  cr_assert(reply("00 00 10 00 06 01 00 16 00 01 02 00 17 00 01 FF 0B 00 08 34 00 00 02 00").has_value());
  // the recorded reply
  for (const auto& packet : test::load_capture("01-login-and-versions.tds")) {
    if (packet.from_client) continue;
    std::string why;
    const auto recorded = parse_prelogin_reply(as_bytes(packet.bytes).subspan(8), why);
    cr_assert(recorded.has_value(), "%s", why.c_str());
    cr_assert_eq(recorded->major, 12);
    break;
  }
}

Test(prelogin, answers_that_are_none) {
  cr_assert_not(reply("").has_value());
  cr_assert_not(reply("FF").has_value());
  cr_assert_not(reply("00 00 1A").has_value());
  cr_assert_not(reply("00 00 06 00 06 FF").has_value(), "data beyond the end");
  cr_assert_not(reply("01 00 06 00 01 FF 00").has_value(), "version must come first");
  cr_assert(reply("00 00 0B 00 06 63 00 11 00 01 FF 10 00 00 00 00 00 07").has_value(), "unknown options are skipped");
}

Test(prelogin, agreement_on_encryption) {
  using P = PreloginEncryption;
  const struct {
    P asked, answered;
    Encryption agreed;
  } cases[] = {
      {P::off, P::off, Encryption::login},
      {P::off, P::on, Encryption::all},
      {P::off, P::required, Encryption::all},
      {P::off, P::not_supported, Encryption::none},
      {P::on, P::off, Encryption::refused},
      {P::on, P::on, Encryption::all},
      {P::on, P::required, Encryption::all},
      {P::on, P::not_supported, Encryption::refused},
      {P::not_supported, P::off, Encryption::refused},
      {P::not_supported, P::on, Encryption::refused},
      {P::not_supported, P::required, Encryption::refused},
      {P::not_supported, P::not_supported, Encryption::none},
  };
  for (const auto& c : cases) {
    cr_expect_eq(static_cast<int>(agree(c.asked, c.answered)), static_cast<int>(c.agreed), "asked %d answered %d",
                 static_cast<int>(c.asked), static_cast<int>(c.answered));
  }
}

Test(login7, every_byte) {
  cr_assert_eq(login_hex({.client_name = "H",
                          .user = "sa",
                          .password = "foo",
                          .application_name = "app",
                          .server_name = "srv",
                          .library_name = "lib",
                          .database = "db",
                          .client_version = 0x07000000,
                          .process_id = 0x100}),
               "8B 00 00 00 04 00 00 74 00 10 00 00 00 00 00 07 00 01 00 00 00 00 00 00 E0 03 00 10 00 00 00 00 00 00 "
               "00 00 5E 00 "
               "01 00 60 00 02 00 64 00 03 00 6A 00 03 00 70 00 03 00 76 00 04 00 7A 00 03 00 80 00 00 00 80 00 02 00 "
               "00 00 00 00 "
               "00 00 84 00 00 00 84 00 00 00 84 00 00 00 00 00 00 00 48 00 73 00 61 00 C3 A5 53 A5 53 A5 61 00 70 00 "
               "70 00 73 00 "
               "72 00 76 00 84 00 00 00 6C 00 69 00 62 00 64 00 62 00 0A 01 00 00 00 01 FF");
}

Test(login7, passwords_of_any_characters) {
  cr_assert_neq(
      login_hex({.user = "u", .password = "Pa$$w0rd"}).find("A0 A5 B3 A5 E7 A5 E7 A5 D2 A5 A6 A5 82 A5 E3 A5"),
      std::string::npos);
  for (const std::string& password : {std::string(), std::string(128, 'x'), std::string("☃😀"),
                                      std::string("a;b{c}d'e\"f=g%h@i:j/k?l#m[n]\xC3\xA9 ")}) {
    ByteBuffer out;
    put_login7(out, {.user = "u", .password = password, .database = "dw"});
    const auto read = server::parse_login7(out.view());
    cr_assert(read.has_value());
    cr_assert_eq(read->password, password, "%s comes as %s", password.c_str(), read->password.c_str());
    cr_assert_eq(read->user, "u");
    cr_assert_eq(read->database, "dw");
  }
}

Test(login7, a_name_that_is_too_long_is_named_without_its_text) {
  try {
    (void)login_hex({.password = std::string(129, 's')});
    cr_assert_fail("129 characters do not fit");
  } catch (const Error& error) {
    cr_assert_eq(error.code(), "login_too_long");
    cr_assert_eq(error.one_line().find("sss"), std::string::npos);
  }
}

Test(login7, read_only_intent_is_a_bit_of_the_type_flags) {
  const std::string hex = login_hex({.read_only_intent = true});
  cr_assert_eq(hex.substr(26 * 3, 2), "20");
}
