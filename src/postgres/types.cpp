#include "postgres/types.hpp"

#include <algorithm>
#include <array>

#include "base/decimal.hpp"

namespace rowferry::postgres {

namespace {

using rows::TimeUnit;
using rows::Type;
using rows::TypeId;
using wire::Form;

// pg_type.dat: these OIDs are fixed.
enum : Oid {
  bool_oid = 16,
  bytea_oid = 17,
  char_oid = 18,
  name_oid = 19,
  int8_oid = 20,
  int2_oid = 21,
  int4_oid = 23,
  text_oid = 25,
  oid_oid = 26,
  xid_oid = 28,
  json_oid = 114,
  xml_oid = 142,
  float4_oid = 700,
  float8_oid = 701,
  money_oid = 790,
  bpchar_oid = 1042,
  varchar_oid = 1043,
  date_oid = 1082,
  time_oid = 1083,
  timestamp_oid = 1114,
  timestamptz_oid = 1184,
  bit_oid = 1560,
  varbit_oid = 1562,
  numeric_oid = 1700,
  uuid_oid = 2950,
  jsonb_oid = 3802,
};

constexpr int header = 4;  // VARHDRSZ, part of length modifiers
constexpr std::uint32_t name_chars = 63;
constexpr int unbounded_precision = 38;
constexpr int unbounded_scale = 18;

struct Width {
  std::string_view name;
  std::uint32_t chars;
};
// The widest text of types without a binary form here.
constexpr std::array widths{
    Width{"timetz", 24},   Width{"interval", 80},      Width{"inet", 49},          Width{"cidr", 49},
    Width{"macaddr", 17},  Width{"macaddr8", 23},      Width{"pg_lsn", 17},        Width{"xid8", 20},
    Width{"cid", 10},      Width{"tid", 18},           Width{"regclass", 256},     Width{"regtype", 256},
    Width{"regrole", 130}, Width{"regnamespace", 130}, Width{"regcollation", 256}, Width{"regconfig", 256},
    Width{"regproc", 256}, Width{"regoper", 256},      Width{"regdictionary", 256}};

TypeMapping of(const Type& type, Form form) { return {.type = type, .form = form}; }

TypeMapping numeric(int typmod) {
  const auto modifier = numeric_modifier(typmod);
  TypeMapping mapping = of(Type::decimal(unbounded_precision, unbounded_scale), Form::numeric);
  mapping.any_decimal = true;
  if (!modifier) return mapping;
  // numeric(3,-2) holds 99900: five digits; numeric(2,4) holds 0.0099: four places.
  const int precision =
      modifier->scale < 0 ? modifier->precision - modifier->scale : std::max(modifier->precision, modifier->scale);
  if (precision > unbounded_precision) return mapping;
  mapping.type = Type::decimal(precision, std::max(modifier->scale, 0));
  mapping.any_decimal = false;
  return mapping;
}

Type sized_text(int typmod, bool padded) {
  if (typmod < header) return Type::text();
  Type type = Type::text(static_cast<std::uint32_t>(typmod - header));
  type.padded = padded;
  return type;
}

TypeMapping as_printed(const TypeFacts& facts) {
  TypeMapping mapping = of(Type::text(), Form::bytes);
  mapping.text_only = true;
  mapping.rewritten = facts.oid == xml_oid;
  if (facts.schema == "pg_catalog") {
    const auto* width =
        std::find_if(widths.begin(), widths.end(), [&](const Width& w) { return w.name == facts.name; });
    if (width != widths.end()) mapping.text_width = width->chars;
  }
  return mapping;
}

TypeMapping beyond_the_fixed(const TypeFacts& facts) {
  if (facts.kind == 'e') {
    TypeMapping mapping = of(Type::text(), Form::bytes);  // enum_send gives the label
    mapping.text_width = name_chars;
    return mapping;
  }
  if (facts.is_text && facts.schema != "pg_catalog") return of(Type::text(), Form::bytes);
  TypeMapping mapping = as_printed(facts);
  mapping.unknown = facts.kind == 'b' && !facts.array && facts.schema != "pg_catalog" && facts.name != "hstore" &&
                    facts.name != "citext";
  return mapping;
}

int digits(int typmod) { return typmod >= 0 && typmod <= 6 ? typmod : 6; }

}  // namespace

std::optional<NumericModifier> numeric_modifier(int typmod) noexcept {
  if (typmod < header) return std::nullopt;
  const int bits = typmod - header;
  // 11 bits of scale, signed since PostgreSQL 15; before, scales were 0 to 1000 and read the same.
  return NumericModifier{(bits >> 16) & 0xFFFF, ((bits & 0x7FF) ^ 1024) - 1024};
}

TypeMapping map_type(const TypeFacts& facts, int money_scale) {
  switch (facts.oid) {
    case bool_oid:
      return of(Type::of(TypeId::boolean), Form::boolean);
    case int2_oid:
      return of(Type::of(TypeId::int16), Form::int16);
    case int4_oid:
      return of(Type::of(TypeId::int32), Form::int32);
    case int8_oid:
      return of(Type::of(TypeId::int64), Form::int64);
    case oid_oid:
    case xid_oid:
      return of(Type::of(TypeId::int64), Form::uint32);
    case float4_oid:
      return of(Type::of(TypeId::float32), Form::float32);
    case float8_oid:
      return of(Type::of(TypeId::float64), Form::float64);
    case numeric_oid:
      return numeric(facts.typmod);
    case money_oid:
      return of(Type::decimal(19, std::clamp(money_scale, 0, 19)), Form::money);
    case date_oid:
      return of(Type::of(TypeId::date), Form::date);
    case time_oid:
      return of(Type::time(TimeUnit::micro, digits(facts.typmod)), Form::time);
    case timestamp_oid:
      return of(Type::timestamp(TimeUnit::micro, digits(facts.typmod), false), Form::timestamp);
    case timestamptz_oid:
      return of(Type::timestamp(TimeUnit::micro, digits(facts.typmod), true), Form::timestamp);
    case uuid_oid:
      return of(Type::of(TypeId::uuid), Form::uuid);
    case bytea_oid:
      return of(Type::binary(), Form::bytes);
    case text_oid:
      return of(Type::text(), Form::bytes);
    case varchar_oid:
      return of(sized_text(facts.typmod, false), Form::bytes);
    case bpchar_oid:
      return of(sized_text(facts.typmod, true), Form::bytes);
    case json_oid:
      return of(Type::of(TypeId::json), Form::bytes);
    case bit_oid:
    case varbit_oid:
      return of(Type::text(facts.typmod > 0 ? static_cast<std::uint32_t>(facts.typmod) : 0), Form::bit_string);
    default:
      break;
  }
  TypeMapping mapping;
  if (facts.oid == name_oid) {
    mapping = of(Type::text(), Form::bytes);
    mapping.text_width = name_chars;
  } else if (facts.oid == char_oid) {
    mapping = of(Type::text(), Form::char_byte);
    mapping.text_width = 4;
  } else if (facts.oid == jsonb_oid) {
    mapping = of(Type::of(TypeId::json), Form::jsonb);
    mapping.rewritten = true;
  } else {
    mapping = beyond_the_fixed(facts);
  }
  return mapping;
}

std::string as_itself(const TypeFacts& facts, const std::string& column) {
  return facts.is_text && facts.schema != "pg_catalog" ? column + "::pg_catalog.text" : column;
}

std::string as_text(const TypeFacts& facts, const std::string& column) {
  return "pg_catalog.textin(" + facts.output + "(" + column + "))";
}

std::string as_json(const std::string& column) { return "pg_catalog.to_json(" + column + ")"; }

}  // namespace rowferry::postgres
