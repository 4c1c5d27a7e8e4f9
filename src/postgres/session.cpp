#include "postgres/session.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstring>

#include "base/limits.hpp"
#include "base/log.hpp"
#include "net/stream.hpp"
#include "postgres/dialect.hpp"
#include "postgres/fault.hpp"

namespace rowferry::postgres {

namespace {

constexpr int oldest_version = 120000;

// Everything that changes what a statement means or gives, whatever role, database or configuration file say.
std::string settings(int version) {
  std::string sql =
      "SET client_encoding = 'UTF8'; SET standard_conforming_strings = on; SET row_security = off; "
      "SET DateStyle = 'ISO, YMD'; SET IntervalStyle = 'postgres'; SET TimeZone = 'UTC'; SET extra_float_digits = 1; "
      "SET bytea_output = 'hex'; SET search_path = ''; SET quote_all_identifiers = off; SET xmloption = 'content'; "
      "SET statement_timeout = 0; SET lock_timeout = 0; SET idle_in_transaction_session_timeout = 0; "
      // A scan that begins where another session's is would give LIMIT and the like other rows in every statement.
      "SET synchronize_seqscans = off";
  if (version >= 140000) sql += "; SET idle_session_timeout = 0";
  if (version >= 170000) sql += "; SET transaction_timeout = 0";
  return sql;
}

void on_notice(void* argument, const PGresult* result) {
  const char* severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
  const char* message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
  if (message == nullptr) return;
  const bool warning = severity != nullptr && std::string_view(severity) == "WARNING";
  log::write(warning ? log::Level::warning : log::Level::debug, "notice from PostgreSQL",
             {{"connection", static_cast<const SessionOptions*>(argument)->name}, {"notice", message}});
}

struct ConnInfoFree {
  void operator()(PQconninfoOption* options) const noexcept { PQconninfoFree(options); }
};

// The hosts that libpq would use: the dsn's, else the environment's, else its default socket.
std::string default_of(const char* keyword) {
  const std::unique_ptr<PQconninfoOption, ConnInfoFree> defaults(PQconndefaults());
  for (const PQconninfoOption* option = defaults.get(); option != nullptr && option->keyword != nullptr; ++option) {
    if (std::string_view(option->keyword) == keyword) return option->val == nullptr ? "" : option->val;
  }
  return {};
}

bool is_socket_path(std::string_view host) { return host.empty() || host.front() == '/' || host.front() == '@'; }

struct HostLists {
  std::string hosts, addresses, ports;
  void add(std::string_view host, std::string_view address, std::string_view port) {
    const std::string comma = count++ == 0 ? "" : ",";
    hosts.append(comma).append(host);
    addresses.append(comma).append(address);
    ports.append(comma).append(port);
  }
  int count = 0;
};

// Gives every host its address, so that libpq has no name to resolve; a host of many addresses becomes many hosts.
async::Task<void> resolve_hosts(net::Loop& loop, Parameters* parameters) {
  std::string host(parameter(*parameters, "host"));
  std::string port(parameter(*parameters, "port"));
  if (!parameter(*parameters, "hostaddr").empty()) co_return;
  if (host.empty()) {
    if (!default_of("hostaddr").empty()) co_return;
    host = default_of("host");
  }
  if (port.empty()) port = default_of("port");
  const std::vector<std::string> hosts = split_list(host);
  const std::vector<std::string> ports = split_list(port);
  if (ports.size() != 1 && ports.size() != hosts.size()) {
    throw Error(Category::input, "bad_dsn", "dsn: the number of ports is not that of hosts").with_field("dsn");
  }
  HostLists lists;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    const std::string& one_port = ports.size() == 1 ? ports[0] : ports[i];
    if (is_socket_path(hosts[i])) {
      lists.add(hosts[i], "", one_port);
      continue;
    }
    for (const net::Endpoint& endpoint : co_await net::resolve(loop, hosts[i], 0)) {
      lists.add(hosts[i], endpoint.address, one_port);
    }
  }
  set_parameter(*parameters, "host", lists.hosts);
  set_parameter(*parameters, "hostaddr", lists.addresses);
  set_parameter(*parameters, "port", lists.ports);
}

void set_default(Parameters& parameters, std::string_view keyword, std::string value) {
  if (parameter(parameters, keyword).empty()) set_parameter(parameters, keyword, std::move(value));
}

}  // namespace

int Result::column(const char* name) const {
  const int at = PQfnumber(result_.get(), name);
  if (at < 0) throw Error(Category::internal, "no_such_column", fmt::format("a statement gave no column {}", name));
  return at;
}
bool Result::null(int row, const char* name) const { return PQgetisnull(result_.get(), row, column(name)) != 0; }
std::string_view Result::text(int row, const char* name) const {
  const int at = column(name);
  return {PQgetvalue(result_.get(), row, at), static_cast<std::size_t>(PQgetlength(result_.get(), row, at))};
}
std::int64_t Result::integer(int row, const char* name) const {
  const std::string_view digits = text(row, name);
  std::int64_t value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}
double Result::real(int row, const char* name) const {
  const std::string_view digits = text(row, name);
  double value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}
std::uint64_t Result::affected() const noexcept {
  const std::string_view digits = PQcmdTuples(result_.get());
  std::uint64_t value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

Session::Session(net::Loop& loop, std::shared_ptr<const SessionOptions> options)
    : loop_(loop), options_(std::move(options)) {}

Session::~Session() { close(); }

void Session::close() noexcept {
  poll_.reset();  // before the descriptor: libpq closes it
  if (connection_ != nullptr) PQfinish(std::exchange(connection_, nullptr));
}

Error Session::with_name(Error error) const {
  if (loads_) error = of_target(std::move(error));
  error.with_connection(options_->name);
  return error;
}

Error Session::lost() {
  Error error = lost_error(connection_ == nullptr ? "" : PQerrorMessage(connection_), where_);
  close();
  return with_name(std::move(error));
}

void Session::open_poll() {
  poll_.reset();  // one active poll per descriptor, and libpq may have the same number for another socket
  const int fd = PQsocket(connection_);
  if (fd < 0) throw with_name(connect_error(PQerrorMessage(connection_), where_));
  poll_ = std::make_unique<net::Poll>(loop_, fd);
}

async::Task<std::unique_ptr<Session>> Session::connect(net::Loop& loop, std::shared_ptr<const SessionOptions> options) {
  const auto timeout = options->connect_timeout.count() > 0 ? options->connect_timeout : limits::connect_timeout;
  std::unique_ptr<Session> session(new Session(loop, std::move(options)));
  try {
    co_await net::with_deadline(loop, timeout, "connecting to PostgreSQL",
                                session->establish_when_ready(timeout * 2 / 3));
  } catch (Error& e) {
    throw session->with_name(e);
  }
  co_return session;
}

// A server that is starting refuses every login for a while, and says so (57P03).
async::Task<void> Session::establish_when_ready(std::chrono::milliseconds patience) {
  const auto until = std::chrono::steady_clock::now() + patience;
  for (;;) {
    try {
      co_await establish();
      co_return;
    } catch (const Error& error) {
      const bool starting = error.code() == "server_not_ready";
      if (!starting || std::chrono::steady_clock::now() + limits::pg_not_ready_pause >= until) throw;
    }
    close();
    co_await net::sleep_for(loop_, limits::pg_not_ready_pause);
  }
}

async::Task<void> Session::establish() {
  Parameters parameters = options_->parameters;
  co_await resolve_hosts(loop_, &parameters);
  std::string password;
  if (options_->password) password = (co_await net::offload(loop_, options_->password)).reveal();
  set_default(parameters, "application_name",
              options_->application_name.empty() ? "rowferry" : options_->application_name);
  set_default(parameters, "gssencmode", "disable");
  // A pooler or firewall that forgets an idle session would end a snapshot unseen.
  set_default(parameters, "keepalives_idle", std::to_string(limits::pg_keepalive_idle.count()));
  set_parameter(parameters, "client_encoding", "UTF8");
  where_ = fmt::format("{}:{}", parameter(options_->parameters, "host"), parameter(parameters, "port"));

  std::vector<const char*> keywords, values;
  for (const auto& [keyword, value] : parameters) {
    keywords.push_back(keyword.c_str());
    values.push_back(value.c_str());
  }
  if (!password.empty()) {
    keywords.push_back("password");
    values.push_back(password.c_str());
  }
  keywords.push_back(nullptr);
  values.push_back(nullptr);
  connection_ = PQconnectStartParams(keywords.data(), values.data(), 0);
  explicit_bzero(password.data(), password.size());
  if (connection_ == nullptr) throw std::bad_alloc();
  // Only so does libpq tell the SQLSTATE of a refused login.
  PQsetErrorVerbosity(connection_, PQERRORS_VERBOSE);
  PQsetNoticeReceiver(connection_, on_notice, const_cast<SessionOptions*>(options_.get()));
  co_await drive_connect();
  co_await set_up();
}

async::Task<void> Session::drive_connect() {
  if (PQstatus(connection_) == CONNECTION_BAD) throw connect_error(PQerrorMessage(connection_), where_);
  auto wanted = net::Ready::writable;
  for (;;) {
    open_poll();
    co_await poll_->wait(wanted);
    poll_.reset();  // PQconnectPoll may close this socket and open another
    const PostgresPollingStatusType status = PQconnectPoll(connection_);
    if (status == PGRES_POLLING_OK) break;
    if (status == PGRES_POLLING_FAILED) throw connect_error(PQerrorMessage(connection_), where_);
    wanted = status == PGRES_POLLING_READING ? net::Ready::readable : net::Ready::writable;
  }
  PQsetErrorVerbosity(connection_, PQERRORS_DEFAULT);
  if (PQsetnonblocking(connection_, 1) != 0) throw connect_error(PQerrorMessage(connection_), where_);
  open_poll();
}

async::Task<void> Session::set_up() {
  version_ = PQserverVersion(connection_);
  const char* text = PQparameterStatus(connection_, "server_version");
  version_text_ = text == nullptr ? std::to_string(version_) : text;
  if (version_ < oldest_version) {
    throw Error(Category::unsupported, "server_too_old",
                fmt::format("PostgreSQL {} is not supported: 12 is the oldest", version_text_));
  }
  co_await query(settings(version_));
}

// The manual's rule: while PQflush gives 1, wait for either direction, and read before trying again.
async::Task<void> Session::flush() {
  for (;;) {
    const int left = PQflush(connection_);
    if (left < 0) throw lost();
    if (left == 0) co_return;
    if (!has_socket()) throw lost();
    const net::Ready got = co_await poll_->wait(net::Ready::both);
    if ((got & net::Ready::readable) != net::Ready::none && PQconsumeInput(connection_) == 0) throw lost();
  }
}

// libpq closes it by itself when the server has gone; a poll of the old descriptor would wait for ever.
bool Session::has_socket() const noexcept { return PQsocket(connection_) >= 0; }

async::Task<void> Session::more_input() {
  if (!has_socket()) throw lost();
  co_await poll_->wait(net::Ready::readable);
  if (PQconsumeInput(connection_) == 0) throw lost();
}

async::Task<PGresult*> Session::next_result() {
  while (PQisBusy(connection_) != 0) co_await more_input();
  co_return PQgetResult(connection_);
}

void Session::send(int accepted) {
  if (accepted == 0) throw lost();
}

bool Session::busy() const noexcept {
  return connection_ != nullptr && PQtransactionStatus(connection_) == PQTRANS_ACTIVE;
}

bool Session::in_transaction() const noexcept {
  if (connection_ == nullptr) return false;
  const PGTransactionStatusType status = PQtransactionStatus(connection_);
  return status == PQTRANS_INTRANS || status == PQTRANS_INERROR;
}

// The next result. A connection that breaks behind an error was broken by it (a terminated backend says why, and then
// closes): the end of results then, so that the reason is what is told.
async::Task<Result> Session::result_after(const Error* error) {
  try {
    co_return Result(co_await next_result());
  } catch (const Error& broken) {
    if (error == nullptr || broken.category() == Category::cancelled) throw;
  }
  co_return Result(nullptr);
}

// Reads every result; the first error is thrown once the session is idle again.
async::Task<Result> Session::all_results() {
  Result last(nullptr);
  std::optional<Error> error;
  for (;;) {
    Result result = co_await result_after(error ? &*error : nullptr);
    if (result.get() == nullptr) break;
    const ExecStatusType status = PQresultStatus(result.get());
    if (status == PGRES_FATAL_ERROR || status == PGRES_BAD_RESPONSE) {
      if (!error) error = with_name(result_error(result.get()));
    } else if (status == PGRES_COPY_IN || status == PGRES_COPY_OUT || status == PGRES_COPY_BOTH) {
      throw Error(Category::internal, "unexpected_copy", "a statement turned out to be a COPY");
    } else {
      last = std::move(result);
    }
  }
  if (PQstatus(connection_) == CONNECTION_BAD) {
    if (!error) throw lost();
    close();
  }
  if (error) throw *error;
  co_return last;
}

async::Task<Result> Session::run(std::string sql) {
  if (connection_ == nullptr) throw with_name(lost_error("the session is closed", where_));
  send(PQsendQuery(connection_, sql.c_str()));
  co_await flush();
  co_return co_await all_results();
}

async::Task<void> Session::run_copy(std::string sql, ExecStatusType wanted) {
  if (connection_ == nullptr) throw with_name(lost_error("the session is closed", where_));
  send(PQsendQuery(connection_, sql.c_str()));
  co_await flush();
  Result result(co_await next_result());
  if (result.get() == nullptr) throw lost();
  if (PQresultStatus(result.get()) == wanted) co_return;
  std::optional<Error> error;
  if (PQresultStatus(result.get()) == PGRES_FATAL_ERROR) error = with_name(result_error(result.get()));
  co_await all_results();
  if (error) throw *error;
  throw Error(Category::internal, "no_copy", "the server did not start the COPY");
}

async::Task<std::vector<DescribedColumn>> Session::run_describe(std::string sql) {
  if (connection_ == nullptr) throw with_name(lost_error("the session is closed", where_));
  send(PQsendPrepare(connection_, "", sql.c_str(), 0, nullptr));
  co_await flush();
  co_await all_results();
  send(PQsendDescribePrepared(connection_, ""));
  co_await flush();
  const Result result = co_await all_results();
  if (PQnparams(result.get()) != 0) {
    throw Error(Category::input, "query_has_parameters", "the query has parameters ($1, …), which have no values here");
  }
  std::vector<DescribedColumn> columns;
  for (int i = 0; i < PQnfields(result.get()); ++i) {
    columns.push_back({PQfname(result.get(), i), PQftype(result.get(), i), PQfmod(result.get(), i)});
  }
  co_return columns;
}

// A wait that was cancelled in the middle of a statement must not leave the statement running.
template <class T>
async::Task<T> Session::stopping_on_error(async::Task<T> task) {
  std::exception_ptr error;
  try {
    co_return co_await std::move(task);
  } catch (...) {
    error = std::current_exception();
  }
  if (busy()) co_await async::shield(stop());
  std::rethrow_exception(error);
}

async::Task<Result> Session::query(std::string sql) { co_return co_await stopping_on_error(run(std::move(sql))); }
async::Task<std::vector<DescribedColumn>> Session::describe(std::string sql) {
  co_return co_await stopping_on_error(run_describe(std::move(sql)));
}
async::Task<void> Session::start_copy_out(std::string sql) {
  co_await stopping_on_error(run_copy(std::move(sql), PGRES_COPY_OUT));
}
async::Task<void> Session::start_copy_in(std::string sql) {
  co_await stopping_on_error(run_copy(std::move(sql), PGRES_COPY_IN));
}

Session::Row Session::copy_row(char*& data, int& size) {
  if (connection_ == nullptr) throw with_name(lost_error("the session is closed", where_));
  size = PQgetCopyData(connection_, &data, 1);
  if (size > 0) return Row::row;
  if (size == 0) return Row::none_yet;
  // -1 is the end, -2 an error; both are told in full by the result that follows.
  return Row::end;
}

async::Task<std::uint64_t> Session::finish_copy() {
  const Result result = co_await all_results();
  if (result.get() == nullptr) throw lost();
  co_return result.affected();
}

// Sends what libpq holds, then waits until the socket takes more: what the caller has next is not piled up in libpq's
// buffer, which knows no bound of its own.
async::Task<void> Session::put_copy(ByteView bytes) {
  if (connection_ == nullptr) throw with_name(lost_error("the session is closed", where_));
  const char* const data = reinterpret_cast<const char*>(bytes.data());
  for (;;) {
    const int put = PQputCopyData(connection_, data, static_cast<int>(bytes.size()));
    if (put < 0) throw lost();
    const int left = PQflush(connection_);
    if (left < 0) throw lost();
    if (!has_socket()) co_await fail_copy();  // its last words may have been read
    const auto began = std::chrono::steady_clock::now();
    const net::Ready got = co_await poll_->wait(net::Ready::both);
    copy_wait_seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    if ((got & net::Ready::readable) != net::Ready::none) {
      if (PQconsumeInput(connection_) == 0) throw lost();
      co_await fail_copy();  // throws what the server has said
    }
    if (put == 0) continue;
    if (left == 0) co_return;
    bytes = {};
  }
}

// The server has spoken in the middle of a COPY: it has failed. What it said comes when the COPY is ended.
async::Task<void> Session::fail_copy() {
  if (PQputCopyEnd(connection_, "the COPY was given up") < 0) throw lost();
  co_await flush();
  co_await all_results();
  throw with_name(Error(Category::server, "copy_ended", "the server ended the COPY without a reason").mark_transient());
}

async::Task<std::uint64_t> Session::end_copy_in() {
  if (connection_ == nullptr) throw with_name(lost_error("the session is closed", where_));
  if (PQputCopyEnd(connection_, nullptr) < 0) throw lost();
  co_await flush();
  co_return co_await finish_copy();
}

async::Task<void> Session::request_cancel() {
  struct CancelFree {
    void operator()(PGcancel* cancel) const noexcept { PQfreeCancel(cancel); }
  };
  // Shared with the thread: the blocking call may outlive this wait.
  const std::shared_ptr<PGcancel> cancel(PQgetCancel(connection_), CancelFree());
  if (!cancel) co_return;
  co_await net::offload(loop_, [cancel] {
    char message[256];
    PQcancel(cancel.get(), message, sizeof message);
  });
}

async::Task<void> Session::read_off() {
  for (;;) {
    Result result(co_await next_result());
    if (result.get() == nullptr) co_return;
    const ExecStatusType status = PQresultStatus(result.get());
    if (status == PGRES_COPY_IN) {
      if (PQputCopyEnd(connection_, "the COPY was given up") < 0) throw lost();
      co_await flush();
    }
    if (status != PGRES_COPY_OUT) continue;
    char* data = nullptr;
    for (int size = 0; size != -1 && size != -2;) {
      size = PQgetCopyData(connection_, &data, 1);
      if (size > 0) PQfreemem(data);
      if (size == 0) co_await more_input();
    }
  }
}

async::Task<void> Session::drain() {
  // A COPY that waits for rows ends by itself when it is told to; only one that is stuck must be cancelled.
  const bool waits_for_rows =
      PQisBusy(connection_) == 0 && PQresultStatus(Result(PQgetResult(connection_)).get()) == PGRES_COPY_IN;
  if (waits_for_rows) {
    bool ended = true;
    try {
      co_await net::with_deadline(loop_, limits::pg_copy_fail_wait, "failing a COPY", read_off());
    } catch (const Error& error) {
      if (error.category() != Category::timeout) throw;
      ended = false;
    }
    if (ended) co_return;
  }
  co_await request_cancel();
  co_await read_off();
}

async::Task<void> Session::stop() {
  if (!busy()) co_return;
  try {
    co_await net::with_deadline(loop_, limits::pg_cancel_wait, "stopping a statement", drain());
  } catch (const std::exception&) {
    close();  // whatever it was, a session in an unknown state is not used again
  }
  if (busy()) close();
}

bool Session::alive() noexcept {
  if (connection_ == nullptr) return false;
  if (busy()) return true;  // its owner will see
  // Twice: the first may read only the server's last words, the second finds the end behind them.
  if (PQconsumeInput(connection_) == 0 || PQconsumeInput(connection_) == 0 || PQstatus(connection_) == CONNECTION_BAD) {
    close();
    return false;
  }
  return true;
}

}  // namespace rowferry::postgres
