// A collective, and the products that it may travel beside in chunks.
//
//   if (std::optional<ChunkedPair> pair = pairOf(gather, mesh, /*count=*/4))
//     ... pair->products read what it brings
#pragma once

#include "dialects/mesh/Mesh.h"
#include "passes/partition/Chunks.h"

namespace meshwork::partition {

/// A collective, and the products that read what it brings or make what it
/// sums.
struct ChunkedPair {
  mesh::CollectiveOpInterface moves;
  ::llvm::SmallVector<transformer::ContractOp> products;
  Chunks chunks;
  /// Of the tensors that are cut or joined by copies; 0 where chunks are
  /// neighbours.
  uint64_t bytesCopied = 0;
  /// That hide the collective anyway: they need nothing of it, and stand
  /// between what it takes and what waits for it.
  ::llvm::SmallVector<transformer::ContractOp> beside = {};
};

/// Of an all_gather, a reduce_scatter or an all_reduce of tokens, in `count`
/// chunks at most. None: no product is beside it, or its rows cannot be cut.
std::optional<ChunkedPair> pairOf(mesh::CollectiveOpInterface op,
                                  mesh::MeshAttr mesh, int64_t count);

/// Whether `value` is made of products of these rows, by themselves or by maps
/// that nothing else reads.
bool isMade(::mlir::Value value, ::mlir::StringAttr dim);

bool hasDim(::mlir::Value value, ::mlir::StringAttr dim);

/// In the block of `value`; null: nothing reads it.
::mlir::Operation *firstUserOf(::mlir::Value value);

} // namespace meshwork::partition
