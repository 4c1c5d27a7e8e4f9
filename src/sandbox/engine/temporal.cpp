#include "sandbox/engine/temporal.hpp"

#include <fmt/format.h>

#include <array>
#include <cctype>

#include "base/civil.hpp"

namespace rowferry::sandbox::engine {

namespace {

constexpr std::array<std::string_view, 12> months{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                  "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

// Reads one date/time text from left to right.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  std::optional<ParsedTemporal> read() {
    blanks();
    if (left().empty()) {  // '' is 1900-01-01 00:00
      parsed_.has_date = true;
      return parsed_;
    }
    for (int part = 0; part < 3 && !left().empty(); ++part) {
      if (looks_like_time() ? !time() : !date()) return std::nullopt;
      if (peek() == 'T' || peek() == 't') {
        if (!parsed_.has_date || parsed_.has_time) return std::nullopt;
        ++at_;
      }
      blanks();
    }
    if (!left().empty()) return std::nullopt;
    return parsed_;
  }

 private:
  std::string_view left() const { return text_.substr(at_); }
  char peek(std::size_t n = 0) const { return at_ + n < text_.size() ? text_[at_ + n] : '\0'; }
  static bool digit(char c) { return c >= '0' && c <= '9'; }
  void blanks() {
    while (peek() == ' ') ++at_;
  }
  bool looks_like_time() const {
    std::size_t i = at_;
    while (i < text_.size() && digit(text_[i])) ++i;
    if (i == at_ || i - at_ > 2) return false;
    if (i < text_.size() && text_[i] == ':') return true;
    while (i < text_.size() && text_[i] == ' ') ++i;
    return i + 1 < text_.size() && (text_[i + 1] == 'M' || text_[i + 1] == 'm') &&
           std::string_view("AaPp").find(text_[i]) != std::string_view::npos;
  }
  std::optional<int> number(std::size_t digits_max, std::size_t* digits = nullptr) {
    std::size_t n = 0;
    int value = 0;
    while (n < digits_max && digit(peek())) {
      value = value * 10 + (text_[at_++] - '0');
      ++n;
    }
    if (digits != nullptr) *digits = n;
    return n == 0 ? std::nullopt : std::optional(value);
  }

  bool set_date(int year, int month, int day) {
    if (parsed_.has_date) return false;
    parsed_.has_date = true;
    const auto days = days_of(year, month, day);
    if (!days) {
      parsed_.out_of_range = true;
    } else {
      parsed_.days = *days;
    }
    return true;
  }

  static int full_year(int year, std::size_t digits) {
    if (digits > 2) return year;
    return year < 50 ? 2000 + year : 1900 + year;
  }

  std::optional<int> month_name() {
    std::string word;
    std::size_t i = at_;
    while (i < text_.size() && std::isalpha(static_cast<unsigned char>(text_[i])) != 0) word.push_back(text_[i++]);
    if (word.size() < 3) return std::nullopt;
    for (std::size_t m = 0; m < months.size(); ++m) {
      bool same = true;
      for (std::size_t k = 0; k < 3; ++k) same = same && std::tolower(word[k]) == std::tolower(months[m][k]);
      if (same) {
        at_ = i;
        return static_cast<int>(m) + 1;
      }
    }
    return std::nullopt;
  }

  void separators() {
    while (peek() == ' ' || peek() == ',' || peek() == '-' || peek() == '/') ++at_;
  }

  bool date() {
    if (const auto month = month_name()) return named_after(*month);
    std::size_t digits = 0;
    const auto first = number(8, &digits);
    if (!first) return false;
    if (digits == 8) return set_date(*first / 10'000, *first / 100 % 100, *first % 100);
    if (digits == 6) return set_date(full_year(*first / 10'000, 2), *first / 100 % 100, *first % 100);
    const char separator = peek();
    if (separator == ' ' || std::isalpha(static_cast<unsigned char>(peek())) != 0 ||
        (separator == '-' && std::isalpha(static_cast<unsigned char>(peek(1))) != 0)) {
      separators();
      const auto month = month_name();
      if (!month) return digits == 4 && left().empty() && set_date(*first, 1, 1);
      separators();
      std::size_t year_digits = 0;
      const auto year = number(4, &year_digits);
      return year && set_date(full_year(*year, year_digits), *month, *first);
    }
    if (separator != '-' && separator != '/' && separator != '.') return digits == 4 && set_date(*first, 1, 1);
    ++at_;
    const auto second = number(2);
    if (!second || peek() != separator) return false;
    ++at_;
    std::size_t third_digits = 0;
    const auto third = number(4, &third_digits);
    if (!third) return false;
    if (digits == 4) return set_date(*first, *second, *third);
    return set_date(full_year(*third, third_digits), *first, *second);  // DATEFORMAT mdy
  }

  bool named_after(int month) {
    separators();
    std::size_t digits = 0;
    const auto day = number(4, &digits);
    if (!day) return false;
    separators();
    std::size_t year_digits = 0;
    if (looks_like_time()) return digits == 4 && set_date(*day, month, 1);
    const auto year = number(4, &year_digits);
    if (!year) return digits == 4 && set_date(*day, month, 1);
    return set_date(full_year(*year, year_digits), month, *day);
  }

  bool fraction(std::int64_t& ticks) {
    std::int64_t unit = ticks_per_second / 10;
    bool any = false;
    while (digit(peek())) {
      const int d = text_[at_++] - '0';
      if (unit > 0) {
        ticks += d * unit;
      } else if (unit == 0 && d >= 5) {
        ++ticks;
      }
      unit = unit == 1 ? 0 : unit == 0 ? -1 : unit / 10;
      any = true;
    }
    return any;
  }

  bool time() {
    if (parsed_.has_time) return false;
    parsed_.has_time = true;
    auto hour = number(2);
    int minute = 0;
    int second = 0;
    std::int64_t part = 0;
    if (!hour) return false;
    if (peek() == ':') {
      ++at_;
      const auto m = number(2);
      if (!m) return false;
      minute = *m;
      if (peek() == ':') {
        ++at_;
        const auto s = number(2);
        if (!s) return false;
        second = *s;
        if (peek() == '.' || peek() == ':') {
          ++at_;
          if (!fraction(part)) return false;
        }
      }
    }
    const std::size_t before = at_;
    blanks();
    const char half = static_cast<char>(std::toupper(static_cast<unsigned char>(peek())));
    if ((half == 'A' || half == 'P') && (peek(1) == 'M' || peek(1) == 'm')) {
      at_ += 2;
      if (*hour < 1 || *hour > 12) parsed_.out_of_range = true;
      hour = *hour % 12 + (half == 'P' ? 12 : 0);
    } else {
      at_ = before;
    }
    if (*hour > 23 || minute > 59 || second > 59) parsed_.out_of_range = true;
    parsed_.ticks = ((*hour * 60LL + minute) * 60 + second) * ticks_per_second + part;
    return zone();
  }

  bool zone() {
    const std::size_t before = at_;
    blanks();
    if (peek() == 'Z' || peek() == 'z') {
      ++at_;
      parsed_.has_offset = true;
      return true;
    }
    if (peek() != '+' && peek() != '-') {
      at_ = before;
      return true;
    }
    const bool negative = peek() == '-';
    ++at_;
    const auto hours = number(2);
    if (!hours || peek() != ':') return false;
    ++at_;
    const auto minutes = number(2);
    if (!minutes) return false;
    const int offset = *hours * 60 + *minutes;
    if (offset > 840 || *minutes > 59) parsed_.out_of_range = true;
    parsed_.has_offset = true;
    parsed_.offset = static_cast<std::int16_t>(negative ? -offset : offset);
    return true;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  ParsedTemporal parsed_;
};

}  // namespace

std::optional<ParsedTemporal> parse_temporal(std::string_view text) {
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return Reader(text).read();
}

Civil civil_of(std::int32_t days) {
  const civil::Date date = civil::date_of(days + civil::day_0001_01_01);
  return {date.year, date.month, date.day};
}

std::optional<std::int32_t> days_of(int year, int month, int day) {
  if (year < 1 || year > 9999 || month < 1 || month > 12 || day < 1 || day > 31) return std::nullopt;
  const civil::Date date{year, static_cast<std::uint8_t>(month), static_cast<std::uint8_t>(day)};
  if (!civil::valid(date)) return std::nullopt;
  return civil::days_from(date) - civil::day_0001_01_01;
}

std::int64_t round_ticks(std::int64_t ticks, int scale) {
  std::int64_t unit = 1;
  for (int i = scale; i < 7; ++i) unit *= 10;
  return (ticks + unit / 2) / unit * unit;
}

namespace {

struct Parts {
  Civil date;
  int hour, minute, second;
  std::int64_t fraction;  // 100 ns
};

Parts parts_of(const Value& v) {
  std::int64_t ticks = v.ticks;
  std::int32_t days = v.days;
  if (v.type.kind == Kind::datetimeoffset) {
    ticks += v.offset * 60LL * ticks_per_second;
    if (ticks < 0) {
      ticks += ticks_per_day;
      --days;
    } else if (ticks >= ticks_per_day) {
      ticks -= ticks_per_day;
      ++days;
    }
  }
  const std::int64_t seconds = ticks / ticks_per_second;
  return {v.type.kind == Kind::time ? Civil{1900, 1, 1} : civil_of(days), static_cast<int>(seconds / 3600),
          static_cast<int>(seconds / 60 % 60), static_cast<int>(seconds % 60), ticks % ticks_per_second};
}

int fraction_digits(const Value& v) {
  switch (v.type.kind) {
    case Kind::datetime:
      return 3;
    case Kind::smalldatetime:
    case Kind::date:
      return 0;
    default:
      return v.type.scale;
  }
}

std::string fraction_text(const Parts& p, int digits) {
  if (digits == 0) return {};
  const std::string all = fmt::format("{:07}", p.fraction);
  return all.substr(0, static_cast<std::size_t>(digits));
}

std::string clock_text(const Parts& p, int digits, char point = '.') {
  std::string out = fmt::format("{:02}:{:02}:{:02}", p.hour, p.minute, p.second);
  if (digits > 0) out += point + fraction_text(p, digits);
  return out;
}

std::string iso_date(const Parts& p) { return fmt::format("{:04}-{:02}-{:02}", p.date.year, p.date.month, p.date.day); }

std::string half_day_clock(const Parts& p) {
  return fmt::format("{:>2}:{:02}{}", p.hour % 12 == 0 ? 12 : p.hour % 12, p.minute, p.hour < 12 ? "AM" : "PM");
}

std::string zone_text(const Value& v) {
  if (v.type.kind != Kind::datetimeoffset) return {};
  const int offset = v.offset < 0 ? -v.offset : v.offset;
  return fmt::format(" {}{:02}:{:02}", v.offset < 0 ? '-' : '+', offset / 60, offset % 60);
}

// The value with both halves, one of them left out where the type has none.
std::string both(const Value& v, const std::string& date, const std::string& clock, char between = ' ') {
  if (v.type.kind == Kind::date) return date;
  if (v.type.kind == Kind::time) return clock;
  return date + between + clock;
}

// datetime prints its 1/300 s as milliseconds, rounded: .000 .003 .007
Parts milliseconds(Parts p, const Value& v) {
  if (v.type.kind == Kind::datetime) p.fraction = (p.fraction + 5'000) / 10'000 * 10'000;
  return p;
}

}  // namespace

std::string temporal_text(const Value& v, int style) {
  const Parts p = milliseconds(parts_of(v), v);
  const int digits = fraction_digits(v);
  const Civil& d = p.date;
  const bool modern = v.type.kind != Kind::datetime && v.type.kind != Kind::smalldatetime;
  if (style == 0 && modern) style = 121;
  switch (style) {
    case 1:
      return fmt::format("{:02}/{:02}/{:02}", d.month, d.day, d.year % 100);
    case 101:
      return fmt::format("{:02}/{:02}/{:04}", d.month, d.day, d.year);
    case 102:
      return fmt::format("{:04}.{:02}.{:02}", d.year, d.month, d.day);
    case 103:
      return fmt::format("{:02}/{:02}/{:04}", d.day, d.month, d.year);
    case 104:
      return fmt::format("{:02}.{:02}.{:04}", d.day, d.month, d.year);
    case 105:
      return fmt::format("{:02}-{:02}-{:04}", d.day, d.month, d.year);
    case 106:
      return fmt::format("{:02} {} {:04}", d.day, months[static_cast<std::size_t>(d.month - 1)], d.year);
    case 107:
      return fmt::format("{} {:02}, {:04}", months[static_cast<std::size_t>(d.month - 1)], d.day, d.year);
    case 8:
    case 24:
    case 108:
      return clock_text(p, 0);
    case 14:
    case 114:
      return clock_text(p, modern ? digits : 3, ':');
    case 110:
      return fmt::format("{:02}-{:02}-{:04}", d.month, d.day, d.year);
    case 111:
      return fmt::format("{:04}/{:02}/{:02}", d.year, d.month, d.day);
    case 12:
      return fmt::format("{:02}{:02}{:02}", d.year % 100, d.month, d.day);
    case 112:
      return fmt::format("{:04}{:02}{:02}", d.year, d.month, d.day);
    case 20:
    case 120:
      return both(v, iso_date(p), clock_text(p, 0)) + zone_text(v);
    case 21:
    case 25:
    case 121:
      return both(v, iso_date(p), clock_text(p, v.type.kind == Kind::smalldatetime ? 3 : digits)) + zone_text(v);
    case 126:
    case 127: {
      const bool dot =
          v.type.kind == Kind::datetime2 || v.type.kind == Kind::time || v.type.kind == Kind::datetimeoffset
              ? digits > 0
              : p.fraction != 0;
      std::string zone = zone_text(v);
      if (!zone.empty()) zone.erase(0, 1);
      return both(v, iso_date(p), clock_text(p, dot ? digits : 0), 'T') + zone;
    }
    default:
      return both(v, fmt::format("{} {:>2} {:04}", months[static_cast<std::size_t>(d.month - 1)], d.day, d.year),
                  half_day_clock(p)) +
             zone_text(v);
  }
}

}  // namespace rowferry::sandbox::engine
