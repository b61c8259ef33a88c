// CudaExecutor: what products leave to collectives that run beside them.
#include "runtime/device/cuda/Beside.h"
#include "absl/strings/str_cat.h"
#include "lib/Plan/Channels.h"
#include "lib/Plan/StatusMacros.h"
#include "runtime/device/cuda/CudaExecutor.h"
#include <algorithm>
#include <set>

namespace meshwork::runtime::cuda {

std::vector<uint32_t> channelsBeside(const plan::Instructions &list) {
  plan::Channels channels(list);
  std::vector<uint32_t> beside;
  for (uint32_t i = 0; i < list.size(); ++i) {
    std::set<uint32_t> moving; // channels
    for (uint32_t index : channels.underWay())
      if (const plan::Instruction &at = *list.Get(index); at.op_as_Collective())
        moving.insert(at.channel());
    beside.push_back(static_cast<uint32_t>(moving.size()));
    channels.pass(i, [](uint32_t) {});
  }
  return beside;
}

absl::Status CudaExecutor::countMultiprocessors() {
  if (cuda.transport.multiprocessorsOfChannel() == 0)
    return absl::OkStatus();
  int count = 0;
  MESHWORK_RETURN_IF_ERROR(cuda.gpu.driver().check(
      cuda.gpu.driver().deviceGetAttribute(&count, attribute::multiprocessors,
                                           cuda.gpu.device()),
      "counting the multiprocessors of the GPU"));
  multiprocessors = static_cast<uint32_t>(std::max(count, 1));
  return absl::OkStatus();
}

/// 0: all. At least half of them, however many channels there are.
uint32_t CudaExecutor::multiprocessorsOfProducts(uint32_t channels) const {
  uint64_t held =
      uint64_t{channels} * cuda.transport.multiprocessorsOfChannel();
  if (held == 0 || multiprocessors == 0)
    return 0;
  auto most =
      static_cast<uint32_t>(std::min<uint64_t>(held, multiprocessors / 2));
  return multiprocessors - most;
}

std::string CudaExecutor::tellOverlap() const {
  uint32_t held = cuda.transport.multiprocessorsOfChannel(), products = 0;
  for (uint32_t list = 0; list < setup.program.table.lists().size(); ++list) {
    const plan::Instructions &all = plan::listOf(setup.program.program, list);
    std::vector<uint32_t> beside = channelsBeside(all);
    for (uint32_t i = 0; i < all.size(); ++i)
      products += beside[i] > 0 && all.Get(i)->op_as_Matmul();
  }
  return absl::StrCat("overlap: ", products,
                      products == 1 ? " product leaves" : " products leave",
                      " multiprocessors to collectives beside, ", held,
                      " to each");
}

} // namespace meshwork::runtime::cuda
