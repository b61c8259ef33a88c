// A schedule.program as the tables of the plan: the one place where the
// dialect becomes a plan, for those who write it and for those who ask it.
//
//   PackedProgram tables(program);
//   plan::Lives lives = runtime::livesOf(*tables, runtime::tableOf(*tables));
#pragma once

#include "dialects/schedule/Schedule.h"
#include "llvm/ADT/StringMap.h"
#include <map>

namespace meshwork::schedule {

/// Where kernels stand in Plan.kernels.
struct KernelNumbers {
  llvm::StringMap<uint32_t> ofLaunch; // by its kernel's function
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<uint32_t>>
      ofInstruction; // Instruction.kernels
};

/// Converts one program, whatever phase it is in: what it has not yet (offsets,
/// an arena, kernels without a number, actions) is 0 or absent. Lists, buffers,
/// instructions and actions have the numbers of their ops, in order. `kernels`
/// and `axes` number what instructions name.
class ProgramTables {
public:
  ProgramTables(ProgramOp program, const KernelNumbers &kernels,
                const llvm::StringMap<uint32_t> &axes)
      : program(program), kernels(kernels), axes(axes),
        table(std::make_unique<plan::ProgramT>()) {}

  std::unique_ptr<plan::ProgramT> build();
  /// And views of what waits wait for, which are no part of a wait's table.
  std::unique_ptr<plan::ProgramT> buildWithWaits();
  /// Buffers, and the views of instructions, without what these do.
  std::unique_ptr<plan::ProgramT> buildViews();
  /// The number of a view, `noView` of none, and of mesh axes. After `build`
  /// of views that the program has.
  uint32_t view(mlir::Value value);
  uint32_t numberOf(mlir::StringRef axis);
  /// What an instruction does, and what its views say, without a program.
  plan::OperationUnion operation(mlir::Operation *op);
  std::unique_ptr<plan::InputT> input(InputOp op);
  std::unique_ptr<plan::ResultT> result(ResultOp op);
  /// Sets a field to a number, and notes one that it cannot hold.
  template <typename To, typename From> void setNumber(To &field, From value) {
    field = static_cast<To>(value);
    isExact &= static_cast<From>(field) == value;
  }
  bool holdsNumbers() const { return isExact; }
  const plan::ProgramT &tables() const { return *table; }
  /// Quoted.
  std::string nameOfBuffer(uint32_t number) const;
  std::vector<uint32_t> numbersOf(mlir::ArrayAttr names);

private:
  void addAll();
  void addBuffers();
  uint32_t addView(ViewOp op);
  uint32_t addSaid(ViewOp op);
  void addSplit(mesh::DimShardingAttr split, std::vector<uint32_t> &to,
                std::vector<plan::Layout> &layouts);
  std::unique_ptr<plan::StateT> stateOf(StateAttr state, mlir::Value view);
  std::unique_ptr<plan::ShardedT> sharded(mlir::Value value,
                                          mlir::Attribute sharding);
  std::unique_ptr<plan::InstructionT> instruction(InstructionOpInterface op);
  void addList(ListOp list);
  void findLoss();
  void addDeclaration(mlir::Operation *op);

  ProgramOp program;
  const KernelNumbers &kernels;
  const llvm::StringMap<uint32_t> &axes;
  std::unique_ptr<plan::ProgramT> table;
  llvm::DenseMap<mlir::Value, uint32_t> buffers;
  llvm::DenseMap<mlir::Value, uint32_t> numbers; // of views
  /// Found first: most views are equal to an earlier one in all attributes.
  /// Others say the same in another type, as without a layout.
  using SaidOfView =
      std::tuple<mlir::Value, mlir::Type, mlir::Attribute, mlir::Attribute,
                 mlir::Attribute, mlir::Attribute>;
  llvm::DenseMap<SaidOfView, uint32_t> said;
  std::map<std::vector<int64_t>, uint32_t> views; // by what they say
  bool isExact = true;
};

/// The axes of the mesh that `op` is in, by name.
llvm::StringMap<uint32_t> axisNumbers(mlir::Operation *op);

/// The mesh that `op` is in, as a plan has it; empty without one.
std::vector<std::unique_ptr<plan::AxisT>> meshTable(mlir::Operation *op);

/// A program as lib/Plan reads it, in a plan with its mesh and nothing else.
class PackedProgram {
public:
  enum class Part { all, views };
  /// Of `views`: as buildViews() has them, in half the time.
  explicit PackedProgram(ProgramOp program, Part part = Part::all);
  const plan::Plan &plan() const { return *plan::GetPlan(bytes.data()); }
  const plan::Program &operator*() const { return *plan().programs()->Get(0); }
  /// Of a view that an instruction of the program has, as it was packed.
  uint32_t numberOf(mlir::Value view) { return tables.view(view); }

private:
  KernelNumbers noKernels;
  llvm::StringMap<uint32_t> axes;
  ProgramTables tables;
  flatbuffers::DetachedBuffer bytes;
};

} // namespace meshwork::schedule
