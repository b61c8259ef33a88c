#include "runtime/save/StoredTensors.h"
#include "lib/Plan/SavedTensors.h"
#include "lib/Plan/Views.h"
#include "runtime/save/Weights.h"

namespace meshwork::runtime {
using plan::orEmpty;

std::vector<StoredTensor> storedTensors(const plan::Plan &plan) {
  std::vector<StoredTensor> stored;
  for (const plan::SavedTensor &tensor : plan::savedTensors(plan)) {
    StoredTensor &to = stored.emplace_back();
    const plan::Parameter &parameter = *tensor.parameter;
    to.name = parameter.name()->str();
    to.shape.assign(orEmpty(parameter.shape()).begin(),
                    orEmpty(parameter.shape()).end());
    to.fileShape.assign(orEmpty(parameter.file_shape()).begin(),
                        orEmpty(parameter.file_shape()).end());
    if (orEmpty(parameter.files()).size() > 0)
      to.files = plan::writtenForm(parameter);
    for (const plan::SavedState &state : tensor.states)
      to.states.push_back({state.name, plan::storedType(state), {}});
  }
  return stored;
}

} // namespace meshwork::runtime
