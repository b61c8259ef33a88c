// One round of an exchange: tokens go to the ranks that have their experts, in
// slots, and what these make of them comes back.
//
//   ExpertRound round(builder, op, operands, axes, built);
//   FailureOr<SmallVector<Value>> made = round.run({slots, places, ranks});
#pragma once

#include "dialects/mesh/Mesh.h"
#include "passes/transform/ExpertRows.h"

namespace meshwork::transform {

/// Who goes where, as `assign_slots` says: of one round, or of several side by
/// side. `ranks` are of all rounds.
struct SlotsOfRound {
  mlir::Value slots, places, ranks;
};

/// Experts, or with a gradient their gradients.
struct ExchangedOperands {
  MixtureOperands mixture;
  mlir::Value gradient; // null: of the forward pass
  mlir::ArrayAttr axes;
};

/// Ranks along `axes`.
int64_t countRanks(mlir::Operation *op, mlir::ArrayAttr axes);

class ExpertRound {
public:
  /// Builds where `at` stands, in place of `op` or of a part of it.
  ExpertRound(mlir::OpBuilder at, mlir::Operation *op,
              const ExchangedOperands &of, BuiltRows &built)
      : op(op), of(of), ranks(countRanks(op, of.axes)), built(built),
        builder(at), facts(builder, op) {}

  /// The sum of each token's experts; with a gradient those of input, weights,
  /// gate, up and down. The latter are of this rank's experts, as magnitudes of
  /// rows are, which come last.
  mlir::FailureOr<llvm::SmallVector<mlir::Value>>
  run(const SlotsOfRound &round);
  /// The largest of all ranks' numbers, in the list that `op` is of.
  mlir::Value largest(mlir::Value number);

private:
  mesh::CauseAttr cause(const llvm::Twine &what);
  mlir::Value moved(mlir::Value value, int64_t gather, int64_t split,
                    const llvm::Twine &what);
  mlir::Value sent(mlir::Value ofTokens, const SlotsOfRound &round,
                   const llvm::Twine &what);
  mlir::Value returned(mlir::Value ofSlots, const SlotsOfRound &round,
                       mlir::Value like, const llvm::Twine &what);
  mlir::FailureOr<llvm::SmallVector<mlir::Value>>
  gradients(const MixtureOperands &here, const SlotsOfRound &round);

  mlir::Operation *op;
  const ExchangedOperands &of;
  int64_t ranks;
  BuiltRows &built;
  mlir::OpBuilder builder;
  BuiltFor facts;
};

} // namespace meshwork::transform
