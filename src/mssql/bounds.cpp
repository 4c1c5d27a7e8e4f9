#include "mssql/bounds.hpp"

#include <fmt/format.h>

#include <charconv>
#include <limits>

#include "base/error.hpp"
#include "base/limits.hpp"
#include "mssql/dialect.hpp"
#include "mssql/select.hpp"

namespace rowferry::mssql {

namespace {

using Place = GivenBound::Place;

Error no_cut(const OriginColumn& column, std::string_view printed, std::string_view why) {
  return Error(Category::input, "slices_impossible",
               fmt::format("the source's column \"{}\" ({}) cannot be cut at {}: {}", column.facts.name,
                           column.facts.native, cut_for_message(printed, limits::error_value_chars), why))
      .with_field("slices.by")
      .with_column(column.facts.name);
}

GivenBound among(std::string literal) { return {Place::among, std::move(literal)}; }

// "-12.50" in its parts, without what says nothing.
struct Number {
  bool negative = false;
  std::string_view whole;     // without leading zeros
  std::string_view fraction;  // without trailing zeros
};

std::optional<Number> parse_number(std::string_view text) {
  Number out;
  if (text.starts_with('-')) {
    out.negative = true;
    text.remove_prefix(1);
  }
  const std::size_t point = text.find('.');
  out.whole = text.substr(0, point);
  if (point != std::string_view::npos) out.fraction = text.substr(point + 1);
  const bool digits = !out.whole.empty() && out.whole.find_first_not_of("0123456789") == std::string_view::npos &&
                      out.fraction.find_first_not_of("0123456789") == std::string_view::npos;
  if (!digits) return std::nullopt;
  while (out.whole.starts_with('0')) out.whole.remove_prefix(1);
  while (out.fraction.ends_with('0')) out.fraction.remove_suffix(1);
  return out;
}

struct Range {
  std::int64_t min;
  std::int64_t max;
};
Range integer_range(rows::TypeId id) {
  switch (id) {
    case rows::TypeId::uint8:
      return {0, 255};
    case rows::TypeId::int16:
      return {std::numeric_limits<std::int16_t>::min(), std::numeric_limits<std::int16_t>::max()};
    case rows::TypeId::int32:
      return {std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max()};
    default:
      return {std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()};
  }
}

GivenBound integer_bound(const OriginColumn& column, const std::string& printed, const Number& number) {
  if (!number.fraction.empty()) throw no_cut(column, printed, "it holds whole numbers");
  const Place beyond = number.negative ? Place::below_all : Place::above_all;
  const std::string digits = (number.negative ? "-" : "") + (number.whole.empty() ? "0" : std::string(number.whole));
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const Range range = integer_range(column.facts.type.id);
  if (error != std::errc() || value < range.min || value > range.max) return {beyond, ""};
  return among(fmt::format("CAST({} AS {})", digits, column.facts.native));
}

GivenBound decimal_bound(const OriginColumn& column, const std::string& printed, const Number& number) {
  const rows::Type& type = column.facts.type;
  if (number.fraction.size() > type.scale) {
    throw no_cut(column, printed, fmt::format("it holds {} digits behind the point", static_cast<int>(type.scale)));
  }
  const std::size_t room = static_cast<std::size_t>(type.precision - type.scale);
  if (number.whole.size() > room) return {number.negative ? Place::below_all : Place::above_all, ""};
  // The largest numbers of money's digits are beyond money itself.
  const bool money = column.facts.native.ends_with("money") && number.whole.size() == room;
  return among(fmt::format("CAST({} AS {})", printed, money ? "decimal(38,4)" : column.facts.native));
}

GivenBound number_bound(const OriginColumn& column, const std::string& printed) {
  if (printed == "NaN" || printed == "Infinity") return {Place::above_all, ""};
  if (printed == "-Infinity") return {Place::below_all, ""};
  const std::optional<Number> number = parse_number(printed);
  if (!number) throw no_cut(column, printed, "it is no number");
  return column.facts.type.id == rows::TypeId::decimal ? decimal_bound(column, printed, *number)
                                                       : integer_bound(column, printed, *number);
}

GivenBound real_bound(const OriginColumn& column, const std::string& printed) {
  if (printed == "NaN" || printed == "Infinity") return {Place::above_all, ""};
  if (printed == "-Infinity") return {Place::below_all, ""};
  double value = 0;
  const auto [end, error] = std::from_chars(printed.data(), printed.data() + printed.size(), value);
  if (error != std::errc() || end != printed.data() + printed.size()) throw no_cut(column, printed, "it is no number");
  return among(fmt::format("CAST({:.16e} AS float(53))", value));
}

// "2024-01-31 12:30:00.5+00:00" in its parts.
struct Moment {
  std::string_view date;
  std::string_view clock;     // "12:30:00"
  std::string_view fraction;  // "5"
};

Moment parse_moment(std::string_view text) {
  if (text.ends_with("+00:00")) text.remove_suffix(6);
  Moment out;
  const std::size_t blank = text.find(' ');
  if (blank != std::string_view::npos) {
    out.date = text.substr(0, blank);
    text.remove_prefix(blank + 1);
  } else if (text.find(':') == std::string_view::npos) {
    out.date = text;
    return out;
  }
  const std::size_t point = text.find('.');
  out.clock = text.substr(0, point);
  if (point != std::string_view::npos) out.fraction = text.substr(point + 1);
  return out;
}

bool plain_moment(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789-: .+") == std::string_view::npos;
}

GivenBound temporal_bound(const OriginColumn& column, const std::string& printed) {
  const rows::Type& type = column.facts.type;
  if (printed == "infinity") return {Place::above_all, ""};
  if (printed == "-infinity" || printed.ends_with(" BC")) return {Place::below_all, ""};
  if (!plain_moment(printed)) throw no_cut(column, printed, "it is no date or time");
  const Moment moment = parse_moment(printed);
  constexpr std::size_t iso_date = 10;
  if (type.id != rows::TypeId::time && moment.date.size() > iso_date) return {Place::above_all, ""};
  if (type.id != rows::TypeId::time && moment.date.size() < iso_date) throw no_cut(column, printed, "it is no date");
  const std::string_view clock = moment.clock.empty() ? std::string_view("00:00:00") : moment.clock;
  if (type.id == rows::TypeId::date) {
    if (clock != "00:00:00" || !moment.fraction.empty()) throw no_cut(column, printed, "it holds whole days");
    return among(fmt::format("CAST('{}' AS date)", moment.date));
  }
  const bool minute = type.quantum == rows::Quantum::minute;
  const bool between = moment.fraction.size() > type.digits || (minute && !clock.ends_with(":00")) ||
                       (type.quantum == rows::Quantum::tick_300 && !moment.fraction.empty());
  if (between) throw no_cut(column, printed, "it holds coarser moments");
  const std::string fraction = moment.fraction.empty() ? std::string() : "." + std::string(moment.fraction);
  if (type.id == rows::TypeId::time) {
    if (clock.starts_with("24:")) return {Place::above_all, ""};
    return among(fmt::format("CAST('{}{}' AS {})", clock, fraction, column.facts.native));
  }
  // datetime and smalldatetime end earlier than others begin: compared as datetime2, which holds all of them.
  const bool small = type.quantum != rows::Quantum::none;
  return among(fmt::format("CAST('{}T{}{}{}' AS {})", moment.date, clock, fraction, type.zoned ? "+00:00" : "",
                           small ? "datetime2(7)" : column.facts.native));
}

GivenBound binary_bound(const OriginColumn& column, const std::string& printed) {
  constexpr std::size_t shown_bytes = limits::error_value_chars;
  const bool hex = printed.starts_with("0x") && printed.size() % 2 == 0 &&
                   printed.find_first_not_of("0123456789ABCDEFabcdef", 2) == std::string::npos;
  if (!hex) throw no_cut(column, printed, "it is no binary value");
  if (printed.size() >= 2 + 2 * shown_bytes) throw no_cut(column, printed, "it is too long");
  return among(printed);
}

}  // namespace

GivenBound given_bound(const OriginColumn& column, const std::string& printed) {
  switch (order_of(column)) {
    case Order::number:
      return number_bound(column, printed);
    case Order::real:
      return real_bound(column, printed);
    case Order::temporal:
      return temporal_bound(column, printed);
    case Order::bit:
      if (printed != "true" && printed != "false") throw no_cut(column, printed, "it is no truth value");
      return among(fmt::format("CAST({} AS bit)", printed == "true" ? 1 : 0));
    case Order::binary:
      return binary_bound(column, printed);
    case Order::text:
    case Order::uuid:
      throw no_cut(column, printed, "the systems do not put its values in the same order");
    case Order::none:
      break;
  }
  throw no_cut(column, printed, "its type has no order");
}

std::string given_condition(const OriginColumn& column, const system::SliceBounds& bounds, bool column_nulls) {
  const std::string name = quoted(column.facts.name);
  std::string low;
  std::string high;
  if (bounds.low) {
    const GivenBound bound = given_bound(column, *bounds.low);
    if (bound.place == Place::above_all) return "1 = 0";
    if (bound.place == Place::among) low = fmt::format("{} >= {}", name, bound.literal);
  }
  if (bounds.high) {
    const GivenBound bound = given_bound(column, *bounds.high);
    if (bound.place == Place::below_all) return "1 = 0";
    if (bound.place == Place::among) high = fmt::format("{} < {}", name, bound.literal);
  }
  if (low.empty() && high.empty()) return column_nulls ? name + " IS NOT NULL" : "";
  return low + (low.empty() || high.empty() ? "" : " AND ") + high;
}

}  // namespace rowferry::mssql
