#include "passes/codegen/gpu/Shortcuts.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
namespace meshwork::codegen {
using namespace transformer;
namespace {

/// What a map's argument stands for outside of it; else `value` itself.
Value outsideOf(Value value) {
  while (auto argument = dyn_cast<BlockArgument>(value)) {
    auto map = dyn_cast<MapOp>(argument.getOwner()->getParentOp());
    if (!map)
      break;
    value = map.getInputs()[argument.getArgNumber()];
  }
  return value;
}

bool isMaximumOfRow(Value value, Value of, const Walk &walk) {
  auto reduce = value.getDefiningOp<ReduceOp>();
  return reduce && reduce.getKind() == Reduction::max &&
         walk.formOf(reduce) == ReduceForm::columns && reduce.getInput() == of;
}

/// x less the maximum of all x of the row.
bool isBelowMaximum(Value value, const Walk &walk) {
  auto difference = value.getDefiningOp<arith::SubFOp>();
  return difference && isMaximumOfRow(outsideOf(difference.getRhs()),
                                      outsideOf(difference.getLhs()), walk);
}

/// Follows a value to all that it ends in.
class Flow {
public:
  Flow(const Walk &walk, bool ofSoftmax) : walk(walk), ofSoftmax(ofSoftmax) {}

  bool hidesLastBits(Value value) {
    if (!seen.insert(value).second)
      return true;
    return llvm::all_of(value.getUses(),
                        [&](OpOperand &use) { return hidesIn(use); });
  }

private:
  bool hidesIn(OpOperand &use) {
    Operation *user = use.getOwner();
    unsigned number = use.getOperandNumber();
    if (isa<YieldOp>(user)) {
      Operation *parent = user->getParentOp();
      if (isa<MapOp>(parent))
        return hidesLastBits(parent->getResult(number));
      Type type = parent->getResult(number).getType();
      return cast<RankedTensorType>(type).getElementTypeBitWidth() <= 16;
    }
    if (auto map = dyn_cast<MapOp>(user))
      return hidesLastBits(map.getBody().front().getArgument(number));
    if (auto reduce = dyn_cast<ReduceOp>(user))
      return reduce.getKind() == Reduction::max ||
             (ofSoftmax && walk.formOf(reduce) == ReduceForm::columns);
    bool isValue = isa<RollOp, arith::AddFOp, arith::SubFOp, arith::MulFOp,
                       arith::DivFOp, arith::NegFOp, math::AbsFOp>(user) ||
                   (isa<arith::SelectOp>(user) && number > 0);
    return isValue && hidesLastBits(user->getResult(0));
  }

  const Walk &walk;
  bool ofSoftmax;
  llvm::DenseSet<Value> seen;
};
} // namespace

bool hidesLastBits(math::ExpOp op, const Walk &walk) {
  return Flow(walk, isBelowMaximum(op.getOperand(), walk))
      .hidesLastBits(op.getResult());
}

std::optional<unsigned> inputOf(Value value) {
  value = outsideOf(value);
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument)
    return std::nullopt;
  return argument.getArgNumber();
}

/// A value per row that is an operand of the cluster.
static bool isPerRow(Value value, const Walk &walk) {
  std::optional<unsigned> input = inputOf(value);
  return input && !walk.hasCols(walk.inputs[*input]);
}

static std::optional<ColumnMatch> matchOf(arith::CmpIOp compare,
                                          const Walk &walk) {
  if (compare.getPredicate() != arith::CmpIPredicate::eq)
    return std::nullopt;
  Value index = compare.getLhs(), column = compare.getRhs(), offset;
  if (isPerRow(index, walk))
    std::swap(index, column);
  if (auto sum = index.getDefiningOp<arith::AddIOp>()) {
    index = sum.getLhs();
    offset = sum.getRhs();
    if (isPerRow(index, walk))
      std::swap(index, offset);
  }
  auto at = index.getDefiningOp<IndexOp>();
  if (!at || at.getDimAttr() != walk.vectorKey() || !isPerRow(column, walk) ||
      (offset && !isPerRow(offset, walk)))
    return std::nullopt;
  return ColumnMatch{compare, column, offset};
}

bool areAlike(const ColumnMatch &a, const ColumnMatch &b) {
  if (inputOf(a.column) != inputOf(b.column) || !a.offset != !b.offset)
    return false;
  return !a.offset || inputOf(a.offset) == inputOf(b.offset);
}

SmallVector<ColumnMatch> columnMatches(const Walk &walk) {
  SmallVector<ColumnMatch> matches;
  if (walk.cols.size() == 1)
    FusedOp(walk.op).walk([&](arith::CmpIOp compare) {
      if (std::optional<ColumnMatch> match = matchOf(compare, walk))
        matches.push_back(*match);
    });
  return matches;
}

std::optional<Pick> pickOf(ReduceOp reduce, const Walk &walk) {
  auto map = reduce.getInput().getDefiningOp<MapOp>();
  if (reduce.getKind() != Reduction::add || walk.cols.size() != 1 ||
      walk.formOf(reduce) != ReduceForm::columns || !map)
    return std::nullopt;
  Value yielded = map.getBody().front().getTerminator()->getOperand(
      cast<OpResult>(reduce.getInput()).getResultNumber());
  auto select = yielded.getDefiningOp<arith::SelectOp>();
  if (!select || !matchPattern(select.getFalseValue(), m_PosZeroFloat()))
    return std::nullopt;
  auto compare = select.getCondition().getDefiningOp<arith::CmpIOp>();
  std::optional<ColumnMatch> match =
      compare ? matchOf(compare, walk) : std::nullopt;
  std::optional<unsigned> input = inputOf(select.getTrueValue());
  if (!match || !input || !walk.hasCols(walk.inputs[*input]))
    return std::nullopt;
  return Pick{*input, *match};
}

} // namespace meshwork::codegen
