// Rows of one table: blocks of ROW bodies, marks of open transactions, unique keys.
//
// A row is stored in the nullable wire form of its columns (types.hpp: stored_form), back to back in blocks that grow
// to limits::sandbox_block_bytes. Rows never move: a RowId stays good while the row lives. A row that an open
// transaction has inserted or deleted is locked: it carries a mark (or its whole block belongs to the transaction).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/bytes.hpp"
#include "sandbox/engine/engine.hpp"
#include "sandbox/engine/value.hpp"

namespace rowferry::sandbox::engine {

using TransactionId = std::uint64_t;  // 0: committed
using Moment = std::uint64_t;         // commits are numbered; a snapshot is the number of the last before it

// Who looks: at the present with what others have not committed told apart, or, with a snapshot, at the rows as they
// were committed then and as `me` has changed them since.
struct View {
  View(TransactionId transaction, Moment moment = 0)  // NOLINT(google-explicit-constructor): most look at the present
      : me(transaction), snapshot(moment) {}
  TransactionId me = 0;
  Moment snapshot = 0;  // 0: the present
};

struct RowId {
  std::uint32_t block = 0;
  std::uint32_t row = 0;
  std::uint64_t packed() const noexcept { return (static_cast<std::uint64_t>(block) << 32U) | row; }
  static RowId unpack(std::uint64_t v) noexcept {
    return {static_cast<std::uint32_t>(v >> 32U), static_cast<std::uint32_t>(v)};
  }
};

// One stored column: what is needed to walk over it and to decode it.
struct StoredColumn {
  Type type;
  tds::TypeInfo info;
  Framing framing = Framing::fixed;
  explicit StoredColumn(const Type& t) : type(t), info(stored_form(t)), framing(framing_of(info)) {}
};
using Layout = std::vector<StoredColumn>;

// The bytes, shared between tables after INSERT … SELECT.
struct RowBlock {
  ByteBuffer bytes;
  std::vector<std::uint32_t> ends;
  ByteView row(std::uint32_t i) const noexcept {
    const std::uint32_t begin = i == 0 ? 0 : ends[i - 1];
    return {bytes.data() + begin, ends[i] - begin};
  }
};

struct BlockSlot {
  std::shared_ptr<RowBlock> rows;
  std::vector<bool> dead;   // empty: none
  TransactionId owner = 0;  // all rows were inserted by this open transaction
  bool bulk = false;        // never appended to again by others
  Moment since = 0;         // of the commit of all its rows, while a snapshot before it lives
};

struct RowMark {
  TransactionId inserted = 0;
  TransactionId deleted = 0;
  Moment since = 0, until = 0;  // of the commits of the two, while a snapshot before them lives
};

// Equality on the key columns: hashes of key bytes to rows. Entries of dead rows are removed.
class KeyIndex {
 public:
  explicit KeyIndex(std::vector<int> columns) : columns_(std::move(columns)) {}
  const std::vector<int>& columns() const noexcept { return columns_; }  // stored columns
  void add(std::uint64_t hash, RowId row);
  void remove(std::uint64_t hash, RowId row);
  // Calls with every row of this hash until it returns true.
  template <class F>
  bool find(std::uint64_t hash, F&& found) const {
    if (slots_.empty()) return false;
    for (std::size_t i = hash & (slots_.size() - 1); slots_[i].row != empty; i = (i + 1) & (slots_.size() - 1))
      if (slots_[i].row != gone && slots_[i].hash == hash && found(RowId::unpack(slots_[i].row))) return true;
    return false;
  }

 private:
  static constexpr std::uint64_t empty = ~std::uint64_t{0};
  static constexpr std::uint64_t gone = empty - 1;
  struct Slot {
    std::uint64_t hash = 0;
    std::uint64_t row = empty;
  };
  void grow();

  std::vector<int> columns_;
  std::vector<Slot> slots_;
  std::size_t used_ = 0;  // with gone ones
  std::size_t live_ = 0;
};

// What open transactions have done that is not committed.
struct Pending {
  std::int64_t rows = 0;  // inserted minus deleted, kept rows
  std::int64_t discarded = 0;
  HashSum hash;
  bool touched = false;
};

struct PartitionScheme;

// Rows of each partition, as they were found last.
struct PartitionCounts {
  std::shared_ptr<const PartitionScheme> scheme;
  std::uint64_t changes = 0;
  std::vector<std::uint64_t> rows;
};

enum class Sight : std::uint8_t { gone, visible, inserted_by_other, deleted_by_other };

class TableData {
 public:
  explicit TableData(Layout layout) : layout_(std::move(layout)) {}

  const Layout& layout() const noexcept { return layout_; }
  std::vector<BlockSlot>& blocks() noexcept { return blocks_; }
  const std::vector<BlockSlot>& blocks() const noexcept { return blocks_; }
  ByteView row(RowId id) const { return blocks_[id.block].rows->row(id.row); }

  // With a snapshot: gone or visible, nothing else.
  Sight sight(RowId id, View view, TransactionId* other = nullptr) const;
  // True: every row of the block is plainly visible.
  bool all_visible(std::uint32_t block, View view) const;

  // Appends a row of this transaction; bulk: into blocks of its own.
  RowId append(ByteView row, TransactionId me, bool bulk);
  // Many rows at once into blocks of the transaction's own; gives the pieces that the undo log needs.
  struct Piece {
    RowId first;
    std::uint32_t count = 0;
  };
  void append_rows(const BulkRows& rows, TransactionId me, std::vector<Piece>& pieces);
  void add_shared(std::shared_ptr<RowBlock> rows, TransactionId me);
  void mark_deleted(RowId id, TransactionId me);

  // Committing and undoing, by what the transaction's log remembers.
  // `moment`: of this commit when there are snapshots before it, else 0.
  void commit_insert(RowId first, std::uint32_t count, TransactionId me, Moment moment);
  void undo_insert(RowId first, std::uint32_t count, TransactionId me);
  void commit_delete(RowId id, Moment moment);
  void undo_delete(RowId id, TransactionId me);
  void add_discarded(std::int64_t rows, const HashSum& hash, bool take_away, TransactionId me);
  void settle(TransactionId me, bool commit);  // folds or drops `me`'s pending counts
  // Versions that no snapshot from `oldest` on needs are dropped.
  void forget(Moment oldest);
  bool keeps_versions() const noexcept { return !kept_rows_.empty() || !kept_blocks_.empty(); }

  // Counts as `me` sees them. `other`: an open transaction of somebody else that has touched the table, 0 if none.
  std::uint64_t count(TransactionId me) const;
  std::uint64_t count_dirty() const;
  std::uint64_t discarded(TransactionId me) const;
  std::uint64_t committed() const noexcept { return static_cast<std::uint64_t>(rows_ + discarded_rows_); }
  HashSum hash(TransactionId me) const;
  TransactionId touched_by_other(TransactionId me) const;
  bool empty_of_rows(TransactionId me) const { return count(me) == 0; }

  std::vector<KeyIndex>& keys() noexcept { return keys_; }
  // Key bytes of a row's columns, and their hash. False when a key column is NULL anywhere (out has it all the same).
  void key_of(ByteView row, const std::vector<int>& columns, std::string& out) const;
  static std::uint64_t hash_of(std::string_view key);
  void index_row(RowId id);
  void unindex_row(RowId id);
  bool same_key(RowId id, const KeyIndex& index, std::string_view key) const;

  std::size_t bytes_kept() const;
  // Grows with every transaction that has changed rows and ended.
  std::uint64_t changes() const noexcept { return changes_; }
  PartitionCounts& partition_counts() noexcept { return partition_counts_; }

 private:
  Sight sight_in_snapshot(RowId id, View view) const;
  void kill(RowId id);

  Layout layout_;
  std::vector<BlockSlot> blocks_;
  std::unordered_map<std::uint64_t, RowMark> marks_;
  std::vector<RowId> kept_rows_;            // whose marks have moments
  std::vector<std::uint32_t> kept_blocks_;  // that have one
  std::vector<KeyIndex> keys_;
  std::unordered_map<TransactionId, Pending> pending_;
  std::int64_t rows_ = 0;  // committed
  std::int64_t discarded_rows_ = 0;
  HashSum discarded_hash_;
  std::uint64_t changes_ = 0;
  PartitionCounts partition_counts_;
  mutable std::string scratch_;
};

HashSum hash_row(ByteView row);  // XXH3-128

// Where stored column `column` starts in a row.
const std::uint8_t* column_at(const Layout& layout, ByteView row, std::size_t column);
Value column_value(const Layout& layout, ByteView row, std::size_t column);

}  // namespace rowferry::sandbox::engine
