// What a source's column becomes in a created table: docs/types.md, the tables with SQL Server on the right.
#include <fmt/format.h>

#include "base/error.hpp"
#include "mssql/sql_type.hpp"

namespace rowferry::mssql {

namespace {

using rows::LengthUnit;
using rows::Quantum;
using rows::Type;
using rows::TypeId;

constexpr std::uint32_t nvarchar_max = 4000;
constexpr std::uint32_t varchar_max = 8000;
constexpr std::uint32_t key_nvarchar = 450;  // 900 bytes, the limit of a clustered key
constexpr std::uint32_t key_varbinary = 900;

SqlType plain(std::string_view name) { return {.name = std::string(name)}; }
SqlType sized(std::string_view name, std::uint32_t length) { return {.name = std::string(name), .length = length}; }
SqlType decimal(int precision, int scale) { return {.name = "decimal", .precision = precision, .scale = scale}; }
SqlType scaled(std::string_view name, int scale) { return {.name = std::string(name), .scale = scale}; }

SqlType nvarchar(std::uint64_t units, bool in_key) {
  if (units != 0 && units <= nvarchar_max) return sized("nvarchar", static_cast<std::uint32_t>(units));
  return sized("nvarchar", in_key ? key_nvarchar : length_unlimited);
}

// Text that is ASCII by its nature: no reason to store it in two bytes.
SqlType varchar(std::uint64_t bytes, bool in_key) {
  if (bytes != 0 && bytes <= varchar_max) return sized("varchar", static_cast<std::uint32_t>(bytes));
  return sized("varchar", in_key ? key_varbinary : length_unlimited);
}

// Types of PostgreSQL whose printed form has a known width and alphabet.
bool printed_type(const system::SourceColumn& column, bool in_key, SqlType& out) {
  const std::string& native = column.native;
  if (native.ends_with("[]")) return false;
  if (native.starts_with("time") && !native.starts_with("timestamp") &&
      (native.find("with time zone") != std::string::npos || native.starts_with("timetz"))) {
    out = varchar(24, in_key);
  } else if (native.starts_with("interval")) {
    out = varchar(80, in_key);
  } else if (native.starts_with("bit") || native.starts_with("varbit")) {
    out = varchar(column.text_width.value_or(column.type.length), in_key);
  } else if (native == "regclass") {
    out = nvarchar(256, in_key);
  } else {
    return false;
  }
  return true;
}

SqlType natural_text(const system::SourceColumn& column, bool in_key) {
  SqlType out;
  if (printed_type(column, in_key, out)) return out;
  const Type& type = column.type;
  if (type.length == 0) return nvarchar(column.text_width.value_or(0), in_key);
  if (type.padded) {
    // nchar(n) as wide as char(n): values with characters beyond the BMP may be too long, and are a loss then.
    return type.length <= nvarchar_max ? sized("nchar", type.length) : nvarchar(0, in_key);
  }
  const std::uint64_t units_each = type.length_unit == LengthUnit::code_points ? 2 : 1;
  return nvarchar(type.length * units_each, in_key);
}

SqlType natural_binary(const Type& type, bool in_key) {
  if (type.length == 0 || type.length > varchar_max)
    return sized("varbinary", in_key ? key_varbinary : length_unlimited);
  return sized(type.padded ? "binary" : "varbinary", type.length);
}

SqlType natural_timestamp(const Type& type) {
  if (type.quantum == Quantum::tick_300) return plain("datetime");
  if (type.quantum == Quantum::minute) return plain("smalldatetime");
  return scaled(type.zoned ? "datetimeoffset" : "datetime2", type.digits);
}

SqlType natural(const system::SourceColumn& column, bool in_key) {
  const Type& type = column.type;
  switch (type.id) {
    case TypeId::null:
      return nvarchar(1, in_key);
    case TypeId::boolean:
      return plain("bit");
    case TypeId::uint8:
      return plain("tinyint");
    case TypeId::int8:
    case TypeId::int16:
      return plain("smallint");
    case TypeId::uint16:
    case TypeId::int32:
      return plain("int");
    case TypeId::uint32:
    case TypeId::int64:
      return plain("bigint");
    case TypeId::uint64:
      return decimal(20, 0);
    case TypeId::float32:
      return plain("real");
    case TypeId::float64:
      return plain("float");
    case TypeId::decimal:
      return column.any_decimal ? decimal(38, 18) : decimal(type.precision, type.scale);
    case TypeId::date:
      return plain("date");
    case TypeId::time:
      return scaled("time", type.digits);
    case TypeId::timestamp:
      return natural_timestamp(type);
    case TypeId::uuid:
      return plain("uniqueidentifier");
    case TypeId::text:
    case TypeId::json:
      return natural_text(column, in_key);
    case TypeId::binary:
      return natural_binary(type, in_key);
  }
  throw Error(Category::internal, "unknown_type", "a logical type without a SQL Server type");
}

}  // namespace

system::NaturalType natural_type(const system::SourceColumn& column, std::string_view wanted_type, bool in_key,
                                 std::uint16_t default_code_page) {
  const SqlType type = wanted_type.empty() ? natural(column, in_key) : parse_type(wanted_type);
  system::NaturalType out;
  out.native = type_ddl(type);
  out.type = logical_type(type, default_code_page);
  out.compared = type.name != "xml" && type.name != "json";
  const bool from_text = column.type.id == TypeId::text || column.type.id == TypeId::json;
  out.read_as_text = !from_text && (out.type.id == TypeId::text || out.type.id == TypeId::json);
  if (column.any_decimal && wanted_type.empty()) {
    out.notices.push_back(
        {"numeric_without_precision",
         fmt::format("{} becomes decimal(38,18): a value with more digits on either side of the point "
                     "is a loss; \"scan_numeric\": true finds the scale that is used, \"type\" names one",
                     column.native),
         column.name});
  }
  return out;
}

}  // namespace rowferry::mssql
