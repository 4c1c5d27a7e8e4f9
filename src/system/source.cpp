#include "system/source.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/id.hpp"

namespace rowferry::system {

namespace {

constexpr std::size_t plain_chars_max = 40;

// Reads the same in every collation, and nothing in it ends a bracket or a pair.
bool is_plain(std::string_view text) {
  const auto allowed = [](char c) { return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.' || c == ':'; };
  return !text.empty() && text.size() <= plain_chars_max && std::ranges::all_of(text, allowed);
}

std::string hashed(char kind, std::string_view text) {
  return fmt::format("slice #{}", fingerprint(fmt::format("{}{}", kind, text)));
}

std::string range_step(const SliceBounds& bounds) {
  const std::string low = bounds.low.value_or("");
  const std::string high = bounds.high.value_or("");
  const bool plain = (!bounds.low || is_plain(low)) && (!bounds.high || is_plain(high));
  if (plain) return fmt::format("slice [{},{})", low, high);
  // The length keeps two texts apart that are one when put together.
  return hashed('r', fmt::format("{}{}:{}{}{}", bounds.low ? 1 : 0, low.size(), low, bounds.high ? 1 : 0, high));
}

}  // namespace

std::string slice_step(const Slice& slice, Commit commit) {
  if (commit == Commit::transfer || !slice.bounds) return fmt::format("slice {}", slice.index);
  const SliceBounds& bounds = *slice.bounds;
  switch (bounds.kind) {
    case SliceBounds::Kind::null:
      return "slice null";
    case SliceBounds::Kind::range:
      return range_step(bounds);
    case SliceBounds::Kind::value:
      break;
  }
  return is_plain(bounds.value) ? fmt::format("slice ={}", bounds.value) : hashed('=', bounds.value);
}

}  // namespace rowferry::system
