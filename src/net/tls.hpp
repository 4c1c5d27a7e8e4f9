// TlsStream: TLS over any Stream, with OpenSSL between two buffers of ours; it never touches a socket itself.
//
// Lifecycle: made over a connected inner stream, handshake() awaited once, then used as any Stream: one reader and one
// writer at a time. release() goes back to plain bytes on the inner stream (MS-TDS 2.2.6.5: encryption of the login
// only). There is no renegotiation, so a read never has to write; answers to a peer's KeyUpdate ride on the next write.
// Errors: Error(connection, …) with code
//   certificate_not_trusted, certificate_name_mismatch, certificate_expired  the peer's certificate was refused
//   tls_failed                                                              anything else that OpenSSL reports
// each with OpenSSL's reason and, where one exists, the setting that would help. Bad files: Error(input,
// "tls_settings").
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "net/stream.hpp"

struct ssl_st;
struct ssl_ctx_st;
struct bio_st;

namespace rowferry::net {

enum class TlsVersion : std::uint8_t { tls1_2, tls1_3 };

struct TlsClientOptions {
  bool verify = true;   // false: any certificate will do (trust_server_certificate)
  std::string ca_file;  // PEM; empty: the system's roots
  TlsVersion min_version = TlsVersion::tls1_2;
  TlsVersion max_version = TlsVersion::tls1_3;  // TDS 7.x wraps the handshake and needs tls1_2 here
  std::vector<std::string> alpn;                // in order of preference; empty: none offered
};

struct TlsServerOptions {
  // Either files or PEM text. The certificate may be followed by its chain.
  std::string certificate_file;
  std::string key_file;
  std::string certificate_pem;
  std::string key_pem;
  TlsVersion min_version = TlsVersion::tls1_2;
  TlsVersion max_version = TlsVersion::tls1_3;
  std::vector<std::string> alpn;  // accepted ones; a client that offers none of them gets no ALPN answer
};

// Settings and keys of one side; cheap to copy, shared by every stream made from it. Reads its files at once.
class TlsContext {
 public:
  static TlsContext client(const TlsClientOptions& options);
  static TlsContext server(const TlsServerOptions& options);

  bool is_server() const noexcept { return server_; }
  bool verifies() const noexcept { return verify_; }

 private:
  friend class TlsStream;
  TlsContext() = default;
  std::shared_ptr<ssl_ctx_st> context_;
  std::shared_ptr<const std::string> accepted_alpn_;  // wire form; OpenSSL keeps a pointer to it
  bool server_ = false;
  bool verify_ = false;
};

struct SelfSignedOptions {
  std::vector<std::string> names{"localhost", "127.0.0.1", "::1"};  // DNS names and IP addresses; the first is the CN
  std::chrono::seconds valid_from{-3600};                           // from now
  std::chrono::seconds valid_until{365L * 24 * 3600};               // from now
  bool negative_serial = false;                                     // as some servers' own certificates have it
};
struct CertificateAndKey {
  std::string certificate_pem;
  std::string key_pem;
};
// An EC P-256 key and a certificate signed by itself, usable as its own ca_file. For the sandbox and tests.
CertificateAndKey make_self_signed(const SelfSignedOptions& options = {});

class TlsStream final : public Stream {
 public:
  // Borrows the inner stream, which must outlive this one.
  TlsStream(TlsContext context, Stream& inner);
  TlsStream(TlsContext context, std::unique_ptr<Stream> inner);
  ~TlsStream() override;

  // Client: `server_name` is sent as SNI (unless it is an IP address) and is what the certificate must carry; it may be
  // empty only when nothing is verified. Server: leave it empty. Deadline: the caller's
  // (limits::tls_handshake_timeout).
  async::Task<void> handshake(std::string server_name = {});

  async::Task<std::size_t> read_some(std::span<std::uint8_t> into) override;
  // Each 16384 bytes or less become one TLS record; records of one call go out in as few inner writes as possible, so
  // that a TDS packet written by one call is one record and one segment train (MS-TDS 2.2.6.5).
  async::Task<void> write_all(ByteView bytes) override;
  std::optional<std::size_t> try_read(std::span<std::uint8_t> into) override;
  async::Task<void> shutdown() override;
  void close() noexcept override;

  // Drops TLS without close_notify; no read or write may be going on. `unread` are bytes that came from the inner
  // stream behind the last record that was read: the first plain bytes. `inner` is null when it was borrowed.
  struct Released {
    std::unique_ptr<Stream> inner;
    ByteBuffer unread;
  };
  Released release();

  // After the handshake.
  std::string version() const;  // "TLSv1.2"
  std::string alpn() const;     // empty: none agreed
  // At the end of stream: whether the peer said close_notify (true) or just closed (false: data may be missing).
  bool ended_cleanly() const noexcept { return ended_cleanly_; }

 private:
  struct Io;
  async::Task<void> fill();
  async::Task<void> flush();
  async::Task<void> flush_alert();
  int advance(int result);
  Error failure(const char* doing) const;
  Error handshake_failure() const;
  void prepare_client();
  ssl_st* live() const;

  TlsContext context_;
  std::unique_ptr<Stream> owned_;
  Stream* inner_;
  std::unique_ptr<Io> io_;
  ssl_st* ssl_ = nullptr;
  std::string server_name_;
  bool ended_cleanly_ = false;
  bool write_broken_ = false;
  bool writing_ = false;
  async::Event written_;
};

}  // namespace rowferry::net
