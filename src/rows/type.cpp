#include "rows/type.hpp"

#include <fmt/format.h>

#include <array>
#include <string_view>

namespace rowferry::rows {

namespace {

std::string_view name_of(TypeId id) noexcept {
  static constexpr std::array<std::string_view, 20> names{
      "null",    "boolean", "int8",    "int16", "int32", "int64",     "uint8", "uint16", "uint32", "uint64",
      "float32", "float64", "decimal", "date",  "time",  "timestamp", "uuid",  "text",   "json",   "binary"};
  return names[static_cast<std::size_t>(id)];
}

std::string_view name_of(LengthUnit unit) noexcept {
  switch (unit) {
    case LengthUnit::code_points:
      return "characters";
    case LengthUnit::utf16_units:
      return "UTF-16 units";
    case LengthUnit::bytes:
      return "bytes";
  }
  return {};
}

std::string variable_text(const Type& type) {
  std::string inside;
  if (type.length != 0) inside = fmt::format("{} {}", type.length, name_of(type.length_unit));
  if (type.code_page != 0) inside += fmt::format("{}code page {}", inside.empty() ? "" : ", ", type.code_page);
  if (type.padded) inside += inside.empty() ? "padded" : ", padded";
  return inside.empty() ? std::string(name_of(type.id)) : fmt::format("{}({})", name_of(type.id), inside);
}

std::string temporal_text(const Type& type) {
  if (type.quantum == Quantum::tick_300) return fmt::format("{} in 1/300 s", name_of(type.id));
  if (type.quantum == Quantum::minute) return fmt::format("{} in minutes", name_of(type.id));
  return fmt::format("{}({}){}", name_of(type.id), type.digits, type.zoned ? " with zone" : "");
}

}  // namespace

std::size_t fixed_width(TypeId id) noexcept {
  switch (id) {
    case TypeId::int8:
    case TypeId::uint8:
      return 1;
    case TypeId::int16:
    case TypeId::uint16:
      return 2;
    case TypeId::int32:
    case TypeId::uint32:
    case TypeId::float32:
    case TypeId::date:
      return 4;
    case TypeId::int64:
    case TypeId::uint64:
    case TypeId::float64:
    case TypeId::time:
    case TypeId::timestamp:
      return 8;
    case TypeId::decimal:
    case TypeId::uuid:
      return 16;
    case TypeId::null:
    case TypeId::boolean:
    case TypeId::text:
    case TypeId::json:
    case TypeId::binary:
      return 0;
  }
  return 0;
}

std::string to_string(const Type& type) {
  switch (type.id) {
    case TypeId::decimal:
      return fmt::format("decimal({},{})", type.precision, type.scale);
    case TypeId::time:
    case TypeId::timestamp:
      return temporal_text(type);
    case TypeId::text:
    case TypeId::json:
    case TypeId::binary:
      return variable_text(type);
    default:
      return std::string(name_of(type.id));
  }
}

}  // namespace rowferry::rows
