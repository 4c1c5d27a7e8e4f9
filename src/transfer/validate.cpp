// The checks that need no server: names, rights, fields that contradict one another or that this route does not have.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/limits.hpp"
#include "transfer/manager.hpp"
#include "transfer/plan.hpp"

namespace rowferry::transfer {

namespace {

using system::Notice;

system::Connection& find(Connections& connections, const std::string& name, std::string field) {
  if (system::Connection* found = connections.find(name)) return *found;
  const std::vector<std::string> names = connections.names();
  const std::vector<std::string_view> known(names.begin(), names.end());
  throw Error(Category::not_found, "connection_unknown", fmt::format("no connection is named \"{}\"", name))
      .with_field(std::move(field))
      .with_hint(known.empty() ? "no connection is configured"
                               : fmt::format("the nearest is \"{}\"", nearest_name(name, known)));
}

system::TableName resolve(const TableRef& table, const system::Connection& connection, std::string field) {
  if (!table.parts.empty()) return {table.parts};
  if (table.text.empty()) return {};
  try {
    return connection.parse_table(table.text);
  } catch (Error& error) {
    error.with_field(std::move(field));
    throw;
  }
}

[[noreturn]] void conflicting(std::string field, std::string detail) {
  throw Error(Category::input, "conflicting_fields", std::move(detail)).with_field(std::move(field));
}

void check_sense(const Spec& spec) {
  using system::SliceBy;
  const SliceBy by = spec.slices.by;
  if (!spec.source.where.empty() && spec.source.table.empty()) {
    conflicting("source.where", "`where` goes with `table`; put the condition into the query itself");
  }
  if (spec.target.mode == system::Mode::merge && spec.target.key.empty()) {
    conflicting("target.key", "mode merge needs `key`");
  }
  if (spec.target.replace_dependants == "drop" && spec.target.mode != system::Mode::replace) {
    conflicting("target.replace_dependants", "`replace_dependants` goes with mode replace");
  }
  if (by == SliceBy::value && spec.slices.column.empty()) conflicting("slices.column", "slices by value need `column`");
  if (!spec.slices.column.empty() && (by == SliceBy::ctid || by == SliceBy::none || by == SliceBy::partition)) {
    conflicting("slices.column", fmt::format("slices by {} use no column", to_string(by)));
  }
  if (by == SliceBy::none && spec.slices.count > 1) conflicting("slices.count", "slices by none are one slice");
  for (std::size_t i = 0; i < spec.columns.size(); ++i) {
    const ColumnSpec& column = spec.columns[i];
    if (column.replacement && column.on_loss != rows::OnLoss::replace) {
      conflicting(fmt::format("columns[{}].replacement", i), "`replacement` goes with on_loss replace");
    }
  }
}

void check_repeated_columns(const Spec& spec) {
  std::set<std::string> targets;
  for (std::size_t i = 0; i < spec.columns.size(); ++i) {
    const ColumnSpec& column = spec.columns[i];
    const std::string& name = column.target.empty() ? column.source : column.target;
    if (targets.insert(name).second) continue;
    throw Error(Category::input, "column_repeated", fmt::format("two columns go into the target column \"{}\"", name))
        .with_field(fmt::format("columns[{}]", i));
  }
}

// Asks both systems for the optional fields that the spec sets away from their defaults.
class Honour {
 public:
  Honour(Spec& spec, const Route& route, std::vector<Notice>& notices)
      : spec_(spec), route_(route), notices_(notices) {}

  void check() {
    check_source();
    check_target();
    check_load();
    check_columns();
  }

 private:
  // False: the field is not available, and only the profile had asked for it.
  bool ask(const system::Connection& side, std::string_view field, std::string_view value, std::string path = "") {
    if (side.honours(field, value)) return true;
    if (path.empty()) path = field;
    if (spec_.filled_by_profile(field)) {
      std::erase(spec_.from_profile, field);
      notices_.push_back({"profile_fallback",
                          fmt::format("{} of the profile {} is not available for this route", field, spec_.profile),
                          ""});
      return false;
    }
    throw Error(Category::unsupported, "not_supported_yet",
                fmt::format("{} ({}) is not available for this route ({})", path, value, route_.name))
        .with_field(path);
  }
  static std::string_view name(bool value) { return value ? "true" : "false"; }

  void check_source() {
    const system::Connection& side = *route_.source;
    if (!spec_.source.arrow.empty()) ask(side, "source.arrow", spec_.source.arrow);
    ReadSpec& read = spec_.read;
    if (read.isolation && !ask(side, "read.isolation", *read.isolation)) read.isolation.reset();
    if (read.read_only_intent) ask(side, "read.read_only_intent", "true");
    if (read.lock_timeout_ms) ask(side, "read.lock_timeout_ms", std::to_string(*read.lock_timeout_ms));
    if (read.maxdop) ask(side, "read.maxdop", std::to_string(*read.maxdop));
  }

  void check_target() {
    const system::Connection& side = *route_.target;
    const TargetSpec& target = spec_.target;
    if (!target.arrow.empty()) ask(side, "target.arrow", target.arrow);
    if (target.mode == system::Mode::merge) ask(side, "target.mode", "merge");
    if (target.partition) ask(side, "target.partition", target.partition->by);
    if (target.backend != "native") ask(side, "target.backend", target.backend);
    if (!target.settings_json.empty()) ask(side, "target.settings", "object");
    if (!target.order_by.empty()) ask(side, "target.order_by", target.order_by.front());
    if (!target.partition_by.empty()) ask(side, "target.partition_by", target.partition_by);
    if (target.compression != "none") ask(side, "target.compression", target.compression);
  }

  void check_load() {
    const system::Connection& side = *route_.target;
    LoadSpec& load = spec_.load;
    if (load.commit == system::Commit::slice && !ask(side, "load.commit", "slice")) {
      load.commit = system::Commit::transfer;
    }
    if (load.table_lock.value_or("auto") != "auto" && !ask(side, "load.table_lock", *load.table_lock)) {
      load.table_lock = "auto";
    }
    if (!load.check_constraints) ask(side, "load.check_constraints", "false");
    if (load.fire_triggers) ask(side, "load.fire_triggers", "true");
    if (!load.keep_identity) ask(side, "load.keep_identity", "false");
    if (!load.keep_nulls) ask(side, "load.keep_nulls", "false");
    if (load.freeze && !ask(side, "load.freeze", name(*load.freeze))) load.freeze.reset();
    if (load.unlogged && !ask(side, "load.unlogged", name(*load.unlogged))) load.unlogged.reset();
    if (load.exchange && !ask(side, "load.exchange", name(*load.exchange))) load.exchange.reset();
    if (!load.tablespace.empty()) ask(side, "load.tablespace", load.tablespace);
    if (load.analyze) ask(side, "load.analyze", "true");
  }

  void check_columns() {
    for (std::size_t i = 0; i < spec_.columns.size(); ++i) {
      const ColumnSpec& column = spec_.columns[i];
      const auto path = [i](std::string_view field) { return fmt::format("columns[{}].{}", i, field); };
      if (column.scan_numeric) ask(*route_.source, "columns.scan_numeric", "true", path("scan_numeric"));
      if (column.keep_offset) ask(*route_.source, "columns.keep_offset", "true", path("keep_offset"));
      if (column.variant_base_type) {
        ask(*route_.source, "columns.variant_base_type", "true", path("variant_base_type"));
      }
    }
  }

  Spec& spec_;
  const Route& route_;
  std::vector<Notice>& notices_;
};

}  // namespace

Route validate_offline(Spec& spec, Connections& connections, std::vector<Notice>& notices) {
  fill_from_profile(spec);
  check_sense(spec);
  check_repeated_columns(spec);
  Route route;
  route.source = &find(connections, spec.source.connection, "source.connection");
  route.target = &find(connections, spec.target.connection, "target.connection");
  route.name = fmt::format("{}_to_{}", route.source->system(), route.target->system());
  if (!route.target->writable()) {
    throw Error(Category::forbidden, "connection_not_writable",
                fmt::format("the connection \"{}\" is not writable", spec.target.connection))
        .with_field("target.connection")
        .with_hint("`writable = true` in its configuration allows it as a target");
  }
  route.source_table = resolve(spec.source.table, *route.source, "source.table");
  route.target_table = resolve(spec.target.table, *route.target, "target.table");
  if (route.source == route.target && !route.source_table.empty() && route.source_table == route.target_table) {
    throw Error(Category::input, "same_table", "source and target are the same table").with_field("target.table");
  }
  Honour(spec, route, notices).check();
  return route;
}

}  // namespace rowferry::transfer
