// Batch: some rows as columns in the Arrow C data layout. The one data structure that sources fill and sinks empty.
//
// A Batch is sized by bytes (limits::batch_bytes), holds at least one row, and is owned by one stage at a time
// (BatchPtr). Its columns own their buffers (filled through ColumnBuffer), or view memory that `keep_alive` owns (Arrow
// input).
#pragma once

#include <cassert>
#include <memory>
#include <vector>

#include "base/bytes.hpp"
#include "rows/schema.hpp"

namespace rowferry::rows {

using Int128 = __int128;

// Read-only view of one column. Bit i of a bitmap is (bits[i / 8] >> (i % 8)) & 1.
struct ColumnView {
  const std::uint8_t* validity = nullptr;  // 1 = value, 0 = NULL; null pointer: no NULL in this batch
  const std::uint8_t* values = nullptr;    // fixed-width values, bits of booleans, or the data of variable-size values
  const std::int32_t* offsets = nullptr;   // rows + 1 entries into `values` for variable-size types, else null
  std::uint32_t bit_offset =
      0;  // added to the row for both bitmaps (Arrow slices); other pointers are advanced already

  bool valid(std::size_t row) const noexcept { return validity == nullptr || bit(validity, row); }
  bool boolean(std::size_t row) const noexcept { return bit(values, row); }
  template <class T>
  T value(std::size_t row) const noexcept {
    return load_le<T>(values + row * sizeof(T));
  }
  ByteView bytes(std::size_t row) const noexcept {
    return {values + offsets[row], static_cast<std::size_t>(offsets[row + 1] - offsets[row])};
  }
  std::string_view text(std::size_t row) const noexcept { return as_text(bytes(row)); }

 private:
  bool bit(const std::uint8_t* bits, std::size_t row) const noexcept {
    const std::size_t i = row + bit_offset;
    return ((bits[i / 8] >> (i % 8)) & 1U) != 0;
  }
};

// The owned buffers of one column while it is filled. Either use the append_* calls row by row, or write columns
// at once: `values`, `offsets` and `validity` are plain buffers in the layout above.
class ColumnBuffer {
 public:
  ByteBuffer validity;  // empty: no NULL so far
  ByteBuffer values;
  ByteBuffer offsets;  // int32 each, starts with one 0, for variable-size types

  void reset(TypeId id);
  std::size_t bytes() const noexcept { return validity.size() + values.size() + offsets.size(); }

  // `row` is the number of rows before this one. A NULL leaves a zero (or empty) value in its place.
  void append_null(TypeId id, std::size_t row);
  void append_valid(std::size_t row) {
    if (!validity.empty()) set_valid(row);
  }
  template <class T>
  void append(std::size_t row, T value) {
    values.put_le(value);
    append_valid(row);
  }
  void append_boolean(std::size_t row, bool value);
  void append_bytes(std::size_t row, ByteView bytes) {
    values.append(bytes);
    end_value();
    append_valid(row);
  }
  // Ends a variable-size value whose bytes were appended to `values` directly.
  // Throws Error(data, "batch_too_large") when the column's data passes 2 GiB.
  void end_value();
  // Marks rows [0, rows) valid and makes the bitmap exist; then clear bits with set_null.
  void need_validity(std::size_t rows);
  void set_null(std::size_t row) noexcept { validity.data()[row / 8] &= static_cast<std::uint8_t>(~(1U << (row % 8))); }
  void set_valid(std::size_t row);

  ColumnView view() const noexcept;
};

class Batch {
 public:
  explicit Batch(SchemaPtr schema);

  const Schema& schema() const noexcept { return *schema_; }
  const SchemaPtr& schema_ptr() const noexcept { return schema_; }
  std::size_t rows() const noexcept { return rows_; }
  std::size_t columns() const noexcept { return views_.size(); }
  const ColumnView& column(std::size_t i) const noexcept { return views_[i]; }
  // Bytes of all buffers: what channels and budgets count.
  std::size_t bytes() const noexcept { return bytes_; }
  // Ordinal of the first row within its slice, 0-based; for messages.
  std::uint64_t first_row = 0;

  // Filling: write into buffer(i), then seal(rows). reset() empties for reuse and keeps the memory.
  ColumnBuffer& buffer(std::size_t i) noexcept { return buffers_[i]; }
  std::size_t buffered_bytes() const noexcept;
  void seal(std::size_t rows);
  void reset();
  // Another column of the same rows, owned elsewhere: by `keep_alive`, or by a batch that lives as long as this one.
  void adopt(std::size_t i, const ColumnView& view, std::size_t bytes, std::shared_ptr<const void> keep_alive);
  // Replaces the schema (after a conversion that keeps the layout). Same number of fields.
  void retype(SchemaPtr schema) noexcept { schema_ = std::move(schema); }

 private:
  SchemaPtr schema_;
  std::size_t rows_ = 0;
  std::size_t bytes_ = 0;
  std::vector<ColumnBuffer> buffers_;
  std::vector<ColumnView> views_;
  std::vector<bool> adopted_;
  std::vector<std::shared_ptr<const void>> keep_alive_;
};

// Recycles batches of one schema, so that a transfer allocates only at its start. The pool outlives its batches' use;
// a batch that comes back after the pool has died is freed.
class BatchPool;
struct BatchReturn {
  std::weak_ptr<BatchPool> pool;
  void operator()(Batch* batch) const noexcept;
};
using BatchPtr = std::unique_ptr<Batch, BatchReturn>;

class BatchPool : public std::enable_shared_from_this<BatchPool> {
 public:
  static std::shared_ptr<BatchPool> make(SchemaPtr schema) {
    return std::shared_ptr<BatchPool>(new BatchPool(std::move(schema)));
  }
  ~BatchPool();
  BatchPtr take();

 private:
  friend struct BatchReturn;
  explicit BatchPool(SchemaPtr schema) : schema_(std::move(schema)) {}
  SchemaPtr schema_;
  std::vector<Batch*> free_;
};

}  // namespace rowferry::rows
