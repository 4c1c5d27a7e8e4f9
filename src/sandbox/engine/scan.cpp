#include "sandbox/engine/scan.hpp"

#include <algorithm>

namespace rowferry::sandbox::engine {

TableScan::TableScan(const Context& context, std::shared_ptr<TableData> data, ReadMode mode)
    : session_(&context.session),
      data_(std::move(data)),
      mode_(mode),
      view_(transaction_id(context.session), mode == ReadMode::snapshot ? snapshot_of(context.session) : 0) {
  blocks_.reserve(data_->blocks().size());
  for (const BlockSlot& slot : data_->blocks())
    blocks_.push_back({slot.rows, static_cast<std::uint32_t>(slot.rows->ends.size())});
}

// To the next block with rows to look at; false at the end.
bool TableScan::skip_empty(std::uint32_t& end) {
  for (; at_.block < blocks_.size(); at_ = {at_.block + 1, 0}) {
    // A block whose rows were undone is another by now.
    const Block& block = blocks_[at_.block];
    end = data_->blocks()[at_.block].rows == block.rows ? block.end : 0;
    if (at_.row < end) return true;
  }
  return false;
}

bool TableScan::next(ByteView& row, RowId& id) {
  std::uint32_t end = 0;
  while (skip_empty(end)) {
    const RowBlock& rows = *blocks_[at_.block].rows;
    bool take = true;
    if (!data_->all_visible(at_.block, view_)) {
      TransactionId other = 0;
      const Sight sight = data_->sight(at_, view_, &other);
      if (sight == Sight::gone) {
        take = false;
      } else if (sight != Sight::visible) {
        const bool wanted = !may_match_ || may_match_(rows.row(at_.row), at_);
        if (wanted && mode_ == ReadMode::committed) block_on_transaction(*session_->server, other);
        take = mode_ == ReadMode::dirty && sight == Sight::inserted_by_other;
      }
    }
    id = at_;
    ++at_.row;
    if (!take) continue;
    row = rows.row(id.row);
    return true;
  }
  return false;
}

bool TableScan::next(Range& range, std::uint32_t most) {
  std::uint32_t end = 0;
  if (!skip_empty(end)) return false;
  if (data_->all_visible(at_.block, view_)) {
    range = {blocks_[at_.block].rows.get(), at_, std::min(most, end - at_.row)};
    at_.row += range.count;
    return true;
  }
  ByteView row;
  RowId id;
  if (!next(row, id)) return false;
  range = {blocks_[id.block].rows.get(), id, 1};
  return true;
}

}  // namespace rowferry::sandbox::engine
