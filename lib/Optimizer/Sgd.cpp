// Stochastic gradient descent with momentum, as PyTorch's torch.optim.SGD
// (dampening 0): decay is added to the gradient, and so goes through the
// momentum. Without momentum nothing is kept.
#include "lib/Optimizer/Optimizer.h"

namespace meshwork::optimizer {
namespace {
std::vector<State> states(const Settings &settings) {
  if (settings.at("momentum") == 0)
    return {};
  return {{"momentum"}};
}

std::vector<double> corrections(const Settings &) { return {}; }

Updated update(const Element &x, const Settings &settings) {
  Number g = x.gradient;
  if (double decay = settings.at(weightDecay); decay != 0)
    g = g + x.weight * decay;
  if (x.states.empty())
    return {x.weight - x.rate * g, {}};
  Number momentum = x.states[0] * settings.at("momentum") + g;
  return {x.weight - x.rate * momentum, {momentum}};
}
} // namespace

Optimizer sgd() {
  return {"sgd",
          {{"momentum", 0, fraction}, {weightDecay, 0, magnitude}},
          states,
          corrections,
          update};
}

} // namespace meshwork::optimizer
