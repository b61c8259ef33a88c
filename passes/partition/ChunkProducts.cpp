// Products in chunks beside the collectives that bring what they read, or take
// what they make: one chunk travels under the product of another.
#include "dialects/mesh/Chunk.h"
#include "dialects/transformer/Dims.h"
#include "dialects/transformer/Facts.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "passes/partition/ChunkGain.h"
#include "passes/partition/Passes.h"

using namespace mlir;
namespace meshwork::partition {
#define GEN_PASS_DEF_CHUNKPRODUCTSPASS
#include "passes/partition/Passes.h.inc"
namespace {
using namespace transformer;

bool hasDim(Value value, StringAttr dim) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && dimsOf(type).find(dim) >= 0;
}

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

class Pairs {
public:
  Pairs(func::FuncOp function, const cost::Times &times, spec::When mode,
        int64_t count)
      : function(function), times(times), mesh(mesh::meshOf(function)),
        mode(mode), count(count) {}

  void run() {
    for (auto op :
         llvm::make_early_inc_range(function.getOps<mesh::AllGatherOp>()))
      decide(pairOf(op), &Pairs::chunkGather);
    for (Operation &op : llvm::make_early_inc_range(function.getBody().front()))
      if (isa<mesh::ReduceScatterOp, mesh::AllReduceOp>(op))
        decide(pairOf(cast<mesh::CollectiveOpInterface>(op)), &Pairs::chunkSum);
  }

private:
  int64_t groupSize(mesh::CollectiveOpInterface op) const {
    return mesh.product(llvm::to_vector(op.getAxes().getAsRange<StringAttr>()));
  }
  /// Along samples if each chunk gets one, else along the tokens.
  std::optional<Chunks> chunksOf(mesh::CollectiveOpInterface op) const;
  std::optional<ChunkedPair> pairOf(mesh::CollectiveOpInterface op) const;
  SmallVector<ContractOp> readersOf(Value gathered, StringAttr dim) const;
  bool findMakers(Value summed, ChunkedPair &pair) const;
  std::pair<ChunkedPair, ChunkGain> best(const ChunkedPair &pair) const;
  void decide(std::optional<ChunkedPair> found,
              void (Pairs::*chunk)(ChunkedPair &));
  void chunkGather(ChunkedPair &pair);
  void chunkSum(ChunkedPair &pair);

  Value moved(ImplicitLocOpBuilder &b, const ChunkedPair &pair, Value part,
              int64_t chunk) const;
  Value partOf(ImplicitLocOpBuilder &b, const Chunks &chunks, Operation *op,
               int64_t chunk, function_ref<Value(Value)> operandOf) const;
  Value taken(ImplicitLocOpBuilder &b, const Chunks &chunks, Value value,
              int64_t chunk) const;
  bool isMade(const ChunkedPair &pair, Value value) const;
  Operation *lastTaken(const ChunkedPair &pair, Value value) const;
  Value made(ImplicitLocOpBuilder &b, const ChunkedPair &pair, Value value,
             int64_t chunk) const;

  func::FuncOp function;
  const cost::Times &times;
  mesh::MeshAttr mesh;
  spec::When mode;
  int64_t count;
  /// Values that were joined, and their parts.
  llvm::DenseMap<Value, std::pair<Chunks, SmallVector<Value>>> joined;
};

std::optional<Chunks> Pairs::chunksOf(mesh::CollectiveOpInterface op) const {
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
            ranks = all == local ? 1 : groupSize(op),
            chunks = std::min(local, count);
    bool isLast = at == tokens;
    if (chunks > 1 && all == local * ranks && (isLast || chunks == count))
      return Chunks{dimsOf(from).getNames()[at], local, ranks, chunks};
  }
  return std::nullopt;
}

/// Products that read it, up to the first that something between them waits
/// for, or before which something else needs all of it.
SmallVector<ContractOp> Pairs::readersOf(Value gathered, StringAttr dim) const {
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
bool Pairs::findMakers(Value summed, ChunkedPair &pair) const {
  Operation *op = summed.getDefiningOp();
  if (!op || !summed.hasOneUse())
    return false;
  if (hasRows(op, pair.chunks.dim)) {
    auto product = cast<ContractOp>(op);
    pair.products.push_back(product);
    return true;
  }
  auto map = dyn_cast<MapOp>(op);
  if (!map || !isSameEverywhere(map) ||
      !hasDim(map->getResult(0), pair.chunks.dim))
    return false;
  bool isMade = false;
  for (Value input : map.getInputs())
    isMade |= findMakers(input, pair);
  return isMade;
}

/// In the block of `value`.
static Operation *firstUserOf(Value value) {
  Block *block = value.getParentBlock();
  Operation *first = nullptr;
  for (Operation *user : value.getUsers()) {
    Operation *inBlock = block->findAncestorOpInBlock(*user);
    if (!first || inBlock->isBeforeInBlock(first))
      first = inBlock;
  }
  return first;
}

/// Where `value` can be made: behind what it needs, but for maps, which run as
/// early as they can.
static Operation *earliestOf(Value value) {
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
static void findBeside(ChunkedPair &pair) {
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

std::optional<ChunkedPair> Pairs::pairOf(mesh::CollectiveOpInterface op) const {
  std::optional<Chunks> chunks = chunksOf(op);
  if (!chunks)
    return std::nullopt;
  ChunkedPair pair{op, {}, *chunks};
  if (!isa<mesh::AllGatherOp>(op)) {
    if (!findMakers(op->getOperand(0), pair))
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

/// "always" means so many chunks, "auto" as many as save most.
std::pair<ChunkedPair, ChunkGain> Pairs::best(const ChunkedPair &pair) const {
  ChunkedPair one = pair;
  std::pair<ChunkedPair, ChunkGain> best{pair, gainOf(pair, times, mesh)};
  for (one.chunks.count /= 2;
       mode == spec::When::useful && one.chunks.count > 1;
       one.chunks.count /= 2) {
    ChunkGain gain = gainOf(one, times, mesh);
    if (gain.saved() > best.second.saved())
      best = {one, gain};
  }
  return best;
}

void Pairs::decide(std::optional<ChunkedPair> found,
                   void (Pairs::*chunk)(ChunkedPair &)) {
  if (!found)
    return;
  auto [pair, gain] = best(*found);
  bool isDone = mode == spec::When::always || gain.saved() > 0;
  mesh::CauseAttr cause = pair.moves.getCause();
  std::string why = cause.getReason().str();
  why += (why.empty() ? "" : "; ") + textOf(gain, pair.chunks.count, isDone);
  pair.moves->setAttr(
      "cause", mesh::CauseAttr::get(cause.getContext(), cause.getValue(),
                                    cause.getLayer(), cause.getUser(),
                                    cause.getUserLayer(),
                                    StringAttr::get(cause.getContext(), why),
                                    cause.getAnnotations()));
  if (isDone)
    (this->*chunk)(pair);
}

/// The collective of a chunk.
Value Pairs::moved(ImplicitLocOpBuilder &b, const ChunkedPair &pair, Value part,
                   int64_t chunk) const {
  Operation *op = pair.moves;
  auto type = tensorType(op->getResult(0));
  bool isGathered = isa<mesh::AllGatherOp>(op);
  IRMapping parts;
  parts.map(op->getOperand(0),
            isGathered ? part
                       : pair.chunks.merge(
                             b, part, tensorType(op->getOperand(0)), chunk));
  Operation *copy = b.clone(*op, parts);
  mesh::setChunk(copy);
  const Chunks of = isGathered ? pair.chunks : pair.chunks.ofOne();
  copy->getResult(0).setType(of.typeOf(type, chunk, /*split=*/false));
  return isGathered ? of.split(b, copy->getResult(0), chunk)
                    : copy->getResult(0);
}

/// `op` for the rows of a chunk.
Value Pairs::partOf(ImplicitLocOpBuilder &b, const Chunks &chunks,
                    Operation *op, int64_t chunk,
                    function_ref<Value(Value)> operandOf) const {
  IRMapping parts;
  for (Value operand : op->getOperands())
    if (hasDim(operand, chunks.dim) && !parts.contains(operand))
      parts.map(operand, operandOf(operand));
  Operation *part = b.clone(*op, parts);
  if (auto product = dyn_cast<ContractOp>(part)) {
    product.setEquationAttr(chunks.equationOf(cast<ContractOp>(op)));
    mesh::setChunk(product);
  }
  part->getResult(0).setType(
      chunks.typeOf(tensorType(op->getResult(0)), chunk));
  return part->getResult(0);
}

/// As it was made for the whole, or else a view of the whole.
Value Pairs::taken(ImplicitLocOpBuilder &b, const Chunks &chunks, Value value,
                   int64_t chunk) const {
  auto known = joined.find(value);
  return known != joined.end() && known->second.first == chunks
             ? known->second.second[chunk]
             : chunks.cut(b, value, chunk);
}

bool Pairs::isMade(const ChunkedPair &pair, Value value) const {
  ChunkedPair found{pair.moves, {}, pair.chunks};
  return findMakers(value, found);
}

/// What is made of products is made again for a chunk; the rest is taken.
Value Pairs::made(ImplicitLocOpBuilder &b, const ChunkedPair &pair, Value value,
                  int64_t chunk) const {
  if (!isMade(pair, value))
    return taken(b, pair.chunks, value, chunk);
  Operation *op = value.getDefiningOp();
  return partOf(b, pair.chunks, op, chunk, [&](Value operand) {
    return isa<MapOp>(op) ? made(b, pair, operand, chunk)
                          : taken(b, pair.chunks, operand, chunk);
  });
}

/// Behind all that `made` takes: maps that it makes again need not stand there.
Operation *Pairs::lastTaken(const ChunkedPair &pair, Value value) const {
  Operation *maker = value.getDefiningOp();
  if (!isa_and_nonnull<MapOp>(maker) || !isMade(pair, value))
    return maker;
  Operation *last = nullptr;
  for (Value operand : maker->getOperands())
    if (Operation *op = lastTaken(pair, operand))
      last = !last || last->isBeforeInBlock(op) ? op : last;
  return last;
}

static void eraseUnused(Operation *op) {
  SmallVector<Value> operands(op->getOperands());
  op->erase();
  for (Value operand : operands)
    if (Operation *maker = operand.getDefiningOp();
        maker && isa<ContractOp, MapOp>(maker) && maker->use_empty())
      eraseUnused(maker);
}

void Pairs::chunkSum(ChunkedPair &pair) {
  // Where its products stand: those behind them hide the last chunk.
  Operation *op = pair.moves, *before = lastTaken(pair, op->getOperand(0)),
            *behind = before->getNextNode();
  ImplicitLocOpBuilder b(op->getLoc(), behind);
  SmallVector<Value> parts;
  for (int64_t i = 0; i < pair.chunks.count; ++i)
    parts.push_back(moved(b, pair, made(b, pair, op->getOperand(0), i), i));
  Value whole =
      pair.chunks.ofOne().join(b, parts, tensorType(op->getResult(0)));
  inheritFactsSince(before, behind);
  op->getResult(0).replaceAllUsesWith(whole);
  eraseUnused(op);
}

void Pairs::chunkGather(ChunkedPair &pair) {
  Operation *op = pair.moves, *last = pair.products.back(),
            *before = last->getPrevNode();
  const Chunks &chunks = pair.chunks;
  Value result = op->getResult(0);
  ImplicitLocOpBuilder b(last->getLoc(), last);
  SmallVector<Value> gathered;
  std::vector<SmallVector<Value>> made(pair.products.size());
  for (int64_t i = 0; i < chunks.count; ++i) {
    Value here = chunks.ofOne().cut(b, op->getOperand(0), i);
    gathered.push_back(moved(b, pair, here, i));
    for (auto [product, parts] : llvm::zip_equal(pair.products, made))
      parts.push_back(partOf(b, chunks, product, i, [&](Value operand) {
        return operand == result ? gathered[i] : chunks.cut(b, operand, i);
      }));
  }
  SmallVector<Value> wholes;
  for (auto [product, parts] : llvm::zip_equal(pair.products, made)) {
    wholes.push_back(chunks.join(b, parts, product.getType()));
    joined[wholes.back()] = {chunks, parts};
  }
  inheritFactsSince(before, last);
  for (auto [product, whole] : llvm::zip_equal(pair.products, wholes)) {
    product.getResult().replaceAllUsesWith(whole);
    product.erase();
  }
  if (!result.use_empty()) { // The first that needs all of it waits for all.
    Operation *first = firstUserOf(result);
    before = first->getPrevNode();
    ImplicitLocOpBuilder b(op->getLoc(), first);
    Value whole = chunks.join(b, gathered, tensorType(result));
    inheritFactsSince(before, first);
    result.replaceAllUsesWith(whole);
  }
  op->erase();
}

struct ChunkProductsPass : impl::ChunkProductsPassBase<ChunkProductsPass> {
  using ChunkProductsPassBase::ChunkProductsPassBase;

  void runOnOperation() override {
    mesh::MeshAttr mesh = mesh::meshOf(getOperation());
    if (mode == spec::When::never || chunks < 2 || !mesh)
      return;
    ArrayRef<int64_t> sizes = mesh.getSizes();
    cost::Times times(machine, {sizes.begin(), sizes.end()});
    for (auto function : getOperation().getOps<func::FuncOp>())
      Pairs(function, times, mode, chunks).run();
  }
};
} // namespace
} // namespace meshwork::partition
