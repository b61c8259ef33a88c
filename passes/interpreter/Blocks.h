// Blocks of tensors along one dim, as collectives move them. Used by this
// folder and by passes/verify.
#pragma once

#include "meshwork/Plan/Plan.h"
#include "passes/interpreter/Tensor.h"

namespace meshwork::interpreter {

/// `size` elements of `whole` along `dim` from `begin` on; zeros beyond its
/// end.
Tensor blockOf(const Tensor &whole, int64_t dim, int64_t begin, int64_t size);

/// Parts of one shape, one behind the other along `dim`, cut to `size`; zeros
/// behind the last one.
Tensor joined(mlir::ArrayRef<Tensor> parts, int64_t dim, int64_t size);

/// Parts of one shape, element by element, from the first part to the last.
Tensor combined(mlir::ArrayRef<Tensor> parts, plan::Reduction reduction);

} // namespace meshwork::interpreter
