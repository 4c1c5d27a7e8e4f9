// Expressions: names bound to columns and variables, types found, values computed.
#pragma once

#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "sandbox/engine/convert.hpp"
#include "sandbox/engine/parser.hpp"
#include "sandbox/engine/state.hpp"

namespace rowferry::sandbox::engine {

// Results of a subquery that is the same for every row.
struct QueryCache {
  bool filled = false;
  bool exists = false;
  Value scalar;
  Type key_type;
  bool has_null = false;
  std::unordered_set<std::string> keys;
};

enum class Truth : std::uint8_t { no, yes, unknown };

struct RangeColumn {
  std::string name;
  Type type;
  bool nullable = true;
  std::uint16_t flags = 0;  // identity, computed
  std::uint32_t user_type = 0;
  int stored = -1;  // place in a stored row; -1: of `values`, or computed
  const ColumnDef* definition = nullptr;
};

// One table of a FROM clause, with its row at hand.
struct RangeVariable {
  std::string alias;  // as it can be named; empty for a query without one
  ObjectName name;    // of tables: schema and database too
  std::vector<RangeColumn> columns;
  ObjectPtr object;  // base tables
  TableDefPtr def;
  std::shared_ptr<TableData> data;
  std::string table_name;

  ByteView row;  // stored form, of base tables
  RowId id;
  const std::vector<Value>* values = nullptr;  // of everything else
  bool null_row = false;                       // filled in by an outer join
};

struct Scope {
  std::vector<RangeVariable> variables;
  Scope* outer = nullptr;
  const std::vector<Value>* slots = nullptr;   // aggregates and windows of the row or group at hand
  std::vector<ExprPtr>* aggregates = nullptr;  // filled while binding
  std::vector<ExprPtr>* windows = nullptr;
  std::vector<const std::vector<CommonTable>*> common;  // WITH tables that can be named here
  bool correlated = false;                              // uses a row of an outer scope
};

class Evaluator {
 public:
  Evaluator(const Context& context, Scope* scope) : context_(context), scope_(scope) {}

  // Resolves names, finds types; throws SqlError 207, 4104, 209, …
  void bind(const ExprPtr& e);
  void bind_condition(const ExprPtr& e);
  Value eval(const ExprPtr& e);
  Truth test(const ExprPtr& e);
  const Context& context() const noexcept { return context_; }
  Scope* scope() noexcept { return scope_; }

 private:
  friend void bind_function(Evaluator& evaluator, Expr& e);
  void bind_all(const std::vector<ExprPtr>& list);
  void bind_column(Expr& e);
  bool bind_in_scope(Expr& e, Scope& scope, int depth);
  void bind_arithmetic(Expr& e);
  void bind_case(Expr& e);
  void bind_query(Expr& e);
  void bind_aggregate(const ExprPtr& e);
  void bind_variable(Expr& e);
  void bind_global(Expr& e);
  void bind_collate(Expr& e);
  void bind_cast(Expr& e);

  Value scalar(const ExprPtr& e);
  Value column(const Expr& e);
  Value arithmetic(const Expr& e, const Value& a, const Value& b);
  Value run_case(const Expr& e);
  Truth in_list(const Expr& e);
  Truth in_query(const Expr& e);
  Truth quantified(const Expr& e);
  Truth like(const Expr& e);
  Value scalar_query(const Expr& e);
  Value global(const Expr& e);

  const Context& context_;
  Scope* scope_;
  int depth_ = 0;
};

bool is_condition(const Expr& e);
// Of two bound expressions.
bool same_expression(const Expr& a, const Expr& b);
// Calls with every expression below `e`, itself first; false from the callback skips what is below.
void walk(const ExprPtr& e, const std::function<bool(const ExprPtr&)>& visit);

// functions.cpp
void bind_function(Evaluator& evaluator, Expr& e);
Value call_function(Evaluator& evaluator, const Expr& e);
// globals
std::optional<Value> global_value(const Context& context, const std::string& name);

// query.cpp: subqueries. The compiled form hangs on the expression while the statement runs.
struct CompiledQuery;
// `inherited`: WITH tables of the enclosing queries, where `outer` is not one of theirs.
std::shared_ptr<CompiledQuery> compile_query(const Context& context, const QueryPtr& query, Scope* outer,
                                             const std::vector<const std::vector<CommonTable>*>* inherited = nullptr);

Truth compare_truth(char op, const Value& a, const Value& b);
Value arithmetic_value(char op, const Value& a, const Value& b, const Type& type);
// A constant expression (defaults, arguments): bound and evaluated without tables.
Value constant_value(const Context& context, const ExprPtr& e);
ParseOptions parse_options(const Context& context);

}  // namespace rowferry::sandbox::engine
