// Every pass and phase of Meshwork, and the upstream passes that it builds on.
#include "lib/Pipelines/Pipelines.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  meshwork::pipelines::registerDialects(registry);
  meshwork::pipelines::registerPassesAndPipelines();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "Meshwork optimizer driver\n", registry));
}
