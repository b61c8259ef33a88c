// Every pass and phase of Meshwork, and the upstream passes that it builds on.
#include <mutex>

#include "mlir/Bytecode/BytecodeReader.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "passes/analysis/Nesting.h"
#include "passes/pipelines/Pipelines.h"
#include "runtime/io/Streams.h"
#include "tools/meshwork/driver/Files.h"
#include "tools/meshwork/driver/Guard.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;
using namespace meshwork;

namespace {
/// Ends the limits of reading before the first pass. Without any pass they hold
/// to the end.
struct EndOfReading : PassInstrumentation {
  void runBeforePass(Pass *, Operation *op) override {
    std::call_once(once, [&] {
      while (Operation *parent = op->getParentOp())
        op = parent;
      // Aliases of aliases are small until they are printed.
      op->print(llvm::nulls());
      driver::endReading();
    });
  }
  std::once_flag once;
};
} // namespace

/// As MlirOptMain, which reads without bounds, parses without a look at the
/// text, and writes to the output before it knows that it can.
static int run(const std::string &input, const std::string &output,
               DialectRegistry &registry, MlirOptMainConfig config) {
  int code = driver::ok;
  std::optional<std::string> text = driver::readFile(input, code);
  if (!text)
    return code;
  std::unique_ptr<llvm::MemoryBuffer> buffer =
      llvm::MemoryBuffer::getMemBuffer(*text, input == "-" ? "<stdin>" : input);
  std::optional<std::string> why = analysis::whyNotParsed(*text);
  if (why && !isBytecode(buffer->getMemBufferRef()))
    return driver::report(absl::DataLossError(quote(input) + ": " + *why));
  driver::beginReading(input, driver::badData, text->size());
  config.setPassPipelineSetupFn([setup = config](PassManager &passes) {
    passes.addInstrumentation(std::make_unique<EndOfReading>());
    return setup.setupPassPipeline(passes);
  });
  std::string result;
  llvm::raw_string_ostream stream(result);
  if (failed(MlirOptMain(stream, std::move(buffer), registry, config)))
    return EXIT_FAILURE;
  return driver::writeFile(output, result);
}

static int runTool(int argc, char **argv) {
  DialectRegistry registry;
  pipelines::registerDialects(registry);
  pipelines::registerPassesAndPipelines();
  auto [input, output] = registerAndParseCLIOptions(
      argc, argv, "Meshwork optimizer driver\n", registry);
  MlirOptMainConfig config = MlirOptMainConfig::createFromCLOptions();
  if (config.shouldShowDialects() || config.shouldListPasses())
    return failed(MlirOptMain(argc, argv, input, output, registry));
  return run(input, output, registry, config);
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  runtime::startTool();
  return driver::guarded([&] { return runTool(argc, argv); });
}
