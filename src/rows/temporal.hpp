// How dates, times and timestamps of one type become those of another: ranges, units, digits, rounding.
#pragma once

#include <string>

#include "rows/batch.hpp"

namespace rowferry::rows {

// True when every value of `from` (same id) lies in the range of `to`, units considered.
bool covers(const Type& to, const Type& from) noexcept;
bool date_fits_timestamp(const Type& date, const Type& timestamp) noexcept;
// True when values of `from` may have digits that `to` does not keep.
bool loses_digits(const Type& from, const Type& to) noexcept;

inline std::int64_t units_per_day(TimeUnit unit) noexcept {
  return unit == TimeUnit::micro ? 86'400'000'000 : 864'000'000'000;
}

// One pair of time or timestamp types, bound once.
class ClockRule {
 public:
  ClockRule(const Type& from, const Type& to) noexcept;

  enum Result : unsigned {
    fits = 0,
    out_of_range = 1,
    rounded = 2,  // digits were lost, as the plan has warned
  };
  // Digits below the scale are dropped towards minus infinity; 1/300 s and minutes are rounded as SQL Server rounds
  // (halves up, carried into the next day), and the range is checked after it.
  unsigned convert(std::int64_t value, std::int64_t& out) const noexcept;
  // The end of the range that is nearest.
  std::int64_t bound(std::int64_t value) const noexcept;
  std::string range_text() const;

 private:
  std::int64_t quantized(std::int64_t value) const noexcept;

  Type to_;
  std::int64_t safe_min_;  // of `from`'s values: within these nothing below overflows
  std::int64_t safe_max_;
  std::int64_t multiply_ = 1;
  std::int64_t divide_ = 1;
  std::int64_t step_ = 1;  // units between two values that the column keeps
};

std::string range_text(const Type& to);

}  // namespace rowferry::rows
