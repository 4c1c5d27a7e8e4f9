// RequestParser: bytes in, requests out; no socket, no exception. llhttp reads the head, behind a guard that is
// stricter than it is (bare CR, bare LF, folded fields, control characters); the body is framed here (RFC 9112 sections
// 6 and 7), so that no two readers of the same bytes could see different requests.
//
//   feed() ─► need_more | head_complete | body (a piece, in place) | message_complete | malformed
// Call feed() again with the unused rest after each event. After message_complete: next_message(). After malformed: the
// connection is to be closed, fault() says with which status.
#pragma once

#include <memory>
#include <string>

#include "base/bytes.hpp"
#include "base/limits.hpp"
#include "http/wire/message.hpp"

namespace rowferry::http {

struct RequestLimits {
  std::size_t head_bytes = limits::http_head_bytes;
  std::size_t header_count = limits::http_header_count;
  std::size_t target_bytes = limits::http_target_bytes;
  std::uint64_t body_bytes = limits::http_body_bytes;
};

// What was wrong with a request, as the answer says it.
struct Fault {
  int status = 400;
  std::string code;  // snake_case, stable
  std::string detail;
};

// Frames a chunked body. Strict: CRLF only, hexadecimal sizes of at most 16 digits, bounded lines and trailers.
class ChunkDecoder {
 public:
  enum class Step : std::uint8_t { need_more, data, done, malformed };
  struct Event {
    Step step = Step::need_more;
    std::size_t used = 0;
    ByteView data{};
  };
  Event feed(ByteView bytes);
  const char* reason() const noexcept { return reason_; }  // after malformed

 private:
  enum class State : std::uint8_t {
    size,
    extension,
    size_lf,
    data,
    data_cr,
    data_lf,
    trailer_start,
    trailer,
    trailer_lf,
    end_lf
  };
  bool take(std::uint8_t byte);  // false: malformed, or done when reason_ is null
  bool take_size(std::uint8_t byte);
  bool fail(const char* reason) {
    reason_ = reason;
    return false;
  }

  State state_ = State::size;
  std::uint64_t left_ = 0;  // of the chunk's data
  int digits_ = 0;
  std::size_t line_bytes_ = 0;  // of the size line with its extension, or of all trailers
  const char* reason_ = nullptr;
};

class RequestParser {
 public:
  enum class Step : std::uint8_t { need_more, head_complete, body, message_complete, malformed };
  struct Event {
    Step step = Step::need_more;
    std::size_t used = 0;
    ByteView body{};
  };

  explicit RequestParser(const RequestLimits& limits = {});
  ~RequestParser();
  RequestParser(const RequestParser&) = delete;
  RequestParser& operator=(const RequestParser&) = delete;

  Event feed(ByteView bytes);
  // After head_complete and until next_message(); the caller may move from it once the message is complete.
  Request& request() noexcept { return request_; }
  const Fault& fault() const noexcept { return fault_; }
  void next_message();
  // True when nothing of the next message has come yet.
  bool idle() const noexcept { return state_ == State::head && head_bytes_ == 0; }
  std::uint64_t body_bytes() const noexcept { return body_seen_; }

 private:
  struct Head;
  enum class State : std::uint8_t { head, identity, chunked, complete, malformed };

  Event feed_head(ByteView bytes);
  Event feed_identity(ByteView bytes);
  Event feed_chunked(ByteView bytes);
  std::size_t guard(ByteView bytes, bool& ended);
  bool check_line_byte(std::uint8_t byte);
  bool check_request_line_byte(std::uint8_t byte);
  bool check_field_line_byte(std::uint8_t byte);
  bool run_llhttp(ByteView bytes);
  bool finish_head();
  bool check_framing();
  bool check_target();
  bool check_host();
  void check_connection();
  bool refuse(int status, const char* code, std::string detail);

  RequestLimits limits_;
  std::unique_ptr<Head> head_;  // llhttp and what it has gathered; freed between head and head
  Request request_;
  Fault fault_;
  State state_ = State::head;
  std::size_t head_bytes_ = 0;
  std::size_t line_bytes_ = 0;
  bool first_line_ = true;
  std::uint8_t previous_ = 0;
  std::uint64_t body_left_ = 0;
  std::uint64_t body_seen_ = 0;
  ChunkDecoder chunks_;
};

}  // namespace rowferry::http
