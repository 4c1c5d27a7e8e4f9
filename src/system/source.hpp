// Source: describes a table and reads it in slices, all under one snapshot where the system can.
//
//   describe ─► (the engine plans the columns) ─► plan_slices (for the plan; nothing is locked)
//   begin ─► Reading: locks and snapshot held to the end ─► open_reader per export worker ─► read(slice) … ─► end
#pragma once

#include <functional>
#include <memory>

#include "async/task.hpp"
#include "rows/batch.hpp"
#include "system/common.hpp"

namespace rowferry::system {

struct SourceRequest {
  TableName table;  // one of table, query, path
  std::string query;
  std::string path;
  std::string where;                      // SQL, as the user wrote it
  std::vector<std::string> columns;       // names asked for; empty: all
  std::vector<std::string> scan_numeric;  // columns whose largest scale is to be found in the run's own snapshot
};

struct SourceColumn {
  std::string name;
  std::string native;  // type as the system prints it
  rows::Type type;     // what it decodes into unless the plan says read_as_text / read_as_json
  bool nullable = true;
  bool identity = false;
  bool generated = false;
  int key_position = 0;          // 1.. within the primary key; 0 = not part of it
  bool any_decimal = false;      // a decimal without bounds: read_type may be any decimal(p,s) the plan chooses
  bool can_read_as_text = true;  // read_as_text is possible
  bool can_read_as_json = false;
  bool can_read_as_bytes = false;           // read_type may be binary: the value's bytes, EWKB of what is spatial
  bool text_only = false;                   // no binary form here: `type` is text and is read by the source's own cast
  std::optional<std::uint32_t> text_width;  // widest text of a fixed-width type, in characters
  bool has_offset = false;                  // ColumnPart::offset can be read
  bool variant = false;                     // ColumnPart::base_type can be read
  bool rewritten = false;  // its text form is not byte-stable across servers (jsonb, xml): not compared
};

struct SourceTable {
  Server server;
  std::vector<SourceColumn> columns;  // in the table's order; only those asked for
  std::vector<std::string> primary_key;
  std::optional<std::uint64_t> row_estimate;
  std::optional<std::uint64_t> byte_estimate;
  std::vector<Notice> notices;  // dirty reads, row security, …
  std::vector<std::string>
      not_carried;  // the definition's parts that a created target will lack ("index orders_total_idx", …)
};

// What of one column a slice holds, where it is cut by that column: a target that is partitioned by it gives the slice
// a partition of its own. Texts are as rows/format.hpp prints the column's logical type: of the source, or of the
// target where the bounds are those of its partitions (SliceRequest::bounds).
struct SliceBounds {
  enum class Kind : std::uint8_t {
    value,  // exactly this value
    null,   // NULL only
    range,  // low <= value < high, never NULL
  };
  Kind kind = Kind::value;
  std::string column;  // of the source
  std::string value;
  std::optional<std::string> low;   // nullopt: open
  std::optional<std::string> high;  // nullopt: open
  bool operator==(const SliceBounds&) const = default;
};

struct SliceRequest {
  SliceBy by = SliceBy::automatic;
  std::string column;
  int count = 0;  // 0: the system chooses, at least `at_least`
  int at_least = 1;
  // By range: the cuts are given (TargetTable::partition_bounds), they cover every value but NULL. The source makes one
  // slice of each, in this order and with these very bounds in Slice::bounds, and one of NULL where NULL was found.
  std::vector<SliceBounds> bounds;
};

// A disjoint part of the source. `predicate` is for people and artifacts; `spec` belongs to the source.
struct Slice {
  int index = 0;
  std::string predicate;
  std::string spec;
  std::optional<std::uint64_t> row_estimate;
  std::optional<SliceBounds> bounds;  // cut by value, or by range of a column
};

// The ledger's step of a slice. "slice 3" by its number, which means the same slice within an attempt and its staging.
// With commit: slice the key outlives attempts, and a number could mean another value in the next one: a slice with
// bounds is named by them, "slice =17", "slice null", "slice [1,20)", "slice #<32 hex digits>" where they hold letters
// (a ledger's collation may ignore case and blanks) or are long.
std::string slice_step(const Slice& slice, Commit commit);

struct SlicePlan {
  SliceBy by = SliceBy::none;
  Consistency consistency = Consistency::one_snapshot;  // what begin() is expected to give
  std::string reason;                                   // why it was chosen
  std::vector<Slice> slices;
  std::vector<Notice> notices;
};

struct ReadOptions {
  std::string isolation;  // snapshot | read_committed | read_uncommitted (SQL Server); empty elsewhere
  bool read_only_intent = false;
  std::optional<int> lock_timeout_ms;
  std::optional<int> maxdop;
};

struct ReadRequest {
  SourceRequest what;
  std::vector<ColumnPlan> columns;  // in reading order
  SliceRequest slices;
  ReadOptions options;
  int workers = 1;
};

// Where a reader puts what it has read. Called from the reader's coroutine; may wait (back-pressure).
class BatchSink {
 public:
  virtual ~BatchSink() = default;
  virtual async::Task<void> put(rows::BatchPtr batch) = 0;
};

struct ReadResult {
  std::uint64_t rows = 0;
  std::uint64_t wire_bytes = 0;
};

// One export worker's session. Reads slices one after the other.
class Reader {
 public:
  virtual ~Reader() = default;
  // Reads the whole slice into `to`. On an error or a cancellation the server's statement is stopped; the reader may
  // be used again for a retry under the same snapshot unless usable() says no.
  virtual async::Task<ReadResult> read(const Slice& slice, BatchSink& to) = 0;
  virtual bool usable() const noexcept = 0;
  // Losses that the decoder met, per column of the plan.
  virtual std::vector<std::uint64_t> changed() const = 0;
  virtual async::Task<void> close() = 0;
};

// One attempt's hold on the source: locks and snapshot from begin() to end().
class Reading {
 public:
  virtual ~Reading() = default;
  virtual Consistency consistency() const noexcept = 0;
  virtual const SlicePlan& slices() const noexcept = 0;
  virtual const std::vector<Notice>& notices() const noexcept = 0;
  // The columns as they are now decided (scan_numeric may have changed a decimal's scale).
  virtual const std::vector<ColumnPlan>& columns() const noexcept = 0;
  // Connects, imports the snapshot, takes the locks: ready before it returns.
  virtual async::Task<std::unique_ptr<Reader>> open_reader(int worker) = 0;
  // COUNT under the same snapshot.
  virtual async::Task<std::uint64_t> count_rows() = 0;
  // Slices that came into being while the others were read (by value); read before end().
  virtual async::Task<std::vector<Slice>> late_slices() = 0;
  // False when the snapshot is gone (the session that holds it has died): the attempt starts again.
  virtual bool alive() const noexcept = 0;
  // Releases everything; nothrow in effect (errors are logged). Works shielded, with its own deadline.
  virtual async::Task<void> end() = 0;
};

class Source {
 public:
  virtual ~Source() = default;
  virtual async::Task<SourceTable> describe(const SourceRequest& request) = 0;
  virtual async::Task<SlicePlan> plan_slices(const ReadRequest& request) = 0;
  virtual async::Task<std::unique_ptr<Reading>> begin(const ReadRequest& request) = 0;
};

}  // namespace rowferry::system
