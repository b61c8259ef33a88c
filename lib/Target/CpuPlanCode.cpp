#include "lib/Target/CpuObject.h"
#include "lib/Target/PlanCode.h"
#include "passes/codegen/KernelSpecs.h"

using namespace mlir;
namespace meshwork::target {

LogicalResult addCpuCode(ModuleOp module, const CpuTarget &target, plan::PlanT &plan, KernelNumbers &numbers) {
  codegen::loadKernelDialects(*module.getContext());
  OwningOpRef<ModuleOp> code(ModuleOp::create(module.getLoc()));
  for (const codegen::KernelSpec &kernel : codegen::kernelSpecsOf(module)) {
    if (failed(codegen::emitKernel(kernel, *code, target)))
      return failure();
    auto entry = std::make_unique<plan::KernelT>();
    entry->symbol = kernel.symbol;
    entry->num_args = kernel.inputs.size() + kernel.results.size();
    numbers.ofCluster[kernel.symbol] = plan.kernels.size();
    plan.kernels.push_back(std::move(entry));
  }
  FailureOr<std::vector<char>> object = compileToSharedObject(*code, target);
  if (failed(object))
    return failure();
  plan.code.assign(object->begin(), object->end());
  return success();
}

} // namespace meshwork::target
