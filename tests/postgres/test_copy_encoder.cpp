#include <random>

#include "../support/expect.hpp"
#include "base/civil.hpp"
#include "base/decimal.hpp"
#include "copy_rows.hpp"
#include "postgres/wire/copy_encoder.hpp"

using namespace rowferry;
using namespace rowferry::postgres::test;
using postgres::wire::CopyEncoder;
using postgres::wire::CopyTarget;
using postgres::wire::PutForm;
using postgres::wire::takes;
using rowferry::test::to_hex;
using rows::ColumnBuffer;
using rows::TimeUnit;
using rows::Type;
using rows::TypeId;

namespace {

CopyTarget target(PutForm form, const Type& type, std::string name = "v") { return {std::move(name), form, type}; }

std::unique_ptr<rows::Batch> batch_of(const std::vector<CopyTarget>& columns) {
  rows::Schema schema;
  for (const CopyTarget& column : columns) schema.fields.push_back({column.name, column.type, true});
  return std::make_unique<rows::Batch>(std::make_shared<const rows::Schema>(std::move(schema)));
}

template <class T>
void put(rows::Batch& batch, std::size_t column, std::size_t row, T value) {
  batch.buffer(column).append(row, value);
}
void put_text(rows::Batch& batch, std::size_t column, std::size_t row, std::string_view text) {
  batch.buffer(column).append_bytes(row, as_bytes(text));
}

std::string encode(const std::vector<CopyTarget>& columns, const rows::Batch& batch) {
  CopyEncoder encoder(columns);
  ByteBuffer out;
  encoder.rows(batch, 0, batch.rows(), out);
  return std::string(as_text(out.view()));
}

// One value of a fixed-size type: its field without the row around it, as hex.
template <class T>
std::string field_of(PutForm form, const Type& type, T value) {
  const std::vector<CopyTarget> columns{target(form, type)};
  const auto batch = batch_of(columns);
  put(*batch, 0, 0, value);
  batch->seal(1);
  return to_hex(as_bytes(encode(columns, *batch).substr(6)));
}
std::string text_field(PutForm form, const Type& type, std::string_view text) {
  const std::vector<CopyTarget> columns{target(form, type)};
  const auto batch = batch_of(columns);
  put_text(*batch, 0, 0, text);
  batch->seal(1);
  return encode(columns, *batch).substr(6);
}
std::string numeric(std::string_view digits, int precision, int scale) {
  Int128 value = 0;
  cr_assert(decimal::parse(digits, scale, precision, value) == decimal::Status::ok);
  return field_of(PutForm::numeric, Type::decimal(precision, scale), value);
}
std::int64_t micros(int year, int month, int day) {
  return civil::days_from({year, static_cast<std::uint8_t>(month), static_cast<std::uint8_t>(day)}) *
         civil::micros_per_day;
}
Type micro(bool zoned) { return Type::timestamp(TimeUnit::micro, 6, zoned); }

// A line of the text format.
std::string line(const std::vector<CopyTarget>& columns, const rows::Batch& batch) { return encode(columns, batch); }

}  // namespace

Test(copy_encoder, header_row_and_trailer_are_those_of_the_manual) {
  const std::vector<CopyTarget> columns{target(PutForm::int32, Type::of(TypeId::int32), "a"),
                                        target(PutForm::bytes, Type::text(), "b")};
  const auto batch = batch_of(columns);
  put(*batch, 0, 0, std::int32_t{1});
  put_text(*batch, 1, 0, "xyz");
  put(*batch, 0, 1, std::int32_t{-2});
  batch->buffer(1).append_null(TypeId::text, 1);
  batch->seal(2);
  CopyEncoder encoder(columns);
  ByteBuffer out;
  encoder.header(out);
  encoder.rows(*batch, 0, 2, out);
  encoder.trailer(out);
  const std::string expected =
      header + row({from_hex("00000001"), "xyz"}) + row({from_hex("FFFFFFFE"), std::nullopt}) + trailer;
  EXPECT_TEXT(to_hex(out.view()), to_hex(as_bytes(expected)));
  EXPECT_TEXT(std::string(encoder.format()), "binary");
}

// Fields as PostgreSQL 15's own COPY TO … (FORMAT binary) gives them for these values.
Test(copy_encoder, fixed_values_have_the_servers_bytes) {
  EXPECT_TEXT(field_of(PutForm::int16, Type::of(TypeId::int16), std::int16_t{200}), "00 C8");
  EXPECT_TEXT(field_of(PutForm::int64, Type::of(TypeId::int64), std::int64_t{3'000'000'000}),
              "00 00 00 00 B2 D0 5E 00");
  EXPECT_TEXT(field_of(PutForm::uint32, Type::of(TypeId::uint32), std::uint32_t{4'294'967'295}), "FF FF FF FF");
  EXPECT_TEXT(field_of(PutForm::float32, Type::of(TypeId::float32), 1.5F), "3F C0 00 00");
  EXPECT_TEXT(field_of(PutForm::float64, Type::of(TypeId::float64), -0.1), "BF B9 99 99 99 99 99 9A");
  EXPECT_TEXT(field_of(PutForm::date, Type::of(TypeId::date), std::int32_t{10'958}), "00 00 00 01");
  EXPECT_TEXT(field_of(PutForm::date, Type::of(TypeId::date), civil::day_0001_01_01), "FF F4 DB F9");
  EXPECT_TEXT(field_of(PutForm::time, Type::time(TimeUnit::micro, 6), std::int64_t{86'399'999'999}),
              "00 00 00 14 1D D7 5F FF");
  EXPECT_TEXT(field_of(PutForm::timestamp, micro(false), micros(2000, 1, 1) + 1), "00 00 00 00 00 00 00 01");
  EXPECT_TEXT(field_of(PutForm::timestamp, micro(true), micros(2024, 1, 15) + 37'845'123'000),
              "00 02 B1 F8 46 6F 3F B8");
  EXPECT_TEXT(field_of(PutForm::money, Type::decimal(19, 2), Int128{29'668'543}), "00 00 00 00 01 C4 B4 BF");
}

Test(copy_encoder, infinities_keep_the_ends_of_the_integers) {
  EXPECT_TEXT(field_of(PutForm::date, Type::of(TypeId::date), std::numeric_limits<std::int32_t>::max()), "7F FF FF FF");
  EXPECT_TEXT(field_of(PutForm::timestamp, micro(false), std::numeric_limits<std::int64_t>::min()),
              "80 00 00 00 00 00 00 00");
}

Test(copy_encoder, booleans_and_uuids) {
  const std::vector<CopyTarget> columns{target(PutForm::boolean, Type::of(TypeId::boolean), "b"),
                                        target(PutForm::uuid, Type::of(TypeId::uuid), "u")};
  const auto batch = batch_of(columns);
  batch->buffer(0).append_boolean(0, true);
  batch->buffer(1).values.append(from_hex("00112233 44556677 8899AABB CCDDEEFF"));
  batch->buffer(1).append_valid(0);
  batch->seal(1);
  EXPECT_TEXT(to_hex(as_bytes(encode(columns, *batch))),
              "00 02 00 00 00 01 01 00 00 00 10 00 11 22 33 44 55 66 77 88 99 AA BB CC DD EE FF");
}

Test(copy_encoder, numeric_has_the_servers_digits) {
  EXPECT_TEXT(numeric("0", 5, 0), "00 00 00 00 00 00 00 00");
  EXPECT_TEXT(numeric("0", 5, 2), "00 00 00 00 00 00 00 02");
  EXPECT_TEXT(numeric("1", 5, 0), "00 01 00 00 00 00 00 00 00 01");
  EXPECT_TEXT(numeric("-0.0500000000000", 28, 13), "00 01 FF FF 40 00 00 0D 01 F4");
  EXPECT_TEXT(numeric("296685.4300", 19, 4), "00 03 00 01 00 00 00 04 00 1D 1A 1D 10 CC");
  EXPECT_TEXT(numeric("-922337203685477.5808", 19, 4), "00 05 00 03 40 00 00 04 03 9A 0D 2C 01 70 15 65 16 B0");
  EXPECT_TEXT(numeric("30000", 9, 0), "00 01 00 01 00 00 00 00 00 03");
  EXPECT_TEXT(numeric("10000.0001", 12, 4), "00 03 00 01 00 00 00 04 00 01 00 00 00 01");
  EXPECT_TEXT(numeric("0.00005", 12, 5), "00 01 FF FE 00 00 00 05 13 88");
}

Test(copy_encoder, numeric_of_every_size_and_scale_is_read_back_the_same) {
  std::mt19937_64 random(7);
  for (int scale = 0; scale <= 38; ++scale) {
    for (int digits = 1; digits <= 38; ++digits) {
      for (int i = 0; i < 4; ++i) {
        Int128 value = 0;
        for (int d = 0; d < digits; ++d)
          value = value * 10 + (i == 0 ? 9 : i == 1 ? static_cast<int>(random() % 2) : static_cast<int>(random() % 10));
        if (i % 2 == 1) value = -value;
        const std::string field =
            from_hex([&] { return field_of(PutForm::numeric, Type::decimal(38, scale), value); }());
        Int128 back = 1;
        const auto fit = postgres::wire::read_numeric(as_bytes(field), 38, scale, back);
        cr_assert(fit == postgres::wire::NumericFit::exact && back == value, "%s at scale %d",
                  decimal::to_text(value, scale).c_str(), scale);
        cr_assert(field.size() == 8 || load_be<std::uint16_t>(reinterpret_cast<const std::uint8_t*>(field.data()) +
                                                              field.size() - 2) != 0,
                  "a zero digit is left at the end");
      }
    }
  }
}

Test(copy_encoder, texts_of_every_length_are_copied_whole) {
  std::string text;
  for (int i = 0; i < 300; ++i) {
    EXPECT_TEXT(text_field(PutForm::bytes, Type::text(), text), text);
    text += static_cast<char>('!' + i % 90);
  }
}

Test(copy_encoder, jsonb_has_its_version_and_xml_loses_its_encoding) {
  EXPECT_TEXT(text_field(PutForm::jsonb, Type::of(TypeId::json), "[1]"), "\001[1]");
  EXPECT_TEXT(
      text_field(PutForm::xml, Type::text(), "<?xml version=\"1.0\" encoding='utf-16' standalone=\"yes\"?><a/>"),
      "<?xml version=\"1.0\" standalone=\"yes\"?><a/>");
  EXPECT_TEXT(text_field(PutForm::xml, Type::text(), "<a b=' encoding=\"x\"'/>"), "<a b=' encoding=\"x\"'/>");
}

Test(copy_encoder, a_vector_becomes_an_array_of_real) {
  EXPECT_TEXT(
      to_hex(as_bytes(text_field(PutForm::real_array, Type::text(), " [1.5e+000, -2] "))),
      "00 00 00 01 00 00 00 00 00 00 02 BC 00 00 00 02 00 00 00 01 00 00 00 04 3F C0 00 00 00 00 00 04 C0 00 00 00");
  EXPECT_TEXT(to_hex(as_bytes(text_field(PutForm::real_array, Type::text(), "[]"))),
              "00 00 00 00 00 00 00 00 00 00 02 BC");
  for (const char* bad : {"", "[", "1,2", "[1,,2]", "[1;2]", "[x]", "[1,]"}) {
    EXPECT_ERROR(text_field(PutForm::real_array, Type::text(), bad), "value_does_not_fit");
  }
}

Test(copy_encoder, a_value_that_postgresql_lacks_is_an_error_with_its_place) {
  const std::vector<CopyTarget> columns{target(PutForm::int32, Type::of(TypeId::int32), "id"),
                                        target(PutForm::timestamp, micro(false), "at")};
  for (const bool with_null : {false, true}) {
    const auto batch = batch_of(columns);
    batch->first_row = 100;
    for (std::size_t i = 0; i < 3; ++i) put(*batch, 0, i, static_cast<std::int32_t>(i));
    put(*batch, 1, 0, std::int64_t{0});
    put(*batch, 1, 1, micros(-5000, 1, 1));
    if (with_null) {
      batch->buffer(1).append_null(TypeId::timestamp, 2);
    } else {
      put(*batch, 1, 2, std::int64_t{0});
    }
    batch->seal(3);
    CopyEncoder encoder(columns);
    ByteBuffer out;
    out.push(7);
    std::optional<Error> error;
    try {
      encoder.rows(*batch, 0, 3, out);
    } catch (const Error& e) {
      error = e;
    }
    cr_assert(error.has_value(), "no error");
    EXPECT_TEXT(error->code(), "value_does_not_fit");
    EXPECT_TEXT(error->context().column, "at");
    cr_expect_eq(error->context().row.value_or(0), 102);
    cr_expect_eq(out.size(), 1, "bytes of a refused batch are left");
  }
  EXPECT_ERROR(field_of(PutForm::date, Type::of(TypeId::date), std::int32_t{2'145'042'906}), "value_does_not_fit");
  EXPECT_ERROR(field_of(PutForm::time, Type::time(TimeUnit::micro, 6), std::int64_t{-1}), "value_does_not_fit");
  EXPECT_ERROR(field_of(PutForm::money, Type::decimal(38, 2), Int128{1} << 63), "value_does_not_fit");
}

Test(copy_encoder, a_type_that_the_form_cannot_take_is_refused_when_bound) {
  cr_expect(takes(PutForm::int32, Type::of(TypeId::int32)));
  cr_expect(!takes(PutForm::int32, Type::of(TypeId::int64)));
  cr_expect(!takes(PutForm::time, Type::time(TimeUnit::hundred_nano, 7)));
  EXPECT_ERROR(CopyEncoder({target(PutForm::int64, Type::of(TypeId::int32))}), "copy_type");
}

Test(copy_encoder, the_text_format_escapes_what_copy_means) {
  const std::vector<CopyTarget> columns{
      target(PutForm::printed, Type::text(), "i"),   target(PutForm::bytes, Type::text(), "t"),
      target(PutForm::bytes, Type::binary(), "b"),   target(PutForm::numeric, Type::decimal(5, 2), "n"),
      target(PutForm::timestamp, micro(true), "at"), target(PutForm::date, Type::of(TypeId::date), "d"),
      target(PutForm::real_array, Type::text(), "v")};
  const auto batch = batch_of(columns);
  put_text(*batch, 0, 0, "1 mon 2 days");
  put_text(*batch, 1, 0, "a\\b\tc\nd\re\\.");
  put_text(*batch, 2, 0, std::string_view("\0\xFF", 2));
  put(*batch, 3, 0, Int128{-5});
  put(*batch, 4, 0, micros(2024, 7, 1) + 1'500'000);
  put(*batch, 5, 0, civil::days_from({-43, 3, 15}));
  put_text(*batch, 6, 0, "[1,2.5]");
  batch->seal(1);
  EXPECT_TEXT(line(columns, *batch),
              "1 mon 2 days\ta\\\\b\\tc\\nd\\re\\\\.\t\\\\x00ff\t-0.05\t2024-07-01 00:00:01.5+00:00\t"
              "0044-03-15 BC\t{1,2.5}\n");
  CopyEncoder encoder(columns);
  ByteBuffer out;
  encoder.header(out);
  encoder.trailer(out);
  cr_expect(out.empty(), "the text format has a header or a trailer");
  EXPECT_TEXT(std::string(encoder.format()), "text");
}

namespace {

struct Kind {
  PutForm put;
  Form get;
  Type type;
};

const std::vector<Kind> kinds{
    {PutForm::boolean, Form::boolean, Type::of(TypeId::boolean)},
    {PutForm::int16, Form::int16, Type::of(TypeId::int16)},
    {PutForm::int32, Form::int32, Type::of(TypeId::int32)},
    {PutForm::int64, Form::int64, Type::of(TypeId::int64)},
    {PutForm::float32, Form::float32, Type::of(TypeId::float32)},
    {PutForm::float64, Form::float64, Type::of(TypeId::float64)},
    {PutForm::numeric, Form::numeric, Type::decimal(38, 7)},
    {PutForm::numeric, Form::numeric, Type::decimal(9, 2)},
    {PutForm::money, Form::money, Type::decimal(19, 2)},
    {PutForm::date, Form::date, Type::of(TypeId::date)},
    {PutForm::time, Form::time, Type::time(TimeUnit::micro, 6)},
    {PutForm::timestamp, Form::timestamp, micro(false)},
    {PutForm::uuid, Form::uuid, Type::of(TypeId::uuid)},
    {PutForm::bytes, Form::bytes, Type::text()},
    {PutForm::bytes, Form::bytes, Type::binary()},
    {PutForm::jsonb, Form::jsonb, Type::of(TypeId::json)},
};

void put_random(std::mt19937_64& random, const Type& type, ColumnBuffer& to, std::size_t row) {
  switch (type.id) {
    case TypeId::boolean:
      return to.append_boolean(row, random() % 2 != 0);
    case TypeId::int16:
      return to.append(row, static_cast<std::int16_t>(random()));
    case TypeId::int32:
    case TypeId::float32:
      return to.append(row, static_cast<std::int32_t>(random()));
    case TypeId::date:
      return to.append(row, static_cast<std::int32_t>(random() % 4'000'000) - 2'000'000);
    case TypeId::int64:
    case TypeId::float64:
      return to.append(row, static_cast<std::int64_t>(random()));
    case TypeId::time:
      return to.append(row, static_cast<std::int64_t>(random() % 86'400'000'001));
    case TypeId::timestamp:
      return to.append(row, static_cast<std::int64_t>(random() % 400'000'000'000'000'000) - 200'000'000'000'000'000);
    case TypeId::decimal: {
      auto value = static_cast<Int128>(random() >> (random() % 64));
      if (type.precision > 30) value *= static_cast<Int128>(random() % 1'000'000'000'000);
      if (type.precision == 9) value %= 1'000'000'000;
      if (type.precision == 19) value >>= 1;
      return to.append(row, random() % 2 == 0 ? value : -value);
    }
    case TypeId::uuid: {
      to.values.put_le(random());
      to.values.put_le(random());
      return to.append_valid(row);
    }
    default: {
      const std::string text(random() % 40 + (random() % 50 == 0 ? 500 : 0), static_cast<char>('a' + random() % 26));
      return to.append_bytes(row, as_bytes(text));
    }
  }
}

// Some columns of random kinds, rows with and without NULL, encoded and decoded again.
void round_trip(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const std::size_t count = 1 + random() % 12;
  std::vector<CopyTarget> columns;
  std::vector<CopyColumn> back;
  std::vector<int> null_share;
  for (std::size_t c = 0; c < count; ++c) {
    const Kind& kind = kinds[random() % kinds.size()];
    const std::string name = "c" + std::to_string(c);
    columns.push_back({name, kind.put, kind.type});
    back.push_back({name, kind.get, kind.type, {}, true});
    null_share.push_back(random() % 2 == 0 ? 0 : static_cast<int>(random() % 101));
  }
  const std::size_t rows = 1 + random() % 700;
  const auto batch = batch_of(columns);
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < count; ++c) {
      const bool null = null_share[c] != 0 && static_cast<int>(random() % 100) < null_share[c];
      if (null) {
        batch->buffer(c).append_null(columns[c].type.id, r);
      } else {
        put_random(random, columns[c].type, batch->buffer(c), r);
      }
    }
  }
  batch->seal(rows);
  CopyEncoder encoder(columns);
  CopyDecoder decoder(back);
  const auto read = batch_for(back);
  std::vector<ByteBuffer> held(rows);
  std::size_t done = 0;
  cr_assert(feed(decoder, header) == CopyDecoder::Got::nothing);
  // Row by row for the decoder, which takes messages of one row; and all at once, which must give the same bytes.
  ByteBuffer one_by_one;
  for (std::size_t r = 0; r < rows; ++r) {
    encoder.rows(*batch, r, r + 1, held[r]);
    one_by_one.append(held[r].view());
    cr_assert(decoder.accept(held[r].view()) == CopyDecoder::Got::row, "%s", decoder.problem().c_str());
    if (decoder.pending() < CopyDecoder::block_rows && r + 1 != rows) continue;
    const std::size_t pending = decoder.pending();
    cr_assert(decoder.decode(*read, done), "%s", decoder.problem().c_str());
    done += pending;
  }
  read->seal(rows);
  ByteBuffer whole;
  encoder.rows(*batch, 0, rows, whole);
  cr_assert(whole.size() == one_by_one.size() && std::memcmp(whole.data(), one_by_one.data(), whole.size()) == 0,
            "seed %llu: rows at once differ from rows one by one", static_cast<unsigned long long>(seed));
  for (std::size_t c = 0; c < count; ++c) {
    for (std::size_t r = 0; r < rows; ++r) {
      const rows::ColumnView& a = batch->column(c);
      const rows::ColumnView& b = read->column(c);
      bool same = a.valid(r) == b.valid(r);
      const TypeId id = columns[c].type.id;
      const std::size_t width = rows::fixed_width(id);
      if (same && a.valid(r)) {
        if (id == TypeId::boolean) {
          same = a.boolean(r) == b.boolean(r);
        } else if (width != 0) {
          same = std::memcmp(a.values + r * width, b.values + r * width, width) == 0;
        } else {
          same = a.text(r) == b.text(r);
        }
      }
      cr_assert(same, "seed %llu: column %zu (%s), row %zu", static_cast<unsigned long long>(seed), c,
                rows::to_string(columns[c].type).c_str(), r);
    }
  }
}

}  // namespace

Test(copy_encoder, random_batches_are_read_back_by_the_decoder) {
  for (std::uint64_t seed = 1; seed <= 150; ++seed) round_trip(seed);
}

Test(copy_encoder, bits_behind_an_offset_are_the_right_ones) {
  // An Arrow slice: both bitmaps begin at bit 3.
  const std::vector<CopyTarget> columns{target(PutForm::boolean, Type::of(TypeId::boolean))};
  const std::uint8_t validity[] = {0xFF, 0x01};
  const std::uint8_t values[] = {0b10101000, 0x01};
  rows::ColumnView view;
  view.validity = validity;
  view.values = values;
  view.bit_offset = 3;
  const auto batch = batch_of(columns);
  batch->adopt(0, view, 4, nullptr);
  batch->seal(6);
  std::string got;
  const std::string bytes = encode(columns, *batch);
  for (std::size_t i = 6; i < bytes.size(); i += 7) got += bytes[i] == 1 ? '1' : '0';
  EXPECT_TEXT(got, "101011");
}
