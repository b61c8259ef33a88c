// The function of a kernel, and what it is called with.
#include "passes/codegen/KernelEmitter.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "passes/codegen/KernelBuilder.h"

using namespace mlir;
namespace meshwork::codegen {
using namespace transformer;

void loadKernelDialects(MLIRContext &context) {
  context.loadDialect<arith::ArithDialect, cf::ControlFlowDialect,
                      LLVM::LLVMDialect, math::MathDialect, scf::SCFDialect,
                      vector::VectorDialect>();
}

namespace {
using Draws = SmallVector<DrawOpInterface>;

LLVM::LLVMFuncOp addFunction(ModuleOp module, Location loc,
                             const std::string &name, unsigned numStreams) {
  MLIRContext *context = module.getContext();
  auto i64 = IntegerType::get(context, 64);
  SmallVector<Type> types = {LLVM::LLVMPointerType::get(context), i64, i64};
  types.append(numStreams, IntegerType::get(context, 32));
  auto type =
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context), types);
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  return LLVM::LLVMFuncOp::create(builder, loc, name, type);
}

/// The kernel as a call of `body` with its draws' streams.
void addCall(LLVM::LLVMFuncOp kernel, LLVM::LLVMFuncOp body, Draws &draws) {
  OpBuilder builder(kernel.getContext());
  Block *entry = kernel.addEntryBlock(builder);
  builder.setInsertionPointToEnd(entry);
  SmallVector<Value> arguments(entry->getArguments());
  for (DrawOpInterface draw : draws)
    arguments.push_back(constantOf(builder, kernel.getLoc(),
                                   builder.getI32Type(),
                                   static_cast<int32_t>(draw.getStream())));
  LLVM::CallOp::create(builder, kernel.getLoc(), body, arguments);
  LLVM::ReturnOp::create(builder, kernel.getLoc(), ValueRange());
}
} // namespace

LogicalResult emitKernel(const KernelSpec &spec, ModuleOp module,
                         const CpuTarget &target) {
  FailureOr<Walk> walk = planWalk(spec);
  if (failed(walk))
    return failure();
  Draws draws;
  walk->op.getBody().walk([&](DrawOpInterface draw) { draws.push_back(draw); });
  LLVM::LLVMFuncOp kernel =
                       addFunction(module, walk->op.getLoc(), spec.symbol, 0),
                   body = kernel;
  if (!draws.empty()) {
    body = addFunction(module, walk->op.getLoc(), spec.symbol + ".body",
                       draws.size());
    body.setLinkage(LLVM::Linkage::Internal);
    addCall(kernel, body, draws);
  }
  KernelBuilder(*walk, target).build(body, draws);
  return success();
}

} // namespace meshwork::codegen
