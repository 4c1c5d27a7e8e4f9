// What the tests against a running PostgreSQL share.
#pragma once

#include <criterion/criterion.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "../support/expect.hpp"
#include "postgres/connection.hpp"
#include "postgres/session.hpp"

namespace rowferry::postgres::test {

using Row = std::vector<std::string>;  // values as PostgreSQL prints them; NULL is "∅"
inline constexpr std::string_view null_text = "∅";

// Takes batches apart into rows of text. `on_batch` may wait or throw.
class Collect final : public system::BatchSink {
 public:
  async::Task<void> put(rows::BatchPtr batch) override;
  std::vector<Row> rows;
  std::size_t batches = 0;
  std::function<async::Task<void>(std::size_t batch)> on_batch;
};

std::string print_value(const rows::ColumnView& column, const rows::Type& type, std::size_t row);

struct LiveOptions {
  std::size_t max_sessions = 8;
  std::string dsn_more;  // appended to the dsn
  std::string password;
};

// A loop, a connection of the engine's kind, and a session of the test's own, with an empty schema of its own.
class Live {
 public:
  // Skips the test, saying why, when ROWFERRY_TEST_PG is not set.
  explicit Live(const std::string& schema, const LiveOptions& options = {});
  ~Live();

  template <class T>
  T run(async::Task<T> task) {
    return loop.run(std::move(task));
  }
  Result sql(const std::string& text) { return run(admin->query(text)); }
  std::vector<std::string> column(const std::string& text);  // the one column of a query
  // The one value of a query, asked again for two seconds until it is `expected`: a closed session's server process
  // ends a little later.
  std::string settled(const std::string& text, std::string_view expected);
  std::unique_ptr<Session> session() { return run(Session::connect(loop, options)); }
  system::TableName table(const std::string& name) const { return {{schema, name}}; }
  system::SourceTable describe(const system::SourceRequest& request);

  // Plans all described columns as they are.
  system::ReadRequest request(const std::string& name, int slices = 1, int workers = 1);
  system::ReadRequest request(const system::SourceRequest& what, int slices = 1, int workers = 1);
  std::unique_ptr<system::Reading> begin(const system::ReadRequest& request) { return run(source->begin(request)); }
  // Every slice through one reader, in order; ends the reading.
  std::vector<Row> read_all(const system::ReadRequest& request);
  std::vector<Row> read_slices(system::Reading& reading);

  net::Loop loop;
  std::string schema;
  std::shared_ptr<SessionOptions> options;
  std::unique_ptr<PostgresConnection> connection;
  std::unique_ptr<system::Source> source;
  std::unique_ptr<Session> admin;
};

std::string test_dsn();

}  // namespace rowferry::postgres::test
