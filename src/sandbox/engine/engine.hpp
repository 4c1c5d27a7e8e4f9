// The sandbox's T-SQL engine: databases, tables, transactions and locks in memory, and the statements that rowferry and
// common clients send. Synchronous, no sockets, no coroutines, one thread: the TDS server around it drives it.
//
//   Server ─ open_session ─► Session ─ start_batch / start_call / start_transaction ─► step(writer) … until finished
//
// A request is executed in steps, so that nothing here ever waits: step() returns when the request is finished, when
// the writer is full, when it must wait for another session's lock, for WAITFOR's delay, or when the INSERT BULK
// statement of the batch was accepted and the rows are now awaited (Session::bulk()). Statement errors are not
// exceptions: they go to the writer as messages, as a server sends them.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "tds/wire/types.hpp"

namespace rowferry::sandbox::engine {

using Columns = std::vector<tds::ColumnMeta>;

// An ERROR (severity above 10) or INFO token.
struct Message {
  int number = 0;
  int state = 1;
  int severity = 16;
  std::string text;  // UTF-8
  std::string procedure;
  int line = 1;
  bool is_error() const noexcept { return severity > 10; }
};

// One DONE, DONEPROC or DONEINPROC. The MORE bit is the writer's: hold the last one back until the next token or the
// end of the request (DONE of a batch, DONEPROC of a call) shows which it is.
struct Done {
  enum class Kind : std::uint8_t { statement, in_procedure, procedure };
  Kind kind = Kind::statement;
  bool error = false;
  std::optional<std::uint64_t> count;
  std::uint16_t current_command = 0;  // C1 SELECT, C3 INSERT, …
};

struct EnvChange {
  enum class Kind : std::uint8_t { database = 1, language = 2, begin = 8, commit = 9, rollback = 10 };
  Kind kind = Kind::database;
  std::string now, before;       // database, language
  std::uint64_t descriptor = 0;  // begin (new), commit and rollback (old)
};

struct ReturnValue {
  std::uint16_t ordinal = 0;
  std::string name;  // with @
  tds::ColumnMeta column;
  ByteView value;  // in ROW framing
};

// Result rows as ROW tokens back to back: token byte and body, every column in the framing of its ColumnMeta.
struct RowTokens {
  static constexpr std::uint8_t token = 0xD1;
  ByteBuffer bytes;
  std::vector<std::uint32_t> ends;
  std::size_t rows() const noexcept { return ends.size(); }
  void end_row() { ends.push_back(static_cast<std::uint32_t>(bytes.size())); }
  void clear() {
    bytes.clear();
    ends.clear();
  }
};

// Takes the answer of a request, in order. Views are valid during the call only.
class ResultWriter {
 public:
  virtual ~ResultWriter() = default;
  virtual void columns(const Columns& columns) = 0;
  virtual void order(const std::vector<std::uint16_t>& columns) = 0;  // ORDER token, columns from 1
  virtual void rows(const RowTokens& rows) = 0;
  virtual void done(const Done& done) = 0;
  virtual void message(const Message& message) = 0;
  virtual void env_change(const EnvChange& change) = 0;
  virtual void return_status(std::int32_t status) = 0;
  virtual void return_value(const ReturnValue& value) = 0;
  // True: the engine stops producing rows and step() returns Step::full.
  virtual bool full() const = 0;
  // At most so many rows are to be given at once.
  virtual std::size_t rows_max() const { return ~std::size_t{0}; }
};

enum class Step : std::uint8_t {
  finished,     // the answer is complete; the last token given was a Done. Check Session::bulk() and must_close().
  full,         // the writer is full, or the batch has had its turn: call step again when there is room
  would_block,  // another session holds a lock: call step again after the wake handler or `wait` has passed
  delay,        // WAITFOR: call step again after `wait`
};

struct Progress {
  Step step = Step::finished;
  int blocker = 0;                                // would_block: the session (spid) that holds the lock
  std::optional<std::chrono::milliseconds> wait;  // delay: exactly; would_block: at most (LOCK_TIMEOUT), else for ever
};

// A parameter of a remote procedure call; `value` in ROW framing of `type`.
struct Parameter {
  std::string name;  // with @, or empty (by position)
  bool output = false;
  bool use_default = false;
  tds::TypeInfo type;
  std::vector<std::uint8_t> value;
};

// Request of a transaction manager message (MS-TDS 2.2.6.9).
struct TransactionRequest {
  enum class Kind : std::uint8_t { begin = 5, commit = 7, rollback = 8, save = 9 };
  Kind kind = Kind::begin;
  std::uint8_t isolation = 0;  // 0 keep, 1 RU, 2 RC, 3 RR, 4 SER, 5 SNAPSHOT
  std::string name;
  bool begin_again = false;  // flags bit 0 of commit and rollback
  std::uint8_t next_isolation = 0;
  std::string next_name;
};

// 128-bit sum of row hashes modulo 2^128.
struct HashSum {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  void add(const HashSum& other) noexcept;
  void subtract(const HashSum& other) noexcept;
  bool operator==(const HashSum&) const = default;
};

struct BulkProgress {
  enum class Status : std::uint8_t {
    ok,
    would_block,  // `taken` rows were taken; offer the rest again after the wake handler or `wait`
    failed,       // the statement has failed (error() says why): drop further rows, drain to the end, then finish()
  };
  Status status = Status::ok;
  std::size_t taken = 0;
  int blocker = 0;
  std::optional<std::chrono::milliseconds> wait;
};

using RowSpan = tds::RowSpan;

// Rows of a bulk message, as they stand in it: row i is bytes[rows[i].begin, rows[i].end), the token bytes still
// between them, so that nobody has to move a row. The framing has been checked; values are those of bind()'s columns.
// The memory is the caller's and lasts for the call.
struct BulkRows {
  const std::uint8_t* bytes = nullptr;
  const RowSpan* rows = nullptr;
  std::size_t count = 0;
  const HashSum* hash = nullptr;  // the rows' summed hash where the caller has it; else XXH3-128 over each row's bytes
};

// The rows of one INSERT BULK statement; owned by the session, from the statement's answer to finish().
class BulkTarget {
 public:
  virtual ~BulkTarget() = default;
  // The columns as declared by the statement's text, in N-forms, with the target column's nullability, identity flag:
  // what the stream's COLMETADATA must agree with. PLP for (max); xml, json as the declaration says.
  virtual const Columns& declared() const = 0;
  // The stream's columns after the server has compared them (they may be fixed-length forms of the declared types).
  // An error (4816 style) is returned, and has failed the statement.
  virtual std::optional<Message> bind(const Columns& stream) = 0;
  // True: a NULL in this column of the stream is an error (fail with null_error). Otherwise append() does what is due.
  virtual bool refuses_null(std::size_t column) const = 0;
  virtual Message null_error(std::size_t column) const = 0;
  virtual BulkProgress append(const BulkRows& rows) = 0;
  // The statement fails with this error (bad framing, wrong value, …). The first error stays.
  virtual void fail(const Message& error) = 0;
  virtual const std::optional<Message>& error() const = 0;
  virtual std::uint64_t rows() const = 0;
};

struct Options {
  bool discard = false;  // rows of bulk loads are counted and hashed, not kept
  std::string server_name = "ROWFERRY";
  std::string version = "0.1.0";       // rowferry's own, shown by @@VERSION
  std::vector<std::string> databases;  // besides master and tempdb
  std::string collation = "SQL_Latin1_General_CP1_CI_AS";
  std::chrono::steady_clock::time_point (*now)() = nullptr;  // nullptr: the steady clock
};

struct SessionInfo {
  std::string login;     // sa
  std::string database;  // empty: master
  std::string application;
  std::string host;
  std::string library;
  std::string client_address = "127.0.0.1";
  int client_process = 0;
  bool encrypted = false;
  bool utf8 = false;          // the client has the UTF8_SUPPORT feature; else UTF-8 columns are sent as nvarchar
  bool ansi_defaults = true;  // fODBC or fOLEDB of LOGIN7: TEXTSIZE unlimited and the ANSI options on
  int packet_size = 4096;
};

class Server;
struct SessionState;

class Session {
 public:
  explicit Session(std::unique_ptr<SessionState> state);
  ~Session();  // rolls back, frees locks and temporary tables, wakes those who wait
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  int spid() const noexcept;
  const std::string& database() const noexcept;
  // Descriptor of the open transaction for comparing with ALL_HEADERS; 0 in autocommit.
  std::uint64_t transaction() const noexcept;
  tds::Collation default_collation() const noexcept;  // of the database: ENVCHANGE 7

  // A request. Only when no other is running. Texts are UTF-8 (unpaired surrogates as three bytes are taken).
  void start_batch(std::string text);
  // By name ("sp_executesql", "db..sp_tablecollations_100") or by a number of MS-TDS 2.2.6.6 (10 = sp_executesql, …).
  void start_call(std::string procedure, std::vector<Parameter> parameters);
  void start_call(std::uint16_t procedure_id, std::vector<Parameter> parameters);
  void start_transaction(TransactionRequest request);
  Progress step(ResultWriter& writer);
  bool running() const noexcept;
  // Attention: undoes the running statement (or pending bulk load) and ends the request without further tokens, but for
  // a rollback's env_change under XACT_ABORT.
  void cancel(ResultWriter& writer);

  // The bulk load that the last batch has opened; nullptr when none is awaited.
  BulkTarget* bulk() noexcept;
  // Ends the bulk load: commits or undoes the statement, writes errors and the Done with its count.
  void finish_bulk(ResultWriter& writer);
  // Something else than bulk data came, or an abort (IGNORE|EOM): undone, the error (4022, or none) and Done written.
  void abort_bulk(ResultWriter& writer, const std::optional<Message>& error);

  // RESETCONNECTION: options, temporary tables, prepared handles, database as at login; rolls back unless kept.
  void reset(bool keep_transaction, ResultWriter& writer);
  // After a fatal error (severity 20 and above) the connection is to be closed.
  bool must_close() const noexcept;

  SessionState& state() noexcept { return *state_; }

 private:
  std::unique_ptr<SessionState> state_;
};

struct ServerState;

class Server {
 public:
  explicit Server(Options options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  bool has_database(std::string_view name) const;
  // The database must exist (else Error(not_found)).
  std::unique_ptr<Session> open_session(SessionInfo info);
  // Called with the spid of a session whose wait may be over, from inside another session's call: only note or post it.
  void on_wake(std::function<void(int)> handler);
  // Called with the spid of a session that KILL names, likewise: end it soon.
  void on_kill(std::function<void(int)> handler);
  const Options& options() const noexcept;
  static constexpr std::uint8_t product_major = 16;
  static constexpr std::uint8_t product_minor = 0;
  static constexpr std::uint16_t product_build = 4135;

  ServerState& state() noexcept { return *state_; }

 private:
  std::unique_ptr<ServerState> state_;
};

}  // namespace rowferry::sandbox::engine
