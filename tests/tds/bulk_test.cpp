#include <criterion/criterion.h>
#include <fmt/format.h>

#include <functional>
#include <random>

#include "base/error.hpp"
#include "tds/result.hpp"
#include "tds/wire/bulk_encoder.hpp"
#include "tds/wire/logical_type.hpp"
#include "tds/wire/packet.hpp"
#include "tds/wire/row_decoder.hpp"
#include "tds/wire/values.hpp"
#include "tests/support/hex.hpp"
#include "tests/tds/batch_builder.hpp"
#include "tests/tds/capture.hpp"

using namespace rowferry;
using namespace rowferry::tds;
using namespace rowferry::test;

namespace {

constexpr Collation latin1 = {.info = 0x00D00409, .sort_id = 52};

// The target column as a SELECT of it describes it, in its bulk form.
BulkColumn column(std::string_view type_hex, std::string name = "c", std::uint16_t flags = 9) {
  const std::string wire = from_hex(type_hex);
  ByteReader from(as_bytes(wire));
  ColumnMeta meta;
  meta.flags = flags;
  meta.name = std::move(name);
  std::string why;
  cr_assert_eq(static_cast<int>(read_type_info(from, meta.type, MetaPlace::parameter, why)),
               static_cast<int>(Parsed::ok), "%s: %s", std::string(type_hex).c_str(), why.c_str());
  BulkForm form = bulk_form(meta);
  return {.meta = form.meta, .declared = form.declared, .collation = "", .type = logical_type(meta)};
}

std::string rows_hex(const std::vector<BulkColumn>& columns, const rows::Batch& batch) {
  BulkEncoder encoder(columns);
  ByteBuffer out;
  encoder.rows(batch, 0, batch.rows(), out);
  return to_hex(out.view());
}

// The one value of a row of one column, behind the ROW token.
std::string value_hex(std::string_view type_hex, const std::function<void(BatchBuilder&)>& fill) {
  const BulkColumn target = column(type_hex);
  BatchBuilder builder({target.type});
  fill(builder);
  return rows_hex({target}, *builder.build()).substr(3);
}

std::string int_hex(std::string_view type_hex, std::int64_t value) {
  return value_hex(type_hex, [&](BatchBuilder& b) { b.value(value); });
}
std::string day_hex(std::int32_t value) {
  return value_hex("28", [&](BatchBuilder& b) { b.value(value); });
}
std::string decimal_hex(std::string_view type_hex, Int128 value) {
  return value_hex(type_hex, [&](BatchBuilder& b) { b.value(value); });
}
std::string text_hex(std::string_view type_hex, std::string_view value) {
  return value_hex(type_hex, [&](BatchBuilder& b) { b.bytes(value); });
}
std::string null_hex(std::string_view type_hex) {
  return value_hex(type_hex, [](BatchBuilder& b) { b.null(); });
}

std::string error_code(std::string_view type_hex, const std::function<void(BatchBuilder&)>& fill) {
  try {
    (void)value_hex(type_hex, fill);
  } catch (const Error& error) {
    cr_assert_eq(error.context().column, "c");
    cr_assert(error.context().row.has_value());
    return error.code();
  }
  return "none";
}

constexpr std::int64_t second = 1'000'000;
constexpr std::int64_t day = 86'400 * second;
constexpr std::int64_t moment =
    10957 * day + (12 * 3600 + 34 * 60 + 56) * second + 123'456;  // 2000-01-01 12:34:56.123456

}  // namespace

Test(bulk, the_whole_message_of_the_notes) {
  const std::vector<BulkColumn> columns = {column("26 04", "i"), column("E7 14 00 09 04 D0 00 34", "s"),
                                           column("6A 09 0A 02", "d"), column("2A 07", "t"), column("A5 FF FF", "b")};
  BatchBuilder builder({columns[0].type, columns[1].type, columns[2].type, columns[3].type, columns[4].type});
  builder.value(std::int32_t{1}).bytes("ab").value(Int128{12345}).value(moment * 10 + 7).bytes("\xCA\xFE");
  builder.null().null().null().null().null();
  builder.value(std::int32_t{2}).bytes("").value(Int128{0}).value(date_min_days * day * 10).bytes("");
  BulkEncoder encoder(columns);
  ByteBuffer body;
  encoder.columns(body);
  encoder.rows(*builder.build(), 0, 3, body);
  BulkEncoder::done(body);
  PacketWriter writer(4096);
  writer.begin(PacketType::bulk);
  writer.write(body.view());
  writer.finish();
  cr_assert_eq(
      to_hex(writer.ready()),
      to_hex(from_hex("07 01 00 BE 00 00 01 00"
                      "81 05 00 00 00 00 00 09 00 26 04 01 69 00 00 00 00 00 09 00 E7 14 00 09 04 D0 00 34 01 73 00 00 "
                      "00 00 00 09 00 "
                      "6A 09 0A 02 01 64 00 00 00 00 00 09 00 2A 07 01 74 00 00 00 00 00 09 00 A5 FF FF 01 62 00"
                      "D1 04 01 00 00 00 04 00 61 00 62 00 09 01 39 30 00 00 00 00 00 00 08 87 EE 97 76 69 07 24 0B 02 "
                      "00 00 00 00 00 "
                      "00 00 02 00 00 00 CA FE 00 00 00 00"
                      "D1 00 FF FF 00 00 FF FF FF FF FF FF FF FF"
                      "D1 04 02 00 00 00 00 00 09 01 00 00 00 00 00 00 00 00 08 00 00 00 00 00 00 00 00 00 00 00 00 00 "
                      "00 00 00 00 00 "
                      "00 00"
                      "FD 00 00 00 00 00 00 00 00 00 00 00 00")));
}

Test(bulk, date_has_no_byte_in_its_type_but_one_before_its_value) {
  BulkEncoder encoder({column("28", "d", 8)});
  ByteBuffer out;
  encoder.columns(out);
  cr_assert_eq(to_hex(out.view()), "81 01 00 00 00 00 00 08 00 28 01 64 00");
  cr_assert_eq(day_hex(10957), "03 07 24 0B");
  cr_assert_eq(day_hex(date_min_days), "03 00 00 00");
  cr_assert_eq(day_hex(date_max_days), "03 DA B9 37");
}

Test(bulk, nullability_is_the_targets_own_and_fixed_types_take_their_nullable_form) {
  BulkEncoder encoder({column("38", "a", 8), column("26 04", "b", 9), column("38", "c", 0x10 | 8)});
  ByteBuffer out;
  encoder.columns(out);
  cr_assert_eq(
      to_hex(out.view()),
      "81 03 00 00 00 00 00 08 00 26 04 01 61 00 00 00 00 00 09 00 26 04 01 62 00 00 00 00 00 18 00 26 04 01 63 00");
}

Test(bulk, decimals_have_the_declared_width_and_seventeen_bytes_above_precision_28) {
  cr_assert_eq(decimal_hex("6A 11 09 02", -12345), "05 00 39 30 00 00");
  cr_assert_eq(decimal_hex("6A 11 12 00", 1), "09 01 01 00 00 00 00 00 00 00");
  cr_assert_eq(decimal_hex("6A 11 1C 00", 1), "0D 01 01 00 00 00 00 00 00 00 00 00 00 00");
  cr_assert_eq(decimal_hex("6A 11 1D 00", 1), "11 01 01 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00");
  cr_assert_eq(decimal_hex("6A 0D 15 02", Int128{INT64_MAX}), "0D 01 FF FF FF FF FF FF FF 7F 00 00 00 00");
  cr_assert_eq(decimal_hex("6A 05 05 02", -5), "05 00 05 00 00 00");
  cr_assert_eq(decimal_hex("6C 11 26 00", decimal::pow10(38) - 1),
               "11 01 FF FF FF FF 3F 22 8A 09 7A C4 86 5A A8 4C 3B 4B");
  cr_assert_eq(decimal_hex("6C 09 13 00", decimal::pow10(19) - 1), "09 01 FF FF E7 89 04 23 C7 8A");
  ByteBuffer out;
  BulkEncoder({column("6A 11 09 02")}).columns(out);
  cr_assert_eq(to_hex(out.view()), "81 01 00 00 00 00 00 09 00 6A 05 09 02 01 63 00");
}

Test(bulk, money) {
  cr_assert_eq(decimal_hex("6E 08", 10'000), "08 00 00 00 00 10 27 00 00");
  cr_assert_eq(decimal_hex("3C", INT64_MIN), "08 00 00 00 80 00 00 00 00");
  cr_assert_eq(decimal_hex("7A", -1), "04 FF FF FF FF");
  cr_assert_eq(error_code("6E 08", [](BatchBuilder& b) { b.value(Int128{INT64_MAX} + 1); }), "value_does_not_fit");
  cr_assert_eq(error_code("6E 04", [](BatchBuilder& b) { b.value(Int128{INT32_MIN} - 1); }), "value_does_not_fit");
}

Test(bulk, times) {
  cr_assert_eq(int_hex("29 07", (12 * 3600 + 34 * 60 + 56) * second * 10 + 1234567), "05 87 EE 97 76 69");
  cr_assert_eq(int_hex("29 00", (12 * 3600 + 34 * 60 + 56) * second), "03 F0 B0 00");
  cr_assert_eq(int_hex("29 03", (12 * 3600 + 34 * 60 + 56) * second + 123'000), "04 FB 29 B3 02");
  cr_assert_eq(int_hex("2A 00", 10957 * day + (12 * 3600 + 34 * 60 + 56) * second), "06 F0 B0 00 07 24 0B");
  cr_assert_eq(int_hex("2A 03", moment - 456), "07 FB 29 B3 02 07 24 0B");
  cr_assert_eq(int_hex("2A 07", moment * 10 + 7), "08 87 EE 97 76 69 07 24 0B");
  cr_assert_eq(int_hex("2A 07", -5'000'000), "08 C0 74 1D 2A C9 39 F9 0A");
  cr_assert_eq(int_hex("2B 07", (10957 * day + 3600 * second * -1) * 10), "0A 00 58 A5 C8 C0 06 24 0B 00 00");
  cr_assert_eq(int_hex("3D", moment - 456), "08 AC 8E 00 00 65 59 CF 00");
  cr_assert_eq(int_hex("3A", 10957 * day + (12 * 60 + 34) * 60 * second), "04 AC 8E F2 02");
}

Test(bulk, integers_floats_bits_and_guids) {
  cr_assert_eq(value_hex("30", [](BatchBuilder& b) { b.value(std::uint8_t{200}); }), "01 C8");
  cr_assert_eq(value_hex("34", [](BatchBuilder& b) { b.value(std::int16_t{-2}); }), "02 FE FF");
  cr_assert_eq(int_hex("7F", -1), "08 FF FF FF FF FF FF FF FF");
  cr_assert_eq(value_hex("3B", [](BatchBuilder& b) { b.value(1.5F); }), "04 00 00 C0 3F");
  cr_assert_eq(value_hex("3E", [](BatchBuilder& b) { b.value(-2.25); }), "08 00 00 00 00 00 00 02 C0");
  cr_assert_eq(value_hex("32", [](BatchBuilder& b) { b.boolean(true); }), "01 01");
  const std::string printed = from_hex("00112233445566778899AABBCCDDEEFF");
  cr_assert_eq(value_hex("24 10", [&](BatchBuilder& b) { b.uuid(printed); }),
               "10 33 22 11 00 55 44 77 66 88 99 AA BB CC DD EE FF");
}

Test(bulk, sized_text_and_binary) {
  cr_assert_eq(text_hex("E7 14 00 09 04 D0 00 34", "aé😀"), "08 00 61 00 E9 00 3D D8 00 DE");
  cr_assert_eq(text_hex("A7 0A 00 09 04 D0 00 34", "é"), "01 00 E9");
  cr_assert_eq(text_hex("A7 0A 00 09 04 D0 24 00", "é"), "02 00 C3 A9");
  cr_assert_eq(text_hex("A7 04 00 11 04 D0 00 00", "ああ"), "04 00 82 A0 82 A0");
  cr_assert_eq(text_hex("A7 14 00 09 04 00 02 00", "€"), "01 00 80");
  cr_assert_eq(text_hex("A7 14 00 09 04 00 02 00", "‡"), "01 00 87");
  cr_assert_eq(text_hex("AF 05 00 09 04 D0 00 34", "ab"), "05 00 61 62 20 20 20");
  cr_assert_eq(text_hex("EF 06 00 09 04 D0 00 34", "a"), "06 00 61 00 20 00 20 00");
  cr_assert_eq(text_hex("AD 04 00", "\x01\x02"), "04 00 01 02 00 00");
  cr_assert_eq(text_hex("A5 04 00", "\x01\x02"), "02 00 01 02");
  cr_assert_eq(text_hex("E7 14 00 09 04 D0 00 34", ""), "00 00");
}

Test(bulk, long_values_and_the_empty_one) {
  const std::string ab = "04 00 00 00 00 00 00 00 04 00 00 00 61 00 62 00 00 00 00 00";
  cr_assert_eq(text_hex("E7 FF FF 09 04 D0 00 34", "ab"), ab);
  cr_assert_eq(text_hex("F1 00", "ab"), ab);
  cr_assert_eq(text_hex("A7 FF FF 09 04 D0 00 34", "é"), "01 00 00 00 00 00 00 00 01 00 00 00 E9 00 00 00 00");
  for (const char* type : {"E7 FF FF 09 04 D0 00 34", "A7 FF FF 09 04 D0 00 34", "A5 FF FF", "F1 00"}) {
    cr_assert_eq(text_hex(type, ""), "00 00 00 00 00 00 00 00 00 00 00 00", "an empty value has no chunk: %s", type);
    cr_assert_eq(null_hex(type), "FF FF FF FF FF FF FF FF");
  }
}

Test(bulk, text_ntext_image_have_pointers_and_plain_table_names) {
  const std::string pointer = "10 FF FF FF FF FF FF FF FF FF FF FF FF FF FF FF FF FF FF FF FF FF FF FF FF ";
  ColumnMeta meta;
  meta.flags = 9;
  meta.name = "c";
  meta.table = {"t"};
  meta.type = {.id = DataType::text, .max_length = 0x7FFFFFFF, .collation = latin1};
  const BulkForm form = bulk_form(meta);
  const BulkColumn target = {.meta = form.meta, .declared = form.declared, .collation = "", .type = logical_type(meta)};
  ByteBuffer out;
  BulkEncoder({target}).columns(out);
  cr_assert_eq(to_hex(out.view()), "81 01 00 00 00 00 00 09 00 23 FF FF FF 7F 09 04 D0 00 34 01 00 74 00 01 63 00");
  BatchBuilder builder({target.type});
  builder.bytes("hi").null();
  cr_assert_eq(rows_hex({target}, *builder.build()), "D1 " + pointer + "02 00 00 00 68 69 D1 00");
}

Test(bulk, nulls_of_every_form) {
  for (const char* type :
       {"26 04", "68 01", "6D 08", "6E 08", "6F 04", "6A 09 0A 02", "24 10", "28", "29 07", "2A 07", "2B 07"}) {
    cr_assert_eq(null_hex(type), "00", "%s", type);
  }
  for (const char* type : {"A7 0A 00 09 04 D0 00 34", "EF 0A 00 09 04 D0 00 34", "AD 04 00"})
    cr_assert_eq(null_hex(type), "FF FF");
  cr_assert_eq(null_hex("62 49 1F 00 00"), "00 00 00 00");
}

Test(bulk, xml_json_vector_and_udt_take_forms_that_a_load_accepts) {
  cr_assert_eq(column("F1 00").declared, "xml");
  cr_assert_eq(column("F4").declared, "nvarchar(max)");
  cr_assert_eq(column("F5 10 00 00").declared, "nvarchar(max)");
  ByteBuffer out;
  BulkEncoder({column("F1 00")}).columns(out);
  cr_assert_eq(to_hex(out.view()), "81 01 00 00 00 00 00 09 00 E7 FF FF 00 00 00 00 00 01 63 00");
}

Test(bulk, text_into_a_variant) {
  cr_assert_eq(text_hex("62 49 1F 00 00", "ab"), "0D 00 00 00 E7 07 09 04 D0 00 34 40 1F 61 00 62 00");
  cr_assert_eq(error_code("62 49 1F 00 00", [](BatchBuilder& b) { b.bytes(std::string(4001, 'x')); }),
               "value_does_not_fit");
}

Test(bulk, an_impossible_value_is_an_error_and_no_bytes) {
  const auto of = [](auto value) { return [value](BatchBuilder& b) { b.value(value); }; };
  cr_assert_eq(error_code("28", of(date_max_days + 1)), "bulk_value");
  cr_assert_eq(error_code("28", of(date_min_days - 1)), "bulk_value");
  cr_assert_eq(error_code("29 07", of(ticks_per_day)), "bulk_value");
  cr_assert_eq(error_code("29 00", of(std::int64_t{1})), "bulk_value");
  cr_assert_eq(error_code("2A 06", of((date_max_days + 1) * day)), "bulk_value");
  cr_assert_eq(error_code("2A 03", of(std::int64_t{1})), "bulk_value");
  cr_assert_eq(error_code("2B 06", of(date_min_days * day - 1)), "bulk_value");
  cr_assert_eq(error_code("3D", of(datetime_min_days * day - day)), "bulk_value");
  cr_assert_eq(error_code("3A", of(std::int64_t{-30000} * day)), "bulk_value");
  cr_assert_eq(error_code("3E", of(std::numeric_limits<double>::quiet_NaN())), "bulk_value");
  cr_assert_eq(error_code("3B", of(std::numeric_limits<float>::infinity())), "bulk_value");
  cr_assert_eq(error_code("6A 05 09 02", of(Int128{1'000'000'000})), "bulk_value");
  cr_assert_eq(error_code("E7 04 00 09 04 D0 00 34", [](BatchBuilder& b) { b.bytes("abc"); }), "bulk_value");
  cr_assert_eq(error_code("A7 04 00 09 04 D0 00 34", [](BatchBuilder& b) { b.bytes("Ⅰ"); }), "bulk_value");

  const BulkColumn target = column("28");
  BatchBuilder builder({target.type});
  builder.value(std::int32_t{0}).value(date_max_days + 1);
  const auto batch = builder.build();
  BulkEncoder encoder({target});
  ByteBuffer out;
  out.push(0xAA);
  try {
    encoder.rows(*batch, 0, 2, out);
    cr_assert_fail("the second row must be refused");
  } catch (const Error& error) {
    cr_assert_eq(*error.context().row, 2u);
    cr_assert_eq(static_cast<int>(error.category()), static_cast<int>(Category::internal));
  }
  cr_assert_eq(to_hex(out.view()), "AA", "nothing is appended when rows() throws");
}

Test(bulk, types_that_do_not_belong_together_are_refused_at_once) {
  BulkColumn wrong = column("26 04");
  wrong.type = rows::Type::of(rows::TypeId::int64);
  cr_assert_throw(BulkEncoder({wrong}), Error);
  wrong = column("6A 09 0A 02");
  wrong.type = rows::Type::decimal(10, 3);
  cr_assert_throw(BulkEncoder({wrong}), Error);
  wrong = column("2A 07");
  wrong.type = rows::Type::timestamp(rows::TimeUnit::micro, 6, false);
  cr_assert_throw(BulkEncoder({wrong}), Error);
}

namespace {

// Random values of a type, the value's bytes by hand of the type's limits; NULL every third time when asked.
void fill_random(BatchBuilder& builder, const rows::Type& type, bool nulls, std::mt19937_64& random) {
  using rows::TypeId;
  if (nulls && random() % 3 == 0) {
    builder.null();
    return;
  }
  const auto integer = static_cast<std::int64_t>(random());
  const auto within = [&](std::int64_t min, std::int64_t max) {
    return min + static_cast<std::int64_t>(random() % (static_cast<std::uint64_t>(max - min) + 1));
  };
  switch (type.id) {
    case TypeId::boolean:
      builder.boolean((integer & 1) != 0);
      return;
    case TypeId::uint8:
      builder.value(static_cast<std::uint8_t>(integer));
      return;
    case TypeId::int16:
      builder.value(static_cast<std::int16_t>(integer));
      return;
    case TypeId::int32:
      builder.value(static_cast<std::int32_t>(integer));
      return;
    case TypeId::int64:
      builder.value(integer);
      return;
    case TypeId::float32:
      builder.value(static_cast<float>(integer));
      return;
    case TypeId::float64:
      builder.value(static_cast<double>(integer) / 7);
      return;
    case TypeId::decimal: {
      const bool money = type.scale == 4 && type.precision == 19;
      const Int128 value =
          money ? Int128{integer} : (Int128{integer} << 64 | random()) % decimal::pow10(type.precision);
      builder.value(value);
      return;
    }
    case TypeId::date:
      builder.value(static_cast<std::int32_t>(within(type.min, type.max)));
      return;
    case TypeId::time:
    case TypeId::timestamp: {
      const std::int64_t unit = type.quantum == rows::Quantum::minute     ? 60 * second
                                : type.quantum == rows::Quantum::tick_300 ? 10'000
                                : type.digits > 6                         ? 1
                                                  : power_of_ten[static_cast<std::size_t>(6 - type.digits)];
      builder.value(within(type.min / unit, type.max / unit) * unit);
      return;
    }
    case TypeId::uuid:
      builder.uuid(std::string(reinterpret_cast<const char*>(&integer), 8) + "12345678");
      return;
    default: {
      const std::size_t size = type.padded ? type.length : random() % (type.length == 0 ? 300 : type.length / 4 + 1);
      std::string text;
      for (std::size_t i = 0; i < size; ++i) text += static_cast<char>('a' + random() % 26);
      if (!type.padded && type.id != TypeId::binary && type.code_page == 0 && random() % 4 == 0) text += "é😀";
      if (type.length != 0 && text.size() > type.length) text.resize(type.length);
      builder.bytes(text);
    }
  }
}

void round_trip(const std::vector<BulkColumn>& columns, bool nulls, std::size_t rows, std::mt19937_64& random) {
  std::vector<rows::Type> types;
  std::vector<ColumnMeta> metadata;
  for (const BulkColumn& c : columns) {
    types.push_back(c.type);
    metadata.push_back(c.meta);
  }
  BatchBuilder builder(types);
  for (std::size_t row = 0; row < rows; ++row) {
    for (const rows::Type& type : types) fill_random(builder, type, nulls, random);
  }
  const auto batch = builder.build();
  BulkEncoder encoder(columns);
  ByteBuffer out;
  encoder.rows(*batch, 0, rows / 2, out);
  encoder.rows(*batch, rows / 2, rows, out);
  RowDecoder decoder(metadata, {}, SIZE_MAX);
  const RowProgress progress = decoder.rows(out.view());
  cr_assert_eq(static_cast<int>(progress.status), static_cast<int>(RowProgress::Status::ok), "%s",
               decoder.why().c_str());
  cr_assert_eq(progress.used, out.size());
  const auto back = decoder.take();
  cr_assert_eq(back->rows(), rows);
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t c = 0; c < columns.size(); ++c) {
      const std::string sent = print(value_of(types[c], batch->column(c), row));
      const std::string got = print(value_of(types[c], back->column(c), row));
      cr_assert_eq(sent, got, "row %zu column %zu (%s): sent %s, got %s", row, c, columns[c].declared.c_str(),
                   sent.c_str(), got.c_str());
    }
  }
}

}  // namespace

Test(bulk, what_is_encoded_decodes_to_the_same) {
  std::mt19937_64 random(20260101);
  std::vector<BulkColumn> fixed;
  for (const char* type :
       {"30",    "34",    "38",    "7F",    "32",    "3B",          "3E",          "3C",          "3D",
        "3A",    "24 10", "28",    "29 00", "29 03", "29 07",       "2A 00",       "2A 01",       "2A 04",
        "2A 06", "2A 07", "2B 02", "2B 06", "2B 07", "6A 05 09 02", "6A 09 13 04", "6C 0D 1C 00", "6A 11 26 0A"}) {
    fixed.push_back(column(type));
  }
  round_trip(fixed, false, 300, random);
  round_trip(fixed, true, 300, random);
  std::vector<BulkColumn> all = fixed;
  for (const char* type :
       {"E7 40 01 09 04 D0 00 34", "E7 FF FF 09 04 D0 00 34", "A7 50 00 09 04 D0 00 34", "A7 FF FF 09 04 D0 24 00",
        "AF 05 00 09 04 D0 00 34", "EF 0A 00 09 04 D0 00 34", "A5 50 00", "A5 FF FF", "AD 04 00", "62 49 1F 00 00"}) {
    all.push_back(column(type));
  }
  round_trip(all, false, 150, random);
  round_trip(all, true, 2500, random);
}

Test(bulk, statement_with_every_option) {
  std::vector<BulkColumn> columns = {column("26 04", "order"), column("E7 14 00 09 04 D0 00 34", "a]b"),
                                     column("A7 0A 00 09 04 D0 24 00", "naïve ☃"), column("6A 09 0A 02", "1st"),
                                     column("A5 FF FF", "sel ect")};
  columns[2].collation = "Latin1_General_100_CI_AS_SC_UTF8";
  cr_assert_eq(insert_bulk_statement({"my.schema", "odd]name 'x' \"y\""}, columns, {}),
               "INSERT BULK [my.schema].[odd]]name 'x' \"y\"] ([order] int, [a]]b] nvarchar(10), [naïve ☃] varchar(10) "
               "COLLATE Latin1_General_100_CI_AS_SC_UTF8, [1st] decimal(10,2), [sel ect] varbinary(max))");
  columns.resize(1);
  BulkOptions options;
  options.table_lock = options.check_constraints = options.fire_triggers = options.keep_nulls = true;
  options.kilobytes_per_batch = 64;
  options.rows_per_batch = 1000;
  options.order = {{"order", false}, {"x]", true}};
  cr_assert_eq(insert_bulk_statement({"t"}, columns, options),
               "INSERT BULK [t] ([order] int) WITH (TABLOCK, CHECK_CONSTRAINTS, FIRE_TRIGGERS, KEEP_NULLS, "
               "KILOBYTES_PER_BATCH = 64, ROWS_PER_BATCH = 1000, ORDER ([order] ASC, [x]]] DESC))");
}

Test(bulk, statement_refuses_what_is_no_name) {
  std::vector<BulkColumn> columns = {column("26 04")};
  cr_assert_throw((void)insert_bulk_statement({}, columns, {}), Error);
  cr_assert_throw((void)insert_bulk_statement({"t"}, {}, {}), Error);
  columns[0].collation = "x) print 1 --";
  cr_assert_throw((void)insert_bulk_statement({"t"}, columns, {}), Error);
}
