#include "mssql/source.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/limits.hpp"
#include "mssql/reading.hpp"

namespace rowferry::mssql {

using async::Task;

namespace {

system::SourceTable described(const Origin& origin, const system::SourceRequest& request) {
  const std::vector<const OriginColumn*> columns = chosen_columns(origin, request.columns);
  system::SourceTable table;
  table.server = origin.server.server();
  for (const OriginColumn* column : columns) table.columns.push_back(column->facts);
  table.notices = notices_of(origin, columns);
  if (!origin.table) return table;
  if (const IndexFacts* const key = origin.table->primary_key(); key != nullptr) table.primary_key = key->key_names;
  table.row_estimate = origin.storage.rows;
  table.byte_estimate = origin.storage.bytes;
  if (origin.is_table()) table.not_carried = not_carried(*origin.table, origin.storage);
  return table;
}

bool remembers(const std::optional<RememberedValues>& values, const system::ReadRequest& request) {
  return values && request.slices.by == system::SliceBy::value && values->column == request.slices.column &&
         values->where == request.what.where &&
         std::chrono::steady_clock::now() - values->found_at < limits::mssql_values_remembered;
}

}  // namespace

std::string source_text(const system::SourceRequest& request) {
  return request.query.empty() ? request.table.text() : "(query)";
}

SessionSettings reading_settings(const system::ReadOptions& options, std::string database) {
  return {.database = std::move(database),
          .lock_timeout_ms = options.lock_timeout_ms.value_or(static_cast<int>(limits::mssql_read_lock_wait.count())),
          .read_only_intent = options.read_only_intent};
}

Task<Origin> look_up_anywhere(SessionPool& pool, const system::SourceRequest& request,
                              const system::ReadOptions& options, Lease* lease) {
  *lease = co_await pool.open(reading_settings(options, database_of(request.table)));
  std::optional<Elsewhere> elsewhere;
  Origin origin = co_await look_up(*lease, request, &elsewhere);
  if (elsewhere) {
    system::SourceRequest there = request;
    there.table = elsewhere->table;
    elsewhere.reset();
    lease->close();
    *lease = co_await pool.open(reading_settings(options, database_of(there.table)));
    origin = co_await look_up(*lease, there, &elsewhere);
  }
  co_return origin;
}

Task<system::SourceTable> SourceImpl::describe(const system::SourceRequest& request) {
  try {
    Lease lease;
    const Origin origin = co_await look_up_anywhere(pool_, request, {}, &lease);
    co_return described(origin, request);
  } catch (Error& error) {
    throw error.with_connection(pool_.options().name).with_table(source_text(request));
  }
}

Task<system::SlicePlan> SourceImpl::plan_slices(const system::ReadRequest& request) {
  pool_.check_room(sessions_needed(request), "export");
  try {
    Lease lease;
    const Origin origin = co_await look_up_anywhere(pool_, request.what, request.options, &lease);
    const Isolation isolation = choose_isolation(request.options.isolation, origin.reading, origin.server.database);
    // The plan looks for bounds and values as the reading will.
    co_await lease.execute(fmt::format("SET TRANSACTION ISOLATION LEVEL {}", isolation.sql()));
    system::SlicePlan plan = co_await make_slices(lease, origin, request.slices);
    plan.consistency = consistency_of(isolation, plan.slices.size());
    plan.notices.insert(plan.notices.end(), isolation.notices.begin(), isolation.notices.end());
    if (plan.by == system::SliceBy::value) {
      remembered_ =
          RememberedValues{request.slices.column, request.what.where, plan.slices, std::chrono::steady_clock::now()};
    }
    co_return plan;
  } catch (Error& error) {
    throw error.with_connection(pool_.options().name).with_table(source_text(request.what));
  }
}

Task<std::unique_ptr<system::Reading>> SourceImpl::begin(const system::ReadRequest& request) {
  auto state = std::make_shared<ReadingState>(request);
  if (remembers(remembered_, request)) state->known_values = std::exchange(remembered_, std::nullopt)->slices;
  try {
    state->sessions = co_await SessionPool::share(&pool_, sessions_needed(request), "export");
    co_await state->start();
  } catch (Error& error) {
    error.with_connection(pool_.options().name).with_table(state->text);
    // The server was there when the table was described: it is restarting.
    if (error.code() == "connect_failed") error.mark_transient();
    throw;
  }
  co_return make_reading(std::move(state));
}

}  // namespace rowferry::mssql
