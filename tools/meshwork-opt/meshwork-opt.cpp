// Every pass and phase of Meshwork, and the upstream passes that it builds on.
#include "lib/Analysis/Nesting.h"
#include "lib/Pipelines/Pipelines.h"
#include "mlir/Bytecode/BytecodeReader.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;

/// As MlirOptMain, with a look at the text before the parser, which recurses.
static LogicalResult run(StringRef input, StringRef output,
                         DialectRegistry &registry,
                         const MlirOptMainConfig &config) {
  std::string message;
  std::unique_ptr<llvm::MemoryBuffer> text = openInputFile(input, &message);
  std::unique_ptr<llvm::ToolOutputFile> result =
      text ? openOutputFile(output, &message) : nullptr;
  if (!result) {
    llvm::errs() << message << "\n";
    return failure();
  }
  if (!isBytecode(text->getMemBufferRef()) &&
      meshwork::analysis::nestsDeeperThan(text->getBuffer(),
                                          meshwork::analysis::maxNesting)) {
    llvm::errs() << input << ": error: brackets nest deeper than "
                 << meshwork::analysis::maxNesting << " levels\n";
    return failure();
  }
  if (failed(MlirOptMain(result->os(), std::move(text), registry, config)))
    return failure();
  result->keep();
  return success();
}

int main(int argc, char **argv) {
  DialectRegistry registry;
  meshwork::pipelines::registerDialects(registry);
  meshwork::pipelines::registerPassesAndPipelines();
  llvm::InitLLVM init(argc, argv);
  auto [input, output] = registerAndParseCLIOptions(
      argc, argv, "Meshwork optimizer driver\n", registry);
  MlirOptMainConfig config = MlirOptMainConfig::createFromCLOptions();
  if (config.shouldShowDialects() || config.shouldListPasses())
    return asMainReturnCode(MlirOptMain(argc, argv, input, output, registry));
  return asMainReturnCode(run(input, output, registry, config));
}
