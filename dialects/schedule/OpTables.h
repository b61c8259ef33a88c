// One op as tables of the plan, for its verifier: no program is around it.
//
//   OpTables op(*this);
//   const auto &input = op.pack<plan::Input>(*op.tables().input(*this));
//   return op.verified(plan::checkInput(input, op.views()->front()));
#pragma once

#include "dialects/schedule/ProgramTables.h"
#include "lib/Plan/CheckOperands.h"

namespace meshwork::schedule {

class OpTables {
public:
  explicit OpTables(mlir::Operation *op)
      : op(op), made(ProgramOp(), noKernels, noAxes) {}

  ProgramTables &tables() { return made; }
  /// A table as lib/Plan reads it, until the next one.
  template <typename Table>
  const Table &pack(const typename Table::NativeTableType &table) {
    builder.Clear();
    builder.Finish(Table::Pack(builder, &table));
    return *flatbuffers::GetRoot<Table>(builder.GetBufferPointer());
  }
  /// An instruction with nothing but its operation.
  const plan::Instruction &packInstruction();
  /// The views of what was made so far. Where they lie on other ranks is no
  /// question of one op.
  absl::StatusOr<std::vector<plan::ViewInfo>> views() const;
  /// Reports what lib/Plan found, with the rule that it breaks, or a number
  /// that no plan holds.
  mlir::LogicalResult verified(const absl::Status &found) const;

private:
  mlir::Operation *op;
  KernelNumbers noKernels;
  llvm::StringMap<uint32_t> noAxes;
  ProgramTables made;
  flatbuffers::FlatBufferBuilder builder{256};
};

} // namespace meshwork::schedule
