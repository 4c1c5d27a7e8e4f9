#include "base/civil.hpp"

#include <cstring>
#include <string_view>

namespace rowferry::civil {

namespace {

// The Gregorian calendar repeats every 400 years = 146,097 days. Years are counted from March, so that the leap day is
// the last of its year and the months' lengths follow one formula.
constexpr std::int64_t era_days = 146'097;
constexpr std::int64_t era_start = 719'468;  // days from 0000-03-01 to 1970-01-01

std::int64_t floor_div(std::int64_t a, std::int64_t b) noexcept { return a / b - (a % b < 0 ? 1 : 0); }

bool leap(std::int64_t year) noexcept { return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0); }

char* put_padded(char* to, std::uint64_t value, int width) noexcept {
  char text[20];
  int count = 0;
  do {
    text[count++] = static_cast<char>('0' + value % 10);
    value /= 10;
  } while (value != 0);
  for (int i = count; i < width; ++i) *to++ = '0';
  while (count > 0) *to++ = text[--count];
  return to;
}

char* put_text(char* to, std::string_view text) noexcept {
  std::memcpy(to, text.data(), text.size());
  return to + text.size();
}

char* put_date(char* to, Date date) noexcept {
  const std::int64_t year = date.year > 0 ? date.year : 1 - static_cast<std::int64_t>(date.year);
  to = put_padded(to, static_cast<std::uint64_t>(year), 4);
  *to++ = '-';
  to = put_padded(to, date.month, 2);
  *to++ = '-';
  return put_padded(to, date.day, 2);
}

}  // namespace

std::int32_t days_from(Date date) noexcept {
  const std::int64_t year = static_cast<std::int64_t>(date.year) - (date.month <= 2 ? 1 : 0);
  const std::int64_t era = floor_div(year, 400);
  const std::int64_t year_of_era = year - era * 400;
  const std::int64_t month = (date.month + 9) % 12;  // March = 0
  const std::int64_t day_of_year = (153 * month + 2) / 5 + date.day - 1;
  const std::int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
  return static_cast<std::int32_t>(era * era_days + day_of_era - era_start);
}

Date date_of(std::int32_t days) noexcept {
  const std::int64_t shifted = days + era_start;
  const std::int64_t era = floor_div(shifted, era_days);
  const std::int64_t day_of_era = shifted - era * era_days;
  const std::int64_t year_of_era = (day_of_era - day_of_era / 1'460 + day_of_era / 36'524 - day_of_era / 146'096) / 365;
  const std::int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const std::int64_t month = (5 * day_of_year + 2) / 153;
  const std::int64_t year = year_of_era + era * 400 + (month >= 10 ? 1 : 0);
  return {static_cast<std::int32_t>(year), static_cast<std::uint8_t>(month < 10 ? month + 3 : month - 9),
          static_cast<std::uint8_t>(day_of_year - (153 * month + 2) / 5 + 1)};
}

bool valid(Date date) noexcept {
  static constexpr std::uint8_t lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  if (date.month < 1 || date.month > 12 || date.day < 1) return false;
  return date.day <= lengths[date.month - 1] + (date.month == 2 && leap(date.year) ? 1 : 0);
}

char* write_date(char* to, std::int32_t days) noexcept {
  const Date date = date_of(days);
  to = put_date(to, date);
  return date.year > 0 ? to : put_text(to, " BC");
}

char* write_time(char* to, std::int64_t time, Fraction unit, int digits) noexcept {
  const auto per_second = static_cast<std::int64_t>(unit);
  const std::int64_t seconds = time / per_second;
  to = put_padded(to, static_cast<std::uint64_t>(seconds / 3'600), 2);
  *to++ = ':';
  to = put_padded(to, static_cast<std::uint64_t>(seconds / 60 % 60), 2);
  *to++ = ':';
  to = put_padded(to, static_cast<std::uint64_t>(seconds % 60), 2);
  if (digits == 0) return to;
  *to++ = '.';
  std::int64_t fraction = time % per_second * (unit == Fraction::micro ? 10 : 1);  // of 100 ns, seven digits
  for (int i = digits; i < 7; ++i) fraction /= 10;
  return put_padded(to, static_cast<std::uint64_t>(fraction), digits);
}

char* write_timestamp(char* to, std::int64_t since_1970, Fraction unit, int digits, bool zoned,
                      char separator) noexcept {
  const std::int64_t per_day = static_cast<std::int64_t>(unit) * 86'400;
  const std::int64_t days = floor_div(since_1970, per_day);
  const Date date = date_of(static_cast<std::int32_t>(days));
  to = put_date(to, date);
  *to++ = separator;
  to = write_time(to, since_1970 - days * per_day, unit, digits);
  if (zoned) to = put_text(to, "+00:00");
  return date.year > 0 ? to : put_text(to, " BC");
}

std::string date_text(std::int32_t days) {
  char text[text_max];
  return {text, write_date(text, days)};
}

std::string time_text(std::int64_t time, Fraction unit, int digits) {
  char text[text_max];
  return {text, write_time(text, time, unit, digits)};
}

std::string timestamp_text(std::int64_t since_1970, Fraction unit, int digits, bool zoned) {
  char text[text_max];
  return {text, write_timestamp(text, since_1970, unit, digits, zoned)};
}

}  // namespace rowferry::civil
