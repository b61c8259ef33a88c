// Copies within the device's memory, and between it and the host's, by the copy
// engines.
#include "lib/Plan/Spaces.h"
#include "lib/Plan/StatusMacros.h"
#include "runtime/device/cuda/OperationKinds.h"

namespace meshwork::runtime::cuda {
namespace {

/// Where a view lies.
struct Side {
  DevicePtr device = 0;
  std::byte *host = nullptr; // null: on the device
};

class CopyOperation : public Operation {
public:
  CopyOperation(const Driver &driver, Side from, Side to, size_t bytes)
      : driver(driver), from(from), to(to), bytes(bytes) {}

  absl::Status enqueue(Stream stream, bool) override {
    return driver.check(
        from.host ? driver.copyToDevice(to.device, from.host, bytes, stream)
        : to.host ? driver.copyToHost(to.host, from.device, bytes, stream)
                  : driver.copyOnDevice(to.device, from.device, bytes, stream),
        "copying");
  }

private:
  const Driver &driver;
  Side from, to;
  size_t bytes;
};

Side sideOf(const OperationContext &context, uint32_t view) {
  const plan::Program &program = context.program.program;
  uint64_t place = context.program.places[view];
  if (plan::isOnHost(program, place))
    return {0, context.hostArena + (place - plan::hostBegin(program))};
  return {context.arena + place, nullptr};
}
} // namespace

OperationOr makeCopy(const plan::Instruction &instruction,
                     const OperationContext &context) {
  const plan::Copy &op = *instruction.op_as_Copy();
  const plan::ViewInfo &src = context.program.views[op.src()];
  return std::make_unique<CopyOperation>(
      context.gpu.driver(), sideOf(context, op.src()),
      sideOf(context, op.dst()), src.spanBytes);
}

} // namespace meshwork::runtime::cuda
