// Session: one connection to a SQL Server, over any net::Stream. BulkLoad: one INSERT BULK on it.
//
// Lifecycle: connect() gives a session that is logged in; requests follow one another (one at a time, no MARS);
// close(), or the destructor, ends it. A request that fails, is cancelled or passes its deadline leaves the session
// drained and usable, or closed: usable() tells. Errors of every call: Error(server) with the server's fault,
// Error(connection), Error(timeout), Error(cancelled); others are named at the call.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/limits.hpp"
#include "base/secret.hpp"
#include "net/stream.hpp"
#include "rows/loss.hpp"
#include "system/source.hpp"
#include "tds/result.hpp"
#include "tds/wire/bulk_encoder.hpp"
#include "tds/wire/types.hpp"

namespace rowferry::tds {

using std::chrono::milliseconds;

enum class Encrypt : std::uint8_t {
  off,    // nothing is encrypted
  login,  // the packet with the password only
  on,     // everything; the certificate is checked unless trust_server_certificate
};

struct LoginOptions {
  std::string host;
  std::uint16_t port = 1433;
  std::string database;  // empty: the login's default
  std::string user;
  SecretReader password;  // called once for each login
  std::string application_name = "rowferry";
  std::string client_name;  // of this machine, for the server's lists
  Encrypt encrypt = Encrypt::on;
  bool trust_server_certificate = false;
  std::string ca_file;           // PEM; empty: the system's roots
  std::string server_name;       // what the certificate must carry; empty: host
  std::size_t packet_bytes = 0;  // 512..32767; 0: as large as is good (32764 plain, 16380 with TLS)
  bool read_only_intent = false;
  std::string named_host;  // the server's name in LOGIN7, which gateways go by; empty: host
  milliseconds connect_timeout = limits::connect_timeout;  // address, connect, TLS and login together
};

struct ServerInfo {
  std::string program;  // "Microsoft SQL Server"
  int major = 0;
  int minor = 0;
  int build = 0;
  std::string version() const;  // "16.0.4135"
  std::string database;
  std::string language;
  Collation collation;  // of the database
  std::size_t packet_bytes = 4096;
  bool encrypted = false;
  bool utf8 = false;  // UTF-8 columns travel as UTF-8
};

struct ReadStats {
  std::uint64_t rows = 0;  // decoded
  std::uint64_t wire_bytes = 0;
  std::optional<std::uint64_t> told;  // as the server has counted them (DONE); nothing under SET NOCOUNT ON
};

struct ReadOptions {
  milliseconds timeout{0};  // 0: none
  // Per column of the result, not owned, may be shorter or hold null: what to do with text that is no text (an unpaired
  // surrogate, a byte outside the code page). Without one such a value is an error.
  std::vector<rows::ColumnLoss*> losses;
  // Positions of the columns that tell a row from others: an error of a value names theirs, where they stand before it.
  std::vector<std::size_t> key;
  std::size_t batch_bytes = limits::batch_bytes;
};

class BulkLoad;

class Session {
 public:
  // Resolves, connects (each address in turn), PRELOGIN, TLS, LOGIN7; follows redirections. Error(connection,
  // "connect_failed", "encryption_refused", "protocol", and TlsStream's), Error(server, "login_failed" /
  // "database_unavailable" / "password_expired" / "server_error") naming the user, never the password; Error(timeout).
  static async::Task<std::unique_ptr<Session>> connect(net::Loop& loop, LoginOptions options);
  // The same over a stream that is connected already; no timeout of its own.
  static async::Task<std::unique_ptr<Session>> login(net::Loop& loop, std::unique_ptr<net::Stream> stream,
                                                     LoginOptions options);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Every result set of a batch. More than limits::tds_query_bytes_max of rows: Error(internal, "result_too_large").
  async::Task<QueryResult> query(std::string sql, milliseconds timeout = limits::tds_query_timeout);
  // Runs a batch, discards rows, gives the last row count. timeout 0: none (cancellation only).
  async::Task<std::uint64_t> execute(std::string sql, milliseconds timeout = limits::tds_query_timeout);
  // Streams the rows of a batch (its first result set that has columns; further ones are an error) in Batches of the
  // columns' logical types. put() may wait: the socket is not read meanwhile.
  async::Task<ReadStats> read(std::string sql, ReadOptions options, system::BatchSink& to);
  // Sends INSERT BULK and waits for the server's consent. The load must end (finish or abort) before the next request.
  async::Task<std::unique_ptr<BulkLoad>> begin_bulk(std::vector<std::string> table, std::vector<BulkColumn> columns,
                                                    BulkOptions options);

  // False after a fatal error, a failed drain, a connection lost or close().
  bool usable() const noexcept;
  // A transaction is open, as the server told (ENVCHANGE 8, 9, 10).
  bool in_transaction() const noexcept;
  const ServerInfo& info() const noexcept;
  // Messages of the login.
  const std::vector<ServerMessage>& login_messages() const noexcept;
  void close() noexcept;

 private:
  friend class BulkLoad;
  struct Impl;
  explicit Session(std::shared_ptr<Impl> impl);
  static async::Task<std::unique_ptr<Session>> follow(net::Loop& loop, const LoginOptions& options);
  std::shared_ptr<Impl> impl_;
};

struct BulkStats {
  std::uint64_t rows = 0;        // encoded
  std::uint64_t wire_bytes = 0;  // sent, packet headers included
  double socket_seconds = 0;     // waiting for the socket to take bytes
  double reply_seconds = 0;      // waiting for the server's last word
  double waiting_seconds() const noexcept { return socket_seconds + reply_seconds; }
};

// One INSERT BULK, from the server's consent to its last word.
//
// State: open (the server waits for rows) -> ended by finish() or abort(), or by an error of write(). Destroyed while
// open: the session is closed, which rolls the statement back.
class BulkLoad {
 public:
  ~BulkLoad();
  BulkLoad(const BulkLoad&) = delete;
  BulkLoad& operator=(const BulkLoad&) = delete;

  // Encodes and sends; up to limits::tds_bulk_flush_bytes wait for the next call. When the server has refused the load
  // meanwhile, ends it as abort() does and throws the server's error. After an error of a value (BulkEncoder) or a
  // cancellation the load is still open: abort() it.
  async::Task<void> write(const rows::Batch& batch);
  // Ends the message; gives the rows that the server says it has inserted.
  async::Task<std::uint64_t> finish(milliseconds timeout = milliseconds{0});
  // Takes everything back: IGNORE|EOM, then the server's answer within limits::tds_cancel_timeout, else the session is
  // closed. Works shielded, never throws; a load that has ended is left alone.
  async::Task<void> abort();

  bool open() const noexcept;
  const BulkStats& stats() const noexcept;
  const std::vector<ServerMessage>& messages() const noexcept;

 private:
  friend class Session;
  struct Impl;
  explicit BulkLoad(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace rowferry::tds
