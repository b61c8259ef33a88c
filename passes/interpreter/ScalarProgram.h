// The body of a map, made ready to run once per element. Private to this
// folder.
#pragma once

#include "passes/interpreter/Evaluate.h"

#include <functional>

namespace meshwork::interpreter {

/// Computes one op's result for the element at `index` of the iteration space.
using ScalarRule = std::function<double(mlir::ArrayRef<double> operands,
                                        mlir::ArrayRef<int64_t> index)>;

/// The rule of an op in the body of a map over `space`; empty when there is
/// none.
ScalarRule ruleOf(mlir::Operation *op, mlir::RankedTensorType space);

/// A body as a list of steps over numbered slots. Integers are held as doubles
/// and wrap at 32 bits; truth values are 0 and 1.
class ScalarProgram {
public:
  /// Fails with a diagnostic at an op that no rule covers.
  static mlir::FailureOr<ScalarProgram> compile(transformer::MapOp map);

  /// The yielded values for the element at `index` of the iteration space.
  mlir::SmallVector<double> run(mlir::ArrayRef<double> arguments,
                                mlir::ArrayRef<int64_t> index) const;

private:
  struct Step {
    ScalarRule rule;
    mlir::SmallVector<unsigned> operands;
    unsigned result;
  };

  unsigned numSlots = 0;
  std::vector<Step> steps;
  mlir::SmallVector<unsigned> yielded;
};

} // namespace meshwork::interpreter
