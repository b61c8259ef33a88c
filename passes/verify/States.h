// What is kept of parameters from step to step, as whole tensors. Before a step
// a rule gives them; after it those of one rank and of all ranks are compared.
#pragma once

#include "passes/verify/Machine.h"
#include <map>

namespace meshwork::verify {

/// A parameter's state: "weight", "master", "gradient", or what its optimizer
/// calls it.
struct StateName {
  std::string parameter, state;
  auto operator<=>(const StateName &) const = default;
  std::string text() const { return state + " of \"" + parameter + "\""; }
};
using WholeStates = std::map<StateName, interpreter::Tensor>;

/// A step's end, for the whole model.
struct StepEnd {
  WholeStates states;
  double loss = 0;
  std::optional<double> gradNorm;
  std::map<std::string, interpreter::Tensor> metrics;
};

/// What a step begins with: weights around 0, those of one dim around 1; what
/// an optimizer keeps small and not negative, as some are sums of squares. A
/// function of the name alone.
interpreter::Tensor initialState(const StateName &name,
                                 std::vector<int64_t> shape);

/// Puts each rank's part of it in place.
absl::Status loadStates(const plan::Plan &plan, Machine &machine);

/// How all ranks compare with one.
struct Findings {
  /// One line for each state or result of the ranks that is wrong. It differs
  /// from one rank's by more than the tolerance (2-norm, relative); copies of
  /// it differ; its padding is not zero; or no rank has one of its elements.
  std::vector<std::string> problems;
  size_t compared = 0; // states and results
  double largest = 0;  // difference among them
};
Findings compare(const plan::Plan &plan, Machine &machine,
                 const StepEnd &expected, double tolerance);

} // namespace meshwork::verify
