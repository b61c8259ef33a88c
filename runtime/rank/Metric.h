// What a step tells beside its loss.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace meshwork::runtime {

struct Metric {
  std::string name;
  std::vector<int64_t> shape; // none of one number
  std::vector<float> values;  // of the step, the same on every rank, row-major
};

} // namespace meshwork::runtime
