// Where meshes and shardings are kept: attributes of modules, functions'
// arguments and ops; and what is wrong there.
#include "dialects/mesh/Chunk.h"
#include "dialects/mesh/Mesh.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace meshwork::mesh;

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
  constexpr size_t longest = 1024; // The parser calls itself for each bracket.
  if (text.size() > longest)
    return onError() << "has " << text.size() << " bytes, expected at most "
                     << longest;
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
  if (attribute.getName() == chunkName && !isa<UnitAttr>(value))
    return op->emitOpError()
           << "(A4) " << chunkName << " is " << value << ", expected `unit`";
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
