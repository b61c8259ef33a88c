// Instructions that run several times.
#include "dialects/schedule/OpTables.h"

using namespace mlir;

namespace meshwork::schedule {

uint64_t RepeatOp::getInstructions() {
  uint64_t count = 0;
  getBody().walk([&](InstructionOpInterface) { ++count; });
  return count;
}

SmallVector<Operation *> instructionsOf(ListOp list) {
  SmallVector<Operation *> all;
  list.getBody().walk<WalkOrder::PreOrder>(
      [&](InstructionOpInterface op) { all.push_back(op); });
  return all;
}

SmallVector<RepeatOp> repeatsAround(Operation *op) {
  SmallVector<RepeatOp> around;
  for (auto repeat = op->getParentOfType<RepeatOp>(); repeat;
       repeat = repeat->getParentOfType<RepeatOp>())
    around.insert(around.begin(), repeat);
  return around;
}

/// That an instruction does the same in each turn. What makes the loss is no
/// part of its table.
static LogicalResult verifyInRepeat(RepeatOp repeat, Operation *op) {
  auto collective = dyn_cast<CollectiveOp>(op);
  if (collective && collective.getMakesLoss())
    return repeat.emitOpError() << "(C3) holds what makes the loss";
  bool areCounted = repeat.getCount() &&
                    llvm::all_of(repeatsAround(repeat), [](RepeatOp around) {
                      return around.getCount() != nullptr;
                    });
  absl::Status found =
      plan::checkInRepeat(OpTables(op).packInstruction(), areCounted);
  if (found.ok())
    return success();
  return repeat.emitOpError()
         << "(C3) " << op->getName() << " " << std::string(found.message());
}

LogicalResult RepeatOp::verify() {
  return getCount() ? verifyOperands(*this) : success();
}

LogicalResult RepeatOp::verifyRegions() {
  auto times = static_cast<int64_t>(getTimes());
  if (times < 1 || times > UINT32_MAX || getInstructions() == 0)
    return emitOpError() << "(C1) runs " << getInstructions()
                         << " instructions " << times
                         << " times, expected one or more of each";
  auto list = (*this)->getParentOfType<ListOp>();
  if (!list || repeatsAround(*this).size() + 1 > plan::maxRepeats ||
      !plan::isOfMicrobatch(static_cast<plan::ListKind>(list.getKind())))
    return emitOpError() << "(C2) expected it in a list that runs for each "
                            "microbatch, in at most "
                         << plan::maxRepeats - 1 << " others";
  for (Operation &op : getBody().front())
    if (isInstruction(&op) && failed(verifyInRepeat(*this, &op)))
      return failure();
  return success();
}

} // namespace meshwork::schedule
