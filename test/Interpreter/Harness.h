// What the interpreter's tests share: a program from text, random tensors, and
// gradients against finite differences.
#pragma once

#include "passes/interpreter/Interpreter.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>

#include <string>

namespace meshwork::interpreter {

/// A parsed and verified module. Diagnostics are collected, not printed.
class Program {
public:
  /// `text` may use the aliases of `aliases()`. A module that does not parse
  /// fails the test.
  explicit Program(const std::string &text);

  mlir::func::FuncOp function(mlir::StringRef name = "f");
  mlir::ModuleOp module() { return *owned; }

  /// Runs @`name` on `interpreter`; fails the test when that fails.
  mlir::SmallVector<Tensor> run(mlir::ArrayRef<Tensor> arguments,
                                mlir::StringRef name = "f");

  /// Applies passes on the module: "a,b{option=1}". Fails the test when one
  /// fails.
  void transform(const std::string &pipeline);

  /// Builds and runs passes; false, and why in `diagnostics`, when one fails or
  /// leaves what does not verify.
  bool apply(mlir::function_ref<void(mlir::OpPassManager &)> build);

  Interpreter interpreter;
  std::string diagnostics;

private:
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> owned;
};

/// Values uniform in [low, high), a function of the shape and `seed` alone.
Tensor randomTensor(std::vector<int64_t> shape, unsigned seed, double low = -1,
                    double high = 1);

/// |a - b| / |b| over all elements, in the 2-norm; 0 when both are zero.
double relativeError(const Tensor &a, const Tensor &b);

/// Appends @gradient to the program of a function @f: takes f's arguments and a
/// gradient for each result, returns the gradient of each float argument.
void buildGradient(Program &program);

/// Compares the gradient of sum(w * f(arguments)), for random w, with central
/// differences, for each float argument: relative error below `tolerance`.
void checkGradient(Program &program, mlir::ArrayRef<Tensor> arguments,
                   double tolerance = 1e-6);

/// Central differences of `function` at `at`.
Tensor finiteDifferences(mlir::function_ref<double(const Tensor &)> function,
                         const Tensor &at);

} // namespace meshwork::interpreter
