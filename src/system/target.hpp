// Target: describes and creates a table, loads it through staging, verifies, finalizes.
//
//   describe ─► natural_type per column ─► plan (finalizer, DDL, notices; writes nothing)
//   begin ─► Loading: target lock, ledger, staging ─► open_loader per load worker ─► begin_slice, write …, commit_slice
//   ─► staged counts and hash ─► finalize (one transaction) ─► after_steps ─► end
#pragma once

#include <memory>

#include "async/task.hpp"
#include "rows/batch.hpp"
#include "system/common.hpp"
#include "system/source.hpp"

namespace rowferry::system {

struct LoadOptions {
  Commit commit = Commit::transfer;
  std::optional<std::uint64_t> batch_rows;
  std::string table_lock = "auto";  // auto | true | false
  bool check_constraints = true;
  bool fire_triggers = false;
  bool keep_identity = true;
  bool keep_nulls = true;
  std::optional<bool> freeze;
  std::optional<bool> unlogged;
  std::string tablespace;
  bool exchange = false;
  bool analyze = false;
  int lock_timeout_ms = 5000;
};

struct TargetRequest {
  TableName table;
  std::string path;
  Mode mode = Mode::append;
  bool own_table =
      false;  // of a resumed transfer that has committed into it: an existing table is its own work, in every mode
  bool create = false;
  bool replace_dependants = false;  // "drop"
  std::vector<std::string> key;
  std::string partition_by;  // list | range
  std::string partition_column;
  std::string backend = "native";
  std::string settings_json;  // passed through
  SliceBy slices_by = SliceBy::automatic;
  std::string slice_column;      // the target's name of the column that slices are cut by; empty: none, or not known
  bool source_filtered = false;  // the source has a `where`: what it does not give may exist all the same
  LoadOptions load;
  int workers = 1;
  Verify verify = Verify::count;
};

struct TargetColumn {
  std::string name;
  std::string native;
  rows::Type type;
  bool nullable = true;
  bool identity = false;
  bool insertable = true;  // false: computed, rowversion, period, generated
  std::string why_not;     // "computed"
  bool has_default = false;
  bool compared = true;
  bool any_decimal = false;  // a decimal without bounds: takes a source's decimal(p,s) as it is
  bool loadable = true;      // false: no logical type of ours; `why_not` says so
};

struct TargetTable {
  Server server;
  bool exists = false;
  std::vector<TargetColumn> columns;
  std::vector<std::string> primary_key;
  std::string partition_by;      // list | range | hash; empty: not partitioned, or not by rows of one table
  std::string partition_column;  // empty: by several columns or an expression
  // By range: the partitions' bounds in the target's own order, `column` the target's; the ranges between and outside
  // them are entries too, so that together they cover every value but NULL. Where no partition is, a slice that has
  // rows makes one or goes to the default one; a slice without rows makes none.
  std::vector<SliceBounds> partition_bounds;
  std::vector<Notice> notices;
};

// What a source column becomes when the target table is created, or when `type` in the spec names a type.
struct NaturalType {
  std::string native;  // for DDL
  rows::Type type;
  bool read_as_text = false;  // this target takes it as the source prints it
  std::vector<Notice> notices;
  bool compared = true;
};

struct TargetPlan {
  Finalizer finalizer = Finalizer::insert_select;
  std::string finalizer_reason;
  bool creates = false;                 // the table is missing and will be made
  std::vector<std::string> statements;  // what will be run, for people
  std::vector<Notice> notices;
  std::vector<std::string> dropped;           // what a rebuild drops (indexes, defaults)
  std::vector<std::string> unmatched_target;  // target columns that get no value
};

// A key of the ledger: (transfer, attempt, step). Steps: "staging", slice_step(), "finalize".
struct LedgerEntry {
  int attempt = 0;
  std::string step;
  std::string staging;  // Finalizer::per_slice, of a slice: its partition
  std::uint64_t row_count = 0;
  std::string content_hash;
};

struct LoadRequest {
  std::string transfer_id;
  int attempt = 1;
  TargetRequest what;
  TargetPlan plan;
  std::vector<ColumnPlan> columns;
  std::vector<std::string> primary_key;  // of the source, for a created table
  std::vector<Slice> slices;             // as the source has cut them; late ones may follow
  bool resume_staging = false;           // keep the staging of `staging_attempt` with all its slices
  int staging_attempt = 0;
  bool only_after_steps =
      false;  // the ledger has "finalize": take the lock; after_steps() and end() are all that follows
};

struct SliceCommit {
  std::uint64_t acknowledged = 0;  // the server's number
  std::uint64_t wire_bytes = 0;
  bool already_there = false;  // the ledger's key was a duplicate: an earlier COMMIT had arrived
  std::string table;           // Finalizer::per_slice: the partition that now has the slice's rows and no others
};

struct LoaderClocks {
  double waiting_seconds = 0;  // for the server (socket full, reply)
};

// One load worker's session, bound to one slice from begin_slice to commit_slice or abort_slice. Closed before the
// staged rows are counted; with Finalizer::direct, whose one transaction it holds, only after finalize() has returned.
class Loader {
 public:
  virtual ~Loader() = default;
  // Opens the transaction; its first statement inserts the slice's ledger key.
  // True: the key is there already (committed earlier); the slice must not be loaded again.
  virtual async::Task<bool> begin_slice(const Slice& slice) = 0;
  // Batches have exactly the plan's write types.
  virtual async::Task<void> write(rows::BatchPtr batch) = 0;
  // Throws Error(commit_unknown) when COMMIT was sent and neither outcome could be established.
  virtual async::Task<SliceCommit> commit_slice(std::uint64_t rows, const rows::ContentHash& hash) = 0;
  // Rolls back, or closes the session when that is not possible within a deadline. Works shielded.
  virtual async::Task<void> abort_slice() = 0;
  virtual bool usable() const noexcept = 0;
  virtual LoaderClocks clocks() const noexcept = 0;
  virtual async::Task<void> close() = 0;
};

struct FinalizeRequest {
  std::uint64_t rows = 0;
  rows::ContentHash hash;
  std::vector<Slice> slices;  // every slice that was loaded, late ones and those of earlier attempts among them
};

struct FinalizeResult {
  std::uint64_t rows = 0;                     // written by the finalizer; Finalizer::per_slice: those of the request
  std::optional<std::uint64_t> target_total;  // COUNT afterwards (replace and truncate)
  bool already_done = false;                  // the ledger had it
  std::vector<Notice> notices;
};

// One attempt's hold on the target: the lock, the ledger, the staging table.
class Loading {
 public:
  virtual ~Loading() = default;
  virtual const std::string& staging_name() const noexcept = 0;
  virtual async::Task<std::unique_ptr<Loader>> open_loader(int worker) = 0;
  // On a new connection. With Finalizer::per_slice: of the partitions that hold the slices.
  virtual async::Task<std::uint64_t> staged_rows() = 0;
  // The same rows' content. Nullopt: the server cannot give rows back (reason in `why`).
  virtual async::Task<std::optional<rows::ContentHash>> staged_hash(std::string& why) = 0;
  // One transaction, begun by the ledger's key; on the session that holds the lock. With Finalizer::per_slice it
  // empties the partitions that no slice has filled.
  virtual async::Task<FinalizeResult> finalize(FinalizeRequest request) = 0;
  // Repeatable: reseed identity, analyze, drop staging, forget old ledger rows.
  virtual async::Task<std::vector<Notice>> after_steps() = 0;
  // Gives up the lock; drops staging unless it is to be kept. Works shielded, with its own deadline; errors become
  // notices.
  virtual async::Task<std::vector<Notice>> end(bool keep_staging) = 0;
};

// What an earlier run of the same transfer has left, decided by the ledger (see docs/ARCHITECTURE.md: resume).
struct Remains {
  bool finalized = false;
  LedgerEntry finalize;             // as the ledger has it, when finalized
  std::vector<LedgerEntry> slices;  // committed slices of the latest attempt whose staging exists
  int staging_attempt = 0;          // 0: no staging left
  int latest_attempt = 0;
};

class Target {
 public:
  virtual ~Target() = default;
  virtual async::Task<TargetTable> describe(const TargetRequest& request) = 0;
  // For a created column (or a spec's `type`, when not empty). `column` is the source's. Throws Error(unsupported)
  // where nothing can hold it. Needs describe() first (the server's version decides).
  virtual NaturalType natural_type(const SourceColumn& column, std::string_view wanted_type, bool in_key) const = 0;
  // Decides the finalizer and what will be run. Writes nothing. Error(conflict, "target_exists"), Error(not_found,
  // "table_missing"), …
  virtual async::Task<TargetPlan> plan(const TargetRequest& request, const std::vector<ColumnPlan>& columns,
                                       const std::vector<std::string>& source_key) = 0;
  virtual async::Task<Remains> remains(const TargetRequest& request, const std::string& transfer_id) = 0;
  virtual async::Task<std::unique_ptr<Loading>> begin(const LoadRequest& request) = 0;
};

}  // namespace rowferry::system
