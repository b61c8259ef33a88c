// The parts of -pipeline-cut-stages.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "passes/pipeline/Scatter.h"
#include "passes/pipeline/Stages.h"

namespace meshwork::pipeline {

/// Virtual stages and where they are.
struct Placement {
  ::mlir::StringAttr axis;              // of the mesh
  ::llvm::SmallVector<int64_t> rankOf;  // coordinate of each virtual stage
  ::llvm::SmallVector<int64_t> ofLayer; // virtual stage of each layer
  bool splitsBackward = false; // gradients of weights are a list of their own

  int64_t stages() const { return static_cast<int64_t>(rankOf.size()); }
};

/// Gradients of weights by the first round of an exchange are accumulated as
/// they are, where further rounds alone would add to them. So nothing waits for
/// them, and they can be of a list of gradients of weights.
void keepRoundsApart(::mlir::func::FuncOp microbatch);

/// @microbatch, as a line of lists: forward of each stage, then backward of
/// each from the last one. What is made in one list and used in another is
/// handed on from stage to stage.
class Line {
public:
  /// Null, with an error, where something would have to go against the line.
  ///   scatter  how values cross to another rank
  static std::optional<Line> create(::mlir::func::FuncOp microbatch,
                                    const LayersOfOps &layers,
                                    const Placement &placement,
                                    const Scatter &scatter);
  /// A @microbatch, at the end of `module`, of the stages at a coordinate.
  ::mlir::func::FuncOp build(::mlir::ModuleOp module, int64_t rank) const;

private:
  Line(::mlir::func::FuncOp microbatch, const LayersOfOps &layers,
       const Placement &placement, const Scatter &scatter)
      : microbatch(microbatch), layers(layers), placement(placement),
        scatter(scatter) {}
  ::mlir::LogicalResult readOps();
  ::mlir::LogicalResult handOn(::mlir::Value value);
  void findWeightGradients();
  int64_t lists() const { return 2 * placement.stages(); }
  int64_t stageAt(int64_t list) const {
    return list < placement.stages() ? list : lists() - 1 - list;
  }
  int64_t rankAt(int64_t list) const { return placement.rankOf[stageAt(list)]; }
  /// -1: wherever it is used.
  int64_t listOf(::mlir::Operation *op) const;

  ::mlir::func::FuncOp microbatch;
  const LayersOfOps &layers;
  const Placement &placement;
  const Scatter &scatter;
  std::vector<std::vector<::mlir::Operation *>> ops; // of each list
  /// Of each list: what it hands to the next one.
  std::vector<std::vector<::mlir::Value>> handed;
  ::llvm::DenseSet<::mlir::Operation *> ofWeights;

  friend class Builder;
};

/// The ranks that have each parameter, by its name.
using Coordinates = ::llvm::StringMap<::llvm::SmallVector<int64_t>>;

/// The ops of `update` that each of `ranks` has, in order. Most are missing:
/// those of parameters that other ranks alone have.
std::vector<std::vector<::mlir::Operation *>>
opsOfRanks(::mlir::func::FuncOp update, const Coordinates &coordinates,
           int64_t ranks);

/// An @update, at the end of `module`, of the parameters of its @microbatch.
///   ops  those of `update` that opsOfRanks gives the rank
::mlir::LogicalResult cutUpdate(::mlir::func::FuncOp update,
                                ::llvm::ArrayRef<::mlir::Operation *> ops,
                                ::mlir::ModuleOp module, int64_t rank,
                                const Coordinates &coordinates,
                                const Placement &placement);

} // namespace meshwork::pipeline
