// One rank's run of one function. Private to this folder.
#pragma once

#include "dialects/mesh/Mesh.h"
#include "passes/interpreter/Evaluate.h"
#include "passes/interpreter/Interpreter.h"

namespace meshwork::interpreter {

/// "[4, 8]"
std::string shapeText(mlir::ArrayRef<int64_t> shape);

/// Whether values of these types can be held; says at `op` why not.
mlir::LogicalResult checkTypes(mlir::Operation *op, mlir::TypeRange types);

/// The values of a function's ops so far, and the state that its rank keeps.
class Frame {
public:
  explicit Frame(Interpreter &interpreter) : interpreter(interpreter) {}

  /// Evaluates an op whose operands have values.
  mlir::LogicalResult visit(mlir::Operation &op);

  void set(mlir::Value value, Tensor tensor) {
    values[value] = std::move(tensor);
  }
  const Tensor &get(mlir::Value value) const { return values.at(value); }
  Tensors get(mlir::ValueRange range) const {
    return llvm::map_to_vector(
        range, [&](mlir::Value value) { return values.at(value); });
  }

  /// One number of the step, for `op`.
  Results readInput(mlir::Operation *op, transformer::StepInput kind);

private:
  Results evaluateOp(mlir::Operation *op, const Tensors &x);
  Results readState(mlir::Operation *op, const StateKey &key);
  Results readParameter(transformer::ParameterOp op);
  Results readBiasCorrection(transformer::StepInputOp op);
  Results assign(transformer::AssignOp op, const Tensor &value);
  Results accumulate(transformer::AccumulateOp op, const Tensor &value);

  Interpreter &interpreter;
  mlir::DenseMap<mlir::Value, Tensor> values;
};

/// Evaluates an op on all ranks, one frame each, whose operands have values.
mlir::LogicalResult evaluate(mlir::Operation &op, mesh::MeshAttr mesh,
                             mlir::MutableArrayRef<Frame> frames);

} // namespace meshwork::interpreter
