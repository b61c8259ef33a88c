// Runs an instruction of a plan on a rank's memory; what it does is said in
// passes/interpreter. Collectives, transfers and waits are not here: they need
// other ranks (Machine.h).
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/verify/RankState.h"

namespace meshwork::verify {

/// The functions of launched kernels, by the plan's number.
using KernelFunctions = std::vector<mlir::func::FuncOp>;

/// Runs `instruction` on views where `rank` has them now. `sets`: it is the
/// first of the step to add to its destination (plan::Accumulate).
absl::Status runInstruction(const plan::Instruction &instruction, bool sets,
                            const KernelFunctions &kernels, RankState &rank);

} // namespace meshwork::verify
