#include <criterion/criterion.h>

#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/log.hpp"
#include "tests/support/expect.hpp"

using namespace rowferry;

namespace {

std::vector<std::string> lines;

void begin() {
  lines.clear();
  log::redirect([](std::string_view line) { lines.emplace_back(line); });
}
void end() { log::redirect({}); }

}  // namespace

TestSuite(logging, .init = begin, .fini = end);

Test(logging, text_lines_quote_only_what_needs_it) {
  log::setup(log::Format::text, log::Level::info);
  log::info("slice loaded", {{"rows", 12}, {"table", "dbo.t"}, {"why", "a b=\"c\"\n"}, {"ok", true}, {"rate", 1.5}});
  cr_assert_eq(lines.size(), 1);
  const std::string& line = lines[0];
  cr_expect_eq(line[10], 'T');
  cr_expect(line.find(" info    slice loaded rows=12 table=dbo.t why=\"a b=\\\"c\\\"\\n\" ok=true rate=1.5") !=
                std::string::npos,
            "%s", line.c_str());
  cr_expect_eq(line.find('\n'), std::string::npos, "one line an event");
}

Test(logging, json_lines_are_json) {
  log::setup(log::Format::json, log::Level::info);
  log::warning("a \"b\"", {{"rows", 12U}, {"text", "x\ny"}});
  cr_assert_eq(lines.size(), 1);
  const Json event = Json::parse(lines[0]);
  cr_expect_str_eq(event.find("level")->string()->c_str(), "warning");
  cr_expect_str_eq(event.find("message")->string()->c_str(), "a \"b\"");
  cr_expect_eq(*event.find("rows")->int64(), 12);
  cr_expect_str_eq(event.find("text")->string()->c_str(), "x\ny");
}

Test(logging, levels_below_are_not_written) {
  log::setup(log::Format::text, log::Level::warning);
  log::debug("no");
  log::info("no");
  log::error("yes");
  cr_assert_eq(lines.size(), 1);
  cr_expect(!log::enabled(log::Level::info));
  cr_expect(log::parse_level("warning") == log::Level::warning);
  cr_expect(!log::parse_level("loud"));
  cr_expect(log::parse_format("json") == log::Format::json);
  cr_expect(!log::parse_format("xml"));
}

Test(logging, failures_carry_code_and_context) {
  log::setup(log::Format::json, log::Level::info);
  Error error(Category::server, "server_error", "no");
  error.with_table("dbo.t");
  log::failure("slice failed", error, {{"id", "t1"}});
  const Json event = Json::parse(lines.at(0));
  cr_expect_str_eq(event.find("code")->string()->c_str(), "server_error");
  cr_expect_str_eq(event.find("detail")->string()->c_str(), "no [table dbo.t]");
  cr_expect_str_eq(event.find("id")->string()->c_str(), "t1");
}
