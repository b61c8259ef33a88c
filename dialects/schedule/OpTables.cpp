#include "dialects/schedule/OpTables.h"

using namespace mlir;

namespace meshwork::schedule {

const plan::Instruction &OpTables::packInstruction() {
  plan::InstructionT instruction;
  instruction.op = made.operation(op);
  made.setNumber(instruction.channel,
                 cast<InstructionOpInterface>(op).startsOn());
  return pack<plan::Instruction>(instruction);
}

absl::StatusOr<std::vector<plan::ViewInfo>> OpTables::views() const {
  std::vector<plan::ViewInfo> views;
  for (const auto &view : made.tables().views) {
    absl::StatusOr<plan::ViewInfo> info = plan::viewAlone(*view);
    if (!info.ok())
      return info.status();
    views.push_back(*std::move(info));
  }
  return views;
}

LogicalResult OpTables::verified(const absl::Status &found) const {
  if (!found.ok())
    return op->emitOpError() << "(" << plan::ruleOf(found) << ") "
                             << std::string(found.message());
  return made.holdsNumbers()
             ? success()
             : op->emitOpError("has a number that a plan cannot hold");
}

LogicalResult verifyOperands(Operation *op) {
  OpTables alone(op);
  const plan::Instruction &instruction = alone.packInstruction();
  auto views = alone.views();
  if (!views.ok())
    return alone.verified(views.status());
  auto nameOf = [&](uint32_t buffer) {
    return alone.tables().nameOfBuffer(buffer);
  };
  return alone.verified(plan::checkOperands(instruction, {*views, nameOf}));
}

} // namespace meshwork::schedule
