#include "mssql/select.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "mssql/dialect.hpp"
#include "rows/format.hpp"
#include "tds/wire/type_info.hpp"

namespace rowferry::mssql {

namespace {

using tds::DataType;

// The offset as it is printed at the end of style 121: "+05:30".
std::string offset_expression(const std::string& name) {
  return fmt::format("RIGHT(CONVERT(varchar(34), {}, 121), 6)", name);
}

// The base type with its arguments, as DDL writes it: "decimal(10,4)", "nvarchar(20)".
std::string base_type_expression(const std::string& name) {
  const auto property = [&](std::string_view which, std::string_view as) {
    return fmt::format("CAST(SQL_VARIANT_PROPERTY({}, '{}') AS {})", name, which, as);
  };
  const std::string base = property("BaseType", "nvarchar(128)");
  const std::string scale = property("Scale", "nvarchar(12)");
  return fmt::format(
      "{0} + CASE WHEN {0} IN (N'decimal', N'numeric') THEN N'(' + {1} + N',' + {2} + N')' WHEN {0} IN (N'time', "
      "N'datetime2', N'datetimeoffset') THEN N'(' + {2} + N')' WHEN {0} IN (N'char', N'varchar', N'binary', "
      "N'varbinary') THEN N'(' + {3} + N')' WHEN {0} IN (N'nchar', N'nvarchar') THEN N'(' + CAST({4} / 2 AS "
      "nvarchar(12)) + N')' ELSE N'' END",
      base, property("Precision", "nvarchar(12)"), scale, property("MaxLength", "nvarchar(12)"),
      property("MaxLength", "int"));
}

// EWKB from the server's WKB (ISO, little-endian, Z and M in the type's number): the SRID flag is bit 29 of the type,
// whose highest byte is zero otherwise; the SRID follows the type.
std::string ewkb_expression(const std::string& name) {
  const std::string srid = fmt::format("CAST({}.STSrid AS binary(4))", name);
  return fmt::format(
      "CAST(SUBSTRING({0}.AsBinaryZM(), 1, 4) + 0x20 + SUBSTRING({1}, 4, 1) + SUBSTRING({1}, 3, 1) + SUBSTRING({1}, 2, "
      "1) + SUBSTRING({1}, 1, 1) + SUBSTRING({0}.AsBinaryZM(), 6, DATALENGTH({0}.AsBinaryZM())) AS varbinary(max))",
      name, srid);
}

// As the server prints it, without loss and whatever the session's language.
std::string text_expression(const OriginColumn& column, const std::string& name) {
  const auto converted = [&](int style) { return fmt::format("CONVERT(varchar(48), {}, {})", name, style); };
  switch (column.meta.type.id) {
    case DataType::flt4:
    case DataType::flt8:
    case DataType::fltn:
      return converted(3);
    case DataType::money:
    case DataType::money4:
    case DataType::moneyn:
      return converted(2);
    case DataType::date:
    case DataType::time:
    case DataType::datetime2:
    case DataType::datetimeoffset:
    case DataType::datetime:
    case DataType::datetim4:
    case DataType::datetimn:
      return converted(121);
    case DataType::bigbinary:
    case DataType::bigvarbinary:
    case DataType::binary_legacy:
    case DataType::varbinary_legacy:
      return fmt::format("CONVERT(varchar(max), {}, 1)", name);
    case DataType::image:
      return fmt::format("CONVERT(varchar(max), CAST({} AS varbinary(max)), 1)", name);
    default:
      return fmt::format("CAST({} AS varchar(48))", name);
  }
}

std::string as(const std::string& expression, const std::string& name) { return expression + " AS " + name; }

std::string real_literal(double value, bool single) {
  // All digits of the double that holds the real: fewer, and the largest real is read as a larger float, which
  // overflows.
  return fmt::format("CAST({:.16e} AS {})", value, single ? "real" : "float(53)");
}

bool is_single(const tds::TypeInfo& type) {
  return type.id == DataType::flt4 || (type.id == DataType::fltn && type.max_length == 4);
}

// "2024-02-29 12:34:56.789" becomes "2024-02-29T12:34:56.789": the one form that no setting reads otherwise.
std::string with_t(std::string text) {
  const std::size_t blank = text.find(' ');
  if (blank != std::string::npos) text[blank] = 'T';
  return text;
}

std::optional<std::string> text_literal(const OriginColumn& column, const std::string& value) {
  if (value.find('\0') != std::string::npos) return std::nullopt;
  const tds::TypeInfo& type = column.meta.type;
  const bool wide = type.id == DataType::nvarchar || type.id == DataType::nchar;
  // A server may send a UTF-8 column as nvarchar: the catalogue's collation says what it is.
  const bool narrow_type = column.facts.native.starts_with("varchar") || column.facts.native.starts_with("char");
  if (wide || !narrow_type || column.collation.empty()) return literal(value);
  return fmt::format("CAST({} COLLATE {} AS {})", literal(value), column.collation, column.facts.native);
}

}  // namespace

std::uint32_t printed_width(const tds::TypeInfo& type) {
  switch (type.id) {
    case DataType::bit:
    case DataType::bitn:
      return 1;
    case DataType::int1:
    case DataType::int2:
    case DataType::int4:
    case DataType::int8:
    case DataType::intn:
      return 20;
    case DataType::flt4:
    case DataType::flt8:
    case DataType::fltn:
      return 25;
    case DataType::decimaln:
    case DataType::numericn:
    case DataType::decimal_legacy:
    case DataType::numeric_legacy:
      return 41;
    case DataType::money:
    case DataType::money4:
    case DataType::moneyn:
      return 21;
    case DataType::date:
      return 10;
    case DataType::time:
      return 16;
    case DataType::datetime:
    case DataType::datetim4:
    case DataType::datetimn:
      return 23;
    case DataType::datetime2:
      return 27;
    case DataType::datetimeoffset:
      return 34;
    case DataType::bigbinary:
    case DataType::bigvarbinary:
    case DataType::binary_legacy:
    case DataType::varbinary_legacy:
    case DataType::image:
      return printed_unlimited;
    default:
      return 0;
  }
}

std::string column_expression(const OriginColumn& column, const system::ColumnPlan& plan) {
  const std::string name = quoted(column.facts.name);
  const auto bad = [&](std::string_view why) {
    return Error(Category::internal, "bad_plan", fmt::format("column \"{}\": {}", column.facts.name, why))
        .with_column(column.facts.name);
  };
  switch (plan.part) {
    case system::ColumnPart::offset:
      if (!column.facts.has_offset) throw bad("it has no offset");
      return as(offset_expression(name), name);
    case system::ColumnPart::base_type:
      if (!column.facts.variant) throw bad("it is no sql_variant");
      return as(base_type_expression(name), name);
    case system::ColumnPart::value:
      break;
  }
  const bool bytes = plan.read_type.id == rows::TypeId::binary;
  switch (column.reads) {
    case Reads::encrypted:
      throw bad(column.why_not);
    case Reads::spatial:
      return as(bytes ? ewkb_expression(name) : name + ".ToString()", name);
    case Reads::clr:
      return as(bytes ? fmt::format("CAST({} AS varbinary(max))", name) : name + ".ToString()", name);
    case Reads::itself:
      break;
  }
  if (plan.read_as_json) throw bad("it cannot be read as JSON");
  return plan.read_as_text && column.facts.can_read_as_text ? as(text_expression(column, name), name) : name;
}

Order order_of(const OriginColumn& column) {
  if (column.reads != Reads::itself || column.facts.native == "json" || column.facts.native == "vector") {
    return Order::none;
  }
  const tds::TypeInfo& type = column.meta.type;
  if (type.plp()) return Order::none;
  switch (type.id) {
    case DataType::bit:
    case DataType::bitn:
      return Order::bit;
    case DataType::guid:
      return Order::uuid;
    case DataType::flt4:
    case DataType::flt8:
    case DataType::fltn:
      return Order::real;
    case DataType::date:
    case DataType::time:
    case DataType::datetime2:
    case DataType::datetimeoffset:
    case DataType::datetime:
    case DataType::datetim4:
    case DataType::datetimn:
      return Order::temporal;
    case DataType::bigchar:
    case DataType::bigvarchar:
    case DataType::char_legacy:
    case DataType::varchar_legacy:
    case DataType::nchar:
    case DataType::nvarchar:
      return Order::text;
    case DataType::bigbinary:
    case DataType::bigvarbinary:
    case DataType::binary_legacy:
    case DataType::varbinary_legacy:
      return Order::binary;
    case DataType::null:
    case DataType::xml:
    case DataType::udt:
    case DataType::tvp:
    case DataType::json:
    case DataType::vector:
    case DataType::text:
    case DataType::ntext:
    case DataType::image:
    case DataType::sql_variant:
      return Order::none;
    default:
      return Order::number;
  }
}

std::string hex_literal(const std::vector<std::uint8_t>& bytes) {
  std::string out = "0x";
  for (const std::uint8_t byte : bytes) fmt::format_to(std::back_inserter(out), "{:02X}", byte);
  return out;
}

std::optional<std::string> literal_of(const OriginColumn& column, const tds::Value& value) {
  const std::string& native = column.facts.native;
  switch (order_of(column)) {
    case Order::none:
      return std::nullopt;
    case Order::bit:
      return fmt::format("CAST({} AS bit)", value.integer());
    case Order::number:
      return column.facts.type.id == rows::TypeId::decimal ? fmt::format("CAST({} AS {})", value.text(), native)
                                                           : fmt::format("CAST({} AS {})", value.integer(), native);
    case Order::real:
      return real_literal(value.number(), is_single(column.meta.type));
    case Order::temporal:
      return fmt::format("CAST('{}' AS {})", with_t(value.text()), native);
    case Order::uuid:
      return fmt::format("CAST('{}' AS uniqueidentifier)", value.text());
    case Order::binary:
      return hex_literal(value.bytes());
    case Order::text:
      return text_literal(column, value.text());
  }
  return std::nullopt;
}

std::string printed(const OriginColumn& column, const tds::Value& value) {
  switch (order_of(column)) {
    case Order::bit:
      return value.truth() ? "true" : "false";
    case Order::real:
      return is_single(column.meta.type) ? rows::real_text(static_cast<float>(value.number()))
                                         : rows::real_text(value.number());
    case Order::temporal:
      return rows::without_trailing_zeros(value.text());
    case Order::binary:
      return hex_literal(value.bytes());
    case Order::number:
      if (column.facts.type.id != rows::TypeId::decimal) return std::to_string(value.integer());
      return value.text();
    default:
      return value.text();
  }
}

}  // namespace rowferry::mssql
