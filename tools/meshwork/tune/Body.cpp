#include "tools/meshwork/tune/Body.h"

#include "tools/meshwork/tune/Cost.h"

#include <algorithm>

namespace meshwork::tune {
namespace {

/// The first and the last layer stay as they are; what is between them grows
/// evenly from the second one on.
constexpr int64_t fewLayers = 2, moreLayers = 4;

bool isSingle(const Choice &choice, uint32_t global) {
  return choice.dataParallel() * choice.micro >= global;
}
} // namespace

Choice bodyOf(const Choice &choice) {
  Choice body = choice;
  body.pp = body.dp = 1;
  body.zeroStage = 0;
  body.gathered = body.reduce = body.schedule = {};
  body.virtualStages = 0;
  return body;
}

uint32_t globalOfBody(const Choice &choice, uint32_t global) {
  return choice.ep * choice.micro * (isSingle(choice, global) ? 1 : 2);
}

Body measureBody(const Facts &facts, const spec::Spec &spec) {
  bool isEven = facts.kinds == 1 && facts.layers > moreLayers;
  Compiled more =
      compileShallow(facts.text, spec, isEven ? moreLayers : facts.layers);
  Body body{more.costed.status, more.costed.why, more.secondsOfMicrobatch};
  if (!isEven || body.status != Costed::done)
    return body;
  Compiled few = compileShallow(facts.text, spec, fewLayers);
  constexpr auto between = static_cast<double>(moreLayers - fewLayers);
  double ofLayer =
      (more.secondsOfMicrobatch - few.secondsOfMicrobatch) / between;
  body.seconds += ofLayer * static_cast<double>(facts.layers - moreLayers);
  auto grown = [&](uint64_t Compiled::*stored) {
    return static_cast<double>(more.*stored) - static_cast<double>(few.*stored);
  };
  double bytes = static_cast<double>(more.costed.bytes) -
                 static_cast<double>(few.costed.bytes);
  body.keptOfLayer =
      std::max(0.0, (bytes - grown(&Compiled::storedBytes)) / between);
  return body;
}

} // namespace meshwork::tune
