// The bytes of single values (MS-TDS 2.2.5.5.1): what stands behind a value's length. Encoders write into room that the
// caller has made; decoders take exactly the value's bytes. No length bytes here, and no range checks but those said.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "base/bytes.hpp"
#include "base/decimal.hpp"

namespace rowferry::tds {

// ---- dates and times ------------------------------------------------------------------------------------------------

inline constexpr std::int32_t days_0001_to_1970 = 719'162;
inline constexpr std::int32_t days_1900_to_1970 = 25'567;
inline constexpr std::int32_t date_min_days = -719'162;         // 0001-01-01, since 1970-01-01
inline constexpr std::int32_t date_max_days = 2'932'896;        // 9999-12-31
inline constexpr std::int32_t datetime_min_days = -79'257;      // 1753-01-01
inline constexpr std::int32_t smalldatetime_max_days = 39'968;  // 2079-06-06
inline constexpr std::int64_t ticks_per_second = 10'000'000;    // of 100 ns
inline constexpr std::int64_t ticks_per_day = 86'400 * ticks_per_second;
inline constexpr std::uint32_t datetime_ticks_per_day = 86'400 * 300;

inline constexpr std::array<std::int64_t, 8> power_of_ten = {1, 10, 100, 1'000, 10'000, 100'000, 1'000'000, 10'000'000};

// Bytes of a time of the given scale.
constexpr std::size_t time_bytes(int scale) noexcept { return scale <= 2 ? 3 : scale <= 4 ? 4 : 5; }

inline void store_date(std::uint8_t* to, std::int32_t days_since_1970) noexcept {
  const auto days = static_cast<std::uint32_t>(days_since_1970 + days_0001_to_1970);
  to[0] = static_cast<std::uint8_t>(days);
  to[1] = static_cast<std::uint8_t>(days >> 8U);
  to[2] = static_cast<std::uint8_t>(days >> 16U);
}
inline std::int32_t load_date(const std::uint8_t* from) noexcept {
  return static_cast<std::int32_t>(from[0] | from[1] << 8U | from[2] << 16U) - days_0001_to_1970;
}

// Units of 10^-scale s since midnight.
inline void store_time(std::uint8_t* to, std::uint64_t units, std::size_t bytes) noexcept {
  store_le(to, static_cast<std::uint16_t>(units));
  to[2] = static_cast<std::uint8_t>(units >> 16U);
  if (bytes > 3) to[3] = static_cast<std::uint8_t>(units >> 24U);
  if (bytes > 4) to[4] = static_cast<std::uint8_t>(units >> 32U);
}
inline std::uint64_t load_time(const std::uint8_t* from, std::size_t bytes) noexcept {
  std::uint64_t units = 0;
  for (std::size_t i = bytes; i-- > 0;) units = units << 8U | from[i];
  return units;
}

// datetime: 1/300 s. As microseconds since 1970-01-01, at the millisecond that SQL Server prints (.000 .003 .007).
// Nullopt: outside 1753..9999.
std::optional<std::int64_t> load_datetime(const std::uint8_t* from) noexcept;
// Rounds to the nearest tick, carrying into the next day. False: outside the type's range.
bool store_datetime(std::uint8_t* to, std::int64_t micros_since_1970) noexcept;

// smalldatetime: minutes; 29.999 s and more round up (30 s here: the input has no finer doubt), carrying.
std::optional<std::int64_t> load_smalldatetime(const std::uint8_t* from) noexcept;
bool store_smalldatetime(std::uint8_t* to, std::int64_t micros_since_1970) noexcept;

// ---- numbers --------------------------------------------------------------------------------------------------------

// Sign and magnitude bytes of a decimal of this precision, as the server's own columns have it: 5, 9, 13, 17.
constexpr std::size_t decimal_bytes(int precision) noexcept {
  return precision <= 9 ? 5 : precision <= 19 ? 9 : precision <= 28 ? 13 : 17;
}

// `bytes` counts the sign byte: 5, 9, 13 or 17. False: the magnitude needs more.
bool store_decimal(std::uint8_t* to, Int128 unscaled, std::size_t bytes) noexcept;
// Any width of 2 to 17 bytes. Nullopt: another width, or a magnitude of 10^38 and more.
std::optional<Int128> load_decimal(ByteView bytes) noexcept;

// Ten-thousandths; the high half comes first.
inline void store_money(std::uint8_t* to, std::int64_t ten_thousandths) noexcept {
  store_le(to, static_cast<std::int32_t>(ten_thousandths >> 32));
  store_le(to + 4, static_cast<std::uint32_t>(ten_thousandths));
}
inline std::int64_t load_money(const std::uint8_t* from) noexcept {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(load_le<std::uint32_t>(from)) << 32U |
                                   load_le<std::uint32_t>(from + 4));
}

// ---- uniqueidentifier: printed order to wire order and back (the same exchange) -------------------------------------

inline void swap_guid(std::uint8_t* to, const std::uint8_t* from) noexcept {
  const auto a = load_le<std::uint64_t>(from);
  store_le(to, byte_swap(static_cast<std::uint32_t>(a)));
  store_le(to + 4, byte_swap(static_cast<std::uint16_t>(a >> 32U)));
  store_le(to + 6, byte_swap(static_cast<std::uint16_t>(a >> 48U)));
  std::memcpy(to + 8, from + 8, 8);
}

// ---- PLP: partially length-prefixed (MS-TDS 2.2.5.2.3) --------------------------------------------------------------

inline constexpr std::uint64_t plp_null = 0xFFFFFFFFFFFFFFFFU;
inline constexpr std::uint64_t plp_unknown = 0xFFFFFFFFFFFFFFFEU;
// Bytes of a PLP value of n bytes sent as one chunk: total, chunk length, chunk, terminator. An empty value has no
// chunk at all: an empty one would be the terminator and shift everything behind it.
constexpr std::size_t plp_bytes(std::size_t n) noexcept { return n == 0 ? 12 : n + 16; }

// Writes the whole value as one chunk; returns its end. `n` < 4 GiB.
inline std::uint8_t* store_plp(std::uint8_t* to, const std::uint8_t* bytes, std::size_t n) noexcept {
  store_le(to, static_cast<std::uint64_t>(n));
  to += 8;
  if (n != 0) {
    store_le(to, static_cast<std::uint32_t>(n));
    std::memcpy(to + 4, bytes, n);
    to += 4 + n;
  }
  store_le(to, std::uint32_t{0});
  return to + 4;
}

// Reads a PLP value as its bytes come. Gives each piece of chunk as a view into the input.
class PlpReader {
 public:
  enum class Step : std::uint8_t { need_more, piece, end, null, malformed };
  // Starts at the total; takes from `from` what it can. After `piece` call again; `end` and `null` end the value, and
  // the reader is ready for the next.
  Step next(ByteReader& from, ByteView& piece);
  // Known once the first step gave something else than need_more; plp_unknown where the sender did not say.
  std::uint64_t total() const noexcept { return total_; }

 private:
  enum class At : std::uint8_t { total, chunk_length, chunk };
  At at_ = At::total;
  std::uint64_t total_ = plp_unknown;
  std::uint64_t seen_ = 0;
  std::uint32_t chunk_left_ = 0;
};

}  // namespace rowferry::tds
