// Products in chunks beside the collectives that bring what they read, or take
// what they make: one chunk travels under the product of another.
#include "dialects/mesh/Chunk.h"
#include "dialects/transformer/Facts.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "passes/analysis/TimesOn.h"
#include "passes/partition/ChunkGain.h"
#include "passes/partition/Passes.h"

using namespace mlir;
namespace meshwork::partition {
#define GEN_PASS_DEF_CHUNKPRODUCTSPASS
#include "passes/partition/Passes.h.inc"
namespace {
using namespace transformer;

class Pairs {
public:
  Pairs(func::FuncOp function, const cost::Times &times, spec::When mode,
        int64_t count)
      : function(function), times(times), mesh(mesh::meshOf(function)),
        mode(mode), count(count) {}

  void run() {
    for (auto op :
         llvm::make_early_inc_range(function.getOps<mesh::AllGatherOp>()))
      decide(pairOf(op, mesh, count), &Pairs::chunkGather);
    for (Operation &op : llvm::make_early_inc_range(function.getBody().front()))
      if (isa<mesh::ReduceScatterOp, mesh::AllReduceOp>(op))
        decide(pairOf(cast<mesh::CollectiveOpInterface>(op), mesh, count),
               &Pairs::chunkSum);
  }

private:
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

/// What is made of products is made again for a chunk; the rest is taken.
Value Pairs::made(ImplicitLocOpBuilder &b, const ChunkedPair &pair, Value value,
                  int64_t chunk) const {
  if (!isMade(value, pair.chunks.dim))
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
  if (!isa_and_nonnull<MapOp>(maker) || !isMade(value, pair.chunks.dim))
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
    cost::Times times = analysis::timesOn(machine, mesh);
    for (auto function : getOperation().getOps<func::FuncOp>())
      Pairs(function, times, mode, chunks).run();
  }
};
} // namespace
} // namespace meshwork::partition
