// The rules of each op are in two places: what it must not take in (guard), and
// what it leaves (derive).
#include "passes/partition/Mask.h"
#include "dialects/transformer/Facts.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
namespace meshwork::partition {
using namespace transformer;
using namespace sharding;

bool Masks::isUneven(int64_t size, const Axes &axes) const {
  return localSize(mesh, size, axes) * mesh.numRanks(axes) != size;
}

bool Masks::overlaps(int64_t size, const Axes &axes) const {
  int64_t local = localSize(mesh, size, axes);
  for (int64_t i = 0, n = mesh.numRanks(axes); i < n; ++i) {
    auto own = rangesOf(mesh, size, axes, mesh.withIndex(0, axes, i));
    if (layout::countOf(own) < local &&
        own.back().begin + own.back().count < size)
      return true;
  }
  return false;
}

Value Masks::extent(Operation *at, int64_t size, const Axes &axes) const {
  OpBuilder builder(at);
  auto scalar = RankedTensorType::get({}, builder.getI32Type());
  return mesh::ExtentOp::create(builder, at->getLoc(), scalar,
                                axesAttr(attr, axes), size);
}

Value Masks::positions(Operation *at, int64_t size, const Axes &axes,
                       StringAttr name) const {
  OpBuilder builder(at);
  auto dims = DimsAttr::get(at->getContext(), {name.getValue()});
  auto type = RankedTensorType::get({localSize(mesh, size, axes)},
                                    builder.getI32Type(), dims);
  return mesh::PositionsOp::create(builder, at->getLoc(), type,
                                   dimAttr(attr, axes), size);
}

Masks::Own Masks::own(Operation *at, int64_t size, const Axes &axes,
                      StringAttr name) const {
  bool isTable = !onlyBlocks(axes);
  return {name,
          isTable ? positions(at, size, axes, name) : extent(at, size, axes),
          isTable};
}

Value Masks::Own::test(ImplicitLocOpBuilder &b, Value value) const {
  if (!isTable)
    return arith::CmpIOp::create(b, arith::CmpIPredicate::slt,
                                 IndexOp::create(b, b.getI32Type(), dim),
                                 value);
  Value zero = arith::ConstantOp::create(b, b.getI32IntegerAttr(0));
  return arith::CmpIOp::create(b, arith::CmpIPredicate::sge, value, zero);
}

Masks::Part Masks::partOf(Value value) const {
  if (auto known = parts.find(value); known != parts.end())
    return known->second;
  auto type = tensorType(value); // Nothing splits it unevenly.
  return {type, replicated(type.getRank()),
          SmallVector<Padding>(type.getRank(), realValue())};
}

Padding Masks::paddingOf(Value value, StringAttr dim) const {
  int64_t at = dimsOf(value).find(dim);
  auto known = parts.find(value);
  return at < 0 || known == parts.end() ? realValue()
                                        : known->second.padding[at];
}

//===-- What must not be taken in -------------------------------------------//

Value Masks::masked(Operation *user, Value value, StringAttr dim, Need need) {
  Value &known =
      cache[{value.getAsOpaquePointer(), dim.getAsOpaquePointer(), need}];
  if (known)
    return known;
  Part part = partOf(value);
  int64_t at = dimsOf(value).find(dim);
  Own mine = own(user, part.whole.getDimSize(at), part.sharding.dims[at], dim);
  float neutral =
      need == Need::lowest ? std::numeric_limits<float>::lowest() : 0;
  OpBuilder builder(user);
  known =
      buildMap(builder, value.getLoc(), value.getType(), {value, mine.operand},
               [&](ImplicitLocOpBuilder &b, ValueRange x) -> Value {
                 Value isOwn = mine.test(b, x[1]);
                 return arith::SelectOp::create(
                     b, isOwn, x[0],
                     arith::ConstantOp::create(b, b.getF32FloatAttr(neutral)));
               });
  inheritFacts(user, known.getDefiningOp());
  part.padding[at] = constantPadding(neutral);
  parts[known] = part;
  return known;
}

void Masks::require(OpOperand &operand, StringAttr dim, Need need) {
  Padding padding = paddingOf(operand.get(), dim);
  bool fits = need == Need::finite ? padding.isFinite
                                   : need == Need::zero && padding.isZero();
  if (!fits && !padding.isReal)
    operand.set(masked(operand.getOwner(), operand.get(), dim, need));
}

void Masks::requireAll(OpOperand &operand, Need need) {
  for (StringAttr dim : dimsOf(operand.get()).getNames())
    require(operand, dim, need);
}

/// A sum of products: zero on one side, finite on the other. The smaller one
/// is masked where neither is.
void Masks::guardContract(ContractOp op) {
  OpOperand &lhs = op.getLhsMutable(), &rhs = op.getRhsMutable();
  for (StringAttr dim : dimsOf(op.getLhs()).getNames()) {
    if (dimsOf(op.getResult()).find(dim) >= 0)
      continue;
    bool zeroLeft = paddingOf(lhs.get(), dim).isZero(),
         zeroRight = paddingOf(rhs.get(), dim).isZero();
    if (!zeroLeft && !zeroRight)
      zeroLeft = tensorType(lhs.get()).getNumElements() <
                 tensorType(rhs.get()).getNumElements();
    require(lhs, dim, zeroLeft ? Need::zero : Need::finite);
    require(rhs, dim, zeroLeft ? Need::finite : Need::zero);
  }
}

void Masks::guard(Operation *op) {
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](ReduceOp op) {
        for (StringAttr dim : op.getDims().getNames())
          require(op.getInputMutable(), dim,
                  op.getKind() == transformer::Reduction::add ? Need::zero
                                                              : Need::lowest);
      })
      .Case([&](ContractOp op) { guardContract(op); })
      .Case([&](EmbeddingOp op) {
        require(op.getTableMutable(), dimsOf(op.getTable()).getNames()[0],
                Need::zero);
      })
      .Case([&](EmbeddingGradOp op) {
        for (StringAttr dim : dimsOf(op.getIds()).getNames())
          require(op.getGradientMutable(), dim, Need::zero);
      })
      .Case([&](transformer::AttentionGradOp op) {
        // Probabilities of rows that are padding are zero, not absent.
        requireAll(op.getQMutable(), Need::finite);
        requireAll(op.getGradientMutable(), Need::finite);
      })
      .Case([&](HeadLossGradOp op) {
        requireAll(op.getHiddenMutable(), Need::finite);
        requireAll(op.getWeightMutable(), Need::finite);
      })
      .Case<AccumulateOp, AssignOp>(
          [&](auto op) { requireAll(op.getValueMutable(), Need::zero); });
}

//===-- What is left --------------------------------------------------------//

static bool isMax(ReduceOp op) {
  return op.getKind() == transformer::Reduction::max;
}

Padding Masks::resultPadding(OpResult result, int64_t dim,
                             const Part &part) const {
  StringAttr name = dimsOf(part.whole).getNames()[dim];
  auto of = [&](Value value) { return paddingOf(value, name); };
  return llvm::TypeSwitch<Operation *, Padding>(result.getOwner())
      .Case([&](MapOp op) {
        return paddingOfMap(
            op,
            llvm::map_to_vector(op.getInputs(), of))[result.getResultNumber()];
      })
      .Case([&](ReduceOp op) {
        return isMax(op) ? of(op.getInput()) : sumOf(of(op.getInput()));
      })
      .Case([&](RollOp op) { return of(op.getInput()); })
      .Case([&](transformer::SliceOp op) { return of(op.getInput()); })
      .Case([&](UnsliceOp op) {
        Padding padding = zeroPadding(); // where no part lies
        for (Value value : op.getParts())
          padding = either(padding, of(value));
        return padding;
      })
      .Case([&](ContractOp op) {
        Padding sum = sumOf(times(of(op.getLhs()), of(op.getRhs())));
        return op.getBias() ? plus(sum, of(op.getBias())) : sum;
      })
      .Case([&](EmbeddingOp op) {
        return dimsOf(op.getIds()).find(name) >= 0 ? finitePadding()
                                                   : of(op.getTable());
      })
      .Case([&](EmbeddingGradOp op) {
        if (dim > 0)
          return sumOf(of(op.getGradient()));
        return overlaps(part.whole.getDimSize(0), part.sharding.dims[0])
                   ? anyPadding()
                   : zeroPadding();
      })
      .Case<HeadLossGradOp, transformer::AttentionGradOp,
            transformer::ParameterOp, StateOp>(
          [&](auto) { return zeroPadding(); })
      .Case([&](transformer::AttentionOp op) {
        return result == op.getResult() ? zeroPadding() : anyPadding();
      })
      .Default([](Operation *) { return anyPadding(); });
}

void Masks::derive(Operation *op, ArrayRef<Sharding> shardings) {
  for (auto [result, sharding] : llvm::zip_equal(op->getResults(), shardings)) {
    Part part{tensorType(result), sharding, {}};
    for (auto [dim, size] : llvm::enumerate(part.whole.getShape()))
      part.padding.push_back(
          isUneven(size, sharding.dims[dim])
              ? resultPadding(result, static_cast<int64_t>(dim), part)
              : realValue());
    parts[result] = part;
  }
}

void Masks::deriveStep(Value input, Value result, const Step &step,
                       RankedTensorType whole) {
  Part before = partOf(input), part{whole, step.after, {}};
  bool adds = step.kind == Step::Kind::allReduce ||
              step.kind == Step::Kind::reduceScatter;
  int64_t cut =
      step.kind == Step::Kind::allToAll ? step.toDim
      : step.kind == Step::Kind::slice || step.kind == Step::Kind::reduceScatter
          ? step.dim
          : -1;
  for (auto [dim, size] : llvm::enumerate(whole.getShape())) {
    Padding padding = adds ? sumOf(before.padding[dim]) : before.padding[dim];
    // Behind what is cut there are zeros.
    if (static_cast<int64_t>(dim) == cut)
      padding = isUneven(size, before.sharding.dims[dim])
                    ? either(padding, zeroPadding())
                    : zeroPadding();
    part.padding.push_back(isUneven(size, step.after.dims[dim]) ? padding
                                                                : realValue());
  }
  parts[result] = part;
}

} // namespace meshwork::partition
