#include <criterion/criterion.h>

#include <string>

#include "base/bytes.hpp"
#include "base/error.hpp"
#include "tests/support/expect.hpp"

using namespace rowferry;

Test(error, the_innermost_context_wins) {
  Error error(Category::data, "value_does_not_fit", "does not fit");
  error.with_column("inner").with_column("outer").with_row(3).with_row(4).with_table("t");
  EXPECT_TEXT(error.context().column, "inner");
  cr_expect_eq(*error.context().row, 3);
  EXPECT_TEXT(error.one_line(), "does not fit [table t, column inner, row 3]");
}

Test(error, values_are_cut_at_a_character) {
  std::string wide;
  for (int i = 0; i < 100; ++i) wide += "é";
  Error error(Category::data, "x", "y");
  error.with_value(wide);
  cr_expect_eq(error.context().value.size(), 64 * 2 + 3);
  cr_expect(error.context().value.ends_with("é…"));
}

Test(error, is_one_line_whatever_it_holds) {
  Error error(Category::server, "x", "a\nb\rc");
  error.with_hint("d\ne");
  cr_expect_eq(error.one_line().find_first_of("\r\n"), std::string::npos);
}

Test(error, describes_any_exception) {
  EXPECT_TEXT(describe(std::make_exception_ptr(std::runtime_error("boom"))), "boom");
  EXPECT_TEXT(describe(std::make_exception_ptr(7)), "unknown exception");
  EXPECT_TEXT(describe(nullptr), "");
  cr_expect(is_cancelled(std::make_exception_ptr(Error(Category::cancelled, "cancelled", "x"))));
  cr_expect(!is_cancelled(std::make_exception_ptr(Error(Category::timeout, "timeout", "x"))));
  cr_expect(!is_cancelled(nullptr));
}

Test(bytes, the_buffer_grows_and_consumes) {
  ByteBuffer buffer;
  for (int i = 0; i < 1000; ++i) buffer.put_be(static_cast<std::uint16_t>(i));
  cr_assert_eq(buffer.size(), 2000);
  buffer.consume(1998);
  cr_assert_eq(load_be<std::uint16_t>(buffer.data()), 999);
  ByteBuffer other = std::move(buffer);
  cr_assert_eq(other.size(), 2);
  cr_assert_eq(buffer.size(), 0);  // NOLINT(bugprone-use-after-move): that is the test
  other.consume(2);
  cr_assert(other.empty());
}

Test(bytes, the_reader_stops_at_the_end) {
  const std::uint8_t bytes[] = {1, 2, 3, 4, 5};
  ByteReader reader(bytes);
  cr_expect_eq(reader.u16(), 0x0201);
  cr_expect_eq(reader.be<std::uint16_t>(), 0x0304);
  cr_expect_eq(reader.u16(), 0);
  cr_expect(reader.failed());
  cr_expect_eq(reader.u8(), 0, "stays failed");
  cr_expect(!reader.skip(SIZE_MAX));
}
