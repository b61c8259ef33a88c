// Writes the loops of one kernel: items and rows (Rows.cpp), passes over the
// columns of a row (Columns.cpp).
#pragma once

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "passes/codegen/KernelLoops.h"

namespace meshwork::codegen {

class KernelBuilder {
public:
  KernelBuilder(const Walk &walk, const CpuTarget &target);
  /// Fills `function`, which takes the streams of `draws` after the ABI's
  /// arguments.
  void build(mlir::LLVM::LLVMFuncOp function,
             llvm::ArrayRef<transformer::DrawOpInterface> draws);

private:
  using Values = BodyEmitter::Values;

  mlir::Value mul(mlir::Value a, int64_t b);
  mlir::Value div(mlir::Value a, int64_t b);
  mlir::Value least(mlir::Value a, int64_t b);
  /// First row of an item's even share.
  mlir::Value share(mlir::Value item) {
    return div(mul(item, walk.numRows), walk.items);
  }

  void emitItems();
  void emitRows(mlir::Value lower, mlir::Value upper);
  void bindRow(mlir::Value row);
  bool storesColumns();
  /// Stores results with a value per row, or with none: after the last pass.
  void storeRowResults();
  /// What is stored for a result: its value, or the chunk's sum with this row.
  mlir::Value resultValue(unsigned i);
  void clearChunks();
  void clear(const Access &access, llvm::ArrayRef<LoopDim> dims, bool isMax);

  llvm::ArrayRef<transformer::ReduceOp> reductionsOf(unsigned pass);
  /// The values that a pass computes at each column decide its vectors' length.
  int64_t widthOf(unsigned pass);
  void emitPass(unsigned pass);
  /// One value of a vector of partial ones: halves upon halves.
  mlir::Value combineLanes(transformer::ReduceOp reduce, mlir::Value lanes);
  /// Loops over the cols from `level` inwards; returns what `sums` became.
  Values emitColumns(unsigned pass, unsigned level, Values sums);
  /// Columns [lower, upper): whole vectors, then what is left.
  Values emitSegment(unsigned pass, int64_t lower, int64_t upper, Values sums);
  Values emitAt(unsigned pass, int64_t column, Values sums);
  /// Blocks of columns of a cluster without rows; the last one may end in a
  /// tail.
  void emitColumnRange(mlir::Value lower, mlir::Value upper);
  Values emitBody(unsigned pass, Values sums);
  /// A reduction's next elements; those past the end change nothing.
  mlir::Value reducedPart(transformer::ReduceOp reduce);
  /// All values first: a store may overwrite an operand.
  void storeColumns();

  const Walk &walk;
  const CpuTarget &target;
  BodyEmitter body;
  llvm::SmallVector<int64_t> segments; // their ends
  int64_t width = 1;                   // of the current pass
  mlir::Value begin, end;
  llvm::SmallVector<mlir::Value> yields;
  llvm::DenseMap<mlir::Operation *, mlir::Value>
      rowSums; // this row's part of sums over rows and cols
};

} // namespace meshwork::codegen
