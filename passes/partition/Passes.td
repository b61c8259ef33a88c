// Passes that give each rank its part.
#ifndef MESHWORK_PARTITION_PASSES
#define MESHWORK_PARTITION_PASSES
include "mlir/Pass/PassBase.td"

def SplitBatchPass : Pass<"partition-split-batch", "::mlir::ModuleOp"> {
  let summary = "Splits the dim `batch` over mesh axes";
  let description = [{
    Before: whole tensors; the module has `mesh.axes`. After: dims named `batch`
    have their local size, and what sums over the batch (gradients and loss) is
    added up over the axes where `@update` reads it.
    An op that needs the whole batch for anything but an accumulated sum is an
    error.
  }];
  let options = [ListOption<"axes", "axes", "std::string", "mesh axes that split the batch, major first">];
  let dependentDialects = ["::meshwork::mesh::MeshDialect"];
}

#endif // MESHWORK_PARTITION_PASSES
