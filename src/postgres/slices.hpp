// Slices: how a table or a query is cut into disjoint parts that together are the whole.
//
// Whatever the bounds, every row is in exactly one slice: ranges are half open, the first is open below and the last
// open above, and NULL, which no range holds, has a slice of its own where it was found.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "postgres/catalogue.hpp"
#include "postgres/session.hpp"
#include "system/source.hpp"

namespace rowferry::postgres {

// One COPY of a slice: rows of `from` for which `predicate` (SQL; empty: all) is true.
struct Piece {
  std::string from;
  std::string predicate;
  bool operator==(const Piece&) const = default;
};

// Slice::spec holds the pieces, each text with its length before it, so that no name can break it.
std::string pack(const std::vector<Piece>& pieces);
// Throws Error(internal) for a spec that pack() did not make.
std::vector<Piece> unpack(std::string_view spec);

// Bounds that cut [min, max] into at most `count` parts of near equal width: strictly increasing, all in (min, max].
std::vector<std::int64_t> range_bounds(std::int64_t min, std::int64_t max, int count);

// A run of blocks of one leaf: [begin, end), the last one of a leaf without end.
struct BlockRange {
  std::size_t leaf = 0;
  std::int64_t begin = 0;
  std::int64_t end = -1;  // -1: open
  std::int64_t blocks = 0;
};
// Cuts leaves (by their block counts) into about `count` parts of near equal size; small leaves share a part.
std::vector<std::vector<BlockRange>> block_ranges(const std::vector<std::int64_t>& blocks, int count);

// Chooses and makes the slices, in the session's transaction. A source that need not give the same rows twice is never
// cut: one slice and the notice `not_sliced`, or slices_impossible where a cut was asked for. Errors: Error(input,
// "slices_impossible"), "too_many_slices", column_missing, and what the server says of a column without order or
// equality.
async::Task<system::SlicePlan> make_slices(Session& session, const Origin& origin, const system::SliceRequest& request);

}  // namespace rowferry::postgres
