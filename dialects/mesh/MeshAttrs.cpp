// Text and invariants of meshes and shardings.
#include "dialects/mesh/Mesh.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
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

Attribute DimShardingAttr::parse(AsmParser &parser, Type) {
  SmallVector<StringAttr> axes;
  bool isOpen = false;
  auto parseOne = [&]() -> ParseResult {
    if (isOpen)
      return parser.emitError(parser.getCurrentLocation())
             << "expected nothing after '?'";
    if (succeeded(parser.parseOptionalQuestion())) {
      isOpen = true;
      return success();
    }
    return parseAxis(parser, axes);
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Braces, parseOne))
    return {};
  int64_t priority = 0;
  StringRef word;
  SMLoc loc = parser.getCurrentLocation();
  if (succeeded(parser.parseOptionalKeyword(&word)) &&
      (!word.consume_front("p") || word.getAsInteger(10, priority) ||
       priority < 0)) {
    parser.emitError(loc) << "expected a priority like p1";
    return {};
  }
  return get(parser.getContext(), axes, isOpen, priority);
}

void DimShardingAttr::print(AsmPrinter &printer) const {
  printer << "{";
  llvm::interleaveComma(getAxes(), printer,
                        [&](StringAttr axis) { printer << axis; });
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

//===-- Where they are kept -------------------------------------------------//

namespace meshwork::mesh {

MeshAttr meshOf(Operation *op) {
  auto module = dyn_cast<ModuleOp>(op);
  if (!module)
    module = op->getParentOfType<ModuleOp>();
  return module ? module->getAttrOfType<MeshAttr>(MeshDialect::meshName)
                : MeshAttr();
}

ShardingAttr shardingOf(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto function =
        dyn_cast<FunctionOpInterface>(argument.getOwner()->getParentOp());
    return function ? function.getArgAttrOfType<ShardingAttr>(
                          argument.getArgNumber(), MeshDialect::shardingName)
                    : ShardingAttr();
  }
  auto list = value.getDefiningOp()->getAttrOfType<ArrayAttr>(
      MeshDialect::shardingsName);
  unsigned number = cast<OpResult>(value).getResultNumber();
  return list && number < list.size() ? dyn_cast<ShardingAttr>(list[number])
                                      : ShardingAttr();
}

void setSharding(Value value, ShardingAttr sharding) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    cast<FunctionOpInterface>(argument.getOwner()->getParentOp())
        .setArgAttr(argument.getArgNumber(), MeshDialect::shardingName,
                    sharding);
    return;
  }
  Operation *op = value.getDefiningOp();
  SmallVector<Attribute> list(op->getNumResults(),
                              UnitAttr::get(op->getContext()));
  if (auto known = op->getAttrOfType<ArrayAttr>(MeshDialect::shardingsName))
    llvm::copy(known, list.begin());
  list[cast<OpResult>(value).getResultNumber()] = sharding;
  op->setAttr(MeshDialect::shardingsName,
              ArrayAttr::get(op->getContext(), list));
}

FailureOr<ShardingAttr>
parseSharding(StringRef text, MLIRContext *context,
              function_ref<InFlightDiagnostic()> onError) {
  std::string full = "#mesh.sharding<" + text.str() + ">", message;
  ShardingAttr sharding;
  {
    // Gone before onError reports, which it would silence too.
    ScopedDiagnosticHandler quiet(
        context, [&](Diagnostic &diagnostic) { message = diagnostic.str(); });
    sharding =
        dyn_cast_or_null<ShardingAttr>(mlir::parseAttribute(full, context));
  }
  if (sharding)
    return sharding;
  return onError() << "'" << text << "': "
                   << (message.empty() ? "expected a form like [{\"tp\"}, {?}]"
                                       : StringRef(message));
}

LogicalResult checkSharding(ShardingAttr sharding, Type type, MeshAttr mesh,
                            function_ref<InFlightDiagnostic()> onError) {
  auto tensor = dyn_cast_or_null<RankedTensorType>(type);
  if (tensor &&
      static_cast<int64_t>(sharding.getDims().size()) != tensor.getRank())
    return onError() << sharding << " has " << sharding.getDims().size()
                     << " dims, the tensor has " << tensor.getRank();
  SmallVector<StringAttr> named(sharding.getReplicated());
  llvm::append_range(named, sharding.getPartial());
  for (DimShardingAttr dim : sharding.getDims())
    llvm::append_range(named, dim.getAxes());
  for (StringAttr axis : named)
    if (mesh && mesh.find(axis) < 0)
      return onError() << sharding << " names axis " << axis
                       << ", expected one of " << mesh;
  return success();
}

StringRef wholeAxis(StringRef part) { return part.split(':').first; }

} // namespace meshwork::mesh

//===-- What is wrong where they are kept -----------------------------------//

static LogicalResult verifyShardings(Operation *op, Attribute attribute) {
  auto list = dyn_cast<ArrayAttr>(attribute);
  if (!list || list.size() != op->getNumResults())
    return op->emitOpError() << "(A2) " << MeshDialect::shardingsName << " is "
                             << attribute << ", expected a list of "
                             << op->getNumResults() << ", one for each result";
  for (auto [result, entry] : llvm::zip_equal(op->getResults(), list)) {
    auto sharding = dyn_cast<ShardingAttr>(entry);
    if (!sharding && !isa<UnitAttr>(entry))
      return op->emitOpError()
             << "(A2) " << MeshDialect::shardingsName << " holds " << entry
             << ", expected a sharding or unit";
    if (sharding &&
        failed(checkSharding(sharding, result.getType(), meshOf(op),
                             [&] { return op->emitOpError("(A3) "); })))
      return failure();
  }
  return success();
}

LogicalResult MeshDialect::verifyOperationAttribute(Operation *op,
                                                    NamedAttribute attribute) {
  Attribute value = attribute.getValue();
  if (attribute.getName() == meshName &&
      !(isa<MeshAttr>(value) && isa<ModuleOp>(op)))
    return op->emitOpError() << "(A1) " << meshName << " is " << value
                             << ", expected a mesh, on a module";
  if (attribute.getName() == shardingsName)
    return verifyShardings(op, value);
  if (attribute.getName() != storedName)
    return success();
  auto sharding = dyn_cast<ShardingAttr>(value);
  if (!sharding)
    return op->emitOpError() << "(A3) " << storedName << " is " << value
                             << ", expected a sharding";
  return checkSharding(sharding, {}, meshOf(op),
                       [&] { return op->emitOpError("(A3) "); });
}

LogicalResult MeshDialect::verifyRegionArgAttribute(Operation *op,
                                                    unsigned region,
                                                    unsigned argument,
                                                    NamedAttribute attribute) {
  if (attribute.getName() != shardingName)
    return success();
  auto sharding = dyn_cast<ShardingAttr>(attribute.getValue());
  if (!sharding)
    return op->emitOpError()
           << "(A3) " << shardingName << " of argument " << argument << " is "
           << attribute.getValue() << ", expected a sharding";
  Region &body = op->getRegion(region);
  Type type = body.empty() ? Type() : body.getArgument(argument).getType();
  return checkSharding(sharding, type, meshOf(op), [&] {
    return op->emitOpError() << "(A3) argument " << argument << ": ";
  });
}
