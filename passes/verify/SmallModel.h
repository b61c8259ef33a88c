// A model made small: fewer layers, and dims of other sizes. It computes
// something else, with the same ops.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"
#include <map>
#include <set>
#include <vector>

namespace meshwork::verify {

/// Sizes of a model's dims by name, and what ties them.
struct ModelDims {
  explicit ModelDims(mlir::ModuleOp model);

  std::map<std::string, int64_t> sizes; // those that may change
  std::set<std::string> even;           // rope turns pairs of elements
  /// Query heads to the key heads that they share.
  std::map<std::string, std::string> keysOf;
  std::map<std::string, std::string> widthOf; // of heads: what one has
  std::set<std::string> tables;               // cut to the length of a sequence
  std::set<int64_t> windows;                  // of attention

private:
  void addType(mlir::Type type);
  void addOp(mlir::Operation *op);
  /// Have several sizes, are cut at an offset, or counted by attributes of an
  /// op.
  std::set<std::string> fixed;
};

/// What dims become, and windows.
struct SmallSizes {
  std::map<std::string, int64_t> dims;
  std::map<int64_t, int64_t> windows;
};
void resize(mlir::ModuleOp model, const SmallSizes &sizes);

/// Layers of `loss`, and what tells kinds of them apart.
int64_t countLayers(mlir::func::FuncOp loss);
/// The kind of each layer, a number from 0 on; nothing where layers are not a
/// chain, as for keepLayers.
std::vector<int64_t> kindsOfLayers(mlir::func::FuncOp loss);

/// Leaves out layers until `count` are left, of each kind one if possible. The
/// last always stays, and so do those with a parameter of `named`. Layers are
/// numbered anew. Nothing changes, and the result is false, where layers are
/// not a chain of which each hands one tensor to the next.
bool keepLayers(mlir::func::FuncOp loss, int64_t count,
                const std::set<std::string> &named);
/// The same of those layers that `kept` numbers.
bool keepLayers(mlir::func::FuncOp loss, const std::set<size_t> &kept);

} // namespace meshwork::verify
