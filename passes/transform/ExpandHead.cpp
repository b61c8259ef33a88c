// Language-model head and cross-entropy over chunks of tokens. A chunk is a few
// whole sequences, or a part of one: contiguous rows either way.
#include "dialects/mesh/Mesh.h"
#include "dialects/transformer/Facts.h"
#include "passes/transform/Passes.h"

using namespace mlir;
namespace meshwork::transform {
#define GEN_PASS_DEF_EXPANDHEADPASS
#include "passes/transform/Passes.h.inc"
namespace {
using namespace transformer;

/// Chunks of one head.
class HeadExpansion {
public:
  HeadExpansion(HeadLossGradOp op, int64_t chunk, int64_t roundedChunks)
      : op(op), b(op.getLoc(), op), chunk(std::max<int64_t>(chunk, 1)) {
    isAccumulated =
        llvm::all_of(op.getDweight().getUsers(), llvm::IsaPred<AccumulateOp>);
    Type kept = isAccumulated ? gradientType()
                              : tensorType(op.getDweight()).getElementType();
    sumsInF32 =
        kept.isBF16() &&
        countChunks(tensorType(op.getTargets()).getShape()) > roundedChunks;
  }

  /// Replaces the op. Its hidden is [batch, sequence, embed] or [sequence,
  /// embed].
  void run() {
    auto [loss, dhidden] =
        rows({op.getHidden(), op.getTargets(), op.getValid()});
    Value total = ReduceOp::create(b, Reduction::add, loss, dimsOf(loss));
    op.getLoss().replaceAllUsesWith(total);
    op.getDhidden().replaceAllUsesWith(dhidden);
    finishWeightGradient();
    op.erase();
  }

private:
  using Part = std::pair<Value, Value>; // losses per token, gradient of hidden
  /// Per chunk: a slice of each.
  struct Chunk {
    Value hidden, targets, valid;
  };
  /// Scalars that a body sees besides those of the formula; null where the op
  /// has no such operand.
  struct Inputs {
    ValueRange formula;
    Value firstRow, rows, valid, counted;
    Value operator[](size_t i) const { return formula[i]; }
  };

  Value slice(Value value, StringAttr dim, int64_t offset, int64_t size) {
    auto type = tensorType(value);
    int64_t position = dimsOf(type).find(dim);
    if (type.getDimSize(position) == size)
      return value;
    SmallVector<int64_t> shape(type.getShape());
    shape[position] = size;
    Type part =
        RankedTensorType::get(shape, type.getElementType(), type.getEncoding());
    return SliceOp::create(b, part, value, dim, offset);
  }

  Chunk slice(const Chunk &all, StringAttr dim, int64_t offset, int64_t size) {
    return {slice(all.hidden, dim, offset, size),
            slice(all.targets, dim, offset, size),
            all.valid ? slice(all.valid, dim, offset, size) : Value()};
  }

  /// Parts of `step` entries of one dim.
  struct Split {
    size_t position;
    int64_t step;
  };
  /// Along the first dim that leaves parts of at most `chunk` tokens; none
  /// where all are no more.
  std::optional<Split> splitOf(ArrayRef<int64_t> shape) const {
    int64_t tokens = ShapedType::getNumElements(shape);
    if (tokens <= chunk)
      return std::nullopt;
    size_t position = 0;
    while (position + 1 < shape.size() && shape[position] == 1)
      ++position;
    int64_t perEntry = tokens / shape[position];
    return Split{position, std::max<int64_t>(
                               1, std::min(chunk / perEntry, shape[position]))};
  }

  int64_t countChunks(ArrayRef<int64_t> shape) const {
    std::optional<Split> split = splitOf(shape);
    if (!split)
      return 1;
    auto ofPart = [&](int64_t size) {
      SmallVector<int64_t> part(shape);
      part[split->position] = size;
      return countChunks(part);
    };
    int64_t size = shape[split->position], rest = size % split->step;
    return size / split->step * ofPart(split->step) + (rest ? ofPart(rest) : 0);
  }

  Part rows(Chunk all) {
    auto [hidden, targets, valid] = all;
    ArrayRef<int64_t> shape = tensorType(targets).getShape();
    std::optional<Split> split = splitOf(shape);
    if (!split)
      return oneChunk(all);
    auto [position, step] = *split;
    StringAttr dim = dimsOf(targets).getNames()[position];
    SmallVector<Value> losses, gradients;
    SmallVector<int64_t> offsets;
    int64_t at = 0, end = shape[position];
    auto add = [&](int64_t size, int64_t times) {
      Chunk part = slice(all, dim, at, size * times);
      auto [loss, gradient] =
          times > 1 ? repeated(part, dim, times) : rows(part);
      losses.push_back(loss);
      gradients.push_back(gradient);
      offsets.push_back(at);
      at += size * times;
    };
    if (!hasSum) // The first chunk makes what the others add to.
      add(step, 1);
    if (int64_t times = (end - at) / step)
      add(step, times);
    if (at < end)
      add(end - at, 1);
    if (losses.size() == 1)
      return {losses[0], gradients[0]};
    return {UnsliceOp::create(b, lossOf(targets), losses, dim,
                              b.getDenseI64ArrayAttr(offsets)),
            UnsliceOp::create(b, hidden.getType(), gradients, dim,
                              b.getDenseI64ArrayAttr(offsets))};
  }

  /// The same for `times` parts along `dim`, one after the other.
  Part repeated(Chunk all, StringAttr dim, int64_t times) {
    SmallVector<Value> cut = {all.hidden, all.targets}, carried;
    if (all.valid)
      cut.push_back(all.valid);
    if (sumOfChunks)
      carried.push_back(sumOfChunks);
    SmallVector<Type> results = {lossOf(all.targets), all.hidden.getType()};
    llvm::append_range(results, TypeRange(ValueRange(carried)));
    auto repeat =
        RepeatOp::create(b, results, b.getI64IntegerAttr(times), dim,
                         /*count=*/Value(), cut, carried, ValueRange());
    Block &body = repeat.getBody().emplaceBlock();
    for (Value whole : cut)
      body.addArgument(repeat.partOf(whole.getType()), whole.getLoc());
    for (Value sum : carried)
      body.addArgument(sum.getType(), sum.getLoc());
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToEnd(&body);
      if (sumOfChunks)
        sumOfChunks = repeat.carriedArguments()[0];
      auto [loss, gradient] =
          rows({body.getArgument(0), body.getArgument(1),
                all.valid ? Value(body.getArgument(2)) : Value()});
      SmallVector<Value> yields = {loss, gradient};
      if (sumOfChunks)
        yields.push_back(sumOfChunks);
      YieldOp::create(b, yields);
    }
    repeat.shareCaptured();
    if (sumOfChunks)
      sumOfChunks = repeat.carriedResults()[0];
    return {repeat.getResult(0), repeat.getResult(1)};
  }

  Type lossOf(Value targets) {
    return withElement(targets.getType(), b.getF32Type());
  }

  Value number(ImplicitLocOpBuilder &inner, double value) {
    return arith::ConstantOp::create(
        inner, inner.getF32FloatAttr(static_cast<float>(value)));
  }

  /// Whether this element of the logits is its token's target.
  Value isTarget(ImplicitLocOpBuilder &inner, const Inputs &x, Value target) {
    Value token = IndexOp::create(inner, inner.getI32Type(), vocab());
    if (op.getFirstRow())
      token = arith::AddIOp::create(inner, token, x.firstRow);
    return arith::CmpIOp::create(inner, arith::CmpIPredicate::eq, token,
                                 target);
  }
  /// `value`, or `padding` where the row is none of the vocabulary.
  Value within(ImplicitLocOpBuilder &inner, const Inputs &x, Value value,
               float padding) {
    if (!op.getRows())
      return value;
    Value row = IndexOp::create(inner, inner.getI32Type(), vocab());
    Value isRow =
        arith::CmpIOp::create(inner, arith::CmpIPredicate::slt, row, x.rows);
    return arith::SelectOp::create(inner, isRow, value, number(inner, padding));
  }
  /// `value`, or zero where the token is none of the batch.
  Value ofToken(ImplicitLocOpBuilder &inner, const Inputs &x, Value value) {
    if (!op.getValid())
      return value;
    Value zero = number(inner, 0);
    return arith::SelectOp::create(
        inner,
        arith::CmpFOp::create(inner, arith::CmpFPredicate::OGT, x.valid, zero),
        value, zero);
  }
  /// What a token's loss is multiplied with.
  Value weightOf(ImplicitLocOpBuilder &inner, const Inputs &x) {
    Value scale = number(inner, op.getScale().convertToDouble());
    if (!op.getCounted())
      return scale;
    Value one = number(inner, 1);
    Value isMore =
        arith::CmpFOp::create(inner, arith::CmpFPredicate::OGT, x.counted, one);
    return arith::DivFOp::create(
        inner, scale, arith::SelectOp::create(inner, isMore, x.counted, one));
  }
  double cap() { return op.getCap().convertToDouble(); }
  /// A logit, with the head's cap if it has one. Caps keep the order of
  /// logits: the largest one may be capped after it is found.
  Value capped(ImplicitLocOpBuilder &inner, Value logit) {
    if (cap() == 0)
      return logit;
    Value bound = number(inner, cap());
    return arith::MulFOp::create(
        inner, bound,
        math::TanhOp::create(inner,
                             arith::DivFOp::create(inner, logit, bound)));
  }
  /// `gradient` of a capped logit as that of the logit before.
  Value throughCap(ImplicitLocOpBuilder &inner, Value logit, Value gradient) {
    if (cap() == 0)
      return gradient;
    Value share = arith::DivFOp::create(inner, logit, number(inner, cap()));
    Value square = arith::MulFOp::create(inner, share, share);
    return arith::MulFOp::create(
        inner, gradient,
        arith::SubFOp::create(inner, number(inner, 1), square));
  }
  /// Over the ranks that share the vocabulary.
  Value combined(Value value, mesh::Reduction reduction, const Twine &what) {
    if (!op.getFirstRow())
      return value;
    constexpr int64_t none = mesh::CauseAttr::noLayer;
    auto cause = mesh::CauseAttr::get(
        b.getContext(), b.getStringAttr(what), none, b.getStringAttr(""), none,
        b.getStringAttr("over a split vocabulary"), {});
    return mesh::AllReduceOp::create(b, value.getType(), value, reduction,
                                     *op.getVocabAxes(), cause);
  }
  StringAttr vocab() { return dimsOf(op.getWeight()).getNames()[0]; }

  Part oneChunk(Chunk chunk) {
    auto [hidden, targets, valid] = chunk;
    // Letters: tokens from 'a' on, then v and z for vocab and embed.
    std::string tokens;
    for (int64_t i = 0; i < tensorType(targets).getRank(); ++i)
      tokens.push_back(static_cast<char>('a' + i));
    auto equation = [&](const Twine &text) { return b.getStringAttr(text); };
    SmallVector<int64_t> shape(tensorType(targets).getShape());
    SmallVector<StringAttr> names(dimsOf(targets).getNames());
    shape.push_back(tensorType(op.getWeight()).getDimSize(0));
    names.push_back(vocab());
    DimsAttr dims = DimsAttr::get(b.getContext(), names),
             vocabDim =
                 DimsAttr::get(b.getContext(), ArrayRef(names).take_back());
    Type logitsType =
        namedType(shape, dims, tensorType(hidden).getElementType());
    Value logits = ContractOp::create(
        b, logitsType, equation(tokens + "z,vz->" + tokens + "v"), hidden,
        op.getWeight());
    // Where the backward pass begins, which has the loss with its gradient.
    setHead(logits.getDefiningOp());

    auto [loss, dlogits] = crossEntropy(logits, targets, valid, vocabDim);
    Value gradient = ContractOp::create(
        b, hidden.getType(), equation(tokens + "v,vz->" + tokens + "z"),
        dlogits, op.getWeight());
    addWeightGradient(equation(tokens + "v," + tokens + "z->vz"), dlogits,
                      hidden);
    return {loss, gradient};
  }

  Type gradientType() {
    return gradientTypeOf(op->getParentOfType<ModuleOp>());
  }

  /// A gradient that is only accumulated is so by each chunk, where it is kept.
  /// One that is used otherwise, reduced to a rank's part say, or that would be
  /// rounded after each of many chunks, is summed first.
  void addWeightGradient(StringAttr equation, Value dlogits, Value hidden) {
    Type type = op.getWeight().getType();
    if (sumsInF32)
      type = withElement(type, b.getF32Type());
    bool keepsSum = !isAccumulated || sumsInF32;
    Value chunk =
        ContractOp::create(b, type, equation, dlogits, hidden, ValueRange(),
                           keepsSum ? sumOfChunks : Value());
    hasSum = true;
    if (keepsSum)
      sumOfChunks = chunk;
    else
      for (Operation *user : op.getDweight().getUsers())
        AccumulateOp::create(b, cast<AccumulateOp>(user).getKey(), chunk);
  }

  void finishWeightGradient() {
    Value sum = sumOfChunks;
    if (!sum) {
      for (Operation *accumulation :
           llvm::make_early_inc_range(op.getDweight().getUsers()))
        accumulation->erase();
      return;
    }
    if (sumsInF32 && !isAccumulated)
      sum = buildMap(b, op.getLoc(), op.getDweight().getType(), sum,
                     [](ImplicitLocOpBuilder &, ValueRange x) { return x[0]; });
    op.getDweight().replaceAllUsesWith(sum);
  }

  Part crossEntropy(Value logits, Value targets, Value valid,
                    DimsAttr vocabDim) {
    Type full = logits.getType();
    auto map = [&](Type type, ValueRange inputs, Body body) {
      return mapWith(valid, type, inputs, body);
    };
    if (op.getRows())
      logits = map(full, {logits}, [&](auto &i, auto &x) {
        return within(i, x, x[0], std::numeric_limits<float>::lowest());
      });
    Value maximum =
        combined(ReduceOp::create(b, Reduction::max, logits, vocabDim),
                 mesh::Reduction::max, "maximum logit");
    Value exponentials =
        map(full, {logits, maximum}, [&](auto &i, auto &x) -> Value {
          return within(
              i, x,
              math::ExpOp::create(i, arith::SubFOp::create(i, capped(i, x[0]),
                                                           capped(i, x[1]))),
              0);
        });
    Value ownSum = ReduceOp::create(b, Reduction::add, exponentials, vocabDim);
    Value chosen = map(full, {logits, targets}, [&](auto &i, auto &x) -> Value {
      return within(
          i, x,
          arith::SelectOp::create(i, isTarget(i, x, x[1]), x[0], number(i, 0)),
          0);
    });
    Value ownLogit = ReduceOp::create(b, Reduction::add, chosen, vocabDim);
    Value sum = combined(ownSum, mesh::Reduction::sum, "sum of exponentials");
    Value targetLogit =
        combined(ownLogit, mesh::Reduction::sum, "target logit");
    Value loss = map(
        sum.getType(), {maximum, sum, targetLogit},
        [&](auto &i, auto &x) -> Value {
          // In this order large logits leave the logarithm its digits.
          Value below =
              arith::SubFOp::create(i, capped(i, x[0]), capped(i, x[2]));
          Value nats =
              arith::AddFOp::create(i, below, math::LogOp::create(i, x[1]));
          return ofToken(i, x, arith::MulFOp::create(i, nats, weightOf(i, x)));
        });
    Value dlogits = map(
        full, {logits, maximum, sum, targets}, [&](auto &i, auto &x) -> Value {
          Value logit = capped(i, x[0]);
          Value e = math::ExpOp::create(
              i, arith::SubFOp::create(i, logit, capped(i, x[1])));
          Value weight = weightOf(i, x);
          Value probability = arith::MulFOp::create(
              i, e, arith::DivFOp::create(i, weight, x[2]));
          Value less = arith::SelectOp::create(i, isTarget(i, x, x[3]), weight,
                                               number(i, 0));
          return ofToken(
              i, x,
              within(i, x,
                     throughCap(i, logit,
                                arith::SubFOp::create(i, probability, less)),
                     0));
        });
    return {loss, dlogits};
  }

  using Body = function_ref<Value(ImplicitLocOpBuilder &, const Inputs &)>;
  /// A map over logits or rows, whose body sees where this rank's part of them
  /// lies, too. What it does not use, canonicalization drops.
  Value mapWith(Value valid, Type type, ValueRange inputs, Body body) {
    SmallVector<Value> operands(inputs);
    SmallVector<Value> more = {op.getFirstRow(), op.getRows(), valid,
                               op.getCounted()};
    llvm::copy_if(more, std::back_inserter(operands),
                  [](Value value) { return !!value; });
    return buildMap(b, op.getLoc(), type, operands,
                    [&](ImplicitLocOpBuilder &inner, ValueRange x) {
                      size_t next = inputs.size();
                      auto take = [&](size_t which) {
                        return more[which] ? x[next++] : Value();
                      };
                      Value firstRow = take(0), rows = take(1),
                            ofTokens = take(2), counted = take(3);
                      return body(inner,
                                  Inputs{x.take_front(inputs.size()), firstRow,
                                         rows, ofTokens, counted});
                    });
  }

  HeadLossGradOp op;
  ImplicitLocOpBuilder b;
  int64_t chunk;
  bool isAccumulated, sumsInF32; // the weight's gradient
  Value sumOfChunks;             // of it, where not each chunk is accumulated
  bool hasSum = false;           // a chunk has been added to it
};

struct ExpandHeadPass : impl::ExpandHeadPassBase<ExpandHeadPass> {
  using ExpandHeadPassBase::ExpandHeadPassBase;
  void runOnOperation() override {
    SmallVector<HeadLossGradOp> heads;
    getOperation().walk([&](HeadLossGradOp op) { heads.push_back(op); });
    for (HeadLossGradOp op : heads)
      HeadExpansion(op, chunk, roundedChunks).run();
  }
};
} // namespace
} // namespace meshwork::transform
