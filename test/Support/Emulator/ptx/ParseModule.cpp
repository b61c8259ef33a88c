#include "test/Support/Emulator/ptx/Parser.h"
#include "test/Support/Emulator/ptx/ParserInternal.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace meshwork::ptx {

void Tokens::expect(const char *text) {
  if (!accept(text))
    fail(absl::StrCat("'", text, "'"));
}
std::string Tokens::word(const char *what) {
  if (peek().kind != Token::Kind::word)
    fail(what);
  return std::string(next().text);
}
uint64_t Tokens::integer(const char *what) {
  const Token &token = next();
  if (token.kind != Token::Kind::number ||
      token.number.kind != Number::Kind::integer)
    fail(what);
  return token.number.bits;
}
void Tokens::fail(const std::string &expected) const {
  throw SyntaxError{absl::StrCat("line ", peek().line, ": found '",
                                 std::string(peek().text), "', expected ",
                                 expected)};
}

namespace {

void parseTarget(Tokens &tokens, ModuleSyntax &module) {
  std::string name = tokens.word("an architecture such as sm_80");
  absl::string_view digits = name;
  bool named = absl::ConsumePrefix(&digits, "sm_");
  module.onlyThisDevice = absl::ConsumeSuffix(&digits, "a");
  absl::ConsumeSuffix(&digits, "f");
  if (!named || !absl::SimpleAtoi(digits, &module.architecture))
    tokens.fail("an architecture such as sm_80 before it");
  while (tokens.accept(","))
    tokens.word("a target option");
}

void parseVersion(Tokens &tokens, ModuleSyntax &module) {
  double version = 0;
  if (!absl::SimpleAtod(std::string(tokens.next().text), &version))
    tokens.fail("a version such as 8.0 before it");
  module.version = int(version * 10 + 0.5);
}

std::vector<Variable> parseParameters(Tokens &tokens) {
  std::vector<Variable> parameters;
  tokens.expect("(");
  while (!tokens.accept(")")) {
    tokens.expect(".param");
    parameters.push_back(parseVariable(tokens, Space::param));
    tokens.accept(",");
  }
  return parameters;
}

/// Up to three numbers; missing ones are 1.
void parseThreads(Tokens &tokens, uint32_t (&to)[3]) {
  to[0] = to[1] = to[2] = 1;
  for (uint32_t &extent : to) {
    extent = uint32_t(tokens.integer("a number of threads"));
    if (!tokens.accept(","))
      return;
  }
}

/// What stands between a function's parameters and its body.
void parseFunctionDirectives(Tokens &tokens, FunctionSyntax &function) {
  while (!tokens.peek().is("{") && !tokens.peek().is(";")) {
    std::string directive = tokens.word("a directive, '{' or ';'");
    uint32_t threads[3];
    if (directive == ".reqntid") {
      parseThreads(tokens, function.requiredThreads);
    } else if (directive == ".maxntid") {
      parseThreads(tokens, threads);
      function.maxThreads = threads[0] * threads[1] * threads[2];
    } else if (directive == ".minnctapersm" || directive == ".maxnreg" ||
               directive == ".maxnctapersm") {
      tokens.integer("a number"); // says how to allocate registers only
    } else if (directive == ".pragma") {
      tokens.next();
      tokens.expect(";");
    } else if (directive != ".noreturn") {
      tokens.fail("after a directive that the emulator models; " + directive +
                  " is none");
    }
  }
}

void parseFunction(Tokens &tokens, ModuleSyntax &module, bool isKernel) {
  FunctionSyntax function;
  function.isKernel = isKernel;
  function.line = tokens.peek().line;
  if (tokens.peek().is("("))
    function.results = parseParameters(tokens);
  function.name = tokens.word("the name of a function");
  if (tokens.peek().is("("))
    function.parameters = parseParameters(tokens);
  parseFunctionDirectives(tokens, function);
  if (!tokens.accept(";"))
    parseBody(tokens, function);
  FunctionSyntax &known = module.functions[function.name];
  if (!known.hasBody) // else a declaration after the definition
    known = std::move(function);
}

void parseModuleVariable(Tokens &tokens, ModuleSyntax &module, Space space,
                         bool external) {
  Variable variable = parseVariable(tokens, space);
  variable.external = external;
  module.variables.push_back(std::move(variable));
  tokens.expect(";");
}

/// `.file 1 "name"`, with or without two numbers more.
void skipFile(Tokens &tokens) {
  tokens.next();
  tokens.next();
  while (tokens.accept(","))
    tokens.next();
}

void skipBraces(Tokens &tokens) {
  while (!tokens.accept("{"))
    tokens.next();
  while (!tokens.accept("}")) {
    if (tokens.peek().kind == Token::Kind::end)
      tokens.fail("'}' of a section");
    tokens.next();
  }
}

void parseTopLevel(Tokens &tokens, ModuleSyntax &module) {
  bool external = false;
  while (tokens.accept(".visible") || tokens.accept(".weak") ||
         tokens.accept(".common") || tokens.peek().is(".extern"))
    external |= tokens.accept(".extern");
  std::string directive = tokens.word("a directive");
  if (directive == ".version")
    parseVersion(tokens, module);
  else if (directive == ".target")
    parseTarget(tokens, module);
  else if (directive == ".address_size")
    tokens.expect("64");
  else if (directive == ".entry" || directive == ".func")
    parseFunction(tokens, module, directive == ".entry");
  else if (directive == ".global")
    parseModuleVariable(tokens, module, Space::global, external);
  else if (directive == ".const")
    parseModuleVariable(tokens, module, Space::constant, external);
  else if (directive == ".shared")
    parseModuleVariable(tokens, module, Space::shared, external);
  else if (directive == ".file")
    skipFile(tokens);
  else if (directive == ".section")
    skipBraces(tokens);
  else
    tokens.fail("after a directive of a module; " + directive + " is none");
}

} // namespace

absl::StatusOr<ModuleSyntax> parseModule(std::string_view text) {
  absl::StatusOr<std::vector<Token>> split = tokenize(text);
  if (!split.ok())
    return split.status();
  Tokens tokens(*std::move(split));
  ModuleSyntax module;
  try {
    while (tokens.peek().kind != Token::Kind::end)
      parseTopLevel(tokens, module);
    if (!module.architecture)
      tokens.fail(".target somewhere before the end");
  } catch (const SyntaxError &error) {
    return absl::InvalidArgumentError(error.text);
  }
  return module;
}

} // namespace meshwork::ptx
