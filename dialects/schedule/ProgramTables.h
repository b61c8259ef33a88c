// A schedule.program as the tables of the plan.
#pragma once

#include "dialects/schedule/Schedule.h"
#include "passes/codegen/plan/PlanCode.h"

namespace meshwork::target {

/// Converts one program. `kernels` and `axes` number what instructions name.
class ProgramTables {
public:
  ProgramTables(schedule::ProgramOp program, const KernelNumbers &kernels,
                const llvm::StringMap<uint32_t> &axes)
      : program(program), kernels(kernels), axes(axes) {}

  std::unique_ptr<plan::ProgramT> build();
  /// The number of a view, `noView` of none, and of mesh axes. After `build`
  /// of views that the program has.
  uint32_t view(mlir::Value value);
  uint32_t numberOf(mlir::StringRef axis);
  std::vector<uint32_t> numbersOf(mlir::ArrayAttr names);

private:
  void addBuffers();
  void addSplit(mesh::DimShardingAttr split, std::vector<uint32_t> &to,
                std::vector<plan::Layout> &layouts) const;
  std::unique_ptr<plan::StateT> stateOf(schedule::StateAttr state,
                                        mlir::Value view);
  std::unique_ptr<plan::ShardedT> sharded(mlir::Value value,
                                          mlir::Attribute sharding);
  std::unique_ptr<plan::InstructionT>
  instruction(schedule::InstructionOpInterface op);
  plan::OperationUnion operation(mlir::Operation *op);
  void addList(schedule::ListOp list);
  void findLoss();
  void addDeclaration(mlir::Operation *op);

  schedule::ProgramOp program;
  const KernelNumbers &kernels;
  const llvm::StringMap<uint32_t> &axes;
  std::unique_ptr<plan::ProgramT> table;
  llvm::DenseMap<mlir::Value, uint32_t> buffers;
  std::map<std::vector<int64_t>, uint32_t> views; // by what they say
};

} // namespace meshwork::target
