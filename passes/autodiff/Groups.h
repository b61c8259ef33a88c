// Which parameters an optimizer treats in a way of their own.
//
//   FailureOr<Groups> groups = Groups::of(parameters, spec.optimizer.groups);
//   const spec::OptimizerGroup *group = groups->groupOf(parameter);
#pragma once

#include "dialects/transformer/Transformer.h"
#include "lib/Spec/Spec.h"
#include "llvm/ADT/DenseMap.h"

namespace meshwork::autodiff {

class Groups {
public:
  /// Of several groups that match a parameter the first counts. An error of the
  /// spec where a glob is none, matches no parameter, or some of the tensors in
  /// files that one parameter is.
  static mlir::FailureOr<Groups>
  of(llvm::ArrayRef<transformer::ParameterOp> parameters,
     llvm::ArrayRef<spec::OptimizerGroup> groups);

  /// Null: none.
  const spec::OptimizerGroup *
  groupOf(transformer::ParameterOp parameter) const {
    return found.lookup(parameter);
  }

private:
  llvm::DenseMap<mlir::Operation *, const spec::OptimizerGroup *> found;
};

} // namespace meshwork::autodiff
