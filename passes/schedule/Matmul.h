// An einsum as a matrix product of 3-D views.
#pragma once

#include "passes/schedule/Placement.h"

namespace meshwork::schedule {

/// [batch, rows, sum] x [batch, sum, columns] -> [batch, rows, columns].
struct MatmulPlaces {
  Place lhs, rhs, dst;
};

/// A contract or a product, as they are lowered.
struct ProductParts {
  ::mlir::Operation *op;
  ::llvm::StringRef equation;
  ::mlir::Value lhs, rhs, bias, result;
  ::mlir::ValueRange scales;
  uint64_t flops;
  Epilogue epilogue = Epilogue::none;
  ::mlir::Value aux = {}; // of the epilogue: read by gelu_grad, else written
};
/// None of any other op.
std::optional<ProductParts> productOf(::mlir::Operation *op);

/// Fails, with an error at the op, when its tensors do not lie so.
::mlir::FailureOr<MatmulPlaces> matmulPlaces(const ProductParts &product,
                                             const Place &lhs, const Place &rhs,
                                             const Place &dst);

/// Whether the last dim of `value`, an operand or a result, is a loop of its
/// own there, so that its rows may lie apart.
bool hasRowsOfItsOwn(const ProductParts &product, ::mlir::Value value);

} // namespace meshwork::schedule
