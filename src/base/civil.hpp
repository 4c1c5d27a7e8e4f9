// Civil dates: days since 1970-01-01 in the proleptic Gregorian calendar, as PostgreSQL, SQL Server and Arrow count.
//
// Good for every date of PostgreSQL (4713 BC to 5874897) and SQL Server (0001 to 9999). Year 0 is 1 BC, and so on down.
#pragma once

#include <cstdint>
#include <string>

namespace rowferry::civil {

struct Date {
  std::int32_t year = 1970;
  std::uint8_t month = 1;  // 1..12
  std::uint8_t day = 1;    // 1..31
  bool operator==(const Date&) const = default;
};

std::int32_t days_from(Date date) noexcept;
Date date_of(std::int32_t days) noexcept;
bool valid(Date date) noexcept;

inline constexpr std::int32_t day_0001_01_01 = -719'162;
inline constexpr std::int32_t day_1900_01_01 = -25'567;
inline constexpr std::int32_t day_2000_01_01 = 10'957;
inline constexpr std::int32_t day_9999_12_31 = 2'932'896;
inline constexpr std::int64_t micros_per_day = 86'400'000'000;
inline constexpr std::int64_t ticks_per_day = 864'000'000'000;  // of 100 ns

// ISO 8601 text; each writes no terminator and returns the end. Years after 9999 have more digits; years before 1 are
// written as PostgreSQL does: "0044-03-15 BC".
inline constexpr std::size_t text_max = 48;
// Units of the fraction: how many there are in a second.
enum class Fraction : std::int64_t { micro = 1'000'000, hundred_nano = 10'000'000 };

char* write_date(char* to, std::int32_t days) noexcept;
// 0 <= time <= one day (24:00:00 is a time in PostgreSQL). `digits` 0..7 of the fraction are printed, the rest dropped.
char* write_time(char* to, std::int64_t time, Fraction unit, int digits) noexcept;
// "2026-11-30 18:40:00.123456", with `separator` in the middle and "+00:00" behind it when zoned.
char* write_timestamp(char* to, std::int64_t since_1970, Fraction unit, int digits, bool zoned,
                      char separator = ' ') noexcept;

std::string date_text(std::int32_t days);
std::string time_text(std::int64_t time, Fraction unit, int digits);
std::string timestamp_text(std::int64_t since_1970, Fraction unit, int digits, bool zoned);

}  // namespace rowferry::civil
