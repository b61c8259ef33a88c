// Clusters in one launch, executed in the emulator: the bits of each alone.
#include <random>

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "passes/codegen/gpu/GpuKernel.h"
#include "test/Codegen/Emulated.h"
#include "gtest/gtest.h"

using namespace mlir;
namespace meshwork::codegen::test {
namespace {

// Blocks of 128 threads with barriers, of 256 and of 32 threads; two parts
// share their code, and all read one operand.
constexpr const char *source = R"(
  #both = #transformer.dims<rows, cols>
  !x = tensor<3000xf32, #transformer.dims<e>>
  !y = tensor<8x4096xf32, #both>
  !r = tensor<8xf32, #transformer.dims<rows>>
  !s = tensor<f32>
  func.func private @rows(%y: !y, %s: !s) -> !r attributes {schedule.strides = [array<i64: 4096, 1>, array<i64>, array<i64: 1>]} {
    %z = transformer.fused rows <rows> cols <cols> ins(%y, %s : !y, !s) -> !r {
    ^bb0(%a: !y, %b: !s):
      %m = transformer.map ins(%a, %b : !y, !s) -> !y {
      ^bb0(%e: f32, %f: f32):
        %0 = arith.mulf %e, %f : f32
        transformer.yield %0 : f32
      }
      %t = transformer.reduce add %m over <cols> : !y -> !r
      transformer.yield %t : !r
    }
    return %z : !r
  }
  func.func private @update(%x: !x, %s: !s) -> !x attributes {schedule.strides = [array<i64: 1>, array<i64>, array<i64: 1>]} {
    %y = transformer.fused rows <> cols <e> ins(%x, %s : !x, !s) -> !x {
    ^bb0(%a: !x, %b: !s):
      %z = transformer.map ins(%a, %b : !x, !s) -> !x {
      ^bb0(%e: f32, %f: f32):
        %0 = arith.addf %e, %f : f32
        transformer.yield %0 : f32
      }
      transformer.yield %z : !x
    }
    return %y : !x
  }
  func.func private @one(%s: !s) -> !s attributes {schedule.strides = [array<i64>, array<i64>]} {
    %y = transformer.fused rows <> cols <> ins(%s : !s) -> !s {
    ^bb0(%b: !s):
      %z = transformer.map ins(%b : !s) -> !s {
      ^bb0(%f: f32):
        %0 = arith.mulf %f, %f : f32
        transformer.yield %0 : f32
      }
      transformer.yield %z : !s
    }
    return %y : !s
  }
  func.func private @merged(%y: !y, %s: !s, %a: !x, %b: !x) -> (!r, !x, !x, !s) {
    %0 = call @rows(%y, %s) : (!y, !s) -> !r
    %1 = call @update(%a, %s) : (!x, !s) -> !x
    %2 = call @update(%b, %s) : (!x, !s) -> !x
    %3 = call @one(%s) : (!s) -> !s
    return %0, %1, %2, %3 : !r, !x, !x, !s
  }
)";

using Floats = std::vector<float>;

std::vector<Floats> operands() {
  std::mt19937 random(7);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<Floats> all;
  for (size_t size : {8 * 4096, 1, 3000, 3000, 8, 3000, 3000, 1}) {
    all.emplace_back(size);
    for (float &value : all.back())
      value = uniform(random);
  }
  return all;
}

/// Runs `launch`, whose arguments are these of `tensors`.
void run(const LaunchSpec &launch, const KernelSpecs &specs, ModuleOp module,
         std::vector<Floats> &tensors, ArrayRef<unsigned> arguments) {
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  auto kernels = gpu::GPUModuleOp::create(builder, module.getLoc(), "kernels");
  FailureOr<GpuKernel> kernel = emitGpuKernel(launch, specs.clusters, kernels);
  ASSERT_TRUE(succeeded(kernel));
  ASSERT_TRUE(succeeded(kernels.verify()));
  std::vector<uint64_t> addresses;
  std::vector<Bytes> memory;
  for (unsigned argument : arguments) {
    Floats &tensor = tensors[argument];
    addresses.push_back(reinterpret_cast<uint64_t>(tensor.data()));
    memory.push_back({reinterpret_cast<char *>(tensor.data()),
                      tensor.size() * sizeof(float)});
  }
  ASSERT_EQ(runEmulated(kernels, *kernel, addresses, memory), "");
  kernels.erase();
}

TEST(GpuMerged, PartsHaveTheBitsOfEachAlone) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.loadDialect<transformer::TransformerDialect, func::FuncDialect>();
  loadGpuKernelDialects(context);
  auto module = parseSourceString<ModuleOp>(source, &context);
  KernelSpecs specs = kernelSpecsOf(*module);
  ASSERT_EQ(specs.clusters.size(), 3u);
  ASSERT_EQ(specs.launches.size(), 1u); // The others are parts of it only.
  const LaunchSpec &merged = specs.launches.front();
  ASSERT_EQ(merged.parts.size(), 4u);
  ASSERT_EQ(merged.numArgs, 8u);

  std::vector<Floats> together = operands(), apart = together;
  run(merged, specs, *module, together,
      llvm::to_vector(llvm::seq<unsigned>(0, merged.numArgs)));
  for (const LaunchPart &part : merged.parts)
    run(launchOf(specs.clusters[part.cluster], part.cluster), specs, *module,
        apart, part.args);
  EXPECT_EQ(together, apart);
  EXPECT_NE(apart, operands());
}

} // namespace
} // namespace meshwork::codegen::test
