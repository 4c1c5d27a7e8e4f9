#include "columns.hpp"

using namespace rowferry;
using namespace rowferry::rows;
using namespace rowferry::rows::test;

namespace {
Type nvarchar(std::uint32_t n) { return Type::text(n, LengthUnit::utf16_units); }
Type varchar(std::uint32_t n, std::uint16_t code_page) {
  Type type = Type::text(n, LengthUnit::bytes);
  type.code_page = code_page;
  return type;
}
Type no_nul(Type type) {
  type.no_nul = true;
  return type;
}
const std::string grin = "\xF0\x9F\x98\x80";  // U+1F600, two UTF-16 units
}  // namespace

Test(text_columns, lengths_are_known_to_fit_or_are_checked) {
  cr_expect(fit(Type::text(10), nvarchar(20)).kind == Fit::Kind::same);
  cr_expect(fit(Type::text(10), nvarchar(19)).kind == Fit::Kind::checked);
  cr_expect(fit(Type::text(), nvarchar(4000)).kind == Fit::Kind::checked);
  cr_expect(fit(Type::text(), Type::text()).kind == Fit::Kind::same);
  cr_expect(fit(Type::text(10), varchar(40, 65001)).kind == Fit::Kind::same);
  cr_expect(fit(Type::text(10), varchar(40, 1252)).kind == Fit::Kind::checked);
  cr_expect(fit(varchar(40, 1252), varchar(40, 1252)).kind == Fit::Kind::same);
  cr_expect(fit(Type::text(), no_nul(Type::text())).kind == Fit::Kind::checked);
}

// O-02
Test(text_columns, lengths_count_in_the_unit_of_the_column) {
  std::string n_tilde;
  for (int i = 0; i < 500; ++i) n_tilde += "ñ";
  EXPECT_TEXTS(convert<std::string>(Type::text(), nvarchar(500), {n_tilde}), n_tilde);
  EXPECT_TEXTS(convert<std::string>(Type::text(), varchar(10, 1252), {"aaaaaaaaaa"}), "aaaaaaaaaa");
  EXPECT_TEXTS(convert<std::string>(Type::text(), varchar(1, 1252), {"é"}), "é");
  EXPECT_TEXTS(convert<std::string>(Type::text(), Type::text(4), {grin + grin + grin + grin}),
               grin + grin + grin + grin);
  const Error error = conversion_error<std::string>(Type::text(), nvarchar(4), {{}, "abcd", grin + grin + grin + grin});
  cr_expect(error.detail().find("8 UTF-16 units > nvarchar(4)") != std::string::npos, "%s", error.detail().c_str());
  cr_expect(error.context().row == 3U);
  cr_expect(
      conversion_error<std::string>(Type::text(), varchar(3, 65001), {"éé"}).detail().find("4 bytes > varchar(3)") !=
      std::string::npos);
}

Test(text_columns, truncate_cuts_between_characters) {
  const auto cut =
      convert<std::string>(Type::text(), nvarchar(3), {grin + grin, "abc", "", {}, "abcdef"}, policy(OnLoss::truncate));
  EXPECT_TEXTS(cut, grin + "|abc||NULL|abc");
  cr_expect_eq(cut.changed, 2U);
  EXPECT_TEXTS(convert<std::string>(Type::text(), varchar(3, 65001), {"éé"}, policy(OnLoss::truncate)), "é");
  EXPECT_TEXTS(convert<std::string>(Type::text(), varchar(3, 932), {"ああ"}, policy(OnLoss::truncate)), "あ");
}

// O-03
Test(text_columns, a_character_outside_the_code_page_is_named) {
  EXPECT_TEXTS(convert<std::string>(Type::text(), varchar(20, 1252), {"€", "‡"}), "€|‡");
  EXPECT_TEXTS(convert<std::string>(Type::text(), varchar(4, 932), {"ああ"}), "ああ");
  const Error error = conversion_error<std::string>(Type::text(), varchar(20, 1252), {"Karl Ⅰ"});
  cr_expect(error.detail().find("U+2160 at byte 5 is not in code page 1252") != std::string::npos, "%s",
            error.detail().c_str());
}

Test(text_columns, characters_are_replaced_or_stripped) {
  const Values<std::string> values{"Karl Ⅰ", "Karl Ⅱ", "é", {}};
  const auto replaced = convert<std::string>(Type::text(), varchar(20, 1252), values, policy(OnLoss::replace));
  EXPECT_TEXTS(replaced, "Karl ?|Karl ?|é|NULL");
  cr_expect_eq(replaced.changed, 2U);
  EXPECT_TEXTS(convert<std::string>(Type::text(), varchar(20, 1252), values, policy(OnLoss::replace, "(!)")),
               "Karl (!)|Karl (!)|é|NULL");
  EXPECT_TEXTS(convert<std::string>(Type::text(), varchar(20, 1252), values, policy(OnLoss::strip)),
               "Karl |Karl |é|NULL");
  EXPECT_TEXTS(convert<std::string>(Type::text(), varchar(20, 1252), values, policy(OnLoss::null)), "NULL|NULL|é|NULL");
  cr_expect(conversion_error<std::string>(Type::text(), varchar(20, 1252), values, policy(OnLoss::truncate)).code() ==
                "value_does_not_fit",
            "cutting does not mend a character");
  cr_expect(conversion_error<std::string>(Type::text(), nvarchar(2), {"abc"}, policy(OnLoss::strip)).code() ==
                "value_does_not_fit",
            "no character is at fault in a text that is too long");
}

// O-12
Test(text_columns, u_0000_is_kept_where_it_can_be_and_named_where_not) {
  const std::string nul("ab\0cd", 5);
  EXPECT_TEXTS(convert<std::string>(Type::text(), nvarchar(10), {nul}), nul);
  const Error error = conversion_error<std::string>(Type::text(), no_nul(Type::text()), {"ok", nul});
  cr_expect(error.detail().find("U+0000 at byte 2") != std::string::npos);
  EXPECT_TEXTS(convert<std::string>(Type::text(), no_nul(Type::text()), {"ok", nul}, policy(OnLoss::strip)), "ok|abcd");
  EXPECT_TEXTS(convert<std::string>(Type::text(), no_nul(Type::text()), {nul}, policy(OnLoss::replace)),
               "ab\xEF\xBF\xBD"
               "cd");
}

Test(text_columns, a_message_cuts_the_value) {
  const Error error = conversion_error<std::string>(Type::text(), nvarchar(4), {std::string(5000, 'x')});
  cr_expect(error.context().value == std::string(64, 'x') + "…");
  cr_expect(error.detail().size() < 300);
}

// O-21
Test(text_columns, empty_null_and_blank_stay_apart) {
  Type nchar = nvarchar(5);
  nchar.padded = true;
  EXPECT_TEXTS(convert<std::string>(Type::text(), nchar, {"", {}, " ", "ab   "}), "|NULL| |ab   ");
  cr_expect(conversion_error<std::string>(Type::text(), nchar, {"ab    "}).detail().find("6 UTF-16 units > nchar(5)") !=
            std::string::npos);
}

Test(text_columns, json_is_text_and_text_may_be_json) {
  const Type json = Type::of(TypeId::json);
  cr_expect(fit(json, Type::text()).kind == Fit::Kind::same);
  cr_expect(fit(json, nvarchar(10)).kind == Fit::Kind::checked);
  cr_expect(fit(json, json).kind == Fit::Kind::same);
  cr_expect(fit(Type::text(), json).kind == Fit::Kind::checked);  // by the server
  EXPECT_TEXTS(convert<std::string>(json, Type::text(), {R"({"a": 1})", {}}), R"({"a": 1}|NULL)");
}

Test(text_columns, binary_lengths) {
  Type fixed = Type::binary(3);
  fixed.padded = true;
  EXPECT_TEXTS(convert<std::string>(Type::binary(), Type::binary(3), {"abc", "", {}}), "0x616263|0x|NULL");
  cr_expect(conversion_error<std::string>(Type::binary(), Type::binary(3), {"abcd"})
                .detail()
                .find("4 bytes > varbinary(3)") != std::string::npos);
  EXPECT_TEXTS(convert<std::string>(Type::binary(), Type::binary(3), {"abcd", "a"}, policy(OnLoss::truncate)),
               "0x616263|0x61");
  EXPECT_TEXTS(convert<std::string>(Type::binary(), fixed, {"abc", {}}), "0x616263|NULL");
  cr_expect(conversion_error<std::string>(Type::binary(), fixed, {"ab"}).detail().find("2 bytes < binary(3)") !=
                std::string::npos,
            "padding makes another value of it");
  EXPECT_TEXTS(convert<std::string>(Type::binary(), fixed, {"ab", "abcd"}, policy(OnLoss::null)), "NULL|NULL");
}

Test(text_columns, uuids_as_text) {
  const Type uuid = Type::of(TypeId::uuid);
  Int128 value = 0;
  const std::uint8_t bytes[] = {0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77,
                                0x88, 0x99, 0xAA, 0xBB, 0xCC, 0xDD, 0xEE, 0xFF};
  std::memcpy(&value, bytes, sizeof value);
  EXPECT_TEXTS(convert<Int128>(uuid, nvarchar(36), {value, {}}), "00112233-4455-6677-8899-aabbccddeeff|NULL");
  EXPECT_TEXTS(convert<Int128>(uuid, uuid, {value}), "00112233-4455-6677-8899-aabbccddeeff");
  cr_expect(conversion_error<Int128>(uuid, nvarchar(35), {value}).code() == "value_does_not_fit");
  cr_expect(fit(Type::text(), uuid).kind == Fit::Kind::never);
  cr_expect(fit(uuid, Type::binary(16)).kind == Fit::Kind::never);
}
