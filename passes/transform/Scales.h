// What tensors are scaled by before they are rounded to 8 bits. Internal to
// -transformer-quantize.
#pragma once

#include "dialects/transformer/Transformer.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringSet.h"
#include <optional>

namespace meshwork::transform {

/// A gradient of an activation: the loss's, or what the backward pass made.
bool isGradient(mlir::Value value);
bool isWeight(mlir::Value value);

/// Both powers of two.
struct Scale {
  mlir::Value scale, inverse; // tensor<f32>
};

/// For delayed scaling.
struct Delayed {
  mlir::func::FuncOp update; // may be null where nothing is delayed
  double targets = 1;        // of a step
  bool all = false; // else activations and gradients are scaled as they are
};

/// When scales are made.
struct When {
  Delayed delayed;
  bool weightsPerStep = false; // those of weights, for all microbatches
};

/// The scales of one step.
class Scales {
public:
  Scales(mlir::func::FuncOp microbatch, When when)
      : function(microbatch), delayed(when.delayed),
        weightsPerStep(when.weightsPerStep), builder(microbatch.getContext()) {}

  /// Built where it is asked for first, by what multiplies it with `weight`,
  /// which for an activation is in the forward pass; that of the step behind
  /// its weight.
  Scale of(mlir::Value value, mlir::Operation *user, llvm::StringRef weight);
  /// For rows that `user` makes and multiplies with `weight`: always from the
  /// steps before.
  mlir::Value ofRows(llvm::StringRef weight, bool areGradients);
  /// Keeps their largest magnitude of this step for the next ones.
  void rememberRows(llvm::StringRef weight, bool areGradients,
                    mlir::Value magnitude, mlir::Operation *user);
  /// Whether scale and copies are of the step.
  bool isOfStep(mlir::Value value) const {
    return weightsPerStep && isWeight(value);
  }
  /// Which layer has scale and copies of `value` for itself; -1: none. A weight
  /// that layers share is in each of their stages, and is no activation that
  /// goes from one to the next. What is of the step belongs to no stage.
  int64_t ownerOf(mlir::Value value, mlir::Operation *user) const;
  /// Says of `made`, for `value` and its `user`, where it belongs.
  void setFacts(mlir::Operation *made, mlir::Value value,
                mlir::Operation *user) const;
  /// Whether it is known before the step, from the steps before.
  bool isDelayed(mlir::Value value) const;
  /// When all have been asked for: @update counts the tensors of which FP8 has
  /// held less than there was.
  void finish();

private:
  /// The powers of two for `magnitude`, of e4m3 or of e5m2.
  struct Format {
    int64_t maxExponent;
    double largest;
    std::optional<double> first; // magnitude where there is none yet
    llvm::SmallVector<mlir::Value> powers(mlir::ImplicitLocOpBuilder &b,
                                          mlir::Value magnitude) const;
  };
  Format formatOf(bool isGradient, bool isLater) const;
  mlir::Type scalarType();
  mlir::Value magnitudeOf(mlir::Value value, mlir::Operation *user);
  mlir::Operation *powersOf(mlir::Value magnitude, const Format &format);
  /// A state that is kept, and that of the step: `what` they are of.
  mlir::Value before(llvm::StringRef weight, const llvm::Twine &what,
                     mlir::Location loc);
  void remember(llvm::StringRef weight, const llvm::Twine &what,
                const Format &format, mlir::Value now, mlir::Operation *user);
  void keep(const Format &format, const transformer::StateKey &kept,
            const transformer::StateKey &step);

  mlir::func::FuncOp function;
  Delayed delayed;
  bool weightsPerStep;
  mlir::OpBuilder builder;
  llvm::DenseMap<std::pair<mlir::Value, int64_t>, Scale> scales; // ownerOf
  llvm::SmallVector<mlir::Value> saturated; // in @update, 1 or 0 each
  llvm::StringMap<mlir::Value> rowScales;   // by weight
  llvm::StringSet<> slots; // weights and what they are multiplied with
};

} // namespace meshwork::transform
