// Whole readings from the sandbox through the source's door, rows as text.
#pragma once

#include "bench.hpp"

namespace rowferry::test {

struct ReadJob {
  system::TableName table{{"dbo", "t"}};
  std::string query;
  std::string where;
  std::vector<std::string> columns;
  system::SliceRequest slices;
  system::ReadOptions options;
  int workers = 1;
};

// Collects rows: values joined by commas, "NULL" for NULL.
class Rows final : public system::BatchSink {
 public:
  async::Task<void> put(rows::BatchPtr batch) override;
  std::vector<std::string> rows;
  std::size_t batches = 0;
};

system::SourceRequest source_request(const ReadJob& job);
// The plan of an engine that carries every column as it is.
std::vector<system::ColumnPlan> as_described(const system::SourceTable& table);
async::Task<system::ReadRequest> read_request(system::Source* source, ReadJob job);
// Begins, reads every slice and the late ones; each slice's predicate and its rows, one line a slice.
async::Task<void> read_all(Bench* bench, ReadJob job);
// How often each row of the table is in a slice: "each once (5 rows, 3 slices, range)" or what is wrong.
async::Task<std::string> coverage(Bench* bench, ReadJob job);
std::string lines(const std::vector<std::string>& parts, std::string_view between);

}  // namespace rowferry::test
