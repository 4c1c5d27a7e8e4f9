#include "postgres/loading.hpp"

#include <fmt/format.h>

#include <charconv>

#include "base/error.hpp"
#include "base/id.hpp"
#include "base/limits.hpp"
#include "base/log.hpp"
#include "postgres/dialect.hpp"
#include "postgres/reading.hpp"
#include "postgres/slices.hpp"
#include "system/hash_sink.hpp"

namespace rowferry::postgres {

using async::Task;

namespace {

constexpr std::string_view step_create = "create";  // of a partitioned table that per_slice has made at begin

// What keeps two transfers into the same table apart, in all sessions of the database.
std::int64_t lock_number(const Place& place) {
  const std::string print = fingerprint("rowferry:" + quote_table({{place.schema, place.table}}));
  std::uint64_t number = 0;
  std::from_chars(print.data(), print.data() + 16, number, 16);
  return static_cast<std::int64_t>(number);
}

Error target_busy(const Place& place) {
  return Error(Category::conflict, "target_busy",
               fmt::format("another transfer into {}.{} is running", place.schema, place.table));
}

Task<bool> table_exists(Session* session, std::string table) {
  const Result found =
      co_await session->query(fmt::format("SELECT pg_catalog.to_regclass({}) IS NOT NULL AS there", quote_text(table)));
  co_return found.boolean(0, "there");
}

Task<std::uint64_t> count_rows(Session* session, std::string table) {
  const Result found = co_await session->query(fmt::format("SELECT pg_catalog.count(*) AS n FROM {}", table));
  co_return static_cast<std::uint64_t>(found.integer(0, "n"));
}

// True for a table that a crash empties, and that has fewer rows than were committed into it; also for one that is
// gone.
Task<bool> has_lost_rows(Session* session, std::string table, std::uint64_t committed) {
  const bool there = co_await table_exists(session, table);
  if (!there) co_return true;
  const Result kind = co_await session->query(fmt::format(
      "SELECT relpersistence = 'u' AS unlogged FROM pg_catalog.pg_class WHERE oid = pg_catalog.to_regclass({})",
      quote_text(table)));
  if (!kind.boolean(0, "unlogged")) co_return false;
  const std::uint64_t rows = co_await count_rows(session, table);
  co_return rows < committed;
}

// The columns of a table that was loaded, to be read back.
std::vector<system::ColumnPlan> read_back_plans(const std::vector<system::ColumnPlan>& columns) {
  std::vector<system::ColumnPlan> plans;
  for (const system::ColumnPlan& column : columns) {
    system::ColumnPlan plan;
    plan.source = plan.target = column.target;
    plan.read_type = column.write_type;
    // oid is read as the bigint that holds it: the same canonical bytes.
    if (plan.read_type.id == rows::TypeId::uint32) plan.read_type = rows::Type::of(rows::TypeId::int64);
    plan.write_type = plan.read_type;
    plans.push_back(std::move(plan));
  }
  return plans;
}

}  // namespace

std::vector<wire::CopyTarget> copy_targets(const TableFacts& table, const std::vector<system::ColumnPlan>& columns,
                                           int money_scale) {
  std::vector<wire::CopyTarget> targets;
  for (const system::ColumnPlan& plan : columns) {
    const ColumnFacts* const column = table.column(plan.target);
    if (column == nullptr) {
      throw Error(Category::conflict, "target_changed", "the target has no such column any more")
          .with_column(plan.target);
    }
    const LoadType load = load_type(column->type, money_scale);
    if (!wire::takes(load.form, plan.write_type)) {
      throw Error(Category::conflict, "target_changed",
                  fmt::format("the column is {}, which is not loaded from {}", column->native,
                              rows::to_string(plan.write_type)))
          .with_column(plan.target);
    }
    targets.push_back({plan.target, load.form, plan.write_type});
  }
  return targets;
}

LoadingImpl::LoadingImpl(std::shared_ptr<Shared> shared, SessionLease lease, system::LoadRequest request, Place place,
                         async::Context context)
    : shared_(std::move(shared)),
      lease_(std::move(lease)),
      request_(std::move(request)),
      place_(std::move(place)),
      ledger_(shared_, place_.ledger_schema),
      context_(context),
      ledger_attempt_(request_.resume_staging ? request_.staging_attempt : request_.attempt) {}

LoadingImpl::~LoadingImpl() = default;

LedgerKey LoadingImpl::slice_key(const system::Slice& slice) const {
  const int attempt = per_slice() ? system::attempt_of_target : ledger_attempt_;
  const system::Commit commit = per_slice() ? system::Commit::slice : system::Commit::transfer;
  return {request_.transfer_id, attempt, system::slice_step(slice, commit)};
}

std::string LoadingImpl::staging_sql() const { return quote_table({{place_.schema, staging_}}); }

Task<std::unique_ptr<Session>> LoadingImpl::open() {
  co_return co_await open_loading_session(shared_, request_.what.load.lock_timeout_ms);
}

Task<std::unique_ptr<system::Loading>> LoadingImpl::begin(std::shared_ptr<Shared> shared, system::LoadRequest request,
                                                          Place place, std::string planned_definition) {
  const async::Context context = co_await async::current_context();
  SessionLease lease = co_await SessionLease::take(shared, sessions_needed(request.what));
  auto loading =
      std::make_unique<LoadingImpl>(std::move(shared), std::move(lease), std::move(request), std::move(place), context);
  co_await loading->start(std::move(planned_definition));
  co_return loading;
}

Task<void> LoadingImpl::start(std::string planned_definition) {
  std::exception_ptr error;
  try {
    co_await take_lock();
    co_await prepare(std::move(planned_definition));
  } catch (...) {
    error = std::current_exception();
  }
  if (error) {
    if (lock_) lock_->close();
    std::rethrow_exception(error);
  }
  if (!request_.only_after_steps) keeper_.start(context_, keep_alive());
}

Task<void> LoadingImpl::prepare(std::string planned_definition) {
  if (request_.only_after_steps) {
    situation_.table = co_await read_table(*lock_, place_.schema, place_.table);
    decision_.finalizer = request_.plan.finalizer;
    if (ledger_attempt_ > 0 && !direct() && !per_slice()) {
      staging_ = fmt::format("rowferry_{}_{}", request_.transfer_id, ledger_attempt_);
    }
    co_return;
  }
  co_await ledger_.ensure(*lock_);
  co_await read_target();
  const bool as_planned =
      situation_.made_by_us || planned_definition.empty() || situation_.table.definition() == planned_definition;
  if (!as_planned) {
    throw Error(Category::conflict, "target_changed",
                fmt::format("{} is not what it was when the transfer was planned", situation_.table.sql))
        .with_hint("start the transfer again");
  }
  decision_ = decide(situation_, request_.what, request_.columns, request_.primary_key);
  if (per_slice()) {
    co_await create_target();
  } else if (!direct()) {
    staging_ = fmt::format("rowferry_{}_{}", request_.transfer_id, ledger_attempt_);
    if (request_.resume_staging) {
      co_await reuse_staging();
    } else {
      co_await make_staging();
    }
  }
}

Task<bool> LoadingImpl::try_lock() {
  const Result got =
      co_await lock_->query(fmt::format("SELECT pg_catalog.pg_try_advisory_lock({}) AS granted", lock_number(place_)));
  co_return got.boolean(0, "granted");
}

Task<void> LoadingImpl::take_lock() {
  lock_ = co_await open();
  const bool granted = co_await try_lock();
  if (!granted) throw target_busy(place_);
}

// The server may see the end of the session that had it a little later than we do.
Task<void> LoadingImpl::take_lock_again() {
  lock_->close();
  lock_ = co_await open();
  for (int tries = 1;; ++tries) {
    const bool granted = co_await try_lock();
    if (granted) break;
    if (tries >= limits::pg_target_lock_tries_max) throw target_busy(place_);
    co_await net::sleep_for(shared_->loop, limits::pg_target_lock_pause * tries);
  }
  lock_lost_ = false;
}

Task<void> LoadingImpl::read_target() {
  situation_ = co_await read_situation(*lock_, place_, request_.what, request_.columns);
  situation_.planned = request_.plan.finalizer;
  for (const system::LedgerEntry& entry : co_await ledger_.entries(*lock_, request_.transfer_id)) {
    if (entry.attempt == system::attempt_of_target && entry.step == step_create) situation_.made_by_us = true;
  }
}

// A partitioned table that slices are committed into is there before the first of them.
Task<void> LoadingImpl::create_target() {
  if (decision_.create_target.empty() || situation_.made_by_us) co_return;
  const LedgerKey key{request_.transfer_id, system::attempt_of_target, std::string(step_create)};
  std::exception_ptr error;
  bool by_ledger = false;
  try {
    co_await lock_->query("BEGIN");
    co_await ledger_.claim(*lock_, key, "");
    for (const std::string& sql : decision_.create_target) co_await lock_->query(sql);
    co_await ledger_.note(*lock_, key, 0, "", "");
    co_await commit_transaction(*lock_, ledger_, key, by_ledger);
  } catch (...) {
    error = std::current_exception();
  }
  if (error) {
    co_await roll_back(*lock_);
    std::rethrow_exception(error);
  }
  if (by_ledger) co_await take_lock_again();
  situation_.table = co_await read_table(*lock_, place_.schema, place_.table);
  situation_.made_by_us = true;
}

Task<void> LoadingImpl::make_staging() {
  const LedgerKey key{request_.transfer_id, ledger_attempt_, std::string(system::step_staging)};
  std::exception_ptr error;
  bool by_ledger = false;
  try {
    co_await lock_->query("BEGIN");
    const bool there = co_await ledger_.claim(*lock_, key, staging_);
    if (there) {
      // An earlier begin of this attempt was cut off behind its COMMIT: nothing of it is used.
      co_await ledger_.forget(*lock_, request_.transfer_id, ledger_attempt_);
      co_await lock_->query("DROP TABLE IF EXISTS " + staging_sql());
      co_await ledger_.claim(*lock_, key, staging_);
    }
    co_await lock_->query(create_staging(decision_, place_.schema, staging_));
    co_await commit_transaction(*lock_, ledger_, key, by_ledger);
  } catch (...) {
    error = std::current_exception();
  }
  if (error) {
    co_await roll_back(*lock_);
    std::rethrow_exception(error);
  }
  if (by_ledger) co_await take_lock_again();
}

Task<void> LoadingImpl::reuse_staging() {
  const bool there = co_await table_exists(lock_.get(), staging_sql());
  if (there) co_return;
  throw Error(Category::not_found, "staging_missing", fmt::format("the staging table {} is gone", staging_sql()));
}

Task<void> LoadingImpl::keep_alive() {
  while (!lock_lost_) {
    co_await net::sleep_for(shared_->loop, limits::pg_keepalive_query);
    try {
      co_await net::with_deadline(shared_->loop, limits::pg_keep_alive_wait, "keeping the target's lock",
                                  lock_->query("SELECT 1"));
    } catch (const Error& error) {
      if (error.category() == Category::cancelled) throw;
      lock_lost_ = true;
    }
  }
}

Task<std::unique_ptr<system::Loader>> LoadingImpl::open_loader(int /*worker*/) {
  std::unique_ptr<Session> session = co_await open();
  co_return std::make_unique<LoaderImpl>(*this, std::move(session));
}

// SQL names of what this transfer has filled: staging, or the partitions that the ledger has for its slices.
Task<std::vector<std::string>> LoadingImpl::loaded_tables(Session* session) const {
  if (direct()) co_return std::vector<std::string>{situation_.table.sql};
  if (!per_slice()) co_return std::vector<std::string>{staging_sql()};
  std::set<std::string> steps = begun_steps_;
  for (const system::Slice& slice : request_.slices) steps.insert(slice_key(slice).step);
  std::set<std::string> tables;
  for (const system::LedgerEntry& entry : co_await ledger_.entries(*session, request_.transfer_id)) {
    const bool ours = entry.attempt == system::attempt_of_target && steps.contains(entry.step);
    if (ours && !entry.staging.empty()) tables.insert(entry.staging);
  }
  co_return std::vector<std::string>(tables.begin(), tables.end());
}

Task<std::uint64_t> LoadingImpl::staged_rows() {
  const std::unique_ptr<Session> session = co_await open();
  std::uint64_t rows = 0;
  for (const std::string& table : co_await loaded_tables(session.get())) {
    rows += co_await count_rows(session.get(), table);
  }
  co_return rows;
}

Task<std::optional<rows::ContentHash>> LoadingImpl::staged_hash(std::string& why) {
  if (direct()) {
    why = "direct";
    co_return std::nullopt;
  }
  std::vector<bool> compared;
  for (const system::ColumnPlan& column : request_.columns) compared.push_back(column.compared);
  system::HashSink sink(std::move(compared));
  std::vector<std::string> tables;
  {
    const std::unique_ptr<Session> session = co_await open();
    tables = co_await loaded_tables(session.get());
  }
  for (std::string& table : tables) co_await hash_table(std::move(table), &sink);
  co_return sink.hash();
}

// Read as a source reads: the session is its own, one for each table.
Task<void> LoadingImpl::hash_table(std::string table, system::BatchSink* to) const {
  system::ReadRequest request;
  request.what.table = parse_table(table);
  request.columns = read_back_plans(request_.columns);
  auto state = std::make_shared<ReadingState>(shared_, request);
  std::unique_ptr<Session> session = co_await Session::connect(shared_->loop, shared_->options);
  co_await state->start_alone(session.get());
  const std::unique_ptr<system::Reader> reader = make_reader(state, std::move(session));
  for (const system::Slice& slice : state->slices.slices) co_await reader->read(slice, *to);
  co_await reader->close();
}

namespace {

Task<system::Remains> remains_in(Session* session, const Ledger* ledger, const Place* place, std::string transfer_id,
                                 bool finalized) {
  std::vector<system::LedgerEntry> entries = co_await ledger->entries(*session, transfer_id);
  std::vector<std::string> staging_there;
  std::vector<LedgerKey> lost;
  for (const system::LedgerEntry& entry : entries) {
    if (entry.step == system::step_staging) {
      std::uint64_t committed = 0;
      for (const system::LedgerEntry& other : entries) {
        if (other.attempt == entry.attempt && other.step.starts_with("slice ")) committed += other.row_count;
      }
      const bool gone = co_await has_lost_rows(session, quote_table({{place->schema, entry.staging}}), committed);
      if (!gone) staging_there.push_back(entry.staging);
    } else if (entry.attempt == system::attempt_of_target && !entry.staging.empty() && !finalized) {
      const bool gone = co_await has_lost_rows(session, entry.staging, entry.row_count);
      if (gone) lost.push_back({transfer_id, entry.attempt, entry.step});
    }
  }
  for (const LedgerKey& key : lost) {
    co_await ledger->forget_step(*session, key);
    std::erase_if(entries, [&](const system::LedgerEntry& entry) {
      return entry.attempt == key.attempt && entry.step == key.step;
    });
  }
  co_return system::remains_of(std::move(entries), finalized, staging_there, true);
}

}  // namespace

// A table that a crash has emptied (unlogged) counts as gone; the keys of such partitions are forgotten, so that their
// slices are loaded again.
Task<system::Remains> PostgresTarget::remains(const system::TargetRequest& request, const std::string& transfer_id) {
  const Place place = place_of(request, ledger_schema_);
  const SessionLease lease = co_await SessionLease::take(shared_, 1);
  const Ledger ledger(shared_, place.ledger_schema);
  const system::Outcome finalize =
      co_await ledger.decide({transfer_id, system::attempt_of_target, std::string(system::step_finalize)});
  const bool finalized = system::settle_finalize(finalize);
  const std::unique_ptr<Session> session = co_await open_loading_session(shared_, request.load.lock_timeout_ms);
  co_return co_await remains_in(session.get(), &ledger, &place, transfer_id, finalized);
}

Task<std::unique_ptr<system::Loading>> PostgresTarget::begin(const system::LoadRequest& request) {
  const Place place = place_of(request.what, ledger_schema_);
  try {
    co_return co_await LoadingImpl::begin(shared_, request, place, planned_definition_);
  } catch (Error& error) {
    throw error.with_connection(shared_->options->name).with_table(request.what.table.text());
  }
}

}  // namespace rowferry::postgres
