#include "postgres/reading.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "async/scope.hpp"
#include "base/limits.hpp"
#include "base/log.hpp"
#include "postgres/dialect.hpp"
#include "postgres/slices.hpp"

namespace rowferry::postgres {

namespace {

constexpr int min_scale_version = 130000;  // min_scale(numeric): PostgreSQL 13
constexpr std::string_view begin_snapshot = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

Error source_changed(std::string what) {
  return Error(Category::conflict, "source_changed", std::move(what)).mark_transient();
}

// A table that was loaded is read back into the types it was loaded from: text may be what a json column was given.
bool same_layout(rows::TypeId a, rows::TypeId b) noexcept {
  const auto text = [](rows::TypeId id) { return id == rows::TypeId::json ? rows::TypeId::text : id; };
  return text(a) == text(b);
}

BoundColumn bind(const Column& column, const system::ColumnPlan& plan) {
  BoundColumn bound;
  const std::string name = quote_name(column.facts.name);
  bound.copy = {.name = column.facts.name, .form = column.form, .type = plan.read_type, .policy = plan.policy};
  if (plan.read_as_json) {
    bound.expression = as_json(name);
    bound.copy.form = wire::Form::bytes;
  } else if (plan.read_as_text || column.facts.text_only) {
    bound.expression = as_text(column.type, name);
    bound.copy.form = wire::Form::bytes;
  } else {
    bound.expression = as_itself(column.type, name);
    const bool as_described = same_layout(plan.read_type.id, column.facts.type.id) &&
                              (column.facts.any_decimal || column.form != wire::Form::money ||
                               plan.read_type.scale == column.facts.type.scale);
    if (!as_described) {
      throw source_changed(fmt::format("column {} is now {}", column.facts.name, column.facts.native))
          .with_column(column.facts.name);
    }
  }
  // A target without bounds (another PostgreSQL) has the infinities too.
  bound.copy.holds_infinity = plan.write_type.id == plan.read_type.id &&
                              plan.write_type.max == std::numeric_limits<std::int64_t>::max() &&
                              plan.write_type.min == std::numeric_limits<std::int64_t>::min();
  return bound;
}

std::string leaf_oids(const Relation& relation) {
  std::string oids;
  for (const Leaf& leaf : relation.leaves) oids += fmt::format("{}{}", oids.empty() ? "" : ",", leaf.oid);
  return oids;
}

}  // namespace

ReadingState::ReadingState(std::shared_ptr<Shared> the_shared, const system::ReadRequest& the_request)
    : shared(std::move(the_shared)),
      request(the_request),
      text(the_request.what.query.empty() ? the_request.what.table.text() : "(query)") {}

std::string ReadingState::select(const std::string& from, const std::string& predicate) const {
  std::string sql = "SELECT ";
  for (std::size_t i = 0; i < bound.size(); ++i) sql += (i == 0 ? "" : ", ") + bound[i].expression;
  sql += " FROM " + from;
  std::string filter;
  if (!origin.where.empty()) filter = "(\n" + origin.where + "\n)";
  if (!predicate.empty()) filter += (filter.empty() ? "" : " AND ") + ("(" + predicate + ")");
  return filter.empty() ? sql : sql + " WHERE " + filter;
}

int ReadingState::lock_wait() const noexcept {
  return request.options.lock_timeout_ms.value_or(static_cast<int>(limits::pg_lock_wait.count()));
}

void ReadingState::bind_columns() {
  bound.clear();
  auto fields = std::make_shared<rows::Schema>();
  for (const system::ColumnPlan& plan : request.columns) {
    const Column& column = origin.column(plan.source);
    if (!plan.source_nullable && column.facts.nullable) {
      throw source_changed(fmt::format("column {} may be NULL now", plan.source)).with_column(plan.source);
    }
    bound.push_back(bind(column, plan));
    fields->fields.push_back({plan.source, plan.read_type, plan.source_nullable});
  }
  schema = std::move(fields);
}

// Before the real thing, in a transaction of its own: what has to be locked. Planning the SELECT locks all that it
// reads, views' tables and partitions included.
async::Task<void> ReadingState::find_locks(Session* session) {
  co_await session->query(fmt::format("{}; SET LOCAL lock_timeout = {}", begin_snapshot, lock_wait()));
  origin = co_await look_up(*session, request.what);
  bind_columns();
  lock_list.clear();
  locks_by_plan = false;
  if (origin.relation && (origin.relation->kind == 'r' || origin.relation->kind == 'p') && origin.relation->readable) {
    lock_list = origin.relation->sql;  // and all its children, by the server's own recursion
  } else {
    co_await session->query("EXPLAIN " + select(origin.from, ""));
    for (const Locked& one : co_await locked_relations(*session)) {
      if (one.lockable) {
        lock_list += (lock_list.empty() ? "" : ", ") + one.sql;
      } else {
        locks_by_plan = true;
      }
    }
  }
  co_await session->query("ROLLBACK");
}

// LOCK TABLE takes no snapshot, so the locks are there before the snapshot is.
async::Task<void> ReadingState::lock_and_export() {
  co_await exporter->query(fmt::format("{}; SET LOCAL lock_timeout = {}", begin_snapshot, lock_wait()));
  if (!lock_list.empty()) co_await exporter->query("LOCK TABLE " + lock_list + " IN ACCESS SHARE MODE");
  const Result exported = co_await exporter->query("SELECT pg_catalog.pg_export_snapshot() AS id");
  snapshot = exported.text(0, "id");
}

// The catalogue is read again under snapshot and locks. What could not be locked before the snapshot is locked by now
// (EXPLAIN), and a TRUNCATE, CLUSTER or REFRESH in between shows in the file of its storage.
async::Task<void> ReadingState::check_unchanged(const Origin& before) {
  Origin now = co_await look_up(*exporter, request.what);
  bool same = now.columns.size() == before.columns.size() && now.relation.has_value() == before.relation.has_value();
  if (same && now.relation)
    same = now.relation->oid == before.relation->oid && now.relation->leaves == before.relation->leaves;
  for (std::size_t i = 0; same && i < now.columns.size(); ++i) {
    const system::SourceColumn& a = now.columns[i].facts;
    const system::SourceColumn& b = before.columns[i].facts;
    same = a.name == b.name && a.native == b.native && a.nullable == b.nullable;
  }
  if (!same) throw source_changed(fmt::format("{} was altered while the transfer began", text));
  origin = std::move(now);
  bind_columns();
  co_await exporter->query("EXPLAIN " + select(origin.from, ""));
  bool foreign = false;
  for (const Locked& one : co_await locked_relations(*exporter)) {
    if (one.rewritten) throw source_changed(fmt::format("{} was rewritten while the transfer began", one.sql));
    foreign = foreign || one.kind == 'f';
  }
  if (foreign) {
    consistency = system::Consistency::none;
    notices.push_back(
        {"foreign_table", "rows of foreign tables come from another server: no snapshot covers them", ""});
  }
}

// The largest scale that the values have, so that decimal(38, scale) holds each exactly where that is possible.
async::Task<void> ReadingState::scan_numerics() {
  std::string list;
  std::vector<system::ColumnPlan*> plans;
  for (const std::string& name : request.what.scan_numeric) {
    for (system::ColumnPlan& plan : request.columns) {
      if (plan.source != name || !origin.column(name).facts.any_decimal) continue;
      if (plan.read_as_text || plan.read_as_json) continue;
      // Before 13 the display scale stands in: it counts trailing zeros too.
      list +=
          fmt::format("{}pg_catalog.max(pg_catalog.{}({})) AS s{}", list.empty() ? "" : ", ",
                      exporter->version() >= min_scale_version ? "min_scale" : "scale", quote_name(name), plans.size());
      plans.push_back(&plan);
    }
  }
  if (plans.empty()) co_return;
  const Result found = co_await exporter->query(fmt::format(
      "SELECT {} FROM {}{}", list, origin.from, origin.where.empty() ? "" : " WHERE (\n" + origin.where + "\n)"));
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const auto scale = std::min<std::int64_t>(found.integer(0, fmt::format("s{}", i).c_str()), 38);
    plans[i]->read_type = rows::Type::decimal(38, static_cast<int>(scale));
  }
}

async::Task<void> ReadingState::start() {
  ready.clear();
  notices.clear();
  consistency = system::Consistency::one_snapshot;
  bound.clear();
  exporter = co_await Session::connect(shared->loop, shared->options);
  co_await net::with_deadline(shared->loop, limits::pg_catalogue_wait, "reading PostgreSQL's catalogue",
                              find_locks(exporter.get()));
  const Origin before = std::move(origin);
  origin.where = before.where;
  co_await lock_and_export();
  co_await check_unchanged(before);
  if (origin.relation && origin.relation->kind == 'p') partitions = leaf_oids(*origin.relation);
  co_await scan_numerics();
  bind_columns();
  slices = co_await make_slices(*exporter, origin, request.slices);
  exporter_used = std::chrono::steady_clock::now();

  const std::size_t workers = static_cast<std::size_t>(std::max(request.workers, 1));
  ready.resize(workers);
  std::vector<async::Task<void>> tasks;
  for (std::size_t i = 0; i < workers; ++i) tasks.push_back(make_ready(i));
  co_await async::when_all(std::move(tasks));
}

async::Task<void> ReadingState::start_alone(Session* session) {
  co_await session->query(std::string(begin_snapshot));
  origin = co_await look_up(*session, request.what);
  bind_columns();
  slices = co_await make_slices(*session, origin, {.by = system::SliceBy::none, .column = "", .bounds = {}});
}

async::Task<void> ReadingState::make_ready(std::size_t worker) { ready[worker] = co_await make_worker(1); }

async::Task<std::unique_ptr<Session>> ReadingState::import_snapshot() {
  std::unique_ptr<Session> session = co_await Session::connect(shared->loop, shared->options);
  bool gone = false;
  try {
    co_await session->query(fmt::format("{}; SET TRANSACTION SNAPSHOT {}", begin_snapshot, quote_text(snapshot)));
  } catch (const Error& error) {
    // 22023 and 42704: no such snapshot any more; 55000: its transaction has ended.
    const std::string state = error.fault() ? error.fault()->number : "";
    if (state != "22023" && state != "42704" && state != "55000") throw;
    gone = true;
  }
  if (gone) {
    exporter->close();
    throw Error(Category::connection, "snapshot_gone", "the session that held the snapshot has ended").mark_transient();
  }
  std::string sql = fmt::format("SET LOCAL lock_timeout = {}", limits::pg_relock_pause.count());
  if (!origin.money_locale.empty()) sql += "; SET LOCAL lc_monetary = " + quote_text(origin.money_locale);
  if (!lock_list.empty()) sql += "; LOCK TABLE " + lock_list + " IN ACCESS SHARE MODE NOWAIT";
  if (locks_by_plan) sql += "; EXPLAIN " + select(origin.from, "");
  // The last statement only widens libpq's input buffer, which grows to the largest message and stays so: rows that
  // have piled up are then read by one call instead of many.
  sql += fmt::format("; SET LOCAL lock_timeout = 0; SELECT pg_catalog.repeat('x', {})", limits::pg_input_bytes);
  co_await session->query(sql);
  co_return session;
}

async::Task<std::unique_ptr<Session>> ReadingState::make_worker(int attempts) {
  auto pause = limits::pg_relock_pause;
  for (int attempt = 1;; ++attempt) {
    try {
      co_return co_await import_snapshot();
    } catch (Error& error) {
      error.with_connection(shared->options->name).with_table(text);
      if (error.code() != "source_locked" || attempt >= attempts) throw;
    }
    co_await net::sleep_for(shared->loop, pause);
    pause *= 2;
  }
}

bool ReadingState::exporter_alive() noexcept { return exporter != nullptr && exporter->alive(); }

async::Task<Result> ReadingState::on_exporter(std::string sql) {
  co_await exporter_turn.acquire(1);
  struct Turn {
    async::Budget& turn;
    ~Turn() { turn.release(1); }
  } const turn{exporter_turn};
  if (!exporter_alive()) {
    throw Error(Category::connection, "snapshot_gone", "the session that held the snapshot has ended").mark_transient();
  }
  Result result = co_await exporter->query(std::move(sql));
  exporter_used = std::chrono::steady_clock::now();
  co_return result;
}

async::Task<void> ReadingState::keep_alive() {
  const auto now = std::chrono::steady_clock::now();
  if (now - exporter_used < limits::pg_keepalive_query || exporter_turn.used() != 0 || !exporter_alive()) co_return;
  exporter_used = now;
  try {
    co_await on_exporter("SELECT 1");
  } catch (const Error& error) {
    // Its death is told by alive(); a worker that has the snapshot reads on without it.
    if (error.category() == Category::cancelled) throw;
  }
}

async::Task<void> ReadingState::check_partitions(Session* session) const {
  if (partitions.empty()) co_return;
  // pg_partition_tree sees the catalogue of this moment, not of the snapshot.
  const Result found =
      co_await session->query(fmt::format("SELECT pg_catalog.string_agg(relid::pg_catalog.oid::pg_catalog.text, ',' "
                                          "ORDER BY relid::pg_catalog.oid) AS oids "
                                          "FROM pg_catalog.pg_partition_tree({}) WHERE isleaf",
                                          origin.relation->oid));
  if (found.text(0, "oids") == partitions) co_return;
  throw source_changed(fmt::format("partitions of {} were attached or detached while it was read", text));
}

namespace {

class PostgresReading final : public system::Reading {
 public:
  explicit PostgresReading(std::shared_ptr<ReadingState> state) : state_(std::move(state)) {}

  system::Consistency consistency() const noexcept override { return state_->consistency; }
  const system::SlicePlan& slices() const noexcept override { return state_->slices; }
  const std::vector<system::Notice>& notices() const noexcept override { return state_->notices; }
  const std::vector<system::ColumnPlan>& columns() const noexcept override { return state_->request.columns; }
  bool alive() const noexcept override { return state_->exporter_alive(); }

  async::Task<std::unique_ptr<system::Reader>> open_reader(int worker) override {
    const auto at = static_cast<std::size_t>(worker);
    std::unique_ptr<Session> session;
    if (worker >= 0 && at < state_->ready.size()) session = std::move(state_->ready[at]);
    if (!session) session = co_await state_->make_worker(limits::pg_relock_attempts);
    co_return make_reader(state_, std::move(session));
  }

  async::Task<std::uint64_t> count_rows() override {
    const std::string where = state_->origin.where;
    const Result count =
        co_await state_->on_exporter(fmt::format("SELECT pg_catalog.count(*) AS n FROM {}{}", state_->origin.from,
                                                 where.empty() ? "" : " WHERE (\n" + where + "\n)"));
    co_return static_cast<std::uint64_t>(count.integer(0, "n"));
  }

  // One snapshot: no row, and so no value, comes into being while it is read.
  async::Task<std::vector<system::Slice>> late_slices() override { co_return std::vector<system::Slice>(); }

  async::Task<void> end() override { co_await async::shield(end_all()); }

 private:
  async::Task<void> end_all() {
    try {
      co_await net::with_deadline(state_->shared->loop, limits::pg_end_wait, "ending the snapshot", roll_back());
    } catch (const std::exception& error) {
      log::warning("a snapshot was not ended in good order",
                   {{"connection", state_->shared->options->name}, {"error", error.what()}});
    }
    state_->ready.clear();
    if (state_->exporter) state_->exporter->close();
    state_->lease = SessionLease();
  }
  async::Task<void> roll_back() {
    if (!state_->exporter_alive()) co_return;
    co_await state_->on_exporter("ROLLBACK");
  }

  std::shared_ptr<ReadingState> state_;
};

}  // namespace

std::unique_ptr<system::Reading> make_reading(std::shared_ptr<ReadingState> state) {
  return std::make_unique<PostgresReading>(std::move(state));
}

}  // namespace rowferry::postgres
