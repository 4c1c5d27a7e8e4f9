// Time: wall clock as UTC text, and a steady clock for durations.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rowferry::time {

using WallTime = std::chrono::system_clock::time_point;

inline WallTime now() { return std::chrono::system_clock::now(); }
// Seconds on a clock that never goes back; only differences mean something.
double monotonic_seconds();

// "2026-11-30T18:40:00.123Z" with 0..6 fractional digits, the rest dropped.
std::string utc_text(WallTime at, int digits = 3);
// Reads what utc_text() writes (up to 6 fractional digits); nothing when it is anything else.
std::optional<WallTime> parse_utc(std::string_view text);

// Measures from its construction.
class Stopwatch {
 public:
  double seconds() const { return monotonic_seconds() - began_; }

 private:
  double began_ = monotonic_seconds();
};

}  // namespace rowferry::time
