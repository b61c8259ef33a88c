// Which gradients are reduced in 8 or 4 bits, and over which axes first.
#include "dialects/transformer/Facts.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/transform/GradientError.h"
#include "passes/transform/Passes.h"
#include "passes/transform/QuantizedSum.h"

using namespace mlir;
namespace meshwork::transform {
#define GEN_PASS_DEF_QUANTIZEGRADIENTSPASS
#include "passes/transform/Passes.h.inc"
namespace {
using namespace transformer;

/// Whose gradient @update reduces; null: it is no such sum.
StringAttr finalGradientOf(mesh::ReduceScatterOp op) {
  auto state = op.getInput().getDefiningOp<StateOp>();
  return state && state.getKind() == StateKind::gradient ? state.getNameAttr()
                                                         : StringAttr();
}

/// Whose gradient it is, in a microbatch or at the end of a step; null: none.
StringAttr gradientOf(mesh::ReduceScatterOp op) {
  for (Operation *user : op->getUsers())
    if (auto added = dyn_cast<AccumulateOp>(user);
        added && added.getKind() == StateKind::gradient)
      return added.getNameAttr();
  return finalGradientOf(op);
}

struct QuantizeGradientsPass
    : impl::QuantizeGradientsPassBase<QuantizeGradientsPass> {
  using QuantizeGradientsPassBase::QuantizeGradientsPassBase;

  void runOnOperation() override {
    if (type == spec::GradientType::precision)
      return;
    llvm::SmallDenseSet<StringAttr> vectors; // biases may have several dims
    getOperation().walk([&](transformer::ParameterOp op) {
      if (!op.isMatrixInFiles())
        vectors.insert(op.getNameAttr());
    });
    SmallVector<mesh::ReduceScatterOp> all;
    getOperation().walk([&](mesh::ReduceScatterOp op) {
      StringAttr parameter = gradientOf(op);
      if (parameter && !vectors.contains(parameter) &&
          op.getReduction() == mesh::Reduction::sum &&
          tensorType(op.getInput()).getRank() > 1)
        all.push_back(op);
    });
    std::optional<GradientError> error;
    if (tellError && !GradientError::isToldIn(getOperation()))
      return signalPassFailure();
    if (tellError)
      error.emplace(getOperation(), stages);
    for (mesh::ReduceScatterOp op : all)
      quantize(op, error ? &*error : nullptr);
    if (error)
      error->tell();
  }

private:
  void quantize(mesh::ReduceScatterOp op, GradientError *error) {
    OpBuilder builder(op);
    Operation *before = op->getPrevNode();
    Value sum = op.getInput();
    std::vector<SumOver> sums = sumsOf(op);
    SmallVector<Value> errors;
    for (auto [i, over] : llvm::enumerate(sums)) {
      bool isLast = i + 1 == sums.size();
      Blocks blocks(tensorType(sum), op.getDim(), type, block);
      sum = QuantizedSum(builder, op, over, blocks, error ? &errors : nullptr)
                .run(sum,
                     isLast ? tensorType(op.getResult()).getElementType()
                            : builder.getF32Type(),
                     isLast ? finalGradientOf(op) : StringAttr());
    }
    if (error)
      error->add(builder, op, gradientOf(op), errors);
    inheritFactsSince(before, op);
    op.getResult().replaceAllUsesWith(sum);
    op.erase();
  }

  /// First over the inner axes, where each rank's part is then as of one sum.
  std::vector<SumOver> sumsOf(mesh::ReduceScatterOp op) {
    mesh::MeshAttr mesh = mesh::meshOf(op);
    auto over = [&](ArrayRef<Attribute> axes) {
      ArrayAttr attr = ArrayAttr::get(op.getContext(), axes);
      return SumOver{
          attr, mesh.product(llvm::to_vector(attr.getAsRange<StringAttr>()))};
    };
    ArrayRef<Attribute> axes = op.getAxes().getValue();
    size_t count =
        llvm::find_if_not(axes,
                          [&](Attribute axis) {
                            return llvm::is_contained(
                                inner, cast<StringAttr>(axis).getValue());
                          }) -
        axes.begin();
    SumOver first = over(axes.take_front(count)),
            rest = over(axes.drop_front(count)), all = over(axes);
    int64_t size = tensorType(op.getInput()).getDimSize(op.getDim()),
            part = tensorType(op.getResult()).getDimSize(op.getDim());
    bool isAlike = static_cast<int64_t>(llvm::divideCeil(size, first.ranks)) ==
                   part * rest.ranks;
    if (first.ranks == 1 || rest.ranks == 1 || !isAlike)
      return {all};
    return {first, rest};
  }
};
} // namespace
} // namespace meshwork::transform
