#include "sandbox/engine/partitions.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace rowferry::sandbox::engine {

namespace {

constexpr int first_data_space = 65'601;  // as the server numbers schemes

std::shared_ptr<const PartitionFunction> function_named(const Database& db, const std::string& name) {
  const auto found = db.partition_functions.find(fold_name(name));
  return found == db.partition_functions.end() ? nullptr : found->second;
}

void refuse_taken_name(bool taken, const std::string& name) {
  if (taken)
    raise(2714, 16, 6, fmt::format("There is already an object named '{}' in the database.", name), Reach::batch);
}

Outcome create_function(const Context& context, const CreatePartition& s) {
  const auto db = context.session.database;
  const std::string key = fold_name(s.name);
  refuse_taken_name(db->partition_functions.contains(key), s.name);
  auto function = std::make_shared<PartitionFunction>();
  function->id = 65'536 + db->next_partition_id++;
  function->name = s.name;
  function->type = s.type;
  if (is_string(s.type.kind) && function->type.collation == tds::Collation{})
    function->type.collation = context.collation();
  function->right = s.right;
  function->created = now_ticks();
  for (const ExprPtr& e : s.boundaries)
    function->boundaries.push_back(convert(constant_value(context, e), function->type));
  const auto below = [](const Value& a, const Value& b) {
    if (a.null || b.null) return a.null && !b.null;
    return compare_same(a, b) < 0;
  };
  std::sort(function->boundaries.begin(), function->boundaries.end(), below);
  for (std::size_t i = 1; i < function->boundaries.size(); ++i)
    if (!below(function->boundaries[i - 1], function->boundaries[i]))
      raise(7708, 16, 1,
            fmt::format("Duplicate values are not allowed in partition function boundary values list. Partition "
                        "boundary values at ordinal {} and {} are equal.",
                        i, i + 1),
            Reach::batch);
  db->partition_functions[key] = function;
  log_undo(context.session, UndoDefinition{[db, key] { db->partition_functions.erase(key); }});
  return {std::nullopt, 0xDF, false};
}

Outcome create_scheme(const Context& context, const CreatePartition& s) {
  const auto db = context.session.database;
  const std::string key = fold_name(s.name);
  refuse_taken_name(db->partition_schemes.contains(key), s.name);
  const auto function = function_named(*db, s.function);
  if (function == nullptr) raise(208, 16, 58, fmt::format("Invalid object name '{}'.", s.function), Reach::batch);
  if (!s.all && s.filegroups < function->partitions())
    raise(7707, 16, 1,
          fmt::format("The associated partition function '{}' generates more partitions than there are file groups "
                      "mentioned in the scheme '{}'.",
                      function->name, s.name),
          Reach::batch);
  auto scheme = std::make_shared<PartitionScheme>();
  scheme->data_space_id = first_data_space + db->next_partition_id++;
  scheme->name = s.name;
  scheme->function = function;
  db->partition_schemes[key] = scheme;
  log_undo(context.session, UndoDefinition{[db, key] { db->partition_schemes.erase(key); }});
  return {std::nullopt, 0xDF, false};
}

bool scheme_is_used(const Database& db, const PartitionScheme& scheme) {
  return std::any_of(db.objects.begin(), db.objects.end(), [&](const auto& entry) {
    return entry.second->def != nullptr && entry.second->def->partition_scheme.get() == &scheme;
  });
}

}  // namespace

int PartitionFunction::number_of(const Value& value) const {
  if (value.null) return 1;
  int number = 1;
  for (const Value& boundary : boundaries) {
    if (!boundary.null) {
      const auto order = compare_same(value, boundary);
      if (right ? order < 0 : order <= 0) break;
    }
    ++number;
  }
  return number;
}

Outcome execute_create_partition(const Context& context, CreatePartition& s) {
  return s.scheme ? create_scheme(context, s) : create_function(context, s);
}

void drop_partition(const Context& context, const std::string& kind, const std::string& name, bool if_exists) {
  const auto db = context.session.database;
  const std::string key = fold_name(name);
  const auto missing = [&](const char* what) {
    if (if_exists) return;
    raise(3701, 11, 5,
          fmt::format("Cannot drop the partition {} '{}', because it does not exist or you do not have permission.",
                      what, name));
  };
  if (kind == "PARTITION SCHEME") {
    const auto found = db->partition_schemes.find(key);
    if (found == db->partition_schemes.end()) return missing("scheme");
    const auto scheme = found->second;
    if (scheme_is_used(*db, *scheme))
      raise(7717, 16, 1,
            fmt::format("The partition scheme \"{}\" is currently being used to partition one or more tables.", name));
    db->partition_schemes.erase(found);
    log_undo(context.session, UndoDefinition{[db, key, scheme] { db->partition_schemes[key] = scheme; }});
    return;
  }
  const auto found = db->partition_functions.find(key);
  if (found == db->partition_functions.end()) return missing("function");
  const auto function = found->second;
  for (const auto& [folded, scheme] : db->partition_schemes)
    if (scheme->function == function)
      raise(7706, 16, 1, fmt::format("Partition function '{}' is being used by one or more partition schemes.", name));
  db->partition_functions.erase(found);
  log_undo(context.session, UndoDefinition{[db, key, function] { db->partition_functions[key] = function; }});
}

void place_on_scheme(TableDef& def, const std::string& table, const std::string& scheme, const std::string& column,
                     const Database& db) {
  const auto found = db.partition_schemes.find(fold_name(scheme));
  if (found == db.partition_schemes.end())
    raise(1921, 16, 1, fmt::format("Invalid partition scheme '{}' specified.", scheme), Reach::batch);
  const int at = def.find(column);
  if (at < 0)
    raise(1911, 16, 1, fmt::format("Column name '{}' does not exist in the target table or view.", column),
          Reach::batch);
  const Type& type = def.columns[static_cast<std::size_t>(at)].type;
  const Type& wanted = found->second->function->type;
  if (type.kind != wanted.kind || type.scale != wanted.scale || type.precision != wanted.precision)
    raise(7726, 16, 1,
          fmt::format("Partition column '{}' has data type {} which is different from the partition function '{}' "
                      "parameter data type {}.",
                      column, type_text(type), found->second->function->name, type_text(wanted)),
          Reach::batch);
  (void)table;
  def.partition_scheme = found->second;
  def.partition_column = at;
}

std::shared_ptr<const PartitionFunction> partition_function(const Context& context,
                                                            const std::vector<std::string>& name) {
  const auto db = name.size() > 2 ? context.server.database(name[0]) : context.session.database;
  const auto function = db == nullptr ? nullptr : function_named(*db, name.back());
  if (function == nullptr) raise(208, 16, 58, fmt::format("Invalid object name '{}'.", name.back()), Reach::batch);
  return function;
}

std::vector<std::uint64_t> partition_rows(const Context& context, const Object& table) {
  TableData& data = *table.data;
  const auto& scheme = table.def->partition_scheme;
  const int stored =
      scheme == nullptr ? -1 : table.def->columns[static_cast<std::size_t>(table.def->partition_column)].stored;
  if (stored < 0) return {data.count(transaction_id(context.session))};
  PartitionCounts& known = data.partition_counts();
  if (known.scheme == scheme && known.changes == data.changes()) return known.rows;
  known = {scheme, data.changes(), std::vector<std::uint64_t>(scheme->function->partitions())};
  TableScan scan(context, table.data, ReadMode::skip_locked);
  ByteView row;
  RowId id;
  while (scan.next(row, id)) {
    const Value v = column_value(data.layout(), row, static_cast<std::size_t>(stored));
    ++known.rows[static_cast<std::size_t>(scheme->function->number_of(v)) - 1];
  }
  return known.rows;
}

}  // namespace rowferry::sandbox::engine
