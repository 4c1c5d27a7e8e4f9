// ORDER BY: values as bytes that compare like the values, and rows kept as bytes beside them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sandbox/engine/value.hpp"

namespace rowferry::sandbox::engine {

// memcmp of two keys orders as compare_same orders the values; NULL first; the other way round when descending.
void append_sort_key(const Value& value, bool descending, std::string& key);
// The part of it that a collation decides (compare_text.cpp).
void append_text_sort_key(std::u16string_view text, const tds::Collation& collation, std::string& key);

// Rows that come in any order and leave in the order of their keys, equal ones as they came.
class SortedRows {
 public:
  // `keep`: only so many of the first rows are wanted.
  explicit SortedRows(std::optional<std::uint64_t> keep) : keep_(keep) {}
  void add(std::string_view key, ByteView row);
  void sort();
  std::size_t size() const noexcept { return places_.size(); }
  ByteView row(std::size_t i) const;  // after sort()

 private:
  ByteView part(const ByteBuffer& bytes, const std::vector<std::size_t>& ends, std::uint32_t i) const;
  bool before(std::uint32_t a, std::uint32_t b) const;
  void prune();

  std::optional<std::uint64_t> keep_;
  ByteBuffer keys_, rows_;
  std::vector<std::size_t> key_ends_, row_ends_;
  std::vector<std::uint32_t> places_;
};

}  // namespace rowferry::sandbox::engine
