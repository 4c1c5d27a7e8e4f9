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

struct SortableRow {
  Row out;
  std::string key;
};

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

std::string key_of_items(const Row& keys, const std::vector<OrderItem>& order) {
  std::string key;
  for (std::size_t k = 0; k < order.size(); ++k) append_sort_key(keys[k], order[k].descending, key);
  return key;
}

// In the order of the keys, equal ones as they stand.
async::Task<void> sort_rows(std::vector<SortableRow>& rows, Turn& turn) {
  std::vector<std::uint32_t> places(rows.size());
  for (std::uint32_t i = 0; i < places.size(); ++i) places[i] = i;
  const auto before = [&](std::uint32_t a, std::uint32_t b) {
    const int c = rows[a].key.compare(rows[b].key);
    return c != 0 ? c < 0 : a < b;
  };
  co_await sort_places(places, before, turn);
  std::vector<SortableRow> sorted;
  sorted.reserve(rows.size());
  for (const std::uint32_t i : places) {
    sorted.push_back(std::move(rows[i]));
    co_await turn.pass();
  }
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

std::string key_of_row(const Row& row) {
  std::string key;
  for (const Value& v : row) append_key(v, key);
  return key;
}

// What a set operation makes of the rows so far and those of the next branch.
void unite(std::vector<SortableRow>& rows, std::vector<SortableRow>& more, SetOperation operation) {
  if (operation == SetOperation::union_all || operation == SetOperation::union_distinct) {
    std::move(more.begin(), more.end(), std::back_inserter(rows));
  } else {
    std::unordered_set<std::string> other;
    for (const SortableRow& r : more) other.insert(key_of_row(r.out));
    const bool except = operation == SetOperation::except;
    std::erase_if(rows, [&](const SortableRow& r) { return other.contains(key_of_row(r.out)) == except; });
  }
  if (operation == SetOperation::union_all) return;
  std::unordered_set<std::string> seen;
  std::erase_if(rows, [&](const SortableRow& r) { return !seen.insert(key_of_row(r.out)).second; });
}

// UNION and the like over the branches, left to right.
async::Task<void> united(const Context& context, CompiledQuery& q, std::vector<SortableRow>& rows, Turn& turn) {
  for (std::size_t b = 0; b < q.branches.size(); ++b) {
    std::vector<SortableRow> more;
    const auto top = q.branches[b]->top(context);
    const PlanSink take = [&](Row& out, Row&) {
      if (top && more.size() >= *top) return false;
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = convert(out[i], q.columns[i].type);
      more.push_back({std::move(out), {}});
      return true;
    };
    co_await q.branches[b]->run(context, take, turn);
    if (b == 0) {
      rows = std::move(more);
    } else {
      unite(rows, more, q.query->operations[b - 1]);
    }
  }
  for (SortableRow& r : rows) {
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
}

}  // namespace

void CompiledQuery::run(const Context& context, const RowSink& sink) {
  Turn whole = Turn::whole();
  do_whole(work(context, sink, whole), whole);
}

async::Task<void> CompiledQuery::gather(const Context& context, std::vector<SortableRow>& rows, Turn& turn) {
  if (branches.size() != 1) {
    co_await united(context, *this, rows, turn);
    co_return;
  }
  const PlanSink take = [&](Row& out, Row& keys) {
    rows.push_back({std::move(out), key_of_items(keys, query->order)});
    return true;
  };
  co_await branches[0]->run(context, take, turn);
}

async::Task<void> CompiledQuery::work(const Context& context, const RowSink& sink, Turn& turn) {
  const std::uint64_t skip = row_number(context, query->offset).value_or(0);
  std::optional<std::uint64_t> limit = row_number(context, query->fetch);
  std::uint64_t given = 0;
  if (branches.size() == 1 && query->order.empty() && !branches[0]->select().top_percent) {
    const auto top = branches[0]->top(context);
    if (top && *top == 0) co_return;
    const PlanSink give = [&](Row& out, Row&) {
      ++given;
      return sink(out) && (!top || given < *top);
    };
    co_await branches[0]->run(context, give, turn);
    co_return;
  }
  std::vector<SortableRow> rows;
  co_await gather(context, rows, turn);
  if (branches.size() == 1) {
    if (const auto top = branches[0]->top(context)) limit = top;
    if (branches[0]->select().top_percent) {
      const double percent = convert(constant_value(context, branches[0]->select().top), make_type(Kind::float8)).real;
      limit = static_cast<std::uint64_t>(static_cast<double>(rows.size()) * percent / 100.0 + 0.999999);
    }
  }
  if (!query->order.empty()) co_await sort_rows(rows, turn);
  for (std::uint64_t i = skip; i < rows.size() && (!limit || given < *limit); ++i, ++given) {
    if (!sink(rows[i].out)) co_return;
    co_await turn.pass();
  }
}

bool CompiledQuery::is_sortable() const {
  return branches.size() == 1 && !query->order.empty() && !branches[0]->select().top_percent &&
         query->offset == nullptr;
}

async::Task<void> CompiledQuery::work_sorted(const Context& context, const EncodeRow& encode, SortedRows& rows,
                                             Turn& turn) {
  rows.keep(branches[0]->top(context));
  ByteBuffer row;
  const PlanSink take = [&](Row& out, Row& keys) {
    row.clear();
    encode(out, row);
    rows.add(key_of_items(keys, query->order), row.view());
    return true;
  };
  co_await branches[0]->run(context, take, turn);
  co_await rows.sort(turn);
}

}  // namespace rowferry::sandbox::engine
