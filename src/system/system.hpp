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
  // Splits "schema.table" by this system's own quoting; never folds case. Error(input, "bad_name") with the position.
  virtual TableName parse_table(std::string_view text) const = 0;
  // A new one for each transfer attempt. Throws Error(unsupported, "not_a_source" / "not_a_target") where the system
  // cannot.
  virtual std::unique_ptr<Source> make_source() = 0;
  virtual std::unique_ptr<Target> make_target() = 0;
};

}  // namespace rowferry::system
