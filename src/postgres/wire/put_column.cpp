#include "postgres/wire/put_column.hpp"

#include <fmt/format.h>

#include <charconv>
#include <limits>

#include "base/error.hpp"

namespace rowferry::postgres::wire {

namespace {

using rows::ColumnView;
using rows::TypeId;

constexpr std::int64_t epoch_micros = 946'684'800'000'000;  // 2000-01-01 seen from 1970-01-01
constexpr std::int32_t epoch_days = 10'957;
constexpr std::int32_t first_day = -2'440'588;                   // 4714-11-24 BC
constexpr std::int32_t last_day = 2'145'042'905;                 // 5874897-12-31
constexpr std::int64_t first_moment = -210'866'803'200'000'000;  // of the first day; the last lies beyond int64
constexpr std::int64_t last_time = 86'400'000'000;               // 24:00:00
constexpr std::uint8_t jsonb_version = 1;
constexpr std::size_t length_bytes = 4;
constexpr std::size_t numeric_bytes_max = 30;
constexpr std::int32_t float4_oid = 700;
constexpr std::size_t array_head_bytes = 20;

std::uint8_t* put_null(std::uint8_t* to) noexcept {
  store_be(to, std::int32_t{-1});
  return to + length_bytes;
}

template <class T>
struct Number {
  static constexpr std::size_t width = sizeof(T);
  static bool write(const ColumnView& view, std::size_t row, std::uint8_t* to) noexcept {
    store_be(to, view.value<T>(row));
    return true;
  }
};

struct Boolean {
  static constexpr std::size_t width = 1;
  static bool write(const ColumnView& view, std::size_t row, std::uint8_t* to) noexcept {
    *to = view.boolean(row) ? 1 : 0;
    return true;
  }
};

struct Money {
  static constexpr std::size_t width = 8;
  static bool write(const ColumnView& view, std::size_t row, std::uint8_t* to) noexcept {
    const auto value = view.value<rows::Int128>(row);
    const auto units = static_cast<std::int64_t>(value);
    store_be(to, units);
    return units == value;
  }
};

struct Date {
  static constexpr std::size_t width = 4;
  static bool write(const ColumnView& view, std::size_t row, std::uint8_t* to) noexcept {
    const auto days = view.value<std::int32_t>(row);
    const bool infinite =
        days == std::numeric_limits<std::int32_t>::max() || days == std::numeric_limits<std::int32_t>::min();
    store_be(to, static_cast<std::int32_t>(static_cast<std::uint32_t>(days) - (infinite ? 0 : epoch_days)));
    return infinite || (days >= first_day && days <= last_day);
  }
};

struct Time {
  static constexpr std::size_t width = 8;
  static bool write(const ColumnView& view, std::size_t row, std::uint8_t* to) noexcept {
    const auto time = view.value<std::int64_t>(row);
    store_be(to, time);
    return time >= 0 && time <= last_time;
  }
};

struct Timestamp {
  static constexpr std::size_t width = 8;
  static bool write(const ColumnView& view, std::size_t row, std::uint8_t* to) noexcept {
    const auto micros = view.value<std::int64_t>(row);
    const bool infinite =
        micros == std::numeric_limits<std::int64_t>::max() || micros == std::numeric_limits<std::int64_t>::min();
    store_be(to, static_cast<std::int64_t>(static_cast<std::uint64_t>(micros) - (infinite ? 0 : epoch_micros)));
    return infinite || micros >= first_moment;
  }
};

struct Uuid {
  static constexpr std::size_t width = 16;
  static bool write(const ColumnView& view, std::size_t row, std::uint8_t* to) noexcept {
    std::memcpy(to, view.values + row * width, width);
    return true;
  }
};

template <class Form>
std::uint8_t* put_fixed(const PutColumn& /*self*/, const ColumnView& view, std::size_t row, std::uint8_t* to) {
  if (!view.valid(row)) return put_null(to);
  store_be(to, static_cast<std::int32_t>(Form::width));
  return Form::write(view, row, to + length_bytes) ? to + length_bytes + Form::width : nullptr;
}

template <class Form>
bool put_strided(const ColumnView& view, std::size_t row, std::size_t n, std::uint8_t* to, std::size_t stride) {
  bool good = true;
  for (std::size_t i = 0; i < n; ++i, to += stride) {
    store_be(to, static_cast<std::int32_t>(Form::width));
    good &= Form::write(view, row + i, to + length_bytes);
  }
  return good;
}

template <class Form>
std::size_t most_fixed(const ColumnView& /*view*/, std::size_t /*row*/, std::size_t n) {
  return n * (length_bytes + Form::width);
}

template <class Form>
void bind_fixed(PutColumn& column) {
  column.width = Form::width;
  column.put = put_fixed<Form>;
  column.put_strided = put_strided<Form>;
  column.most = most_fixed<Form>;
}

// Short values without a call; nothing is read beyond them.
std::uint8_t* copy_bytes(std::uint8_t* to, const std::uint8_t* from, std::size_t size) noexcept {
  if (size >= 16) {
    if (size > 64) {
      std::memcpy(to, from, size);
    } else {
      for (std::size_t i = 0; i + 16 < size; i += 16) std::memcpy(to + i, from + i, 16);
      std::memcpy(to + size - 16, from + size - 16, 16);
    }
  } else if (size >= 8) {
    std::memcpy(to, from, 8);
    std::memcpy(to + size - 8, from + size - 8, 8);
  } else if (size >= 4) {
    std::memcpy(to, from, 4);
    std::memcpy(to + size - 4, from + size - 4, 4);
  } else if (size != 0) {
    to[0] = from[0];
    to[size / 2] = from[size / 2];
    to[size - 1] = from[size - 1];
  }
  return to + size;
}

std::uint8_t* put_bytes(const PutColumn& /*self*/, const ColumnView& view, std::size_t row, std::uint8_t* to) {
  if (!view.valid(row)) return put_null(to);
  const ByteView value = view.bytes(row);
  store_be(to, static_cast<std::int32_t>(value.size()));
  return copy_bytes(to + length_bytes, value.data(), value.size());
}

std::uint8_t* put_jsonb(const PutColumn& /*self*/, const ColumnView& view, std::size_t row, std::uint8_t* to) {
  if (!view.valid(row)) return put_null(to);
  const ByteView value = view.bytes(row);
  if (value.size() == std::numeric_limits<std::int32_t>::max()) return nullptr;
  store_be(to, static_cast<std::int32_t>(value.size() + 1));
  to[length_bytes] = jsonb_version;
  return copy_bytes(to + length_bytes + 1, value.data(), value.size());
}

// Where "encoding=…" with its quotes stands within an XML declaration; empty when there is none.
std::string_view encoding_in(std::string_view xml) noexcept {
  if (!xml.starts_with("<?xml")) return {};
  const std::string_view declaration = xml.substr(0, xml.find("?>"));
  const std::size_t at = declaration.find(" encoding");
  if (at == std::string_view::npos) return {};
  const std::size_t open = declaration.find_first_of("'\"", at);
  if (open == std::string_view::npos) return {};
  const std::size_t close = declaration.find(declaration[open], open + 1);
  return close == std::string_view::npos ? std::string_view() : declaration.substr(at, close + 1 - at);
}

std::uint8_t* put_xml(const PutColumn& self, const ColumnView& view, std::size_t row, std::uint8_t* to) {
  if (!view.valid(row)) return put_null(to);
  const std::string_view value = view.text(row);
  const std::string_view encoding = encoding_in(value);
  if (encoding.empty()) return put_bytes(self, view, row, to);
  const auto before = static_cast<std::size_t>(encoding.data() - value.data());
  const std::string_view after = value.substr(before + encoding.size());
  store_be(to, static_cast<std::int32_t>(before + after.size()));
  std::memcpy(to + length_bytes, value.data(), before);
  std::memcpy(to + length_bytes + before, after.data(), after.size());
  return to + length_bytes + before + after.size();
}

bool blank(char c) noexcept { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
const char* past_blanks(const char* at, const char* end) noexcept {
  while (at != end && blank(*at)) ++at;
  return at;
}

// The numbers of "[1, 2.5]" or "{1,2.5}" as fields of float4; returns the end, or null when it is no such list.
std::uint8_t* put_elements(std::string_view list, std::uint8_t* to, std::int32_t& count) noexcept {
  count = 0;
  const char* at = past_blanks(list.data(), list.data() + list.size());
  const char* end = list.data() + list.size();
  while (end != at && blank(end[-1])) --end;
  if (end - at < 2 || !((*at == '[' && end[-1] == ']') || (*at == '{' && end[-1] == '}'))) return nullptr;
  --end;
  for (at = past_blanks(at + 1, end); at != end; ++count) {
    if (count != 0 && *at++ != ',') return nullptr;
    at = past_blanks(at, end);
    float value = 0;
    const auto [next, code] = std::from_chars(at, end, value);
    if (code != std::errc()) return nullptr;
    store_be(to, static_cast<std::int32_t>(sizeof value));
    store_be(to + 4, value);
    to += 8;
    at = past_blanks(next, end);
  }
  return to;
}

// array_send: int32 dimensions, flags, element type, then size and lower bound of each dimension.
std::uint8_t* put_real_array(const PutColumn& /*self*/, const ColumnView& view, std::size_t row, std::uint8_t* to) {
  if (!view.valid(row)) return put_null(to);
  std::int32_t count = 0;
  std::uint8_t* const head = to + length_bytes;
  std::uint8_t* end = put_elements(view.text(row), head + array_head_bytes, count);
  if (end == nullptr) return nullptr;
  store_be(head, count == 0 ? std::int32_t{0} : std::int32_t{1});
  store_be(head + 4, std::int32_t{0});
  store_be(head + 8, float4_oid);
  store_be(head + 12, count);
  store_be(head + 16, std::int32_t{1});
  if (count == 0) end = head + 12;
  store_be(to, static_cast<std::int32_t>(end - head));
  return end;
}

std::uint8_t* put_decimal(const PutColumn& self, const ColumnView& view, std::size_t row, std::uint8_t* to) {
  if (!view.valid(row)) return put_null(to);
  std::uint8_t* const end = put_numeric(to + length_bytes, view.value<rows::Int128>(row), self.target.type.scale);
  store_be(to, static_cast<std::int32_t>(end - to - static_cast<std::ptrdiff_t>(length_bytes)));
  return end;
}

std::size_t data_bytes(const ColumnView& view, std::size_t row, std::size_t n) noexcept {
  return static_cast<std::size_t>(view.offsets[row + n] - view.offsets[row]);
}
std::size_t most_bytes(const ColumnView& view, std::size_t row, std::size_t n) {
  return n * (length_bytes + 1) + data_bytes(view, row, n);
}
// Two characters, "1,", become eight bytes.
std::size_t most_elements(const ColumnView& view, std::size_t row, std::size_t n) {
  return n * (length_bytes + array_head_bytes + 8) + 4 * data_bytes(view, row, n);
}
std::size_t most_numeric(const ColumnView& /*view*/, std::size_t /*row*/, std::size_t n) {
  return n * (length_bytes + numeric_bytes_max);
}

bool is_text(TypeId id) noexcept { return id == TypeId::text || id == TypeId::json; }
bool in_micros(const rows::Type& type) noexcept { return type.unit == rows::TimeUnit::micro; }

}  // namespace

bool takes(PutForm form, const rows::Type& type) noexcept {
  switch (form) {
    case PutForm::boolean:
      return type.id == TypeId::boolean;
    case PutForm::int16:
      return type.id == TypeId::int16;
    case PutForm::int32:
      return type.id == TypeId::int32;
    case PutForm::int64:
      return type.id == TypeId::int64;
    case PutForm::uint32:
      return type.id == TypeId::uint32;
    case PutForm::float32:
      return type.id == TypeId::float32;
    case PutForm::float64:
      return type.id == TypeId::float64;
    case PutForm::numeric:
    case PutForm::money:
      return type.id == TypeId::decimal;
    case PutForm::date:
      return type.id == TypeId::date;
    case PutForm::time:
      return type.id == TypeId::time && in_micros(type);
    case PutForm::timestamp:
      return type.id == TypeId::timestamp && in_micros(type);
    case PutForm::uuid:
      return type.id == TypeId::uuid;
    case PutForm::bytes:
      return rows::is_variable(type.id);
    case PutForm::jsonb:
    case PutForm::xml:
    case PutForm::real_array:
      return is_text(type.id);
    case PutForm::printed:
      return type.id != TypeId::null;
  }
  return false;
}

PutColumn bind_put(CopyTarget target) {
  if (!takes(target.form, target.type)) {
    throw Error(Category::internal, "copy_type",
                fmt::format("a column cannot be loaded from {}", rows::to_string(target.type)))
        .with_column(target.name);
  }
  PutColumn column;
  column.target = std::move(target);
  switch (column.target.form) {
    case PutForm::boolean:
      bind_fixed<Boolean>(column);
      break;
    case PutForm::int16:
      bind_fixed<Number<std::int16_t>>(column);
      break;
    case PutForm::int32:
    case PutForm::uint32:
    case PutForm::float32:
      bind_fixed<Number<std::uint32_t>>(column);
      break;
    case PutForm::int64:
    case PutForm::float64:
      bind_fixed<Number<std::uint64_t>>(column);
      break;
    case PutForm::money:
      bind_fixed<Money>(column);
      break;
    case PutForm::date:
      bind_fixed<Date>(column);
      break;
    case PutForm::time:
      bind_fixed<Time>(column);
      break;
    case PutForm::timestamp:
      bind_fixed<Timestamp>(column);
      break;
    case PutForm::uuid:
      bind_fixed<Uuid>(column);
      break;
    case PutForm::numeric:
      column.put = put_decimal;
      column.most = most_numeric;
      break;
    case PutForm::bytes:
      column.put = put_bytes;
      column.most = most_bytes;
      break;
    case PutForm::jsonb:
      column.put = put_jsonb;
      column.most = most_bytes;
      break;
    case PutForm::xml:
      column.put = put_xml;
      column.most = most_bytes;
      break;
    case PutForm::real_array:
      column.put = put_real_array;
      column.most = most_elements;
      break;
    case PutForm::printed:
      break;  // the text format only
  }
  return column;
}

}  // namespace rowferry::postgres::wire
