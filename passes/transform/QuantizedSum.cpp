#include "passes/transform/QuantizedSum.h"
#include "passes/transform/Rounding.h"

using namespace mlir;
namespace meshwork::transform {
using namespace transformer;

/// A byte of two numbers holds the first and 16 times the second.
static constexpr float secondOfByte = 16;

/// Scales of shorter blocks would be a quarter of what travels.
static constexpr int64_t shortest = 16;

/// The largest divisor of `size` up to `most` that is a multiple of `step`; or
/// the smallest above where that is too short. 0: there is none.
static int64_t lengthOf(int64_t size, int64_t most, int64_t step) {
  auto fits = [&](int64_t length) {
    return size % length == 0 && length % step == 0;
  };
  for (int64_t length = std::min(size, most); length >= shortest; --length)
    if (fits(length))
      return length;
  for (int64_t length = std::min(size, most); length <= size; ++length)
    if (fits(length))
      return length;
  return 0;
}

Blocks::Blocks(RankedTensorType type, int64_t scattered,
               spec::GradientType bits, int64_t most)
    : dim(type.getRank() - (scattered == type.getRank() - 1 ? 2 : 1)) {
  int64_t size = type.getDimSize(dim), even = lengthOf(size, most, 2);
  parts = bits == spec::GradientType::int4 && even > 0 ? 2 : 1;
  length = parts == 2 ? even : lengthOf(size, most, 1);
  count = size / length;
}

StringAttr QuantizedSum::fresh(StringRef base) const {
  auto name = StringAttr::get(whole.getContext(), base);
  while (dimsOf(whole).find(name) >= 0)
    name = StringAttr::get(whole.getContext(), name.getValue() + "_");
  return name;
}

/// `type` with these in the place of the dim at `at`.
static RankedTensorType with(RankedTensorType type, int64_t at,
                             ArrayRef<std::pair<StringAttr, int64_t>> dims) {
  SmallVector<int64_t> shape(type.getShape());
  SmallVector<StringAttr> names(dimsOf(type).getNames());
  shape.erase(shape.begin() + at);
  names.erase(names.begin() + at);
  for (auto [name, size] : llvm::reverse(dims)) {
    shape.insert(shape.begin() + at, size);
    names.insert(names.begin() + at, name);
  }
  return namedType(shape, DimsAttr::get(type.getContext(), names),
                   type.getElementType());
}

/// `type` with the dim `first` in front and `last` at the end.
static RankedTensorType between(RankedTensorType type, StringAttr first,
                                StringAttr last) {
  DimsAttr names = dimsOf(type);
  SmallVector<int64_t> order = {names.find(first)};
  for (int64_t i = 0; i < type.getRank(); ++i)
    if (names.getNames()[i] != first && names.getNames()[i] != last)
      order.push_back(i);
  order.push_back(names.find(last));
  auto inOrder = [&](auto of) { return llvm::map_to_vector(order, of); };
  return namedType(inOrder([&](int64_t i) { return type.getDimSize(i); }),
                   DimsAttr::get(type.getContext(), inOrder([&](int64_t i) {
                                   return names.getNames()[i];
                                 })),
                   type.getElementType());
}

static RankedTensorType withSize(RankedTensorType type, int64_t at,
                                 int64_t size) {
  return with(type, at, {{dimsOf(type).getNames()[at], size}});
}

Value QuantizedSum::run(Value gradient, Type element, StringAttr parameter) {
  whole = tensorType(gradient);
  inner = dimsOf(whole).getNames()[blocks.dim];
  outer = fresh("blocks");
  halves = fresh("halves");
  ranks = fresh("ranks");
  SmallVector<Value> parts = cut(gradient);
  auto [scale, inverse] = scalesOf(parts);
  if (errors)
    for (Value part : parts)
      errors->push_back(squaredError(part, scale, inverse));
  Value numbers = perRank(exchanged(rounded(parts, scale))),
        scales = perRank(exchanged(inverse));
  Value sum = joined(sumsOf(numbers, scales, element));
  int64_t size = whole.getDimSize(op.getDim());
  auto type = withSize(whole, op.getDim(), llvm::divideCeil(size, over.ranks));
  return MergeOp::create(b, withElement(type, element), sum, inner, parameter);
}

/// Into blocks, or the halves of blocks.
SmallVector<Value> QuantizedSum::cut(Value gradient) {
  int64_t size = blocks.length / blocks.parts;
  Dim block{outer, blocks.count}, numbers{inner, size},
      half{halves, blocks.parts};
  RankedTensorType type = with(whole, blocks.dim, {block, numbers});
  if (blocks.parts == 1)
    return {SplitOp::create(b, type, gradient, inner)};
  Value all = SplitOp::create(
      b, with(whole, blocks.dim, {block, half, numbers}), gradient, inner);
  return llvm::map_to_vector(llvm::seq(blocks.parts), [&](int64_t i) -> Value {
    return transformer::SliceOp::create(b, type, all, halves,
                                        b.getI64IntegerAttr(i));
  });
}

static Value number(ImplicitLocOpBuilder &b, float value) {
  return arith::ConstantOp::create(b, b.getF32FloatAttr(value));
}

/// An infinity or a NaN makes all of its block NaN. Blocks come first, and what
/// is within them last: kernels reduce over leading and trailing dims.
std::pair<Value, Value> QuantizedSum::scalesOf(ArrayRef<Value> parts) {
  auto within = DimsAttr::get(b.getContext(), ArrayRef<StringAttr>(inner));
  auto largest = llvm::map_to_vector(parts, [&](Value part) -> Value {
    return largestMagnitude(b, part, within,
                            between(tensorType(part), outer, inner));
  });
  Type type = withElement(largest[0].getType(), b.getF32Type());
  auto both =
      MapOp::create(b, TypeRange{type, type}, largest,
                    [&](OpBuilder &builder, mlir::Location loc, ValueRange x) {
                      ImplicitLocOpBuilder inside(loc, builder);
                      Value most = x[0];
                      for (Value other : x.drop_front())
                        most = arith::MaximumFOp::create(inside, most, other);
                      return factorsTo(inside, most, blocks.largest());
                    });
  return {both.getResult(0), both.getResult(1)};
}

/// Rounded as it is stored, but for two numbers that share a byte.
static Value byteOf(ImplicitLocOpBuilder &b, ValueRange scaled) {
  if (scaled.size() == 1)
    return scaled[0];
  Value first = math::RoundEvenOp::create(b, scaled[0]),
        second = math::RoundEvenOp::create(b, scaled[1]);
  return arith::AddFOp::create(
      b, first, arith::MulFOp::create(b, second, number(b, secondOfByte)));
}

static SmallVector<Value> numbersOf(ImplicitLocOpBuilder &b, Value byte,
                                    int64_t count) {
  if (count == 1)
    return {byte};
  Value second = math::RoundEvenOp::create(
      b, arith::MulFOp::create(b, byte, number(b, 1 / secondOfByte)));
  Value rest = arith::MulFOp::create(b, second, number(b, secondOfByte));
  return {arith::SubFOp::create(b, byte, rest), second};
}

Value QuantizedSum::rounded(ArrayRef<Value> parts, Value scale) {
  SmallVector<Value> inputs(parts);
  inputs.push_back(scale);
  return buildMap(
      b, b.getLoc(),
      withElement(between(tensorType(parts[0]), outer, inner), b.getI8Type()),
      inputs, [](ImplicitLocOpBuilder &inside, ValueRange x) {
        auto scaled = llvm::map_to_vector(x.drop_back(), [&](Value v) -> Value {
          return arith::MulFOp::create(inside, v, x.back());
        });
        return byteOf(inside, scaled);
      });
}

Value QuantizedSum::squaredError(Value part, Value scale, Value inverse) {
  Value squares = buildMap(
      b, b.getLoc(),
      withElement(between(tensorType(part), outer, inner), b.getF32Type()),
      {part, scale, inverse}, [](ImplicitLocOpBuilder &i, ValueRange x) {
        Value scaled = arith::MulFOp::create(i, x[0], x[1]),
              rounded = math::RoundEvenOp::create(i, scaled),
              wide = arith::MulFOp::create(i, rounded, x[2]);
        Value error = arith::SubFOp::create(i, wide, x[0]);
        return arith::MulFOp::create(i, error, error);
      });
  return ReduceOp::create(b, transformer::Reduction::add, squares,
                          dimsOf(squares));
}

/// From each rank what is this rank's, block behind block.
Value QuantizedSum::exchanged(Value value) {
  auto type = tensorType(value);
  StringAttr scattered = dimsOf(whole).getNames()[op.getDim()];
  int64_t gather = dimsOf(type).find(outer),
          split = dimsOf(type).find(scattered);
  type = withSize(type, gather, type.getDimSize(gather) * over.ranks);
  type = withSize(type, split,
                  llvm::divideCeil(type.getDimSize(split), over.ranks));
  return mesh::AllToAllOp::create(b, type, value, b.getI64IntegerAttr(gather),
                                  b.getI64IntegerAttr(split), over.axes,
                                  op.getCause());
}

Value QuantizedSum::perRank(Value value) {
  auto type = tensorType(value);
  return SplitOp::create(b,
                         with(type, dimsOf(type).find(outer),
                              {{ranks, over.ranks}, {outer, blocks.count}}),
                         value, outer);
}

/// Made wide and added up, one for each part of a block, with dims in the order
/// of the gradient.
SmallVector<Value> QuantizedSum::sumsOf(Value numbers, Value scales,
                                        Type element) {
  int64_t size = whole.getDimSize(op.getDim());
  RankedTensorType inPlace =
      with(withSize(whole, op.getDim(), llvm::divideCeil(size, over.ranks)),
           blocks.dim,
           {{outer, blocks.count}, {inner, blocks.length / blocks.parts}});
  SmallVector<Type> types(blocks.parts,
                          withElement(numbers.getType(), b.getF32Type()));
  auto wide = MapOp::create(
      b, types, ValueRange{numbers, scales},
      [&](OpBuilder &builder, mlir::Location loc, ValueRange x) {
        ImplicitLocOpBuilder inside(loc, builder);
        return llvm::map_to_vector(
            numbersOf(inside, x[0], blocks.parts), [&](Value v) -> Value {
              return arith::MulFOp::create(inside, v, x[1]);
            });
      });
  auto all = DimsAttr::get(b.getContext(), ArrayRef<StringAttr>(ranks));
  return llvm::map_to_vector(wide.getResults(), [&](Value value) -> Value {
    Value sum = ReduceOp::create(b, transformer::Reduction::add, value, all);
    return buildMap(b, b.getLoc(), withElement(inPlace, element), sum,
                    [](ImplicitLocOpBuilder &, ValueRange x) { return x[0]; });
  });
}

Value QuantizedSum::joined(ArrayRef<Value> sums) {
  if (sums.size() == 1)
    return sums[0];
  auto type = tensorType(sums[0]);
  int64_t at = dimsOf(type).find(inner);
  return UnsliceOp::create(
      b, with(type, at, {{halves, blocks.parts}, {inner, type.getDimSize(at)}}),
      sums, halves,
      b.getDenseI64ArrayAttr(llvm::to_vector(llvm::seq(blocks.parts))));
}

} // namespace meshwork::transform
