#include "runtime/save/CopyMemory.h"
#include "lib/Plan/Boxes.h"
#include "lib/Plan/Checked.h"
#include "runtime/machine/Memory.h"

namespace meshwork::runtime {

absl::StatusOr<uint64_t> checkCopies(const plan::Plan &plan,
                                     const RunOptions &options,
                                     const std::vector<CoreShare> &cores,
                                     uint32_t ranksHere, uint64_t planned) {
  uint64_t copies = 0, ranks = 0;
  if (options.checkpoint.empty() || options.checkpointSync)
    return copies;
  for (uint32_t rank = 0; rank < cores.size(); ++rank)
    if (cores[rank].threads > 0) {
      copies += plan::savedBytes(plan, rank);
      ++ranks;
    }
  // A GPU's own memory is counted elsewhere.
  uint64_t here = copies + (plan.device() == plan::Device::cpu ? planned : 0);
  if (!plan::checkedMul(here, ranks == 1 ? ranksHere : 1, here))
    return plan::bad("the memory of all ranks does not fit 64 bits");
  uint64_t available = availableBytes();
  if (here <= available)
    return copies;
  return absl::ResourceExhaustedError(absl::StrCat(
      "the plan needs ", bytesText(here), ", of which ",
      bytesText(copies * (ranks == 1 ? ranksHere : 1)),
      " are for copies of the states (--checkpoint), this process may take ",
      bytesText(available),
      ": add --checkpoint-sync, which makes no copies, or use a larger "
      "machine"));
}

} // namespace meshwork::runtime
