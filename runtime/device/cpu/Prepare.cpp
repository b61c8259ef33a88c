#include "runtime/device/cpu/Prepare.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "lib/Plan/Operation.h"
#include "runtime/device/cpu/Operation.h"

namespace meshwork::runtime {
namespace {

using namespace cpu;

OperationOr make(const plan::Instruction &instruction,
                 const ProgramOnRank &program) {
  return plan::visitOperation<OperationOr>(
      instruction, [&](const auto &op) { return cpu::make(op, program); });
}

absl::Status locate(const absl::Status &status,
                    const plan::Instruction &instruction) {
  if (status.ok())
    return status;
  const char *name = instruction.name() ? instruction.name()->c_str() : "";
  return absl::Status(
      status.code(),
      absl::StrCat("instruction \"", name, "\" (",
                   plan::EnumNameOperation(instruction.op_type()),
                   "): ", status.message()));
}

absl::Status growWorkspace(
    const flatbuffers::Vector<flatbuffers::Offset<plan::Instruction>> *list,
    const ProgramOnRank &program, uint64_t &bytes) {
  if (!list)
    return absl::OkStatus();
  for (const plan::Instruction *instruction : *list) {
    if (instruction->op_type() == plan::Operation::Collective ||
        instruction->op_type() == plan::Operation::Wait ||
        instruction->op_type() == plan::Operation::Repeat ||
        instruction->op_type() == plan::Operation::Send ||
        instruction->op_type() == plan::Operation::Receive ||
        instruction->op_type() == plan::Operation::Launch)
      continue; // None has scratch beside the arena.
    OperationOr op = make(*instruction, program);
    if (!op.ok())
      return locate(op.status(), *instruction);
    bytes = std::max(bytes, alignUp((*op)->workspaceBytes()));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Executable>>
makeBound(const plan::Instruction &instruction, const PrepareContext &context) {
  std::unique_ptr<cpu::Operation> op;
  MESHWORK_ASSIGN_OR_RETURN(
      op, make(instruction, {context.program, context.shifts}));
  if (op->workspaceBytes() > context.workspaceBytesPerThread)
    return absl::ResourceExhaustedError(absl::StrCat(
        "needs ", op->workspaceBytes(),
        " bytes of workspace per thread on "
        "this machine, the plan has ",
        context.workspaceBytesPerThread, "; compile the plan on this machine"));
  MESHWORK_RETURN_IF_ERROR(op->bind(context));
  return op;
}

} // namespace

// Ranks do these together, not a device alone.
OperationOr cpu::make(const plan::Collective &, const ProgramOnRank &) {
  return absl::UnimplementedError("the CPU device does not run this kind");
}
OperationOr cpu::make(const plan::Wait &, const ProgramOnRank &) {
  return absl::UnimplementedError("the CPU device does not run this kind");
}
OperationOr cpu::make(const plan::Send &, const ProgramOnRank &) {
  return absl::UnimplementedError("the CPU device does not run this kind");
}
OperationOr cpu::make(const plan::Receive &, const ProgramOnRank &) {
  return absl::UnimplementedError("the CPU device does not run this kind");
}
OperationOr cpu::make(const plan::Repeat &, const ProgramOnRank &) {
  return absl::UnimplementedError("what it repeats runs, not it");
}

absl::StatusOr<std::unique_ptr<Executable>>
prepare(const plan::Instruction &instruction, const PrepareContext &context) {
  absl::StatusOr<std::unique_ptr<Executable>> op =
      makeBound(instruction, context);
  if (!op.ok())
    return locate(op.status(), instruction);
  return op;
}

absl::StatusOr<uint64_t> workspaceBytesPerThread(const plan::Program &program) {
  uint64_t bytes = 0;
  if (program.lists())
    for (const plan::List *list : *program.lists())
      MESHWORK_RETURN_IF_ERROR(
          growWorkspace(list->instructions(), {program, {}}, bytes));
  return bytes;
}

} // namespace meshwork::runtime
