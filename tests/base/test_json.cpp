#include <criterion/criterion.h>

#include <cmath>
#include <limits>
#include <string>

#include "base/error.hpp"
#include "base/json.hpp"
#include "tests/support/expect.hpp"

using namespace rowferry;
using std::string_view_literals::operator""sv;

namespace {

// The error's code and detail, or "" when the text is good.
std::string refusal(std::string_view text, Json::Limits limits = {}) {
  try {
    Json::parse(text, limits);
  } catch (const Error& error) {
    cr_expect_eq(error.category(), Category::input);
    return error.code() + ": " + error.detail();
  }
  return {};
}

std::string round_trip(std::string_view text) { return Json::parse(text).text(); }

}  // namespace

Test(json_writer, compact) {
  JsonWriter json;
  json.begin_object();
  json.field("name", "a\"b\\c\n\x01é").field("yes", true).field("n", -5).field("u", ~0ULL);
  json.key("list").begin_array().value(1).value(2.5).null().begin_object().end_object().end_array();
  json.key("raw").raw("[1]");
  json.field("none", std::optional<int>()).field("some", std::optional<int>(7));
  json.end_object();
  EXPECT_TEXT(json.text(),
              "{\"name\":\"a\\\"b\\\\c\\n\\u0001é\",\"yes\":true,\"n\":-5,\"u\":18446744073709551615,"
              "\"list\":[1,2.5,null,{}],\"raw\":[1],\"none\":null,\"some\":7}");
}

Test(json_writer, indented) {
  JsonWriter json(2);
  json.begin_object().key("a").begin_array().value(1).value(2).end_array().key("b").begin_object().end_object();
  json.end_object();
  EXPECT_TEXT(json.text(), "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": {}\n}");
}

Test(json_writer, doubles_read_back_the_same) {
  for (const double number : {0.1, 1e300, 5e-324, 1.0 / 3, 123456789.125, -0.0, 2500.0, -3.0, 1e17}) {
    JsonWriter json;
    json.value(number);
    cr_expect(!Json::parse(json.text()).int64());
    cr_expect_eq(*Json::parse(json.text()).number(), number, "%s", json.text().c_str());
  }
  JsonWriter json;
  json.begin_array().value(std::nan("")).value(std::numeric_limits<double>::infinity()).end_array();
  EXPECT_TEXT(json.text(), "[null,null]");
}

Test(json_writer, malformed_utf8_never_comes_out) {
  JsonWriter json;
  json.value("a\xFF\xE2\x82z"sv);
  EXPECT_TEXT(json.text(), "\"a\uFFFD\uFFFD\uFFFDz\"");
}

Test(json, reads_every_kind_and_keeps_order) {
  const Json doc = Json::parse(R"({"z":null,"a":true,"m":-9223372036854775808,"u":18446744073709551615,)"
                               R"("d":1.5,"s":"\u00e9\ud83d\ude00","l":[1,[2]],"o":{"k":"v"}})");
  cr_assert(doc.object() != nullptr);
  EXPECT_TEXT(doc.object()->front().first, "z");
  cr_expect(doc.find("z")->is_null());
  cr_expect(*doc.find("a")->boolean());
  cr_expect_eq(*doc.find("m")->int64(), std::numeric_limits<std::int64_t>::min());
  cr_expect(!doc.find("m")->uint64());
  cr_expect_eq(*doc.find("u")->uint64(), std::numeric_limits<std::uint64_t>::max());
  cr_expect(!doc.find("u")->int64());
  cr_expect_eq(*doc.find("d")->number(), 1.5);
  cr_expect(!doc.find("d")->int64());
  cr_expect_str_eq(doc.find("s")->string()->c_str(), "é😀");
  cr_expect_eq(doc.find("l")->array()->size(), 2);
  cr_expect_str_eq(doc.find("o")->find("k")->string()->c_str(), "v");
  cr_expect_null(doc.find("nothing"));
  cr_expect_null(doc.find("s")->find("x"));
}

Test(json, writes_what_it_read) {
  for (const auto text : {"null"sv, "[]"sv, "{}"sv, R"({"a":[1,-2,2.5,"x",true,false,null],"b":{"c":{}}})"sv}) {
    EXPECT_TEXT(round_trip(text), std::string(text));
  }
}

Test(json, builds_documents) {
  Json doc;
  doc.set("a", 1).set("b", "x").set("a", 2);
  Json list;
  list.push(1).push(nullptr);
  doc.set("list", list);
  EXPECT_TEXT(doc.text(), R"({"a":2,"b":"x","list":[1,null]})");
}

Test(json, says_what_is_malformed_and_where) {
  struct Case {
    std::string_view text;
    std::string_view says;
  };
  const Case cases[] = {
      {"", "ends too early"},
      {"   ", "ends too early"},
      {"{\"a\": 1,\n \"b\": tru}", "line 2, column 7"},
      {"{\"a\" 1}", "expected \":\", found \"1}\", line 1, column 6"},
      {"{\"a\":1,}", "expected a string, found \"}\""},
      {"[1,]", "expected a value, found \"]\""},
      {"[1 2]", "expected \",\" or \"]\""},
      {"{\"é\":1}x", "expected nothing more, found \"x\", line 1, column 8"},
      {"\"a", "ends too early"},
      {"\"\\x\"", "expected an escape sequence"},
      {"[01]", "expected \",\" or \"]\", found \"1]\""},
      {"[1.]", "expected a digit"},
      {"['a']", "expected a value"},
      {"\"a\tb\"", "escaped control character"},
      {"\"\xFF\"", "not UTF-8"},
      {"123456789012345678901234567890", "malformed_json: "},
      {R"("\ud800")", "malformed_json: "},
  };
  for (const Case& c : cases) {
    const std::string got = refusal(c.text);
    cr_expect(got.starts_with("malformed_json: "), "%s", std::string(c.text).c_str());
    cr_expect(got.find(c.says) != std::string::npos, "%s -> %s", std::string(c.text).c_str(), got.c_str());
  }
}

Test(json, deep_nesting_that_is_also_malformed_does_not_exhaust_the_stack) {
  cr_expect(!refusal(std::string(3'000'000, '[') + "\xFF").empty());
  cr_expect(!refusal(std::string(3'000'000, '[') + "\"").empty());
}

Test(json, refuses_duplicate_keys) {
  cr_expect(refusal(R"({"a":1,"b":{"x":1,"x":2}})").find("\"x\" appears twice") != std::string::npos);
  cr_expect(refusal("{\"a\":1,\"\\u0061\":2}").find("appears twice") != std::string::npos);
  EXPECT_TEXT(refusal(R"({"a":{"x":1},"b":{"x":1}})"), "");
}

Test(json, bounds_depth_and_size) {
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_TEXT(refusal(nested(64)), "");
  cr_expect(refusal(nested(65)).starts_with("json_too_deep"));
  cr_expect(refusal(nested(100'000)).starts_with("json_too_deep"));
  EXPECT_TEXT(refusal(nested(2), {.depth = 2}), "");
  cr_expect(refusal(nested(3), {.depth = 2}).starts_with("json_too_deep"));
  cr_expect(refusal("[1,2,3]", {.bytes = 6}).starts_with("json_too_large"));
  EXPECT_TEXT(refusal("[1,2,3]", {.bytes = 7}), "");
}

Test(nearest, finds_typing_mistakes_only) {
  const std::string_view names[] = {"source", "target", "columns", "workers"};
  cr_expect(nearest("sorce", names) == "source");
  cr_expect(nearest("taregt", names) == "target");
  cr_expect(nearest("column", names) == "columns");
  cr_expect(nearest("zzzzzz", names).empty());
  cr_expect(nearest("", names).empty());
  cr_expect(nearest(std::string(5000, 'x'), names).empty());
}
