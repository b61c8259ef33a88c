// contract, and the ops that move elements: slice, unslice, embedding; and the
// tables of rope.
#include "passes/interpreter/Evaluate.h"

#include <cmath>

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::interpreter {

//===-- contract ------------------------------------------------------------//

static FailureOr<Tensor> multiply(StringRef text, RankedTensorType type,
                                  const Tensor &lhs, const Tensor &rhs) {
  FailureOr<Equation> equation = Equation::parse(text);
  if (failed(equation))
    return failure();
  std::string letters; // one loop each
  SmallVector<int64_t> sizes;
  auto addLetters = [&](StringRef term, const Tensor &tensor) {
    for (auto [i, letter] : llvm::enumerate(term))
      if (letters.find(letter) == std::string::npos) {
        letters.push_back(letter);
        sizes.push_back(tensor.getDimSize(i));
      }
  };
  addLetters(equation->lhs, lhs);
  addLetters(equation->rhs, rhs);
  auto stridesOf = [&](StringRef term, const Tensor &tensor) {
    SmallVector<int64_t> strides(letters.size(), 0);
    for (auto [letter, stride] : llvm::zip_equal(term, tensor.getStrides()))
      strides[letters.find(letter)] = stride;
    return strides;
  };
  Tensor result = Tensor::zeros(type);
  SmallVector<int64_t> l = stridesOf(equation->lhs, lhs),
                       r = stridesOf(equation->rhs, rhs),
                       y = stridesOf(equation->result, result);
  forEachIndex(sizes, [&](ArrayRef<int64_t> index) {
    result[positionOf(index, y)] +=
        lhs[positionOf(index, l)] * rhs[positionOf(index, r)];
  });
  return result;
}

static Results evaluate(ContractOp op, ArrayRef<Tensor> operands) {
  FailureOr<Tensor> product =
      multiply(op.getEquation(), op.getType(), operands[0], operands[1]);
  if (failed(product))
    return failure();
  Tensor result = *product;
  for (size_t i = 0; i < op.getScales().size(); ++i)
    for (int64_t j = 0; j < result.size(); ++j)
      result[j] *= operands[2 + i][0];
  if (op.getBias()) // over the result's last dims
    for (int64_t i = 0; i < result.size(); ++i)
      result[i] += operands.back()[i % operands.back().size()];
  return Tensors{result};
}

//===-- product -------------------------------------------------------------//

/// An operand summed over the letters that the result of the product lacks.
static Tensor sumsOf(const Tensor &operand, StringRef term, StringRef result,
                     RankedTensorType type) {
  Tensor sums = Tensor::zeros(type);
  SmallVector<int64_t> sizes, from(operand.getStrides()), to;
  for (auto [i, letter] : llvm::enumerate(term)) {
    sizes.push_back(operand.getDimSize(i));
    to.push_back(0);
  }
  int64_t stride = 1; // a sum for each of the others, densely
  for (size_t i = term.size(); i-- > 0;)
    if (result.contains(term[i])) {
      to[i] = stride;
      stride *= sizes[i];
    }
  forEachIndex(sizes, [&](ArrayRef<int64_t> index) {
    sums[positionOf(index, to)] += operand[positionOf(index, from)];
  });
  return sums;
}

static Results evaluate(ProductOp op, ArrayRef<Tensor> operands) {
  auto type = tensorType(op.getResult());
  FailureOr<Equation> equation = Equation::parse(op.getEquation());
  FailureOr<Tensor> product =
      multiply(op.getEquation(), type, operands[0], operands[1]);
  if (failed(product))
    return failure();
  Tensors results = {*product};
  Tensor &result = results[0];
  if (op.getBias()) // over the result's last dims
    for (int64_t i = 0; i < result.size(); ++i)
      result[i] += operands[2][i % operands[2].size()];
  switch (op.getEpilogue()) {
  case Epilogue::gelu: {
    Tensor input = result;
    for (int64_t i = 0; i < result.size(); ++i)
      result[i] = Gelu(input[i]).value();
    if (op.getAux())
      results.push_back(input);
    break;
  }
  case Epilogue::gelu_grad:
    for (int64_t i = 0; i < result.size(); ++i)
      result[i] *= Gelu(operands.back()[i]).slope();
    break;
  case Epilogue::sum_lhs:
  case Epilogue::sum_rhs: {
    bool isLhs = op.getEpilogue() == Epilogue::sum_lhs;
    results.push_back(sumsOf(operands[isLhs ? 0 : 1],
                             isLhs ? equation->lhs : equation->rhs,
                             equation->result, tensorType(op.getAux())));
    break;
  }
  }
  return results;
}

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

//===-- embedding -----------------------------------------------------------//

/// The row of `rows` that `id` names, counted from `firstRow` on; -1 on a rank
/// that does not have it. An id outside the whole table is an error at `op`; a
/// rank with a part cannot tell, save for negative ones.
static FailureOr<int64_t> rowOf(Operation *op, double id, int64_t rows,
                                ArrayRef<Tensor> firstRow) {
  double row = firstRow.empty() ? id : id - firstRow[0][0];
  if (row >= 0 && row < static_cast<double>(rows))
    return static_cast<int64_t>(row);
  if (!firstRow.empty() && id >= 0)
    return -1;
  return op->emitOpError("id ")
         << id << " is outside the table of " << rows << " rows";
}

static Results evaluate(EmbeddingOp op, ArrayRef<Tensor> operands) {
  const Tensor &table = operands[0], &ids = operands[1];
  Tensor result = Tensor::zeros(op.getType());
  int64_t width = table.size() / table.getDimSize(0);
  for (int64_t i = 0; i < ids.size(); ++i) {
    FailureOr<int64_t> row =
        rowOf(op, ids[i], table.getDimSize(0), operands.drop_front(2));
    if (failed(row))
      return failure();
    for (int64_t j = 0; *row >= 0 && j < width; ++j)
      result[i * width + j] = table[*row * width + j];
  }
  return Tensors{result};
}

static Results evaluate(EmbeddingGradOp op, ArrayRef<Tensor> operands) {
  const Tensor &ids = operands[0], &gradient = operands[1];
  Tensor result = Tensor::zeros(op.getType());
  int64_t width = result.size() / result.getDimSize(0);
  for (int64_t i = 0; i < ids.size(); ++i) {
    FailureOr<int64_t> row =
        rowOf(op, ids[i], result.getDimSize(0), operands.drop_front(2));
    if (failed(row))
      return failure();
    for (int64_t j = 0; *row >= 0 && j < width; ++j)
      result[*row * width + j] += gradient[i * width + j];
  }
  return Tensors{result};
}

//===-- rotary_table --------------------------------------------------------//

Tensors rotaryTables(ArrayRef<float> inverseFrequencies, double scale,
                     int64_t rows, const Tensor *positions) {
  auto half = static_cast<int64_t>(inverseFrequencies.size());
  Tensor cosine(std::vector<int64_t>{rows, 2 * half}), sine = cosine;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t d = 0; d < 2 * half; ++d) {
      double p = positions ? (*positions)[row] : static_cast<double>(row);
      if (p < 0)
        continue;
      // The angle is a float by definition, here as in every framework: at
      // position p its rounding moves it by up to p * 2^-24 radians.
      float angle = static_cast<float>(p) * inverseFrequencies[d % half];
      double sign = d < half ? -1 : 1;
      cosine.at({row, d}) = scale * std::cos(static_cast<double>(angle));
      sine.at({row, d}) = sign * scale * std::sin(static_cast<double>(angle));
    }
  return {cosine, sine};
}

static Results evaluate(RotaryTableOp op, ArrayRef<Tensor> operands) {
  return rotaryTables(op.getInverseFrequencies(),
                      op.getScale().convertToDouble(),
                      tensorType(op.getCosine()).getDimSize(0),
                      operands.empty() ? nullptr : operands.data());
}

void addMovement(Evaluators &to) {
  to.add<ContractOp>(evaluate);
  to.add<ProductOp>(evaluate);
  to.add<SliceOp>(evaluate);
  to.add<UnsliceOp>(evaluate);
  to.add<EmbeddingOp>(evaluate);
  to.add<EmbeddingGradOp>(evaluate);
  to.add<RotaryTableOp>(evaluate);
}

} // namespace meshwork::interpreter
