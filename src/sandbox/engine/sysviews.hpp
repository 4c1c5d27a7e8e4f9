// The catalogue as tables: sys.* and information_schema.*, computed from the engine's own state when they are read.
#pragma once

#include <initializer_list>
#include <span>

#include "sandbox/engine/collation.hpp"
#include "sandbox/engine/procedures.hpp"

namespace rowferry::sandbox::engine {

// Cells are converted to the columns' types.
class ViewBuilder {
 public:
  ViewBuilder(const Context& context, std::string_view columns) : context_(context) {
    table_.columns = columns_of(context, columns);
  }
  void row(std::initializer_list<Value> cells);
  VirtualTable take() { return std::move(table_); }

 private:
  const Context& context_;
  VirtualTable table_;
};

// What a view is read from.
struct ViewSource {
  const Context& context;
  std::shared_ptr<Database> database;
  std::vector<ObjectPtr> objects;  // with this session's temporary tables in tempdb

  const Schema* schema_of(const Object& object) const { return database->schema_by_id(object.schema_id); }
  std::vector<ObjectPtr> tables() const;
};

struct SystemView {
  std::string_view name;  // folded, without sys.
  VirtualTable (*build)(const ViewSource& source) = nullptr;
};
std::span<const SystemView> object_views();
std::span<const SystemView> constraint_views();
std::span<const SystemView> server_views();
std::span<const SystemView> information_views();  // information_schema

// Cells
inline Value I(std::int64_t v) { return Value::of_int(v, Kind::bigint); }
inline Value B(bool v) { return Value::of_bit(v); }
inline Value N(std::string_view v) { return Value::of_name(v); }
inline Value Null() { return Value::of_null(int_type()); }
inline Value N_or_null(std::string_view v) { return v.empty() ? Null() : N(v); }
Value T(std::int64_t ticks);  // datetime
Value Number(Int128 v);       // sql_variant of an identity's number

}  // namespace rowferry::sandbox::engine
