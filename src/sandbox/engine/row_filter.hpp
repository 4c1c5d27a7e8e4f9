// RowFilter: conditions on the rows of one base table, bound once so that most rows are decided by their bytes.
//
// Three ways, chosen per condition: comparisons of a column of fixed size with constants are an interval of numbers;
// conditions on one column that depend on nothing else are computed once for each value met lately; everything else is
// left to the evaluator.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "sandbox/engine/eval.hpp"

namespace rowferry::sandbox::engine {

class RowFilter {
 public:
  // The scope's variable has the row at hand (RangeVariable::row) when passes() is called. Both must outlive it.
  RowFilter(const Context& context, Scope& scope, std::size_t variable, const std::vector<ExprPtr>& conditions);
  bool passes(ByteView row);
  bool empty() const noexcept { return intervals_.empty() && cached_.empty() && others_.empty(); }

 private:
  struct Interval {
    std::size_t column = 0;
    const StoredColumn* stored = nullptr;
    std::optional<Int128> low, high;  // inclusive
    std::vector<Int128> not_equal;
    bool never = false;
  };
  struct Cached {
    struct Entry {
      std::uint8_t size = 0xFF;
      Truth truth = Truth::unknown;
      std::array<std::uint8_t, 62> bytes{};
    };
    std::size_t column = 0;
    std::vector<ExprPtr> conditions;  // all on the column
    std::vector<Entry> entries;
    std::uint32_t asked = 0, known = 0;
  };

  bool take_interval(const ExprPtr& e);
  bool add_bound(std::size_t column, char op, const ExprPtr& constant);
  bool take_cached(const ExprPtr& e);
  Truth test_all(const std::vector<ExprPtr>& conditions);
  bool passes_cached(Cached& cached, ByteView value);

  Evaluator evaluator_;
  std::size_t variable_;
  const RangeVariable& range_;
  const Layout& layout_;
  std::vector<Interval> intervals_;
  std::vector<Cached> cached_;
  std::vector<ExprPtr> others_;
};

}  // namespace rowferry::sandbox::engine
