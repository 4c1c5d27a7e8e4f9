// The token stream of a server's reply (MS-TDS 2.2.4, 2.2.7), parsed as its bytes come, into a typed sink.
#pragma once

#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "tds/wire/type_info.hpp"
#include "tds/wire/types.hpp"

namespace rowferry::tds {

enum class Token : std::uint8_t {
  tvp_row = 0x01,
  offset = 0x78,
  return_status = 0x79,
  columns = 0x81,
  alt_metadata = 0x88,
  data_classification = 0xA3,
  tab_name = 0xA4,
  col_info = 0xA5,
  order = 0xA9,
  error = 0xAA,
  info = 0xAB,
  return_value = 0xAC,
  login_ack = 0xAD,
  feature_ext_ack = 0xAE,
  row = 0xD1,
  nbc_row = 0xD2,
  alt_row = 0xD3,
  env_change = 0xE3,
  session_state = 0xE4,
  sspi = 0xED,
  fedauth_info = 0xEE,
  done = 0xFD,
  done_proc = 0xFE,
  done_in_proc = 0xFF,
};

enum DoneStatus : std::uint16_t {
  done_more = 0x0001,
  done_error = 0x0002,
  done_in_transaction = 0x0004,
  done_count = 0x0010,
  done_attention = 0x0020,
  done_rpc_in_batch = 0x0080,
  done_server_error = 0x0100,
};

struct Done {
  Token kind = Token::done;
  std::uint16_t status = 0;
  std::uint16_t command = 0;
  std::uint64_t rows = 0;
  bool more() const noexcept { return (status & done_more) != 0; }
  bool failed() const noexcept { return (status & (done_error | done_server_error)) != 0; }
  bool has_count() const noexcept { return (status & done_count) != 0; }
  bool attention() const noexcept { return kind == Token::done && (status & done_attention) != 0; }
  // Nothing of this reply follows in the same message (the packet's EOM must agree).
  bool last() const noexcept { return kind != Token::done_in_proc && !more(); }
};

// ERROR or INFO
struct Message {
  bool error = false;
  std::int32_t number = 0;
  std::uint8_t state = 0;
  std::uint8_t severity = 0;  // class
  std::string text;
  std::string server;
  std::string procedure;
  std::int32_t line = 0;
};

enum class Env : std::uint8_t {
  database = 1,
  language = 2,
  charset = 3,
  packet_size = 4,
  collation = 7,
  begin_transaction = 8,
  commit_transaction = 9,
  rollback_transaction = 10,
  mirroring_partner = 13,
  promote_transaction = 15,
  transaction_ended = 17,
  reset_done = 18,
  routing = 20,
};

struct EnvChange {
  Env type{};
  std::string text;        // database, language, packet size, partner; routing: the host
  std::string bytes;       // collation, transaction descriptor: the new value's bytes
  std::uint16_t port = 0;  // routing
};

struct LoginAck {
  std::uint8_t interface = 0;
  std::uint32_t tds_version = 0;  // as printed in the documents: 0x74000004
  std::string program;            // without the NUL characters that servers append
  std::uint8_t major = 0;
  std::uint8_t minor = 0;
  std::uint16_t build = 0;
};

struct ReturnValue {
  std::uint16_t ordinal = 0;
  std::uint8_t status = 0;
  ColumnMeta column;
  ByteView framed;  // as the value would stand in a ROW; valid during the call
};

struct RowProgress {
  enum class Status : std::uint8_t {
    ok,         // stands between rows: the next byte, if any, is no row token
    need_more,  // within a row
    paused,     // between rows; wants to be emptied before it goes on
    malformed,
  };
  Status status = Status::ok;
  std::size_t used = 0;
};

// What the parser tells. Everything but columns, rows, done and message may be left unheard.
class TokenSink {
 public:
  virtual ~TokenSink() = default;
  // `none`: the server sends no metadata (0xFFFF); rows then cannot follow.
  virtual void on_columns(std::vector<ColumnMeta> columns, bool none) = 0;
  // `bytes` starts at a ROW or NBCROW token, or where the row in progress was left. Takes as many rows as there are.
  virtual RowProgress on_rows(ByteView bytes) = 0;
  virtual void on_done(const Done& done) = 0;
  virtual void on_message(Message message) = 0;
  virtual void on_env_change(const EnvChange& change) { (void)change; }
  virtual void on_login_ack(const LoginAck& ack) { (void)ack; }
  // Once per acknowledged feature.
  virtual void on_feature_ack(std::uint8_t feature, ByteView data) { (void)feature, (void)data; }
  virtual void on_return_status(std::int32_t status) { (void)status; }
  virtual void on_return_value(const ReturnValue& value) { (void)value; }
  // SSPI, FEDAUTHINFO, SESSIONSTATE, ORDER, TABNAME, COLINFO, OFFSET: the bytes behind the length.
  virtual void on_other(Token token, ByteView data) { (void)token, (void)data; }
};

// Lifecycle: one for each reply message or for a whole session; holds no bytes, only where it stands.
class TokenParser {
 public:
  enum class Status : std::uint8_t { need_more, paused, malformed };

  explicit TokenParser(TokenSink& sink) : sink_(sink) {}

  // Parses what is there. `used` bytes may be forgotten; call again with the rest and what came behind it.
  // need_more: all whole tokens were taken. paused: the row sink asked for it; call again after emptying it.
  Status feed(ByteView bytes, std::size_t& used);
  // Between tokens: a message may end here.
  bool at_token() const noexcept { return !in_row_; }
  const std::string& why() const noexcept { return why_; }

 private:
  Parsed token(ByteReader& from);
  Parsed counted(Token token, ByteReader& from);
  Parsed large(Token token, ByteReader& from);
  Parsed columns(ByteReader& from);
  Parsed message(Token token, ByteReader& body);
  Parsed env_change(ByteReader& from);
  Parsed login_ack(ByteReader& body);
  Parsed feature_ext_ack(ByteReader& from);
  Parsed return_value(ByteReader& from);
  Parsed done(Token token, ByteReader& from);
  Parsed bad(std::string why);

  TokenSink& sink_;
  bool in_row_ = false;
  bool rows_may_come_ = false;
  std::string why_;
};

}  // namespace rowferry::tds
