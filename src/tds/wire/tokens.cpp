#include "tds/wire/tokens.hpp"

#include <fmt/format.h>

#include "base/limits.hpp"
#include "base/text.hpp"
#include "tds/wire/row_decoder.hpp"

namespace rowferry::tds {

namespace {

bool is_row(std::uint8_t token) noexcept {
  return token == static_cast<std::uint8_t>(Token::row) || token == static_cast<std::uint8_t>(Token::nbc_row);
}

std::string read_b_varbyte(ByteReader& from) { return std::string(as_text(from.bytes(from.u8()))); }

}  // namespace

Parsed TokenParser::bad(std::string why) {
  why_ = std::move(why);
  return Parsed::malformed;
}

TokenParser::Status TokenParser::feed(ByteView bytes, std::size_t& used) {
  used = 0;
  while (used < bytes.size()) {
    if (in_row_ || is_row(bytes[used])) {
      if (!in_row_ && !rows_may_come_) {
        bad("a row without column descriptions");
        return Status::malformed;
      }
      const RowProgress rows = sink_.on_rows(bytes.subspan(used));
      used += rows.used;
      in_row_ = rows.status == RowProgress::Status::need_more;
      if (in_row_) return Status::need_more;
      if (rows.status == RowProgress::Status::paused) return Status::paused;
      if (rows.status == RowProgress::Status::malformed) {
        if (why_.empty()) why_ = "a row does not follow its column descriptions";
        return Status::malformed;
      }
      continue;
    }
    ByteReader from(bytes.subspan(used));
    switch (token(from)) {
      case Parsed::ok:
        used = bytes.size() - from.left();
        break;
      case Parsed::need_more:
        if (bytes.size() - used <= limits::tds_token_bytes_max) return Status::need_more;
        bad(fmt::format("token 0x{:02X} is too long", bytes[used]));
        return Status::malformed;
      case Parsed::malformed:
        return Status::malformed;
    }
  }
  return Status::need_more;
}

Parsed TokenParser::token(ByteReader& from) {
  const auto id = static_cast<Token>(from.u8());
  switch (id) {
    case Token::columns:
      return columns(from);
    case Token::done:
    case Token::done_proc:
    case Token::done_in_proc:
      return done(id, from);
    case Token::return_status: {
      const auto status = from.le<std::int32_t>();
      if (from.failed()) return Parsed::need_more;
      sink_.on_return_status(status);
      return Parsed::ok;
    }
    case Token::env_change:
      return env_change(from);
    case Token::feature_ext_ack:
      return feature_ext_ack(from);
    case Token::return_value:
      return return_value(from);
    case Token::offset: {
      const ByteView data = from.bytes(4);
      if (from.failed()) return Parsed::need_more;
      sink_.on_other(id, data);
      return Parsed::ok;
    }
    case Token::error:
    case Token::info:
    case Token::login_ack:
    case Token::order:
    case Token::tab_name:
    case Token::col_info:
    case Token::sspi:
      return counted(id, from);
    case Token::session_state:
    case Token::fedauth_info:
      return large(id, from);
    case Token::alt_metadata:
    case Token::alt_row:
      return bad("results of COMPUTE are not supported");
    default:
      return bad(fmt::format("token 0x{:02X} is not known", static_cast<int>(id)));
  }
}

Parsed TokenParser::counted(Token token, ByteReader& from) {
  const ByteView body = from.bytes(from.u16());
  if (from.failed()) return Parsed::need_more;
  ByteReader reader(body);
  switch (token) {
    case Token::error:
    case Token::info:
      return message(token, reader);
    case Token::login_ack:
      return login_ack(reader);
    default:
      sink_.on_other(token, body);
      return Parsed::ok;
  }
}

Parsed TokenParser::large(Token token, ByteReader& from) {
  const std::uint32_t length = from.u32();
  if (!from.failed() && length > limits::tds_token_bytes_max) {
    return bad(fmt::format("token 0x{:02X} claims {} bytes", static_cast<int>(token), length));
  }
  const ByteView body = from.bytes(length);
  if (from.failed()) return Parsed::need_more;
  sink_.on_other(token, body);
  return Parsed::ok;
}

Parsed TokenParser::columns(ByteReader& from) {
  std::vector<ColumnMeta> columns;
  bool none = false;
  const Parsed parsed = read_columns(from, columns, none, MetaPlace::result, why_);
  if (parsed != Parsed::ok) return parsed;
  rows_may_come_ = !none;
  sink_.on_columns(std::move(columns), none);
  return Parsed::ok;
}

Parsed TokenParser::message(Token token, ByteReader& body) {
  Message message;
  message.error = token == Token::error;
  message.number = body.le<std::int32_t>();
  message.state = body.u8();
  message.severity = body.u8();
  message.text = read_us_varchar(body);
  message.server = read_b_varchar(body);
  message.procedure = read_b_varchar(body);
  message.line = body.le<std::int32_t>();
  if (body.failed()) return bad("a message is longer than its token");
  sink_.on_message(std::move(message));
  return Parsed::ok;
}

// The token's length is not to be trusted for type 15 (MS-TDS 2.2.7.9): its value has a length of four bytes of its
// own.
Parsed TokenParser::env_change(ByteReader& from) {
  const std::uint16_t length = from.u16();
  if (from.failed()) return Parsed::need_more;
  EnvChange change;
  if (length != 0 && from.left() != 0 && from.position()[0] == static_cast<std::uint8_t>(Env::promote_transaction)) {
    change.type = static_cast<Env>(from.u8());
    const std::uint32_t size = from.u32();
    if (!from.failed() && size > limits::tds_token_bytes_max) return bad("a DTC transaction token is too long");
    change.bytes = std::string(as_text(from.bytes(size)));
    from.u8();
    if (from.failed()) return Parsed::need_more;
    sink_.on_env_change(change);
    return Parsed::ok;
  }
  const ByteView bytes = from.bytes(length);
  if (from.failed()) return Parsed::need_more;
  ByteReader body(bytes);
  change.type = static_cast<Env>(body.u8());
  switch (change.type) {
    case Env::database:
    case Env::language:
    case Env::charset:
    case Env::packet_size:
    case Env::mirroring_partner:
      change.text = read_b_varchar(body);
      break;
    case Env::collation:
    case Env::begin_transaction:
    case Env::commit_transaction:
    case Env::rollback_transaction:
    case Env::transaction_ended:
      change.bytes = read_b_varbyte(body);
      break;
    case Env::routing: {
      body.u16();  // length of the value
      body.u8();   // protocol: TCP
      change.port = body.u16();
      change.text = read_us_varchar(body);
      break;
    }
    default:
      break;  // nothing that concerns us
  }
  if (body.failed()) return bad(fmt::format("environment change {} is cut short", static_cast<int>(change.type)));
  sink_.on_env_change(change);
  return Parsed::ok;
}

Parsed TokenParser::login_ack(ByteReader& body) {
  LoginAck ack;
  ack.interface = body.u8();
  ack.tds_version = body.be<std::uint32_t>();
  ack.program = read_b_varchar(body);
  ack.major = body.u8();
  ack.minor = body.u8();
  ack.build = body.be<std::uint16_t>();
  if (body.failed()) return bad("the login acknowledgement is cut short");
  while (!ack.program.empty() && ack.program.back() == '\0') ack.program.pop_back();
  sink_.on_login_ack(ack);
  return Parsed::ok;
}

// Has no length of its own: it ends at the id 0xFF. Told only when it is complete.
Parsed TokenParser::feature_ext_ack(ByteReader& from) {
  struct Ack {
    std::uint8_t feature;
    ByteView data;
  };
  std::vector<Ack> acks;
  while (true) {
    const std::uint8_t feature = from.u8();
    if (from.failed()) return Parsed::need_more;
    if (feature == 0xFF) break;
    const std::uint32_t length = from.u32();
    if (!from.failed() && length > limits::tds_token_bytes_max) return bad("a feature acknowledgement is too long");
    const ByteView data = from.bytes(length);
    if (from.failed()) return Parsed::need_more;
    acks.push_back({feature, data});
  }
  for (const Ack& ack : acks) sink_.on_feature_ack(ack.feature, ack.data);
  return Parsed::ok;
}

Parsed TokenParser::return_value(ByteReader& from) {
  ReturnValue value;
  value.ordinal = from.u16();
  value.column.name = read_b_varchar(from);
  value.status = from.u8();
  value.column.user_type = from.u32();
  value.column.flags = from.u16();
  if (from.failed()) return Parsed::need_more;
  if (const Parsed type = read_type_info(from, value.column.type, MetaPlace::parameter, why_); type != Parsed::ok) {
    return type;
  }
  const std::uint8_t* const begin = from.position();
  const Parsed skipped = skip_value(from, value.column.type);
  if (skipped == Parsed::malformed) return bad("an output parameter's value does not follow its type");
  if (skipped == Parsed::need_more) return skipped;
  value.framed = {begin, static_cast<std::size_t>(from.position() - begin)};
  sink_.on_return_value(value);
  return Parsed::ok;
}

Parsed TokenParser::done(Token token, ByteReader& from) {
  Done done;
  done.kind = token;
  done.status = from.u16();
  done.command = from.u16();
  done.rows = from.u64();
  if (from.failed()) return Parsed::need_more;
  rows_may_come_ = false;
  sink_.on_done(done);
  return Parsed::ok;
}

}  // namespace rowferry::tds
