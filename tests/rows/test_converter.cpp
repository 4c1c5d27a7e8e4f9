#include "columns.hpp"

using namespace rowferry;
using namespace rowferry::rows;
using namespace rowferry::rows::test;

namespace {

SchemaPtr two(const Type& a, const Type& b) {
  return std::make_shared<const Schema>(Schema{{Field{"a", a, true}, Field{"b", b, true}}});
}

BatchPtr two_columns(const SchemaPtr& schema, const Values<std::int64_t>& a, const Values<std::string>& b) {
  BatchPtr batch = BatchPool::make(schema)->take();
  fill(batch->buffer(0), TypeId::int64, a);
  fill(batch->buffer(1), TypeId::text, b);
  batch->seal(a.size());
  return batch;
}

const Type int64 = Type::of(TypeId::int64);
const Type int32 = Type::of(TypeId::int32);

}  // namespace

Test(converter, a_batch_that_only_needs_checks_passes_as_it_is) {
  const SchemaPtr from = two(int64, Type::text());
  const SchemaPtr to = two(int64, Type::text(5, LengthUnit::utf16_units));
  Converter converter(from, to, {{}, {}});
  BatchPtr batch = two_columns(from, {1, {}}, {"ab", "cde"});
  const Batch* const before = batch.get();
  const std::uint8_t* const values = batch->column(1).values;
  const BatchPtr out = converter.convert(std::move(batch));
  cr_expect_eq(out.get(), before);
  cr_expect_eq(out->column(1).values, values);
  cr_expect(out->schema() == *to);
}

Test(converter, columns_that_need_no_change_are_not_copied_when_others_are) {
  const SchemaPtr from = two(int64, Type::text());
  const SchemaPtr to = two(int32, Type::text(5, LengthUnit::utf16_units));
  Converter converter(from, to, {{}, {}});
  BatchPtr batch = two_columns(from, {1, {}}, {"ab", "cde"});
  batch->first_row = 41;
  const std::uint8_t* const values = batch->column(1).values;
  const BatchPtr out = converter.convert(std::move(batch));
  cr_expect_eq(out->column(1).values, values, "the source's buffer itself");
  cr_expect(joined(texts_of(*out, 0)) == "1|NULL");
  cr_expect(joined(texts_of(*out, 1)) == "ab|cde");
  cr_expect_eq(out->first_row, 41U);
  cr_expect_gt(out->bytes(), 0U);
}

Test(converter, a_loss_rewrites_its_own_column_only) {
  const SchemaPtr from = two(int64, Type::text());
  const SchemaPtr to = two(int64, Type::text(2, LengthUnit::utf16_units));
  Converter converter(from, to, {{}, policy(OnLoss::truncate)});
  BatchPtr batch = two_columns(from, {1, 2, 3}, {"ab", "cde", {}});
  const std::uint8_t* const values = batch->column(0).values;
  const BatchPtr out = converter.convert(std::move(batch));
  cr_expect_eq(out->column(0).values, values);
  cr_expect(joined(texts_of(*out, 1)) == "ab|cd|NULL");
  cr_expect_eq(converter.changed()[0], 0U);
  cr_expect_eq(converter.changed()[1], 1U);
}

Test(converter, a_null_where_none_may_be_names_column_and_row) {
  const SchemaPtr from = schema_of(int64);
  for (const Type& type : {int64, int32}) {
    Converter converter(from, schema_of(type, false, "id"), {{}});
    BatchPtr batch = batch_of<std::int64_t>(from, {1, 2, 3, 4, 5, 6, 7, 8, 9, {}});
    batch->first_row = 100;
    const Error error = error_of([&] { converter.convert(std::move(batch)); });
    cr_expect(error.code() == "null_in_not_null");
    cr_expect(error.category() == Category::data);
    cr_expect(error.context().column == "id");
    cr_expect(error.context().row == 110U);
  }
}

Test(converter, no_null_is_no_error_in_a_column_without_them) {
  const SchemaPtr from = schema_of(int64);
  Converter converter(from, schema_of(int32, false), {{}});
  cr_expect(joined(texts_of(*converter.convert(batch_of<std::int64_t>(from, {1, 2})))) == "1|2");
}

Test(converter, a_batch_goes_home_as_its_pool_knows_it) {
  const SchemaPtr from = schema_of(Type::of(TypeId::json));
  const auto pool = BatchPool::make(from);
  Converter converter(from, schema_of(Type::text(), true, "other"), {{}});
  BatchPtr batch = pool->take();
  const Batch* const first = batch.get();
  fill<std::string>(batch->buffer(0), TypeId::json, {"1"});
  batch->seal(1);
  cr_expect(converter.convert(std::move(batch))->schema().fields[0].name == "other");
  const BatchPtr again = pool->take();
  cr_expect_eq(again.get(), first, "reused");
  cr_expect(again->schema() == *from);
  cr_expect_eq(again->rows(), 0U);
}

Test(converter, the_source_batch_goes_home_with_the_result) {
  const SchemaPtr from = two(int64, Type::text());
  const auto pool = BatchPool::make(from);
  Converter converter(from, two(int32, Type::text()), {{}, {}});
  BatchPtr batch = pool->take();
  const Batch* const first = batch.get();
  fill<std::int64_t>(batch->buffer(0), TypeId::int64, {1});
  fill<std::string>(batch->buffer(1), TypeId::text, {"x"});
  batch->seal(1);
  {
    const BatchPtr out = converter.convert(std::move(batch));
  }
  const BatchPtr again = pool->take();
  cr_expect_eq(again.get(), first);
}

// O-30
Test(converter, slices_of_foreign_memory_are_read_at_their_offset) {
  const std::string data = "aabbccdd";
  const std::int32_t offsets[] = {2, 4, 6, 8};
  const std::uint8_t validity[] = {0b1111'0101};  // from bit 1: 0, 1, 0 and garbage behind
  const std::uint8_t bits[] = {0b0000'0110, 0};
  const auto foreign = [&](const Type& type, const ColumnView& view, std::size_t rows) {
    auto batch = BatchPtr(new Batch(schema_of(type)), BatchReturn{});
    batch->adopt(0, view, 8, nullptr);
    batch->seal(rows);
    return batch;
  };
  const ColumnView text{nullptr, as_bytes(data).data(), offsets, 0};
  Converter checked(schema_of(Type::text()), schema_of(Type::text(2)), {{}});
  cr_expect(joined(texts_of(*checked.convert(foreign(Type::text(), text, 3)))) == "bb|cc|dd");
  const ColumnView nulls{validity, as_bytes(data).data(), offsets, 1};
  Converter cut(schema_of(Type::text()), schema_of(Type::text(1)), {policy(OnLoss::truncate)});
  cr_expect(joined(texts_of(*cut.convert(foreign(Type::text(), nulls, 3)))) == "NULL|c|NULL");
  const ColumnView flags{validity, bits, nullptr, 1};
  Converter widened(schema_of(Type::of(TypeId::boolean)), schema_of(int32), {{}});
  cr_expect(joined(texts_of(*widened.convert(foreign(Type::of(TypeId::boolean), flags, 3)))) == "NULL|1|NULL");
}

Test(converter, a_batch_without_rows_is_no_trouble) {
  const SchemaPtr from = two(int64, Type::text());
  Converter converter(from, two(int32, Type::text(3)), {{}, {}});
  const BatchPtr out = converter.convert(two_columns(from, {}, {}));
  cr_expect_eq(out->rows(), 0U);
  cr_expect(out->schema().fields[0].type == int32);
}

Test(converter, the_null_type_gives_nulls_of_any_type) {
  const SchemaPtr from = schema_of(Type::of(TypeId::null));
  for (const Type& type : {int32, Type::text(1), Type::of(TypeId::boolean), Type::decimal(5, 2)}) {
    Converter converter(from, schema_of(type), {{}});
    auto batch = BatchPtr(new Batch(from), BatchReturn{});
    batch->seal(3);
    cr_expect(joined(texts_of(*converter.convert(std::move(batch)))) == "NULL|NULL|NULL");
  }
}
