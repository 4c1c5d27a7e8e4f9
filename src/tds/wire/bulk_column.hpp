// How one column of a bulk load is written: functions bound once, over stretches of rows.
//
// Values of a fixed size are scattered straight into the rows. Values of variable size are first prepared, a stretch at
// a time, in a scratch of their column (UTF-16, code page bytes), then framed and copied into the rows.
#pragma once

#include <cstdint>
#include <vector>

#include "base/decimal.hpp"
#include "base/text.hpp"
#include "rows/batch.hpp"
#include "tds/wire/bulk_encoder.hpp"

namespace rowferry::tds {

enum class BulkFraming : std::uint8_t { short_length, plp, text_pointer, variant };
enum class BulkTransform : std::uint8_t { none, utf16, code_page };

struct BulkWriter {
  BulkColumn column;

  // Values of a fixed size: `width` bytes behind a length byte, NULL is a zero length.
  std::size_t width = 0;
  // One value, or a stretch of n rows from `row`, each at its own place; `at[i]` is moved behind it. False: a value
  // that the form cannot say (find it with `put`).
  bool (*put)(const BulkWriter& self, const rows::ColumnView& view, std::size_t row, std::uint8_t* to) = nullptr;
  bool (*put_strided)(const BulkWriter& self, const rows::ColumnView& view, std::size_t row, std::size_t n,
                      std::uint8_t* to, std::size_t stride) = nullptr;
  bool (*put_indexed)(const BulkWriter& self, const rows::ColumnView& view, std::size_t row, std::size_t n,
                      std::uint8_t** at) = nullptr;
  Int128 magnitude_max = 0;  // decimals

  // Values of variable size.
  BulkFraming framing = BulkFraming::short_length;
  BulkTransform transform = BulkTransform::none;
  const text::CodePage* page = nullptr;
  std::size_t bytes_max = 0;  // of one value; SIZE_MAX: no limit
  std::size_t pad_to = 0;     // char, nchar, binary: every value has this many bytes
  std::uint16_t pad_unit = 0;
  std::size_t pad_unit_bytes = 1;

  struct Piece {
    const std::uint8_t* bytes;  // null: NULL
    std::size_t size;
  };
  ByteBuffer scratch;
  std::vector<Piece> pieces;

  bool fixed() const noexcept { return width != 0; }
  // Bytes of a prepared value in its row.
  std::size_t framed_bytes(const Piece& piece) const noexcept;
  // Fills pieces for n rows. Returns the row (relative) of a value that does not fit, or n.
  std::size_t prepare(const rows::ColumnView& view, std::size_t row, std::size_t n);
  void put_pieces(std::uint8_t** at) const noexcept;
};

// Throws Error(internal, "bulk_type").
BulkWriter bind_bulk_writer(BulkColumn column);

}  // namespace rowferry::tds
