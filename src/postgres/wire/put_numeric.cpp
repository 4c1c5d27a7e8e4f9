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

// Digits of base 10000, written from the lowest up into the end of a block, as they lie on the wire. Zeros below the
// lowest other digit are left out, as the server leaves them out.
class Digits {
 public:
  void add(unsigned digit) noexcept {
    ++places_;
    if (digit == 0 && at_ == end()) return;
    put(digit);
  }
  // All digits of a value that is not 0 and has none below it.
  void add_last(std::uint64_t value) noexcept {
    if (at_ == end()) {
      for (std::uint64_t rest = value / base; rest * base == value; rest = value / base) {
        value = rest;
        ++places_;
      }
    }
    const std::uint8_t* const before = at_;
    do {
      const std::uint64_t rest = value / base;
      put(static_cast<unsigned>(value - rest * base));
      value = rest;
    } while (value != 0);
    places_ += static_cast<int>(before - at_) / 2;
  }
  std::size_t bytes() const noexcept { return static_cast<std::size_t>(end() - at_); }
  int places() const noexcept { return places_; }  // dropped zeros included
  const std::uint8_t* wire() const noexcept { return at_; }

 private:
  const std::uint8_t* end() const noexcept { return bytes_.data() + 2 * digits_max; }
  void put(unsigned digit) noexcept {
    at_ -= 2;
    store_be(at_, static_cast<std::uint16_t>(digit));
  }

  std::array<std::uint8_t, 2 * digits_max + copied_bytes> bytes_;  // the rest is only there to be copied over
  std::uint8_t* at_ = bytes_.data() + 2 * digits_max;
  int places_ = 0;
};

constexpr std::array<std::uint64_t, 4> to_whole_digit{1, 1000, 100, 10};  // by decimal places behind a whole digit

// Beyond 64 bits: four digits at a time. The places behind the last whole digit go first, since the value times 1000
// might pass 128 bits.
void add_wide(Digits& digits, UInt128 value, std::size_t places) noexcept {
  if (places != 0) {
    const std::uint64_t factor = base / to_whole_digit[places];
    const UInt128 rest = value / factor;
    digits.add(static_cast<unsigned>(value - rest * factor) * static_cast<unsigned>(to_whole_digit[places]));
    value = rest;
  }
  while ((value >> 64) != 0) {
    const UInt128 rest = value / four_digits;
    auto low = static_cast<std::uint64_t>(value - rest * four_digits);
    value = rest;
    for (int i = 0; i < 4; ++i, low /= base) digits.add(static_cast<unsigned>(low % base));
  }
  if (value != 0) digits.add_last(static_cast<std::uint64_t>(value));
}

}  // namespace

std::uint8_t* put_numeric(std::uint8_t* to, Int128 value, int scale) noexcept {
  const Int128 sign = value >> 127;
  const auto magnitude = static_cast<UInt128>((value ^ sign) - sign);
  Digits digits;
  const auto places = static_cast<std::size_t>(scale) % 4;
  std::uint64_t small = 0;
  if ((magnitude >> 64) == 0 &&
      !__builtin_mul_overflow(static_cast<std::uint64_t>(magnitude), to_whole_digit[places], &small)) {
    if (small != 0) digits.add_last(small);
  } else {
    add_wide(digits, magnitude, places);
  }
  const int whole = digits.places() - (scale + 3) / 4;
  const std::size_t bytes = digits.bytes();
  store_be(to, static_cast<std::int16_t>(bytes / 2));
  store_be(to + 2, static_cast<std::int16_t>(bytes == 0 ? 0 : whole - 1));
  store_be(to + 4, sign != 0 ? sign_negative : std::uint16_t{0});
  store_be(to + 6, static_cast<std::uint16_t>(scale));
  std::memcpy(to + header_bytes, digits.wire(), copied_bytes);
  return to + header_bytes + bytes;
}

}  // namespace rowferry::postgres::wire
