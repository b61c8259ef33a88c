// Attention `shared ring`: each rank's queries stay, and the keys of one rank
// after the other visit them. After t hops rank r has those of rank r - t; the
// partial results are merged by their log-sum-exp.
//
//   %o1, %l1 = transformer.attention %q, %k, %v ... keys(%own)
//   %k1 = mesh.permute %k sources [1, 0] over ["cp"]
//   %o2, %l2 = transformer.attention %q, %k1, %v1 ... keys(%hop1)
//   %lse = log(exp(%l1) + exp(%l2))
//   %o = %o1 exp(%l1 - %lse) + %o2 exp(%l2 - %lse)
//
// Backward, a rank's own keys come last: the gradients of the others' travel on
// with their keys, are added to in each hop, and come home with the last one.
#pragma once

#include "dialects/transformer/Transformer.h"
#include "passes/sharding/Shardings.h"

namespace meshwork::partition {

/// Builds the hops of `op`, attention or its gradient, of local types by now,
/// whose positions are there. Ranks along `axes` share a sequence of `size`.
/// Returns what stands for its results; erases nothing.
::llvm::SmallVector<::mlir::Value>
expandRing(transformer::AttentionOpInterface op, mesh::MeshAttr attr,
           const sharding::Mesh &mesh, const sharding::Axes &axes,
           int64_t size);

} // namespace meshwork::partition
