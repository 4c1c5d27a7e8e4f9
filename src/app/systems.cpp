// The table of systems: one line makes a system available to every command.
#include <array>

#include "app/service.hpp"
#include "base/error.hpp"
#include "mssql/connection.hpp"
#include "postgres/connection.hpp"

namespace rowferry::app {

namespace {

using Made = std::unique_ptr<system::Connection>;

SecretReader reader_of(const SecretSource& source) {
  if (source.kind == SecretSource::Kind::none) return {};
  return [source] { return source.read(); };
}

Made make_postgres(net::Loop& loop, const ConnectionConfig& c, const ServerConfig& server) {
  return std::make_unique<postgres::PostgresConnection>(
      loop,
      postgres::ConnectionConfig{.name = c.name,
                                 .dsn = c.dsn,
                                 .password = reader_of(c.password),
                                 .writable = c.writable,
                                 .max_sessions = static_cast<std::size_t>(c.max_sessions),
                                 .connect_timeout = c.connect_timeout,
                                 .application_name = c.application_name,
                                 .ledger_schema = c.ledger_schema,
                                 .ledger_keep = std::chrono::duration_cast<std::chrono::hours>(server.ledger_keep)});
}

tds::Encrypt encrypt_of(Encrypt value) {
  switch (value) {
    case Encrypt::off:
      return tds::Encrypt::off;
    case Encrypt::login:
      return tds::Encrypt::login;
    default:
      return tds::Encrypt::on;  // the configuration refuses strict
  }
}

Made make_mssql(net::Loop& loop, const ConnectionConfig& c, const ServerConfig& server) {
  mssql::Options options;
  options.name = c.name;
  options.host = c.host;
  options.port = c.port;
  options.database = c.database;
  options.user = c.user;
  options.password = reader_of(c.password);
  options.encrypt = encrypt_of(c.encrypt);
  options.trust_server_certificate = c.trust_server_certificate;
  options.ca_file = c.ca_file;
  options.server_name = c.server_name;
  options.max_sessions = c.max_sessions;
  options.connect_timeout = c.connect_timeout;
  options.application_name = c.application_name;
  options.ledger_schema = c.ledger_schema;
  options.writable = c.writable;
  options.ledger_keep = std::chrono::duration_cast<std::chrono::hours>(server.ledger_keep);
  return mssql::make_connection(loop, std::move(options));
}

struct Entry {
  std::string_view type;
  Made (*make)(net::Loop&, const ConnectionConfig&, const ServerConfig&);
};

constexpr std::array systems{
    Entry{"postgres", make_postgres},
    Entry{"mssql", make_mssql},
};

}  // namespace

std::unique_ptr<system::Connection> make_connection(net::Loop& loop, const ConnectionConfig& config,
                                                    const ServerConfig& server) {
  for (const Entry& entry : systems) {
    if (entry.type == config.type) return entry.make(loop, config, server);
  }
  throw Error(Category::input, "unknown_system", "unknown type of connection: " + config.type)
      .with_field("connections." + config.name + ".type");
}

}  // namespace rowferry::app
