// What a decision must not come to: names that the server would cut or fold, rights that the role has not.
#pragma once

#include "postgres/decision.hpp"

namespace rowferry::postgres {

// Of a table that is created, or rebuilt. Error(unsupported, "too_many_columns"), Error(input, "names_collide" /
// "name_too_long" / "name_reserved").
void check_names(const Decision& decision, const TableFacts& table, const std::vector<system::ColumnPlan>& columns);
// Error(forbidden, "right_missing").
void check_rights(const Situation& situation, const Decision& decision, const system::TargetRequest& request);

}  // namespace rowferry::postgres
