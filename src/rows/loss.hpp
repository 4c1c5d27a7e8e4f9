// Loss policies: what happens to a value that the target cannot hold. One place for every source, converter and sink.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace rowferry::rows {

enum class OnLoss : std::uint8_t { error, null, truncate, replace, strip };

struct LossPolicy {
  OnLoss action = OnLoss::error;
  std::optional<std::string> replacement;  // with replace; text: default U+FFFD; others: nearest bound
};

// The losses of one column in one worker. Whoever finds a value that does not fit calls lost() and does what it says.
class ColumnLoss {
 public:
  ColumnLoss(std::string column, LossPolicy policy) : column_(std::move(column)), policy_(std::move(policy)) {}

  // With the policy `error`: throws Error(data, "value_does_not_fit") naming column, row, value (cut) and reason.
  // Else counts one changed value and returns what to do with it. `row` is 0-based within the slice.
  OnLoss lost(std::uint64_t row, std::string_view value, std::string_view reason);
  // As lost(), but always throws: for a value that the column's policy cannot mend (NaN under replace, and the like).
  [[noreturn]] void refuse(std::uint64_t row, std::string_view value, std::string_view reason) const;
  // A loss that the plan warned of for the whole column (digits beyond a scale, an offset): only counted.
  void changed_as_warned() noexcept { ++changed_; }

  const LossPolicy& policy() const noexcept { return policy_; }
  const std::string& column() const noexcept { return column_; }
  std::uint64_t changed() const noexcept { return changed_; }

 private:
  std::string column_;
  LossPolicy policy_;
  std::uint64_t changed_ = 0;
};

}  // namespace rowferry::rows
