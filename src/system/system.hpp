// What the engine asks of a system (PostgreSQL, SQL Server, ClickHouse, Arrow): the door of src/system.
//
// A Connection (one configured entry) makes Sources and Targets. src/transfer drives them through these interfaces and
// knows no system by name; a new system is a folder that implements them and one line in the table of systems
// (src/app/systems.cpp). All calls run on the loop's thread; every one is a cancellation point unless it says
// otherwise.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "system/source.hpp"
#include "system/target.hpp"

namespace rowferry::system {

class Connection {
 public:
  virtual ~Connection() = default;
  virtual const std::string& name() const noexcept = 0;
  virtual std::string_view system() const noexcept = 0;  // postgres, mssql, clickhouse, arrow: as in routes
  virtual bool writable() const noexcept = 0;
  // Does this system do what an optional field of the spec asks for with this value? The engine asks before anything is
  // planned, for every field below that the spec sets away from its default, and refuses with Error(unsupported,
  // "not_supported_yet") at a no. As a source: read.isolation (snapshot | read_committed | read_uncommitted |
  // auto), read.read_only_intent, read.lock_timeout_ms, read.maxdop, columns.scan_numeric, columns.keep_offset,
  // columns.variant_base_type, source.arrow. As a target: target.mode (merge), target.partition (list | range),
  // target.backend (freetds), target.settings, target.order_by, target.partition_by, target.compression, target.arrow,
  // load.commit (slice), load.table_lock, load.check_constraints, load.fire_triggers, load.keep_identity,
  // load.keep_nulls, load.freeze, load.unlogged, load.tablespace, load.exchange, load.analyze.
  virtual bool honours(std::string_view /*field*/, std::string_view /*value*/) const { return false; }
  // Splits "schema.table" by this system's own quoting; never folds case. Error(input, "bad_name") with the position.
  virtual TableName parse_table(std::string_view text) const = 0;
  // A new one for each transfer attempt. Throws Error(unsupported, "not_a_source" / "not_a_target") where the system
  // cannot.
  virtual std::unique_ptr<Source> make_source() = 0;
  virtual std::unique_ptr<Target> make_target() = 0;
};

}  // namespace rowferry::system
