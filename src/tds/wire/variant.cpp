#include "tds/wire/variant.hpp"

#include <fmt/format.h>

#include <bit>
#include <iterator>

#include "base/civil.hpp"
#include "base/text.hpp"
#include "tds/wire/collation.hpp"
#include "tds/wire/types.hpp"
#include "tds/wire/values.hpp"

namespace rowferry::tds {

namespace {

using civil::Fraction;

struct Inner {
  ByteView properties;
  ByteView data;
};

template <class... Args>
ToText print(ByteBuffer& out, fmt::string_view format, const Args&... args) {
  fmt::basic_memory_buffer<char, 64> text;
  fmt::vformat_to(std::back_inserter(text), format, fmt::make_format_args(args...));
  out.append(std::string_view(text.data(), text.size()));
  return ToText::ok;
}

template <class T>
ToText number(ByteView data, ByteBuffer& out) {
  if (data.size() != sizeof(T)) return ToText::malformed;
  return print(out, "{}", load_le<T>(data.data()));
}

ToText money(ByteView data, ByteBuffer& out) {
  if (data.size() != 8 && data.size() != 4) return ToText::malformed;
  const std::int64_t value = data.size() == 8 ? load_money(data.data()) : load_le<std::int32_t>(data.data());
  char text[decimal::text_max];
  const char* const end = decimal::write(text, value, 4);
  out.append(std::string_view(text, static_cast<std::size_t>(end - text)));
  return ToText::ok;
}

ToText decimal_text(const Inner& value, ByteBuffer& out) {
  if (value.properties.size() != 2 || value.properties[1] > decimal::digits_max) return ToText::malformed;
  const auto unscaled = load_decimal(value.data);
  if (!unscaled) return ToText::malformed;
  char text[decimal::text_max];
  const char* const end = decimal::write(text, *unscaled, value.properties[1]);
  out.append(std::string_view(text, static_cast<std::size_t>(end - text)));
  return ToText::ok;
}

template <class Write>
void write_text(ByteBuffer& out, Write write) {
  char text[civil::text_max];
  const char* const end = write(text);
  out.append(std::string_view(text, static_cast<std::size_t>(end - text)));
}

ToText datetime(ByteView data, ByteBuffer& out) {
  if (data.size() != 8 && data.size() != 4) return ToText::malformed;
  const bool small = data.size() == 4;
  const auto micros = small ? load_smalldatetime(data.data()) : load_datetime(data.data());
  if (!micros) return ToText::malformed;
  write_text(out, [&](char* to) { return civil::write_timestamp(to, *micros, Fraction::micro, small ? 0 : 3, false); });
  return ToText::ok;
}

// time, datetime2 and datetimeoffset: the scale is the one property.
ToText temporal(DataType id, const Inner& value, ByteBuffer& out) {
  if (value.properties.size() != 1 || value.properties[0] > 7) return ToText::malformed;
  const int scale = value.properties[0];
  const std::size_t bytes = time_bytes(scale);
  const std::size_t expected = bytes + (id == DataType::time ? 0 : id == DataType::datetime2 ? 3 : 5);
  if (value.data.size() != expected) return ToText::malformed;
  const std::uint64_t units = load_time(value.data.data(), bytes);
  const auto ticks = static_cast<std::int64_t>(units) * power_of_ten[static_cast<std::size_t>(7 - scale)];
  if (units > static_cast<std::uint64_t>(ticks_per_day) || ticks >= ticks_per_day) return ToText::malformed;
  if (id == DataType::time) {
    write_text(out, [&](char* to) { return civil::write_time(to, ticks, Fraction::hundred_nano, scale); });
    return ToText::ok;
  }
  const std::int32_t day = load_date(value.data.data() + bytes);
  if (day > date_max_days) return ToText::malformed;
  std::int64_t since_1970 = day * ticks_per_day + ticks;
  const int offset = id == DataType::datetime2 ? 0 : load_le<std::int16_t>(value.data.data() + bytes + 3);
  if (offset < -840 || offset > 840) return ToText::malformed;
  since_1970 += std::int64_t{offset} * 60 * ticks_per_second;
  write_text(out,
             [&](char* to) { return civil::write_timestamp(to, since_1970, Fraction::hundred_nano, scale, false); });
  if (id == DataType::datetime2) return ToText::ok;
  const int distance = offset < 0 ? -offset : offset;
  return print(out, " {}{:02}:{:02}", offset < 0 ? '-' : '+', distance / 60, distance % 60);
}

ToText date(ByteView data, ByteBuffer& out) {
  if (data.size() != 3 || load_date(data.data()) > date_max_days) return ToText::malformed;
  write_text(out, [&](char* to) { return civil::write_date(to, load_date(data.data())); });
  return ToText::ok;
}

ToText guid(ByteView data, ByteBuffer& out) {
  if (data.size() != 16) return ToText::malformed;
  std::uint8_t printed[16];
  swap_guid(printed, data.data());
  for (std::size_t i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) out.push('-');
    print(out, "{:02x}", printed[i]);
  }
  return ToText::ok;
}

ToText binary(ByteView data, ByteBuffer& out) {
  out.append(std::string_view("\\x"));
  for (const std::uint8_t byte : data) print(out, "{:02x}", byte);
  return ToText::ok;
}

ToText characters(const Inner& value, bool wide, ByteBuffer& out) {
  if (value.properties.size() != 7) return ToText::malformed;
  if (wide) {
    if (value.data.size() % 2 != 0) return ToText::malformed;
    return text::append_utf8_lenient(out, value.data) == 0 ? ToText::ok : ToText::bad_text;
  }
  const std::uint16_t page = code_page_or_throw(load_collation(value.properties.data()));
  return text::CodePage::get(page).decode_lenient(out, value.data) == 0 ? ToText::ok : ToText::bad_text;
}

float half_to_float(std::uint16_t half) noexcept {
  const std::uint32_t sign = (half & 0x8000U) << 16U;
  std::uint32_t exponent = (half >> 10U) & 0x1FU;
  std::uint32_t fraction = half & 0x3FFU;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7F800000U | fraction << 13U);
  if (exponent == 0) {
    if (fraction == 0) return std::bit_cast<float>(sign);
    exponent = 113;
    while ((fraction & 0x400U) == 0) {
      fraction <<= 1U;
      --exponent;
    }
    return std::bit_cast<float>(sign | exponent << 23U | (fraction & 0x3FFU) << 13U);
  }
  return std::bit_cast<float>(sign | (exponent + 112) << 23U | fraction << 13U);
}

}  // namespace

ToText variant_to_text(ByteView inner, ByteBuffer& out) {
  if (inner.size() < 2 || inner.size() < std::size_t{2} + inner[1]) return ToText::malformed;
  const auto id = static_cast<DataType>(inner[0]);
  const Inner value = {inner.subspan(2, inner[1]), inner.subspan(std::size_t{2} + inner[1])};
  switch (id) {
    case DataType::int1:
      return number<std::uint8_t>(value.data, out);
    case DataType::bit:
      return number<std::uint8_t>(value.data, out);
    case DataType::int2:
      return number<std::int16_t>(value.data, out);
    case DataType::int4:
      return number<std::int32_t>(value.data, out);
    case DataType::int8:
      return number<std::int64_t>(value.data, out);
    case DataType::flt4:
      return number<float>(value.data, out);
    case DataType::flt8:
      return number<double>(value.data, out);
    case DataType::money:
    case DataType::money4:
      return money(value.data, out);
    case DataType::datetime:
    case DataType::datetim4:
      return datetime(value.data, out);
    case DataType::guid:
      return guid(value.data, out);
    case DataType::date:
      return date(value.data, out);
    case DataType::time:
    case DataType::datetime2:
    case DataType::datetimeoffset:
      return temporal(id, value, out);
    case DataType::decimaln:
    case DataType::numericn:
      return decimal_text(value, out);
    case DataType::bigbinary:
    case DataType::bigvarbinary:
      return value.properties.size() == 2 ? binary(value.data, out) : ToText::malformed;
    case DataType::bigchar:
    case DataType::bigvarchar:
      return characters(value, false, out);
    case DataType::nchar:
    case DataType::nvarchar:
      return characters(value, true, out);
    default:
      return ToText::malformed;
  }
}

ToText vector_to_text(ByteView payload, ByteBuffer& out) {
  constexpr std::size_t header_bytes = 8;
  if (payload.size() < header_bytes || payload[0] != 0xA9) return ToText::malformed;
  const std::size_t count = load_le<std::uint16_t>(payload.data() + 2);
  const bool half = payload[4] == 1;
  const std::size_t width = half ? 2 : 4;
  if (payload[4] > 1 || payload.size() != header_bytes + count * width) return ToText::malformed;
  const std::uint8_t* at = payload.data() + header_bytes;
  out.push('[');
  for (std::size_t i = 0; i < count; ++i, at += width) {
    if (i != 0) out.push(',');
    print(out, "{}", half ? half_to_float(load_le<std::uint16_t>(at)) : load_le<float>(at));
  }
  out.push(']');
  return ToText::ok;
}

}  // namespace rowferry::tds
