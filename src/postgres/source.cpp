#include "postgres/source.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/limits.hpp"
#include "postgres/reading.hpp"
#include "postgres/slices.hpp"

namespace rowferry::postgres {

namespace {

async::Task<void> begin_look(Session* session) {
  co_await session->query(fmt::format("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL lock_timeout = {}",
                                      limits::pg_lock_wait.count()));
}

void select_columns(const Origin& origin, const system::SourceRequest& request, system::SourceTable& table) {
  for (const std::string& name : request.columns) origin.column(name);  // every one must exist
  for (const Column& column : origin.columns) {
    const bool wanted = request.columns.empty() || std::find(request.columns.begin(), request.columns.end(),
                                                             column.facts.name) != request.columns.end();
    if (!wanted) continue;
    table.columns.push_back(column.facts);
    const bool odd =
        column.type.kind == 'b' && !column.type.array && column.facts.text_only && map_type(column.type, 2).unknown;
    if (!odd) continue;
    table.notices.push_back(
        {"unknown_type",
         fmt::format("type {} is not known here: column {} is read as text, as PostgreSQL prints it",
                     column.facts.native, column.facts.name),
         column.facts.name});
  }
}

void note_relation(const Relation& relation, system::SourceTable& table) {
  const bool foreign =
      std::any_of(relation.leaves.begin(), relation.leaves.end(), [](const Leaf& leaf) { return leaf.kind == 'f'; });
  if (foreign) {
    table.notices.push_back(
        {"foreign_table", fmt::format("{} has rows on another server: no snapshot covers them", relation.text), ""});
  }
}

async::Task<system::SourceTable> describe_in(Session* session, const system::SourceRequest* request) {
  co_await begin_look(session);
  const Origin origin = co_await look_up(*session, *request);
  system::SourceTable table;
  table.server = {"PostgreSQL", session->version_text()};
  select_columns(origin, *request, table);
  const Estimate size = co_await estimate(*session, origin, request->columns);
  table.row_estimate = size.rows;
  table.byte_estimate = size.bytes;
  if (origin.relation) {
    table.primary_key = origin.relation->primary_key;
    note_relation(*origin.relation, table);
    table.not_carried = co_await not_carried(*session, *origin.relation);
  }
  co_return table;
}

async::Task<system::SlicePlan> plan_in(Session* session, const system::ReadRequest* request) {
  co_await begin_look(session);
  const Origin origin = co_await look_up(*session, request->what);
  co_return co_await make_slices(*session, origin, request->slices);
}

std::string source_text(const system::SourceRequest& request) {
  return request.query.empty() ? request.table.text() : "(query)";
}

}  // namespace

async::Task<SessionLease> SessionLease::take(std::shared_ptr<Shared> shared, std::size_t count) {
  const std::size_t most = shared->sessions.total();
  if (count > most) {
    throw Error(Category::input, "max_sessions",
                fmt::format("{} sessions are needed at the same time, and the connection allows {}", count, most))
        .with_connection(shared->options->name)
        .with_hint("raise max_sessions of the connection, or use fewer workers");
  }
  co_await shared->sessions.acquire(count);
  co_return SessionLease(std::move(shared), count);
}

async::Task<system::SourceTable> PostgresSource::describe(const system::SourceRequest& request) {
  const SessionLease lease = co_await SessionLease::take(shared_, 1);
  const std::unique_ptr<Session> session = co_await Session::connect(shared_->loop, shared_->options);
  try {
    co_return co_await net::with_deadline(shared_->loop, limits::pg_catalogue_wait, "reading PostgreSQL's catalogue",
                                          describe_in(session.get(), &request));
  } catch (Error& error) {
    throw error.with_connection(session->name()).with_table(source_text(request));
  }
}

async::Task<system::SlicePlan> PostgresSource::plan_slices(const system::ReadRequest& request) {
  const SessionLease lease = co_await SessionLease::take(shared_, 1);
  const std::unique_ptr<Session> session = co_await Session::connect(shared_->loop, shared_->options);
  try {
    co_return co_await plan_in(session.get(), &request);
  } catch (Error& error) {
    throw error.with_connection(session->name()).with_table(source_text(request.what));
  }
}

async::Task<std::unique_ptr<system::Reading>> PostgresSource::begin(const system::ReadRequest& request) {
  auto state = std::make_shared<ReadingState>(shared_, request);
  state->lease = co_await SessionLease::take(shared_, static_cast<std::size_t>(std::max(request.workers, 1)) + 1);
  for (int attempt = 1;; ++attempt) {
    std::optional<Error> changed;
    try {
      co_await state->start();
    } catch (Error& error) {
      error.with_connection(shared_->options->name).with_table(state->text);
      // The server was there when the table was described: it is restarting.
      if (error.code() == "connect_failed") error.mark_transient();
      if (error.code() != "source_changed" || attempt == limits::pg_begin_attempts) throw;
      changed = error;
    }
    if (!changed) break;
  }
  co_return make_reading(std::move(state));
}

}  // namespace rowferry::postgres
