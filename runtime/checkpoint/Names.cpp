#include "runtime/checkpoint/Checkpoint.h"
#include <absl/strings/str_format.h>

namespace meshwork::runtime {

std::string checkpointName(uint64_t step) {
  return absl::StrFormat("step-%010d", step);
}

} // namespace meshwork::runtime
