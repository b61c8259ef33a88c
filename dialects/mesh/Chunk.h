// What is of a chunk of a tensor. Its collectives travel beside the products of
// other chunks: nothing joins them with others, and each starts when its chunk
// is there. Its products read and write rows that may lie apart in the whole.
#pragma once

#include "dialects/mesh/Mesh.h"

namespace meshwork::mesh {

/// Of a collective or a product: `unit`.
inline constexpr ::llvm::StringLiteral chunkName = "mesh.chunk";

inline void setChunk(::mlir::Operation *op) {
  op->setAttr(chunkName, ::mlir::UnitAttr::get(op->getContext()));
}
inline bool isChunk(::mlir::Operation *op) { return op->hasAttr(chunkName); }

} // namespace meshwork::mesh
