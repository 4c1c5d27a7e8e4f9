#include "sandbox/engine/convert.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>

#include "sandbox/engine/collation.hpp"
#include "sandbox/engine/temporal.hpp"

namespace rowferry::sandbox::engine {

namespace {

std::string ascii(const Value& v) {
  std::string out;
  for (const char16_t c : v.text) out.push_back(c < 0x80 ? static_cast<char>(c) : '?');
  return out;
}

std::string_view trimmed(std::string_view s) {
  while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
  while (!s.empty() && s.back() == ' ') s.remove_suffix(1);
  return s;
}

struct Bounds {
  Int128 low, high;
};
Bounds bounds_of(Kind kind) {
  switch (kind) {
    case Kind::tinyint:
      return {0, 255};
    case Kind::smallint:
      return {-32768, 32767};
    case Kind::integer:
      return {std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max()};
    case Kind::smallmoney:
      return {std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max()};
    default:
      return {std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()};
  }
}

[[noreturn]] void raise_clash(const Value& v, const Type& to, Conversion how) {
  if (how == Conversion::cast)
    raise(529, 16, 2,
          fmt::format("Explicit conversion from data type {} to {} is not allowed.", type_name(v.type.kind),
                      type_name(to.kind)),
          Reach::batch);
  raise(206, 16, 2,
        fmt::format("Operand type clash: {} is incompatible with {}", type_name(v.type.kind), type_name(to.kind)),
        Reach::batch);
}

[[noreturn]] void raise_245(const Value& v, const Type& to) {
  raise(245, 16, 1,
        fmt::format("Conversion failed when converting the {} value '{}' to data type {}.", type_name(v.type.kind),
                    narrow(v.text), type_name(to.kind)),
        Reach::batch);
}

[[noreturn]] void raise_8114(const Value& v, const Type& to) {
  raise(8114, 16, 5, fmt::format("Error converting data type {} to {}.", type_name(v.type.kind), type_name(to.kind)),
        Reach::batch);
}

Value number_value(Int128 n, const Type& to) {
  Value out = Value::of_null(to);
  out.null = false;
  out.number = n;
  return out;
}

Value checked_integer(Int128 n, const Value& from, const Type& to) {
  if (to.kind == Kind::bit) return number_value(n != 0 ? 1 : 0, to);
  const Bounds b = bounds_of(to.kind);
  if (n >= b.low && n <= b.high) return number_value(n, to);
  if ((to.kind == Kind::tinyint || to.kind == Kind::smallint) && is_integer(from.type.kind) &&
      from.type.kind != Kind::bigint)
    raise(220, 16, to.kind == Kind::tinyint ? 2 : 1,
          fmt::format("Arithmetic overflow error for data type {}, value = {}.", type_name(to.kind),
                      rowferry::decimal::to_text(n)));
  raise_overflow(is_integer(from.type.kind) ? "expression" : type_name(from.type.kind), type_name(to.kind));
}

int scale_of(const Value& v) { return is_money(v.type.kind) ? 4 : is_decimal(v.type.kind) ? v.type.scale : 0; }

Value text_to_integer(const Value& v, const Type& to) {
  const std::string all = ascii(v);
  const std::string_view text = trimmed(all);
  if (to.kind == Kind::bit) {
    const std::string low = fold_name(text);
    if (low == "true") return number_value(1, to);
    if (low == "false") return number_value(0, to);
  }
  if (text.empty()) return number_value(0, to);
  const auto parsed = text.find('.') == std::string_view::npos ? parse_decimal(text) : std::nullopt;
  if (!parsed) {
    if (to.kind == Kind::bigint) raise_8114(v, to);
    raise_245(v, to);
  }
  if (to.kind == Kind::bit) return number_value(parsed->value != 0 ? 1 : 0, to);
  const Bounds b = bounds_of(to.kind);
  if (parsed->value >= b.low && parsed->value <= b.high) return number_value(parsed->value, to);
  if (to.kind == Kind::bigint) raise_overflow("expression", "bigint");
  if (to.kind == Kind::integer)
    raise(248, 16, 1,
          fmt::format("The conversion of the {} value '{}' overflowed an int column.", type_name(v.type.kind), text),
          Reach::batch);
  raise(244, 16, to.kind == Kind::tinyint ? 1 : 2,
        fmt::format("The conversion of the {} value '{}' overflowed an {} column. Use a larger integer column.",
                    type_name(v.type.kind), text, to.kind == Kind::tinyint ? "INT1" : "INT2"),
        Reach::batch);
}

Value binary_to_integer(const Value& v, const Type& to) {
  std::uint64_t n = 0;
  const std::size_t from = v.bytes.size() > 8 ? v.bytes.size() - 8 : 0;
  for (std::size_t i = from; i < v.bytes.size(); ++i) n = (n << 8U) | static_cast<std::uint8_t>(v.bytes[i]);
  switch (to.kind) {
    case Kind::bit:
      return number_value(n != 0 ? 1 : 0, to);
    case Kind::tinyint:
      return number_value(static_cast<std::uint8_t>(n), to);
    case Kind::smallint:
      return number_value(static_cast<std::int16_t>(n), to);
    case Kind::integer:
      return number_value(static_cast<std::int32_t>(n), to);
    default:
      return number_value(static_cast<std::int64_t>(n), to);
  }
}

std::int64_t whole_days_1900(const Value& v) { return v.days - days_1900; }

Value to_integer(const Value& v, const Type& to, Conversion how) {
  const Kind k = v.type.kind;
  if (is_integer(k)) return checked_integer(v.number, v, to);
  if (is_money(k) || is_decimal(k)) {
    const auto n =
        to.kind == Kind::bit ? std::optional<Int128>(v.number) : rescale(v.number, scale_of(v), 0, is_decimal(k));
    if (!n) raise_overflow(type_name(k), type_name(to.kind));
    return checked_integer(*n, v, to);
  }
  if (is_float(k)) {
    if (to.kind == Kind::bit) return number_value(v.real != 0 ? 1 : 0, to);
    const double whole = std::trunc(v.real);
    if (!(whole >= -9.3e18 && whole <= 9.3e18)) raise_overflow(type_name(k), type_name(to.kind));
    return checked_integer(static_cast<Int128>(whole), v, to);
  }
  if (is_string(k)) return text_to_integer(v, to);
  if (is_binary(k)) return binary_to_integer(v, to);
  if (k == Kind::datetime || k == Kind::smalldatetime)
    return checked_integer(whole_days_1900(v) + (v.ticks >= ticks_per_day / 2 ? 1 : 0), v, to);
  raise_clash(v, to, how);
}

Value fit_decimal(Int128 n, int from_scale, const Value& v, const Type& to) {
  const auto scaled = rescale(n, from_scale, to.scale);
  if (!scaled || magnitude_of(*scaled) >= power_of_ten(to.precision))
    raise(8115, 16, 8,
          fmt::format("Arithmetic overflow error converting {} to data type numeric.",
                      is_decimal(v.type.kind) ? "numeric" : type_name(v.type.kind)));
  return number_value(*scaled, to);
}

Value text_to_decimal(const Value& v, const Type& to) {
  const std::string text = ascii(v);
  const auto parsed = parse_decimal(text);
  if (!parsed)
    raise(8114, 16, 5, fmt::format("Error converting data type {} to numeric.", type_name(v.type.kind)), Reach::batch);
  return fit_decimal(parsed->value, parsed->scale, v, to);
}

// Exact decimal digits of a double, rounded to the wanted scale.
Value float_to_decimal(const Value& v, const Type& to) {
  if (!std::isfinite(v.real) || std::fabs(v.real) >= 1e38)
    raise(8115, 16, 6, "Arithmetic overflow error converting float to data type numeric.");
  const auto parsed = parse_decimal(fmt::format("{:.{}f}", v.real, static_cast<int>(to.scale)));
  if (!parsed) raise(8115, 16, 6, "Arithmetic overflow error converting float to data type numeric.");
  return fit_decimal(parsed->value, parsed->scale, v, to);
}

Value to_decimal(const Value& v, const Type& to, Conversion how) {
  const Kind k = v.type.kind;
  if (is_exact(k)) return fit_decimal(v.number, scale_of(v), v, to);
  if (is_float(k)) return float_to_decimal(v, to);
  if (is_string(k)) return text_to_decimal(v, to);
  if (k == Kind::datetime || k == Kind::smalldatetime) {
    Value as_float = Value::of_null(make_type(Kind::float8));
    as_float.null = false;
    as_float.real =
        static_cast<double>(whole_days_1900(v)) + static_cast<double>(v.ticks) / static_cast<double>(ticks_per_day);
    return float_to_decimal(as_float, to);
  }
  if (is_binary(k)) return fit_decimal(binary_to_integer(v, bigint_type()).number, 0, v, to);
  raise_clash(v, to, how);
}

Value to_money(const Value& v, const Type& to, Conversion how) {
  const Kind k = v.type.kind;
  Int128 n = 0;
  if (is_exact(k)) {
    const auto scaled = rescale(v.number, scale_of(v), 4);
    if (!scaled) raise_overflow(is_integer(k) ? "expression" : type_name(k), type_name(to.kind));
    n = *scaled;
  } else if (is_float(k)) {
    n = float_to_decimal(v, decimal_type(38, 4)).number;
  } else if (is_string(k)) {
    std::string text;
    for (const char c : ascii(v))
      if (c != ',' && c != '$') text.push_back(c);
    if (trimmed(text).empty()) text = "0";
    const auto parsed = parse_decimal(text);
    if (!parsed)
      raise(235, 16, 0, "Cannot convert a char value to money. The char value has incorrect syntax.", Reach::batch);
    n = rescale(parsed->value, parsed->scale, 4).value_or(power_of_ten(30));
  } else if (is_binary(k)) {
    n = binary_to_integer(v, bigint_type()).number;
  } else {
    raise_clash(v, to, how);
  }
  const Bounds b = bounds_of(to.kind);
  if (n < b.low || n > b.high) raise_overflow(is_integer(k) ? "expression" : type_name(k), type_name(to.kind));
  return number_value(n, to);
}

Value to_float(const Value& v, const Type& to, Conversion how) {
  Value out = Value::of_null(to);
  out.null = false;
  const Kind k = v.type.kind;
  if (is_float(k)) {
    out.real = v.real;
  } else if (is_exact(k)) {
    const std::string text = rowferry::decimal::to_text(v.number, scale_of(v));
    std::from_chars(text.data(), text.data() + text.size(), out.real);
  } else if (is_string(k)) {
    const std::string all = ascii(v);
    std::string_view text = trimmed(all);
    if (!text.empty() && text.front() == '+') text.remove_prefix(1);
    if (text.empty()) return out;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), out.real);
    if (failed == std::errc::result_out_of_range)
      raise(8115, 16, 2,
            fmt::format("Arithmetic overflow error converting expression to data type {}.", type_name(to.kind)));
    if (failed != std::errc{} || end != text.data() + text.size() || !std::isfinite(out.real)) raise_8114(v, to);
  } else if (k == Kind::datetime || k == Kind::smalldatetime) {
    out.real =
        static_cast<double>(whole_days_1900(v)) + static_cast<double>(v.ticks) / static_cast<double>(ticks_per_day);
  } else {
    raise_clash(v, to, how);
  }
  if (to.kind == Kind::real) {
    if (std::fabs(out.real) > static_cast<double>(std::numeric_limits<float>::max()))
      raise(232, 16, 2, fmt::format("Arithmetic overflow error for type real, value = {:f}.", out.real));
    out.real = static_cast<double>(static_cast<float>(out.real));
  }
  return out;
}

}  // namespace

Value to_text(const Value& v, const Type& to, Conversion how, int style);
Value to_binary(const Value& v, const Type& to, Conversion how, int style);
Value to_temporal(const Value& v, const Type& to, Conversion how);

namespace {

Value to_guid(const Value& v, const Type& to, Conversion how) {
  if (v.type.kind == Kind::guid) return Value::of_bytes(v.bytes, to);
  if (is_string(v.type.kind)) {
    const auto bytes = guid_bytes(ascii(v));
    if (!bytes)
      raise(8169, 16, 2, "Conversion failed when converting from a character string to uniqueidentifier.",
            Reach::batch);
    return Value::of_bytes(*bytes, to);
  }
  if (is_binary(v.type.kind)) {
    std::string bytes = v.bytes.substr(0, 16);
    bytes.resize(16, '\0');
    return Value::of_bytes(bytes, to);
  }
  raise_clash(v, to, how);
}

Value to_variant(const Value& v, const Type& to, Conversion how) {
  if (v.type.kind == Kind::variant) return Value::of_bytes(v.bytes, to);
  if (is_lob(v.type.kind) || v.type.length == max_length || v.type.kind == Kind::json || v.type.kind == Kind::udt)
    raise_clash(v, to, how);
  return Value::of_bytes(variant_inner(v), to);
}

}  // namespace

Value convert(const Value& v, const Type& to, Conversion how, int style) {
  if (v.null) return Value::of_null(to);
  if (v.type.kind == Kind::variant && to.kind != Kind::variant)
    return convert(variant_content(v.bytes), to, how, style);
  switch (to.kind) {
    case Kind::bit:
    case Kind::tinyint:
    case Kind::smallint:
    case Kind::integer:
    case Kind::bigint:
      return to_integer(v, to, how);
    case Kind::smallmoney:
    case Kind::money:
      return to_money(v, to, how);
    case Kind::decimal:
    case Kind::numeric:
      return to_decimal(v, to, how);
    case Kind::real:
    case Kind::float8:
      return to_float(v, to, how);
    case Kind::character:
    case Kind::varchar:
    case Kind::nchar:
    case Kind::nvarchar:
    case Kind::text:
    case Kind::ntext:
    case Kind::xml:
    case Kind::json:
      return to_text(v, to, how, style);
    case Kind::binary:
    case Kind::varbinary:
    case Kind::rowversion:
    case Kind::image:
    case Kind::vector:
    case Kind::udt:
      return to_binary(v, to, how, style);
    case Kind::guid:
      return to_guid(v, to, how);
    case Kind::variant:
      return to_variant(v, to, how);
    default:
      return to_temporal(v, to, how);
  }
}

std::optional<Value> try_convert(const Value& value, const Type& to, int style) {
  try {
    return convert(value, to, Conversion::cast, style);
  } catch (const SqlError&) {
    return std::nullopt;
  }
}

// --- temporal

namespace {

Value carried(Value out, std::int64_t ticks, std::int32_t days) {
  if (ticks >= ticks_per_day) {
    ticks -= ticks_per_day;
    ++days;
  } else if (ticks < 0) {
    ticks += ticks_per_day;
    --days;
  }
  out.ticks = ticks;
  out.days = days;
  return out;
}

[[noreturn]] void raise_242(std::string_view from, std::string_view to) {
  raise(242, 16, 3,
        fmt::format("The conversion of a {} data type to a {} data type resulted in an out-of-range value.", from, to),
        Reach::batch);
}

// Days and ticks are local time here; brings them into the type's grid and range.
Value fit_temporal(std::int32_t days, std::int64_t ticks, std::int16_t offset, const Type& to, std::string_view from) {
  Value out = Value::of_null(to);
  out.null = false;
  switch (to.kind) {
    case Kind::date:
      out.days = days;
      return out;
    case Kind::time:
      out.ticks = round_ticks(ticks, to.scale) % ticks_per_day;
      return out;
    case Kind::datetime2:
      out = carried(out, round_ticks(ticks, to.scale), days);
      break;
    case Kind::datetimeoffset:
      out = carried(out, round_ticks(ticks, to.scale), days);
      out = carried(out, out.ticks - offset * 60LL * ticks_per_second, out.days);
      out.offset = offset;
      break;
    case Kind::datetime: {
      const std::uint32_t grid = ticks_to_300ths(ticks);
      out = carried(out, grid >= 25'920'000 ? ticks_per_day : ticks_from_300ths(grid), days);
      if (out.days < days_1753 || out.days > days_max) raise_242(from, "datetime");
      return out;
    }
    default: {  // smalldatetime
      const std::int64_t minute = 60 * ticks_per_second;
      out = carried(out, (ticks + minute / 2 + 5'000) / minute * minute, days);
      if (out.days < days_1900 || out.days > days_1900 + 65'535) raise_242(from, "smalldatetime");
      return out;
    }
  }
  if (out.days > days_max || out.days < 0) raise_242(from, type_name(to.kind));
  return out;
}

Value text_to_temporal(const Value& v, const Type& to) {
  const std::string text = ascii(v);
  const auto parsed = parse_temporal(text);
  const bool old = to.kind == Kind::datetime || to.kind == Kind::smalldatetime;
  if (!parsed || (old && parsed->has_offset))
    raise(241, 16, 1, "Conversion failed when converting date and/or time from character string.", Reach::batch);
  if (parsed->out_of_range) {
    if (old) raise_242(type_name(v.type.kind), type_name(to.kind));
    raise(241, 16, 1, "Conversion failed when converting date and/or time from character string.", Reach::batch);
  }
  return fit_temporal(parsed->days, parsed->ticks, parsed->offset, to, type_name(v.type.kind));
}

}  // namespace

Value to_temporal(const Value& v, const Type& to, Conversion how) {
  const Kind k = v.type.kind;
  if (is_string(k)) return text_to_temporal(v, to);
  const bool old_target = to.kind == Kind::datetime || to.kind == Kind::smalldatetime;
  if (is_number(k) && old_target) {
    const double real = to_float(v, make_type(Kind::float8), how).real;
    if (real < -53690 || real > 2958463.99999999) raise_overflow("expression", type_name(to.kind));
    const double whole = std::floor(real);
    return fit_temporal(days_1900 + static_cast<std::int32_t>(whole),
                        static_cast<std::int64_t>((real - whole) * static_cast<double>(ticks_per_day)), 0, to,
                        type_name(k));
  }
  if (!is_temporal(k)) raise_clash(v, to, how);
  if ((k == Kind::date && to.kind == Kind::time) || (k == Kind::time && to.kind == Kind::date)) raise_clash(v, to, how);
  std::int32_t days = k == Kind::time ? days_1900 : v.days;
  std::int64_t ticks = v.ticks;
  if (k == Kind::datetimeoffset) {
    const Value local = carried(v, ticks + v.offset * 60LL * ticks_per_second, days);
    days = local.days;
    ticks = local.ticks;
  }
  return fit_temporal(days, ticks, k == Kind::datetimeoffset ? v.offset : std::int16_t{0}, to, type_name(k));
}

}  // namespace rowferry::sandbox::engine
