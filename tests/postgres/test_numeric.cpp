#include "../support/expect.hpp"
#include "base/decimal.hpp"
#include "copy_rows.hpp"

using namespace rowferry;
using namespace rowferry::postgres::test;
using postgres::wire::numeric_text;
using postgres::wire::NumericFit;
using postgres::wire::read_numeric;
using rows::OnLoss;
using rows::Type;

namespace {

// As numeric_send writes it.
std::string numeric(int weight, bool negative, int scale, const std::vector<int>& digits) {
  std::string out = be(static_cast<std::int16_t>(digits.size())) + be(static_cast<std::int16_t>(weight)) +
                    be<std::uint16_t>(negative ? 0x4000 : 0) + be(static_cast<std::uint16_t>(scale));
  for (const int digit : digits) out += be(static_cast<std::int16_t>(digit));
  return out;
}

std::string read(const std::string& field, int precision, int scale, NumericFit expected = NumericFit::exact) {
  Int128 value = -7;
  const NumericFit fit = read_numeric(as_bytes(field), precision, scale, value);
  cr_expect_eq(static_cast<int>(fit), static_cast<int>(expected), "fit %d", static_cast<int>(fit));
  return decimal::to_text(value, scale);
}

const std::string nan_field = from_hex("0000 0000 C000 0000");
const std::string plus_infinity = from_hex("0000 0000 D000 0020");
const std::string minus_infinity = from_hex("0000 0000 F000 0020");

}  // namespace

Test(numeric, digits_on_both_sides_of_the_point) {
  EXPECT_TEXT(read(numeric(0, false, 2, {264, 9000}), 18, 2), "264.90");
  EXPECT_TEXT(read(numeric(0, true, 2, {123, 4550}), 10, 3), "-123.455");
  EXPECT_TEXT(read(numeric(-1, true, 2, {500}), 5, 2), "-0.05");
  EXPECT_TEXT(read(numeric(4, false, 2, {9, 2233, 7203, 6854, 7758, 700}), 21, 2), "92233720368547758.07");
  EXPECT_TEXT(read(numeric(0, false, 0, {}), 5, 2), "0.00");
  EXPECT_TEXT(read(numeric(1, false, 0, {3}), 9, 1), "30000.0");
  EXPECT_TEXT(read(numeric(-3, false, 12, {1}), 12, 12), "0.000000000001");
}

Test(numeric, thirty_eight_digits_of_either_sign) {
  const std::vector<int> nines{99, 9999, 9999, 9999, 9999, 9999, 9999, 9999, 9999, 9999};
  EXPECT_TEXT(read(numeric(9, true, 0, nines), 38, 0), "-" + std::string(38, '9'));
  const std::vector<int> behind{9999, 9999, 9999, 9999, 9999, 9999, 9999, 9999, 9999, 9900};
  EXPECT_TEXT(read(numeric(-1, false, 38, behind), 38, 38), "0." + std::string(38, '9'));
}

Test(numeric, leading_and_trailing_zero_digits_change_nothing) {
  EXPECT_TEXT(read(numeric(2, false, 0, {0, 0, 5}), 5, 2), "5.00");
  EXPECT_TEXT(read(numeric(0, false, 8, {5, 0, 0}), 5, 2), "5.00");
}

Test(numeric, what_does_not_fit_is_cut_or_bounded_and_said) {
  EXPECT_TEXT(read(numeric(0, false, 3, {1, 2350}), 10, 2, NumericFit::inexact), "1.23");
  EXPECT_TEXT(read(numeric(0, true, 3, {1, 2390}), 10, 2, NumericFit::inexact), "-1.23");
  EXPECT_TEXT(read(numeric(-5, false, 20, {1}), 10, 2, NumericFit::inexact), "0.00");
  EXPECT_TEXT(read(numeric(0, false, 0, {1000}), 5, 2, NumericFit::too_large), "999.99");
  EXPECT_TEXT(read(numeric(0, true, 0, {1000}), 5, 2, NumericFit::too_large), "-999.99");
  EXPECT_TEXT(read(numeric(30000, false, 0, {1}), 38, 0, NumericFit::too_large), std::string(38, '9'));
  EXPECT_TEXT(read(nan_field, 5, 2, NumericFit::nan), "0.00");
  EXPECT_TEXT(read(plus_infinity, 5, 2, NumericFit::plus_infinity), "999.99");
  EXPECT_TEXT(read(minus_infinity, 5, 2, NumericFit::minus_infinity), "-999.99");
}

Test(numeric, malformed_fields_are_told_not_read) {
  read(numeric(0, false, 0, {10000}), 38, 0, NumericFit::malformed);
  read(numeric(0, false, 0, {1, 10000}), 38, 4, NumericFit::malformed);
  read(numeric(0, false, 0, {1, 10000}), 38, 2, NumericFit::malformed);
  read(numeric(0, false, 0, {1, 2}).substr(0, 10), 38, 0, NumericFit::malformed);
  read(numeric(0, false, 0, {1}) + "xx", 38, 0, NumericFit::malformed);
  read(from_hex("FFFF 0000 0000 0000"), 38, 0, NumericFit::malformed);
  read(from_hex("0000 0000 1234 0000"), 38, 0, NumericFit::malformed);
  const CopyColumn column{.name = "v", .form = Form::numeric, .type = Type::decimal(38, 0), .policy = {}};
  cr_expect_not(decode_column(column, {from_hex("0000 0000 0000")}).batch);
  cr_expect_not(decode_column(column, {numeric(0, false, 0, {10000})}).batch);
}

Test(numeric, messages_show_the_value_as_the_server_prints_it) {
  EXPECT_TEXT(numeric_text(as_bytes(numeric(0, true, 2, {264, 9000}))), "-264.90");
  EXPECT_TEXT(numeric_text(as_bytes(numeric(-2, false, 10, {12}))), "0.0000001200");
  EXPECT_TEXT(numeric_text(as_bytes(numeric(1, false, 0, {1}))), "10000");
  EXPECT_TEXT(numeric_text(as_bytes(nan_field)), "NaN");
  EXPECT_TEXT(numeric_text(as_bytes(minus_infinity)), "-Infinity");
}

namespace {

CopyColumn decimal_5_2(OnLoss action, std::optional<std::string> replacement = {}) {
  return {.name = "v", .form = Form::numeric, .type = Type::decimal(5, 2), .policy = {action, std::move(replacement)}};
}
const std::string large = numeric(0, false, 0, {1000});
const std::string fine = numeric(0, false, 3, {1, 2350});

std::string only(const Decoded& decoded) {
  if (!decoded.batch) return "malformed";
  return decoded.column().valid(0) ? decimal::to_text(decoded.column().value<Int128>(0), 2) : "NULL";
}

}  // namespace

Test(numeric, policies_decide_and_count) {
  EXPECT_ERROR(decode_column(decimal_5_2(OnLoss::error), {nan_field}), "value_does_not_fit");
  EXPECT_ERROR(decode_column(decimal_5_2(OnLoss::error), {large}), "value_does_not_fit");
  EXPECT_TEXT(only(decode_column(decimal_5_2(OnLoss::null), {nan_field})), "NULL");
  EXPECT_TEXT(only(decode_column(decimal_5_2(OnLoss::null), {large})), "NULL");
  EXPECT_TEXT(only(decode_column(decimal_5_2(OnLoss::truncate), {fine})), "1.23");
  EXPECT_ERROR(decode_column(decimal_5_2(OnLoss::truncate), {large}), "value_does_not_fit");
  EXPECT_TEXT(only(decode_column(decimal_5_2(OnLoss::replace), {large})), "999.99");
  EXPECT_TEXT(only(decode_column(decimal_5_2(OnLoss::replace), {minus_infinity})), "-999.99");
  EXPECT_ERROR(decode_column(decimal_5_2(OnLoss::replace), {nan_field}), "value_does_not_fit");
  EXPECT_TEXT(only(decode_column(decimal_5_2(OnLoss::replace, "-1.5"), {nan_field})), "-1.50");
  EXPECT_ERROR(decode_column(decimal_5_2(OnLoss::replace, "1.234"), {}), "policy_impossible");
  EXPECT_ERROR(decode_column(decimal_5_2(OnLoss::replace, "x"), {}), "policy_impossible");
  cr_expect_eq(decode_column(decimal_5_2(OnLoss::null), {nan_field, fine, numeric(0, false, 0, {1})}).changed[0], 2);
}

Test(numeric, a_loss_names_row_column_and_value) {
  try {
    decode_column(decimal_5_2(OnLoss::error), {{}, numeric(0, false, 0, {1}), numeric(0, false, 3, {1, 2350})});
    cr_assert_fail("no error");
  } catch (const Error& error) {
    cr_expect_eq(error.context().row.value_or(0), 3);
    EXPECT_TEXT(error.context().column, "v");
    EXPECT_TEXT(error.context().value, "1.235");
  }
}
