// Stochastic gradient descent with momentum, as PyTorch's torch.optim.SGD
// (dampening 0): decay is added to the gradient, and so goes through the
// momentum. Without momentum nothing is kept. Nesterov's form steps along the
// gradient and the momentum that the next step would begin with.
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
  double kept = settings.at("momentum");
  Number momentum = x.states[0] * kept + g;
  Number direction =
      settings.at("nesterov") != 0 ? g + momentum * kept : momentum;
  return {x.weight - x.rate * direction, {momentum}};
}
} // namespace

Optimizer sgd() {
  return {"sgd",
          {{"momentum", 0, fraction},
           {weightDecay, 0, magnitude},
           {"nesterov", 0, onOrOff, "momentum"}},
          states,
          corrections,
          update};
}

} // namespace meshwork::optimizer
