// A number that a step tells beside its loss.
#pragma once

#include <string>

namespace meshwork::runtime {

struct Metric {
  std::string name;
  float value; // of the step, the same on every rank
};

} // namespace meshwork::runtime
