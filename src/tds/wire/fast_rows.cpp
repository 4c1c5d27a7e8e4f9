#include "tds/wire/fast_rows.hpp"

#include "base/decimal.hpp"
#include "tds/wire/tokens.hpp"
#include "tds/wire/type_info.hpp"
#include "tds/wire/values.hpp"

namespace rowferry::tds {

namespace {

using Bytes = const std::uint8_t*;

constexpr std::size_t block_rows = 128;  // room is made for so many at once

template <class T>
void put(FastColumn& column, std::size_t row, T value) noexcept {
  store_le(column.values + row * sizeof(T), value);
}

std::size_t left(Bytes at, Bytes end) noexcept { return static_cast<std::size_t>(end - at); }

// Bits of rows that are not there yet are 1: only a NULL has to be written.
void mark_null(FastColumn& column, std::size_t row) {
  if (column.validity == nullptr) {
    column.buffer->validity.fill(0xFF, column.room / 8 + 1);
    column.validity = column.buffer->validity.data();
  }
  column.validity[row / 8] &= static_cast<std::uint8_t>(~(1U << (row % 8)));
}

// ---- values of a fixed size: `bytes` on the wire, put() says whether they are a value -------------------------------

template <class T>
struct Number {
  static constexpr std::size_t bytes = sizeof(T);
  static bool put_value(FastColumn& column, std::size_t row, Bytes at) noexcept {
    put(column, row, load_le<T>(at));
    return true;
  }
  static void zero(FastColumn& column, std::size_t row) noexcept { put(column, row, T{}); }
};

struct Bit {
  static constexpr std::size_t bytes = 1;
  static void set(FastColumn& column, std::size_t row, bool value) noexcept {
    std::uint8_t& byte = column.values[row / 8];
    const auto mask = static_cast<std::uint8_t>(1U << (row % 8));
    byte = static_cast<std::uint8_t>(value ? byte | mask : byte & ~mask);
  }
  static bool put_value(FastColumn& column, std::size_t row, Bytes at) noexcept {
    set(column, row, *at != 0);
    return true;
  }
  static void zero(FastColumn& column, std::size_t row) noexcept { set(column, row, false); }
};

struct Money8 {
  static constexpr std::size_t bytes = 8;
  static bool put_value(FastColumn& column, std::size_t row, Bytes at) noexcept {
    put(column, row, Int128{load_money(at)});
    return true;
  }
  static void zero(FastColumn& column, std::size_t row) noexcept { put(column, row, Int128{0}); }
};

struct Money4 : Money8 {
  static constexpr std::size_t bytes = 4;
  static bool put_value(FastColumn& column, std::size_t row, Bytes at) noexcept {
    put(column, row, Int128{load_le<std::int32_t>(at)});
    return true;
  }
};

struct Date {
  static constexpr std::size_t bytes = 3;
  static bool put_value(FastColumn& column, std::size_t row, Bytes at) noexcept {
    const std::int32_t days = load_date(at);
    put(column, row, days);
    return days <= date_max_days;
  }
  static void zero(FastColumn& column, std::size_t row) noexcept { put(column, row, std::int32_t{0}); }
};

template <std::size_t size>
std::int64_t units(Bytes at) noexcept {
  std::uint64_t value = load_le<std::uint16_t>(at);
  if constexpr (size == 3) value |= std::uint64_t{at[2]} << 16U;
  if constexpr (size >= 4) value = load_le<std::uint32_t>(at);
  if constexpr (size == 5) value |= std::uint64_t{at[4]} << 32U;
  return static_cast<std::int64_t>(value);
}

template <std::size_t size>
struct Time : Number<std::int64_t> {
  static constexpr std::size_t bytes = size;
  static bool put_value(FastColumn& column, std::size_t row, Bytes at) noexcept {
    const std::int64_t time = units<size>(at) * column.factor;
    put(column, row, time);
    return time < column.units_per_day;
  }
};

// `extra`: the offset behind time and date.
template <std::size_t size, std::size_t extra>
struct Moment : Number<std::int64_t> {
  static constexpr std::size_t bytes = size + 3 + extra;
  static bool put_value(FastColumn& column, std::size_t row, Bytes at) noexcept {
    const std::int64_t time = units<size>(at) * column.factor;
    const std::int32_t days = load_date(at + size);
    const bool good = time < column.units_per_day && days <= date_max_days;
    // Days beyond the calendar may overflow the product.
    put(column, row, good ? days * column.units_per_day + time : std::int64_t{0});
    return good;
  }
};

struct DateTime : Number<std::int64_t> {
  static constexpr std::size_t bytes = 8;
  static bool put_value(FastColumn& column, std::size_t row, Bytes at) noexcept {
    const auto micros = load_datetime(at);
    put(column, row, micros.value_or(0));
    return micros.has_value();
  }
};

struct SmallDateTime : Number<std::int64_t> {
  static constexpr std::size_t bytes = 4;
  static bool put_value(FastColumn& column, std::size_t row, Bytes at) noexcept {
    const auto micros = load_smalldatetime(at);
    put(column, row, micros.value_or(0));
    return micros.has_value();
  }
};

struct Guid {
  static constexpr std::size_t bytes = 16;
  static bool put_value(FastColumn& column, std::size_t row, Bytes at) noexcept {
    swap_guid(column.values + row * 16, at);
    return true;
  }
  static void zero(FastColumn& column, std::size_t row) noexcept { put(column, row, Int128{0}); }
};

template <class V>
Bytes fixed(FastColumn& column, std::size_t row, Bytes at, Bytes /*end*/) {
  return V::put_value(column, row, at) ? at + V::bytes : nullptr;
}

template <class V>
void null_of(FastColumn& column, std::size_t row) {
  mark_null(column, row);
  V::zero(column, row);
}

template <class V>
Bytes sized(FastColumn& column, std::size_t row, Bytes at, Bytes /*end*/) {
  const std::uint8_t length = *at++;
  if (length == V::bytes) [[likely]] {
    return V::put_value(column, row, at) ? at + V::bytes : nullptr;
  }
  if (length != 0) return nullptr;
  null_of<V>(column, row);
  return at;
}

template <std::size_t size>
Int128 magnitude(Bytes at) noexcept {
  UInt128 value = 0;
  std::memcpy(&value, at, size);
  return static_cast<Int128>(value);
}

// Any of the widths that a decimal's precision may have: some servers send all of them as the widest.
Bytes decimal_value(FastColumn& column, std::size_t row, Bytes at, Bytes /*end*/) {
  const std::uint8_t length = *at;
  Int128 value = 0;
  switch (length) {
    case 0:
      null_of<Money8>(column, row);
      return at + 1;
    case 5:
      value = magnitude<4>(at + 2);
      break;
    case 9:
      value = magnitude<8>(at + 2);
      break;
    case 13:
      value = magnitude<12>(at + 2);
      break;
    case 17:
      value = magnitude<16>(at + 2);
      if (value < 0 || value >= decimal::pow10(decimal::digits_max)) return nullptr;
      break;
    default:
      return nullptr;
  }
  put(column, row, at[1] == 0 ? -value : value);
  return at + 1 + length;
}

// ---- values of any length -------------------------------------------------------------------------------------------

void null_variable(FastColumn& column, std::size_t row) {
  mark_null(column, row);
  column.offsets[row + 1] = column.offsets[row];
}

struct Plain {
  static bool append(FastColumn& /*column*/, ByteBuffer& to, ByteView value) {
    to.append(value);
    return true;
  }
};
struct Wide {
  static bool append(FastColumn& /*column*/, ByteBuffer& to, ByteView value) {
    return text::append_utf8(to, value) == text::npos;
  }
};
struct Utf8 {
  static bool append(FastColumn& /*column*/, ByteBuffer& to, ByteView value) {
    if (text::find_invalid_utf8(value) != text::npos) return false;
    to.append(value);
    return true;
  }
};
struct Paged {
  static bool append(FastColumn& column, ByteBuffer& to, ByteView value) {
    return column.page->decode(to, value) == text::npos;
  }
};
struct Xml {
  static bool append(FastColumn& /*column*/, ByteBuffer& to, ByteView value) {
    if (value.size() >= 2 && value[1] == 0xFF && value[0] == 0xDF) return false;  // its binary form
    if (value.size() >= 2 && value[0] == 0xFF && value[1] == 0xFE) value = value.subspan(2);
    return text::append_utf8(to, value) == text::npos;
  }
};

template <class V>
bool put_variable(FastColumn& column, std::size_t row, ByteView value) {
  ByteBuffer& values = column.buffer->values;
  values.resize(static_cast<std::size_t>(column.offsets[row]));
  if (!V::append(column, values, value) || values.size() > INT32_MAX) return false;
  column.offsets[row + 1] = static_cast<std::int32_t>(values.size());
  return true;
}

template <class V>
Bytes short_value(FastColumn& column, std::size_t row, Bytes at, Bytes end) {
  const std::size_t length = load_le<std::uint16_t>(at);
  at += 2;
  if (length == 0xFFFF) {
    null_variable(column, row);
    return at;
  }
  if (left(at, end) < length) return nullptr;
  return put_variable<V>(column, row, {at, length}) ? at + length : nullptr;
}

// A long value in one chunk whose size was said; empty ones have none.
template <class V>
Bytes long_value(FastColumn& column, std::size_t row, Bytes at, Bytes end) {
  if (left(at, end) < 8) return nullptr;
  const auto total = load_le<std::uint64_t>(at);
  if (total == plp_null) {
    null_variable(column, row);
    return at + 8;
  }
  if (left(at, end) < 12) return nullptr;
  const auto chunk = load_le<std::uint32_t>(at + 8);
  if (total != chunk) return nullptr;
  at += 12;
  if (chunk == 0) return put_variable<V>(column, row, {}) ? at : nullptr;
  if (left(at, end) < std::size_t{chunk} + 4 || load_le<std::uint32_t>(at + chunk) != 0) return nullptr;
  return put_variable<V>(column, row, {at, chunk}) ? at + chunk + 4 : nullptr;
}

// ---- binding --------------------------------------------------------------------------------------------------------

struct Bound {
  FastColumn::Read read = nullptr;
  FastColumn::Null null = nullptr;
  std::size_t bytes = 0;  // of the value at most, where it is fixed; of its length, where it is not
};

template <class V>
Bound bound(Framing framing) {
  if (framing == Framing::fixed) return {fixed<V>, null_of<V>, V::bytes};
  return {sized<V>, null_of<V>, V::bytes + 1};
}

template <class V>
Bound bound_variable(Framing framing) {
  if (framing == Framing::plp) return {long_value<V>, null_variable, 0};
  if (framing == Framing::short_length) return {short_value<V>, null_variable, 2};
  return {};
}

template <std::size_t size>
Bound bound_time(const TypeInfo& type, Framing framing) {
  if (type.id == DataType::time) return bound<Time<size>>(framing);
  if (type.id == DataType::datetime2) return bound<Moment<size, 0>>(framing);
  return bound<Moment<size, 2>>(framing);
}

Bound bound_number(const rows::Type& logical, Framing framing) {
  switch (logical.id) {
    case rows::TypeId::uint8:
      return bound<Number<std::uint8_t>>(framing);
    case rows::TypeId::int16:
      return bound<Number<std::int16_t>>(framing);
    case rows::TypeId::int32:
      return bound<Number<std::int32_t>>(framing);
    case rows::TypeId::int64:
      return bound<Number<std::int64_t>>(framing);
    case rows::TypeId::float32:
      return bound<Number<float>>(framing);
    case rows::TypeId::float64:
      return bound<Number<double>>(framing);
    default:
      return {};
  }
}

Bound bind(const TypeInfo& type, const rows::Type& logical, const DecodeColumn& column) {
  const Framing framing = tds::framing(type);
  switch (type.id) {
    case DataType::bit:
    case DataType::bitn:
      return bound<Bit>(framing);
    case DataType::money:
    case DataType::money4:
    case DataType::moneyn:
      return type.max_length == 4 ? bound<Money4>(framing) : bound<Money8>(framing);
    case DataType::datetime:
    case DataType::datetim4:
    case DataType::datetimn:
      return type.max_length == 4 ? bound<SmallDateTime>(framing) : bound<DateTime>(framing);
    case DataType::guid:
      return bound<Guid>(framing);
    case DataType::date:
      return bound<Date>(framing);
    case DataType::time:
    case DataType::datetime2:
    case DataType::datetimeoffset:
      return column.time_bytes == 3   ? bound_time<3>(type, framing)
             : column.time_bytes == 4 ? bound_time<4>(type, framing)
                                      : bound_time<5>(type, framing);
    case DataType::decimaln:
    case DataType::numericn:
      return {decimal_value, null_of<Money8>, 18};
    case DataType::bigchar:
    case DataType::bigvarchar:
      return column.page != nullptr ? bound_variable<Paged>(framing) : bound_variable<Utf8>(framing);
    case DataType::nchar:
    case DataType::nvarchar:
      return bound_variable<Wide>(framing);
    case DataType::json:
      return bound_variable<Utf8>(framing);
    case DataType::xml:
      return bound_variable<Xml>(framing);
    case DataType::bigbinary:
    case DataType::bigvarbinary:
      return bound_variable<Plain>(framing);
    default:
      return bound_number(logical, framing);
  }
}

}  // namespace

void FastRows::add(const TypeInfo& type, const rows::Type& logical, const DecodeColumn& column) {
  const Bound found = bind(type, logical, column);
  usable_ = usable_ && found.read != nullptr;
  FastColumn& fast = columns_.emplace_back();
  fast.read = found.read;
  fast.null = found.null;
  fast.page = column.page;
  fast.factor = column.factor;
  fast.units_per_day = column.units_per_day;
  fast.variable = rows::is_variable(logical.id);
  fast.width = rows::fixed_width(logical.id);
  if (!run_open_) runs_.push_back({columns_.size() - 1, columns_.size() - 1, 0});
  runs_.back().last = columns_.size();
  runs_.back().need += found.bytes;
  run_open_ = !fast.variable;  // how long a variable value is, only it can tell
}

void FastRows::begin(rows::Batch& batch) noexcept {
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    columns_[i].buffer = &batch.buffer(i);
    columns_[i].room = 0;
  }
}

void FastRows::make_room(std::size_t row) {
  const std::size_t room = row + block_rows;
  for (FastColumn& column : columns_) {
    rows::ColumnBuffer& buffer = *column.buffer;
    column.room = room;
    if (column.variable) {
      buffer.offsets.resize((room + 1) * sizeof(std::int32_t));
      column.offsets = reinterpret_cast<std::int32_t*>(buffer.offsets.data());
    } else if (column.width == 0) {
      buffer.values.fill(0, room / 8 + 1 - buffer.values.size());
      column.values = buffer.values.data();
    } else {
      buffer.values.resize(room * column.width);
      column.values = buffer.values.data();
    }
    column.validity = nullptr;
    if (buffer.validity.empty()) continue;
    buffer.validity.fill(0xFF, room / 8 + 1 - buffer.validity.size());
    column.validity = buffer.validity.data();
  }
}

// The buffers as append() would have left them: `row` rows, and nothing of a row that was begun.
void FastRows::settle(std::size_t row) {
  const std::size_t bits = (row + 7) / 8;
  for (FastColumn& column : columns_) {
    rows::ColumnBuffer& buffer = *column.buffer;
    if (column.variable) {
      buffer.offsets.resize((row + 1) * sizeof(std::int32_t));
      buffer.values.resize(static_cast<std::size_t>(column.offsets[row]));
    } else if (column.width == 0) {
      buffer.values.resize(bits);
      if (row % 8 != 0) buffer.values.data()[bits - 1] &= static_cast<std::uint8_t>((1U << (row % 8)) - 1);
    } else {
      buffer.values.resize(row * column.width);
    }
    if (!buffer.validity.empty()) buffer.validity.resize(bits);
  }
}

const std::uint8_t* FastRows::plain_row(std::size_t row, Bytes at, Bytes end) {
  for (const Run& run : runs_) {
    if (left(at, end) < run.need) return nullptr;
    FastColumn* const last = columns_.data() + run.last;
    for (FastColumn* column = columns_.data() + run.first; column != last; ++column) {
      at = column->read(*column, row, at, end);
      if (at == nullptr) return nullptr;
    }
  }
  return at;
}

const std::uint8_t* FastRows::row_with_bitmap(std::size_t row, Bytes at, Bytes end) {
  const std::size_t bytes = (columns_.size() + 7) / 8;
  if (left(at, end) < bytes) return nullptr;
  Bytes const bitmap = at;
  at += bytes;
  for (const Run& run : runs_) {
    if (left(at, end) < run.need) return nullptr;
    for (std::size_t i = run.first; i != run.last; ++i) {
      FastColumn& column = columns_[i];
      if (((bitmap[i / 8] >> (i % 8)) & 1U) != 0) {
        column.null(column, row);
        continue;
      }
      at = column.read(column, row, at, end);
      if (at == nullptr) return nullptr;
    }
  }
  return at;
}

std::size_t FastRows::rows(const std::uint8_t*& at, const std::uint8_t* end, std::size_t row, std::size_t bytes) {
  constexpr auto plain = static_cast<std::uint8_t>(Token::row);
  constexpr auto with_bitmap = static_cast<std::uint8_t>(Token::nbc_row);
  Bytes const begin = at;
  std::size_t place = row;
  std::size_t room = place;
  while (at != end && left(begin, at) < bytes) {
    if (place == room) {
      make_room(place);
      room = place + block_rows;
    }
    Bytes const next = *at == plain         ? plain_row(place, at + 1, end)
                       : *at == with_bitmap ? row_with_bitmap(place, at + 1, end)
                                            : nullptr;
    if (next == nullptr) break;
    at = next;
    ++place;
  }
  if (room != row) settle(place);
  return place - row;
}

}  // namespace rowferry::tds
