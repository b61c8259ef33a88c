// An einsum as a matrix product of 3-D views.
#pragma once

#include "passes/schedule/Layout.h"

namespace meshwork::schedule {

/// [batch, rows, sum] x [batch, sum, columns] -> [batch, rows, columns].
struct MatmulLayouts {
  Layout lhs, rhs, dst;
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

/// Fails where the equation is none.
::mlir::FailureOr<MatmulLayouts> matmulLayouts(const ProductParts &product);
/// Where the rows of `lhs` or `dst` are no single loop: the same product with
/// the outer ones in its batch, and one `rhs` for all of it. Else `layouts`.
MatmulLayouts withRowsInBatch(const MatmulLayouts &layouts, const Place &lhs,
                              const Place &dst);
/// The loops of one of these with the strides that libraries take: those of
/// loops of one iteration are free.
Place matrices(Place loops);

/// Whether the last dim of `value`, an operand or a result, is a loop of its
/// own there, so that its rows may lie apart.
bool hasRowsOfItsOwn(const ProductParts &product, ::mlir::Value value);

} // namespace meshwork::schedule
