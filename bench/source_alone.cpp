// The source alone: reads a table in one slice into Batches and drops them; rows and seconds as JSON.
//
//   source_alone DSN TABLE
#include <fmt/format.h>

#include <chrono>

#include "postgres/connection.hpp"

namespace {

using namespace rowferry;  // NOLINT(google-build-using-namespace): a program of its own

class Drop final : public system::BatchSink {
 public:
  async::Task<void> put(rows::BatchPtr batch) override {
    bytes += batch->bytes();
    batch.reset();
    co_return;
  }
  std::uint64_t bytes = 0;
};

async::Task<void> read_all(postgres::PostgresConnection* connection, std::string table, system::ReadResult* result,
                           double* seconds) {
  const std::unique_ptr<system::Source> source = connection->make_source();
  system::ReadRequest request;
  request.what.table = connection->parse_table(table);
  const system::SourceTable described = co_await source->describe(request.what);
  for (const system::SourceColumn& column : described.columns) {
    system::ColumnPlan plan;
    plan.source = plan.target = column.name;
    plan.read_type = plan.write_type = column.type;
    plan.source_native = column.native;
    request.columns.push_back(plan);
  }
  request.slices.by = system::SliceBy::none;
  const std::unique_ptr<system::Reading> reading = co_await source->begin(request);
  const std::unique_ptr<system::Reader> reader = co_await reading->open_reader(0);
  Drop drop;
  const auto began = std::chrono::steady_clock::now();
  for (const system::Slice& slice : reading->slices().slices) {
    const system::ReadResult part = co_await reader->read(slice, drop);
    result->rows += part.rows;
    result->wire_bytes += part.wire_bytes;
  }
  *seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  co_await reader->close();
  co_await reading->end();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: source_alone DSN TABLE\n");
    return 2;
  }
  try {
    net::Loop loop;
    postgres::PostgresConnection connection(loop, {.name = "source", .dsn = argv[1], .password = {}});
    system::ReadResult result;
    double seconds = 0;
    loop.run(read_all(&connection, argv[2], &result, &seconds));
    fmt::print("{{\"rows\": {}, \"wire_bytes\": {}, \"seconds\": {:.6f}, \"longest_turn_ms\": {:.3f}}}\n", result.rows,
               result.wire_bytes, seconds, static_cast<double>(loop.longest_turn().count()) / 1e6);
    return 0;
  } catch (const Error& error) {
    fmt::print(stderr, "source_alone: {}\n", error.one_line());
    return 1;
  }
}
