// Builds the clusters that Clusters.cpp decides on.
#include "dialects/transformer/Dims.h"
#include "dialects/transformer/Facts.h"
#include "dialects/transformer/StepFunctions.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/fusion/Clusters.h"
#include "passes/fusion/Passes.h"

using namespace mlir;
namespace meshwork::fusion {
#define GEN_PASS_DEF_FUSEPASS
#include "passes/fusion/Passes.h.inc"
namespace {
using namespace transformer;

/// Columns are joined until a row has about this many elements.
constexpr int64_t wantedColumns = 256;

/// Makes room for the second half of each reduction over rows. The kernel
/// yields sums per chunk, and a cast stands for them. A vertical reduction of
/// the cast takes the place of the old result.
void splitColumnReductions(func::FuncOp function) {
  SmallVector<ReduceOp> reductions;
  function.walk([&](ReduceOp op) {
    if (!op->getParentOfType<FusedOp>() &&
        shapeOf(op) == ReductionShape::column)
      reductions.push_back(op);
  });
  DimsAttr chunk = chunkDims(function.getContext());
  for (ReduceOp op : reductions) {
    OpBuilder builder(op);
    builder.setInsertionPointAfter(op);
    SmallVector<int64_t> shape = {1}; // The cluster sets the number of chunks.
    SmallVector<StringAttr> names(chunk.getNames());
    llvm::append_range(shape, tensorType(op).getShape());
    llvm::append_range(names, dimsOf(op.getResult()).getNames());
    Type partial = namedType(shape, DimsAttr::get(function.getContext(), names),
                             builder.getF32Type());
    auto cast = UnrealizedConversionCastOp::create(builder, op.getLoc(),
                                                   partial, op.getResult());
    auto finish = ReduceOp::create(builder, op.getLoc(), op.getKind(),
                                   cast.getResult(0), chunk);
    setLayer(finish, layerOf(op));
    setStage(finish, stageOf(op));
    if (isOfStep(op))
      setOfStep(finish);
    op.getResult().replaceAllUsesExcept(finish.getResult(), cast);
  }
}

bool countsElements(Operation *op) {
  return op
      ->walk([](Operation *inner) {
        return isa<IndexOp, DrawOpInterface>(inner) ? WalkResult::interrupt()
                                                    : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Builds one FusedOp.
class ClusterBuilder {
public:
  ClusterBuilder(Cluster &cluster, DenseMap<Value, Value> &stored,
                 llvm::function_ref<int64_t(int64_t)> maxChunks,
                 int64_t leastElements)
      : cluster(cluster), stored(stored), maxChunks(maxChunks),
        leastElements(leastElements) {}

  void build(OpBuilder &builder) {
    Location loc = location();
    DimsAttr columns = chooseColumns(), rows = rowsBeside(columns);
    setChunks(rows);
    SmallVector<Value> operands;
    for (Value leaf : cluster.leaves)
      operands.push_back(stored.lookup(leaf) ? stored.lookup(leaf) : leaf);
    SmallVector<Type> types = llvm::map_to_vector(
        cluster.roots, [&](Value root) { return resultOf(root).getType(); });
    auto fused = FusedOp::create(builder, loc, types, operands, rows, columns);
    fillBody(fused);
    for (auto [root, result] :
         llvm::zip_equal(cluster.roots, fused.getResults()))
      stored[resultOf(root)] = result;
  }

private:
  Location location() {
    return FusedLoc::get(cluster.space.getContext(),
                         llvm::map_to_vector(cluster.roots, [](Value root) {
                           return root.getLoc();
                         }));
  }

  /// A reduction over rows leaves the kernel as its cast.
  static Value resultOf(Value root) {
    auto reduce = root.getDefiningOp<ReduceOp>();
    if (!reduce || shapeOf(reduce) != ReductionShape::column)
      return root;
    return cast<UnrealizedConversionCastOp>(*root.getUsers().begin())
        .getResult(0);
  }

  bool reducesRows() {
    return llvm::any_of(cluster.members, [](Operation *op) {
      auto reduce = dyn_cast<ReduceOp>(op);
      return reduce && shapeOf(reduce) == ReductionShape::column;
    });
  }

  DimsAttr chooseColumns() {
    MLIRContext *context = cluster.space.getContext();
    ArrayRef<StringAttr> names = dimsOf(cluster.space).getNames();
    if (cluster.columns)
      return *cluster.columns;
    if (names.size() == 1 && reducesRows())
      return DimsAttr::get(context, ArrayRef<StringAttr>());
    bool counts = llvm::any_of(cluster.members, countsElements);
    if (!counts && !reducesRows() && isPlain())
      return DimsAttr::get(context, names);
    size_t count = names.empty() ? 0 : 1;
    int64_t size = count ? cluster.space.getShape().back() : 1;
    while (!counts && count < names.size() - (reducesRows() ? 1 : 0) &&
           size < wantedColumns && takesColumns(names.take_back(count + 1)) &&
           !isStoredAlong(names[names.size() - count - 1]))
      size *= cluster.space.getShape()[names.size() - ++count];
    return DimsAttr::get(context, names.take_back(count));
  }

  /// Whether everything has the whole space or is a scalar: one flat loop.
  bool isPlain() {
    auto plain = [&](Value value) {
      int64_t rank = tensorType(value).getRank();
      return rank == 0 || rank == cluster.space.getRank();
    };
    return llvm::all_of(cluster.leaves, plain) &&
           llvm::all_of(cluster.roots, plain);
  }

  /// Whether a transposed copy lies along it: then its rows are tiles'.
  bool isStoredAlong(StringAttr name) {
    return llvm::any_of(cluster.roots, [&](Value root) {
      return isTransposed(root, cluster.space) &&
             dimsOf(root).getNames().back() == name;
    });
  }

  /// Whether each operand has all of `names` or none.
  bool takesColumns(ArrayRef<StringAttr> names) {
    return llvm::all_of(cluster.leaves, [&](Value leaf) {
      size_t held = llvm::count_if(
          names, [&](StringAttr name) { return dimsOf(leaf).find(name) >= 0; });
      return held == 0 || held == names.size();
    });
  }

  DimsAttr rowsBeside(DimsAttr columns) {
    SmallVector<StringAttr> rows;
    for (StringAttr name : dimsOf(cluster.space).getNames())
      if (columns.find(name) < 0)
        rows.push_back(name);
    return DimsAttr::get(cluster.space.getContext(), rows);
  }

  /// Of a cluster that does nothing but sum everything: a part is worth a
  /// block.
  int64_t mostParts() {
    bool onlySums = llvm::all_of(cluster.roots, [](Value root) {
      Value result = resultOf(root);
      return result != root && tensorType(result).getRank() == 1;
    });
    if (!onlySums || !leastElements)
      return std::numeric_limits<int64_t>::max();
    return std::max<int64_t>(1, cluster.space.getNumElements() / leastElements);
  }

  /// One number for all sums of a cluster: that of the widest.
  void setChunks(DimsAttr rows) {
    int64_t numRows = 1, columns = 1;
    for (StringAttr name : rows.getNames())
      numRows *= cluster.space.getDimSize(dimsOf(cluster.space).find(name));
    SmallVector<Value> sums;
    for (Value root : cluster.roots)
      if (Value result = resultOf(root); result != root) {
        sums.push_back(result);
        auto shape = tensorType(result).getShape().drop_front();
        columns = std::max(columns, ShapedType::getNumElements(shape));
      }
    // Blocks that take tiles are large, and so run few at once.
    if (llvm::any_of(dimsOf(cluster.space).getNames(),
                     [&](StringAttr name) { return isStoredAlong(name); }))
      columns = std::numeric_limits<int64_t>::max();
    int64_t chunks = std::min({numRows, maxChunks(columns), mostParts()});
    for (Value result : sums) {
      auto type = tensorType(result);
      SmallVector<int64_t> shape(type.getShape());
      shape[0] = chunks;
      result.setType(RankedTensorType::get(shape, type.getElementType(),
                                           type.getEncoding()));
    }
  }

  void fillBody(FusedOp fused) {
    Block *body = new Block;
    fused.getBody().push_back(body);
    IRMapping mapping;
    for (auto [leaf, operand] :
         llvm::zip_equal(cluster.leaves, fused.getInputs()))
      mapping.map(leaf, body->addArgument(operand.getType(), operand.getLoc()));
    OpBuilder builder = OpBuilder::atBlockEnd(body);
    SmallVector<Operation *> members(cluster.members.begin(),
                                     cluster.members.end());
    llvm::sort(members, [](Operation *a, Operation *b) {
      return a->isBeforeInBlock(b);
    });
    std::optional<int64_t> layer; // the last: a kernel may begin the next one
    for (Operation *op : members) {
      layer = std::max(layer, layerOf(op));
      setStage(fused, stageOf(op)); // of all: no cluster crosses stages
      dropFacts(builder.clone(*op, mapping)); // Equal kernels are one.
    }
    setLayer(fused, layer);
    if (isOfStep(cluster.roots.front().getDefiningOp()))
      setOfStep(fused);
    SmallVector<Value> yields = llvm::map_to_vector(
        cluster.roots, [&](Value root) { return mapping.lookup(root); });
    YieldOp::create(builder, fused.getLoc(), yields);
  }

  Cluster &cluster;
  DenseMap<Value, Value> &stored;
  llvm::function_ref<int64_t(int64_t)> maxChunks; // of columns
  int64_t leastElements;                          // of a part of a sum
};

/// Moves what is there from the start to the front, so that its place in the
/// text keeps no kernel from running early.
void hoistSources(Block &block) {
  Operation *front = nullptr;
  llvm::SmallPtrSet<Operation *, 16> hoisted;
  for (Operation &op : llvm::make_early_inc_range(block)) {
    auto tensors = dyn_cast<TensorOpInterface>(op);
    if (!tensors || !tensors.isSource())
      continue;
    auto hoist = [&](Operation *source) {
      if (!hoisted.insert(source).second)
        return; // Positions that several tables read.
      if (front)
        source->moveAfter(front);
      else
        source->moveBefore(&block, block.begin());
      front = source;
    };
    for (Value positions : op.getOperands())
      hoist(positions.getDefiningOp());
    hoist(&op);
  }
}

struct FusePass : impl::FusePassBase<FusePass> {
  using FusePassBase::FusePassBase;

  int64_t chunksOf(int64_t columns) {
    int64_t narrow = std::min<int64_t>(
        narrowChunks,
        llvm::bit_floor(static_cast<uint64_t>(chunkElements / columns)));
    return std::max<int64_t>(chunks, narrow);
  }

  LogicalResult fuse(func::FuncOp function) {
    splitColumnReductions(function);
    SmallVector<Block *> blocks = {&function.getBody().front()};
    function.walk(
        [&](RepeatOp repeat) { blocks.push_back(&repeat.getBody().front()); });
    return success(llvm::all_of(
        blocks, [&](Block *block) { return succeeded(fuse(*block)); }));
  }

  LogicalResult fuse(Block &block) {
    hoistSources(block);
    auto folded = roleOf(block.getParentOp()) == StepFunction::microbatch
                      ? analysis::FoldedLayers::of(getOperation())
                      : analysis::FoldedLayers();
    Clustering clustering(block, operands, tileMaxima, folded);
    if (failed(clustering.run()))
      return failure();
    DenseMap<Value, Value> stored;
    DenseMap<int64_t, Operation *> last; // cluster built last at a place
    for (Cluster &cluster : clustering.clusters) {
      OpBuilder builder(&getContext());
      Operation *&before = last[cluster.place];
      if (!before && cluster.place >= 0)
        before = clustering.anchors[cluster.place];
      if (before)
        builder.setInsertionPointAfter(before);
      else
        builder.setInsertionPointToStart(&block);
      ClusterBuilder(
          cluster, stored, [&](int64_t columns) { return chunksOf(columns); },
          partElements)
          .build(builder);
      before = before ? before->getNextNode() : &block.front();
    }
    for (auto [old, value] : stored)
      old.replaceUsesWithIf(
          value, [](OpOperand &use) { return !isFusible(use.getOwner()); });
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if ((isFusible(&op) || isa<UnrealizedConversionCastOp>(op)) &&
          op.use_empty())
        op.erase();
    return success();
  }

  void runOnOperation() override {
    for (auto [name, value, least] :
         {std::tuple("chunks", chunks.getValue(), 1),
          std::tuple("operands", operands.getValue(), 8),
          std::tuple("narrow-chunks", narrowChunks.getValue(), 0),
          std::tuple("chunk-elements", chunkElements.getValue(), 0),
          std::tuple("part-elements", partElements.getValue(), 0)})
      if (value < least) {
        getOperation().emitError()
            << name << " is " << value << ", expected at least " << least;
        return signalPassFailure();
      }
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (failed(fuse(function)))
        return signalPassFailure();
  }
};
} // namespace
} // namespace meshwork::fusion
