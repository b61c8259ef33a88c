// Instructions that are kernels of the plan. Plan.fbs at Kernel says which
// arguments they take.
#include "absl/strings/str_cat.h"
#include "lib/Plan/Operands.h"
#include "lib/Plan/Operation.h"
#include "lib/Plan/StatusMacros.h"
#include "runtime/device/cuda/OperationKinds.h"
#include "runtime/machine/StepState.h"

namespace meshwork::runtime::cuda {
namespace {

/// The arguments of one kernel: each in 8 bytes of its own, which stay where
/// they are.
class Arguments {
public:
  explicit Arguments(std::vector<uint64_t> values) : words(std::move(values)) {
    for (uint64_t &word : words)
      pointers.push_back(&word);
  }
  void **get() { return pointers.data(); }
  void set(size_t index, uint64_t value) { words[index] = value; }

private:
  std::vector<uint64_t> words;
  std::vector<void *> pointers;
};

struct OneKernel {
  const plan::Kernel *source;
  Function function;
  Arguments arguments;
};

class KernelOperation : public Operation {
public:
  KernelOperation(const Driver &driver, std::vector<OneKernel> all,
                  plan::Accumulate mode, size_t addsAt)
      : driver(driver), kernels(std::move(all)), mode(mode), addsAt(addsAt) {}

  absl::Status enqueue(Stream stream, bool sets) override {
    for (OneKernel &one : kernels) {
      if (addsAt > 0)
        one.arguments.set(addsAt, accumulates(mode, {sets}));
      Result result = driver.launchKernel(
          one.function, one.source->grid(), 1, 1, one.source->block(), 1, 1,
          one.source->shared_bytes(), stream, one.arguments.get(), nullptr);
      if (result != result::success)
        return driver.check(result,
                            absl::StrCat("launching kernel ",
                                         plan::quote(one.source->symbol())));
    }
    return absl::OkStatus();
  }

private:
  const Driver &driver;
  std::vector<OneKernel> kernels;
  plan::Accumulate mode;
  size_t addsAt; // among the arguments; 0: none
};

OneKernel bind(const OperationContext &context, uint32_t index,
               std::vector<uint64_t> arguments) {
  const plan::Kernel &kernel = *context.program.plan.kernels()->Get(index);
  for (uint32_t stream : plan::orEmpty(kernel.streams()))
    arguments.push_back(stream);
  return {&kernel, context.gpu.kernel(index), Arguments(std::move(arguments))};
}

std::vector<uint64_t> operands(const plan::Instruction &instruction,
                               const OperationContext &context) {
  std::vector<uint64_t> addresses;
  forEachOperand(instruction, [&](const plan::Operand &operand) {
    addresses.push_back(context.arena + context.program.places[operand.view]);
  });
  return addresses;
}

/// Of an instruction whose kernels may add to what is there.
plan::Accumulate modeOf(const plan::Instruction &instruction) {
  return plan::visitOperation<plan::Accumulate>(
      instruction, [](const auto &op) {
        if constexpr (requires { op.accumulate(); })
          return op.accumulate();
        return plan::Accumulate::no;
      });
}
} // namespace

absl::StatusOr<std::unique_ptr<Operation>>
makeLaunch(const plan::Instruction &instruction,
           const OperationContext &context) {
  const plan::Launch &op = *instruction.op_as_Launch();
  std::vector<OneKernel> kernels;
  kernels.push_back(bind(context, op.kernel(), operands(instruction, context)));
  return std::make_unique<KernelOperation>(
      context.gpu.driver(), std::move(kernels), plan::Accumulate::no, 0);
}

absl::StatusOr<std::unique_ptr<Operation>>
makeKernels(const plan::Instruction &instruction,
            const OperationContext &context) {
  std::vector<uint64_t> arguments = operands(instruction, context);
  size_t addsAt = arguments.size();
  arguments.push_back(0);
  arguments.push_back(context.workspace);
  std::vector<OneKernel> kernels;
  for (uint32_t index : plan::orEmpty(instruction.kernels()))
    kernels.push_back(bind(context, index, arguments));
  return std::make_unique<KernelOperation>(
      context.gpu.driver(), std::move(kernels), modeOf(instruction), addsAt);
}

} // namespace meshwork::runtime::cuda
