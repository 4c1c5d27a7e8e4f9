#include <criterion/criterion.h>
#include <fmt/format.h>

#include "http/wire/request_parser.hpp"

using namespace rowferry;
using namespace rowferry::http;
using Step = RequestParser::Step;

namespace {

// Everything that a connection's bytes give, as text: "GET /a?b h=1 [body]; 400 code;".
class Reader {
 public:
  explicit Reader(const RequestLimits& limits = {}) : parser_(limits) {}

  void feed(std::string_view bytes) {
    while (!stopped_) {
      const RequestParser::Event event = parser_.feed(as_bytes(bytes));
      bytes.remove_prefix(event.used);
      switch (event.step) {
        case Step::need_more:
          return;
        case Step::head_complete:
          note_head();
          break;
        case Step::body:
          body_ += as_text(event.body);
          break;
        case Step::message_complete:
          log += fmt::format("[{}]{};", body_, parser_.request().keep_alive ? "" : " close");
          body_.clear();
          parser_.next_message();
          break;
        case Step::malformed:
          log += fmt::format("{} {};", parser_.fault().status, parser_.fault().code);
          stopped_ = true;
      }
    }
  }
  std::string log;
  RequestParser& parser() { return parser_; }

 private:
  void note_head() {
    const Request& request = parser_.request();
    log += fmt::format("{} {}{}{} @{}", request.method, request.path, request.query.empty() ? "" : "?", request.query,
                       request.host);
    for (const Header& header : request.headers) {
      if (header.name.starts_with("x-")) log += fmt::format(" {}={}", header.name, header.value);
    }
  }
  RequestParser parser_;
  std::string body_;
  bool stopped_ = false;
};

std::string whole(std::string_view bytes, const RequestLimits& limits = {}) {
  Reader reader(limits);
  reader.feed(bytes);
  return reader.log;
}

// The same bytes whole, one at a time, and cut in two at every place, must read the same.
std::string every_split(std::string_view bytes, const RequestLimits& limits = {}) {
  const std::string expected = whole(bytes, limits);
  Reader single(limits);
  for (const char& c : bytes) single.feed({&c, 1});
  cr_expect_eq(single.log, expected, "byte by byte: %s instead of %s", single.log.c_str(), expected.c_str());
  for (std::size_t cut = 1; cut < bytes.size(); ++cut) {
    Reader two(limits);
    two.feed(bytes.substr(0, cut));
    two.feed(bytes.substr(cut));
    cr_expect_eq(two.log, expected, "cut at %zu: %s instead of %s", cut, two.log.c_str(), expected.c_str());
  }
  return expected;
}

void expect_read(std::string_view bytes, std::string_view wanted, const RequestLimits& limits = {}) {
  const std::string got = every_split(bytes, limits);
  cr_expect_eq(got, wanted, "%.80s\n   gave   %s\n   wanted %s", std::string(bytes).c_str(), got.c_str(),
               std::string(wanted).c_str());
}

}  // namespace

Test(request_parser, reads_requests_however_they_are_cut) {
  expect_read("GET /v1/transfers?limit=2 HTTP/1.1\r\nHost: a:80\r\nX-One: 1 \r\nX-Two:\r\n\r\n",
              "GET /v1/transfers?limit=2 @a:80 x-one=1 x-two=[];");
  expect_read("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", "POST / @a[hello];");
  expect_read(
      "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n5\r\nhello\r\n1;ext=\"v\"\r\n!\r\n0\r\nX: "
      "y\r\n\r\n",
      "POST / @a[hello!];");
  expect_read("DELETE /x HTTP/1.0\r\n\r\n", "DELETE /x @[] close;");
}

Test(request_parser, reads_pipelined_requests_and_skips_empty_lines_between) {
  expect_read(
      "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi\r\n\r\nGET /b HTTP/1.1\r\nHost: b\r\nConnection: "
      "close\r\n\r\n",
      "POST /a @a[hi];GET /b @b[] close;");
}

Test(request_parser, connection_field_decides_about_keep_alive) {
  expect_read("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", "GET / @[];");
  expect_read("GET / HTTP/1.1\r\nHost: a\r\nConnection: x, CLOSE\r\n\r\n", "GET / @a[] close;");
}

Test(request_parser, absolute_targets_carry_their_own_host) {
  expect_read("GET http://b:81/p?q HTTP/1.1\r\nHost: a\r\n\r\n", "GET /p?q @b:81[];");
  expect_read("GET http://b HTTP/1.1\r\nHost: a\r\n\r\n", "GET / @b[];");
}

Test(request_parser, two_ways_to_frame_a_body_are_refused) {
  const auto post = [](std::string_view fields, std::string_view body) {
    return fmt::format("POST / HTTP/1.1\r\nHost: a\r\n{}\r\n{}", fields, body);
  };
  for (const char* fields : {
           "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
           "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n",
           "Content-Length: 3\r\nContent-Length: 3\r\n",
           "Content-Length: 3\r\nContent-Length: 4\r\n",
           "Content-Length: 3, 3\r\n",
           "Content-Length: +3\r\n",
           "Content-Length: -3\r\n",
           "Content-Length: 0x3\r\n",
           "Content-Length: 3 4\r\n",
           "Content-Length:\r\n",
           "Content-Length: 99999999999999999999999\r\n",
           "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
           "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
       }) {
    const std::string got = every_split(post(fields, "0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"));
    cr_expect_eq(got.find("smuggled"), std::string::npos, "%s gave %s", fields, got.c_str());
    cr_expect_eq(got.substr(0, 4), "400 ", "%s gave %s", fields, got.c_str());
  }
  for (const char* coding : {"identity", "gzip, chunked", "chunked, identity", "xchunked", "chunked;q=1",
                             "\x0b"
                             "chunked"}) {
    const std::string got = every_split(post(fmt::format("Transfer-Encoding: {}\r\n", coding), "0\r\n\r\n"));
    cr_expect(got == "501 transfer_encoding_unsupported;" || got.starts_with("400 "), "%s gave %s", coding,
              got.c_str());
  }
  expect_read("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400 bad_framing;");
}

Test(request_parser, line_ends_other_than_crlf_are_refused) {
  expect_read("GET / HTTP/1.1\nHost: a\n\n", "400 bad_line_end;");
  expect_read("GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n", "400 bad_line_end;");
  expect_read("GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n", "400 bad_line_end;");
  expect_read("GET / HTTP/1.1\r\nHost: a\r\n\n", "400 bad_line_end;");
  expect_read("GET / HTTP/1.1\r\nHost: a\r\r\n\r\n", "400 bad_line_end;");
  expect_read("\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "400 bad_line_end;");
}

Test(request_parser, folded_and_malformed_fields_are_refused) {
  expect_read("GET / HTTP/1.1\r\nHost: a\r\nX: b\r\n c\r\n\r\n", "400 folded_header;");
  expect_read("GET / HTTP/1.1\r\n Host: a\r\n\r\n", "400 folded_header;");
  for (const char* field : {"X : b", "X", ": b", "X\x01: b", "X: a\x02", "X: a\x7f", "X y: b", "(x): y"}) {
    const std::string got = every_split(fmt::format("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n\r\n", field));
    cr_expect(got.starts_with("400 "), "%s gave %s", field, got.c_str());
  }
  const std::string nul = every_split(std::string_view("GET / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n", 38));
  cr_expect(nul.starts_with("400 "), "%s", nul.c_str());
}

Test(request_parser, request_lines_have_exactly_three_parts) {
  for (const char* line :
       {"GET  / HTTP/1.1", "GET / HTTP/1.1 ", "GET /a b HTTP/1.1", "GET", " GET / HTTP/1.1", "GET\t/ HTTP/1.1",
        "GET / http/1.1", "GET a HTTP/1.1", "GET /\x80 HTTP/1.1", "GET /#x HTTP/1.1", "/ HTTP/1.1"}) {
    const std::string got = every_split(fmt::format("{}\r\nHost: a\r\n\r\n", line));
    cr_expect(got.starts_with("400 ") || got.starts_with("501 "), "%s gave %s", line, got.c_str());
  }
}

Test(request_parser, versions_and_methods_that_are_not_spoken_have_their_own_status) {
  expect_read("GET / HTTP/2.0\r\nHost: a\r\n\r\n", "505 version_not_supported;");
  expect_read("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "400 malformed_request;");
  expect_read("GET /\r\n\r\n", "505 version_not_supported;");
  expect_read("GET / HTTP/1.7\r\nHost: a\r\n\r\n", "505 version_not_supported;");
  expect_read("JUMP / HTTP/1.1\r\nHost: a\r\n\r\n", "501 method_unknown;");
}

Test(request_parser, host_is_needed_once) {
  expect_read("GET / HTTP/1.1\r\n\r\n", "400 bad_host;");
  expect_read("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", "400 bad_host;");
}

Test(request_parser, malformed_chunks_are_refused) {
  for (const char* body : {"x\r\n",
                           "-1\r\n",
                           "0x1\r\na\r\n0\r\n\r\n",
                           "\r\n",
                           "1 \r\na\r\n",
                           " 1\r\na\r\n",
                           "1\na\r\n0\r\n\r\n",
                           "1\ra\r\n",
                           "1\r\nab\r\n0\r\n\r\n",
                           "1\r\na\n0\r\n\r\n",
                           "1\r\na0\r\n\r\n",
                           "10000000000000000\r\n",
                           "fffffffffffffffff\r\n",
                           "1;a\x01\r\na\r\n",
                           "1;\nx\r\n",
                           "0\r\n\n",
                           "0\r\n x\r\n\r\n",
                           "0\r\nX: y\n\r\n",
                           "0\r\n:x\r\n\r\n",
                           "0\r\n\rx"}) {
    const std::string got =
        every_split(fmt::format("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{}", body));
    cr_expect_eq(got, "POST / @a400 bad_framing;", "%s gave %s", body, got.c_str());
  }
}

Test(request_parser, huge_chunk_sizes_hit_the_body_limit_not_an_overflow) {
  expect_read("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\naaaaaa",
              "POST / @a413 body_too_large;", {.body_bytes = 5});
}

Test(request_parser, every_limit_has_its_status) {
  const RequestLimits small{.head_bytes = 200, .header_count = 3, .target_bytes = 20, .body_bytes = 4};
  expect_read("GET /23456789012345678901 HTTP/1.1\r\nHost: a\r\n\r\n", "414 target_too_long;", small);
  expect_read("GET /2345678901234567890 HTTP/1.1\r\nHost: a\r\n\r\n", "GET /2345678901234567890 @a[];", small);
  expect_read("GET / HTTP/1.1\r\nHost: a\r\nA: 1\r\nB: 2\r\nC: 3\r\n\r\n", "431 too_many_headers;", small);
  expect_read("GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(200, 'x') + "\r\n\r\n", "431 head_too_large;", small);
  expect_read("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", "413 body_too_large;", small);
  expect_read("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nhell", "POST / @a[hell];", small);
  expect_read("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
              "POST / @a413 body_too_large;", small);
  const std::string chunked = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
  cr_expect_eq(whole(chunked + "1;" + std::string(300, 'e') + "\r\n"), "POST / @a400 bad_framing;");
  cr_expect_eq(whole(chunked + "0\r\nX: " + std::string(9000, 'e') + "\r\n\r\n"), "POST / @a400 bad_framing;");
}

Test(request_parser, expectations_are_told) {
  Reader reader;
  reader.feed("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 2\r\n\r\n");
  cr_expect(reader.parser().request().expects_continue);
  cr_expect_eq(reader.log, "POST / @a");
  expect_read("POST / HTTP/1.1\r\nHost: a\r\nExpect: miracles\r\nContent-Length: 2\r\n\r\n", "417 expectation_failed;");
}

Test(request_parser, idle_means_that_nothing_of_a_request_has_come) {
  Reader reader;
  cr_expect(reader.parser().idle());
  reader.feed("\r\n");
  cr_expect(reader.parser().idle(), "an empty line is no request");
  reader.feed("G");
  cr_expect_not(reader.parser().idle());
  reader.feed("ET / HTTP/1.1\r\nHost: a\r\n\r\n");
  cr_expect(reader.parser().idle());
}

Test(message, response_heads_carry_what_a_client_needs) {
  const Response response{.status = 404, .content_type = "text/plain", .headers = {{"Allow", "GET"}}};
  cr_expect_eq(response_head(response, 3, "D", true),
               "HTTP/1.1 404 Not Found\r\nDate: D\r\nContent-Length: 3\r\nContent-Type: text/plain\r\nAllow: GET\r\n"
               "Connection: keep-alive\r\n\r\n");
  cr_expect_eq(response_head({.status = 304}, 3, "D", false),
               "HTTP/1.1 304 Not Modified\r\nDate: D\r\nConnection: close\r\n\r\n");
  cr_expect_neq(response_head({.headers = {{"X", "a\r\nSet-Cookie: b"}}}, 0, "D", true).find("X: aSet-Cookie: b\r\n"),
                std::string::npos, "no line can be added through a value");
  cr_expect_eq(http_date(784111777), "Sun, 06 Nov 1994 08:49:37 GMT");
}

Test(message, percent_escapes_are_decoded_or_refused) {
  cr_expect_eq(percent_decode("a%20b%2Fc").value(), "a b/c");
  for (const char* bad : {"%", "%4", "%4g", "%00", "a%"}) cr_expect_not(percent_decode(bad).has_value(), "%s", bad);
  cr_expect_eq(query_parameter("a=1&b=x%20y+z&c", "b").value(), "x y z");
  cr_expect_eq(query_parameter("a=1&c", "c").value(), "");
  cr_expect_not(query_parameter("a=1", "b").has_value());
}
