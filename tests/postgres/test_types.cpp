#include "../support/expect.hpp"
#include "postgres/types.hpp"

using namespace rowferry;
using namespace rowferry::postgres;
using rows::to_string;

namespace {

constexpr int typmod(int precision, int scale) { return ((precision << 16) | (scale & 0x7FF)) + 4; }

TypeMapping numeric(int precision, int scale) { return map_type({.oid = 1700, .typmod = typmod(precision, scale)}, 2); }

}  // namespace

Test(types, numerics_map_to_the_smallest_decimal) {
  cr_expect(numeric(18, 2).type == rows::Type::decimal(18, 2));
  cr_expect(numeric(38, 38).type == rows::Type::decimal(38, 38));
  cr_expect(numeric(3, -2).type == rows::Type::decimal(5, 0));
  cr_expect(numeric(2, 4).type == rows::Type::decimal(4, 4));
  cr_expect_not(numeric(38, 0).any_decimal);
}

Test(types, numerics_without_bounds_are_open) {
  for (const TypeMapping& mapping :
       {map_type({.oid = 1700, .typmod = -1}, 2), numeric(39, 0), numeric(1000, 500), numeric(30, -10)}) {
    cr_expect(mapping.any_decimal);
    cr_expect(mapping.type == rows::Type::decimal(38, 18));
  }
}

Test(types, lengths_come_from_the_modifier) {
  cr_expect_eq(map_type({.oid = 1043, .typmod = 24}, 2).type.length, 20);
  cr_expect_eq(map_type({.oid = 1043, .typmod = -1}, 2).type.length, 0);
  const TypeMapping padded = map_type({.oid = 1042, .typmod = 9}, 2);
  cr_expect_eq(padded.type.length, 5);
  cr_expect(padded.type.padded);
  cr_expect_not(map_type({.oid = 1042, .typmod = -1}, 2).type.padded);
  cr_expect_eq(map_type({.oid = 1560, .typmod = 7}, 2).type.length, 7);
  cr_expect_eq(map_type({.oid = 1114, .typmod = 3}, 2).type.digits, 3);
  cr_expect(map_type({.oid = 1184, .typmod = -1}, 2).type.zoned);
}

Test(types, what_has_no_binary_form_here_is_printed_by_the_server) {
  TypeFacts inet{.oid = 869, .name = "inet", .schema = "pg_catalog", .output = "pg_catalog.inet_out"};
  const TypeMapping mapping = map_type(inet, 2);
  cr_expect(mapping.text_only);
  cr_expect_not(mapping.unknown);
  EXPECT_TEXT(as_text(inet, "\"a\""), "pg_catalog.textin(pg_catalog.inet_out(\"a\"))");
  TypeFacts point{.oid = 99999, .name = "geometry", .schema = "gis"};
  cr_expect(map_type(point, 2).unknown);
  point.kind = 'c';
  cr_expect_not(map_type(point, 2).unknown);
  cr_expect(map_type({.oid = 142, .name = "xml", .schema = "pg_catalog"}, 2).rewritten);
  cr_expect(map_type({.oid = 3802}, 2).rewritten);
}

Test(types, text_like_extension_types_are_text) {
  const TypeFacts citext{.oid = 99998, .name = "citext", .schema = "public", .is_text = true};
  cr_expect_not(map_type(citext, 2).text_only);
  EXPECT_TEXT(as_itself(citext, "\"a\""), "\"a\"::pg_catalog.text");
}
