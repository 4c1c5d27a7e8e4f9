#include "system/common.hpp"

#include <array>

namespace rowferry::system {

namespace {

template <std::size_t N, class E>
std::string_view name_of(const std::array<std::string_view, N>& names, E value) noexcept {
  const auto i = static_cast<std::size_t>(value);
  return i < N ? names[i] : "?";
}

}  // namespace

std::string TableName::text() const {
  std::string out;
  for (const std::string& part : parts) {
    if (!out.empty()) out += '.';
    out += part;
  }
  return out;
}

std::string_view to_string(Consistency value) noexcept {
  static constexpr std::array<std::string_view, 3> names{"one_snapshot", "per_slice", "none"};
  return name_of(names, value);
}
std::string_view to_string(SliceBy value) noexcept {
  static constexpr std::array<std::string_view, 7> names{"auto", "ctid", "range", "value", "hash", "partition", "none"};
  return name_of(names, value);
}
std::string_view to_string(Mode value) noexcept {
  static constexpr std::array<std::string_view, 5> names{"append", "truncate", "replace", "fail_if_exists", "merge"};
  return name_of(names, value);
}
std::string_view to_string(Finalizer value) noexcept {
  static constexpr std::array<std::string_view, 6> names{"switch", "rename",   "insert_select",
                                                         "direct", "exchange", "per_slice"};
  return name_of(names, value);
}
std::string_view to_string(Commit value) noexcept {
  static constexpr std::array<std::string_view, 2> names{"transfer", "slice"};
  return name_of(names, value);
}
std::string_view to_string(ColumnPart value) noexcept {
  static constexpr std::array<std::string_view, 3> names{"value", "offset", "base_type"};
  return name_of(names, value);
}
std::string_view to_string(Verify value) noexcept {
  static constexpr std::array<std::string_view, 3> names{"count", "source_count", "content"};
  return name_of(names, value);
}

}  // namespace rowferry::system
