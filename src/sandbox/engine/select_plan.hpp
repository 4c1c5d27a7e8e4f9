// One SELECT: its tables joined by nested loops with hashed lookups, its conditions, groups and items.
#pragma once

#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "sandbox/engine/query.hpp"

namespace rowferry::sandbox::engine {

// One table of FROM in the order in which the loops run.
struct JoinLevel {
  std::size_t variable = 0;
  JoinKind join = JoinKind::inner;
  ReadMode mode = ReadMode::committed;
  std::shared_ptr<TableData> data;  // base tables
  std::vector<Row> rows;            // everything else
  std::shared_ptr<CompiledQuery> query;
  bool filled = false;
  bool apply = false;  // the query is run anew for each outer row
  std::vector<std::vector<ExprPtr>> value_rows;
  std::vector<ExprPtr> on, where;

  // column = expression over earlier levels: rows are found by hash
  struct Equal {
    int column = 0;
    ExprPtr probe;
    Type type;
  };
  std::vector<Equal> equal;
  bool hashed = false;
  std::unordered_multimap<std::uint64_t, std::uint64_t> places;  // RowId or index into rows
  TableScan scan;                                                // keeps what `places` and snapshots point at
  std::deque<std::vector<Row>> kept;                             // of apply, while snapshots point at them
};

// The range variables' rows at one moment.
struct Snapshot {
  struct Part {
    ByteView row;
    RowId id;
    const Row* values = nullptr;
    bool null_row = false;
  };
  std::vector<Part> parts;
};

// `keys` are the values of bind_order's items; false ends the query.
using PlanSink = std::function<bool(Row& out, Row& keys)>;

class SelectPlan {
 public:
  SelectPlan(const Context& context, const Select& select, Scope* outer,
             std::vector<const std::vector<CommonTable>*> common);

  std::vector<OutputColumn>& columns() noexcept { return columns_; }
  Scope& scope() noexcept { return scope_; }
  const Select& select() const noexcept { return select_; }
  std::vector<JoinLevel>& levels() noexcept { return levels_; }
  // ORDER BY of the query: each becomes an output ordinal or an expression of its own.
  void bind_order(const Context& context, const std::vector<OrderItem>& order);
  // In portions; what is passed must outlive it.
  async::Task<void> run(const Context& context, const PlanSink& sink, Turn& turn);
  std::vector<std::uint16_t> order_ordinals() const;  // from 1; for the ORDER token
  bool plain() const;                                 // no grouping, windows, DISTINCT
  std::optional<std::uint64_t> top(const Context& context);
  const std::vector<ExprPtr>& items() const noexcept { return items_; }
  const std::vector<ExprPtr>& conditions() const noexcept { return conditions_; }

  // For UPDATE and DELETE: the joined rows themselves.
  void for_each_row(const Context& context, const std::function<bool()>& visit);

 private:
  async::Task<void> each_row(const Context& context, const std::function<bool()>& visit, Turn& turn);
  async::Task<void> prepare(const Context& context, Turn& turn);
  void begin_scan(const Context& context, JoinLevel& level, Evaluator& evaluator);
  friend struct FromBuilder;
  void bind_items(const Context& context);
  void add_star(const SelectItem& item, const Context& context);
  void add_item(const Context& context, const SelectItem& item);
  void place_conditions();
  void prepare_equalities(JoinLevel& level, std::size_t index);
  void bind_groups(Evaluator& evaluator);
  void to_group_slots(const ExprPtr& e);
  bool loop(const Context& context, std::size_t index, const std::function<bool()>& visit);
  bool scan_level(const Context& context, std::size_t index, const std::function<bool()>& each);
  async::Task<void> fill(const Context& context, JoinLevel& level, Turn& turn);
  async::Task<void> build_hash(const Context& context, JoinLevel& level, Turn& turn);
  Snapshot snapshot() const;
  void restore(const Snapshot& s);
  async::Task<void> run_grouped(const Context& context, const PlanSink& sink, Turn& turn);
  bool run_counted(const Context& context, const PlanSink& sink);
  async::Task<void> run_windowed(const Context& context, const PlanSink& sink, Turn& turn);
  async::Task<void> compute_window(const Context& context, std::size_t window, const std::vector<Snapshot>& rows,
                                   std::vector<Row>& results, Turn& turn);
  bool emit(const Context& context, const PlanSink& sink);

  Select select_;
  Scope scope_;
  std::vector<JoinLevel> levels_;
  std::vector<ExprPtr> conditions_;
  std::vector<ExprPtr> items_;
  std::vector<OutputColumn> columns_;
  std::vector<ExprPtr> aggregates_;
  std::vector<ExprPtr> windows_;
  std::vector<std::pair<int, ExprPtr>> order_;  // ordinal, or -1 and an expression
  bool grouped_ = false;
  std::vector<const std::vector<CommonTable>*> common_;
  std::vector<std::pair<const std::vector<CommonTable>*, std::size_t>> expanding_;
};

// aggregate.cpp
class Accumulator {
 public:
  explicit Accumulator(const Expr& call) : call_(&call) {}
  void add(Evaluator& evaluator);
  Value result(const Context& context) const;

 private:
  const Expr* call_;
  std::int64_t count_ = 0;
  Int128 sum_ = 0;
  double real_sum_ = 0;
  Value best_;
  bool any_ = false;
  std::u16string joined_;
  std::unordered_set<std::string> seen_;
};

int compare_for_order(const Value& a, const Value& b);  // NULL first
void check_columns_named(const std::vector<OutputColumn>& columns, const std::string& table);

}  // namespace rowferry::sandbox::engine
