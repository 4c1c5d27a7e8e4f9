// PRELOGIN, TLS, LOGIN7 and its answer (MS-TDS 3.3.5.1 to 3.3.5.4).
#include <fmt/format.h>

#include <algorithm>

#include "base/limits.hpp"
#include "sandbox/connection.hpp"

namespace rowferry::sandbox {

namespace server = tds::server;

namespace {

constexpr const char* language = "us_english";

server::TlsPolicy policy(Encrypt encrypt) {
  switch (encrypt) {
    case Encrypt::off:
      return server::TlsPolicy::none;
    case Encrypt::login:
      return server::TlsPolicy::login;
    case Encrypt::on:
      return server::TlsPolicy::full;
  }
  return server::TlsPolicy::none;
}

std::array<std::uint8_t, 6> product_version() {
  std::array<std::uint8_t, 6> version{engine::Server::product_major, engine::Server::product_minor};
  store_be(version.data() + 2, engine::Server::product_build);
  return version;
}

// Every byte is looked at whatever the first difference is.
bool same_secret(std::string_view a, std::string_view b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference |= static_cast<unsigned>(static_cast<std::uint8_t>(a[i]) ^
                                        static_cast<std::uint8_t>(b.empty() ? 0 : b[i % b.size()]));
  }
  return difference == 0;
}

}  // namespace

async::Task<bool> Connection::log_in() {
  server::Protection protection = server::Protection::none;
  const bool agreed = co_await negotiate(protection);
  if (!agreed) co_return false;
  const bool read = co_await read_login(protection);
  if (!read) co_return false;
  const auto login = server::parse_login7(channel_.reader().payload());
  channel_.next_message();
  if (!login) co_return false;
  reply_.begin();
  const bool admitted = admit(*login);
  if (admitted) welcome(*login);
  reply_.finish();
  co_await channel_.flush();
  if (admitted) {
    // Both sides use the new size from the next message on (MS-TDS 2.2.3.1.3).
    const std::size_t bytes = choose_packet_size(login->packet_size);
    channel_.reader().set_limit(bytes);
    channel_.reader().set_exact(bytes);
    channel_.writer().set_packet_bytes(bytes);
  }
  co_return admitted;
}

// PRELOGIN and the TLS handshake. A client that sends LOGIN7 at once is let go on, where no encryption is demanded.
async::Task<bool> Connection::negotiate(server::Protection& protection) {
  tds::PacketReader& reader = channel_.reader();
  // The type is looked at before the rest has come: what speaks another protocol (TLS at once, HTTP) is not waited for.
  while (!reader.message_started()) {
    if (reader.failed()) co_return false;
    const bool more = co_await channel_.read();
    if (!more) co_return false;
  }
  if (reader.type() != tds::PacketType::prelogin && reader.type() != tds::PacketType::login7) co_return false;
  const bool whole = co_await channel_.read_message(limits::sandbox_login_bytes_max);
  if (!whole || reader.failed() || !reader.message_ended()) co_return false;
  if (reader.type() == tds::PacketType::login7) co_return shared_.options.encrypt != Encrypt::on;
  const auto request = server::parse_prelogin(reader.payload());
  if (!request) co_return false;
  channel_.next_message();
  server::EncryptionAnswer answer = server::answer_encryption(request->encryption, policy(shared_.options.encrypt));
  if (shared_.options.faults != nullptr) {
    if (const Fault* fault = shared_.options.faults->strike(FaultKind::encryption_reply)) {
      answer = {fault->reply, server::Protection::none, false};
    }
  }
  co_await answer_prelogin(*request, answer.reply);
  if (answer.close) co_return false;
  protection = answer.protection;
  if (protection != server::Protection::none) co_await channel_.start_tls(*shared_.tls);
  co_return true;
}

async::Task<void> Connection::answer_prelogin(const server::PreloginRequest& request, std::uint8_t encryption) {
  ByteBuffer body;
  server::write_prelogin_reply(body, {.version = product_version(),
                                      .encryption = encryption,
                                      .instance_matches = true,
                                      .fed_auth_asked = request.fed_auth_asked});
  tds::PacketWriter& writer = channel_.writer();
  writer.begin(tds::PacketType::tabular);
  writer.write(body.view());
  writer.finish();
  co_await channel_.flush();
}

async::Task<bool> Connection::read_login(server::Protection protection) {
  if (protection == server::Protection::login_only) {
    const bool first = co_await channel_.read_login_packet_and_end_tls();
    if (!first) co_return false;
  }
  const bool whole = co_await channel_.read_message(limits::sandbox_login_bytes_max);
  const tds::PacketReader& reader = channel_.reader();
  co_return whole && !reader.failed() && reader.message_ended() && reader.type() == tds::PacketType::login7;
}

void Connection::refuse_login(std::int32_t number, std::uint8_t severity, std::string_view text,
                              const std::string& user) {
  if (!text.empty()) {
    reply_.message(
        {.number = number, .state = 1, .severity = severity, .text = std::string(text), .procedure = {}, .line = 1});
  }
  constexpr int login_failed = 18456;
  if (number != login_failed || text.empty()) {
    reply_.message({.number = login_failed,
                    .state = 1,
                    .severity = 14,
                    .text = fmt::format("Login failed for user '{}'.", user),
                    .procedure = {},
                    .line = 1});
  }
  reply_.done({.kind = engine::Done::Kind::statement, .error = true, .count = {}, .current_command = 0});
}

// Opens the session, or says why not.
bool Connection::admit(const server::Login7& login) {
  const Options& options = shared_.options;
  if (options.faults != nullptr) {
    if (const Fault* fault = options.faults->strike(FaultKind::login_error, login.application)) {
      refuse_login(fault->number, fault->severity, fault->text, login.user);
      return false;
    }
  }
  if (login.tds_version < server::tds_version_7_2) {
    refuse_login(
        17828, 20,
        "The prelogin packet used to open the connection is structurally invalid: this server speaks TDS 7.2 to 7.4.",
        login.user);
    return false;
  }
  if (login.integrated || login.asked_for(server::feature_fed_auth)) {
    refuse_login(18452, 14, "Login failed. This server knows user names and passwords only.", login.user);
    return false;
  }
  const bool known =
      !options.password || (login.user == options.user && same_secret(login.password, *options.password));
  if (!known) {
    refuse_login(18456, 14, "", login.user);
    return false;
  }
  std::string database = login.database;
  if (!database.empty() && !shared_.engine.has_database(database)) {
    if (login.database_fatal()) {
      refuse_login(4060, 11,
                   fmt::format("Cannot open database \"{}\" requested by the login. The login failed.", database),
                   login.user);
      return false;
    }
    database.clear();
  }
  session_ = shared_.engine.open_session({.login = login.user,
                                          .database = database,
                                          .application = login.application,
                                          .host = login.host,
                                          .library = login.library,
                                          .client_address = peer_,
                                          .client_process = 0,
                                          .encrypted = channel_.encrypted(),
                                          .utf8 = login.asked_for(server::feature_utf8),
                                          .ansi_defaults = login.odbc() || (login.type_flags & 0x10U) != 0,
                                          .packet_size = static_cast<int>(choose_packet_size(login.packet_size))});
  shared_.by_spid[session_->spid()] = this;
  channel_.writer().set_spid(static_cast<std::uint16_t>(session_->spid()));
  return true;
}

std::uint32_t Connection::choose_packet_size(std::uint32_t wish) {
  std::uint32_t most = channel_.encrypted() ? tds::packet_bytes_max_tls : tds::packet_bytes_max;
  if (packet_bytes_fault_) most = std::min(most, *packet_bytes_fault_);
  const std::uint32_t size = wish == 0 ? static_cast<std::uint32_t>(tds::packet_bytes_default) : wish;
  const auto least = static_cast<std::uint32_t>(tds::packet_bytes_min);
  return std::clamp(size, least, std::max(least, most)) / 4 * 4;  // SQL Server rounds down to a multiple of four
}

void Connection::welcome(const server::Login7& login) {
  std::vector<server::FeatureAck> acks;
  if (login.asked_for(server::feature_utf8)) acks.push_back({server::feature_utf8, {1}});
  if (FaultPlan* plan = shared_.options.faults.get()) {
    if (const Fault* fault = plan->strike(FaultKind::feature_ack)) acks.push_back({fault->feature, {1}});
    if (const Fault* fault = plan->strike(FaultKind::packet_size)) {
      packet_bytes_fault_ = static_cast<std::uint32_t>(fault->bytes);
    }
  }
  ByteBuffer out;
  const std::string& database = session_->database();
  const auto info = [&](std::int32_t number, std::uint8_t state, std::string text) {
    server::write_info(out, {.number = number,
                             .state = state,
                             .severity = 10,
                             .text = std::move(text),
                             .server = server_name,
                             .procedure = {},
                             .line = 1});
  };
  server::write_env_database(out, database, "master");
  info(5701, 2, fmt::format("Changed database context to '{}'.", database));
  server::write_env_collation(out, session_->default_collation());
  server::write_env_language(out, language, "");
  info(5703, 1, fmt::format("Changed language setting to {}.", language));
  server::write_env_packet_size(out, choose_packet_size(login.packet_size), tds::packet_bytes_default);
  // The program's name is what clients check; that this is no SQL Server says @@VERSION.
  server::write_login_ack(out, {.tds_version = server::tds_version_7_4,
                                .program = "Microsoft SQL Server",
                                .major = engine::Server::product_major,
                                .minor = engine::Server::product_minor,
                                .build = engine::Server::product_build});
  server::write_feature_ext_ack(out, acks);
  channel_.writer().write(out.view());
}

}  // namespace rowferry::sandbox
