// A connection's bytes read the same however they are cut, stay within the limits, and never crash the reader.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>

#include "http/wire/request_parser.hpp"

namespace {

using namespace rowferry;
using namespace rowferry::http;
using Step = RequestParser::Step;

constexpr RequestLimits small{.head_bytes = 512, .header_count = 8, .target_bytes = 64, .body_bytes = 256};

void check_head(const Request& request) {
  std::size_t bytes = request.method.size() + request.path.size() + request.query.size();
  for (const Header& header : request.headers) bytes += header.name.size() + header.value.size();
  if (bytes > small.head_bytes || request.headers.size() > small.header_count) std::abort();
  if (find_header(request.headers, "content-length") != nullptr &&
      find_header(request.headers, "transfer-encoding") != nullptr)
    std::abort();
}

class Reader {
 public:
  // False once the connection is to be closed.
  bool feed(ByteView bytes) {
    while (true) {
      const RequestParser::Event event = parser_.feed(bytes);
      if (event.used > bytes.size()) std::abort();
      bytes = bytes.subspan(event.used);
      switch (event.step) {
        case Step::need_more:
          if (!bytes.empty()) std::abort();
          return true;
        case Step::head_complete:
          check_head(parser_.request());
          log += parser_.request().method + " " + parser_.request().path + " " + parser_.request().host;
          break;
        case Step::body:
          body_ += as_text(event.body);
          break;
        case Step::message_complete:
          if (parser_.body_bytes() > small.body_bytes) std::abort();
          log += "[" + std::exchange(body_, {}) + "]";  // of a refused message, how much came before is not told
          parser_.next_message();
          break;
        case Step::malformed:
          log += std::to_string(parser_.fault().status) + parser_.fault().code;
          return false;
      }
    }
  }
  std::string log;

 private:
  RequestParser parser_{small};
  std::string body_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const ByteView bytes(data + 1, size - 1);
  Reader whole;
  whole.feed(bytes);
  Reader cut;
  const std::size_t step = 1 + data[0] % 16;
  bool open = true;
  for (std::size_t at = 0; open && at < bytes.size(); at += step)
    open = cut.feed(bytes.subspan(at, std::min(step, bytes.size() - at)));
  if (whole.log != cut.log) std::abort();
  return 0;
}
