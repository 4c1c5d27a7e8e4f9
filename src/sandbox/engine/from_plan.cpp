// FROM: tables, views, queries and functions as range variables, and the loops over them.
#include <fmt/format.h>

#include <algorithm>

#include "sandbox/engine/row_filter.hpp"
#include "sandbox/engine/select_plan.hpp"

namespace rowferry::sandbox::engine {

struct FromBuilder {
  const Context& context;
  SelectPlan& plan;
  Evaluator evaluator;

  FromBuilder(const Context& c, SelectPlan& p) : context(c), plan(p), evaluator(c, &p.scope_) {}

  void add(const TableRef& t, JoinKind join, const ExprPtr& on) {
    if (t.kind == TableKind::join) {
      if (t.join == JoinKind::full) raise_unsupported("FULL JOIN");
      if (join != JoinKind::inner && join != JoinKind::cross)
        raise_unsupported("an outer join to a parenthesised join");
      if (t.join == JoinKind::right) return add_right(t, on);
      add(*t.left, JoinKind::inner, nullptr);
      add(*t.right, t.join, t.on);
      if (on != nullptr) condition(on);
      return;
    }
    source(t, join);
    JoinLevel& level = plan.levels_.back();
    if (on == nullptr) return;
    evaluator.bind_condition(on);
    split(on, join == JoinKind::left ? level.on : plan.conditions_);
  }

  // a RIGHT JOIN b: b outside, a inside; columns stay in the order written.
  void add_right(const TableRef& t, const ExprPtr& on) {
    if (t.left->kind == TableKind::join || on != nullptr) raise_unsupported("RIGHT JOIN behind another join");
    source(*t.left, JoinKind::left);
    source(*t.right, JoinKind::inner);
    evaluator.bind_condition(t.on);
    auto& levels = plan.levels_;
    std::swap(levels[levels.size() - 1], levels[levels.size() - 2]);
    split(t.on, levels.back().on);
    for (RangeColumn& c : plan.scope_.variables[levels.back().variable].columns) c.nullable = true;
  }

  void condition(const ExprPtr& e) {
    evaluator.bind_condition(e);
    split(e, plan.conditions_);
  }

  static void split(const ExprPtr& e, std::vector<ExprPtr>& into) {
    if (e->kind == ExprKind::logical_and) {
      for (const ExprPtr& part : e->args) split(part, into);
    } else {
      into.push_back(e);
    }
  }

  JoinLevel& open(RangeVariable variable, JoinKind join) {
    for (const RangeVariable& v : plan.scope_.variables)
      if (!v.alias.empty() && same_name(v.alias, variable.alias) && v.name.schema() == variable.name.schema())
        raise(1013, 16, 1,
              fmt::format("The objects \"{}\" and \"{}\" in the FROM clause have the same exposed names. Use "
                          "correlation names to distinguish them.",
                          v.alias, variable.alias),
              Reach::batch);
    if (join == JoinKind::left || join == JoinKind::outer_apply)
      for (RangeColumn& c : variable.columns) c.nullable = true;
    plan.scope_.variables.push_back(std::move(variable));
    JoinLevel& level = plan.levels_.emplace_back();
    level.variable = plan.scope_.variables.size() - 1;
    level.join = join == JoinKind::outer_apply   ? JoinKind::left
                 : join == JoinKind::cross_apply ? JoinKind::inner
                                                 : join;
    return level;
  }

  static RangeVariable of_columns(const std::vector<OutputColumn>& columns, const TableRef& t) {
    RangeVariable v;
    v.alias = t.alias;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      RangeColumn c;
      c.name = i < t.column_names.size() ? t.column_names[i] : columns[i].name;
      c.type = columns[i].type;
      c.nullable = columns[i].nullable;
      c.flags = columns[i].flags;
      c.user_type = columns[i].user_type;
      v.columns.push_back(std::move(c));
    }
    return v;
  }

  void from_query(const QueryPtr& query, const TableRef& t, JoinKind join) {
    const bool apply = join == JoinKind::cross_apply || join == JoinKind::outer_apply;
    auto compiled = compile_query(context, query, apply ? &plan.scope_ : plan.scope_.outer, &plan.common_);
    if (plan.scope_.outer != nullptr && compiled->correlated && !apply) plan.scope_.correlated = true;
    if (t.column_names.empty()) check_columns_named(compiled->columns, t.alias);
    JoinLevel& level = open(of_columns(compiled->columns, t), join);
    level.query = std::move(compiled);
    level.apply = apply;
  }

  bool common_table(const TableRef& t, JoinKind join) {
    if (t.name.parts.size() != 1) return false;
    for (auto at = plan.common_.rbegin(); at != plan.common_.rend(); ++at) {
      for (const CommonTable& c : **at) {
        if (!same_name(c.name, t.name.object())) continue;
        TableRef named = t;
        if (named.alias.empty()) named.alias = c.name;
        if (!c.columns.empty()) named.column_names = c.columns;
        // A common table sees those before it, not itself.
        auto before = std::make_shared<Query>(*c.query);
        for (const CommonTable& earlier : **at) {
          if (&earlier == &c) break;
          before->with.push_back(earlier);
        }
        for (auto outer = std::next(at); outer != plan.common_.rend(); ++outer)
          before->with.insert(before->with.begin(), (*outer)->begin(), (*outer)->end());
        from_query(before, named, join);
        return true;
      }
    }
    return false;
  }

  void from_virtual(const VirtualTable& table, const TableRef& t, JoinKind join) {
    TableRef named = t;
    if (named.alias.empty()) named.alias = t.name.object();
    RangeVariable variable = of_columns(table.columns, named);
    variable.name = t.name;
    JoinLevel& level = open(std::move(variable), join);
    level.rows = table.rows;
    level.filled = true;
  }

  void from_table(const ObjectPtr& object, const TableRef& t, JoinKind join) {
    RangeVariable variable = range_of(object, t.alias);
    if (t.alias.empty()) variable.name = t.name;
    const ReadMode mode = lock_for_reading(context, *object, t.hints);
    variable.data = object->data;
    JoinLevel& level = open(std::move(variable), join);
    level.mode = mode;
    level.data = object->data;
  }

  void from_values(const TableRef& t, JoinKind join) {
    std::vector<OutputColumn> columns(t.rows.front().size());
    for (const auto& row : t.rows) {
      if (row.size() != columns.size())
        raise(10709, 16, 1, "The number of columns for each row in a table value constructor must be the same.",
              Reach::batch);
      for (std::size_t i = 0; i < row.size(); ++i) {
        Evaluator outside(context, plan.scope_.outer == nullptr ? &plan.scope_ : &plan.scope_);
        outside.bind(row[i]);
        const bool first = &row == &t.rows.front();
        columns[i].type = first ? row[i]->type : common_type(columns[i].type, row[i]->type);
        columns[i].nullable = true;
      }
    }
    JoinLevel& level = open(of_columns(columns, t), join);
    level.value_rows = t.rows;
  }

  void source(const TableRef& t, JoinKind join) {
    if (t.kind == TableKind::query) return from_query(t.query, t, join);
    if (t.kind == TableKind::values) return from_values(t, join);
    if (t.kind == TableKind::function) {
      std::vector<Value> args;
      for (const ExprPtr& e : t.args) {
        evaluator.bind(e);
        args.push_back(evaluator.eval(e));
      }
      const auto table = table_function(context, t.name, args);
      if (!table) raise_invalid_object(t.name.text());
      return from_virtual(*table, t, join);
    }
    if (common_table(t, join)) return;
    if (!t.name.parts[0].starts_with('@')) {
      if (const auto view = system_view(context, t.name)) return from_virtual(*view, t, join);
      ObjectPtr object = find_object(context, t.name);
      if (object != nullptr && object->kind == ObjectKind::synonym) {
        object = find_object(context, ObjectName{object->stands_for});
      }
      if (object == nullptr || (object->kind != ObjectKind::table && object->kind != ObjectKind::view))
        raise_invalid_object(t.name.text());
      if (object->kind == ObjectKind::view) {
        TableRef named = t;
        if (named.alias.empty()) named.alias = object->name;
        return from_query(parse_query(std::string_view(object->text).substr(object->body), parse_options(context)),
                          named, join);
      }
      return from_table(object, t, join);
    }
    from_table(find_table(context, t.name), t, join);
  }
};

SelectPlan::SelectPlan(const Context& context, const Select& select, Scope* outer,
                       std::vector<const std::vector<CommonTable>*> common)
    : select_(select), common_(std::move(common)) {
  scope_.outer = outer;
  scope_.common = common_;
  FromBuilder builder(context, *this);
  if (select_.from != nullptr) builder.add(*select_.from, JoinKind::inner, nullptr);
  if (select_.where != nullptr) builder.condition(select_.where);
  place_conditions();
  bind_items(context);
}

namespace {

// The highest of this scope's variables that an expression uses; a subquery may use any.
int last_variable(const ExprPtr& e, bool& has_query) {
  int last = -1;
  walk(e, [&](const ExprPtr& x) {
    if (x->query != nullptr) has_query = true;
    if (x->kind == ExprKind::column && x->depth == 0) last = std::max(last, x->source);
    return true;
  });
  return last;
}

}  // namespace

void SelectPlan::place_conditions() {
  if (levels_.empty()) return;
  std::vector<std::size_t> level_of(scope_.variables.size());
  for (std::size_t i = 0; i < levels_.size(); ++i) level_of[levels_[i].variable] = i;
  for (const ExprPtr& e : conditions_) {
    std::size_t at = 0;
    bool has_query = false;
    walk(e, [&](const ExprPtr& x) {
      if (x->query != nullptr) has_query = true;
      if (x->kind == ExprKind::column && x->depth == 0)
        at = std::max(at, level_of[static_cast<std::size_t>(x->source)]);
      return true;
    });
    if (has_query) at = levels_.size() - 1;
    levels_[at].where.push_back(e);
  }
  for (std::size_t i = 0; i < levels_.size(); ++i) prepare_equalities(levels_[i], i);
}

void SelectPlan::prepare_equalities(JoinLevel& level, std::size_t index) {
  if (level.apply || (index == 0 && scope_.outer == nullptr)) return;
  const auto& from = level.join == JoinKind::left ? level.on : level.where;
  const auto own = static_cast<int>(level.variable);
  for (const ExprPtr& e : from) {
    if (e->kind != ExprKind::compare || e->op != '=') continue;
    for (const bool swapped : {false, true}) {
      const ExprPtr& column = e->args[swapped ? 1 : 0];
      const ExprPtr& probe = e->args[swapped ? 0 : 1];
      if (column->kind != ExprKind::column || column->depth != 0 || column->source != own) continue;
      bool usable = true;
      bool has_query = false;
      last_variable(probe, has_query);
      walk(probe, [&](const ExprPtr& x) {
        if (x->kind != ExprKind::column || x->depth != 0) return true;
        bool earlier = false;
        for (std::size_t i = 0; i < index; ++i)
          earlier = earlier || levels_[i].variable == static_cast<std::size_t>(x->source);
        usable = usable && earlier;
        return true;
      });
      if (!usable || has_query) continue;
      const Type type = common_type(column->type, probe->type);
      if (is_float(type.kind) && !is_float(column->type.kind)) continue;
      if (is_string(type.kind) != is_string(column->type.kind) || type.kind == Kind::variant) continue;
      level.equal.push_back({column->column, probe, type});
      break;
    }
  }
}

async::Task<void> SelectPlan::fill(const Context& context, JoinLevel& level, Turn& turn) {
  if (level.data != nullptr || level.filled) co_return;
  level.rows.clear();
  level.hashed = false;
  level.places.clear();
  if (level.query != nullptr) {
    const RowSink keep = [&](Row& row) {
      level.rows.push_back(std::move(row));
      return true;
    };
    co_await level.query->work(context, keep, turn);
    level.filled = !level.query->correlated && !level.apply;
    co_return;
  }
  Evaluator evaluator(context, &scope_);
  const auto& columns = scope_.variables[level.variable].columns;
  for (const auto& exprs : level.value_rows) {
    Row row;
    for (std::size_t i = 0; i < exprs.size(); ++i) row.push_back(convert(evaluator.eval(exprs[i]), columns[i].type));
    level.rows.push_back(std::move(row));
  }
  level.filled = true;
}

async::Task<void> SelectPlan::build_hash(const Context& context, JoinLevel& level, Turn& turn) {
  RangeVariable& v = scope_.variables[level.variable];
  std::vector<ExprPtr> columns;
  for (const JoinLevel::Equal& e : level.equal) {
    columns.push_back(std::make_shared<Expr>());
    columns.back()->kind = ExprKind::column;
    columns.back()->source = static_cast<int>(level.variable);
    columns.back()->column = e.column;
  }
  Evaluator evaluator(context, &scope_);
  const auto add = [&](std::uint64_t place) {
    std::string key;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const Value value = evaluator.eval(columns[i]);
      if (value.null) return;
      append_key(convert(value, level.equal[i].type), key);
    }
    level.places.emplace(TableData::hash_of(key), place);
  };
  level.places.clear();
  v.null_row = false;
  if (level.data != nullptr) {
    level.scan = TableScan(context, level.data, level.mode);
    v.values = nullptr;
    while (level.scan.next(v.row, v.id)) {
      add(v.id.packed());
      co_await turn.pass();
    }
  } else {
    for (std::size_t i = 0; i < level.rows.size(); ++i) {
      v.values = &level.rows[i];
      add(i);
      co_await turn.pass();
    }
  }
  level.hashed = true;
}

// What the loops need that does not depend on the row at hand.
async::Task<void> SelectPlan::prepare(const Context& context, Turn& turn) {
  for (JoinLevel& level : levels_) {
    level.kept.clear();
    if (level.apply) continue;
    co_await fill(context, level, turn);
    if (!level.equal.empty() && !level.hashed) co_await build_hash(context, level, turn);
  }
}

// Puts the variable on each candidate row in turn; false ends the whole.
bool SelectPlan::scan_level(const Context& context, std::size_t index, const std::function<bool()>& each) {
  JoinLevel& level = levels_[index];
  RangeVariable& v = scope_.variables[level.variable];
  v.null_row = false;
  if (level.apply) {
    level.filled = false;
    Turn whole = Turn::whole();
    do_whole(fill(context, level, whole), whole);
    level.kept.push_back(std::move(level.rows));
    level.rows.clear();
    for (const Row& row : level.kept.back()) {
      v.values = &row;
      v.null_row = false;
      if (!each()) return false;
    }
    return true;
  }
  if (!level.equal.empty()) {
    std::string key;
    Evaluator evaluator(context, &scope_);
    for (const JoinLevel::Equal& e : level.equal) {
      const Value value = evaluator.eval(e.probe);
      if (value.null) return true;
      append_key(convert(value, e.type), key);
    }
    const auto [first, last] = level.places.equal_range(TableData::hash_of(key));
    for (auto at = first; at != last; ++at) {
      v.null_row = false;
      if (level.data != nullptr) {
        v.id = RowId::unpack(at->second);
        v.row = level.scan.row(v.id);
        v.values = nullptr;
      } else {
        v.values = &level.rows[at->second];
      }
      if (!each()) return false;
    }
    return true;
  }
  if (level.data != nullptr) {
    Evaluator evaluator(context, &scope_);
    begin_scan(context, level, evaluator);
    ByteView row;
    RowId id;
    while (level.scan.next(row, id)) {
      v.values = nullptr;
      v.null_row = false;
      v.row = row;
      v.id = id;
      if (!each()) return false;
    }
    return true;
  }
  for (const Row& row : level.rows) {
    v.values = &row;
    v.null_row = false;
    if (!each()) return false;
  }
  return true;
}

void SelectPlan::begin_scan(const Context& context, JoinLevel& level, Evaluator& evaluator) {
  RangeVariable& v = scope_.variables[level.variable];
  level.scan = TableScan(context, level.data, level.mode);
  std::vector<ExprPtr> sought = seek_conditions(v, level.variable, level.where);
  if (sought.empty()) return;
  level.scan.seek([&v, &evaluator, sought = std::move(sought)](ByteView held, RowId place) {
    v.values = nullptr;
    v.null_row = false;
    v.row = held;
    v.id = place;
    return std::all_of(sought.begin(), sought.end(), [&](const ExprPtr& e) { return evaluator.test(e) == Truth::yes; });
  });
}

namespace {

bool all_hold(Evaluator& evaluator, const std::vector<ExprPtr>& conditions) {
  return std::all_of(conditions.begin(), conditions.end(),
                     [&](const ExprPtr& e) { return evaluator.test(e) == Truth::yes; });
}

}  // namespace

bool SelectPlan::loop(const Context& context, std::size_t index, const std::function<bool()>& visit) {
  if (index == levels_.size()) return visit();
  JoinLevel& level = levels_[index];
  Evaluator evaluator(context, &scope_);
  bool matched = false;
  const bool more = scan_level(context, index, [&] {
    if (!all_hold(evaluator, level.on)) return true;
    matched = true;
    return !all_hold(evaluator, level.where) || loop(context, index + 1, visit);
  });
  if (!more) return false;
  if (matched || level.join != JoinKind::left) return true;
  RangeVariable& v = scope_.variables[level.variable];
  v.null_row = true;
  v.values = nullptr;
  return !all_hold(evaluator, level.where) || loop(context, index + 1, visit);
}

// The outermost loop may be left off between two rows; a subquery's rows are looked up by hash where they can be.
async::Task<void> SelectPlan::each_row(const Context& context, const std::function<bool()>& visit, Turn& turn) {
  Evaluator evaluator(context, &scope_);
  if (levels_.empty()) {
    if (all_hold(evaluator, conditions_)) visit();
    co_return;
  }
  co_await prepare(context, turn);
  JoinLevel& outer = levels_[0];
  const bool plain = !outer.apply && outer.equal.empty() && outer.on.empty() && outer.join != JoinKind::left;
  if (!plain) {
    loop(context, 0, visit);
    co_return;
  }
  RangeVariable& v = scope_.variables[outer.variable];
  v.null_row = false;
  if (outer.data == nullptr) {
    for (const Row& row : outer.rows) {
      v.values = &row;
      v.null_row = false;
      if (all_hold(evaluator, outer.where) && !loop(context, 1, visit)) co_return;
      co_await turn.pass();
    }
    co_return;
  }
  v.values = nullptr;
  RowFilter filter(context, scope_, outer.variable, outer.where);
  begin_scan(context, outer, evaluator);
  ByteView row;
  RowId id;
  while (outer.scan.next(row, id)) {
    v.values = nullptr;
    v.null_row = false;
    v.row = row;
    v.id = id;
    if (filter.passes(row) && !loop(context, 1, visit)) co_return;
    co_await turn.pass();
  }
}

void SelectPlan::for_each_row(const Context& context, const std::function<bool()>& visit) {
  Turn whole = Turn::whole();
  do_whole(each_row(context, visit, whole), whole);
}

Snapshot SelectPlan::snapshot() const {
  Snapshot s;
  for (const RangeVariable& v : scope_.variables) s.parts.push_back({v.row, v.id, v.values, v.null_row});
  return s;
}

void SelectPlan::restore(const Snapshot& s) {
  for (std::size_t i = 0; i < s.parts.size(); ++i) {
    RangeVariable& v = scope_.variables[i];
    v.row = s.parts[i].row;
    v.id = s.parts[i].id;
    v.values = s.parts[i].values;
    v.null_row = s.parts[i].null_row;
  }
}

}  // namespace rowferry::sandbox::engine
