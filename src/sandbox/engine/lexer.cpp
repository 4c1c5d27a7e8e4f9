#include "sandbox/engine/lexer.hpp"

#include <fmt/format.h>

#include <array>

#include "sandbox/engine/errors.hpp"

namespace rowferry::sandbox::engine {

namespace {

bool digit(char c) { return c >= '0' && c <= '9'; }
bool letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '#' ||
         (static_cast<unsigned char>(c) & 0x80U) != 0;
}
bool word_part(char c) { return letter(c) || digit(c) || c == '@' || c == '$'; }
bool hex_digit(char c) { return digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

class Lexer {
 public:
  Lexer(std::string_view text, bool quoted_identifiers) : text_(text), quoted_identifiers_(quoted_identifiers) {}

  std::vector<Token> run() {
    for (;;) {
      skip_blank();
      const std::size_t begin = at_;
      Token token;
      token.line = line_;
      if (at_ < text_.size()) read(token);
      token.begin = begin;
      token.end = at_;
      tokens_.push_back(std::move(token));
      if (tokens_.back().kind == TokenKind::end) return std::move(tokens_);
    }
  }

 private:
  char peek(std::size_t n = 0) const { return at_ + n < text_.size() ? text_[at_ + n] : '\0'; }

  void skip_blank() {
    while (at_ < text_.size()) {
      const char c = peek();
      if (c == '\n') {
        ++line_;
        ++at_;
      } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v' || c == '\0') {
        ++at_;
      } else if (text_.substr(at_, 2) == "\xC2\xA0") {
        at_ += 2;
      } else if (text_.substr(at_, 3) == "\xEF\xBB\xBF") {
        at_ += 3;
      } else if (c == '-' && peek(1) == '-') {
        while (at_ < text_.size() && peek() != '\n') ++at_;
      } else if (c == '/' && peek(1) == '*') {
        comment();
      } else {
        return;
      }
    }
  }

  void comment() {
    const int line = line_;
    int depth = 0;
    do {
      if (at_ >= text_.size()) {
        SqlError error{{113, 1, 15, "Missing end comment mark '*/'.", {}, line}, Reach::batch};
        throw error;
      }
      if (peek() == '/' && peek(1) == '*') {
        ++depth;
        at_ += 2;
      } else if (peek() == '*' && peek(1) == '/') {
        --depth;
        at_ += 2;
      } else {
        if (peek() == '\n') ++line_;
        ++at_;
      }
    } while (depth > 0);
  }

  void read(Token& token) {
    const char c = peek();
    if ((c == 'N' || c == 'n') && peek(1) == '\'') {
      ++at_;
      token.kind = TokenKind::nstring;
      token.text = delimited('\'', token.line);
    } else if (c == '\'') {
      token.kind = TokenKind::string;
      token.text = delimited('\'', token.line);
    } else if (c == '"') {
      token.kind = quoted_identifiers_ ? TokenKind::quoted : TokenKind::string;
      token.text = delimited('"', token.line);
    } else if (c == '[') {
      token.kind = TokenKind::quoted;
      token.text = delimited(']', token.line);
    } else if (c == '@') {
      variable(token);
    } else if (digit(c) || (c == '.' && digit(peek(1)))) {
      number(token);
    } else if (c == '$' && (digit(peek(1)) || peek(1) == '.')) {
      ++at_;
      number(token);
      token.kind = TokenKind::money;
    } else if (letter(c) || c == '$') {
      token.kind = TokenKind::word;
      const std::size_t begin = at_++;
      while (word_part(peek())) ++at_;
      token.text = text_.substr(begin, at_ - begin);
    } else {
      symbol(token);
    }
  }

  // 'it''s', [a]]b], "a""b"; text_[at_] is the opening mark.
  std::string delimited(char close, int line) {
    std::string out;
    for (++at_; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == close) {
        if (peek(1) != close) {
          ++at_;
          if (close != '\'' && out.empty() && (close == ']' || quoted_identifiers_))
            throw SqlError{
                {1038,
                 4,
                 15,
                 "An object or column name is missing or empty. For SELECT INTO statements, verify each column has "
                 "a name. For other statements, look for empty alias names. Aliases defined as \"\" or [] are not "
                 "allowed. Change the alias to a valid name.",
                 {},
                 line},
                Reach::batch};
          return out;
        }
        ++at_;
      }
      if (c == '\n') ++line_;
      out += c;
    }
    throw SqlError{{105, 1, 15, fmt::format("Unclosed quotation mark after the character string '{}'.", out), {}, line},
                   Reach::batch};
  }

  void variable(Token& token) {
    token.kind = peek(1) == '@' ? TokenKind::global : TokenKind::variable;
    const std::size_t begin = at_;
    at_ += token.kind == TokenKind::global ? 2 : 1;
    while (word_part(peek())) ++at_;
    token.text = text_.substr(begin, at_ - begin);
  }

  void number(Token& token) {
    const std::size_t begin = at_;
    if (peek() == '0' && (peek(1) == 'x' || peek(1) == 'X')) {
      at_ += 2;
      const std::size_t digits = at_;
      while (hex_digit(peek())) ++at_;
      token.kind = TokenKind::binary;
      token.text = text_.substr(digits, at_ - digits);
      return;
    }
    token.kind = TokenKind::integer;
    while (digit(peek())) ++at_;
    if (peek() == '.') {
      token.kind = TokenKind::decimal;
      ++at_;
      while (digit(peek())) ++at_;
    }
    if ((peek() == 'e' || peek() == 'E') &&
        (digit(peek(1)) || ((peek(1) == '-' || peek(1) == '+') && digit(peek(2))))) {
      token.kind = TokenKind::real;
      at_ += 2;
      while (digit(peek())) ++at_;
    }
    token.text = text_.substr(begin, at_ - begin);
  }

  void symbol(Token& token) {
    token.kind = TokenKind::symbol;
    constexpr std::array<std::string_view, 14> longer{
        "<=", ">=", "<>", "!=", "!<", "!>", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "::"};
    for (const std::string_view s : longer) {
      if (text_.substr(at_, 2) != s) continue;
      token.text = s;
      at_ += 2;
      return;
    }
    constexpr std::string_view single = "+-*/%&|^~=<>(),.;:!?{}";
    if (single.find(peek()) == std::string_view::npos) raise_syntax(std::string_view(&text_[at_], 1), line_);
    token.text = std::string(1, peek());
    ++at_;
  }

  std::string_view text_;
  bool quoted_identifiers_;
  std::size_t at_ = 0;
  int line_ = 1;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view text, bool quoted_identifiers) {
  return Lexer(text, quoted_identifiers).run();
}

}  // namespace rowferry::sandbox::engine
