#include "net/tls.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>

#include "base/limits.hpp"

namespace rowferry::net {

namespace {

// The innermost reason that OpenSSL noted, without its file names and codes.
std::string take_reason() {
  std::string reason;
  while (const unsigned long code = ERR_get_error()) {
    if (const char* text = ERR_reason_error_string(code); text != nullptr && reason.empty()) reason = text;
  }
  return reason.empty() ? "no reason given" : reason;
}

Error settings_error(const std::string& what) {
  return Error(Category::input, "tls_settings", fmt::format("{}: {}", what, take_reason()));
}

int openssl_version(TlsVersion version) { return version == TlsVersion::tls1_2 ? TLS1_2_VERSION : TLS1_3_VERSION; }

// Length-prefixed names, RFC 7301 section 3.1.
std::string alpn_wire(const std::vector<std::string>& names) {
  std::string wire;
  for (const std::string& name : names) {
    if (name.empty() || name.size() > 255) throw Error(Category::input, "tls_settings", "bad ALPN name");
    wire += static_cast<char>(name.size());
    wire += name;
  }
  return wire;
}

int choose_alpn(SSL*, const unsigned char** out, unsigned char* out_size, const unsigned char* in, unsigned in_size,
                void* accepted) {
  const auto& ours = *static_cast<const std::string*>(accepted);
  unsigned char* chosen = nullptr;
  const int found = SSL_select_next_proto(&chosen, out_size, reinterpret_cast<const unsigned char*>(ours.data()),
                                          static_cast<unsigned>(ours.size()), in, in_size);
  *out = chosen;
  return found == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_NOACK;
}

std::shared_ptr<SSL_CTX> new_context(const SSL_METHOD* method, TlsVersion min, TlsVersion max) {
  ERR_clear_error();
  std::shared_ptr<SSL_CTX> context(SSL_CTX_new(method), [](SSL_CTX* dead) { SSL_CTX_free(dead); });
  if (!context) throw settings_error("cannot set up TLS");
  SSL_CTX_set_min_proto_version(context.get(), openssl_version(min));
  SSL_CTX_set_max_proto_version(context.get(), openssl_version(max));
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  // Idle connections keep no record buffers.
  SSL_CTX_set_mode(context.get(), SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  return context;
}

struct BioFree {
  void operator()(BIO* bio) const noexcept { BIO_free_all(bio); }
};
using BioPtr = std::unique_ptr<BIO, BioFree>;
struct X509Free {
  void operator()(X509* certificate) const noexcept { X509_free(certificate); }
};
using X509Ptr = std::unique_ptr<X509, X509Free>;
struct KeyFree {
  void operator()(EVP_PKEY* key) const noexcept { EVP_PKEY_free(key); }
};
using KeyPtr = std::unique_ptr<EVP_PKEY, KeyFree>;

void use_pem(SSL_CTX* context, const TlsServerOptions& options) {
  const BioPtr chain(BIO_new_mem_buf(options.certificate_pem.data(), static_cast<int>(options.certificate_pem.size())));
  const X509Ptr leaf(PEM_read_bio_X509_AUX(chain.get(), nullptr, nullptr, nullptr));
  if (!leaf || SSL_CTX_use_certificate(context, leaf.get()) != 1)
    throw settings_error("cannot use the TLS certificate");
  while (X509* next = PEM_read_bio_X509(chain.get(), nullptr, nullptr, nullptr)) {
    SSL_CTX_add0_chain_cert(context, next);
  }
  ERR_clear_error();  // the end of the PEM text is an error to OpenSSL
  const BioPtr key_text(BIO_new_mem_buf(options.key_pem.data(), static_cast<int>(options.key_pem.size())));
  const KeyPtr key(PEM_read_bio_PrivateKey(key_text.get(), nullptr, nullptr, nullptr));
  if (!key || SSL_CTX_use_PrivateKey(context, key.get()) != 1) throw settings_error("cannot use the TLS key");
}

void use_files(SSL_CTX* context, const TlsServerOptions& options) {
  if (SSL_CTX_use_certificate_chain_file(context, options.certificate_file.c_str()) != 1) {
    throw settings_error(fmt::format("cannot use the TLS certificate in \"{}\"", options.certificate_file));
  }
  if (SSL_CTX_use_PrivateKey_file(context, options.key_file.c_str(), SSL_FILETYPE_PEM) != 1) {
    throw settings_error(fmt::format("cannot use the TLS key in \"{}\"", options.key_file));
  }
}

bool is_ip_address(const std::string& name) {
  unsigned char room[sizeof(in6_addr)];
  return inet_pton(AF_INET, name.c_str(), room) == 1 || inet_pton(AF_INET6, name.c_str(), room) == 1;
}

}  // namespace

TlsContext TlsContext::client(const TlsClientOptions& options) {
  TlsContext made;
  made.verify_ = options.verify;
  made.context_ = new_context(TLS_client_method(), options.min_version, options.max_version);
  SSL_CTX* context = made.context_.get();
  SSL_CTX_set_verify(context, options.verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
  if (options.verify && options.ca_file.empty()) SSL_CTX_set_default_verify_paths(context);
  if (options.verify && !options.ca_file.empty() &&
      SSL_CTX_load_verify_locations(context, options.ca_file.c_str(), nullptr) != 1) {
    throw settings_error(fmt::format("cannot read certificates from ca_file \"{}\"", options.ca_file))
        .with_field("ca_file");
  }
  if (!options.alpn.empty()) {
    const std::string wire = alpn_wire(options.alpn);
    SSL_CTX_set_alpn_protos(context, reinterpret_cast<const unsigned char*>(wire.data()),
                            static_cast<unsigned>(wire.size()));
  }
  return made;
}

TlsContext TlsContext::server(const TlsServerOptions& options) {
  TlsContext made;
  made.server_ = true;
  made.context_ = new_context(TLS_server_method(), options.min_version, options.max_version);
  SSL_CTX* context = made.context_.get();
  // No tickets: a login-only peer would have to read them behind the handshake, and nothing here resumes sessions.
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_num_tickets(context, 0);
  if (options.certificate_pem.empty()) {
    use_files(context, options);
  } else {
    use_pem(context, options);
  }
  if (SSL_CTX_check_private_key(context) != 1) throw settings_error("the TLS key does not belong to the certificate");
  if (!options.alpn.empty()) {
    made.accepted_alpn_ = std::make_shared<const std::string>(alpn_wire(options.alpn));
    SSL_CTX_set_alpn_select_cb(context, choose_alpn, const_cast<std::string*>(made.accepted_alpn_.get()));
  }
  return made;
}

// ---- the two buffers between OpenSSL and the inner stream

// OpenSSL reads from `in[begin, end)` and writes to `out`. `sending` is what the inner write is busy with: OpenSSL may
// add to `out` meanwhile. The input buffer starts small, grows while reads fill it and shrinks while they do not: idle
// connections hold little.
struct TlsStream::Io {
  std::unique_ptr<std::uint8_t[]> in;
  std::size_t capacity = 0;
  std::size_t begin = 0;
  std::size_t end = 0;
  std::size_t last = 0;  // what the last read gave
  ByteBuffer out;
  ByteBuffer sending;

  std::span<std::uint8_t> room() {
    if (begin == end) {
      begin = end = 0;
      if (capacity > limits::tls_read_bytes_min && last * 4 < capacity) resize(capacity / 2);
    }
    if (begin != 0) {
      std::memmove(in.get(), in.get() + begin, end - begin);
      end -= std::exchange(begin, 0);
    }
    if (end == capacity) grow();
    return {in.get() + end, capacity - end};
  }
  void grow() { resize(capacity == 0 ? limits::tls_read_bytes_min : capacity * 2); }
  void resize(std::size_t size) {
    auto next = std::make_unique_for_overwrite<std::uint8_t[]>(size);
    if (end != 0) std::memcpy(next.get(), in.get(), end);
    in = std::move(next);
    capacity = size;
  }
  void filled(std::size_t n) {
    end += n;
    last = n;
    if (end == capacity && begin == 0 && capacity < limits::socket_read_bytes) grow();
  }

  static int read(BIO* bio, char* to, std::size_t wanted, std::size_t* got) {
    auto* io = static_cast<Io*>(BIO_get_data(bio));
    BIO_clear_retry_flags(bio);
    *got = std::min(wanted, io->end - io->begin);
    if (*got == 0) {
      BIO_set_retry_read(bio);
      return 0;
    }
    std::memcpy(to, io->in.get() + io->begin, *got);
    io->begin += *got;
    return 1;
  }
  static int write(BIO* bio, const char* from, std::size_t size, std::size_t* taken) {
    static_cast<Io*>(BIO_get_data(bio))->out.append({reinterpret_cast<const std::uint8_t*>(from), size});
    *taken = size;
    return 1;
  }
  static long control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }
  static BIO_METHOD* method() {
    static BIO_METHOD* const made = [] {
      BIO_METHOD* m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "rowferry");
      BIO_meth_set_read_ex(m, read);
      BIO_meth_set_write_ex(m, write);
      BIO_meth_set_ctrl(m, control);
      return m;
    }();
    return made;
  }
};

TlsStream::TlsStream(TlsContext context, Stream& inner)
    : context_(std::move(context)),
      inner_(&inner),
      io_(std::make_unique<Io>()),
      ssl_(SSL_new(context_.context_.get())) {
  BIO* bio = ssl_ == nullptr ? nullptr : BIO_new(Io::method());
  if (bio == nullptr) throw std::bad_alloc();
  BIO_set_data(bio, io_.get());
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_, bio, bio);
}

TlsStream::TlsStream(TlsContext context, std::unique_ptr<Stream> inner) : TlsStream(std::move(context), *inner) {
  owned_ = std::move(inner);
}

TlsStream::~TlsStream() { SSL_free(ssl_); }

ssl_st* TlsStream::live() const {
  if (ssl_ == nullptr) throw Error(Category::internal, "tls_released", "TLS was released on this stream");
  return ssl_;
}

// ---- handshake

void TlsStream::prepare_client() {
  SSL_set_connect_state(ssl_);
  if (server_name_.empty()) {
    if (!context_.verifies()) return;
    throw Error(Category::input, "tls_settings", "a certificate can only be checked against a server name")
        .with_field("server_name");
  }
  const bool ip = is_ip_address(server_name_);
  if (!ip) SSL_set_tlsext_host_name(ssl_, server_name_.c_str());
  if (!context_.verifies()) return;
  const int set = ip ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl_), server_name_.c_str())
                     : SSL_set1_host(ssl_, server_name_.c_str());
  if (set != 1) throw settings_error(fmt::format("bad server name \"{}\"", server_name_)).with_field("server_name");
}

async::Task<void> TlsStream::handshake(std::string server_name) {
  server_name_ = std::move(server_name);
  ERR_clear_error();
  if (context_.is_server()) {
    SSL_set_accept_state(live());
  } else {
    live();
    prepare_client();
  }
  while (true) {
    ERR_clear_error();
    const int result = SSL_do_handshake(ssl_);
    const int why = SSL_get_error(ssl_, result);
    if (why != SSL_ERROR_NONE && why != SSL_ERROR_WANT_READ) {
      const Error failed = handshake_failure();
      co_await flush_alert();
      throw failed;
    }
    co_await flush();
    if (why == SSL_ERROR_NONE) co_return;
    co_await fill();
    if (ended_cleanly_ || io_->begin == io_->end) {
      throw Error(Category::connection, "tls_failed", "the peer closed the connection during the TLS handshake")
          .with_hint("it may not speak TLS here, or accept none of the offered versions");
    }
  }
}

Error TlsStream::handshake_failure() const {
  const long verdict = SSL_get_verify_result(ssl_);
  const std::string reason = take_reason();
  if (!context_.verifies() || verdict == X509_V_OK) {
    Error failed(Category::connection, "tls_failed", fmt::format("TLS handshake failed: {}", reason));
    if (reason == "wrong version number" || reason == "packet length too long" || reason == "http request") {
      failed.with_hint("the peer does not speak TLS here");
    } else if (reason == "unsupported protocol" || reason.find("protocol version") != std::string::npos) {
      failed.with_hint("the peer offers no TLS version that is still accepted (1.2 or later)");
    }
    return failed;
  }
  const char* said = X509_verify_cert_error_string(verdict);
  switch (verdict) {
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return Error(Category::connection, "certificate_name_mismatch",
                   fmt::format("the server's certificate is not for \"{}\": {}", server_name_, said))
          .with_hint("set server_name to the name in the certificate");
    case X509_V_ERR_CERT_HAS_EXPIRED:
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return Error(Category::connection, "certificate_expired",
                   fmt::format("the server's certificate is outside its time of validity: {}", said))
          .with_hint("renew the certificate, check the clock, or set trust_server_certificate = true");
    default:
      return Error(Category::connection, "certificate_not_trusted",
                   fmt::format("the server's certificate is not trusted: {}", said))
          .with_hint("set ca_file to the certificate of its issuer, or trust_server_certificate = true");
  }
}

// ---- reading and writing

async::Task<void> TlsStream::fill() {
  const std::size_t got = co_await inner_->read_some(io_->room());
  io_->filled(got);
}

// Sends all that OpenSSL has put out. Waits for a flush that is going on: what it leaves is sent here.
async::Task<void> TlsStream::flush() {
  while (writing_) {
    written_.reset();
    co_await written_.wait();
  }
  if (io_->out.empty()) co_return;
  if (write_broken_)
    throw Error(Category::connection, "connection_lost", "an earlier write on this TLS stream was cut short");
  struct Busy {
    TlsStream& stream;
    explicit Busy(TlsStream& s) : stream(s) { stream.writing_ = stream.write_broken_ = true; }
    ~Busy() {
      stream.writing_ = false;
      stream.written_.set();
    }
  } busy(*this);
  while (!io_->out.empty()) {
    std::swap(io_->out, io_->sending);
    co_await inner_->write_all(io_->sending.view());
    io_->sending.clear();
  }
  write_broken_ = false;
}

// The alert of a failed handshake or read: worth sending, not worth a second error.
async::Task<void> TlsStream::flush_alert() {
  if (writing_) co_return;
  try {
    co_await flush();
  } catch (const Error& error) {
    if (error.category() == Category::cancelled) throw;
  }
}

Error TlsStream::failure(const char* doing) const {
  return Error(Category::connection, "tls_failed", fmt::format("{} with TLS failed: {}", doing, take_reason()))
      .mark_transient();
}

// The number of bytes read, 0 at the end of the stream, -1 when more input is needed; throws on a failure.
int TlsStream::advance(int result) {
  if (result > 0) return result;
  switch (SSL_get_error(ssl_, result)) {
    case SSL_ERROR_WANT_READ:
      return -1;
    case SSL_ERROR_ZERO_RETURN:
      ended_cleanly_ = true;
      return 0;
    default:
      throw failure("reading");
  }
}

async::Task<std::size_t> TlsStream::read_some(std::span<std::uint8_t> into) {
  while (true) {
    std::exception_ptr failed;
    try {
      ERR_clear_error();
      const int got = advance(SSL_read(live(), into.data(), static_cast<int>(into.size())));
      if (got >= 0) co_return static_cast<std::size_t>(got);
    } catch (...) {
      failed = std::current_exception();
    }
    if (failed) {
      co_await flush_alert();
      std::rethrow_exception(failed);
    }
    const std::size_t before = io_->end - io_->begin;
    co_await fill();
    if (io_->end - io_->begin == before) co_return 0;
  }
}

std::optional<std::size_t> TlsStream::try_read(std::span<std::uint8_t> into) {
  while (true) {
    ERR_clear_error();
    const int got = advance(SSL_read(live(), into.data(), static_cast<int>(into.size())));
    if (got >= 0) return static_cast<std::size_t>(got);
    const auto more = inner_->try_read(io_->room());
    if (!more || *more == 0) return more;
    io_->filled(*more);
  }
}

async::Task<void> TlsStream::write_all(ByteView bytes) {
  while (!bytes.empty()) {
    const std::size_t size = std::min<std::size_t>(bytes.size(), SSL3_RT_MAX_PLAIN_LENGTH);
    ERR_clear_error();
    if (SSL_write(live(), bytes.data(), static_cast<int>(size)) != static_cast<int>(size)) throw failure("writing");
    bytes = bytes.subspan(size);
    if (bytes.empty() || io_->out.size() >= limits::tls_write_bytes) co_await flush();
  }
}

async::Task<void> TlsStream::shutdown() {
  ERR_clear_error();
  if (ssl_ != nullptr) {
    SSL_shutdown(ssl_);
    co_await flush();
  }
  co_await inner_->shutdown();
}

void TlsStream::close() noexcept { inner_->close(); }

TlsStream::Released TlsStream::release() {
  Released released{std::move(owned_), {}};
  released.unread.append({io_->in.get() + io_->begin, io_->end - io_->begin});
  SSL_free(std::exchange(ssl_, nullptr));
  return released;
}

std::string TlsStream::version() const { return SSL_get_version(live()); }

std::string TlsStream::alpn() const {
  const unsigned char* name = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(live(), &name, &size);
  return {reinterpret_cast<const char*>(name), size};
}

// ---- self-signed certificates

namespace {

std::string pem_text(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return {data, static_cast<std::size_t>(size)};
}

void add_extension(X509* certificate, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str());
  if (extension == nullptr) throw settings_error(fmt::format("cannot put \"{}\" into a certificate", value));
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

std::string subject_alternatives(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) {
    list += fmt::format("{}{}:{}", list.empty() ? "" : ",", is_ip_address(name) ? "IP" : "DNS", name);
  }
  return list;
}

}  // namespace

CertificateAndKey make_self_signed(const SelfSignedOptions& options) {
  ERR_clear_error();
  const KeyPtr key(EVP_EC_gen("P-256"));
  const X509Ptr certificate(X509_new());
  X509* x = certificate.get();
  if (!key || x == nullptr || options.names.empty()) throw settings_error("cannot make a certificate");
  X509_set_version(x, X509_VERSION_3);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
  ASN1_INTEGER_set_int64(X509_get_serialNumber(x), options.negative_serial ? -micros : micros);
  X509_gmtime_adj(X509_getm_notBefore(x), options.valid_from.count());
  X509_gmtime_adj(X509_getm_notAfter(x), options.valid_until.count());
  X509_set_pubkey(x, key.get());
  X509_NAME* name = X509_get_subject_name(x);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(options.names[0].c_str()), -1, -1, 0);
  X509_set_issuer_name(x, name);
  add_extension(x, NID_subject_alt_name, subject_alternatives(options.names));
  add_extension(x, NID_basic_constraints, "critical,CA:TRUE");
  const BioPtr certificate_text(BIO_new(BIO_s_mem()));
  const BioPtr key_text(BIO_new(BIO_s_mem()));
  if (X509_sign(x, key.get(), EVP_sha256()) == 0 || PEM_write_bio_X509(certificate_text.get(), x) != 1 ||
      PEM_write_bio_PrivateKey(key_text.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    throw settings_error("cannot make a certificate");
  }
  return {pem_text(certificate_text.get()), pem_text(key_text.get())};
}

}  // namespace rowferry::net
