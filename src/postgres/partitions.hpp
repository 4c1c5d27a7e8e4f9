// Partitions of a target: which one a slice fills, how it is made, exchanged and emptied.
#pragma once

#include <string>
#include <vector>

#include "postgres/decision.hpp"

namespace rowferry::postgres {

// The partition of one slice: an existing one with exactly its bounds, or a new one.
struct SlicePartition {
  std::optional<PartitionFacts> existing;
  std::string schema;
  std::string name;   // of the new one, unique in the schema
  std::string bound;  // "FOR VALUES IN ('a')"
  std::string check;  // the bounds as a condition of CHECK; empty: none (DEFAULT)
};

// One slice with Finalizer::per_slice, after the ledger's key (attempt 0, system::slice_step()).
struct SliceStatements {
  // TRUNCATE the partition, or CREATE TABLE. With `creates`: run it when the first row has come; a slice without rows
  // makes no partition and needs none of the rest.
  std::vector<std::string> before;
  bool creates = false;
  std::string table;               // SQL: what COPY fills
  std::vector<std::string> build;  // after COPY: keys and indexes of a created table, which lock nothing of others
  std::string swap;                // as FinalizeStatement::Kind::swap: DETACH, ATTACH, …; empty: nothing to do
  std::vector<std::string> after;  // triggers as they were
  std::string partition;           // SQL: the name that has the rows in the end
};

// Finds or names the partitions of `slices`, in the same order, comparing bounds as the server compares the column.
// Errors: Error(unsupported, "slice_without_bounds" / "slice_bounds"), Error(conflict, "default_partition_rows" /
// "partition_bounds" / "partition_name_taken"), Error(forbidden, "right_missing"), Error(input, "commit_slice_…").
async::Task<std::vector<SlicePartition>> find_partitions(Session& session, const TableFacts& table,
                                                         const Decision& decision,
                                                         const std::vector<system::ColumnPlan>& columns,
                                                         const std::vector<system::Slice>& slices);
// `fresh`: a table name of this slice's own, for exchange.
SliceStatements slice_statements(const Decision& decision, const TableFacts& table, const SlicePartition& partition,
                                 const std::string& fresh);

// The name, or its first bytes and eight digits of the hash of `hashed` where that is needed or it has more than 63
// bytes.
std::string cut_name(const std::string& name, std::string_view hashed, bool needs_hash);

// TargetTable::partition_bounds of a table that is partitioned by range of one column.
async::Task<std::vector<system::SliceBounds>> range_bounds_of(Session& session, const TableFacts& table,
                                                              const rows::Type& type);

// The final step of per_slice (unless the source was filtered): TRUNCATE for each partition that has rows and holds
// none of `slices`, the default one among them. `table` as read after the last slice.
async::Task<std::vector<std::string>> vanished_partitions(Session& session, const TableFacts& table,
                                                          const std::vector<system::ColumnPlan>& columns,
                                                          const std::vector<system::Slice>& slices);

// FinalizeStatement::Kind::partitions: makes, in the transaction, the partitions that staging's rows need and the
// (partitioned) table lacks: by list for the values that staging has, by range for the slices' bounds.
async::Task<void> make_partitions(Session& session, const TableFacts& table, const Decision& decision,
                                  const std::vector<system::ColumnPlan>& columns,
                                  const std::vector<system::Slice>& slices, const std::string& staging);

}  // namespace rowferry::postgres
