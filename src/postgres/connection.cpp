#include "postgres/connection.hpp"

#include <algorithm>

#include "postgres/dialect.hpp"

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
  return field == "read.lock_timeout_ms" || field == "columns.scan_numeric";
}

system::TableName PostgresConnection::parse_table(std::string_view text) const { return postgres::parse_table(text); }

std::unique_ptr<system::Source> PostgresConnection::make_source() { return std::make_unique<PostgresSource>(shared_); }

std::unique_ptr<system::Target> PostgresConnection::make_target() {
  throw Error(Category::unsupported, "not_a_target", "PostgreSQL cannot be a target yet").with_connection(config_.name);
}

}  // namespace rowferry::postgres
