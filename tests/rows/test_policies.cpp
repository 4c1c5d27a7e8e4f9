#include "columns.hpp"

using namespace rowferry;
using namespace rowferry::rows;
using namespace rowferry::rows::test;

namespace {

bool possible(const Type& from, const Type& to, const LossPolicy& policy) {
  try {
    check_policy(from, to, policy, "c");
    return true;
  } catch (const Error& error) {
    cr_expect(error.category() == Category::input);
    cr_expect(error.code() == "policy_impossible");
    cr_expect(error.context().column == "c");
    return false;
  }
}

struct Expected {
  Type from;
  Type to;
  bool truncate;
  bool replace;
  bool strip;
};

}  // namespace

Test(policies, every_policy_for_every_type) {
  const Type timestamp = Type::timestamp(TimeUnit::micro, 6, false);
  const std::vector<Expected> table{
      {Type::of(TypeId::boolean), Type::of(TypeId::boolean), false, false, false},
      {Type::of(TypeId::int64), Type::of(TypeId::int32), false, true, false},
      {Type::of(TypeId::int64), Type::of(TypeId::float64), true, true, false},
      {Type::of(TypeId::float64), Type::of(TypeId::float64), true, true, false},
      {Type::of(TypeId::float64), Type::of(TypeId::int32), true, true, false},
      {Type::decimal(10, 3), Type::decimal(10, 2), true, true, false},
      {Type::of(TypeId::int64), Type::decimal(10, 2), false, true, false},
      {Type::decimal(10, 3), Type::of(TypeId::int32), true, true, false},
      {Type::of(TypeId::date), Type::of(TypeId::date), false, true, false},
      {timestamp, Type::of(TypeId::date), true, true, false},
      {timestamp, timestamp, true, true, false},
      {Type::time(TimeUnit::micro, 6), Type::time(TimeUnit::micro, 3), true, true, false},
      {Type::of(TypeId::uuid), Type::of(TypeId::uuid), false, false, false},
      {Type::text(), Type::text(5), true, true, true},
      {Type::of(TypeId::json), Type::text(5), true, true, true},
      {Type::binary(), Type::binary(5), true, false, false},
  };
  for (const Expected& row : table) {
    const std::string pair = to_string(row.from) + " -> " + to_string(row.to);
    cr_expect(possible(row.from, row.to, policy(OnLoss::error)), "error: %s", pair.c_str());
    cr_expect(possible(row.from, row.to, policy(OnLoss::null)), "null: %s", pair.c_str());
    cr_expect(possible(row.from, row.to, policy(OnLoss::truncate)) == row.truncate, "truncate: %s", pair.c_str());
    cr_expect(possible(row.from, row.to, policy(OnLoss::replace)) == row.replace, "replace: %s", pair.c_str());
    cr_expect(possible(row.from, row.to, policy(OnLoss::strip)) == row.strip, "strip: %s", pair.c_str());
  }
}

Test(policies, a_replacement_must_be_possible_itself) {
  Type latin = Type::text(3, LengthUnit::bytes);
  latin.code_page = 1252;
  cr_expect(possible(Type::text(), latin, policy(OnLoss::replace, "?")));
  cr_expect(not possible(Type::text(), latin, policy(OnLoss::replace, "Ⅰ")));
  cr_expect(not possible(Type::text(), latin, policy(OnLoss::replace, "four")));
  cr_expect(not possible(Type::text(), latin, policy(OnLoss::truncate, "?")), "a replacement without replace");
  cr_expect(not possible(Type::of(TypeId::int64), Type::of(TypeId::int32), policy(OnLoss::replace, "0")));
}

Test(policies, null_needs_a_column_that_takes_it) {
  const auto make = [](bool nullable) {
    Converter(schema_of(Type::of(TypeId::int64)), schema_of(Type::of(TypeId::int32), nullable), {policy(OnLoss::null)});
  };
  make(true);
  cr_expect(error_of([&] { make(false); }).code() == "policy_impossible");
}

Test(policies, what_never_fits_is_refused_when_the_converter_is_made) {
  const Error error = error_of(
      [] { Converter(schema_of(Type::of(TypeId::boolean)), schema_of(Type::of(TypeId::date), true, "day"), {{}}); });
  cr_expect(error.category() == Category::unsupported);
  cr_expect(error.code() == "type_mismatch");
  cr_expect(error.detail().find("boolean") != std::string::npos && error.detail().find("date") != std::string::npos);
  cr_expect(error.context().column == "day");
}

Test(policies, a_loss_counts_or_throws) {
  ColumnLoss strict("c", {});
  cr_expect(error_of([&] { strict.lost(4, "abc", "too long"); }).context().row == 5U);
  cr_expect_eq(strict.changed(), 0U);
  ColumnLoss lenient("c", policy(OnLoss::null));
  cr_expect(lenient.lost(4, "abc", "too long") == OnLoss::null);
  lenient.changed_as_warned();
  cr_expect_eq(lenient.changed(), 2U);
  cr_expect(error_of([&] { lenient.refuse(0, "x", "why"); }).detail() == "row 1, column c: x does not fit: why");
}
