#include "postgres/steadiness.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/json.hpp"
#include "base/limits.hpp"
#include "postgres/dialect.hpp"

namespace rowferry::postgres {

namespace {

// Nodes that give the same set of rows every time; the order of rows does not matter. Not here: Limit, WindowAgg,
// Unique (DISTINCT ON), Sample Scan; grouping, where a predicate on the key may be applied to the rows before they are
// grouped; foreign scans, which no snapshot covers.
constexpr std::array<std::string_view, 31> steady_nodes{"Seq Scan",
                                                        "Index Scan",
                                                        "Index Only Scan",
                                                        "Bitmap Heap Scan",
                                                        "Bitmap Index Scan",
                                                        "BitmapAnd",
                                                        "BitmapOr",
                                                        "Tid Scan",
                                                        "Tid Range Scan",
                                                        "Append",
                                                        "Merge Append",
                                                        "Nested Loop",
                                                        "Hash Join",
                                                        "Merge Join",
                                                        "Hash",
                                                        "Sort",
                                                        "Incremental Sort",
                                                        "Materialize",
                                                        "Memoize",
                                                        "Result",
                                                        "Subquery Scan",
                                                        "CTE Scan",
                                                        "Values Scan",
                                                        "Function Scan",
                                                        "ProjectSet",
                                                        "Gather",
                                                        "Gather Merge",
                                                        "Parallel Append",
                                                        "Parallel Hash",
                                                        "Parallel Hash Join",
                                                        "Parallel Seq Scan"};

// Members of a plan's node that are no SQL.
constexpr std::array<std::string_view, 16> plain_members{
    "Node Type",  "Relation Name", "Schema",         "Alias",        "Index Name",   "Join Type",
    "Strategy",   "CTE Name",      "Function Name",  "Partial Mode", "Subplan Name", "Parent Relationship",
    "Cache Mode", "Command",       "Scan Direction", "Operation"};

// Syntax that looks like a call. All give the same answer for the same values.
constexpr std::array<std::string_view, 10> call_syntax{"coalesce",  "nullif",   "greatest", "least", "row",
                                                       "substring", "position", "overlay",  "trim",  "exists"};

// Functions that are STABLE because settings change them; every session of the source has the same settings.
constexpr std::array<std::string_view, 26> by_settings{"to_char",
                                                       "to_date",
                                                       "to_timestamp",
                                                       "date_trunc",
                                                       "date_part",
                                                       "extract",
                                                       "timezone",
                                                       "date",
                                                       "concat",
                                                       "concat_ws",
                                                       "format",
                                                       "generate_series",
                                                       "to_json",
                                                       "to_jsonb",
                                                       "timestamp",
                                                       "timestamptz",
                                                       "array_to_string",
                                                       "to_tsvector",
                                                       "to_tsquery",
                                                       "text",
                                                       "quote_literal",
                                                       "row_to_json",
                                                       "array_to_json",
                                                       "jsonb_build_object",
                                                       "jsonb_build_array",
                                                       "make_timestamptz"};

constexpr std::array<std::string_view, 5> clock_words{"current_date", "current_time", "current_timestamp", "localtime",
                                                      "localtimestamp"};
constexpr std::array<std::string_view, 4> clock_inputs{"now", "today", "tomorrow", "yesterday"};

template <std::size_t n>
bool among(const std::array<std::string_view, n>& list, std::string_view word) {
  return std::ranges::find(list, word) != list.end();
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

struct Token {
  enum class Kind : std::uint8_t { word, quoted, string, symbol } kind = Kind::symbol;
  std::string text;      // a word in lower case; of a string its inside
  bool calls = false;    // "(" follows at once
  bool escapes = false;  // a string with escapes that may stand for any character
};

// PostgreSQL's lexical structure (manual, 4.1), as far as it takes to tell names, literals and comments apart.
class Lexer {
 public:
  explicit Lexer(std::string_view sql) : sql_(sql) {}

  std::vector<Token> tokens() {
    std::vector<Token> out;
    for (;;) {
      skip_blanks();
      if (at_ >= sql_.size()) return out;
      out.push_back(next());
    }
  }

 private:
  char peek(std::size_t ahead = 0) const { return at_ + ahead < sql_.size() ? sql_[at_ + ahead] : '\0'; }
  static bool begins_word(char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x80 || std::isalpha(byte) != 0 || c == '_';
  }
  static bool in_word(char c) { return begins_word(c) || std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '$'; }

  void skip_blanks() {
    while (at_ < sql_.size()) {
      if (std::isspace(static_cast<unsigned char>(peek())) != 0) {
        ++at_;
      } else if (peek() == '-' && peek(1) == '-') {
        while (at_ < sql_.size() && peek() != '\n') ++at_;
      } else if (peek() == '/' && peek(1) == '*') {
        skip_comment();
      } else {
        return;
      }
    }
  }

  void skip_comment() {
    int depth = 0;
    do {
      const bool opens = peek() == '/' && peek(1) == '*';
      const bool closes = peek() == '*' && peek(1) == '/';
      depth += opens ? 1 : closes ? -1 : 0;
      at_ += opens || closes ? 2 : 1;
    } while (depth > 0 && at_ < sql_.size());
  }

  Token next() {
    const char c = peek();
    if (c == '\'') return string(false);
    if (c == '"') return quoted_name();
    if (c == '$' && (peek(1) == '$' || begins_word(peek(1)))) return dollar_string();
    if (begins_word(c)) return word();
    if (c == ':' && peek(1) == ':') {
      at_ += 2;
      return {Token::Kind::symbol, "::"};
    }
    ++at_;
    return {Token::Kind::symbol, std::string(1, c)};
  }

  Token word() {
    const std::size_t begin = at_;
    while (in_word(peek())) ++at_;
    Token token{Token::Kind::word, lower(sql_.substr(begin, at_ - begin))};
    if (peek() == '\'' && (token.text == "e" || token.text == "b" || token.text == "x" || token.text == "n")) {
      return string(token.text == "e");
    }
    if (token.text == "u" && peek() == '&' && (peek(1) == '\'' || peek(1) == '"')) {
      ++at_;
      Token inner = peek() == '"' ? quoted_name() : string(false);
      inner.escapes = inner.text.find('\\') != std::string::npos;
      return inner;
    }
    token.calls = peek() == '(';
    return token;
  }

  Token string(bool with_escapes) {
    Token token{Token::Kind::string, ""};
    for (++at_; at_ < sql_.size(); ++at_) {
      if (with_escapes && peek() == '\\') {
        token.escapes = token.escapes || std::isalnum(static_cast<unsigned char>(peek(1))) != 0;
        ++at_;
      } else if (peek() == '\'' && peek(1) == '\'') {
        ++at_;
      } else if (peek() == '\'') {
        break;
      }
      token.text += peek();
    }
    ++at_;
    return token;
  }

  Token quoted_name() {
    Token token{Token::Kind::quoted, ""};
    for (++at_; at_ < sql_.size(); ++at_) {
      if (peek() == '"' && peek(1) == '"') {
        ++at_;
      } else if (peek() == '"') {
        break;
      }
      token.text += peek();
    }
    ++at_;
    token.calls = peek() == '(';
    return token;
  }

  Token dollar_string() {
    const std::size_t tag_end = sql_.find('$', at_ + 1);
    if (tag_end == std::string_view::npos) {
      ++at_;
      return {Token::Kind::symbol, "$"};
    }
    const std::string_view tag = sql_.substr(at_, tag_end + 1 - at_);
    const std::size_t begin = tag_end + 1;
    const std::size_t end = std::min(sql_.find(tag, begin), sql_.size());
    at_ = std::min(end + tag.size(), sql_.size());
    return {Token::Kind::string, std::string(sql_.substr(begin, end - begin))};
  }

  std::string_view sql_;
  std::size_t at_ = 0;
};

// "now", "[today,)", "{yesterday 10:00}": the input of a date or time may hold such a word anywhere.
bool names_the_clock(const Token& token) {
  if (token.kind != Token::Kind::string) return false;
  if (token.escapes) return true;
  const std::string text = lower(token.text);
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    while (end < text.size() && std::isalpha(static_cast<unsigned char>(text[end])) != 0) ++end;
    if (among(clock_inputs, std::string_view(text).substr(at, end - at))) return true;
    at = end + 1;
  }
  return false;
}

std::string literal_text(const Token& token) {
  return fmt::format("the literal '{}' may mean the time of day", cut_for_message(token.text, 40));
}

void add_call(const std::vector<Token>& tokens, std::size_t at, Finding& finding) {
  const auto symbol = [&](std::size_t i, std::string_view text) {
    return i < at && tokens[i].kind == Token::Kind::symbol && tokens[i].text == text;
  };
  const Token& token = tokens[at];
  CalledFunction call{"pg_catalog", token.text};
  std::size_t begin = at;
  if (at >= 2 && symbol(at - 1, ".")) {
    call.schema = tokens[at - 2].text;
    begin = at - 2;
  }
  // A length or precision: numeric(10,2), character varying(20).
  if (symbol(begin - 1, "::") || (token.kind == Token::Kind::word && token.text == "varying")) return;
  if (begin == at && token.kind == Token::Kind::word && among(call_syntax, token.text)) return;
  if (std::ranges::find(finding.calls, call) == finding.calls.end()) finding.calls.push_back(std::move(call));
}

void read_node(const Json& node, Finding& finding);

void read_member(std::string_view name, const Json& value, Finding& finding) {
  if (among(plain_members, name)) return;
  if (name == "Subplans Removed" && value.int64().value_or(0) > 0) {
    // What removed them is not shown; only what is known when a statement starts (now(), say) does so here.
    finding.unsteady = "partitions are chosen when a statement starts";
  }
  if (name == "Plans" && value.array() != nullptr) {
    for (const Json& child : *value.array()) read_node(child, finding);
  } else if (value.array() != nullptr) {
    for (const Json& item : *value.array()) read_member(name, item, finding);
  } else if (value.object() != nullptr) {
    for (const auto& [inner, item] : *value.object()) read_member(inner, item, finding);
  } else if (value.string() != nullptr && finding.unsteady.empty()) {
    Finding inner = read_expression(*value.string());
    finding.unsteady = std::move(inner.unsteady);
    for (CalledFunction& call : inner.calls) {
      if (std::ranges::find(finding.calls, call) == finding.calls.end()) finding.calls.push_back(std::move(call));
    }
  }
}

void read_node(const Json& node, Finding& finding) {
  const Json* type = node.find("Node Type");
  const std::string name = type == nullptr || type->string() == nullptr ? "" : *type->string();
  if (!among(steady_nodes, name)) finding.unsteady = fmt::format("its plan has the step {}", name);
  if (!finding.unsteady.empty() || node.object() == nullptr) return;
  for (const auto& [member, value] : *node.object()) {
    if (finding.unsteady.empty()) read_member(member, value, finding);
  }
}

// Those of the functions that are not known to give the same answer for the same values.
async::Task<std::string> unsteady_function(Session* session, const std::vector<CalledFunction>* calls) {
  std::string values;
  for (const CalledFunction& call : *calls) {
    if (call.schema == "pg_catalog" && among(by_settings, call.name)) continue;
    values += fmt::format("{}({}, {})", values.empty() ? "" : ", ", quote_text(call.schema), quote_text(call.name));
  }
  if (values.empty()) co_return "";
  // Whichever of the functions of one name it is, all of them must be fixed.
  const Result found = co_await session->query(fmt::format(
      "SELECT v.s || '.' || v.n AS name FROM (VALUES {}) AS v(s, n) WHERE (SELECT coalesce(pg_catalog.bool_and("
      "p.provolatile = 'i' AND p.prokind = 'f'), false) FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace ns ON "
      "ns.oid = p.pronamespace WHERE ns.nspname = v.s AND p.proname = v.n) IS NOT TRUE LIMIT 1",
      values));
  if (found.rows() == 0) co_return "";
  co_return fmt::format("{} need not give the same answer every time", found.text(0, "name"));
}

}  // namespace

Finding read_expression(std::string_view sql) {
  Finding finding;
  const std::vector<Token> tokens = Lexer(sql).tokens();
  for (std::size_t i = 0; i < tokens.size() && finding.unsteady.empty(); ++i) {
    const Token& token = tokens[i];
    if (names_the_clock(token)) finding.unsteady = literal_text(token);
    if (token.kind == Token::Kind::word && among(clock_words, token.text)) {
      finding.unsteady = token.text + " differs between the readers' transactions";
    }
    // A cast to somebody's own type calls a function that is not shown; a constant was cast already.
    const bool own_type = i + 3 < tokens.size() && tokens[i + 1].text == "::" && tokens[i + 3].text == ".";
    if (own_type && token.kind != Token::Kind::string && tokens[i + 2].text != "pg_catalog") {
      finding.unsteady = "the cast to a type of its own may call anything";
    }
    if (token.calls) add_call(tokens, i, finding);
  }
  return finding;
}

std::string unsteady_literal(std::string_view sql) {
  for (const Token& token : Lexer(sql).tokens()) {
    if (names_the_clock(token)) return literal_text(token);
  }
  return {};
}

Finding read_plan(std::string_view json) {
  Finding finding;
  try {
    const Json document = Json::parse(json, {.bytes = limits::pg_plan_bytes_max, .depth = limits::pg_plan_depth_max});
    const Json* root = document.array() == nullptr || document.array()->empty() ? nullptr : document.array()->data();
    const Json* plan = root == nullptr ? nullptr : root->find("Plan");
    if (plan == nullptr) {
      finding.unsteady = "its plan cannot be read";
    } else {
      read_node(*plan, finding);
    }
  } catch (const Error&) {
    finding.unsteady = "its plan is too large to be judged";
  }
  return finding;
}

async::Task<std::string> why_unsteady(Session& session, const Origin& origin) {
  const bool view = origin.relation && origin.relation->kind == 'v';
  if (origin.relation && !view && origin.where.empty()) co_return "";
  std::string why = unsteady_literal(origin.relation ? origin.where : origin.from);
  if (!why.empty()) co_return why;
  const Result planned =
      co_await session.query(fmt::format("EXPLAIN (VERBOSE, COSTS OFF, FORMAT JSON) SELECT * FROM {}{}", origin.from,
                                         origin.where.empty() ? "" : " WHERE (\n" + origin.where + "\n)"));
  const Finding finding = read_plan(planned.text(0, "\"QUERY PLAN\""));
  if (!finding.unsteady.empty()) co_return finding.unsteady;
  co_return co_await unsteady_function(&session, &finding.calls);
}

}  // namespace rowferry::postgres
