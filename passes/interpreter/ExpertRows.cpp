// Ops of routing and of a rank's sorted rows, by what their instructions do.
#include "passes/interpreter/Evaluate.h"
#include "passes/interpreter/Routing.h"

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::interpreter {

/// All dims but the last `width` as one.
static Tensor asRows(const Tensor &tensor, int64_t width) {
  ArrayRef<int64_t> shape = tensor.getShape();
  std::vector<int64_t> joined = {
      ShapedType::getNumElements(shape.drop_back(width))};
  llvm::append_range(joined, shape.take_back(width));
  return Tensor(std::move(joined), tensor.getElements().vec());
}

/// [experts, a, b] as [experts, b, a].
static Tensor turned(const Tensor &matrices) {
  ArrayRef<int64_t> shape = matrices.getShape();
  Tensor result(std::vector<int64_t>{shape[0], shape[2], shape[1]});
  for (int64_t e = 0; e < shape[0]; ++e)
    for (int64_t i = 0; i < shape[1]; ++i)
      for (int64_t j = 0; j < shape[2]; ++j)
        result.at({e, j, i}) = matrices.at({e, i, j});
  return result;
}

static Results evaluate(PickOp op, ArrayRef<Tensor> x) {
  return Tensors{picked(x[0], x[1], Tensor::zeros(op.getType()))};
}

static Results evaluate(PickGradOp op, ArrayRef<Tensor> x) {
  return Tensors{pickedGradient(x[1], x[0], Tensor::zeros(op.getType()))};
}

static Results evaluate(LimitChoicesOp op, ArrayRef<Tensor> x) {
  int64_t rows = x[0].size() / x[0].getShape().back() / x[0].getDimSize(0);
  return Tensors{limitedChoices(x[0], static_cast<int64_t>(op.getExperts()),
                                static_cast<int64_t>(op.getMost()),
                                rows * static_cast<int64_t>(op.getGroup()))};
}

static Results evaluate(SortRowsOp op, ArrayRef<Tensor> x) {
  int64_t first = x.size() > 1 ? static_cast<int64_t>(x[1][0]) : 0;
  SortedRows sorted = sortedRows(x[0], first,
                                 {Tensor::zeros(op.getOrder().getType()),
                                  Tensor::zeros(op.getTokens().getType()),
                                  Tensor::zeros(op.getPlaces().getType()),
                                  Tensor::zeros(op.getBegins().getType())});
  return Tensors{sorted.order, sorted.tokens, sorted.places, sorted.begins};
}

static Results evaluate(TakeRowsOp op, ArrayRef<Tensor> x) {
  int64_t width =
      tensorType(op.getResult()).getRank() - tensorType(op.getRows()).getRank();
  Tensor none = Tensor::zeros(op.getType());
  if (op.getType().getElementType().isInteger())
    none = Tensor(none.getShape().vec(), -1);
  return Tensors{takenRows(asRows(x[0], width), x[1], none)};
}

static Results evaluate(CombineRowsOp op, ArrayRef<Tensor> x) {
  return Tensors{
      combinedRows(asRows(x[0], 1), x[1], x[2], Tensor::zeros(op.getType()))};
}

static Results evaluate(GroupedProductOp op, ArrayRef<Tensor> x) {
  bool isTurned =
      dimsOf(op.getRhs()).getNames()[2] == dimsOf(op.getLhs()).getNames()[1];
  return Tensors{groupedProduct(x[0], isTurned ? turned(x[1]) : x[1], x[2],
                                Tensor::zeros(op.getType()))};
}

static Results evaluate(GroupedGradientOp op, ArrayRef<Tensor> x) {
  return Tensors{
      groupedGradient(x[0], x[1], x[2], Tensor::zeros(op.getType()))};
}

void addExpertRows(Evaluators &to) {
  to.add<PickOp>(evaluate);
  to.add<PickGradOp>(evaluate);
  to.add<LimitChoicesOp>(evaluate);
  to.add<SortRowsOp>(evaluate);
  to.add<TakeRowsOp>(evaluate);
  to.add<CombineRowsOp>(evaluate);
  to.add<GroupedProductOp>(evaluate);
  to.add<GroupedGradientOp>(evaluate);
}

} // namespace meshwork::interpreter
