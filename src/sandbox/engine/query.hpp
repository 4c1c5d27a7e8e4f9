// Queries: FROM, WHERE, GROUP BY, ORDER BY and the set operations over bound expressions.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "sandbox/engine/eval.hpp"
#include "sandbox/engine/scan.hpp"
#include "sandbox/engine/sort.hpp"

namespace rowferry::sandbox::engine {

struct OutputColumn {
  std::string name;
  Type type;
  bool nullable = true;
  std::uint16_t flags = 0;
  std::uint32_t user_type = 0;
  std::vector<std::string> table;  // text, ntext, image
};

using Row = std::vector<Value>;
// Takes a row; false ends the query.
using RowSink = std::function<bool(Row&)>;

// Of the conditions, those that an index of the variable's table can seek by: key column = expression of nothing else
// in this scope, its first key column among them; else none.
std::vector<ExprPtr> seek_conditions(const RangeVariable& variable, std::size_t place,
                                     const std::vector<ExprPtr>& conditions);

class SelectPlan;

// Bound to its names and types; run as often as its outer query needs.
struct CompiledQuery {
  CompiledQuery();
  ~CompiledQuery();
  std::vector<OutputColumn> columns;
  std::vector<std::unique_ptr<SelectPlan>> branches;
  QueryPtr query;
  std::vector<std::vector<CommonTable>> common;
  bool correlated = false;

  // Everything, in order, with OFFSET and FETCH; the first at once, the others in portions. The context and what is
  // called must outlive the work.
  void run(const Context& context, const RowSink& sink);
  async::Task<void> work(const Context& context, const RowSink& sink, Turn& turn);
  // One SELECT with ORDER BY, its rows kept encoded.
  bool is_sortable() const;
  using EncodeRow = std::function<void(const Row&, ByteBuffer&)>;
  async::Task<void> work_sorted(const Context& context, const EncodeRow& encode, SortedRows& rows, Turn& turn);
  // A plain scan of one table that can be pulled row by row; nullptr when it is not.
  std::unique_ptr<RowSource> stream(const Context& context, const std::vector<Type>& types,
                                    const std::vector<tds::TypeInfo>& wire);

 private:
  async::Task<void> gather(const Context& context, std::vector<struct SortableRow>& rows, Turn& turn);
};

// Takes the locks that reading or writing a table needs; gives the read mode.
ReadMode lock_for_reading(const Context& context, const Object& table, const std::vector<std::string>& hints);
// Raises 3952 where the session reads or writes under SNAPSHOT and the table's database does not allow it.
void check_snapshot_allowed(const Context& context, const Object& table);
void lock_table(const Context& context, const Object& table, LockMode mode, LockSpan span);
std::string lock_resource(const Object& table);

// A table's name to its object; raises 208. Waits for tables being created, renamed or dropped.
ObjectPtr find_object(const Context& context, const ObjectName& name);
ObjectPtr find_table(const Context& context, const ObjectName& name);  // tables only, 208 otherwise
struct Place {
  std::shared_ptr<Database> database;
  int schema_id = 1;
};
// Where an object of this name stands or would stand; raises 911, 2760.
Place place_of(const Context& context, const ObjectName& name, bool must_exist = true);
// A table as a range variable.
RangeVariable range_of(const ObjectPtr& object, const std::string& alias);

// sysviews: sys.* and information_schema.*; nothing when there is no such view.
struct VirtualTable {
  std::vector<OutputColumn> columns;
  std::vector<Row> rows;
};
std::optional<VirtualTable> system_view(const Context& context, const ObjectName& name);
// Table-valued functions (fn_helpcollations, string_split, …).
std::optional<VirtualTable> table_function(const Context& context, const ObjectName& name,
                                           const std::vector<Value>& args);

}  // namespace rowferry::sandbox::engine
