// The state of the server and of its sessions, shared by the engine's parts.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "sandbox/engine/ast.hpp"
#include "sandbox/engine/engine.hpp"
#include "sandbox/engine/errors.hpp"
#include "sandbox/engine/locks.hpp"
#include "sandbox/engine/turn.hpp"

namespace rowferry::sandbox::engine {

// --- transactions

struct UndoRows {
  std::shared_ptr<TableData> data;
  RowId first;
  std::uint32_t count = 1;
  bool deleted = false;  // else inserted
};
struct UndoDiscard {
  std::shared_ptr<TableData> data;
  std::int64_t rows = 0;
  HashSum hash;
  bool taken_away = false;
};
struct UndoDefinition {
  std::function<void()> undo;
};
using Undo = std::variant<UndoRows, UndoDiscard, UndoDefinition>;

struct Savepoint {
  std::string name;
  std::size_t undo = 0;
};

struct Transaction {
  TransactionId id = 0;
  bool user = false;    // BEGIN TRAN or a transaction manager request; else of one statement
  int count = 0;        // @@TRANCOUNT
  bool doomed = false;  // only ROLLBACK is possible
  std::string name;
  std::vector<Undo> undo;
  std::vector<std::shared_ptr<TableData>> touched;  // counts are settled at the end, also of what was undone
  std::vector<Savepoint> savepoints;
  std::int64_t began = 0;
  Moment snapshot = 0;  // under SNAPSHOT, from the first table that it reads
};

// --- sessions

struct Settings {
  bool quoted_identifier = true;
  bool ansi_nulls = true;
  bool ansi_null_dflt_on = true;
  bool ansi_padding = true;
  bool ansi_warnings = true;
  bool arithabort = true;
  bool concat_null_yields_null = true;
  bool numeric_roundabort = false;
  bool cursor_close_on_commit = false;
  bool implicit_transactions = false;
  bool xact_abort = false;
  bool nocount = false;
  bool fmtonly = false;
  bool noexec = false;
  bool parseonly = false;
  std::int64_t textsize = 2'147'483'647;
  std::int64_t rowcount = 0;
  int lock_timeout_ms = -1;
  int isolation = 2;  // 1 RU, 2 RC, 3 RR, 4 serializable, 5 snapshot
  int datefirst = 7;
  int deadlock_priority = 0;
  std::string language = "us_english";
  std::string dateformat = "mdy";
};

struct Variable {
  Type type;
  Value value;
  ObjectPtr table;  // of table variables
};

struct TryFrame {
  std::size_t handler = 0;
};

// What is called with parameters: the places that OUTPUT values go back to.
struct OutputBinding {
  std::string inner;  // parameter in the called frame
  std::string outer;  // variable of the caller; empty: a RETURNVALUE token
  std::uint16_t ordinal = 0;
  std::string name;
};

struct Frame {
  enum class Kind : std::uint8_t { batch, dynamic, procedure };
  Kind kind = Kind::batch;
  ProgramPtr program;
  std::size_t at = 0;
  std::unordered_map<std::string, Variable> variables;  // by folded name with @
  std::vector<TryFrame> tries;
  std::vector<Message> caught;  // of the enclosing CATCH blocks
  std::string procedure;        // name for messages
  std::int32_t status = 0;
  std::string result_variable;  // of the caller
  std::vector<OutputBinding> outputs;
  bool sends_status = false;        // RETURNSTATUS and DONEPROC when it ends
  std::vector<std::string> tables;  // #tables made here, dropped at the end
  Settings restored;                // dynamic and procedures: SET options end with them
  std::string restored_database;
};

// Rows that a statement gives, pulled as the writer takes them.
class RowSource {
 public:
  enum class Pull : std::uint8_t { rows, end, not_yet };

  virtual ~RowSource() = default;
  // Appends up to `rows_max` rows, and about limits::sandbox_rows_bytes. `end`: these are the last. `not_yet`: the
  // portion is over, call again. May throw SqlError and WouldBlock, with no rows given: then the next call goes on.
  virtual Pull fill(RowTokens& out, std::size_t rows_max, Turn& turn) = 0;
};

struct PreparedStatement {
  std::string text;
  std::string parameters;
};

struct BulkLoad;  // bulk.cpp

struct ServerState {
  Options options;
  std::map<std::string, std::shared_ptr<Database>> databases;  // by folded name
  Locks locks;
  std::map<int, SessionState*> sessions;
  std::unordered_map<TransactionId, int> owners;
  std::function<void(int)> wake, kill;
  TransactionId last_transaction = 0;
  std::uint64_t row_version = 2000;
  Moment moment = 1;                                // of the last commit
  std::multiset<Moment> snapshots;                  // that statements and transactions look at
  std::vector<std::weak_ptr<TableData>> versioned;  // tables that keep versions for them
  std::int64_t started = 0;
  int next_database_id = 5;

  std::shared_ptr<Database> database(std::string_view name) const;
  std::shared_ptr<Database> make_database(const std::string& name, const std::string& collation, int id);
  std::chrono::steady_clock::time_point now() const;
  void wake_waiting(int except);
};

struct SessionState {
  ServerState* server = nullptr;
  SessionInfo info;
  int spid = 0;
  Settings settings, initial;
  std::shared_ptr<Database> database;
  std::string login_database;
  std::unique_ptr<Transaction> transaction;
  std::map<std::string, ObjectPtr> temporary;  // #tables, by folded name
  int next_temporary_id = -1;
  std::map<int, PreparedStatement> prepared;
  int next_handle = 1;
  std::optional<std::pair<int, std::string>> identity_insert;  // object id, and its name for messages
  std::int64_t login_time = 0, last_request = 0;

  // @@ values
  std::int64_t row_count = 0;
  int last_error = 0;
  std::optional<Int128> scope_identity, last_identity;

  // the running request
  std::vector<std::unique_ptr<Frame>> frames;
  std::unique_ptr<RowSource> rows;  // of the statement at hand
  RowTokens row_tokens;
  Turn turn;
  Moment snapshot = 0;  // of the statement at hand: READ_COMMITTED_SNAPSHOT, and SNAPSHOT outside of transactions
  std::uint64_t rows_sent = 0;
  Done rows_done;
  std::string rows_assign;
  bool active = false;
  bool is_call = false;
  bool any_token = false;  // a Done was given
  std::optional<TransactionRequest> manager_request;
  std::function<void(struct Context&)> call_start;  // begins an RPC; run again after a wait
  std::optional<std::chrono::steady_clock::time_point> delay_until;
  bool waiting = false;
  int waiting_for = 0;
  std::optional<std::chrono::steady_clock::time_point> wait_until;
  std::optional<int> lock_wait_ms;  // of the operation at hand, instead of LOCK_TIMEOUT (sp_getapplock)
  bool lock_wait_expired = false;   // the operation with its own limit has waited long enough
  bool fatal = false;
  bool last_in_procedure = false;  // the last Done was of a statement within a procedure
  bool statement_has_rows = false;
  bool statement_advanced = false;  // the frame stands behind the statement at hand
  bool failed = false;              // the request ended with an error
  std::size_t statement_undo = 0;   // where the statement's undo log began
  bool statement_open = false;
  std::unique_ptr<BulkLoad> bulk;

  SessionState();
  ~SessionState();
};

// What the parts are given to work with.
struct Context {
  SessionState& session;
  ServerState& server;
  ResultWriter& writer;

  Frame& frame() const { return *session.frames.back(); }
  Settings& settings() const { return session.settings; }
  const tds::Collation& collation() const { return session.database->collation; }
};

// --- transactions.cpp
Transaction& transaction_of(SessionState& session);         // the open one, or one for this statement
TransactionId transaction_id(const SessionState& session);  // 0 when none is open
void log_undo(SessionState& session, Undo undo);
void undo_to(SessionState& session, std::size_t place);
void commit_transaction(SessionState& session, ResultWriter* writer);
void rollback_transaction(SessionState& session, ResultWriter* writer);
void begin_user_transaction(SessionState& session, const std::string& name, ResultWriter& writer);
void end_statement_locks(SessionState& session);  // and its snapshot
// The moment that the session's versioned reads look at; begins it.
Moment take_snapshot(SessionState& session, bool of_transaction);
Moment snapshot_of(const SessionState& session);
[[noreturn]] void block_on_transaction(const ServerState& server, TransactionId other);
std::uint64_t descriptor_of(const Transaction& transaction);

}  // namespace rowferry::sandbox::engine
