// Session: one libpq connection behind coroutines (PostgreSQL manual, chapter 34: asynchronous processing).
//
// Lifecycle: connect() gives it idle, with every setting that changes results set; one statement at a time; close()
// or the destructor ends it. A statement that fails leaves it idle (in a failed transaction, if it was in one); a
// cancelled wait stops the server's statement first, and closes the session when that takes longer than
// limits::pg_cancel_wait. libpq never resolves a name: host and hostaddr are both given. The loop's thread owns it.
#pragma once

#include <libpq-fe.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "base/secret.hpp"
#include "net/poll.hpp"
#include "postgres/dsn.hpp"

namespace rowferry::postgres {

struct SessionOptions {
  std::string name;  // of the connection, for messages
  Parameters parameters;
  SecretReader password;                         // read at each connect, on the thread pool; may be empty
  std::chrono::milliseconds connect_timeout{0};  // 0: limits::connect_timeout
  std::string application_name;
};

// Rows of a statement, as text. Views are valid while the Result lives.
class Result {
 public:
  explicit Result(PGresult* result) noexcept : result_(result) {}

  int rows() const noexcept { return PQntuples(result_.get()); }
  // Throws Error(internal) for a column that the statement does not have. Names as PQfnumber takes them: in double
  // quotes where they are not lower case.
  bool null(int row, const char* column) const;
  std::string_view text(int row, const char* column) const;
  std::int64_t integer(int row, const char* column) const;
  double real(int row, const char* column) const;
  bool boolean(int row, const char* column) const { return text(row, column) == "t"; }
  // Rows that the command tag counts; 0 where it has no count.
  std::uint64_t affected() const noexcept;
  PGresult* get() const noexcept { return result_.get(); }

 private:
  struct Clear {
    void operator()(PGresult* result) const noexcept { PQclear(result); }
  };
  int column(const char* name) const;
  std::unique_ptr<PGresult, Clear> result_;
};

struct DescribedColumn {
  std::string name;
  Oid type = 0;
  int typmod = -1;
};

class Session {
 public:
  // Resolves, connects and sets up within the connect timeout. Errors: connect_failed, resolve_failed, login_failed, …
  static async::Task<std::unique_ptr<Session>> connect(net::Loop& loop, std::shared_ptr<const SessionOptions> options);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Errors are about the table that is loaded from now on (of_target()).
  void loads() noexcept { loads_ = true; }

  // Runs one statement, or several separated by semicolons (the last one's rows are given; the first error ends it).
  async::Task<Result> query(std::string sql);
  // Columns that a statement would give (extended protocol: exactly one statement).
  async::Task<std::vector<DescribedColumn>> describe(std::string sql);

  // COPY … TO STDOUT. After start_copy_out: copy_row until `end`, then finish_copy; or abandon_copy.
  async::Task<void> start_copy_out(std::string sql);
  enum class Row : std::uint8_t { row, none_yet, end };
  // A message of the stream, to be freed with PQfreemem. Never waits; throws when the connection is lost.
  Row copy_row(char*& data, int& size);
  // Waits until the server has sent more, and reads it.
  async::Task<void> more_input();
  // The command's outcome: the server's count of rows. Throws when the COPY failed.
  async::Task<std::uint64_t> finish_copy();

  // COPY … FROM STDIN. After start_copy_in: put_copy any number of times, then end_copy_in; or stop(), which fails the
  // COPY: nothing of it is ever committed then. The transaction should have client_min_messages = error: whatever the
  // server sends during the COPY is taken for its refusal.
  async::Task<void> start_copy_in(std::string sql);
  // Returns when the bytes have left libpq's buffer and the socket takes more. Throws the server's error as soon as it
  // arrives; the COPY has ended then. limits::pg_copy_message_bytes are sent without a copy left over.
  async::Task<void> put_copy(ByteView bytes);
  // The server's count of rows. Throws its error: the COPY has ended then too.
  async::Task<std::uint64_t> end_copy_in();
  // Time that put_copy() has waited for the socket so far.
  double copy_wait_seconds() const noexcept { return copy_wait_seconds_; }

  // Stops whatever runs: cancel request, then the rest is read and dropped, all within limits::pg_cancel_wait; else the
  // session is closed. Idle before: nothing. Never throws. Call it shielded.
  async::Task<void> stop();

  // Looks at the socket without waiting: false when the server has gone.
  bool alive() noexcept;
  // False: closed, nothing can be done with it any more.
  bool open() const noexcept { return connection_ != nullptr; }
  bool in_transaction() const noexcept;
  void close() noexcept;

  int version() const noexcept { return version_; }  // 150020
  const std::string& version_text() const noexcept { return version_text_; }
  int backend_pid() const noexcept { return connection_ == nullptr ? 0 : PQbackendPID(connection_); }
  net::Loop& loop() noexcept { return loop_; }
  const std::string& name() const noexcept { return options_->name; }

 private:
  Session(net::Loop& loop, std::shared_ptr<const SessionOptions> options);

  async::Task<void> establish();
  async::Task<void> establish_when_ready(std::chrono::milliseconds patience);
  async::Task<void> set_up();
  async::Task<void> drive_connect();
  async::Task<void> flush();
  async::Task<PGresult*> next_result();
  async::Task<Result> result_after(const Error* error);
  async::Task<Result> run(std::string sql);
  async::Task<void> run_copy(std::string sql, ExecStatusType wanted);
  async::Task<std::vector<DescribedColumn>> run_describe(std::string sql);
  async::Task<Result> all_results();
  async::Task<void> fail_copy();
  async::Task<void> request_cancel();
  async::Task<void> read_off();
  async::Task<void> drain();
  template <class T>
  async::Task<T> stopping_on_error(async::Task<T> task);

  void send(int accepted);
  Error lost();
  Error with_name(Error error) const;
  void open_poll();
  bool has_socket() const noexcept;
  bool busy() const noexcept;

  net::Loop& loop_;
  std::shared_ptr<const SessionOptions> options_;
  PGconn* connection_ = nullptr;
  std::unique_ptr<net::Poll> poll_;
  int version_ = 0;
  std::string version_text_;
  std::string where_;  // "host:port" for messages
  double copy_wait_seconds_ = 0;
  bool loads_ = false;
};

}  // namespace rowferry::postgres
