// Attention `shared ulysses`: each rank computes some heads of all of a
// sequence, so what splits the sequence elsewhere splits heads there. Where the
// ranks share it in another way, some axes may do that beside them
// (`mesh.exchanged`): each rank then has some heads of a larger part.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/sharding/FactorTable.h"

namespace meshwork::sharding {

/// How ranks share the sequence of attention, or of its gradient; `none` of any
/// other op.
transformer::Sharing sharingOf(::mlir::Operation *op);

/// Whether `op` is such attention, or its gradient.
bool exchangesHeads(::mlir::Operation *op);

/// Says that `axes` exchange heads, whatever the others do.
void setExchanged(::mlir::Operation *op, ::llvm::ArrayRef<std::string> axes);

/// Takes the axes that exchange heads, out of those that split the sequence of
/// `op`'s queries (the first of `proposals`). Moves them to its heads in
/// `decided`: to key heads or, where a rank has one key head left, to the query
/// heads that share it. False where they do not divide.
bool splitHeads(::mlir::Operation *op, const FactorTable &table,
                const Mesh &mesh, ::llvm::ArrayRef<Proposal> proposals,
                std::vector<Axes> &decided);

/// All values of `function` have shardings: whether ranks divide the heads
/// wherever these are exchanged. An error of the spec, told once.
::mlir::LogicalResult checkHeads(::mlir::func::FuncOp function,
                                 mesh::MeshAttr mesh);

} // namespace meshwork::sharding
