#include "test/Codegen/StoreKernel.h"
#include "dialects/schedule/Schedule.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "passes/codegen/gpu/GpuKernel.h"
#include "test/Codegen/Emulated.h"
#include <cstring>

using namespace mlir;
namespace meshwork::codegen::test {

std::string copyOf(const std::string &from, const std::string &to,
                   size_t count) {
  return fill(R"(
!x = tensor<$Nx$F, #transformer.dims<cols>>
!y = tensor<$Nx$T, #transformer.dims<cols>>
func.func @f(%x: !x) -> !y {
  %r = transformer.fused rows <> cols <cols> ins(%x : !x) -> !y {
  ^bb0(%a: !x):
    %z = transformer.map ins(%a : !x) -> !y {
    ^bb0(%p: f32):
      transformer.yield %p : f32
    }
    transformer.yield %z : !y
  }
  return %r : !y
}
)",
              {{"N", std::to_string(count)}, {"F", from}, {"T", to}});
}

std::string storeOnGpu(const std::string &type, const std::vector<float> &from,
                       std::vector<uint8_t> &to) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.loadDialect<transformer::TransformerDialect, func::FuncDialect>();
  loadGpuKernelDialects(context);
  auto source =
      parseSourceString<ModuleOp>(copyOf("f32", type, from.size()), &context);
  transformer::FusedOp op;
  source->walk([&](transformer::FusedOp fused) { op = fused; });
  OpBuilder builder = OpBuilder::atBlockEnd(source->getBody());
  auto module = gpu::GPUModuleOp::create(builder, source->getLoc(), "kernels");
  FailureOr<GpuKernel> kernel =
      emitGpuKernel(contiguousSpec(op, "kernel"), module);
  if (failed(kernel))
    return "no kernel";
  alignas(16) static float input[4096];
  alignas(16) static uint8_t output[4096];
  if (from.size() > 4096)
    return "too many numbers";
  std::memcpy(input, from.data(), from.size() * sizeof(float));
  std::string wrong = runEmulated(
      module, *kernel,
      {reinterpret_cast<uint64_t>(input), reinterpret_cast<uint64_t>(output)},
      {{reinterpret_cast<char *>(input), from.size() * sizeof(float)},
       {reinterpret_cast<char *>(output), from.size()}},
      "sm_90a");
  to.assign(output, output + from.size());
  return wrong;
}

} // namespace meshwork::codegen::test
