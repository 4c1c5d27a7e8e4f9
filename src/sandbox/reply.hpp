// Reply: the answer to one request, as tokens in packets. The engine writes into it; the connection sends what is
// ready.
//
// Lifecycle: begin(), the engine's or the connection's tokens, finish(); then again for the next request. A DONE is
// held back until the next token, or finish(), shows whether DONE_MORE is set.
#pragma once

#include <optional>
#include <string>

#include "base/limits.hpp"
#include "sandbox/engine/engine.hpp"
#include "tds/wire/packet.hpp"
#include "tds/wire/server_request.hpp"
#include "tds/wire/server_tokens.hpp"

namespace rowferry::sandbox {

class Reply final : public engine::ResultWriter {
 public:
  Reply(tds::PacketWriter& packets, std::string server_name) : packets_(packets), server_(std::move(server_name)) {}

  void begin();
  // Ends the message; an answer without any DONE gets one.
  void finish();
  bool open() const noexcept { return packets_.open(); }

  void columns(const engine::Columns& columns) override;
  void order(const std::vector<std::uint16_t>& columns) override;
  void rows(const engine::RowTokens& rows) override;
  void done(const engine::Done& done) override;
  void message(const engine::Message& message) override;
  void env_change(const engine::EnvChange& change) override;
  void return_status(std::int32_t status) override;
  void return_value(const engine::ReturnValue& value) override;
  bool full() const override { return packets_.ready().size() >= limits::sandbox_reply_bytes; }

  // An error that ends the request: ERROR and a DONE with the error bit.
  void refuse(std::int32_t number, std::uint8_t severity, std::uint8_t state, std::string_view text);
  void refuse(const tds::server::RequestFault& fault) { refuse(fault.number, 16, fault.state, fault.text); }
  // The answer to an attention, which is the last token of its message.
  void attention();
  // The next call of a message with several calls begins: the DONEPROC held is not the last.
  void next_call();
  void reset_acknowledged();
  void error(const engine::Message& message) { this->message(message); }
  const std::string& server_name() const noexcept { return server_; }

 private:
  void release_done();
  void send_scratch();

  tds::PacketWriter& packets_;
  std::string server_;
  ByteBuffer scratch_;
  std::optional<tds::server::Done> held_;
  bool any_done_ = false;
};

}  // namespace rowferry::sandbox
