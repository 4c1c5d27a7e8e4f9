#include "postgres/connection.hpp"

#include <algorithm>
#include <array>

#include "postgres/dialect.hpp"
#include "postgres/target.hpp"

namespace rowferry::postgres {

PostgresConnection::PostgresConnection(net::Loop& loop, ConnectionConfig config) : config_(std::move(config)) {
  auto options = std::make_shared<SessionOptions>();
  options->name = config_.name;
  options->parameters = parse_dsn(config_.dsn);
  options->password = config_.password;
  options->connect_timeout = config_.connect_timeout;
  options->application_name = config_.application_name;
  shared_ = std::make_shared<Shared>(loop, std::move(options), std::max<std::size_t>(config_.max_sessions, 1));
  shared_->ledger_keep = config_.ledger_keep;
}

bool PostgresConnection::honours(std::string_view field, std::string_view value) const {
  // Every reading is one snapshot; a weaker isolation cannot be had.
  if (field == "read.isolation") return value == "snapshot" || value == "auto";
  // merge is not there yet. Constraints are always checked, locks are the server's own, and keep_nulls false would need
  // the target's defaults in staging.
  static constexpr std::array<std::string_view, 11> honoured{
      "read.lock_timeout_ms", "columns.scan_numeric", "target.partition",  "load.commit",
      "load.freeze",          "load.unlogged",        "load.tablespace",   "load.exchange",
      "load.analyze",         "load.keep_identity",   "load.fire_triggers"};
  return std::ranges::find(honoured, field) != honoured.end();
}

system::TableName PostgresConnection::parse_table(std::string_view text) const { return postgres::parse_table(text); }

std::unique_ptr<system::Source> PostgresConnection::make_source() { return std::make_unique<PostgresSource>(shared_); }

std::unique_ptr<system::Target> PostgresConnection::make_target() {
  return std::make_unique<PostgresTarget>(shared_, config_.ledger_schema);
}

}  // namespace rowferry::postgres
