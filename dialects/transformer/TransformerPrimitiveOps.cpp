// Primitive and step ops: builders and verifiers.
#include "dialects/transformer/Dims.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace meshwork::transformer;

#include "dialects/transformer/TransformerInterfaces.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/transformer/TransformerOps.cpp.inc"

//===-- map -----------------------------------------------------------------//

/// What a body sees of one element of `type`.
static Type scalarOf(Type type) {
  Type element = cast<RankedTensorType>(type).getElementType();
  return isa<FloatType>(element) || isNarrow(element)
             ? Float32Type::get(type.getContext())
             : element;
}

void MapOp::build(
    OpBuilder &builder, OperationState &state, TypeRange results,
    ValueRange inputs,
    function_ref<SmallVector<Value>(OpBuilder &, Location, ValueRange)> body) {
  state.addTypes(results);
  state.addOperands(inputs);
  OpBuilder::InsertionGuard guard(builder);
  SmallVector<Type> scalars = llvm::map_to_vector(
      inputs, [](Value value) { return scalarOf(value.getType()); });
  Block *block =
      builder.createBlock(state.addRegion(), {}, scalars,
                          SmallVector<Location>(inputs.size(), state.location));
  YieldOp::create(builder, state.location,
                  body(builder, state.location, block->getArguments()));
}

LogicalResult MapOp::verify() {
  if (getNumResults() == 0)
    return emitOpError() << "(C1) has no result";
  auto space = cast<RankedTensorType>(getResult(0).getType());
  for (Type type : getResultTypes()) {
    auto tensor = cast<RankedTensorType>(type);
    if (tensor.getShape() != space.getShape() ||
        dimsOf(tensor) != dimsOf(space))
      return emitOpError() << "(C1) result " << type << " differs in dims from "
                           << space;
  }
  for (Value input : getInputs())
    if (!isSubspace(tensorType(input), space))
      return emitOpError() << "(C2) operand " << input.getType()
                           << " has a dim that " << space
                           << " lacks or has with another size";
  Block &block = getBody().front();
  if (block.getNumArguments() != getInputs().size())
    return emitOpError() << "(C3) body has " << block.getNumArguments()
                         << " arguments for " << getInputs().size()
                         << " operands";
  for (auto [argument, input] :
       llvm::zip_equal(block.getArguments(), getInputs()))
    if (argument.getType() != scalarOf(input.getType()))
      return emitOpError() << "(C3) body argument is " << argument.getType()
                           << ", expected " << scalarOf(input.getType());
  auto yield = cast<YieldOp>(block.getTerminator());
  if (!llvm::equal(yield.getOperandTypes(),
                   llvm::map_range(getResultTypes(), scalarOf)))
    return emitOpError() << "(C3) body must yield one f32, or i32 where that "
                            "is its type, for each of the "
                         << getNumResults() << " results";
  for (Operation &op : block.without_terminator())
    if (!isa<arith::ArithDialect, math::MathDialect>(op.getDialect()) &&
        !isa<IndexOp, DrawOpInterface>(op))
      return emitOpError()
             << "(C4) body holds " << op.getName()
             << ", expected ops of arith and math, transformer.index, "
                "transformer.dropout_mask and transformer.stochastic_round";
  return success();
}

namespace {
/// Drops operands that the body does not read, merges equal operands, and
/// results nobody uses.
struct TrimMap : OpRewritePattern<MapOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(MapOp op,
                                PatternRewriter &rewriter) const override {
    Block &body = op.getBody().front();
    SmallVector<Value> inputs;
    SmallVector<int64_t> place(op.getInputs().size(), -1);
    for (auto [i, input] : llvm::enumerate(op.getInputs())) {
      if (body.getArgument(i).use_empty())
        continue;
      auto known = llvm::find(inputs, input);
      place[i] = known - inputs.begin();
      if (known == inputs.end())
        inputs.push_back(input);
    }
    SmallVector<unsigned> kept;
    for (OpResult result : op.getResults())
      if (!result.use_empty())
        kept.push_back(result.getResultNumber());
    if (kept.empty() || (inputs.size() == op.getInputs().size() &&
                         kept.size() == op.getNumResults()))
      return failure();
    SmallVector<Type> types = llvm::map_to_vector(
        kept, [&](unsigned i) -> Type { return op.getResult(i).getType(); });
    auto trimmed = MapOp::create(
        rewriter, op.getLoc(), types, inputs,
        [&](OpBuilder &b, Location, ValueRange arguments) {
          IRMapping mapping;
          for (auto [i, argument] : llvm::enumerate(body.getArguments()))
            if (place[i] >= 0)
              mapping.map(argument, arguments[place[i]]);
          for (Operation &inner : body.without_terminator())
            b.clone(inner, mapping);
          Operation *yield = body.getTerminator();
          return llvm::map_to_vector(kept, [&](unsigned i) {
            return mapping.lookupOrDefault(yield->getOperand(i));
          });
        });
    trimmed->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    SmallVector<Value> replacements(op.getNumResults());
    for (auto [i, result] : llvm::zip_equal(kept, trimmed.getResults()))
      replacements[i] = result;
    for (auto [i, value] : llvm::enumerate(replacements))
      if (value)
        rewriter.replaceAllUsesWith(op.getResult(i), value);
    rewriter.eraseOp(op);
    return success();
  }
};

/// Forwards a result that is just an operand of its type.
struct ForwardIdentity : OpRewritePattern<MapOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(MapOp op,
                                PatternRewriter &rewriter) const override {
    bool changed = false;
    Operation *yield = op.getBody().front().getTerminator();
    for (OpResult result : op.getResults()) {
      auto argument =
          dyn_cast<BlockArgument>(yield->getOperand(result.getResultNumber()));
      if (!argument || argument.getOwner() != &op.getBody().front() ||
          result.use_empty() ||
          op.getInputs()[argument.getArgNumber()].getType() != result.getType())
        continue;
      rewriter.replaceAllUsesWith(result,
                                  op.getInputs()[argument.getArgNumber()]);
      changed = true;
    }
    return success(changed);
  }
};
} // namespace

void MapOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                        MLIRContext *context) {
  patterns.add<TrimMap, ForwardIdentity>(context);
}

namespace meshwork::transformer {
Value buildMap(OpBuilder &builder, Location loc, Type result, ValueRange inputs,
               function_ref<Value(ImplicitLocOpBuilder &, ValueRange)> body) {
  auto map =
      MapOp::create(builder, loc, result, inputs,
                    [&](OpBuilder &b, Location loc, ValueRange arguments) {
                      ImplicitLocOpBuilder inner(loc, b);
                      return SmallVector<Value>{body(inner, arguments)};
                    });
  return map.getResult(0);
}

Value buildSum(OpBuilder &builder, Location loc, Value a, Value b) {
  return buildMap(builder, loc, a.getType(), {a, b},
                  [](ImplicitLocOpBuilder &inner, ValueRange x) -> Value {
                    return arith::AddFOp::create(inner, x[0], x[1]);
                  });
}

Value reduceTo(OpBuilder &builder, Location loc, Value value,
               RankedTensorType wanted) {
  SmallVector<StringAttr> extra;
  for (StringAttr name : dimsOf(value).getNames())
    if (dimsOf(wanted).find(name) < 0)
      extra.push_back(name);
  if (!extra.empty())
    value = ReduceOp::create(builder, loc, Reduction::add, value,
                             DimsAttr::get(builder.getContext(), extra));
  // An operand may have its dims in another order than the space it is read in.
  if (dimsOf(value) == dimsOf(wanted))
    return value;
  return buildMap(
      builder, loc, withElement(wanted, tensorType(value).getElementType()),
      value, [](ImplicitLocOpBuilder &, ValueRange x) { return x[0]; });
}
//===-- sums of numbers -----------------------------------------------------//

/// Terms that one map adds. A model has hundreds of parameters, and a GPU's
/// kernel takes 544 arguments.
static constexpr size_t maxTerms = 256;

static Value addAll(ImplicitLocOpBuilder &b, ArrayRef<Value> terms) {
  return buildMap(b, b.getLoc(), RankedTensorType::get({}, b.getF32Type()),
                  terms, [](ImplicitLocOpBuilder &i, ValueRange x) -> Value {
                    Value sum =
                        arith::ConstantOp::create(i, i.getF32FloatAttr(0));
                    for (Value term : x)
                      sum = arith::AddFOp::create(i, sum, term);
                    return sum;
                  });
}

Value buildSum(ImplicitLocOpBuilder &b, ArrayRef<Value> numbers) {
  SmallVector<Value> terms(numbers);
  while (terms.size() > maxTerms) {
    SmallVector<Value> sums;
    for (ArrayRef<Value> rest = terms; !rest.empty();
         rest = rest.drop_front(std::min(rest.size(), maxTerms)))
      sums.push_back(addAll(b, rest.take_front(maxTerms)));
    terms = std::move(sums);
  }
  return addAll(b, terms);
}

} // namespace meshwork::transformer

//===-- reduce, roll --------------------------------------------------------//

void ReduceOp::build(OpBuilder &builder, OperationState &state, Reduction kind,
                     Value input, DimsAttr dims) {
  build(builder, state, dropDims(tensorType(input), dims, builder.getF32Type()),
        kind, input, dims);
}

LogicalResult ReduceOp::verify() {
  for (StringAttr name : getDims().getNames())
    if (dimsOf(getInput()).find(name) < 0)
      return emitOpError() << "(C1) input " << getInput().getType()
                           << " has no dim '" << name.getValue() << "'";
  auto wanted = dropDims(tensorType(getInput()), getDims(),
                         Float32Type::get(getContext()));
  if (wanted != getType())
    return emitOpError() << "(C1) result is " << getType() << ", expected "
                         << wanted;
  return success();
}

LogicalResult RollOp::verify() {
  auto type = tensorType(getInput());
  int64_t shift = getShift();
  if (type.getRank() == 0 || shift < 0 || shift >= type.getShape().back())
    return emitOpError()
           << "(C1) shift is " << shift
           << ", expected at least 0 and less than the last dim of " << type;
  return success();
}

//===-- slice, unslice ------------------------------------------------------//

int64_t SliceOp::getPosition() { return dimsOf(getInput()).find(getDimAttr()); }
bool SliceOp::dropsDim() {
  return tensorType(getResult()).getRank() < tensorType(getInput()).getRank();
}

/// Whether `part` is what a slice of `whole` at `dim`, `offset` yields; label
/// C1.
static LogicalResult verifySlice(Operation *op, RankedTensorType whole,
                                 RankedTensorType part, StringAttr dim,
                                 int64_t offset) {
  int64_t position = dimsOf(whole).find(dim);
  if (position < 0)
    return op->emitOpError()
           << "(C1) " << whole << " has no dim '" << dim.getValue() << "'";
  bool drops = part.getRank() == whole.getRank() - 1;
  if (!drops && part.getRank() != whole.getRank())
    return op->emitOpError() << "(C1) " << part << " is no slice of " << whole;
  int64_t size = drops ? 1 : part.getDimSize(position),
          total = whole.getDimSize(position);
  bool bounded = ShapedType::isDynamic(size) || ShapedType::isDynamic(total) ||
                 offset <= total - size;
  if (offset < 0 || !bounded) {
    int64_t end;
    if (llvm::AddOverflow(offset, size, end))
      end = std::numeric_limits<int64_t>::max();
    return op->emitOpError()
           << "(C1) elements " << offset << " to " << end << " of dim '"
           << dim.getValue() << "' do not exist, its size is " << total;
  }
  for (int64_t i = 0; i < whole.getRank(); ++i) {
    if (i == position)
      continue;
    int64_t j = i - (drops && i > position);
    if (part.getDimSize(j) != whole.getDimSize(i) ||
        dimsOf(part).getNames()[j] != dimsOf(whole).getNames()[i])
      return op->emitOpError() << "(C1) dim " << j << " of " << part
                               << " differs from dim " << i << " of " << whole;
  }
  return success();
}

LogicalResult SliceOp::verify() {
  return verifySlice(*this, tensorType(getInput()), tensorType(getResult()),
                     getDimAttr(), getOffset());
}

LogicalResult UnsliceOp::verify() {
  if (getParts().size() != getOffsets().size())
    return emitOpError() << "(C1) " << getParts().size() << " parts but "
                         << getOffsets().size() << " offsets";
  auto whole = tensorType(getResult());
  int64_t end = 0;
  for (auto [part, offset] : llvm::zip_equal(getParts(), getOffsets())) {
    if (failed(
            verifySlice(*this, whole, tensorType(part), getDimAttr(), offset)))
      return failure();
    if (offset < end)
      return emitOpError() << "(C1) a part begins at " << offset << " before "
                           << end << ", the end of the part before it";
    bool drops = tensorType(part).getRank() < whole.getRank();
    end =
        offset +
        (drops ? 1
               : tensorType(part).getDimSize(dimsOf(whole).find(getDimAttr())));
  }
  return success();
}

//===-- split, merge --------------------------------------------------------//

/// Whether `parts` has several dims in the place of `dim`, else as `whole` has
/// them; label C1.
static LogicalResult verifySplit(Operation *op, RankedTensorType whole,
                                 RankedTensorType parts, StringAttr dim) {
  int64_t position = dimsOf(whole).find(dim),
          count = parts.getRank() - whole.getRank() + 1;
  if (position < 0)
    return op->emitOpError()
           << "(C1) " << whole << " has no dim '" << dim.getValue() << "'";
  auto isSame = [&](int64_t i) {
    int64_t j = i + (i > position ? count - 1 : 0);
    return whole.getDimSize(i) == parts.getDimSize(j) &&
           dimsOf(whole).getNames()[i] == dimsOf(parts).getNames()[j];
  };
  bool fine = count > 1;
  for (int64_t i = 0; fine && i < whole.getRank(); ++i)
    fine = i == position || isSame(i);
  int64_t size = 1;
  for (int64_t i = 0; fine && i < count; ++i)
    fine = !llvm::MulOverflow(size, parts.getDimSize(position + i), size);
  if (fine && size == whole.getDimSize(position))
    return success();
  return op->emitOpError() << "(C1) " << parts << " is not " << whole
                           << " with several dims in the place of '"
                           << dim.getValue() << "'";
}

LogicalResult SplitOp::verify() {
  return verifySplit(*this, tensorType(getInput()), tensorType(getResult()),
                     getDimAttr());
}

LogicalResult MergeOp::verify() {
  return verifySplit(*this, tensorType(getResult()), tensorType(getInput()),
                     getDimAttr());
}

//===-- fused ---------------------------------------------------------------//

LogicalResult FusedOp::verify() {
  for (StringAttr name : getRows().getNames())
    if (getCols().find(name) >= 0)
      return emitOpError() << "(C1) dim '" << name.getValue()
                           << "' is in rows and in cols";
  Block &block = getBody().front();
  if (block.getArgumentTypes() != getInputs().getTypes())
    return emitOpError()
           << "(C1) body arguments differ in type from the operands";
  auto yield = cast<YieldOp>(block.getTerminator());
  if (yield.getNumOperands() != getNumResults())
    return emitOpError() << "(C2) yields " << yield.getNumOperands()
                         << " values for " << getNumResults() << " results";
  int64_t chunks = 0;
  for (auto [value, result] :
       llvm::zip_equal(yield.getValues(), getResults())) {
    auto full = tensorType(result);
    if (value.getType() == full)
      continue;
    if (!isOfChunks(full) || dropDims(full, chunkDims(getContext()),
                                      full.getElementType()) != value.getType())
      return emitOpError() << "(C2) result is " << full << ", expected "
                           << value.getType() << " or that after a dim `chunk`";
    if (chunks && chunks != full.getDimSize(0))
      return emitOpError() << "(C2) results have " << chunks << " and "
                           << full.getDimSize(0) << " chunks";
    chunks = full.getDimSize(0);
  }
  for (Operation &inner : block.without_terminator())
    if (!isFusible(&inner))
      return emitOpError() << "(C3) holds " << inner.getName()
                           << ", expected map, reduce or roll";
  return success();
}
