#include <criterion/criterion.h>

#include <algorithm>

#include "tests/support/expect.hpp"
#include "tests/transfer/fakes.hpp"
#include "tests/transfer/service.hpp"
#include "transfer/match.hpp"

using namespace rowferry;
using namespace rowferry::test;
using namespace rowferry::transfer;
using rows::Type;
using rows::TypeId;

namespace {

struct Tables {
  FakeConnections connections;
  std::unique_ptr<system::Target> types = connections.find("warehouse")->make_target();
  Spec spec = parse_spec(plain_spec);
  system::SourceTable source;
  system::TargetTable target;

  Tables() {
    source.columns = default_source_columns();
    source.primary_key = {"id"};
    target.exists = true;
    target.columns = default_target_columns();
  }
  Match match() const { return match_columns(spec, source, target, *types); }
  // "id>id note>remark"
  std::string pairs() const {
    std::string out;
    for (const system::ColumnPlan& column : match().columns) {
      out += (out.empty() ? "" : " ") + column.source + ">" + column.target;
    }
    return out;
  }
  std::string refusal() const {
    try {
      (void)match();
    } catch (const Error& error) {
      return error.field().empty() ? error.code() : error.code() + " at " + error.field();
    }
    return "accepted";
  }
};

bool has_notice(const Match& match, std::string_view code, std::string_view column) {
  return std::ranges::any_of(match.notices,
                             [&](const system::Notice& n) { return n.code == code && n.column == column; });
}

Type text() { return Type::text(); }

}  // namespace

Test(match, exact_names_win_over_case) {
  Tables t;
  t.source.columns = {source_column("ID", text(), "text"), source_column("id", text(), "text")};
  t.target.columns = {target_column("id", text(), "text"), target_column("Id", text(), "text")};
  // ID could only be Id by case, and id is exact: both are unique.
  EXPECT_TEXT(t.pairs(), "ID>Id id>id");
}

Test(match, case_is_ignored_only_where_it_is_unique) {
  Tables t;
  t.source.columns = {source_column("id", text(), "text"), source_column("Note", text(), "text")};
  t.target.columns = {target_column("ID", text(), "text"), target_column("NOTE", text(), "text"),
                      target_column("note", text(), "text")};
  EXPECT_TEXT(t.pairs(), "id>ID");
  cr_expect(has_notice(t.match(), "unmatched_source", "Note"));
  t.source.columns = {source_column("note", text(), "text"), source_column("NOTE", text(), "text")};
  t.target.columns = {target_column("Note", text(), "text"), target_column("x", text(), "text")};
  EXPECT_TEXT(t.refusal(), "no_columns_match");
}

Test(match, never_by_position) {
  Tables t;
  t.source.columns = {source_column("a", text(), "text"), source_column("b", text(), "text")};
  t.target.columns = {target_column("b", text(), "text"), target_column("a", text(), "text")};
  EXPECT_TEXT(t.pairs(), "a>a b>b");
}

Test(match, columns_choose_rename_and_order) {
  Tables t;
  t.target.columns.push_back(target_column("remark", text(), "text"));
  t.spec = parse_spec(with(R"("columns": [{"source": "note", "target": "remark"}, "id"])"));
  EXPECT_TEXT(t.pairs(), "note>remark id>id");
}

Test(match, missing_columns_are_errors_when_named) {
  Tables t;
  t.spec = parse_spec(with(R"("columns": ["id", "nope"])"));
  EXPECT_TEXT(t.refusal(), "column_missing at columns[1].source");
  t.spec = parse_spec(with(R"("columns": ["id", {"source": "note", "target": "nope"}])"));
  EXPECT_TEXT(t.refusal(), "column_missing at columns[1].target");
  t.spec = parse_spec(with(R"("columns": [{"source": "id", "target": "note"}, "note"])"));
  EXPECT_TEXT(t.refusal(), "column_repeated at columns");
}

Test(match, a_target_column_that_needs_a_value_is_an_error) {
  Tables t;
  t.target.columns.push_back(target_column("extra", text(), "text"));
  cr_expect_eq(t.match().unmatched_target, std::vector<std::string>{"extra"});
  t.target.columns.back().nullable = false;
  EXPECT_TEXT(t.refusal(), "target_column_unfilled");
  t.target.columns.back().has_default = true;
  EXPECT_TEXT(t.refusal(), "accepted");
}

Test(match, computed_columns_are_left_out_or_refused_when_named) {
  Tables t;
  t.target.columns[1].insertable = false;
  t.target.columns[1].why_not = "computed";
  EXPECT_TEXT(t.pairs(), "id>id");
  cr_expect(has_notice(t.match(), "not_insertable", "note"));
  t.spec = parse_spec(with(R"("columns": ["id", "note"])"));
  EXPECT_TEXT(t.refusal(), "column_not_writable at columns[1]");
}

Test(match, identity_is_kept_or_left_to_the_server) {
  Tables t;
  t.target.columns[0].identity = true;
  cr_expect(t.match().columns[0].identity);
  t.spec.load.keep_identity = false;
  EXPECT_TEXT(t.pairs(), "note>note");
  cr_expect(has_notice(t.match(), "identity_numbered", "id"));
}

Test(match, types_that_cannot_map_name_the_column_and_both) {
  Tables t;
  t.target.columns[1] = target_column("note", Type::of(TypeId::uuid), "uniqueidentifier");
  t.source.columns[1] = source_column("note", Type::of(TypeId::float64), "double precision");
  t.source.columns[1].can_read_as_text = false;
  std::string text;
  try {
    (void)t.match();
  } catch (const Error& error) {
    text = error.code() + ": " + error.detail();
  }
  cr_expect(text.starts_with("type_mismatch: column \"note\": double precision cannot be loaded into uniqueidentifier"),
            "%s", text.c_str());
}

Test(match, an_unbounded_decimal_reads_as_the_targets) {
  Tables t;
  t.source.columns[1] = source_column("note", Type::decimal(38, 18), "numeric");
  t.source.columns[1].any_decimal = true;
  t.target.columns[1] = target_column("note", Type::decimal(10, 2), "decimal(10,2)");
  cr_expect_eq(t.match().columns[1].read_type, Type::decimal(10, 2));
  t.target.exists = false;
  cr_expect_eq(t.match().columns[1].write_type, Type::decimal(38, 18));
  cr_expect(has_notice(t.match(), "lossy", "note"));
}

Test(match, what_becomes_text_is_read_as_the_source_prints_it) {
  Tables t;
  t.source.columns[1] = source_column("note", Type::of(TypeId::uuid), "uuid");
  t.source.columns[1].text_width = 36;
  const Match match = t.match();
  cr_expect(match.columns[1].read_as_text);
  cr_expect_eq(match.columns[1].read_type, Type::text(36));
}

Test(match, json_on_request_is_read_as_json) {
  Tables t;
  t.source.columns[1].can_read_as_json = true;
  t.target.exists = false;
  t.spec = parse_spec(with(R"("columns": ["id", {"source": "note", "type": "json"}])"));
  cr_expect(t.match().columns[1].read_as_json);
  cr_expect_eq(t.match().columns[1].write_type.id, TypeId::json);
}

Test(match, a_decimal_without_bounds_takes_the_sources_as_it_is) {
  Tables t;
  t.source.columns = {source_column("n", Type::decimal(28, 13), "decimal(28,13)"),
                      source_column("i", Type::of(TypeId::int32), "int")};
  t.source.primary_key.clear();
  t.target.columns = {target_column("n", Type::decimal(38, 18), "numeric"),
                      target_column("i", Type::decimal(38, 18), "numeric")};
  for (system::TargetColumn& column : t.target.columns) column.any_decimal = true;
  const Match match = t.match();
  cr_expect(match.columns[0].write_type == Type::decimal(28, 13));
  cr_expect(match.columns[1].write_type == Type::decimal(38, 18));
  t.source.columns[0].any_decimal = true;
  cr_expect(t.match().columns[0].write_type == Type::decimal(38, 18), "a bound is needed on one side");
}

Test(match, a_type_decides_a_created_column_and_must_agree_with_an_existing_one) {
  Tables t;
  t.spec = parse_spec(with(R"j("columns": ["id", {"source": "note", "type": "nvarchar(5)"}])j"));
  EXPECT_TEXT(t.refusal(), "type_conflicts_with_target at columns[1].type");
  t.spec.target.mode = system::Mode::replace;
  EXPECT_TEXT(t.match().columns[1].target_native, "nvarchar(5)");
  t.spec.target.mode = system::Mode::append;
  t.target.exists = false;
  EXPECT_TEXT(t.match().columns[1].target_native, "nvarchar(5)");
  t.spec.columns[1].type = "no such type";
  EXPECT_TEXT(t.refusal(), "bad_type at columns[1].type");
}

Test(match, policies_that_make_no_sense_are_refused) {
  Tables t;
  t.spec = parse_spec(with(R"("columns": [{"source": "id", "on_loss": "strip"}, "note"])"));
  EXPECT_TEXT(t.refusal(), "policy_impossible at columns[0].on_loss");
  t.spec = parse_spec(with(R"("columns": [{"source": "id", "on_loss": "null"}, "note"])"));
  EXPECT_TEXT(t.refusal(), "policy_impossible at columns[0].on_loss");
  t.spec = parse_spec(with(R"("columns": ["id", {"source": "note", "on_loss": "truncate"}])"));
  EXPECT_TEXT(t.refusal(), "accepted");
  cr_expect_eq(t.match().columns[1].policy.action, rows::OnLoss::truncate);
}

Test(match, a_key_is_carried_only_whole) {
  Tables t;
  t.target.exists = false;
  cr_expect_eq(t.match().primary_key, std::vector<std::string>{"id"});
  cr_expect_not(t.match().columns[0].target_nullable);
  t.source.primary_key = {"id", "line"};
  cr_expect(t.match().primary_key.empty());
  cr_expect_eq(t.match().not_carried.size(), 1);
}

Test(match, null_into_not_null_is_warned_of) {
  Tables t;
  t.target.columns[1].nullable = false;
  cr_expect(has_notice(t.match(), "null_possible", "note"));
}

Test(match, scan_numeric_wants_an_unbounded_numeric) {
  Tables t;
  t.spec = parse_spec(with(R"("columns": [{"source": "id", "scan_numeric": true}, "note"])"));
  EXPECT_TEXT(t.refusal(), "bad_value at columns[0].scan_numeric");
}

Test(match, an_offset_gets_a_text_column_right_after_its_value) {
  Tables t;
  t.source.columns[1] =
      source_column("at", Type::timestamp(rows::TimeUnit::hundred_nano, 7, true), "datetimeoffset(7)");
  t.source.columns[1].has_offset = true;
  t.source.columns.push_back(source_column("note", text(), "text"));
  t.target.exists = false;
  t.spec = parse_spec(with(R"("columns": ["id", {"source": "at", "target": "placed", "keep_offset": true}, "note"])"));
  EXPECT_TEXT(t.pairs(), "id>id at>placed at>placed_offset note>note");
  const Match match = t.match();
  const system::ColumnPlan& part = match.columns[2];
  cr_expect_eq(part.part, system::ColumnPart::offset);
  cr_expect_eq(part.read_type, Type::text(6));
  cr_expect_not(part.read_as_text);
  cr_expect_eq(match.columns[1].part, system::ColumnPart::value);
  cr_expect_eq(match.source_index[2], 1);
  cr_expect_eq(match.wanted_types.size(), 4);
  // Into an existing table by name.
  t.target.exists = true;
  t.target.columns = {
      target_column("id", Type::of(TypeId::int64), "bigint", false), target_column("Placed_Offset", text(), "text"),
      target_column("placed", t.source.columns[1].type, "datetimeoffset"), target_column("note", text(), "text")};
  EXPECT_TEXT(t.pairs(), "id>id at>placed at>Placed_Offset note>note");
  cr_expect(t.match().unmatched_target.empty());
  t.target.columns[1].name = "other";
  EXPECT_TEXT(t.refusal(), "column_missing at columns[1].keep_offset");
}

Test(match, a_variants_base_type_gets_a_text_column) {
  Tables t;
  t.source.columns[1] = source_column("v", text(), "sql_variant");
  t.source.columns[1].variant = true;
  t.target.exists = false;
  t.spec = parse_spec(with(R"("columns": ["id", {"source": "v", "variant_base_type": true}])"));
  EXPECT_TEXT(t.pairs(), "id>id v>v v>v_type");
  cr_expect_eq(t.match().columns[2].part, system::ColumnPart::base_type);
}

Test(match, parts_that_are_not_there_or_whose_name_is_taken_are_refused) {
  Tables t;
  t.target.exists = false;
  t.spec = parse_spec(with(R"("columns": ["id", {"source": "note", "keep_offset": true}])"));
  EXPECT_TEXT(t.refusal(), "bad_value at columns[1].keep_offset");
  t.spec = parse_spec(with(R"("columns": ["id", {"source": "note", "variant_base_type": true}])"));
  EXPECT_TEXT(t.refusal(), "bad_value at columns[1].variant_base_type");
  t.source.columns[1].has_offset = true;
  t.spec = parse_spec(
      with(R"("columns": [{"source": "id", "target": "note_offset"}, {"source": "note", "keep_offset": true}])"));
  EXPECT_TEXT(t.refusal(), "column_repeated at columns[1].keep_offset");
  t.target.exists = true;
  t.target.columns.push_back(target_column("note_offset", Type::of(TypeId::int64), "bigint"));
  t.target.columns[0].nullable = true;
  EXPECT_TEXT(t.refusal(), "column_repeated at columns[1].keep_offset");
}
