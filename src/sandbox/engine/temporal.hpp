// Dates and times as text: what T-SQL reads and prints (the styles of CONVERT).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sandbox/engine/value.hpp"

namespace rowferry::sandbox::engine {

struct ParsedTemporal {
  bool has_date = false;
  bool has_time = false;
  bool has_offset = false;
  bool out_of_range = false;  // the form is right, a part is not (error 242 instead of 241)
  std::int32_t days = days_1900;
  std::int64_t ticks = 0;  // as written (local where there is an offset); rounded to 100 ns
  std::int16_t offset = 0;
};
std::optional<ParsedTemporal> parse_temporal(std::string_view text);

struct Civil {
  int year = 1, month = 1, day = 1;
};
Civil civil_of(std::int32_t days);
std::optional<std::int32_t> days_of(int year, int month, int day);

// Style 0 is each type's default.
std::string temporal_text(const Value& value, int style);

// Rounds ticks to a scale, half up; may give ticks_per_day (the caller carries).
std::int64_t round_ticks(std::int64_t ticks, int scale);

}  // namespace rowferry::sandbox::engine
