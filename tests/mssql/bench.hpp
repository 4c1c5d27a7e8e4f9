// A sandbox on the loopback, a configured connection to it, and whole loads through the sink's door.
#pragma once

#include <criterion/criterion.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "mssql/connection.hpp"
#include "rows/convert.hpp"
#include "rows/format.hpp"
#include "sandbox/server.hpp"

namespace rowferry::test {

using Notes = std::vector<std::string>;

// One row: id, note, amount in hundredths.
struct Row {
  std::int32_t id = 0;
  std::optional<std::string> note;
  std::optional<std::int64_t> amount;
};

struct Bench {
  net::Loop& loop;
  sandbox::SandboxServer& server;
  std::shared_ptr<sandbox::FaultPlan> faults;
  std::unique_ptr<system::Connection> connection;
  std::unique_ptr<tds::Session> admin;
  Notes notes;

  void note(std::string text) { notes.push_back(std::move(text)); }
  // Every row of the first result, values joined by commas, rows by blanks.
  async::Task<std::string> rows(std::string sql);
  async::Task<void> run(std::string sql);
};

struct Job {
  std::string id = "t1";
  int attempt = 1;
  system::TableName table{{"dbo", "orders"}};
  system::Mode mode = system::Mode::append;
  bool create = false;
  bool replace_dependants = false;
  int workers = 2;
  system::Verify verify = system::Verify::count;
  std::vector<std::string> columns{"id", "note", "amount"};
  std::map<std::string, std::string> types;  // the spec's, by column
  std::vector<std::string> key{"id"};        // of the source
  std::vector<std::vector<Row>> slices;
  system::LoadOptions load;
};

// What a load is made of, step by step, for tests that stop in between.
struct Load {
  std::unique_ptr<system::Target> target;
  system::TargetRequest request;
  system::TargetTable described;
  std::vector<system::ColumnPlan> columns;
  system::TargetPlan plan;
  std::unique_ptr<system::Loading> loading;
  rows::ContentHash hash;
};

async::Task<Load> planned(Bench* bench, Job job);
async::Task<void> begin(Load* load, Job job);
// begin_slice, write, commit_slice. False: the ledger had it.
async::Task<bool> load_slice(Load* load, system::Loader* loader, int index, std::vector<Row> rows,
                             system::SliceCommit* commit);
// The whole of it; what came of it as one line: finalizer, rows, total, "hash same".
async::Task<std::string> transfer(Bench* bench, Job job);
rows::BatchPtr batch_of(const Load& load, const std::vector<Row>& rows);

using Scenario = async::Task<void> (*)(Bench*);
// Runs it on a fresh sandbox; an error becomes the last note: "failed: code: detail".
Notes on_sandbox(Scenario scenario, sandbox::Options options = {});
std::string joined(const Notes& notes);

#define EXPECT_NOTES(scenario, ...)                                                                           \
  do {                                                                                                        \
    const Notes got_ = on_sandbox(scenario);                                                                  \
    const Notes expected_{__VA_ARGS__};                                                                       \
    cr_expect(got_ == expected_, "got:\n%s\nexpected:\n%s", joined(got_).c_str(), joined(expected_).c_str()); \
  } while (false)

}  // namespace rowferry::test
