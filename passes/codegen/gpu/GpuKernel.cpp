// The function of a kernel, and which kernels share one.
#include "passes/codegen/gpu/GpuKernel.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "passes/codegen/gpu/BlockKernel.h"

using namespace mlir;
namespace meshwork::codegen {
using namespace transformer;

void loadGpuKernelDialects(MLIRContext &context) {
  context
      .loadDialect<arith::ArithDialect, cf::ControlFlowDialect, gpu::GPUDialect,
                   LLVM::LLVMDialect, math::MathDialect, NVVM::NVVMDialect,
                   scf::SCFDialect, vector::VectorDialect>();
}

namespace {
gpu::GPUFuncOp addFunction(gpu::GPUModuleOp module, Location loc,
                           StringRef name, size_t pointers, size_t streams,
                           const Geometry &geometry) {
  MLIRContext *context = module.getContext();
  SmallVector<Type> types(pointers, LLVM::LLVMPointerType::get(context, 1));
  types.append(streams, IntegerType::get(context, 32));
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  auto function = gpu::GPUFuncOp::create(builder, loc, name,
                                         FunctionType::get(context, types, {}));
  function->setAttr(gpu::GPUDialect::getKernelFuncAttrName(),
                    builder.getUnitAttr());
  function.setKnownBlockSizeAttr(builder.getDenseI32ArrayAttr(
      {static_cast<int32_t>(geometry.block()), 1, 1}));
  function.setKnownGridSizeAttr(builder.getDenseI32ArrayAttr(
      {static_cast<int32_t>(geometry.grid()), 1, 1}));
  return function;
}

std::string addShared(gpu::GPUModuleOp module, Location loc, StringRef function,
                      int64_t bytes) {
  if (!bytes)
    return "";
  OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
  auto type = LLVM::LLVMArrayType::get(builder.getF32Type(), bytes / 4);
  std::string name = ("shared_" + function).str();
  auto global = LLVM::GlobalOp::create(
      builder, loc, type, /*isConstant=*/false, LLVM::Linkage::Internal, name,
      Attribute(), /*alignment=*/16, /*addrSpace=*/3);
  Block *block = builder.createBlock(&global.getInitializerRegion());
  builder.setInsertionPointToEnd(block);
  LLVM::ReturnOp::create(builder, loc,
                         LLVM::UndefOp::create(builder, loc, type).getResult());
  return name;
}

/// Equal for functions that are equal but for their names.
std::string textOf(gpu::GPUFuncOp function) {
  std::string text, name = function.getName().str();
  llvm::raw_string_ostream stream(text);
  function->print(stream, OpPrintingFlags().useLocalScope());
  for (const std::string &mark : {"@shared_" + name, "@" + name})
    for (size_t at = text.find(mark); at != std::string::npos;
         at = text.find(mark, at))
      text.erase(at, mark.size());
  return text;
}
} // namespace

FailureOr<GpuKernel> emitGpuKernel(const KernelSpec &spec,
                                   gpu::GPUModuleOp module) {
  FailureOr<Walk> walk = planWalk(spec);
  if (failed(walk))
    return failure();
  SmallVector<int64_t> baseBytes = baseAlignments(spec);
  FailureOr<Geometry> geometry = chooseGeometry(*walk, baseBytes);
  if (failed(geometry))
    return failure();
  GpuKernel kernel{spec.symbol, spec.symbol, {}, *geometry};
  SmallVector<DrawOpInterface> draws;
  walk->op.getBody().walk([&](DrawOpInterface draw) {
    draws.push_back(draw);
    kernel.streams.push_back(static_cast<int32_t>(draw.getStream()));
  });
  Location loc = walk->op.getLoc();
  std::string shared =
      addShared(module, loc, spec.symbol, geometry->sharedBytes);
  gpu::GPUFuncOp function = addFunction(
      module, loc, spec.symbol, baseBytes.size(), draws.size(), *geometry);
  BlockKernel(*walk, *geometry, baseBytes).build(function, draws, shared);
  return kernel;
}

FailureOr<std::vector<GpuKernel>> emitGpuKernels(ArrayRef<KernelSpec> specs,
                                                 gpu::GPUModuleOp module) {
  std::vector<GpuKernel> kernels;
  llvm::StringMap<std::string> known;
  bool allEmitted = true; // Report every cluster that has no kernel.
  for (const KernelSpec &spec : specs) {
    FailureOr<GpuKernel> kernel = emitGpuKernel(spec, module);
    allEmitted &= succeeded(kernel);
    if (failed(kernel))
      continue;
    auto function = module.lookupSymbol<gpu::GPUFuncOp>(kernel->function);
    auto [entry, isNew] = known.try_emplace(textOf(function), kernel->function);
    if (!isNew) {
      if (Operation *shared = module.lookupSymbol("shared_" + kernel->function))
        shared->erase();
      function.erase();
      kernel->function = entry->second;
    }
    kernels.push_back(std::move(*kernel));
  }
  if (!allEmitted)
    return failure();
  return kernels;
}

} // namespace meshwork::codegen
