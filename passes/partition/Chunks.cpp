#include "passes/partition/Chunks.h"

using namespace mlir;
namespace meshwork::partition {
using namespace transformer;

/// `type` with `size` rows, behind a dim of `ranks` if there are several.
static RankedTensorType withRows(RankedTensorType type, StringAttr dim,
                                 int64_t size, int64_t ranks = 1) {
  int64_t at = dimsOf(type).find(dim);
  SmallVector<int64_t> shape(type.getShape());
  SmallVector<StringAttr> names(dimsOf(type).getNames());
  shape[at] = size;
  if (ranks > 1) {
    shape.insert(shape.begin() + at, ranks);
    auto name = StringAttr::get(dim.getContext(), dim.getValue() + "_of_ranks");
    names.insert(names.begin() + at, name);
  }
  return namedType(shape, DimsAttr::get(type.getContext(), names),
                   type.getElementType());
}

RankedTensorType Chunks::typeOf(RankedTensorType type, int64_t chunk,
                                bool split) const {
  return split ? withRows(type, dim, size(chunk), ranks)
               : withRows(type, dim, rows(chunk));
}

Value Chunks::split(ImplicitLocOpBuilder &b, Value part, int64_t chunk) const {
  if (ranks == 1)
    return part;
  return SplitOp::create(b, typeOf(tensorType(part), chunk), part, dim);
}

Value Chunks::merge(ImplicitLocOpBuilder &b, Value part, RankedTensorType whole,
                    int64_t chunk) const {
  if (ranks == 1)
    return part;
  return MergeOp::create(b, typeOf(whole, chunk, /*split=*/false), part, dim,
                         StringAttr());
}

Value Chunks::cut(ImplicitLocOpBuilder &b, Value whole, int64_t chunk) const {
  RankedTensorType type = tensorType(whole);
  Value all = whole;
  if (ranks > 1)
    all = SplitOp::create(b, withRows(type, dim, local, ranks), whole, dim);
  return SliceOp::create(b, typeOf(type, chunk), all, dim,
                         b.getI64IntegerAttr(offset(chunk)));
}

Value Chunks::join(ImplicitLocOpBuilder &b, ArrayRef<Value> parts,
                   RankedTensorType whole) const {
  auto offsets = llvm::map_to_vector(
      llvm::seq(count), [&](int64_t chunk) { return offset(chunk); });
  Value joined = UnsliceOp::create(b, withRows(whole, dim, local, ranks), parts,
                                   dim, b.getDenseI64ArrayAttr(offsets));
  if (ranks > 1)
    joined = MergeOp::create(b, whole, joined, dim, StringAttr());
  return joined;
}

/// A letter that `equation` has not; it has few.
static char freshLetter(StringRef equation) {
  char letter = 'a';
  while (equation.contains(letter))
    ++letter;
  return letter;
}

StringAttr Chunks::equationOf(ContractOp product) const {
  StringRef equation = product.getEquation();
  if (ranks == 1)
    return product.getEquationAttr();
  Equation terms = *Equation::parse(equation);
  char letter = terms.result[dimsOf(product.getResult()).find(dim)];
  std::string with;
  for (char c : equation)
    with +=
        c == letter ? std::string{freshLetter(equation), c} : std::string{c};
  return StringAttr::get(product.getContext(), with);
}

} // namespace meshwork::partition
