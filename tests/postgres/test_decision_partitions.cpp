#include "tests/postgres/decision_support.hpp"

using namespace rowferry;
using namespace rowferry::postgres;
using namespace rowferry::postgres::situations;

Test(decision, a_partitioned_table_is_created_and_filled_from_staging) {
  TargetRequest r = request(Mode::append);
  r.create = true;
  r.partition_by = "list";
  r.partition_column = "id";
  const Situation s = missing();
  const Decision d = decide(s, r, both, {"id"});
  cr_expect(d.finalizer == Finalizer::insert_select);
  EXPECT_TEXT(statements(s, d, r),
              lines({"CREATE TABLE \"shop\".\"orders\" (\"id\" integer NOT NULL, \"note\" text, PRIMARY KEY (\"id\")) "
                     "PARTITION BY LIST (\"id\")",
                     "<partitions>", plain_insert, plain_count}));
  r.partition_column = "absent";
  EXPECT_TEXT(code_of(s, r), "partition_column");
}

Test(decision, the_key_of_a_partitioned_table_needs_its_partition_column) {
  TargetRequest r = request(Mode::append);
  r.create = true;
  r.partition_by = "list";
  r.partition_column = "note";
  const Decision d = decide(missing(), r, both, {"id"});
  cr_expect(has_notice(d, "key_left_out"));
  cr_expect(d.create_target[0].find("PRIMARY KEY") == std::string::npos);
  r.key = {"id"};
  EXPECT_TEXT(code_of(missing(), r), "key_impossible");
}

Test(decision, range_partitions_have_the_bounds_of_slices) {
  TargetRequest r = request(Mode::append);
  r.create = true;
  r.partition_by = "range";
  r.partition_column = "id";
  r.slices_by = SliceBy::hash;
  EXPECT_TEXT(code_of(missing(), r), "partition_bounds_unknown");
  r.slices_by = SliceBy::range;
  r.slice_column = "note";
  EXPECT_TEXT(code_of(missing(), r), "partition_bounds_unknown");
  r.slice_column = "id";
  cr_expect(decide(missing(), r, both, {}).make_partitions);
}

Test(decision, a_parent_is_never_unlogged_nor_in_a_tablespace) {
  TargetRequest r = by_slice();
  r.create = true;
  r.partition_by = "list";
  r.partition_column = "id";
  r.load.unlogged = r.load.freeze = true;
  r.load.tablespace = "ram";
  const Decision d = decide(missing(), r, both, {});
  cr_expect(d.finalizer == Finalizer::per_slice);
  cr_expect(d.freeze and d.unlogged);
  EXPECT_TEXT(d.create_target.at(0),
              "CREATE TABLE \"shop\".\"orders\" (\"id\" integer NOT NULL, \"note\" text) PARTITION BY LIST (\"id\")");
  cr_expect(has_notice(d, "unlogged"));
}

Test(decision, a_table_that_is_partitioned_otherwise_is_refused) {
  TargetRequest r = request(Mode::truncate);
  r.partition_by = "list";
  r.partition_column = "note";
  EXPECT_TEXT(code_of(partitioned(), r), "partitioned_differently");
  EXPECT_TEXT(code_of(existing(), r), "partitioned_differently");
  r.partition_column = "id";
  cr_expect(decide(partitioned(), r, both, {}).make_partitions);
  r.partition_by = "range";
  EXPECT_TEXT(code_of(partitioned(), r), "partitioned_differently");
  r.mode = Mode::replace;
  cr_expect(decide(partitioned(), r, both, {}).rebuilds);
  r.load.commit = Commit::slice;
  EXPECT_TEXT(code_of(partitioned(), r), "rebuild_by_slices");
}

Test(decision, commit_by_slice_needs_partitions_by_the_slice_column) {
  const auto refused = [](const Situation& s, TargetRequest r) { return code_of(s, r); };
  EXPECT_TEXT(refused(existing(), by_slice()), "commit_slice_needs_partition");
  Situation hash = partitioned("hash");
  EXPECT_TEXT(refused(hash, by_slice()), "commit_slice_needs_partition");
  Situation expression = partitioned();
  expression.table.partition_column.clear();
  EXPECT_TEXT(refused(expression, by_slice()), "commit_slice_needs_partition");
  TargetRequest r = by_slice();
  r.slice_column = "note";
  EXPECT_TEXT(refused(partitioned(), r), "commit_slice_needs_partition");
  r = by_slice();
  r.slices_by = SliceBy::range;
  EXPECT_TEXT(refused(partitioned(), r), "commit_slice_needs_partition");
  cr_expect(decide(partitioned("range"), r, both, {}).finalizer == Finalizer::per_slice);
  EXPECT_TEXT(code_of(partitioned(), by_slice(), {loaded("note", "text")}), "commit_slice_needs_partition");
  EXPECT_TEXT(refused(partitioned(), by_slice(Mode::append)), "commit_slice_replaces");
  r = by_slice();
  r.create = true;
  EXPECT_TEXT(refused(missing(), r), "commit_slice_needs_partition");
}

Test(decision, commit_by_slice_is_refused_where_partitions_cannot_be_emptied) {
  Situation s = partitioned();
  s.table.referenced_by = {"fk of shop.lines"};
  EXPECT_TEXT(code_of(s, by_slice()), "dependants");
  s = partitioned();
  s.table.partitions[0].may_truncate = false;
  EXPECT_TEXT(code_of(s, by_slice()), "right_missing");
  TargetRequest filtered = by_slice();
  filtered.source_filtered = true;
  cr_expect(has_notice(decide(s, filtered, both, {}), "vanished_kept"));
  s = partitioned();
  s.table.publications = {"pub"};
  TargetRequest unlogged = by_slice();
  unlogged.load.unlogged = true;
  EXPECT_TEXT(code_of(s, unlogged), "unlogged_published");
}

Test(decision, a_role_that_may_truncate_partitions_need_not_own_them) {
  Situation s = partitioned();
  s.rights.owner = s.rights.create_in_schema = false;
  s.table.partitions[0].owned = false;
  cr_expect(decide(s, by_slice(), both, {}).finalizer == Finalizer::per_slice);
  TargetRequest exchange = by_slice();
  exchange.load.exchange = true;
  EXPECT_TEXT(code_of(s, exchange), "right_missing");
  s.table.partitions.clear();
  EXPECT_TEXT(code_of(s, by_slice()), "right_missing");
}

Test(decision, exchange_is_for_partitions) {
  TargetRequest r = request(Mode::truncate);
  r.load.exchange = true;
  EXPECT_TEXT(code_of(existing(), r), "exchange_needs_partitions");
  EXPECT_TEXT(code_of(partitioned(), r), "exchange_needs_slices");
  Situation leaf = existing();
  leaf.table.parent = "shop.all_orders";
  leaf.table.parent_bound = "FOR VALUES IN (1)";
  leaf.table.partition_check = "((id IS NOT NULL) AND (id = 1))";
  leaf.table.parent_owned = true;
  leaf.table.grants = {"SELECT|reader|t"};
  const Decision d = decide(leaf, r, both, {});
  cr_expect(d.finalizer == Finalizer::exchange);
  cr_expect(create_staging(d, "shop", "stage")
                .ends_with("CONSTRAINT rowferry_bound CHECK (((id IS NOT NULL) AND (id = 1))))"));
  EXPECT_TEXT(statements(leaf, d, r),
              lines({"ALTER TABLE shop.all_orders DETACH PARTITION \"shop\".\"orders\"; DROP TABLE "
                     "\"shop\".\"orders\"; ALTER TABLE \"shop\".\"stage\" RENAME TO \"orders\"; ALTER TABLE "
                     "shop.all_orders ATTACH PARTITION \"shop\".\"orders\" FOR VALUES IN (1); ALTER TABLE "
                     "\"shop\".\"orders\" DROP CONSTRAINT rowferry_bound; GRANT SELECT ON TABLE \"shop\".\"orders\" TO "
                     "reader WITH GRANT OPTION",
                     plain_count}));
  r.mode = Mode::append;
  EXPECT_TEXT(code_of(leaf, r), "exchange_replaces");
  r.mode = Mode::truncate;
  leaf.table.parent_owned = false;
  EXPECT_TEXT(code_of(leaf, r), "right_missing");
  leaf.table.parent_owned = true;
  leaf.dependants = {{"view shop.v", "DROP VIEW shop.v"}};
  EXPECT_TEXT(code_of(leaf, r), "dependants");
}

// --- one slice

Test(slice_statements, an_existing_partition_is_emptied) {
  Situation s = partitioned();
  s.table.partitions[0].triggers = {{"tr", 'O'}, {"off", 'D'}};
  TargetRequest r = by_slice();
  r.load.unlogged = true;
  r.load.tablespace = "ram";
  const Decision d = decide(s, r, both, {});
  const SliceStatements one = slice_statements(d, s.table, {.existing = s.table.partitions[0]}, "fresh");
  const std::vector<std::string> before{
      "ALTER TABLE \"shop\".\"orders_1\" DISABLE TRIGGER \"tr\"", "TRUNCATE \"shop\".\"orders_1\"",
      "ALTER TABLE \"shop\".\"orders_1\" SET UNLOGGED", "ALTER TABLE \"shop\".\"orders_1\" SET TABLESPACE \"ram\""};
  cr_expect(one.before == before);
  cr_expect(one.after == std::vector<std::string>{"ALTER TABLE \"shop\".\"orders_1\" ENABLE TRIGGER \"tr\""});
  EXPECT_TEXT(one.table, "\"shop\".\"orders_1\"");
  cr_expect(one.swap.empty() and not one.creates);
}

Test(slice_statements, a_new_partition_is_attached_last) {
  Situation s = partitioned();
  s.table.indexes = {primary_key()};
  s.table.constraints = {{"positive", 'c', "CHECK ((id > 0))"},
                         {"fk", 'f', "FOREIGN KEY (id) REFERENCES shop.other(id)"}};
  const Decision d = decide(s, by_slice(), both, {});
  const SliceStatements one = slice_statements(
      d, s.table,
      {.existing = {}, .schema = "shop", .name = "orders_2", .bound = "FOR VALUES IN ('2')", .check = "\"id\" = 2"},
      "fresh");
  cr_expect(one.creates);
  EXPECT_TEXT(
      one.before.at(0),
      "CREATE TABLE \"shop\".\"orders_2\" (\"id\" integer NOT NULL, \"note\" text, CONSTRAINT \"positive\" CHECK "
      "((id > 0)), CONSTRAINT rowferry_bound CHECK (\"id\" = 2))");
  cr_assert_eq(one.build.size(), 2u);
  EXPECT_TEXT(one.build[0], "ALTER TABLE \"shop\".\"orders_2\" ADD PRIMARY KEY (id)");
  EXPECT_TEXT(one.build[1],
              "ALTER TABLE \"shop\".\"orders_2\" ADD CONSTRAINT \"fk\" FOREIGN KEY (id) REFERENCES shop.other(id)");
  EXPECT_TEXT(one.swap,
              "ALTER TABLE \"shop\".\"orders\" ATTACH PARTITION \"shop\".\"orders_2\" FOR VALUES IN ('2'); ALTER TABLE "
              "\"shop\".\"orders_2\" DROP CONSTRAINT rowferry_bound");
}

// --- bounds

Test(partition_bounds, are_read_as_the_server_prints_them) {
  using Values = std::vector<std::optional<std::string>>;
  const PartitionBound list = parse_bound("FOR VALUES IN ('it''s', '-1', 2, NULL, true, 'a, b)', '\\x01')");
  cr_expect(list.kind == PartitionBound::Kind::list);
  const Values values{"it's", "-1", "2", std::nullopt, "true", "a, b)", "\\x01"};
  cr_expect(list.values == values);
  const PartitionBound range = parse_bound("FOR VALUES FROM ('-1.50', MINVALUE) TO (2.00, MAXVALUE)");
  cr_expect(range.kind == PartitionBound::Kind::range);
  const Values low{"-1.50", std::nullopt};
  const Values high{"2.00", std::nullopt};
  cr_expect(range.low == low);
  cr_expect(range.high == high);
  cr_expect(parse_bound("DEFAULT").is_default());
  cr_expect(parse_bound("FOR VALUES WITH (modulus 4, remainder 1)").kind == PartitionBound::Kind::hash);
  for (const char* bad : {"", "FOR VALUES IN (", "FOR VALUES IN ('a", "FOR VALUES FROM (1)", "FOR VALUES IN (1) x"}) {
    EXPECT_ERROR(parse_bound(bad), "bad_bound");
  }
}
