// PostgreSQL as a target. Each call opens a session of its own and closes it; what the catalogue said is kept between
// describe(), plan() and begin().
#pragma once

#include <memory>

#include "postgres/decision.hpp"
#include "postgres/source.hpp"
#include "system/target.hpp"

namespace rowferry::postgres {

class PostgresTarget final : public system::Target {
 public:
  // `ledger_schema`: of the connection; empty: the target's.
  PostgresTarget(std::shared_ptr<Shared> shared, std::string ledger_schema)
      : shared_(std::move(shared)), ledger_schema_(std::move(ledger_schema)) {}

  async::Task<system::TargetTable> describe(const system::TargetRequest& request) override;
  system::NaturalType natural_type(const system::SourceColumn& column, std::string_view wanted_type,
                                   bool in_key) const override;
  async::Task<system::TargetPlan> plan(const system::TargetRequest& request,
                                       const std::vector<system::ColumnPlan>& columns,
                                       const std::vector<std::string>& source_key) override;
  // These two are in loading.cpp.
  async::Task<system::Remains> remains(const system::TargetRequest& request, const std::string& transfer_id) override;
  async::Task<std::unique_ptr<system::Loading>> begin(const system::LoadRequest& request) override;

 private:
  std::shared_ptr<Shared> shared_;
  std::string ledger_schema_;
  int money_scale_ = 2;             // of the server
  std::string planned_definition_;  // TableFacts::definition() of the plan
};

// The situation as it is now; for plan and begin.
async::Task<Situation> read_situation(Session& session, const Place& place, const system::TargetRequest& request,
                                      const std::vector<system::ColumnPlan>& columns);
// The lock's session, and one for each load worker.
std::size_t sessions_needed(const system::TargetRequest& request);
// TargetColumn as the catalogue has it.
system::TargetColumn target_column(const ColumnFacts& column, int money_scale);
// The statements of a load, for people.
std::vector<std::string> plan_statements(const Situation& situation, const Decision& decision,
                                         const std::string& ledger_schema,
                                         const std::vector<system::ColumnPlan>& columns,
                                         const system::TargetRequest& request);

}  // namespace rowferry::postgres
