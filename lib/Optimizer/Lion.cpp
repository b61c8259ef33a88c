// Lion: Chen et al., arXiv 2302.06675, algorithm 2, with its defaults: the sign
// of a mix of momentum and gradient, decay apart from it.
#include "lib/Optimizer/Optimizer.h"

namespace meshwork::optimizer {
namespace {
std::vector<State> states(const Settings &) { return {{"momentum"}}; }

std::vector<double> corrections(const Settings &) { return {}; }

Updated update(const Element &x, const Settings &settings) {
  double beta1 = settings.at("beta1"), beta2 = settings.at("beta2");
  Number g = x.gradient, m = x.states[0];
  Number direction = sign(m * beta1 + g * (1 - beta1));
  Number decayed = x.weight * (1 - x.rate * settings.at(weightDecay));
  return {decayed - x.rate * direction, {m * beta2 + g * (1 - beta2)}};
}
} // namespace

Optimizer lion() {
  return {"lion",
          {{"beta1", 0.9, fraction},
           {"beta2", 0.99, fraction},
           {weightDecay, 0, magnitude}},
          states,
          corrections,
          update};
}

} // namespace meshwork::optimizer
