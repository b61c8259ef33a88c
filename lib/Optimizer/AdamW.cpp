// AdamW: Loshchilov and Hutter, arXiv 1711.05101, in the form of PyTorch's:
// decay apart from the gradient, epsilon outside the root.
#include "lib/Optimizer/Optimizer.h"

namespace meshwork::optimizer {
namespace {
std::vector<State> states(const Settings &) {
  return {{"first_moment"}, {"second_moment"}};
}

std::vector<double> corrections(const Settings &settings) {
  return {settings.at("beta1"), settings.at("beta2")};
}

Updated update(const Element &x, const Settings &settings) {
  double beta1 = settings.at("beta1"), beta2 = settings.at("beta2");
  Number g = x.gradient;
  Number first = x.states[0] * beta1 + g * (1 - beta1);
  Number second = x.states[1] * beta2 + g * g * (1 - beta2);
  Number decayed = x.weight * (1 - x.rate * settings.at(weightDecay));
  Number root = sqrt(second) / sqrt(x.corrections[1]) + settings.at("epsilon");
  return {decayed - x.rate / x.corrections[0] * first / root, {first, second}};
}
} // namespace

Optimizer adamW() {
  return {"adamw",
          {{"beta1", 0.9, fraction},
           {"beta2", 0.95, fraction},
           {"epsilon", 1e-8, small},
           {weightDecay, 0.1, magnitude}},
          states,
          corrections,
          update};
}

} // namespace meshwork::optimizer
