#include "passes/schedule/Costs.h"

#include "lib/Cost/OfPlan.h"
#include "lib/Plan/ProgramLives.h"

using namespace mlir;

namespace meshwork::schedule {

Costs::Costs(const cost::Times &times, ProgramOp program,
             const plan::Program &tables)
    : times(times) {
  for (auto [number, list] : llvm::enumerate(listsOf(program))) {
    const plan::Instructions &all = plan::listOf(tables, number);
    for (auto [i, op] : llvm::enumerate(instructionsOf(list))) {
      const plan::Instruction &instruction = *all.Get(i);
      ofRun[op] = cost::secondsOfRun(times, tables, instruction);
      bool moves = instruction.op_as_Collective() || instruction.op_as_Copy();
      if (moves && cost::takesCores(times, instruction))
        onCores.insert(op);
    }
  }
}

double Costs::seconds(Operation *instruction) const {
  auto repeat = dyn_cast<RepeatOp>(instruction);
  if (!repeat)
    return ofRun.lookup(instruction);
  if (repeat.getCount())
    return 0; // As lib/Cost does: its turns are not the usual ones.
  double once = 0;
  for (Operation &op : repeat.getBody().front())
    once += isInstruction(&op) ? seconds(&op) : 0;
  return once * static_cast<double>(repeat.getTimes());
}

} // namespace meshwork::schedule
