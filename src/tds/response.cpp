#include "tds/response.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/error.hpp"
#include "base/limits.hpp"
#include "tds/wire/collation.hpp"
#include "tds/wire/login7.hpp"
#include "tds/wire/packet.hpp"

namespace rowferry::tds {

namespace {

constexpr std::uint8_t fatal_severity = 20;

std::uint64_t descriptor(const std::string& bytes) {
  return bytes.size() == 8 ? load_le<std::uint64_t>(reinterpret_cast<const std::uint8_t*>(bytes.data())) : 0;
}

}  // namespace

void SessionState::apply(const EnvChange& change) {
  switch (change.type) {
    case Env::database:
      info.database = change.text;
      break;
    case Env::language:
      info.language = change.text;
      break;
    case Env::packet_size: {
      std::size_t bytes = 0;
      const char* const end = change.text.data() + change.text.size();
      const auto parsed = std::from_chars(change.text.data(), end, bytes);
      if (parsed.ec != std::errc() || parsed.ptr != end || bytes < packet_bytes_min || bytes > packet_bytes_max) {
        bad_change = fmt::format("a packet size of \"{}\"", change.text);
      } else {
        next_packet_bytes = bytes;
      }
      break;
    }
    case Env::collation:
      if (change.bytes.size() == collation_bytes) {
        info.collation = load_collation(reinterpret_cast<const std::uint8_t*>(change.bytes.data()));
      }
      break;
    case Env::begin_transaction:
      transaction = descriptor(change.bytes);
      break;
    case Env::commit_transaction:
    case Env::rollback_transaction:
    case Env::transaction_ended:
      transaction = 0;
      break;
    case Env::routing:
      routed_host = change.text;
      routed_port = change.port;
      break;
    default:
      break;
  }
}

namespace {

// The number at the end of "… Error code 4815.", 0 without one.
std::int32_t wrapped_number(std::string_view text) noexcept {
  constexpr std::string_view mark = "Error code ";
  const std::size_t at = text.rfind(mark);
  std::int32_t number = 0;
  if (at != std::string_view::npos) std::from_chars(text.data() + at + mark.size(), text.data() + text.size(), number);
  return number;
}

}  // namespace

bool is_transient(const Message& message) noexcept {
  switch (message.number) {
    case 64:     // the connection was cut during login
    case 233:    // no process on the other end
    case 1205:   // deadlock victim
    case 3960:   // snapshot update conflict
    case 4221:   // login while a replica recovers
    case 10053:  // transport errors, as the server reports them
    case 10054:
    case 10928:  // Azure: resource limits
    case 10929:
    case 40143:
    case 40166:
    case 40501:  // Azure: busy
    case 40540:
    case 40613:  // Azure: database not available now
    case 49918:  // Azure: not enough resources
    case 49919:
    case 49920:
      return true;
    case 40197: {  // Azure: the node behind the gateway failed, with an error of its own
      // 4800..4899 are about a bulk load's own bytes and statement: sent again, they would be refused again.
      const std::int32_t wrapped = wrapped_number(message.text);
      return wrapped < 4800 || wrapped > 4899;
    }
    default:
      return false;
  }
}

ServerFault fault_of(const Message& message) {
  return {.number = std::to_string(message.number),
          .severity = message.severity,
          .state = message.state,
          .line = message.line,
          .server = message.server,
          .procedure = message.procedure,
          .message = message.text};
}

bool Response::fatal() const noexcept {
  return std::any_of(errors_.begin(), errors_.end(), [](const Message& m) { return m.severity >= fatal_severity; });
}

void Response::throw_server_error() const {
  if (!has_error()) return;
  if (errors_.empty()) {
    throw Error(Category::server, "server_error", "the server says that the statement failed, but not why");
  }
  // The first is the cause; what follows are consequences ("The statement has been terminated.").
  const Message& first = errors_.front();
  Error error(Category::server, "server_error", fmt::format("SQL Server error {}: {}", first.number, first.text));
  error.with_fault(fault_of(first));
  if (std::any_of(errors_.begin(), errors_.end(), [](const Message& m) { return is_transient(m); })) {
    error.mark_transient();
  }
  throw error;
}

void Response::fail(std::exception_ptr error) noexcept {
  if (!failure_) failure_ = std::move(error);
}

void Response::restart() noexcept {
  finished_ = false;
  failed_done_ = false;
  seen_anything_ = false;
}

void Response::discard_rows() noexcept {
  rows_ = Rows::discard;
  if (decoder_) decoder_->discard();
}

rows::BatchPtr Response::take_batch() { return decoder_ ? decoder_->take() : nullptr; }

// Rows of a small result become values at once.
void Response::collect() {
  if (rows_ != Rows::collect || !decoder_) return;
  const rows::BatchPtr batch = decoder_->take();
  if (!batch) return;
  ResultSet& set = result_.sets.back();
  collected_bytes_ += batch->bytes();
  if (collected_bytes_ > limits::tds_query_bytes_max) {
    fail(std::make_exception_ptr(
        Error(Category::internal, "result_too_large", "a catalogue query gave more rows than can be kept")));
    decoder_->discard();
    return;
  }
  for (std::size_t row = 0; row < batch->rows(); ++row) {
    std::vector<Value>& values = set.rows.emplace_back();
    values.reserve(batch->columns());
    for (std::size_t i = 0; i < batch->columns(); ++i) {
      values.push_back(value_of(batch->schema().fields[i].type, batch->column(i), row));
    }
  }
}

void Response::on_columns(std::vector<ColumnMeta> columns, bool none) {
  seen_anything_ = true;
  if (decoder_) {
    collect();
    rows_seen_ += decoder_->rows_seen();
  }
  decoder_.reset();
  if (none) return;
  ++result_sets_;
  if (rows_ == Rows::discard || failure_) {
    decoder_ = std::make_unique<RowDecoder>(std::move(columns));
    return;
  }
  try {
    if (rows_ == Rows::stream && result_sets_ > 1) {
      throw Error(Category::input, "several_results", "the query gives more than one result set");
    }
    decoder_ =
        std::make_unique<RowDecoder>(columns, options_ != nullptr ? options_->losses : decltype(options_->losses){},
                                     options_ != nullptr ? options_->batch_bytes : limits::batch_bytes);
    if (options_ != nullptr) decoder_->name_rows_by(options_->key);
    if (rows_ == Rows::collect) result_.sets.emplace_back().columns = std::move(columns);
  } catch (...) {
    fail(std::current_exception());
    decoder_ = std::make_unique<RowDecoder>(std::move(columns));
  }
}

RowProgress Response::on_rows(ByteView bytes) {
  RowProgress progress = decoder_->rows(bytes);
  if (decoder_->error()) fail(decoder_->error());
  if (progress.status == RowProgress::Status::paused && rows_ == Rows::collect) {
    collect();
    progress.status = RowProgress::Status::ok;  // go on at once
  }
  return progress;
}

void Response::on_done(const Done& done) {
  collect();
  if (done.attention()) attention_seen_ = true;
  if (done.failed()) failed_done_ = true;
  const bool of_rows = decoder_ != nullptr;
  if (done.has_count() && !of_rows) result_.affected = done.rows;
  if (done.has_count() && of_rows && rows_ == Rows::stream) rows_told_ = done.rows;
  if (decoder_ && rows_ != Rows::stream) {
    rows_seen_ += decoder_->rows_seen();
    decoder_.reset();
  }
  finished_ = done.last();
}

void Response::on_message(Message message) {
  seen_anything_ = true;
  if (message.error) {
    errors_.push_back(std::move(message));
    if (errors_.size() > limits::tds_messages_max) errors_.pop_back();
    return;
  }
  if (result_.messages.size() >= limits::tds_messages_max) return;
  result_.messages.push_back({message.number, message.severity, message.state, std::move(message.text)});
}

void Response::on_env_change(const EnvChange& change) { state_.apply(change); }

void Response::on_login_ack(const LoginAck& ack) {
  login_acknowledged_ = true;
  state_.info.program = ack.program;
  state_.info.major = ack.major;
  state_.info.minor = ack.minor;
  state_.info.build = ack.build;
}

// A server may acknowledge only what was asked for (MS-TDS 2.2.7.11): anything else changes the protocol unseen.
void Response::on_feature_ack(std::uint8_t feature, ByteView data) {
  if (feature == feature_utf8_support) {
    state_.info.utf8 = !data.empty() && data[0] == 1;
    return;
  }
  state_.bad_change = fmt::format("feature 0x{:02X} was acknowledged but not asked for", feature);
}

void Response::on_return_status(std::int32_t status) { result_.return_status = status; }

void Response::on_other(Token token, ByteView) {
  if (token != Token::sspi && token != Token::fedauth_info) return;
  fail(std::make_exception_ptr(
      Error(Category::unsupported, "authentication", "the server asks for Kerberos, NTLM or an access token")
          .with_hint("only SQL Server logins (user and password) are supported yet")));
}

}  // namespace rowferry::tds
