#include "base/civil.hpp"
#include "columns.hpp"

using namespace rowferry;
using namespace rowferry::rows;
using namespace rowferry::rows::test;

namespace {

std::int64_t micros(int year, unsigned month, unsigned day, std::int64_t hour = 0, std::int64_t minute = 0,
                    std::int64_t second = 0, std::int64_t micro = 0) {
  const std::int64_t days = civil::days_from({year, static_cast<std::uint8_t>(month), static_cast<std::uint8_t>(day)});
  return days * civil::micros_per_day + ((hour * 60 + minute) * 60 + second) * 1'000'000 + micro;
}

Type bounded(Type type, std::int64_t min, std::int64_t max) {
  type.min = min;
  type.max = max;
  return type;
}

const Type timestamp6 = Type::timestamp(TimeUnit::micro, 6, false);
const Type datetime2 = bounded(timestamp6, micros(1, 1, 1), micros(9999, 12, 31, 23, 59, 59, 999'999));
Type make_datetime() {
  Type type = bounded(Type::timestamp(TimeUnit::micro, 3, false), micros(1753, 1, 1),
                      micros(9999, 12, 31, 23, 59, 59, 997'000));
  type.quantum = Quantum::tick_300;
  return type;
}
Type make_smalldatetime() {
  Type type = bounded(Type::timestamp(TimeUnit::micro, 0, false), micros(1900, 1, 1), micros(2079, 6, 6, 23, 59));
  type.quantum = Quantum::minute;
  return type;
}
const Type datetime = make_datetime();
const Type smalldatetime = make_smalldatetime();
constexpr std::int64_t infinity = std::numeric_limits<std::int64_t>::max();

}  // namespace

Test(temporal, a_zone_is_neither_dropped_nor_made_up) {
  const Type zoned = Type::timestamp(TimeUnit::micro, 6, true);
  cr_expect(fit(zoned, timestamp6).kind == Fit::Kind::never);
  cr_expect(fit(timestamp6, zoned).kind == Fit::Kind::never);
  cr_expect(fit(zoned, zoned).kind == Fit::Kind::same);
  cr_expect(fit(zoned, timestamp6).reason.find("zone") != std::string::npos);
}

Test(temporal, the_range_of_the_column_is_checked) {
  cr_expect(fit(timestamp6, datetime2).kind == Fit::Kind::checked);
  EXPECT_TEXTS(
      convert<std::int64_t>(timestamp6, datetime2, {micros(1, 1, 1), {}, micros(9999, 12, 31, 23, 59, 59, 999'999)}),
      "0001-01-01 00:00:00|NULL|9999-12-31 23:59:59.999999");
  const Error error = conversion_error<std::int64_t>(timestamp6, datetime2, {0, infinity});
  cr_expect(error.context().value == "infinity");
  cr_expect(error.context().row == 2U);
  cr_expect(error.detail().find("outside 0001-01-01 00:00:00 to 9999-12-31 23:59:59.999999") != std::string::npos);
  EXPECT_TEXTS(convert<std::int64_t>(timestamp6, datetime2, {infinity, micros(0, 1, 1)}, policy(OnLoss::replace)),
               "9999-12-31 23:59:59.999999|0001-01-01 00:00:00");
  EXPECT_TEXTS(convert<std::int64_t>(timestamp6, datetime2, {infinity, 0}, policy(OnLoss::null)),
               "NULL|1970-01-01 00:00:00");
}

// O-01
Test(temporal, datetime_is_rounded_to_the_nearest_tick_with_carry) {
  cr_expect(fit(timestamp6, datetime).kind == Fit::Kind::lossy);
  const auto out = convert<std::int64_t>(timestamp6, datetime,
                                         {micros(2025, 5, 16, 16, 33, 33, 123'000),
                                          micros(2025, 1, 1, 23, 59, 59, 998'350),
                                          micros(2025, 1, 1, 23, 59, 59, 998'333),
                                          micros(2025, 1, 1),
                                          {}});
  EXPECT_TEXTS(out, "2025-05-16 16:33:33.123|2025-01-02 00:00:00|2025-01-01 23:59:59.997|2025-01-01 00:00:00|NULL");
  cr_expect_eq(out.changed, 2U, "only what was moved is counted");
  for (const std::int64_t bad : {micros(9999, 12, 31, 23, 59, 59, 999'000), micros(1752, 12, 31)}) {
    const Error error = conversion_error<std::int64_t>(timestamp6, datetime, {bad});
    cr_expect(error.detail().find("outside 1753-01-01 00:00:00 to 9999-12-31 23:59:59.997") != std::string::npos);
  }
  EXPECT_TEXTS(
      convert<std::int64_t>(timestamp6, datetime, {micros(9999, 12, 31, 23, 59, 59, 999'000)}, policy(OnLoss::replace)),
      "9999-12-31 23:59:59.997");
}

Test(temporal, ticks_before_1970_round_in_the_same_direction) {
  EXPECT_TEXTS(convert<std::int64_t>(timestamp6, datetime,
                                     {micros(1899, 12, 31, 23, 59, 59, 998'350), micros(1960, 2, 29, 0, 0, 0, 5'000)}),
               "1900-01-01 00:00:00|1960-02-29 00:00:00.007");
}

Test(temporal, smalldatetime_rounds_as_the_server_does) {
  EXPECT_TEXTS(
      convert<std::int64_t>(timestamp6, smalldatetime,
                            {micros(2024, 2, 29, 12, 34, 29, 998'000), micros(2024, 2, 29, 12, 34, 29, 999'000),
                             micros(2024, 12, 31, 23, 59, 30), micros(2024, 2, 29, 12, 34)}),
      "2024-02-29 12:34:00|2024-02-29 12:35:00|2025-01-01 00:00:00|2024-02-29 12:34:00");
  cr_expect(conversion_error<std::int64_t>(timestamp6, smalldatetime, {micros(2079, 6, 6, 23, 59, 30)}).code() ==
            "value_does_not_fit");
}

Test(temporal, hundredths_of_a_second_are_exact_in_a_datetime) {
  cr_expect(fit(Type::timestamp(TimeUnit::micro, 2, false), datetime).kind == Fit::Kind::checked);
  cr_expect(fit(datetime, Type::timestamp(TimeUnit::micro, 3, false)).kind == Fit::Kind::same);
}

// O-16, O-27
Test(temporal, digits_are_dropped_towards_minus_infinity_and_counted) {
  const Type ticks = Type::timestamp(TimeUnit::hundred_nano, 7, false);
  cr_expect(fit(ticks, timestamp6).kind == Fit::Kind::lossy);
  const auto out = convert<std::int64_t>(ticks, timestamp6, {-1, 10, 19, {}});
  EXPECT_TEXTS(out, "1969-12-31 23:59:59.999999|1970-01-01 00:00:00.000001|1970-01-01 00:00:00.000001|NULL");
  cr_expect_eq(out.changed, 2U);
  const Type milli = Type::timestamp(TimeUnit::micro, 3, false);
  cr_expect(fit(timestamp6, milli).kind == Fit::Kind::lossy);
  EXPECT_TEXTS(convert<std::int64_t>(timestamp6, milli, {-1, 1'999}),
               "1969-12-31 23:59:59.999|1970-01-01 00:00:00.001");
}

Test(temporal, microseconds_become_100_ns_exactly) {
  const Type ticks = bounded(Type::timestamp(TimeUnit::hundred_nano, 7, false), micros(1, 1, 1) * 10,
                             micros(9999, 12, 31, 23, 59, 59, 999'999) * 10 + 9);
  EXPECT_TEXTS(convert<std::int64_t>(datetime2, ticks, {micros(2024, 1, 15, 10, 30, 45, 123'456), -1, {}}),
               "2024-01-15 10:30:45.123456|1969-12-31 23:59:59.999999|NULL");
  cr_expect(fit(datetime2, ticks).kind == Fit::Kind::exact);
  cr_expect(fit(timestamp6, ticks).kind == Fit::Kind::checked);
  cr_expect(conversion_error<std::int64_t>(timestamp6, ticks, {-infinity}).code() == "value_does_not_fit",
            "an overflow on the way is out of range too");
  EXPECT_TEXTS(convert<std::int64_t>(timestamp6, ticks, {infinity, infinity - 1}, policy(OnLoss::replace)),
               "9999-12-31 23:59:59.9999999|9999-12-31 23:59:59.9999999");
}

Test(temporal, a_full_day_is_no_time) {
  const std::int64_t day = civil::micros_per_day;
  const Type time = bounded(Type::time(TimeUnit::micro, 6), 0, day - 1);
  cr_expect(fit(Type::time(TimeUnit::micro, 6), time).kind == Fit::Kind::checked);
  const Error error = conversion_error<std::int64_t>(Type::time(TimeUnit::micro, 6), time, {0, day});
  cr_expect(error.context().value == "24:00:00");
  EXPECT_TEXTS(convert<std::int64_t>(Type::time(TimeUnit::micro, 6), time, {0, day, day - 1}, policy(OnLoss::replace)),
               "00:00:00|23:59:59.999999|23:59:59.999999");
  const Type seconds = bounded(Type::time(TimeUnit::hundred_nano, 0), 0, day * 10 - 10'000'000);
  const auto cut = convert<std::int64_t>(Type::time(TimeUnit::micro, 6), seconds, {day - 1, 1'000'000});
  EXPECT_TEXTS(cut, "23:59:59|00:00:01");
  cr_expect_eq(cut.changed, 1U);
}

Test(temporal, dates) {
  const Type date = Type::of(TypeId::date);
  const Type sql_date = bounded(date, civil::day_0001_01_01, civil::day_9999_12_31);
  cr_expect(fit(date, date).kind == Fit::Kind::same);
  cr_expect(fit(date, sql_date).kind == Fit::Kind::checked);
  EXPECT_TEXTS(convert<std::int32_t>(date, sql_date, {civil::day_0001_01_01, {}, civil::day_9999_12_31}),
               "0001-01-01|NULL|9999-12-31");
  cr_expect(conversion_error<std::int32_t>(date, sql_date, {civil::day_9999_12_31 + 1}).context().value ==
            "10000-01-01");
  EXPECT_TEXTS(
      convert<std::int32_t>(date, sql_date, {std::numeric_limits<std::int32_t>::max(), civil::day_0001_01_01 - 1},
                            policy(OnLoss::replace)),
      "9999-12-31|0001-01-01");
  EXPECT_TEXTS(convert<std::int32_t>(date, datetime2, {0, -1, {}}), "1970-01-01 00:00:00|1969-12-31 00:00:00|NULL");
  cr_expect(conversion_error<std::int32_t>(date, datetime, {civil::day_0001_01_01}).code() == "value_does_not_fit");
}

Test(temporal, a_timestamp_goes_into_a_date_at_midnight_only) {
  const Type date = bounded(Type::of(TypeId::date), civil::day_0001_01_01, civil::day_9999_12_31);
  EXPECT_TEXTS(convert<std::int64_t>(timestamp6, date, {micros(2024, 2, 29), {}}), "2024-02-29|NULL");
  const Error error = conversion_error<std::int64_t>(timestamp6, date, {micros(2024, 2, 29, 0, 0, 1)});
  cr_expect(error.detail().find("time of day") != std::string::npos);
  EXPECT_TEXTS(convert<std::int64_t>(timestamp6, date, {micros(1960, 2, 29, 23)}, policy(OnLoss::truncate)),
               "1960-02-29");
}
