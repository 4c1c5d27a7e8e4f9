#include "tests/tds/capture.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>

#include "base/error.hpp"
#include "tds/wire/packet.hpp"
#include "tests/support/hex.hpp"

namespace rowferry::test {

namespace {

std::ifstream open_capture(const std::string& name) {
  const char* shared = std::getenv("ROWFERRY_SHARED");
  const std::string path = (shared != nullptr ? std::string(shared) + "/captures" : TDS_CAPTURES) + "/" + name;
  std::ifstream file(path);
  if (!file) throw std::runtime_error("no capture at " + path);
  return file;
}

std::optional<std::string> unescape(const std::string& field) {
  if (field == "\\N") return std::nullopt;
  std::string out;
  for (std::size_t i = 0; i < field.size(); ++i) {
    if (field[i] != '\\' || i + 1 == field.size()) {
      out += field[i];
      continue;
    }
    const char c = field[++i];
    out += c == 't' ? '\t' : c == 'n' ? '\n' : c == 'r' ? '\r' : c;
  }
  return out;
}

}  // namespace

std::vector<CapturedPacket> load_capture(const std::string& name) {
  std::ifstream file = open_capture(name);
  std::vector<CapturedPacket> packets;
  for (std::string line; std::getline(file, line);) {
    if (line.size() > 2) packets.push_back({line[0] == 'C', from_hex(line.substr(2))});
  }
  return packets;
}

std::vector<std::vector<std::optional<std::string>>> load_rows(const std::string& name) {
  std::ifstream file = open_capture(name);
  std::vector<std::vector<std::optional<std::string>>> rows;
  for (std::string line; std::getline(file, line);) {
    if (rows.empty() && line.rfind("id\t", 0) == 0) continue;
    auto& row = rows.emplace_back();
    std::size_t at = 0;
    while (true) {
      const std::size_t tab = line.find('\t', at);
      row.push_back(unescape(line.substr(at, tab == std::string::npos ? tab : tab - at)));
      if (tab == std::string::npos) break;
      at = tab + 1;
    }
  }
  return rows;
}

std::vector<std::string> server_messages(const std::vector<CapturedPacket>& capture) {
  std::vector<std::string> messages;
  std::string message;
  for (const CapturedPacket& packet : capture) {
    if (packet.from_client) continue;
    message += packet.bytes;
    if ((packet.bytes[1] & tds::status_eom) != 0) messages.push_back(std::exchange(message, {}));
  }
  messages.erase(messages.begin());
  return messages;
}

std::string print(const tds::Value& value) {
  if (value.is_null()) return "NULL";
  if (const auto* i = std::get_if<std::int64_t>(&value.value)) return fmt::format("{}", *i);
  if (const auto* d = std::get_if<double>(&value.value)) return fmt::format("{}", *d);
  if (const auto* s = std::get_if<std::string>(&value.value)) return *s;
  std::string text = "0x";
  for (const std::uint8_t byte : value.bytes()) text += fmt::format("{:02x}", byte);
  return text;
}

void EventLog::empty() {
  if (!decoder_) return;
  const rows::BatchPtr batch = decoder_->take();
  if (!batch) return;
  for (std::size_t row = 0; row < batch->rows(); ++row) {
    std::vector<tds::Value> values;
    std::string line = "row";
    for (std::size_t i = 0; i < batch->columns(); ++i) {
      values.push_back(tds::value_of(batch->schema().fields[i].type, batch->column(i), row));
      line += " | " + print(values.back());
    }
    lines.push_back(line);
    rows.push_back(std::move(values));
  }
}

void EventLog::on_columns(std::vector<tds::ColumnMeta> columns, bool none) {
  empty();
  std::string line = none ? "no metadata" : "columns";
  for (const auto& column : columns) {
    line += fmt::format(" | {} {} {:04x}", column.name, tds::type_name(column.type), column.flags);
  }
  lines.push_back(line);
  decoder_ = std::make_unique<tds::RowDecoder>(std::move(columns), std::vector<rows::ColumnLoss*>{}, batch_bytes_);
}

tds::RowProgress EventLog::on_rows(ByteView bytes) {
  const tds::RowProgress progress = decoder_->rows(bytes);
  if (!error) error = decoder_->error();
  return progress;
}

void EventLog::on_done(const tds::Done& done) {
  empty();
  lines.push_back(fmt::format("done {:02x} status {:04x} command {:02x} rows {}", static_cast<int>(done.kind),
                              done.status, done.command, done.rows));
}
void EventLog::on_message(tds::Message message) {
  empty();
  lines.push_back(fmt::format("{} {} state {} class {} line {} \"{}\" server \"{}\" procedure \"{}\"",
                              message.error ? "error" : "info", message.number, message.state, message.severity,
                              message.line, message.text, message.server, message.procedure));
}
void EventLog::on_env_change(const tds::EnvChange& change) {
  lines.push_back(fmt::format("env {} \"{}\" {} port {}", static_cast<int>(change.type), change.text,
                              to_hex(change.bytes), change.port));
}
void EventLog::on_login_ack(const tds::LoginAck& ack) {
  lines.push_back(
      fmt::format("loginack {:08x} \"{}\" {}.{}.{}", ack.tds_version, ack.program, ack.major, ack.minor, ack.build));
}
void EventLog::on_feature_ack(std::uint8_t feature, ByteView data) {
  lines.push_back(fmt::format("feature {:02X} {}", feature, to_hex(data)));
}
void EventLog::on_return_status(std::int32_t status) { lines.push_back(fmt::format("return status {}", status)); }
void EventLog::on_return_value(const tds::ReturnValue& value) {
  lines.push_back(
      fmt::format("return value {} {} {}", value.column.name, tds::type_name(value.column.type), to_hex(value.framed)));
}
void EventLog::on_other(tds::Token token, ByteView data) {
  lines.push_back(fmt::format("token {:02X} {}", static_cast<int>(token), to_hex(data)));
}

namespace {

// Parses what `payload` has; false when the stream is malformed.
bool parse(tds::TokenParser& parser, EventLog& log, ByteView payload, std::size_t& used) {
  used = 0;
  while (true) {
    std::size_t n = 0;
    const auto status = parser.feed(payload.subspan(used), n);
    used += n;
    if (status == tds::TokenParser::Status::malformed) {
      log.lines.push_back("malformed: " + parser.why());
      return false;
    }
    if (status == tds::TokenParser::Status::need_more) return true;
    log.empty();
  }
}

}  // namespace

std::vector<std::string> replay(const std::string& packets, std::size_t step) {
  std::vector<std::size_t> pieces;
  if (step == 0) step = packets.size();
  for (std::size_t at = 0; at < packets.size(); at += step) pieces.push_back(std::min(step, packets.size() - at));
  return replay_pieces(packets, pieces);
}

std::vector<std::string> replay_pieces(const std::string& packets, const std::vector<std::size_t>& pieces) {
  EventLog log;
  tds::TokenParser parser(log);
  tds::PacketReader reader;
  std::string waiting;
  std::size_t at = 0;
  std::size_t of_message = 0;  // bytes of the message that has not ended
  for (const std::size_t piece : pieces) {
    waiting += packets.substr(at, piece);
    at += piece;
    while (!waiting.empty()) {
      const std::size_t taken = reader.feed(as_bytes(waiting));
      waiting.erase(0, taken);
      of_message += taken;
      if (reader.failed()) {
        log.lines.push_back("malformed: " + std::string(reader.why()));
        return log.lines;
      }
      std::size_t used = 0;
      if (!parse(parser, log, reader.payload(), used)) return log.lines;
      reader.consume(used);
      if (!reader.message_ended()) break;
      if (!reader.payload().empty() || !parser.at_token()) log.lines.emplace_back("unfinished");
      reader.next_message();
      of_message = 0;
    }
  }
  if (of_message != 0) log.lines.emplace_back("unfinished");
  return log.lines;
}

std::vector<std::string> parse_tokens(const std::string& tokens, std::size_t step, std::size_t batch_bytes) {
  EventLog log(batch_bytes);
  tds::TokenParser parser(log);
  if (step == 0) step = std::max<std::size_t>(tokens.size(), 1);
  std::string waiting;
  for (std::size_t at = 0; at < tokens.size(); at += step) {
    waiting += tokens.substr(at, step);
    std::size_t used = 0;
    if (!parse(parser, log, as_bytes(waiting), used)) return log.lines;
    waiting.erase(0, used);
  }
  log.empty();
  if (log.error) log.lines.push_back("error: " + describe(log.error));
  if (!waiting.empty() || !parser.at_token()) log.lines.emplace_back("unfinished");
  return log.lines;
}

}  // namespace rowferry::test
