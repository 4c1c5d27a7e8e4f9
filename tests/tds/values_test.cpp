#include "tds/wire/values.hpp"

#include <criterion/criterion.h>

#include "tests/support/hex.hpp"

using namespace rowferry;
using namespace rowferry::tds;
using rowferry::test::from_hex;
using rowferry::test::to_hex;

namespace {

constexpr std::int32_t day_2000 = 10957;  // 2000-01-01 since 1970-01-01
constexpr std::int64_t time_123456 = 12 * 3600 + 34 * 60 + 56;
constexpr std::int64_t micros = 1'000'000;

const std::uint8_t* data(const std::string& bytes) { return reinterpret_cast<const std::uint8_t*>(bytes.data()); }

std::string date_hex(std::int32_t days) {
  std::uint8_t bytes[3];
  store_date(bytes, days);
  cr_assert_eq(load_date(bytes), days);
  return to_hex(ByteView(bytes));
}

std::string time_hex(std::uint64_t units, int scale) {
  std::uint8_t bytes[5];
  const std::size_t n = time_bytes(scale);
  store_time(bytes, units, n);
  cr_assert_eq(load_time(bytes, n), units);
  return to_hex(ByteView(bytes, n));
}

std::string datetime_hex(std::int64_t value) {
  std::uint8_t bytes[8];
  if (!store_datetime(bytes, value)) return "range";
  return to_hex(ByteView(bytes));
}

std::string small_hex(std::int64_t value) {
  std::uint8_t bytes[4];
  if (!store_smalldatetime(bytes, value)) return "range";
  return to_hex(ByteView(bytes));
}

std::string decimal_hex(Int128 value, std::size_t n) {
  std::uint8_t bytes[17];
  if (!store_decimal(bytes, value, n)) return "range";
  const auto back = load_decimal(ByteView(bytes, n));
  cr_assert(back.has_value());
  cr_assert(*back == value);
  return to_hex(ByteView(bytes, n));
}

std::string money_hex(std::int64_t value) {
  std::uint8_t bytes[8];
  store_money(bytes, value);
  cr_assert_eq(load_money(bytes), value);
  return to_hex(ByteView(bytes));
}

}  // namespace

Test(values, dates) {
  cr_assert_eq(date_hex(date_min_days), "00 00 00");
  cr_assert_eq(date_hex(-25567), "5B 95 0A");
  cr_assert_eq(date_hex(0), "3A F9 0A");
  cr_assert_eq(date_hex(day_2000), "07 24 0B");
  cr_assert_eq(date_hex(date_max_days), "DA B9 37");
}

Test(values, times_of_every_scale) {
  const std::uint64_t ticks = static_cast<std::uint64_t>(time_123456) * ticks_per_second + 1234567;
  const char* expected[] = {"F0 B0 00",    "61 E9 06",       "CC 1D 45",       "FB 29 B3 02",
                            "D2 A3 FF 1A", "39 66 FC 0D 01", "40 FE DB 8B 0A", "87 EE 97 76 69"};
  for (int scale = 0; scale <= 7; ++scale) {
    const auto units = ticks / static_cast<std::uint64_t>(power_of_ten[static_cast<std::size_t>(7 - scale)]);
    cr_assert_eq(time_hex(units, scale), expected[scale], "scale %d", scale);
  }
  cr_assert_eq(time_hex(ticks_per_day - 1, 7), "FF BF 69 2A C9");
}

Test(values, datetime_rounds_to_ticks_and_carries_into_the_next_day) {
  const std::int64_t day = 86'400 * micros;
  cr_assert_eq(datetime_hex(-25567 * day), "00 00 00 00 00 00 00 00");
  cr_assert_eq(datetime_hex(datetime_min_days * day), "46 2E FF FF 00 00 00 00");
  cr_assert_eq(datetime_hex(day_2000 * day + time_123456 * micros + 123'000), "AC 8E 00 00 65 59 CF 00");
  cr_assert_eq(datetime_hex(date_max_days * day + day - 3'000), "7F 24 2D 00 FF 81 8B 01");
  // 2025-05-16 16:33:33.123
  cr_assert_eq(datetime_hex(20'224 * day + (16 * 3600 + 33 * 60 + 33) * micros + 123'000), "DF B2 00 00 21 E3 10 01");
  // 2025-01-01 23:59:59.998350 is nearer to midnight than to the last tick; .998333 is not
  cr_assert_eq(datetime_hex(20'090 * day - 1'650), "59 B2 00 00 00 00 00 00");
  cr_assert_eq(datetime_hex(20'090 * day - 1'667), "58 B2 00 00 FF 81 8B 01");
  cr_assert_eq(datetime_hex(date_max_days * day + day - 1'000), "range");
  cr_assert_eq(datetime_hex(datetime_min_days * day - day), "range");
}

Test(values, datetime_reads_as_the_millisecond_the_server_prints) {
  const auto read = [](const char* hex) { return load_datetime(data(from_hex(hex))).value_or(-1); };
  const std::int64_t day = 86'400 * micros;
  cr_assert_eq(read("AC 8E 00 00 65 59 CF 00"), day_2000 * day + time_123456 * micros + 123'000);
  cr_assert_eq(read("7F 24 2D 00 FF 81 8B 01"), date_max_days * day + day - 3'000);
  cr_assert_eq(read("DF 63 00 00 01 00 00 00"), 3'000);
  cr_assert_eq(read("DF 63 00 00 02 00 00 00"), 7'000);
  cr_assert_eq(read("DF 63 00 00 03 00 00 00"), 10'000);
  cr_assert(!load_datetime(data(from_hex("00 00 00 00 00 82 8B 01"))), "24:00 is no time of a day");
  cr_assert(!load_datetime(data(from_hex("FF FF FF 7F 00 00 00 00"))));
}

Test(values, smalldatetime) {
  const std::int64_t day = 86'400 * micros;
  cr_assert_eq(small_hex(day_2000 * day + (12 * 60 + 34) * 60 * micros), "AC 8E F2 02");
  cr_assert_eq(small_hex(smalldatetime_max_days * day + 86'340 * micros), "FF FF 9F 05");
  cr_assert_eq(small_hex(day_2000 * day + 86'370 * micros), "AD 8E 00 00", "30 s carry over midnight");
  cr_assert_eq(small_hex(smalldatetime_max_days * day + 86'370 * micros), "range");
  cr_assert_eq(small_hex(-25568 * day), "range");
  cr_assert_eq(load_smalldatetime(data(from_hex("AC 8E F2 02"))).value_or(-1),
               day_2000 * day + (12 * 60 + 34) * 60 * micros);
  cr_assert(!load_smalldatetime(data(from_hex("00 00 A0 05"))));
}

Test(values, decimals) {
  cr_assert_eq(decimal_hex(-12345, 5), "00 39 30 00 00");
  cr_assert_eq(decimal_hex(12345, 9), "01 39 30 00 00 00 00 00 00");
  cr_assert_eq(decimal_hex(1, 13), "01 01 00 00 00 00 00 00 00 00 00 00 00");
  cr_assert_eq(decimal_hex(-Int128{15'000'000'000}, 17), "00 00 D6 11 7E 03 00 00 00 00 00 00 00 00 00 00 00");
  cr_assert_eq(decimal_hex(decimal::pow10(38) - 1, 17), "01 FF FF FF FF 3F 22 8A 09 7A C4 86 5A A8 4C 3B 4B");
  // 10^19 - 1 needs all of an unsigned 64-bit magnitude
  cr_assert_eq(decimal_hex(decimal::pow10(19) - 1, 9), "01 FF FF E7 89 04 23 C7 8A");
  cr_assert_eq(decimal_hex(Int128{1} << 32, 5), "range");
  cr_assert_eq(decimal_hex(decimal::pow10(20), 9), "range");
  cr_assert(!load_decimal(as_bytes(from_hex("01"))));
  cr_assert(!load_decimal(as_bytes(from_hex("01 FF FF FF FF FF FF FF FF FF FF FF FF FF FF FF FF"))));
  cr_assert_eq(decimal_bytes(9), 5u);
  cr_assert_eq(decimal_bytes(10), 9u);
  cr_assert_eq(decimal_bytes(19), 9u);
  cr_assert_eq(decimal_bytes(20), 13u);
  cr_assert_eq(decimal_bytes(28), 13u);
  cr_assert_eq(decimal_bytes(29), 17u);
}

Test(values, money_has_its_high_half_first) {
  cr_assert_eq(money_hex(10'000), "00 00 00 00 10 27 00 00");
  cr_assert_eq(money_hex(-10'000), "FF FF FF FF F0 D8 FF FF");
  cr_assert_eq(money_hex(1'234'567), "00 00 00 00 87 D6 12 00");
  cr_assert_eq(money_hex(INT64_MAX), "FF FF FF 7F FF FF FF FF");
  cr_assert_eq(money_hex(INT64_MIN), "00 00 00 80 00 00 00 00");
  cr_assert_eq(money_hex(2'966'854'300), "00 00 00 00 9C 9A D6 B0");
}

Test(values, guid_reverses_its_first_three_groups) {
  const std::string printed = from_hex("00 11 22 33 44 55 66 77 88 99 AA BB CC DD EE FF");
  std::uint8_t wire[16];
  swap_guid(wire, data(printed));
  cr_assert_eq(to_hex(ByteView(wire)), "33 22 11 00 55 44 77 66 88 99 AA BB CC DD EE FF");
  std::uint8_t back[16];
  swap_guid(back, wire);
  cr_assert_eq(as_text(ByteView(back)), printed);
}

namespace {

std::string read_plp(const char* hex, std::size_t step) {
  const std::string wire = from_hex(hex);
  PlpReader reader;
  std::string value;
  std::size_t at = 0;
  for (std::size_t have = std::min(step, wire.size());; have = std::min(have + step, wire.size())) {
    ByteReader from(as_bytes(std::string_view(wire).substr(at, have - at)));
    ByteView piece;
    while (true) {
      const PlpReader::Step result = reader.next(from, piece);
      if (result == PlpReader::Step::piece) {
        value += as_text(piece);
        continue;
      }
      if (result == PlpReader::Step::end) return value + "|" + std::to_string(have - from.left());
      if (result == PlpReader::Step::null) return "NULL";
      if (result == PlpReader::Step::malformed) return "malformed";
      break;
    }
    at = have - from.left();
    if (have == wire.size()) return "need_more";
  }
}

}  // namespace

Test(values, plp_known_unknown_empty_and_null) {
  for (const std::size_t step : {std::size_t{1}, std::size_t{5}, std::size_t{100}}) {
    cr_assert_eq(read_plp("03 00 00 00 00 00 00 00 03 00 00 00 61 62 63 00 00 00 00", step), "abc|19");
    cr_assert_eq(read_plp("FE FF FF FF FF FF FF FF 03 00 00 00 61 62 63 00 00 00 00", step), "abc|19");
    cr_assert_eq(read_plp("00 00 00 00 00 00 00 00 00 00 00 00", step), "|12");
    cr_assert_eq(read_plp("FF FF FF FF FF FF FF FF", step), "NULL");
    cr_assert_eq(read_plp("02 00 00 00 00 00 00 00 01 00 00 00 61 01 00 00 00 62 00 00 00 00", step), "ab|22");
  }
}

Test(values, plp_totals_that_lie_are_malformed) {
  cr_assert_eq(read_plp("03 00 00 00 00 00 00 00 02 00 00 00 61 62 00 00 00 00", 100), "malformed");
  cr_assert_eq(read_plp("01 00 00 00 00 00 00 00 02 00 00 00 61 62 00 00 00 00", 100), "malformed");
  cr_assert_eq(read_plp("03 00 00 00 00 00 00 00 03 00 00 00 61", 100), "need_more");
}

Test(values, plp_written_empty_has_no_chunk) {
  std::uint8_t bytes[64];
  cr_assert_eq(to_hex(ByteView(bytes, static_cast<std::size_t>(store_plp(bytes, nullptr, 0) - bytes))),
               "00 00 00 00 00 00 00 00 00 00 00 00");
  const std::uint8_t* end = store_plp(bytes, data("abc"), 3);
  cr_assert_eq(static_cast<std::size_t>(end - bytes), plp_bytes(3));
  cr_assert_eq(to_hex(ByteView(bytes, plp_bytes(3))), "03 00 00 00 00 00 00 00 03 00 00 00 61 62 63 00 00 00 00");
}
