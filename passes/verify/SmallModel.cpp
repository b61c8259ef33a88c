#include "passes/verify/SmallModel.h"

#include "dialects/transformer/Transformer.h"

using namespace mlir;
using namespace meshwork::transformer;
namespace meshwork::verify {

//===-- Sizes ---------------------------------------------------------------//

ModelDims::ModelDims(ModuleOp model) {
  model.walk([&](Operation *op) {
    for (Type type : op->getResultTypes())
      addType(type);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (Type type : block.getArgumentTypes())
          addType(type);
    addOp(op);
  });
  for (const std::string &name : fixed)
    sizes.erase(name);
}

void ModelDims::addType(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !isNamedTensor(type))
    return;
  for (auto [name, size] :
       llvm::zip_equal(dimsOf(tensor).getNames(), tensor.getShape())) {
    auto [known, isNew] = sizes.try_emplace(name.getValue().str(), size);
    if (!isNew && known->second != size)
      fixed.insert(known->first);
  }
}

void ModelDims::addOp(Operation *op) {
  if (auto rope = dyn_cast<RopeOp>(op)) {
    // Where a part of it turns, so it does in the small model.
    bool isWhole =
        tensorType(rope.getInput()).getShape().back() ==
        2 * static_cast<int64_t>(rope.getInverseFrequencies().size());
    (isWhole ? even : fixed)
        .insert(dimsOf(rope.getInput()).getNames().back().getValue().str());
  }
  if (auto attention = dyn_cast<AttentionOp>(op)) {
    constexpr size_t heads = 2, width = 3; // [b, s, heads, d]
    auto nameIn = [](Value value, size_t dim) {
      return dimsOf(value).getNames()[dim].getValue().str();
    };
    Value q = attention.getQ(), k = attention.getK();
    keysOf[nameIn(q, heads)] = nameIn(k, heads);
    for (Value value : {q, k})
      widthOf[nameIn(value, heads)] = nameIn(value, width);
    if (int64_t window = attention.getTerms().getWindow(); window > 0)
      windows.insert(window);
  }
  if (auto slice = dyn_cast<SliceOp>(op)) {
    // Parts of one size, such as q, k and v, are told by their offsets.
    bool isTable = tensorType(slice.getResult()).getRank() ==
                       tensorType(slice.getInput()).getRank() &&
                   slice.getOffset() == 0;
    (isTable ? tables : fixed).insert(slice.getDim().str());
  }
  if (auto computing = dyn_cast<FactorOpInterface>(op))
    for (const Factor &factor : computing.getFactors())
      if (factor.isCounted)
        fixed.insert(factor.name.str());
}

static Type resized(Type type, const SmallSizes &sizes) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !isNamedTensor(type))
    return type;
  SmallVector<int64_t> shape(tensor.getShape());
  for (auto [name, size] : llvm::zip_equal(dimsOf(tensor).getNames(), shape))
    if (auto found = sizes.dims.find(name.getValue().str());
        found != sizes.dims.end() && !ShapedType::isDynamic(size))
      size = found->second;
  return RankedTensorType::get(shape, tensor.getElementType(),
                               tensor.getEncoding());
}

static void resizeOp(Operation *op, const SmallSizes &sizes) {
  if (auto parameter = dyn_cast<ParameterOp>(op)) {
    parameter.removeFileShapeAttr();
    parameter.removeFilesAttr();
    parameter.removeOtherFilesAttr();
  }
  if (auto embedding = dyn_cast<EmbeddingOp>(op))
    if (std::optional<uint64_t> id = embedding.getPaddingId())
      embedding.setPaddingId(*id %
                             tensorType(embedding.getTable()).getDimSize(0));
  if (auto rope = dyn_cast<RopeOp>(op)) {
    auto kept = rope.getInverseFrequencies().take_front(
        tensorType(rope.getInput()).getShape().back() / 2);
    rope.setInverseFrequencies(kept);
  }
  if (auto attention = dyn_cast<AttentionOp>(op))
    if (auto found = sizes.windows.find(attention.getTerms().getWindow());
        found != sizes.windows.end())
      attention.setTermsAttr(
          attention.getTerms().with({.window = found->second}));
}

void resize(ModuleOp model, const SmallSizes &sizes) {
  AttrTypeReplacer types;
  types.addReplacement([&](Type type) -> std::optional<Type> {
    if (!isa<RankedTensorType>(type))
      return std::nullopt;
    return resized(type, sizes);
  });
  types.recursivelyReplaceElementsIn(model, /*replaceAttrs=*/true,
                                     /*replaceLocs=*/false,
                                     /*replaceTypes=*/true);
  model.walk([&](Operation *op) { resizeOp(op, sizes); });
}

} // namespace meshwork::verify
