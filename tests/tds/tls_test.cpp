#include "net/tls.hpp"

#include <fstream>

#include "async/scope.hpp"
#include "tds/transport.hpp"
#include "tests/net/memory_stream.hpp"
#include "tests/tds/session_support.hpp"

using namespace rowferry;
using namespace rowferry::test;
using rowferry::testing::MemoryStream;

namespace {

// Passes everything on and keeps what is written.
class Tap final : public net::Stream {
 public:
  Tap(std::unique_ptr<net::Stream> inner, std::string* written) : inner_(std::move(inner)), written_(written) {}
  async::Task<std::size_t> read_some(std::span<std::uint8_t> into) override { return inner_->read_some(into); }
  std::optional<std::size_t> try_read(std::span<std::uint8_t> into) override { return inner_->try_read(into); }
  async::Task<void> write_all(ByteView bytes) override {
    *written_ += as_text(bytes);
    return inner_->write_all(bytes);
  }
  async::Task<void> shutdown() override { return inner_->shutdown(); }
  void close() noexcept override { inner_->close(); }

 private:
  std::unique_ptr<net::Stream> inner_;
  std::string* written_;
};

// The lengths of the application data records at the end of what was written: behind the wrapped handshake.
std::vector<std::size_t> last_records(const std::string& written, std::size_t bytes) {
  constexpr std::uint8_t application_data = 0x17;
  constexpr std::size_t header = 5;
  std::vector<std::size_t> lengths;
  for (std::size_t at = written.size() - bytes; at < written.size(); at += header + lengths.back()) {
    cr_assert_eq(static_cast<std::uint8_t>(written[at]), application_data);
    lengths.push_back(static_cast<std::uint8_t>(written[at + 3]) * 256u + static_cast<std::uint8_t>(written[at + 4]));
  }
  return lengths;
}

// What the server's side saw.
struct ServerSide {
  std::size_t login_bytes = 0;
  std::uint32_t asked_packet_bytes = 0;
  std::size_t batch_bytes = 0;
  std::vector<std::size_t> batch_packets;
  std::string error;
};

async::Task<std::string> read_message(net::Stream* stream, std::vector<std::size_t>* packets) {
  tds::PacketReader reader;
  std::uint8_t byte[1];
  std::string header;
  while (!reader.message_ended()) {
    const std::size_t got = co_await stream->read_some(byte);
    if (got == 0) throw Error(Category::connection, "ended", "the client hung up");
    reader.feed(ByteView(byte, 1));
    if (header.size() < 8) header += static_cast<char>(byte[0]);
  }
  if (packets != nullptr) packets->push_back(reader.packets());
  co_return std::string(as_text(reader.payload()));
}

enum class Ask : std::uint8_t { login, all };

// A server with TLS: PRELOGIN, the wrapped handshake, LOGIN7 (through TLS, its first packet only when asked so), one
// batch.
async::Task<void> serve(net::Stream* stream, net::TlsContext context, Ask ask, std::size_t packet_bytes,
                        ServerSide* saw) {
  (void)co_await read_message(stream, nullptr);
  const std::string answer = prelogin_reply(ask == Ask::login ? 0 : 1);
  co_await stream->write_all(as_bytes(answer));
  tds::HandshakeStream wrapped(*stream);
  net::TlsStream tls(std::move(context), wrapped);
  co_await tls.handshake();
  wrapped.pass_through();
  const std::string login = co_await read_message(&tls, nullptr);
  saw->login_bytes = login.size();
  saw->asked_packet_bytes = load_le<std::uint32_t>(reinterpret_cast<const std::uint8_t*>(login.data()) + 8);
  net::Stream* after = ask == Ask::login ? stream : &tls;
  const std::string welcome = login_reply(packet_bytes);
  co_await after->write_all(as_bytes(welcome));
  saw->batch_bytes = (co_await read_message(after, &saw->batch_packets)).size();
  const std::string rows = reply(int_column() + int_row(42) + done(0x10, 1));
  co_await after->write_all(as_bytes(rows));
}

async::Task<void> serve_noting_errors(net::Stream* stream, net::TlsContext context, Ask ask, std::size_t packet_bytes,
                                      ServerSide* saw) {
  try {
    co_await serve(stream, std::move(context), ask, packet_bytes, saw);
  } catch (const Error& error) {
    saw->error = error.what();
  }
  stream->close();
}

struct Result {
  std::int64_t value = 0;
  tds::ServerInfo info;
  std::string code;
  std::string hint;
  std::string written;           // by the client, as it goes over the network
  std::size_t before_query = 0;  // bytes of it
  ServerSide server;
};

async::Task<void> ask_server(net::Loop* loop, std::unique_ptr<net::Stream> stream, tds::LoginOptions options,
                             Result* result) {
  try {
    const auto session = co_await tds::Session::login(*loop, std::move(stream), std::move(options));
    result->info = session->info();
    result->before_query = result->written.size();
    const tds::QueryResult rows = co_await session->query("select 42" + std::string(20000, ' '));
    result->value = rows.scalar().integer();
  } catch (const Error& error) {
    result->code = error.code();
    result->hint = error.hint();
  }
}

async::Task<void> both(net::Loop* loop, std::unique_ptr<MemoryStream> client, MemoryStream* server,
                       net::TlsContext context, Ask ask, tds::LoginOptions options, std::size_t packet_bytes,
                       Result* result) {
  const async::Context here = co_await async::current_context();
  async::Scope scope(here);
  scope.spawn(serve_noting_errors(server, std::move(context), ask, packet_bytes, &result->server));
  scope.spawn(ask_server(loop, std::make_unique<Tap>(std::move(client), &result->written), std::move(options), result));
  co_await scope.join();
}

Result talk(Ask ask, tds::LoginOptions options, const net::CertificateAndKey& identity,
            std::size_t packet_bytes = 16380, std::size_t read_at_most = SIZE_MAX) {
  net::Loop loop;
  auto client = std::make_unique<MemoryStream>();
  MemoryStream server;
  MemoryStream::join(*client, server);
  client->read_at_most = read_at_most;
  net::TlsContext context =
      net::TlsContext::server({.certificate_pem = identity.certificate_pem, .key_pem = identity.key_pem});
  Result result;
  loop.run(both(&loop, std::move(client), &server, std::move(context), ask, std::move(options), packet_bytes, &result));
  return result;
}

tds::LoginOptions options_for(tds::Encrypt encrypt, bool trust) {
  tds::LoginOptions options = plain_options();
  options.host = "localhost";
  options.encrypt = encrypt;
  options.trust_server_certificate = trust;
  return options;
}

class CertificateFile {
 public:
  explicit CertificateFile(const std::string& pem) : path_(std::tmpnam(nullptr)) { std::ofstream(path_) << pem; }
  ~CertificateFile() { std::remove(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

Test(tls, everything_encrypted_with_the_certificate_checked) {
  const auto identity = net::make_self_signed();
  const CertificateFile ca(identity.certificate_pem);
  tds::LoginOptions options = options_for(tds::Encrypt::on, false);
  options.ca_file = ca.path();
  const Result result = talk(Ask::all, options, identity);
  cr_assert_eq(result.code, "", "%s; server: %s", result.code.c_str(), result.server.error.c_str());
  cr_assert_eq(result.value, 42);
  cr_assert(result.info.encrypted);
  cr_assert_eq(result.info.packet_bytes, 16380u);
  cr_assert_eq(result.server.batch_bytes, 22u + 2 * 20009u);
  cr_assert_eq(result.server.batch_packets[0], 3u);
}

Test(tls, packets_are_no_larger_than_a_record_and_each_is_one) {
  for (const std::size_t wish :
       {std::size_t{512}, std::size_t{4096}, std::size_t{16383}, std::size_t{16384}, std::size_t{32767}}) {
    const std::size_t size = std::min<std::size_t>(wish, 16383);
    tds::LoginOptions options = options_for(tds::Encrypt::on, true);
    options.packet_bytes = wish;
    const Result result = talk(Ask::all, options, net::make_self_signed(), size);
    cr_assert_eq(result.value, 42, "%zu: %s; server: %s", wish, result.code.c_str(), result.server.error.c_str());
    cr_assert_eq(result.server.asked_packet_bytes, size, "%zu", wish);
    const std::size_t packets = (result.server.batch_bytes + size - 9) / (size - 8);
    cr_assert_eq(result.server.batch_packets[0], packets);
    const auto records = last_records(result.written, result.written.size() - result.before_query);
    cr_assert_eq(records.size(), packets, "%zu: %zu records", wish, records.size());
    const std::size_t overhead = records[0] - size;
    cr_assert_leq(overhead, 64u);
    for (std::size_t i = 0; i + 1 < packets; ++i) cr_assert_eq(records[i], size + overhead);
    cr_assert_eq(records.back(), result.server.batch_bytes + 8 * packets - (packets - 1) * size + overhead);
  }
}

Test(tls, handshake_in_tiny_reads) {
  const Result result = talk(Ask::all, options_for(tds::Encrypt::on, true), net::make_self_signed(), 4096, 3);
  cr_assert_eq(result.code, "", "%s", result.code.c_str());
  cr_assert_eq(result.value, 42);
}

Test(tls, a_certificate_that_nobody_signed_is_refused_and_the_settings_that_help_are_named) {
  const Result result = talk(Ask::all, options_for(tds::Encrypt::on, false), net::make_self_signed());
  cr_assert_eq(result.code, "certificate_not_trusted", "%s", result.code.c_str());
  cr_assert_neq(result.hint.find("trust_server_certificate"), std::string::npos);
  cr_assert_neq(result.hint.find("ca_file"), std::string::npos);
  cr_assert_eq(result.server.login_bytes, 0u, "no password was sent");
}

Test(tls, a_certificate_for_another_name) {
  net::SelfSignedOptions other;
  other.names = {"elsewhere.example"};
  const auto identity = net::make_self_signed(other);
  const CertificateFile ca(identity.certificate_pem);
  tds::LoginOptions options = options_for(tds::Encrypt::on, false);
  options.ca_file = ca.path();
  const Result refused = talk(Ask::all, options, identity);
  cr_assert_eq(refused.code, "certificate_name_mismatch", "%s", refused.code.c_str());
  cr_assert_neq(refused.hint.find("server_name"), std::string::npos);
  options.server_name = "elsewhere.example";
  cr_assert_eq(talk(Ask::all, options, identity).value, 42);
}

Test(tls, a_trusted_certificate_with_a_negative_serial_number) {
  net::SelfSignedOptions odd;
  odd.negative_serial = true;
  cr_assert_eq(talk(Ask::all, options_for(tds::Encrypt::on, true), net::make_self_signed(odd)).value, 42);
}

Test(tls, login_only_encrypts_the_login_and_nothing_after_it) {
  const Result result = talk(Ask::login, options_for(tds::Encrypt::login, false), net::make_self_signed(), 32764);
  cr_assert_eq(result.code, "", "%s; server: %s", result.code.c_str(), result.server.error.c_str());
  cr_assert_eq(result.value, 42);
  cr_assert_not(result.info.encrypted);
  cr_assert_eq(result.info.packet_bytes, 32764u);
  cr_assert_gt(result.server.login_bytes, 94u);
}

Test(tls, a_server_that_insists_gets_everything_encrypted_although_only_the_login_was_asked_for) {
  const Result result = talk(Ask::all, options_for(tds::Encrypt::login, true), net::make_self_signed());
  cr_assert_eq(result.value, 42);
  cr_assert(result.info.encrypted);
}

namespace {

async::Task<void> long_login(net::Loop* loop, std::unique_ptr<net::Stream> stream, net::TlsContext context) {
  tds::Transport transport(*loop, std::move(stream));
  co_await transport.start_tls(std::move(context), "localhost");
  transport.writer().begin(PacketType::login7);
  const std::string body(6000, 'L');
  transport.writer().write(as_bytes(body));
  transport.writer().finish();
  co_await transport.flush_first_then_stop_tls();
  cr_assert_not(transport.tls());
}

async::Task<void> long_login_server(net::Stream* stream, net::TlsContext context, std::string* first,
                                    std::string* second) {
  tds::HandshakeStream wrapped(*stream);
  net::TlsStream tls(std::move(context), wrapped);
  co_await tls.handshake();
  wrapped.pass_through();
  std::uint8_t room[8192];
  while (first->size() < 4096) {
    const std::size_t got = co_await tls.read_some({room, 4096 - first->size()});
    first->append(reinterpret_cast<const char*>(room), got);
  }
  net::TlsStream::Released rest = tls.release();
  *second = as_text(rest.unread.view());
  const ByteBuffer unread = wrapped.take_unread();
  second->append(as_text(unread.view()));
  while (second->size() < 6000 + 16 - 4096) {
    const std::size_t got = co_await stream->read_some(room);
    second->append(reinterpret_cast<const char*>(room), got);
  }
}

async::Task<void> two_packets(net::Loop* loop, std::unique_ptr<MemoryStream> client, MemoryStream* server,
                              std::string* first, std::string* second) {
  const auto identity = net::make_self_signed();
  const async::Context here = co_await async::current_context();
  async::Scope scope(here);
  scope.spawn(long_login_server(
      server, net::TlsContext::server({.certificate_pem = identity.certificate_pem, .key_pem = identity.key_pem}),
      first, second));
  scope.spawn(
      long_login(loop, std::move(client),
                 net::TlsContext::client({.verify = false, .ca_file = "", .max_version = net::TlsVersion::tls1_2})));
  co_await scope.join();
}

}  // namespace

Test(tls, only_the_first_packet_of_a_long_login_is_encrypted) {
  net::Loop loop;
  auto client = std::make_unique<MemoryStream>();
  MemoryStream server;
  MemoryStream::join(*client, server);
  std::string first;
  std::string second;
  loop.run(two_packets(&loop, std::move(client), &server, &first, &second));
  cr_assert_eq(to_hex(first.substr(0, 4)), "10 00 10 00");
  cr_assert_eq(second.size(), 6000u - 4088u + 8u);
  cr_assert_eq(to_hex(second.substr(0, 4)), "10 01 07 80", "the second packet lies on the stream as it is: %s",
               to_hex(second.substr(0, 8)).c_str());
}
