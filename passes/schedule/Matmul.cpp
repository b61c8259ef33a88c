// An einsum as a matrix product of 3-D views: letters fall into four groups
// (batch, rows, columns, summed), and each group is one loop.
#include "passes/schedule/Matmul.h"

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::schedule {
namespace {
std::string lettersWhere(StringRef of, llvm::function_ref<bool(char)> keep) {
  std::string letters;
  llvm::copy_if(of, std::back_inserter(letters), keep);
  return letters;
}

Layout::Dims dimsIn(StringRef term, StringRef letters) {
  Layout::Dims dims;
  for (char letter : letters)
    dims.push_back(static_cast<int64_t>(term.find(letter)));
  return dims;
}
} // namespace

std::optional<ProductParts> productOf(Operation *op) {
  if (auto contract = dyn_cast<ContractOp>(op))
    return ProductParts{op,
                        contract.getEquation(),
                        contract.getLhs(),
                        contract.getRhs(),
                        contract.getBias(),
                        contract.getResult(),
                        contract.getScales(),
                        contract.getFlops()};
  auto product = dyn_cast<ProductOp>(op);
  if (!product)
    return std::nullopt;
  return ProductParts{op,
                      product.getEquation(),
                      product.getLhs(),
                      product.getRhs(),
                      product.getBias(),
                      product.getResult(),
                      {},
                      product.getFlops(),
                      static_cast<Epilogue>(product.getEpilogue()),
                      product.getInput() ? product.getInput()
                                         : product.getAux()};
}

Place matrices(Place loops) {
  ArrayRef<int64_t> shape = loops.shape;
  MutableArrayRef<int64_t> strides = loops.strides;
  if (shape[2] == 1 && strides[1] != 1)
    strides[2] = 1;
  if (shape[1] == 1)
    strides[1] = strides[2] == 1 ? shape[2] : 1;
  if (shape[0] == 1)
    strides[0] = std::max(shape[1] * strides[1], shape[2] * strides[2]);
  return loops;
}

FailureOr<MatmulLayouts> matmulLayouts(const ProductParts &product) {
  FailureOr<Equation> e = Equation::parse(product.equation);
  if (failed(e))
    return failure();
  auto in = [](StringRef term) {
    return [term](char c) { return term.contains(c); };
  };
  std::string batch = lettersWhere(
      e->result, [&](char c) { return in(e->lhs)(c) && in(e->rhs)(c); });
  std::string rows = lettersWhere(
      e->result, [&](char c) { return in(e->lhs)(c) && !in(e->rhs)(c); });
  std::string columns = lettersWhere(
      e->result, [&](char c) { return !in(e->lhs)(c) && in(e->rhs)(c); });
  std::string summed =
      lettersWhere(e->lhs, [&](char c) { return !in(e->result)(c); });
  auto layout = [](StringRef term, StringRef batch, StringRef a, StringRef b) {
    return Layout{{dimsIn(term, batch), dimsIn(term, a), dimsIn(term, b)},
                  {1, 2}};
  };
  MatmulLayouts layouts{layout(e->lhs, batch, rows, summed),
                        layout(e->rhs, batch, summed, columns),
                        layout(e->result, batch, rows, columns)};
  if (!product.scales.empty()) { // of 8 bits: dense where it is summed
    layouts.lhs.dense = {2};
    layouts.rhs.dense = {1};
  }
  return layouts;
}

MatmulLayouts withRowsInBatch(const MatmulLayouts &layouts, const Place &lhs,
                              const Place &dst) {
  if (layouts.lhs.of(lhs) && layouts.dst.of(dst))
    return layouts;
  const Layout::Dims &ofLhs = layouts.lhs.loops[1],
                     &ofDst = layouts.dst.loops[1];
  bool hasBatch = !layouts.dst.loops[0].empty();
  for (size_t outer = 1; !hasBatch && outer < ofDst.size(); ++outer) {
    MatmulLayouts batched = layouts;
    for (auto [layout, rows] :
         {std::pair(&batched.lhs, &ofLhs), std::pair(&batched.dst, &ofDst)}) {
      layout->loops[0] = Layout::Dims(ArrayRef(*rows).take_front(outer));
      layout->loops[1] = Layout::Dims(ArrayRef(*rows).drop_front(outer));
    }
    if (batched.lhs.of(lhs) && batched.dst.of(dst))
      return batched;
  }
  return layouts;
}

bool hasRowsOfItsOwn(const ProductParts &product, Value value) {
  FailureOr<Equation> e = Equation::parse(product.equation);
  if (failed(e))
    return false;
  auto group = [&](char c) {
    return std::tuple(e->lhs.contains(c), e->rhs.contains(c),
                      e->result.contains(c));
  };
  bool isSum = product.epilogue == Epilogue::sum_lhs ||
               product.epilogue == Epilogue::sum_rhs;
  if (isSum && value == product.aux)
    return false;
  for (auto [term, tensor] :
       {std::pair(e->lhs, product.lhs), std::pair(e->rhs, product.rhs),
        std::pair(e->result, product.result),
        std::pair(e->result, product.aux),   // of a GELU
        std::pair(e->result, product.bias)}) // a sum that is added to
    if (tensor == value && term.size() > 1)
      for (char other : term.drop_back())
        if (group(other) == group(term.back()))
          return false;
  return true;
}

} // namespace meshwork::schedule
