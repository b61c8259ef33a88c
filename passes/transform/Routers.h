// What passes on routers share: where choices of experts are made, and how
// often each expert is chosen.
#pragma once

#include "dialects/transformer/Transformer.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SetVector.h"

namespace meshwork::transform {

/// What makes the choices of experts in `function`, of scores that are its
/// first operand: each once, in the order of the text.
llvm::SetVector<mlir::Operation *> routersOf(mlir::func::FuncOp function);

/// What drops choices for which an expert has no room; null: nothing does.
transformer::LimitChoicesOp limitOf(transformer::ExpertsOp op);

/// 1 where a token chose an expert, else 0, like `scores`, in f32.
mlir::Value chosenBy(mlir::ImplicitLocOpBuilder &b, mlir::Operation *router,
                     mlir::Type scores);

/// The sums of `of`, [token dims..., experts], over the tokens of each sample,
/// [samples, experts], or over all of them, [experts].
mlir::Value sumOverTokens(mlir::ImplicitLocOpBuilder &b, mlir::Value of,
                          bool ofEachSample);

/// Of so many samples each, one behind the other; one at least.
int64_t countGroups(int64_t samples, int64_t group);
/// [groups, experts]: sums of `of`, [samples, experts], over groups of so many
/// samples.
mlir::Value sumOfGroups(mlir::ImplicitLocOpBuilder &b, mlir::Value of,
                        int64_t group);

} // namespace meshwork::transform
