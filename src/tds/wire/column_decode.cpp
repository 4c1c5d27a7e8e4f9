#include "tds/wire/column_decode.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "tds/wire/collation.hpp"
#include "tds/wire/type_info.hpp"
#include "tds/wire/values.hpp"
#include "tds/wire/variant.hpp"

namespace rowferry::tds {

namespace {

using rows::OnLoss;

template <class T>
bool number(DecodeColumn& column, std::size_t row, ByteView value) {
  if (value.size() != sizeof(T)) return false;
  column.buffer->append(row, load_le<T>(value.data()));
  return true;
}

bool bit(DecodeColumn& column, std::size_t row, ByteView value) {
  if (value.size() != 1) return false;
  column.buffer->append_boolean(row, value[0] != 0);
  return true;
}

bool money(DecodeColumn& column, std::size_t row, ByteView value) {
  if (value.size() != 8 && value.size() != 4) return false;
  const std::int64_t units = value.size() == 8 ? load_money(value.data()) : load_le<std::int32_t>(value.data());
  column.buffer->append(row, Int128{units});
  return true;
}

bool decimal_value(DecodeColumn& column, std::size_t row, ByteView value) {
  const auto unscaled = load_decimal(value);
  if (!unscaled) return false;
  column.buffer->append(row, *unscaled);
  return true;
}

bool date(DecodeColumn& column, std::size_t row, ByteView value) {
  if (value.size() != 3) return false;
  const std::int32_t days = load_date(value.data());
  if (days > date_max_days) return false;
  column.buffer->append(row, days);
  return true;
}

// The time of day in the Batch's unit; negative when it is none.
std::int64_t time_of_day(const DecodeColumn& column, const std::uint8_t* from) {
  // 40 bits times 10^6 stay below 2^63
  const auto units = static_cast<std::int64_t>(load_time(from, column.time_bytes)) * column.factor;
  return units < column.units_per_day ? units : -1;
}

bool time_value(DecodeColumn& column, std::size_t row, ByteView value) {
  if (value.size() != column.time_bytes) return false;
  const std::int64_t time = time_of_day(column, value.data());
  if (time < 0) return false;
  column.buffer->append(row, time);
  return true;
}

// `extra`: bytes behind time and date: the offset, which says nothing of the instant, and is counted as lost.
template <std::size_t extra>
bool timestamp(DecodeColumn& column, std::size_t row, ByteView value) {
  if (value.size() != column.time_bytes + 3 + extra) return false;
  const std::int64_t time = time_of_day(column, value.data());
  const std::int32_t days = load_date(value.data() + column.time_bytes);
  if (time < 0 || days > date_max_days) return false;
  if constexpr (extra != 0) {
    const std::uint8_t* const offset = value.data() + column.time_bytes + 3;
    if (column.loss != nullptr && (offset[0] | offset[1]) != 0) column.loss->changed_as_warned();
  }
  column.buffer->append(row, days * column.units_per_day + time);
  return true;
}

bool datetime(DecodeColumn& column, std::size_t row, ByteView value) {
  if (value.size() != 8) return false;
  const auto micros = load_datetime(value.data());
  if (!micros) return false;
  column.buffer->append(row, *micros);
  return true;
}

bool smalldatetime(DecodeColumn& column, std::size_t row, ByteView value) {
  if (value.size() != 4) return false;
  const auto micros = load_smalldatetime(value.data());
  if (!micros) return false;
  column.buffer->append(row, *micros);
  return true;
}

bool guid(DecodeColumn& column, std::size_t row, ByteView value) {
  if (value.size() != 16) return false;
  swap_guid(column.buffer->values.extend(16), value.data());
  column.buffer->append_valid(row);
  return true;
}

bool binary(DecodeColumn& column, std::size_t row, ByteView value) {
  column.buffer->append_bytes(row, value);
  return true;
}

// U+FFFD taken out, or written as the policy's replacement.
std::string without_marks(std::string_view text, std::string_view instead) {
  constexpr std::string_view mark = "\xEF\xBF\xBD";
  std::string out;
  while (true) {
    const std::size_t at = text.find(mark);
    out += text.substr(0, at);
    if (at == std::string_view::npos) return out;
    out += instead;
    text.remove_prefix(at + mark.size());
  }
}

// A value with something that is no character: `lenient` has U+FFFD in its place.
void lost_text(DecodeColumn& column, std::size_t row, const ByteBuffer& lenient, std::string_view reason) {
  const std::string_view text = as_text(lenient.view());
  if (column.loss == nullptr) {
    throw Error(Category::data, "value_does_not_fit", fmt::format("column \"{}\": {}", *column.name, reason))
        .with_value(text);
  }
  switch (column.loss->lost(column.rows_before + row, text, reason)) {
    case OnLoss::null:
      column.buffer->append_null(column.id, row);
      return;
    case OnLoss::strip:
      column.buffer->append_bytes(row, as_bytes(without_marks(text, "")));
      return;
    case OnLoss::replace: {
      const auto& instead = column.loss->policy().replacement;
      column.buffer->append_bytes(row, as_bytes(without_marks(text, instead ? *instead : "\xEF\xBF\xBD")));
      return;
    }
    case OnLoss::error:
    case OnLoss::truncate:
      column.loss->refuse(column.rows_before + row, text, reason);
  }
}

void end_text(DecodeColumn& column, std::size_t row) {
  column.buffer->end_value();
  column.buffer->append_valid(row);
}

bool utf16(DecodeColumn& column, std::size_t row, ByteView value) {
  if (value.size() % 2 != 0) return false;
  if (const std::size_t at = text::append_utf8(column.buffer->values, value); at != text::npos) {
    ByteBuffer lenient;
    text::append_utf8_lenient(lenient, value);
    lost_text(column, row, lenient, fmt::format("an unpaired surrogate at UTF-16 unit {}", at / 2));
    return true;
  }
  end_text(column, row);
  return true;
}

bool utf8(DecodeColumn& column, std::size_t row, ByteView value) {
  if (const std::size_t at = text::find_invalid_utf8(value); at != text::npos) {
    ByteBuffer lenient;
    text::CodePage::get(code_page_utf8).decode_lenient(lenient, value);
    lost_text(column, row, lenient, fmt::format("byte {} is not UTF-8", at));
    return true;
  }
  column.buffer->append_bytes(row, value);
  return true;
}

bool code_page_text(DecodeColumn& column, std::size_t row, ByteView value) {
  if (const std::size_t at = column.page->decode(column.buffer->values, value); at != text::npos) {
    ByteBuffer lenient;
    column.page->decode_lenient(lenient, value);
    lost_text(column, row, lenient, fmt::format("byte {} is not in code page {}", at, column.page->number()));
    return true;
  }
  end_text(column, row);
  return true;
}

// Text with an optional byte-order mark. The binary form has a signature of its own ([MS-BINXML] 2.2).
bool xml(DecodeColumn& column, std::size_t row, ByteView value) {
  if (value.size() >= 2 && value[0] == 0xDF && value[1] == 0xFF) {
    throw Error(Category::unsupported, "binary_xml",
                fmt::format("column \"{}\": the server sends xml in its binary form", *column.name))
        .with_hint("read it as nvarchar(max) by a cast");
  }
  if (value.size() >= 2 && value[0] == 0xFF && value[1] == 0xFE) value = value.subspan(2);
  return utf16(column, row, value);
}

template <ToText (*to_text)(ByteView, ByteBuffer&)>
bool as_printed(DecodeColumn& column, std::size_t row, ByteView value) {
  ByteBuffer& values = column.buffer->values;
  const std::size_t before = values.size();
  switch (to_text(value, values)) {
    case ToText::ok:
      end_text(column, row);
      return true;
    case ToText::malformed:
      return false;
    case ToText::bad_text: {
      ByteBuffer lenient;
      lenient.append(values.view().subspan(before));
      values.resize(before);
      lost_text(column, row, lenient, "a character that is not in the value's encoding");
      return true;
    }
  }
  return false;
}

Decode bind_integer(std::uint32_t bytes) {
  switch (bytes) {
    case 1:
      return number<std::uint8_t>;
    case 2:
      return number<std::int16_t>;
    case 4:
      return number<std::int32_t>;
    default:
      return number<std::int64_t>;
  }
}

Decode bind_temporal(const TypeInfo& type, const rows::Type& logical, DecodeColumn& column) {
  const bool micro = logical.unit == rows::TimeUnit::micro;
  column.factor = power_of_ten[static_cast<std::size_t>((micro ? 6 : 7) - type.scale)];
  column.units_per_day = micro ? ticks_per_day / 10 : ticks_per_day;
  column.time_bytes = time_bytes(type.scale);
  return type.id == DataType::time        ? time_value
         : type.id == DataType::datetime2 ? timestamp<0>
                                          : timestamp<sizeof(std::int16_t)>;
}

Decode bind_char(const TypeInfo& type, DecodeColumn& column) {
  const std::uint16_t page = code_page_or_throw(type.collation);
  if (page == code_page_utf8) return utf8;
  column.page = &text::CodePage::get(page);
  return code_page_text;
}

}  // namespace

Decode bind_decode(const TypeInfo& type, const rows::Type& logical, DecodeColumn& column) {
  column.id = logical.id;
  switch (type.id) {
    case DataType::int1:
    case DataType::int2:
    case DataType::int4:
    case DataType::int8:
    case DataType::intn:
      return bind_integer(type.max_length);
    case DataType::bit:
    case DataType::bitn:
      return bit;
    case DataType::flt4:
    case DataType::flt8:
    case DataType::fltn:
      return type.max_length == 4 ? number<float> : number<double>;
    case DataType::money:
    case DataType::money4:
    case DataType::moneyn:
      return money;
    case DataType::datetime:
    case DataType::datetim4:
    case DataType::datetimn:
      return type.max_length == 4 ? smalldatetime : datetime;
    case DataType::guid:
      return guid;
    case DataType::date:
      return date;
    case DataType::time:
    case DataType::datetime2:
    case DataType::datetimeoffset:
      return bind_temporal(type, logical, column);
    case DataType::decimaln:
    case DataType::numericn:
    case DataType::decimal_legacy:
    case DataType::numeric_legacy:
      return decimal_value;
    case DataType::bigchar:
    case DataType::bigvarchar:
    case DataType::char_legacy:
    case DataType::varchar_legacy:
    case DataType::text:
      return bind_char(type, column);
    case DataType::nchar:
    case DataType::nvarchar:
    case DataType::ntext:
      return utf16;
    case DataType::xml:
      return xml;
    case DataType::json:
      return utf8;
    case DataType::sql_variant:
      return as_printed<variant_to_text>;
    case DataType::vector:
      return as_printed<vector_to_text>;
    case DataType::bigbinary:
    case DataType::bigvarbinary:
    case DataType::binary_legacy:
    case DataType::varbinary_legacy:
    case DataType::image:
    case DataType::udt:
    case DataType::null:
    case DataType::tvp:
      break;
  }
  return binary;
}

}  // namespace rowferry::tds
