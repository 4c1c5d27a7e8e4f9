#include "postgres/load_type.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/decimal.hpp"

namespace rowferry::postgres {

namespace {

using rows::Type;
using rows::TypeId;
using wire::Form;
using wire::PutForm;

constexpr Oid name_oid = 19;
constexpr Oid xml_oid = 142;
constexpr Oid real_array_oid = 1021;
constexpr std::uint32_t name_bytes = 63;

// text, varchar, char(n), name, enums, citext, …: what is read as bytes is written as bytes.
PutForm put_form(Form form) {
  switch (form) {
    case Form::boolean:
      return PutForm::boolean;
    case Form::int16:
      return PutForm::int16;
    case Form::int32:
      return PutForm::int32;
    case Form::int64:
      return PutForm::int64;
    case Form::uint32:
      return PutForm::uint32;
    case Form::float32:
      return PutForm::float32;
    case Form::float64:
      return PutForm::float64;
    case Form::numeric:
      return PutForm::numeric;
    case Form::money:
      return PutForm::money;
    case Form::date:
      return PutForm::date;
    case Form::time:
      return PutForm::time;
    case Form::timestamp:
      return PutForm::timestamp;
    case Form::uuid:
      return PutForm::uuid;
    case Form::bytes:
      return PutForm::bytes;
    case Form::jsonb:
      return PutForm::jsonb;
    case Form::bit_string:
    case Form::char_byte:
      break;
  }
  return PutForm::printed;
}

}  // namespace

LoadType load_type(const TypeFacts& facts, int money_scale) {
  const TypeMapping read = map_type(facts, money_scale);
  LoadType out;
  out.type = read.type;
  out.form = read.text_only ? PutForm::printed : put_form(read.form);
  out.any_decimal = read.any_decimal && !numeric_modifier(facts.typmod);
  out.compared = !read.rewritten && out.form != PutForm::printed;
  if (facts.oid == xml_oid) out.form = PutForm::xml;
  if (facts.oid == real_array_oid) out.form = PutForm::real_array;
  if (facts.oid == name_oid) out.type = Type::text(name_bytes, rows::LengthUnit::bytes);
  if (out.form == PutForm::uint32) out.type = Type::of(TypeId::uint32);
  // The server checks what is JSON: any text may be tried.
  if (out.type.id == TypeId::json) out.type = Type::text();
  if (rows::is_variable(out.type.id) && out.type.id != TypeId::binary) out.type.no_nul = true;
  if (out.form != PutForm::numeric) return out;
  const auto modifier = numeric_modifier(facts.typmod);
  if (modifier && modifier->scale < 0) {
    out.why_not = fmt::format("numeric({},{}) would round values in silence", modifier->precision, modifier->scale);
  } else if (modifier && modifier->precision > decimal::digits_max) {
    out.type = Type::decimal(decimal::digits_max, std::min(modifier->scale, decimal::digits_max));
  }
  return out;
}

}  // namespace rowferry::postgres
