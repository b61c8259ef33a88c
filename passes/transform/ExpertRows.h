// Experts on one rank: rows in the order of their experts, products of each
// expert's rows, and what a token gets of them.
//
//   BuiltRows built;   // of one function
//   ExpertRows rows(builder, op, MixtureOperands(op), built);
//   SmallVector<Value> made = rows.forward();
#pragma once

#include "dialects/transformer/Transformer.h"
#include "mlir/IR/Builders.h"

namespace meshwork::transform {

/// What is built while this lives belongs where `of` does.
class BuiltFor : public mlir::OpBuilder::Listener {
public:
  BuiltFor(mlir::OpBuilder &builder, mlir::Operation *of) : of(of) {
    builder.setListener(this);
  }
  void notifyOperationInserted(mlir::Operation *made,
                               mlir::OpBuilder::InsertPoint) override;

private:
  mlir::Operation *of;
};

/// What has been built of which operands. What stands later in a block may use
/// what stands before.
class BuiltRows {
public:
  /// An op, or the equal one that is there.
  template <typename Op, typename... Arguments>
  Op find(mlir::OpBuilder &builder, mlir::Location loc,
          Arguments &&...arguments) {
    auto op = Op::create(builder, loc, std::forward<Arguments>(arguments)...);
    return llvm::cast<Op>(known(op));
  }

private:
  mlir::Operation *known(mlir::Operation *op);

  llvm::SmallVector<mlir::Operation *> ops;
};

/// The operands that experts and their gradients have.
struct MixtureOperands {
  transformer::Activation function;
  mlir::Value input, choices, weights, gate, up, down, first;
  int64_t about; // choices of these experts, when all are chosen evenly
  std::optional<int64_t> most; // of these experts' choices, in all
  /// What rows are scaled by before they are rounded: those in front of the
  /// down projection, then gradients of gate's and of up's results.
  llvm::SmallVector<mlir::Value> rowScales;

  template <typename Op>
  explicit MixtureOperands(Op op)
      : function(op.getFunction()), input(op.getInput()),
        choices(op.getChoices()), weights(op.getWeights()), gate(op.getGate()),
        up(op.getUp()), down(op.getDown()), first(op.getFirstExpert()),
        about(op.countChoices()), most(capacityOf(op)),
        rowScales(op.getRowScales()) {}

private:
  /// Of all these experts, in all groups that are here.
  template <typename Op> static std::optional<int64_t> capacityOf(Op op) {
    if constexpr (requires { op.getCapacity(); })
      if (op.getCapacity())
        return llvm::divideCeil(
                   transformer::tensorType(op.getChoices()).getDimSize(0),
                   static_cast<int64_t>(op.getGroup())) *
               static_cast<int64_t>(*op.getCapacity()) *
               transformer::tensorType(op.getGate()).getDimSize(0);
    return {};
  }
};

class ExpertRows {
public:
  /// Builds where `at` stands, in place of `op` or of a part of it.
  ExpertRows(mlir::OpBuilder at, mlir::Operation *op, const MixtureOperands &of,
             BuiltRows &built)
      : op(op), of(of), built(built), builder(at), facts(builder, op) {}

  /// The sum over each token's choices of these experts; then magnitudes.
  llvm::SmallVector<mlir::Value> forward();
  /// The gradients of input, weights, gate, up and down; then magnitudes.
  mlir::FailureOr<llvm::SmallVector<mlir::Value>>
  backward(mlir::Value gradient);

private:
  /// A dim of some tensor.
  struct Dim {
    mlir::StringAttr name;
    int64_t size;
  };
  static Dim widthOf(mlir::Value value, unsigned dim);
  static Dim widthOf(mlir::Value value);
  mlir::RankedTensorType typeOf(llvm::ArrayRef<Dim> dims, mlir::Type element);
  Dim rows();
  mlir::StringAttr rowsName();
  /// Null: as many as there are.
  mlir::IntegerAttr about();
  /// Null: as many choices as tokens can make.
  mlir::IntegerAttr most();
  void sort();
  mlir::Value take(mlir::Value table, mlir::Value numbers);
  mlir::Value product(mlir::Value lhs, mlir::Value matrices, Dim width);
  transformer::MapOp inner();
  transformer::MapOp mapOf(mlir::Value gate, mlir::Value up,
                           mlir::Value weights);
  /// Rows as FP8 has them, in the type that they have; the same where nothing
  /// is rounded.
  mlir::Value rounded(mlir::Value rows, unsigned scale);
  mlir::Value combine(mlir::Value source);
  mlir::Value weightGradient(mlir::Value lhs, mlir::Value rhs,
                             mlir::Value like);

  mlir::Operation *op;
  const MixtureOperands of;
  BuiltRows &built;
  mlir::OpBuilder builder;
  BuiltFor facts;
  transformer::SortRowsOp sorted;
};

} // namespace meshwork::transform
