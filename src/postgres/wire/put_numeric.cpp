#include <array>

#include "base/decimal.hpp"
#include "postgres/wire/put_column.hpp"

namespace rowferry::postgres::wire {

namespace {

constexpr std::uint16_t sign_negative = 0x4000;
constexpr unsigned base = 10'000;
constexpr std::uint64_t four_digits = 10'000'000'000'000'000;  // base^4
constexpr std::size_t header_bytes = 8;
constexpr int digits_max = 11;  // 38 decimal digits, wherever the point lies
constexpr std::size_t copied_bytes = 32;

// Digits of base 10000, gathered from the lowest up, as they lie on the wire. Zeros below the lowest other digit are
// left out, as the server leaves them out.
class Digits {
 public:
  void add(unsigned digit) noexcept {
    ++places_;
    if (digit == 0 && at_ == digits_max) return;
    --at_;
    store_be(bytes_.data() + 2 * at_, static_cast<std::uint16_t>(digit));
  }
  int count() const noexcept { return digits_max - at_; }
  int places() const noexcept { return places_; }  // dropped zeros included
  const std::uint8_t* wire() const noexcept { return bytes_.data() + 2 * at_; }

 private:
  std::array<std::uint8_t, 2 * digits_max + copied_bytes> bytes_;  // the rest is only there to be copied over
  int at_ = digits_max;
  int places_ = 0;
};

// The digits of 1, 2 or 3 decimal places behind the last whole group of four.
template <class U>
unsigned split_places(U& value, int places) noexcept {
  unsigned rest = 0;
  switch (places) {
    case 1:
      rest = static_cast<unsigned>(value % 10) * 1000;
      value /= 10;
      break;
    case 2:
      rest = static_cast<unsigned>(value % 100) * 100;
      value /= 100;
      break;
    default:
      rest = static_cast<unsigned>(value % 1000) * 10;
      value /= 1000;
      break;
  }
  return rest;
}

void add_all(Digits& digits, std::uint64_t value) noexcept {
  for (; value != 0; value /= base) digits.add(static_cast<unsigned>(value % base));
}

void add_wide(Digits& digits, UInt128 value, int places) noexcept {
  if (places != 0) digits.add(split_places(value, places));
  while ((value >> 64) != 0) {
    const UInt128 rest = value / four_digits;
    auto low = static_cast<std::uint64_t>(value - rest * four_digits);
    value = rest;
    for (int i = 0; i < 4; ++i, low /= base) digits.add(static_cast<unsigned>(low % base));
  }
  add_all(digits, static_cast<std::uint64_t>(value));
}

}  // namespace

std::uint8_t* put_numeric(std::uint8_t* to, Int128 value, int scale) noexcept {
  const Int128 sign = value >> 127;
  const auto magnitude = static_cast<UInt128>((value ^ sign) - sign);
  Digits digits;
  const int places = scale % 4;
  if ((magnitude >> 64) == 0) {
    auto small = static_cast<std::uint64_t>(magnitude);
    if (places != 0) digits.add(split_places(small, places));
    add_all(digits, small);
  } else {
    add_wide(digits, magnitude, places);
  }
  const int count = digits.count();
  const int weight = count == 0 ? 0 : digits.places() - 1 - (scale + 3) / 4;
  store_be(to, static_cast<std::int16_t>(count));
  store_be(to + 2, static_cast<std::int16_t>(weight));
  store_be(to + 4, sign != 0 ? sign_negative : std::uint16_t{0});
  store_be(to + 6, static_cast<std::uint16_t>(scale));
  std::memcpy(to + header_bytes, digits.wire(), copied_bytes);
  return to + header_bytes + 2 * static_cast<std::size_t>(count);
}

}  // namespace rowferry::postgres::wire
