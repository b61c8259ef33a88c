#include "passes/schedule/Costs.h"

#include "mlir/IR/BuiltinAttributes.h"

using namespace mlir;

namespace meshwork::schedule {
namespace {

/// Kernels compute in f32 whatever they
/// store.
cost::Work workOf(Operation *instruction) {
  bool isProduct = isa<MatmulOp>(instruction);
  if (!isProduct && !isa<AttentionOp, AttentionGradOp>(instruction))
    return {};
  auto type = cast<MemRefType>(instruction->getOperand(0).getType());
  unsigned bits = type.getElementTypeBitWidth();
  return {isProduct ? cost::Work::product : cost::Work::attention,
          bits == 8    ? cost::Arithmetic::fp8
          : bits == 16 ? cost::Arithmetic::bf16
                       : cost::Arithmetic::f32};
}

std::vector<uint64_t> sizesOf(mesh::MeshAttr mesh) {
  return {mesh.getSizes().begin(), mesh.getSizes().end()};
}
} // namespace

Costs::Costs(const cost::Machine &machine, mesh::MeshAttr mesh)
    : times(machine, sizesOf(mesh)) {
  for (auto [i, name] : llvm::enumerate(mesh.getNames()))
    axes[name.getValue()] = static_cast<uint32_t>(i);
}

SmallVector<uint32_t> Costs::axesOf(CollectiveOp op) const {
  return llvm::map_to_vector(op.getAxes(), [this](Attribute axis) {
    return axes.lookup(cast<StringAttr>(axis).getValue());
  });
}

bool Costs::takesCores(CollectiveOp op) const {
  return times.takesCores(axesOf(op));
}

double Costs::seconds(Operation *instruction) const {
  if (auto repeat = dyn_cast<RepeatOp>(instruction)) {
    double once = 0;
    for (Operation &op : repeat.getBody().front())
      once += isInstruction(&op) ? seconds(&op) : 0;
    return once * static_cast<double>(repeat.getTimes());
  }
  auto op = cast<InstructionOpInterface>(instruction);
  auto bytes = static_cast<double>(op.getBytes()),
       flops = static_cast<double>(op.getFlops());
  if (auto collective = dyn_cast<CollectiveOp>(instruction))
    return times.collective(
        static_cast<plan::CollectiveKind>(collective.getKind()), bytes,
        axesOf(collective));
  return times.instruction(workOf(instruction), flops, bytes);
}

double Costs::stepSeconds(ProgramOp program) const {
  Order order = orderOf(program);
  double sum = 0;
  for (auto [i, list] : llvm::enumerate(listsOf(program))) {
    int64_t runs = llvm::count_if(order.actions, [&](const plan::Action &one) {
      return one.list() == i;
    });
    for (Operation &op : list.getBody().front())
      if (runs > 0 && isInstruction(&op))
        sum += static_cast<double>(runs) * seconds(&op);
  }
  return sum;
}

} // namespace meshwork::schedule
