// What moves elements: slice, unslice, split, merge, and copies and fills of a
// plan.
#include "passes/interpreter/Blocks.h"
#include "passes/interpreter/Evaluate.h"

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::interpreter {

//===-- slice, unslice ------------------------------------------------------//

/// Where element `index` of a part lies in the whole that it was cut from.
static SmallVector<int64_t> indexInWhole(ArrayRef<int64_t> index,
                                         int64_t position, bool dropsDim,
                                         int64_t offset) {
  SmallVector<int64_t> whole(index);
  if (dropsDim)
    whole.insert(whole.begin() + position, offset);
  else
    whole[position] += offset;
  return whole;
}

Tensor sliceOf(const Tensor &whole, RankedTensorType type, int64_t position,
               int64_t offset) {
  bool dropsDim = type.getShape().size() < whole.getShape().size();
  Tensor result = Tensor::zeros(type);
  forEachIndex(result.getShape(), [&](ArrayRef<int64_t> index) {
    result.at(index) =
        whole.at(indexInWhole(index, position, dropsDim, offset));
  });
  return result;
}

static Results evaluate(SliceOp op, ArrayRef<Tensor> operands) {
  return Tensors{
      sliceOf(operands[0], op.getType(), op.getPosition(), op.getOffset())};
}

void writeSlice(Tensor &whole, const Tensor &part, int64_t position,
                int64_t offset) {
  bool dropsDim = part.getShape().size() < whole.getShape().size();
  forEachIndex(part.getShape(), [&](ArrayRef<int64_t> index) {
    whole.at(indexInWhole(index, position, dropsDim, offset)) = part.at(index);
  });
}

static Results evaluate(UnsliceOp op, ArrayRef<Tensor> operands) {
  Tensor result = Tensor::zeros(op.getType());
  int64_t position = dimsOf(op.getType()).find(op.getDimAttr());
  for (auto [part, offset] : llvm::zip_equal(operands, op.getOffsets()))
    writeSlice(result, part, position, offset);
  return Tensors{result};
}

//===-- split, merge --------------------------------------------------------//

/// Elements keep their order.
static Results reshaped(RankedTensorType type, const Tensor &from) {
  Tensor result = Tensor::zeros(type);
  for (int64_t i = 0; i < result.size(); ++i)
    result[i] = from[i];
  return Tensors{result};
}
static Results evaluate(SplitOp op, ArrayRef<Tensor> operands) {
  return reshaped(op.getType(), operands[0]);
}
static Results evaluate(MergeOp op, ArrayRef<Tensor> operands) {
  return reshaped(op.getType(), operands[0]);
}

//===-- instructions --------------------------------------------------------//

static void run(const plan::Fill &op, Views &on) {
  Tensor values = on.zeros(op.dst());
  for (int64_t i = 0; i < values.size(); ++i)
    values[i] = op.value();
  on.write(op.dst(), values);
}

static void run(const plan::CopyBlock &op, Views &on) {
  auto first = static_cast<int64_t>(on.read(op.first())[0]);
  int64_t size = on.zeros(op.dst()).getDimSize(op.dim());
  on.write(op.dst(), blockOf(on.read(op.src()), op.dim(), first, size));
}

static void run(const plan::Copy &op, Views &on) {
  on.copy(op.src(), op.dst());
}

void addMovement(Evaluators &to) {
  to.add<SliceOp>(evaluate);
  to.add<UnsliceOp>(evaluate);
  to.add<SplitOp>(evaluate);
  to.add<MergeOp>(evaluate);
  to.add<plan::Fill>(run);
  to.add<plan::CopyBlock>(run);
  to.add<plan::Copy>(run);
}

} // namespace meshwork::interpreter
