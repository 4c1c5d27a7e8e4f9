// Values as people read them, for messages: "-0.05", "2024-01-15 10:30:45.123", "0x0102", text as it is.
#pragma once

#include <string>

#include "rows/batch.hpp"

namespace rowferry::rows {

// One value of a column; "NULL" for NULL. Not cut: the error does that.
std::string value_text(const Type& type, const ColumnView& column, std::size_t row);

// Fractions without their trailing zeros; "infinity" and "-infinity" for the ends of the integer's range, as PostgreSQL
// has them.
std::string date_text(std::int64_t days);
std::string time_text(std::int64_t value, TimeUnit unit);
std::string timestamp_text(std::int64_t value, TimeUnit unit, bool zoned);
// "NaN", "Infinity" and "-Infinity" as PostgreSQL has them, else the shortest that reads back the same.
std::string real_text(float value);
std::string real_text(double value);
// "10:30:45.120000" becomes "10:30:45.12"; what follows the fraction (a zone, " BC") stays.
std::string without_trailing_zeros(std::string text);
std::string uuid_text(const std::uint8_t* bytes);

}  // namespace rowferry::rows
