#include "transfer/kept_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <type_traits>

#include "base/json.hpp"
#include "base/limits.hpp"

namespace rowferry::transfer {

namespace {

using system::ColumnPlan;
using system::TargetColumn;

[[noreturn]] void unreadable(std::string_view what) {
  throw Error(Category::internal, "record_damaged", fmt::format("a kept plan cannot be read: {}", what));
}

void write_type(JsonWriter& json, std::string_view name, const rows::Type& type) {
  json.key(name).begin_array();
  json.value(static_cast<int>(type.id)).value(type.precision).value(type.scale);
  json.value(static_cast<int>(type.unit)).value(type.digits).value(static_cast<int>(type.quantum)).value(type.zoned);
  json.value(type.length).value(static_cast<int>(type.length_unit)).value(type.padded).value(type.code_page);
  json.value(type.no_nul).value(type.finite).value(type.min).value(type.max);
  json.end_array();
}

void write_column(JsonWriter& json, const ColumnPlan& column) {
  json.begin_object();
  json.field("source", column.source).field("target", column.target);
  write_type(json, "read_type", column.read_type);
  write_type(json, "write_type", column.write_type);
  json.field("source_nullable", column.source_nullable).field("target_nullable", column.target_nullable);
  json.field("source_native", column.source_native).field("target_native", column.target_native);
  json.field("read_as_text", column.read_as_text).field("read_as_json", column.read_as_json);
  json.field("part", static_cast<int>(column.part));
  json.field("identity", column.identity).field("compared", column.compared);
  json.field("on_loss", static_cast<int>(column.policy.action)).field("replacement", column.policy.replacement);
  json.end_object();
}

// What the loaded rows were made for: differs when the target is another now.
std::vector<std::string> definition_of(const system::TargetTable& table) {
  std::vector<std::string> out;
  for (const TargetColumn& column : table.columns) {
    out.push_back(fmt::format("{} {}{}{}{}", column.name, column.native, column.nullable ? "" : " NOT NULL",
                              column.identity ? " identity" : "", column.insertable ? "" : " not insertable"));
  }
  return out;
}

void write_texts(JsonWriter& json, std::string_view name, const std::vector<std::string>& texts) {
  json.key(name).begin_array();
  for (const std::string& text : texts) json.value(text);
  json.end_array();
}

void write_server(JsonWriter& json, std::string_view name, const system::Server& server) {
  json.key(name).begin_object().field("product", server.product).field("version", server.version).end_object();
}

const Json& need(const Json& json, std::string_view name) {
  const Json* found = json.find(name);
  if (found == nullptr) unreadable(name);
  return *found;
}
std::string text_of(const Json& json, std::string_view name) {
  const std::string* text = need(json, name).string();
  if (text == nullptr) unreadable(name);
  return *text;
}
bool flag_of(const Json& value) {
  if (value.boolean() == nullptr) unreadable("a flag");
  return *value.boolean();
}
bool flag_of(const Json& json, std::string_view name) { return flag_of(need(json, name)); }
const Json::Array& list_of(const Json& json, std::string_view name) {
  const Json::Array* list = need(json, name).array();
  if (list == nullptr) unreadable(name);
  return *list;
}
template <class T>
T number_of(const Json& value, T most) {
  const std::optional<std::int64_t> number = value.int64();
  if (!number || *number < 0 || *number > static_cast<std::int64_t>(most)) unreadable("a number");
  return static_cast<T>(*number);
}
std::vector<std::string> texts_of(const Json& json, std::string_view name) {
  std::vector<std::string> out;
  for (const Json& item : list_of(json, name)) {
    if (item.string() == nullptr) unreadable(name);
    out.push_back(*item.string());
  }
  return out;
}
system::Server server_of(const Json& json, std::string_view name) {
  const Json& server = need(json, name);
  return {text_of(server, "product"), text_of(server, "version")};
}

rows::Type type_of(const Json& json, std::string_view name) {
  const Json::Array& parts = list_of(json, name);
  if (parts.size() != 15) unreadable(name);
  constexpr std::uint8_t byte = 255;
  rows::Type type;
  type.id = number_of(parts[0], rows::TypeId::binary);
  type.precision = number_of(parts[1], byte);
  type.scale = number_of(parts[2], byte);
  type.unit = number_of(parts[3], rows::TimeUnit::hundred_nano);
  type.digits = number_of(parts[4], byte);
  type.quantum = number_of(parts[5], rows::Quantum::minute);
  type.zoned = flag_of(parts[6]);
  type.length = number_of(parts[7], std::numeric_limits<std::uint32_t>::max());
  type.length_unit = number_of(parts[8], rows::LengthUnit::bytes);
  type.padded = flag_of(parts[9]);
  type.code_page = number_of(parts[10], std::numeric_limits<std::uint16_t>::max());
  type.no_nul = flag_of(parts[11]);
  type.finite = flag_of(parts[12]);
  if (!parts[13].int64() || !parts[14].int64()) unreadable(name);
  type.min = *parts[13].int64();
  type.max = *parts[14].int64();
  return type;
}

ColumnPlan column_of(const Json& json) {
  ColumnPlan column;
  column.source = text_of(json, "source");
  column.target = text_of(json, "target");
  column.read_type = type_of(json, "read_type");
  column.write_type = type_of(json, "write_type");
  column.source_nullable = flag_of(json, "source_nullable");
  column.target_nullable = flag_of(json, "target_nullable");
  column.source_native = text_of(json, "source_native");
  column.target_native = text_of(json, "target_native");
  column.read_as_text = flag_of(json, "read_as_text");
  column.read_as_json = flag_of(json, "read_as_json");
  column.part = number_of(need(json, "part"), system::ColumnPart::base_type);
  column.identity = flag_of(json, "identity");
  column.compared = flag_of(json, "compared");
  column.policy.action = number_of(need(json, "on_loss"), rows::OnLoss::strip);
  const Json& replacement = need(json, "replacement");
  if (replacement.string() != nullptr) column.policy.replacement = *replacement.string();
  return column;
}

system::Finalizer finalizer_of(const std::string& name) {
  using system::Finalizer;
  for (const Finalizer one : {Finalizer::switch_partition, Finalizer::rename, Finalizer::insert_select,
                              Finalizer::direct, Finalizer::exchange, Finalizer::per_slice}) {
    if (system::to_string(one) == name) return one;
  }
  unreadable("finalizer");
}

system::SliceBy slice_by_of(const std::string& name) {
  using system::SliceBy;
  for (const SliceBy one :
       {SliceBy::automatic, SliceBy::ctid, SliceBy::range, SliceBy::value, SliceBy::hash, SliceBy::partition}) {
    if (system::to_string(one) == name) return one;
  }
  return SliceBy::none;
}

Plan read_plan(const Json& json, const Spec& spec, const Route& route) {
  Plan plan;
  plan.spec = spec;
  plan.route = route;
  plan.source = route.source->make_source();
  plan.target = route.target->make_target();
  plan.target_request = target_request(spec, route);
  for (const Json& column : list_of(json, "columns")) plan.match.columns.push_back(column_of(column));
  plan.match.primary_key = texts_of(json, "primary_key");
  plan.source_table.server = server_of(json, "source_server");
  plan.target_table.server = server_of(json, "target_server");
  plan.target_plan.finalizer = finalizer_of(text_of(json, "finalizer"));
  plan.target_plan.finalizer_reason = text_of(json, "finalizer_reason");
  plan.target_plan.creates = flag_of(json, "creates");
  plan.kept_definition = texts_of(json, "target_definition");
  plan.slices.by = slice_by_of(text_of(json, "slices_by"));
  plan.slices.reason = text_of(json, "slices_reason");
  plan.source_table.row_estimate = need(json, "row_estimate").uint64();
  plan.load_workers = number_of(need(json, "load_workers"), limits::workers_max);
  return plan;
}

}  // namespace

std::string keep_plan(const Plan& plan) {
  JsonWriter json;
  json.begin_object().key("columns").begin_array();
  for (const ColumnPlan& column : plan.match.columns) write_column(json, column);
  json.end_array();
  write_texts(json, "primary_key", plan.match.primary_key);
  write_server(json, "source_server", plan.source_table.server);
  write_server(json, "target_server", plan.target_table.server);
  json.field("finalizer", system::to_string(plan.target_plan.finalizer));
  json.field("finalizer_reason", plan.target_plan.finalizer_reason).field("creates", plan.target_plan.creates);
  write_texts(json, "target_definition", definition_of(plan.target_table));
  json.field("slices_by", system::to_string(plan.slices.by)).field("slices_reason", plan.slices.reason);
  json.field("row_estimate", plan.source_table.row_estimate).field("load_workers", plan.load_workers);
  json.end_object();
  return json.take();
}

std::optional<Plan> restore_plan(std::string_view kept, const Spec& spec, const Route& route) {
  if (kept.empty() || spec.load.commit == system::Commit::slice) return std::nullopt;
  try {
    return read_plan(Json::parse(kept, {.bytes = limits::record_bytes_max, .depth = limits::json_depth}), spec, route);
  } catch (const Error&) {
    return std::nullopt;
  }
}

async::Task<void> check_target_unchanged(Plan& plan) {
  const bool existed = !plan.target_plan.creates;
  plan.target_table = co_await plan.target->describe(plan.target_request);
  // Somebody else's table where a new one was to be: begin() says so in its own words.
  const bool taken = plan.target_table.exists && plan.spec.target.mode == system::Mode::fail_if_exists;
  if (taken || (plan.target_table.exists == existed && definition_of(plan.target_table) == plan.kept_definition)) {
    co_return;
  }
  throw Error(Category::conflict, "target_changed", "the target is not what it was when the rows were staged")
      .with_hint("start a new transfer");
}

}  // namespace rowferry::transfer
