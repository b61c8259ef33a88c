// contract, product, and the matrix products of a plan.
#include "meshwork/Plan/Frame.h"
#include "passes/interpreter/Evaluate.h"

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

//===-- Matmul --------------------------------------------------------------//

static Tensor multiply(const Tensor &lhs, const Tensor &rhs, Tensor result) {
  int64_t batch = result.getDimSize(0), rows = result.getDimSize(1),
          cols = result.getDimSize(2), depth = lhs.getDimSize(2);
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t m = 0; m < rows; ++m)
      for (int64_t k = 0; k < depth; ++k) {
        double left = lhs[(b * rows + m) * depth + k];
        for (int64_t n = 0; n < cols; ++n)
          result[(b * rows + m) * cols + n] +=
              left * rhs[(b * depth + k) * cols + n];
      }
  return result;
}

/// Sums of lhs over k, or of rhs.
static Tensor sumsOverDepth(const Tensor &operand, bool isLhs, Tensor sums) {
  int64_t depth = operand.getDimSize(isLhs ? 2 : 1);
  for (int64_t i = 0; i < sums.size(); ++i)
    for (int64_t k = 0; k < depth; ++k)
      sums[i] += operand[isLhs ? i * depth + k : k * sums.size() + i];
  return sums;
}

static void finishProduct(const plan::Matmul &op, Views &on, Tensor &product,
                          const Tensor &lhs, const Tensor &rhs) {
  switch (op.epilogue()) {
  case plan::Epilogue::none:
    return;
  case plan::Epilogue::gelu:
    if (op.aux() != plan::noView)
      on.write(op.aux(), product);
    for (int64_t i = 0; i < product.size(); ++i)
      product[i] = Gelu(product[i]).value();
    return;
  case plan::Epilogue::gelu_grad: {
    Tensor aux = on.read(op.aux());
    for (int64_t i = 0; i < product.size(); ++i)
      product[i] *= Gelu(aux[i]).slope();
    return;
  }
  case plan::Epilogue::sum_lhs:
  case plan::Epilogue::sum_rhs:
    bool isLhs = op.epilogue() == plan::Epilogue::sum_lhs;
    on.write(op.aux(),
             sumsOverDepth(isLhs ? lhs : rhs, isLhs, on.zeros(op.aux())));
  }
}

static void run(const plan::Matmul &op, Views &on) {
  Tensor lhs = on.read(op.lhs()), rhs = on.read(op.rhs());
  Tensor product = multiply(lhs, rhs, on.zeros(op.dst()));
  for (uint32_t scale : {op.lhs_scale(), op.rhs_scale()})
    if (std::optional<Tensor> by = on.readIf(scale))
      for (int64_t i = 0; i < product.size(); ++i)
        product[i] *= (*by)[0];
  if (std::optional<Tensor> bias = on.readIf(op.bias()))
    for (int64_t i = 0; i < product.size(); ++i)
      product[i] += (*bias)[i % bias->size()];
  finishProduct(op, on, product, lhs, rhs);
  on.add(op.dst(), product, op.accumulate());
}

void addProducts(Evaluators &to) {
  to.add<ContractOp>(evaluate);
  to.add<ProductOp>(evaluate);
  to.add<plan::Matmul>(run);
}

} // namespace meshwork::interpreter
