// The part of a plan that a record keeps, so that a resume whose rows are all staged or committed needs no source.
#pragma once

#include <optional>
#include <string>

#include "transfer/plan.hpp"

namespace rowferry::transfer {

// JSON: columns as they were loaded, key, finalizer, and the target's definition that all of it was made for.
std::string keep_plan(const Plan& plan);
// The plan again, without slices and with the target not yet looked at. Nullopt: nothing was kept (an older record), it
// cannot be read, or slices are committed one by one: then the source has to be asked.
std::optional<Plan> restore_plan(std::string_view kept, const Spec& spec, const Route& route);
// Error(conflict, "target_changed") when the target is no longer what the staged rows were made for.
async::Task<void> check_target_unchanged(Plan& plan);

}  // namespace rowferry::transfer
