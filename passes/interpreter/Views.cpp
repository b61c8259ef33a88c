#include "passes/interpreter/Views.h"
#include "meshwork/Plan/Frame.h"

namespace meshwork::interpreter {

std::optional<Tensor> Views::readIf(uint32_t view) {
  return view == plan::noView ? std::nullopt : std::optional(read(view));
}

void Views::add(uint32_t view, Tensor values, plan::Accumulate mode) {
  if (adds(mode)) {
    Tensor before = read(view);
    for (int64_t i = 0; i < values.size(); ++i)
      values[i] += before[i];
  }
  write(view, values);
}

} // namespace meshwork::interpreter
