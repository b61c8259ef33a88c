// Gradients, from their state through the collectives that reduce them.
#include "passes/schedule/ReducedGradients.h"

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::schedule {

StringRef ReducedGradients::parameterOf(Value value) const {
  if (auto state = value.getDefiningOp<StateOp>();
      state && state.getKind() == StateKind::gradient)
    return state.getName();
  return names.lookup(value);
}

FailureOr<Place> ReducedGradients::placeOf(Value from, Value to) {
  if (parameterOf(from).empty())
    return placement.of(to);
  return placement.buffers.reducedGradient(tensorType(to));
}

void ReducedGradients::put(Value from, Value to, const Place &place) {
  put(parameterOf(from), to, place);
}

void ReducedGradients::put(StringRef parameter, Value to, const Place &place) {
  placement.set(to, place);
  if (parameter.empty())
    return;
  names[to] = parameter;
  last[parameter] = place;
}

const Place *ReducedGradients::find(StringRef parameter) const {
  auto found = last.find(parameter);
  return found == last.end() ? nullptr : &found->second;
}

} // namespace meshwork::schedule
