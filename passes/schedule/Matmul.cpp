// An einsum as a matrix product of 3-D views: letters fall into four groups
// (batch, rows, columns, summed), and each group must be one loop, that is,
// lie in each tensor like a single dim.
#include "passes/schedule/Matmul.h"

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::schedule {
namespace {
struct Loop {
  int64_t size = 1, stride = 1;
};

/// The letters of `group` as one loop over `place`; none if they are scattered.
std::optional<Loop> merge(StringRef group, StringRef term, const Place &place) {
  Loop loop;
  bool first = true;
  for (char letter : llvm::reverse(group)) {
    size_t at = term.find(letter);
    int64_t size = place.shape[at], stride = place.strides[at];
    if (size == 1)
      continue;
    if (!first && stride != loop.size * loop.stride)
      return std::nullopt;
    if (first)
      loop.stride = stride;
    first = false;
    loop.size *= size;
  }
  return loop;
}

std::string lettersWhere(StringRef of, llvm::function_ref<bool(char)> keep) {
  std::string letters;
  llvm::copy_if(of, std::back_inserter(letters), keep);
  return letters;
}

/// A [batch, a, b] view of `place`.
FailureOr<Place> threeDims(StringRef term, const Place &place, StringRef batch,
                           StringRef a, StringRef b) {
  Place result = place;
  result.shape.clear();
  result.strides.clear();
  for (StringRef group : {batch, a, b}) {
    std::optional<Loop> loop = merge(group, term, place);
    if (!loop)
      return failure();
    result.shape.push_back(loop->size);
    result.strides.push_back(loop->stride);
  }
  // A loop of one iteration may have any stride; row-major ones read best.
  if (result.shape[2] == 1 && result.strides[1] != 1)
    result.strides[2] = 1;
  if (result.shape[1] == 1)
    result.strides[1] =
        std::max<int64_t>(result.shape[2] * result.strides[2], 1);
  if (result.shape[0] == 1)
    result.strides[0] = std::max(result.shape[1] * result.strides[1],
                                 result.shape[2] * result.strides[2]);
  return result;
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

FailureOr<MatmulPlaces> matmulPlaces(const ProductParts &product,
                                     const Place &lhs, const Place &rhs,
                                     const Place &dst) {
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
  FailureOr<Place> l = threeDims(e->lhs, lhs, batch, rows, summed);
  FailureOr<Place> r = threeDims(e->rhs, rhs, batch, summed, columns);
  FailureOr<Place> d = threeDims(e->result, dst, batch, rows, columns);
  if (failed(l) || failed(r) || failed(d))
    return product.op->emitOpError()
           << "is no single matrix product: in \"" << product.equation
           << "\" the letters of its rows, columns or sums do not lie side by "
              "side in memory";
  return MatmulPlaces{*l, *r, *d};
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
