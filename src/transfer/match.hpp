// Column matching: which source column goes into which target column, and as what type.
//
// By exact name, else without case where that is unique on both sides; never by position. An existing target column
// decides the type; for a created one (and for a `type` in the spec) the target names its natural type.
#pragma once

#include "system/system.hpp"
#include "transfer/spec.hpp"

namespace rowferry::transfer {

struct Match {
  std::vector<system::ColumnPlan> columns;    // in reading order
  std::vector<std::size_t> source_index;      // of each column, into SourceTable::columns
  std::vector<std::string> wanted_types;      // of each column: what the spec's `type` asks of the target; may be empty
  std::vector<std::string> unmatched_source;  // not carried: the target has no such column
  std::vector<std::string> unmatched_target;  // get no value
  std::vector<std::string> primary_key;       // of the source (its column names) where all of it is carried, else empty
  std::vector<system::Notice> notices;
  std::vector<std::string> not_carried;
};

// Throws Error(not_found, "column_missing"), Error(input, "column_repeated" / "column_not_writable" /
// "type_conflicts_with_target" / "policy_impossible"), Error(unsupported, "type_mismatch"), Error(conflict,
// "target_column_unfilled"), Error(input, "no_columns_match").
Match match_columns(const Spec& spec, const system::SourceTable& source, const system::TargetTable& target,
                    const system::Target& types);

}  // namespace rowferry::transfer
