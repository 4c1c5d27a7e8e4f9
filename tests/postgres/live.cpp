#include "live.hpp"

#include <fmt/format.h>

#include <cstdlib>

#include "base/civil.hpp"
#include "base/decimal.hpp"
#include "postgres/dialect.hpp"

namespace rowferry::postgres::test {

namespace {

using rows::ColumnView;
using rows::Type;
using rows::TypeId;

// PostgreSQL drops trailing zeros of a fraction and prints the zone as +00.
std::string postgres_time(std::string text) {
  std::string suffix;
  if (text.ends_with(" BC")) {
    suffix = " BC";
    text.resize(text.size() - 3);
  }
  if (text.ends_with("+00:00")) {
    suffix = "+00" + suffix;
    text.resize(text.size() - 6);
  }
  while (text.find('.') != std::string::npos && (text.back() == '0' || text.back() == '.')) {
    const bool point = text.back() == '.';
    text.pop_back();
    if (point) break;
  }
  return text + suffix;
}

std::string hex(ByteView bytes) {
  std::string text;
  for (const std::uint8_t byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

std::string uuid_text(const std::uint8_t* bytes) {
  std::string text = hex({bytes, 16});
  for (const std::size_t at : {8U, 13U, 18U, 23U}) text.insert(at, "-");
  return text;
}

std::string timestamp_text(std::int64_t micros, bool zoned) {
  if (micros == std::numeric_limits<std::int64_t>::max()) return "infinity";
  if (micros == std::numeric_limits<std::int64_t>::min()) return "-infinity";
  return postgres_time(civil::timestamp_text(micros, civil::Fraction::micro, 6, zoned));
}

std::string date_text(std::int32_t days) {
  if (days == std::numeric_limits<std::int32_t>::max()) return "infinity";
  if (days == std::numeric_limits<std::int32_t>::min()) return "-infinity";
  return civil::date_text(days);
}

}  // namespace

std::string print_value(const ColumnView& column, const Type& type, std::size_t row) {
  if (!column.valid(row)) return std::string(null_text);
  switch (type.id) {
    case TypeId::boolean:
      return column.boolean(row) ? "t" : "f";
    case TypeId::int16:
      return std::to_string(column.value<std::int16_t>(row));
    case TypeId::int32:
      return std::to_string(column.value<std::int32_t>(row));
    case TypeId::int64:
      return std::to_string(column.value<std::int64_t>(row));
    case TypeId::float32:
      return fmt::format("{:08x}", column.value<std::uint32_t>(row));
    case TypeId::float64:
      return fmt::format("{:016x}", column.value<std::uint64_t>(row));
    case TypeId::decimal:
      return decimal::to_text(column.value<Int128>(row), type.scale);
    case TypeId::date:
      return date_text(column.value<std::int32_t>(row));
    case TypeId::time:
      return postgres_time(civil::time_text(column.value<std::int64_t>(row), civil::Fraction::micro, 6));
    case TypeId::timestamp:
      return timestamp_text(column.value<std::int64_t>(row), type.zoned);
    case TypeId::uuid:
      return uuid_text(column.values + 16 * row);
    case TypeId::binary:
      return "\\x" + hex(column.bytes(row));
    case TypeId::text:
    case TypeId::json:
      return std::string(column.text(row));
    default:
      return "?";
  }
}

async::Task<void> Collect::put(rows::BatchPtr batch) {
  for (std::size_t i = 0; i < batch->rows(); ++i) {
    Row row;
    for (std::size_t c = 0; c < batch->columns(); ++c) {
      row.push_back(print_value(batch->column(c), batch->schema().fields[c].type, i));
    }
    rows.push_back(std::move(row));
  }
  ++batches;
  if (on_batch) co_await on_batch(batches);
}

std::string test_dsn() {
  const char* dsn = std::getenv("ROWFERRY_TEST_PG");
  return dsn == nullptr ? "" : dsn;
}

Live::Live(const std::string& the_schema, const LiveOptions& live) : schema(the_schema) {
  if (test_dsn().empty()) cr_skip_test("ROWFERRY_TEST_PG is not set: no PostgreSQL to test against\n");
  const std::string dsn = test_dsn() + " " + live.dsn_more;
  options = std::make_shared<SessionOptions>();
  options->name = "shop";
  options->parameters = parse_dsn(test_dsn());
  admin = session();
  // Tests run side by side; those of one schema wait for each other.
  sql("SELECT pg_advisory_lock(hashtext(" + quote_text(schema) + "))");
  sql("SELECT pg_advisory_lock(1); CREATE EXTENSION IF NOT EXISTS citext SCHEMA public; "
      "CREATE EXTENSION IF NOT EXISTS hstore SCHEMA public; SELECT pg_advisory_unlock(1)");
  sql("DROP SCHEMA IF EXISTS " + quote_name(schema) + " CASCADE; CREATE SCHEMA " + quote_name(schema));
  ConnectionConfig config;
  config.name = "shop";
  config.dsn = dsn;
  config.max_sessions = live.max_sessions;
  if (!live.password.empty()) config.password = [text = live.password] { return Secret(std::string(text)); };
  connection = std::make_unique<PostgresConnection>(loop, config);
  source = connection->make_source();
}

Live::~Live() {
  if (admin && admin->open()) sql("DROP SCHEMA IF EXISTS " + quote_name(schema) + " CASCADE");
}

std::vector<std::string> Live::column(const std::string& text) {
  const Result result = sql(text);
  std::vector<std::string> values;
  for (int i = 0; i < result.rows(); ++i) {
    const bool null = PQgetisnull(result.get(), i, 0) != 0;
    values.emplace_back(null ? std::string(null_text) : PQgetvalue(result.get(), i, 0));
  }
  return values;
}

std::string Live::settled(const std::string& text, std::string_view expected) {
  std::string value;
  for (int i = 0; i < 40; ++i) {
    value = column(text)[0];
    if (value == expected) break;
    sql("SELECT pg_sleep(0.05)");
  }
  return value;
}

system::SourceTable Live::describe(const system::SourceRequest& what) { return run(source->describe(what)); }

system::ReadRequest Live::request(const system::SourceRequest& what, int slices, int workers) {
  system::ReadRequest request;
  request.what = what;
  request.workers = workers;
  request.slices.at_least = slices;
  for (const system::SourceColumn& column : describe(what).columns) {
    system::ColumnPlan plan;
    plan.source = plan.target = column.name;
    plan.read_type = plan.write_type = column.type;
    plan.source_nullable = column.nullable;
    plan.source_native = column.native;
    request.columns.push_back(plan);
  }
  return request;
}

system::ReadRequest Live::request(const std::string& name, int slices, int workers) {
  system::SourceRequest what;
  what.table = table(name);
  return request(what, slices, workers);
}

std::vector<Row> Live::read_slices(system::Reading& reading) {
  Collect collect;
  const auto reader = run(reading.open_reader(0));
  for (const system::Slice& slice : reading.slices().slices) {
    const std::size_t before = collect.rows.size();
    const system::ReadResult result = run(reader->read(slice, collect));
    cr_expect_eq(result.rows, collect.rows.size() - before, "%s", slice.predicate.c_str());
  }
  run(reader->close());
  return std::move(collect.rows);
}

std::vector<Row> Live::read_all(const system::ReadRequest& request) {
  const auto reading = begin(request);
  std::vector<Row> all = read_slices(*reading);
  run(reading->end());
  return all;
}

}  // namespace rowferry::postgres::test
