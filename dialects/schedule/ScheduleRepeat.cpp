// Instructions that run several times.
#include "dialects/schedule/Schedule.h"

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

std::vector<plan::RepeatShape> repeatsOf(ListOp list) {
  std::vector<plan::RepeatShape> repeats;
  for (auto [i, op] : llvm::enumerate(instructionsOf(list)))
    if (auto repeat = dyn_cast<RepeatOp>(op)) {
      auto begin = static_cast<uint32_t>(i) + 1;
      repeats.push_back(
          {begin, begin + static_cast<uint32_t>(repeat.getInstructions()),
           static_cast<uint32_t>(repeat.getTimes())});
    }
  return repeats;
}

SmallVector<RepeatOp> repeatsAround(Operation *op) {
  SmallVector<RepeatOp> around;
  for (auto repeat = op->getParentOfType<RepeatOp>(); repeat;
       repeat = repeat->getParentOfType<RepeatOp>())
    around.insert(around.begin(), repeat);
  return around;
}

/// Why an instruction would not do the same in each turn; null where it does.
static const char *differenceIn(Operation *op) {
  if (isa<WaitOp>(op))
    return "waits";
  if (addsUpIn(op))
    return "sets its result in the first microbatch only";
  auto collective = dyn_cast<CollectiveOp>(op);
  if (!collective)
    return nullptr;
  if (collective.getChannel() != 0)
    return "has a channel";
  if (collective.getLastOnly())
    return "is for the last microbatch only";
  return collective.getMakesLoss() ? "makes the loss" : nullptr;
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
    if (const char *difference =
            isInstruction(&op) ? differenceIn(&op) : nullptr)
      return emitOpError() << "(C3) holds a " << op.getName() << " that "
                           << difference << ", expected the same in each turn";
  return success();
}

} // namespace meshwork::schedule
