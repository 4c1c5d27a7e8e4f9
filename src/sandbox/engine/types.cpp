#include "sandbox/engine/types.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/bytes.hpp"

namespace rowferry::sandbox::engine {

namespace {

using tds::DataType;

struct KindFacts {
  Kind kind;
  std::string_view name;
  int system_type_id;
  DataType nullable;  // wire id that can say NULL
  DataType fixed;     // wire id of NOT NULL columns; the same where there is none
  std::uint8_t size;  // bytes of a value, 0 where it varies
  std::uint8_t precision;
  std::uint8_t scale;
};

constexpr std::array facts{
    KindFacts{Kind::binary, "binary", 173, DataType::bigbinary, DataType::bigbinary, 0, 0, 0},
    KindFacts{Kind::varbinary, "varbinary", 165, DataType::bigvarbinary, DataType::bigvarbinary, 0, 0, 0},
    KindFacts{Kind::character, "char", 175, DataType::bigchar, DataType::bigchar, 0, 0, 0},
    KindFacts{Kind::varchar, "varchar", 167, DataType::bigvarchar, DataType::bigvarchar, 0, 0, 0},
    KindFacts{Kind::nchar, "nchar", 239, DataType::nchar, DataType::nchar, 0, 0, 0},
    KindFacts{Kind::nvarchar, "nvarchar", 231, DataType::nvarchar, DataType::nvarchar, 0, 0, 0},
    KindFacts{Kind::guid, "uniqueidentifier", 36, DataType::guid, DataType::guid, 16, 0, 0},
    KindFacts{Kind::rowversion, "timestamp", 189, DataType::bigbinary, DataType::bigbinary, 8, 0, 0},
    KindFacts{Kind::image, "image", 34, DataType::image, DataType::image, 16, 0, 0},
    KindFacts{Kind::text, "text", 35, DataType::text, DataType::text, 16, 0, 0},
    KindFacts{Kind::ntext, "ntext", 99, DataType::ntext, DataType::ntext, 16, 0, 0},
    KindFacts{Kind::bit, "bit", 104, DataType::bitn, DataType::bit, 1, 1, 0},
    KindFacts{Kind::tinyint, "tinyint", 48, DataType::intn, DataType::int1, 1, 3, 0},
    KindFacts{Kind::smallint, "smallint", 52, DataType::intn, DataType::int2, 2, 5, 0},
    KindFacts{Kind::integer, "int", 56, DataType::intn, DataType::int4, 4, 10, 0},
    KindFacts{Kind::bigint, "bigint", 127, DataType::intn, DataType::int8, 8, 19, 0},
    KindFacts{Kind::smallmoney, "smallmoney", 122, DataType::moneyn, DataType::money4, 4, 10, 4},
    KindFacts{Kind::money, "money", 60, DataType::moneyn, DataType::money, 8, 19, 4},
    KindFacts{Kind::decimal, "decimal", 106, DataType::decimaln, DataType::decimaln, 0, 0, 0},
    KindFacts{Kind::numeric, "numeric", 108, DataType::numericn, DataType::numericn, 0, 0, 0},
    KindFacts{Kind::real, "real", 59, DataType::fltn, DataType::flt4, 4, 24, 0},
    KindFacts{Kind::float8, "float", 62, DataType::fltn, DataType::flt8, 8, 53, 0},
    KindFacts{Kind::time, "time", 41, DataType::time, DataType::time, 0, 0, 0},
    KindFacts{Kind::date, "date", 40, DataType::date, DataType::date, 3, 10, 0},
    KindFacts{Kind::smalldatetime, "smalldatetime", 58, DataType::datetimn, DataType::datetim4, 4, 16, 0},
    KindFacts{Kind::datetime, "datetime", 61, DataType::datetimn, DataType::datetime, 8, 23, 3},
    KindFacts{Kind::datetime2, "datetime2", 42, DataType::datetime2, DataType::datetime2, 0, 0, 0},
    KindFacts{Kind::datetimeoffset, "datetimeoffset", 43, DataType::datetimeoffset, DataType::datetimeoffset, 0, 0, 0},
    KindFacts{Kind::xml, "xml", 241, DataType::xml, DataType::xml, 0, 0, 0},
    KindFacts{Kind::json, "json", 244, DataType::json, DataType::json, 0, 0, 0},
    KindFacts{Kind::vector, "vector", 255, DataType::vector, DataType::vector, 0, 0, 0},
    KindFacts{Kind::udt, "udt", 240, DataType::udt, DataType::udt, 0, 0, 0},
    KindFacts{Kind::variant, "sql_variant", 98, DataType::sql_variant, DataType::sql_variant, 0, 0, 0},
};

const KindFacts& facts_of(Kind kind) { return facts[static_cast<std::size_t>(kind)]; }

constexpr std::uint32_t text_max = 0x7FFFFFFF;
constexpr std::uint32_t variant_max = 8009;

std::uint32_t wire_length(const Type& type) {
  switch (type.kind) {
    case Kind::nchar:
    case Kind::nvarchar:
      return type.length == max_length ? tds::max_length_plp : static_cast<std::uint32_t>(type.length) * 2U;
    case Kind::character:
    case Kind::varchar:
    case Kind::binary:
    case Kind::varbinary:
    case Kind::vector:
      return type.length == max_length ? tds::max_length_plp : static_cast<std::uint32_t>(type.length);
    case Kind::text:
    case Kind::image:
      return text_max;
    case Kind::ntext:
      return text_max - 1;
    case Kind::decimal:
    case Kind::numeric:
      return static_cast<std::uint32_t>(decimal_bytes(type.precision));
    case Kind::variant:
      return variant_max;
    case Kind::xml:
    case Kind::json:
      return tds::max_length_plp;
    default:
      return facts_of(type.kind).size;
  }
}

}  // namespace

Type make_type(Kind kind, std::int32_t length, std::uint8_t precision, std::uint8_t scale) {
  Type type;
  type.kind = kind;
  type.length = length;
  type.precision = precision;
  type.scale = scale;
  return type;
}

Type decimal_type(int precision, int scale) {
  return make_type(Kind::decimal, 0, static_cast<std::uint8_t>(precision), static_cast<std::uint8_t>(scale));
}

Type nvarchar_type(std::int32_t length, const tds::Collation& collation) {
  Type type = make_type(Kind::nvarchar, length);
  type.collation = collation;
  return type;
}

Type varchar_type(std::int32_t length, const tds::Collation& collation) {
  Type type = make_type(Kind::varchar, length);
  type.collation = collation;
  return type;
}

tds::TypeInfo stored_form(const Type& type) {
  tds::TypeInfo info;
  info.id = facts_of(type.kind).nullable;
  info.max_length = wire_length(type);
  if (is_decimal(type.kind)) info.precision = type.precision;
  if (is_decimal(type.kind) || type.kind == Kind::time || type.kind == Kind::datetime2 ||
      type.kind == Kind::datetimeoffset)
    info.scale = type.scale;
  if (type.kind == Kind::vector) info.dimension_type = type.scale;
  if (is_string(type.kind) && type.kind != Kind::xml && type.kind != Kind::json) info.collation = type.collation;
  if (type.kind == Kind::time) info.max_length = static_cast<std::uint32_t>(time_bytes(type.scale));
  if (type.kind == Kind::datetime2) info.max_length = static_cast<std::uint32_t>(time_bytes(type.scale)) + 3;
  if (type.kind == Kind::datetimeoffset) info.max_length = static_cast<std::uint32_t>(time_bytes(type.scale)) + 5;
  return info;
}

tds::TypeInfo sent_form(const Type& type, bool nullable) {
  tds::TypeInfo info = stored_form(type);
  if (!nullable) info.id = facts_of(type.kind).fixed;
  return info;
}

namespace {

Type sized(Kind kind, const tds::TypeInfo& info, std::uint32_t unit) {
  Type type = make_type(kind);
  type.collation = info.collation;
  type.length = info.max_length == tds::max_length_plp ? max_length : static_cast<std::int32_t>(info.max_length / unit);
  return type;
}

Kind integer_of(std::uint32_t size) {
  return size == 1 ? Kind::tinyint : size == 2 ? Kind::smallint : size == 4 ? Kind::integer : Kind::bigint;
}

}  // namespace

std::optional<Type> from_wire(const tds::TypeInfo& info) {
  switch (info.id) {
    case DataType::null:
      return int_type();
    case DataType::int1:
      return make_type(Kind::tinyint);
    case DataType::int2:
      return make_type(Kind::smallint);
    case DataType::int4:
      return make_type(Kind::integer);
    case DataType::int8:
      return make_type(Kind::bigint);
    case DataType::intn:
      return make_type(integer_of(info.max_length));
    case DataType::bit:
    case DataType::bitn:
      return bit_type();
    case DataType::flt4:
      return make_type(Kind::real);
    case DataType::flt8:
      return make_type(Kind::float8);
    case DataType::fltn:
      return make_type(info.max_length == 4 ? Kind::real : Kind::float8);
    case DataType::money:
      return make_type(Kind::money);
    case DataType::money4:
      return make_type(Kind::smallmoney);
    case DataType::moneyn:
      return make_type(info.max_length == 4 ? Kind::smallmoney : Kind::money);
    case DataType::datetime:
      return make_type(Kind::datetime);
    case DataType::datetim4:
      return make_type(Kind::smalldatetime);
    case DataType::datetimn:
      return make_type(info.max_length == 4 ? Kind::smalldatetime : Kind::datetime);
    case DataType::guid:
      return make_type(Kind::guid);
    case DataType::date:
      return make_type(Kind::date);
    case DataType::time:
      return make_type(Kind::time, 0, 0, info.scale);
    case DataType::datetime2:
      return make_type(Kind::datetime2, 0, 0, info.scale);
    case DataType::datetimeoffset:
      return make_type(Kind::datetimeoffset, 0, 0, info.scale);
    case DataType::decimaln:
      return make_type(Kind::decimal, 0, info.precision, info.scale);
    case DataType::numericn:
      return make_type(Kind::numeric, 0, info.precision, info.scale);
    case DataType::bigchar:
      return sized(Kind::character, info, 1);
    case DataType::bigvarchar:
      return sized(Kind::varchar, info, 1);
    case DataType::nchar:
      return sized(Kind::nchar, info, 2);
    case DataType::nvarchar:
      return sized(Kind::nvarchar, info, 2);
    case DataType::bigbinary:
      return sized(Kind::binary, info, 1);
    case DataType::bigvarbinary:
      return sized(Kind::varbinary, info, 1);
    case DataType::text:
    case DataType::ntext: {
      Type type = make_type(info.id == DataType::text ? Kind::text : Kind::ntext);
      type.collation = info.collation;
      return type;
    }
    case DataType::image:
      return make_type(Kind::image);
    case DataType::xml:
      return make_type(Kind::xml);
    case DataType::json:
      return make_type(Kind::json);
    case DataType::vector:
      return make_type(Kind::vector, static_cast<std::int32_t>(info.max_length), 0, info.dimension_type);
    case DataType::udt:
      return make_type(Kind::udt);
    case DataType::sql_variant:
      return make_type(Kind::variant);
    default:
      return std::nullopt;
  }
}

std::string type_text(const Type& type) {
  const std::string_view name = type_name(type.kind);
  switch (type.kind) {
    case Kind::character:
    case Kind::varchar:
    case Kind::nchar:
    case Kind::nvarchar:
    case Kind::binary:
    case Kind::varbinary:
      return type.length == max_length ? fmt::format("{}(max)", name) : fmt::format("{}({})", name, type.length);
    case Kind::decimal:
    case Kind::numeric:
      return fmt::format("{}({},{})", name, type.precision, type.scale);
    case Kind::time:
    case Kind::datetime2:
    case Kind::datetimeoffset:
      return fmt::format("{}({})", name, type.scale);
    case Kind::vector:
      return fmt::format("vector({})", (type.length - 8) / 4);
    default:
      return std::string(name);
  }
}

std::string_view type_name(Kind kind) { return facts_of(kind).name; }

std::optional<Kind> kind_by_name(std::string_view name) {
  for (const KindFacts& f : facts)
    if (f.name == name) return f.kind == Kind::udt ? std::nullopt : std::optional(f.kind);
  constexpr std::array<std::pair<std::string_view, Kind>, 10> synonyms{{{"integer", Kind::integer},
                                                                        {"dec", Kind::decimal},
                                                                        {"rowversion", Kind::rowversion},
                                                                        {"character", Kind::character},
                                                                        {"sysname", Kind::nvarchar},
                                                                        {"bool", Kind::bit},
                                                                        {"hierarchyid", Kind::udt},
                                                                        {"geography", Kind::udt},
                                                                        {"geometry", Kind::udt},
                                                                        {"double", Kind::float8}}};
  const auto* found = std::find_if(synonyms.begin(), synonyms.end(), [&](const auto& s) { return s.first == name; });
  if (found == synonyms.end() || name == "bool") return std::nullopt;
  return found->second;
}

int system_type_id(Kind kind) { return facts_of(kind).system_type_id; }

std::int16_t catalogue_length(const Type& type) {
  switch (type.kind) {
    case Kind::text:
    case Kind::ntext:
    case Kind::image:
      return 16;
    case Kind::xml:
    case Kind::json:
    case Kind::udt:
      return -1;
    case Kind::variant:
      return 8016;
    case Kind::time:
      return static_cast<std::int16_t>(time_bytes(type.scale));
    case Kind::datetime2:
      return static_cast<std::int16_t>(time_bytes(type.scale) + 3);
    case Kind::datetimeoffset:
      return static_cast<std::int16_t>(time_bytes(type.scale) + 5);
    default: {
      const std::uint32_t length = wire_length(type);
      return length == tds::max_length_plp ? std::int16_t{-1} : static_cast<std::int16_t>(length);
    }
  }
}

std::uint8_t catalogue_precision(const Type& type) {
  if (is_decimal(type.kind)) return type.precision;
  const int fraction = type.scale == 0 ? 0 : type.scale + 1;
  if (type.kind == Kind::time) return static_cast<std::uint8_t>(8 + fraction);
  if (type.kind == Kind::datetime2) return static_cast<std::uint8_t>(19 + fraction);
  if (type.kind == Kind::datetimeoffset) return static_cast<std::uint8_t>(26 + fraction);
  return facts_of(type.kind).precision;
}

std::uint8_t catalogue_scale(const Type& type) {
  const bool own = is_decimal(type.kind) || type.kind == Kind::time || type.kind == Kind::datetime2 ||
                   type.kind == Kind::datetimeoffset;
  return own ? type.scale : facts_of(type.kind).scale;
}

Framing framing_of(const tds::TypeInfo& info) {
  if (info.plp()) return Framing::plp;
  switch (info.id) {
    case DataType::int1:
    case DataType::bit:
    case DataType::int2:
    case DataType::int4:
    case DataType::datetim4:
    case DataType::flt4:
    case DataType::money:
    case DataType::datetime:
    case DataType::flt8:
    case DataType::money4:
    case DataType::int8:
    case DataType::null:
      return Framing::fixed;
    case DataType::bigvarbinary:
    case DataType::bigvarchar:
    case DataType::bigbinary:
    case DataType::bigchar:
    case DataType::nvarchar:
    case DataType::nchar:
    case DataType::vector:
      return Framing::length16;
    case DataType::sql_variant:
      return Framing::length32;
    case DataType::text:
    case DataType::image:
    case DataType::ntext:
      return Framing::text_pointer;
    default:
      return Framing::length8;
  }
}

std::size_t fixed_size(tds::DataType id) {
  for (const KindFacts& f : facts)
    if (f.fixed == id && f.nullable != f.fixed) return f.size;
  return 0;
}

namespace {

std::size_t plp_size(const std::uint8_t* at) {
  if (load_le<std::uint64_t>(at) == ~std::uint64_t{0}) return 8;
  std::size_t size = 8;
  for (;;) {
    const auto chunk = load_le<std::uint32_t>(at + size);
    size += 4 + chunk;
    if (chunk == 0) return size;
  }
}

}  // namespace

std::size_t value_size(const tds::TypeInfo& info, Framing framing, const std::uint8_t* at) {
  switch (framing) {
    case Framing::fixed:
      return fixed_size(info.id);
    case Framing::length8:
      return 1U + *at;
    case Framing::length16: {
      const auto length = load_le<std::uint16_t>(at);
      return length == 0xFFFF ? 2U : 2U + length;
    }
    case Framing::length32:
      return 4U + load_le<std::uint32_t>(at);
    case Framing::plp:
      return plp_size(at);
    case Framing::text_pointer:
      return *at == 0 ? 1U : 1U + *at + 8U + 4U + load_le<std::uint32_t>(at + 1 + *at + 8);
  }
  return 0;
}

bool value_is_null(Framing framing, const std::uint8_t* at) {
  switch (framing) {
    case Framing::fixed:
      return false;
    case Framing::length8:
    case Framing::text_pointer:
      return *at == 0;
    case Framing::length16:
      return load_le<std::uint16_t>(at) == 0xFFFF;
    case Framing::length32:
      return load_le<std::uint32_t>(at) == 0;
    case Framing::plp:
      return load_le<std::uint64_t>(at) == ~std::uint64_t{0};
  }
  return false;
}

}  // namespace rowferry::sandbox::engine
