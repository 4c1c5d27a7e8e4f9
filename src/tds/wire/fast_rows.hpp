// Rows that lie whole in the input, decoded with one bounds check for each run of columns and none for each value.
//
// A FastRows writes into a Batch's buffers by row number: a row that turns out to be cut or odd (a long value in
// several chunks, text that is none, bytes that are no value) is left, and whoever can do all of them decodes it again
// into the same place. Between calls the buffers are as ColumnBuffer's append calls leave them.
#pragma once

#include <vector>

#include "rows/batch.hpp"
#include "tds/wire/column_decode.hpp"

namespace rowferry::tds {

struct FastColumn {
  // Reads one framed value into place `row`; what is behind it, or null when this row is not for here.
  using Read = const std::uint8_t* (*)(FastColumn& column, std::size_t row, const std::uint8_t* at,
                                       const std::uint8_t* end);
  using Null = void (*)(FastColumn& column, std::size_t row);
  Read read = nullptr;
  Null null = nullptr;
  std::uint8_t* values = nullptr;    // of fixed-width types and booleans
  std::int32_t* offsets = nullptr;   // of variable ones
  std::uint8_t* validity = nullptr;  // null pointer: no NULL so far
  rows::ColumnBuffer* buffer = nullptr;
  const text::CodePage* page = nullptr;
  std::int64_t factor = 1;
  std::int64_t units_per_day = 0;
  std::size_t width = 0;  // of a value in the Batch; 0: bits, or variable
  std::size_t room = 0;   // rows that the buffers have place for
  bool variable = false;
};

class FastRows {
 public:
  // After bind_decode() of the same column.
  void add(const TypeInfo& type, const rows::Type& logical, const DecodeColumn& bound);
  // False: a column's type is never decoded here.
  bool usable() const noexcept { return usable_; }
  void begin(rows::Batch& batch) noexcept;
  // Decodes rows from `at`, the first into place `row`, until one is not for here, or `bytes` or more were used. Gives
  // their number; `at` stands behind the last.
  std::size_t rows(const std::uint8_t*& at, const std::uint8_t* end, std::size_t row, std::size_t bytes);

 private:
  // Columns first..last, with the bytes that must be there at the first: all but what a value's own length says.
  struct Run {
    std::size_t first = 0;
    std::size_t last = 0;
    std::size_t need = 0;
  };
  const std::uint8_t* plain_row(std::size_t row, const std::uint8_t* at, const std::uint8_t* end);
  const std::uint8_t* row_with_bitmap(std::size_t row, const std::uint8_t* at, const std::uint8_t* end);
  void make_room(std::size_t row);
  void settle(std::size_t row);

  std::vector<FastColumn> columns_;
  std::vector<Run> runs_;
  bool usable_ = true;
  bool run_open_ = false;
};

}  // namespace rowferry::tds
