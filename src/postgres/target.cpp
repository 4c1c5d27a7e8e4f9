#include "postgres/target.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/limits.hpp"
#include "postgres/dialect.hpp"
#include "postgres/load_type.hpp"
#include "postgres/natural_type.hpp"
#include "postgres/partitions.hpp"
#include "system/ledger.hpp"

namespace rowferry::postgres {

using async::Task;
using system::TargetRequest;

namespace {

Task<void> begin_look(Session* session) {
  co_await session->query(fmt::format("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL lock_timeout = {}",
                                      limits::pg_lock_wait.count()));
}

std::string generated_text(const ColumnFacts& column) {
  return column.generated == 'v' ? "generated, virtual" : "generated";
}

struct Description {
  system::TargetTable table;
  int money_scale = 2;
};

Task<Description> describe_in(Session* session, Place place) {
  co_await begin_look(session);
  const TableFacts facts = co_await read_table(*session, place.schema, place.table);
  check_kind(facts);
  Description out;
  out.money_scale = co_await read_money_scale(*session);
  system::TargetTable& table = out.table;
  table.server = {"PostgreSQL", session->version_text()};
  table.exists = facts.exists;
  for (const ColumnFacts& column : facts.columns) table.columns.push_back(target_column(column, out.money_scale));
  if (const IndexFacts* const key = facts.primary_key(); key != nullptr) table.primary_key = key->columns;
  table.partition_by = facts.partition_by;
  table.partition_column = facts.partition_column;
  if (facts.partition_by == "range" && !facts.partition_column.empty()) {
    const ColumnFacts& column = *facts.column(facts.partition_column);
    table.partition_bounds = co_await range_bounds_of(*session, facts, load_type(column.type, out.money_scale).type);
  }
  co_return out;
}

}  // namespace

system::TargetColumn target_column(const ColumnFacts& column, int money_scale) {
  system::TargetColumn out;
  out.name = column.name;
  out.native = column.native;
  out.nullable = column.nullable;
  out.identity = column.identity != 0;
  out.insertable = column.insertable();
  if (!out.insertable) out.why_not = generated_text(column);
  out.has_default = !column.expression.empty();
  const LoadType load = load_type(column.type, money_scale);
  out.type = load.type;
  out.compared = load.compared;
  out.any_decimal = load.any_decimal;
  if (load.why_not.empty()) return out;
  out.loadable = false;
  out.why_not = load.why_not;
  return out;
}

std::size_t sessions_needed(const TargetRequest& request) {
  return 1 + static_cast<std::size_t>(std::max(request.workers, 1));
}

Task<system::TargetTable> PostgresTarget::describe(const TargetRequest& request) {
  const Place place = place_of(request, ledger_schema_);
  const SessionLease lease = co_await SessionLease::take(shared_, 1);
  const std::unique_ptr<Session> session = co_await Session::connect(shared_->loop, shared_->options);
  try {
    Description found = co_await net::with_deadline(
        shared_->loop, limits::pg_catalogue_wait, "reading PostgreSQL's catalogue", describe_in(session.get(), place));
    money_scale_ = found.money_scale;
    co_return std::move(found.table);
  } catch (Error& error) {
    throw error.with_connection(session->name()).with_table(request.table.text());
  }
}

system::NaturalType PostgresTarget::natural_type(const system::SourceColumn& column, std::string_view wanted_type,
                                                 bool /*in_key*/) const {
  return postgres::natural_type(column, wanted_type, money_scale_);
}

namespace {

// What one slice of `commit: slice` does, with a bound to be filled in.
void add_slice_statements(std::vector<std::string>& out, const Situation& situation, const Decision& decision,
                          const std::vector<system::ColumnPlan>& columns) {
  const std::string ellipsis = "…";
  const TableFacts& table = situation.table;
  const std::string part = quote_table({{table.schema, table.name + "_" + ellipsis}});
  out.emplace_back("-- for each slice:");
  out.emplace_back("BEGIN");
  if (!decision.exchange) out.push_back(fmt::format("TRUNCATE {}  -- or CREATE TABLE, where it is missing", part));
  if (decision.exchange) {
    out.push_back(fmt::format("CREATE {}TABLE rowferry_{} (…)", decision.unlogged ? "UNLOGGED " : "", ellipsis));
  }
  out.push_back(copy_statement(decision.exchange ? "rowferry_" + ellipsis : part, columns, "binary", decision.freeze));
  if (decision.exchange) out.push_back(fmt::format("ALTER TABLE {} DETACH PARTITION {}", table.sql, part));
  out.push_back(fmt::format("ALTER TABLE {} ATTACH PARTITION {} FOR VALUES …{}", table.sql, part,
                            decision.exchange ? "" : "  -- where it was made"));
  out.emplace_back("COMMIT");
}

}  // namespace

std::vector<std::string> plan_statements(const Situation& situation, const Decision& decision,
                                         const std::string& ledger_schema,
                                         const std::vector<system::ColumnPlan>& columns, const TargetRequest& request) {
  const std::string staging = "rowferry_<id>_<attempt>";
  const TableFacts& table = situation.table;
  const std::string claim = fmt::format("INSERT INTO {} … ON CONFLICT DO NOTHING",
                                        quote_table({{ledger_schema, std::string(system::ledger_table)}}));
  std::vector<std::string> out;
  if (decision.finalizer == system::Finalizer::per_slice) {
    out = decision.create_target;
    add_slice_statements(out, situation, decision, columns);
    if (request.source_filtered) return out;
    out.emplace_back("-- in the end:");
    out.emplace_back("BEGIN");
    out.push_back(claim);
    out.emplace_back("TRUNCATE …  -- partitions that no slice has filled");
    out.emplace_back("COMMIT");
    return out;
  }
  const bool direct = decision.finalizer == system::Finalizer::direct;
  const std::string into = direct ? table.sql : quote_table({{table.schema, staging}});
  if (!direct) {
    out.push_back(create_staging(decision, table.schema, staging));
    out.push_back(copy_statement(into, columns, "binary", false));
  }
  out.emplace_back("BEGIN");
  out.push_back(claim);
  if (direct) {
    for (std::string& sql : direct_statements(decision, table)) out.push_back(std::move(sql));
    out.push_back(copy_statement(into, columns, "binary", decision.freeze));
  }
  for (FinalizeStatement& statement : finalize_statements(decision, table, staging, columns, request)) {
    if (statement.kind == FinalizeStatement::Kind::partitions) {
      statement.sql = "CREATE TABLE …; ALTER TABLE … ATTACH PARTITION …  -- for values that have no partition";
    }
    out.push_back(std::move(statement.sql));
  }
  out.emplace_back("COMMIT");
  return out;
}

namespace {

Task<Situation> look(Session* session, Place place, const TargetRequest* request,
                     const std::vector<system::ColumnPlan>* columns) {
  co_await begin_look(session);
  co_return co_await read_situation(*session, place, *request, *columns);
}

}  // namespace

Task<system::TargetPlan> PostgresTarget::plan(const TargetRequest& request,
                                              const std::vector<system::ColumnPlan>& columns,
                                              const std::vector<std::string>& source_key) {
  const Place place = place_of(request, ledger_schema_);
  const std::size_t most = shared_->sessions.total();
  if (sessions_needed(request) > most) {
    throw Error(Category::input, "max_sessions",
                fmt::format("{} load workers need {} sessions, and the connection allows {}", request.workers,
                            sessions_needed(request), most))
        .with_connection(shared_->options->name)
        .with_hint("raise max_sessions of the connection, or use fewer load workers");
  }
  const SessionLease lease = co_await SessionLease::take(shared_, 1);
  const std::unique_ptr<Session> session = co_await Session::connect(shared_->loop, shared_->options);
  try {
    const Situation situation =
        co_await net::with_deadline(shared_->loop, limits::pg_catalogue_wait, "reading PostgreSQL's catalogue",
                                    look(session.get(), place, &request, &columns));
    Decision decision = decide(situation, request, columns, source_key);
    planned_definition_ = situation.table.definition();
    system::TargetPlan out;
    out.finalizer = decision.finalizer;
    out.finalizer_reason = decision.reason;
    out.creates = decision.creates;
    out.statements = plan_statements(situation, decision, place.ledger_schema, columns, request);
    out.notices = std::move(decision.notices);
    out.dropped = std::move(decision.dropped);
    for (const ColumnFacts& column : situation.table.columns) {
      const bool loaded = std::ranges::find(columns, column.name, &system::ColumnPlan::target) != columns.end();
      if (!loaded && column.insertable()) out.unmatched_target.push_back(column.name);
    }
    co_return out;
  } catch (Error& error) {
    throw error.with_connection(session->name()).with_table(request.table.text());
  }
}

}  // namespace rowferry::postgres
