// A metric that tells what rounding changes in the gradient of a step.
//
//   GradientError error(module, /*stages=*/"pp");
//   error.add(builder, reduceScatter, "w", squares);
//   error.tell();  // all_reduce, square root, assign metric "gradient_error"
#pragma once

#include "dialects/mesh/Mesh.h"
#include "dialects/transformer/Transformer.h"

namespace meshwork::transform {

class GradientError {
public:
  /// Whether `module` has an update that tells loss and norm; an error if not.
  static bool isToldIn(::mlir::ModuleOp module);
  /// `stages`: the axis that layers will be shared out over; "": none.
  GradientError(::mlir::ModuleOp module, ::llvm::StringRef stages);

  /// `squares` are f32 of no dims that this rank has, of what is rounded for a
  /// sum of the gradient of `parameter`, in the place of `op`.
  void add(::mlir::OpBuilder &builder, mesh::ReduceScatterOp op,
           ::mlir::StringAttr parameter,
           ::mlir::ArrayRef<::mlir::Value> squares);
  /// Once all is added; 0 where nothing is.
  void tell();

private:
  double copiesOf(mesh::ReduceScatterOp op, ::mlir::StringAttr parameter);
  transformer::StateOp summed();
  ::mlir::Value allReduce(::mlir::ImplicitLocOpBuilder &b, ::mlir::Value value);
  static void awaits(::mlir::ImplicitLocOpBuilder &b,
                     transformer::AssignOp norm, ::mlir::Value root);
  ::mlir::ArrayAttr axes() const;

  ::mlir::ModuleOp module;
  mesh::MeshAttr mesh;
  ::llvm::StringRef stages;
  ::llvm::DenseMap<::mlir::StringAttr, transformer::StateOp> gradients;
  bool isSummed = false; // in microbatches
  ::llvm::SmallVector<::mlir::Value> ofUpdate;
};

} // namespace meshwork::transform
