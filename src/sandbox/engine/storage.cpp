#define XXH_INLINE_ALL
#include "sandbox/engine/storage.hpp"

#include <xxhash.h>

#include "base/limits.hpp"
#include "sandbox/engine/convert.hpp"

namespace rowferry::sandbox::engine {

void HashSum::add(const HashSum& other) noexcept {
  low += other.low;
  high += other.high + (low < other.low ? 1 : 0);
}

void HashSum::subtract(const HashSum& other) noexcept {
  const bool borrow = low < other.low;
  low -= other.low;
  high -= other.high + (borrow ? 1 : 0);
}

void KeyIndex::grow() {
  const std::size_t wanted = slots_.empty() ? 16 : live_ * 2 >= slots_.size() / 2 ? slots_.size() * 2 : slots_.size();
  std::vector<Slot> old(wanted);
  old.swap(slots_);
  used_ = live_;
  for (const Slot& slot : old) {
    if (slot.row == empty || slot.row == gone) continue;
    std::size_t i = slot.hash & (slots_.size() - 1);
    while (slots_[i].row != empty) i = (i + 1) & (slots_.size() - 1);
    slots_[i] = slot;
  }
}

void KeyIndex::add(std::uint64_t hash, RowId row) {
  if ((used_ + 1) * 4 > slots_.size() * 3) grow();
  std::size_t i = hash & (slots_.size() - 1);
  while (slots_[i].row != empty) i = (i + 1) & (slots_.size() - 1);
  slots_[i] = {hash, row.packed()};
  ++used_;
  ++live_;
}

void KeyIndex::remove(std::uint64_t hash, RowId row) {
  if (slots_.empty()) return;
  for (std::size_t i = hash & (slots_.size() - 1); slots_[i].row != empty; i = (i + 1) & (slots_.size() - 1)) {
    if (slots_[i].hash != hash || slots_[i].row != row.packed()) continue;
    slots_[i].row = gone;
    --live_;
    return;
  }
}

Sight TableData::sight(RowId id, View view, TransactionId* other) const {
  const BlockSlot& slot = blocks_[id.block];
  if (!slot.dead.empty() && slot.dead[id.row]) return Sight::gone;
  if (view.snapshot != 0) return sight_in_snapshot(id, view);
  if (slot.owner != 0 && slot.owner != view.me) {
    if (other != nullptr) *other = slot.owner;
    return Sight::inserted_by_other;
  }
  if (marks_.empty()) return Sight::visible;
  const auto found = marks_.find(id.packed());
  if (found == marks_.end()) return Sight::visible;
  const RowMark& mark = found->second;
  if (mark.inserted != 0 && mark.inserted != view.me) {
    if (other != nullptr) *other = mark.inserted;
    return Sight::inserted_by_other;
  }
  if (mark.until != 0) return Sight::gone;
  if (mark.deleted == 0) return Sight::visible;
  if (mark.deleted == view.me) return Sight::gone;
  if (other != nullptr) *other = mark.deleted;
  return Sight::deleted_by_other;
}

Sight TableData::sight_in_snapshot(RowId id, View view) const {
  const BlockSlot& slot = blocks_[id.block];
  if (slot.owner != 0 ? slot.owner != view.me : slot.since > view.snapshot) return Sight::gone;
  const auto found = marks_.find(id.packed());
  if (found == marks_.end()) return Sight::visible;
  const RowMark& mark = found->second;
  if (mark.inserted != 0 ? mark.inserted != view.me : mark.since > view.snapshot) return Sight::gone;
  if (mark.until != 0 && mark.until <= view.snapshot) return Sight::gone;
  return mark.deleted != 0 && mark.deleted == view.me ? Sight::gone : Sight::visible;
}

bool TableData::all_visible(std::uint32_t block, View view) const {
  const BlockSlot& slot = blocks_[block];
  return slot.dead.empty() && marks_.empty() && (slot.owner == 0 || slot.owner == view.me) &&
         (view.snapshot == 0 || slot.since <= view.snapshot);
}

RowId TableData::append(ByteView row, TransactionId me, bool bulk) {
  const auto fits = [&](const BlockSlot& slot) {
    return slot.bulk == bulk && (!bulk || slot.owner == me) && slot.rows.use_count() == 1 &&
           (slot.rows->bytes.empty() || slot.rows->bytes.size() + row.size() <= limits::sandbox_block_bytes);
  };
  std::size_t at = blocks_.size();
  for (std::size_t back = 0; back < 4 && back < blocks_.size(); ++back) {
    if (!fits(blocks_[blocks_.size() - 1 - back])) continue;
    at = blocks_.size() - 1 - back;
    break;
  }
  if (at == blocks_.size()) {
    const bool after_full = bulk && !blocks_.empty() && blocks_.back().bulk && blocks_.back().owner == me;
    blocks_.push_back({std::make_shared<RowBlock>(), {}, bulk ? me : 0, bulk});
    if (after_full) blocks_.back().rows->bytes.reserve(limits::sandbox_block_bytes);
  }
  BlockSlot& slot = blocks_[at];
  slot.rows->bytes.append(row);
  slot.rows->ends.push_back(static_cast<std::uint32_t>(slot.rows->bytes.size()));
  if (!slot.dead.empty()) slot.dead.push_back(false);
  const RowId id{static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(slot.rows->ends.size() - 1)};
  if (!bulk) marks_[id.packed()].inserted = me;
  Pending& pending = pending_[me];
  ++pending.rows;
  pending.touched = true;
  return id;
}

void TableData::append_rows(const BulkRows& rows, TransactionId me, std::vector<Piece>& pieces) {
  for (std::size_t i = 0; i < rows.count;) {
    const bool open = !blocks_.empty() && blocks_.back().bulk && blocks_.back().owner == me &&
                      blocks_.back().dead.empty() && blocks_.back().rows.use_count() == 1 &&
                      blocks_.back().rows->bytes.size() < limits::sandbox_block_bytes;
    if (!open) blocks_.push_back({std::make_shared<RowBlock>(), {}, me, true});
    RowBlock& block = *blocks_.back().rows;
    Piece piece{{static_cast<std::uint32_t>(blocks_.size() - 1), static_cast<std::uint32_t>(block.ends.size())}, 0};
    while (i < rows.count && (block.bytes.size() < limits::sandbox_block_bytes)) {
      const RowSpan& span = rows.rows[i++];
      const std::size_t size = span.end - span.begin;
      std::memcpy(block.bytes.extend(size), rows.bytes + span.begin, size);
      block.ends.push_back(static_cast<std::uint32_t>(block.bytes.size()));
      ++piece.count;
    }
    pieces.push_back(piece);
  }
  Pending& pending = pending_[me];
  pending.rows += static_cast<std::int64_t>(rows.count);
  pending.touched = true;
}

HashSum hash_row(ByteView row) {
  const XXH128_hash_t hash = XXH3_128bits(row.data(), row.size());
  return {hash.low64, hash.high64};
}

void TableData::add_shared(std::shared_ptr<RowBlock> rows, TransactionId me) {
  Pending& pending = pending_[me];
  pending.rows += static_cast<std::int64_t>(rows->ends.size());
  pending.touched = true;
  blocks_.push_back({std::move(rows), {}, me, true});
}

void TableData::mark_deleted(RowId id, TransactionId me) {
  marks_[id.packed()].deleted = me;
  Pending& pending = pending_[me];
  --pending.rows;
  pending.touched = true;
}

void TableData::commit_insert(RowId first, std::uint32_t count, TransactionId me, Moment moment) {
  BlockSlot& slot = blocks_[first.block];
  if (slot.owner == me) {
    slot.owner = 0;
    slot.since = moment;
    if (moment != 0) kept_blocks_.push_back(first.block);
  }
  if (slot.bulk) return;
  for (std::uint32_t i = 0; i < count; ++i) {
    const RowId id{first.block, first.row + i};
    const auto found = marks_.find(id.packed());
    if (found == marks_.end()) continue;
    found->second.inserted = 0;
    found->second.since = moment;
    if (moment != 0) {
      kept_rows_.push_back(id);
    } else if (found->second.deleted == 0) {
      marks_.erase(found);
    }
  }
}

void TableData::undo_insert(RowId first, std::uint32_t count, TransactionId me) {
  BlockSlot& slot = blocks_[first.block];
  Pending& pending = pending_[me];
  pending.rows -= count;
  for (std::uint32_t i = 0; i < count; ++i) {
    const RowId id{first.block, first.row + i};
    unindex_row(id);
    kill(id);
  }
  // A block that held nothing else gives its memory back.
  if (slot.bulk && first.row == 0 && count == slot.rows->ends.size())
    slot = {std::make_shared<RowBlock>(), {}, 0, true};
}

void TableData::kill(RowId id) {
  BlockSlot& slot = blocks_[id.block];
  if (slot.dead.empty()) slot.dead.assign(slot.rows->ends.size(), false);
  slot.dead[id.row] = true;
  marks_.erase(id.packed());
}

void TableData::commit_delete(RowId id, Moment moment) {
  unindex_row(id);
  const auto found = marks_.find(id.packed());
  const bool born_then = found != marks_.end() && moment != 0 && found->second.since == moment;
  if (moment == 0 || found == marks_.end() || born_then) return kill(id);
  found->second.deleted = 0;
  found->second.until = moment;
  kept_rows_.push_back(id);
}

void TableData::forget(Moment oldest) {
  std::erase_if(kept_blocks_, [&](std::uint32_t block) {
    if (blocks_[block].since > oldest) return false;
    blocks_[block].since = 0;
    return true;
  });
  std::erase_if(kept_rows_, [&](RowId id) {
    const auto found = marks_.find(id.packed());
    if (found == marks_.end()) return true;
    RowMark& mark = found->second;
    if (mark.until != 0 && mark.until <= oldest) {
      kill(id);
      return true;
    }
    if (mark.since > oldest || mark.until != 0) return false;
    mark.since = 0;
    if (mark.inserted == 0 && mark.deleted == 0) marks_.erase(found);
    return true;
  });
}

void TableData::undo_delete(RowId id, TransactionId me) {
  Pending& pending = pending_[me];
  ++pending.rows;
  const auto found = marks_.find(id.packed());
  if (found == marks_.end()) return;
  found->second.deleted = 0;
  if (found->second.inserted == 0 && found->second.since == 0) marks_.erase(found);
}

void TableData::add_discarded(std::int64_t rows, const HashSum& hash, bool take_away, TransactionId me) {
  Pending& pending = pending_[me];
  pending.touched = true;
  pending.discarded += take_away ? -rows : rows;
  if (take_away) {
    pending.hash.subtract(hash);
  } else {
    pending.hash.add(hash);
  }
}

void TableData::settle(TransactionId me, bool commit) {
  const auto found = pending_.find(me);
  if (found == pending_.end()) return;
  ++changes_;
  if (commit) {
    rows_ += found->second.rows;
    discarded_rows_ += found->second.discarded;
    discarded_hash_.add(found->second.hash);
  }
  pending_.erase(found);
}

std::uint64_t TableData::count(TransactionId me) const {
  std::int64_t all = rows_ + discarded_rows_;
  const auto mine = pending_.find(me);
  if (mine != pending_.end()) all += mine->second.rows + mine->second.discarded;
  return static_cast<std::uint64_t>(all);
}

std::uint64_t TableData::count_dirty() const {
  std::int64_t all = rows_ + discarded_rows_;
  for (const auto& [id, pending] : pending_) all += pending.rows + pending.discarded;
  return static_cast<std::uint64_t>(all);
}

std::uint64_t TableData::discarded(TransactionId me) const {
  std::int64_t all = discarded_rows_;
  const auto mine = pending_.find(me);
  if (mine != pending_.end()) all += mine->second.discarded;
  return static_cast<std::uint64_t>(all);
}

HashSum TableData::hash(TransactionId me) const {
  HashSum sum = discarded_hash_;
  const auto mine = pending_.find(me);
  if (mine != pending_.end()) sum.add(mine->second.hash);
  return sum;
}

TransactionId TableData::touched_by_other(TransactionId me) const {
  for (const auto& [id, pending] : pending_)
    if (id != me && pending.touched) return id;
  return 0;
}

void TableData::key_of(ByteView row, const std::vector<int>& columns, std::string& out) const {
  out.clear();
  for (const int column : columns) append_key(column_value(layout_, row, static_cast<std::size_t>(column)), out);
}

std::uint64_t TableData::hash_of(std::string_view key) { return XXH3_64bits(key.data(), key.size()); }

void TableData::index_row(RowId id) {
  for (KeyIndex& key : keys_) {
    key_of(row(id), key.columns(), scratch_);
    key.add(hash_of(scratch_), id);
  }
}

void TableData::unindex_row(RowId id) {
  for (KeyIndex& key : keys_) {
    key_of(row(id), key.columns(), scratch_);
    key.remove(hash_of(scratch_), id);
  }
}

bool TableData::same_key(RowId id, const KeyIndex& index, std::string_view key) const {
  std::string other;
  key_of(row(id), index.columns(), other);
  return other == key;
}

std::size_t TableData::bytes_kept() const {
  std::size_t bytes = 0;
  for (const BlockSlot& slot : blocks_) bytes += slot.rows->bytes.size();
  return bytes;
}

const std::uint8_t* column_at(const Layout& layout, ByteView row, std::size_t column) {
  const std::uint8_t* at = row.data();
  for (std::size_t i = 0; i < column; ++i) at += value_size(layout[i].info, layout[i].framing, at);
  return at;
}

Value column_value(const Layout& layout, ByteView row, std::size_t column) {
  const StoredColumn& c = layout[column];
  return decode_value(c.type, c.info, column_at(layout, row, column));
}

}  // namespace rowferry::sandbox::engine
