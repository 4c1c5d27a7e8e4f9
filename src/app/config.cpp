#include "app/config.hpp"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <set>

#include "api/guards.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/json.hpp"
#include "base/limits.hpp"

namespace rowferry::app {

namespace {

[[noreturn]] void fail(std::string code, std::string detail, std::string field) {
  throw Error(Category::input, std::move(code), std::move(detail)).with_field(std::move(field));
}

// Reads the keys of one table; what nobody asked for is an unknown key.
class Section {
 public:
  Section(const toml::table& table, std::string path) : table_(table), path_(std::move(path)) {}

  std::string key(std::string_view name) const {
    return path_.empty() ? std::string(name) : path_ + "." + std::string(name);
  }

  const toml::node* find(std::string_view name) {
    known_.emplace_back(name);
    return table_.get(name);
  }
  void text(std::string_view name, std::string& into) { read<std::string>(name, "a string", into); }
  void flag(std::string_view name, bool& into) { read<bool>(name, "true or false", into); }
  void duration(std::string_view name, std::chrono::milliseconds& into) {
    std::string value;
    read<std::string>(name, "a duration in quotes such as \"30s\"", value);
    if (!value.empty()) into = parse_duration(value, key(name));
  }
  void seconds(std::string_view name, std::chrono::seconds& into) {
    std::chrono::milliseconds value = into;
    duration(name, value);
    into = std::chrono::duration_cast<std::chrono::seconds>(value);
  }
  template <class N>
  void number(std::string_view name, N& into, std::int64_t least, std::int64_t most) {
    std::int64_t value = into;
    read<std::int64_t>(name, "a number", value);
    if (value < least || value > most) {
      fail("bad_value", fmt::format("{} must be from {} to {}", key(name), least, most), key(name));
    }
    into = static_cast<N>(value);
  }
  void secret(std::string_view name, SecretSource& into) {
    const toml::node* node = find(name);
    if (node == nullptr) return;
    const toml::table* table = node->as_table();
    if (table == nullptr) {
      fail("secret_in_config",
           fmt::format("{} must say where the secret is: {{ env = \"NAME\" }} or {{ file = \"PATH\" }}", key(name)),
           key(name));
    }
    Section inner(*table, key(name));
    std::string env;
    std::string file;
    inner.text("env", env);
    inner.text("file", file);
    inner.finish();
    if (env.empty() == file.empty()) fail("bad_value", key(name) + " needs one of env and file", key(name));
    into = env.empty() ? SecretSource{SecretSource::Kind::file, file} : SecretSource{SecretSource::Kind::env, env};
  }
  void finish() const {
    for (const auto& [name, node] : table_) {
      const std::string_view found = name.str();
      if (std::find(known_.begin(), known_.end(), found) != known_.end()) continue;
      const std::string_view near = nearest(found, known_);
      fail("unknown_field",
           fmt::format("unknown key {} (line {}){}", key(found), node.source().begin.line,
                       near.empty() ? "" : fmt::format(": did you mean {}?", near)),
           key(found));
    }
  }

 private:
  template <class T>
  void read(std::string_view name, std::string_view what, T& into) {
    const toml::node* node = find(name);
    if (node == nullptr) return;
    const auto value = node->value_exact<T>();
    if (!value)
      fail("bad_value", fmt::format("{} must be {} (line {})", key(name), what, node->source().begin.line), key(name));
    into = *value;
  }

  const toml::table& table_;
  std::string path_;
  std::vector<std::string_view> known_;  // literals of the callers
};

void read_server(Section section, ServerConfig& server) {
  std::string listen;
  section.text("listen", listen);
  if (!listen.empty()) parse_listen(listen, server.host, server.port);
  section.text("state_dir", server.state_dir);
  section.secret("token", server.token);
  section.text("tls_cert", server.tls_cert);
  section.text("tls_key", server.tls_key);
  section.text("data_dir", server.data_dir);
  section.number("max_transfers", server.max_transfers, 1, 1000);
  section.seconds("retain", server.retain);
  section.seconds("shutdown_grace", server.shutdown_grace);
  section.seconds("ledger_keep", server.ledger_keep);
  if (server.ledger_keep < server.retain + limits::ledger_margin) {
    fail(
        "bad_value",
        "server.ledger_keep must be at least a day more than server.retain: a transfer that is resumed when its ledger "
        "rows are gone would load its rows twice",
        "server.ledger_keep");
  }
  section.flag("resume_on_start", server.resume_on_start);
  if (const toml::node* node = section.find("allowed_hosts")) {
    const toml::array* list = node->as_array();
    if (list == nullptr) fail("bad_value", "server.allowed_hosts must be a list of names", "server.allowed_hosts");
    for (const toml::node& item : *list) {
      const auto host = item.value_exact<std::string>();
      if (!host) fail("bad_value", "server.allowed_hosts must be a list of names", "server.allowed_hosts");
      server.allowed_hosts.push_back(*host);
    }
  }
  section.finish();
  if (server.tls_cert.empty() != server.tls_key.empty()) {
    fail("bad_value", "server.tls_cert and server.tls_key belong together", "server.tls_cert");
  }
}

Encrypt parse_encrypt(const std::string& text, const std::string& field) {
  if (text == "off") return Encrypt::off;
  if (text == "login") return Encrypt::login;
  if (text == "on") return Encrypt::on;
  if (text == "strict") return Encrypt::strict;
  fail("bad_value", fmt::format("{} must be off, login, on or strict", field), field);
}

// libpq would take a password inside the DSN; it would then show in files and process lists.
void refuse_password_in_dsn(const std::string& dsn, const std::string& field) {
  const bool url = dsn.rfind("postgres://", 0) == 0 || dsn.rfind("postgresql://", 0) == 0;
  bool found = dsn.find("password") != std::string::npos && dsn.find('=', dsn.find("password")) != std::string::npos;
  if (url) {
    const std::size_t start = dsn.find("//") + 2;
    const std::string authority = dsn.substr(start, dsn.find_first_of("/?", start) - start);
    const std::size_t at = authority.rfind('@');
    found = found || (at != std::string::npos && authority.substr(0, at).find(':') != std::string::npos);
  }
  if (found) {
    Error error(Category::input, "password_in_dsn", field + " must not hold a password");
    throw error.with_field(field).with_hint("use password = { env = \"NAME\" } or { file = \"PATH\" } beside it");
  }
}

void read_mssql(Section& section, ConnectionConfig& c) {
  section.text("host", c.host);
  section.number("port", c.port, 1, 65535);
  section.text("database", c.database);
  section.text("user", c.user);
  section.flag("trust_server_certificate", c.trust_server_certificate);
  section.text("ca_file", c.ca_file);
  section.text("server_name", c.server_name);
  std::string encrypt;
  section.text("encrypt", encrypt);
  if (!encrypt.empty()) c.encrypt = parse_encrypt(encrypt, section.key("encrypt"));
  for (const char* later : {"instance", "access_token", "integrated"}) {
    if (section.find(later) != nullptr) {
      fail("not_supported",
           fmt::format("{} is not supported yet: use host, port, user and password", section.key(later)),
           section.key(later));
    }
  }
  if (c.encrypt == Encrypt::strict) {
    fail("not_supported", section.key("encrypt") + " = \"strict\" is not supported yet: use on",
         section.key("encrypt"));
  }
  if (c.host.empty()) fail("missing_field", section.key("host") + " is missing", section.key("host"));
  if (c.host.find('\\') != std::string::npos) {
    fail("not_supported", section.key("host") + ": named instances are not supported yet: use host and port",
         section.key("host"));
  }
  if (c.user.find('\\') != std::string::npos) {
    fail("not_supported", section.key("user") + ": Windows logins (Kerberos, NTLM) are not supported yet",
         section.key("user"));
  }
  if (c.user.empty()) {
    fail("missing_field", section.key("user") + " is missing (Kerberos and NTLM are not supported yet)",
         section.key("user"));
  }
}

ConnectionConfig read_connection(const std::string& name, const toml::table& table) {
  ConnectionConfig c;
  c.name = name;
  Section section(table, "connections." + name);
  section.text("type", c.type);
  section.flag("writable", c.writable);
  section.number("max_sessions", c.max_sessions, 1, 1000);
  section.duration("connect_timeout", c.connect_timeout);
  if (c.connect_timeout <= std::chrono::milliseconds::zero()) {
    fail("bad_value", section.key("connect_timeout") + " must be more than nothing", section.key("connect_timeout"));
  }
  section.text("application_name", c.application_name);
  section.text("ledger_schema", c.ledger_schema);
  section.secret("password", c.password);
  if (c.type == "postgres") {
    section.text("dsn", c.dsn);
    refuse_password_in_dsn(c.dsn, section.key("dsn"));
  } else if (c.type == "mssql") {
    read_mssql(section, c);
  } else {
    fail("unknown_system", fmt::format("{} must be postgres or mssql", section.key("type")), section.key("type"));
  }
  section.finish();
  return c;
}

// Every entry of a table of tables.
void each_table(Section& root, std::string_view name,
                const std::function<void(const std::string&, const toml::table&)>& visit) {
  const toml::node* node = root.find(name);
  if (node == nullptr) return;
  const toml::table* table = node->as_table();
  if (table == nullptr) fail("bad_value", fmt::format("{} must be a table", name), std::string(name));
  for (const auto& [key, value] : *table) {
    const std::string field = fmt::format("{}.{}", name, key.str());
    if (!value.is_table()) fail("bad_value", field + " must be a table", field);
    visit(std::string(key.str()), *value.as_table());
  }
}

PipelineConfig read_pipeline(const std::string& name, const toml::table& table, const std::filesystem::path& folder) {
  PipelineConfig pipeline;
  pipeline.name = name;
  Section section(table, "pipelines." + name);
  std::string spec;
  section.text("spec", spec);
  section.finish();
  if (spec.empty()) fail("missing_field", section.key("spec") + " is missing", section.key("spec"));
  pipeline.spec_file = (folder / spec).lexically_normal().string();
  return pipeline;
}

}  // namespace

Secret SecretSource::read() const {
  if (kind == Kind::none) return Secret();
  if (kind == Kind::env) {
    const char* value = std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe): nothing sets the environment
    if (value == nullptr) {
      throw Error(Category::input, "secret_missing", fmt::format("the environment variable {} is not set", name));
    }
    return Secret(value);
  }
  FileText secret = read_whole_file(name, limits::secret_bytes_max, FileKind::any);
  if (!secret.problem.empty()) {
    throw Error(Category::input, "secret_missing",
                fmt::format("cannot read the secret file {}: {}", name, secret.problem));
  }
  std::string value = std::move(secret.text);
  if (!value.empty() && value.back() == '\n') value.pop_back();
  if (!value.empty() && value.back() == '\r') value.pop_back();
  return Secret(std::move(value));
}

std::chrono::milliseconds parse_duration(std::string_view text, std::string_view field) {
  std::int64_t amount = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), amount);
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  std::int64_t factor = 0;
  if (unit == "ms") factor = 1;
  if (unit == "s") factor = 1000;
  if (unit == "m") factor = 60'000;
  if (unit == "h") factor = 3'600'000;
  if (unit == "d") factor = 86'400'000;
  if (error != std::errc() || factor == 0 || amount < 0 || amount > 100'000'000'000 / factor * 1000) {
    fail("bad_duration", fmt::format("{}: \"{}\" is not a duration such as 250ms, 15s, 30m, 12h or 90d", field, text),
         std::string(field));
  }
  return std::chrono::milliseconds(amount * factor);
}

void parse_listen(std::string_view text, std::string& host, std::uint16_t& port) {
  const std::size_t colon = text.rfind(':');
  unsigned number = 65536;
  if (colon != std::string_view::npos) {
    const std::string_view digits = text.substr(colon + 1);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error != std::errc() || end != digits.data() + digits.size() || digits.empty()) number = 65536;
  }
  std::string_view name = text.substr(0, colon);
  if (name.size() > 2 && name.front() == '[' && name.back() == ']') name = name.substr(1, name.size() - 2);
  if (number > 65535 || name.empty()) {
    fail("bad_address", fmt::format("\"{}\" is not an address such as 127.0.0.1:8080", text), "server.listen");
  }
  host = name;
  port = static_cast<std::uint16_t>(number);
}

Config parse_config(std::string_view text, const std::string& path) {
  toml::table table;
  try {
    table = toml::parse(text, path);
  } catch (const toml::parse_error& error) {
    fail("bad_config",
         fmt::format("{}:{}:{}: {}", path, error.source().begin.line, error.source().begin.column, error.description()),
         "");
  }
  Config config;
  Section root(table, "");
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (const toml::node* node = root.find("server")) {
    if (!node->is_table()) fail("bad_value", "server must be a table", "server");
    read_server(Section(*node->as_table(), "server"), config.server);
  }
  each_table(root, "connections", [&](const std::string& name, const toml::table& entry) {
    config.connections.emplace(name, read_connection(name, entry));
  });
  each_table(root, "pipelines", [&](const std::string& name, const toml::table& entry) {
    config.pipelines.emplace(name, read_pipeline(name, entry, folder));
  });
  root.finish();
  config.server.state_dir = (folder / config.server.state_dir).lexically_normal().string();
  api::check_listen(config.server.host, config.server.token.kind != SecretSource::Kind::none);
  return config;
}

Config load_config(const std::string& path) {
  const FileText file = read_whole_file(path, limits::config_bytes_max, FileKind::any);
  if (!file.problem.empty()) {
    fail("config_missing", fmt::format("cannot read the configuration file {}: {}", path, file.problem), "");
  }
  return parse_config(file.text, path);
}

}  // namespace rowferry::app
