#include <algorithm>
#include <array>
#include <charconv>

#include "base/limits.hpp"
#include "sandbox/engine/errors.hpp"
#include "sandbox/engine/parser.hpp"

namespace rowferry::sandbox::engine {

namespace {

// Goes back up when the scope is left.
struct Deeper {
  explicit Deeper(int& depth) : depth_(depth) {
    if (++depth_ > limits::sandbox_expression_depth)
      raise(191, 15, 1,
            "Some part of your SQL statement is nested too deeply. Rewrite the query or break it up into smaller "
            "queries.",
            Reach::batch);
  }
  ~Deeper() { --depth_; }
  Deeper(const Deeper&) = delete;
  Deeper& operator=(const Deeper&) = delete;
  int& depth_;
};

[[noreturn]] void too_deep() {
  raise(8631, 17, 1,
        "Internal error: Server stack limit has been reached. Please look for potentially deep nesting in your query, "
        "and "
        "try to simplify it.",
        Reach::batch);
}

constexpr std::array aggregates{"COUNT", "COUNT_BIG", "SUM", "MIN", "MAX", "AVG", "STRING_AGG", "CHECKSUM_AGG"};
constexpr std::array ranking{"ROW_NUMBER", "RANK", "DENSE_RANK", "NTILE"};
constexpr std::array bare_functions{"CURRENT_TIMESTAMP", "CURRENT_USER", "SESSION_USER", "SYSTEM_USER", "USER"};

template <std::size_t N>
bool among(const std::array<const char*, N>& list, std::string_view word) {
  return std::any_of(list.begin(), list.end(), [&](const char* s) { return word == s; });
}

}  // namespace

ExprPtr Parser::make(ExprKind kind) const {
  auto e = std::make_shared<Expr>();
  e->kind = kind;
  e->line = here().line;
  return e;
}

ExprPtr Parser::make(ExprKind kind, std::vector<ExprPtr> args) const {
  ExprPtr e = make(kind);
  e->args = std::move(args);
  return e;
}

ExprPtr Parser::expression() { return logical_or(); }

ExprPtr Parser::logical_or() {
  const Deeper deeper(depth_);
  ExprPtr first = logical_and();
  if (!is("OR")) return first;
  ExprPtr all = make(ExprKind::logical_or, {first});
  while (accept("OR")) all->args.push_back(logical_and());
  return all;
}

ExprPtr Parser::logical_and() {
  ExprPtr first = logical_not();
  if (!is("AND")) return first;
  ExprPtr all = make(ExprKind::logical_and, {first});
  while (accept("AND")) all->args.push_back(logical_not());
  return all;
}

ExprPtr Parser::logical_not() {
  const Deeper deeper(depth_);
  if (accept("NOT")) return make(ExprKind::logical_not, {logical_not()});
  return predicate();
}

ExprPtr Parser::predicate() {
  if (is("EXISTS") && is_symbol("(", 1)) {
    next();
    next();
    ExprPtr e = make(ExprKind::exists);
    e->query = query();
    expect_symbol(")");
    return e;
  }
  ExprPtr left = additive();
  for (;;) {
    ExprPtr whole = predicate_tail(left);
    if (whole == left) return left;
    left = whole;
  }
}

ExprPtr Parser::predicate_tail(ExprPtr left) {
  constexpr std::array<std::pair<std::string_view, char>, 9> comparisons{{{"=", '='},
                                                                          {"<>", 'N'},
                                                                          {"!=", 'N'},
                                                                          {"<=", 'L'},
                                                                          {">=", 'G'},
                                                                          {"<", '<'},
                                                                          {">", '>'},
                                                                          {"!<", 'G'},
                                                                          {"!>", 'L'}}};
  for (const auto& [symbol, op] : comparisons) {
    if (!is_symbol(symbol)) continue;
    next();
    if ((is("ANY") || is("SOME") || is("ALL")) && is_symbol("(", 1)) {
      ExprPtr e = make(ExprKind::quantified, {left});
      e->distinct = word() == "ALL";
      e->op = op;
      expect_symbol("(");
      e->query = query();
      expect_symbol(")");
      return e;
    }
    ExprPtr e = make(ExprKind::compare, {left, additive()});
    e->op = op;
    return e;
  }
  if (accept("IS")) {
    const bool negated = accept("NOT");
    expect("NULL");
    ExprPtr e = make(ExprKind::is_null, {left});
    e->negated = negated;
    return e;
  }
  const bool negated = is("NOT") && (is("IN", 1) || is("LIKE", 1) || is("BETWEEN", 1));
  if (negated) next();
  if (accept("IN")) {
    expect_symbol("(");
    ExprPtr e;
    if (is("SELECT") || is("WITH")) {
      e = make(ExprKind::in_query, {left});
      e->query = query();
    } else {
      e = make(ExprKind::in_list, {left});
      for (const ExprPtr& item : expression_list()) e->args.push_back(item);
    }
    expect_symbol(")");
    e->negated = negated;
    return e;
  }
  if (accept("LIKE")) {
    ExprPtr e = make(ExprKind::like, {left, additive()});
    if (accept("ESCAPE")) e->args.push_back(additive());
    e->negated = negated;
    return e;
  }
  if (accept("BETWEEN")) {
    ExprPtr low = additive();
    expect("AND");
    ExprPtr e = make(ExprKind::between, {left, low, additive()});
    e->negated = negated;
    return e;
  }
  return left;
}

ExprPtr Parser::additive() {
  const Deeper deeper(depth_);
  ExprPtr left = multiplicative();
  for (int length = 0;; ++length) {
    if (length > 2 * limits::sandbox_expression_depth) too_deep();
    char op = 0;
    for (const char c : {'+', '-', '&', '|', '^'})
      if (is_symbol(std::string_view(&c, 1))) op = c;
    if (op == 0) return left;
    next();
    left = make(ExprKind::arithmetic, {left, multiplicative()});
    left->op = op;
  }
}

ExprPtr Parser::multiplicative() {
  ExprPtr left = unary();
  for (int length = 0;; ++length) {
    if (length > 2 * limits::sandbox_expression_depth) too_deep();
    char op = 0;
    for (const char c : {'*', '/', '%'})
      if (is_symbol(std::string_view(&c, 1))) op = c;
    if (op == 0) return left;
    next();
    left = make(ExprKind::arithmetic, {left, unary()});
    left->op = op;
  }
}

ExprPtr Parser::unary() {
  const Deeper deeper(depth_);
  if (accept_symbol("-")) {
    ExprPtr operand = unary();
    if (operand->kind == ExprKind::literal && is_number(operand->literal.type.kind) && operand->args.empty()) {
      operand->literal.number = -operand->literal.number;
      operand->literal.real = -operand->literal.real;
      return operand;
    }
    return make(ExprKind::negate, {operand});
  }
  if (accept_symbol("+")) return unary();
  if (accept_symbol("~")) return make(ExprKind::complement, {unary()});
  return postfix();
}

ExprPtr Parser::postfix() {
  ExprPtr e = primary();
  while (accept("COLLATE")) {
    ExprPtr c = make(ExprKind::collate, {e});
    c->collation = name();
    e = c;
  }
  return e;
}

ExprPtr Parser::literal() {
  ExprPtr e = make(ExprKind::literal);
  const Token& token = next();
  Value& v = e->literal;
  v.null = false;
  switch (token.kind) {
    case TokenKind::integer:
    case TokenKind::decimal: {
      const auto parsed = parse_decimal(token.text);
      if (!parsed)
        raise(1007, 15, 1,
              "The number '" + token.text + "' is out of the range for numeric representation (maximum precision 38).",
              Reach::batch);
      v.number = parsed->value;
      const bool small = token.kind == TokenKind::integer && parsed->value <= 2'147'483'647;
      v.type = small ? int_type() : decimal_type(parsed->precision, parsed->scale);
      if (!small) v.type.kind = Kind::numeric;
      break;
    }
    case TokenKind::real:
      v.type = make_type(Kind::float8);
      std::from_chars(token.text.data(), token.text.data() + token.text.size(), v.real);
      break;
    case TokenKind::money: {
      const auto parsed = parse_decimal(token.text.empty() ? "0" : token.text);
      v.type = make_type(Kind::money);
      v.number = parsed ? rescale(parsed->value, parsed->scale, 4).value_or(0) : 0;
      break;
    }
    case TokenKind::binary: {
      std::string digits = token.text.size() % 2 == 0 ? token.text : "0" + token.text;
      for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
        unsigned byte = 0;
        std::from_chars(digits.data() + i, digits.data() + i + 2, byte, 16);
        v.bytes.push_back(static_cast<char>(byte));
      }
      v.type = make_type(Kind::varbinary, v.bytes.size() > 8000
                                              ? max_length
                                              : std::max<std::int32_t>(1, static_cast<std::int32_t>(v.bytes.size())));
      break;
    }
    case TokenKind::nstring:
      v.text = widen(token.text);
      v.type = nvarchar_type(
          v.text.size() > 4000 ? max_length : std::max<std::int32_t>(1, static_cast<std::int32_t>(v.text.size())),
          options_.collation);
      break;
    default: {
      const std::string bytes = to_code_page(widen(token.text), options_.collation);
      v.text = from_code_page(bytes, options_.collation);
      v.type = varchar_type(
          bytes.size() > 8000 ? max_length : std::max<std::int32_t>(1, static_cast<std::int32_t>(bytes.size())),
          options_.collation);
    }
  }
  return e;
}

ExprPtr Parser::parenthesised() {
  expect_symbol("(");
  ExprPtr e;
  if (is("SELECT") || is("WITH")) {
    e = make(ExprKind::subquery);
    e->query = query();
  } else {
    e = expression();
    // (1) is no longer a bare literal: -(1) must not change it in place
    if (e->kind == ExprKind::literal) {
      auto copy = std::make_shared<Expr>(*e);
      e = copy;
    }
  }
  expect_symbol(")");
  return e;
}

ExprPtr Parser::primary() {
  const Token& token = here();
  switch (token.kind) {
    case TokenKind::integer:
    case TokenKind::decimal:
    case TokenKind::real:
    case TokenKind::money:
    case TokenKind::binary:
    case TokenKind::string:
    case TokenKind::nstring:
      return literal();
    case TokenKind::variable:
    case TokenKind::global: {
      ExprPtr e = make(token.kind == TokenKind::variable ? ExprKind::variable : ExprKind::global);
      e->name = {next().text};
      return e;
    }
    case TokenKind::quoted:
      return named();
    case TokenKind::symbol:
      if (is_symbol("(")) return parenthesised();
      if (is_symbol("{")) {  // ODBC's {fn …}, {ts '…'}, {d '…'}, {t '…'}, {guid '…'}
        next();
        if (!accept("FN")) word();
        ExprPtr e = expression();
        expect_symbol("}");
        return e;
      }
      syntax_error();
    case TokenKind::word:
      break;
    default:
      syntax_error();
  }
  if (accept("NULL")) {
    ExprPtr e = make(ExprKind::literal);
    e->literal = Value::of_null(int_type());
    return e;
  }
  if (accept("DEFAULT")) return make(ExprKind::default_value);
  if (is("CASE")) return case_expression();
  return named();
}

ExprPtr Parser::case_expression() {
  ExprPtr e = make(ExprKind::searched_case);
  expect("CASE");
  ExprPtr operand;
  if (!is("WHEN")) operand = expression();
  while (accept("WHEN")) {
    ExprPtr when = expression();
    if (operand != nullptr) {
      when = make(ExprKind::compare, {operand, when});
      when->op = '=';
    }
    expect("THEN");
    e->args.push_back(when);
    e->args.push_back(expression());
  }
  if (e->args.empty()) syntax_error();
  if (accept("ELSE")) e->args.push_back(expression());
  expect("END");
  return e;
}

// A column (up to four parts) or a function call.
ExprPtr Parser::named() {
  const int line = here().line;
  if (here().kind == TokenKind::word) {
    const std::string upper = upper_ascii(here().text);
    if (among(bare_functions, upper) && !is_symbol("(", 1)) {
      next();
      ExprPtr e = make(ExprKind::function);
      e->name = {upper};
      return e;
    }
    const bool callable = is_symbol("(", 1);
    if (callable && (upper == "CAST" || upper == "TRY_CAST" || upper == "CONVERT" || upper == "TRY_CONVERT" ||
                     upper == "PARSE" || upper == "TRY_PARSE")) {
      next();
      return conversion(upper, line);
    }
    const bool allowed = callable && (upper == "LEFT" || upper == "RIGHT" || upper == "COALESCE" || upper == "NULLIF");
    if (is_reserved(upper) && !allowed) syntax_error();
  }
  std::vector<std::string> parts;
  for (;;) {
    if (is_symbol(".")) {
      parts.emplace_back();  // db..x
    } else {
      if (here().kind != TokenKind::word && here().kind != TokenKind::quoted) syntax_error();
      parts.push_back(next().text);
    }
    if (!is_symbol(".") || is_symbol("*", 1)) break;
    next();
  }
  if (is_symbol("(")) return function(std::move(parts), line);
  if (is_symbol("::")) raise_unsupported("methods of CLR types");
  ExprPtr e = make(ExprKind::column);
  e->line = line;
  e->name = std::move(parts);
  return e;
}

ExprPtr Parser::conversion(const std::string& which, int line) {
  ExprPtr e = make(ExprKind::cast);
  e->line = line;
  e->tries = which.starts_with("TRY_");
  expect_symbol("(");
  std::string user_type;
  if (which.ends_with("CAST") || which.ends_with("PARSE")) {
    e->args.push_back(expression());
    expect("AS");
    data_type(e->target, user_type, true);
    if (accept("USING")) expression();
  } else {
    data_type(e->target, user_type, true);
    expect_symbol(",");
    e->args.push_back(expression());
    if (accept_symbol(",")) {
      e->args.push_back(expression());
      e->style_given = true;
    }
  }
  expect_symbol(")");
  return e;
}

ExprPtr Parser::function(std::vector<std::string> parts, int line) {
  ExprPtr e = make(ExprKind::function);
  e->line = line;
  const std::string upper = upper_ascii(parts.back());
  if (parts.size() == 1 && among(aggregates, upper)) e->kind = ExprKind::aggregate;
  if (parts.size() == 1 && among(ranking, upper)) e->kind = ExprKind::window;
  e->name = std::move(parts);
  e->name.back() = upper;
  expect_symbol("(");
  if (accept("DISTINCT")) e->distinct = true;
  accept("ALL");
  if (is_symbol("*")) {
    next();
    e->args.push_back(make(ExprKind::star));
  } else if (!is_symbol(")")) {
    e->args = expression_list();
  }
  expect_symbol(")");
  if (is("WITHIN") && is("GROUP", 1)) {
    next();
    next();
    expect_symbol("(");
    expect("ORDER");
    expect("BY");
    e->ordering = order_items();
    expect_symbol(")");
  }
  if (is("OVER") && is_symbol("(", 1)) over(*e);
  return e;
}

void Parser::over(Expr& call) {
  expect("OVER");
  call.kind = ExprKind::window;
  expect_symbol("(");
  if (accept("PARTITION")) {
    expect("BY");
    call.partition = expression_list();
  }
  if (accept("ORDER")) {
    expect("BY");
    call.ordering = order_items();
  }
  while (!is_symbol(")")) {  // ROWS BETWEEN …: the whole or the running frame is taken
    if (at_end()) syntax_error();
    next();
  }
  expect_symbol(")");
}

std::vector<ExprPtr> Parser::expression_list() {
  std::vector<ExprPtr> list{expression()};
  while (accept_symbol(",")) list.push_back(expression());
  return list;
}

}  // namespace rowferry::sandbox::engine
