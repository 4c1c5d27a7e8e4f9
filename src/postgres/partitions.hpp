// Partitions of a target: which one a slice fills, how it is made, exchanged and emptied.
#pragma once

#include <string>
#include <vector>

#include "postgres/decision.hpp"

namespace rowferry::postgres {

// The partition of one slice: an existing one with exactly its bounds, or a new one.
struct SlicePartition {
  const PartitionFacts* existing = nullptr;  // of the TableFacts it was found in
  std::string schema;
  std::string name;   // of the new one, unique in the schema
  std::string bound;  // "FOR VALUES IN ('a')"
  std::string check;  // the same as a condition of CHECK
};

// The ledger's step of a slice that touches the target itself: "slice <bounds>", the same for the same store at every
// attempt, whatever the slice's number. At most 128 bytes.
std::string slice_step(const system::Slice& slice);

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

// The partitions that hold none of `slices`: what the final step of per_slice empties (TRUNCATE, one statement each).
// Empty when the source was filtered; a notice says so.
async::Task<std::vector<std::string>> vanished_partitions(Session& session, const TableFacts& table,
                                                          const Decision& decision,
                                                          const std::vector<system::ColumnPlan>& columns,
                                                          const std::vector<system::Slice>& slices);

// FinalizeStatement::Kind::partitions: makes, in the transaction, the partitions that staging's rows need and the
// (partitioned) table lacks: by list for the values that staging has, by range for the slices' bounds.
async::Task<void> make_partitions(Session& session, const TableFacts& table, const Decision& decision,
                                  const std::vector<system::ColumnPlan>& columns,
                                  const std::vector<system::Slice>& slices, const std::string& staging);

}  // namespace rowferry::postgres
