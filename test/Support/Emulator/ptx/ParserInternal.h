// The parser's tokens and what its files use. Errors are exceptions
// inside; parseModule turns them into a status.
#pragma once

#include "test/Support/Emulator/ptx/Lexer.h"

#include <string>

namespace meshwork::ptx {

struct SyntaxError {
  std::string text;
};

class Tokens {
public:
  explicit Tokens(std::vector<Token> tokens) : tokens(std::move(tokens)) {}
  const Token &peek(size_t ahead = 0) const {
    return tokens[std::min(position + ahead, tokens.size() - 1)];
  }
  const Token &next() {
    const Token &token = peek();
    position += position + 1 < tokens.size();
    return token;
  }
  bool accept(std::string_view text) {
    bool found = peek().is(text);
    if (found)
      next();
    return found;
  }
  void expect(const char *text);
  std::string word(const char *what);
  uint64_t integer(const char *what);
  [[noreturn]] void fail(const std::string &expected) const;

private:
  std::vector<Token> tokens;
  size_t position = 0;
};

/// `.align 4 .b8 name[12] = {1, 2}`, the space read already, up to , ) or ;
Variable parseVariable(Tokens &tokens, Space space);
/// One instruction or label, its guard included.
Statement parseStatement(Tokens &tokens);
/// `{ ... }` of a function.
void parseBody(Tokens &tokens, FunctionSyntax &to);

} // namespace meshwork::ptx
