#include "tds/wire/server_values.hpp"

#include <cmath>

namespace rowferry::tds::server {

namespace {

using Byte = std::uint8_t;
using Magnitude = unsigned __int128;

constexpr std::uint32_t date_max = 3'652'058;  // 9999-12-31, days since 0001-01-01
constexpr std::int32_t datetime_day_min = -53'690;
constexpr std::int32_t datetime_day_max = 2'958'463;
constexpr std::uint32_t datetime_ticks = 25'920'000;
constexpr std::uint16_t minutes_per_day = 1440;
constexpr int offset_minutes_max = 840;
constexpr std::int64_t seconds_per_day = 86'400;
constexpr std::uint16_t null_u16 = 0xFFFF;
constexpr std::uint64_t plp_bytes_max = 0x7FFFFFFF;
constexpr std::uint32_t variant_bytes_max = 8009;

constexpr ValueEnd more(const Byte* at) { return {at, ValueFault::need_more, false}; }
constexpr ValueEnd bad(const Byte* at, ValueFault fault) { return {at, fault, false}; }
constexpr ValueEnd good(const Byte* next) { return {next, ValueFault::none, false}; }
constexpr ValueEnd null_value(const Byte* next) { return {next, ValueFault::none, true}; }

std::size_t left(const Byte* at, const Byte* end) { return static_cast<std::size_t>(end - at); }

// ---- what the bytes of a value may be ------------------------------------------------------------------------------

bool any(const ValueRule&, const Byte*, std::size_t) { return true; }

bool bit_ok(const ValueRule&, const Byte* at, std::size_t) { return *at <= 1; }

// SQL Server takes no NaN and no infinity.
bool float_ok(const ValueRule&, const Byte* at, std::size_t n) {
  return n == 4 ? std::isfinite(load_le<float>(at)) : std::isfinite(load_le<double>(at));
}

bool datetime_ok(const ValueRule&, const Byte* at, std::size_t n) {
  if (n == 4) return load_le<std::uint16_t>(at + 2) < minutes_per_day;
  const auto day = load_le<std::int32_t>(at);
  return day >= datetime_day_min && day <= datetime_day_max && load_le<std::uint32_t>(at + 4) < datetime_ticks;
}

std::uint32_t load_u24(const Byte* at) {
  return at[0] | (static_cast<std::uint32_t>(at[1]) << 8U) | (static_cast<std::uint32_t>(at[2]) << 16U);
}

std::uint64_t load_time(const Byte* at, std::size_t n) {
  std::uint64_t ticks = 0;
  for (std::size_t i = n; i-- > 0;) ticks = (ticks << 8U) | at[i];
  return ticks;
}

constexpr std::uint64_t power_of_ten[] = {1, 10, 100, 1'000, 10'000, 100'000, 1'000'000, 10'000'000};

constexpr std::size_t time_bytes(std::uint8_t scale) { return scale <= 2 ? 3 : scale <= 4 ? 4 : 5; }

bool date_ok(const ValueRule&, const Byte* at, std::size_t) { return load_u24(at) <= date_max; }

bool time_ok(const ValueRule& rule, const Byte* at, std::size_t n) {
  return load_time(at, n) < power_of_ten[rule.scale] * seconds_per_day;
}

bool datetime2_ok(const ValueRule& rule, const Byte* at, std::size_t n) {
  return time_ok(rule, at, n - 3) && date_ok(rule, at + n - 3, 3);
}

// Time and date are UTC; the local value must lie in 0001..9999 too.
bool datetimeoffset_ok(const ValueRule& rule, const Byte* at, std::size_t n) {
  const std::size_t time_width = n - 5;
  if (!time_ok(rule, at, time_width) || !date_ok(rule, at + time_width, 3)) return false;
  const int offset = load_le<std::int16_t>(at + n - 2);
  if (offset < -offset_minutes_max || offset > offset_minutes_max) return false;
  const auto second = static_cast<std::int64_t>(load_time(at, time_width) / power_of_ten[rule.scale]);
  const std::int64_t local = load_u24(at + time_width) * seconds_per_day + second + offset * std::int64_t{60};
  return local >= 0 && local < (std::int64_t{date_max} + 1) * seconds_per_day;
}

Magnitude decimal_limit(std::uint8_t precision) {
  Magnitude limit = 1;
  for (int i = 0; i < precision; ++i) limit *= 10;
  return limit;
}

bool decimal_ok(const ValueRule& rule, const Byte* at, std::size_t n) {
  static const auto limits = [] {
    struct {
      Magnitude of[39];
    } table{};
    for (std::uint8_t p = 0; p <= 38; ++p) table.of[p] = decimal_limit(p);
    return table;
  }();
  if (at[0] > 1) return false;
  Magnitude value = 0;
  for (std::size_t i = n; i-- > 1;) value = (value << 8U) | at[i];
  return value < limits.of[rule.precision];
}

using BytesOk = bool (*)(const ValueRule&, const Byte*, std::size_t);

// ---- framings ------------------------------------------------------------------------------------------------------

// No length: the type's own width.
template <std::size_t width, BytesOk ok>
ValueEnd check_fixed(const ValueRule& rule, const Byte* at, const Byte* end, ValueWalk&) {
  if (left(at, end) < width) return more(at);
  if (!ok(rule, at, width)) return bad(at, ValueFault::invalid);
  return good(at + width);
}

// One length byte: 0 for NULL, else exactly the declared width.
template <BytesOk ok>
ValueEnd check_nullable(const ValueRule& rule, const Byte* at, const Byte* end, ValueWalk&) {
  if (at == end) return more(at);
  const std::size_t n = *at;
  if (n == 0) return null_value(at + 1);
  if (n != rule.max_length) return bad(at, ValueFault::length);
  if (left(at, end) < n + 1) return more(at);
  if (!ok(rule, at + 1, n)) return bad(at, ValueFault::invalid);
  return good(at + 1 + n);
}

// Decimals may travel in fewer bytes than the declared width, and in widths of their own (FreeTDS: 2 to 17).
ValueEnd check_decimal(const ValueRule& rule, const Byte* at, const Byte* end, ValueWalk&) {
  if (at == end) return more(at);
  const std::size_t n = *at;
  if (n == 0) return null_value(at + 1);
  if (n > rule.max_length || n < 2) return bad(at, ValueFault::length);
  if (left(at, end) < n + 1) return more(at);
  if (!decimal_ok(rule, at + 1, n)) return bad(at, ValueFault::invalid);
  return good(at + 1 + n);
}

// Legacy char and binary with one length byte.
ValueEnd check_short(const ValueRule& rule, const Byte* at, const Byte* end, ValueWalk&) {
  if (at == end) return more(at);
  const std::size_t n = *at;
  if (n == 0) return null_value(at + 1);
  if (n > rule.max_length) return bad(at, ValueFault::length);
  if (left(at, end) < n + 1) return more(at);
  return good(at + 1 + n);
}

// Two length bytes, FFFF for NULL.
template <bool unicode>
ValueEnd check_counted(const ValueRule& rule, const Byte* at, const Byte* end, ValueWalk&) {
  if (left(at, end) < 2) return more(at);
  const std::size_t n = load_le<std::uint16_t>(at);
  if (n == null_u16) return null_value(at + 2);
  if (n > rule.max_length) return bad(at, ValueFault::length);
  if (unicode && n % 2 != 0) return bad(at, ValueFault::odd_length);
  if (left(at, end) < n + 2) return more(at);
  return good(at + 2 + n);
}

ValueEnd end_plp(const Byte* next, ValueWalk& walk, bool null) {
  walk.plain = null || walk.seen == 0 || walk.one_chunk;
  walk.open = false;
  return {next, ValueFault::none, null};
}

template <bool unicode>
ValueEnd check_plp(const ValueRule&, const Byte* at, const Byte* end, ValueWalk& walk) {
  if (!walk.open) {
    if (left(at, end) < 8) return more(at);
    walk = {.total = load_le<std::uint64_t>(at), .seen = 0, .open = true, .one_chunk = false, .plain = false};
    at += 8;
    if (walk.total == plp_null) return end_plp(at, walk, true);
    if (walk.total != plp_unknown && walk.total > plp_bytes_max) return bad(at, ValueFault::chunk_length);
  }
  while (true) {
    if (left(at, end) < 4) return more(at);
    const std::size_t n = load_le<std::uint32_t>(at);
    if (n == 0) break;
    if (n > (walk.total == plp_unknown ? plp_bytes_max : walk.total) - walk.seen) {
      return bad(at, ValueFault::chunk_length);
    }
    if (left(at, end) < n + 4) return more(at);
    walk.one_chunk = walk.seen == 0 && n == walk.total;
    walk.seen += n;
    at += 4 + n;
  }
  if (walk.total != plp_unknown && walk.seen != walk.total) return bad(at, ValueFault::short_chunks);
  if (unicode && walk.seen % 2 != 0) return bad(at, ValueFault::odd_length);
  if (walk.total == plp_unknown) walk.one_chunk = false;
  const bool known_empty = walk.total == 0;
  const ValueEnd done = end_plp(at + 4, walk, false);
  walk.plain = walk.one_chunk || known_empty;
  return done;
}

// text, ntext, image: a text pointer of 16 bytes, a timestamp of 8, then length and data; one zero byte for NULL.
template <bool unicode>
ValueEnd check_text(const ValueRule& rule, const Byte* at, const Byte* end, ValueWalk&) {
  constexpr std::size_t pointer_bytes = 16;
  constexpr std::size_t head = 1 + pointer_bytes + 8 + 4;
  if (at == end) return more(at);
  if (*at == 0) return null_value(at + 1);
  if (*at != pointer_bytes) return bad(at, ValueFault::text_pointer);
  if (left(at, end) < head) return more(at);
  const std::size_t n = load_le<std::uint32_t>(at + head - 4);
  if (n > 0x7FFFFFFF) return bad(at, ValueFault::text_pointer);
  if (n > rule.max_length) return bad(at, ValueFault::length);
  if (unicode && n % 2 != 0) return bad(at, ValueFault::odd_length);
  if (left(at, end) < head + n) return more(at);
  return good(at + head + n);
}

// The inner bytes of a sql_variant: base type, property bytes, data (MS-TDS 2.2.5.5.4).
ValueFault variant_fault(const Byte* inner, std::size_t n) {
  if (n < 2) return ValueFault::length;
  TypeInfo base;
  base.id = static_cast<DataType>(inner[0]);
  const std::size_t properties = inner[1];
  if (n < 2 + properties) return ValueFault::length;
  const Byte* property = inner + 2;
  const Byte* data = property + properties;
  const std::size_t size = n - 2 - properties;
  const auto exactly = [&](std::size_t property_bytes, std::size_t width, bool ok) {
    if (properties != property_bytes || size != width) return ValueFault::length;
    return ok ? ValueFault::none : ValueFault::invalid;
  };
  ValueRule rule;
  switch (base.id) {
    case DataType::int1:
    case DataType::bit:
      return exactly(0, 1, true);
    case DataType::int2:
      return exactly(0, 2, true);
    case DataType::int4:
    case DataType::money4:
      return exactly(0, 4, true);
    case DataType::int8:
    case DataType::money:
      return exactly(0, 8, true);
    case DataType::flt4:
      return exactly(0, 4, size == 4 && float_ok(rule, data, 4));
    case DataType::flt8:
      return exactly(0, 8, size == 8 && float_ok(rule, data, 8));
    case DataType::datetim4:
      return exactly(0, 4, size == 4 && datetime_ok(rule, data, 4));
    case DataType::datetime:
      return exactly(0, 8, size == 8 && datetime_ok(rule, data, 8));
    case DataType::guid:
      return exactly(0, 16, true);
    case DataType::date:
      return exactly(0, 3, size == 3 && date_ok(rule, data, 3));
    case DataType::time:
    case DataType::datetime2:
    case DataType::datetimeoffset: {
      if (properties != 1 || *property > 7) return ValueFault::length;
      rule.scale = *property;
      const std::size_t extra = base.id == DataType::time ? 0 : base.id == DataType::datetime2 ? 3 : 5;
      const std::size_t width = time_bytes(rule.scale) + extra;
      if (size != width) return ValueFault::length;
      const BytesOk ok = extra == 0 ? time_ok : extra == 3 ? datetime2_ok : datetimeoffset_ok;
      return ok(rule, data, size) ? ValueFault::none : ValueFault::invalid;
    }
    case DataType::decimaln:
    case DataType::numericn:
      if (properties != 2 || property[0] == 0 || property[0] > 38 || property[1] > property[0])
        return ValueFault::length;
      rule.precision = property[0];
      if (size < 2 || size > 17) return ValueFault::length;
      return decimal_ok(rule, data, size) ? ValueFault::none : ValueFault::invalid;
    case DataType::bigbinary:
    case DataType::bigvarbinary:
      return properties == 2 && size <= load_le<std::uint16_t>(property) ? ValueFault::none : ValueFault::length;
    case DataType::bigchar:
    case DataType::bigvarchar:
    case DataType::nchar:
    case DataType::nvarchar:
      if (properties != 7 || size > load_le<std::uint16_t>(property + 5)) return ValueFault::length;
      if ((base.id == DataType::nchar || base.id == DataType::nvarchar) && size % 2 != 0) return ValueFault::odd_length;
      return ValueFault::none;
    default:
      return ValueFault::invalid;
  }
}

ValueEnd check_variant(const ValueRule&, const Byte* at, const Byte* end, ValueWalk&) {
  if (left(at, end) < 4) return more(at);
  const std::size_t n = load_le<std::uint32_t>(at);
  if (n == 0) return null_value(at + 4);
  if (n > variant_bytes_max) return bad(at, ValueFault::length);
  if (left(at, end) < n + 4) return more(at);
  const ValueFault fault = variant_fault(at + 4, n);
  return fault == ValueFault::none ? good(at + 4 + n) : bad(at, fault);
}

ValueEnd check_null_type(const ValueRule&, const Byte* at, const Byte*, ValueWalk&) { return null_value(at); }

ValueCheck choose_check(const TypeInfo& type) {
  switch (type.id) {
    case DataType::null:
      return check_null_type;
    case DataType::int1:
      return check_fixed<1, any>;
    case DataType::bit:
      return check_fixed<1, bit_ok>;
    case DataType::int2:
      return check_fixed<2, any>;
    case DataType::int4:
    case DataType::money4:
      return check_fixed<4, any>;
    case DataType::int8:
    case DataType::money:
      return check_fixed<8, any>;
    case DataType::flt4:
      return check_fixed<4, float_ok>;
    case DataType::flt8:
      return check_fixed<8, float_ok>;
    case DataType::datetim4:
      return check_fixed<4, datetime_ok>;
    case DataType::datetime:
      return check_fixed<8, datetime_ok>;
    case DataType::intn:
    case DataType::moneyn:
    case DataType::guid:
      return check_nullable<any>;
    case DataType::bitn:
      return check_nullable<bit_ok>;
    case DataType::fltn:
      return check_nullable<float_ok>;
    case DataType::datetimn:
      return check_nullable<datetime_ok>;
    case DataType::date:
      return check_nullable<date_ok>;
    case DataType::time:
      return check_nullable<time_ok>;
    case DataType::datetime2:
      return check_nullable<datetime2_ok>;
    case DataType::datetimeoffset:
      return check_nullable<datetimeoffset_ok>;
    case DataType::decimaln:
    case DataType::numericn:
    case DataType::decimal_legacy:
    case DataType::numeric_legacy:
      return check_decimal;
    case DataType::char_legacy:
    case DataType::varchar_legacy:
    case DataType::binary_legacy:
    case DataType::varbinary_legacy:
      return check_short;
    case DataType::bigvarchar:
    case DataType::bigvarbinary:
      return type.plp() ? check_plp<false> : check_counted<false>;
    case DataType::nvarchar:
      return type.plp() ? check_plp<true> : check_counted<true>;
    case DataType::bigchar:
    case DataType::bigbinary:
    case DataType::vector:
      return check_counted<false>;
    case DataType::nchar:
      return check_counted<true>;
    case DataType::xml:
    case DataType::udt:
    case DataType::json:
      return check_plp<false>;
    case DataType::text:
    case DataType::image:
      return check_text<false>;
    case DataType::ntext:
      return check_text<true>;
    case DataType::sql_variant:
      return check_variant;
    case DataType::tvp:
      return nullptr;
  }
  return nullptr;
}

std::uint32_t value_width(const TypeInfo& type) {
  switch (type.id) {
    case DataType::bitn:
      return 1;
    case DataType::guid:
      return 16;
    case DataType::date:
      return 3;
    case DataType::time:
      return static_cast<std::uint32_t>(time_bytes(type.scale));
    case DataType::datetime2:
      return static_cast<std::uint32_t>(time_bytes(type.scale)) + 3;
    case DataType::datetimeoffset:
      return static_cast<std::uint32_t>(time_bytes(type.scale)) + 5;
    case DataType::decimaln:
    case DataType::numericn:
    case DataType::decimal_legacy:
    case DataType::numeric_legacy:
      return type.precision <= 9 ? 5 : type.precision <= 19 ? 9 : type.precision <= 28 ? 13 : 17;
    default:
      return type.max_length;
  }
}

}  // namespace

ValueRule make_value_rule(const TypeInfo& type) {
  const bool sane = type.precision <= 38 && (type.scale <= 7 || type.precision != 0);
  return {.check = sane ? choose_check(type) : nullptr,
          .id = type.id,
          .max_length = value_width(type),
          .precision = type.precision,
          .scale = type.scale,
          .plp = type.plp()};
}

}  // namespace rowferry::tds::server
