// Whatever a server sends, the client's side of the wire refuses or reads it without touching foreign memory, and says
// the same however the bytes are cut. The first byte says what the rest is.
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "tds/wire/packet.hpp"
#include "tds/wire/prelogin.hpp"
#include "tds/wire/row_decoder.hpp"
#include "tds/wire/tokens.hpp"

namespace {

using namespace rowferry;
using namespace rowferry::tds;

void require(bool good) {
  if (!good) std::abort();
}

// Everything that a reply says, as one string.
class Log final : public TokenSink {
 public:
  std::string text;

  void on_columns(std::vector<ColumnMeta> columns, bool none) override {
    take();
    text += none ? "no columns;" : "columns;";
    for (const ColumnMeta& column : columns) text += column.name + ' ' + type_name(column.type) + ';';
    try {
      decoder_ = std::make_unique<RowDecoder>(columns, std::vector<rows::ColumnLoss*>{}, 64);
    } catch (const Error& error) {
      text += error.code();
      decoder_ = std::make_unique<RowDecoder>(std::move(columns));
    }
  }
  RowProgress on_rows(ByteView bytes) override {
    const RowProgress progress = decoder_->rows(bytes);
    require(progress.used <= bytes.size());
    return progress;
  }
  void on_done(const Done& done) override {
    take();
    text += "done " + std::to_string(done.status) + ' ' + std::to_string(done.rows) + ';';
  }
  void on_message(Message message) override { text += message.text + message.server + message.procedure + ';'; }
  void on_env_change(const EnvChange& change) override { text += change.text + change.bytes + ';'; }
  void on_login_ack(const LoginAck& ack) override { text += ack.program + ';'; }
  void on_feature_ack(std::uint8_t feature, ByteView data) override {
    text += std::to_string(feature) + std::string(as_text(data));
  }
  void on_return_status(std::int32_t status) override { text += std::to_string(status) + ';'; }
  void on_return_value(const ReturnValue& value) override {
    text += value.column.name + std::string(as_text(value.framed));
  }
  void on_other(Token token, ByteView data) override {
    text += std::to_string(static_cast<int>(token)) + std::string(as_text(data));
  }

  // Reads every value of the batch: a view that points outside of it is found here.
  void take() {
    if (!decoder_) return;
    rows_ += decoder_->error() ? 0 : 1;
    const rows::BatchPtr batch = decoder_->take();
    if (!batch) return;
    for (std::size_t row = 0; row < batch->rows(); ++row) {
      for (std::size_t i = 0; i < batch->columns(); ++i) add(batch->schema().fields[i].type.id, batch->column(i), row);
      text += '\n';
    }
  }

 private:
  void add(rows::TypeId id, const rows::ColumnView& view, std::size_t row) {
    if (id == rows::TypeId::null || !view.valid(row)) {
      text += "NULL";
    } else if (rows::is_variable(id)) {
      text += view.text(row);
    } else if (id == rows::TypeId::boolean) {
      text += view.boolean(row) ? '1' : '0';
    } else {
      const std::size_t width = rows::fixed_width(id);
      text.append(reinterpret_cast<const char*>(view.values) + row * width, width);
    }
    text += '|';
  }
  std::unique_ptr<RowDecoder> decoder_;
  std::size_t rows_ = 0;
};

// `piece` bytes at a time, as a socket brings them.
std::string tokens(ByteView bytes, std::size_t piece) {
  Log log;
  TokenParser parser(log);
  std::size_t at = 0;
  std::size_t have = 0;
  while (true) {
    std::size_t used = 0;
    const TokenParser::Status status = parser.feed(bytes.subspan(at, have - at), used);
    at += used;
    require(at <= have);
    if (status == TokenParser::Status::malformed) return log.text + "malformed";
    if (status == TokenParser::Status::paused) {
      log.take();
      continue;
    }
    if (have == bytes.size()) return log.text + (at == have && parser.at_token() ? "whole" : "unfinished");
    have = std::min(have + piece, bytes.size());
  }
}

std::string packets(ByteView bytes, std::size_t piece) {
  PacketReader reader(4096);
  std::string payload;
  std::size_t at = 0;
  while (at < bytes.size()) {
    const std::size_t n = std::min(piece, bytes.size() - at);
    const std::size_t taken = reader.feed(bytes.subspan(at, n));
    require(taken <= n);
    at += taken;
    payload += as_text(reader.payload());
    reader.consume(reader.payload().size());
    if (reader.failed()) return payload + std::string(reader.why());
    if (reader.message_ended()) {
      payload += '\n';
      reader.next_message();
    } else {
      require(taken == n);
    }
  }
  return payload;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const ByteView bytes{data + 1, size - 1};
  switch (data[0] % 3) {
    case 0: {
      const std::string whole = tokens(bytes, SIZE_MAX / 2);
      require(tokens(bytes, 1 + data[0] / 3U % 7) == whole);
      break;
    }
    case 1:
      require(packets(bytes, SIZE_MAX / 2) == packets(bytes, 3));
      break;
    default: {
      std::string why;
      require(parse_prelogin_reply(bytes, why).has_value() || !why.empty());
    }
  }
  return 0;
}
