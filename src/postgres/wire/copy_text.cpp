// COPY's text format: a field is what the type's input function reads, with backslashes before what COPY itself means.
#include <charconv>

#include "base/decimal.hpp"
#include "postgres/wire/put_column.hpp"
#include "rows/format.hpp"

namespace rowferry::postgres::wire {

namespace {

using rows::ColumnView;
using rows::TypeId;

void print_escaped(std::string_view text, ByteBuffer& to) {
  std::size_t done = 0;
  for (std::size_t at = text.find_first_of("\\\t\n\r"); at != std::string_view::npos;
       at = text.find_first_of("\\\t\n\r", at + 1)) {
    to.append(text.substr(done, at - done));
    const char c = text[at];
    to.push('\\');
    to.push(static_cast<std::uint8_t>(c == '\t' ? 't' : c == '\n' ? 'n' : c == '\r' ? 'r' : '\\'));
    done = at + 1;
  }
  to.append(text.substr(done));
}

// bytea's hex form; its own backslash is one that COPY must not eat.
void print_binary(ByteView bytes, ByteBuffer& to) {
  static constexpr char hex[] = "0123456789abcdef";
  to.append(std::string_view("\\\\x"));
  std::uint8_t* at = to.extend(2 * bytes.size());
  for (const std::uint8_t byte : bytes) {
    *at++ = static_cast<std::uint8_t>(hex[byte >> 4U]);
    *at++ = static_cast<std::uint8_t>(hex[byte & 15U]);
  }
}

template <class T>
void print_integer(T value, ByteBuffer& to) {
  char text[24];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  to.append(std::string_view(text, static_cast<std::size_t>(end - text)));
}

void print_decimal(rows::Int128 value, int scale, ByteBuffer& to) {
  char text[decimal::text_max];
  to.append(std::string_view(text, static_cast<std::size_t>(decimal::write(text, value, scale) - text)));
}

// JSON's brackets as PostgreSQL's braces.
bool print_array(std::string_view list, ByteBuffer& to) {
  const std::size_t first = list.find_first_not_of(" \t\r\n");
  const std::size_t last = list.find_last_not_of(" \t\r\n");
  if (first == std::string_view::npos || first == last) return false;
  if (!(list[first] == '[' && list[last] == ']') && !(list[first] == '{' && list[last] == '}')) return false;
  to.push('{');
  print_escaped(list.substr(first + 1, last - first - 1), to);
  to.push('}');
  return true;
}

bool print_fixed(const rows::Type& type, const ColumnView& view, std::size_t row, ByteBuffer& to) {
  switch (type.id) {
    case TypeId::boolean:
      to.push(view.boolean(row) ? 't' : 'f');
      return true;
    case TypeId::int8:
      print_integer(static_cast<int>(view.value<std::int8_t>(row)), to);
      return true;
    case TypeId::int16:
      print_integer(view.value<std::int16_t>(row), to);
      return true;
    case TypeId::int32:
      print_integer(view.value<std::int32_t>(row), to);
      return true;
    case TypeId::int64:
      print_integer(view.value<std::int64_t>(row), to);
      return true;
    case TypeId::uint8:
      print_integer(static_cast<unsigned>(view.value<std::uint8_t>(row)), to);
      return true;
    case TypeId::uint16:
      print_integer(view.value<std::uint16_t>(row), to);
      return true;
    case TypeId::uint32:
      print_integer(view.value<std::uint32_t>(row), to);
      return true;
    case TypeId::uint64:
      print_integer(view.value<std::uint64_t>(row), to);
      return true;
    case TypeId::float32:
      to.append(rows::real_text(view.value<float>(row)));
      return true;
    case TypeId::float64:
      to.append(rows::real_text(view.value<double>(row)));
      return true;
    default:
      return false;
  }
}

}  // namespace

bool print_field(const PutColumn& column, const ColumnView& view, std::size_t row, ByteBuffer& to) {
  if (!view.valid(row)) {
    to.append(std::string_view("\\N"));
    return true;
  }
  if (column.width != 0) {
    std::uint8_t sink[put_slack];
    if (column.put(column, view, row, sink) == nullptr) return false;  // what the binary form refuses
  }
  const rows::Type& type = column.target.type;
  switch (type.id) {
    case TypeId::decimal:
      print_decimal(view.value<rows::Int128>(row), type.scale, to);
      return true;
    case TypeId::date:
      to.append(rows::date_text(view.value<std::int32_t>(row)));
      return true;
    case TypeId::time:
      to.append(rows::time_text(view.value<std::int64_t>(row), type.unit));
      return true;
    case TypeId::timestamp:
      to.append(rows::timestamp_text(view.value<std::int64_t>(row), type.unit, type.zoned));
      return true;
    case TypeId::uuid:
      to.append(rows::uuid_text(view.values + 16 * row));
      return true;
    case TypeId::text:
    case TypeId::json:
      if (column.target.form == PutForm::real_array) return print_array(view.text(row), to);
      print_escaped(view.text(row), to);
      return true;
    case TypeId::binary:
      print_binary(view.bytes(row), to);
      return true;
    default:
      return print_fixed(type, view, row, to);
  }
}

}  // namespace rowferry::postgres::wire
