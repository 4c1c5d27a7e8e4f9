#include "mssql/dialect.hpp"
#include "tests/support/error_of.hpp"

using namespace rowferry;
using namespace rowferry::mssql;
using Parts = std::vector<std::string>;

namespace {
Parts parts(std::string_view text) { return parse_table(text).parts; }
void refused(std::string_view text, std::string_view at) {
  const Error error = test::error_of([&] { parse_table(text); });
  cr_expect(error.code() == "bad_name", "%s", error.detail().c_str());
  cr_expect(error.category() == Category::input);
  cr_expect(error.detail().find(at) != std::string::npos, "%s", error.detail().c_str());
}
}  // namespace

Test(dialect, splits_names_by_t_sql_quoting) {
  cr_expect(parts("orders") == Parts{"orders"});
  cr_expect(parts("dbo.Orders") == (Parts{"dbo", "Orders"}));
  cr_expect(parts("dw.dbo.orders") == (Parts{"dw", "dbo", "orders"}));
  cr_expect(parts("dw..orders") == (Parts{"dw", "", "orders"}));
  cr_expect(parts("[my.schema].[a]]b.c]") == (Parts{"my.schema", "a]b.c"}));
  cr_expect(parts(R"("say ""hi""".t)") == (Parts{R"(say "hi")", "t"}));
  cr_expect(parts("[naïve ☃].#t") == (Parts{"naïve ☃", "#t"}));
  cr_expect(parts("naïve.☃") == (Parts{"naïve", "☃"}));
}

// O-09: the argument is at most a missing object, never executed SQL.
Test(dialect, refuses_what_is_no_name_and_says_where) {
  refused("[a] print 1 --", "at character 4");
  refused("my table", "at character 3");
  refused("[open", "at character 1");
  refused("a.b.c.d", "at most three parts");
  refused("", "is empty");
  refused("dbo.", "is empty");
  refused(".t", "is empty");
  refused("[].t", "is empty");
  refused("dbo.t; drop table x", "at character 6");
  refused("dbo.it's", "at character 7");
  refused("dbo.[" + std::string(129, 'x') + "]", "128");
}

Test(dialect, quotes_names_and_texts) {
  cr_expect(quoted("my.schema", "odd]name 'x' \"y\"") == "[my.schema].[odd]]name 'x' \"y\"]");
  cr_expect(literal("it's ☃") == "N'it''s ☃'");
  cr_expect(quoted_list({"order", "a]b", "sel ect"}) == "[order], [a]]b], [sel ect]");
  cr_expect(test::error_of([] { quoted(""); }).code() == "bad_name");
  cr_expect(test::error_of([] { quoted(std::string_view("a\0b", 3)); }).code() == "bad_name");
  cr_expect(test::error_of([] { quoted(std::string(129, 'x')); }).code() == "bad_name");
}

Test(dialect, what_was_quoted_is_split_into_the_same) {
  for (const std::string name : {"a]b", "a.b", "\"", "[", "]]", "x y", "☃", "'"}) {
    cr_expect(parts(quoted("s]", name)) == (Parts{"s]", name}), "%s", name.c_str());
  }
}
