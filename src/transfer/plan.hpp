// Plan: everything that is decided before a transfer touches a row. Made by asking both sides; writes nothing.
#pragma once

#include <memory>

#include "async/task.hpp"
#include "net/loop.hpp"
#include "system/system.hpp"
#include "transfer/match.hpp"
#include "transfer/spec.hpp"

namespace rowferry::transfer {

class Connections;

// The two ends of a transfer, with names resolved. The connections outlive it.
struct Route {
  system::Connection* source = nullptr;
  system::Connection* target = nullptr;
  system::TableName source_table;  // empty with query and arrow
  system::TableName target_table;  // empty with arrow
  std::string name;                // postgres_to_mssql
};

// All checks that need no server. Fills the spec from its profile and drops (with a notice) what only the profile asked
// for and the route does not have. Throws Error: not_found connection_unknown, forbidden connection_not_writable,
// unsupported not_supported_yet, input bad_name / conflicting_fields / same_table / column_repeated.
Route validate_offline(Spec& spec, Connections& connections, std::vector<system::Notice>& notices);

struct Plan {
  Spec spec;  // filled; its slices as decided for a partitioned target
  SlicesSpec slices_asked;
  Route route;
  std::unique_ptr<system::Source> source;
  std::unique_ptr<system::Target> target;
  system::SourceTable source_table;
  system::TargetTable target_table;
  Match match;
  system::SlicePlan slices;
  std::vector<system::SliceBounds> slice_bounds;  // that the source must cut at
  std::string slices_reason;                      // why they are cut so; empty: the source decides
  system::TargetPlan target_plan;
  system::TargetRequest target_request;
  std::vector<system::Notice> notices;  // of all, without repetitions
  int load_workers = 1;
  std::vector<std::string> kept_definition;  // of a plan that was restored: the target's, as it then was
};

// Connects to both sides. Errors carry the connection's name.
// `resumed`: the id of a transfer that is resumed; what it has finalized is no conflict. Empty: a new one.
async::Task<Plan> make_plan(Spec spec, Route route, std::vector<system::Notice> notices, std::string resumed);

system::SourceRequest source_request(const Spec& spec, const Route& route);
system::TargetRequest target_request(const Spec& spec, const Route& route);
system::ReadRequest read_request(const Plan& plan);
system::LoadRequest load_request(const Plan& plan, const std::string& transfer_id, int attempt);

// When the run's own scan has changed a column (scan_numeric): the target's type and the target's plan follow.
async::Task<void> replan_columns(Plan& plan, std::vector<system::ColumnPlan> now);

// The source column that slices are cut by; empty: by none, or by something that is no column.
std::string slices_column(const Spec& spec, const system::SlicePlan& slices);

// The lists of the plan that both its forms show.
std::vector<std::string> unmatched_target(const Plan& plan);
std::vector<std::string> not_carried(const Plan& plan);

std::string plan_to_json(const Plan& plan);
std::string plan_to_text(const Plan& plan);

}  // namespace rowferry::transfer
