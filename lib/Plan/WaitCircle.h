// Ranks that wait for one another, as an error tells of them.
#pragma once

#include "absl/functional/function_ref.h"
#include <cstdint>
#include <string>
#include <vector>

namespace meshwork::plan {

/// A rank that cannot go on.
struct Blocked {
  uint32_t rank;
  std::string where; // "at update[0] \"loss\"", "before 0B0 (action 3) for ..."
  std::vector<uint32_t> waitsFor;
};

/// The shortest circle among them, as a table (Circle.h), or one that waits for
/// a rank which has ended. `nameOf` numbers ranks for people; `blocked` is not
/// empty.
std::string describe(const std::vector<Blocked> &blocked,
                     absl::FunctionRef<uint64_t(uint32_t)> nameOf);

} // namespace meshwork::plan
