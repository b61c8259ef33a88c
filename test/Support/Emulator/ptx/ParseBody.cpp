// A function's body: scopes, registers, variables, and its instructions.
#include "test/Support/Emulator/ptx/ParserInternal.h"

#include "absl/strings/str_cat.h"

#include <set>

namespace meshwork::ptx {
namespace {

class BodyParser {
public:
  BodyParser(Tokens &tokens, FunctionSyntax &to)
      : tokens(tokens), function(to) {}

  void scope(bool outermost) {
    tokens.expect("{");
    Scope saved = std::exchange(current, {function.body.size(), {}});
    while (!tokens.accept("}"))
      item();
    if (!outermost)
      renameDeclared();
    current = saved;
  }

private:
  struct Scope {
    size_t begin;
    std::set<std::string> declared;
  };

  void item() {
    const Token &token = tokens.peek();
    if (token.kind == Token::Kind::end)
      tokens.fail("'}' of function " + function.name);
    if (token.is("{"))
      return scope(false);
    if (token.is(".reg"))
      return registers();
    if (token.is(".local"))
      return variables(Space::local);
    if (token.is(".shared"))
      return variables(Space::shared);
    if (token.is(".param"))
      return variables(Space::param);
    if (token.is(".pragma") || token.is(".loc"))
      return hint();
    if (tokens.peek(1).is(":") && tokens.peek(2).is(".branchtargets"))
      return branchTargets();
    function.body.push_back(parseStatement(tokens));
    if (function.body.back().isLabel())
      current.declared.insert(function.body.back().operands[0].name);
  }

  /// .pragma "..."; and .loc 1 2 3[, function_name $L, inlined_at 1 2 3]
  void hint() {
    bool pragma = tokens.next().is(".pragma");
    int line = tokens.peek().line;
    while (pragma ? !tokens.accept(";") : tokens.peek().line == line)
      tokens.next();
  }

  void registers() {
    tokens.next();
    std::string word = tokens.word("a type");
    Type type = typeNamed(std::string_view(word).substr(1));
    if (type == Type::none)
      tokens.fail("after a type of registers that the emulator models; " +
                  word + " is none");
    do {
      RegisterRange range{tokens.word("a register"), 0, type};
      if (tokens.accept("<")) {
        range.count = unsigned(tokens.integer("a number of registers"));
        tokens.expect(">");
      } else {
        current.declared.insert(range.prefix);
      }
      function.registers.push_back(range);
    } while (tokens.accept(","));
    tokens.expect(";");
  }

  void variables(Space space) {
    tokens.next();
    function.variables.push_back(parseVariable(tokens, space));
    current.declared.insert(function.variables.back().name);
    tokens.expect(";");
  }

  void branchTargets() {
    std::vector<std::string> &labels =
        function.branchTargets[tokens.word("a label")];
    tokens.next();
    tokens.next();
    do
      labels.push_back(tokens.word("a label"));
    while (tokens.accept(","));
    tokens.expect(";");
  }

  /// Inner scopes come first, so what they declared is renamed already.
  void renameDeclared() {
    std::string suffix = absl::StrCat("@", ++numScopes);
    auto rename = [&](std::string &name) {
      if (current.declared.contains(name))
        name += suffix;
    };
    for (size_t i = current.begin; i < function.body.size(); ++i) {
      rename(function.body[i].guard);
      for (Operand &operand : function.body[i].operands)
        renameIn(operand, rename);
    }
    renameLast(function.registers, &RegisterRange::prefix, rename);
    renameLast(function.variables, &Variable::name, rename);
  }
  template <class F> static void renameIn(Operand &operand, F rename) {
    rename(operand.name);
    rename(operand.second);
    for (Operand &item : operand.items)
      renameIn(item, rename);
  }
  /// Declared in this scope are the last ones of the list.
  template <class T, class F>
  void renameLast(std::vector<T> &list, std::string T::*name, F rename) {
    std::set<std::string> seen;
    for (auto it = list.rbegin(); it != list.rend(); ++it)
      if (current.declared.contains((*it).*name) &&
          seen.insert((*it).*name).second)
        rename((*it).*name);
  }

  Tokens &tokens;
  FunctionSyntax &function;
  Scope current{0, {}};
  int numScopes = 0;
};

} // namespace

void parseBody(Tokens &tokens, FunctionSyntax &to) {
  BodyParser(tokens, to).scope(true);
  to.hasBody = true;
}

} // namespace meshwork::ptx
