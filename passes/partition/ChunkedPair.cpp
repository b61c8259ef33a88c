#include "passes/partition/ChunkedPair.h"
#include "dialects/transformer/Dims.h"

using namespace mlir;
namespace meshwork::partition {
using namespace transformer;

bool hasDim(Value value, StringAttr dim) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && dimsOf(type).find(dim) >= 0;
}

namespace {
/// A product whose rows are those of the dim: one operand and the result have
/// it.
bool hasRows(Operation *op, StringAttr dim) {
  auto product = dyn_cast_or_null<ContractOp>(op);
  return product && hasDim(product.getResult(), dim) &&
         hasDim(product.getLhs(), dim) != hasDim(product.getRhs(), dim);
}

/// Whether each element of its results depends on those at its place alone, not
/// on where they lie.
bool isSameEverywhere(MapOp map) {
  WalkResult walk = map.walk([](Operation *op) {
    return isa<transformer::IndexOp, DrawOpInterface>(op)
               ? WalkResult::interrupt()
               : WalkResult::advance();
  });
  return map->getNumResults() == 1 && !walk.wasInterrupted();
}

/// Along samples if each chunk gets one, else along the tokens.
std::optional<Chunks> chunksOf(mesh::CollectiveOpInterface op,
                               mesh::MeshAttr mesh, int64_t count) {
  auto from = tensorType(op->getOperand(0)), to = tensorType(op->getResult(0));
  auto name = [&](StringRef text) {
    return StringAttr::get(op->getContext(), text);
  };
  int64_t samples = dimsOf(from).find(name(dims::samples)),
          tokens = dimsOf(from).find(name(dims::tokens));
  if (samples < 0 || tokens < 0)
    return std::nullopt; // of a weight
  for (int64_t at : {samples, tokens}) {
    int64_t local = std::min(from.getDimSize(at), to.getDimSize(at)),
            all = std::max(from.getDimSize(at), to.getDimSize(at)),
            ranks = all == local ? 1
                                 : mesh.product(llvm::to_vector(
                                       op.getAxes().getAsRange<StringAttr>())),
            chunks = std::min(local, count);
    bool isLast = at == tokens;
    if (chunks > 1 && all == local * ranks && (isLast || chunks == count))
      return Chunks{dimsOf(from).getNames()[at], local, ranks, chunks};
  }
  return std::nullopt;
}

/// Products that read it, up to the first that something between them waits
/// for, or before which something else needs all of it.
SmallVector<ContractOp> readersOf(Value gathered, StringAttr dim) {
  SmallVector<ContractOp> products;
  for (Operation *user : gathered.getUsers())
    if (hasRows(user, dim) && !llvm::is_contained(products, user))
      products.push_back(cast<ContractOp>(user));
  if (llvm::any_of(products, [&](ContractOp one) {
        return one->getBlock() != gathered.getParentBlock();
      }))
    return {};
  llvm::sort(products,
             [](ContractOp a, ContractOp b) { return a->isBeforeInBlock(b); });
  auto isBehind = [&](Operation *user) {
    Operation *last = products.back();
    return user->getBlock() == last->getBlock() && last->isBeforeInBlock(user);
  };
  auto waitsBehind = [&](ContractOp one) {
    return llvm::all_of(one->getUsers(), isBehind);
  };
  auto readsBehind = [&](Operation *user) {
    return llvm::is_contained(products, user) || isBehind(user);
  };
  while (!products.empty() && !(llvm::all_of(products, waitsBehind) &&
                                llvm::all_of(gathered.getUsers(), readsBehind)))
    products.pop_back();
  return products;
}

/// The products that `summed` is made of, by themselves or by maps that nothing
/// else reads.
bool findMakers(Value summed, StringAttr dim,
                SmallVectorImpl<ContractOp> &products) {
  Operation *op = summed.getDefiningOp();
  if (!op || !summed.hasOneUse())
    return false;
  if (hasRows(op, dim)) {
    auto product = cast<ContractOp>(op);
    products.push_back(product);
    return true;
  }
  auto map = dyn_cast<MapOp>(op);
  if (!map || !isSameEverywhere(map) || !hasDim(map->getResult(0), dim))
    return false;
  bool found = false;
  for (Value input : map.getInputs())
    found |= findMakers(input, dim, products);
  return found;
}

/// Where `value` can be made: behind what it needs, but for maps, which run as
/// early as they can.
Operation *earliestOf(Value value) {
  Operation *maker = value.getDefiningOp();
  if (!isa_and_nonnull<MapOp>(maker))
    return maker;
  Operation *last = nullptr;
  for (Value operand : maker->getOperands())
    if (Operation *op = earliestOf(operand);
        op && op->getBlock() == maker->getBlock())
      last = !last || last->isBeforeInBlock(op) ? op : last;
  return last;
}

/// Products that stand between what it takes and what waits for it, and are
/// none of the pair's.
void findBeside(ChunkedPair &pair) {
  Operation *op = pair.moves, *from = earliestOf(op->getOperand(0)),
            *to = firstUserOf(op->getResult(0));
  if (!from || !to || from->getBlock() != op->getBlock())
    return;
  for (Operation *one = from->getNextNode(); one && one != to;
       one = one->getNextNode())
    if (auto product = dyn_cast<ContractOp>(one);
        product && !llvm::is_contained(pair.products, product))
      pair.beside.push_back(product);
}
} // namespace

bool isMade(Value value, StringAttr dim) {
  SmallVector<ContractOp> products;
  return findMakers(value, dim, products);
}

Operation *firstUserOf(Value value) {
  Block *block = value.getParentBlock();
  Operation *first = nullptr;
  for (Operation *user : value.getUsers()) {
    Operation *inBlock = block->findAncestorOpInBlock(*user);
    if (!first || inBlock->isBeforeInBlock(first))
      first = inBlock;
  }
  return first;
}

std::optional<ChunkedPair> pairOf(mesh::CollectiveOpInterface op,
                                  mesh::MeshAttr mesh, int64_t count) {
  std::optional<Chunks> chunks = chunksOf(op, mesh, count);
  if (!chunks)
    return std::nullopt;
  ChunkedPair pair{op, {}, *chunks};
  if (!isa<mesh::AllGatherOp>(op)) {
    if (!findMakers(op->getOperand(0), chunks->dim, pair.products))
      return std::nullopt;
    findBeside(pair);
    return pair;
  }
  pair.products = readersOf(op->getResult(0), chunks->dim);
  if (pair.products.empty())
    return std::nullopt;
  findBeside(pair);
  if (chunks->ranks == 1)
    return pair;
  auto users = op->getResult(0).getUsers();
  if (llvm::any_of(users, [&](Operation *user) {
        return !llvm::is_contained(pair.products, user);
      }))
    pair.bytesCopied += bytesOfType(op->getResult(0).getType());
  return pair;
}

} // namespace meshwork::partition
