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

// Hashes batches of one schema. `compared[i]` false leaves the column out (its server rewrites the value).
class RowHasher {
 public:
  RowHasher(const Schema& schema, std::vector<bool> compared);
  void add(const Batch& batch, ContentHash& into);

 private:
  struct Column {
    Type type;
    std::uint16_t ordinal;
  };
  std::vector<Column> columns_;
  std::vector<std::size_t> source_;
  ByteBuffer scratch_;
};

}  // namespace rowferry::rows
