// Numbers that leave the GPU between two pieces of its work, into pinned memory
// that the host reads when an event says so.
#include "absl/strings/str_cat.h"
#include "lib/Plan/StatusMacros.h"
#include "runtime/device/cuda/CudaExecutor.h"
#include "runtime/machine/Clock.h"
#include <cstring>

namespace meshwork::runtime::cuda {

class CudaExecutor::StreamReadout : public Readout {
public:
  StreamReadout(CudaExecutor &owner, uint64_t numbers)
      : owner(owner), bytes(numbers * sizeof(float)) {}

  absl::Status allocate() {
    MESHWORK_ASSIGN_OR_RETURN(memory,
                              PinnedMemory::create(owner.cuda.gpu, bytes));
    MESHWORK_ASSIGN_OR_RETURN(
        left, EventHandle::create(owner.cuda.gpu, /*timed=*/true));
    std::memset(memory.data(), 0, bytes);
    return absl::OkStatus();
  }

  absl::Status start(std::optional<uint64_t> place) override {
    number = owner.progress.begin({{}, false, true});
    const Driver &driver = owner.cuda.gpu.driver();
    if (place)
      MESHWORK_RETURN_IF_ERROR(owner.addHint(driver.check(
          driver.copyToHost(memory.data(), owner.arena.address() + *place,
                            bytes, owner.main->stream()),
          "copying a result from the GPU")));
    MESHWORK_RETURN_IF_ERROR(owner.addHint(owner.progress.end(*owner.main)));
    return owner.addHint(owner.main->record(left));
  }

  absl::StatusOr<absl::Span<const float>> waitForAll() override {
    absl::Status status = owner.main->await(left);
    // The driver knows no event after a fault; one in the next step must not
    // take this one's results.
    if (!status.ok() && owner.progress.ended() < number)
      return owner.addHint(std::move(status));
    seenNs = steadyNs();
    return absl::MakeConstSpan(reinterpret_cast<const float *>(memory.data()),
                               bytes / sizeof(float));
  }

  absl::StatusOr<int64_t> nsSince(const Readout &earlier) const override {
    const auto &from = static_cast<const StreamReadout &>(earlier);
    float ms = 0;
    Result result = owner.cuda.gpu.driver().eventElapsedMs(&ms, from.left.get(),
                                                           left.get());
    // As above: then by when the host saw them.
    return result == result::success
               ? static_cast<int64_t>(static_cast<double>(ms) * 1e6)
               : seenNs - from.seenNs;
  }

private:
  CudaExecutor &owner;
  uint64_t bytes;
  PinnedMemory memory;
  EventHandle left;    // recorded behind the copy
  uint64_t number = 0; // of the copy, in `progress`
  int64_t seenNs = 0;
};

absl::StatusOr<std::unique_ptr<Readout>>
CudaExecutor::makeReadout(uint64_t numbers) {
  MESHWORK_RETURN_IF_ERROR(cuda.gpu.makeCurrent());
  auto made = std::make_unique<StreamReadout>(*this, numbers);
  MESHWORK_RETURN_IF_ERROR(made->allocate());
  return made;
}

} // namespace meshwork::runtime::cuda
