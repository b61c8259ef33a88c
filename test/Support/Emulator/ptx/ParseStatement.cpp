// Variables, and instructions with their operands.
#include "test/Support/Emulator/ptx/ParserInternal.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include <bit>
#include <cstring>

namespace meshwork::ptx {
namespace {

Number negate(Number number) {
  if (number.kind == Number::Kind::integer)
    number.bits = -number.bits;
  else
    number.bits ^= number.kind == Number::Kind::f32 ? 1ull << 31 : 1ull << 63;
  return number;
}

int64_t parseOffset(Tokens &tokens) {
  bool minus = tokens.accept("-"); // both in [%rd1+-4]
  int64_t value = int64_t(tokens.integer("an offset"));
  return minus ? -value : value;
}

Operand parseOperand(Tokens &tokens);

Operand parseAddress(Tokens &tokens) {
  Operand operand(Operand::Kind::address);
  tokens.expect("[");
  if (tokens.peek().kind == Token::Kind::number)
    operand.number = tokens.next().number;
  else
    operand.name = tokens.word("a register or a variable");
  if (tokens.accept("+") || tokens.peek().is("-"))
    operand.offset = parseOffset(tokens);
  if (tokens.accept(",")) // coordinates in a tensor
    operand.items.push_back(parseOperand(tokens));
  tokens.expect("]");
  return operand;
}

Operand parseList(Tokens &tokens, std::string_view end) {
  Operand operand(Operand::Kind::list);
  while (!tokens.accept(end)) {
    operand.items.push_back(parseOperand(tokens));
    if (!tokens.peek().is(end))
      tokens.expect(",");
  }
  return operand;
}

Operand parseName(Tokens &tokens) {
  Operand operand(Operand::Kind::name);
  operand.negated = tokens.accept("!");
  operand.name = tokens.word("a register, number or variable");
  if (operand.name == "_")
    operand.kind = Operand::Kind::sink;
  if (tokens.accept("|"))
    operand.second = tokens.word("a second destination");
  if (tokens.accept("+"))
    operand.offset = parseOffset(tokens);
  return operand;
}

Operand parseOperand(Tokens &tokens) {
  if (tokens.peek().is("["))
    return parseAddress(tokens);
  if (tokens.accept("{"))
    return parseList(tokens, "}");
  if (tokens.accept("("))
    return parseList(tokens, ")");
  bool minus = tokens.accept("-");
  if (tokens.peek().kind == Token::Kind::number) {
    Operand operand(Operand::Kind::number);
    operand.number = tokens.next().number;
    if (minus)
      operand.number = negate(operand.number);
    return operand;
  }
  if (minus)
    tokens.fail("a number after '-'");
  return parseName(tokens);
}

void appendNumber(Variable &variable, Number number) {
  unsigned bits = bitsOf(variable.type);
  uint64_t value = number.bits;
  if (number.kind == Number::Kind::f64 && bits == 32)
    value = std::bit_cast<uint32_t>(float(std::bit_cast<double>(value)));
  size_t at = variable.initial.size();
  variable.initial.resize(at + bits / 8);
  std::memcpy(&variable.initial[at], &value, bits / 8);
}

void parseInitial(Tokens &tokens, Variable &variable) {
  if (tokens.accept("{")) {
    while (!tokens.accept("}")) {
      parseInitial(tokens, variable);
      tokens.accept(",");
    }
    return;
  }
  bool minus = tokens.accept("-");
  if (tokens.peek().kind == Token::Kind::number) {
    Number number = tokens.next().number;
    return appendNumber(variable, minus ? negate(number) : number);
  }
  std::string name = tokens.word("a number or a variable");
  if (name == "generic") {
    tokens.expect("(");
    name = tokens.word("a variable");
    tokens.expect(")");
  }
  int64_t added = tokens.accept("+") ? parseOffset(tokens) : 0;
  variable.pointers.push_back({variable.initial.size(), name, added});
  variable.initial.resize(variable.initial.size() + 8);
}

uint64_t parseExtents(Tokens &tokens, Variable &variable) {
  uint64_t count = 1;
  while (tokens.accept("[")) {
    if (tokens.accept("]")) {
      variable.unsized = true;
      continue;
    }
    count *= tokens.integer("a number of elements");
    tokens.expect("]");
  }
  return count;
}

std::string textBetween(const Token &first, const Token &last) {
  std::string text(first.text.data(), last.text.data());
  for (char &c : text)
    c = c == '\n' || c == '\t' ? ' ' : c;
  return text;
}

/// Splits at "." but keeps "L1::no_allocate" whole.
void splitOpcode(std::string_view word, Statement &to) {
  std::vector<std::string> parts =
      absl::StrSplit(absl::string_view(word.data(), word.size()), '.');
  to.opcode = parts[0];
  to.modifiers.assign(parts.begin() + 1, parts.end());
}

} // namespace

Variable parseVariable(Tokens &tokens, Space space) {
  Variable variable;
  variable.space = space;
  variable.line = tokens.peek().line;
  uint64_t lanes = 1;
  for (;;) {
    std::string word = tokens.word("a type");
    Type type = typeNamed(std::string_view(word).substr(1));
    if (word == ".align") {
      variable.alignment = tokens.integer("an alignment");
    } else if (word == ".v2" || word == ".v4") {
      lanes = word == ".v2" ? 2 : 4;
    } else if (type != Type::none) {
      variable.type = type;
      break;
    } else if (word != ".ptr") {
      tokens.fail("a type before it; " + word + " is none");
    }
  }
  // What a parameter points to: .ptr .global .align 16.
  while (tokens.accept(".ptr") || tokens.accept(".global") ||
         tokens.accept(".shared") || tokens.accept(".local") ||
         tokens.accept(".const") || tokens.peek().is(".align"))
    if (tokens.accept(".align"))
      tokens.integer("an alignment");
  variable.name = tokens.word("the name of a variable");
  uint64_t size = lanes * (bitsOf(variable.type) / 8);
  variable.alignment = std::max(variable.alignment, size);
  variable.bytes = size * parseExtents(tokens, variable);
  if (tokens.accept("=")) {
    parseInitial(tokens, variable);
    variable.bytes =
        std::max<uint64_t>(variable.bytes, variable.initial.size());
  }
  return variable;
}

Statement parseStatement(Tokens &tokens) {
  Statement statement;
  const Token first = tokens.peek();
  statement.line = first.line;
  if (tokens.accept("@")) {
    statement.guardNegated = tokens.accept("!");
    statement.guard = tokens.word("a predicate");
  }
  std::string word = tokens.word("an instruction");
  if (tokens.accept(":")) {
    statement.opcode = ":";
    statement.operands.emplace_back(Operand::Kind::name, word);
    return statement;
  }
  splitOpcode(word, statement);
  if (!tokens.peek().is(";"))
    do
      statement.operands.push_back(parseOperand(tokens));
    while (tokens.accept(","));
  if (!tokens.peek().is(";"))
    tokens.fail("',' or ';'");
  statement.text = textBetween(first, tokens.peek());
  tokens.expect(";");
  return statement;
}

} // namespace meshwork::ptx
