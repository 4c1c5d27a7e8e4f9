#include <criterion/criterion.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/json.hpp"
#include "tests/support/expect.hpp"
#include "tests/transfer/service.hpp"
#include "transfer/spec.hpp"

using namespace rowferry;
using namespace rowferry::test;
using namespace rowferry::transfer;

namespace {

// The code of what parsing throws, with its field: "unknown_field at source.tabel".
std::string refusal(const std::string& spec) {
  try {
    (void)parse_spec(spec);
  } catch (const Error& error) {
    return error.field().empty() ? error.code() : error.code() + " at " + error.field();
  }
  return "accepted";
}

std::string hint(const std::string& spec) {
  try {
    (void)parse_spec(spec);
  } catch (const Error& error) {
    return error.hint();
  }
  return "accepted";
}

std::string spec_of(std::string_view source, std::string_view target) {
  return fmt::format(R"({{"source": {{"connection": "shop", {}}}, "target": {{"connection": "w", {}}}}})", source,
                     target);
}

std::string source_is(std::string_view members) { return spec_of(members, R"("table": "t", "mode": "append")"); }
std::string target_is(std::string_view members) { return spec_of(R"("table": "t")", members); }

std::set<std::string> schema_names(const Json& object) {
  std::set<std::string> names;
  const Json* properties = object.find("properties");
  cr_assert_not_null(properties);
  for (const auto& [name, value] : *properties->object()) names.insert(name);
  return names;
}

std::set<std::string> parser_names(std::string_view place) {
  std::set<std::string> names;
  for (const std::string_view name : known_fields(place)) names.emplace(name);
  return names;
}

// Every value of the schema's enum is accepted in the place of "@", and another is not.
void expect_enum(const Json& schema, std::string_view path, const std::string& members) {
  const Json::Array* values = at(at(schema, path), "enum").array();
  cr_assert_not_null(values, "%s has no enum", std::string(path).c_str());
  const auto in_place = [&members](const std::string& value) {
    std::string spec = members;
    return spec.replace(spec.find('@'), 1, value);
  };
  for (const Json& value : *values) EXPECT_TEXT(refusal(in_place(value.text())), "accepted");
  cr_expect_neq(refusal(in_place("\"no such\"")), "accepted");
}

}  // namespace

Test(spec, the_smallest_one_is_accepted) {
  const Spec spec = parse_spec(plain_spec);
  EXPECT_TEXT(spec.source.connection, "shop");
  EXPECT_TEXT(spec.source.table.text, "public.orders");
  cr_expect_eq(spec.target.mode, system::Mode::append);
  cr_expect(spec.columns.empty());
}

Test(spec, a_table_may_be_a_list_of_exact_parts) {
  const Spec spec = parse_spec(source_is(R"("table": ["my.schema", "a.b"])"));
  cr_assert_eq(spec.source.table.parts.size(), 2);
  EXPECT_TEXT(spec.source.table.parts[0], "my.schema");
  EXPECT_TEXT(refusal(source_is(R"("table": [])")), "bad_value at source.table");
  EXPECT_TEXT(refusal(source_is(R"("table": ["a", 3])")), "bad_value at source.table[1]");
  EXPECT_TEXT(refusal(source_is(R"("table": 7)")), "bad_value at source.table");
  EXPECT_TEXT(refusal(source_is(R"("table": ["a","b","c","d","e"])")), "bad_value at source.table");
}

Test(spec, an_unknown_field_names_its_path_and_the_nearest) {
  EXPECT_TEXT(refusal(source_is(R"("tabel": "t")")), "unknown_field at source.tabel");
  EXPECT_TEXT(hint(source_is(R"("tabel": "t")")), "the nearest known one is \"table\"");
  EXPECT_TEXT(refusal(with(R"("worker": {})")), "unknown_field at worker");
  EXPECT_TEXT(hint(with(R"("worker": {})")), "the nearest known one is \"workers\"");
  EXPECT_TEXT(refusal(with(R"("columns": ["id", {"source": "a", "onloss": "null"}])")),
              "unknown_field at columns[1].onloss");
  EXPECT_TEXT(hint(with(R"("columns": [{"source": "a", "onloss": "null"}])")), "the nearest known one is \"on_loss\"");
  EXPECT_TEXT(refusal(target_is(R"("table": "t", "mode": "append", "partition": {"by": "list", "colum": "x"})")),
              "unknown_field at target.partition.colum");
}

Test(spec, missing_and_conflicting_fields_are_named) {
  EXPECT_TEXT(refusal("{}"), "missing_field at source");
  EXPECT_TEXT(refusal(R"({"source": {"connection": "a", "table": "t"}})"), "missing_field at target");
  EXPECT_TEXT(refusal(source_is(R"("where": "x > 0")")), "missing_field at source.table");
  EXPECT_TEXT(refusal(source_is(R"("table": "t", "query": "select 1")")), "conflicting_fields at source.query");
  EXPECT_TEXT(refusal(target_is(R"("table": "t")")), "missing_field at target.mode");
  EXPECT_TEXT(refusal(target_is(R"("mode": "append")")), "missing_field at target.table");
}

Test(spec, malformed_documents_are_refused) {
  EXPECT_TEXT(refusal("{"), "malformed_json");
  EXPECT_TEXT(refusal("[]"), "bad_value");
  EXPECT_TEXT(refusal(std::string(40, '[') + std::string(40, ']')), "json_too_deep");
  EXPECT_TEXT(refusal(R"({"source": 3, "target": {}})"), "bad_value at source");
}

Test(spec, wrong_values_are_named) {
  EXPECT_TEXT(refusal(with(R"("workers": {"export": 0})")), "bad_value at workers.export");
  EXPECT_TEXT(refusal(with(R"("workers": {"load": 65})")), "bad_value at workers.load");
  EXPECT_TEXT(refusal(with(R"("workers": {"load": 1.5})")), "bad_value at workers.load");
  EXPECT_TEXT(refusal(with(R"("slices": {"count": 10001})")), "bad_value at slices.count");
  EXPECT_TEXT(refusal(with(R"("columns": [])")), "bad_value at columns");
  EXPECT_TEXT(refusal(with(R"("columns": [7])")), "bad_value at columns[0]");
  EXPECT_TEXT(refusal(with(R"("load": {"table_lock": "yes"})")), "bad_value at load.table_lock");
  EXPECT_TEXT(refusal(with(R"("read": {"drain": "true"})")), "bad_value at read.drain");
  EXPECT_TEXT(refusal(source_is("\"table\": \"a\\u0000b\"")), "bad_value at source.table");
  EXPECT_TEXT(refusal(source_is(R"("table": "")")), "bad_value at source.table");
  EXPECT_TEXT(refusal(target_is(R"("table": "t", "mode": "merge", "key": ["a", "b", "a"])")),
              "bad_value at target.key[2]");
}

Test(spec, the_memory_budget_may_have_a_unit) {
  cr_expect_eq(*parse_spec(with(R"("read": {"memory_budget": "512 MiB"})")).read.memory_budget, 512ULL << 20U);
  cr_expect_eq(*parse_spec(with(R"("read": {"memory_budget": "2GiB"})")).read.memory_budget, 2ULL << 30U);
  cr_expect_eq(*parse_spec(with(R"("read": {"memory_budget": 1048576})")).read.memory_budget, 1048576);
  EXPECT_TEXT(refusal(with(R"("read": {"memory_budget": "512 MB"})")), "bad_value at read.memory_budget");
  EXPECT_TEXT(refusal(with(R"("read": {"memory_budget": 1000})")), "bad_value at read.memory_budget");
  EXPECT_TEXT(refusal(with(R"("read": {"memory_budget": "99999999999999999999 GiB"})")),
              "bad_value at read.memory_budget");
}

Test(spec, column_settings_are_read) {
  const Spec spec = parse_spec(with(
      R"j("columns": ["id", {"source": "note", "target": "remark", "type": "nvarchar(200)", "on_loss": "replace",
          "replacement": ""}])j"));
  cr_assert_eq(spec.columns.size(), 2);
  EXPECT_TEXT(spec.columns[1].target, "remark");
  EXPECT_TEXT(spec.columns[1].type, "nvarchar(200)");
  cr_expect_eq(*spec.columns[1].on_loss, rows::OnLoss::replace);
  EXPECT_TEXT(*spec.columns[1].replacement, "");
}

Test(spec, the_parser_knows_what_the_schema_defines) {
  const Json schema = Json::parse(spec_schema());
  cr_expect(parser_names("") == schema_names(schema));
  for (const std::string_view name : {"source", "target", "slices", "workers", "read", "load"}) {
    cr_expect(parser_names(name) == schema_names(at(schema, fmt::format("properties.{}", name))), "%s differs",
              std::string(name).c_str());
  }
  cr_expect(parser_names("target.partition") == schema_names(at(schema, "properties.target.properties.partition")));
  cr_expect(parser_names("columns[]") == schema_names(at(schema, "$defs.column")));
}

Test(spec, every_choice_of_the_schema_is_accepted_and_no_other) {
  const Json schema = Json::parse(spec_schema());
  const std::string target = "properties.target.properties.";
  const std::string in_target = R"("table": "t", "mode": "append", )";
  expect_enum(schema, target + "mode", target_is(R"("table": "t", "mode": @)"));
  for (const std::string field : {"replace_dependants", "backend", "compression"}) {
    expect_enum(schema, target + field, target_is(in_target + "\"" + field + "\": @"));
  }
  expect_enum(schema, "properties.slices.properties.by", with(R"("slices": {"by": @})"));
  expect_enum(schema, "properties.read.properties.isolation", with(R"("read": {"isolation": @})"));
  expect_enum(schema, "properties.load.properties.commit", with(R"("load": {"commit": @})"));
  expect_enum(schema, "properties.load.properties.table_lock", with(R"("load": {"table_lock": @})"));
  expect_enum(schema, "properties.verify", with(R"("verify": @)"));
  expect_enum(schema, "properties.profile", with(R"("profile": @)"));
  expect_enum(schema, "$defs.column.properties.on_loss", with(R"("columns": [{"source": "a", "on_loss": @}])"));
}

Test(spec, a_profile_fills_what_is_left_out) {
  Spec spec = parse_spec(with(R"("workers": {"load": 5}, "profile": "low_memory")"));
  fill_from_profile(spec);
  cr_expect_eq(*spec.workers.load, 5);
  cr_expect_eq(*spec.workers.export_, 1);
  cr_expect(spec.filled_by_profile("workers.export"));
  cr_expect_not(spec.filled_by_profile("workers.load"));
  cr_expect_eq(*spec.read.memory_budget, 64ULL << 20U);
  Spec plain = parse_spec(plain_spec);
  fill_from_profile(plain);
  EXPECT_TEXT(plain.profile, "high_throughput_safe");
  cr_expect_eq(*plain.workers.export_, 2);
  cr_expect_eq(*plain.load.commit, system::Commit::transfer);
  Spec gentle = parse_spec(with(R"("profile": "gentle_source")"));
  fill_from_profile(gentle);
  cr_expect(*gentle.read.drain);
  EXPECT_TEXT(*gentle.read.isolation, "auto");
  Spec disposable = parse_spec(with(R"("profile": "disposable_copy", "load": {"freeze": false})"));
  fill_from_profile(disposable);
  cr_expect_eq(*disposable.load.commit, system::Commit::slice);
  cr_expect_not(*disposable.load.freeze);
  cr_expect(*disposable.load.unlogged);
}

Test(spec, the_filled_spec_is_a_spec_again) {
  const std::string full = with(R"("columns": ["id", {"source": "note", "target": "remark", "on_loss": "truncate"}],
     "slices": {"by": "value", "column": "store", "count": 4}, "workers": {"export": 3, "load": 1},
     "read": {"isolation": "snapshot", "drain": true, "memory_budget": "2 MiB", "maxdop": 2},
     "load": {"batch_rows": 1000, "table_lock": true, "fire_triggers": true, "tablespace": "fast"},
     "verify": "content", "profile": "gentle_source")");
  Spec spec = parse_spec(full);
  fill_from_profile(spec);
  const std::string filled = to_json(spec);
  Spec again = parse_spec(filled);
  fill_from_profile(again);
  EXPECT_TEXT(to_json(again), filled);
  cr_expect_eq(again.read.maxdop, 2);
  EXPECT_TEXT(again.load.tablespace, "fast");
}

Test(spec, nearest_names_are_found_for_any_name) {
  const std::array<std::string_view, 3> names{"table", "query", "where"};
  EXPECT_TEXT(std::string(nearest_name("tabel", names)), "table");
  EXPECT_TEXT(std::string(nearest_name("wher", names)), "where");
  cr_expect_not(nearest_name(std::string(100'000, 'q'), names).empty());
  cr_expect(nearest_name("x", {}).empty());
}
