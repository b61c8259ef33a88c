// An einsum as a matrix product of 3-D views.
#pragma once

#include "passes/schedule/Placement.h"

namespace meshwork::schedule {

/// [batch, rows, sum] x [batch, sum, columns] -> [batch, rows, columns].
struct MatmulPlaces {
  Place lhs, rhs, dst;
};

/// Fails, with an error at `op`, when its tensors do not lie so.
::mlir::FailureOr<MatmulPlaces> matmulPlaces(transformer::ContractOp op,
                                             const Place &lhs, const Place &rhs,
                                             const Place &dst);

/// Whether the last dim of `value`, an operand or the result, is a loop of its
/// own there, so that its rows may lie apart.
bool hasRowsOfItsOwn(transformer::ContractOp op, ::mlir::Value value);

} // namespace meshwork::schedule
