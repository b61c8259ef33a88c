// Every pass of Meshwork, and the upstream ones that it builds on.
#include "dialects/mesh/Mesh.h"
#include "dialects/transformer/Transformer.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "passes/autodiff/Passes.h"
#include "passes/fusion/Passes.h"
#include "passes/partition/Passes.h"
#include "passes/transform/Passes.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<meshwork::transformer::TransformerDialect, meshwork::mesh::MeshDialect, mlir::func::FuncDialect>();
  mlir::registerTransformsPasses();
  meshwork::transform::registerTransformPasses();
  meshwork::autodiff::registerAutodiffPasses();
  meshwork::partition::registerPartitionPasses();
  meshwork::fusion::registerFusionPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "Meshwork optimizer driver\n", registry));
}
