// Partitions: which slices a partitioned target wants, and whether slices can be committed one by one.
//
// A slice that is committed on its own renews one partition: the target must be partitioned by list or by range of one
// column, and the source must be cut by just that column, by its values or at the partitions' own bounds.
#pragma once

#include "transfer/plan.hpp"

namespace rowferry::transfer {

// From what the spec asked for (plan.slices_asked): fills plan.spec.slices, plan.slice_bounds and the part of
// plan.target_request that speaks of slices. May be called again after the spec's load has changed. Throws
// Error(conflict, "partitioned_differently"), Error(not_found, "column_missing"), Error(input,
// "commit_slice_needs_partition").
void decide_slices(Plan& plan);

// The source's cuts are such that every slice has a partition of its own. Error(input, "commit_slice_needs_partition").
void check_slices(const Plan& plan, const system::SlicePlan& slices);
// The one slice by value of a source without rows: there is no partition for it.
bool holds_nothing(const system::Slice& slice);

// Renews partitions slice by slice: commit: slice in a mode that replaces rows.
bool renews_partitions(const Plan& plan);

}  // namespace rowferry::transfer
