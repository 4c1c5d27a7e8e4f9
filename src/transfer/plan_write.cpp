// The plan as JSON (POST /v1/plan, rowferry plan) and as text for people.
#include <fmt/format.h>

#include <algorithm>

#include "transfer/documents.hpp"
#include "transfer/plan.hpp"

namespace rowferry::transfer {

namespace {

using system::ColumnPlan;

void write_column(JsonWriter& json, const ColumnPlan& column) {
  json.begin_object();
  json.field("source", column.source).field("target", column.target);
  json.field("source_type", column.source_native).field("target_type", column.target_native);
  json.field("read_as", rows::to_string(column.read_type)).field("write_as", rows::to_string(column.write_type));
  json.field("source_nullable", column.source_nullable).field("target_nullable", column.target_nullable);
  if (column.read_as_text) json.field("read_as_text", true);
  if (column.read_as_json) json.field("read_as_json", true);
  if (column.part != system::ColumnPart::value) json.field("part", system::to_string(column.part));
  if (column.identity) json.field("identity", true);
  json.field("compared", column.compared);
  json.field("on_loss", to_string(column.policy.action));
  if (column.policy.replacement) json.field("replacement", *column.policy.replacement);
  json.end_object();
}

void write_side(JsonWriter& json, std::string_view name, const std::string& connection, const system::TableName& table,
                const system::Server& server) {
  json.key(name).begin_object();
  json.field("connection", connection);
  if (!table.empty()) {
    json.key("table").begin_array();
    for (const std::string& part : table.parts) json.value(part);
    json.end_array();
  }
  json.field("product", server.product).field("version", server.version);
  json.end_object();
}

void write_slices(JsonWriter& json, const Plan& plan) {
  json.key("slices").begin_object();
  json.field("by", system::to_string(plan.slices.by));
  const std::string column = slices_column(plan.spec, plan.slices);
  json.key("column");
  column.empty() ? json.null() : json.value(column);
  json.field("reason", plan.slices.reason);
  json.field("count", plan.slices.slices.size());
  json.key("list").begin_array();
  for (const system::Slice& slice : plan.slices.slices) {
    json.begin_object();
    json.field("index", slice.index).field("predicate", slice.predicate).field("row_estimate", slice.row_estimate);
    json.end_object();
  }
  json.end_array();
  json.end_object();
}

std::string text_side(std::string_view label, const std::string& connection, const system::TableName& table,
                      const system::Server& server) {
  return fmt::format("{:<10} {} {} ({} {})\n", label, connection, table.empty() ? "(query)" : table.text(),
                     server.product, server.version);
}

std::string text_columns(const std::vector<ColumnPlan>& columns) {
  std::size_t names = 6;
  std::size_t types = 4;
  for (const ColumnPlan& column : columns) {
    names = std::max(names, column.source.size());
    types = std::max(types, column.source_native.size());
  }
  std::string out = "\ncolumns\n";
  for (const ColumnPlan& column : columns) {
    out += fmt::format("  {:<{}}  {:<{}}  ->  {} {}{}{}{}\n", column.source, names, column.source_native, types,
                       column.target, column.target_native, column.target_nullable ? "" : " NOT NULL",
                       column.read_as_text   ? "  (read as text)"
                       : column.read_as_json ? "  (read as json)"
                                             : "",
                       column.policy.action == rows::OnLoss::error
                           ? ""
                           : fmt::format("  (on_loss {})", to_string(column.policy.action)));
  }
  return out;
}

std::string text_list(std::string_view title, const std::vector<std::string>& items) {
  if (items.empty()) return "";
  std::string out = fmt::format("\n{}\n", title);
  for (const std::string& item : items) out += fmt::format("  {}\n", item);
  return out;
}

}  // namespace

std::string plan_to_json(const Plan& plan) {
  JsonWriter json(2);
  json.begin_object();
  json.field("route", plan.route.name);
  json.key("spec").raw(to_json(plan.spec));
  write_side(json, "source", plan.spec.source.connection, plan.route.source_table, plan.source_table.server);
  write_side(json, "target", plan.spec.target.connection, plan.route.target_table, plan.target_table.server);
  json.field("target_exists", plan.target_table.exists).field("creates", plan.target_plan.creates);
  json.field("consistency", system::to_string(plan.slices.consistency));
  json.field("finalizer", system::to_string(plan.target_plan.finalizer));
  json.field("finalizer_reason", plan.target_plan.finalizer_reason);
  json.key("workers").begin_object();
  json.field("export", plan.spec.workers.export_.value_or(1)).field("load", plan.load_workers);
  json.end_object();
  json.field("row_estimate", plan.source_table.row_estimate);
  json.field("byte_estimate", plan.source_table.byte_estimate);
  json.key("columns").begin_array();
  for (const ColumnPlan& column : plan.match.columns) write_column(json, column);
  json.end_array();
  write_texts(json, "unmatched_source", plan.match.unmatched_source);
  write_texts(json, "unmatched_target", unmatched_target(plan));
  write_texts(json, "not_carried", not_carried(plan));
  write_texts(json, "dropped", plan.target_plan.dropped);
  write_slices(json, plan);
  write_texts(json, "statements", plan.target_plan.statements);
  write_notices(json, "warnings", plan.notices);
  json.end_object();
  return json.take();
}

std::string plan_to_text(const Plan& plan) {
  const Spec& spec = plan.spec;
  std::string out = fmt::format("{:<10} {}\n", "route", plan.route.name);
  out += text_side("source", spec.source.connection, plan.route.source_table, plan.source_table.server);
  out += text_side("target", spec.target.connection, plan.route.target_table, plan.target_table.server);
  out += fmt::format("{:<10} {}{}\n", "mode", system::to_string(spec.target.mode),
                     plan.target_plan.creates ? ", creates the table" : "");
  out += fmt::format("{:<10} {}: {}\n", "finalizer", system::to_string(plan.target_plan.finalizer),
                     plan.target_plan.finalizer_reason);
  out += fmt::format("{:<10} {} by {}: {}\n", "slices", plan.slices.slices.size(), system::to_string(plan.slices.by),
                     plan.slices.reason);
  out += fmt::format("{:<10} {}\n", "consistent", system::to_string(plan.slices.consistency));
  out += fmt::format("{:<10} {} export, {} load\n", "workers", spec.workers.export_.value_or(1), plan.load_workers);
  if (plan.source_table.row_estimate) out += fmt::format("{:<10} about {}\n", "rows", *plan.source_table.row_estimate);
  out += text_columns(plan.match.columns);
  out += text_list("source columns without a counterpart (not carried)", plan.match.unmatched_source);
  out += text_list("target columns that get no value", unmatched_target(plan));
  out += text_list("not carried into the created table", not_carried(plan));
  out += text_list("dropped by the rebuild", plan.target_plan.dropped);
  out += text_list("statements", plan.target_plan.statements);
  std::vector<std::string> notices;
  for (const system::Notice& notice : plan.notices) {
    notices.push_back(notice.column.empty() ? fmt::format("{}: {}", notice.code, notice.text)
                                            : fmt::format("{} ({}): {}", notice.code, notice.column, notice.text));
  }
  out += text_list("warnings", notices);
  return out;
}

std::vector<std::string> unmatched_target(const Plan& plan) {
  std::vector<std::string> names = plan.match.unmatched_target;
  for (const std::string& name : plan.target_plan.unmatched_target) {
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return names;
}

std::vector<std::string> not_carried(const Plan& plan) {
  std::vector<std::string> parts;
  if (plan.target_plan.creates || !plan.target_table.exists) parts = plan.source_table.not_carried;
  parts.insert(parts.end(), plan.match.not_carried.begin(), plan.match.not_carried.end());
  return parts;
}

}  // namespace rowferry::transfer
