// A configured PostgreSQL connection: the door of this folder for src/app.
#pragma once

#include <memory>

#include "postgres/source.hpp"
#include "system/system.hpp"

namespace rowferry::postgres {

struct ConnectionConfig {
  std::string name;
  std::string dsn;        // libpq's, either form; no password in it
  SecretReader password;  // read again at every connect, on the thread pool; empty: none
  bool writable = false;
  std::size_t max_sessions = 8;
  std::chrono::milliseconds connect_timeout{0};  // 0: limits::connect_timeout
  std::string application_name;                  // "": rowferry
  std::string ledger_schema;
  std::chrono::hours ledger_keep = limits::ledger_keep;
};

class PostgresConnection final : public system::Connection {
 public:
  // Checks the dsn: Error(input, "bad_dsn" / "password_in_dsn").
  PostgresConnection(net::Loop& loop, ConnectionConfig config);

  const std::string& name() const noexcept override { return config_.name; }
  std::string_view system() const noexcept override { return "postgres"; }
  bool writable() const noexcept override { return config_.writable; }
  bool honours(std::string_view field, std::string_view value) const override;
  system::TableName parse_table(std::string_view text) const override;
  std::unique_ptr<system::Source> make_source() override;
  std::unique_ptr<system::Target> make_target() override;

 private:
  ConnectionConfig config_;
  std::shared_ptr<Shared> shared_;
};

}  // namespace rowferry::postgres
