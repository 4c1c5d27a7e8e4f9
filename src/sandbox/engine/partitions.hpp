// Partition functions and schemes: which partition a value belongs to. Tables are not stored in parts; a partition is
// what its function says of the partitioning column.
#pragma once

#include <vector>

#include "sandbox/engine/execute.hpp"
#include "sandbox/engine/query.hpp"

namespace rowferry::sandbox::engine {

struct PartitionFunction {
  int id = 0;
  std::string name;
  Type type;
  bool right = false;  // a boundary belongs to the partition on its right
  std::vector<Value> boundaries;
  std::int64_t created = 0;
  std::size_t partitions() const noexcept { return boundaries.size() + 1; }
  // From 1; NULL lies below every boundary.
  int number_of(const Value& value) const;
};

struct PartitionScheme {
  int data_space_id = 0;
  std::string name;
  std::shared_ptr<const PartitionFunction> function;
};

// DROP PARTITION FUNCTION | SCHEME.
void drop_partition(const Context& context, const std::string& kind, const std::string& name, bool if_exists);
// Raises 1921 for a name that is no scheme, 7726 where the column's type is another than the function's.
void place_on_scheme(TableDef& def, const std::string& table, const std::string& scheme, const std::string& column,
                     const Database& db);

// $PARTITION.name(value); raises 208-like errors for a name that is none.
std::shared_ptr<const PartitionFunction> partition_function(const Context& context,
                                                            const std::vector<std::string>& name);
// Committed rows of each partition; of a table without a scheme all of them.
std::vector<std::uint64_t> partition_rows(const Context& context, const Object& table);

}  // namespace rowferry::sandbox::engine
