#include "tools/meshwork/tune/Fixed.h"

#include "lib/Spec/Spec.h"
#include "tools/meshwork/tune/Space.h"

#include <set>

namespace meshwork::tune {
namespace {

std::string keyOf(const std::string &setting) {
  return setting.substr(0, setting.find('='));
}

/// Empty: it has a meaning, or something else is wrong with it.
std::string whyMeaningless(const std::string &key,
                           const Diagnostics &diagnostics) {
  for (const Diagnostic &one : diagnostics)
    if (one.isMeaningless && one.message.starts_with(key + ": "))
      return one.message;
  return "";
}
} // namespace

/// Without one key others may lose their meaning, too.
std::vector<std::string> withMeaningful(const std::vector<std::string> &own,
                                        const std::vector<std::string> &fixed,
                                        Reasons *leftOut) {
  std::vector<std::string> left = fixed;
  size_t erased = left.size();
  while (erased > 0) {
    std::vector<std::string> all = own;
    all.insert(all.end(), left.begin(), left.end());
    Diagnostics wrong = spec::parse("", "the spec", all).diagnostics;
    erased = std::erase_if(left, [&](const std::string &one) {
      std::string why = whyMeaningless(keyOf(one), wrong);
      if (!why.empty() && leftOut)
        (*leftOut)[keyOf(one)] = why;
      return !why.empty();
    });
  }
  left.insert(left.begin(), own.begin(), own.end());
  return left;
}

/// The same choice with sizes that give keys the same meaning: specs of choices
/// that are alike in this have the same keys.
static Choice withoutSizes(Choice choice) {
  for (AxisOfChoice axis : axesOfChoices)
    choice.*axis.size = std::min(choice.*axis.size, 2u);
  choice.micro = 1;
  choice.virtualStages = 0;
  return choice;
}

Reasons unusedKeys(const Specs &specs, Space &space) {
  std::set<std::string> seen;
  std::optional<Reasons> unused; // by all specs that were looked at
  Space::Use look = [&](const Choice &choice) {
    bool isOpen = !unused || !unused->empty();
    if (!isOpen || !seen.insert(nameOf(withoutSizes(choice))).second)
      return;
    Reasons others = specs.leftOutOf(choice);
    if (!unused)
      unused = others;
    std::erase_if(*unused,
                  [&](const auto &one) { return !others.contains(one.first); });
    space.lighter(choice, look);
  };
  if (specs.isAnyFixed())
    space.visit(look);
  return unused.value_or(Reasons());
}

} // namespace meshwork::tune
