#include "tds/wire/logical_type.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "tds/wire/collation.hpp"
#include "tds/wire/type_info.hpp"
#include "tds/wire/values.hpp"

namespace rowferry::tds {

namespace {

using rows::LengthUnit;
using rows::Quantum;
using rows::TimeUnit;
using rows::Type;
using rows::TypeId;

constexpr std::int64_t micros_per_day = 86'400'000'000;

rows::TypeId integer_id(std::uint32_t bytes) noexcept {
  return bytes == 1   ? TypeId::uint8  // tinyint has no sign
         : bytes == 2 ? TypeId::int16
         : bytes == 4 ? TypeId::int32
                      : TypeId::int64;
}

TimeUnit unit_of(int scale) noexcept { return scale > 6 ? TimeUnit::hundred_nano : TimeUnit::micro; }
std::int64_t units_per_day(TimeUnit unit) noexcept { return unit == TimeUnit::micro ? micros_per_day : ticks_per_day; }

Type date_type() {
  Type type = Type::of(TypeId::date);
  type.min = date_min_days;
  type.max = date_max_days;
  return type;
}

Type time_type(int scale) {
  Type type = Type::time(unit_of(scale), scale);
  type.min = 0;
  type.max = units_per_day(type.unit) - 1;
  return type;
}

Type timestamp_type(int scale, bool zoned) {
  Type type = Type::timestamp(unit_of(scale), scale, zoned);
  type.min = date_min_days * units_per_day(type.unit);
  type.max = (std::int64_t{date_max_days} + 1) * units_per_day(type.unit) - 1;
  return type;
}

Type datetime_type() {
  Type type = Type::timestamp(TimeUnit::micro, 3, false);
  type.quantum = Quantum::tick_300;
  type.min = datetime_min_days * micros_per_day;
  type.max = (std::int64_t{date_max_days} + 1) * micros_per_day - 3'000;
  return type;
}

Type smalldatetime_type() {
  Type type = Type::timestamp(TimeUnit::micro, 0, false);
  type.quantum = Quantum::minute;
  type.min = -days_1900_to_1970 * micros_per_day;
  type.max = (std::int64_t{smalldatetime_max_days} + 1) * micros_per_day - 60'000'000;
  return type;
}

// money is all of int64 in ten-thousandths, smallmoney all of int32.
Type money_type(bool small) {
  Type type = Type::decimal(small ? 10 : 19, 4);
  if (small) {
    type.min = std::numeric_limits<std::int32_t>::min();
    type.max = std::numeric_limits<std::int32_t>::max();
  }
  return type;
}

Type char_type(const ColumnMeta& column) {
  const std::uint16_t page = code_page_or_throw(column.type.collation);
  if (page == code_page_unicode_only || !text::CodePage::known(page)) {
    throw Error(Category::unsupported, "unknown_collation",
                fmt::format("no code page is known for the collation ({})", describe(column.type.collation)));
  }
  const bool limited = !column.type.plp() && column.type.id != DataType::text;
  Type type = Type::text(limited ? column.type.max_length : 0, LengthUnit::bytes);
  type.code_page = page == code_page_utf8 ? 0 : page;
  type.padded = column.type.id == DataType::bigchar || column.type.id == DataType::char_legacy;
  return type;
}

Type nchar_type(const TypeInfo& info) {
  Type type = Type::text(info.plp() ? 0 : info.max_length / 2, LengthUnit::utf16_units);
  type.padded = info.id == DataType::nchar;
  return type;
}

Type binary_type(const TypeInfo& info) {
  Type type = Type::binary(info.plp() ? 0 : info.max_length);
  type.padded = info.id == DataType::bigbinary || info.id == DataType::binary_legacy;
  return type;
}

Type type_of(const ColumnMeta& column) {
  const TypeInfo& info = column.type;
  switch (info.id) {
    case DataType::null:
      return Type::of(TypeId::null);
    case DataType::int1:
    case DataType::int2:
    case DataType::int4:
    case DataType::int8:
    case DataType::intn:
      return Type::of(integer_id(info.max_length));
    case DataType::bit:
    case DataType::bitn:
      return Type::of(TypeId::boolean);
    case DataType::flt4:
    case DataType::flt8:
    case DataType::fltn:
      return Type::of(info.max_length == 4 ? TypeId::float32 : TypeId::float64);
    case DataType::money:
    case DataType::money4:
    case DataType::moneyn:
      return money_type(info.max_length == 4);
    case DataType::datetime:
    case DataType::datetim4:
    case DataType::datetimn:
      return info.max_length == 4 ? smalldatetime_type() : datetime_type();
    case DataType::guid:
      return Type::of(TypeId::uuid);
    case DataType::date:
      return date_type();
    case DataType::time:
      return time_type(info.scale);
    case DataType::datetime2:
      return timestamp_type(info.scale, false);
    case DataType::datetimeoffset:
      return timestamp_type(info.scale, true);
    case DataType::decimaln:
    case DataType::numericn:
    case DataType::decimal_legacy:
    case DataType::numeric_legacy:
      return Type::decimal(info.precision, info.scale);
    case DataType::bigchar:
    case DataType::bigvarchar:
    case DataType::char_legacy:
    case DataType::varchar_legacy:
    case DataType::text:
      return char_type(column);
    case DataType::nchar:
    case DataType::nvarchar:
      return nchar_type(info);
    case DataType::bigbinary:
    case DataType::bigvarbinary:
    case DataType::binary_legacy:
    case DataType::varbinary_legacy:
      return binary_type(info);
    case DataType::ntext:
    case DataType::xml:
    case DataType::sql_variant:
    case DataType::vector:
      return Type::text();
    case DataType::json:
      return Type::of(TypeId::json);
    case DataType::image:
    case DataType::udt:
      return Type::binary();
    case DataType::tvp:
      break;
  }
  throw Error(Category::unsupported, "type_unsupported",
              fmt::format("columns of type {} cannot be read", type_name(info)));
}

TypeInfo nullable_form(DataType id, std::uint32_t length) {
  TypeInfo type;
  type.id = id;
  type.max_length = length;
  return type;
}

TypeInfo unlimited(DataType id) {
  TypeInfo type;
  type.id = id;
  type.max_length = max_length_plp;
  return type;
}

TypeInfo bulk_type(const TypeInfo& info) {
  switch (info.id) {
    case DataType::int1:
    case DataType::int2:
    case DataType::int4:
    case DataType::int8:
      return nullable_form(DataType::intn, info.max_length);
    case DataType::bit:
      return nullable_form(DataType::bitn, 1);
    case DataType::flt4:
    case DataType::flt8:
      return nullable_form(DataType::fltn, info.max_length);
    case DataType::money:
    case DataType::money4:
      return nullable_form(DataType::moneyn, info.max_length);
    case DataType::datetime:
    case DataType::datetim4:
      return nullable_form(DataType::datetimn, info.max_length);
    case DataType::decimaln:
    case DataType::numericn:
    case DataType::decimal_legacy:
    case DataType::numeric_legacy: {
      TypeInfo type = info;
      const bool numeric = info.id == DataType::numericn || info.id == DataType::numeric_legacy;
      type.id = numeric ? DataType::numericn : DataType::decimaln;
      type.max_length = static_cast<std::uint32_t>(decimal_bytes(info.precision));
      return type;
    }
    case DataType::xml:  // the XML type itself is an error in a bulk load (MS-TDS 2.2.6.1)
    case DataType::json:
    case DataType::vector:
      return unlimited(DataType::nvarchar);
    case DataType::udt:
      return unlimited(DataType::bigvarbinary);
    default:
      return info;
  }
}

}  // namespace

rows::Type logical_type(const ColumnMeta& column) {
  try {
    if ((column.flags & flag_encrypted) != 0) {
      throw Error(Category::unsupported, "type_unsupported", "Always Encrypted columns cannot be read");
    }
    return type_of(column);
  } catch (Error& error) {
    error.with_column(column.name);
    throw;
  }
}

BulkForm bulk_form(const ColumnMeta& of_result) {
  BulkForm form;
  form.meta.flags = of_result.flags & (flag_nullable | flag_updatable | flag_updatable_unknown | flag_identity |
                                       flag_nullability_unknown);
  form.meta.name = of_result.name;
  form.meta.table = of_result.table;
  form.meta.type = bulk_type(of_result.type);
  // A JSON NULL breaks bulk loads of SQL Server 2025 when the column is declared as json: the server converts instead.
  form.declared = of_result.type.id == DataType::xml ? "xml" : type_name(form.meta.type);
  return form;
}

}  // namespace rowferry::tds
