#include "test/Support/Emulator/ptx/Lexer.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include <bit>
#include <charconv>

namespace meshwork::ptx {
namespace {

bool startsWord(char c) {
  return absl::ascii_isalpha(c) || c == '_' || c == '$' || c == '%' || c == '.';
}
bool continuesWord(char c) { return startsWord(c) || absl::ascii_isdigit(c); }

class Lexer {
public:
  explicit Lexer(std::string_view text) : rest(text) {}

  absl::StatusOr<std::vector<Token>> run() {
    while (skipSpace()) {
      if (startsWord(rest[0]))
        word();
      else if (absl::ascii_isdigit(rest[0])) {
        if (!number())
          return wrong("is no number");
      } else if (rest[0] == '"') {
        if (!string())
          return wrong("is a string without an end");
      } else {
        push(Token::Kind::mark, 1);
      }
    }
    push(Token::Kind::end, 0);
    return std::move(tokens);
  }

private:
  absl::Status wrong(const char *what) {
    return absl::InvalidArgumentError(
        absl::StrCat("line ", line, ": '",
                     std::string(rest.substr(0, rest.find('\n'))), "' ", what));
  }
  void push(Token::Kind kind, size_t size, Number value = {}) {
    tokens.push_back({kind, rest.substr(0, size), value, line});
    rest.remove_prefix(size);
  }
  /// False at the end of the text.
  bool skipSpace() {
    while (!rest.empty()) {
      if (rest.starts_with("//")) {
        rest.remove_prefix(std::min(rest.find('\n'), rest.size()));
      } else if (rest.starts_with("/*")) {
        skip(std::min(rest.find("*/"), rest.size() - 2) + 2);
      } else if (absl::ascii_isspace(rest[0]) || rest[0] == '\0') {
        skip(1);
      } else {
        return true;
      }
    }
    return false;
  }
  void skip(size_t size) {
    for (char c : rest.substr(0, size))
      line += c == '\n';
    rest.remove_prefix(size);
  }
  void word() {
    size_t size = 1;
    while (size < rest.size()) {
      if (continuesWord(rest[size]))
        ++size;
      else if (rest.substr(size, 2) == "::")
        size += 2;
      else
        break;
    }
    push(Token::Kind::word, size);
  }
  bool number() {
    size_t size = 1;
    while (size < rest.size() &&
           (absl::ascii_isalnum(rest[size]) || rest[size] == '.'))
      ++size;
    std::string_view text = rest.substr(0, size);
    Number value;
    if (!parse(text, value))
      return false;
    push(Token::Kind::number, size, value);
    return true;
  }
  static bool integer(std::string_view digits, int base, uint64_t &bits) {
    const char *end = digits.data() + digits.size();
    auto [stop, error] = std::from_chars(digits.data(), end, bits, base);
    return error == std::errc() && stop == end;
  }
  static bool parse(std::string_view text, Number &to) {
    char second = text.size() > 1 ? absl::ascii_tolower(text[1]) : ' ';
    if (text[0] == '0' && (second == 'f' || second == 'd')) {
      to.kind = second == 'f' ? Number::Kind::f32 : Number::Kind::f64;
      return text.size() == (second == 'f' ? 10u : 18u) &&
             integer(text.substr(2), 16, to.bits);
    }
    if (text.find('.') != text.npos) {
      double value;
      to.kind = Number::Kind::f64;
      bool ok = absl::SimpleAtod(std::string(text), &value);
      to.bits = std::bit_cast<uint64_t>(value);
      return ok;
    }
    if (text.ends_with('U'))
      text.remove_suffix(1);
    if (second == 'x')
      return integer(text.substr(2), 16, to.bits);
    return integer(text, 10, to.bits);
  }
  bool string() {
    size_t end = rest.find('"', 1);
    if (end == rest.npos)
      return false;
    push(Token::Kind::string, end + 1);
    return true;
  }

  std::string_view rest;
  std::vector<Token> tokens;
  int line = 1;
};

} // namespace

absl::StatusOr<std::vector<Token>> tokenize(std::string_view text) {
  return Lexer(text).run();
}

} // namespace meshwork::ptx
