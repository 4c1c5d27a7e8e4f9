// Assertions that Criterion's C macros cannot make of temporaries.
#pragma once

#include <criterion/criterion.h>

#include <string>
#include <string_view>

namespace rowferry::test {

inline bool same_text(const std::string& actual, std::string_view expected, std::string& message) {
  message = "got: " + actual + "\nexpected: " + std::string(expected);
  return actual == expected;
}

}  // namespace rowferry::test

// Both may be temporaries; the message shows both.
#define EXPECT_TEXT(actual, expected)                                                                   \
  do {                                                                                                  \
    std::string expect_text_message;                                                                    \
    const bool expect_text_same = rowferry::test::same_text((actual), (expected), expect_text_message); \
    cr_expect(expect_text_same, "%s", expect_text_message.c_str());                                     \
  } while (false)

// The statement throws rowferry::Error with this code.
#define EXPECT_ERROR(statement, wanted_code)               \
  do {                                                     \
    std::string expect_error_got = "no error";             \
    try {                                                  \
      statement;                                           \
    } catch (const rowferry::Error& expect_error_caught) { \
      expect_error_got = expect_error_caught.code();       \
    }                                                      \
    EXPECT_TEXT(expect_error_got, wanted_code);            \
  } while (false)
