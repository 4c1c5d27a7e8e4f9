// ORDER BY: values as bytes that compare like the values, and rows kept as bytes beside them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sandbox/engine/turn.hpp"
#include "sandbox/engine/value.hpp"

namespace rowferry::sandbox::engine {

// memcmp of two keys orders as compare_same orders the values; NULL first; the other way round when descending.
void append_sort_key(const Value& value, bool descending, std::string& key);
// The part of it that a collation decides (compare_text.cpp).
void append_text_sort_key(std::u16string_view text, const tds::Collation& collation, std::string& key);

// Sorts in portions: runs first, which are then merged.
template <class Before>
async::Task<void> sort_places(std::vector<std::uint32_t>& places, Before before, Turn& turn) {
  const std::size_t n = places.size();
  for (std::size_t at = 0; at < n; at += limits::sandbox_sort_run) {
    const auto first = places.begin() + static_cast<std::ptrdiff_t>(at);
    std::sort(first, places.begin() + static_cast<std::ptrdiff_t>(std::min(n, at + limits::sandbox_sort_run)), before);
    if (turn.expired()) co_await turn.stand();
  }
  std::vector<std::uint32_t> merged(n > limits::sandbox_sort_run ? n : 0);
  for (std::size_t width = limits::sandbox_sort_run; width < n; width *= 2) {
    std::size_t to = 0;
    for (std::size_t at = 0; at < n; at += 2 * width) {
      std::size_t a = at, b = std::min(n, at + width);
      const std::size_t a_end = b, b_end = std::min(n, at + 2 * width);
      while (to < b_end) {
        merged[to++] = b == b_end || (a != a_end && !before(places[b], places[a])) ? places[a++] : places[b++];
        co_await turn.pass();
      }
    }
    places.swap(merged);
  }
}

// Rows that come in any order and leave in the order of their keys, equal ones as they came.
class SortedRows {
 public:
  // Only so many of the first rows are wanted.
  void keep(std::optional<std::uint64_t> rows) { keep_ = rows; }
  void add(std::string_view key, ByteView row);
  async::Task<void> sort(Turn& turn);
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
