// SQL Server as a source: describes, plans slices, and reads them, each by one SELECT.
//
// Lifecycle: one for each transfer's attempt, as the engine makes them; sessions are taken from the connection's pool
// for as long as a call or a reading lasts. The pool outlives the source.
#pragma once

#include <chrono>
#include <optional>

#include "mssql/session_pool.hpp"
#include "mssql/slices.hpp"
#include "system/source.hpp"

namespace rowferry::mssql {

// Slices by value that plan_slices() has found: begin() takes them again instead of a second scan. What came into being
// meanwhile is found after the last slice, as all late values are.
struct RememberedValues {
  std::string column;
  std::string where;
  std::vector<system::Slice> slices;
  std::chrono::steady_clock::time_point found_at;
};

class SourceImpl final : public system::Source {
 public:
  explicit SourceImpl(SessionPool& pool) : pool_(pool) {}

  async::Task<system::SourceTable> describe(const system::SourceRequest& request) override;
  async::Task<system::SlicePlan> plan_slices(const system::ReadRequest& request) override;
  async::Task<std::unique_ptr<system::Reading>> begin(const system::ReadRequest& request) override;

 private:
  SessionPool& pool_;
  std::optional<RememberedValues> remembered_;
};

// The session settings of a reading.
SessionSettings reading_settings(const system::ReadOptions& options, std::string database);
// Looks the request up, in the database where a synonym's object is. `lease` is a session there afterwards.
async::Task<Origin> look_up_anywhere(SessionPool& pool, const system::SourceRequest& request,
                                     const system::ReadOptions& options, Lease* lease);
// The table for messages.
std::string source_text(const system::SourceRequest& request);

}  // namespace rowferry::mssql
