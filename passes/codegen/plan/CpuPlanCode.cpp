#include "passes/codegen/machine/CpuObject.h"
#include "passes/codegen/plan/PlanCode.h"

using namespace mlir;
namespace meshwork::codegen {

namespace {
LogicalResult addObject(ModuleOp module, const CpuTarget &target,
                        plan::PlanT &plan) {
  codegen::loadKernelDialects(*module.getContext());
  OwningOpRef<ModuleOp> code(ModuleOp::create(module.getLoc()));
  if (failed(
          codegen::emitKernels(codegen::kernelSpecsOf(module), *code, target)))
    return failure();
  FailureOr<std::vector<char>> object = compileToSharedObject(*code, target);
  if (failed(object))
    return failure();
  plan.code.assign(object->begin(), object->end());
  plan.cpu_features = target.requiredFeatures;
  return success();
}
} // namespace

std::unique_ptr<plan::KernelT> entryOf(const codegen::LaunchSpec &launch,
                                       const codegen::KernelSpecs &specs) {
  auto entry = std::make_unique<plan::KernelT>();
  entry->symbol = launch.symbol;
  entry->num_args = launch.numArgs;
  entry->items = codegen::countItems(launch, specs);
  auto bytes = codegen::argBytesOf(launch, specs);
  entry->arg_bytes.assign(bytes.begin(), bytes.end());
  return entry;
}

void addCpuEntries(ModuleOp module, plan::PlanT &plan, KernelNumbers &numbers) {
  codegen::KernelSpecs specs = codegen::kernelSpecsOf(module);
  for (const codegen::LaunchSpec &launch : specs.launches) {
    numbers.ofLaunch[launch.symbol] = plan.kernels.size();
    plan.kernels.push_back(entryOf(launch, specs));
  }
}

LogicalResult addCpuCode(ModuleOp module, const CpuTarget &target,
                         plan::PlanT &plan, KernelNumbers &numbers) {
  addCpuEntries(module, plan, numbers);
  return addObject(module, target, plan);
}

LogicalResult addComparableCpuCode(ModuleOp module, const CpuTarget &target,
                                   plan::PlanT &plan,
                                   const KernelNumbers &numbers) {
  for (const codegen::LaunchSpec &launch :
       codegen::kernelSpecsOf(module).launches)
    plan.kernels[numbers.ofLaunch.at(launch.symbol)]->cpu_symbol =
        launch.symbol;
  return addObject(module, target, plan);
}

} // namespace meshwork::codegen
