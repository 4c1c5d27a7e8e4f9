// Bounds of partitions and slices, compared as the server compares the partition column.
#pragma once

#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "postgres/target_catalogue.hpp"

namespace rowferry::postgres {

// Values of the partition column as the server orders them: the same rank for what it takes for equal.
using Ranks = std::map<std::string, int, std::less<>>;
async::Task<Ranks> rank(Session* session, const ColumnFacts* column, std::set<std::string> texts);

// Error(conflict, "target_changed") when the table has no such column any more.
const ColumnFacts& partition_column_of(const TableFacts& table);
// The bounds with texts as PostgreSQL reads them; `type` is the column's.
system::SliceBounds server_bounds(const system::SliceBounds& bounds, const rows::Type& type);
// SQL of a value of the column.
std::string literal_of(const ColumnFacts& column, const std::string& text);

// Which partition of a table has which bounds.
class Places {
 public:
  // The table outlives it. `wanted` are all the bounds that it will be asked about.
  static async::Task<Places> of(Session* session, const TableFacts* table, std::vector<system::SliceBounds> wanted);

  // The partition with exactly these bounds; null: none. Error(conflict, "partition_bounds") for one that holds more
  // or less.
  const PartitionFacts* find(const system::SliceBounds& bounds) const;
  // The partition that takes a value of a list, whatever else it holds.
  const PartitionFacts* holder(const system::SliceBounds& bounds) const;
  const PartitionFacts* overlapping(const system::SliceBounds& bounds) const;
  const PartitionFacts* default_partition() const;
  // The same for two slices that the server takes for one.
  std::string key(const system::SliceBounds& bounds) const;

 private:
  Places(const TableFacts& table, Ranks ranks) : table_(table), ranks_(std::move(ranks)) {}
  bool holds(const PartitionFacts& part, const system::SliceBounds& bounds) const;
  const PartitionFacts* find_value(const system::SliceBounds& bounds) const;
  const PartitionFacts* find_range(const system::SliceBounds& bounds) const;

  const TableFacts& table_;
  Ranks ranks_;
};

}  // namespace rowferry::postgres
