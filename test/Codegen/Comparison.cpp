#include "test/Codegen/Comparison.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "test/Codegen/Emulated.h"

using namespace mlir;

namespace meshwork::codegen::test {

void expectCpuResults(const std::string &text, Comparison &&how,
                      llvm::function_ref<void(const Geometry &)> look) {
  Kernel cpu(text, "native");
  ASSERT_TRUE(cpu.isCompiled()) << cpu.errors();
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.loadDialect<transformer::TransformerDialect, func::FuncDialect>();
  loadGpuKernelDialects(context);
  auto source = parseSourceString<ModuleOp>(text, &context);
  transformer::FusedOp op;
  source->walk([&](transformer::FusedOp fused) { op = fused; });
  OpBuilder builder = OpBuilder::atBlockEnd(source->getBody());
  auto module = gpu::GPUModuleOp::create(builder, source->getLoc(), "kernels");
  FailureOr<GpuKernel> kernel =
      emitGpuKernel(contiguousSpec(op, "kernel"), module);
  ASSERT_TRUE(succeeded(kernel));
  ASSERT_TRUE(succeeded(module.verify()));
  EXPECT_LE(kernel->block(), 1024);
  EXPECT_EQ(kernel->block() % 32, 0);
  if (look)
    look(kernel->parts.front());

  std::vector<Tensor> operands, expected, actual;
  int64_t limit = op.getInputs().empty()
                      ? 0
                      : cast<RankedTensorType>(op.getInputs().back().getType())
                            .getNumElements();
  for (Type type : op.getInputs().getTypes()) {
    limit = std::min<int64_t>(
        limit, cast<RankedTensorType>(op.getInputs().front().getType())
                       .getShape()
                       .empty()
                   ? 1000
                   : cast<RankedTensorType>(op.getInputs().front().getType())
                         .getShape()
                         .back());
    operands.emplace_back(type);
    operands.back().fillRandom(operands.size(), how.low, limit);
  }
  for (Type type : op.getResultTypes()) {
    expected.emplace_back(type);
    actual.emplace_back(type);
  }
  if (how.change)
    how.change(operands);
  std::vector<void *> cpuArgs;
  std::vector<uint64_t> gpuArgs;
  std::vector<Bytes> memory;
  for (Tensor &tensor : operands)
    cpuArgs.push_back(tensor.begin());
  for (Tensor &tensor : expected)
    cpuArgs.push_back(tensor.begin());
  cpu.run(cpuArgs);
  auto give = [&](Tensor &tensor) {
    gpuArgs.push_back(reinterpret_cast<uint64_t>(tensor.begin()));
    memory.push_back({tensor.begin(), tensor.bytes});
  };
  for (Tensor &tensor : operands)
    give(tensor);
  for (auto [i, tensor] : llvm::enumerate(actual))
    give(how.inPlace && i == 0 ? operands[0] : tensor);
  for (int32_t stream : kernel->streams)
    gpuArgs.push_back(static_cast<uint32_t>(stream));
  ASSERT_EQ(runEmulated(module, *kernel, gpuArgs, memory, how.arch), "");
  for (Tensor &tensor : actual)
    EXPECT_TRUE(tensor.isWholeAround());

  for (size_t r = 0; r < expected.size(); ++r) {
    Tensor &got = how.inPlace && r == 0 ? operands[0] : actual[r];
    double scale = 0;
    for (size_t i = 0; i < got.count(); ++i)
      scale = std::max(scale, std::abs(expected[r].at(i)));
    double relative = got.element.isBF16() ? 0.0079 : how.relative;
    for (size_t i = 0; i < got.count() && !testing::Test::HasFailure(); ++i)
      if (std::isnan(expected[r].at(i)))
        EXPECT_TRUE(std::isnan(got.at(i))) << "element " << i;
      else
        expectNear(got.at(i), expected[r].at(i), relative,
                   scale * (got.element.isBF16() ? 1e-4 : 1), i);
    EXPECT_FALSE(testing::Test::HasFailure()) << "result " << r;
  }
}
std::string sized(const char *text, int64_t rows, int64_t cols,
                  const std::string &type, int64_t chunks) {
  return fill(text, {{"R", std::to_string(rows)},
                     {"C", std::to_string(cols)},
                     {"V", std::to_string(cols)},
                     {"K", std::to_string(chunks)},
                     {"T", type},
                     {"I", std::to_string(1.0 / static_cast<double>(cols))}});
}
} // namespace meshwork::codegen::test
