#include "mssql/session_pool.hpp"

#include <fmt/format.h>

#include "mssql/errors.hpp"

namespace rowferry::mssql {

using async::Task;

Lease::Lease(Lease&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)),
      has_place_(std::exchange(other.has_place_, false)),
      session_(std::move(other.session_)) {}

Lease& Lease::operator=(Lease&& other) noexcept {
  if (this != &other) {
    close();
    pool_ = std::exchange(other.pool_, nullptr);
    has_place_ = std::exchange(other.has_place_, false);
    session_ = std::move(other.session_);
  }
  return *this;
}

void Lease::close() noexcept {
  if (session_) session_->close();
  session_.reset();
  release_place();
  pool_ = nullptr;
}

void Lease::give_up() const noexcept {
  if (session_) session_->close();
  release_place();
}

void Lease::release_place() const noexcept {
  if (std::exchange(has_place_, false)) pool_->places_.release(1);
}

Task<tds::QueryResult> Lease::query(std::string sql, std::chrono::milliseconds timeout) const {
  try {
    co_return co_await session_->query(std::move(sql), timeout);
  } catch (const Error& error) {
    throw explained(error).with_connection(pool_->options().name);
  }
}

Task<tds::ResultSet> Lease::query_if_there(std::string sql) const {
  try {
    tds::QueryResult result = co_await query(std::move(sql));
    co_return result.sets.empty() ? tds::ResultSet{} : std::move(result.sets.front());
  } catch (const Error& error) {
    if (fault_number(error) != error_no_object) throw;
  }
  co_return tds::ResultSet{};
}

Task<std::uint64_t> Lease::execute(std::string sql, std::chrono::milliseconds timeout) const {
  try {
    co_return co_await session_->execute(std::move(sql), timeout);
  } catch (const Error& error) {
    throw explained(error).with_connection(pool_->options().name);
  }
}

namespace {

Task<void> roll_back_session(tds::Session* session) {
  try {
    co_await session->execute("ROLLBACK TRANSACTION", limits::mssql_rollback_timeout);
  } catch (const Error&) {
    session->close();  // which rolls back as well
  }
}

}  // namespace

Task<void> Lease::roll_back() const {
  if (!usable() || !session_->in_transaction()) co_return;
  co_await async::shield(roll_back_session(session_.get()));
}

SessionPool::SessionPool(net::Loop& loop, Options options)
    : loop_(loop),
      options_(std::move(options)),
      places_(static_cast<std::size_t>(options_.max_sessions < 1 ? 1 : options_.max_sessions)) {}

SessionPool::SessionPool(SessionPool& parent, std::size_t places)
    : loop_(parent.loop_), options_(parent.options_), parent_(&parent), places_(places) {}

SessionPool::~SessionPool() {
  if (parent_ != nullptr) parent_->places_.release(places_.total());
}

void SessionPool::check_room(std::size_t places, std::string_view workers) const {
  if (places <= places_.total()) return;
  throw Error(
      Category::input, "max_sessions",
      fmt::format("{} sessions are needed at the same time, and the connection allows {}", places, places_.total()))
      .with_field(fmt::format("workers.{}", workers))
      .with_connection(options_.name)
      .with_hint(fmt::format("raise max_sessions of the connection, or use fewer {} workers", workers));
}

Task<std::unique_ptr<SessionPool>> SessionPool::share(SessionPool* pool, std::size_t places, std::string_view workers) {
  pool->check_room(places, workers);
  co_await pool->places_.acquire(places);
  co_return std::unique_ptr<SessionPool>(new SessionPool(*pool, places));
}

Task<Lease> SessionPool::open(SessionSettings settings) {
  co_await net::with_deadline(
      loop_, limits::mssql_session_wait,
      fmt::format("waiting for one of the {} sessions of connection {}", options_.max_sessions, options_.name),
      take_place());
  Lease lease(this);  // holds the place from here on
  lease.session_ = co_await connect(settings);
  co_await lease.execute(session_setup(settings));
  co_return lease;
}

Task<std::unique_ptr<tds::Session>> SessionPool::connect(SessionSettings settings) {
  tds::LoginOptions login;
  login.host = options_.host;
  login.port = options_.port;
  login.database = settings.database.empty() ? options_.database : settings.database;
  login.user = options_.user;
  login.password = options_.password;
  login.application_name = options_.application_name;
  login.encrypt = options_.encrypt;
  login.trust_server_certificate = options_.trust_server_certificate;
  login.ca_file = options_.ca_file;
  login.server_name = options_.server_name;
  login.connect_timeout = options_.connect_timeout;
  login.read_only_intent = settings.read_only_intent;
  try {
    co_return co_await tds::Session::connect(loop_, std::move(login));
  } catch (const Error& error) {
    throw explained(error).with_connection(options_.name);
  }
}

std::string session_setup(const SessionSettings& settings) {
  return fmt::format(
      "SET XACT_ABORT ON; SET NOCOUNT OFF; SET IMPLICIT_TRANSACTIONS OFF; SET CURSOR_CLOSE_ON_COMMIT OFF; "
      "SET ANSI_NULLS ON; SET ANSI_NULL_DFLT_ON ON; SET ANSI_PADDING ON; SET ANSI_WARNINGS ON; SET ARITHABORT ON; "
      "SET CONCAT_NULL_YIELDS_NULL ON; SET QUOTED_IDENTIFIER ON; SET NUMERIC_ROUNDABORT OFF; "
      "SET LANGUAGE us_english; SET DATEFIRST 7; SET DATEFORMAT mdy; SET ROWCOUNT 0; "
      "SET TEXTSIZE 2147483647; SET LOCK_TIMEOUT {}; SET DEADLOCK_PRIORITY {}; SET TRANSACTION ISOLATION LEVEL {}",
      settings.lock_timeout_ms, settings.yields_in_deadlocks ? "LOW" : "NORMAL", settings.isolation);
}

}  // namespace rowferry::mssql
