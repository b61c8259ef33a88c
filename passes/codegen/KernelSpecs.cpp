#include "passes/codegen/KernelSpecs.h"

#include <numeric>

#include "dialects/schedule/Schedule.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
namespace meshwork::codegen {
namespace {
/// Buffers begin at multiples of this (PlanArena.cpp).
constexpr int64_t bufferAlignment = 64;

void noteAlignment(Layout &layout, Value view) {
  layout.alignBytes = std::gcd(layout.alignBytes, alignmentOfView(view));
}

std::vector<KernelSpec> specsOfSchedule(ModuleOp module) {
  std::vector<KernelSpec> specs;
  llvm::StringMap<size_t> places;
  for (auto function : module.getOps<func::FuncOp>()) {
    auto strides = function->getAttrOfType<ArrayAttr>("schedule.strides");
    auto fused = llvm::to_vector(function.getOps<transformer::FusedOp>());
    if (!strides || fused.size() != 1)
      continue;
    KernelSpec spec{fused[0], {}, {}, function.getName().str()};
    for (auto [i, attr] : llvm::enumerate(strides)) {
      Layout layout{
          SmallVector<int64_t>(cast<DenseI64ArrayAttr>(attr).asArrayRef()),
          bufferAlignment};
      (i < fused[0].getInputs().size() ? spec.inputs : spec.results)
          .push_back(layout);
    }
    places[spec.symbol] = specs.size();
    specs.push_back(std::move(spec));
  }
  module.walk([&](schedule::LaunchOp launch) {
    auto place = places.find(launch.getKernel());
    if (place == places.end())
      return;
    KernelSpec &spec = specs[place->second];
    for (auto [i, view] : llvm::enumerate(launch.getArgs()))
      noteAlignment(i < spec.inputs.size()
                        ? spec.inputs[i]
                        : spec.results[i - spec.inputs.size()],
                    view);
  });
  return specs;
}
} // namespace

int64_t alignmentOfView(Value view) {
  auto op = view.getDefiningOp<schedule::ViewOp>();
  if (!op)
    return bufferAlignment;
  int64_t bytes = std::gcd<int64_t>(bufferAlignment, op.getOffset());
  if (auto shifts = op.getShifts())
    for (auto shift : shifts->getAsRange<schedule::ShiftAttr>())
      bytes = std::gcd<int64_t>(bytes, shift.getBytes());
  return bytes;
}

std::vector<KernelSpec> kernelSpecsOf(ModuleOp module) {
  std::vector<KernelSpec> specs = specsOfSchedule(module);
  if (specs.empty())
    module.walk([&](transformer::FusedOp op) {
      specs.push_back(
          contiguousSpec(op, "kernel_" + std::to_string(specs.size())));
    });
  return specs;
}

} // namespace meshwork::codegen
