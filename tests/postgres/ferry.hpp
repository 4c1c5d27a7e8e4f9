// A transfer between two tables of the test's PostgreSQL by the doors of src/system, step by step.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "live.hpp"
#include "rows/convert.hpp"

namespace rowferry::postgres::test {

// Converts batches and writes them into a loader.
class LoaderSink final : public system::BatchSink {
 public:
  LoaderSink(system::Loader& loader, rows::Converter& converter, rows::RowHasher& hasher)
      : loader_(loader), converter_(converter), hasher_(hasher) {}
  async::Task<void> put(rows::BatchPtr batch) override;
  rows::ContentHash hash;
  std::uint64_t rows = 0;

 private:
  system::Loader& loader_;
  rows::Converter& converter_;
  rows::RowHasher& hasher_;
};

class Ferry {
 public:
  // Columns are those of the source that the target takes, or all of them where it is to be created.
  Ferry(Live& live, std::string source_table, std::string target_table, std::string transfer_id = "01TESTFERRY");
  ~Ferry();

  // describe, columns and plan; then begin.
  const system::TargetPlan& plan();
  void begin(int attempt = 1);
  // One slice from its begin to its commit. `where` chooses rows of the source.
  system::SliceCommit load(system::Loader& loader, const system::Slice& slice, const std::string& where = "");
  // One loader of its own, one slice of everything.
  void load_all();
  // Into a slice that is begun; gives its rows and hash.
  rows::ContentHash write(system::Loader& loader, const std::string& where = "");
  // One loader, one slice of everything, and finalize.
  system::FinalizeResult whole();
  system::FinalizeResult finalize();
  void end(bool keep_staging = false);

  Live& live;
  std::unique_ptr<system::Target> target;
  system::TargetRequest request;
  system::LoadRequest to_load;
  std::unique_ptr<system::Loading> loading;
  rows::ContentHash loaded;
  std::vector<system::Slice> slices;  // committed

 private:
  void make_columns();
  std::string source_table_;
};

system::Slice slice_of(int index);
system::Slice slice_of_value(int index, const std::string& column, const std::string& value);

}  // namespace rowferry::postgres::test
