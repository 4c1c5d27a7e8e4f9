// The configuration file (TOML): [server], [connections.NAME], [pipelines.NAME]; docs/configuration.md lists every key.
//
// Read once at start. An unknown key is an error that names the nearest known one. Secrets are never part of it: a
// SecretSource says where to read one, and is read again at every connect, so that a rotated password needs no restart.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/secret.hpp"

namespace rowferry::app {

// password = { env = "NAME" } or { file = "/run/secrets/x" }. One line end at the end of a file is not part of the
// secret.
struct SecretSource {
  enum class Kind : std::uint8_t { none, env, file };
  Kind kind = Kind::none;
  std::string name;  // of the variable or the file
  // Throws Error(input, "secret_missing") naming the source, never the value. Blocks for a file.
  Secret read() const;
};

struct ServerConfig {
  std::string host = "127.0.0.1";
  std::uint16_t port = 8080;
  std::string state_dir = "state";
  SecretSource token;
  std::string tls_cert;
  std::string tls_key;
  std::vector<std::string> allowed_hosts;
  std::string data_dir;  // empty: paths in specs over HTTP are off
  int max_transfers = 4;
  std::chrono::seconds retain{30 * 24 * 3600};       // records of ended transfers are kept so long
  std::chrono::seconds shutdown_grace{30};           // SIGTERM: running transfers may finish within
  std::chrono::seconds ledger_keep{90 * 24 * 3600};  // ledger rows older than this are forgotten
  bool resume_on_start = false;
};

enum class Encrypt : std::uint8_t { off, login, on, strict };

struct ConnectionConfig {
  std::string name;
  std::string type;  // a key of the table of systems
  bool writable = false;
  int max_sessions = 8;
  std::chrono::milliseconds connect_timeout{15'000};
  std::string application_name = "rowferry";
  std::string ledger_schema;  // empty: the target's
  SecretSource password;
  // postgres
  std::string dsn;
  // mssql
  std::string host;
  std::uint16_t port = 1433;
  std::string database;
  std::string user;
  Encrypt encrypt = Encrypt::on;
  bool trust_server_certificate = false;
  std::string ca_file;
  std::string server_name;
};

struct PipelineConfig {
  std::string name;
  std::string spec_file;  // resolved against the configuration file's folder
};

struct Config {
  ServerConfig server;
  std::map<std::string, ConnectionConfig> connections;
  std::map<std::string, PipelineConfig> pipelines;
};

// Both throw Error(input, …) with the file, line and key in `field`.
Config load_config(const std::string& path);
Config parse_config(std::string_view toml, const std::string& path);

// "90d", "12h", "30m", "15s", "250ms"; a bare number is not accepted. Error(input, "bad_duration").
std::chrono::milliseconds parse_duration(std::string_view text, std::string_view field);
// "127.0.0.1:8080", "[::1]:0", "localhost:8080". Error(input, "bad_address").
void parse_listen(std::string_view text, std::string& host, std::uint16_t& port);

}  // namespace rowferry::app
