// What a decision must not come to: names that the server would cut or fold, rights that the role has not.
#pragma once

#include "postgres/decision.hpp"

namespace rowferry::postgres {

// Error(not_found, "table_missing"), Error(conflict, "target_exists"), Error(forbidden, "row_security"), and
// check_kind's.
void check_table(const Situation& situation, const system::TargetRequest& request);
// Error(input, "bad_value" / "partition_column"), Error(conflict, "partitioned_differently").
void check_partition_wish(const Situation& situation, const system::TargetRequest& request,
                          const std::vector<system::ColumnPlan>& columns);
// The table's partitioning is not the one that the request asks for.
bool partitioned_otherwise(const TableFacts& table, const system::TargetRequest& request);
// Of a table that is created, or rebuilt. Error(unsupported, "too_many_columns"), Error(input, "names_collide" /
// "name_too_long" / "name_reserved").
void check_names(const Decision& decision, const TableFacts& table, const std::vector<system::ColumnPlan>& columns);
// Error(forbidden, "right_missing").
void check_rights(const Situation& situation, const Decision& decision, const system::TargetRequest& request);

}  // namespace rowferry::postgres
