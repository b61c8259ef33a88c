#include "tools/meshwork/tune/Kin.h"

#include <algorithm>

namespace meshwork::tune {
namespace {

/// The part of what one takes beyond its body that is not sure of another: they
/// differ in what can be hidden.
constexpr double marginOfKin = 0.3;

/// One of all kin. Where weights are gathered for each use, what recompute adds
/// hides more of that, and so do copies to the host.
Choice headOf(Choice choice) {
  choice.method = choice.layout = {};
  if (choice.zeroStage != 3 && choice.recompute != "offload")
    choice.recompute = {};
  return choice;
}
} // namespace

void Kin::noteSlower(const Choice &choice, double beyond) {
  std::optional<double> &least = known[headOf(choice)].beyond;
  least = std::min(least.value_or(beyond), beyond);
}

void Kin::noteTooLarge(const Choice &choice, const Body &body) {
  known[headOf(choice)].tooLarge.push_back(body);
}

const Kin::Told *Kin::find(const Choice &choice) const {
  auto found = known.find(headOf(choice));
  return found == known.end() ? nullptr : &found->second;
}

double Kin::beyond(const Choice &choice) const {
  const Told *told = find(choice);
  return told ? (1 - marginOfKin) * told->beyond.value_or(0) : 0;
}

bool Kin::isTooLarge(const Choice &choice, const Body &body) const {
  const Told *told = find(choice);
  return told && std::any_of(told->tooLarge.begin(), told->tooLarge.end(),
                             [&](const Body &other) {
                               return body.leastKept >= other.leastKept &&
                                      body.splitKept >= other.splitKept &&
                                      body.otherBytes >= other.otherBytes;
                             });
}

} // namespace meshwork::tune
