// The decode function of one column, bound once from its type: bytes of one value into the column's buffer.
#pragma once

#include <string>

#include "base/text.hpp"
#include "rows/batch.hpp"
#include "rows/loss.hpp"
#include "tds/wire/types.hpp"

namespace rowferry::tds {

// What a decode function needs beside the value.
struct DecodeColumn {
  rows::ColumnBuffer* buffer = nullptr;
  rows::TypeId id = rows::TypeId::null;
  const text::CodePage* page = nullptr;
  rows::ColumnLoss* loss = nullptr;
  const std::string* name = nullptr;
  std::uint64_t rows_before = 0;   // of the slice, in earlier batches
  std::int64_t factor = 1;         // units of the Batch per unit of the wire (times)
  std::int64_t units_per_day = 0;  // of the Batch (timestamps)
  std::size_t time_bytes = 0;
};

// Appends one value, which is not NULL. False: the bytes are not a value of the type. Throws Error for a value that is
// one but cannot be held (see RowDecoder).
using Decode = bool (*)(DecodeColumn& column, std::size_t row, ByteView value);

// Fills the parts of `column` that its function needs. Throws Error(unsupported) as logical_type() does.
Decode bind_decode(const TypeInfo& type, const rows::Type& logical, DecodeColumn& column);

}  // namespace rowferry::tds
