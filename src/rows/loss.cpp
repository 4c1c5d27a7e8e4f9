#include "rows/loss.hpp"

#include <fmt/format.h>

#include "base/limits.hpp"

namespace rowferry::rows {

void ColumnLoss::refuse(std::uint64_t row, std::string_view value, std::string_view reason) const {
  throw Error(Category::data, "value_does_not_fit",
              fmt::format("row {}, column {}: {} does not fit: {}", row + 1, column_,
                          cut_for_message(value, limits::error_value_chars), reason))
      .with_column(column_)
      .with_row(row + 1)
      .with_value(value);
}

OnLoss ColumnLoss::lost(std::uint64_t row, std::string_view value, std::string_view reason) {
  if (policy_.action == OnLoss::error) refuse(row, value, reason);
  ++changed_;
  return policy_.action;
}

}  // namespace rowferry::rows
