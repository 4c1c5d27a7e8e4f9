#include "transfer/plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "async/scope.hpp"
#include "base/limits.hpp"
#include "transfer/partition.hpp"
#include "transfer/pipeline.hpp"

namespace rowferry::transfer {

namespace {

using async::Task;
using system::Notice;

void add_notices(std::vector<Notice>& to, const std::vector<Notice>& from) {
  for (const Notice& notice : from) {
    if (std::ranges::find(to, notice) == to.end()) to.push_back(notice);
  }
}

// The source knows a missing column by its name; where the spec has it is known here.
void name_field(const Spec& spec, Error& error) {
  const auto at = std::ranges::find(spec.columns, error.context().column, &ColumnSpec::source);
  if (at != spec.columns.end()) error.with_field(fmt::format("columns[{}].source", at - spec.columns.begin()));
}

Task<void> describe_source(Plan* plan) {
  try {
    plan->source_table = co_await plan->source->describe(source_request(plan->spec, plan->route));
  } catch (Error& error) {
    error.with_connection(plan->spec.source.connection).with_table(plan->route.source_table.text());
    if (error.code() == "column_missing") name_field(plan->spec, error);
    throw;
  }
}

Task<void> describe_target(Plan* plan) {
  try {
    plan->target_table = co_await plan->target->describe(plan->target_request);
  } catch (Error& error) {
    error.with_connection(plan->spec.target.connection).with_table(plan->route.target_table.text());
    throw;
  }
}

void check_existence(const Plan& plan) {
  const system::Mode mode = plan.spec.target.mode;
  const std::string name = plan.route.target_table.text();
  if (plan.target_table.exists && mode == system::Mode::fail_if_exists && !plan.target_request.own_table) {
    throw Error(Category::conflict, "target_exists", fmt::format("the target table {} exists", name))
        .with_connection(plan.spec.target.connection)
        .with_table(name);
  }
  if (!plan.target_table.exists && !plan.spec.target.create && !name.empty()) {
    throw Error(Category::not_found, "table_missing", fmt::format("the target table {} does not exist", name))
        .with_connection(plan.spec.target.connection)
        .with_table(name)
        .with_hint("`\"create\": true` in the target creates it");
  }
}

// What one row takes in memory, by what the catalogue says of the table's size.
std::optional<double> row_bytes_estimate(const system::SourceTable& table) {
  if (!table.row_estimate || !table.byte_estimate || *table.row_estimate == 0) return std::nullopt;
  return static_cast<double>(*table.byte_estimate) / static_cast<double>(*table.row_estimate);
}

// A drained slice has to fit into the memory budget: what will not is told before anything is read.
void note_drain(Plan& plan) {
  if (!plan.spec.read.drain.value_or(false)) return;
  const std::optional<double> row_bytes = row_bytes_estimate(plan.source_table);
  if (!row_bytes) return;
  const std::uint64_t budget = plan.spec.read.memory_budget.value_or(limits::memory_budget_default);
  const system::Slice* largest = nullptr;
  std::size_t too_large = 0;
  for (const system::Slice& slice : plan.slices.slices) {
    const std::uint64_t rows = slice.row_estimate.value_or(0);
    if (static_cast<double>(rows) * *row_bytes <= static_cast<double>(budget)) continue;
    ++too_large;
    if (largest == nullptr || rows > *largest->row_estimate) largest = &slice;
  }
  if (largest == nullptr) return;
  const DrainFit fit = drain_fit(budget, *row_bytes, *largest->row_estimate);
  plan.notices.push_back({"drain_budget",
                          fmt::format("{} of {} slices may be larger than the memory budget of {} bytes; the largest, "
                                      "{}, has about {} rows and {} bytes: {}",
                                      too_large, plan.slices.slices.size(), budget, largest->predicate,
                                      *largest->row_estimate, fit.needed, fit.advice),
                          ""});
}

// What a profile asked of the load and this target cannot do: shared staging and plain loading, with a notice.
bool fall_back(Plan& plan, const Error& why) {
  Spec& spec = plan.spec;
  const bool by_profile = std::ranges::any_of(spec.from_profile, [](const std::string& path) {
    return path == "load.commit" || path == "load.freeze" || path == "load.unlogged" || path == "load.exchange";
  });
  const bool by_type = why.category() == Category::input || why.category() == Category::unsupported;
  if (!by_profile || !by_type) return false;
  if (spec.filled_by_profile("load.commit")) spec.load.commit = system::Commit::transfer;
  if (spec.filled_by_profile("load.freeze")) spec.load.freeze.reset();
  if (spec.filled_by_profile("load.unlogged")) spec.load.unlogged.reset();
  if (spec.filled_by_profile("load.exchange")) spec.load.exchange.reset();
  std::erase_if(spec.from_profile, [](const std::string& path) { return path.starts_with("load."); });
  plan.notices.push_back(
      {"profile_fallback",
       fmt::format("the profile {} falls back to shared staging and plain loading: {}", spec.profile, why.detail()),
       ""});
  const bool own_table = plan.target_request.own_table;
  plan.target_request = target_request(spec, plan.route);
  plan.target_request.own_table = own_table;
  return true;
}

Task<void> plan_target(Plan* plan) {
  try {
    decide_slices(*plan);
    plan->target_plan = co_await plan->target->plan(plan->target_request, plan->match.columns, plan->match.primary_key);
  } catch (Error& error) {
    error.with_connection(plan->spec.target.connection).with_table(plan->route.target_table.text());
    throw;
  }
  // One transaction for all slices is one session's.
  plan->load_workers =
      plan->target_plan.finalizer == system::Finalizer::direct ? 1 : plan->spec.workers.load.value_or(1);
}

Task<void> plan_slices(Plan* plan) {
  try {
    plan->slices = co_await plan->source->plan_slices(read_request(*plan));
    check_slices(*plan, plan->slices);
  } catch (Error& error) {
    error.with_connection(plan->spec.source.connection).with_table(plan->route.source_table.text());
    throw;
  }
  if (!plan->slices_reason.empty()) {
    plan->slices.reason = plan->slices.reason.empty() ? plan->slices_reason
                                                      : fmt::format("{}; {}", plan->slices_reason, plan->slices.reason);
  }
}

// The two depend on one another: a partitioned target wants certain slices, the source may not have them.
Task<void> plan_target_and_slices(Plan* plan) {
  for (;;) {
    bool again = false;
    try {
      co_await plan_target(plan);
      co_await plan_slices(plan);
    } catch (const Error& error) {
      again = fall_back(*plan, error);
      if (!again) throw;
    }
    if (!again) co_return;
  }
}

}  // namespace

system::SourceRequest source_request(const Spec& spec, const Route& route) {
  system::SourceRequest request;
  request.table = route.source_table;
  request.query = spec.source.query;
  request.path = spec.source.arrow;
  request.where = spec.source.where;
  for (const ColumnSpec& column : spec.columns) {
    if (std::ranges::find(request.columns, column.source) == request.columns.end()) {
      request.columns.push_back(column.source);
    }
    if (column.scan_numeric) request.scan_numeric.push_back(column.source);
  }
  return request;
}

system::TargetRequest target_request(const Spec& spec, const Route& route) {
  system::TargetRequest request;
  request.table = route.target_table;
  request.path = spec.target.arrow;
  request.mode = spec.target.mode;
  request.create = spec.target.create;
  request.replace_dependants = spec.target.replace_dependants == "drop";
  request.key = spec.target.key;
  if (spec.target.partition) {
    request.partition_by = spec.target.partition->by;
    request.partition_column = spec.target.partition->column;
  } else {
    request.partition_by = spec.target.partition_by;
  }
  request.backend = spec.target.backend;
  request.settings_json = spec.target.settings_json;
  request.workers = spec.workers.load.value_or(1);
  request.verify = spec.verify.value_or(system::Verify::count);
  const LoadSpec& load = spec.load;
  request.load = {.commit = load.commit.value_or(system::Commit::transfer),
                  .batch_rows = load.batch_rows,
                  .table_lock = load.table_lock.value_or("auto"),
                  .check_constraints = load.check_constraints,
                  .fire_triggers = load.fire_triggers,
                  .keep_identity = load.keep_identity,
                  .keep_nulls = load.keep_nulls,
                  .freeze = load.freeze,
                  .unlogged = load.unlogged,
                  .tablespace = load.tablespace,
                  .exchange = load.exchange.value_or(false),
                  .analyze = load.analyze,
                  .lock_timeout_ms = load.lock_timeout_ms};
  return request;
}

system::ReadRequest read_request(const Plan& plan) {
  system::ReadRequest request;
  request.what = source_request(plan.spec, plan.route);
  request.columns = plan.match.columns;
  request.slices = {.by = plan.spec.slices.by,
                    .column = plan.spec.slices.column,
                    .count = plan.spec.slices.count,
                    .at_least = limits::slices_per_load_worker * plan.load_workers,
                    .bounds = plan.slice_bounds};
  request.options = {.isolation = plan.spec.read.isolation.value_or(""),
                     .read_only_intent = plan.spec.read.read_only_intent,
                     .lock_timeout_ms = plan.spec.read.lock_timeout_ms,
                     .maxdop = plan.spec.read.maxdop};
  request.workers = plan.spec.workers.export_.value_or(1);
  return request;
}

system::LoadRequest load_request(const Plan& plan, const std::string& transfer_id, int attempt) {
  system::LoadRequest request;
  request.transfer_id = transfer_id;
  request.attempt = attempt;
  request.what = plan.target_request;
  request.plan = plan.target_plan;
  request.columns = plan.match.columns;
  request.primary_key = plan.match.primary_key;
  return request;
}

Task<Plan> make_plan(Spec spec, Route route, std::vector<Notice> notices, std::string resumed) {
  Plan plan;
  plan.spec = std::move(spec);
  plan.slices_asked = plan.spec.slices;
  plan.route = std::move(route);
  plan.notices = std::move(notices);
  plan.source = plan.route.source->make_source();
  plan.target = plan.route.target->make_target();
  plan.target_request = target_request(plan.spec, plan.route);
  std::vector<Task<void>> both;
  both.push_back(describe_source(&plan));
  both.push_back(describe_target(&plan));
  co_await async::when_all(std::move(both));
  if (!resumed.empty() && plan.target_table.exists) {
    const system::Remains remains = co_await plan.target->remains(plan.target_request, resumed);
    const bool by_slices = plan.target_request.load.commit == system::Commit::slice && !remains.slices.empty();
    plan.target_request.own_table = remains.finalized || by_slices;
  }
  check_existence(plan);
  plan.match = match_columns(plan.spec, plan.source_table, plan.target_table, *plan.target);
  co_await plan_target_and_slices(&plan);
  note_drain(plan);
  add_notices(plan.notices, plan.source_table.notices);
  add_notices(plan.notices, plan.target_table.notices);
  add_notices(plan.notices, plan.match.notices);
  add_notices(plan.notices, plan.target_plan.notices);
  add_notices(plan.notices, plan.slices.notices);
  co_return plan;
}

std::string slices_column(const Spec& spec, const system::SlicePlan& slices) {
  for (const system::Slice& slice : slices.slices) {
    if (slice.bounds) return slice.bounds->column;
  }
  return slices.by == spec.slices.by ? spec.slices.column : "";
}

Task<void> replan_columns(Plan& plan, std::vector<system::ColumnPlan> now) {
  if (now.size() != plan.match.columns.size()) {
    throw Error(Category::internal, "columns_changed", "the source has changed the number of columns");
  }
  bool changed = false;
  for (std::size_t i = 0; i < now.size(); ++i) {
    system::ColumnPlan& column = plan.match.columns[i];
    if (now[i].read_type == column.read_type) continue;
    changed = true;
    column.read_type = now[i].read_type;
    if (plan.target_table.exists) continue;
    // Bounded now: what the scan has found decides the created column.
    system::SourceColumn bounded = plan.source_table.columns[plan.match.source_index[i]];
    bounded.type = column.read_type;
    bounded.any_decimal = false;
    const bool in_key = std::ranges::find(plan.match.primary_key, column.source) != plan.match.primary_key.end();
    system::NaturalType natural = plan.target->natural_type(bounded, plan.match.wanted_types[i], in_key);
    column.write_type = natural.type;
    column.target_native = std::move(natural.native);
  }
  if (changed) co_await plan_target(&plan);
}

}  // namespace rowferry::transfer
