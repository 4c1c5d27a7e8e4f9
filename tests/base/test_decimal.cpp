#include <criterion/criterion.h>

#include <string>

#include "base/decimal.hpp"

using namespace rowferry;
using decimal::Status;

namespace {

const Int128 largest = decimal::pow10(38) - 1;

std::string parsed(std::string_view text, int scale, int precision = 38) {
  Int128 value = 0;
  switch (decimal::parse(text, scale, precision, value)) {
    case Status::ok:
      return decimal::to_text(value, scale);
    case Status::inexact:
      return decimal::to_text(value, scale) + " inexact";
    case Status::overflow:
      return "overflow";
    case Status::malformed:
      return "malformed";
  }
  return "?";
}

std::string rescaled(Int128 value, int from, int to, int precision = 38) {
  Int128 result = 0;
  switch (decimal::rescale(value, from, to, precision, result)) {
    case Status::ok:
      return decimal::to_text(result);
    case Status::inexact:
      return decimal::to_text(result) + " inexact";
    default:
      return "overflow";
  }
}

}  // namespace

Test(decimal, prints_sign_point_and_every_fraction_digit) {
  cr_expect(decimal::to_text(0, 0) == "0");
  cr_expect(decimal::to_text(0, 3) == "0.000");
  cr_expect(decimal::to_text(-1230, 2) == "-12.30");
  cr_expect(decimal::to_text(-5, 4) == "-0.0005");
  cr_expect(decimal::to_text(largest, 0) == std::string(38, '9'));
  cr_expect(decimal::to_text(-largest, 38) == "-0." + std::string(38, '9'));
  cr_expect(decimal::to_text(decimal::pow10(19), 0) == "1" + std::string(19, '0'));
  cr_expect(decimal::to_text(decimal::pow10(38), 19) == "1" + std::string(19, '0') + "." + std::string(19, '0'));
  cr_expect(decimal::to_text(static_cast<Int128>(UInt128{1} << 127U)) == "-170141183460469231731687303715884105728");
}

Test(decimal, parses_what_databases_print) {
  cr_expect(parsed("0", 0) == "0");
  cr_expect(parsed("-0", 2) == "0.00");
  cr_expect(parsed("+12.3", 2) == "12.30");
  cr_expect(parsed(".5", 1) == "0.5");
  cr_expect(parsed("5.", 1) == "5.0");
  cr_expect(parsed("1e3", 0) == "1000");
  cr_expect(parsed("1.25E+2", 0) == "125");
  cr_expect(parsed("12500e-4", 2) == "1.25");
  cr_expect(parsed("0e999999999999999999999", 2) == "0.00");
  cr_expect(parsed("1e-999999999999999999999", 2) == "0.00 inexact");
  cr_expect(parsed(std::string(38, '9'), 0) == std::string(38, '9'));
  cr_expect(parsed("000000000000000000000000000000000000000000000001", 0) == "1");
}

Test(decimal, says_when_digits_are_lost_or_do_not_fit) {
  cr_expect(parsed("1.239", 2) == "1.23 inexact");
  cr_expect(parsed("-1.239", 2) == "-1.23 inexact");
  cr_expect(parsed("1.230000", 2) == "1.23");
  cr_expect(parsed("123", 0, 2) == "overflow");
  cr_expect(parsed("99.9", 0, 2) == "99 inexact");
  cr_expect(parsed("1" + std::string(38, '0'), 0) == "overflow");
  cr_expect(parsed("1e999999999999999999999", 2) == "overflow");
}

Test(decimal, refuses_what_is_no_number) {
  for (const char* bad :
       {"", "-", "+", ".", "1.2.3", "1e", "1e+", "e5", " 1", "1 ", "1e5x", "NaN", "0x1", "--1", "1e+-5"}) {
    cr_expect(parsed(bad, 2) == "malformed", "%s", bad);
  }
}

Test(decimal, rescales_exactly_or_says_so) {
  cr_expect(rescaled(123, 2, 4) == "12300");
  cr_expect(rescaled(12300, 4, 2) == "123");
  cr_expect(rescaled(-12345, 4, 2) == "-123 inexact");
  cr_expect(rescaled(1, 0, 38) == "overflow");
  cr_expect(rescaled(1, 0, 37) == "1" + std::string(37, '0'));
  cr_expect(rescaled(0, 0, 10'000) == "0");
  cr_expect(rescaled(largest, 38, 0) == "0 inexact");
  cr_expect(rescaled(largest, 0, 1) == "overflow");
  cr_expect(rescaled(1000, 0, 0, 3) == "overflow");
  cr_expect(rescaled(-999, 0, 0, 3) == "-999");
}

Test(decimal, counts_digits) {
  cr_expect_eq(decimal::digits(0), 1);
  cr_expect_eq(decimal::digits(-9), 1);
  cr_expect_eq(decimal::digits(10), 2);
  cr_expect_eq(decimal::digits(largest), 38);
  cr_expect_eq(decimal::digits(-largest), 38);
  cr_expect(decimal::fits(-99, 2));
  cr_expect(!decimal::fits(100, 2));
  cr_expect(!decimal::fits(-100, 2));
}
