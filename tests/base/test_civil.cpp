#include <criterion/criterion.h>

#include <cstdint>

#include "base/civil.hpp"

using namespace rowferry;
using civil::Fraction;

Test(civil, known_days) {
  cr_expect_eq(civil::days_from({1970, 1, 1}), 0);
  cr_expect_eq(civil::days_from({1969, 12, 31}), -1);
  cr_expect_eq(civil::days_from({2000, 1, 1}), civil::day_2000_01_01);
  cr_expect_eq(civil::days_from({1900, 1, 1}), civil::day_1900_01_01);
  cr_expect_eq(civil::days_from({1, 1, 1}), civil::day_0001_01_01);
  cr_expect_eq(civil::days_from({9999, 12, 31}), civil::day_9999_12_31);
  // PostgreSQL: select '4713-01-01 BC'::date - '1970-01-01'::date, and the last of its dates
  cr_expect_eq(civil::days_from({-4712, 1, 1}), -2'440'550);
  cr_expect_eq(civil::days_from({5'874'897, 12, 31}), 2'145'042'905);
}

Test(civil, every_day_of_twelve_thousand_years_comes_back_and_dates_follow_each_other) {
  civil::Date last = civil::date_of(civil::days_from({-2000, 1, 1}) - 1);
  for (std::int32_t day = civil::days_from({-2000, 1, 1}); day < civil::days_from({10'000, 1, 1}); ++day) {
    const civil::Date date = civil::date_of(day);
    cr_assert_eq(civil::days_from(date), day);
    cr_assert(civil::valid(date));
    const bool next_day = date.year == last.year && date.month == last.month && date.day == last.day + 1;
    const bool next_month = date.day == 1 && (date.month == last.month + 1 || (date.month == 1 && last.month == 12));
    cr_assert(next_day || next_month, "day %d", day);
    last = date;
  }
}

Test(civil, invalid_dates) {
  cr_expect(!civil::valid({2023, 2, 29}));
  cr_expect(civil::valid({2024, 2, 29}));
  cr_expect(!civil::valid({1900, 2, 29}));
  cr_expect(civil::valid({2000, 2, 29}));
  cr_expect(!civil::valid({2024, 13, 1}));
  cr_expect(!civil::valid({2024, 0, 1}));
  cr_expect(!civil::valid({2024, 4, 31}));
  cr_expect(!civil::valid({2024, 4, 0}));
}

Test(civil, dates_as_text) {
  cr_expect(civil::date_text(0) == "1970-01-01");
  cr_expect(civil::date_text(civil::day_0001_01_01) == "0001-01-01");
  cr_expect(civil::date_text(civil::day_0001_01_01 - 1) == "0001-12-31 BC");
  cr_expect(civil::date_text(-2'440'550) == "4713-01-01 BC");
  cr_expect(civil::date_text(civil::day_9999_12_31 + 1) == "10000-01-01");
  cr_expect(civil::date_text(2'145'042'905) == "5874897-12-31");
}

Test(civil, times_as_text) {
  cr_expect(civil::time_text(0, Fraction::micro, 6) == "00:00:00.000000");
  cr_expect(civil::time_text(civil::micros_per_day - 1, Fraction::micro, 6) == "23:59:59.999999");
  cr_expect(civil::time_text(civil::micros_per_day, Fraction::micro, 0) == "24:00:00");
  cr_expect(civil::time_text(civil::ticks_per_day - 1, Fraction::hundred_nano, 7) == "23:59:59.9999999");
  cr_expect(civil::time_text(civil::ticks_per_day - 1, Fraction::hundred_nano, 3) == "23:59:59.999");
  cr_expect(civil::time_text(1'000'001, Fraction::micro, 7) == "00:00:01.0000010");
}

Test(civil, timestamps_as_text) {
  cr_expect(civil::timestamp_text(0, Fraction::micro, 0, false) == "1970-01-01 00:00:00");
  cr_expect(civil::timestamp_text(-1, Fraction::micro, 6, true) == "1969-12-31 23:59:59.999999+00:00");
  cr_expect(civil::timestamp_text(-1, Fraction::hundred_nano, 7, false) == "1969-12-31 23:59:59.9999999");
  const std::int64_t bc = (static_cast<std::int64_t>(civil::day_0001_01_01) - 1) * civil::micros_per_day;
  cr_expect(civil::timestamp_text(bc, Fraction::micro, 0, false) == "0001-12-31 00:00:00 BC");
  // The last microsecond that 64 bits hold from 1970 on.
  cr_expect(civil::timestamp_text(INT64_MAX, Fraction::micro, 6, false) == "294247-01-10 04:00:54.775807");
}
