#include "http/wire/request_parser.hpp"

#include <fmt/format.h>
#include <llhttp.h>

#include <algorithm>
#include <charconv>

namespace rowferry::http {

namespace {

// RFC 9110 section 5.6.2; names are in lower case by then.
bool is_token_character(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

}  // namespace

// ---- chunked bodies

ChunkDecoder::Event ChunkDecoder::feed(ByteView bytes) {
  std::size_t used = 0;
  while (used < bytes.size()) {
    if (state_ == State::data) {
      const std::size_t n = static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size() - used));
      left_ -= n;
      if (left_ == 0) state_ = State::data_cr;
      return {Step::data, used + n, bytes.subspan(used, n)};
    }
    if (!take(bytes[used])) return {reason_ == nullptr ? Step::done : Step::malformed, used + 1, {}};
    ++used;
  }
  return {Step::need_more, used, {}};
}

bool ChunkDecoder::take_size(std::uint8_t byte) {
  const int digit = byte >= '0' && byte <= '9'   ? byte - '0'
                    : byte >= 'a' && byte <= 'f' ? byte - 'a' + 10
                    : byte >= 'A' && byte <= 'F' ? byte - 'A' + 10
                                                 : -1;
  if (digit >= 0) {
    if (++digits_ > 16) return fail("the chunk size is too large");
    left_ = left_ * 16 + static_cast<std::uint64_t>(digit);
    return true;
  }
  if (digits_ == 0) return fail("a chunk without a size");
  if (byte != '\r' && byte != ';') return fail("the chunk size is not hexadecimal");
  state_ = byte == '\r' ? State::size_lf : State::extension;
  return true;
}

// One byte outside a chunk's data. False ends the body: well when reason_ is null.
bool ChunkDecoder::take(std::uint8_t byte) {
  const bool in_trailer = state_ == State::trailer_start || state_ == State::trailer || state_ == State::trailer_lf;
  if (++line_bytes_ > (in_trailer ? limits::http_trailer_bytes : limits::http_chunk_line_bytes))
    return fail("the chunk's size line or the trailers are too long");
  const bool control = (byte < 0x20 && byte != '\t' && byte != '\r') || byte == 0x7f;
  switch (state_) {
    case State::size:
      return take_size(byte);
    case State::extension:
      if (control) return fail("a control character in a chunk extension");
      if (byte == '\r') state_ = State::size_lf;
      return true;
    case State::size_lf:
      if (byte != '\n') return fail("the chunk's size line does not end in CRLF");
      state_ = left_ == 0 ? State::trailer_start : State::data;
      line_bytes_ = 0;
      return true;
    case State::data:
      return true;  // feed() takes data itself
    case State::data_cr:
      if (byte != '\r') return fail("the chunk's data is longer than its size");
      state_ = State::data_lf;
      return true;
    case State::data_lf:
      if (byte != '\n') return fail("the chunk's data does not end in CRLF");
      state_ = State::size;
      digits_ = 0;
      line_bytes_ = 0;
      return true;
    case State::trailer_start:
      if (byte == '\r') {
        state_ = State::end_lf;
        return true;
      }
      if (control || byte == ' ' || byte == '\t' || byte == ':') return fail("a malformed trailer field");
      state_ = State::trailer;
      return true;
    case State::trailer:
      if (control) return fail("a control character in a trailer field");
      if (byte == '\r') state_ = State::trailer_lf;
      return true;
    case State::trailer_lf:
      if (byte != '\n') return fail("a trailer field does not end in CRLF");
      state_ = State::trailer_start;
      return true;
    case State::end_lf:
      if (byte != '\n') return fail("the trailers do not end in CRLF");
      return false;
  }
  return fail("internal");
}

// ---- the head

struct RequestParser::Head {
  llhttp_t parser{};
  std::string target;
  Headers headers;
  bool in_value = false;
  bool complete = false;
  // Counted by the guard: of the request line, and of lines behind it.
  std::size_t spaces = 0;
  std::size_t target_bytes = 0;
  std::size_t fields = 0;

  static Head& of(llhttp_t* parser) { return *static_cast<Head*>(parser->data); }
  static int on_url(llhttp_t* parser, const char* at, std::size_t size) {
    of(parser).target.append(at, size);
    return 0;
  }
  static int on_field(llhttp_t* parser, const char* at, std::size_t size) {
    Head& head = of(parser);
    if (head.headers.empty() || head.in_value) {
      head.headers.emplace_back();
      head.in_value = false;
    }
    std::string& name = head.headers.back().name;
    for (std::size_t i = 0; i < size; ++i)
      name += static_cast<char>(at[i] >= 'A' && at[i] <= 'Z' ? at[i] + ('a' - 'A') : at[i]);
    return 0;
  }
  static int on_value(llhttp_t* parser, const char* at, std::size_t size) {
    Head& head = of(parser);
    head.in_value = true;
    if (!head.headers.empty()) head.headers.back().value.append(at, size);
    return 0;
  }
  static int on_field_complete(llhttp_t* parser) {
    of(parser).in_value = true;  // also where the value is empty
    return 0;
  }
  static int on_complete(llhttp_t* parser) {
    of(parser).complete = true;
    return 1;  // the body is not llhttp's business
  }
  static const llhttp_settings_t* settings() {
    static const llhttp_settings_t made = [] {
      llhttp_settings_t s;
      llhttp_settings_init(&s);
      s.on_url = on_url;
      s.on_header_field = on_field;
      s.on_header_value = on_value;
      s.on_header_field_complete = on_field_complete;
      s.on_headers_complete = on_complete;
      return s;
    }();
    return &made;
  }
};

RequestParser::RequestParser(const RequestLimits& limits) : limits_(limits) {}
RequestParser::~RequestParser() = default;

bool RequestParser::refuse(int status, const char* code, std::string detail) {
  if (state_ != State::malformed) fault_ = {status, code, std::move(detail)};
  state_ = State::malformed;
  return false;
}

RequestParser::Event RequestParser::feed(ByteView bytes) {
  switch (state_) {
    case State::head:
      return feed_head(bytes);
    case State::identity:
      return feed_identity(bytes);
    case State::chunked:
      return feed_chunked(bytes);
    case State::complete:
      return {Step::message_complete, 0, {}};
    case State::malformed:
      break;
  }
  return {Step::malformed, 0, {}};
}

void RequestParser::next_message() {
  request_ = {};
  state_ = State::head;
  head_bytes_ = line_bytes_ = 0;
  first_line_ = true;
  previous_ = 0;
  body_left_ = body_seen_ = 0;
  chunks_ = {};
}

RequestParser::Event RequestParser::feed_head(ByteView bytes) {
  if (bytes.empty()) return {};
  if (!head_) {
    head_ = std::make_unique<Head>();
    llhttp_init(&head_->parser, HTTP_REQUEST, Head::settings());
    head_->parser.data = head_.get();
  }
  bool ended = false;
  // What llhttp says of the bytes before the guard's objection comes first: the same fault however the bytes are cut.
  State guarded = State::head;
  const std::size_t used = guard(bytes, ended);
  std::swap(guarded, state_);
  const Fault objection = fault_;
  if (!run_llhttp(bytes.first(used))) return {Step::malformed, used, {}};
  if (guarded == State::malformed) {
    state_ = guarded;
    fault_ = objection;
    return {Step::malformed, used, {}};
  }
  if (!ended) return {Step::need_more, used, {}};
  if (!finish_head()) return {Step::malformed, used, {}};
  return {Step::head_complete, used, {}};
}

// How many bytes belong to the head, up to its end or to the first that must not be there.
std::size_t RequestParser::guard(ByteView bytes, bool& ended) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const std::uint8_t byte = bytes[i];
    if (++head_bytes_ > limits_.head_bytes) {
      refuse(431, "head_too_large", fmt::format("the request's head is larger than {} bytes", limits_.head_bytes));
      return i;
    }
    if (!check_line_byte(byte)) return i;
    const bool line_ended = byte == '\n';
    previous_ = byte;
    if (!line_ended) {
      if (byte != '\r') ++line_bytes_;
      continue;
    }
    if (line_bytes_ == 0 && !first_line_) {
      ended = true;
      return i + 1;
    }
    if (line_bytes_ == 0) {
      head_bytes_ = 0;  // an empty line before the request line is skipped (RFC 9112 section 2.2)
      continue;
    }
    line_bytes_ = 0;
    first_line_ = false;
  }
  return bytes.size();
}

bool RequestParser::check_line_byte(std::uint8_t byte) {
  if (previous_ == '\r' && byte != '\n') return refuse(400, "bad_line_end", "a bare CR in the request's head");
  if (byte == '\n' && previous_ != '\r') return refuse(400, "bad_line_end", "a bare LF in the request's head");
  if ((byte < 0x20 && byte != '\r' && byte != '\n' && byte != '\t') || byte == 0x7f)
    return refuse(400, "bad_character", "a control character in the request's head");
  return first_line_ ? check_request_line_byte(byte) : check_field_line_byte(byte);
}

bool RequestParser::check_request_line_byte(std::uint8_t byte) {
  if (byte == '\t' || (byte == ' ' && (line_bytes_ == 0 || ++head_->spaces > 2)))
    return refuse(400, "bad_request_line", "the request line must be method, target and version with single blanks");
  if (head_->spaces == 1 && byte != ' ' && ++head_->target_bytes > limits_.target_bytes)
    return refuse(414, "target_too_long",
                  fmt::format("the request target is longer than {} bytes", limits_.target_bytes));
  return true;
}

bool RequestParser::check_field_line_byte(std::uint8_t byte) {
  if (line_bytes_ != 0 || byte == '\r' || byte == '\n') return true;
  if (byte == ' ' || byte == '\t') return refuse(400, "folded_header", "a header field continued on a new line");
  if (byte == ':') return refuse(400, "bad_header", "a header field without a name");
  if (++head_->fields > limits_.header_count)
    return refuse(431, "too_many_headers", fmt::format("more than {} header fields", limits_.header_count));
  return true;
}

bool RequestParser::run_llhttp(ByteView bytes) {
  if (bytes.empty()) return true;
  const auto* text = reinterpret_cast<const char*>(bytes.data());
  const llhttp_errno_t result = llhttp_execute(&head_->parser, text, bytes.size());
  switch (result) {
    case HPE_OK:
    case HPE_PAUSED_UPGRADE:  // CONNECT: no body for us, the router refuses it
      return true;
    case HPE_INVALID_METHOD:
      return refuse(501, "method_unknown", "the request's method is not known");
    case HPE_INVALID_VERSION:
      return refuse(505, "version_not_supported", "only HTTP/1.0 and HTTP/1.1 are spoken here");
    default: {
      const char* reason = llhttp_get_error_reason(&head_->parser);
      return refuse(400, "malformed_request",
                    fmt::format("malformed HTTP: {}", reason != nullptr ? reason : llhttp_errno_name(result)));
    }
  }
}

bool RequestParser::finish_head() {
  Head& head = *head_;
  if (!head.complete) return refuse(400, "malformed_request", "malformed HTTP: the head ended early");
  if (head.parser.http_major != 1)
    return refuse(505, "version_not_supported", "only HTTP/1.0 and HTTP/1.1 are spoken here");
  request_.method = llhttp_method_name(static_cast<llhttp_method_t>(head.parser.method));
  request_.minor_version = head.parser.http_minor;
  request_.headers = std::move(head.headers);
  for (Header& header : request_.headers) {
    if (!std::all_of(header.name.begin(), header.name.end(), is_token_character))
      return refuse(400, "bad_header", "a character in a header field's name that must not be there");
    while (!header.value.empty() && (header.value.back() == ' ' || header.value.back() == '\t'))
      header.value.pop_back();
  }
  check_connection();
  const bool good = check_target() && check_host() && check_framing();
  head_.reset();
  return good;
}

bool RequestParser::check_target() {
  std::string target = std::move(head_->target);
  const auto allowed = [](char c) { return c > 0x20 && c < 0x7f && c != '#'; };
  if (target.empty() || !std::all_of(target.begin(), target.end(), allowed))
    return refuse(400, "bad_target", "a character in the request target must be percent-encoded");
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!equals_ignoring_case(std::string_view(target).substr(0, scheme.size()), scheme)) continue;
    const std::size_t slash = target.find_first_of("/?", scheme.size());
    request_.host = target.substr(scheme.size(), slash == std::string::npos ? slash : slash - scheme.size());
    target = slash == std::string::npos ? "/" : target.substr(slash);
    if (target[0] == '?') target.insert(0, "/");
  }
  if (target[0] != '/' && target != "*" && request_.method != "CONNECT")
    return refuse(400, "bad_target", "the request target must be a path");
  const std::size_t mark = target.find('?');
  request_.path = target.substr(0, mark);
  if (mark != std::string::npos) request_.query = target.substr(mark + 1);
  return true;
}

bool RequestParser::check_host() {
  std::size_t hosts = 0;
  for (const Header& header : request_.headers) {
    if (header.name != "host") continue;
    if (hosts++ == 0 && request_.host.empty()) request_.host = header.value;
  }
  if (hosts > 1) return refuse(400, "bad_host", "more than one Host field");
  if (hosts == 0 && request_.minor_version >= 1) return refuse(400, "bad_host", "the Host field is missing");
  return true;
}

void RequestParser::check_connection() {
  request_.keep_alive = request_.minor_version >= 1;
  for (const Header& header : request_.headers) {
    if (header.name != "connection") continue;
    std::string_view rest = header.value;
    while (!rest.empty()) {
      const std::size_t comma = std::min(rest.find(','), rest.size());
      std::string_view token = rest.substr(0, comma);
      rest.remove_prefix(std::min(comma + 1, rest.size()));
      while (!token.empty() && token.front() == ' ') token.remove_prefix(1);
      while (!token.empty() && token.back() == ' ') token.remove_suffix(1);
      if (equals_ignoring_case(token, "close")) {
        request_.keep_alive = false;
        return;
      }
      if (equals_ignoring_case(token, "keep-alive")) request_.keep_alive = true;
    }
  }
}

// Exactly one way to tell where the body ends, or the request is refused (RFC 9112 section 6.3 and 11.2).
bool RequestParser::check_framing() {
  const std::string* length = nullptr;
  const std::string* coding = nullptr;
  for (const Header& header : request_.headers) {
    const std::string** slot = header.name == "content-length"      ? &length
                               : header.name == "transfer-encoding" ? &coding
                                                                    : nullptr;
    if (slot == nullptr) continue;
    if (*slot != nullptr) return refuse(400, "bad_framing", fmt::format("more than one {} field", header.name));
    *slot = &header.value;
  }
  if (length != nullptr && coding != nullptr)
    return refuse(400, "bad_framing", "Content-Length and Transfer-Encoding exclude each other");
  if (const std::string_view expect = request_.header("expect"); !expect.empty()) {
    if (!equals_ignoring_case(expect, "100-continue"))
      return refuse(417, "expectation_failed", "only \"Expect: 100-continue\" is known");
    request_.expects_continue = request_.minor_version >= 1;
  }
  if (coding != nullptr) {
    if (request_.minor_version == 0) return refuse(400, "bad_framing", "Transfer-Encoding in an HTTP/1.0 request");
    if (!equals_ignoring_case(*coding, "chunked"))
      return refuse(501, "transfer_encoding_unsupported", "the only transfer coding known is chunked");
    request_.has_body = true;
    state_ = State::chunked;
    return true;
  }
  std::uint64_t size = 0;
  if (length != nullptr) {
    const char* end = length->data() + length->size();
    const auto [at, error] = std::from_chars(length->data(), end, size);
    if (error != std::errc{} || at != end ||
        !std::all_of(length->begin(), length->end(), [](char c) { return c >= '0' && c <= '9'; }))
      return refuse(400, "bad_framing", "Content-Length is not a number");
    request_.content_length = size;
  }
  if (size > limits_.body_bytes)
    return refuse(413, "body_too_large", fmt::format("the body is larger than {} bytes", limits_.body_bytes));
  request_.has_body = size > 0;
  body_left_ = size;
  state_ = State::identity;
  return true;
}

// ---- the body

RequestParser::Event RequestParser::feed_identity(ByteView bytes) {
  if (body_left_ == 0) {
    state_ = State::complete;
    return {Step::message_complete, 0, {}};
  }
  const std::size_t n = static_cast<std::size_t>(std::min<std::uint64_t>(body_left_, bytes.size()));
  if (n == 0) return {};
  body_left_ -= n;
  body_seen_ += n;
  return {Step::body, n, bytes.first(n)};
}

RequestParser::Event RequestParser::feed_chunked(ByteView bytes) {
  const ChunkDecoder::Event event = chunks_.feed(bytes);
  switch (event.step) {
    case ChunkDecoder::Step::need_more:
      return {Step::need_more, event.used, {}};
    case ChunkDecoder::Step::data:
      body_seen_ += event.data.size();
      if (body_seen_ > limits_.body_bytes) {
        refuse(413, "body_too_large", fmt::format("the body is larger than {} bytes", limits_.body_bytes));
        return {Step::malformed, event.used, {}};
      }
      return {Step::body, event.used, event.data};
    case ChunkDecoder::Step::done:
      state_ = State::complete;
      return {Step::message_complete, event.used, {}};
    case ChunkDecoder::Step::malformed:
      refuse(400, "bad_framing", fmt::format("malformed chunked body: {}", chunks_.reason()));
      break;
  }
  return {Step::malformed, event.used, {}};
}

}  // namespace rowferry::http
