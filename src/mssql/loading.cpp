#include "mssql/loading.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/log.hpp"
#include "mssql/dialect.hpp"
#include "mssql/errors.hpp"
#include "system/hash_sink.hpp"
#include "tds/wire/logical_type.hpp"

namespace rowferry::mssql {

using async::Task;

namespace {

// What keeps two transfers into the same table apart. ASCII letters are folded: a server may hold two spellings equal,
// and a lock that is too wide does no harm. sp_getapplock takes 255 characters.
std::string lock_resource(const Place& place) {
  constexpr std::size_t resource_chars_max = 240;
  std::string resource = "rowferry:" + quoted(place.schema, place.table);
  for (char& c : resource) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return cut_for_message(resource, resource_chars_max);
}

bool character_type(tds::DataType id) noexcept {
  return id == tds::DataType::bigchar || id == tds::DataType::bigvarchar || id == tds::DataType::text;
}

}  // namespace

LoadingImpl::LoadingImpl(std::unique_ptr<SessionPool> pool, system::LoadRequest request, Place place,
                         async::Context context)
    : share_(std::move(pool)),
      pool_(*share_),
      request_(std::move(request)),
      place_(std::move(place)),
      ledger_(pool_, place_.database, place_.ledger_schema),
      context_(context),
      ledger_attempt_(request_.resume_staging ? request_.staging_attempt : request_.attempt) {}

LoadingImpl::~LoadingImpl() = default;

SessionSettings LoadingImpl::settings() const {
  return {.database = place_.database, .lock_timeout_ms = request_.what.load.lock_timeout_ms};
}

std::string LoadingImpl::loaded_table() const {
  return direct() ? situation_.table.quoted_name() : quoted(place_.schema, staging_);
}

std::string LoadingImpl::column_list() const {
  std::vector<std::string> names;
  for (const system::ColumnPlan& column : request_.columns) names.push_back(column.target);
  return quoted_list(names);
}

Task<std::unique_ptr<system::Loading>> LoadingImpl::begin(SessionPool* pool, system::LoadRequest request, Place place,
                                                          std::string planned_definition) {
  const async::Context context = co_await async::current_context();
  std::unique_ptr<SessionPool> share = co_await SessionPool::share(pool, sessions_needed(request.what));
  auto loading = std::make_unique<LoadingImpl>(std::move(share), std::move(request), std::move(place), context);
  co_await loading->start(std::move(planned_definition));
  co_return loading;
}

Task<void> LoadingImpl::start(std::string planned_definition) {
  co_await take_lock();
  co_await read_situation();
  if (request_.only_after_steps) {
    if (ledger_attempt_ > 0) staging_ = fmt::format("rowferry_{}_{}", request_.transfer_id, ledger_attempt_);
    co_return;
  }
  if (!planned_definition.empty() && situation_.table.definition() != planned_definition) {
    throw Error(Category::conflict, "target_changed",
                fmt::format("{} is not what it was when the transfer was planned", situation_.table.quoted_name()))
        .with_hint("start the transfer again");
  }
  decision_ = decide(situation_, request_.what, request_.columns, request_.primary_key);
  co_await ledger_.ensure(lock_);
  if (!direct()) {
    staging_ = fmt::format("rowferry_{}_{}", request_.transfer_id, ledger_attempt_);
    if (request_.resume_staging) {
      co_await reuse_staging();
    } else {
      co_await make_staging();
    }
  }
  std::exception_ptr error;
  try {
    co_await describe_columns();
  } catch (...) {
    error = std::current_exception();
  }
  if (error) {
    const bool ours = !direct() && !request_.resume_staging;
    if (ours) co_await async::shield(end(false));
    std::rethrow_exception(error);
  }
  keeper_.start(context_, keep_alive());
}

Task<void> LoadingImpl::take_lock() {
  SessionSettings of_lock = settings();
  of_lock.yields_in_deadlocks = false;
  lock_ = co_await pool_.open(of_lock);
  const tds::QueryResult result = co_await lock_.query(fmt::format(
      "DECLARE @result int; EXEC @result = sp_getapplock @Resource = {}, @LockMode = 'Exclusive', @LockOwner "
      "= 'Session', @LockTimeout = 0; SELECT @result AS result",
      literal(lock_resource(place_))));
  const std::int64_t granted = result.scalar("result").integer();
  if (granted >= 0) co_return;
  constexpr std::int64_t timed_out = -1;
  if (granted == timed_out) {
    throw Error(Category::conflict, "target_busy",
                fmt::format("another transfer into {} is running", quoted(place_.schema, place_.table)));
  }
  throw Error(Category::server, "lock_refused", fmt::format("sp_getapplock answered {}", granted)).mark_transient();
}

Task<void> LoadingImpl::read_situation() {
  situation_.server = co_await read_server(lock_);
  situation_.table = co_await read_table(lock_, place_.schema, place_.table);
  situation_.rights = co_await read_rights(lock_, situation_.table);
  situation_.planned = request_.plan.finalizer;
  if (situation_.table.exists) situation_.empty = co_await read_is_empty(lock_, situation_.table);
  if (needs_rebuild(situation_.table, request_.what, request_.columns)) {
    situation_.dependants = co_await read_dependants(lock_, situation_.table);
  }
}

Task<void> LoadingImpl::make_staging() {
  const LedgerKey key{request_.transfer_id, ledger_attempt_, std::string(step_staging)};
  std::exception_ptr error;
  bool there = false;
  try {
    co_await lock_.execute("BEGIN TRANSACTION");
    there = co_await ledger_.claim(lock_, key, staging_);
    if (there) {
      // An earlier begin of this attempt was cut off behind its COMMIT: nothing of it is used.
      co_await lock_.execute("BEGIN TRANSACTION");
      co_await ledger_.forget(lock_, request_.transfer_id, ledger_attempt_);
      const bool left = co_await object_exists(lock_, place_.schema, staging_);
      if (left) co_await lock_.execute("DROP TABLE " + quoted(place_.schema, staging_));
      co_await ledger_.claim(lock_, key, staging_);
    }
    co_await lock_.execute(create_staging(decision_, place_.schema, staging_));
    bool by_ledger = false;
    co_await commit_transaction(&lock_, &ledger_, key, &by_ledger);
    if (by_ledger) lock_lost_ = true;
  } catch (...) {
    error = std::current_exception();
  }
  if (error) {
    co_await lock_.roll_back();
    std::rethrow_exception(error);
  }
  if (lock_lost_) co_await take_lock_again();
}

Task<void> LoadingImpl::reuse_staging() {
  const bool there = co_await object_exists(lock_, place_.schema, staging_);
  if (there) co_return;
  throw Error(Category::not_found, "staging_missing",
              fmt::format("the staging table {} is gone", quoted(place_.schema, staging_)));
}

// The server's own description of what is loaded: the bulk stream repeats it.
Task<void> LoadingImpl::describe_columns() {
  const std::vector<tds::ColumnMeta> metadata = co_await read_metadata(lock_, loaded_table(), column_list());
  const tds::ResultSet names = co_await lock_.query_if_there(fmt::format(
      "SELECT name, collation_name FROM sys.columns WHERE object_id = OBJECT_ID({})", literal(loaded_table())));
  if (metadata.size() != request_.columns.size()) {
    throw Error(Category::internal, "columns_changed", "staging has other columns than were planned");
  }
  for (std::size_t i = 0; i < metadata.size(); ++i) {
    tds::BulkForm form = tds::bulk_form(metadata[i]);
    tds::BulkColumn column{std::move(form.meta), std::move(form.declared), "", request_.columns[i].write_type};
    for (std::size_t row = 0; row < names.rows.size() && character_type(metadata[i].type.id); ++row) {
      if (names.at(row, "name").text() == metadata[i].name)
        column.collation = names.at(row, "collation_name").text_or("");
    }
    bulk_columns_.push_back(std::move(column));
  }
}

Task<void> LoadingImpl::keep_alive() {
  while (!lock_lost_) {
    co_await net::sleep_for(pool_.loop(), limits::mssql_keep_alive_every);
    try {
      co_await lock_.query("SELECT 1 AS alive", limits::mssql_keep_alive_timeout);
    } catch (const Error& error) {
      if (error.category() == Category::cancelled) throw;
      lock_lost_ = true;
    }
  }
}

Task<std::unique_ptr<system::Loader>> LoadingImpl::open_loader(int /*worker*/) {
  Lease lease = co_await pool_.open(settings());
  co_return std::make_unique<LoaderImpl>(*this, std::move(lease));
}

Task<std::uint64_t> LoadingImpl::staged_rows() {
  Lease lease = co_await pool_.open(settings());
  const tds::QueryResult result = co_await lease.query(
      fmt::format("SELECT COUNT_BIG(*) AS staged FROM {}", loaded_table()), std::chrono::milliseconds{0});
  co_return static_cast<std::uint64_t>(result.scalar("staged").integer());
}

Task<std::optional<rows::ContentHash>> LoadingImpl::staged_hash(std::string& why) {
  if (situation_.server.discards) {
    why = "discard";
    co_return std::nullopt;
  }
  if (direct()) {
    why = "direct";
    co_return std::nullopt;
  }
  std::vector<bool> compared;
  for (const system::ColumnPlan& column : request_.columns) compared.push_back(column.compared);
  system::HashSink sink(std::move(compared));
  Lease lease = co_await pool_.open(settings());
  try {
    co_await lease.session().read(fmt::format("SELECT {} FROM {}", column_list(), loaded_table()), {}, sink);
  } catch (const Error& error) {
    throw explained(error).with_connection(pool_.options().name);
  }
  co_return sink.hash();
}

}  // namespace rowferry::mssql
