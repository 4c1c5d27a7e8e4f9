#include "tds/wire/type_info.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "tds/wire/collation.hpp"

namespace rowferry::tds {

namespace {

constexpr std::uint16_t no_metadata = 0xFFFF;
constexpr std::uint32_t short_length_max = 8000;
constexpr std::uint8_t scale_max = 7;

template <class Count>
void put_counted(ByteBuffer& to, std::string_view utf8) {
  const std::size_t at = to.size();
  to.put_le<Count>(0);
  text::append_utf16le(to, utf8);
  const std::size_t units = (to.size() - at - sizeof(Count)) / 2;
  if (units > std::numeric_limits<Count>::max()) {
    throw Error(Category::input, "name_too_long",
                fmt::format("a name of {} UTF-16 units is too long for the protocol", units))
        .with_value(utf8);
  }
  store_le(to.data() + at, static_cast<Count>(units));
}

Parsed state(const ByteReader& from) { return from.failed() ? Parsed::need_more : Parsed::ok; }

Parsed bad(std::string& why, std::string text) {
  why = std::move(text);
  return Parsed::malformed;
}

bool is_blob(DataType id) noexcept { return id == DataType::text || id == DataType::ntext || id == DataType::image; }
bool has_collation(DataType id) noexcept {
  switch (id) {
    case DataType::bigchar:
    case DataType::bigvarchar:
    case DataType::nchar:
    case DataType::nvarchar:
    case DataType::text:
    case DataType::ntext:
    case DataType::char_legacy:
    case DataType::varchar_legacy:
      return true;
    default:
      return false;
  }
}

Collation read_collation(ByteReader& from) {
  const ByteView bytes = from.bytes(collation_bytes);
  return bytes.empty() ? Collation{} : load_collation(bytes.data());
}
void put_collation(ByteBuffer& to, const Collation& collation) {
  store_collation(to.extend(collation_bytes), collation);
}

// Is `length` one that an N-form may declare?
bool nullable_length(DataType id, std::uint32_t length) noexcept {
  switch (id) {
    case DataType::intn:
      return length == 1 || length == 2 || length == 4 || length == 8;
    case DataType::bitn:
      return length == 1;
    case DataType::fltn:
    case DataType::moneyn:
    case DataType::datetimn:
      return length == 4 || length == 8;
    case DataType::guid:
      return length == 16;
    default:
      return true;
  }
}

Parsed read_decimal(ByteReader& from, TypeInfo& into, std::string& why) {
  into.max_length = from.u8();
  into.precision = from.u8();
  into.scale = from.u8();
  if (from.failed()) return Parsed::need_more;
  if (into.precision < 1 || into.precision > 38 || into.scale > into.precision || into.max_length < 2 ||
      into.max_length > 17) {
    return bad(why, fmt::format("a decimal of length {}, precision {}, scale {}", into.max_length, into.precision,
                                into.scale));
  }
  return Parsed::ok;
}

Parsed read_short(ByteReader& from, TypeInfo& into, std::string& why) {
  into.max_length = from.u16();
  if (has_collation(into.id)) into.collation = read_collation(from);
  if (into.id == DataType::vector) into.dimension_type = from.u8();
  if (from.failed()) return Parsed::need_more;
  const bool may_be_max = into.plp();
  if (into.max_length > short_length_max && !may_be_max) {
    return bad(why, fmt::format("type 0x{:02X} with a length of {}", static_cast<int>(into.id), into.max_length));
  }
  return Parsed::ok;
}

Parsed read_udt(ByteReader& from, TypeInfo& into, MetaPlace place) {
  into.max_length = place == MetaPlace::parameter ? max_length_plp : from.u16();
  for (int i = 0; i < 3; ++i) into.names.push_back(read_b_varchar(from));
  if (place != MetaPlace::parameter) into.names.push_back(read_us_varchar(from));
  return state(from);
}

Parsed read_xml(ByteReader& from, TypeInfo& into) {
  if (from.u8() != 0) {
    into.names.push_back(read_b_varchar(from));
    into.names.push_back(read_b_varchar(from));
    into.names.push_back(read_us_varchar(from));
  }
  return state(from);
}

void put_xml(ByteBuffer& to, const TypeInfo& type) {
  to.push(type.names.size() == 3 ? 1 : 0);
  if (type.names.size() != 3) return;
  put_b_varchar(to, type.names[0]);
  put_b_varchar(to, type.names[1]);
  put_us_varchar(to, type.names[2]);
}

void put_udt(ByteBuffer& to, const TypeInfo& type, MetaPlace place) {
  if (place != MetaPlace::parameter) to.put_le(static_cast<std::uint16_t>(type.max_length));
  for (std::size_t i = 0; i < 3; ++i) put_b_varchar(to, i < type.names.size() ? type.names[i] : std::string());
  if (place != MetaPlace::parameter) put_us_varchar(to, type.names.size() > 3 ? type.names[3] : std::string());
}

void read_table_name(ByteReader& from, ColumnMeta& into, MetaPlace place) {
  const int parts = place == MetaPlace::result ? from.u8() : 1;
  for (int i = 0; i < parts && !from.failed(); ++i) into.table.push_back(read_us_varchar(from));
  if (place == MetaPlace::bulk && into.table.size() == 1 && into.table[0].empty()) into.table.clear();
}

void put_table_name(ByteBuffer& to, const ColumnMeta& column, MetaPlace place) {
  if (place == MetaPlace::result) {
    to.push(static_cast<std::uint8_t>(column.table.size()));
    for (const std::string& part : column.table) put_us_varchar(to, part);
    return;
  }
  std::string joined;
  for (const std::string& part : column.table) joined += (joined.empty() ? "" : ".") + part;
  put_us_varchar(to, joined);
}

}  // namespace

std::string read_b_varchar(ByteReader& from) { return text::to_utf8(from.bytes(std::size_t{2} * from.u8())); }
std::string read_us_varchar(ByteReader& from) { return text::to_utf8(from.bytes(std::size_t{2} * from.u16())); }
void put_b_varchar(ByteBuffer& to, std::string_view utf8) { put_counted<std::uint8_t>(to, utf8); }
void put_us_varchar(ByteBuffer& to, std::string_view utf8) { put_counted<std::uint16_t>(to, utf8); }

Parsed read_type_info(ByteReader& from, TypeInfo& into, MetaPlace place, std::string& why) {
  into = TypeInfo{};
  into.id = static_cast<DataType>(from.u8());
  if (from.failed()) return Parsed::need_more;
  switch (into.id) {
    case DataType::null:
    case DataType::date:
    case DataType::json:
      return Parsed::ok;
    case DataType::int1:
    case DataType::bit:
    case DataType::int2:
    case DataType::int4:
    case DataType::int8:
    case DataType::flt4:
    case DataType::flt8:
    case DataType::money:
    case DataType::money4:
    case DataType::datetime:
    case DataType::datetim4:
      into.max_length = static_cast<std::uint32_t>(fixed_bytes(into.id));
      return Parsed::ok;
    case DataType::intn:
    case DataType::bitn:
    case DataType::fltn:
    case DataType::moneyn:
    case DataType::datetimn:
    case DataType::guid:
      into.max_length = from.u8();
      if (from.failed()) return Parsed::need_more;
      if (nullable_length(into.id, into.max_length)) return Parsed::ok;
      return bad(why, fmt::format("type 0x{:02X} with a length of {}", static_cast<int>(into.id), into.max_length));
    case DataType::decimaln:
    case DataType::numericn:
    case DataType::decimal_legacy:
    case DataType::numeric_legacy:
      return read_decimal(from, into, why);
    case DataType::time:
    case DataType::datetime2:
    case DataType::datetimeoffset:
      into.scale = from.u8();
      if (from.failed()) return Parsed::need_more;
      return into.scale <= scale_max ? Parsed::ok : bad(why, fmt::format("a time with scale {}", into.scale));
    case DataType::bigchar:
    case DataType::bigvarchar:
    case DataType::nchar:
    case DataType::nvarchar:
    case DataType::bigbinary:
    case DataType::bigvarbinary:
    case DataType::vector:
      return read_short(from, into, why);
    case DataType::char_legacy:
    case DataType::varchar_legacy:
    case DataType::binary_legacy:
    case DataType::varbinary_legacy:
      into.max_length = from.u8();
      if (has_collation(into.id)) into.collation = read_collation(from);
      return state(from);
    case DataType::text:
    case DataType::ntext:
    case DataType::image:
      into.max_length = from.u32();
      if (has_collation(into.id)) into.collation = read_collation(from);
      return state(from);
    case DataType::sql_variant:
      into.max_length = from.u32();
      return state(from);
    case DataType::xml:
      return read_xml(from, into);
    case DataType::udt:
      return read_udt(from, into, place);
    case DataType::tvp:
      break;
  }
  return bad(why, fmt::format("data type 0x{:02X} is not known here", static_cast<int>(into.id)));
}

void put_type_info(ByteBuffer& to, const TypeInfo& type, MetaPlace place) {
  to.push(static_cast<std::uint8_t>(type.id));
  switch (type.id) {
    case DataType::intn:
    case DataType::bitn:
    case DataType::fltn:
    case DataType::moneyn:
    case DataType::datetimn:
    case DataType::guid:
      to.push(static_cast<std::uint8_t>(type.max_length));
      break;
    case DataType::decimaln:
    case DataType::numericn:
    case DataType::decimal_legacy:
    case DataType::numeric_legacy:
      to.push(static_cast<std::uint8_t>(type.max_length));
      to.push(type.precision);
      to.push(type.scale);
      break;
    case DataType::time:
    case DataType::datetime2:
    case DataType::datetimeoffset:
      to.push(type.scale);
      break;
    case DataType::bigchar:
    case DataType::bigvarchar:
    case DataType::nchar:
    case DataType::nvarchar:
    case DataType::bigbinary:
    case DataType::bigvarbinary:
    case DataType::vector:
      to.put_le(static_cast<std::uint16_t>(type.max_length));
      if (type.id == DataType::vector) to.push(type.dimension_type);
      break;
    case DataType::char_legacy:
    case DataType::varchar_legacy:
    case DataType::binary_legacy:
    case DataType::varbinary_legacy:
      to.push(static_cast<std::uint8_t>(type.max_length));
      break;
    case DataType::text:
    case DataType::ntext:
    case DataType::image:
    case DataType::sql_variant:
      to.put_le(type.max_length);
      break;
    case DataType::xml:
      put_xml(to, type);
      break;
    case DataType::udt:
      put_udt(to, type, place);
      break;
    default:  // fixed types, date, json: nothing follows the id
      break;
  }
  if (has_collation(type.id)) put_collation(to, type.collation);
}

Parsed read_column(ByteReader& from, ColumnMeta& into, MetaPlace place, std::string& why) {
  into = ColumnMeta{};
  into.user_type = from.u32();
  into.flags = from.u16();
  if (from.failed()) return Parsed::need_more;
  if (const Parsed type = read_type_info(from, into.type, place, why); type != Parsed::ok) return type;
  if (is_blob(into.type.id)) read_table_name(from, into, place);
  into.name = read_b_varchar(from);
  return state(from);
}

void put_column(ByteBuffer& to, const ColumnMeta& column, MetaPlace place) {
  to.put_le(column.user_type);
  to.put_le(column.flags);
  put_type_info(to, column.type, place);
  if (is_blob(column.type.id)) put_table_name(to, column, place);
  put_b_varchar(to, column.name);
}

Parsed read_columns(ByteReader& from, std::vector<ColumnMeta>& into, bool& none, MetaPlace place, std::string& why) {
  into.clear();
  const std::uint16_t count = from.u16();
  none = count == no_metadata;
  if (from.failed()) return Parsed::need_more;
  if (none) return Parsed::ok;
  for (std::uint16_t i = 0; i < count; ++i) {
    if (const Parsed column = read_column(from, into.emplace_back(), place, why); column != Parsed::ok) return column;
  }
  return Parsed::ok;
}

void put_columns(ByteBuffer& to, const std::vector<ColumnMeta>& columns, MetaPlace place) {
  to.push(0x81);
  to.put_le(static_cast<std::uint16_t>(columns.size()));
  for (const ColumnMeta& column : columns) put_column(to, column, place);
}

Framing framing(const TypeInfo& type) noexcept {
  if (type.plp()) return Framing::plp;
  switch (type.id) {
    case DataType::null:
      return Framing::none;
    case DataType::bigchar:
    case DataType::bigvarchar:
    case DataType::nchar:
    case DataType::nvarchar:
    case DataType::bigbinary:
    case DataType::bigvarbinary:
    case DataType::vector:
      return Framing::short_length;
    case DataType::text:
    case DataType::ntext:
    case DataType::image:
      return Framing::text_pointer;
    case DataType::sql_variant:
      return Framing::long_length;
    default:
      return fixed_bytes(type.id) != 0 ? Framing::fixed : Framing::byte_length;
  }
}

std::size_t fixed_bytes(DataType id) noexcept {
  switch (id) {
    case DataType::int1:
    case DataType::bit:
      return 1;
    case DataType::int2:
      return 2;
    case DataType::int4:
    case DataType::flt4:
    case DataType::money4:
    case DataType::datetim4:
      return 4;
    case DataType::int8:
    case DataType::flt8:
    case DataType::money:
    case DataType::datetime:
      return 8;
    default:
      return 0;
  }
}

namespace {

std::string sized(std::string_view name, std::uint32_t length, std::uint32_t unit_bytes) {
  return length == max_length_plp ? fmt::format("{}(max)", name) : fmt::format("{}({})", name, length / unit_bytes);
}

std::string integer_name(std::uint32_t length) {
  return length == 1 ? "tinyint" : length == 2 ? "smallint" : length == 4 ? "int" : "bigint";
}

std::string udt_name(const TypeInfo& type) {
  if (type.names.size() < 3) return "udt";
  return type.names[1].empty() || type.names[1] == "sys" ? type.names[2] : type.names[1] + "." + type.names[2];
}

}  // namespace

std::string type_name(const TypeInfo& type) {
  switch (type.id) {
    case DataType::null:
      return "null";
    case DataType::int1:
    case DataType::int2:
    case DataType::int4:
    case DataType::int8:
      return integer_name(static_cast<std::uint32_t>(fixed_bytes(type.id)));
    case DataType::intn:
      return integer_name(type.max_length);
    case DataType::bit:
    case DataType::bitn:
      return "bit";
    case DataType::flt4:
      return "real";
    case DataType::flt8:
      return "float(53)";
    case DataType::fltn:
      return type.max_length == 4 ? "real" : "float(53)";
    case DataType::money:
      return "money";
    case DataType::money4:
      return "smallmoney";
    case DataType::moneyn:
      return type.max_length == 4 ? "smallmoney" : "money";
    case DataType::datetime:
      return "datetime";
    case DataType::datetim4:
      return "smalldatetime";
    case DataType::datetimn:
      return type.max_length == 4 ? "smalldatetime" : "datetime";
    case DataType::guid:
      return "uniqueidentifier";
    case DataType::date:
      return "date";
    case DataType::time:
      return fmt::format("time({})", type.scale);
    case DataType::datetime2:
      return fmt::format("datetime2({})", type.scale);
    case DataType::datetimeoffset:
      return fmt::format("datetimeoffset({})", type.scale);
    case DataType::decimaln:
    case DataType::decimal_legacy:
      return fmt::format("decimal({},{})", type.precision, type.scale);
    case DataType::numericn:
    case DataType::numeric_legacy:
      return fmt::format("numeric({},{})", type.precision, type.scale);
    case DataType::bigchar:
    case DataType::char_legacy:
      return sized("char", type.max_length, 1);
    case DataType::bigvarchar:
    case DataType::varchar_legacy:
      return sized("varchar", type.max_length, 1);
    case DataType::nchar:
      return sized("nchar", type.max_length, 2);
    case DataType::nvarchar:
      return sized("nvarchar", type.max_length, 2);
    case DataType::bigbinary:
    case DataType::binary_legacy:
      return sized("binary", type.max_length, 1);
    case DataType::bigvarbinary:
    case DataType::varbinary_legacy:
      return sized("varbinary", type.max_length, 1);
    case DataType::xml:
      return "xml";
    case DataType::udt:
      return udt_name(type);
    case DataType::tvp:
      return "table";
    case DataType::json:
      return "json";
    case DataType::vector:
      return fmt::format("vector({})", type.max_length < 8 ? 0 : (type.max_length - 8) / 4);
    case DataType::text:
      return "text";
    case DataType::ntext:
      return "ntext";
    case DataType::image:
      return "image";
    case DataType::sql_variant:
      return "sql_variant";
  }
  return fmt::format("type 0x{:02X}", static_cast<int>(type.id));
}

}  // namespace rowferry::tds
