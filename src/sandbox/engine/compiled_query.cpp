// Whole queries: set operations, ORDER BY, TOP, OFFSET and FETCH; and the scan that can be pulled row by row.
#include <fmt/format.h>

#include <algorithm>

#include "sandbox/engine/select_plan.hpp"

namespace rowferry::sandbox::engine {

CompiledQuery::CompiledQuery() = default;
CompiledQuery::~CompiledQuery() = default;

int compare_for_order(const Value& a, const Value& b) {
  if (a.null || b.null) return a.null && b.null ? 0 : a.null ? -1 : 1;
  const auto c = compare_same(a, b);
  return c < 0 ? -1 : c > 0 ? 1 : 0;
}

void check_columns_named(const std::vector<OutputColumn>& columns, const std::string& table) {
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].name.empty())
      raise(8155, 16, 2, fmt::format("No column name was specified for column {} of '{}'.", i + 1, table),
            Reach::batch);
    for (std::size_t k = 0; k < i; ++k)
      if (same_name(columns[k].name, columns[i].name))
        raise(8156, 16, 1,
              fmt::format("The column '{}' was specified multiple times for '{}'.", columns[i].name, table),
              Reach::batch);
  }
}

namespace {

void unite_columns(std::vector<OutputColumn>& columns, const std::vector<OutputColumn>& more) {
  if (columns.size() != more.size())
    raise(205, 16, 1,
          "All queries combined using a UNION, INTERSECT or EXCEPT operator must have an equal number of expressions "
          "in their target lists.",
          Reach::batch);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    columns[i].type = common_type(columns[i].type, more[i].type);
    columns[i].nullable = columns[i].nullable || more[i].nullable;
    columns[i].flags = tds::flag_computed;
    columns[i].user_type = 0;
  }
}

struct SortedRow {
  Row out;
  std::string key;
};

std::string key_of_items(const Row& keys, const std::vector<OrderItem>& order) {
  std::string key;
  for (std::size_t k = 0; k < order.size(); ++k) append_sort_key(keys[k], order[k].descending, key);
  return key;
}

void sort_rows(std::vector<SortedRow>& rows) {
  std::vector<std::size_t> places(rows.size());
  for (std::size_t i = 0; i < places.size(); ++i) places[i] = i;
  std::sort(places.begin(), places.end(), [&](std::size_t a, std::size_t b) {
    const int c = rows[a].key.compare(rows[b].key);
    return c != 0 ? c < 0 : a < b;
  });
  std::vector<SortedRow> sorted;
  sorted.reserve(rows.size());
  for (const std::size_t i : places) sorted.push_back(std::move(rows[i]));
  rows = std::move(sorted);
}

std::optional<std::uint64_t> row_number(const Context& context, const ExprPtr& e) {
  if (e == nullptr) return std::nullopt;
  const Value v = constant_value(context, e);
  return v.null ? 0
                : static_cast<std::uint64_t>(
                      std::max<std::int64_t>(0, static_cast<std::int64_t>(convert(v, bigint_type()).number)));
}

}  // namespace

std::shared_ptr<CompiledQuery> compile_query(const Context& context, const QueryPtr& query, Scope* outer,
                                             const std::vector<const std::vector<CommonTable>*>* inherited) {
  auto compiled = std::make_shared<CompiledQuery>();
  compiled->query = query;
  std::vector<const std::vector<CommonTable>*> common;
  if (inherited != nullptr) {
    common = *inherited;
  } else if (outer != nullptr) {
    common = outer->common;
  }
  if (!query->with.empty()) common.push_back(&query->with);
  for (const Select& select : query->branches) {
    auto plan = std::make_unique<SelectPlan>(context, select, outer, common);
    compiled->correlated = compiled->correlated || plan->scope().correlated;
    if (compiled->branches.empty()) {
      compiled->columns = plan->columns();
    } else {
      unite_columns(compiled->columns, plan->columns());
    }
    compiled->branches.push_back(std::move(plan));
  }
  if (query->branches.size() == 1) {
    compiled->branches[0]->bind_order(context, query->order);
    return compiled;
  }
  for (const OrderItem& item : query->order) {  // of a set operation: output columns only
    const Expr& e = *item.expr;
    const bool ordinal = e.kind == ExprKind::literal && is_integer(e.literal.type.kind);
    const bool named = e.kind == ExprKind::column &&
                       std::any_of(compiled->columns.begin(), compiled->columns.end(),
                                   [&](const OutputColumn& c) { return same_name(c.name, e.name.back()); });
    if (!ordinal && !named)
      raise(104, 16, 1,
            "ORDER BY items must appear in the select list if the statement contains a UNION, INTERSECT or EXCEPT "
            "operator.",
            Reach::batch);
  }
  return compiled;
}

namespace {

// UNION and the like over the branches, left to right.
std::vector<SortedRow> united(const Context& context, CompiledQuery& q) {
  std::vector<SortedRow> rows;
  const auto key_of = [](const Row& row) {
    std::string key;
    for (const Value& v : row) append_key(v, key);
    return key;
  };
  const auto distinct = [&](std::vector<SortedRow>& all) {
    std::unordered_set<std::string> seen;
    std::erase_if(all, [&](const SortedRow& r) { return !seen.insert(key_of(r.out)).second; });
  };
  for (std::size_t b = 0; b < q.branches.size(); ++b) {
    std::vector<SortedRow> more;
    const auto top = q.branches[b]->top(context);
    q.branches[b]->run(context, [&](Row& out, Row&) {
      if (top && more.size() >= *top) return false;
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = convert(out[i], q.columns[i].type);
      more.push_back({std::move(out), {}});
      return true;
    });
    if (b == 0) {
      rows = std::move(more);
      continue;
    }
    const SetOperation operation = q.query->operations[b - 1];
    if (operation == SetOperation::union_all || operation == SetOperation::union_distinct) {
      std::move(more.begin(), more.end(), std::back_inserter(rows));
    } else {
      std::unordered_set<std::string> other;
      for (const SortedRow& r : more) other.insert(key_of(r.out));
      const bool except = operation == SetOperation::except;
      std::erase_if(rows, [&](const SortedRow& r) { return other.contains(key_of(r.out)) == except; });
    }
    if (operation != SetOperation::union_all) distinct(rows);
  }
  for (SortedRow& r : rows) {
    Row keys;
    for (const OrderItem& item : q.query->order) {
      std::size_t at = 0;
      if (item.expr->kind == ExprKind::literal) {
        at = static_cast<std::size_t>(item.expr->literal.number) - 1;
      } else {
        while (at + 1 < q.columns.size() && !same_name(q.columns[at].name, item.expr->name.back())) ++at;
      }
      keys.push_back(r.out.at(std::min(at, r.out.size() - 1)));
    }
    r.key = key_of_items(keys, q.query->order);
  }
  return rows;
}

}  // namespace

void CompiledQuery::run(const Context& context, const RowSink& sink) {
  const std::uint64_t skip = row_number(context, query->offset).value_or(0);
  const auto fetch = row_number(context, query->fetch);
  if (branches.size() == 1 && query->order.empty() && !branches[0]->select().top_percent) {
    const auto top = branches[0]->top(context);
    std::uint64_t given = 0;
    if (top && *top == 0) return;
    branches[0]->run(context, [&](Row& out, Row&) {
      ++given;
      return sink(out) && (!top || given < *top);
    });
    return;
  }
  std::vector<SortedRow> rows;
  std::optional<std::uint64_t> limit = fetch;
  if (branches.size() == 1) {
    branches[0]->run(context, [&](Row& out, Row& keys) {
      rows.push_back({std::move(out), key_of_items(keys, query->order)});
      return true;
    });
    if (const auto top = branches[0]->top(context)) limit = top;
    if (branches[0]->select().top_percent) {
      const double percent = convert(constant_value(context, branches[0]->select().top), make_type(Kind::float8)).real;
      limit = static_cast<std::uint64_t>(static_cast<double>(rows.size()) * percent / 100.0 + 0.999999);
    }
  } else {
    rows = united(context, *this);
  }
  if (!query->order.empty()) sort_rows(rows);
  std::uint64_t given = 0;
  for (std::uint64_t i = skip; i < rows.size() && (!limit || given < *limit); ++i, ++given)
    if (!sink(rows[i].out)) return;
}

std::optional<SortedRows> CompiledQuery::run_sorted(const Context& context,
                                                    const std::function<void(const Row&, ByteBuffer&)>& encode) {
  if (branches.size() != 1 || query->order.empty() || branches[0]->select().top_percent) return std::nullopt;
  if (query->offset != nullptr) return std::nullopt;
  SortedRows rows(branches[0]->top(context));
  ByteBuffer row;
  branches[0]->run(context, [&](Row& out, Row& keys) {
    row.clear();
    encode(out, row);
    rows.add(key_of_items(keys, query->order), row.view());
    return true;
  });
  rows.sort();
  return rows;
}

namespace {

// SELECT columns FROM one table WHERE …, as it stands.
class TableStream : public RowSource {
 public:
  TableStream(const Context& context, CompiledQuery& query, const std::vector<Type>& types,
              const std::vector<tds::TypeInfo>& wire)
      : context_(context),
        plan_(*query.branches[0]),
        scan_(context, plan_.levels()[0].data, plan_.levels()[0].mode),
        types_(types),
        wire_(wire),
        limit_(plan_.top(context)) {
    const RangeVariable& v = plan_.scope().variables[0];
    seek(seek_conditions(v, 0, plan_.conditions()));
    const Layout& layout = v.data->layout();
    for (std::size_t i = 0; i < wire.size(); ++i) {
      const Expr& e = *plan_.items()[i];
      Item item;
      const int stored =
          e.kind == ExprKind::column && e.depth == 0 ? v.columns[static_cast<std::size_t>(e.column)].stored : -1;
      if (stored >= 0) {
        const StoredColumn& c = layout[static_cast<std::size_t>(stored)];
        if (c.info == wire[i]) {
          item.copied = stored;
        } else if (c.framing == Framing::length8 && framing_of(wire[i]) == Framing::fixed) {
          item.copied = stored;
          item.without_length = true;
        }
        needed_ = std::max(needed_, static_cast<std::size_t>(stored) + 1);
      }
      items_.push_back(item);
    }
    starts_.resize(needed_ + 1);
  }

  bool next(ByteBuffer& out) override {
    if (limit_ && given_ >= *limit_) return false;
    RangeVariable& v = plan_.scope().variables[0];
    Evaluator evaluator(context_, &plan_.scope());
    for (;;) {
      if (!scan_.next(v.row, v.id)) return false;
      v.null_row = false;
      bool wanted = true;
      for (const ExprPtr& e : plan_.conditions()) wanted = wanted && evaluator.test(e) == Truth::yes;
      if (wanted) break;
    }
    ++given_;
    write(v, evaluator, out);
    return true;
  }

 private:
  void seek(std::vector<ExprPtr> conditions) {
    if (conditions.empty()) return;
    scan_.seek([this, conditions = std::move(conditions)](ByteView row, RowId id) {
      RangeVariable& v = plan_.scope().variables[0];
      v.row = row;
      v.id = id;
      v.null_row = false;
      Evaluator evaluator(context_, &plan_.scope());
      return std::all_of(conditions.begin(), conditions.end(),
                         [&](const ExprPtr& e) { return evaluator.test(e) == Truth::yes; });
    });
  }

  struct Item {
    int copied = -1;
    bool without_length = false;
  };

  void write(const RangeVariable& v, Evaluator& evaluator, ByteBuffer& out) {
    const Layout& layout = v.data->layout();
    const std::uint8_t* at = v.row.data();
    for (std::size_t i = 0; i < needed_; ++i) {
      starts_[i] = at;
      at += value_size(layout[i].info, layout[i].framing, at);
    }
    starts_[needed_] = at;
    for (std::size_t i = 0; i < items_.size(); ++i) {
      if (items_[i].copied < 0) {
        const Value value = evaluator.eval(plan_.items()[i]);
        encode_value(value.type == types_[i] ? value : convert(value, types_[i]), wire_[i], out);
        continue;
      }
      const auto column = static_cast<std::size_t>(items_[i].copied);
      const std::uint8_t* from = starts_[column] + (items_[i].without_length ? 1 : 0);
      out.append(ByteView{from, static_cast<std::size_t>(starts_[column + 1] - from)});
    }
  }

  const Context context_;
  SelectPlan& plan_;
  TableScan scan_;
  std::vector<Type> types_;
  std::vector<tds::TypeInfo> wire_;
  std::vector<Item> items_;
  std::vector<const std::uint8_t*> starts_;
  std::size_t needed_ = 0;
  std::optional<std::uint64_t> limit_;
  std::uint64_t given_ = 0;
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
