// A bare TDS client for conversations with the sandbox: it sends what a test says, byte for byte, and retells answers.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "net/tls.hpp"
#include "tds/wire/packet.hpp"
#include "tds/wire/server_login.hpp"
#include "tds/wire/server_values.hpp"
#include "tds/wire/type_info.hpp"
#include "tests/support/hex.hpp"

namespace rowferry::test {

// The tokens of an answer in words: "columns 1, rows 2, done count=2". Values of rows are kept as hex.
struct Answer {
  std::string story;
  std::vector<std::string> rows;
  bool closed = false;  // the server closed the connection before the answer's end
};

class Retelling {
 public:
  explicit Retelling(ByteView tokens) : from_(tokens) {}

  Answer tell() {
    while (from_.left() != 0 && !from_.failed()) token(from_.u8());
    end_rows();
    return std::move(answer_);
  }

 private:
  void say(const std::string& words) {
    end_rows();
    if (!answer_.story.empty()) answer_.story += ", ";
    answer_.story += words;
  }
  void end_rows() {
    if (rows_ == 0) return;
    const std::size_t n = std::exchange(rows_, 0);
    say(fmt::format("rows {}", n));
  }

  void token(std::uint8_t id) {
    switch (id) {
      case 0x81:
        return columns();
      case 0xD1:
        return row();
      case 0xFD:
      case 0xFE:
      case 0xFF:
        return done(id);
      case 0x79:
        return say(fmt::format("status {}", from_.le<std::int32_t>()));
      case 0xAE:
        return features();
      case 0xAC:
        return return_value();
      default:
        return counted(id);
    }
  }

  void columns() {
    bool none = false;
    std::string why;
    columns_.clear();
    tds::read_columns(from_, columns_, none, tds::MetaPlace::result, why);
    say(fmt::format("columns {}", columns_.size()));
  }

  void row() {
    const std::uint8_t* const begin = from_.position();
    for (const tds::ColumnMeta& column : columns_) skip_value(column.type);
    answer_.rows.push_back(to_hex(ByteView(begin, static_cast<std::size_t>(from_.position() - begin))));
    ++rows_;
  }

  void skip_value(const tds::TypeInfo& type) {
    const tds::server::ValueRule rule = tds::server::make_value_rule(type);
    tds::server::ValueWalk walk;
    const std::uint8_t* const at = from_.position();
    const tds::server::ValueEnd end = rule.check(rule, at, at + from_.left(), walk);
    from_.skip(static_cast<std::size_t>(end.next - at));
    if (end.fault != tds::server::ValueFault::none) {
      say("(a value that is none)");
      from_.skip(from_.left());
    }
  }

  void done(std::uint8_t id) {
    const std::uint16_t status = from_.u16();
    from_.u16();
    const std::uint64_t count = from_.u64();
    std::string words = id == 0xFD ? "done" : id == 0xFE ? "doneproc" : "doneinproc";
    if ((status & 0x10U) != 0) words += fmt::format(" count={}", count);
    if ((status & 0x02U) != 0) words += " error";
    if ((status & 0x20U) != 0) words += " attention";
    if ((status & 0x01U) != 0) words += " more";
    say(words);
  }

  void features() {
    std::string words = "features";
    for (std::uint8_t id = from_.u8(); id != 0xFF && !from_.failed(); id = from_.u8()) {
      words += fmt::format(" {:02X}", id);
      from_.skip(from_.u32());
    }
    say(words);
  }

  void return_value() {
    from_.u16();
    const std::string name = tds::read_b_varchar(from_);
    from_.skip(7);
    tds::TypeInfo type;
    std::string why;
    tds::read_type_info(from_, type, tds::MetaPlace::parameter, why);
    skip_value(type);
    say("value " + name);
  }

  void counted(std::uint8_t id) {
    ByteReader body(from_.bytes(from_.u16()));
    switch (id) {
      case 0xAA:
        return say(fmt::format("error {}", body.le<std::int32_t>()));
      case 0xAB:
        return say(fmt::format("info {}", body.le<std::int32_t>()));
      case 0xE3:
        return say(fmt::format("env {}", environment(body)));
      case 0xAD:
        body.u8();
        return say(fmt::format("loginack {:08X}", body.be<std::uint32_t>()));
      case 0xA9:
        return say("order");
      default:
        return say(fmt::format("token {:02X}", id));
    }
  }

  std::string environment(ByteReader& body) {
    const std::uint8_t type = body.u8();
    if (type == 8 && body.left() > 8) descriptor = load_le<std::uint64_t>(body.position() + 1);
    return type == 4 ? fmt::format("4={}", tds::read_b_varchar(body)) : std::to_string(type);
  }

 public:
  std::uint64_t descriptor = 0;

 private:
  ByteReader from_;
  Answer answer_;
  std::vector<tds::ColumnMeta> columns_;
  std::size_t rows_ = 0;
};

// TLS bytes in packets of type 0x12, as a client of TDS 7.x sends them in the handshake.
class HandshakePackets final : public net::Stream {
 public:
  HandshakePackets(net::Stream& inner, std::size_t piece) : inner_(inner), piece_(piece) {}
  bool wrapping = true;

  async::Task<std::size_t> read_some(std::span<std::uint8_t> into) override {
    while (wrapping && left_ == 0) {
      std::uint8_t header[tds::packet_header_bytes];
      for (std::size_t have = 0; have < sizeof header;) {
        const std::size_t got = co_await inner_.read_some({header + have, sizeof header - have});
        if (got == 0) co_return 0;
        have += got;
      }
      left_ = tds::load_header(header).length - tds::packet_header_bytes;
    }
    if (wrapping && into.size() > left_) into = into.first(left_);
    const std::size_t got = co_await inner_.read_some(into);
    if (wrapping) left_ -= got;
    co_return got;
  }
  async::Task<void> write_all(ByteView bytes) override {
    while (wrapping && !bytes.empty()) {
      const std::size_t n = std::min(piece_, bytes.size());
      std::string packet(tds::packet_header_bytes, '\0');
      tds::store_header(reinterpret_cast<std::uint8_t*>(packet.data()),
                        {.type = 0x12,
                         .status = static_cast<std::uint8_t>(n == bytes.size() ? 1 : 0),
                         .length = static_cast<std::uint16_t>(n + tds::packet_header_bytes)});
      packet += as_text(bytes.first(n));
      co_await inner_.write_all(as_bytes(packet));
      bytes = bytes.subspan(n);
    }
    if (!bytes.empty()) co_await inner_.write_all(bytes);
  }
  std::optional<std::size_t> try_read(std::span<std::uint8_t>) override { return std::nullopt; }
  async::Task<void> shutdown() override { return inner_.shutdown(); }
  void close() noexcept override { inner_.close(); }

 private:
  net::Stream& inner_;
  std::size_t piece_;
  std::size_t left_ = 0;
};

class WireClient {
 public:
  WireClient(net::Loop& loop, std::uint16_t port) : loop_(loop), port_(port) {}

  std::size_t packet_bytes = 4096;
  std::uint64_t descriptor = 0;  // for ALL_HEADERS
  std::string pre_login_reply;

  async::Task<void> connect() {
    stream_ = co_await net::TcpStream::connect(loop_, "127.0.0.1", port_, std::chrono::milliseconds(5000));
    io_ = stream_.get();
  }
  // Bytes as they are.
  async::Task<void> send(std::string bytes) { co_await io_->write_all(as_bytes(bytes)); }
  static std::string packet(std::uint8_t type, std::uint8_t status, std::string_view body) {
    std::string out(tds::packet_header_bytes, '\0');
    tds::store_header(reinterpret_cast<std::uint8_t*>(out.data()),
                      {.type = type, .status = status, .length = static_cast<std::uint16_t>(body.size() + 8), .id = 1});
    return out + std::string(body);
  }
  // A whole message in packets of packet_bytes.
  async::Task<void> send_message(std::uint8_t type, std::string body, std::uint8_t first_status = 0) {
    tds::PacketWriter writer(packet_bytes);
    writer.begin(static_cast<tds::PacketType>(type), first_status);
    writer.write(as_bytes(body));
    writer.finish();
    co_await io_->write_all(writer.ready());
  }

  // The next message, retold. Sets `largest_packet`.
  async::Task<Answer> receive() {
    tds::PacketReader reader;
    std::uint8_t chunk[4096];
    while (!reader.message_ended()) {
      if (at_ == have_.size()) {
        std::size_t got = 0;
        try {
          got =
              co_await net::with_deadline(loop_, std::chrono::milliseconds(10'000), "an answer", io_->read_some(chunk));
        } catch (const Error& error) {
          if (error.category() != Category::connection) throw;
        }
        if (got == 0) co_return Answer{.story = "closed", .rows = {}, .closed = true};
        have_.assign(reinterpret_cast<const char*>(chunk), got);
        at_ = 0;
      }
      at_ += reader.feed(as_bytes(have_).subspan(at_));
    }
    raw = std::string(as_text(reader.payload()));
    Retelling retelling(reader.payload());
    Answer answer = retelling.tell();
    if (retelling.descriptor != 0) descriptor = retelling.descriptor;
    co_return answer;
  }
  std::string raw;  // of the last message

  async::Task<Answer> ask(std::uint8_t type, std::string body, std::uint8_t first_status = 0) {
    co_await send_message(type, std::move(body), first_status);
    Answer answer = co_await receive();
    co_return answer;
  }
  std::string headers() const {
    std::string block = from_hex("16 00 00 00 12 00 00 00 02 00 00 00 00 00 00 00 00 00 01 00 00 00");
    store_le(reinterpret_cast<std::uint8_t*>(block.data()) + 10, descriptor);
    return block;
  }
  async::Task<Answer> batch(std::string sql, std::uint8_t first_status = 0) {
    return ask(0x01, headers() + text::to_utf16le(sql), first_status);
  }
  async::Task<Answer> bulk(std::string body) { return ask(0x07, std::move(body)); }

  // PRELOGIN (encryption not supported) and LOGIN7; gives the login's answer.
  async::Task<Answer> log_in(std::string user = "sa", std::string password = "secret", std::string database = "shop",
                             std::uint32_t packet_wish = 4096, std::uint8_t encryption = 2) {
    co_await connect();
    const int reply = co_await pre_login(encryption);
    if (reply < 0) co_return Answer{.story = "closed", .rows = {}, .closed = true};
    Answer answer = co_await ask(0x10, login7(user, password, database, packet_wish));
    if (const std::size_t at = answer.story.find("env 4="); at != std::string::npos) {
      packet_bytes = static_cast<std::size_t>(std::stoul(answer.story.substr(at + 6)));
    }
    co_return answer;
  }
  std::string login7(const std::string& user, const std::string& password, const std::string& database,
                     std::uint32_t packet_wish) {
    std::string hidden = text::to_utf16le(password);
    for (char& c : hidden) {
      const auto b = static_cast<std::uint8_t>(c);
      c = static_cast<char>(static_cast<std::uint8_t>((b << 4U) | (b >> 4U)) ^ 0xA5U);
    }
    constexpr std::size_t fixed = 94;
    ByteBuffer table;
    std::string data;
    const auto field = [&](const std::string& utf16) {
      table.put_le(static_cast<std::uint16_t>(fixed + data.size()));
      table.put_le(static_cast<std::uint16_t>(utf16.size() / 2));
      data += utf16;
    };
    field(text::to_utf16le("host"));
    field(text::to_utf16le(user));
    field(hidden);
    field(text::to_utf16le("wire client"));
    field(text::to_utf16le("server"));
    field("");
    field(text::to_utf16le("library"));
    field("");
    field(text::to_utf16le(database));
    ByteBuffer login;
    login.put_le(static_cast<std::uint32_t>(fixed + data.size()));
    login.put_le(tds::server::tds_version_7_4);
    login.put_le(packet_wish);
    login.fill(0, 12);
    login.push(0xE0);
    login.push(0x03);
    login.fill(0, 10);
    login.append(table.view());
    login.fill(0, fixed - login.size());
    login.append(data);
    return std::string(as_text(login.view()));
  }
  // PRELOGIN alone; gives the server's ENCRYPTION byte.
  async::Task<int> pre_login(std::uint8_t encryption) {
    std::string prelogin = from_hex(
        "00 00 1A 00 06 01 00 20 00 01 02 00 21 00 01 03 00 22 00 04 04 00 26 00 01 FF"
        "00 01 00 00 00 00 02 00 00 00 00 00 00");
    prelogin[32] = static_cast<char>(encryption);
    co_await send_message(0x12, std::move(prelogin));
    const Answer answer = co_await receive();
    pre_login_reply = raw;
    co_return answer.closed ? -1 : static_cast<std::uint8_t>(raw.at(raw.size() - 3));
  }
  // The TLS handshake, wrapped in packets of at most `piece` bytes of payload.
  async::Task<void> start_tls(std::size_t piece) {
    wrap_ = std::make_unique<HandshakePackets>(*stream_, piece);
    tls_ = std::make_unique<net::TlsStream>(
        net::TlsContext::client({.verify = false, .max_version = net::TlsVersion::tls1_2}), *wrap_);
    co_await tls_->handshake();
    wrap_->wrapping = false;
    io_ = tls_.get();
  }
  // Encryption of the login only: what follows is plain.
  void end_tls() {
    tls_->release();
    io_ = stream_.get();
  }
  void close() { stream_->close(); }
  net::TcpStream& stream() { return *stream_; }

 private:
  net::Loop& loop_;
  std::uint16_t port_;
  std::unique_ptr<net::TcpStream> stream_;
  std::unique_ptr<HandshakePackets> wrap_;
  std::unique_ptr<net::TlsStream> tls_;
  net::Stream* io_ = nullptr;
  std::string have_;
  std::size_t at_ = 0;
};

}  // namespace rowferry::test
