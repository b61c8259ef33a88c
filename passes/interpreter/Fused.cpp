// fused: the body as ordinary ops on whole tensors. Only results with a dim
// `chunk` need thought. And a launch: the function that its kernel was made of.
#include "passes/interpreter/Evaluate.h"
#include "passes/interpreter/Interpreter.h"

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::interpreter {
namespace {

/// The row that `index` of a tensor lies in, counted over the cluster's rows,
/// outermost first.
struct RowNumber {
  SmallVector<int64_t> positions, sizes; // of the row dims, in the tensor

  int64_t count() const {
    int64_t rows = 1;
    for (int64_t size : sizes)
      rows *= size;
    return rows;
  }
  int64_t of(ArrayRef<int64_t> index) const {
    int64_t row = 0;
    for (auto [position, size] : llvm::zip_equal(positions, sizes))
      row = row * size + index[position];
    return row;
  }
};

/// Part c of `chunks` sums rows [c R / chunks, (c + 1) R / chunks) of what the
/// yielded reduction adds up.
Results chunkParts(FusedOp op, ReduceOp reduce, const Tensor &input,
                   RankedTensorType result) {
  auto type = tensorType(reduce.getInput());
  RowNumber rows;
  for (StringAttr name : op.getRows().getNames()) {
    int64_t position = dimsOf(type).find(name);
    if (position < 0 || reduce.getDims().find(name) < 0)
      return reduce.emitOpError(
                 "yields chunks, expected it to reduce over row dim '")
             << name.getValue() << "'";
    rows.positions.push_back(position);
    rows.sizes.push_back(type.getDimSize(position));
  }
  int64_t chunks = result.getDimSize(0), count = rows.count();
  Tensor all = Tensor::zeros(result);
  for (int64_t c = 0; c < chunks; ++c) {
    int64_t begin = c * count / chunks, end = (c + 1) * count / chunks;
    Tensor part = reduceElements(reduce.getKind(), type, input,
                                 tensorType(reduce.getResult()),
                                 [&](ArrayRef<int64_t> index) {
                                   int64_t row = rows.of(index);
                                   return begin <= row && row < end;
                                 });
    for (int64_t i = 0; i < part.size(); ++i)
      all[c * part.size() + i] = part[i];
  }
  return Tensors{all};
}
} // namespace

static Results evaluate(FusedOp op, ArrayRef<Tensor> operands, Frame &frame) {
  DenseMap<Value, Tensor> values;
  Block &body = op.getBody().front();
  for (auto [argument, operand] :
       llvm::zip_equal(body.getArguments(), operands))
    values[argument] = operand;
  for (Operation &inner : body.without_terminator()) {
    Tensors inputs;
    for (Value operand : inner.getOperands())
      inputs.push_back(values.at(operand));
    Results results = (*Evaluators::all().find(&inner))(&inner, inputs, frame);
    if (failed(results))
      return failure();
    for (auto [value, tensor] : llvm::zip_equal(inner.getResults(), *results))
      values[value] = tensor;
  }
  Tensors results;
  Operation *yield = body.getTerminator();
  for (auto [value, result] :
       llvm::zip_equal(yield->getOperands(), op.getResults())) {
    if (value.getType() == result.getType()) {
      results.push_back(values.at(value));
      continue;
    }
    auto reduce = value.getDefiningOp<ReduceOp>();
    if (!reduce)
      return op.emitOpError("result ")
             << result.getType()
             << " has chunks, expected a reduce to yield it";
    Results parts = chunkParts(op, reduce, values.at(reduce.getInput()),
                               tensorType(result));
    if (failed(parts))
      return failure();
    results.push_back(parts->front());
  }
  return results;
}

static void run(const plan::Launch &op, Views &on) {
  uint32_t inputs = op.args()->size() - op.num_outputs();
  Tensors arguments;
  for (uint32_t i = 0; i < inputs; ++i)
    arguments.push_back(on.read(op.args()->Get(i)));
  if (on.failed())
    return;
  Results results = evaluateFunction(on.kernel(op.kernel()), arguments);
  if (failed(results))
    return on.fail("has a kernel that cannot be interpreted");
  for (uint32_t i = 0; i < op.num_outputs(); ++i)
    on.write(op.args()->Get(inputs + i), (*results)[i]);
}

void addFused(Evaluators &to) {
  to.add<FusedOp>(evaluate);
  to.add<plan::Launch>(run);
}

} // namespace meshwork::interpreter
