// INSERT, UPDATE, DELETE, TRUNCATE.
#include <fmt/format.h>

#include <algorithm>

#include "sandbox/engine/execute.hpp"
#include "sandbox/engine/select_plan.hpp"

namespace rowferry::sandbox::engine {

namespace {

constexpr std::size_t insert_rows_max = 1000;  // of one VALUES list, as the server has it
constexpr std::uint16_t command_insert = 0xC3, command_delete = 0xC4, command_update = 0xC5;

bool has_hint(const std::vector<std::string>& hints, std::string_view hint) {
  return std::find(hints.begin(), hints.end(), hint) != hints.end();
}

void lock_for_writing(const Context& context, const Object& table, const std::vector<std::string>& hints) {
  check_snapshot_allowed(context, table);
  const bool whole = has_hint(hints, "TABLOCK") || has_hint(hints, "TABLOCKX");
  lock_table(context, table, whole ? LockMode::exclusive : LockMode::intent_exclusive, LockSpan::transaction);
}

bool identity_insert_on(const Context& context, const Object& table) {
  return context.session.identity_insert && context.session.identity_insert->first == table.id;
}

void refuse_column(const Object& table, const ColumnDef& c, const TableWriter& writer) {
  if (c.computed != nullptr)
    raise(271, 16, 1,
          fmt::format("The column \"{}\" cannot be modified because it is either a computed column or is the result of "
                      "a UNION operator.",
                      c.name),
          Reach::batch);
  if (c.is_rowversion())
    raise(273, 16, 1,
          "Cannot insert an explicit value into a timestamp column. Use INSERT with a column list to exclude the "
          "timestamp column, or insert a DEFAULT into the timestamp column.",
          Reach::batch);
  if (c.generated_always != 0)
    raise(13536, 16, 1,
          fmt::format(
              "Cannot insert an explicit value into a GENERATED ALWAYS column in table '{}'. Use INSERT with a column "
              "list to exclude the GENERATED ALWAYS column, or insert a DEFAULT into GENERATED ALWAYS column.",
              writer.full_name()),
          Reach::batch);
  (void)table;
}

// The columns that values go to, as indexes into the definition.
std::vector<int> target_columns(const Context& context, const Object& table, const Insert& s, const TableWriter& writer,
                                std::size_t given) {
  const TableDef& def = *table.def;
  std::vector<int> columns;
  if (s.columns.empty()) {
    for (std::size_t i = 0; i < def.columns.size(); ++i) {
      const ColumnDef& c = def.columns[i];
      if (c.computed != nullptr || (c.identity && !identity_insert_on(context, table)) || c.hidden) continue;
      columns.push_back(static_cast<int>(i));
    }
    if (given == columns.size() + 1 && def.identity_column() != nullptr && !identity_insert_on(context, table))
      raise(8101, 16, 1,
            fmt::format("An explicit value for the identity column in table '{}' can only be specified when a column "
                        "list is used and IDENTITY_INSERT is ON.",
                        writer.short_name()),
            Reach::batch);
    if (def.identity_column() != nullptr && identity_insert_on(context, table) && given == columns.size())
      raise(8101, 16, 1,
            fmt::format("An explicit value for the identity column in table '{}' can only be specified when a column "
                        "list is used and IDENTITY_INSERT is ON.",
                        writer.short_name()),
            Reach::batch);
    if (given != columns.size())
      raise(213, 16, 1, "Column name or number of supplied values does not match table definition.", Reach::batch);
    return columns;
  }
  for (const std::string& name : s.columns) {
    const int at = def.find(name);
    if (at < 0) raise_invalid_column(name);
    if (std::find(columns.begin(), columns.end(), at) != columns.end())
      raise(264, 16, 1,
            fmt::format("The column name '{}' is specified more than once in the SET clause or column list of an "
                        "INSERT. A column cannot be assigned more than one value in the same clause. Modify the clause "
                        "to make sure that a column is updated only once. If this statement updates or inserts columns "
                        "into a view, column aliasing can conceal the duplication in your code.",
                        name),
            Reach::batch);
    columns.push_back(at);
  }
  if (given < columns.size())
    raise(109, 15, 1,
          "There are more columns in the INSERT statement than values specified in the VALUES clause. The number of "
          "values in the VALUES clause must match the number of columns specified in the INSERT statement.",
          Reach::batch);
  if (given > columns.size())
    raise(110, 15, 1,
          "There are fewer columns in the INSERT statement than values specified in the VALUES clause. The number of "
          "values in the VALUES clause must match the number of columns specified in the INSERT statement.",
          Reach::batch);
  return columns;
}

void check_target_columns(const Context& context, const Object& table, const std::vector<int>& columns,
                          const TableWriter& writer) {
  bool identity_named = false;
  for (const int i : columns) {
    const ColumnDef& c = table.def->columns[static_cast<std::size_t>(i)];
    refuse_column(table, c, writer);
    if (!c.identity) continue;
    identity_named = true;
    if (!identity_insert_on(context, table))
      raise(544, 16, 1,
            fmt::format(
                "Cannot insert explicit value for identity column in table '{}' when IDENTITY_INSERT is set to OFF.",
                table.name),
            Reach::batch);
  }
  if (!identity_named && table.def->identity_column() != nullptr && identity_insert_on(context, table))
    raise(
        545, 16, 1,
        fmt::format("Explicit value must be specified for identity column in table '{}' either when IDENTITY_INSERT is "
                    "set to ON or when a replication user is inserting into a NOT FOR REPLICATION identity column.",
                    table.name),
        Reach::batch);
}

std::uint64_t insert_values_rows(const Context& context, const Object& table, Insert& s,
                                 const std::vector<int>& columns, TableWriter& writer) {
  std::uint64_t count = 0;
  Scope scope;
  Evaluator evaluator(context, &scope);
  for (auto& row : s.rows) {
    if (row.size() != columns.size())
      raise(10709, 16, 1, "The number of columns for each row in a table value constructor must be the same.",
            Reach::batch);
    std::vector<std::optional<Value>> values(table.def->columns.size());
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (row[i]->kind == ExprKind::default_value) continue;
      const auto at = static_cast<std::size_t>(columns[i]);
      evaluator.bind(row[i]);
      values[at] = evaluator.eval(row[i]);
    }
    if (writer.insert(values)) ++count;
  }
  return count;
}

// SELECT of a whole table's columns: what can be taken over block by block.
struct WholeTable {
  std::shared_ptr<TableData> data;
  ReadMode mode = ReadMode::committed;
  bool same_layout = false;
};

std::optional<WholeTable> whole_table(const TableDef& target, const std::vector<int>& columns, CompiledQuery& query) {
  if (query.branches.size() != 1 || query.query->offset != nullptr) return std::nullopt;
  SelectPlan& plan = *query.branches[0];
  if (!plan.plain() || plan.select().top != nullptr || !plan.conditions().empty() || plan.levels().size() != 1 ||
      plan.levels()[0].data == nullptr)
    return std::nullopt;
  WholeTable whole{plan.levels()[0].data, plan.levels()[0].mode, false};
  const RangeVariable& v = plan.scope().variables[0];
  const Layout& from = whole.data->layout();
  const Layout to = target.layout();
  bool same = from.size() == to.size() && plan.items().size() == from.size();
  for (std::size_t i = 0; same && i < plan.items().size(); ++i) {
    const Expr& e = *plan.items()[i];
    same = e.kind == ExprKind::column && e.depth == 0;
    if (!same) break;
    const RangeColumn& c = v.columns[static_cast<std::size_t>(e.column)];
    const ColumnDef& t = target.columns[static_cast<std::size_t>(columns[i])];
    same = c.stored == static_cast<int>(i) && t.stored == static_cast<int>(i) && from[i].info == to[i].info &&
           !t.is_rowversion() && !t.identity && (t.nullable || !c.nullable);
  }
  whole.same_layout = same;
  return whole;
}

void carry_discarded(const Context& context, const ObjectPtr& table, const TableData& from, std::uint64_t& count) {
  const TransactionId me = transaction_of(context.session).id;
  const auto rows = static_cast<std::int64_t>(from.discarded(me));
  if (rows == 0) return;
  const HashSum hash = from.hash(me);
  table->data->add_discarded(rows, hash, false, me);
  log_undo(context.session, UndoDiscard{table->data, rows, hash, false});
  count += static_cast<std::uint64_t>(rows);
}

std::uint64_t take_blocks(const Context& context, const ObjectPtr& table, const WholeTable& whole) {
  std::uint64_t count = 0;
  const TransactionId me = transaction_of(context.session).id;
  TableData& to = *table->data;
  const std::size_t blocks = whole.data->blocks().size();
  for (std::size_t b = 0; b < blocks; ++b) {
    const auto index = static_cast<std::uint32_t>(b);
    const BlockSlot& slot = whole.data->blocks()[b];
    const auto rows = static_cast<std::uint32_t>(slot.rows->ends.size());
    if (rows == 0) continue;
    if (whole.data->all_visible(index, me) && to.keys().empty()) {
      const auto place = static_cast<std::uint32_t>(to.blocks().size());
      to.add_shared(slot.rows, me);
      log_undo(context.session, UndoRows{table->data, RowId{place, 0}, rows, false});
      count += rows;
      continue;
    }
  }
  return count;
}

}  // namespace

std::uint64_t insert_from_query(const Context& context, const ObjectPtr& table, const std::vector<int>& columns,
                                CompiledQuery& query, TableWriter& writer) {
  std::uint64_t count = 0;
  const auto whole = whole_table(*table->def, columns, query);
  if (whole && whole->same_layout && !writer.needs_checks()) {
    const TransactionId me = transaction_of(context.session).id;
    bool all = table->data->keys().empty();
    const View view(me, whole->mode == ReadMode::snapshot ? snapshot_of(context.session) : 0);
    for (std::uint32_t b = 0; all && b < whole->data->blocks().size(); ++b) all = whole->data->all_visible(b, view);
    if (all) {
      count = take_blocks(context, table, *whole);
    } else {
      TableScan scan(context, whole->data, whole->mode);
      ByteView row;
      RowId id;
      ByteBuffer copy;
      while (scan.next(row, id)) {
        copy.clear();
        copy.append(row);
        if (writer.insert_stored(copy.view())) ++count;
      }
    }
  } else {
    std::vector<std::optional<Value>> values(table->def->columns.size());
    const auto put = [&](Row& row) {
      std::fill(values.begin(), values.end(), std::nullopt);
      for (std::size_t i = 0; i < row.size(); ++i) values[static_cast<std::size_t>(columns[i])] = std::move(row[i]);
      if (writer.insert(values)) ++count;
      return true;
    };
    bool reads_target = false;
    for (const auto& plan : query.branches)
      for (const JoinLevel& level : plan->levels()) reads_target = reads_target || level.data == table->data;
    if (reads_target) {  // its blocks must not grow under the scan
      std::vector<Row> rows;
      query.run(context, [&](Row& row) {
        rows.push_back(std::move(row));
        return true;
      });
      for (Row& row : rows) put(row);
    } else {
      query.run(context, put);
    }
  }
  if (whole && whole->data->discarded(transaction_id(context.session)) != 0) {
    if (const TransactionId other = whole->data->touched_by_other(transaction_id(context.session));
        other != 0 && whole->mode == ReadMode::committed)
      block_on_transaction(context.server, other);
    carry_discarded(context, table, *whole->data, count);
  }
  return count;
}

Outcome execute_insert(const Context& context, Insert& s) {
  if (!s.output.empty()) raise_unsupported("OUTPUT");
  const ObjectPtr table = find_table(context, s.table);
  lock_for_writing(context, *table, s.hints);
  WriteOptions options;
  options.bulk = s.query != nullptr;
  TableWriter writer(context, table, options);
  if (s.default_values) {
    check_target_columns(context, *table, {}, writer);
    std::vector<std::optional<Value>> values(table->def->columns.size());
    return {writer.insert(values) ? 1U : 0U, command_insert, false};
  }
  if (s.execute != nullptr) raise_unsupported("INSERT … EXECUTE");
  if (s.query == nullptr) {
    if (s.rows.size() > insert_rows_max)
      raise(10738, 15, 1,
            fmt::format("The number of row value expressions in the INSERT statement exceeds the maximum allowed "
                        "number of {} row values.",
                        insert_rows_max),
            Reach::batch);
    const auto columns = target_columns(context, *table, s, writer, s.rows.front().size());
    check_target_columns(context, *table, columns, writer);
    return {insert_values_rows(context, *table, s, columns, writer), command_insert, false};
  }
  auto query = std::make_shared<Query>(*s.query);
  query->with.insert(query->with.begin(), s.with.begin(), s.with.end());
  if (s.top != nullptr && query->branches.size() == 1 && query->branches[0].top == nullptr)
    query->branches[0].top = s.top;
  const auto compiled = compile_query(context, query, nullptr);
  std::size_t given = compiled->columns.size();
  if (!s.columns.empty() && given != s.columns.size()) {
    if (given < s.columns.size())
      raise(120, 15, 1,
            "The select list for the INSERT statement contains fewer items than the insert list. The number of SELECT "
            "values must match the number of INSERT columns.",
            Reach::batch);
    raise(121, 15, 1,
          "The select list for the INSERT statement contains more items than the insert list. The number of SELECT "
          "values must match the number of INSERT columns.",
          Reach::batch);
  }
  const auto columns = target_columns(context, *table, s, writer, given);
  check_target_columns(context, *table, columns, writer);
  return {insert_from_query(context, table, columns, *compiled, writer), command_insert, false};
}

namespace {

// FROM and WHERE of an UPDATE or DELETE, with its target's place among the range variables.
struct Targeted {
  ObjectPtr table;
  std::unique_ptr<SelectPlan> plan;
  std::size_t variable = 0;
  QueryPtr with;
};

Targeted targeted(const Context& context, const ObjectName& name, const std::vector<std::string>& hints,
                  const TableRefPtr& from, const ExprPtr& where, const std::vector<CommonTable>& with) {
  Targeted t;
  Select select;
  select.from = from;
  select.where = where;
  if (from == nullptr) {
    t.table = find_table(context, name);
    select.from = std::make_shared<TableRef>();
    select.from->name = name;
    select.from->hints = hints;
  }
  t.with = std::make_shared<Query>();
  t.with->with = with;
  std::vector<const std::vector<CommonTable>*> common;
  if (!with.empty()) common.push_back(&t.with->with);
  t.plan = std::make_unique<SelectPlan>(context, select, nullptr, common);
  auto& variables = t.plan->scope().variables;
  t.variable = variables.size();
  for (std::size_t i = 0; i < variables.size(); ++i) {
    const RangeVariable& v = variables[i];
    if (v.object == nullptr) continue;
    if (from == nullptr || (name.parts.size() == 1 && same_name(v.alias, name.object())))
      t.variable = std::min(t.variable, i);
  }
  if (t.variable == variables.size()) {
    t.table = find_table(context, name);
    for (std::size_t i = 0; i < variables.size() && t.variable == variables.size(); ++i)
      if (variables[i].object == t.table) t.variable = i;
    if (t.variable == variables.size()) raise_unsupported("an UPDATE or DELETE whose table is not in FROM");
  }
  t.table = variables[t.variable].object;
  for (JoinLevel& level : t.plan->levels())
    if (level.variable == t.variable &&
        (level.mode == ReadMode::dirty || (level.mode == ReadMode::snapshot && context.settings().isolation != 5)))
      level.mode = ReadMode::committed;
  lock_for_writing(context, *t.table, hints);
  return t;
}

std::optional<std::uint64_t> limit_of(const Context& context, const ExprPtr& top) {
  if (top == nullptr) return std::nullopt;
  return static_cast<std::uint64_t>(std::max<std::int64_t>(
      0, static_cast<std::int64_t>(convert(constant_value(context, top), bigint_type()).number)));
}

struct NewRow {
  RowId id;
  std::vector<Value> values;
};

void bind_assignments(Evaluator& evaluator, Update& s, const Object& table, const TableWriter& writer) {
  for (Assignment& a : s.set) {
    if (a.value->kind != ExprKind::default_value) evaluator.bind(a.value);
    if (a.column.empty()) continue;
    const int at = table.def->find(a.column);
    if (at < 0) raise_invalid_column(a.column);
    const ColumnDef& c = table.def->columns[static_cast<std::size_t>(at)];
    if (c.identity) raise(8102, 16, 1, fmt::format("Cannot update identity column '{}'.", c.name), Reach::batch);
    if (c.is_rowversion()) raise(272, 16, 1, "Cannot update a timestamp column.", Reach::batch);
    refuse_column(table, c, writer);
  }
}

}  // namespace

Outcome execute_update(const Context& context, Update& s) {
  if (!s.output.empty()) raise_unsupported("OUTPUT");
  Targeted t = targeted(context, s.table, s.hints, s.from, s.where, s.with);
  const TableDef& def = *t.table->def;
  TableWriter writer(context, t.table,
                     {.verb = "UPDATE", .check_constraints = true, .identity_given = true, .bulk = false});
  Evaluator evaluator(context, &t.plan->scope());
  bind_assignments(evaluator, s, *t.table, writer);
  const auto limit = limit_of(context, s.top);
  std::vector<NewRow> rows;
  std::unordered_set<std::uint64_t> seen;
  t.plan->for_each_row(context, [&] {
    if (limit && rows.size() >= *limit) return false;
    const RangeVariable& v = t.plan->scope().variables[t.variable];
    if (v.null_row || !seen.insert(v.id.packed()).second) return true;
    NewRow row{v.id, writer.values_of(v.row)};
    for (const Assignment& a : s.set) {
      const auto at = a.column.empty() ? std::size_t{0} : static_cast<std::size_t>(def.find(a.column));
      Value value = a.value->kind == ExprKind::default_value ? writer.default_of(at) : evaluator.eval(a.value);
      if (!a.variable.empty()) assign_variable(context, a.variable, value);
      if (a.column.empty()) continue;
      if (a.op != 0) {
        const Value old = row.values[at];
        const Type type = is_string(old.type.kind) ? nvarchar_type(max_length, old.type.collation)
                                                   : common_type(old.type, value.type);
        Type wide = type;
        if (is_decimal(wide.kind)) wide.precision = 38;
        value = arithmetic_value(a.op, old, value, wide);
      }
      row.values[at] = writer.column_value(at, value);
    }
    for (std::size_t i = 0; i < def.columns.size(); ++i)
      if (def.columns[i].is_rowversion()) row.values[i] = writer.next_row_version();
    rows.push_back(std::move(row));
    return true;
  });
  for (const NewRow& row : rows) writer.remove(row.id);
  for (NewRow& row : rows) writer.insert_values(row.values);
  writer.check_references();
  return {rows.size(), command_update, false};
}

Outcome execute_delete(const Context& context, Delete& s) {
  if (!s.output.empty()) raise_unsupported("OUTPUT");
  Targeted t = targeted(context, s.table, s.hints, s.from, s.where, s.with);
  TableWriter writer(context, t.table,
                     {.verb = "DELETE", .check_constraints = true, .identity_given = false, .bulk = false});
  const auto limit = limit_of(context, s.top);
  std::vector<RowId> rows;
  std::unordered_set<std::uint64_t> seen;
  t.plan->for_each_row(context, [&] {
    if (limit && rows.size() >= *limit) return false;
    const RangeVariable& v = t.plan->scope().variables[t.variable];
    if (!v.null_row && seen.insert(v.id.packed()).second) rows.push_back(v.id);
    return true;
  });
  for (const RowId id : rows) writer.remove(id);
  writer.check_references();
  std::uint64_t count = rows.size();
  TableData& data = *t.table->data;
  const TransactionId me = transaction_of(context.session).id;
  if (s.where == nullptr && s.from == nullptr && !limit && data.discarded(me) != 0) {
    const auto discarded = static_cast<std::int64_t>(data.discarded(me));
    const HashSum hash = data.hash(me);
    data.add_discarded(discarded, hash, true, me);
    log_undo(context.session, UndoDiscard{t.table->data, discarded, hash, true});
    count += static_cast<std::uint64_t>(discarded);
  }
  return {count, command_delete, false};
}

Outcome execute_truncate(const Context& context, const Truncate& s) {
  ObjectPtr table;
  try {
    table = find_table(context, s.table);
  } catch (const SqlError& e) {
    if (e.message.number != 208) throw;
    raise(4701, 16, 1,
          fmt::format("Cannot find the object \"{}\" because it does not exist or you do not have permissions.",
                      s.table.object()),
          Reach::batch);
  }
  lock_definition(context, *table);
  const auto db = context.server.database(table->database);
  if (!table->temporary && db != nullptr)
    for (const auto& [name, other] : db->objects)
      if (other->def != nullptr && other != table)
        for (const ForeignKeyDef& fk : other->def->foreign_keys)
          if (fk.referenced_id == table->id)
            raise(4712, 16, 1,
                  fmt::format("Cannot truncate table '{}' because it is being referenced by a FOREIGN KEY constraint.",
                              s.table.text()),
                  Reach::batch);
  const auto data = table->data;
  const auto identity = table->identity == nullptr ? IdentityState{} : *table->identity;
  table->data = make_data(*table->def);
  if (const ColumnDef* c = table->def->identity_column(); c != nullptr) *table->identity = {c->identity->seed, false};
  log_undo(context.session, UndoDefinition{[table, data, identity] {
             table->data = data;
             if (table->identity != nullptr) *table->identity = identity;
           }});
  return {std::nullopt, 0xE4, false};
}

}  // namespace rowferry::sandbox::engine
