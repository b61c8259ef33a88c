#include "passes/interpreter/ScalarProgram.h"

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::interpreter {

FailureOr<ScalarProgram> ScalarProgram::compile(MapOp map) {
  ScalarProgram program;
  DenseMap<Value, unsigned> slots;
  auto newSlot = [&](Value value) { return slots[value] = program.numSlots++; };
  auto slotsOf = [&](ValueRange values) {
    return llvm::map_to_vector(values,
                               [&](Value value) { return slots.at(value); });
  };
  Block &body = map.getBody().front();
  for (BlockArgument argument : body.getArguments())
    newSlot(argument);
  auto space = tensorType(map.getResult(0));
  for (Operation &op : body.without_terminator()) {
    ScalarRule rule =
        op.getNumResults() == 1 ? ruleOf(&op, space) : ScalarRule();
    if (!rule)
      return op.emitOpError("cannot be evaluated in a map body over ") << space;
    SmallVector<unsigned> operands = slotsOf(op.getOperands());
    program.steps.push_back({rule, operands, newSlot(op.getResult(0))});
  }
  program.yielded = slotsOf(body.getTerminator()->getOperands());
  return program;
}

SmallVector<double> ScalarProgram::run(ArrayRef<double> arguments,
                                       ArrayRef<int64_t> index) const {
  SmallVector<double, 64> slots(numSlots); // no allocation for each element
  std::copy(arguments.begin(), arguments.end(), slots.begin());
  SmallVector<double> operands;
  for (const Step &step : steps) {
    operands.clear();
    for (unsigned slot : step.operands)
      operands.push_back(slots[slot]);
    slots[step.result] = step.rule(operands, index);
  }
  return llvm::map_to_vector(yielded,
                             [&](unsigned slot) { return slots[slot]; });
}

} // namespace meshwork::interpreter
