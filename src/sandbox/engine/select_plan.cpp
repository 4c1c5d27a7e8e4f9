// Items, groups and windows of one SELECT.
#include "sandbox/engine/select_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace rowferry::sandbox::engine {

void SelectPlan::add_star(const SelectItem& item, const Context& context) {
  bool any = false;
  for (std::size_t s = 0; s < scope_.variables.size(); ++s) {
    const RangeVariable& v = scope_.variables[s];
    if (!item.qualifier.empty() && !same_name(v.alias, item.qualifier.back())) continue;
    any = true;
    for (std::size_t c = 0; c < v.columns.size(); ++c) {
      if (v.columns[c].definition != nullptr && v.columns[c].definition->hidden) continue;
      SelectItem column;
      column.expr = std::make_shared<Expr>();
      column.expr->kind = ExprKind::column;
      column.expr->source = static_cast<int>(s);
      column.expr->column = static_cast<int>(c);
      column.expr->name = {v.alias, v.columns[c].name};
      column.expr->type = v.columns[c].type;
      column.expr->nullable = v.columns[c].nullable;
      add_item(context, column);
    }
  }
  if (any) return;
  if (!item.qualifier.empty())
    raise(107, 15, 1,
          fmt::format("The column prefix '{}' does not match with a table name or alias name used in the query.",
                      item.qualifier.back()),
          Reach::batch);
  raise(263, 16, 1, "Must specify table to select from.", Reach::batch);
}

void SelectPlan::add_item(const Context&, const SelectItem& item) {
  OutputColumn out;
  out.type = item.expr->type;
  out.nullable = item.expr->nullable;
  out.flags = tds::flag_computed;
  out.name = item.alias;
  const Expr& e = *item.expr;
  if (e.kind == ExprKind::column) {
    if (out.name.empty()) out.name = e.name.back();
    Scope* scope = &scope_;
    for (int i = 0; i < e.depth; ++i) scope = scope->outer;
    const RangeVariable& v = scope->variables[static_cast<std::size_t>(e.source)];
    const RangeColumn& c = v.columns[static_cast<std::size_t>(e.column)];
    out.flags = c.flags;
    out.user_type = c.user_type;
    if (item.alias.empty()) out.name = c.name;
    if (!v.table_name.empty()) out.table = {v.table_name};
  }
  items_.push_back(item.expr);
  columns_.push_back(std::move(out));
}

void SelectPlan::bind_groups(Evaluator& evaluator) {
  for (const ExprPtr& g : select_.group_by) {
    evaluator.bind(g);
    aggregates_.push_back(g);
  }
}

void SelectPlan::to_group_slots(const ExprPtr& e) {
  walk(e, [&](const ExprPtr& x) {
    if (x->kind == ExprKind::aggregate) return false;
    for (std::size_t g = 0; g < select_.group_by.size(); ++g) {
      if (!same_expression(*x, *select_.group_by[g])) continue;
      x->slot = static_cast<int>(g);
      return false;
    }
    if (x->kind == ExprKind::column && x->depth == 0)
      raise(8120, 16, 1,
            fmt::format("Column '{}' is invalid in the select list because it is not contained in either an aggregate "
                        "function or the GROUP BY clause.",
                        ObjectName{x->name}.text()),
            Reach::batch);
    return true;
  });
}

void SelectPlan::bind_items(const Context& context) {
  Evaluator evaluator(context, &scope_);
  bind_groups(evaluator);
  scope_.aggregates = &aggregates_;
  scope_.windows = &windows_;
  for (const SelectItem& item : select_.items) {
    if (item.star) {
      add_star(item, context);
      continue;
    }
    evaluator.bind(item.expr);
    if (is_condition(*item.expr)) raise_syntax("=", item.expr->line);
    add_item(context, item);
  }
  if (select_.having != nullptr) evaluator.bind_condition(select_.having);
  scope_.aggregates = nullptr;
  scope_.windows = nullptr;
  grouped_ = !aggregates_.empty() || !select_.group_by.empty() || select_.having != nullptr;
  if (!grouped_) return;
  if (!windows_.empty()) raise_unsupported("windowed functions over groups");
  for (const ExprPtr& e : items_) to_group_slots(e);
  if (select_.having != nullptr) to_group_slots(select_.having);
}

void SelectPlan::bind_order(const Context& context, const std::vector<OrderItem>& order) {
  order_.clear();
  Evaluator evaluator(context, &scope_);
  for (const OrderItem& item : order) {
    int ordinal = -1;
    const Expr& e = *item.expr;
    if (e.kind == ExprKind::literal && e.literal.type.kind == Kind::integer && !e.literal.null) {
      ordinal = static_cast<int>(e.literal.number) - 1;
      if (ordinal < 0 || ordinal >= static_cast<int>(columns_.size()))
        raise(108, 16, 1,
              fmt::format("The ORDER BY position number {} is out of range of the number of items in the select list.",
                          ordinal + 1),
              Reach::batch);
    } else if (e.kind == ExprKind::column && e.name.size() == 1) {
      for (std::size_t i = 0; i < columns_.size() && ordinal < 0; ++i)
        if (same_name(columns_[i].name, e.name[0])) ordinal = static_cast<int>(i);
    }
    if (ordinal < 0) {
      scope_.aggregates = grouped_ ? &aggregates_ : nullptr;
      scope_.windows = &windows_;
      evaluator.bind(item.expr);
      scope_.aggregates = nullptr;
      scope_.windows = nullptr;
      if (grouped_) to_group_slots(item.expr);
      for (std::size_t i = 0; i < items_.size() && ordinal < 0; ++i)
        if (same_expression(*items_[i], *item.expr)) ordinal = static_cast<int>(i);
      if (select_.distinct && ordinal < 0)
        raise(145, 15, 1, "ORDER BY items must appear in the select list if SELECT DISTINCT is specified.",
              Reach::batch);
    }
    order_.emplace_back(ordinal, item.expr);
  }
}

std::vector<std::uint16_t> SelectPlan::order_ordinals() const {
  std::vector<std::uint16_t> ordinals;
  for (const auto& [ordinal, e] : order_) ordinals.push_back(static_cast<std::uint16_t>(ordinal + 1));
  return ordinals;
}

bool SelectPlan::plain() const { return !grouped_ && windows_.empty() && !select_.distinct; }

std::optional<std::uint64_t> SelectPlan::top(const Context& context) {
  if (select_.top == nullptr || select_.top_percent) return std::nullopt;
  const Value v = constant_value(context, select_.top);
  if (v.null)
    raise(1060, 15, 1,
          "The number of rows provided for a TOP or FETCH clauses row count parameter must be an integer.");
  const auto n = static_cast<std::int64_t>(convert(v, bigint_type()).number);
  if (n < 0) raise(127, 15, 1, "A TOP N or FETCH rowcount value may not be negative.");
  return static_cast<std::uint64_t>(n);
}

bool SelectPlan::emit(const Context& context, const PlanSink& sink) {
  Evaluator evaluator(context, &scope_);
  Row out, keys;
  out.reserve(items_.size());
  for (const ExprPtr& e : items_) out.push_back(evaluator.eval(e));
  for (const auto& [ordinal, e] : order_)
    keys.push_back(ordinal >= 0 ? out[static_cast<std::size_t>(ordinal)] : evaluator.eval(e));
  return sink(out, keys);
}

async::Task<void> SelectPlan::run(const Context& context, const PlanSink& sink, Turn& turn) {
  std::unordered_set<std::string> seen;
  PlanSink once;
  if (select_.distinct) {
    once = [&](Row& out, Row& keys) {
      std::string key;
      for (const Value& v : out) append_key(v, key);
      return !seen.insert(std::move(key)).second || sink(out, keys);
    };
  }
  const PlanSink& to = select_.distinct ? once : sink;
  if (grouped_) {
    if (select_.distinct || !run_counted(context, to)) co_await run_grouped(context, to, turn);
  } else if (!windows_.empty()) {
    co_await run_windowed(context, to, turn);
  } else {
    const std::function<bool()> visit = [&] { return emit(context, to); };
    co_await each_row(context, visit, turn);
  }
}

// COUNT(*) of a whole table is known without reading it (and is all that is known of discarded rows).
bool SelectPlan::run_counted(const Context& context, const PlanSink& sink) {
  if (levels_.size() != 1 || levels_[0].data == nullptr || !conditions_.empty() || !select_.group_by.empty())
    return false;
  if (levels_[0].mode == ReadMode::skip_locked && levels_[0].data->discarded(0) == 0) return false;
  for (const ExprPtr& a : aggregates_) {
    const std::string& f = a->name.back();
    if ((f != "COUNT" && f != "COUNT_BIG") || a->distinct) return false;
    const Expr& arg = *a->args[0];
    if (arg.kind != ExprKind::star && (arg.kind != ExprKind::literal || arg.literal.null)) return false;
  }
  const TableData& data = *levels_[0].data;
  const TransactionId me = transaction_id(context.session);
  if (levels_[0].mode == ReadMode::snapshot && data.keeps_versions()) return false;
  if (levels_[0].mode == ReadMode::committed)
    if (const TransactionId other = data.touched_by_other(me); other != 0) block_on_transaction(context.server, other);
  const std::uint64_t count = levels_[0].mode == ReadMode::dirty ? data.count_dirty() : data.count(me);
  Row slots;
  for (const ExprPtr& a : aggregates_) {
    if (a->type.kind == Kind::integer && count > 2'147'483'647) raise_overflow("expression", "int");
    slots.push_back(Value::of_int(static_cast<std::int64_t>(count), a->type.kind));
  }
  scope_.slots = &slots;
  Evaluator evaluator(context, &scope_);
  if (select_.having == nullptr || evaluator.test(select_.having) == Truth::yes) emit(context, sink);
  scope_.slots = nullptr;
  return true;
}

async::Task<void> SelectPlan::run_grouped(const Context& context, const PlanSink& sink, Turn& turn) {
  struct Group {
    Row keys;
    std::vector<Accumulator> accumulators;
  };
  std::vector<Group> groups;
  std::unordered_map<std::string, std::size_t> places;
  const std::size_t first = select_.group_by.size();
  const auto open = [&](Row keys) {
    Group& g = groups.emplace_back();
    g.keys = std::move(keys);
    for (std::size_t i = first; i < aggregates_.size(); ++i) g.accumulators.emplace_back(*aggregates_[i]);
  };
  if (first == 0) open({});
  Evaluator evaluator(context, &scope_);
  scope_.slots = nullptr;
  const std::function<bool()> add = [&] {
    std::size_t at = 0;
    if (first != 0) {
      std::string key;
      Row keys;
      for (const ExprPtr& g : select_.group_by) {
        keys.push_back(evaluator.eval(g));
        append_key(keys.back(), key);
      }
      const auto [place, fresh] = places.try_emplace(std::move(key), groups.size());
      if (fresh) open(std::move(keys));
      at = place->second;
    }
    for (Accumulator& a : groups[at].accumulators) a.add(evaluator);
    return true;
  };
  co_await each_row(context, add, turn);
  for (Group& g : groups) {
    Row slots = std::move(g.keys);
    for (const Accumulator& a : g.accumulators) slots.push_back(a.result(context));
    scope_.slots = &slots;
    const bool wanted = select_.having == nullptr || evaluator.test(select_.having) == Truth::yes;
    const bool more = !wanted || emit(context, sink);
    scope_.slots = nullptr;
    if (!more) co_return;
    co_await turn.pass();
  }
}

namespace {

bool is_ranking(const std::string& f) { return f == "ROW_NUMBER" || f == "RANK" || f == "DENSE_RANK" || f == "NTILE"; }

// The tile of the n-th (from 0) of `total` rows: the first ones are larger by one.
std::int64_t tile_of(std::int64_t n, std::int64_t total, std::int64_t tiles) {
  const std::int64_t size = total / tiles, larger = total % tiles;
  const std::int64_t border = larger * (size + 1);
  return n < border ? n / (size + 1) + 1 : larger + (n - border) / std::max<std::int64_t>(1, size) + 1;
}

}  // namespace

// Ranking functions, and aggregates over whole partitions or, with ORDER BY, up to the row's peers.
async::Task<void> SelectPlan::compute_window(const Context& context, std::size_t window,
                                             const std::vector<Snapshot>& rows, std::vector<Row>& results, Turn& turn) {
  Evaluator evaluator(context, &scope_);
  const Expr& call = *windows_[window];
  const std::string& f = call.name.back();
  const bool ranking = is_ranking(f);
  std::map<std::string, std::vector<std::uint32_t>> partitions;
  std::vector<std::string> keys(rows.size());
  for (std::uint32_t i = 0; i < rows.size(); ++i) {
    restore(rows[i]);
    std::string key;
    for (const ExprPtr& p : call.partition) append_key(evaluator.eval(p), key);
    partitions[key].push_back(i);
    for (const OrderItem& o : call.ordering) append_sort_key(evaluator.eval(o.expr), o.descending, keys[i]);
    co_await turn.pass();
  }
  const auto before = [&](std::uint32_t a, std::uint32_t b) {
    const int c = keys[a].compare(keys[b]);
    return c != 0 ? c < 0 : a < b;
  };
  for (auto& [key, members] : partitions) {
    co_await sort_places(members, before, turn);
    Accumulator whole(call);
    std::int64_t dense = 0;
    for (std::size_t n = 0; n < members.size();) {
      std::size_t peers = n + 1;
      while (peers < members.size() && (call.ordering.empty() || keys[members[n]] == keys[members[peers]])) ++peers;
      const auto rank = static_cast<std::int64_t>(n) + 1;
      ++dense;
      for (std::size_t i = n; i < peers && !ranking; ++i) {
        restore(rows[members[i]]);
        whole.add(evaluator);
        co_await turn.pass();
      }
      const Value running = ranking ? Value() : whole.result(context);
      for (std::size_t i = n; i < peers; ++i) {
        Value v = running;
        if (f == "ROW_NUMBER") v = Value::of_int(static_cast<std::int64_t>(i) + 1, Kind::bigint);
        if (f == "RANK") v = Value::of_int(rank, Kind::bigint);
        if (f == "DENSE_RANK") v = Value::of_int(dense, Kind::bigint);
        if (f == "NTILE") {
          const Value tiles = convert(evaluator.eval(call.args[0]), bigint_type());
          v = Value::of_int(tile_of(static_cast<std::int64_t>(i), static_cast<std::int64_t>(members.size()),
                                    std::max<std::int64_t>(1, static_cast<std::int64_t>(tiles.number))),
                            Kind::bigint);
        }
        results[members[i]][window] = std::move(v);
        co_await turn.pass();
      }
      n = peers;
    }
  }
}

async::Task<void> SelectPlan::run_windowed(const Context& context, const PlanSink& sink, Turn& turn) {
  std::vector<Snapshot> rows;
  const std::function<bool()> keep = [&] {
    rows.push_back(snapshot());
    return true;
  };
  co_await each_row(context, keep, turn);
  std::vector<Row> results(rows.size(), Row(windows_.size()));
  for (std::size_t w = 0; w < windows_.size(); ++w) co_await compute_window(context, w, rows, results, turn);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    restore(rows[i]);
    scope_.slots = &results[i];
    const bool more = emit(context, sink);
    scope_.slots = nullptr;
    if (!more) co_return;
    co_await turn.pass();
  }
}

}  // namespace rowferry::sandbox::engine
