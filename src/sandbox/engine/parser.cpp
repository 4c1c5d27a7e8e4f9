// The parser's tokens, names and types.
#include "sandbox/engine/parser.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sandbox/engine/errors.hpp"

namespace rowferry::sandbox::engine {

namespace {

// "Reserved keywords (Transact-SQL)". Sorted.
constexpr auto reserved = std::to_array<std::string_view>({"ADD",
                                                           "ALL",
                                                           "ALTER",
                                                           "AND",
                                                           "ANY",
                                                           "AS",
                                                           "ASC",
                                                           "AUTHORIZATION",
                                                           "BACKUP",
                                                           "BEGIN",
                                                           "BETWEEN",
                                                           "BREAK",
                                                           "BROWSE",
                                                           "BULK",
                                                           "BY",
                                                           "CASCADE",
                                                           "CASE",
                                                           "CHECK",
                                                           "CHECKPOINT",
                                                           "CLOSE",
                                                           "CLUSTERED",
                                                           "COALESCE",
                                                           "COLLATE",
                                                           "COLUMN",
                                                           "COMMIT",
                                                           "COMPUTE",
                                                           "CONSTRAINT",
                                                           "CONTAINS",
                                                           "CONTAINSTABLE",
                                                           "CONTINUE",
                                                           "CONVERT",
                                                           "CREATE",
                                                           "CROSS",
                                                           "CURRENT",
                                                           "CURRENT_DATE",
                                                           "CURRENT_TIME",
                                                           "CURRENT_TIMESTAMP",
                                                           "CURRENT_USER",
                                                           "CURSOR",
                                                           "DATABASE",
                                                           "DBCC",
                                                           "DEALLOCATE",
                                                           "DECLARE",
                                                           "DEFAULT",
                                                           "DELETE",
                                                           "DENY",
                                                           "DESC",
                                                           "DISK",
                                                           "DISTINCT",
                                                           "DISTRIBUTED",
                                                           "DOUBLE",
                                                           "DROP",
                                                           "DUMP",
                                                           "ELSE",
                                                           "END",
                                                           "ERRLVL",
                                                           "ESCAPE",
                                                           "EXCEPT",
                                                           "EXEC",
                                                           "EXECUTE",
                                                           "EXISTS",
                                                           "EXIT",
                                                           "EXTERNAL",
                                                           "FETCH",
                                                           "FILE",
                                                           "FILLFACTOR",
                                                           "FOR",
                                                           "FOREIGN",
                                                           "FREETEXT",
                                                           "FREETEXTTABLE",
                                                           "FROM",
                                                           "FULL",
                                                           "FUNCTION",
                                                           "GOTO",
                                                           "GRANT",
                                                           "GROUP",
                                                           "HAVING",
                                                           "HOLDLOCK",
                                                           "IDENTITY",
                                                           "IDENTITYCOL",
                                                           "IDENTITY_INSERT",
                                                           "IF",
                                                           "IN",
                                                           "INDEX",
                                                           "INNER",
                                                           "INSERT",
                                                           "INTERSECT",
                                                           "INTO",
                                                           "IS",
                                                           "JOIN",
                                                           "KEY",
                                                           "KILL",
                                                           "LEFT",
                                                           "LIKE",
                                                           "LINENO",
                                                           "LOAD",
                                                           "MERGE",
                                                           "NATIONAL",
                                                           "NOCHECK",
                                                           "NONCLUSTERED",
                                                           "NOT",
                                                           "NULL",
                                                           "NULLIF",
                                                           "OF",
                                                           "OFF",
                                                           "OFFSETS",
                                                           "ON",
                                                           "OPEN",
                                                           "OPENDATASOURCE",
                                                           "OPENQUERY",
                                                           "OPENROWSET",
                                                           "OPENXML",
                                                           "OPTION",
                                                           "OR",
                                                           "ORDER",
                                                           "OUTER",
                                                           "OVER",
                                                           "PERCENT",
                                                           "PIVOT",
                                                           "PLAN",
                                                           "PRECISION",
                                                           "PRIMARY",
                                                           "PRINT",
                                                           "PROC",
                                                           "PROCEDURE",
                                                           "PUBLIC",
                                                           "RAISERROR",
                                                           "READ",
                                                           "READTEXT",
                                                           "RECONFIGURE",
                                                           "REFERENCES",
                                                           "REPLICATION",
                                                           "RESTORE",
                                                           "RESTRICT",
                                                           "RETURN",
                                                           "REVERT",
                                                           "REVOKE",
                                                           "RIGHT",
                                                           "ROLLBACK",
                                                           "ROWCOUNT",
                                                           "ROWGUIDCOL",
                                                           "RULE",
                                                           "SAVE",
                                                           "SCHEMA",
                                                           "SECURITYAUDIT",
                                                           "SELECT",
                                                           "SESSION_USER",
                                                           "SET",
                                                           "SETUSER",
                                                           "SHUTDOWN",
                                                           "SOME",
                                                           "STATISTICS",
                                                           "SYSTEM_USER",
                                                           "TABLE",
                                                           "TABLESAMPLE",
                                                           "TEXTSIZE",
                                                           "THEN",
                                                           "TO",
                                                           "TOP",
                                                           "TRAN",
                                                           "TRANSACTION",
                                                           "TRIGGER",
                                                           "TRUNCATE",
                                                           "TRY_CONVERT",
                                                           "TSEQUAL",
                                                           "UNION",
                                                           "UNIQUE",
                                                           "UNPIVOT",
                                                           "UPDATE",
                                                           "UPDATETEXT",
                                                           "USE",
                                                           "USER",
                                                           "VALUES",
                                                           "VARYING",
                                                           "VIEW",
                                                           "WAITFOR",
                                                           "WHEN",
                                                           "WHERE",
                                                           "WHILE",
                                                           "WITH",
                                                           "WRITETEXT"});

}  // namespace

std::string upper_ascii(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 32);
  return out;
}

bool is_reserved(std::string_view upper) {
  return std::find(reserved.begin(), reserved.end(), upper) != reserved.end();
}

Parser::Parser(std::string_view text, const ParseOptions& options)
    : text_(text), options_(options), tokens_(tokenize(text, options.quoted_identifiers)) {}

void Parser::syntax_error() const {
  const Token& token = here();
  if (token.kind == TokenKind::end) {
    const Token& last = at_ == 0 ? token : tokens_[at_ - 1];
    raise_syntax(last.text, last.line);
  }
  const std::string upper = upper_ascii(token.text);
  if (token.kind == TokenKind::word && is_reserved(upper)) raise_keyword_syntax(token.text, token.line);
  raise_syntax(token.text, token.line);
}

bool Parser::is(std::string_view keyword, std::size_t n) const {
  const Token& token = ahead(n);
  return token.kind == TokenKind::word && token.text.size() == keyword.size() && upper_ascii(token.text) == keyword;
}

bool Parser::is_symbol(std::string_view symbol, std::size_t n) const {
  const Token& token = ahead(n);
  return token.kind == TokenKind::symbol && token.text == symbol;
}

bool Parser::accept(std::string_view keyword) {
  if (!is(keyword)) return false;
  next();
  return true;
}

bool Parser::accept_symbol(std::string_view symbol) {
  if (!is_symbol(symbol)) return false;
  next();
  return true;
}

bool Parser::accept_all(std::initializer_list<std::string_view> keywords) {
  std::size_t n = 0;
  for (const std::string_view k : keywords)
    if (!is(k, n++)) return false;
  for (std::size_t i = 0; i < keywords.size(); ++i) next();
  return true;
}

void Parser::expect(std::string_view keyword) {
  if (!accept(keyword)) syntax_error();
}

void Parser::expect_symbol(std::string_view symbol) {
  if (!accept_symbol(symbol)) syntax_error();
}

bool Parser::is_name(std::size_t n) const {
  const Token& token = ahead(n);
  if (token.kind == TokenKind::quoted) return true;
  return token.kind == TokenKind::word && !is_reserved(upper_ascii(token.text));
}

std::string Parser::name() {
  if (!is_name()) syntax_error();
  const Token& token = next();
  if (widen(token.text).size() > 128)
    raise(103, 15, 4,
          fmt::format("The identifier that starts with '{}' is too long. Maximum length is 128.",
                      narrow(widen(token.text).substr(0, 128))),
          Reach::batch);
  return token.text;
}

ObjectName Parser::object_name() {
  ObjectName whole;
  for (;;) {
    if (is_symbol(".") && !whole.parts.empty()) {
      whole.parts.emplace_back();
    } else {
      whole.parts.push_back(name());
    }
    if (!accept_symbol(".")) break;
  }
  if (whole.parts.size() > 4) raise_syntax(whole.parts.back(), here().line);
  return whole;
}

std::string Parser::word() {
  if (here().kind != TokenKind::word && here().kind != TokenKind::quoted) syntax_error();
  return upper_ascii(next().text);
}

Int128 Parser::integer_literal() {
  const bool negative = accept_symbol("-");
  if (!negative) accept_symbol("+");
  if (here().kind != TokenKind::integer) syntax_error();
  const auto parsed = parse_decimal(next().text);
  if (!parsed) syntax_error();
  return negative ? -parsed->value : parsed->value;
}

void Parser::skip_parentheses() {
  expect_symbol("(");
  for (int depth = 1; depth > 0;) {
    if (at_end()) syntax_error();
    if (is_symbol("(")) ++depth;
    if (is_symbol(")")) --depth;
    next();
  }
}

std::string Parser::type_word() {
  if (here().kind != TokenKind::word && here().kind != TokenKind::quoted) syntax_error();
  std::string word = fold_name(next().text);
  if (accept_symbol(".")) word = fold_name(next().text);  // sys.int
  if (word == "national") {
    word = "n" + fold_name(next().text);
    if (word == "ncharacter") word = "nchar";
  }
  if (word == "double") accept("PRECISION");
  if ((word == "char" || word == "character" || word == "nchar" || word == "binary") && accept("VARYING"))
    return word[0] == 'n' ? "nvarchar" : word == "binary" ? "varbinary" : "varchar";
  return word;
}

namespace {

// Length, precision and scale as written, or as they are when left out.
void set_size(Type& type, const std::string& written, std::optional<std::int32_t> first_number,
              std::optional<std::int32_t> second_number, bool in_cast, int line) {
  const auto too_large = [&](int limit) {
    raise(131, 15, 2,
          fmt::format("The size ({}) given to the type '{}' exceeds the maximum allowed for any data type ({}).",
                      *first_number, written, limit),
          Reach::batch);
  };
  switch (type.kind) {
    case Kind::character:
    case Kind::varchar:
    case Kind::binary:
    case Kind::varbinary:
      type.length = first_number.value_or(in_cast ? 30 : 1);
      if (type.length > 8000) too_large(8000);
      break;
    case Kind::nchar:
    case Kind::nvarchar:
      type.length = written == "sysname" ? 128 : first_number.value_or(in_cast ? 30 : 1);
      if (type.length > 4000) too_large(4000);
      break;
    case Kind::decimal:
    case Kind::numeric: {
      const int precision = first_number.value_or(18), scale = second_number.value_or(0);
      if (precision < 1 || precision > 38)
        raise(2750, 16, 1,
              fmt::format(
                  "Column or parameter #1: Specified column precision {} is greater than the maximum precision of 38.",
                  precision),
              Reach::batch);
      if (scale < 0 || scale > precision)
        raise(2751, 16, 1,
              fmt::format(
                  "Column or parameter #1: Specified column scale {} is greater than the specified precision of {}.",
                  scale, precision),
              Reach::batch);
      type.precision = static_cast<std::uint8_t>(precision);
      type.scale = static_cast<std::uint8_t>(scale);
      break;
    }
    case Kind::float8:
      if (first_number.value_or(53) <= 24) type.kind = Kind::real;
      break;
    case Kind::time:
    case Kind::datetime2:
    case Kind::datetimeoffset: {
      const int scale = first_number.value_or(7);
      if (scale < 0 || scale > 7)
        raise(1002, 15, 1, fmt::format("Line {}: Specified scale {} is invalid.", line, scale), Reach::batch);
      type.scale = static_cast<std::uint8_t>(scale);
      break;
    }
    case Kind::rowversion:
      type.length = 8;
      break;
    case Kind::udt:
      type = make_type(Kind::varbinary, written == "hierarchyid" ? 892 : max_length);
      break;
    case Kind::vector:
      type.length = first_number.value_or(1) * 4 + 8;
      break;
    default:
      break;
  }
}

}  // namespace

void Parser::data_type(Type& type, std::string& user_type, bool in_cast) {
  const Token first = here();
  const std::string written = type_word();
  const auto kind = kind_by_name(written);
  if (!kind) raise(243, 16, 1, fmt::format("Type {} is not a defined system type.", first.text), Reach::batch);
  if (written == "sysname" || written == "hierarchyid" || written == "geography" || written == "geometry")
    user_type = written;
  type = make_type(*kind);
  if (is_string(*kind)) type.collation = options_.collation;
  std::optional<std::int32_t> first_number, second_number;
  if (is_symbol("(") && *kind != Kind::xml) {
    next();
    if (accept("MAX")) {
      first_number = max_length;
    } else {
      first_number = static_cast<std::int32_t>(integer_literal());
    }
    if (accept_symbol(",")) second_number = static_cast<std::int32_t>(integer_literal());
    expect_symbol(")");
  } else if (is_symbol("(")) {
    skip_parentheses();  // a schema collection
  }
  set_size(type, written, first_number, second_number, in_cast, first.line);
  if ((is_string(type.kind) || is_binary(type.kind)) && first_number && type.length <= 0 && type.length != max_length)
    raise(1001, 15, 1,
          fmt::format("Line {}: Length or precision specification {} is invalid.", first.line, *first_number),
          Reach::batch);
  if (is_string(type.kind) && is("COLLATE") && in_cast) {
    next();
    const std::string collation = name();
    const auto found = collation_by_name(collation);
    if (!found) raise(448, 16, 1, fmt::format("Invalid collation '{}'.", collation), Reach::batch);
    type.collation = *found;
  }
}

std::vector<ParameterSpec> Parser::parameters(bool procedure) {
  std::vector<ParameterSpec> all;
  const bool closed = procedure && accept_symbol("(");
  while (here().kind == TokenKind::variable) {
    ParameterSpec p;
    p.name = next().text;
    accept("AS");
    std::string user_type;
    data_type(p.type, user_type, false);
    accept("VARYING");
    if (accept("NOT")) expect("NULL");
    accept("NULL");
    if (accept_symbol("=")) p.default_value = expression();
    if (accept("OUTPUT") || accept("OUT")) p.output = true;
    accept("READONLY");
    all.push_back(std::move(p));
    if (!accept_symbol(",")) break;
  }
  if (closed) expect_symbol(")");
  return all;
}

std::vector<ParameterSpec> Parser::procedure_header() {
  next();  // CREATE or ALTER
  accept_all({"OR", "ALTER"});
  next();  // PROCEDURE
  object_name();
  if (accept_symbol(";")) next();
  return parameters(true);
}

std::vector<ParameterSpec> parse_procedure_header(std::string_view text, const ParseOptions& options) {
  Parser parser(text, options);
  return parser.procedure_header();
}

ProgramPtr parse_batch(std::string text, const ParseOptions& options) {
  auto program = std::make_shared<Program>();
  program->text = std::move(text);
  Parser parser(program->text, options);
  parser.program(*program);
  return program;
}

ExprPtr parse_expression(std::string_view text, const ParseOptions& options) {
  Parser parser(text, options);
  ExprPtr e = parser.expression();
  if (!parser.at_end()) parser.syntax_error();
  return e;
}

QueryPtr parse_query(std::string_view text, const ParseOptions& options) {
  Parser parser(text, options);
  return parser.query();
}

std::vector<ParameterSpec> parse_parameters(std::string_view text, const ParseOptions& options) {
  Parser parser(text, options);
  auto all = parser.parameters(false);
  if (!parser.at_end()) parser.syntax_error();
  return all;
}

std::optional<Type> parse_type_text(std::string_view text, const ParseOptions& options) {
  try {
    Parser parser(text, options);
    Type type;
    std::string user_type;
    parser.data_type(type, user_type, false);
    return type;
  } catch (const SqlError&) {
    return std::nullopt;
  }
}

}  // namespace rowferry::sandbox::engine
