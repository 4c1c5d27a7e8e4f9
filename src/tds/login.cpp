// Getting to a logged-in session: addresses, PRELOGIN, TLS, LOGIN7 (MS-TDS 3.2.5).
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/log.hpp"
#include "tds/session_impl.hpp"
#include "tds/wire/login7.hpp"
#include "tds/wire/prelogin.hpp"

namespace rowferry::tds {

namespace {

constexpr std::size_t packet_bytes_plain = 32764;  // servers round down to a multiple of four
constexpr std::size_t packet_bytes_tls = 16380;

void check(const LoginOptions& options) {
  if (options.packet_bytes != 0 &&
      (options.packet_bytes < packet_bytes_min || options.packet_bytes > packet_bytes_max)) {
    throw Error(
        Category::input, "bad_packet_size",
        fmt::format("a packet size of {} is outside {}..{}", options.packet_bytes, packet_bytes_min, packet_bytes_max))
        .with_field("packet_bytes");
  }
}

PreloginEncryption wish(Encrypt encrypt) noexcept {
  return encrypt == Encrypt::off     ? PreloginEncryption::not_supported
         : encrypt == Encrypt::login ? PreloginEncryption::off
                                     : PreloginEncryption::on;
}

Error refused(Encrypt asked) {
  if (asked == Encrypt::on) {
    return Error(Category::connection, "encryption_refused",
                 "the server does not encrypt, but encrypt = \"on\" asks for it")
        .with_hint("encrypt = \"login\" or \"off\" would connect without it");
  }
  return Error(Category::connection, "encryption_refused", "the server accepts encrypted connections only")
      .with_hint("set encrypt = \"on\"");
}

async::Task<PreloginReply> prelogin(Transport& transport, PreloginEncryption encryption) {
  ByteBuffer body;
  put_prelogin(body, encryption);
  transport.writer().begin(PacketType::prelogin);
  transport.writer().write(body.view());
  transport.writer().finish();
  co_await transport.flush();
  while (!transport.reader().message_ended()) {
    if (transport.reader().message_started() && transport.reader().type() != PacketType::tabular) {
      throw protocol_error("its first packet is no reply").with_hint("is it a SQL Server?");
    }
    const bool more = co_await transport.fill();
    if (!more) {
      throw Error(Category::connection, "protocol", "the server closed the connection during PRELOGIN")
          .with_hint("is it a SQL Server? One that accepts only encrypt = \"strict\" is not supported yet");
    }
  }
  std::string why;
  const auto reply = parse_prelogin_reply(transport.reader().payload(), why);
  transport.reader().next_message();
  if (!reply) throw protocol_error(why).with_hint("is it a SQL Server?");
  co_return *reply;
}

async::Task<void> secure(Transport& transport, const LoginOptions& options, Encryption agreed) {
  // The certificate is not looked at when only the login is encrypted: the rest could be changed by anybody anyway.
  const bool verify = agreed == Encryption::all && !options.trust_server_certificate;
  // TLS 1.3 sends messages after its handshake, for which the wrapped form has no place.
  net::TlsContext context = net::TlsContext::client(
      {.verify = verify, .ca_file = options.ca_file, .max_version = net::TlsVersion::tls1_2, .alpn = {}});
  const std::string& name = options.server_name.empty() ? options.host : options.server_name;
  co_await net::with_deadline(transport.loop(), limits::tls_handshake_timeout, "the TLS handshake",
                              transport.start_tls(std::move(context), name));
}

// Writes LOGIN7 into the transport's writer; the copies of the password in between are wiped.
void write_login(Transport& transport, const LoginOptions& options, Encryption agreed) {
  const std::size_t best = agreed == Encryption::all ? packet_bytes_tls : packet_bytes_plain;
  std::size_t packet = options.packet_bytes == 0 ? best : options.packet_bytes;
  if (agreed == Encryption::all) packet = std::min(packet, packet_bytes_max_tls);
  const Secret password = options.password ? options.password() : Secret();
  ByteBuffer body;
  put_login7(body, {.client_name = options.client_name,
                    .user = options.user,
                    .password = password.reveal(),
                    .application_name = options.application_name,
                    .server_name = options.named_host.empty() ? options.host : options.named_host,
                    .database = options.database,
                    .packet_bytes = static_cast<std::uint32_t>(packet),
                    .process_id = static_cast<std::uint32_t>(getpid()),
                    .read_only_intent = options.read_only_intent});
  transport.writer().begin(PacketType::login7);
  transport.writer().write(body.view());
  transport.writer().finish();
  volatile std::uint8_t* at = body.data();
  for (std::size_t i = 0; i < body.size(); ++i) at[i] = 0;
}

async::Task<void> send_login(Transport& transport, Encryption agreed) {
  if (agreed == Encryption::login) {
    co_await transport.flush_first_then_stop_tls();
  } else {
    co_await transport.flush();
  }
}

std::string_view login_code(std::int32_t number) noexcept {
  switch (number) {
    case 18456:
    case 18452:
      return "login_failed";
    case 18487:
    case 18488:
      return "password_expired";
    case 4060:
    case 4063:
    case 4064:
    case 911:
      return "database_unavailable";
    case 40615:
    case 40914:
      return "firewall";
    default:
      return "server_error";
  }
}

// 18456 often only follows what really was wrong (4060).
const Message& cause(const std::vector<Message>& errors) {
  const auto other = std::find_if(errors.begin(), errors.end(), [](const Message& m) { return m.number != 18456; });
  return other == errors.end() ? errors.front() : *other;
}

[[noreturn]] void throw_login_error(const std::vector<Message>& errors, const LoginOptions& options) {
  const Message& first = cause(errors);
  Error error(
      Category::server, std::string(login_code(first.number)),
      fmt::format("login of user \"{}\" failed: SQL Server error {}: {}", options.user, first.number, first.text));
  error.with_fault(fault_of(first));
  if (std::any_of(errors.begin(), errors.end(), [](const Message& m) { return is_transient(m); })) {
    error.mark_transient();
  }
  throw error;
}

}  // namespace

async::Task<void> Session::Impl::establish(const LoginOptions& options) {
  check(options);
  transport.reader().set_limit(packet_bytes_max);
  const PreloginEncryption asked = wish(options.encrypt);
  const PreloginReply reply = co_await prelogin(transport, asked);
  const Encryption agreed = agree(asked, reply.encryption.value_or(PreloginEncryption::not_supported));
  if (agreed == Encryption::refused) throw refused(options.encrypt);
  if (agreed != Encryption::none) co_await secure(transport, options, agreed);
  if (agreed == Encryption::none && options.encrypt == Encrypt::login) {
    log::warning("the server does not encrypt: the login goes in clear", {{"host", options.host}});
  }
  state.info.encrypted = agreed == Encryption::all;
  state.info.database = options.database;

  write_login(transport, options, agreed);
  co_await send_login(transport, agreed);
  transport.writer().wipe();
  Response response(state, Response::Rows::discard);
  std::exception_ptr failure;
  try {
    co_await read_reply(response, nullptr);
  } catch (...) {
    failure = std::current_exception();
  }
  if (!response.errors().empty()) throw_login_error(response.errors(), options);
  if (failure) std::rethrow_exception(failure);
  if (!state.bad_change.empty()) throw protocol_error(state.bad_change);
  if (!state.routed_host.empty()) co_return;  // with or without an acknowledgement: this connection is of no more use
  if (!response.login_acknowledged()) throw protocol_error("the login was neither accepted nor refused");
  if (state.next_packet_bytes != 0) transport.writer().set_packet_bytes(state.next_packet_bytes);
  state.info.packet_bytes = transport.writer().packet_bytes();
  login_messages = std::move(response.messages());
}

namespace {

Error redirected(const std::string& host, std::uint16_t port) {
  return Error(Category::connection, "routing", fmt::format("the server redirects to {}:{}", host, port))
      .with_hint("connect to that address");
}

}  // namespace

async::Task<std::unique_ptr<Session>> Session::login(net::Loop& loop, std::unique_ptr<net::Stream> stream,
                                                     LoginOptions options) {
  auto impl = std::make_shared<Impl>(loop, std::move(stream));
  co_await impl->establish(options);
  if (!impl->state.routed_host.empty()) throw redirected(impl->state.routed_host, impl->state.routed_port);
  co_return std::unique_ptr<Session>(new Session(std::move(impl)));
}

namespace {

bool ends_the_search(const std::exception_ptr& error, const async::Context& context) {
  if (context.cancelled()) return true;
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    return e.category() != Category::connection && e.category() != Category::timeout;
  } catch (...) {
    return true;
  }
}

// Each address gets its share of the time that is left, so that one that does not answer leaves some for the next.
async::Task<std::unique_ptr<net::TcpStream>> connect_any(net::Loop& loop, const LoginOptions& options) {
  const async::Context context = co_await async::current_context();
  const auto began = std::chrono::steady_clock::now();
  const std::vector<net::Endpoint> all = co_await net::resolve(loop, options.host, options.port);
  std::exception_ptr last;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto spent = std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - began);
    const auto share = std::max(milliseconds{1}, (options.connect_timeout - spent) / static_cast<int>(all.size() - i));
    try {
      co_return co_await net::with_deadline(loop, share, fmt::format("connecting to {}", all[i].text()),
                                            net::TcpStream::connect(loop, all[i]));
    } catch (...) {
      last = std::current_exception();
    }
    if (ends_the_search(last, context)) break;
  }
  if (last) std::rethrow_exception(last);
  throw Error(Category::connection, "resolve_failed", fmt::format("host \"{}\" has no address", options.host));
}

}  // namespace

// To where the server sends readers (MS-TDS 2.2.7.9, ENVCHANGE 20), each time by the name that was asked for first.
async::Task<std::unique_ptr<Session>> Session::follow(net::Loop& loop, const LoginOptions& options) {
  LoginOptions there = options;
  if (there.named_host.empty()) there.named_host = options.host;
  for (int hops = 0;; ++hops) {
    std::unique_ptr<net::TcpStream> stream = co_await connect_any(loop, there);
    auto impl = std::make_shared<Impl>(loop, std::move(stream));
    co_await impl->establish(there);
    if (impl->state.routed_host.empty()) co_return std::unique_ptr<Session>(new Session(std::move(impl)));
    impl->close();
    if (hops == limits::tds_redirects_max) {
      throw redirected(impl->state.routed_host, impl->state.routed_port)
          .with_hint(fmt::format("after {} redirections", hops));
    }
    there.host = impl->state.routed_host;
    there.port = impl->state.routed_port;
  }
}

async::Task<std::unique_ptr<Session>> Session::connect(net::Loop& loop, LoginOptions options) {
  check(options);
  co_return co_await net::with_deadline(loop, options.connect_timeout,
                                        fmt::format("connecting to {}:{}", options.host, options.port),
                                        follow(loop, options));
}

}  // namespace rowferry::tds
