#include "tools/meshwork/tune/Bodies.h"

#include <algorithm>
#include <string_view>

namespace meshwork::tune {
namespace {

/// The smallest number from 2 on that divides it.
uint32_t primeOf(uint32_t number) {
  for (uint32_t one = 2; uint64_t{one} * one <= number; ++one)
    if (number % one == 0)
      return one;
  return number;
}
} // namespace

Bodies::Key Bodies::keyOf(const Choice &body, uint32_t microbatches) const {
  return {body.ep,
          body.cp,
          body.tp,
          body.micro,
          body.sequenceParallel,
          body.method,
          body.layout,
          body.exchange,
          body.recompute,
          microbatches};
}

void Bodies::add(const Choice &choice, size_t which) {
  Choice body = bodyOf(choice);
  uint32_t ofStep = globalOfBody(choice, global);
  auto [at, isNew] = known.try_emplace(
      keyOf(body, ofStep / (body.ep * body.micro)), all.size());
  if (isNew)
    all.push_back({body, ofStep, {}, std::nullopt});
  all[at->second].members.push_back(which);
}

/// Bodies that should do no more for a token.
std::vector<Choice> Bodies::simplerOf(const Choice &body) const {
  std::vector<Choice> simpler;
  auto add = [&](auto change) {
    simpler.push_back(body);
    change(simpler.back());
  };
  std::string_view recompute = body.recompute;
  if (recompute == "full")
    add([](Choice &one) { one.recompute = "selective"; });
  if (recompute == "selective")
    add([](Choice &one) { one.recompute = "none"; });
  add([](Choice &one) { one.micro *= 2; });
  if (body.tp > 1)
    add([](Choice &one) {
      one.tp /= primeOf(one.tp);
      one.sequenceParallel &= one.tp > 1;
    });
  if (body.cp > 1)
    add([](Choice &one) {
      one.cp /= primeOf(one.cp);
      if (one.cp == 1)
        one.method = one.layout = {};
    });
  return simpler;
}

double Bodies::keptOfLayer(size_t which) const {
  const OfBody &one = all[which];
  if (one.measured)
    return one.measured->keptOfLayer;
  if (one.body.micro == 1)
    return 0;
  Choice smaller = one.body;
  uint32_t parts = primeOf(smaller.micro);
  smaller.micro /= parts;
  uint32_t microbatches = one.global / (one.body.ep * one.body.micro);
  auto found = known.find(keyOf(smaller, microbatches));
  return found == known.end() ? 0 : parts * keptOfLayer(found->second);
}

size_t Bodies::simplest(size_t which) const {
  const OfBody &one = all[which];
  uint32_t microbatches = one.global / (one.body.ep * one.body.micro);
  for (const Choice &simpler : simplerOf(one.body))
    if (auto found = known.find(keyOf(simpler, microbatches));
        found != known.end())
      return simplest(found->second);
  return which;
}

double Bodies::rankSeconds(size_t which) {
  least.resize(all.size(), -1);
  if (least[which] >= 0)
    return least[which];
  const OfBody &one = all[which];
  double seconds = 0;
  if (one.measured && one.measured->status == Costed::done)
    seconds =
        one.measured->seconds * one.body.cp * one.body.tp / one.body.micro;
  uint32_t microbatches = one.global / (one.body.ep * one.body.micro);
  for (const Choice &simpler : simplerOf(one.body))
    if (auto found = known.find(keyOf(simpler, microbatches));
        seconds == 0 && found != known.end())
      least[which] = std::max(least[which], rankSeconds(found->second));
  return least[which] = std::max({least[which], seconds, 0.0});
}

} // namespace meshwork::tune
