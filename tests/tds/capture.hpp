// Recorded sessions (tests/tds/captures) and what the client's parser makes of their server side.
#pragma once

#include <string>
#include <vector>

#include "tds/result.hpp"
#include "tds/wire/row_decoder.hpp"
#include "tds/wire/tokens.hpp"

namespace rowferry::test {

struct CapturedPacket {
  bool from_client = false;
  std::string bytes;  // header included
};

// The file `name` of ROWFERRY_SHARED/captures where that is set, else of tests/tds/captures. Throws when absent.
std::vector<CapturedPacket> load_capture(const std::string& name);
// Lines of a TSV in COPY text format, a header left out, fields unescaped; nullopt = NULL.
std::vector<std::vector<std::optional<std::string>>> load_rows(const std::string& name);
// The replies of the server: each message's packets joined, without the PRELOGIN reply.
std::vector<std::string> server_messages(const std::vector<CapturedPacket>& capture);

// Everything that a parser tells, one line an event, rows printed.
class EventLog final : public tds::TokenSink {
 public:
  explicit EventLog(std::size_t batch_bytes = 1 << 18) : batch_bytes_(batch_bytes) {}
  std::vector<std::string> lines;
  std::vector<std::vector<tds::Value>> rows;
  std::exception_ptr error;

  void on_columns(std::vector<tds::ColumnMeta> columns, bool none) override;
  tds::RowProgress on_rows(ByteView bytes) override;
  void on_done(const tds::Done& done) override;
  void on_message(tds::Message message) override;
  void on_env_change(const tds::EnvChange& change) override;
  void on_login_ack(const tds::LoginAck& ack) override;
  void on_feature_ack(std::uint8_t feature, ByteView data) override;
  void on_return_status(std::int32_t status) override;
  void on_return_value(const tds::ReturnValue& value) override;
  void on_other(tds::Token token, ByteView data) override;
  void empty();

 private:
  std::unique_ptr<tds::RowDecoder> decoder_;
  std::size_t batch_bytes_;
};

std::string print(const tds::Value& value);
// Feeds framed packets in steps of `step` bytes (0: all at once); the events, or a last line "malformed: …" or
// "unfinished".
std::vector<std::string> replay(const std::string& packets, std::size_t step);
// The same in pieces of these sizes.
std::vector<std::string> replay_pieces(const std::string& packets, const std::vector<std::size_t>& pieces);
// The same for bare tokens.
std::vector<std::string> parse_tokens(const std::string& tokens, std::size_t step = 0,
                                      std::size_t batch_bytes = 1 << 18);

}  // namespace rowferry::test
