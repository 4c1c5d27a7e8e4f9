// What source columns become in a created table, and types as a spec names them.
#include <criterion/criterion.h>

#include "../support/expect.hpp"
#include "postgres/natural_type.hpp"

using namespace rowferry;
using namespace rowferry::postgres;
using rows::LengthUnit;
using rows::Quantum;
using rows::TimeUnit;
using rows::Type;
using rows::TypeId;

namespace {

system::SourceColumn column(const Type& type, std::string native = "?") {
  system::SourceColumn out;
  out.name = "c";
  out.native = std::move(native);
  out.type = type;
  return out;
}

std::string natural(const Type& type, std::string native = "?") {
  return natural_type(column(type, std::move(native)), "", 2).native;
}

Type padded(Type type) {
  type.padded = true;
  return type;
}

Type quantized(Type type, Quantum quantum) {
  type.quantum = quantum;
  return type;
}

}  // namespace

Test(natural_type, of_each_logical_type) {
  EXPECT_TEXT(natural(Type::of(TypeId::boolean)), "boolean");
  EXPECT_TEXT(natural(Type::of(TypeId::int8)), "smallint");
  EXPECT_TEXT(natural(Type::of(TypeId::uint8)), "smallint");
  EXPECT_TEXT(natural(Type::of(TypeId::int16)), "smallint");
  EXPECT_TEXT(natural(Type::of(TypeId::uint16)), "integer");
  EXPECT_TEXT(natural(Type::of(TypeId::int32)), "integer");
  EXPECT_TEXT(natural(Type::of(TypeId::uint32)), "bigint");
  EXPECT_TEXT(natural(Type::of(TypeId::int64)), "bigint");
  EXPECT_TEXT(natural(Type::of(TypeId::uint64)), "numeric(20,0)");
  EXPECT_TEXT(natural(Type::of(TypeId::float32)), "real");
  EXPECT_TEXT(natural(Type::of(TypeId::float64)), "double precision");
  EXPECT_TEXT(natural(Type::decimal(38, 13)), "numeric(38,13)");
  EXPECT_TEXT(natural(Type::decimal(19, 4), "money"), "numeric(19,4)");
  EXPECT_TEXT(natural(Type::of(TypeId::date)), "date");
  EXPECT_TEXT(natural(Type::of(TypeId::uuid)), "uuid");
  EXPECT_TEXT(natural(Type::binary(8)), "bytea");
  EXPECT_TEXT(natural(Type::of(TypeId::json)), "json");
  EXPECT_TEXT(natural(Type::of(TypeId::null)), "text");
}

Test(natural_type, of_times_keeps_six_digits_at_most) {
  EXPECT_TEXT(natural(Type::time(TimeUnit::hundred_nano, 7)), "time(6)");
  EXPECT_TEXT(natural(Type::time(TimeUnit::hundred_nano, 3)), "time(3)");
  EXPECT_TEXT(natural(Type::timestamp(TimeUnit::hundred_nano, 7, false)), "timestamp(6)");
  EXPECT_TEXT(natural(Type::timestamp(TimeUnit::hundred_nano, 0, false)), "timestamp(0)");
  EXPECT_TEXT(natural(Type::timestamp(TimeUnit::hundred_nano, 7, true)), "timestamptz(6)");
  EXPECT_TEXT(natural(quantized(Type::timestamp(TimeUnit::hundred_nano, 3, false), Quantum::tick_300)), "timestamp(3)");
  EXPECT_TEXT(natural(quantized(Type::timestamp(TimeUnit::hundred_nano, 0, false), Quantum::minute)), "timestamp(0)");
}

Test(natural_type, of_text_has_the_same_length_in_characters) {
  EXPECT_TEXT(natural(Type::text(20, LengthUnit::bytes), "varchar(20)"), "varchar(20)");
  EXPECT_TEXT(natural(Type::text(20, LengthUnit::utf16_units), "nvarchar(20)"), "varchar(20)");
  EXPECT_TEXT(natural(padded(Type::text(5, LengthUnit::utf16_units)), "nchar(5)"), "char(5)");
  EXPECT_TEXT(natural(Type::text(), "nvarchar(max)"), "text");
  EXPECT_TEXT(natural(Type::text(), "xml"), "xml");
  EXPECT_TEXT(natural(Type::text(), "vector(3)"), "real[]");
  EXPECT_TEXT(natural(Type::text(), "hierarchyid"), "text");
  cr_expect(natural_type(column(Type::text(20)), "", 2).type.no_nul, "U+0000 cannot be stored");
  cr_expect(not natural_type(column(Type::text(), "xml"), "", 2).compared);
}

Test(natural_type, of_a_decimal_without_bounds_is_noted) {
  system::SourceColumn any = column(Type::decimal(38, 18), "numeric");
  any.any_decimal = true;
  const system::NaturalType out = natural_type(any, "", 2);
  EXPECT_TEXT(out.native, "numeric(38,18)");
  cr_assert_eq(out.notices.size(), 1u);
  EXPECT_TEXT(out.notices[0].code, "numeric_without_precision");
  // numeric alone takes a bounded decimal as it is.
  const system::NaturalType wide = natural_type(column(Type::decimal(28, 13)), "numeric", 2);
  EXPECT_TEXT(wide.native, "numeric");
  cr_expect(wide.type == Type::decimal(28, 13));
}

Test(named_types, are_postgresqls) {
  const auto ddl = [](std::string_view text) { return parse_type(text).ddl; };
  EXPECT_TEXT(ddl("VARCHAR ( 20 )"), "varchar(20)");
  EXPECT_TEXT(ddl("character varying(3)"), "varchar(3)");
  EXPECT_TEXT(ddl("numeric(12,2)"), "numeric(12,2)");
  EXPECT_TEXT(ddl("decimal(9)"), "numeric(9,0)");
  EXPECT_TEXT(ddl("timestamp(3) with time zone"), "timestamptz(3)");
  EXPECT_TEXT(ddl("timestamp without time zone"), "timestamp");
  EXPECT_TEXT(ddl("double precision"), "double precision");
  EXPECT_TEXT(ddl("float(24)"), "real");
  EXPECT_TEXT(ddl("float"), "double precision");
  EXPECT_TEXT(ddl("char"), "char");
  EXPECT_TEXT(ddl("text collate \"de-DE-x-icu\""), "text COLLATE pg_catalog.\"de-DE-x-icu\"");
  EXPECT_TEXT(ddl("text COLLATE public.mine"), "text COLLATE \"public\".\"mine\"");
  EXPECT_TEXT(ddl("real[]"), "real[]");
  cr_expect_eq(parse_type("char").facts.typmod, 5);
  cr_expect_eq(parse_type("numeric(12,2)").facts.typmod, (12 << 16) + 2 + 4);
}

Test(named_types, that_are_wrong_are_refused) {
  for (const char* bad : {"", "nvarchar(20)", "varchar(0)", "varchar(20", "varchar(x)", "varchar(1,2)", "integer(3)",
                          "numeric(5,6)", "timestamp(7)", "text; DROP TABLE x", "int COLLATE \"C\"", "serial",
                          "text COLLATE \"C", "text COLLATE a.", "text COLLATE"}) {
    EXPECT_ERROR(parse_type(bad), "bad_type");
  }
  EXPECT_ERROR(parse_type("text[]"), "unloadable_type");
  EXPECT_ERROR(parse_type("int[3]"), "unloadable_type");
}
