// Steadiness: whether a source gives the same rows however often it is asked within one snapshot.
//
// Every slice is a statement of its own, in sessions that share a snapshot and nothing else. A `where`, a view or a
// query is evaluated once for each: LIMIT without a total order, row numbers, random(), now() (every session's
// transaction has its own) would give another answer every time, and rows would be lost or come twice.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "postgres/catalogue.hpp"

namespace rowferry::postgres {

// A function that a plan calls, as EXPLAIN (VERBOSE) names it; what it shows without schema is of pg_catalog.
struct CalledFunction {
  std::string schema;
  std::string name;
  bool operator==(const CalledFunction&) const = default;
};

// What SQL text can tell without a server. `unsteady`: why it may give another answer each time; empty: nothing found.
struct Finding {
  std::string unsteady;
  std::vector<CalledFunction> calls;
};
// Of an expression as EXPLAIN (VERBOSE) prints it.
Finding read_expression(std::string_view sql);
// Of text as a user wrote it: only its literals, since 'now' and 'today' are constants by the time a plan is shown.
std::string unsteady_literal(std::string_view sql);
// Of a plan in EXPLAIN's JSON form (PostgreSQL manual, EXPLAIN). A kind of node that is not known to give the same rows
// every time counts as one that does not.
Finding read_plan(std::string_view json);

// Empty: every slice sees the same rows. Else the reason, for people. Plans the statement in the session's transaction.
async::Task<std::string> why_unsteady(Session& session, const Origin& origin);

}  // namespace rowferry::postgres
