// Which results of clusters products make along the way.
//
// A product reads its operands and has its result in registers, so the sums of
// an operand along what is summed, and a function of the result, need no pass
// over memory. What that saves is counted in bytes: a cluster may read the
// tensor for something else anyway, and then nothing is saved.
#include "passes/fusion/Epilogues.h"
#include "passes/fusion/Clusters.h"
#include "passes/fusion/Gelu.h"

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::fusion {
namespace {
/// An epilogue makes the end of a product longer: by passes over its tensor, in
/// eighths. Measured on an H100 with cuBLASLt 13.1 at GPT-2 1.5B's sizes,
/// beyond what its operands take: GELU 0.36, its derivative 0.6, sums 1.6
/// and 2.7. Unless it `isMeasured` a quarter, which keeps sums from being asked
/// for that a kernel reads the tensor for anyway.
int64_t eighthsOf(Epilogue epilogue, bool isMeasured) {
  constexpr int64_t least = 2, gelu = 3, geluGradient = 5, sum = 16;
  if (!isMeasured)
    return least;
  if (epilogue == Epilogue::gelu)
    return gelu;
  return epilogue == Epilogue::gelu_grad ? geluGradient : sum;
}
/// Elements of what GELU is applied to that cuBLASLt takes at once.
constexpr int64_t auxUnit = 8;

int64_t bytesOf(Value value) {
  auto type = tensorType(value);
  return type.getNumElements() * type.getElementTypeBitWidth() / 8;
}

Value yieldOf(FusedOp cluster, unsigned result) {
  return cluster.getBody().front().getTerminator()->getOperand(result);
}

/// Where `inner`, of the body, is outside: an operand, or a result.
Value outsideOf(FusedOp cluster, Value inner) {
  if (auto argument = dyn_cast<BlockArgument>(inner))
    return cluster.getInputs()[argument.getArgNumber()];
  for (auto [i, result] : llvm::enumerate(cluster.getResults()))
    if (yieldOf(cluster, i) == inner && result.getType() == inner.getType())
      return result;
  return nullptr;
}

/// One product of what is not of 8 bits, with no epilogue yet. A bias with all
/// dims is a sum that it adds to.
bool takesEpilogue(ContractOp product, const Equation &equation) {
  bool isOne = llvm::all_of(equation.lhs, [&](char c) {
    return !equation.rhs.contains(c) || !equation.result.contains(c);
  });
  bool addsToSum =
      product.getBias() &&
      tensorType(product.getBias()).getRank() == product.getType().getRank();
  return isOne && product.getScales().empty() && !addsToSum;
}

/// Whether columns lie side by side, as rhs gives them, in units of aux.
bool hasAuxColumns(ContractOp product, const Equation &equation) {
  int64_t columns = 1;
  bool isRhs = true;
  for (auto [letter, size] : llvm::reverse(
           llvm::zip_equal(equation.result, product.getType().getShape()))) {
    isRhs &= equation.rhs.contains(letter);
    if (isRhs)
      columns *= size;
    else if (equation.rhs.contains(letter))
      return false;
  }
  return columns % auxUnit == 0;
}

std::optional<Fold> findGelu(FusedOp cluster, unsigned result, MapOp map) {
  Value from = outsideOf(cluster, map.getInputs()[0]);
  auto product = from ? from.getDefiningOp<ContractOp>() : ContractOp();
  if (!product || from.getType() != cluster.getResult(result).getType())
    return std::nullopt;
  auto equation = Equation::parse(product.getEquation());
  // What an earlier cluster has computed is computed again to save memory.
  bool isFirst = llvm::all_of(from.getUsers(), [&](Operation *user) {
    return user == cluster || cluster->isBeforeInBlock(user);
  });
  if (!isFirst || !takesEpilogue(product, *equation) ||
      !hasAuxColumns(product, *equation))
    return std::nullopt;
  return Fold{result, Epilogue::gelu, product, Value()};
}

std::optional<Fold> findGeluGradient(FusedOp cluster, unsigned result,
                                     MapOp map, unsigned inputNumber) {
  Value input = outsideOf(cluster, map.getInputs()[inputNumber]),
        gradient = outsideOf(cluster, map.getInputs()[1 - inputNumber]);
  auto product = gradient ? gradient.getDefiningOp<ContractOp>() : ContractOp();
  Type type = cluster.getResult(result).getType();
  if (!product || !input || !gradient.hasOneUse() || product.getBias() ||
      gradient.getType() != type || input.getType() != type)
    return std::nullopt;
  auto equation = Equation::parse(product.getEquation());
  if (!takesEpilogue(product, *equation) || !hasAuxColumns(product, *equation))
    return std::nullopt;
  return Fold{result, Epilogue::gelu_grad, product, input};
}

/// The sum that `product` could make of its operand `value`, over `dims`.
std::optional<Epilogue> sumOf(ContractOp product, Value value, DimsAttr dims) {
  auto equation = Equation::parse(product.getEquation());
  if (product.getLhs() == product.getRhs() || product.getBias() ||
      !takesEpilogue(product, *equation))
    return std::nullopt;
  bool isLhs = product.getLhs() == value;
  StringRef term = isLhs ? equation->lhs : equation->rhs;
  std::string kept;
  for (auto [letter, name] : llvm::zip_equal(term, dimsOf(value).getNames())) {
    bool isReduced = dims.find(name) >= 0;
    if (isReduced == equation->result.contains(letter))
      return std::nullopt;
    if (!isReduced)
      kept.push_back(letter);
  }
  std::string columns;
  llvm::copy_if(equation->result, std::back_inserter(columns),
                [&](char c) { return term.contains(c); });
  if (kept != columns) // in the same order
    return std::nullopt;
  return isLhs ? Epilogue::sum_lhs : Epilogue::sum_rhs;
}

/// Whether `user` only adds up the chunks that `sums` are, and what it makes of
/// them is no finer than a sum in `element`.
bool addsChunks(Operation *user, Value sums, Type element) {
  auto cluster = dyn_cast<FusedOp>(user);
  if (!cluster || llvm::any_of(cluster.getResults(), [&](Value result) {
        return tensorType(result).getElementTypeBitWidth() >
               element.getIntOrFloatBitWidth();
      }))
    return false;
  for (auto [operand, argument] :
       llvm::zip_equal(cluster.getInputs(), cluster.getBody().getArguments()))
    for (Operation *inner : argument.getUsers())
      if (operand == sums && !isa<ReduceOp>(inner))
        return false;
  return true;
}

std::optional<Fold> findSum(FusedOp cluster, unsigned result, ReduceOp reduce) {
  Value sums = cluster.getResult(result);
  Value value = outsideOf(cluster, reduce.getInput());
  if (!value || reduce.getKind() != Reduction::add ||
      shapeOf(reduce) != ReductionShape::column ||
      tensorType(reduce).getRank() == 0)
    return std::nullopt;
  for (Operation *user : value.getUsers()) {
    auto product = dyn_cast<ContractOp>(user);
    if (!product || product->getBlock() != cluster->getBlock() ||
        !cluster->isBeforeInBlock(product))
      continue;
    Type element = product.getType().getElementType();
    std::optional<Epilogue> epilogue = sumOf(product, value, reduce.getDims());
    bool fits = llvm::all_of(sums.getUsers(), [&](Operation *adding) {
      return addsChunks(adding, sums, element);
    });
    if (epilogue && fits && usersToMove(sums, product))
      return Fold{result, *epilogue, product, value};
  }
  return std::nullopt;
}

std::optional<Fold> find(FusedOp cluster, unsigned result) {
  Operation *last = yieldOf(cluster, result).getDefiningOp();
  if (auto reduce = dyn_cast_or_null<ReduceOp>(last))
    return findSum(cluster, result, reduce);
  auto map = dyn_cast_or_null<MapOp>(last);
  if (!map || map.getNumResults() != 1)
    return std::nullopt;
  if (isGelu(map))
    return findGelu(cluster, result, map);
  if (std::optional<unsigned> input = inputOfGeluGradient(map))
    return findGeluGradient(cluster, result, map, *input);
  return std::nullopt;
}

bool isSum(const Fold &fold) {
  return fold.epilogue == Epilogue::sum_lhs ||
         fold.epilogue == Epilogue::sum_rhs;
}

/// Memory traffic of the cluster and of what the folds change of others.
int64_t bytesWith(FusedOp cluster, ArrayRef<Fold> folds, bool isMeasured) {
  Remainder rest = remainderOf(cluster, folds);
  int64_t bytes = 0;
  for (Value leaf : rest.leaves)
    bytes += bytesOf(leaf);
  for (unsigned result : rest.results)
    bytes += bytesOf(cluster.getResult(result));
  for (unsigned i = 0; i < cluster.getNumResults(); ++i) {
    Value result = cluster.getResult(i);
    const Fold *fold =
        llvm::find_if(folds, [&](const Fold &f) { return f.result == i; });
    if (result.getType() != yieldOf(cluster, i).getType()) // read again
      bytes += fold == folds.end() ? bytesOf(result) : 0;
    if (fold == folds.end())
      continue;
    bytes += bytesOf(isSum(*fold) ? fold->input : result) *
             eighthsOf(fold->epilogue, isMeasured) / 8;
    if (fold->epilogue == Epilogue::gelu_grad)
      bytes += bytesOf(fold->input); // for the product to read
    if (fold->epilogue != Epilogue::gelu)
      continue;
    ContractOp product = fold->product;
    Value input = product.getResult();
    bool isRead =
        llvm::any_of(rest.leaves,
                     [&](Value leaf) {
                       return isa<BlockArgument>(leaf) &&
                              outsideOf(cluster, leaf) == input;
                     }) ||
        llvm::any_of(input.getUsers(),
                     [&](Operation *user) { return user != cluster; }) ||
        llvm::any_of(folds, [&](const Fold &f) { return f.input == input; });
    bytes += isRead ? bytesOf(result) : 0; // else instead of its input
  }
  return bytes;
}

/// Whether it is a step of a gradient's way to its state, which may come later:
/// a cluster, what moves it, or what writes it.
bool bringsToState(Operation *op) {
  auto tensors = dyn_cast<TensorOpInterface>(op);
  return isa<FusedOp>(op) ||
         (tensors && (tensors.getWeightGradient() == WeightGradient::moves ||
                      tensors.getStateUse() == StateUse::writes));
}

bool haveOwnProducts(ArrayRef<Fold> folds) {
  llvm::SmallDenseSet<Operation *> products;
  return llvm::all_of(folds, [&](const Fold &fold) {
    return products.insert(fold.product).second;
  });
}
} // namespace

Remainder remainderOf(FusedOp cluster, ArrayRef<Fold> folds) {
  llvm::SmallDenseSet<Value> folded;
  llvm::SmallDenseSet<unsigned> numbers;
  for (const Fold &fold : folds) {
    numbers.insert(fold.result);
    if (!isSum(fold))
      folded.insert(yieldOf(cluster, fold.result));
  }
  SmallVector<unsigned> rest;
  for (unsigned i = 0; i < cluster.getNumResults(); ++i)
    if (!numbers.contains(i))
      rest.push_back(i);
  return remainderOf(cluster, rest, folded);
}

SmallVector<Fold> chooseFolds(FusedOp cluster, bool isMeasured) {
  constexpr size_t most = 10; // subsets are tried one by one
  SmallVector<Fold> found, best;
  for (unsigned i = 0; i < cluster.getNumResults() && found.size() < most; ++i)
    if (std::optional<Fold> fold = find(cluster, i))
      found.push_back(*fold);
  int64_t least = bytesWith(cluster, {}, isMeasured);
  for (unsigned subset = 1; subset < 1u << found.size(); ++subset) {
    SmallVector<Fold> folds;
    for (auto [i, fold] : llvm::enumerate(found))
      if (subset >> i & 1)
        folds.push_back(fold);
    int64_t bytes = bytesWith(cluster, folds, isMeasured);
    if (bytes < least && haveOwnProducts(folds)) {
      least = bytes;
      best = folds;
    }
  }
  return best;
}

std::optional<SmallVector<Operation *>> usersToMove(Value sums,
                                                    ContractOp product) {
  SetVector<Operation *> found;
  SmallVector<Value> work = {sums};
  while (!work.empty())
    for (Operation *user : work.pop_back_val().getUsers()) {
      if (user == product)
        return std::nullopt;
      if (!user->isBeforeInBlock(product) || !found.insert(user))
        continue;
      if (!bringsToState(user))
        return std::nullopt;
      llvm::append_range(work, user->getResults());
    }
  SmallVector<Operation *> users = found.takeVector();
  llvm::sort(users,
             [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return users;
}

} // namespace meshwork::fusion
