// The reference interpreter: what a function of transformer ops means, in
// double precision, slowly and obviously right. Tests of passes compare a
// function's values before and after; tests of gradients compare with finite
// differences; kernels compare with what they should have computed.
//
//   Interpreter interpreter;
//   interpreter.state[{StateKind::weight, "wte.weight"}] = table;
//   interpreter.inputs[StepInput::seed] = 7;
//   FailureOr<SmallVector<Tensor>> results = interpreter.run(func, {tokens,
//   targets});
#pragma once

#include "dialects/transformer/Transformer.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/interpreter/Tensor.h"

#include <compare>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace meshwork::interpreter {

/// What is kept: transformer::StateKey with names of its own.
struct StateKey {
  transformer::StateKind kind = transformer::StateKind::weight;
  std::string name = {}; // of the parameter, or empty for the step's own
  std::string slot = {}; // of an optimizer's state

  StateKey() = default;
  StateKey(transformer::StateKind kind, std::string name, std::string slot = {})
      : kind(kind), name(std::move(name)), slot(std::move(slot)) {}
  StateKey(const transformer::StateKey &key)
      : kind(key.kind), name(key.name), slot(key.slot) {}
  auto operator<=>(const StateKey &) const = default;
  /// `gradient of "w"`: for messages.
  std::string text() const;
};

/// Runs functions one after another on one state, as a process would run the
/// programs of its plan. Not safe for use by several threads at once.
class Interpreter {
public:
  /// Kept between runs, in the shapes of the ops' types (not `file_shape`).
  /// `parameter` reads kind `weight` and, where there is none, `master`:
  /// without mixed precision both are one.
  std::map<StateKey, Tensor> state;

  /// What `step_input` reads; a `bias_correction` comes from `step`. Reading
  /// one that is not here is an error.
  std::map<transformer::StepInput, double> inputs;

  /// Forgets the state that a step starts at zero (gradients and the loss);
  /// `accumulate` then begins anew.
  void startStep();

  /// The values that `func` returns. Arguments stand in the order of the
  /// function's, their shapes equal to its types'. `func` is not changed: model
  /// ops are evaluated as what they decompose into, on a copy.
  ///
  /// Fails with a diagnostic at the op, and keeps the assignments made before.
  /// Reasons:
  ///   - wrong arguments
  ///   - a dim of unknown size (bind the model first)
  ///   - a tensor of more than `maxElements`
  ///   - missing state or step input
  ///   - an id outside its table
  ///   - an op of another dialect
  mlir::FailureOr<mlir::SmallVector<Tensor>>
  run(mlir::func::FuncOp func, mlir::ArrayRef<Tensor> arguments);

  /// A tensor beyond this is a mistake: this interpreter would need days.
  static constexpr int64_t maxElements = int64_t{1} << 28;
};

/// Runs `func` on every rank of its module's `mesh.axes` in step, op by op, so
/// that collectives see all their parts. `ranks` and `arguments` are indexed by
/// rank, the innermost axis fastest; so are the results. Fails as `run` does,
/// and at a collective when there are not as many ranks as the mesh has.
mlir::FailureOr<std::vector<mlir::SmallVector<Tensor>>>
runRanks(mlir::func::FuncOp func, mlir::MutableArrayRef<Interpreter> ranks,
         mlir::ArrayRef<mlir::SmallVector<Tensor>> arguments);

/// What a function of primitive ops returns that keeps no state, a kernel's
/// say; it may call others. The function is evaluated as it is, not on a copy.
mlir::FailureOr<mlir::SmallVector<Tensor>>
evaluateFunction(mlir::func::FuncOp func, mlir::ArrayRef<Tensor> arguments);

/// Replaces each model op in `func` by what it decomposes into.
void decomposeModelOps(mlir::func::FuncOp func);

/// Runs a function for each coordinate along `axis` of the mesh, as the stages
/// of a pipeline do: each as far as what it receives allows. Ranks as above;
/// primitive ops only, and no results.
mlir::LogicalResult
runStages(mlir::ArrayRef<mlir::func::FuncOp> functions, mlir::StringRef axis,
          mlir::MutableArrayRef<Interpreter> ranks,
          mlir::ArrayRef<mlir::SmallVector<Tensor>> arguments);

} // namespace meshwork::interpreter
