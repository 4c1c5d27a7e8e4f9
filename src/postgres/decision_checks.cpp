#include "postgres/decision_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>

#include "base/error.hpp"
#include "postgres/dialect.hpp"

namespace rowferry::postgres {

namespace {

using system::ColumnPlan;
using system::Finalizer;
using system::Mode;
using system::TargetRequest;

constexpr std::size_t columns_max = 1600;   // of a table
constexpr std::size_t name_bytes_max = 63;  // NAMEDATALEN - 1
constexpr std::array system_columns{std::string_view("tableoid"), std::string_view("xmin"), std::string_view("cmin"),
                                    std::string_view("xmax"),     std::string_view("cmax"), std::string_view("ctid")};

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

void check_length(const std::string& name, std::string field) {
  if (name.size() <= name_bytes_max) return;
  throw Error(Category::input, "name_too_long",
              fmt::format("\"{}\" has {} bytes, a name has at most {}", name, name.size(), name_bytes_max))
      .with_field(std::move(field));
}

class RightsCheck {
 public:
  RightsCheck(const Situation& situation, const Decision& decision, const system::TargetRequest& request)
      : at_(situation), table_(situation.table), out_(decision), request_(request) {}

  void run() const {
    const Rights& rights = at_.rights;
    const std::string& table = table_.sql;
    // Existing partitions are emptied and filled by rights of their own; new ones need more.
    const bool renews_only = out_.finalizer == Finalizer::per_slice && !out_.exchange && !table_.partitions.empty();
    const bool makes = (out_.finalizer != Finalizer::direct || out_.creates) && !renews_only;
    if (makes) need(rights.create_in_schema, "CREATE on the schema " + quote_name(table_.schema));
    if (!table_.exists) return;
    const bool owns = out_.rebuilds || out_.finalizer == Finalizer::exchange || out_.make_partitions ||
                      (out_.finalizer == Finalizer::per_slice && !renews_only);
    if (owns) need(rights.owner, "of the owner of " + table);
    if (out_.finalizer == Finalizer::exchange) need(table_.parent_owned, "of the owner of " + table_.parent);
    if (!out_.silenced_triggers.empty() && out_.finalizer != Finalizer::per_slice) {
      need(rights.owner, "of the owner of " + table + ", which silencing its triggers needs",
           "`\"fire_triggers\": true` lets them fire");
    }
    if (out_.finalizer == Finalizer::per_slice) {
      for (const PartitionFacts& part : table_.partitions) check_partition_rights(part);
    }
    if (out_.rebuilds) return;
    need(rights.insert, "INSERT on " + table);
    need(rights.select, "SELECT on " + table);
    if (out_.clear == Decision::Clear::truncate) need(rights.truncate, "TRUNCATE on " + table);
    if (out_.clear == Decision::Clear::remove) need(rights.remove, "DELETE on " + table);
  }

 private:
  // All that are filled are emptied first, and those that no slice fills in the end, unless the source was filtered.
  void check_partition_rights(const PartitionFacts& part) const {
    if (request_.source_filtered) return;
    need(part.may_insert, "INSERT on " + part.sql);
    need(part.may_truncate, "TRUNCATE on " + part.sql);
    const bool silences = out_.quiet_partitions && std::ranges::any_of(part.triggers, &TriggerFacts::fires);
    if (out_.exchange || silences || out_.unlogged) need(part.owned, "of the owner of " + part.sql);
  }

  void need(bool right, const std::string& what, std::string hint = "grant it to the role") const {
    if (right) return;
    throw Error(Category::forbidden, "right_missing",
                fmt::format("the role {} has not the right {}", at_.rights.role, what))
        .with_hint(std::move(hint));
  }

  const Situation& at_;
  const TableFacts& table_;
  const Decision& out_;
  const system::TargetRequest& request_;
};

}  // namespace

void check_kind(const TableFacts& table) {
  if (!table.exists) return;
  switch (table.kind) {
    case 'r':
    case 'p':
      break;
    case 'v':
      throw Error(Category::unsupported, "not_a_table", table.sql + " is no table but a view");
    case 'm':
      throw Error(Category::unsupported, "not_a_table", table.sql + " is no table but a materialized view");
    case 'f':
      throw Error(Category::unsupported, "table_kind", table.sql + " is a foreign table: its rows are elsewhere");
    default:
      throw Error(Category::unsupported, "not_a_table", table.sql + " is no table but another object");
  }
  if (table.persistence == 't') {
    throw Error(Category::unsupported, "table_kind", table.sql + " is a temporary table of another session");
  }
}

void check_names(const Decision& decision, const TableFacts& table, const std::vector<ColumnPlan>& columns) {
  if (decision.staging.size() > columns_max) {
    throw Error(Category::unsupported, "too_many_columns",
                fmt::format("a table has at most {} columns, not {}", columns_max, decision.staging.size()));
  }
  if (!decision.creates) return;
  std::map<std::string, std::string> folded;
  for (const ColumnPlan& column : columns) {
    const std::string& name = column.target;
    // PostgreSQL would cut names; and names without quotes are folded, so that only one of two could be reached.
    const std::string short_name = lower(name.substr(0, name_bytes_max));
    const auto [other, fresh] = folded.emplace(short_name, name);
    if (!fresh) {
      throw Error(Category::input, "names_collide",
                  fmt::format("the columns \"{}\" and \"{}\" {}", other->second, name,
                              name.size() > name_bytes_max ? "are one when cut to 63 bytes" : "differ by case only"))
          .with_column(name)
          .with_hint("name one of them otherwise in `columns`");
    }
  }
  for (const ColumnPlan& column : columns) {
    const std::string& name = column.target;
    check_length(name, "columns");
    if (std::ranges::find(system_columns, name) == system_columns.end()) continue;
    throw Error(Category::input, "name_reserved", fmt::format("\"{}\" is a column of the server's own", name))
        .with_column(name)
        .with_hint("give it another name in `columns`");
  }
  check_length(table.name, "target.table");
}

void check_rights(const Situation& situation, const Decision& decision, const system::TargetRequest& request) {
  RightsCheck(situation, decision, request).run();
}

bool partitioned_otherwise(const TableFacts& table, const TargetRequest& request) {
  return !request.partition_by.empty() &&
         (table.partition_by != request.partition_by || table.partition_column != request.partition_column);
}

bool needs_rebuild(const TableFacts& table, const TargetRequest& request, const std::vector<ColumnPlan>& columns) {
  if (!table.exists || request.mode != Mode::replace) return false;
  if (partitioned_otherwise(table, request)) return true;
  return std::ranges::any_of(columns, [&](const ColumnPlan& plan) {
    const ColumnFacts* const column = table.column(plan.target);
    return column != nullptr && column->native != plan.target_native;
  });
}

void check_table(const Situation& situation, const TargetRequest& request) {
  const TableFacts& table = situation.table;
  if (!table.exists) {
    if (!request.create) {
      throw Error(Category::not_found, "table_missing", fmt::format("the target table {} does not exist", table.sql))
          .with_hint("`\"create\": true` in the target creates it");
    }
    return;
  }
  if (request.mode == Mode::fail_if_exists && !request.own_table && !situation.made_by_us) {
    throw Error(Category::conflict, "target_exists", fmt::format("the target table {} exists", table.sql));
  }
  check_kind(table);
  if (table.row_security) {
    throw Error(Category::forbidden, "row_security",
                fmt::format("row security policies of {} apply to the role {}", table.sql, situation.rights.role))
        .with_hint("load as the table's owner or a role with BYPASSRLS");
  }
}

void check_partition_wish(const Situation& situation, const TargetRequest& request,
                          const std::vector<ColumnPlan>& columns) {
  const TableFacts& table = situation.table;
  if (request.partition_by.empty()) return;
  if (request.partition_by != "list" && request.partition_by != "range") {
    throw Error(Category::input, "bad_value", "a table is partitioned by list or by range")
        .with_field("target.partition.by");
  }
  if (!table.exists) {
    if (std::ranges::find(columns, request.partition_column, &ColumnPlan::target) != columns.end()) return;
    throw Error(Category::input, "partition_column",
                fmt::format("the partition column \"{}\" is not loaded", request.partition_column))
        .with_field("target.partition.column");
  }
  // Mode replace rebuilds it: see needs_rebuild().
  if (!partitioned_otherwise(table, request) || request.mode == Mode::replace) return;
  throw Error(Category::conflict, "partitioned_differently",
              fmt::format("{} is {}, not partitioned by {} ({})", table.sql,
                          table.partitioned() ? "partitioned by " + table.partition_key : "not partitioned",
                          request.partition_by, request.partition_column))
      .with_field("target.partition");
}

}  // namespace rowferry::postgres
