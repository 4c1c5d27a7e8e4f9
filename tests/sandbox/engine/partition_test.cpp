// Partition functions and schemes, and what the catalogue says of them.
#include "common.hpp"

namespace rowferry::sandbox::engine::testing {

namespace {

void make_partitioned(Client& client) {
  client.run("CREATE PARTITION FUNCTION by_year (date) AS RANGE RIGHT FOR VALUES ('2020-01-01', '2021-01-01')");
  client.run("CREATE PARTITION SCHEME years AS PARTITION by_year ALL TO ([PRIMARY])");
  client.run("CREATE TABLE t (id int NOT NULL, d date NULL) ON years(d)");
  client.run(
      "INSERT t VALUES (1, '2019-12-31'), (2, '2020-01-01'), (3, '2020-12-31'), (4, '2021-01-01'), (5, NULL), (6, "
      "'2030-01-01')");
}

constexpr const char* rows_by_partition =
    "SELECT partition_number, SUM(rows) AS n FROM sys.partitions WHERE object_id = OBJECT_ID(N't') AND index_id IN (0, "
    "1) GROUP BY partition_number ORDER BY partition_number";

}  // namespace

Test(partition, a_value_has_a_partition) {
  World w;
  w.a.run("CREATE PARTITION FUNCTION l (int) AS RANGE LEFT FOR VALUES (10, 20)");
  w.a.run("CREATE PARTITION FUNCTION r (int) AS RANGE RIGHT FOR VALUES (10, 20)");
  ROWS(w.a, "SELECT $PARTITION.l(10), $PARTITION.l(11), $PARTITION.l(20), $PARTITION.l(21), $PARTITION.l(NULL)",
       "1|2|2|3|1");
  ROWS(w.a, "SELECT $PARTITION.r(9), $PARTITION.[r](10), $PARTITION.r(19), $PARTITION.r(20), db.$PARTITION.r('7')",
       "1|2|2|3|1");
  FAILS(w.a, "SELECT $PARTITION.nothing(1)", 208);
}

Test(partition, rows_are_listed_by_partition) {
  World w;
  make_partitioned(w.a);
  ROWS(w.a, rows_by_partition, "1|2 2|2 3|2");
  ROWS(w.a, "SELECT id FROM t WHERE $PARTITION.by_year(d) = 2", "2 3");
  ROWS(w.a, "SELECT id FROM t WHERE $PARTITION.[by_year]([d]) >= 3", "4 6");
  ROWS(w.a, "SELECT id FROM t WHERE $PARTITION.by_year(d) BETWEEN 1 AND 1", "1 5");
  w.a.run("DELETE t WHERE id = 6; INSERT t VALUES (7, '2018-01-01')");
  ROWS(w.a, rows_by_partition, "1|3 2|2 3|1");
  w.a.run("TRUNCATE TABLE t");
  ROWS(w.a, rows_by_partition, "1|0 2|0 3|0");
}

Test(partition, the_catalogue_tells_function_and_column) {
  World w;
  make_partitioned(w.a);
  const std::string query =
      "SELECT f.name AS f, c.name AS c FROM sys.indexes AS i JOIN sys.partition_schemes AS s ON s.data_space_id = "
      "i.data_space_id JOIN sys.partition_functions AS f ON f.function_id = s.function_id JOIN sys.index_columns AS k "
      "ON k.object_id = i.object_id AND k.index_id = i.index_id AND k.partition_ordinal = 1 JOIN sys.columns AS c ON "
      "c.object_id = i.object_id AND c.column_id = k.column_id WHERE i.object_id = OBJECT_ID(N'{}') AND i.index_id IN "
      "(0, 1)";
  const auto of = [&](const std::string& table) {
    std::string sql = query;
    return sql.replace(sql.find("{}"), 2, table);
  };
  ROWS(w.a, of("t"), "by_year|d");
  w.a.run(
      "CREATE TABLE u (id int NOT NULL, d date NOT NULL, CONSTRAINT pk_u PRIMARY KEY CLUSTERED (id, d) ON years(d))");
  ROWS(w.a, of("u"), "by_year|d");
  w.a.run("CREATE TABLE v (id int NOT NULL, d date NOT NULL); CREATE CLUSTERED INDEX c ON v (id) ON years(d)");
  ROWS(w.a, of("v"), "by_year|d");
  w.a.run("CREATE TABLE w (id int NOT NULL, d date NOT NULL)");
  ROWS(w.a, of("w"), "");
  ROWS(w.a, "SELECT name, fanout, boundary_value_on_right FROM sys.partition_functions", "by_year|3|1");
  ROWS(w.a, "SELECT boundary_id, CAST(value AS date) FROM sys.partition_range_values ORDER BY boundary_id",
       "1|2020-01-01 2|2021-01-01");
  ROWS(w.a, "SELECT parameter_id, system_type_id FROM sys.partition_parameters", "1|40");
}

Test(partition, what_cannot_be_is_refused) {
  World w;
  make_partitioned(w.a);
  FAILS(w.a, "CREATE PARTITION FUNCTION by_year (int) AS RANGE FOR VALUES (1)", 2714);
  FAILS(w.a, "CREATE PARTITION FUNCTION twice (int) AS RANGE FOR VALUES (1, 1)", 7708);
  FAILS(w.a, "CREATE PARTITION SCHEME s AS PARTITION by_year TO (a, b)", 7707);
  FAILS(w.a, "CREATE TABLE x (a int) ON nowhere(a)", 1921);
  FAILS(w.a, "CREATE TABLE x (a int) ON years(a)", 7726);
  FAILS(w.a, "CREATE TABLE x (a int) ON years(b)", 1911);
  FAILS(w.a, "DROP PARTITION FUNCTION by_year", 7706);
  FAILS(w.a, "DROP PARTITION SCHEME years", 7717);
  w.a.run("DROP TABLE t; DROP PARTITION SCHEME years; DROP PARTITION FUNCTION by_year");
  ROWS(w.a, "SELECT COUNT(*) FROM sys.partition_functions", "0");
  FAILS(w.a, "DROP PARTITION FUNCTION by_year", 3701);
}

Test(partition, a_rollback_takes_them_back) {
  World w;
  w.a.run("BEGIN TRAN");
  make_partitioned(w.a);
  w.a.run("ROLLBACK");
  ROWS(w.a, "SELECT (SELECT COUNT(*) FROM sys.partition_functions) + (SELECT COUNT(*) FROM sys.partition_schemes)",
       "0");
}

}  // namespace rowferry::sandbox::engine::testing
