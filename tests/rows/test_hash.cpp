#include <random>

#include "columns.hpp"
#include "rows/hash.hpp"

using namespace rowferry;
using namespace rowferry::rows;
using namespace rowferry::rows::test;

namespace {

template <class T>
ContentHash hash_of(const Type& type, const Values<T>& values) {
  const SchemaPtr schema = schema_of(type);
  ContentHash sum;
  RowHasher(*schema, {}).add(*batch_of(schema, values), sum);
  return sum;
}

}  // namespace

Test(hash, does_not_depend_on_order_or_on_how_rows_are_batched) {
  std::mt19937_64 random(7);
  Values<std::string> values;
  for (int i = 0; i < 1000; ++i) {
    if (random() % 7 == 0) {
      values.emplace_back();
    } else {
      values.emplace_back(std::string(random() % 50, static_cast<char>('a' + random() % 26)));
    }
  }
  const ContentHash whole = hash_of(Type::text(), values);
  cr_expect_eq(whole.rows, 1000U);
  ContentHash parts;
  for (std::size_t at = 0; at < values.size();) {
    const std::size_t n = std::min<std::size_t>(1 + random() % 300, values.size() - at);
    parts.add(hash_of(Type::text(), Values<std::string>(values.begin() + static_cast<long>(at),
                                                        values.begin() + static_cast<long>(at + n))));
    at += n;
  }
  cr_expect(parts == whole);
  std::shuffle(values.begin(), values.end(), random);
  cr_expect(hash_of(Type::text(), values) == whole);
}

Test(hash, tells_null_empty_and_absent_apart) {
  const auto null = hash_of<std::string>(Type::text(), {{}});
  const auto empty = hash_of<std::string>(Type::text(), {""});
  const auto absent = hash_of<std::string>(Type::text(), {});
  cr_expect(not(null == empty));
  cr_expect(not(empty == absent));
  cr_expect_eq(absent.hex(), std::string(32, '0'));
}

Test(hash, tells_columns_apart_and_leaves_out_what_is_not_compared) {
  const SchemaPtr schema = std::make_shared<const Schema>(
      Schema{{Field{"a", Type::of(TypeId::int32)}, Field{"b", Type::of(TypeId::int32)}}});
  const auto of = [&](std::int32_t a, std::int32_t b, std::vector<bool> compared) {
    BatchPtr batch = BatchPool::make(schema)->take();
    fill<std::int32_t>(batch->buffer(0), TypeId::int32, {a});
    fill<std::int32_t>(batch->buffer(1), TypeId::int32, {b});
    batch->seal(1);
    ContentHash sum;
    RowHasher(*schema, std::move(compared)).add(*batch, sum);
    return sum;
  };
  cr_expect(not(of(1, 2, {}) == of(2, 1, {})));
  cr_expect(of(1, 2, {true, false}) == of(1, 3, {true, false}));
  cr_expect(not(of(1, 2, {true, false}) == of(1, 2, {false, true})));
}

Test(hash, is_of_the_value_not_of_its_layout) {
  const auto micro = Type::timestamp(TimeUnit::micro, 6, false);
  const auto tick = Type::timestamp(TimeUnit::hundred_nano, 7, false);
  cr_expect(hash_of<std::int64_t>(micro, {1'234'567, {}}) == hash_of<std::int64_t>(tick, {12'345'670, {}}));
  cr_expect(hash_of<std::int32_t>(Type::of(TypeId::int32), {-5}) ==
            hash_of<std::int64_t>(Type::of(TypeId::int64), {-5}));
  cr_expect(hash_of<bool>(Type::of(TypeId::boolean), {true, {}, false}) ==
            hash_of<std::uint8_t>(Type::of(TypeId::uint8), {1, {}, 0}));
  Type padded = Type::text(5);
  padded.padded = true;
  cr_expect(hash_of<std::string>(padded, {"ab   "}) == hash_of<std::string>(Type::text(), {"ab"}));
  cr_expect(not(hash_of<std::string>(Type::text(), {"ab "}) == hash_of<std::string>(Type::text(), {"ab"})));
  cr_expect(
      not(hash_of<float>(Type::of(TypeId::float32), {0.0F}) == hash_of<float>(Type::of(TypeId::float32), {-0.0F})));
}

// XXH3-128 of 00 00 | 00 | 08 00 00 00 | 01 00 00 00 00 00 00 00, computed apart by the library itself.
Test(hash, canonical_bytes_are_fixed) {
  const ContentHash hash = hash_of<std::int32_t>(Type::of(TypeId::int32), {1});
  cr_expect(hash.hex() == "c764b0ca3e6f1cdf1cb4590ee26e0769", "%s", hash.hex().c_str());
}

Test(hash, sums_carry_into_the_upper_half) {
  ContentHash a{~0ULL, 1, 1};
  a.add({2, 3, 4});
  cr_expect_eq(a.low, 1U);
  cr_expect_eq(a.high, 5U);
  cr_expect_eq(a.rows, 5U);
}
