// Language-model head and cross-entropy over chunks of tokens. A chunk is a few
// whole sequences, or a part of one: contiguous rows either way.
#include "dialects/mesh/Mesh.h"
#include "dialects/transformer/Transformer.h"
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
  HeadExpansion(HeadLossGradOp op, int64_t chunk)
      : op(op), b(op.getLoc(), op), chunk(chunk) {}

  /// Replaces the op. Its hidden is [batch, sequence, embed] or [sequence, embed].
  void run() {
    auto [loss, dhidden] = rows(op.getHidden(), op.getTargets());
    Value total = ReduceOp::create(b, Reduction::add, loss, dimsOf(loss));
    op.getLoss().replaceAllUsesWith(total);
    op.getDhidden().replaceAllUsesWith(dhidden);
    if (sumOfChunks)
      op.getDweight().replaceAllUsesWith(sumOfChunks);
    else
      for (Operation *accumulation : llvm::make_early_inc_range(op.getDweight().getUsers()))
        accumulation->erase();
    op.erase();
  }

private:
  using Part = std::pair<Value, Value>; // losses per token, gradient of hidden

  Value slice(Value value, StringAttr dim, int64_t offset, int64_t size) {
    auto type = tensorType(value);
    int64_t position = dimsOf(type).find(dim);
    if (type.getDimSize(position) == size)
      return value;
    SmallVector<int64_t> shape(type.getShape());
    shape[position] = size;
    Type part = RankedTensorType::get(shape, type.getElementType(), type.getEncoding());
    return SliceOp::create(b, part, value, dim, offset);
  }

  /// Splits along the first dim that leaves parts of at most `chunk` tokens.
  Part rows(Value hidden, Value targets) {
    ArrayRef<int64_t> shape = tensorType(targets).getShape();
    int64_t tokens = tensorType(targets).getNumElements();
    if (tokens <= chunk)
      return oneChunk(hidden, targets);
    unsigned position = 0;
    while (position + 1 < shape.size() && shape[position] == 1)
      ++position;
    int64_t perEntry = tokens / shape[position];
    int64_t step = std::max<int64_t>(1, std::min(chunk / perEntry, shape[position]));
    StringAttr dim = dimsOf(targets).getNames()[position];
    SmallVector<Value> losses, gradients;
    SmallVector<int64_t> offsets;
    for (int64_t at = 0; at < shape[position]; at += step) {
      int64_t size = std::min(step, shape[position] - at);
      auto [loss, gradient] = rows(slice(hidden, dim, at, size), slice(targets, dim, at, size));
      losses.push_back(loss);
      gradients.push_back(gradient);
      offsets.push_back(at);
    }
    Type lossType = withElement(targets.getType(), b.getF32Type());
    return {UnsliceOp::create(b, lossType, losses, dim, b.getDenseI64ArrayAttr(offsets)),
            UnsliceOp::create(b, hidden.getType(), gradients, dim, b.getDenseI64ArrayAttr(offsets))};
  }

  Value number(ImplicitLocOpBuilder &inner, double value) {
    return arith::ConstantOp::create(inner, inner.getF32FloatAttr(static_cast<float>(value)));
  }

  /// The token that this element of the logits is for; `own` ends with the
  /// first row of a rank that has a part of the vocabulary.
  Value token(ImplicitLocOpBuilder &inner, ValueRange own) {
    Value at = IndexOp::create(inner, inner.getI32Type(), vocab());
    return op.getFirstRow() ? arith::AddIOp::create(inner, at, own.back()) : at;
  }
  Value isTarget(ImplicitLocOpBuilder &inner, ValueRange own, Value target) {
    return arith::CmpIOp::create(inner, arith::CmpIPredicate::eq, token(inner, own), target);
  }
  /// `value`, or `padding` beyond the end of the vocabulary.
  Value within(ImplicitLocOpBuilder &inner, ValueRange own, Value value, float padding) {
    if (!hasPadding())
      return value;
    Value end = arith::ConstantOp::create(inner, inner.getI32IntegerAttr(static_cast<int32_t>(op.getVocabulary())));
    Value isToken = arith::CmpIOp::create(inner, arith::CmpIPredicate::slt, token(inner, own), end);
    return arith::SelectOp::create(inner, isToken, value, arith::ConstantOp::create(inner, inner.getF32FloatAttr(padding)));
  }
  bool hasPadding() {
    if (!op.getFirstRow())
      return false;
    SmallVector<StringAttr> axes(op.getVocabAxes()->getAsRange<StringAttr>());
    mesh::MeshAttr mesh = mesh::meshOf(op);
    return !mesh || tensorType(op.getWeight()).getDimSize(0) * mesh.product(axes) != static_cast<int64_t>(op.getVocabulary());
  }
  /// Over the ranks that share the vocabulary.
  Value combined(Value value, mesh::Reduction reduction, const Twine &what) {
    if (!op.getFirstRow())
      return value;
    return mesh::AllReduceOp::create(b, value.getType(), value, reduction, *op.getVocabAxes(),
                                     b.getStringAttr(what + " over a split vocabulary"));
  }
  StringAttr vocab() { return dimsOf(op.getWeight()).getNames()[0]; }

  Part oneChunk(Value hidden, Value targets) {
    // Letters: tokens from 'a' on, then v and z for vocab and embed.
    std::string tokens;
    for (int64_t i = 0; i < tensorType(targets).getRank(); ++i)
      tokens.push_back(static_cast<char>('a' + i));
    auto equation = [&](const Twine &text) { return b.getStringAttr(text); };
    SmallVector<int64_t> shape(tensorType(targets).getShape());
    SmallVector<StringAttr> names(dimsOf(targets).getNames());
    shape.push_back(tensorType(op.getWeight()).getDimSize(0));
    names.push_back(vocab());
    DimsAttr dims = DimsAttr::get(b.getContext(), names), vocabDim = DimsAttr::get(b.getContext(), ArrayRef(names).take_back());
    Type logitsType = namedType(shape, dims, tensorType(hidden).getElementType());
    Value logits = ContractOp::create(b, logitsType, equation(tokens + "z,vz->" + tokens + "v"), hidden, op.getWeight());

    auto [loss, dlogits] = crossEntropy(logits, targets, vocabDim);
    Value gradient = ContractOp::create(b, hidden.getType(), equation(tokens + "v,vz->" + tokens + "z"), dlogits, op.getWeight());
    addWeightGradient(equation(tokens + "v," + tokens + "z->vz"), dlogits, hidden);
    return {loss, gradient};
  }

  /// A gradient that is only accumulated is so by each chunk, where it is kept;
  /// one that is used otherwise, reduced to a rank's part say, is summed first.
  void addWeightGradient(StringAttr equation, Value dlogits, Value hidden) {
    SmallVector<Operation *> users(op.getDweight().getUsers());
    bool isAccumulated = llvm::all_of(users, llvm::IsaPred<AccumulateOp>);
    Value chunk = ContractOp::create(b, op.getWeight().getType(), equation, dlogits, hidden, isAccumulated ? Value() : sumOfChunks);
    if (!isAccumulated)
      sumOfChunks = chunk;
    else
      for (Operation *user : users)
        AccumulateOp::create(b, cast<AccumulateOp>(user).getKind(), cast<AccumulateOp>(user).getName(), chunk);
  }

  Part crossEntropy(Value logits, Value targets, DimsAttr vocabDim) {
    double scale = op.getScale().convertToDouble();
    Type full = logits.getType();
    if (hasPadding())
      logits = map(full, {logits}, [&](auto &i, ValueRange x) { return within(i, x, x[0], std::numeric_limits<float>::lowest()); });
    Value maximum = combined(ReduceOp::create(b, Reduction::max, logits, vocabDim), mesh::Reduction::max, "maximum logit");
    Value exponentials = map(full, {logits, maximum}, [&](auto &i, ValueRange x) -> Value {
      return within(i, x, math::ExpOp::create(i, arith::SubFOp::create(i, x[0], x[1])), 0);
    });
    Value ownSum = ReduceOp::create(b, Reduction::add, exponentials, vocabDim);
    Value chosen = map(full, {logits, targets}, [&](auto &i, ValueRange x) -> Value {
      return arith::SelectOp::create(i, isTarget(i, x, x[1]), x[0], number(i, 0));
    });
    Value ownLogit = ReduceOp::create(b, Reduction::add, chosen, vocabDim);
    Value sum = combined(ownSum, mesh::Reduction::sum, "sum of exponentials");
    Value targetLogit = combined(ownLogit, mesh::Reduction::sum, "target logit");
    Value loss = map(sum.getType(), {maximum, sum, targetLogit}, [&](auto &i, ValueRange x) -> Value {
      Value normalizer = arith::AddFOp::create(i, x[0], math::LogOp::create(i, x[1]));
      return arith::MulFOp::create(i, arith::SubFOp::create(i, normalizer, x[2]), number(i, scale));
    });
    Value dlogits = map(full, {logits, maximum, sum, targets}, [&](auto &i, ValueRange x) -> Value {
      Value e = math::ExpOp::create(i, arith::SubFOp::create(i, x[0], x[1]));
      Value probability = arith::MulFOp::create(i, e, arith::DivFOp::create(i, number(i, scale), x[2]));
      Value less = arith::SelectOp::create(i, isTarget(i, x, x[3]), number(i, scale), number(i, 0));
      return within(i, x, arith::SubFOp::create(i, probability, less), 0);
    });
    return {loss, dlogits};
  }

  /// A map over logits or rows; where ranks share the vocabulary, its last
  /// operand is this rank's first row.
  Value map(Type type, ValueRange inputs, function_ref<Value(ImplicitLocOpBuilder &, ValueRange)> body) {
    SmallVector<Value> operands(inputs);
    if (op.getFirstRow())
      operands.push_back(op.getFirstRow());
    return buildMap(b, op.getLoc(), type, operands, body);
  }

  HeadLossGradOp op;
  ImplicitLocOpBuilder b;
  int64_t chunk;
  Value sumOfChunks; // of the weight's gradient, where it is not accumulated
};

struct ExpandHeadPass : impl::ExpandHeadPassBase<ExpandHeadPass> {
  using ExpandHeadPassBase::ExpandHeadPassBase;
  void runOnOperation() override {
    SmallVector<HeadLossGradOp> heads;
    getOperation().walk([&](HeadLossGradOp op) { heads.push_back(op); });
    for (HeadLossGradOp op : heads)
      HeadExpansion(op, chunk).run();
  }
};
} // namespace
} // namespace meshwork::transform
