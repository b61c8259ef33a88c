#include "dialects/transformer/StepFunctions.h"

using namespace mlir;

namespace meshwork::transformer {

static constexpr StepFunction all[] = {
    StepFunction::loss, StepFunction::microbatch, StepFunction::update};

StringRef symbolOf(StepFunction which) {
  switch (which) {
  case StepFunction::loss:
    return "loss";
  case StepFunction::microbatch:
    return "microbatch";
  case StepFunction::update:
    return "update";
  }
  llvm_unreachable("all functions are handled");
}

func::FuncOp functionOf(ModuleOp module, StepFunction which) {
  return module.lookupSymbol<func::FuncOp>(symbolOf(which));
}

func::FuncOp microbatchOf(ModuleOp module) {
  func::FuncOp found = functionOf(module, StepFunction::microbatch);
  if (!found)
    module.emitError()
        << "expected a function @microbatch; run -transformer-autodiff first";
  return found;
}

std::optional<StepFunction> roleOf(Operation *op) {
  auto function = dyn_cast<func::FuncOp>(op);
  if (!function)
    function = op->getParentOfType<func::FuncOp>();
  for (StepFunction which : all)
    if (function && function.getName() == symbolOf(which))
      return which;
  return std::nullopt;
}

} // namespace meshwork::transformer
