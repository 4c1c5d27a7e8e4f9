// Content hash: a 128-bit hash per row over the canonical bytes of the target's logical types, summed modulo 2^128.
// The sum does not depend on the order of rows, so slices and read-backs in any order compare.
//
// Canonical bytes of a row, column after column: ordinal (u16 LE), null flag (u8), and for a value its length (u32 LE)
// and bytes: integers and booleans as int64 (uint64 for uint64), decimals as the unscaled 16-byte integer at the
// column's scale, floats by their bits, date/time/timestamp as int64 in 100 ns units (dates in days), uuid in printed
// order, text and binary as they are, padded text without trailing blanks. The row hash is XXH3-128 of these bytes.
#pragma once

#include <string>
#include <vector>

#include "rows/batch.hpp"

namespace rowferry::rows {

struct ContentHash {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  std::uint64_t rows = 0;
  void add(const ContentHash& other) noexcept;
  bool operator==(const ContentHash&) const = default;
  std::string hex() const;  // 32 hex digits, high first
};

// Hashes batches of one schema. `compared[i]` false leaves the column out (its server rewrites the value); an empty
// vector compares all.
class RowHasher {
 public:
  RowHasher(const Schema& schema, std::vector<bool> compared);
  void add(const Batch& batch, ContentHash& into);

 private:
  // Rows whose canonical bytes are gathered at a time: the scratch stays in the cache.
  static constexpr std::size_t block_rows = 128;

  struct Column {
    Type type;
    std::uint16_t ordinal;
    std::uint32_t width;  // canonical bytes of a value; 0 = as long as the value is
  };
  void add_block(const Batch& batch, std::size_t first, std::size_t rows, ContentHash& into);
  std::size_t measure(const Batch& batch, std::size_t first, std::size_t rows);

  std::vector<Column> columns_;
  std::uint32_t ends_[block_rows] = {};  // while gathering: where the row's next byte goes
  std::uint32_t begins_[block_rows + 1] = {};
  ByteBuffer scratch_;
};

}  // namespace rowferry::rows
