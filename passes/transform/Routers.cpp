#include "passes/transform/Routers.h"
#include "dialects/transformer/Dims.h"

using namespace mlir;
namespace meshwork::transform {
using namespace transformer;

llvm::SetVector<Operation *> routersOf(func::FuncOp function) {
  llvm::SetVector<Operation *> routers;
  function.walk([&](ExpertsOp op) {
    if (Operation *from = op.getChoices().getDefiningOp();
        from && from->getNumOperands() > 0)
      routers.insert(from);
  });
  return routers;
}

static Value ones(ImplicitLocOpBuilder &b, Type type) {
  return buildMap(b, b.getLoc(), type, {},
                  [](ImplicitLocOpBuilder &i, ValueRange) -> Value {
                    return arith::ConstantOp::create(i, i.getF32FloatAttr(1));
                  });
}

Value chosenBy(ImplicitLocOpBuilder &b, Operation *router, Type scores) {
  Value choices = router->getResult(0);
  Value each = ones(b, withElement(choices.getType(), b.getF32Type()));
  return PickGradOp::create(b, scores, each, choices);
}

static std::string letters(size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i)
    text += static_cast<char>('a' + i);
  return text;
}

/// A product with ones, as dims in the middle are added up by products alone.
Value sumOverTokens(ImplicitLocOpBuilder &b, Value of, bool ofEachSample) {
  auto type = tensorType(of);
  ArrayRef<StringAttr> names = dimsOf(of).getNames();
  std::string rows = letters(names.size() - 1), kept;
  SmallVector<int64_t> shape;
  SmallVector<StringAttr> left;
  for (auto [i, name] : llvm::enumerate(names))
    if ((ofEachSample && name.getValue() == dims::samples) ||
        i + 1 == names.size()) {
      kept += static_cast<char>('a' + i);
      shape.push_back(type.getDimSize(i));
      left.push_back(name);
    }
  DimsAttr dimsOfRows = DimsAttr::get(b.getContext(), names.drop_back());
  Type rowType =
           namedType(type.getShape().drop_back(), dimsOfRows, b.getF32Type()),
       result = namedType(shape, DimsAttr::get(b.getContext(), left),
                          b.getF32Type());
  return ContractOp::create(
      b, result,
      b.getStringAttr(letters(names.size()) + "," + rows + "->" + kept), of,
      ones(b, rowType));
}

} // namespace meshwork::transform
