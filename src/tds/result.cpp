#include "tds/result.hpp"

#include <fmt/format.h>

#include "base/civil.hpp"
#include "base/decimal.hpp"
#include "base/error.hpp"

namespace rowferry::tds {

namespace {

[[noreturn]] void unexpected(const char* wanted) {
  throw Error(Category::internal, "unexpected_value", fmt::format("a query's value is not {}", wanted));
}

civil::Fraction fraction(rows::TimeUnit unit) noexcept {
  return unit == rows::TimeUnit::micro ? civil::Fraction::micro : civil::Fraction::hundred_nano;
}

std::string uuid_text(const std::uint8_t* bytes) {
  std::string text;
  for (std::size_t i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", bytes[i]);
  }
  return text;
}

}  // namespace

std::int64_t Value::integer() const {
  if (const auto* found = std::get_if<std::int64_t>(&value)) return *found;
  unexpected("an integer");
}

double Value::number() const {
  if (const auto* found = std::get_if<double>(&value)) return *found;
  if (const auto* found = std::get_if<std::int64_t>(&value)) return static_cast<double>(*found);
  unexpected("a number");
}

const std::string& Value::text() const {
  if (const auto* found = std::get_if<std::string>(&value)) return *found;
  unexpected("text");
}

const Value::Bytes& Value::bytes() const {
  if (const auto* found = std::get_if<Bytes>(&value)) return *found;
  unexpected("binary");
}

std::size_t ResultSet::column(std::string_view name) const {
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].name == name) return i;
  }
  throw Error(Category::internal, "no_such_column", fmt::format("a query's result has no column \"{}\"", name));
}

namespace {

const std::vector<Value>& first_row(const QueryResult& result) {
  if (result.sets.empty() || result.sets[0].rows.empty() || result.sets[0].rows[0].empty()) {
    throw Error(Category::internal, "no_rows", "a query that must give a row gave none");
  }
  return result.sets[0].rows[0];
}

}  // namespace

const Value& QueryResult::scalar(std::string_view name) const { return first_row(*this).at(sets[0].column(name)); }
const Value& QueryResult::scalar() const { return first_row(*this)[0]; }

Value value_of(const rows::Type& type, const rows::ColumnView& column, std::size_t row) {
  using rows::TypeId;
  if (type.id == TypeId::null || !column.valid(row)) return {};
  switch (type.id) {
    case TypeId::boolean:
      return {std::int64_t{column.boolean(row)}};
    case TypeId::int8:
      return {std::int64_t{column.value<std::int8_t>(row)}};
    case TypeId::int16:
      return {std::int64_t{column.value<std::int16_t>(row)}};
    case TypeId::int32:
      return {std::int64_t{column.value<std::int32_t>(row)}};
    case TypeId::int64:
      return {column.value<std::int64_t>(row)};
    case TypeId::uint8:
      return {std::int64_t{column.value<std::uint8_t>(row)}};
    case TypeId::uint16:
      return {std::int64_t{column.value<std::uint16_t>(row)}};
    case TypeId::uint32:
      return {std::int64_t{column.value<std::uint32_t>(row)}};
    case TypeId::uint64:
      return {decimal::to_text(Int128{column.value<std::uint64_t>(row)})};
    case TypeId::float32:
      return {double{column.value<float>(row)}};
    case TypeId::float64:
      return {column.value<double>(row)};
    case TypeId::decimal:
      return {decimal::to_text(column.value<Int128>(row), type.scale)};
    case TypeId::date:
      return {civil::date_text(column.value<std::int32_t>(row))};
    case TypeId::time:
      return {civil::time_text(column.value<std::int64_t>(row), fraction(type.unit), type.digits)};
    case TypeId::timestamp:
      return {civil::timestamp_text(column.value<std::int64_t>(row), fraction(type.unit), type.digits, type.zoned)};
    case TypeId::uuid:
      return {uuid_text(column.values + row * 16)};
    case TypeId::text:
    case TypeId::json:
      return {std::string(column.text(row))};
    case TypeId::binary: {
      const ByteView bytes = column.bytes(row);
      return {Value::Bytes(bytes.begin(), bytes.end())};
    }
    case TypeId::null:
      break;
  }
  return {};
}

}  // namespace rowferry::tds
