#include "tds/wire/values.hpp"

#include <algorithm>

namespace rowferry::tds {

namespace {

constexpr std::int64_t micros_per_day = 86'400'000'000;
constexpr std::int64_t micros_per_minute = 60'000'000;

std::int64_t floor_div(std::int64_t value, std::int64_t by) noexcept {
  const std::int64_t quotient = value / by;
  return value % by < 0 ? quotient - 1 : quotient;
}

}  // namespace

std::optional<std::int64_t> load_datetime(const std::uint8_t* from) noexcept {
  const std::int64_t days = std::int64_t{load_le<std::int32_t>(from)} - days_1900_to_1970;
  const auto ticks = load_le<std::uint32_t>(from + 4);
  if (days < datetime_min_days || days > date_max_days || ticks >= datetime_ticks_per_day) return std::nullopt;
  const std::int64_t millis = (std::int64_t{ticks} * 10 + 1) / 3;
  return days * micros_per_day + millis * 1000;
}

bool store_datetime(std::uint8_t* to, std::int64_t micros_since_1970) noexcept {
  std::int64_t days = floor_div(micros_since_1970, micros_per_day);
  const std::int64_t micros = micros_since_1970 - days * micros_per_day;
  // 1 tick = 10000/3 us; half a tick and more goes up.
  auto ticks = static_cast<std::uint32_t>((micros * 3 + 5'000) / 10'000);
  if (ticks == datetime_ticks_per_day) {
    ticks = 0;
    ++days;
  }
  if (days < datetime_min_days || days > date_max_days) return false;
  store_le(to, static_cast<std::int32_t>(days + days_1900_to_1970));
  store_le(to + 4, ticks);
  return true;
}

std::optional<std::int64_t> load_smalldatetime(const std::uint8_t* from) noexcept {
  const std::int64_t days = std::int64_t{load_le<std::uint16_t>(from)} - days_1900_to_1970;
  const auto minutes = load_le<std::uint16_t>(from + 2);
  if (minutes >= 1440) return std::nullopt;
  return days * micros_per_day + minutes * micros_per_minute;
}

bool store_smalldatetime(std::uint8_t* to, std::int64_t micros_since_1970) noexcept {
  const std::int64_t minutes = floor_div(micros_since_1970 + micros_per_minute / 2, micros_per_minute);
  const std::int64_t days = floor_div(minutes, 1440);
  if (days < -days_1900_to_1970 || days > smalldatetime_max_days) return false;
  store_le(to, static_cast<std::uint16_t>(days + days_1900_to_1970));
  store_le(to + 2, static_cast<std::uint16_t>(minutes - days * 1440));
  return true;
}

bool store_decimal(std::uint8_t* to, Int128 unscaled, std::size_t bytes) noexcept {
  to[0] = unscaled < 0 ? 0 : 1;
  const UInt128 magnitude = unscaled < 0 ? -static_cast<UInt128>(unscaled) : static_cast<UInt128>(unscaled);
  const std::size_t room = bytes - 1;
  if (room < 16 && (magnitude >> (8 * room)) != 0) return false;
  std::memcpy(to + 1, &magnitude, room);
  return true;
}

std::optional<Int128> load_decimal(ByteView bytes) noexcept {
  if (bytes.size() < 2 || bytes.size() > 17) return std::nullopt;
  UInt128 magnitude = 0;
  std::memcpy(&magnitude, bytes.data() + 1, bytes.size() - 1);
  if (magnitude >= static_cast<UInt128>(decimal::pow10(decimal::digits_max))) return std::nullopt;
  const auto value = static_cast<Int128>(magnitude);
  return bytes[0] == 0 ? -value : value;
}

PlpReader::Step PlpReader::next(ByteReader& from, ByteView& piece) {
  if (at_ == At::total) {
    if (from.left() < 8) return Step::need_more;
    total_ = from.u64();
    if (total_ == plp_null) return Step::null;
    seen_ = 0;
    at_ = At::chunk_length;
  }
  if (at_ == At::chunk_length) {
    if (from.left() < 4) return Step::need_more;
    chunk_left_ = from.u32();
    if (chunk_left_ == 0) {
      at_ = At::total;
      return total_ == plp_unknown || total_ == seen_ ? Step::end : Step::malformed;
    }
    seen_ += chunk_left_;
    if (total_ != plp_unknown && seen_ > total_) return Step::malformed;
    at_ = At::chunk;
  }
  const std::size_t n = std::min<std::size_t>(chunk_left_, from.left());
  if (n == 0) return Step::need_more;
  piece = from.bytes(n);
  chunk_left_ -= static_cast<std::uint32_t>(n);
  if (chunk_left_ == 0) at_ = At::chunk_length;
  return Step::piece;
}

}  // namespace rowferry::tds
