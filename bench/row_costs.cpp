// One stage of the pipeline over rows made in memory, for counting instructions (bench/callgrind.py).
//
//   row_costs decode|decode_tds|convert|hash|encode|encode_pg SHAPE BLOCKS      BLOCKS of 1024 rows; prints the rows
//
// decode: binary COPY messages -> Batch. decode_tds: ROW tokens -> Batch. convert: checked against the SQL Server
// column's type. hash: content hash. encode: Batch -> bulk rows. encode_pg: Batch -> binary COPY rows. Shapes: fixed
// (int4, int8, float8, timestamp, bool), text (int8, three texts, one with emoji), numeric (int8, numeric(18,2),
// numeric(38,10), date), nullable (fixed, a third of the values NULL).
#include <fmt/format.h>

#include <cstdlib>
#include <functional>

#include "postgres/wire/copy_decoder.hpp"
#include "postgres/wire/copy_encoder.hpp"
#include "rows/convert.hpp"
#include "rows/hash.hpp"
#include "tds/wire/bulk_encoder.hpp"
#include "tds/wire/logical_type.hpp"
#include "tds/wire/row_decoder.hpp"

namespace {

using namespace rowferry;  // NOLINT(google-build-using-namespace): a program of its own
using postgres::wire::CopyColumn;
using postgres::wire::CopyDecoder;
using postgres::wire::CopyEncoder;
using postgres::wire::CopyTarget;
using postgres::wire::Form;
using postgres::wire::PutForm;

constexpr std::size_t rows_per_block = 1024;

// One column: how it comes, how it goes, and the bytes of its value in row n (empty optional: NULL).
struct Column {
  CopyColumn in;
  tds::ColumnMeta out;
  std::function<void(ByteBuffer&, std::int64_t)> value;
};

template <class T>
std::function<void(ByteBuffer&, std::int64_t)> number(T factor) {
  return [factor](ByteBuffer& to, std::int64_t n) {
    to.put_be<std::int32_t>(sizeof(T));
    to.put_be<T>(static_cast<T>(static_cast<T>(n) * factor));
  };
}

void put_text(ByteBuffer& to, std::string_view text) {
  to.put_be<std::int32_t>(static_cast<std::int32_t>(text.size()));
  to.append(text);
}

// numeric_send: digits in base 10000, here always two before and one after the point.
void put_numeric(ByteBuffer& to, std::int64_t n, std::int16_t scale) {
  to.put_be<std::int32_t>(8 + 6);
  for (const int word :
       {3, 1, 0, static_cast<int>(scale), static_cast<int>(n % 9999 + 1), static_cast<int>(n * 7 % 10000), 2500}) {
    to.put_be<std::int16_t>(static_cast<std::int16_t>(word));
  }
}

tds::ColumnMeta meta(tds::DataType id, std::uint32_t length, std::uint8_t precision = 0, std::uint8_t scale = 0) {
  tds::ColumnMeta m;
  m.flags = tds::flag_nullable | tds::flag_updatable_unknown;
  m.type.id = id;
  m.type.max_length = length;
  m.type.precision = precision;
  m.type.scale = scale;
  m.type.collation = {.info = 0x00D00409, .sort_id = 0x34};
  return m;
}

Column make(std::string name, Form form, rows::Type type, tds::ColumnMeta out,
            std::function<void(ByteBuffer&, std::int64_t)> value) {
  out.name = name;
  CopyColumn in;
  in.name = std::move(name);
  in.form = form;
  in.type = type;
  return {std::move(in), std::move(out), std::move(value)};
}

std::vector<Column> shape_columns(std::string_view shape) {
  using rows::Type;
  using rows::TypeId;
  std::vector<Column> all;
  if (shape == "fixed" || shape == "nullable") {
    all.push_back(
        make("id", Form::int32, Type::of(TypeId::int32), meta(tds::DataType::intn, 4), number<std::int32_t>(1)));
    all.push_back(
        make("b", Form::int64, Type::of(TypeId::int64), meta(tds::DataType::intn, 8), number<std::int64_t>(7)));
    all.push_back(
        make("f", Form::float64, Type::of(TypeId::float64), meta(tds::DataType::fltn, 8), number<double>(0.5)));
    all.push_back(make("t", Form::timestamp, Type::timestamp(rows::TimeUnit::micro, 6, false),
                       meta(tds::DataType::datetime2, 0, 0, 6), number<std::int64_t>(1'000'000)));
    all.push_back(make("k", Form::boolean, Type::of(TypeId::boolean), meta(tds::DataType::bitn, 1),
                       [](ByteBuffer& to, std::int64_t n) {
                         to.put_be<std::int32_t>(1);
                         to.push(static_cast<std::uint8_t>(n % 2));
                       }));
    if (shape == "nullable") {
      for (std::size_t i = 0; i < all.size(); ++i) {
        all[i].value = [i, inner = all[i].value](ByteBuffer& to, std::int64_t n) {
          if ((n + static_cast<std::int64_t>(i)) % 3 == 0) {
            to.put_be<std::int32_t>(-1);
          } else {
            inner(to, n);
          }
        };
      }
    }
  } else if (shape == "text") {
    all.push_back(
        make("id", Form::int64, Type::of(TypeId::int64), meta(tds::DataType::intn, 8), number<std::int64_t>(1)));
    all.push_back(make(
        "a", Form::bytes, Type::text(40), meta(tds::DataType::nvarchar, 160),
        [](ByteBuffer& to, std::int64_t n) { put_text(to, fmt::format("order {} of customer {}", n, n % 1000)); }));
    all.push_back(make("b", Form::bytes, Type::text(20), meta(tds::DataType::nvarchar, 80),
                       [](ByteBuffer& to, std::int64_t n) { put_text(to, fmt::format("naïve {} 🚚", n % 100)); }));
    all.push_back(make(
        "c", Form::bytes, Type::text(), meta(tds::DataType::nvarchar, tds::max_length_plp),
        [](ByteBuffer& to, std::int64_t n) { put_text(to, std::string(static_cast<std::size_t>(n % 200), 'x')); }));
  } else if (shape == "numeric") {
    all.push_back(
        make("id", Form::int64, Type::of(TypeId::int64), meta(tds::DataType::intn, 8), number<std::int64_t>(1)));
    all.push_back(make("a", Form::numeric, Type::decimal(18, 2), meta(tds::DataType::decimaln, 9, 18, 2),
                       [](ByteBuffer& to, std::int64_t n) { put_numeric(to, n, 2); }));
    all.push_back(make("b", Form::numeric, Type::decimal(38, 10), meta(tds::DataType::decimaln, 17, 38, 10),
                       [](ByteBuffer& to, std::int64_t n) { put_numeric(to, n + 1, 10); }));
    all.push_back(
        make("d", Form::date, Type::of(TypeId::date), meta(tds::DataType::date, 0), [](ByteBuffer& to, std::int64_t n) {
          to.put_be<std::int32_t>(4);
          to.put_be<std::int32_t>(static_cast<std::int32_t>(n % 10000));
        }));
  }
  return all;
}

// How PostgreSQL takes what it has sent.
PutForm put_form(Form form) {
  switch (form) {
    case Form::boolean:
      return PutForm::boolean;
    case Form::int32:
      return PutForm::int32;
    case Form::int64:
      return PutForm::int64;
    case Form::float64:
      return PutForm::float64;
    case Form::numeric:
      return PutForm::numeric;
    case Form::date:
      return PutForm::date;
    case Form::timestamp:
      return PutForm::timestamp;
    default:
      return PutForm::bytes;
  }
}

// A prepared stage: run() does one block of rows.
class Work {
 public:
  explicit Work(std::string_view shape) : columns_(shape_columns(shape)) {
    auto from = std::make_shared<rows::Schema>();
    auto to = std::make_shared<rows::Schema>();
    for (const Column& c : columns_) {
      from->fields.push_back({c.in.name, c.in.type, true});
      to->fields.push_back({c.in.name, tds::logical_type(c.out), true});
    }
    from_ = from;
    to_ = to;
    from_pool_ = rows::BatchPool::make(from_);
    for (std::int64_t n = 0; n < static_cast<std::int64_t>(rows_per_block); ++n) {
      ByteBuffer row;
      row.put_be<std::int16_t>(static_cast<std::int16_t>(columns_.size()));
      for (const Column& c : columns_) c.value(row, n);
      messages_.push_back(std::move(row));
    }
    std::vector<CopyColumn> in;
    for (const Column& c : columns_) in.push_back(c.in);
    decoder_ = std::make_unique<CopyDecoder>(std::move(in));
    ByteBuffer header;
    header.append(std::string_view("PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0", 19));
    decoder_->accept(header.view());
    converter_ = std::make_unique<rows::Converter>(from_, to_, std::vector<rows::LossPolicy>(columns_.size()));
    hasher_ = std::make_unique<rows::RowHasher>(*to_, std::vector<bool>(columns_.size(), true));
    std::vector<tds::BulkColumn> bulk;
    std::vector<tds::ColumnMeta> described;
    for (const Column& c : columns_) {
      const tds::BulkForm form = tds::bulk_form(c.out);
      described.push_back(form.meta);
      bulk.push_back({.meta = form.meta, .declared = form.declared, .collation = "", .type = tds::logical_type(c.out)});
    }
    encoder_ = std::make_unique<tds::BulkEncoder>(std::move(bulk));
    row_decoder_ = std::make_unique<tds::RowDecoder>(std::move(described), std::vector<rows::ColumnLoss*>{},
                                                     std::size_t{1} << 30U);
    std::vector<CopyTarget> copy;
    for (const Column& c : columns_) copy.push_back({c.in.name, put_form(c.in.form), c.in.type});
    copy_encoder_ = std::make_unique<CopyEncoder>(std::move(copy));
  }

  bool known() const noexcept { return !columns_.empty(); }

  rows::BatchPtr decode() {
    rows::BatchPtr batch = from_pool_->take();
    std::size_t done = 0;
    for (const ByteBuffer& message : messages_) {
      if (decoder_->accept(message.view()) != CopyDecoder::Got::row)
        throw Error(Category::internal, "bench", decoder_->problem());
      if (decoder_->pending() < CopyDecoder::block_rows) continue;
      const std::size_t pending = decoder_->pending();
      if (!decoder_->decode(*batch, done)) throw Error(Category::internal, "bench", decoder_->problem());
      done += pending;
    }
    batch->seal(done);
    return batch;
  }
  rows::BatchPtr convert(rows::BatchPtr batch) { return converter_->convert(std::move(batch)); }
  void hash(const rows::Batch& batch) { hasher_->add(batch, hash_); }
  void encode(const rows::Batch& batch) {
    tokens_.clear();
    encoder_->rows(batch, 0, batch.rows(), tokens_);
  }
  // What encode() has made.
  void decode_tds() {
    const tds::RowProgress progress = row_decoder_->rows(tokens_.view());
    if (progress.used != tokens_.size()) throw Error(Category::internal, "bench", row_decoder_->why());
    row_decoder_->take();
  }
  void encode_pg(const rows::Batch& batch) {
    tokens_.clear();
    copy_encoder_->rows(batch, 0, batch.rows(), tokens_);
  }

 private:
  std::vector<Column> columns_;
  rows::SchemaPtr from_;
  rows::SchemaPtr to_;
  std::shared_ptr<rows::BatchPool> from_pool_;
  std::vector<ByteBuffer> messages_;
  std::unique_ptr<CopyDecoder> decoder_;
  std::unique_ptr<rows::Converter> converter_;
  std::unique_ptr<rows::RowHasher> hasher_;
  std::unique_ptr<tds::BulkEncoder> encoder_;
  std::unique_ptr<CopyEncoder> copy_encoder_;
  std::unique_ptr<tds::RowDecoder> row_decoder_;
  rows::ContentHash hash_;
  ByteBuffer tokens_;
};

int run(std::string_view stage, std::string_view shape, long blocks) {
  Work work(shape);
  if (!work.known()) return 2;
  const rows::BatchPtr ready = stage == "encode_pg" ? work.decode() : work.convert(work.decode());
  if (stage == "decode_tds") work.encode(*ready);
  for (long i = 0; i < blocks; ++i) {
    if (stage == "decode_tds") {
      work.decode_tds();
    } else if (stage == "decode") {
      work.decode();
    } else if (stage == "convert") {
      work.convert(work.decode());
    } else if (stage == "hash") {
      work.hash(*ready);
    } else if (stage == "encode") {
      work.encode(*ready);
    } else if (stage == "encode_pg") {
      work.encode_pg(*ready);
    } else {
      return 2;
    }
  }
  fmt::print("{}\n", static_cast<std::size_t>(blocks) * rows_per_block);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int code = argc == 4 ? run(argv[1], argv[2], std::strtol(argv[3], nullptr, 10)) : 2;
    if (code == 2)
      fmt::print(
          stderr,
          "usage: row_costs decode|decode_tds|convert|hash|encode|encode_pg fixed|text|numeric|nullable BLOCKS\n");
    return code;
  } catch (const Error& error) {
    fmt::print(stderr, "row_costs: {}\n", error.one_line());
    return 1;
  }
}
