// Code and launches, which depend on the plan's device.
#include "absl/container/flat_hash_set.h"
#include "lib/Plan/Operation.h"
#include "lib/Plan/PlanCheckInternal.h"

namespace meshwork::plan {
namespace {
/// Limits of every GPU that has code (CUDA C++ Programming Guide, compute
/// capabilities 8.0 to 10.0); shared memory: the largest of them.
constexpr uint32_t maxGrid = 0x7fffffff, maxBlock = 1024, warp = 32,
                   maxSharedBytes = 227 << 10;

template <typename List> uint64_t sizeOf(const List *list) {
  return list ? list->size() : 0;
}

/// Each is made for its own operands: with another's name it would take them
/// for what they are not.
absl::Status checkSymbols(const Plan &plan) {
  absl::flat_hash_set<std::string_view> known;
  for (const Kernel *kernel : orEmpty(plan.kernels()))
    if (!known.insert(kernel->symbol()->string_view()).second)
      return bad("two kernels have the symbol ", quote(kernel->symbol()),
                 ", expected one of each");
  return absl::OkStatus();
}

absl::Status checkCpuCode(const Plan &plan) {
  if (sizeOf(plan.kernels()) > 0 && sizeOf(plan.code()) == 0)
    return bad("it has ", plan.kernels()->size(), " kernels but no code");
  if (sizeOf(plan.images()) > 0)
    return bad("it is for a CPU but has ", plan.images()->size(),
               " images of a GPU's code");
  for (const Kernel *kernel : orEmpty(plan.kernels()))
    if (kernel->grid() || kernel->block() || kernel->shared_bytes() ||
        sizeOf(kernel->streams()) || sizeOf(kernel->maxima()))
      return bad("kernel ", quote(kernel->symbol()),
                 " has a GPU's launch, but the plan is for a CPU");
  return checkSymbols(plan);
}

absl::Status checkImage(const Image &image) {
  if (!image.arch() || image.arch()->size() == 0)
    return bad("an image has no arch");
  if (image.kind() > ImageKind::MAX)
    return bad("the image for ", quote(image.arch()), " has the unknown kind ",
               static_cast<int>(image.kind()));
  if (sizeOf(image.code()) == 0)
    return bad("the image for ", quote(image.arch()), " is empty");
  if (image.kind() == ImageKind::ptx &&
      image.code()->Get(image.code()->size() - 1) != 0)
    return bad("the PTX for ", quote(image.arch()),
               " does not end with a zero byte");
  return absl::OkStatus();
}

absl::Status checkLaunch(const Kernel &kernel) {
  if (kernel.grid() == 0 || kernel.grid() > maxGrid)
    return bad("kernel ", quote(kernel.symbol()), " has ", kernel.grid(),
               " blocks, expected 1 to ", maxGrid);
  if (kernel.block() == 0 || kernel.block() > maxBlock ||
      kernel.block() % warp != 0)
    return bad("kernel ", quote(kernel.symbol()), " has blocks of ",
               kernel.block(), " threads, expected a multiple of ", warp,
               " up to ", maxBlock);
  if (kernel.shared_bytes() > maxSharedBytes)
    return bad("kernel ", quote(kernel.symbol()), " needs ",
               kernel.shared_bytes(),
               " bytes of shared memory, expected at most ", maxSharedBytes);
  for (uint32_t arg : orEmpty(kernel.maxima()))
    if (arg >= kernel.num_args())
      return bad("kernel ", quote(kernel.symbol()), " has maxima in argument ",
                 arg, ", there are ", kernel.num_args());
  return absl::OkStatus();
}

absl::Status checkGpuCode(const Plan &plan) {
  if (sizeOf(plan.code()) == 0 && sizeOf(plan.cpu_features()) > 0)
    return bad("it is for GPUs but has features of a CPU, and no code for one");
  if (sizeOf(plan.kernels()) > 0 && sizeOf(plan.images()) == 0)
    return bad("it has ", plan.kernels()->size(), " kernels but no images");
  for (const Image *image : orEmpty(plan.images()))
    MESHWORK_RETURN_IF_ERROR(checkImage(*image));
  for (const Kernel *kernel : orEmpty(plan.kernels()))
    MESHWORK_RETURN_IF_ERROR(checkLaunch(*kernel));
  return absl::OkStatus();
}
} // namespace

absl::Status checkDevice(const Plan &plan) {
  if (plan.device() > Device::MAX)
    return bad("unknown device ", static_cast<int>(plan.device()));
  for (const Kernel *kernel : orEmpty(plan.kernels()))
    if (!kernel->symbol() || kernel->symbol()->size() == 0)
      return bad("a kernel has no symbol");
  return plan.device() == Device::cuda ? checkGpuCode(plan)
                                       : checkCpuCode(plan);
}

absl::Status checkKernels(const ProgramCheck &check,
                          const Instruction &instruction) {
  const Plan &plan = check.plan;
  bool isExpected =
      plan.device() == Device::cuda && hasGpuKernels(instruction.op_type());
  uint64_t count = sizeOf(instruction.kernels());
  if ((count > 0) != isExpected)
    return bad("it lists ", count, " kernels, expected ",
               isExpected ? "at least one" : "none", " of ",
               EnumNameOperation(instruction.op_type()), " on ",
               EnumNameDevice(plan.device()));
  uint32_t operands = 0;
  forEachOperand(instruction, [&](const Operand &) { ++operands; });
  for (uint32_t index : orEmpty(instruction.kernels())) {
    if (index >= sizeOf(plan.kernels()))
      return bad("kernel ", index, " does not exist, there are ",
                 sizeOf(plan.kernels()));
    const Kernel &kernel = *plan.kernels()->Get(index);
    if (kernel.num_args() != operands)
      return bad("kernel ", quote(kernel.symbol()), " takes ",
                 kernel.num_args(), " pointers, expected ", operands);
  }
  return absl::OkStatus();
}

} // namespace meshwork::plan
