// TargetImpl: system::Target of a SQL Server connection. Each call opens a session of its own and closes it; what the
// catalogue said is kept between describe(), plan() and begin().
#pragma once

#include "mssql/loading.hpp"

namespace rowferry::mssql {

class TargetImpl final : public system::Target {
 public:
  explicit TargetImpl(SessionPool& pool) : pool_(pool) {}

  async::Task<system::TargetTable> describe(const system::TargetRequest& request) override;
  system::NaturalType natural_type(const system::SourceColumn& column, std::string_view wanted_type,
                                   bool in_key) const override;
  async::Task<system::TargetPlan> plan(const system::TargetRequest& request,
                                       const std::vector<system::ColumnPlan>& columns,
                                       const std::vector<std::string>& source_key) override;
  async::Task<system::Remains> remains(const system::TargetRequest& request, const std::string& transfer_id) override;
  async::Task<std::unique_ptr<system::Loading>> begin(const system::LoadRequest& request) override;

 private:
  async::Task<Lease> open(const system::TargetRequest* request);
  // The parts of the name that the user left to the server.
  async::Task<Place> place_of(const Lease* lease, const system::TargetRequest* request);

  SessionPool& pool_;
  ServerFacts server_;
  std::string planned_definition_;
};

// Error(input, "bad_name") for what no load may write: temporary tables, the server's schemas, our own tables.
void check_place(const Place& place);
// TargetColumn as the catalogue has it.
system::TargetColumn target_column(const ColumnFacts& column);
// The statements of a load, for people.
std::vector<std::string> plan_statements(const Decision& decision, const TableFacts& table, const Ledger& ledger,
                                         const std::vector<system::ColumnPlan>& columns,
                                         const system::TargetRequest& request);

}  // namespace rowferry::mssql
