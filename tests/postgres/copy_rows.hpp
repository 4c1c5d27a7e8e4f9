// Rows of binary COPY, written as a server would.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "../support/hex.hpp"
#include "postgres/wire/copy_decoder.hpp"

namespace rowferry::postgres::test {

using rowferry::test::from_hex;
using wire::CopyColumn;
using wire::CopyDecoder;
using wire::Form;

inline const std::string header = from_hex("50 47 43 4F 50 59 0A FF 0D 0A 00  00 00 00 00  00 00 00 00");
inline const std::string trailer = from_hex("FF FF");

using Field = std::optional<std::string>;  // bytes, or NULL

inline std::string row(const std::vector<Field>& fields) {
  ByteBuffer out;
  out.put_be(static_cast<std::int16_t>(fields.size()));
  for (const Field& field : fields) {
    out.put_be(field ? static_cast<std::int32_t>(field->size()) : std::int32_t{-1});
    if (field) out.append(*field);
  }
  return std::string(as_text(out.view()));
}
template <class T>
std::string be(T value) {
  std::string out(sizeof value, '\0');
  store_be(reinterpret_cast<std::uint8_t*>(out.data()), value);
  return out;
}

inline CopyDecoder::Got feed(CopyDecoder& decoder, const std::string& message) {
  return decoder.accept(as_bytes(message));
}

inline std::unique_ptr<rows::Batch> batch_for(const std::vector<CopyColumn>& columns) {
  rows::Schema schema;
  for (const CopyColumn& column : columns) schema.fields.push_back({column.name, column.type, true});
  return std::make_unique<rows::Batch>(std::make_shared<const rows::Schema>(std::move(schema)));
}

// One column's fields, decoded; null when the input was malformed (`problem` says how).
struct Decoded {
  std::unique_ptr<rows::Batch> batch;
  std::string problem;
  std::vector<std::uint64_t> changed;
  const rows::ColumnView& column() const { return batch->column(0); }
};
inline Decoded decode_column(CopyColumn column, const std::vector<Field>& fields) {
  column.name = "v";
  const std::vector<CopyColumn> columns{column};
  CopyDecoder decoder(columns);
  Decoded out{batch_for(columns), "", {}};
  std::vector<std::string> held;
  std::size_t done = 0;
  bool good = feed(decoder, header) == CopyDecoder::Got::nothing;
  const auto decode = [&] {
    const std::size_t pending = decoder.pending();
    good = good && decoder.decode(*out.batch, done);
    done += pending;
    held.clear();
  };
  held.reserve(CopyDecoder::block_rows);
  for (const Field& field : fields) {
    held.push_back(row({field}));
    good = good && feed(decoder, held.back()) == CopyDecoder::Got::row;
    if (decoder.pending() == CopyDecoder::block_rows) decode();
  }
  decode();
  good = good && feed(decoder, trailer) == CopyDecoder::Got::end;
  out.changed = decoder.changed();
  if (!good) {
    out.problem = decoder.problem();
    out.batch.reset();
    return out;
  }
  out.batch->seal(done);
  return out;
}

}  // namespace rowferry::postgres::test
