// What each kind of statement does. All work inside the session's transaction (opened when there is none); an exception
// leaves it to the interpreter to undo what the statement has done.
#pragma once

#include "sandbox/engine/table_writer.hpp"

namespace rowferry::sandbox::engine {

// What the statement's DONE says.
struct Outcome {
  std::optional<std::uint64_t> count;
  std::uint16_t command = 0;
  bool silent = false;  // no DONE of its own
};

// dml.cpp
Outcome execute_insert(const Context& context, Insert& s);
Outcome execute_update(const Context& context, Update& s);
Outcome execute_delete(const Context& context, Delete& s);
Outcome execute_truncate(const Context& context, const Truncate& s);
// Rows of a query into a table; for INSERT … SELECT and SELECT … INTO.
std::uint64_t insert_from_query(const Context& context, const ObjectPtr& table, const std::vector<int>& columns,
                                CompiledQuery& query, TableWriter& writer);

// select.cpp
Outcome begin_select(const Context& context, SelectStatement& s);  // rows follow through session.rows
tds::ColumnMeta wire_column(const Context& context, const OutputColumn& column);
void send_rows(const Context& context, const std::vector<OutputColumn>& columns, const std::vector<Row>& rows,
               Outcome& outcome);
void assign_variable(const Context& context, const std::string& name, const Value& value);

// ddl.cpp, alter.cpp
Outcome execute_create_table(const Context& context, CreateTable& s);
Outcome execute_create_index(const Context& context, CreateIndex& s);
Outcome execute_create_text(const Context& context, const CreateText& s);
Outcome execute_create_named(const Context& context, const CreateNamed& s);
Outcome execute_create_partition(const Context& context, CreatePartition& s);  // partitions.cpp
Outcome execute_drop(const Context& context, const Drop& s);
Outcome execute_alter_table(const Context& context, AlterTable& s);
Outcome execute_alter_database(const Context& context, const AlterDatabase& s);
Outcome execute_alter_index(const Context& context, const AlterIndex& s);
ObjectPtr create_table(const Context& context, const ObjectName& name, TableParts& parts);

// Shared by them.
void lock_name(const Context& context, const Place& place, std::string_view name);
// Takes Sch-M on the table for the transaction.
void lock_definition(const Context& context, const Object& table);
void set_definition(const Context& context, const ObjectPtr& table, std::shared_ptr<TableDef> def,
                    std::shared_ptr<TableData> data);
// Builds a definition's parts; names of constraints are made where none is given.
void add_columns(const Context& context, TableDef& def, const Object& table, std::vector<ColumnSpec>& columns,
                 Database& db);
void add_constraints(const Context& context, TableDef& def, const ObjectPtr& table, TableParts& parts, Database& db);
void add_index(const Context& context, TableDef& def, const Object& table, const KeySpec& key, Database& db);
// Rows of the table's present data in the layout of `def`, made by `convert_row` (nullptr: rows as they are).
std::shared_ptr<TableData> rebuilt(const Context& context, const Object& table, const TableDef& def,
                                   const std::function<void(ByteView, ByteBuffer&)>& convert_row);
bool constraint_name_taken(const Database& db, int schema_id, std::string_view name);

// procedures.cpp
Outcome execute_call(const Context& context, Execute& s);
void start_procedure(Context& context, const std::string& procedure, std::vector<Parameter> parameters);

// bulk.cpp
Outcome execute_insert_bulk(const Context& context, InsertBulk& s);

// statements.cpp: SET and the like
Outcome execute_set_option(const Context& context, SetOption& s);
Outcome execute_transaction(const Context& context, TransactionStatement& s);
Outcome execute_declare(const Context& context, Declare& s);
Outcome execute_use(const Context& context, const std::string& database);
Outcome execute_dbcc(const Context& context, Dbcc& s);
Outcome execute_kill(const Context& context, Kill& s);
Outcome execute_raise_error(const Context& context, RaiseError& s);
[[noreturn]] void execute_throw(const Context& context, Throw& s);
Outcome execute_waitfor(const Context& context, WaitFor& s);
Outcome execute_set_variable(const Context& context, SetVariable& s);
void send_message(const Context& context, int number, int severity, int state, std::string text, int line);
void save_transaction(const Context& context, const std::string& name);
void rollback_to_name(const Context& context, const std::string& name);

}  // namespace rowferry::sandbox::engine
