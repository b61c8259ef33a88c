// Ops that need the values of several ranks at once. Private to this folder.
#pragma once

#include "dialects/mesh/Mesh.h"
#include "passes/interpreter/Frame.h"

namespace meshwork::interpreter {

/// Whether `evaluateTogether` takes this op: collectives, the coordinate, and a
/// head whose vocabulary several ranks share.
bool needsAllRanks(mlir::Operation *op);

/// Evaluates such an op on all ranks of `mesh`, whose operands have values.
/// Fails with a diagnostic when there are not as many ranks as the mesh has.
mlir::LogicalResult evaluateTogether(mlir::Operation *op, mesh::MeshAttr mesh,
                                     mlir::MutableArrayRef<Frame> frames);

/// What `head_loss_grad` yields on each rank of one group; `operands` are by
/// index in the group.
mlir::FailureOr<std::vector<Tensors>>
evaluateHead(transformer::HeadLossGradOp op, mlir::ArrayRef<Tensors> operands);
/// Experts, their gradients, or further rounds of these, on ranks that exchange
/// tokens.
std::vector<Tensors> evaluateExchange(mlir::Operation *op,
                                      std::vector<Tensors> operands);

} // namespace meshwork::interpreter
