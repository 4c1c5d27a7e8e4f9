#include "../support/expect.hpp"
#include "postgres/steadiness.hpp"

using namespace rowferry;
using namespace rowferry::postgres;

namespace {

std::string why(std::string_view expression) { return read_expression(expression).unsteady; }

std::string calls(std::string_view expression) {
  std::string out;
  for (const CalledFunction& call : read_expression(expression).calls) {
    out += (out.empty() ? "" : " ") + call.schema + "." + call.name;
  }
  return out;
}

std::string plan(std::string_view node) { return read_plan("[{\"Plan\": " + std::string(node) + "}]").unsteady; }

}  // namespace

Test(steadiness, functions_are_told_from_types_and_syntax) {
  EXPECT_TEXT(calls("(lower(t.s) = 'lower(x)'::text)"), "pg_catalog.lower");
  EXPECT_TEXT(calls("((t.n)::numeric(10,2) > '1'::numeric)"), "");
  EXPECT_TEXT(calls("((s)::character varying(10))::text = ANY ('{a,b}'::text[])"), "");
  EXPECT_TEXT(calls("(own.f(a) AND (COALESCE(b, 1) = 2))"), "own.f");
  EXPECT_TEXT(calls("(\"Own\".\"F\"(\"lower(\"))"), "Own.F");
  EXPECT_TEXT(calls("(a OPERATOR(own.+) b)"), "pg_catalog.operator");
  EXPECT_TEXT(calls("ARRAY(SubPlan 1)"), "pg_catalog.array");
}

Test(steadiness, the_clock_is_seen_as_a_word_or_a_literal) {
  cr_expect_not(why("(at < CURRENT_TIMESTAMP)").empty());
  cr_expect_not(why("(d = ('now'::cstring)::date)").empty());
  cr_expect_not(unsteady_literal("at < ' Today 10:00'").empty());
  cr_expect_not(unsteady_literal("at <@ '[yesterday,)'").empty());
  cr_expect_not(unsteady_literal("at < $x$now$x$").empty());
  cr_expect_not(unsteady_literal("at < E'\\156ow'").empty());
  cr_expect_not(unsteady_literal("at < U&'\\006eow'").empty());
  cr_expect_not(unsteady_literal("a = E'it\\'s' AND at < 'now'").empty());
  cr_expect(unsteady_literal("now > 1 -- 'now'\n AND \"now\" = 'known' /* 'now' /* */ 'now' */").empty());
  cr_expect(why("(\"current_date\" = 1)").empty());
}

Test(steadiness, a_cast_to_a_type_of_its_own_is_not_trusted) {
  cr_expect_not(why("((t.s)::own.kind = 'a'::own.kind)").empty());
  cr_expect(why("(t.kind = 'a'::own.kind)").empty());
}

Test(steadiness, a_plan_is_judged_with_all_its_steps) {
  const auto steady = [](std::string_view node) { return plan(node).empty(); };
  cr_expect(steady(R"j({"Node Type": "Seq Scan", "Filter": "(id > 5)"})j"));
  cr_expect_not(steady(R"j({"Node Type": "Limit", "Plans": [{"Node Type": "Seq Scan"}]})j"));
  cr_expect_not(
      steady(R"j({"Node Type": "Hash Join", "Plans": [{"Node Type": "Seq Scan"}, {"Node Type": "Limit"}]})j"));
  cr_expect_not(steady(R"j({"Node Type": "Append", "Subplans Removed": 2})j"));
  cr_expect(steady(R"j({"Node Type": "Append", "Subplans Removed": 0})j"));
  cr_expect_not(steady(R"j({"Node Type": "Something New"})j"));
  cr_expect_not(steady(R"j({"Node Type": "Result", "Output": ["1", "CURRENT_DATE"]})j"));
  cr_expect_not(read_plan("[]").unsteady.empty());
  cr_expect_not(read_plan("no JSON").unsteady.empty());
  const std::string called = R"j([{"Plan": {"Node Type": "Result", "Output": ["random()"]}}])j";
  cr_expect_eq(read_plan(called).calls.size(), 1);
}
