// A configured SQL Server: makes Sources and Targets.
//
// Sessions of one connection are counted against max_sessions, whatever transfer uses them; who finds none free waits,
// within the connect timeout.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "base/limits.hpp"
#include "base/secret.hpp"
#include "net/loop.hpp"
#include "system/system.hpp"
#include "tds/session.hpp"

namespace rowferry::mssql {

struct Options {
  std::string name;  // of the configured connection
  std::string host;
  std::uint16_t port = 1433;
  std::string database;  // empty: the login's default
  std::string user;
  SecretReader password;
  tds::Encrypt encrypt = tds::Encrypt::on;
  bool trust_server_certificate = false;
  std::string ca_file;
  std::string server_name;
  int max_sessions = 8;
  std::chrono::milliseconds connect_timeout = limits::connect_timeout;
  std::string application_name = "rowferry";
  std::string ledger_schema;  // empty: the target's
  bool writable = false;
  std::chrono::hours ledger_keep = limits::ledger_keep;  // older rows are forgotten after a successful transfer
};

// The loop outlives the connection; the connection outlives what it makes.
std::unique_ptr<system::Connection> make_connection(net::Loop& loop, Options options);

}  // namespace rowferry::mssql
