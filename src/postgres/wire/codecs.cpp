#include "postgres/wire/codecs.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "base/civil.hpp"
#include "postgres/wire/numeric.hpp"

namespace rowferry::postgres::wire {

namespace {

using rows::ColumnBuffer;
using rows::Int128;
using rows::OnLoss;

constexpr std::int64_t epoch_micros = 946'684'800'000'000;  // 2000-01-01 seen from 1970-01-01
constexpr std::int32_t epoch_days = 10'957;
constexpr std::int64_t int64_min = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t int64_max = std::numeric_limits<std::int64_t>::max();
constexpr std::int32_t int32_min = std::numeric_limits<std::int32_t>::min();
constexpr std::int32_t int32_max = std::numeric_limits<std::int32_t>::max();

std::int32_t length_of(const std::uint8_t* field) noexcept { return load_be<std::int32_t>(field - 4); }
bool is_null(const std::uint8_t* field) noexcept { return length_of(field) < 0; }
ByteView field_bytes(const std::uint8_t* field) noexcept { return {field, static_cast<std::size_t>(length_of(field))}; }

// Where a bitmap exists it covers rows [row, row + count) afterwards, all of them valid: bits are only ever cleared.
void cover(ColumnBuffer& out, std::size_t row, std::size_t count) {
  const std::size_t wanted = (row + count - 1) / 8 + 1;
  if (out.validity.size() < wanted) out.validity.fill(0xFF, wanted - out.validity.size());
}

// Makes the bitmap exist when the block has NULLs and marks them; else only lets an existing one grow.
void mark_nulls(const std::uint8_t* const* fields, std::size_t count, std::size_t nulls, ColumnBuffer& out,
                std::size_t row) {
  if (nulls == 0 && out.validity.empty()) return;
  cover(out, row, count);
  if (nulls == 0) return;
  for (std::size_t i = 0; i < count; ++i) {
    if (is_null(fields[i])) out.set_null(row + i);
  }
}

void set_null_late(ColumnBuffer& out, std::size_t row, std::size_t block_end) {
  cover(out, row, block_end - row);
  out.set_null(row);
}

// The text of every byte's bits, from the top.
constexpr auto bit_text = [] {
  std::array<std::array<char, 8>, 256> table{};
  for (std::size_t byte = 0; byte < 256; ++byte) {
    for (std::size_t bit = 0; bit < 8; ++bit) table[byte][bit] = ((byte >> (7 - bit)) & 1U) != 0 ? '1' : '0';
  }
  return table;
}();

}  // namespace

template <class Out, class Convert>
bool CopyDecoder::Codecs::fixed(Column& column, const std::uint8_t* const* fields, std::size_t count, ColumnBuffer& out,
                                std::size_t row, Convert convert) {
  mark_nulls(fields, count, column.nulls, out, row);
  std::uint8_t* to = out.values.extend(count * sizeof(Out));
  if (column.nulls == 0) {
    for (std::size_t i = 0; i < count; ++i) store_le<Out>(to + i * sizeof(Out), convert(fields[i]));
  } else {
    for (std::size_t i = 0; i < count; ++i) {
      store_le<Out>(to + i * sizeof(Out), is_null(fields[i]) ? Out{} : convert(fields[i]));
    }
  }
  return true;
}

template <class Out, class In>
bool CopyDecoder::Codecs::integer(Column& column, const std::uint8_t* const* fields, std::size_t count,
                                  ColumnBuffer& out, std::size_t row, std::uint64_t /*ordinal*/) {
  return fixed<Out>(column, fields, count, out, row,
                    [](const std::uint8_t* field) { return static_cast<Out>(load_be<In>(field)); });
}

bool CopyDecoder::Codecs::boolean(Column& column, const std::uint8_t* const* fields, std::size_t count,
                                  ColumnBuffer& out, std::size_t row, std::uint64_t /*ordinal*/) {
  mark_nulls(fields, count, column.nulls, out, row);
  const std::size_t wanted = (row + count - 1) / 8 + 1;
  if (out.values.size() < wanted) out.values.fill(0, wanted - out.values.size());
  std::uint8_t* bits = out.values.data();
  for (std::size_t i = 0; i < count; ++i) {
    const bool set = !is_null(fields[i]) && *fields[i] != 0;
    const std::size_t at = row + i;
    bits[at / 8] |= static_cast<std::uint8_t>(static_cast<unsigned>(set) << (at % 8));
  }
  return true;
}

bool CopyDecoder::Codecs::date(Column& column, const std::uint8_t* const* fields, std::size_t count, ColumnBuffer& out,
                               std::size_t row, std::uint64_t ordinal) {
  bool odd = false;
  const std::size_t start = out.values.size();
  fixed<std::int32_t>(column, fields, count, out, row, [&odd](const std::uint8_t* field) {
    const auto days = load_be<std::int32_t>(field);
    odd |= days == int32_min || days > int32_max - epoch_days;
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(days) + epoch_days);
  });
  if (!odd) return true;
  for (std::size_t i = 0; i < count; ++i) {
    if (is_null(fields[i])) continue;
    const auto days = load_be<std::int32_t>(fields[i]);
    if (days != int32_min && days <= int32_max - epoch_days) continue;
    if (days > int32_max - epoch_days && days != int32_max) {
      column.problem = "a date beyond 5874897-12-31";
      return false;
    }
    store_le(out.values.data() + start + i * sizeof days, days);
    const OnLoss action = column.plan.policy.action;
    if (column.plan.holds_infinity || (action != OnLoss::error && action != OnLoss::null)) continue;
    column.loss.lost(ordinal + i, days < 0 ? "-infinity" : "infinity", "the target has no infinite dates");
    set_null_late(out, row + i, row + count);
  }
  return true;
}

namespace {

// A timestamp (microseconds since 2000) that the integers of a batch cannot hold, as PostgreSQL prints it.
std::string late_text(std::int64_t micros) {
  constexpr std::int64_t per_day = 86'400'000'000;
  return civil::date_text(static_cast<std::int32_t>(micros / per_day + epoch_days)) + " " +
         civil::time_text(micros % per_day, civil::Fraction::micro, 6);
}

}  // namespace

bool CopyDecoder::Codecs::timestamp(Column& column, const std::uint8_t* const* fields, std::size_t count,
                                    ColumnBuffer& out, std::size_t row, std::uint64_t ordinal) {
  bool odd = false;
  const std::size_t start = out.values.size();
  fixed<std::int64_t>(column, fields, count, out, row, [&odd](const std::uint8_t* field) {
    const auto micros = load_be<std::int64_t>(field);
    odd |= micros == int64_min || micros > int64_max - epoch_micros;
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(micros) + epoch_micros);
  });
  if (!odd) return true;
  for (std::size_t i = 0; i < count; ++i) {
    if (is_null(fields[i])) continue;
    const auto micros = load_be<std::int64_t>(fields[i]);
    if (micros != int64_min && micros <= int64_max - epoch_micros) continue;
    const bool infinite = micros == int64_min || micros == int64_max;
    store_le(out.values.data() + start + i * sizeof micros, micros < 0 ? int64_min : int64_max);
    const OnLoss action = column.plan.policy.action;
    if (infinite && column.plan.holds_infinity) continue;
    // Years 294247 to 294276 are PostgreSQL's but not of 64-bit microseconds since 1970: never taken for infinity, by
    // no policy. As the nearest bound of a target's range the largest integer does.
    constexpr std::string_view beyond = "the timestamp is beyond 294247-01-10 04:00:54.775807";
    if (!infinite && (column.plan.holds_infinity ||
                      (action != OnLoss::error && action != OnLoss::null && action != OnLoss::replace))) {
      column.loss.refuse(ordinal + i, late_text(micros), beyond);
    }
    if (action != OnLoss::error && action != OnLoss::null) continue;
    column.loss.lost(ordinal + i,
                     !infinite    ? late_text(micros)
                     : micros < 0 ? "-infinity"
                                  : "infinity",
                     infinite ? "the target has no infinite timestamps" : beyond);
    set_null_late(out, row + i, row + count);
  }
  return true;
}

bool CopyDecoder::Codecs::uuid(Column& column, const std::uint8_t* const* fields, std::size_t count, ColumnBuffer& out,
                               std::size_t row, std::uint64_t /*ordinal*/) {
  using Sixteen = std::array<std::uint8_t, 16>;
  return fixed<Sixteen>(column, fields, count, out, row,
                        [](const std::uint8_t* field) { return load_le<Sixteen>(field); });
}

bool CopyDecoder::Codecs::numeric(Column& column, const std::uint8_t* const* fields, std::size_t count,
                                  ColumnBuffer& out, std::size_t row, std::uint64_t ordinal) {
  mark_nulls(fields, count, column.nulls, out, row);
  const std::size_t start = out.values.size();
  out.values.extend(count * sizeof(Int128));
  const int precision = column.plan.type.precision;
  const int scale = column.plan.type.scale;
  for (std::size_t i = 0; i < count; ++i) {
    Int128 value = 0;
    if (!is_null(fields[i])) {
      const NumericFit fit = read_numeric(field_bytes(fields[i]), precision, scale, value);
      if (fit == NumericFit::malformed) {
        column.problem = "a numeric whose digits are not of its form";
        return false;
      }
      if (fit != NumericFit::exact &&
          !mend_numeric(column.loss, fit, field_bytes(fields[i]), ordinal + i, column.replacement, value)) {
        set_null_late(out, row + i, row + count);
        value = 0;
      }
    }
    store_le(out.values.data() + start + i * sizeof value, value);
  }
  return true;
}

bool CopyDecoder::Codecs::bytes(Column& column, const std::uint8_t* const* fields, std::size_t count, ColumnBuffer& out,
                                std::size_t row, std::uint64_t /*ordinal*/) {
  mark_nulls(fields, count, column.nulls, out, row);
  if (out.values.size() + column.value_bytes > static_cast<std::size_t>(int32_max)) {
    column.problem = "the values of one batch pass 2 GiB";
    return false;
  }
  auto at = static_cast<std::int32_t>(out.values.size());
  std::uint8_t* to = out.values.extend(column.value_bytes);
  std::uint8_t* ends = out.offsets.extend(count * sizeof at);
  for (std::size_t i = 0; i < count; ++i) {
    const std::int32_t length = std::max(length_of(fields[i]), 0);
    if (length != 0) std::memcpy(to, fields[i], static_cast<std::size_t>(length));
    to += length;
    at += length;
    store_le(ends + i * sizeof at, at);
  }
  return true;
}

// Values whose text is not their bytes: `write` appends one to out.values, or says false.
template <class Write>
bool CopyDecoder::Codecs::variable(Column& column, const std::uint8_t* const* fields, std::size_t count,
                                   ColumnBuffer& out, std::size_t row, Write write) {
  mark_nulls(fields, count, column.nulls, out, row);
  for (std::size_t i = 0; i < count; ++i) {
    if (!is_null(fields[i]) && !write(field_bytes(fields[i]))) return false;
    out.end_value();
  }
  return true;
}

bool CopyDecoder::Codecs::jsonb(Column& column, const std::uint8_t* const* fields, std::size_t count, ColumnBuffer& out,
                                std::size_t row, std::uint64_t /*ordinal*/) {
  return variable(column, fields, count, out, row, [&](ByteView field) {
    if (field[0] != 1) {
      column.problem = "a jsonb version that is not known";
      return false;
    }
    out.values.append(field.subspan(1));
    return true;
  });
}

bool CopyDecoder::Codecs::bit_string(Column& column, const std::uint8_t* const* fields, std::size_t count,
                                     ColumnBuffer& out, std::size_t row, std::uint64_t /*ordinal*/) {
  return variable(column, fields, count, out, row, [&](ByteView field) {
    const auto bits = load_be<std::int32_t>(field.data());
    const std::size_t whole = field.size() - 4;
    if (bits < 0 || (static_cast<std::size_t>(bits) + 7) / 8 != whole) {
      column.problem = "a bit string whose count of bits is not that of its bytes";
      return false;
    }
    std::uint8_t* to = out.values.extend(whole * 8);
    for (std::size_t i = 0; i < whole; ++i) std::memcpy(to + i * 8, bit_text[field[4 + i]].data(), 8);
    out.values.resize(out.values.size() - whole * 8 + static_cast<std::size_t>(bits));
    return true;
  });
}

bool CopyDecoder::Codecs::char_byte(Column& column, const std::uint8_t* const* fields, std::size_t count,
                                    ColumnBuffer& out, std::size_t row, std::uint64_t /*ordinal*/) {
  return variable(column, fields, count, out, row, [&](ByteView field) {
    const std::uint8_t byte = field[0];
    if (byte >= 0x80) {
      // As PostgreSQL 16 prints it: a lone high byte is no text in any encoding of more bytes.
      out.values.push('\\');
      for (int shift = 6; shift >= 0; shift -= 3)
        out.values.push(static_cast<std::uint8_t>('0' + ((byte >> shift) & 7)));
    } else if (byte != 0) {
      out.values.push(byte);
    }
    return true;
  });
}

void CopyDecoder::Codecs::bind(Column& column) {
  const auto set = [&column](std::int32_t width, Decode decode, std::int32_t least = 0) {
    column.width = width;
    column.decode = decode;
    column.least = least;
  };
  constexpr std::int32_t any = -2;
  switch (column.plan.form) {
    case Form::boolean:
      return set(1, boolean);
    case Form::int16:
      return set(2, integer<std::int16_t, std::int16_t>);
    case Form::int32:
      return set(4, integer<std::int32_t, std::int32_t>);
    case Form::int64:
      return set(8, integer<std::int64_t, std::int64_t>);
    case Form::uint32:
      return set(4, integer<std::int64_t, std::uint32_t>);
    case Form::float32:
      return set(4, integer<std::uint32_t, std::uint32_t>);
    case Form::float64:
      return set(8, integer<std::uint64_t, std::uint64_t>);
    case Form::money:
      return set(8, integer<Int128, std::int64_t>);
    case Form::date:
      return set(4, date);
    case Form::time:
      return set(8, integer<std::int64_t, std::int64_t>);
    case Form::timestamp:
      return set(8, timestamp);
    case Form::uuid:
      return set(16, uuid);
    case Form::bytes:
      return set(any, bytes);
    case Form::jsonb:
      return set(any, jsonb, 1);
    case Form::bit_string:
      return set(any, bit_string, 4);
    case Form::char_byte:
      return set(1, char_byte);
    case Form::numeric:
      bind_numeric(column.plan, column.replacement);
      return set(any, numeric, 8);
  }
}

}  // namespace rowferry::postgres::wire
