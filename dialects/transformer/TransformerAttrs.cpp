// Dim names, and what follows from them for types and factors.
#include "dialects/transformer/Transformer.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;
using namespace meshwork::transformer;

#include "dialects/transformer/TransformerEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/transformer/TransformerAttrs.cpp.inc"

void TransformerDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/transformer/TransformerAttrs.cpp.inc"
      >();
}

//===-- InitAttr ------------------------------------------------------------//

Attribute InitAttr::parse(AsmParser &parser, Type) {
  StringRef kind;
  double a = 0, b = 0;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseKeyword(&kind) || parser.parseComma() ||
      parser.parseFloat(a))
    return {};
  std::optional<InitKind> known = symbolizeInitKind(kind);
  if (!known) {
    parser.emitError(loc) << "init is '" << kind
                          << "', expected constant, normal or uniform";
    return {};
  }
  if ((*known != InitKind::constant &&
       (parser.parseComma() || parser.parseFloat(b))) ||
      parser.parseGreater())
    return {};
  Builder builder(parser.getContext());
  return get(parser.getContext(), *known, builder.getF64FloatAttr(a),
             builder.getF64FloatAttr(b));
}

void InitAttr::print(AsmPrinter &printer) const {
  printer << "<" << stringifyInitKind(getKind()) << ", ";
  printer.printFloat(getA().getValue());
  if (getKind() != InitKind::constant) {
    printer << ", ";
    printer.printFloat(getB().getValue());
  }
  printer << ">";
}

//===-- DimsAttr ------------------------------------------------------------//

Attribute DimsAttr::parse(AsmParser &parser, Type) {
  SmallVector<StringAttr> names;
  auto parseName = [&]() -> ParseResult {
    StringRef name;
    if (parser.parseKeyword(&name))
      return failure();
    names.push_back(parser.getBuilder().getStringAttr(name));
    return success();
  };
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater,
                                     parseName))
    return {};
  return parser.getChecked<DimsAttr>(loc, parser.getContext(), names);
}

void DimsAttr::print(AsmPrinter &printer) const {
  printer << "<";
  llvm::interleaveComma(getNames(), printer,
                        [&](StringAttr name) { printer << name.getValue(); });
  printer << ">";
}

LogicalResult DimsAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               ArrayRef<StringAttr> names) {
  llvm::SmallDenseSet<StringAttr> seen;
  for (StringAttr name : names)
    if (!seen.insert(name).second)
      return emitError()
             << "dim name '" << name.getValue()
             << "' occurs twice; names within a tensor are distinct";
  return success();
}

LogicalResult
DimsAttr::verifyEncoding(ArrayRef<int64_t> shape, Type,
                         function_ref<InFlightDiagnostic()> emitError) const {
  if (shape.size() != getNames().size())
    return emitError() << "tensor has " << shape.size() << " dims but "
                       << getNames().size() << " dim names";
  if (shape.empty())
    return emitError() << "tensor without dims has dim names, expected "
                          "`tensor<f32>` or `tensor<i32>`";
  int64_t bytes = 8; // Enough for any element.
  for (int64_t size : shape)
    if (!ShapedType::isDynamic(size) &&
        (size == 0 || llvm::MulOverflow(bytes, size, bytes)))
      return emitError() << "tensor of shape [" << shape << "] "
                         << (size == 0 ? "is empty" : "has 2^63 bytes or more");
  return success();
}

int64_t DimsAttr::find(StringAttr name) const {
  auto it = llvm::find(getNames(), name);
  return it == getNames().end() ? -1 : it - getNames().begin();
}

DimsAttr DimsAttr::get(MLIRContext *context, ArrayRef<StringRef> names) {
  return get(context, llvm::map_to_vector(names, [&](StringRef name) {
               return StringAttr::get(context, name);
             }));
}

//===-- Types ---------------------------------------------------------------//

namespace meshwork::transformer {

bool isF8(Type element) {
  return isa<Float8E4M3FNType, Float8E5M2Type>(element);
}
bool isNarrow(Type element) { return isF8(element) || element.isInteger(8); }
bool isWideFloat(Type element) { return element.isF32() || element.isBF16(); }

bool isNamedTensor(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return false;
  Type element = tensor.getElementType();
  bool isKnown = isWideFloat(element) || isNarrow(element) ||
                 element.isSignlessInteger(32);
  return isKnown && (tensor.getRank() == 0
                         ? !tensor.getEncoding()
                         : isa_and_nonnull<DimsAttr>(tensor.getEncoding()));
}

DimsAttr dimsOf(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  if (auto dims = dyn_cast_or_null<DimsAttr>(tensor.getEncoding()))
    return dims;
  return DimsAttr::get(type.getContext(), ArrayRef<StringAttr>());
}

RankedTensorType namedType(ArrayRef<int64_t> shape, DimsAttr dims,
                           Type element) {
  return RankedTensorType::get(shape, element,
                               shape.empty() ? Attribute() : Attribute(dims));
}

RankedTensorType withElement(Type type, Type element) {
  auto tensor = cast<RankedTensorType>(type);
  return RankedTensorType::get(tensor.getShape(), element,
                               tensor.getEncoding());
}

RankedTensorType dropDims(RankedTensorType full, DimsAttr without,
                          Type element) {
  SmallVector<int64_t> shape;
  SmallVector<StringAttr> names;
  for (auto [size, name] :
       llvm::zip_equal(full.getShape(), dimsOf(full).getNames()))
    if (without.find(name) < 0) {
      shape.push_back(size);
      names.push_back(name);
    }
  return namedType(shape, DimsAttr::get(full.getContext(), names), element);
}

bool isSubspace(RankedTensorType part, RankedTensorType space) {
  DimsAttr dims = dimsOf(space);
  if (part.getRank() > 0 && dimsOf(part).getNames().empty())
    return false;
  return llvm::all_of(llvm::zip_equal(part.getShape(), dimsOf(part).getNames()),
                      [&](auto pair) {
                        auto [size, name] = pair;
                        int64_t position = dims.find(name);
                        return position >= 0 &&
                               space.getDimSize(position) == size;
                      });
}

uint32_t randomStream(StringRef name) {
  return static_cast<uint32_t>(llvm::xxh3_64bits(name));
}

//===-- Factors -------------------------------------------------------------//

SmallVector<Factor> factorsFromNames(Operation *op) {
  SmallVector<Factor> factors; // Few: a search beats a map of them.
  unsigned numOperands = op->getNumOperands(), numResults = op->getNumResults();
  auto factorOf = [&](StringRef name, int64_t size) -> Factor & {
    auto *known = llvm::find_if(
        factors, [&](const Factor &factor) { return factor.name == name; });
    return known != factors.end() ? *known
                                  : factors.emplace_back(Factor{
                                        name, size, Factor::reduction,
                                        SmallVector<int64_t>(numOperands, -1),
                                        SmallVector<int64_t>(numResults, -1)});
  };
  auto visit = [&](Value value, unsigned index, bool isResult) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (!type)
      return;
    for (auto [position, name] : llvm::enumerate(dimsOf(type).getNames())) {
      Factor &factor = factorOf(name.getValue(), type.getDimSize(position));
      (isResult ? factor.resultDims : factor.operandDims)[index] = position;
      if (isResult)
        factor.kind = Factor::parallel;
    }
  };
  // Results first: their order is the loop nest's.
  for (auto [i, value] : llvm::enumerate(op->getResults()))
    visit(value, i, true);
  for (auto [i, value] : llvm::enumerate(op->getOperands()))
    visit(value, i, false);
  return factors;
}

uint64_t bytesOfType(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.hasStaticShape())
    return 0;
  return static_cast<uint64_t>(tensor.getNumElements()) *
         tensor.getElementTypeBitWidth() / 8;
}

uint64_t bytesOfValues(Operation *op) {
  uint64_t bytes = 0;
  for (Type type : op->getOperandTypes())
    bytes += bytesOfType(type);
  for (Type type : op->getResultTypes())
    bytes += bytesOfType(type);
  return bytes;
}

} // namespace meshwork::transformer
