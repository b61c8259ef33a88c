#include "passes/schedule/Costs.h"

#include "lib/Cost/ListClock.h"
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
  if (isa<WaitOp>(instruction))
    return 0;
  auto op = cast<InstructionOpInterface>(instruction);
  auto bytes = static_cast<double>(op.getBytes()),
       flops = static_cast<double>(op.getFlops());
  if (auto collective = dyn_cast<CollectiveOp>(instruction))
    return times.collective(
        static_cast<plan::CollectiveKind>(collective.getKind()), bytes,
        axesOf(collective));
  if (isa<SendOp, ReceiveOp>(instruction))
    return times.transfer(
        bytes,
        axes.lookup(
            instruction->getAttrOfType<StringAttr>("axis_name").getValue()));
  return times.instruction(workOf(instruction), flops, bytes);
}

double Costs::runSeconds(ListOp list, bool isLast) const {
  cost::ListClock clock;
  for (Operation &op : list.getBody().front()) {
    if (!isInstruction(&op))
      continue;
    auto collective = dyn_cast<CollectiveOp>(op);
    if (auto wait = dyn_cast<WaitOp>(op))
      clock.wait(wait.getChannel(), wait.getCount());
    else if (!collective)
      clock.compute(seconds(&op));
    else if (isLast || !collective.getLastOnly())
      clock.collective(seconds(&op), collective.getChannel(),
                       takesCores(collective));
  }
  return clock.now();
}

std::vector<double> Costs::listSeconds(ProgramOp program) const {
  std::vector<double> all;
  std::vector<plan::Action> actions = orderOf(program).actions;
  for (auto [i, list] : llvm::enumerate(listsOf(program))) {
    auto runs = llvm::count_if(
        actions, [&](const plan::Action &one) { return one.list() == i; });
    double sum = runs == 0 ? 0
                           : cost::secondsOfRuns(runs, runSeconds(list, false),
                                                 runSeconds(list, true));
    all.push_back(runs == 0 ? 0 : sum / static_cast<double>(runs));
  }
  return all;
}

} // namespace meshwork::schedule
