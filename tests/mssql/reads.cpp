#include "reads.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace rowferry::test {

using async::Task;

Task<void> Rows::put(rows::BatchPtr batch) {
  ++batches;
  for (std::size_t row = 0; row < batch->rows(); ++row) {
    std::string text;
    for (std::size_t i = 0; i < batch->columns(); ++i) {
      text += (i == 0 ? "" : ",") + rows::value_text(batch->schema().fields[i].type, batch->column(i), row);
    }
    rows.push_back(std::move(text));
  }
  co_return;
}

std::string lines(const std::vector<std::string>& parts, std::string_view between) {
  std::string out;
  for (const std::string& part : parts) {
    if (!out.empty()) out += between;
    out += part;
  }
  return out;
}

system::SourceRequest source_request(const ReadJob& job) {
  system::SourceRequest request;
  if (job.query.empty()) request.table = job.table;
  request.query = job.query;
  request.where = job.where;
  request.columns = job.columns;
  return request;
}

std::vector<system::ColumnPlan> as_described(const system::SourceTable& table) {
  std::vector<system::ColumnPlan> plans;
  for (const system::SourceColumn& column : table.columns) {
    system::ColumnPlan plan;
    plan.source = plan.target = column.name;
    plan.read_type = plan.write_type = column.type;
    plan.source_nullable = column.nullable;
    plan.source_native = column.native;
    plans.push_back(std::move(plan));
  }
  return plans;
}

Task<system::ReadRequest> read_request(system::Source* source, ReadJob job) {
  system::ReadRequest request;
  request.what = source_request(job);
  const system::SourceTable table = co_await source->describe(request.what);
  request.columns = as_described(table);
  request.slices = job.slices;
  request.options = job.options;
  request.workers = job.workers;
  co_return request;
}

Task<void> read_all(Bench* bench, ReadJob job) {
  const std::unique_ptr<system::Source> source = bench->connection->make_source();
  const system::ReadRequest request = co_await read_request(source.get(), job);
  const std::unique_ptr<system::Reading> reading = co_await source->begin(request);
  const std::unique_ptr<system::Reader> reader = co_await reading->open_reader(0);
  std::vector<system::Slice> slices = reading->slices().slices;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    Rows rows;
    const system::ReadResult result = co_await reader->read(slices[i], rows);
    std::ranges::sort(rows.rows);
    bench->note(fmt::format("{}: {}", slices[i].predicate, lines(rows.rows, " ")));
    if (result.rows != rows.rows.size()) bench->note("the result counts other rows");
  }
  co_await reader->close();
  co_await reading->end();
}

Task<std::string> coverage(Bench* bench, ReadJob job) {
  const std::unique_ptr<system::Source> source = bench->connection->make_source();
  const system::ReadRequest request = co_await read_request(source.get(), job);
  ReadJob whole = job;
  whole.slices = {.by = system::SliceBy::none, .column = {}, .count = 1};
  const std::unique_ptr<system::Source> other = bench->connection->make_source();
  const system::ReadRequest all = co_await read_request(other.get(), whole);
  std::map<std::string, int> expected;
  std::map<std::string, int> found;
  std::string by;
  std::size_t count = 0;
  std::size_t rows_read = 0;
  for (const system::ReadRequest* one : {&all, &request}) {
    const std::unique_ptr<system::Reading> reading = co_await source->begin(*one);
    const std::unique_ptr<system::Reader> reader = co_await reading->open_reader(0);
    for (const system::Slice& slice : reading->slices().slices) {
      Rows rows;
      co_await reader->read(slice, rows);
      for (const std::string& row : rows.rows) ++(one == &all ? expected : found)[row];
      if (one == &request) rows_read += rows.rows.size();
    }
    by = system::to_string(reading->slices().by);
    count = reading->slices().slices.size();
    co_await reader->close();
    co_await reading->end();
  }
  if (expected == found) co_return fmt::format("each once ({} rows, {} slices by {})", rows_read, count, by);
  std::string wrong;
  for (const auto& [row, times] : expected) {
    if (found[row] != times) wrong += fmt::format(" {} is there {} times, not {};", row, found[row], times);
  }
  co_return "not covered:" + wrong;
}

}  // namespace rowferry::test
