// Text and invariants of meshes and shardings.
#include "dialects/mesh/Mesh.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace meshwork::mesh;

#include "dialects/mesh/MeshEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/mesh/MeshAttrs.cpp.inc"

void MeshDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/mesh/MeshAttrs.cpp.inc"
      >();
}

static ParseResult parseAxis(AsmParser &parser,
                             SmallVectorImpl<StringAttr> &axes) {
  StringAttr axis;
  if (parser.parseAttribute(axis))
    return failure();
  axes.push_back(axis);
  return success();
}

static void printAxes(AsmPrinter &printer, ArrayRef<StringAttr> axes) {
  printer << "{";
  llvm::interleaveComma(axes, printer,
                        [&](StringAttr axis) { printer << axis; });
  printer << "}";
}

//===-- CauseAttr -----------------------------------------------------------//

/// Without a type behind it: what follows a cause may begin with a colon.
static ParseResult parseText(AsmParser &parser, StringAttr &text) {
  return parser.parseAttribute(text, NoneType::get(parser.getContext()));
}

/// `"name"`, and `layer 3` where it is of one.
static ParseResult parseNameOfLayer(AsmParser &parser, StringAttr &name,
                                    int64_t &layer) {
  if (parseText(parser, name))
    return failure();
  if (failed(parser.parseOptionalKeyword("layer")))
    return success();
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseInteger(layer))
    return failure();
  if (layer < 0)
    return parser.emitError(loc)
           << "layer is " << layer << ", expected 0 or more";
  return success();
}

Attribute CauseAttr::parse(AsmParser &parser, Type) {
  StringAttr value, none = StringAttr::get(parser.getContext(), ""),
                    user = none, reason = none;
  int64_t layer = noLayer, userLayer = noLayer;
  SmallVector<StringAttr> annotations;
  if (parseNameOfLayer(parser, value, layer) ||
      (succeeded(parser.parseOptionalKeyword("for")) &&
       parseNameOfLayer(parser, user, userLayer)) ||
      (succeeded(parser.parseOptionalKeyword("why")) &&
       parseText(parser, reason)))
    return {};
  if (succeeded(parser.parseOptionalKeyword("by")) &&
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
        return parser.parseAttribute(annotations.emplace_back());
      }))
    return {};
  return get(parser.getContext(), value, layer, user, userLayer, reason,
             annotations);
}

void CauseAttr::print(AsmPrinter &printer) const {
  auto name = [&](StringAttr name, int64_t layer) {
    printer << name;
    if (layer != noLayer)
      printer << " layer " << layer;
  };
  name(getValue(), getLayer());
  if (!getUser().empty()) {
    printer << " for ";
    name(getUser(), getUserLayer());
  }
  if (!getReason().empty())
    printer << " why " << getReason();
  if (getAnnotations().empty())
    return;
  printer << " by [";
  llvm::interleaveComma(getAnnotations(), printer);
  printer << "]";
}

//===-- MeshAttr ------------------------------------------------------------//

Attribute MeshAttr::parse(AsmParser &parser, Type) {
  SmallVector<StringAttr> names;
  SmallVector<int64_t> sizes;
  SMLoc loc = parser.getCurrentLocation();
  auto parseOne = [&]() -> ParseResult {
    return failure(parseAxis(parser, names) || parser.parseEqual() ||
                   parser.parseInteger(sizes.emplace_back()));
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater,
                                     parseOne))
    return {};
  return parser.getChecked<MeshAttr>(loc, parser.getContext(), names, sizes);
}

void MeshAttr::print(AsmPrinter &printer) const {
  printer << "<";
  llvm::interleaveComma(
      llvm::zip_equal(getNames(), getSizes()), printer, [&](auto axis) {
        printer << std::get<0>(axis) << "=" << std::get<1>(axis);
      });
  printer << ">";
}

LogicalResult MeshAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               ArrayRef<StringAttr> names,
                               ArrayRef<int64_t> sizes) {
  llvm::SmallDenseSet<StringAttr> seen;
  int64_t ranks = 1;
  for (auto [name, size] : llvm::zip_equal(names, sizes)) {
    if (!seen.insert(name).second)
      return emitError() << "axis " << name << " occurs twice";
    if (size < 1 || llvm::MulOverflow(ranks, size, ranks))
      return emitError()
             << "axis " << name << " has size " << size
             << ", expected a positive size and a product that fits 63 bits";
  }
  return success();
}

int64_t MeshAttr::find(StringAttr name) const {
  auto at = llvm::find(getNames(), name);
  return at == getNames().end() ? -1 : at - getNames().begin();
}

int64_t MeshAttr::sizeOf(StringAttr name) const {
  int64_t at = find(name);
  return at < 0 ? 0 : getSizes()[at];
}

int64_t MeshAttr::product(ArrayRef<StringAttr> axes) const {
  int64_t ranks = 1;
  for (StringAttr axis : axes)
    ranks *= sizeOf(axis);
  return ranks;
}

//===-- DimShardingAttr -----------------------------------------------------//

/// "p1"; other words behind a split are not of it. Texts end with a 0.
static bool beginsPriority(const char *text) {
  return text[0] == 'p' && llvm::isDigit(text[1]);
}

Attribute DimShardingAttr::parse(AsmParser &parser, Type) {
  SmallVector<StringAttr> axes, zigzag;
  bool isOpen = false;
  auto parseOne = [&]() -> ParseResult {
    if (isOpen)
      return parser.emitError(parser.getCurrentLocation())
             << "expected nothing after '?'";
    if (succeeded(parser.parseOptionalQuestion())) {
      isOpen = true;
      return success();
    }
    if (parseAxis(parser, axes))
      return failure();
    if (succeeded(parser.parseOptionalKeyword("zigzag")))
      zigzag.push_back(axes.back());
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Braces, parseOne))
    return {};
  int64_t priority = 0;
  StringRef word;
  SMLoc loc = parser.getCurrentLocation();
  if (!beginsPriority(loc.getPointer()))
    return get(parser.getContext(), axes, zigzag, isOpen, priority);
  if (parser.parseKeyword(&word) ||
      word.drop_front().getAsInteger(10, priority)) {
    parser.emitError(loc) << "expected a priority like p1";
    return {};
  }
  return get(parser.getContext(), axes, zigzag, isOpen, priority);
}

LogicalResult
DimShardingAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                        ArrayRef<StringAttr> axes, ArrayRef<StringAttr> zigzag,
                        bool, int64_t) {
  for (StringAttr axis : zigzag)
    if (!llvm::is_contained(axes, axis))
      return emitError() << "(C1) axis " << axis
                         << " is in zigzag, but does not split the dim";
  return success();
}

DimShardingAttr DimShardingAttr::of(MLIRContext *context,
                                    ArrayRef<StringAttr> axes,
                                    ArrayRef<layout::DimLayout> layouts) {
  SmallVector<StringAttr> zigzag;
  for (auto [axis, layout] : llvm::zip(axes, layouts))
    if (layout == layout::DimLayout::zigzag)
      zigzag.push_back(axis);
  return get(context, axes, zigzag, /*isOpen=*/false, /*priority=*/0);
}

meshwork::layout::DimLayout DimShardingAttr::layoutOf(StringAttr axis) const {
  return llvm::is_contained(getZigzag(), axis) ? layout::DimLayout::zigzag
                                               : layout::DimLayout::block;
}

void DimShardingAttr::print(AsmPrinter &printer) const {
  printer << "{";
  llvm::interleaveComma(getAxes(), printer, [&](StringAttr axis) {
    printer << axis << (llvm::is_contained(getZigzag(), axis) ? " zigzag" : "");
  });
  if (getIsOpen())
    printer << (getAxes().empty() ? "?" : ", ?");
  printer << "}";
  if (getPriority() != 0)
    printer << "p" << getPriority();
}

//===-- ShardingAttr --------------------------------------------------------//

Attribute ShardingAttr::parse(AsmParser &parser, Type) {
  SmallVector<DimShardingAttr> dims;
  SmallVector<StringAttr> replicated, partial;
  Reduction reduction = Reduction::sum;
  auto parseDim = [&]() -> ParseResult {
    auto dim =
        dyn_cast_or_null<DimShardingAttr>(DimShardingAttr::parse(parser, {}));
    dims.push_back(dim);
    return success(!!dim);
  };
  auto parseSet = [&](SmallVectorImpl<StringAttr> &axes) {
    return parser.parseCommaSeparatedList(
        AsmParser::Delimiter::Braces, [&] { return parseAxis(parser, axes); });
  };
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseDim))
    return {};
  while (succeeded(parser.parseOptionalComma())) {
    StringRef word, kind;
    SMLoc at = parser.getCurrentLocation();
    if (parser.parseKeyword(&word) || parser.parseEqual())
      return {};
    if (word == "replicated") {
      if (parseSet(replicated))
        return {};
    } else if (word == "partial") {
      if (parser.parseKeyword(&kind) || parseSet(partial))
        return {};
      std::optional<Reduction> known = symbolizeReduction(kind);
      if (!known) {
        parser.emitError(at)
            << "partial is '" << kind << "', expected sum or max";
        return {};
      }
      reduction = *known;
    } else {
      parser.emitError(at) << "expected `replicated` or `partial`, found '"
                           << word << "'";
      return {};
    }
  }
  if (parser.parseGreater())
    return {};
  return parser.getChecked<ShardingAttr>(loc, parser.getContext(), dims,
                                         replicated, partial, reduction);
}

void ShardingAttr::print(AsmPrinter &printer) const {
  printer << "<[";
  llvm::interleaveComma(getDims(), printer,
                        [&](DimShardingAttr dim) { dim.print(printer); });
  printer << "]";
  if (!getReplicated().empty()) {
    printer << ", replicated = ";
    printAxes(printer, getReplicated());
  }
  if (!getPartial().empty()) {
    printer << ", partial = " << stringifyReduction(getReduction()) << " ";
    printAxes(printer, getPartial());
  }
  printer << ">";
}

LogicalResult ShardingAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   ArrayRef<DimShardingAttr> dims,
                                   ArrayRef<StringAttr> replicated,
                                   ArrayRef<StringAttr> partial, Reduction) {
  llvm::SmallDenseSet<StringAttr> seen;
  auto check = [&](ArrayRef<StringAttr> axes) -> LogicalResult {
    for (StringAttr axis : axes)
      if (!seen.insert(axis).second)
        return emitError() << "axis " << axis
                           << " is used twice; an axis splits one dim, or is "
                              "replicated, or is partial";
    return success();
  };
  for (DimShardingAttr dim : dims)
    if (failed(check(dim.getAxes())))
      return failure();
  return failure(failed(check(replicated)) || failed(check(partial)));
}
