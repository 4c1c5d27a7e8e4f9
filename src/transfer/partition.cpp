#include "transfer/partition.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace rowferry::transfer {

namespace {

using system::ColumnPlan;
using system::SliceBy;

struct Partitioning {
  std::string by;      // list | range | hash; empty: not partitioned
  std::string column;  // of the target; empty: not one column
  bool exists = false;
};

std::string text_of(const Partitioning& p) {
  if (p.by.empty()) return "not partitioned";
  return p.column.empty() ? fmt::format("partitioned by {}, not of one column", p.by)
                          : fmt::format("partitioned by {} of \"{}\"", p.by, p.column);
}

[[noreturn]] void needs_partition(std::string field, std::string detail) {
  throw Error(Category::input, "commit_slice_needs_partition", std::move(detail))
      .with_field(std::move(field))
      .with_hint(
          "with load.commit slice, every slice renews one partition of a target that is partitioned by list or range "
          "of the slices' column; load.commit transfer goes through staging");
}

// The target's partitions as they will be: an existing table's, or those that the spec asks for.
Partitioning partitioning_of(const Plan& plan) {
  const system::TargetTable& table = plan.target_table;
  Partitioning found{table.partition_by, table.partition_column, table.exists};
  if (!plan.spec.target.partition) return table.exists ? found : Partitioning{};
  Partitioning asked{plan.spec.target.partition->by, plan.spec.target.partition->column, false};
  if (!table.exists) return asked;
  if (found.by == asked.by && found.column == asked.column) return found;
  if (plan.spec.target.mode == system::Mode::replace) return asked;  // rebuilt
  throw Error(Category::conflict, "partitioned_differently",
              fmt::format("the target table {} is {}", plan.route.target_table.text(), text_of(found)))
      .with_field("target.partition")
      .with_hint("mode replace rebuilds it");
}

const ColumnPlan* carried(const Plan& plan, std::string_view name, std::string ColumnPlan::* side) {
  for (const ColumnPlan& column : plan.match.columns) {
    if (column.part == system::ColumnPart::value && column.*side == name) return &column;
  }
  return nullptr;
}

const ColumnPlan* column_of(const Plan& plan, const Partitioning& p) {
  const ColumnPlan* found = carried(plan, p.column, &ColumnPlan::target);
  if (found != nullptr || p.exists) return found;
  std::vector<std::string_view> names;
  for (const ColumnPlan& column : plan.match.columns) names.push_back(column.target);
  throw Error(Category::not_found, "column_missing", fmt::format("the target will have no column \"{}\"", p.column))
      .with_field("target.partition.column")
      .with_hint(fmt::format("the nearest is \"{}\"", nearest_name(p.column, names)));
}

// What stands in the way of slices that are partitions; nothing: they can be.
struct Obstacle {
  std::string field;
  std::string detail;
};

std::optional<Obstacle> obstacle_of(const Plan& plan, const Partitioning& p, const ColumnPlan* column, SliceBy by) {
  const SlicesSpec& asked = plan.slices_asked;
  if (p.column.empty() || (p.by != "list" && p.by != "range")) {
    return Obstacle{"load.commit", fmt::format("the target is {}", text_of(p))};
  }
  if (column == nullptr) {
    return Obstacle{"columns", fmt::format("the target is {}, and no column of the source goes into it", text_of(p))};
  }
  if (asked.by != SliceBy::automatic && asked.by != by) {
    return Obstacle{"slices.by", fmt::format("the target is {}: its slices are by {}, not by {}", text_of(p),
                                             system::to_string(by), system::to_string(asked.by))};
  }
  if (!asked.column.empty() && asked.column != column->source) {
    return Obstacle{"slices.column", fmt::format("the target is {}: its slices are cut by \"{}\", not by \"{}\"",
                                                 text_of(p), column->source, asked.column)};
  }
  return std::nullopt;
}

// At an existing target's own bounds: anything else would fall into two partitions.
void take_bounds(Plan& plan, const ColumnPlan& column) {
  for (system::SliceBounds bounds : plan.target_table.partition_bounds) {
    bounds.column = column.source;
    plan.slice_bounds.push_back(std::move(bounds));
  }
  if (plan.slices_asked.count > 0 && !plan.slice_bounds.empty()) {
    plan.notices.push_back({"slice_count_ignored", "the slices are cut at the bounds of the target's partitions", ""});
  }
}

void tell_target(Plan& plan) {
  system::TargetRequest& request = plan.target_request;
  request.slices_by = plan.spec.slices.by;
  request.source_filtered = !plan.spec.source.where.empty();
  const ColumnPlan* column = carried(plan, plan.spec.slices.column, &ColumnPlan::source);
  request.slice_column = column == nullptr ? "" : column->target;
}

}  // namespace

bool renews_partitions(const Plan& plan) {
  return plan.target_request.load.commit == system::Commit::slice && plan.spec.target.mode != system::Mode::append;
}

void decide_slices(Plan& plan) {
  plan.spec.slices = plan.slices_asked;
  plan.slice_bounds.clear();
  plan.slices_reason.clear();
  const Partitioning p = partitioning_of(plan);
  const ColumnPlan* column = p.column.empty() ? nullptr : column_of(plan, p);
  const system::LoadOptions& load = plan.target_request.load;
  // In one staging for all of them, slices need not be partitions; but ranges that are to be made are the slices'.
  const bool makes_ranges = p.by == "range" && plan.spec.target.partition;
  if (load.commit == system::Commit::slice || load.exchange || makes_ranges) {
    const SliceBy by = p.by == "range" ? SliceBy::range : SliceBy::value;
    if (const std::optional<Obstacle> obstacle = obstacle_of(plan, p, column, by)) {
      if (renews_partitions(plan)) needs_partition(obstacle->field, obstacle->detail);
    } else {
      plan.spec.slices.by = by;
      plan.spec.slices.column = column->source;
      plan.slices_reason = fmt::format("the target is {}", text_of(p));
      if (p.exists && by == SliceBy::range) take_bounds(plan, *column);
    }
  }
  tell_target(plan);
}

bool holds_nothing(const system::Slice& slice) { return !slice.bounds && slice.row_estimate == 0; }

void check_slices(const Plan& plan, const system::SlicePlan& slices) {
  if (!renews_partitions(plan)) return;
  if (slices.by != plan.spec.slices.by) {
    needs_partition("slices.by", fmt::format("the source cuts by {}, not by {}", system::to_string(slices.by),
                                             system::to_string(plan.spec.slices.by)));
  }
  for (const system::Slice& slice : slices.slices) {
    if (slice.bounds && slice.bounds->column == plan.spec.slices.column) continue;
    if (holds_nothing(slice)) continue;
    needs_partition("slices.by",
                    fmt::format("the slice {} is not one of \"{}\"", slice.predicate, plan.spec.slices.column));
  }
}

}  // namespace rowferry::transfer
