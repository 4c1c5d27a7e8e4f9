// TableScan: the rows of a base table, in the order in which they are stored, as they were when it began.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "sandbox/engine/state.hpp"

namespace rowferry::sandbox::engine {

enum class ReadMode : std::uint8_t {
  committed,    // waits for rows that others hold
  dirty,        // takes what others have not committed
  skip_locked,  // passes over rows that others hold
  snapshot,     // the versions of the session's snapshot; never waits
};

// Keeps the blocks that it goes over, so that their bytes stay where they are: nobody appends to a block that is kept.
class TableScan {
 public:
  TableScan() = default;
  TableScan(const Context& context, std::shared_ptr<TableData> data, ReadMode mode);
  // The next visible row; false at the end. Throws WouldBlock at a row that another transaction holds.
  bool next(ByteView& row, RowId& id);
  // Rows that follow one another in one block: [first, first + count), at most `most`.
  struct Range {
    const RowBlock* block = nullptr;
    RowId first;
    std::uint32_t count = 0;
  };
  bool next(Range& range, std::uint32_t most);
  // A held row for which this says no is passed over: an index would have led a seek past it.
  void seek(std::function<bool(ByteView row, RowId id)> may_match) { may_match_ = std::move(may_match); }
  // Of a row that was given.
  ByteView row(RowId id) const { return blocks_[id.block].rows->row(id.row); }

 private:
  struct Block {
    std::shared_ptr<const RowBlock> rows;
    std::uint32_t end = 0;  // rows at the beginning
  };
  bool skip_empty(std::uint32_t& end);

  const SessionState* session_ = nullptr;
  std::shared_ptr<TableData> data_;
  ReadMode mode_ = ReadMode::committed;
  View view_ = TransactionId{0};
  RowId at_;
  std::vector<Block> blocks_;
  std::function<bool(ByteView, RowId)> may_match_;
};

}  // namespace rowferry::sandbox::engine
