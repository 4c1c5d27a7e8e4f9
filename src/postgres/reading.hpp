// A reading: the session that holds locks and snapshot, and the workers' sessions that share them.
//
// Lifecycle: ReadingState::start() connects the exporter, locks, exports the snapshot, decides columns and slices and
// makes every worker ready (design: a TRUNCATE queued behind the exporter would block workers that come later). The
// state is shared by the Reading and its Readers and dies with the last of them; end() ends the exporter.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "postgres/source.hpp"

namespace rowferry::postgres {

// A column of the SELECT: its SQL and how its field is decoded.
struct BoundColumn {
  std::string expression;
  wire::CopyColumn copy;
};

struct ReadingState : std::enable_shared_from_this<ReadingState> {
  ReadingState(std::shared_ptr<Shared> the_shared, const system::ReadRequest& the_request);

  async::Task<void> start();
  // For one reader in a transaction of its own, without shared snapshot and locks: catalogue, columns and one slice.
  async::Task<void> start_alone(Session* session);
  // A session under the snapshot with all locks. `attempts` above 1: with pauses between them (locks are not waited
  // for).
  async::Task<std::unique_ptr<Session>> make_worker(int attempts);
  // Runs a statement on the exporter, one at a time. Throws Error(connection, "snapshot_gone") when it is dead.
  async::Task<Result> on_exporter(std::string sql);
  // Asks the exporter something when it was not used for long, so that nothing between forgets it. Never throws but a
  // cancellation.
  async::Task<void> keep_alive();
  bool exporter_alive() noexcept;
  std::string select(const std::string& from, const std::string& predicate) const;
  // After a slice was read by the parent's name: a partition attached since the snapshot would have given its rows too.
  async::Task<void> check_partitions(Session* session) const;

  std::shared_ptr<Shared> shared;
  system::ReadRequest request;
  SessionLease lease;
  std::string text;  // the table, for messages

  std::unique_ptr<Session> exporter;
  async::Budget exporter_turn{1};
  std::chrono::steady_clock::time_point exporter_used;
  std::vector<std::unique_ptr<Session>> ready;  // made by start(), taken by open_reader()
  std::string snapshot;
  std::string lock_list;       // for LOCK TABLE; empty: nothing that it can name
  bool locks_by_plan = false;  // some relations are locked only by planning the SELECT
  std::string partitions;      // OIDs of the leaves, as check_partitions() prints them
  Origin origin;
  std::vector<BoundColumn> bound;
  rows::SchemaPtr schema;
  system::SlicePlan slices;
  std::vector<system::Notice> notices;
  system::Consistency consistency = system::Consistency::one_snapshot;
  std::uint64_t readers_opened = 0;

 private:
  async::Task<void> find_locks(Session* session);
  async::Task<void> lock_and_export();
  async::Task<void> check_unchanged(const Origin& before);
  async::Task<void> scan_numerics();
  async::Task<void> make_ready(std::size_t worker);
  async::Task<std::unique_ptr<Session>> import_snapshot();
  void bind_columns();
  int lock_wait() const noexcept;  // milliseconds
};

std::unique_ptr<system::Reading> make_reading(std::shared_ptr<ReadingState> state);
// A worker's reader on a session from make_worker().
std::unique_ptr<system::Reader> make_reader(std::shared_ptr<ReadingState> state, std::unique_ptr<Session> session);

}  // namespace rowferry::postgres
