#include <fmt/format.h>

#include <array>

#include "sandbox/engine/collation.hpp"
#include "sandbox/engine/functions.hpp"
#include "sandbox/engine/temporal.hpp"

namespace rowferry::sandbox::engine {

namespace {

enum class Part : std::uint8_t {
  year,
  quarter,
  month,
  dayofyear,
  day,
  week,
  weekday,
  hour,
  minute,
  second,
  millisecond,
  microsecond,
  nanosecond,
  offset
};

struct PartName {
  std::string_view name;
  Part part;
};
constexpr std::array parts{PartName{"year", Part::year},
                           PartName{"yy", Part::year},
                           PartName{"yyyy", Part::year},
                           PartName{"quarter", Part::quarter},
                           PartName{"qq", Part::quarter},
                           PartName{"q", Part::quarter},
                           PartName{"month", Part::month},
                           PartName{"mm", Part::month},
                           PartName{"m", Part::month},
                           PartName{"dayofyear", Part::dayofyear},
                           PartName{"dy", Part::dayofyear},
                           PartName{"y", Part::dayofyear},
                           PartName{"day", Part::day},
                           PartName{"dd", Part::day},
                           PartName{"d", Part::day},
                           PartName{"week", Part::week},
                           PartName{"wk", Part::week},
                           PartName{"ww", Part::week},
                           PartName{"weekday", Part::weekday},
                           PartName{"dw", Part::weekday},
                           PartName{"hour", Part::hour},
                           PartName{"hh", Part::hour},
                           PartName{"minute", Part::minute},
                           PartName{"mi", Part::minute},
                           PartName{"n", Part::minute},
                           PartName{"second", Part::second},
                           PartName{"ss", Part::second},
                           PartName{"s", Part::second},
                           PartName{"millisecond", Part::millisecond},
                           PartName{"ms", Part::millisecond},
                           PartName{"microsecond", Part::microsecond},
                           PartName{"mcs", Part::microsecond},
                           PartName{"nanosecond", Part::nanosecond},
                           PartName{"ns", Part::nanosecond},
                           PartName{"tzoffset", Part::offset},
                           PartName{"tz", Part::offset}};

Part part_of(const Expr& call) {
  const Expr& e = *call.args[0];
  const std::string name = e.kind == ExprKind::column ? fold_name(e.name.back()) : std::string();
  for (const PartName& p : parts)
    if (p.name == name) return p.part;
  raise(155, 15, 1, fmt::format("'{}' is not a recognized {} option.", name, fold_name(call.name[0])), Reach::batch);
}

Type datetime_type(const Context&, const Expr&) { return make_type(Kind::datetime); }
Type datetime2_type(const Context&, const Expr&) { return make_type(Kind::datetime2, 0, 0, 7); }
Type offset_type(const Context&, const Expr&) { return make_type(Kind::datetimeoffset, 0, 0, 7); }
Type date_type(const Context&, const Expr&) { return make_type(Kind::date); }

Value now_value(const Context&, const Expr& call, const Arguments&) {
  const std::int64_t now = now_ticks();
  Value v = Value::of_null(make_type(Kind::datetime2, 0, 0, 7));
  v.null = false;
  v.days = static_cast<std::int32_t>(now / ticks_per_day);
  v.ticks = now % ticks_per_day;
  return convert(v, call.type);
}

Type moved_type(const Context&, const Expr& call) {
  const Type& t = call.args[2]->type;
  return is_temporal(t.kind) ? t : make_type(Kind::datetime);
}

Value temporal_argument(const Value& v) {
  return is_temporal(v.type.kind) ? v : convert(v, make_type(Kind::datetime2, 0, 0, 7));
}

int days_in_month(int year, int month) {
  for (int d = 31; d > 28; --d)
    if (days_of(year, month, d)) return d;
  return 28;
}

Value add(const Context&, const Expr& call, const Arguments& args) {
  if (args[0].null || args[1].null) return Value::of_null(call.type);
  const Part part = part_of(call);
  const std::int64_t n = number_of(args[0]);
  Value v = convert(args[1], call.type);
  const auto overflow = [&] {
    raise(517, 16, 1, fmt::format("Adding a value to a '{}' column caused an overflow.", type_name(call.type.kind)));
  };
  std::int64_t ticks = v.ticks;
  std::int64_t days = v.days;
  std::int64_t unit = 0;
  switch (part) {
    case Part::year:
    case Part::quarter:
    case Part::month: {
      const Civil c = civil_of(v.days);
      const std::int64_t months = c.year * 12LL + c.month - 1 +
                                  n * (part == Part::year      ? 12
                                       : part == Part::quarter ? 3
                                                               : 1);
      if (months < 12 || months >= 120'000) overflow();
      const int year = static_cast<int>(months / 12), month = static_cast<int>(months % 12) + 1;
      days = days_of(year, month, std::min(c.day, days_in_month(year, month))).value_or(0);
      break;
    }
    case Part::week:
      days += 7 * n;
      break;
    case Part::day:
    case Part::dayofyear:
    case Part::weekday:
      days += n;
      break;
    case Part::hour:
      unit = 3600 * ticks_per_second;
      break;
    case Part::minute:
      unit = 60 * ticks_per_second;
      break;
    case Part::second:
      unit = ticks_per_second;
      break;
    case Part::millisecond:
      unit = ticks_per_second / 1000;
      break;
    case Part::microsecond:
      unit = 10;
      break;
    default:
      ticks += n / 100;
  }
  const Int128 all = static_cast<Int128>(days) * ticks_per_day + ticks + static_cast<Int128>(unit) * n;
  if (call.type.kind == Kind::time) {
    v.ticks = static_cast<std::int64_t>(((all % ticks_per_day) + ticks_per_day) % ticks_per_day);
    return v;
  }
  if (all < 0 || all / ticks_per_day > days_max) overflow();
  v.days = static_cast<std::int32_t>(all / ticks_per_day);
  v.ticks = static_cast<std::int64_t>(all % ticks_per_day);
  return convert(v, call.type);
}

// Boundaries of the part crossed between two instants.
std::int64_t boundaries(Part part, const Value& a, const Value& b) {
  const Civil x = civil_of(a.days), y = civil_of(b.days);
  const auto whole = [&](std::int64_t unit) {
    const auto index = [&](const Value& v) { return (static_cast<Int128>(v.days) * ticks_per_day + v.ticks) / unit; };
    return static_cast<std::int64_t>(index(b) - index(a));
  };
  switch (part) {
    case Part::year:
      return y.year - x.year;
    case Part::quarter:
      return (y.year - x.year) * 4 + (y.month - 1) / 3 - (x.month - 1) / 3;
    case Part::month:
      return (y.year - x.year) * 12 + y.month - x.month;
    case Part::week:
      return (b.days + 1) / 7 - (a.days + 1) / 7;
    case Part::day:
    case Part::dayofyear:
    case Part::weekday:
      return b.days - a.days;
    case Part::hour:
      return whole(3600 * ticks_per_second);
    case Part::minute:
      return whole(60 * ticks_per_second);
    case Part::second:
      return whole(ticks_per_second);
    case Part::millisecond:
      return whole(ticks_per_second / 1000);
    case Part::microsecond:
      return whole(10);
    default:
      return whole(1) * 100;
  }
}

Value difference(const Context&, const Expr& call, const Arguments& args) {
  if (args[0].null || args[1].null) return Value::of_null(call.type);
  const std::int64_t n = boundaries(part_of(call), temporal_argument(args[0]), temporal_argument(args[1]));
  if (call.type.kind == Kind::integer && (n > 2'147'483'647 || n < -2'147'483'648LL))
    raise(535, 16, 0,
          "The datediff function resulted in an overflow. The number of dateparts separating two date/time instances "
          "is too large. Try to use datediff with a less precise datepart.");
  return Value::of_int(n, call.type.kind);
}

std::int64_t part_number(Part part, const Value& v) {
  const Civil c = civil_of(v.days);
  const std::int64_t seconds = v.ticks / ticks_per_second, fraction = v.ticks % ticks_per_second;
  switch (part) {
    case Part::year:
      return c.year;
    case Part::quarter:
      return (c.month - 1) / 3 + 1;
    case Part::month:
      return c.month;
    case Part::day:
      return c.day;
    case Part::dayofyear:
      return v.days - days_of(c.year, 1, 1).value_or(0) + 1;
    case Part::week:
      return (v.days - days_of(c.year, 1, 1).value_or(0) + (days_of(c.year, 1, 1).value_or(0) + 1) % 7) / 7 + 1;
    case Part::weekday:
      return (v.days + 1) % 7 + 1;
    case Part::hour:
      return seconds / 3600;
    case Part::minute:
      return seconds / 60 % 60;
    case Part::second:
      return seconds % 60;
    case Part::millisecond:
      return v.type.kind == Kind::datetime ? (fraction + 5000) / 10'000 : fraction / 10'000;
    case Part::microsecond:
      return fraction / 10;
    case Part::nanosecond:
      return fraction * 100;
    case Part::offset:
      return v.offset;
  }
  return 0;
}

Value date_part(const Context&, const Expr& call, const Arguments& args) {
  if (args[0].null) return null_int();
  return int_value(part_number(part_of(call), temporal_argument(args[0])));
}

Value date_name(const Context& context, const Expr& call, const Arguments& args) {
  constexpr std::array<std::string_view, 12> months{"January",   "February", "March",    "April",
                                                    "May",       "June",     "July",     "August",
                                                    "September", "October",  "November", "December"};
  constexpr std::array<std::string_view, 7> days{"Sunday",   "Monday", "Tuesday", "Wednesday",
                                                 "Thursday", "Friday", "Saturday"};
  if (args[0].null) return null_name(context);
  const Part part = part_of(call);
  const std::int64_t n = part_number(part, temporal_argument(args[0]));
  if (part == Part::month) return name_value(context, months.at(static_cast<std::size_t>(n - 1)));
  if (part == Part::weekday) return name_value(context, days.at(static_cast<std::size_t>(n - 1)));
  return name_value(context, fmt::format("{}", n));
}

template <Part part>
Value one_part(const Context&, const Expr&, const Arguments& args) {
  if (args[0].null) return null_int();
  return int_value(part_number(part, temporal_argument(args[0])));
}

Value from_parts(const Context&, const Expr& call, const Arguments& args) {
  for (const Value& v : args)
    if (v.null) return Value::of_null(call.type);
  const auto days = days_of(static_cast<int>(number_of(args[0])), static_cast<int>(number_of(args[1])),
                            static_cast<int>(number_of(args[2])));
  if (!days)
    raise(289, 16, 1, "Cannot construct data type date, some of the arguments have values which are not valid.");
  Value v = Value::of_null(call.type);
  v.null = false;
  v.days = *days;
  return v;
}

Value is_date(const Context&, const Expr&, const Arguments& args) {
  if (args[0].null) return int_value(0);
  return int_value(try_convert(args[0], make_type(Kind::datetime)) ? 1 : 0);
}

Value end_of_month(const Context&, const Expr& call, const Arguments& args) {
  if (args[0].null) return Value::of_null(call.type);
  Value v = convert(args[0], call.type);
  const Civil c = civil_of(v.days);
  v.days = days_of(c.year, c.month, days_in_month(c.year, c.month)).value_or(v.days);
  return v;
}

constexpr std::array table{
    Function{"GETDATE", 0, 0, datetime_type, now_value},
    Function{"GETUTCDATE", 0, 0, datetime_type, now_value},
    Function{"CURRENT_TIMESTAMP", 0, 0, datetime_type, now_value},
    Function{"SYSDATETIME", 0, 0, datetime2_type, now_value},
    Function{"SYSUTCDATETIME", 0, 0, datetime2_type, now_value},
    Function{"SYSDATETIMEOFFSET", 0, 0, offset_type, now_value},
    Function{"DATEADD", 3, 3, moved_type, add},
    Function{"DATEDIFF", 3, 3, int_result, difference},
    Function{"DATEDIFF_BIG", 3, 3, bigint_result, difference},
    Function{"DATEPART", 2, 2, int_result, date_part},
    Function{"DATENAME", 2, 2, name_result, date_name},
    Function{"YEAR", 1, 1, int_result, one_part<Part::year>},
    Function{"MONTH", 1, 1, int_result, one_part<Part::month>},
    Function{"DAY", 1, 1, int_result, one_part<Part::day>},
    Function{"DATEFROMPARTS", 3, 3, date_type, from_parts},
    Function{"EOMONTH", 1, 1, date_type, end_of_month},
    Function{"ISDATE", 1, 1, int_result, is_date},
};

}  // namespace

std::span<const Function> date_functions() { return table; }

}  // namespace rowferry::sandbox::engine
