// The standard streams: what is closed, full or read by nobody ends a message, never the program.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <string_view>

namespace rowferry::app {

// First of all in main. A write into a pipe that nobody reads becomes an error; standard streams that are closed lead
// to /dev/null, opened the wrong way round, so that no socket takes their number and their use fails as before.
void prepare_standard_streams();

// Writes and flushes; false when that failed. Throws nothing.
bool put(std::FILE* out, std::string_view text) noexcept;

// To standard output, a result: Error(internal, "output_failed") when it could not be written.
void write_result(std::string_view text);
template <class... T>
void print_result(fmt::format_string<T...> format, T&&... args) {
  write_result(fmt::format(format, std::forward<T>(args)...));
}

// To standard error, as far as it goes.
template <class... T>
void print_message(fmt::format_string<T...> format, T&&... args) {
  (void)put(stderr, fmt::format(format, std::forward<T>(args)...));
}

}  // namespace rowferry::app
