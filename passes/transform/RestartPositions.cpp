// Begins positions anew with each document: rows of tables that lay along the
// sequence are looked up by the position that the launcher gives each token.
#include "dialects/transformer/Dims.h"
#include "dialects/transformer/Facts.h"
#include "passes/analysis/SpecKey.h"
#include "passes/transform/Loss.h"
#include "passes/transform/Passes.h"

using namespace mlir;
namespace meshwork::transform {
#define GEN_PASS_DEF_RESTARTPOSITIONSPASS
#include "passes/transform/Passes.h.inc"
namespace {
using namespace transformer;

/// What the dim of tokens is called where it counts the rows of a table.
constexpr StringRef positionsDim = "positions";

InFlightDiagnostic wrong(Operation *op) {
  return emitError(analysis::ofSpec("batch.positions", op->getLoc()));
}

class Restart {
public:
  explicit Restart(func::FuncOp loss)
      : tokens(tensorType(loss.getArgument(0))), builder(loss.getContext()) {
    positions = addInput(loss, "document_positions", tokens);
  }

  LogicalResult lookUp(RotaryTableOp op) {
    builder.setInsertionPoint(op);
    auto type = tensorType(op.getCosine());
    Type rows = renamed(type);
    auto tables = RotaryTableOp::create(
        builder, op.getLoc(), rows, rows,
        /*positions=*/Value(), op.getInverseFrequencies(), op.getScale());
    for (auto [old, table] :
         llvm::zip_equal(op->getResults(), tables->getResults()))
      if (failed(replace(old, table)))
        return failure();
    op->erase();
    return success();
  }

  /// A table may have rows before that of the first position. Of more rows
  /// than the sequence has tokens the last ones are not looked up.
  LogicalResult lookUp(SliceOp op) {
    builder.setInsertionPoint(op);
    OfSameBlock inherit(builder, op);
    Value table = op.getInput();
    if (op.getOffset() != 0)
      table = SliceOp::create(builder, op.getLoc(),
                              renamed(tensorType(op.getResult()), op.getDim()),
                              table, op.getDimAttr(), op.getOffsetAttr());
    if (failed(replace(op.getResult(), table)))
      return failure();
    op->erase();
    return success();
  }

private:
  /// With rows of positions where there were tokens.
  static RankedTensorType renamed(RankedTensorType type,
                                  StringRef name = positionsDim) {
    SmallVector<StringRef> names;
    for (StringAttr dim : dimsOf(type).getNames())
      names.push_back(dim == dims::tokens ? name : dim.getValue());
    return namedType(type.getShape(), DimsAttr::get(type.getContext(), names),
                     type.getElementType());
  }

  /// Each token's row of `table` in the place of `old`.
  LogicalResult replace(Value old, Value table) {
    for (Operation *user : old.getUsers())
      if (!isa<MapOp>(user) || !hasSamples(user->getResult(0)))
        return wrong(user) << "a position's row goes into " << user->getName()
                           << " of no samples, and positions that begin anew "
                              "differ between samples; set batch.positions to "
                              "\"sequence\", or let the model add it to what "
                              "has the dim 'batch'";
    SmallVector<int64_t> shape(tokens.getShape());
    SmallVector<StringAttr> names(dimsOf(tokens).getNames());
    auto row = tensorType(table);
    llvm::append_range(shape, row.getShape().drop_front());
    llvm::append_range(names, dimsOf(row).getNames().drop_front());
    Type type = namedType(shape, DimsAttr::get(row.getContext(), names),
                          row.getElementType());
    old.replaceAllUsesWith(EmbeddingOp::create(builder, old.getLoc(), type,
                                               table, positions,
                                               /*first_row=*/Value(),
                                               /*padding_id=*/IntegerAttr()));
    return success();
  }
  bool hasSamples(Value value) const {
    return dimsOf(value).find(dimsOf(tokens).getNames()[0]) >= 0;
  }

  RankedTensorType tokens;
  OpBuilder builder;
  Value positions;
};

/// Whether rows of a table become the tokens of a sequence, in their order.
bool isOfPositions(SliceOp op) {
  auto type = tensorType(op.getResult());
  int64_t dim =
      dimsOf(type).find(StringAttr::get(op.getContext(), dims::tokens));
  return dim == 0 && op.getPosition() == 0 && !op.dropsDim() &&
         op.getDim() != dims::tokens;
}

struct RestartPositionsPass
    : impl::RestartPositionsPassBase<RestartPositionsPass> {
  void runOnOperation() override {
    func::FuncOp loss = lossOf(getOperation());
    if (!loss)
      return signalPassFailure();
    SmallVector<RotaryTableOp> tables(loss.getOps<RotaryTableOp>());
    SmallVector<SliceOp> slices =
        llvm::filter_to_vector(loss.getOps<SliceOp>(), isOfPositions);
    if (tables.empty() && slices.empty()) {
      wrong(loss) << "the model has no positions that could begin anew; set "
                     "batch.positions to \"sequence\"";
      return signalPassFailure();
    }
    Restart restart(loss);
    bool fine = true;
    for (RotaryTableOp op : tables)
      fine &= succeeded(restart.lookUp(op));
    for (SliceOp op : slices)
      fine &= succeeded(restart.lookUp(op));
    if (!fine)
      signalPassFailure();
  }
};
} // namespace
} // namespace meshwork::transform
