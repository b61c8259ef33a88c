// Experts in FP8: their operands are rounded to 8 bits in front of them. What
// arises inside, on a rank's rows, they round themselves. Internal to
// -transformer-quantize.
#pragma once

#include "passes/transform/Scales.h"
#include <map>

namespace meshwork::transform {

class RoundedExperts {
public:
  RoundedExperts(mlir::func::FuncOp microbatch, Scales &scales)
      : function(microbatch), scales(scales), builder(microbatch.getContext()) {
  }

  /// Whether there are experts whose weights are parameters.
  static bool areIn(mlir::func::FuncOp microbatch);
  void run();

private:
  template <typename Op> void round(Op op);
  template <typename Op> Op withScales(Op op, mlir::ValueRange rowScales);
  void roundOperand(mlir::OpOperand &operand, llvm::StringRef weight);
  mlir::Value rounded(mlir::Value value, mlir::Operation *user,
                      llvm::StringRef weight);

  mlir::func::FuncOp function;
  Scales &scales;
  mlir::OpBuilder builder;
  /// Of both passes: what the experts of one have built of equal operands, the
  /// other takes (-transformer-expand-experts).
  std::map<std::pair<const void *, int64_t>, mlir::Value> copies; // ownerOf
};

} // namespace meshwork::transform
