// Slices: how a table, view or query is cut into disjoint parts that together are the whole.
//
// Slice::spec is the T-SQL condition of the slice; empty: all rows. Bounds and values come from the server, in its own
// order and by its own equality, and go back to it as literals of the column's own type, so that every row is in
// exactly one slice: ranges are half open, the first open below, the last open above; NULL, which no range holds, has a
// slice of its own where it was found. Values of text and binary columns are told apart by their bytes (a
// case-insensitive collation holds 'a', 'A' and 'a ' equal).
#pragma once

#include <string>
#include <vector>

#include "mssql/origin.hpp"
#include "mssql/select.hpp"
#include "system/source.hpp"

namespace rowferry::mssql {

enum class Level : std::uint8_t { read_uncommitted, read_committed, snapshot };

// How rows are read: the isolation level, and whether one statement sees one moment of the data.
struct Isolation {
  Level level = Level::read_committed;
  bool one_moment = false;
  std::string reason;
  std::vector<system::Notice> notices;
  std::string_view sql() const noexcept;  // of SET TRANSACTION ISOLATION LEVEL
};

// `wanted`: snapshot, read_committed, read_uncommitted, auto, or empty (read_committed). Error(unsupported,
// "snapshot_not_allowed") where the database does not allow it.
Isolation choose_isolation(std::string_view wanted, const ReadingFacts& facts, const std::string& database);
system::Consistency consistency_of(const Isolation& isolation, std::size_t slices);

// A value or bound that was found, ready for a condition.
struct Found {
  std::string literal;
  std::string printed;
};

// Bounds that cut [low, high] into at most `count` parts of near equal width: strictly increasing, all in (low, high].
std::vector<std::int64_t> equal_widths(std::int64_t low, std::int64_t high, int count);
// Slices of the ranges between the bounds, and one for NULL.
void add_ranges(system::SlicePlan& plan, const OriginColumn& column, const std::vector<Found>& bounds, bool nulls,
                std::optional<std::uint64_t> rows);
// One slice for each run of partitions that ends with one that has rows.
void add_partitions(system::SlicePlan& plan, const StorageFacts& storage);
// The slice of one value of the column; `bytes` of text and binary: what it is, exactly.
system::Slice value_slice(const OriginColumn& column, const tds::Value& value, const tds::Value& bytes);

// Chooses and makes the slices. Errors: Error(input, "slices_impossible" / "too_many_slices"), column_missing.
async::Task<system::SlicePlan> make_slices(const Lease& lease, const Origin& origin,
                                           const system::SliceRequest& request);
// The slices of the values that the column has now.
async::Task<std::vector<system::Slice>> value_slices(const Lease& lease, const Origin& origin, std::string column);

}  // namespace rowferry::mssql
