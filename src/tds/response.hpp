// Response: what one reply tells, gathered while it is parsed. The session asks it what to do next.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <vector>

#include "tds/result.hpp"
#include "tds/session.hpp"
#include "tds/wire/row_decoder.hpp"
#include "tds/wire/tokens.hpp"

namespace rowferry::tds {

// What the server has changed in the session: outlives every reply.
struct SessionState {
  ServerInfo info;
  std::uint64_t transaction = 0;      // descriptor of the open transaction, as the server's bytes
  std::size_t next_packet_bytes = 0;  // asked for by ENVCHANGE 4; taken over with the next message
  std::string routed_host;            // ENVCHANGE 20: log in there instead
  std::uint16_t routed_port = 0;
  std::string bad_change;  // an ENVCHANGE that cannot be
  void apply(const EnvChange& change);
};

class Response final : public TokenSink {
 public:
  enum class Rows : std::uint8_t {
    discard,
    collect,  // into result()
    stream,   // of the one result set: take_batch()
  };
  Response(SessionState& state, Rows rows, const ReadOptions* options = nullptr)
      : parser(*this), state_(state), rows_(rows), options_(options) {}

  TokenParser parser;

  // The last DONE said that nothing follows.
  bool finished() const noexcept { return finished_; }
  // Acknowledged attention.
  bool attention_seen() const noexcept { return attention_seen_; }
  bool has_error() const noexcept { return !errors_.empty() || failed_done_; }
  const std::vector<Message>& errors() const noexcept { return errors_; }
  bool fatal() const noexcept;
  bool login_acknowledged() const noexcept { return login_acknowledged_; }
  // Only a DONE that says "error", and nothing else: the answer to a message that was taken back.
  bool only_failed_done() const noexcept { return failed_done_ && errors_.empty() && !seen_anything_; }

  // The first failure of our own (a value that cannot be held, a result that cannot be read): ends the request.
  std::exception_ptr failure() const noexcept { return failure_; }
  // Throws Error(server, "server_error") for what the server has reported, if anything.
  void throw_server_error() const;

  // Rows read on are dropped.
  void discard_rows() noexcept;
  // A batch is full: take it before parsing on.
  rows::BatchPtr take_batch();
  QueryResult& result() noexcept { return result_; }
  std::uint64_t rows_seen() const noexcept { return rows_seen_ + (decoder_ ? decoder_->rows_seen() : 0); }
  // The count of the streamed result's DONE.
  std::optional<std::uint64_t> rows_told() const noexcept { return rows_told_; }
  std::vector<ServerMessage>& messages() noexcept { return result_.messages; }
  // As for a new reply: finished() and the like start again.
  void restart() noexcept;

  void on_columns(std::vector<ColumnMeta> columns, bool none) override;
  RowProgress on_rows(ByteView bytes) override;
  void on_done(const Done& done) override;
  void on_message(Message message) override;
  void on_env_change(const EnvChange& change) override;
  void on_login_ack(const LoginAck& ack) override;
  void on_feature_ack(std::uint8_t feature, ByteView data) override;
  void on_return_status(std::int32_t status) override;
  void on_other(Token token, ByteView data) override;

 private:
  void collect();
  void fail(std::exception_ptr error) noexcept;

  SessionState& state_;
  Rows rows_;
  const ReadOptions* options_;
  std::unique_ptr<RowDecoder> decoder_;
  QueryResult result_;
  std::size_t collected_bytes_ = 0;
  std::size_t result_sets_ = 0;
  std::uint64_t rows_seen_ = 0;
  std::optional<std::uint64_t> rows_told_;
  std::vector<Message> errors_;
  bool finished_ = false;
  bool failed_done_ = false;
  bool attention_seen_ = false;
  bool login_acknowledged_ = false;
  bool seen_anything_ = false;
  std::exception_ptr failure_;
};

// True for errors after which the same step may succeed when it is repeated (deadlock victim, Azure's throttling and
// failover).
bool is_transient(const Message& message) noexcept;
ServerFault fault_of(const Message& message);

}  // namespace rowferry::tds
