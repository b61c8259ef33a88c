#include "tools/meshwork/tune/AxisSizes.h"

#include "lib/Spec/Keys.h"
#include "meshwork/Text/Escape.h"
#include "tools/meshwork/driver/Files.h"
#include "tools/meshwork/tune/Choice.h"

#include <algorithm>

namespace meshwork::tune {

int readAxes(const std::vector<std::string> &texts, AxisSizes &sizes) {
  for (const std::string &text : texts) {
    std::string expected;
    std::optional<spec::Axis> axis = spec::parseAxis(text, expected);
    bool isKnown =
        axis && std::any_of(std::begin(axesOfChoices), std::end(axesOfChoices),
                            [&](const AxisOfChoice &one) {
                              return one.name == axis->name;
                            });
    if (!isKnown)
      return driver::report(absl::InvalidArgumentError(
          "--axis: found " + quote(text) +
          ", expected pp, dp, fsdp, ep, cp or tp and its size, like dp=8"));
    sizes[axis->name] = axis->size;
  }
  return driver::ok;
}

std::vector<uint32_t> divisorsOf(uint32_t number) {
  std::vector<uint32_t> divisors;
  for (uint64_t one = 1; one * one <= number; ++one)
    if (number % one == 0) {
      divisors.push_back(static_cast<uint32_t>(one));
      if (one * one != number)
        divisors.push_back(static_cast<uint32_t>(number / one));
    }
  std::sort(divisors.begin(), divisors.end());
  return divisors;
}

} // namespace meshwork::tune
