// T-SQL text to tokens ("Transact-SQL syntax conventions", "Constants", "Database identifiers").
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rowferry::sandbox::engine {

enum class TokenKind : std::uint8_t {
  end,
  word,      // bare identifier or keyword; text as written
  quoted,    // [x] or "x": never a keyword
  string,    // 'x'
  nstring,   // N'x'
  integer,   // 12
  decimal,   // 1.5
  real,      // 1e5
  money,     // $1.5
  binary,    // 0xAB; text = the hex digits
  variable,  // @x
  global,    // @@x
  symbol,    // operators and punctuation
};

struct Token {
  TokenKind kind = TokenKind::end;
  std::string text;
  int line = 1;
  std::size_t begin = 0, end = 0;  // bytes in the text
};

// Throws SqlError 102, 103 or 105. With `quoted_identifiers` off, "x" is a string.
std::vector<Token> tokenize(std::string_view text, bool quoted_identifiers);

}  // namespace rowferry::sandbox::engine
