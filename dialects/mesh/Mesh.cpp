// Registration and verifiers.
#include "dialects/mesh/Mesh.h"
#include "llvm/ADT/SmallSet.h"

using namespace mlir;
using namespace meshwork::mesh;

#include "dialects/mesh/MeshDialect.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/mesh/MeshOps.cpp.inc"

void MeshDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "dialects/mesh/MeshOps.cpp.inc"
      >();
}

LogicalResult AllReduceOp::verify() {
  llvm::SmallDenseSet<Attribute> seen;
  if (getAxes().empty())
    return emitOpError() << "(C1) names no axis";
  for (Attribute axis : getAxes())
    if (!seen.insert(axis).second)
      return emitOpError() << "(C1) names axis " << axis << " twice";
  return success();
}
