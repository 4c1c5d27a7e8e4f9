#include <limits>

#include "base/decimal.hpp"
#include "columns.hpp"

using namespace rowferry;
using namespace rowferry::rows;
using namespace rowferry::rows::test;

namespace {
Int128 unscaled(const char* text, int scale) {
  Int128 value = 0;
  cr_assert(decimal::parse(text, scale, 38, value) == decimal::Status::ok);
  return value;
}
Fit::Kind kind(const Type& from, const Type& to) { return fit(from, to).kind; }
const Type int16 = Type::of(TypeId::int16);
const Type int32 = Type::of(TypeId::int32);
const Type int64 = Type::of(TypeId::int64);
const Type uint8 = Type::of(TypeId::uint8);
const Type uint64 = Type::of(TypeId::uint64);
const Type real = Type::of(TypeId::float32);
const Type dbl = Type::of(TypeId::float64);
const Type bit = Type::of(TypeId::boolean);
Type finite(Type type) {
  type.finite = true;
  return type;
}
}  // namespace

Test(numeric, widening_is_exact_and_narrowing_is_checked) {
  cr_expect(kind(int32, int64) == Fit::Kind::exact);
  cr_expect(kind(int64, int32) == Fit::Kind::checked);
  cr_expect(kind(int32, int32) == Fit::Kind::same);
  cr_expect(kind(int64, uint64) == Fit::Kind::checked);
  cr_expect(kind(Type::of(TypeId::uint32), int64) == Fit::Kind::exact);
  cr_expect(kind(bit, uint8) == Fit::Kind::exact);
  cr_expect(kind(uint8, bit) == Fit::Kind::checked);
  cr_expect(kind(uint64, Type::decimal(20, 0)) == Fit::Kind::exact);
  cr_expect(kind(uint64, Type::decimal(20, 1)) == Fit::Kind::checked);
  cr_expect(kind(int32, dbl) == Fit::Kind::exact);
  cr_expect(kind(int64, dbl) == Fit::Kind::checked);
  cr_expect(kind(int32, real) == Fit::Kind::checked);
  cr_expect(kind(int16, real) == Fit::Kind::exact);
  cr_expect(kind(int32, Type::text()) == Fit::Kind::never);
  cr_expect(kind(int32, Type::of(TypeId::date)) == Fit::Kind::never);
}

Test(numeric, integers_keep_their_value_and_their_nulls) {
  EXPECT_TEXTS(convert<std::int32_t>(int32, int64, {-1, {}, 2'147'483'647}), "-1|NULL|2147483647");
  EXPECT_TEXTS(convert<std::int64_t>(int64, int32, {-2'147'483'648LL, {}, 7}), "-2147483648|NULL|7");
  EXPECT_TEXTS(convert<std::uint64_t>(uint64, Type::decimal(20, 0), {18'446'744'073'709'551'615ULL}),
               "18446744073709551615");
  EXPECT_TEXTS(convert<bool>(bit, Type::decimal(3, 2), {true, false, {}}), "1.00|0.00|NULL");
  EXPECT_TEXTS(convert<std::int32_t>(int32, bit, {1, 0, {}, 1, 1, 1, 0, 0, 1}),
               "true|false|NULL|true|true|true|false|false|true");
}

// O-29: never 255 for -1, never -1 for the maximum.
Test(numeric, an_integer_out_of_range_names_row_column_value_and_range) {
  const Error error = conversion_error<std::int32_t>(int32, uint8, {0, 255, -1});
  cr_expect(error.category() == Category::data);
  cr_expect(error.code() == "value_does_not_fit");
  cr_expect(error.context().column == "c");
  cr_expect(error.context().row == 3U, "rows count from 1");
  cr_expect(error.context().value == "-1");
  cr_expect(error.detail().find("outside 0 to 255") != std::string::npos, "%s", error.detail().c_str());
  cr_expect(conversion_error<std::uint64_t>(uint64, int64, {std::numeric_limits<std::uint64_t>::max()}).code() ==
            "value_does_not_fit");
  cr_expect(conversion_error<std::int32_t>(int32, bit, {2}).code() == "value_does_not_fit");
}

Test(numeric, out_of_range_integers_obey_null_and_replace) {
  const auto nulled = convert<std::int64_t>(int64, int16, {1, 40'000, {}, -40'000}, policy(OnLoss::null));
  EXPECT_TEXTS(nulled, "1|NULL|NULL|NULL");
  cr_expect_eq(nulled.changed, 2U);
  const auto bounded = convert<std::int64_t>(int64, int16, {1, 40'000, {}, -40'000}, policy(OnLoss::replace));
  EXPECT_TEXTS(bounded, "1|32767|NULL|-32768");
  cr_expect_eq(bounded.changed, 2U);
}

Test(numeric, garbage_under_a_null_is_not_looked_at) {
  const SchemaPtr schema = schema_of(int64);
  BatchPtr batch = batch_of<std::int64_t>(schema, {5, {}, 6});
  store_le<std::int64_t>(const_cast<std::uint8_t*>(batch->column(0).values) + 8, 1LL << 40U);
  Converter converter(schema, schema_of(int32), {{}});
  const BatchPtr out = converter.convert(std::move(batch));
  cr_expect(joined(texts_of(*out)) == "5|NULL|6");
}

Test(numeric, whole_numbers_go_into_floats_exactly_or_not_at_all) {
  EXPECT_TEXTS(convert<std::int64_t>(int64, dbl, {9'007'199'254'740'992LL}), "9007199254740992");
  cr_expect(conversion_error<std::int64_t>(int64, dbl, {9'007'199'254'740'993LL}).code() == "value_does_not_fit");
  cr_expect(conversion_error<std::int64_t>(int64, dbl, {std::numeric_limits<std::int64_t>::max()}).code() ==
            "value_does_not_fit");
  EXPECT_TEXTS(convert<std::int64_t>(int64, dbl, {-9'007'199'254'740'993LL}, policy(OnLoss::truncate)),
               "-9007199254740992");
  EXPECT_TEXTS(convert<std::int64_t>(int64, dbl, {std::numeric_limits<std::int64_t>::min()}), "-9.223372036854776e+18");
}

// O-04
Test(numeric, decimals_are_rescaled_exactly) {
  EXPECT_TEXTS(convert<Int128>(Type::decimal(21, 2), Type::decimal(23, 4), {unscaled("92233720368547758.07", 2), {}}),
               "92233720368547758.0700|NULL");
  EXPECT_TEXTS(convert<Int128>(Type::decimal(38, 18), Type::decimal(38, 2), {unscaled("-264.90", 18)}), "-264.90");
  EXPECT_TEXTS(convert<Int128>(Type::decimal(5, 2), Type::decimal(5, 2), {unscaled("-0.05", 2)}), "-0.05");
  cr_expect(kind(Type::decimal(10, 3), Type::decimal(10, 4)) == Fit::Kind::checked);
  cr_expect(kind(Type::decimal(10, 3), Type::decimal(12, 5)) == Fit::Kind::exact);
  cr_expect(kind(Type::decimal(10, 3), Type::decimal(9, 3)) == Fit::Kind::checked);
  cr_expect(kind(Type::decimal(10, 3), Type::decimal(38, 2)) == Fit::Kind::checked);
}

Test(numeric, digits_beyond_the_scale_are_a_loss) {
  const Type from = Type::decimal(10, 3);
  const Type to = Type::decimal(10, 2);
  const Values<Int128> values{unscaled("123.455", 3), unscaled("-123.455", 3), unscaled("1.000", 3)};
  const Error error = conversion_error<Int128>(from, to, values);
  cr_expect(error.context().value == "123.455");
  cr_expect(error.detail().find("digits beyond the scale of decimal(10,2)") != std::string::npos);
  const auto cut = convert<Int128>(from, to, values, policy(OnLoss::truncate));
  EXPECT_TEXTS(cut, "123.45|-123.45|1.00");
  cr_expect_eq(cut.changed, 2U);
  EXPECT_TEXTS(convert<Int128>(from, to, values, policy(OnLoss::null)), "NULL|NULL|1.00");
  cr_expect(conversion_error<Int128>(from, to, values, policy(OnLoss::replace)).code() == "value_does_not_fit",
            "a nearest bound does not mend digits");
}

// O-05
Test(numeric, a_decimal_that_is_too_large_is_a_loss) {
  const Values<Int128> values{unscaled("99999999", 0), unscaled("100000000", 0), unscaled("-100000000", 0)};
  const Error error = conversion_error<Int128>(Type::decimal(38, 0), Type::decimal(10, 2), values);
  cr_expect(error.detail().find("outside -99999999.99 to 99999999.99") != std::string::npos, "%s",
            error.detail().c_str());
  EXPECT_TEXTS(convert<Int128>(Type::decimal(38, 0), Type::decimal(10, 2), values, policy(OnLoss::replace)),
               "99999999.00|99999999.99|-99999999.99");
  cr_expect(
      conversion_error<Int128>(Type::decimal(38, 0), Type::decimal(10, 2), values, policy(OnLoss::truncate)).code() ==
      "value_does_not_fit");
  EXPECT_TEXTS(
      convert<Int128>(Type::decimal(10, 2), Type::decimal(5, 2), {unscaled("1000.00", 2)}, policy(OnLoss::replace)),
      "999.99");
  EXPECT_TEXTS(
      convert<Int128>(Type::decimal(38, 0), Type::decimal(38, 18), {decimal::pow10(38) - 1, 1}, policy(OnLoss::null)),
      "NULL|1.000000000000000000");
}

Test(numeric, decimals_go_into_integers_when_they_are_whole) {
  EXPECT_TEXTS(convert<Int128>(Type::decimal(20, 2), int32, {unscaled("-7.00", 2), {}}), "-7|NULL");
  cr_expect(conversion_error<Int128>(Type::decimal(20, 2), int32, {unscaled("7.50", 2)})
                .detail()
                .find("not a whole number") != std::string::npos);
  EXPECT_TEXTS(convert<Int128>(Type::decimal(20, 2), int32, {unscaled("-7.99", 2)}, policy(OnLoss::truncate)), "-7");
  EXPECT_TEXTS(convert<Int128>(Type::decimal(20, 2), int32, {unscaled("3000000000.00", 2)}, policy(OnLoss::replace)),
               "2147483647");
  cr_expect(kind(Type::decimal(9, 0), int32) == Fit::Kind::exact);
  cr_expect(kind(Type::decimal(10, 0), int32) == Fit::Kind::checked);
}

Test(numeric, decimals_into_floats_are_a_warned_loss_that_is_counted) {
  cr_expect(kind(Type::decimal(10, 2), dbl) == Fit::Kind::lossy);
  cr_expect(not fit(Type::decimal(10, 2), dbl).reason.empty());
  const auto out = convert<Int128>(Type::decimal(38, 2), dbl,
                                   {unscaled("0.50", 2), unscaled("264.90", 2), {}, decimal::pow10(37) + 1});
  cr_expect(out.texts.find("0.5|264.9|NULL|") == 0, "%s", out.texts.c_str());
  cr_expect_eq(out.changed, 2U, "0.50 is exact");
}

// O-06
Test(numeric, nan_and_infinities_do_not_go_where_they_cannot_be_stored) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  cr_expect(kind(dbl, finite(dbl)) == Fit::Kind::checked);
  cr_expect(kind(dbl, dbl) == Fit::Kind::same);
  EXPECT_TEXTS(convert<double>(dbl, finite(dbl), {1e308, -0.0, {}}), "1e+308|-0|NULL");
  cr_expect(conversion_error<double>(dbl, finite(dbl), {1.0, nan}).context().value == "NaN");
  cr_expect(conversion_error<double>(dbl, finite(dbl), {-inf}).context().value == "-Infinity");
  EXPECT_TEXTS(convert<double>(dbl, finite(dbl), {nan, 1.5, inf}, policy(OnLoss::null)), "NULL|1.5|NULL");
  EXPECT_TEXTS(convert<double>(dbl, finite(dbl), {-inf, 1.5}, policy(OnLoss::replace)), "-1.7976931348623157e+308|1.5");
  cr_expect(conversion_error<double>(dbl, finite(dbl), {nan}, policy(OnLoss::replace)).code() == "value_does_not_fit",
            "NaN has no nearest value");
  cr_expect(conversion_error<float>(real, finite(real), {std::numeric_limits<float>::infinity()}).code() ==
            "value_does_not_fit");
  cr_expect(conversion_error<float>(real, finite(dbl), {std::numeric_limits<float>::quiet_NaN()}).code() ==
            "value_does_not_fit");
}

Test(numeric, double_into_real_is_rounded_and_counted_and_its_range_checked) {
  cr_expect(kind(dbl, real) == Fit::Kind::lossy);
  const auto out = convert<double>(dbl, finite(real), {0.5, 0.1, {}});
  EXPECT_TEXTS(out, "0.5|0.1|NULL");
  cr_expect_eq(out.changed, 1U);
  cr_expect(conversion_error<double>(dbl, finite(real), {1e39}).code() == "value_does_not_fit");
  EXPECT_TEXTS(convert<double>(dbl, finite(real), {-1e39}, policy(OnLoss::replace)), "-3.4028235e+38");
}

Test(numeric, floats_go_into_integers_when_they_are_whole) {
  EXPECT_TEXTS(convert<double>(dbl, int64, {-3.0, {}}), "-3|NULL");
  cr_expect(conversion_error<double>(dbl, int64, {2.5}).code() == "value_does_not_fit");
  EXPECT_TEXTS(convert<double>(dbl, int64, {-2.5, 9.3e18}, policy(OnLoss::null)), "NULL|NULL");
  EXPECT_TEXTS(convert<double>(dbl, int64, {-2.5}, policy(OnLoss::truncate)), "-2");
  EXPECT_TEXTS(convert<double>(dbl, int64, {1e300, -1e300}, policy(OnLoss::replace)),
               "9223372036854775807|-9223372036854775808");
  cr_expect(kind(dbl, Type::decimal(38, 10)) == Fit::Kind::never);
}

Test(numeric, smallmoney_is_narrower_than_its_digits) {
  Type small = Type::decimal(10, 4);
  small.min = std::numeric_limits<std::int32_t>::min();
  small.max = std::numeric_limits<std::int32_t>::max();
  cr_expect(kind(Type::decimal(10, 4), small) == Fit::Kind::checked);
  cr_expect(kind(small, small) == Fit::Kind::same);
  cr_expect(kind(small, Type::decimal(10, 4)) == Fit::Kind::same);
  EXPECT_TEXTS(convert<Int128>(Type::decimal(10, 4), small, {unscaled("-214748.3648", 4)}), "-214748.3648");
  cr_expect(conversion_error<Int128>(Type::decimal(10, 4), small, {unscaled("214748.3648", 4)}).code() ==
            "value_does_not_fit");
  EXPECT_TEXTS(convert<Int128>(Type::decimal(10, 2), small, {unscaled("214748.37", 2)}, policy(OnLoss::replace)),
               "214748.3647");
  EXPECT_TEXTS(convert<std::int32_t>(int32, small, {-300'000, 214'748}, policy(OnLoss::replace)),
               "-214748.3648|214748.0000");
}
