// What the parser makes of a batch: expressions, queries, statements, and the program that runs them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sandbox/engine/catalog.hpp"

namespace rowferry::sandbox::engine {

struct Query;
using QueryPtr = std::shared_ptr<Query>;

enum class ExprKind : std::uint8_t {
  literal,
  column,
  variable,
  global,
  negate,      // -x
  complement,  // ~x
  arithmetic,  // op: + - * / % & | ^
  compare,     // op: = < > L(<=) G(>=) N(<>)
  logical_and,
  logical_or,
  logical_not,
  is_null,
  like,     // args: text, pattern, [escape]
  in_list,  // args: value, items…
  in_query,
  between,  // args: value, low, high
  exists,
  subquery,
  quantified,     // x op ANY/ALL (query); distinct = ALL
  searched_case,  // args: when, then, …, [else]
  cast,           // type = target
  function,
  aggregate,
  window,  // ROW_NUMBER and aggregates OVER (…)
  star,    // in COUNT(*)
  default_value,
  collate,
};

struct OrderItem {
  ExprPtr expr;
  bool descending = false;
};

struct Expr {
  ExprKind kind = ExprKind::literal;
  int line = 1;
  Value literal;
  std::vector<std::string> name;  // column: parts; function, variable, global: one
  char op = 0;
  std::vector<ExprPtr> args;
  QueryPtr query;
  Type target;  // cast
  std::string collation;
  bool negated = false;
  bool distinct = false;
  bool tries = false;  // TRY_CAST, TRY_CONVERT
  bool style_given = false;
  std::vector<ExprPtr> partition;   // window
  std::vector<OrderItem> ordering;  // window, STRING_AGG … WITHIN GROUP

  // Set when the expression is bound, anew for each execution.
  Type type;
  bool nullable = true;
  int depth = 0;    // column: scopes outwards
  int source = -1;  // column: range variable
  int column = -1;
  int slot = -1;                                   // aggregate, window: place of its result
  std::shared_ptr<struct CompiledQuery> compiled;  // of subqueries
  std::shared_ptr<struct QueryCache> cache;        // of subqueries that do not depend on the outer row
};

enum class TableKind : std::uint8_t { table, query, values, join, function };
enum class JoinKind : std::uint8_t { inner, left, right, full, cross, cross_apply, outer_apply };

struct TableRef;
using TableRefPtr = std::shared_ptr<TableRef>;

struct TableRef {
  TableKind kind = TableKind::table;
  int line = 1;
  ObjectName name;
  std::string alias;
  std::vector<std::string> hints;  // upper case
  std::vector<std::string> column_names;
  QueryPtr query;
  std::vector<std::vector<ExprPtr>> rows;  // values
  std::vector<ExprPtr> args;               // function
  JoinKind join = JoinKind::inner;
  TableRefPtr left, right;
  ExprPtr on;
};

struct SelectItem {
  ExprPtr expr;
  std::string alias;
  bool star = false;
  std::vector<std::string> qualifier;  // t.*
  std::string assign;                  // @x = …
};

struct Select {
  bool distinct = false;
  ExprPtr top;
  bool top_percent = false;
  std::vector<SelectItem> items;
  TableRefPtr from;
  ExprPtr where;
  std::vector<ExprPtr> group_by;
  ExprPtr having;
  ObjectName into;
};

enum class SetOperation : std::uint8_t { union_all, union_distinct, except, intersect };

struct CommonTable {
  std::string name;
  std::vector<std::string> columns;
  QueryPtr query;
};

struct Query {
  int line = 1;
  std::vector<CommonTable> with;
  std::vector<Select> branches;  // joined by operations[i] before branches[i + 1]
  std::vector<SetOperation> operations;
  std::vector<OrderItem> order;
  ExprPtr offset, fetch;
};

// --- statements

struct SetOption {
  std::string name;                // upper case; "TRANSACTION ISOLATION LEVEL", "IDENTITY_INSERT", …
  std::vector<std::string> words;  // what follows, upper case
  ExprPtr value;
  ObjectName table;  // IDENTITY_INSERT
};
struct SetVariable {
  std::string name;
  char op = 0;  // += and the like
  ExprPtr value;
};
struct Use {
  std::string database;
};
struct Declare {
  struct Item {
    std::string name;
    Type type;
    bool is_table = false;
    std::shared_ptr<struct CreateTable> table;
    ExprPtr value;
  };
  std::vector<Item> items;
};
struct SelectStatement {
  QueryPtr query;
};
struct Insert {
  ObjectName table;
  std::vector<std::string> hints;
  std::vector<std::string> columns;
  std::vector<std::vector<ExprPtr>> rows;
  QueryPtr query;
  bool default_values = false;
  std::shared_ptr<struct Execute> execute;
  ExprPtr top;
  std::vector<SelectItem> output;
  std::vector<CommonTable> with;
};
struct Assignment {
  std::string column;
  std::string variable;
  char op = 0;
  ExprPtr value;
};
struct Update {
  ObjectName table;  // or an alias of `from`
  std::vector<std::string> hints;
  std::vector<Assignment> set;
  TableRefPtr from;
  ExprPtr where;
  ExprPtr top;
  std::vector<SelectItem> output;
  std::vector<CommonTable> with;
};
struct Delete {
  ObjectName table;
  std::vector<std::string> hints;
  TableRefPtr from;
  ExprPtr where;
  ExprPtr top;
  std::vector<SelectItem> output;
  std::vector<CommonTable> with;
};
struct Truncate {
  ObjectName table;
};

struct ColumnSpec {
  std::string name;
  Type type;
  std::string user_type;
  std::string type_text;
  bool rowversion = false;
  std::string collation;
  std::optional<bool> nullable;
  std::optional<Identity> identity;
  std::string default_name;
  ExprPtr default_value;
  std::string default_text;
  ExprPtr computed;
  std::string computed_text;
  bool persisted = false;
  bool rowguidcol = false;
  bool sparse = false;
  bool hidden = false;
  int generated_always = 0;
};
struct KeySpec {
  std::string name;
  bool primary = false;
  bool constraint = true;  // false: an index
  bool unique = true;
  bool columnstore = false;
  std::optional<bool> clustered;
  bool ignore_dup_key = false;
  std::vector<std::pair<std::string, bool>> columns;  // name, descending
  std::vector<std::string> included;
  std::string filter;
  std::string scheme, scheme_column;  // ON scheme(column)
};
struct CheckSpec {
  std::string name;
  ExprPtr condition;
  std::string text;
  std::string column;
};
struct ForeignKeySpec {
  std::string name;
  std::vector<std::string> columns;
  ObjectName table;
  std::vector<std::string> referenced;
  int on_delete = 0, on_update = 0;
};
struct DefaultSpec {
  std::string name;
  ExprPtr value;
  std::string text;
  std::string column;
};
struct TableParts {
  std::vector<ColumnSpec> columns;
  std::vector<KeySpec> keys;
  std::vector<CheckSpec> checks;
  std::vector<ForeignKeySpec> foreign_keys;
  std::vector<DefaultSpec> defaults;
  std::string period_start, period_end;
  bool temporal = false;
  std::string scheme, scheme_column;
};
struct CreateTable {
  ObjectName name;
  TableParts parts;
};
struct CreateIndex {
  ObjectName table;
  KeySpec key;
  bool drop_existing = false;
};
struct CreateText {  // view, procedure, trigger: kept as text; synonym
  ObjectKind kind = ObjectKind::view;
  ObjectName name;
  ObjectName parent;  // trigger: its table; synonym: what it stands for
  std::string text;
  std::size_t body = 0;
  bool alter = false;
  bool or_alter = false;
};
struct CreateNamed {
  bool database = false;  // else schema
  std::string name;
  std::string collation;
};
struct CreatePartition {  // function, or scheme
  bool scheme = false;
  std::string name;
  Type type;
  bool right = false;
  std::vector<ExprPtr> boundaries;
  std::string function;  // of a scheme
  bool all = false;
  std::size_t filegroups = 0;
};
struct Drop {
  std::string
      kind;  // TABLE VIEW PROCEDURE TRIGGER INDEX SCHEMA DATABASE FUNCTION, PARTITION FUNCTION, PARTITION SCHEME
  bool if_exists = false;
  std::vector<ObjectName> names;
  std::vector<ObjectName> on;  // INDEX: the tables
};
struct AlterTable {
  enum class Action : std::uint8_t {
    add,
    drop,
    alter_column,
    switch_to,
    check_constraint,
    nocheck_constraint,
    triggers,
    ignored
  };
  ObjectName table;
  Action action = Action::add;
  TableParts parts;
  bool with_nocheck = false;
  std::vector<std::pair<bool, std::string>> drops;  // is a column, name
  bool if_exists = false;
  ObjectName other;
  std::vector<std::string> names;  // constraints or triggers; empty: ALL
  bool enable = true;
};
struct AlterDatabase {
  std::string database;
  std::string option;
  bool on = true;
  std::string word;
};
struct AlterIndex {
  std::string index;  // empty: ALL
  ObjectName table;
  std::string action;
};
struct TransactionStatement {
  enum class Action : std::uint8_t { begin, commit, rollback, save };
  Action action = Action::begin;
  std::string name;
  ExprPtr name_variable;
};
struct Print {
  ExprPtr value;
};
struct RaiseError {
  ExprPtr message, severity, state;
  std::vector<ExprPtr> args;
  bool with_nowait = false;
};
struct Throw {
  ExprPtr number, message, state;  // none: again
};
struct WaitFor {
  ExprPtr delay;
  bool until = false;
};
struct ExecuteArgument {
  std::string name;
  ExprPtr value;
  bool output = false;
  bool use_default = false;
};
struct Execute {
  std::string result;  // @rc = …
  ObjectName procedure;
  std::string procedure_variable;
  std::vector<ExecuteArgument> args;
  std::vector<ExprPtr> texts;  // EXEC ('…' + …)
};
struct Return {
  ExprPtr value;
};
struct InsertBulk {
  ObjectName table;
  struct Column {
    std::string name;
    Type type;
    bool rowversion = false;
    std::string collation;
  };
  std::vector<Column> columns;
  bool has_columns = false;
  bool tablock = false, check_constraints = false, fire_triggers = false, keep_nulls = false;
  std::vector<std::pair<std::string, bool>> order;
};
struct Dbcc {
  std::string command;
  std::vector<ExprPtr> args;
  std::vector<std::string> words;
};
struct Kill {
  ExprPtr session;
};
struct Ignored {};  // GRANT, UPDATE STATISTICS, CHECKPOINT: answered with success

// Flow of control, with targets as places in the program.
struct Jump {
  std::size_t to = 0;
};
struct JumpUnless {
  ExprPtr condition;
  std::size_t to = 0;
};
struct TryBegin {
  std::size_t handler = 0;
};
struct TryEnd {
  std::size_t to = 0;
};
struct CatchEnd {};

struct Statement {
  int line = 1;
  std::size_t begin = 0, end = 0;  // in the text
  std::variant<SetOption, SetVariable, Use, Declare, SelectStatement, Insert, Update, Delete, Truncate, CreateTable,
               CreateIndex, CreateText, CreateNamed, Drop, AlterTable, AlterDatabase, AlterIndex, TransactionStatement,
               Print, RaiseError, Throw, WaitFor, Execute, Return, InsertBulk, Dbcc, Kill, CreatePartition, Ignored,
               Jump, JumpUnless, TryBegin, TryEnd, CatchEnd>
      what;
};

struct Program {
  std::string text;
  std::vector<Statement> statements;
};
using ProgramPtr = std::shared_ptr<Program>;

}  // namespace rowferry::sandbox::engine
