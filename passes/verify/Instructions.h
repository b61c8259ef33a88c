// What an instruction of a plan does, by its definition in Plan.fbs, in double
// precision. Collectives, transfers and waits are not here: they need other
// ranks (Machine.h).
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/verify/RankState.h"
#include <optional>

namespace meshwork::verify {

/// The views of one instruction. The first mistake is kept; what is read after
/// it are zeros, and nothing more is written.
class Operands {
public:
  explicit Operands(RankState &rank) : rank(rank) {}

  interpreter::Tensor read(uint32_t view);
  /// Of a view that may be absent.
  std::optional<interpreter::Tensor> readIf(uint32_t view);
  void write(uint32_t view, const interpreter::Tensor &values);
  /// Sets it, or adds to what is there.
  void add(uint32_t view, interpreter::Tensor values, bool adds);
  /// In the view's shape.
  interpreter::Tensor zeros(uint32_t view) const;
  void fail(absl::Status why) { problem.Update(why); }
  const absl::Status &status() const { return problem; }

private:
  RankState &rank;
  absl::Status problem;
};

/// The functions of launched kernels, by the plan's number.
using KernelFunctions = std::vector<mlir::func::FuncOp>;

/// Runs `instruction` on views where `rank` has them now. `sets`: it is the
/// first of the step to add to its destination (plan::Accumulate).
absl::Status runInstruction(const plan::Instruction &instruction, bool sets,
                            const KernelFunctions &kernels, RankState &rank);

} // namespace meshwork::verify
