// Each op says what it must not take in (guard), and what it leaves (derive).
#include "passes/partition/Mask.h"
#include "dialects/transformer/Facts.h"

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

OwnElements Masks::own(Operation *at, int64_t size, const Axes &axes,
                       StringAttr name) const {
  bool isTable = !onlyBlocks(axes);
  return {name,
          isTable ? positions(at, size, axes, name) : extent(at, size, axes),
          isTable};
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

/// What is put where something must not be taken in.
static double neutralOf(PaddingNeed::Kind need) {
  switch (need) {
  case PaddingNeed::finite:
  case PaddingNeed::zero:
    return 0;
  case PaddingNeed::lowest:
    return std::numeric_limits<float>::lowest();
  case PaddingNeed::negative:
    return -1;
  }
  llvm_unreachable("all kinds are there");
}

static TypedAttr constantOf(Builder &b, Value like, double number) {
  if (like.getType().isInteger())
    return b.getIntegerAttr(like.getType(), static_cast<int64_t>(number));
  return b.getF32FloatAttr(static_cast<float>(number));
}

Value Masks::masked(Operation *user, Value value, StringAttr dim,
                    PaddingNeed::Kind need) {
  Value &known =
      cache[{value.getAsOpaquePointer(), dim.getAsOpaquePointer(), need}];
  if (known)
    return known;
  Part part = partOf(value);
  int64_t at = dimsOf(value).find(dim);
  OwnElements mine =
      own(user, part.whole.getDimSize(at), part.sharding.dims[at], dim);
  double neutral = neutralOf(need);
  OpBuilder builder(user);
  known = buildMap(
      builder, value.getLoc(), value.getType(), {value, mine.operand},
      [&](ImplicitLocOpBuilder &b, ValueRange x) -> Value {
        Value isOwn = mine.test(b, x[1]);
        return arith::SelectOp::create(
            b, isOwn, x[0],
            arith::ConstantOp::create(b, constantOf(b, x[0], neutral)));
      });
  inheritFacts(user, known.getDefiningOp());
  part.padding[at] = constantPadding(neutral);
  parts[known] = part;
  return known;
}

void Masks::require(OpOperand &operand, StringAttr dim,
                    PaddingNeed::Kind need) {
  Padding padding = paddingOf(operand.get(), dim);
  bool fits =
      need == PaddingNeed::finite
          ? padding.isFinite
          : need != PaddingNeed::lowest && padding.constant == neutralOf(need);
  if (!fits && !padding.isReal)
    operand.set(masked(operand.getOwner(), operand.get(), dim, need));
}

void Masks::guard(Operation *op) {
  auto tensors = dyn_cast<TensorOpInterface>(op);
  if (!tensors)
    return;
  auto of = [&](Value value, StringAttr dim) { return paddingOf(value, dim); };
  for (const PaddingNeed &need : tensors.getPaddingNeeds(of))
    require(op->getOpOperand(need.operand), need.dim, need.kind);
}

//===-- What is left --------------------------------------------------------//

Padding Masks::resultPadding(OpResult result, int64_t dim,
                             const Part &part) const {
  auto tensors = dyn_cast<TensorOpInterface>(result.getOwner());
  if (!tensors)
    return anyPadding();
  auto of = [&](Value value, StringAttr name) {
    return paddingOf(value, name);
  };
  auto overlap = [&] {
    return overlaps(part.whole.getDimSize(dim), part.sharding.dims[dim]);
  };
  return tensors.getPadding(result.getResultNumber(),
                            static_cast<unsigned>(dim), of, overlap);
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
