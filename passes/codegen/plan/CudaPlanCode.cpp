#include "passes/codegen/gpu/DeviceKernels.h"
#include "passes/codegen/gpu/library/DeviceLibrary.h"
#include "passes/codegen/machine/CudaCode.h"
#include "passes/codegen/plan/PlanCode.h"
#include "runtime/base/StartThread.h"

using namespace mlir;
namespace meshwork::codegen {
namespace {

std::unique_ptr<plan::KernelT>
libraryEntry(const codegen::LibraryKernel &kernel) {
  auto entry = std::make_unique<plan::KernelT>();
  entry->symbol = kernel.function;
  entry->num_args = kernel.numPointers;
  entry->grid = kernel.grid;
  entry->block = kernel.block;
  entry->shared_bytes = kernel.sharedBytes;
  entry->streams.assign(kernel.streams.begin(), kernel.streams.end());
  return entry;
}

/// Arguments that are maxima of tiles, of which a CPU's kernel has none.
std::vector<uint32_t> maximaOf(const codegen::LaunchSpec &launch,
                               const codegen::KernelSpecs &specs,
                               const codegen::GpuKernel &kernel) {
  std::vector<uint32_t> maxima;
  for (auto [part, geometry] : llvm::zip_equal(launch.parts, kernel.parts)) {
    if (geometry.chunksOfTiles == 0)
      continue;
    transformer::FusedOp op = specs.clusters[part.cluster].op;
    auto results = ArrayRef(part.args).take_back(op.getNumResults());
    for (auto [arg, value] : llvm::zip_equal(
             results, op.getBody().front().getTerminator()->getOperands()))
      if (auto reduce = value.getDefiningOp<transformer::ReduceOp>();
          reduce && reduce.getKind() == transformer::Reduction::max)
        maxima.push_back(arg);
  }
  return maxima;
}

/// Launches of clusters first, one entry each: those that share a function
/// differ in streams.
void addEntries(ModuleOp module, const codegen::DeviceKernels &kernels,
                plan::PlanT &plan, KernelNumbers &numbers) {
  codegen::KernelSpecs specs = codegen::kernelSpecsOf(module);
  for (auto [launch, kernel] :
       llvm::zip_equal(specs.launches, kernels.clusters)) {
    auto entry = entryOf(launch, specs);
    entry->symbol = kernel.function;
    entry->grid = kernel.grid();
    entry->block = kernel.block();
    entry->streams.assign(kernel.streams.begin(), kernel.streams.end());
    entry->maxima = maximaOf(launch, specs, kernel);
    numbers.ofLaunch[kernel.symbol] = plan.kernels.size();
    plan.kernels.push_back(std::move(entry));
  }
  uint32_t first = plan.kernels.size();
  for (const codegen::LibraryKernel &kernel : kernels.library.kernels)
    plan.kernels.push_back(libraryEntry(kernel));
  numbers.ofInstruction = kernels.library.ofInstruction;
  for (auto &[op, places] : numbers.ofInstruction)
    for (uint32_t &place : places)
      place += first;
}

/// Neither without ptxas.
struct Assembled {
  std::vector<char> cubin;
  std::string error;
};

/// One process of ptxas for each target, side by side.
std::vector<Assembled> assembleAll(ArrayRef<std::string> texts,
                                   ArrayRef<CudaTarget> targets) {
  std::vector<Assembled> results(texts.size());
  std::string ptxas = findPtxas("");
  if (ptxas.empty())
    return results;
  std::vector<std::function<void()>> runs;
  for (size_t i = 0; i < texts.size(); ++i)
    runs.push_back([&, i] {
      FailureOr<CudaBinary> binary =
          assemblePtx(texts[i], targets[i], ptxas, results[i].error);
      if (succeeded(binary))
        results[i].cubin = std::move(binary->cubin);
    });
  runtime::runAtOnce(std::move(runs));
  return results;
}

void addImage(plan::PlanT &plan, const CudaTarget &target, plan::ImageKind kind,
              ArrayRef<char> code) {
  auto image = std::make_unique<plan::ImageT>();
  image->arch = target.arch;
  image->kind = kind;
  image->code.assign(code.begin(), code.end());
  plan.images.push_back(std::move(image));
}
} // namespace

LogicalResult addCudaCode(ModuleOp module, ArrayRef<CudaTarget> targets,
                          plan::PlanT &plan, KernelNumbers &numbers) {
  OwningOpRef<ModuleOp> code(ModuleOp::create(module.getLoc()));
  FailureOr<codegen::DeviceKernels> kernels =
      codegen::emitDeviceKernels(module, *code);
  if (failed(kernels))
    return failure();
  addEntries(module, *kernels, plan, numbers);
  auto texts = compileToPtx({kernels->clusterModule, kernels->libraryModule,
                             codegen::deviceLibrary()},
                            targets);
  if (failed(texts))
    return failure();
  std::vector<Assembled> binaries = assembleAll(*texts, targets);
  for (auto [target, text, binary] :
       llvm::zip_equal(targets, *texts, binaries)) {
    if (!binary.error.empty())
      return module.emitError() << "kernels do not assemble for " << target.arch
                                << ": " << binary.error;
    // Ready code first: the runtime takes the first image that the GPU runs.
    if (!binary.cubin.empty())
      addImage(plan, target, plan::ImageKind::cubin, binary.cubin);
    addImage(plan, target, plan::ImageKind::ptx,
             ArrayRef(text.c_str(), text.size() + 1));
  }
  return success();
}

} // namespace meshwork::codegen
