// Attention and its gradient. What the device functions take:
// library/README.md.
#include "meshwork/Plan/Gpu.h"
#include "passes/codegen/gpu/Calls.h"
#include "passes/codegen/gpu/StridedView.h"
#include "passes/codegen/gpu/library/AttentionGeometry.h"

using namespace mlir;
namespace meshwork::codegen {
namespace {

/// What forward and backward share.
template <typename Op> class Attention {
public:
  explicit Attention(Op op)
      : op(op), part(op.getPart()), q(stridedView(op.getQ())),
        k(stridedView(op.getK())) {}

  LogicalResult check() {
    static_assert(attention::classOf(plan::mostHeadElements) &&
                  !attention::classOf(plan::mostHeadElements + 1));
    if (headDim() > plan::mostHeadElements)
      return op.emitOpError()
             << "has heads of " << headDim() << " elements, expected at most "
             << plan::mostHeadElements << " on a GPU";
    for (auto [what, count] :
         {std::pair("queries", rows()), std::pair("keys", columns()),
          std::pair("keys in all", allKeys())})
      if (count > plan::mostSequence)
        return op.emitOpError()
               << "has " << count << " " << what << ", expected at most "
               << plan::mostSequence << " on a GPU";
    return success();
  }

  int64_t batch() const { return q.shape[0]; }
  int64_t rows() const { return q.shape[1]; }    // of queries
  int64_t columns() const { return k.shape[1]; } // rows of keys
  int64_t heads() const { return q.shape[2]; }
  int64_t kvHeads() const { return k.shape[2]; }
  int64_t headDim() const { return q.shape[3]; }
  bool isBf16() const { return q.element.isBF16(); }
  int headClass() const { return attention::classOf(headDim()); }
  bool hasDocuments() const { return static_cast<bool>(part.documents); }
  bool hasPositions() const { return static_cast<bool>(part.positions); }
  bool hasKeys() const { return static_cast<bool>(part.keys); }
  int64_t allKeys() const { // of the sequence
    return hasKeys() ? part.terms.getTotalKeys() : columns();
  }
  bool hasDropout() const { return !part.terms.getRate().isZero(); }
  /// Pointers to `inputs` operands; to where documents begin, which queries and
  /// keys the rows are and to dropout's, null where absent; to `results`
  /// operands.
  void addPointers(DeviceCall &call, int64_t inputs, int64_t results) const {
    int64_t next = 0;
    auto addAll = [&](int64_t count) {
      for (int64_t i = 0; i < count; ++i)
        call.pointer(next++);
    };
    auto addIf = [&](bool isThere) {
      call.pointerIf(isThere, next);
      next += isThere;
    };
    addAll(inputs);
    addIf(hasDocuments());
    addIf(hasPositions());
    addIf(hasKeys());
    addIf(hasDropout());
    addIf(hasDropout() && part.random.size() > 1);
    addAll(results);
  }

  /// "meshwork_attention" + `what` + "_bf16_64".
  std::string function(StringRef what, bool hasClass = true) const {
    std::string name =
        ("meshwork_attention" + what + (isBf16() ? "_bf16" : "_f32")).str();
    return hasClass ? name + "_" + std::to_string(headClass()) : name;
  }

  DeviceCall call(StringRef function, const attention::Tile &tile,
                  int64_t grid) const {
    DeviceCall call{function.str(), {}, grid, tile.threads, tile.sharedBytes};
    call.blocksAtOnce = 1; // Registers, not blocks, make it fast.
    return call;
  }

  /// Sizes, strides, and what the scores go through. The last operand is a
  /// result.
  void addConstants(DeviceCall &call, ArrayRef<Value> operands) const {
    bool isWide = stridedView(operands.back()).element != q.element;
    call.integers(
        {rows(), columns(), allKeys(), heads(), kvHeads(), headDim()});
    bool isAligned = headDim() * q.bytes() % 16 == 0;
    for (Value operand : operands) {
      StridedView view = stridedView(operand);
      isAligned &= view.alignBytes % 16 == 0 &&
                   (view.shape[3] == 1 || view.strides[3] == 1);
      for (unsigned dim = 0; dim < 3; ++dim) {
        int64_t stride = view.shape[dim] == 1 ? 0 : view.strides[dim];
        isAligned &= stride * view.bytes() % 16 == 0;
        call.integers({stride});
      }
    }
    StridedView lse = stridedView(op.getLse());
    call.integers({lse.shape[0] == 1 ? 0 : lse.strides[0],
                   lse.shape[1] == 1 ? 0 : lse.strides[1]});
    transformer::AttentionAttr terms = part.terms;
    double rate = terms.getRate().convertToDouble();
    call.integers({isAligned, isWide, terms.getCausal(), terms.getWindow(),
                   hasDocuments(), hasPositions(), hasKeys(), hasDropout()});
    if (hasDropout())
      call.stream(terms.getStream());
    else
      call.integers({0});
    call.integers(
        {static_cast<int64_t>(static_cast<uint32_t>(rate * 4294967296.0)),
         terms.getTotalHeads() ? terms.getTotalHeads() : heads()});
    call.number(static_cast<float>(terms.getScale().convertToDouble()))
        .number(static_cast<float>(1.0 / (1.0 - rate)))
        .number(static_cast<float>(terms.getCap().convertToDouble()));
  }

  /// The functions read rows of a head and lse along queries element after
  /// element; documents lie so anyway.
  LogicalResult checkDense(ArrayRef<Value> operands) const {
    for (Value operand : operands)
      if (StridedView view = stridedView(operand);
          view.shape[3] > 1 && view.strides[3] != 1)
        return op.emitOpError() << "has an operand " << operand.getType()
                                << ", expected dense rows of a head";
    if (StridedView lse = stridedView(op.getLse());
        lse.shape[2] > 1 && lse.strides[2] != 1)
      return op.emitOpError()
             << "has lse " << op.getLse().getType() << ", expected dense rows";
    return success();
  }

  /// A kernel has one type for all that it writes.
  LogicalResult checkResults(ArrayRef<Value> results) const {
    Type first = stridedView(results.front()).element;
    for (Value result : results)
      if (Type found = stridedView(result).element; found != first)
        return op.emitOpError() << "has results of " << first << " and "
                                << found << ", expected one type on a GPU";
    return success();
  }

  LogicalResult finish(DeviceCalls &result) const {
    for (const DeviceCall &call : result.calls)
      if (call.grid > INT32_MAX)
        return op.emitOpError() << "needs " << call.grid
                                << " blocks, expected fewer than 2^31 on a GPU";
    return success();
  }

private:
  mutable Op op;
  transformer::AttentionPart part;
  StridedView q, k;
};
} // namespace

LogicalResult addCalls(schedule::AttentionOp op, DeviceCalls &result) {
  Attention attention(op);
  SmallVector<Value> operands = {op.getQ(), op.getK(), op.getV(), op.getOut()};
  if (failed(attention.check()) || failed(attention.checkDense(operands)))
    return failure();
  bool isBf16 = attention.isBf16();
  int d = attention.headClass();
  DeviceCall call = attention.call(
      attention.function(""), attention::forwardTile(isBf16, d),
      attention::forwardGrid(isBf16, d, attention.batch(), attention.rows(),
                             attention.heads()));
  attention.addPointers(call, 3, 2);
  attention.addConstants(call, operands);
  result.calls.push_back(std::move(call));
  return attention.finish(result);
}

LogicalResult addCalls(schedule::AttentionGradOp op, DeviceCalls &result) {
  Attention attention(op);
  SmallVector<Value> operands = {op.getQ(),   op.getK(),    op.getV(),
                                 op.getOut(), op.getDout(), op.getDq(),
                                 op.getDk(),  op.getDv()};
  if (failed(attention.check()) || failed(attention.checkDense(operands)) ||
      failed(attention.checkResults(ArrayRef(operands).take_back(3))))
    return failure();
  bool isBf16 = attention.isBf16();
  int d = attention.headClass();
  int64_t batch = attention.batch(), rows = attention.rows(),
          heads = attention.heads();
  result.workspaceBytes = attention::workspaceBytes(batch, rows, heads);
  result.calls = {
      attention.call(attention.function("_row_sums", /*hasClass=*/false),
                     {0, 0, attention::rowSumThreads, 0},
                     attention::rowSumGrid(batch, rows, heads)),
      attention.call(
          attention.function("_grad_keys"), attention::keyGradTile(isBf16, d),
          attention::keyGradGrid(isBf16, d, batch, attention.columns(),
                                 attention.kvHeads())),
      attention.call(attention.function("_grad_queries"),
                     attention::queryGradTile(isBf16, d),
                     attention::queryGradGrid(isBf16, d, batch, rows, heads))};
  for (DeviceCall &call : result.calls) {
    attention.addPointers(call, 6, 3);
    call.workspace();
    attention.addConstants(call, operands);
  }
  return attention.finish(result);
}

} // namespace meshwork::codegen
