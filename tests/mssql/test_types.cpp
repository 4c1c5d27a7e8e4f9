#include "mssql/sql_type.hpp"
#include "rows/convert.hpp"
#include "tests/support/error_of.hpp"

using namespace rowferry;
using namespace rowferry::mssql;
using rows::Type;
using rows::TypeId;

namespace {

constexpr std::uint16_t latin = 1252;

system::SourceColumn source(const Type& type, std::string native = "") {
  system::SourceColumn column;
  column.name = "c";
  column.native = std::move(native);
  column.type = type;
  return column;
}

std::string natural(const system::SourceColumn& column, bool in_key = false) {
  return natural_type(column, "", in_key, latin).native;
}

void bad_type(std::string_view text) {
  const Error error = test::error_of([&] { parse_type(text); });
  cr_expect(error.code() == "bad_type" && error.category() == Category::input, "%s", std::string(text).c_str());
}

}  // namespace

Test(types, are_parsed_as_ddl_writes_them) {
  const std::vector<std::pair<std::string_view, std::string_view>> cases{
      {"nvarchar(200)", "nvarchar(200)"},
      {" NVarChar ( 200 ) ", "nvarchar(200)"},
      {"nvarchar(max)", "nvarchar(max)"},
      {"decimal(10,2)", "decimal(10,2)"},
      {"DEC (10)", "decimal(10,0)"},
      {"numeric", "numeric(18,0)"},
      {"integer", "int"},
      {"double precision", "float(53)"},
      {"float(24)", "real"},
      {"float(25)", "float(53)"},
      {"datetime", "datetime"},
      {"datetime2", "datetime2(7)"},
      {"datetimeoffset(3)", "datetimeoffset(3)"},
      {"time(0)", "time(0)"},
      {"character varying(20)", "varchar(20)"},
      {"char", "char(1)"},
      {"sysname", "nvarchar(128)"},
      {"varbinary(max)", "varbinary(max)"},
  };
  for (const auto& [text, expected] : cases) {
    const std::string got = type_text(parse_type(text));
    cr_expect(got == expected, "%s gives %s", std::string(text).c_str(), got.c_str());
  }
}

Test(types, a_collation_stays_with_its_type) {
  const SqlType type = parse_type("varchar(20) collate Latin1_General_BIN2");
  cr_expect(type.collation == "Latin1_General_BIN2");
  cr_expect(type_ddl(type) == "varchar(20) COLLATE Latin1_General_BIN2");
  cr_expect_eq(logical_type(type, 932).code_page, 1252);
  cr_expect_eq(logical_type(parse_type("varchar(20)"), 932).code_page, 932);
  bad_type("int collate Latin1_General_BIN2");
  bad_type("varchar(20) collate");
  bad_type("varchar(20) collate X; drop table t");
  bad_type("varchar(20) collate [X]");
}

Test(types, what_is_no_type_is_refused) {
  for (const auto* text : {"", "nvarchar(0)", "nvarchar(4001)", "varchar(8001)", "char(max)", "decimal(39,0)",
                           "decimal(10,11)", "int(4)", "datetime2(8)", "blob", "nvarchar(20", "nvarchar(20) x",
                           "decimal(1,2,3)", "rowversion", "sql_variant", "float(54)", "nvarchar(20); drop table t"}) {
    bad_type(text);
  }
}

Test(types, logical_types_carry_the_columns_limits) {
  const Type nvarchar = logical_type(parse_type("nvarchar(200)"), latin);
  cr_expect_eq(nvarchar.length, 200U);
  cr_expect(nvarchar.length_unit == rows::LengthUnit::utf16_units);
  const Type nchar = logical_type(parse_type("nchar(5)"), latin);
  cr_expect(nchar.padded && nchar.length == 5);
  const Type varchar = logical_type(parse_type("varchar(20)"), latin);
  cr_expect(varchar.length == 20 && varchar.length_unit == rows::LengthUnit::bytes && varchar.code_page == 1252);
  const Type utf8 = logical_type(parse_type("varchar(20) collate Latin1_General_100_CI_AS_SC_UTF8"), latin);
  cr_expect(utf8.length == 20 && utf8.code_page == 0);
  cr_expect(logical_type(parse_type("nvarchar(max)"), latin).length == 0);
  cr_expect(logical_type(parse_type("float"), latin).finite);
  cr_expect(logical_type(parse_type("real"), latin).finite);
  cr_expect(logical_type(parse_type("datetime"), latin).quantum == rows::Quantum::tick_300);
  cr_expect(logical_type(parse_type("smalldatetime"), latin).quantum == rows::Quantum::minute);
  cr_expect(logical_type(parse_type("decimal(10,2)"), latin) == Type::decimal(10, 2));
  cr_expect(logical_type(parse_type("tinyint"), latin).id == TypeId::uint8);
  cr_expect(logical_type(parse_type("json"), latin).id == TypeId::json);
}

// types.md: PostgreSQL -> SQL Server
Test(types, natural_types_of_postgresql_columns) {
  const Type t6 = Type::timestamp(rows::TimeUnit::micro, 6, false);
  const Type z6 = Type::timestamp(rows::TimeUnit::micro, 6, true);
  cr_expect(natural(source(Type::of(TypeId::boolean))) == "bit");
  cr_expect(natural(source(Type::of(TypeId::int16))) == "smallint");
  cr_expect(natural(source(Type::of(TypeId::int32))) == "int");
  cr_expect(natural(source(Type::of(TypeId::int64))) == "bigint");
  cr_expect(natural(source(Type::of(TypeId::float32))) == "real");
  cr_expect(natural(source(Type::of(TypeId::float64))) == "float(53)");
  cr_expect(natural(source(Type::decimal(21, 2))) == "decimal(21,2)");
  cr_expect(natural(source(Type::of(TypeId::date))) == "date");
  cr_expect(natural(source(Type::time(rows::TimeUnit::micro, 6))) == "time(6)");
  cr_expect(natural(source(t6)) == "datetime2(6)");
  cr_expect(natural(source(z6)) == "datetimeoffset(6)");
  cr_expect(natural(source(Type::of(TypeId::uuid))) == "uniqueidentifier");
  cr_expect(natural(source(Type::binary())) == "varbinary(max)");
  cr_expect(natural(source(Type::of(TypeId::json), "jsonb")) == "nvarchar(max)");
  cr_expect(natural(source(Type::text(), "text")) == "nvarchar(max)");
  cr_expect(natural(source(Type::text(), "integer[]")) == "nvarchar(max)");
}

// O-02
Test(types, lengths_hold_every_value_of_the_source) {
  cr_expect(natural(source(Type::text(1))) == "nvarchar(2)");
  cr_expect(natural(source(Type::text(2000))) == "nvarchar(4000)");
  cr_expect(natural(source(Type::text(2001))) == "nvarchar(max)");
  cr_expect(natural(source(Type::text()), true) == "nvarchar(450)");
  cr_expect(natural(source(Type::text(3000)), true) == "nvarchar(450)");
  Type padded = Type::text(4000);
  padded.padded = true;
  cr_expect(natural(source(padded)) == "nchar(4000)");
  padded.length = 4001;
  cr_expect(natural(source(padded)) == "nvarchar(max)");
  system::SourceColumn name = source(Type::text(), "name");
  name.text_width = 63;
  cr_expect(natural(name) == "nvarchar(63)");
  cr_expect(natural(source(Type::text(), "time with time zone")) == "varchar(24)");
  cr_expect(natural(source(Type::text(), "time(3) with time zone")) == "varchar(24)");
  cr_expect(natural(source(Type::text(), "interval")) == "varchar(80)");
  cr_expect(natural(source(Type::text(), "interval[]")) == "nvarchar(max)");
  system::SourceColumn bits = source(Type::text(5), "bit(5)");
  cr_expect(natural(bits) == "varchar(5)");
  bits.native = "bit varying(9000)";
  bits.type.length = 9000;
  cr_expect(natural(bits) == "varchar(max)");
  cr_expect(natural(source(Type::text(), "regclass")) == "nvarchar(256)");
}

// O-05
Test(types, a_numeric_without_bounds_gets_a_notice) {
  system::SourceColumn column = source(Type::decimal(38, 18), "numeric");
  column.any_decimal = true;
  const system::NaturalType out = natural_type(column, "", false, latin);
  cr_expect(out.native == "decimal(38,18)");
  cr_assert_eq(out.notices.size(), 1U);
  cr_expect(out.notices[0].code == "numeric_without_precision");
  cr_expect(natural_type(column, "decimal(10,2)", false, latin).notices.empty());
}

// types.md: Arrow -> SQL Server
Test(types, natural_types_of_arrow_columns) {
  cr_expect(natural(source(Type::of(TypeId::int8))) == "smallint");
  cr_expect(natural(source(Type::of(TypeId::uint8))) == "tinyint");
  cr_expect(natural(source(Type::of(TypeId::uint16))) == "int");
  cr_expect(natural(source(Type::of(TypeId::uint32))) == "bigint");
  cr_expect(natural(source(Type::of(TypeId::uint64))) == "decimal(20,0)");
  cr_expect(natural(source(Type::timestamp(rows::TimeUnit::hundred_nano, 7, false))) == "datetime2(7)");
  cr_expect(natural(source(Type::of(TypeId::null))) == "nvarchar(1)");
}

Test(types, every_natural_type_takes_its_source) {
  Type padded = Type::text(10);
  padded.padded = true;
  for (const Type& type :
       {Type::of(TypeId::boolean), Type::of(TypeId::int8), Type::of(TypeId::int64), Type::of(TypeId::uint64),
        Type::of(TypeId::float32), Type::of(TypeId::float64), Type::decimal(38, 10), Type::of(TypeId::date),
        Type::time(rows::TimeUnit::micro, 6), Type::timestamp(rows::TimeUnit::micro, 6, true), Type::of(TypeId::uuid),
        Type::text(), Type::text(100), padded, Type::of(TypeId::json), Type::binary(), Type::of(TypeId::null)}) {
    const auto fit = rows::fit(type, natural_type(source(type), "", false, latin).type);
    cr_expect(fit.kind != rows::Fit::Kind::never && fit.kind != rows::Fit::Kind::lossy, "%s: %s",
              to_string(type).c_str(), fit.reason.c_str());
  }
}

Test(types, a_wanted_type_rules) {
  const auto wanted = [](const Type& type, std::string_view text) {
    return natural_type(source(type), text, false, latin);
  };
  cr_expect(wanted(Type::text(), "nvarchar(200)").type.length == 200);
  cr_expect(not wanted(Type::text(), "nvarchar(200)").read_as_text);
  cr_expect(wanted(Type::of(TypeId::int32), "varchar(20)").read_as_text);
  cr_expect(not wanted(Type::text(), "xml").compared);
  cr_expect(test::error_of([&] { wanted(Type::text(), "blob"); }).code() == "bad_type");
}

// O-15
Test(types, code_pages_by_the_collations_name) {
  const std::vector<std::pair<std::string_view, int>> cases{
      {"SQL_Latin1_General_CP1_CI_AS", 1252},
      {"SQL_Latin1_General_CP1251_CI_AS", 1251},
      {"SQL_Latin1_General_CP850_CI_AS", 850},
      {"SQL_Latin1_General_CP437_BIN", 437},
      {"Cyrillic_General_CI_AS", 1251},
      {"Japanese_CS_AS_KS_WS", 932},
      {"Latin1_General_100_CI_AS_SC_UTF8", 65001},
      {"Latin1_General_BIN2", 1252},
      {"Chinese_PRC_CI_AS", 936},
      {"Chinese_Taiwan_Stroke_CI_AS", 950},
      {"Korean_Wansung_CI_AS", 949},
      {"Polish_CI_AS", 1250},
      {"Thai_CI_AS", 874},
      {"Indic_General_90_CI_AS", 0},
  };
  for (const auto& [name, page] : cases) {
    cr_expect_eq(code_page_of(name), page, "%s", std::string(name).c_str());
  }
}
