#include "lib/Spec/Budget.h"

#include <algorithm>
#include <cctype>

#include "lib/Spec/Diagnostic.h"

namespace meshwork::spec {
namespace {

const std::vector<std::string> kinds = {
    "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "permute"};
const std::vector<std::string> phases = {"forward", "backward", "update"};
const std::vector<std::string> units = {"step", "microbatch", "layer"};

/// Words, numbers and signs, one after another; "" at the end.
class Words {
public:
  explicit Words(std::string_view text) : rest(text) { advance(); }
  const std::string &word() const { return current; }
  std::string take() {
    std::string taken = current;
    advance();
    return taken;
  }
  bool take(std::string_view expected) {
    if (current != expected)
      return false;
    advance();
    return true;
  }

private:
  static bool isWord(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
  }
  void advance() {
    while (!rest.empty() && rest.front() == ' ')
      rest.remove_prefix(1);
    size_t length = 0;
    while (length < rest.size() && isWord(rest[length]))
      ++length;
    if (length == 0 && !rest.empty())
      length = rest.size() > 1 && rest[1] == '=' ? 2 : 1;
    current = rest.substr(0, length);
    rest.remove_prefix(length);
  }
  std::string_view rest;
  std::string current;
};

bool contains(const std::vector<std::string> &list, const std::string &word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

std::string orText(const std::vector<std::string> &list) {
  std::string text;
  for (const std::string &one : list)
    text += (text.empty() ? "" : ", ") + one;
  return text;
}

class Parser {
public:
  Parser(std::string_view text, std::string &error)
      : words(text), error(error) {
    budget.text = text;
  }

  std::optional<CollectiveBudget> run() {
    bool none = words.take("no");
    if (!oneOf("a collective", kinds, budget.kind) || !axes())
      return std::nullopt;
    if (!none && (!comparison() || !unit()))
      return std::nullopt;
    if (words.take("in") && !oneOf("a phase", phases, budget.phase))
      return std::nullopt;
    if (!words.word().empty())
      return fail("the end", ""), std::nullopt;
    return budget;
  }

private:
  bool fail(const std::string &expected, const std::string &hint) {
    error =
        "found " +
        (words.word().empty() ? std::string("the end") : quote(words.word())) +
        ", expected " + expected + hint;
    return false;
  }

  bool oneOf(const std::string &what, const std::vector<std::string> &list,
             std::string &into) {
    if (!contains(list, words.word()))
      return fail(what + " (" + orText(list) + ")",
                  suggestion(words.word(), list));
    into = words.take();
    return true;
  }

  bool axes() {
    if (!words.take("("))
      return true;
    do {
      if (words.word().empty() || !std::islower(words.word().front()))
        return fail("a mesh axis", "");
      budget.axes.push_back(words.take());
    } while (words.take(","));
    return words.take(")") || fail("')' or ','", "");
  }

  bool comparison() {
    using Compare = CollectiveBudget::Compare;
    if (words.take("<="))
      budget.compare = Compare::atMost;
    else if (words.take("=="))
      budget.compare = Compare::equal;
    else if (words.take(">="))
      budget.compare = Compare::atLeast;
    else
      return fail("<=, == or >=", "");
    const std::string &number = words.word();
    if (number.empty() || number.size() > 9 ||
        !std::all_of(number.begin(), number.end(), ::isdigit))
      return fail("a whole number below 1000000000", "");
    budget.count = std::stoull(words.take());
    return true;
  }

  bool unit() {
    std::string per = "step";
    if (words.take("per") && !oneOf("a unit", units, per))
      return false;
    budget.per = static_cast<CollectiveBudget::Per>(
        std::find(units.begin(), units.end(), per) - units.begin());
    return true;
  }

  Words words;
  std::string &error;
  CollectiveBudget budget;
};
} // namespace

bool CollectiveBudget::allows(uint64_t found, uint64_t of) const {
  switch (compare) {
  case Compare::atMost:
    return found <= count * of;
  case Compare::equal:
    return found == count * of;
  case Compare::atLeast:
    return found >= count * of;
  }
  return false;
}

std::optional<CollectiveBudget> parseBudget(std::string_view text,
                                            std::string &error) {
  return Parser(text, error).run();
}

} // namespace meshwork::spec
