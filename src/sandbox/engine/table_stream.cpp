// The scan of one table that can be pulled row by row.
#include <algorithm>

#include "base/limits.hpp"
#include "sandbox/engine/row_copy.hpp"
#include "sandbox/engine/row_filter.hpp"
#include "sandbox/engine/select_plan.hpp"

namespace rowferry::sandbox::engine {

namespace {

constexpr std::uint32_t range_rows = 256;

// SELECT columns FROM one table WHERE …, as it stands.
class TableStream : public RowSource {
 public:
  TableStream(const Context& context, CompiledQuery& query, const std::vector<Type>& types,
              const std::vector<tds::TypeInfo>& wire)
      : context_(context),
        plan_(*query.branches[0]),
        scan_(context, plan_.levels()[0].data, plan_.levels()[0].mode),
        filter_(context_, plan_.scope(), 0, plan_.conditions()),
        evaluator_(context_, &plan_.scope()),
        types_(types),
        wire_(wire),
        limit_(plan_.top(context)) {
    RangeVariable& v = plan_.scope().variables[0];
    v.values = nullptr;
    v.null_row = false;
    seek(seek_conditions(v, 0, plan_.conditions()));
    choose_copy(v);
  }

  Pull fill(RowTokens& out, std::size_t rows_max, Turn& turn) override {
    if (pending_ != nullptr) std::rethrow_exception(std::exchange(pending_, nullptr));
    try {
      while (out.rows() < rows_max && out.bytes.size() < limits::sandbox_rows_bytes) {
        if (limit_ && given_ >= *limit_) return Pull::end;
        if (range_.count == 0 && !scan_.next(range_, range_rows)) return Pull::end;
        const bool many = range_.count > 1;
        take(out, rows_max);
        if (many ? turn.expired() : turn.over()) return Pull::not_yet;
      }
    } catch (...) {
      out.bytes.resize(out.rows() == 0 ? 0 : out.ends.back());
      if (out.rows() == 0) throw;
      pending_ = std::current_exception();  // what was made before it goes first
    }
    return Pull::rows;
  }

 private:
  void seek(std::vector<ExprPtr> conditions) {
    if (conditions.empty()) return;
    scan_.seek([this, conditions = std::move(conditions)](ByteView row, RowId id) {
      RangeVariable& v = plan_.scope().variables[0];
      v.row = row;
      v.id = id;
      return std::all_of(conditions.begin(), conditions.end(),
                         [&](const ExprPtr& e) { return evaluator_.test(e) == Truth::yes; });
    });
  }

  // Columns that are sent as they are stored are copied; the rest is computed.
  void choose_copy(const RangeVariable& v) {
    const Layout& layout = v.data->layout();
    bool all = true;
    for (std::size_t i = 0; i < wire_.size(); ++i) {
      const Expr& e = *plan_.items()[i];
      const bool column = e.kind == ExprKind::column && e.depth == 0;
      RowCopy::Item item{column ? v.columns[static_cast<std::size_t>(e.column)].stored : -1, false};
      if (item.column >= 0) {
        const StoredColumn& c = layout[static_cast<std::size_t>(item.column)];
        const bool same = c.info == wire_[i];
        item.without_length = !same && c.framing == Framing::length8 && framing_of(wire_[i]) == Framing::fixed;
        if (!same && !item.without_length) item.column = -1;
      }
      all = all && item.column >= 0;
      items_.push_back(item);
    }
    if (all) copy_.emplace(layout, items_);
    starts_.resize(layout.size() + 1);
  }

  // Rows of the range at hand. It is left behind row by row: what throws is met again.
  void take(RowTokens& out, std::size_t rows_max) {
    RangeVariable& v = plan_.scope().variables[0];
    const bool bare = filter_.empty() && copy_;
    while (range_.count != 0 && out.rows() < rows_max && (!limit_ || given_ < *limit_)) {
      const ByteView row = range_.block->row(range_.first.row);
      if (!bare) {
        v.row = row;
        v.id = range_.first;
      }
      if (bare || filter_.passes(row)) {
        out.bytes.push(RowTokens::token);
        if (copy_) {
          copy_->append(row, out.bytes);
        } else {
          compute(row, out.bytes);
        }
        out.end_row();
        ++given_;
      }
      ++range_.first.row;
      --range_.count;
    }
  }

  void compute(ByteView row, ByteBuffer& out) {
    const Layout& layout = plan_.scope().variables[0].data->layout();
    const std::uint8_t* at = row.data();
    for (std::size_t i = 0; i < layout.size(); ++i) {
      starts_[i] = at;
      at += value_size(layout[i].info, layout[i].framing, at);
    }
    starts_[layout.size()] = at;
    for (std::size_t i = 0; i < items_.size(); ++i) {
      if (items_[i].column < 0) {
        const Value value = evaluator_.eval(plan_.items()[i]);
        encode_value(value.type == types_[i] ? value : convert(value, types_[i]), wire_[i], out);
        continue;
      }
      const auto column = static_cast<std::size_t>(items_[i].column);
      const std::uint8_t* from = starts_[column] + (items_[i].without_length ? 1 : 0);
      out.append(ByteView{from, static_cast<std::size_t>(starts_[column + 1] - from)});
    }
  }

  const Context context_;
  SelectPlan& plan_;
  TableScan scan_;
  RowFilter filter_;
  Evaluator evaluator_;
  std::vector<Type> types_;
  std::vector<tds::TypeInfo> wire_;
  std::vector<RowCopy::Item> items_;  // column -1: computed
  std::optional<RowCopy> copy_;       // where nothing is computed
  std::vector<const std::uint8_t*> starts_;
  TableScan::Range range_;  // of rows still to be looked at
  std::optional<std::uint64_t> limit_;
  std::uint64_t given_ = 0;
  std::exception_ptr pending_;
};

}  // namespace

std::unique_ptr<RowSource> CompiledQuery::stream(const Context& context, const std::vector<Type>& types,
                                                 const std::vector<tds::TypeInfo>& wire) {
  if (branches.size() != 1 || !query->order.empty() || query->offset != nullptr) return nullptr;
  SelectPlan& plan = *branches[0];
  if (!plan.plain() || plan.select().top_percent || plan.levels().size() != 1 || plan.levels()[0].data == nullptr)
    return nullptr;
  return std::make_unique<TableStream>(context, *this, types, wire);
}

}  // namespace rowferry::sandbox::engine
