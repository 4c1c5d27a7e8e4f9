// Two systems in memory, with scripted faults: a source of integer ids with a text, and a target with a ledger, staging
// tables and a finalize. What the target's "server" holds outlives connections, attempts and managers.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>

#include "net/loop.hpp"
#include "rows/hash.hpp"
#include "system/system.hpp"
#include "transfer/manager.hpp"

namespace rowferry::test {

using async::Task;

// A place in a fake where a test can hold the transfer: the fake stays there until it is cancelled or let go.
class Gate {
 public:
  void close(std::string point) { closed_.insert(std::move(point)); }
  void open(const std::string& point) {
    closed_.erase(point);
    opened_.set();
  }
  Task<void> pass(std::string point);
  Task<void> reached(std::string point);  // by anybody, now or before
  void forget() { reached_.clear(); }

 private:
  std::set<std::string> closed_;
  std::set<std::string> reached_;
  async::Event opened_;
  async::Event arrived_;
};

struct SourceScript {
  std::vector<system::SourceColumn> columns;
  std::vector<std::string> primary_key{"id"};
  int slices = 8;
  int batches_per_slice = 4;
  int rows_per_batch = 50;
  system::Consistency consistency = system::Consistency::one_snapshot;
  std::map<int, int> read_faults;  // slice -> how many times its read fails half way
  bool fault_is_transient = true;
  int snapshots_to_lose = 0;  // how many snapshots go with such a fault
  std::vector<int> late;      // slices of each late round
  std::int64_t count_delta = 0;
  bool text_is_bad = false;  // row 8 of slice 2 holds a text that is too long for the target
  std::uint64_t wrong_row_count = 0;
  std::optional<std::uint64_t> byte_estimate;
  bool honours_parts = false;      // keep_offset, variant_base_type, scan_numeric
  std::string honoured_isolation;  // the source honours read.isolation with this value
  bool gone = false;               // the table has been dropped
  int begins_away = 0;             // begins that find the server away
  Gate gate;

  // What has happened.
  system::SliceRequest asked;  // of the last plan or reading
  int begun = 0;
  int ended = 0;
  int readers_open = 0;
  int readers_made = 0;
  std::vector<int> read_log;       // slices as their reads began
  std::size_t bytes_given = 0;     // handed to the engine
  std::size_t most_unwritten = 0;  // given and not yet seen by the target's writer, at most

  std::uint64_t rows() const { return static_cast<std::uint64_t>(slices * batches_per_slice * rows_per_batch); }
};

struct Staged {
  std::map<std::string, system::LedgerEntry> slices;  // by step
  std::uint64_t rows = 0;
  rows::ContentHash hash;
};

struct TargetServer {
  bool exists = true;
  std::vector<system::TargetColumn> columns;
  system::Finalizer finalizer = system::Finalizer::insert_select;
  std::string partition_by;
  std::string partition_column;
  std::vector<system::SliceBounds> partition_bounds;

  std::map<std::string, Staged> stagings;                                       // by name
  std::map<std::string, system::LedgerEntry> finalized;                         // by transfer
  std::map<std::string, std::map<std::string, system::LedgerEntry>> committed;  // commit: slice; by transfer, step
  std::map<std::string, Staged> partitions;                                     // commit: slice; by name
  std::uint64_t rows = 0;                                                       // of the target, or of no partition
  bool locked = false;
  int after_steps_done = 0;

  // Faults.
  bool busy = false;
  int commit_faults = 0;          // commits that fail and are rolled back
  int commits_lost = 0;           // commits that arrive and whose answer does not
  bool finalize_unknown = false;  // COMMIT was sent, its outcome cannot be told
  bool finalize_arrives = false;  // and it had arrived
  int finalize_faults = 0;
  Category finalize_category = Category::timeout;
  int after_steps_faults = 0;
  std::int64_t staged_delta = 0;
  std::int64_t finalize_delta = 0;
  bool wrong_content = false;
  bool refuses_slice_commit = false;
  int slow_write_ms = 0;
  std::set<std::string> honoured;  // "load.commit"
  Gate gate;
  net::Loop* loop = nullptr;
  SourceScript* source = nullptr;

  // What has happened.
  system::TargetRequest asked;              // of the last plan
  std::vector<system::Slice> begun_slices;  // of the last load, as it began
  int loaders_open = 0;
  int aborted = 0;
  int begun = 0;
  std::size_t bytes_taken = 0;
  std::vector<std::string> slice_log;  // "worker 1 slice 3", as they began
};

class FakeConnection final : public system::Connection {
 public:
  FakeConnection(std::string name, std::string system, bool writable, SourceScript* source, TargetServer* target)
      : name_(std::move(name)), system_(std::move(system)), writable_(writable), source_(source), target_(target) {}
  const std::string& name() const noexcept override { return name_; }
  std::string_view system() const noexcept override { return system_; }
  bool writable() const noexcept override { return writable_; }
  bool honours(std::string_view field, std::string_view value) const override;
  system::TableName parse_table(std::string_view text) const override;
  std::unique_ptr<system::Source> make_source() override;
  std::unique_ptr<system::Target> make_target() override;

 private:
  std::string name_;
  std::string system_;
  bool writable_;
  SourceScript* source_;
  TargetServer* target_;
};

// "shop" (a source), "warehouse" (a writable target), "archive" (a target that is not writable).
class FakeConnections final : public transfer::Connections {
 public:
  FakeConnections();
  system::Connection* find(std::string_view name) override;
  std::vector<std::string> names() const override;

  SourceScript source;
  TargetServer target;

 private:
  std::vector<std::unique_ptr<FakeConnection>> connections_;
};

// The name of the partition that a slice fills.
std::string partition_of(const system::Slice& slice);

// id bigint NOT NULL (the key), note text; on the target note nvarchar(40).
std::vector<system::SourceColumn> default_source_columns();
std::vector<system::TargetColumn> default_target_columns();
system::SourceColumn source_column(std::string name, rows::Type type, std::string native, bool nullable = true);
system::TargetColumn target_column(std::string name, rows::Type type, std::string native, bool nullable = true);

}  // namespace rowferry::test
