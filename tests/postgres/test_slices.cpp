#include <limits>

#include "../support/expect.hpp"
#include "postgres/slices.hpp"

using namespace rowferry;
using namespace rowferry::postgres;

namespace {

constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();

// Every block of every leaf is in exactly one range, and each leaf's last range is open.
void expect_cover(const std::vector<std::int64_t>& blocks, const std::vector<std::vector<BlockRange>>& parts) {
  std::vector<std::int64_t> next(blocks.size(), 0);
  for (const auto& part : parts) {
    for (const BlockRange& range : part) {
      cr_expect_eq(range.begin, next[range.leaf], "leaf %zu", range.leaf);
      next[range.leaf] = range.end;
    }
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) cr_expect_eq(next[i], -1, "leaf %zu ends open", i);
}

}  // namespace

Test(slices, bounds_are_strictly_increasing_and_inside) {
  for (const auto& [min, max] : {std::pair{least, most},
                                 {least, least},
                                 {most, most},
                                 {0L, 1L},
                                 {-5L, 5L},
                                 {most - 3, most},
                                 {least, least + 2}}) {
    for (const int count : {1, 2, 3, 7, 1000}) {
      const auto bounds = range_bounds(min, max, count);
      cr_expect_lt(bounds.size(), static_cast<std::size_t>(count));
      for (std::size_t i = 0; i < bounds.size(); ++i) {
        cr_expect_gt(bounds[i], i == 0 ? min : bounds[i - 1]);
        cr_expect_leq(bounds[i], max);
      }
    }
  }
  cr_expect(range_bounds(0, 99, 4) == (std::vector<std::int64_t>{25, 50, 75}));
  cr_expect(range_bounds(7, 7, 4).empty());
  cr_expect(range_bounds(least, most, 2) == std::vector<std::int64_t>{0});
}

Test(slices, block_ranges_cover_every_leaf_once) {
  for (const std::vector<std::int64_t>& blocks :
       {std::vector<std::int64_t>{100}, {0}, {3}, {0, 0, 0}, {1000, 1, 1, 1, 1}, {5, 5, 5, 5}, {10, 0, 90}}) {
    for (const int count : {1, 2, 4, 50}) expect_cover(blocks, block_ranges(blocks, count));
  }
}

Test(slices, block_ranges_come_near_the_count) {
  cr_expect_eq(block_ranges({100}, 4).size(), 4);
  cr_expect_eq(block_ranges({10}, 4).size(), 4);
  cr_expect_eq(block_ranges({3}, 4).size(), 3);
  cr_expect_eq(block_ranges({0}, 4).size(), 1);
  cr_expect_eq(block_ranges({100}, 1).size(), 1);
  cr_expect_eq(block_ranges(std::vector<std::int64_t>(1000, 1), 4).size(), 4, "small leaves share a slice");
}

Test(slices, specs_survive_any_name) {
  const std::vector<Piece> pieces{{"ONLY \"a:1,\"\".\"\"x\"", "ctid < '(3,0)'"}, {"12:3", ""}, {"", "\n'"}};
  cr_expect(unpack(pack(pieces)) == pieces);
  cr_expect(unpack("").empty());
  for (const char* bad : {"x", "3:ab", "1:a", "1:a5:b", ":", "99999999999999999999:a", "-1:a0:"}) {
    EXPECT_ERROR(unpack(bad), "bad_slice");
  }
}
