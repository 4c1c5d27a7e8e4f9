#include "base/time.hpp"

#include <charconv>

#include "base/civil.hpp"

namespace rowferry::time {

double monotonic_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string utc_text(WallTime at, int digits) {
  const auto micros = std::chrono::floor<std::chrono::microseconds>(at.time_since_epoch()).count();
  char text[civil::text_max];
  char* end = civil::write_timestamp(text, micros, civil::Fraction::micro, digits, false, 'T');
  *end++ = 'Z';
  return {text, end};
}

namespace {

// Exactly `width` digits at the front, then `after`; both are taken off.
bool take(std::string_view& text, std::size_t width, std::string_view after, int& value) {
  if (text.size() < width + after.size()) return false;
  for (std::size_t i = 0; i < width; ++i) {
    if (text[i] < '0' || text[i] > '9') return false;
  }
  std::from_chars(text.data(), text.data() + width, value);
  text.remove_prefix(width);
  if (!text.starts_with(after)) return false;
  text.remove_prefix(after.size());
  return true;
}

}  // namespace

std::optional<WallTime> parse_utc(std::string_view text) {
  int year = 0;
  int month = 0;
  int day = 0;
  int hour = 0;
  int minute = 0;
  int second = 0;
  if (!take(text, 4, "-", year) || !take(text, 2, "-", month) || !take(text, 2, "T", day) ||
      !take(text, 2, ":", hour) || !take(text, 2, ":", minute) || !take(text, 2, "", second)) {
    return std::nullopt;
  }
  int micros = 0;
  if (text.size() > 2 && text.front() == '.') {
    text.remove_prefix(1);
    const std::size_t digits = text.size() - 1;
    if (digits > 6 || !take(text, digits, "", micros)) return std::nullopt;
    for (std::size_t i = digits; i < 6; ++i) micros *= 10;
  }
  const civil::Date date{year, static_cast<std::uint8_t>(month), static_cast<std::uint8_t>(day)};
  if (text != "Z" || !civil::valid(date) || hour > 23 || minute > 59 || second > 59) return std::nullopt;
  const std::int64_t seconds = civil::days_from(date) * std::int64_t{86'400} + hour * 3'600 + minute * 60 + second;
  return WallTime(std::chrono::seconds(seconds) + std::chrono::microseconds(micros));
}

}  // namespace rowferry::time
