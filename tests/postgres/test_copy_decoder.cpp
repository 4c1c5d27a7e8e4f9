#include <limits>

#include "../support/expect.hpp"
#include "copy_rows.hpp"

using namespace rowferry;
using namespace rowferry::postgres::test;
using rows::OnLoss;
using rows::Type;
using rows::TypeId;

namespace {

CopyColumn column(Form form, const Type& type, OnLoss action = OnLoss::error) {
  return {.name = "v", .form = form, .type = type, .policy = {action, {}}};
}
const CopyColumn int4 = column(Form::int32, Type::of(TypeId::int32));
const CopyColumn text = column(Form::bytes, Type::text());

template <class T>
void expect_values(const Decoded& decoded, const std::vector<std::optional<T>>& expected) {
  cr_assert(decoded.batch, "%s", decoded.problem.c_str());
  cr_assert_eq(decoded.batch->rows(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    cr_expect_eq(decoded.column().valid(i), expected[i].has_value(), "row %zu", i);
    cr_expect(decoded.column().value<T>(i) == expected[i].value_or(T{}), "row %zu", i);
  }
}
void expect_texts(const Decoded& decoded, const std::vector<std::string>& expected) {
  cr_assert(decoded.batch, "%s", decoded.problem.c_str());
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_TEXT(std::string(decoded.column().text(i)), expected[i]);
}

}  // namespace

Test(copy_decoder, integers_of_every_width_with_nulls) {
  expect_values<std::int16_t>(decode_column(column(Form::int16, Type::of(TypeId::int16)),
                                            {be<std::int16_t>(-32768), {}, be<std::int16_t>(32767)}),
                              {-32768, {}, 32767});
  expect_values<std::int32_t>(decode_column(int4, {{}, be<std::int32_t>(-2147483647 - 1), be<std::int32_t>(7)}),
                              {{}, -2147483647 - 1, 7});
  expect_values<std::int64_t>(
      decode_column(column(Form::int64, Type::of(TypeId::int64)),
                    {be(std::numeric_limits<std::int64_t>::min()), be(std::numeric_limits<std::int64_t>::max()), {}}),
      {std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max(), {}});
  expect_values<std::int64_t>(
      decode_column(column(Form::uint32, Type::of(TypeId::int64)), {be<std::uint32_t>(4294967295U), {}}),
      {4294967295LL, {}});
}

Test(copy_decoder, floats_keep_their_bits) {
  expect_values<std::uint64_t>(decode_column(column(Form::float64, Type::of(TypeId::float64)),
                                             {from_hex("7FF8000000000000"), from_hex("8000000000000000")}),
                               {0x7FF8000000000000U, 0x8000000000000000U});
  expect_values<std::uint32_t>(
      decode_column(column(Form::float32, Type::of(TypeId::float32)), {from_hex("FF800000"), {}}), {0xFF800000U, {}});
}

Test(copy_decoder, booleans_cross_the_borders_of_bytes_and_blocks) {
  std::vector<Field> fields;
  for (int i = 0; i < 300; ++i)
    fields.push_back(i % 7 == 3 ? Field() : Field(std::string(1, static_cast<char>(i % 3 == 0))));
  const Decoded decoded = decode_column(column(Form::boolean, Type::of(TypeId::boolean)), fields);
  cr_assert(decoded.batch, "%s", decoded.problem.c_str());
  for (std::size_t i = 0; i < 300; ++i) {
    cr_expect_eq(decoded.column().valid(i), i % 7 != 3, "row %zu", i);
    if (i % 7 != 3) cr_expect_eq(decoded.column().boolean(i), i % 3 == 0, "row %zu", i);
  }
}

Test(copy_decoder, the_first_null_may_come_in_any_block) {
  for (const std::size_t at : {0U, 1U, 127U, 128U, 129U, 255U, 256U, 299U}) {
    std::vector<Field> fields(300, be<std::int32_t>(9));
    fields[at].reset();
    const Decoded decoded = decode_column(int4, fields);
    cr_assert(decoded.batch, "%s", decoded.problem.c_str());
    for (std::size_t i = 0; i < 300; ++i) {
      cr_assert_eq(decoded.column().valid(i), i != at, "null at %zu, row %zu", at, i);
      cr_assert_eq(decoded.column().value<std::int32_t>(i), i == at ? 0 : 9);
    }
  }
}

Test(copy_decoder, dates_count_from_1970) {
  const CopyColumn date = column(Form::date, Type::of(TypeId::date));
  expect_values<std::int32_t>(
      decode_column(date, {be<std::int32_t>(0), be<std::int32_t>(-10957), be<std::int32_t>(2145031948), {}}),
      {10957, 0, 2145042905, {}});
}

Test(copy_decoder, timestamps_count_from_1970) {
  const CopyColumn stamp = column(Form::timestamp, Type::timestamp(rows::TimeUnit::micro, 6, true));
  expect_values<std::int64_t>(decode_column(stamp, {be<std::int64_t>(0), be<std::int64_t>(-946684800000000), {}}),
                              {946684800000000, 0, {}});
}

Test(copy_decoder, infinity_is_a_loss_unless_the_target_holds_it) {
  const std::string plus = be(std::numeric_limits<std::int64_t>::max());
  const std::string minus = be(std::numeric_limits<std::int64_t>::min());
  CopyColumn stamp = column(Form::timestamp, Type::timestamp(rows::TimeUnit::micro, 6, false));
  EXPECT_ERROR(decode_column(stamp, {be<std::int64_t>(0), plus}), "value_does_not_fit");
  stamp.policy.action = OnLoss::null;
  const Decoded nulled = decode_column(stamp, {plus, be<std::int64_t>(0), minus});
  cr_assert(nulled.batch);
  cr_expect_not(nulled.column().valid(0));
  cr_expect(nulled.column().valid(1));
  cr_expect_not(nulled.column().valid(2));
  cr_expect_eq(nulled.changed[0], 2);
  stamp.policy.action = OnLoss::error;
  stamp.holds_infinity = true;
  expect_values<std::int64_t>(decode_column(stamp, {plus, minus}),
                              {std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()});
  // Under `replace` the converter's range decides: the extremes pass through, uncounted.
  stamp.holds_infinity = false;
  stamp.policy.action = OnLoss::replace;
  const Decoded passed = decode_column(stamp, {plus});
  cr_expect_eq(passed.column().value<std::int64_t>(0), std::numeric_limits<std::int64_t>::max());
  cr_expect_eq(passed.changed[0], 0);
}

Test(copy_decoder, infinite_dates_like_timestamps) {
  CopyColumn date = column(Form::date, Type::of(TypeId::date));
  EXPECT_ERROR(decode_column(date, {be(std::numeric_limits<std::int32_t>::max())}), "value_does_not_fit");
  date.policy.action = OnLoss::null;
  cr_expect_not(decode_column(date, {be(std::numeric_limits<std::int32_t>::min())}).column().valid(0));
  date.holds_infinity = true;
  expect_values<std::int32_t>(decode_column(date, {be(std::numeric_limits<std::int32_t>::max())}),
                              {std::numeric_limits<std::int32_t>::max()});
}

Test(copy_decoder, years_beyond_64_bit_microseconds_are_never_infinity) {
  const std::string late = be<std::int64_t>(9223371331199999999);  // 294276-12-31 23:59:59.999999
  CopyColumn stamp = column(Form::timestamp, Type::timestamp(rows::TimeUnit::micro, 6, false));
  EXPECT_ERROR(decode_column(stamp, {late}), "value_does_not_fit");
  const auto told = [&] {
    try {
      decode_column(stamp, {late});
    } catch (const Error& error) {
      return error.detail();
    }
    return std::string("nothing");
  };
  const std::string by_error = told();
  cr_expect_neq(by_error.find("294276-12-31 23:59:59.999999"), std::string::npos, "%s", by_error.c_str());
  stamp.policy.action = OnLoss::truncate;
  EXPECT_TEXT(told(), by_error);
  stamp.holds_infinity = true;
  EXPECT_TEXT(told(), by_error);
  stamp.policy.action = OnLoss::null;
  EXPECT_TEXT(told(), by_error);
}

Test(copy_decoder, uuids_stay_in_printed_order) {
  const std::string uuid = from_hex("00112233445566778899AABBCCDDEEFF");
  const Decoded decoded = decode_column(column(Form::uuid, Type::of(TypeId::uuid)), {{}, uuid});
  cr_assert(decoded.batch);
  cr_expect_arr_eq(decoded.column().values + 16, uuid.data(), 16);
}

Test(copy_decoder, text_null_and_empty_are_three_things) {
  const Decoded decoded = decode_column(text, {"", {}, "naïve 😀", std::string("a\0b", 3)});
  expect_texts(decoded, {"", "", "naïve 😀", std::string("a\0b", 3)});
  cr_expect(decoded.column().valid(0));
  cr_expect_not(decoded.column().valid(1));
}

Test(copy_decoder, jsonb_loses_its_version_byte_and_refuses_others) {
  const CopyColumn jsonb = column(Form::jsonb, Type::of(TypeId::json));
  expect_texts(decode_column(jsonb, {"\x01{\"a\": 3, \"b\": 1}", {}}), {"{\"a\": 3, \"b\": 1}", ""});
  cr_expect_not(decode_column(jsonb, {"\x02{}"}).batch);
  cr_expect_not(decode_column(jsonb, {""}).batch);
}

Test(copy_decoder, bit_strings_become_zeros_and_ones) {
  const CopyColumn bits = column(Form::bit_string, Type::text(16));
  expect_texts(decode_column(bits, {from_hex("00000005 A8"), from_hex("00000000"), {}, from_hex("00000009 FF80")}),
               {"10101", "", "", "111111111"});
  cr_expect_not(decode_column(bits, {from_hex("00000009 FF")}).batch);
  cr_expect_not(decode_column(bits, {from_hex("FFFFFFFF")}).batch);
  cr_expect_not(decode_column(bits, {from_hex("0000")}).batch);
}

Test(copy_decoder, the_char_type_prints_as_the_server_does) {
  expect_texts(decode_column(column(Form::char_byte, Type::text()), {"x", std::string(1, '\0'), "\xE9", {}}),
               {"x", "", "\\351", ""});
}

Test(copy_decoder, money_is_the_integer_at_its_scale) {
  const Decoded decoded = decode_column(column(Form::money, Type::decimal(19, 2)), {be<std::int64_t>(-1), {}});
  cr_assert(decoded.batch);
  cr_expect(decoded.column().value<rows::Int128>(0) == -1);
  cr_expect(decoded.column().value<rows::Int128>(1) == 0);
}

Test(copy_decoder, a_header_may_come_with_the_first_row_and_with_an_extension) {
  CopyDecoder decoder({int4});
  const std::string first =
      from_hex("50 47 43 4F 50 59 0A FF 0D 0A 00 00 00 00 00 00 00 00 03 AA BB CC") + row({be<std::int32_t>(1)});
  cr_expect_eq(feed(decoder, first), CopyDecoder::Got::row);
  cr_expect_eq(decoder.pending(), 1);
}

Test(copy_decoder, an_empty_table_is_header_and_trailer) {
  CopyDecoder decoder({int4});
  cr_expect_eq(feed(decoder, header + trailer), CopyDecoder::Got::end);
  cr_expect(decoder.ended());
}

Test(copy_decoder, rows_without_columns_are_counted) {
  CopyDecoder decoder((std::vector<CopyColumn>()));
  const auto batch = batch_for({});
  cr_expect_eq(feed(decoder, header + row({})), CopyDecoder::Got::row);
  cr_expect(decoder.decode(*batch, 0));
  cr_expect_eq(decoder.decoded(), 1);
}

Test(copy_decoder, ordinals_go_on_over_restarts) {
  CopyDecoder decoder({int4});
  const auto batch = batch_for({int4});
  const std::string one = header + row({be<std::int32_t>(1)});
  feed(decoder, one);
  cr_expect(decoder.decode(*batch, 0));
  decoder.restart();
  cr_expect_not(decoder.ended());
  feed(decoder, one);
  cr_expect(decoder.decode(*batch, 1));
  cr_expect_eq(decoder.decoded(), 2);
}

Test(copy_decoder, malformed_rows_are_told_with_row_and_column) {
  const std::string good = row({be<std::int32_t>(1), std::string("ab")});
  const std::vector<std::string> bad{
      good.substr(0, 1),                              // no field count
      good.substr(0, 5),                              // within a length
      good.substr(0, 9),                              // within a value
      good.substr(0, good.size() - 1),                // the last value is cut
      good + "x",                                     // bytes behind the last field
      row({be<std::int32_t>(1)}),                     // too few fields
      row({be<std::int64_t>(1), std::string("ab")}),  // a wrong width
      from_hex("0002 FFFFFFFE 00000000"),             // a negative length
      from_hex("0002 7FFFFFFF 00000000"),             // a length beyond the row
      from_hex("FFFF 00"),                            // bytes behind the trailer
      from_hex("FFFE"),                               // no known mark
  };
  for (const std::string& message : bad) {
    CopyDecoder decoder({int4, text});
    feed(decoder, header);
    feed(decoder, good);
    cr_expect_eq(feed(decoder, message), CopyDecoder::Got::malformed, "%s", rowferry::test::to_hex(message).c_str());
    cr_expect(decoder.problem().starts_with("row 2"), "%s", decoder.problem().c_str());
  }
}

Test(copy_decoder, nothing_may_follow_the_trailer) {
  CopyDecoder decoder({int4});
  feed(decoder, header + trailer);
  cr_expect_eq(feed(decoder, row({be<std::int32_t>(1)})), CopyDecoder::Got::malformed);
}

Test(copy_decoder, a_wrong_header_is_refused) {
  for (const std::string& bad :
       {header.substr(0, 10), header.substr(0, 18), "x" + header.substr(1),
        header.substr(0, 11) + from_hex("00010000 00000000"), header.substr(0, 15) + from_hex("00000004 AA")}) {
    CopyDecoder decoder({int4});
    cr_expect_eq(feed(decoder, bad), CopyDecoder::Got::malformed);
  }
}
