// Bounds of ranges that another system gives (a target's partitions), as conditions of the source's column.
#pragma once

#include <string>
#include <vector>

#include "mssql/origin.hpp"
#include "system/source.hpp"

namespace rowferry::mssql {

// A bound in the form that rows/format.hpp prints, as a literal of the column's own type, or where it stands when the
// column holds nothing as low or as high (a bigint's bound for an int; infinity).
struct GivenBound {
  enum class Place : std::uint8_t { below_all, among, above_all };
  Place place = Place::among;
  std::string literal;
};
// Error(input, "slices_impossible") for a bound between two values that the column can hold (it would not cut where
// the other system cuts), and for types that systems do not put in the same order.
GivenBound given_bound(const OriginColumn& column, const std::string& printed);

// The condition of a slice with these bounds. `column_nulls`: NULL has a slice of its own.
std::string given_condition(const OriginColumn& column, const system::SliceBounds& bounds, bool column_nulls);

}  // namespace rowferry::mssql
