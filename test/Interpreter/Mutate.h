// Single mistakes in a partitioned program: what a wrong compiler could have
// made of one communicating op.
#pragma once

#include "mlir/IR/Operation.h"

#include <functional>
#include <string>
#include <vector>

namespace meshwork::interpreter {

struct Mutation {
  std::string name; // "all_reduce: dropped"
  /// Changes the op that it was made for, or the same op of a copy.
  std::function<void(mlir::Operation *)> apply;
};

/// All mutations of a collective, of a `mesh.coordinate`, or of a split head;
/// none of other ops. Left out are those that change nothing by definition:
/// axes of one rank, and the order in which ranks add to a sum.
std::vector<Mutation> mutationsOf(mlir::Operation *op);

} // namespace meshwork::interpreter
