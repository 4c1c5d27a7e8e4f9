// The error that a call throws; none: the test fails.
#pragma once

#include <criterion/criterion.h>

#include <functional>

#include "base/error.hpp"

namespace rowferry::test {

inline Error error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  cr_assert_fail("an error was expected");
  return {Category::internal, "none", "no error"};
}

}  // namespace rowferry::test
