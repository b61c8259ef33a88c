// Tensors of 2^31 elements and more on a GPU: blocks at their beginning, around
// element 2^31 and at their end, against the CPU. Memory that nobody touches is
// never there.
#include <sys/mman.h>

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "passes/codegen/gpu/GpuKernel.h"
#include "test/Codegen/Emulated.h"
#include "test/Codegen/Kernel.h"
#include "gtest/gtest.h"

using namespace mlir;
namespace meshwork::codegen::test {
namespace {
constexpr int64_t far = int64_t{1} << 31;

struct Range {
  int64_t begin, end;
};

/// A tensor of zeros.
class Sparse {
public:
  explicit Sparse(Type type) {
    auto tensor = cast<RankedTensorType>(type);
    element = tensor.getElementType();
    count = tensor.getNumElements();
    void *memory =
        mmap(nullptr, bytes(), PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, /*fd=*/-1, 0);
    begin = memory == MAP_FAILED ? nullptr : static_cast<char *>(memory);
  }
  ~Sparse() {
    if (begin)
      munmap(begin, bytes());
  }
  Sparse(Sparse &&other)
      : element(other.element), count(other.count),
        begin(std::exchange(other.begin, nullptr)) {}

  size_t bytes() const { return count * (element.getIntOrFloatBitWidth() / 8); }
  void fill(Range range) {
    std::vector<float> values =
        randomFloats(range.end - range.begin, -2, 2, range.begin % 97);
    for (int64_t i = range.begin; i < range.end; ++i)
      if (element.isBF16())
        reinterpret_cast<uint16_t *>(begin)[i] =
            toBf16(values[i - range.begin]);
      else if (element.isF32())
        reinterpret_cast<float *>(begin)[i] = values[i - range.begin];
  }
  double at(int64_t i) const {
    return element.isBF16() ? fromBf16(reinterpret_cast<uint16_t *>(begin)[i])
                            : reinterpret_cast<float *>(begin)[i];
  }

  Type element;
  int64_t count;
  char *begin;
};

/// What of a cluster is computed, and looked at.
struct Part {
  Range inputs; // elements of the first operand
  Range items, blocks;
  std::vector<int64_t> outputs; // elements of the result
};

/// Both kernels of the one cluster of a text.
class Both {
public:
  explicit Both(const std::string &text)
      : cpu(text, "native"), context(MLIRContext::Threading::DISABLED) {
    context.loadDialect<transformer::TransformerDialect, func::FuncDialect>();
    loadGpuKernelDialects(context);
    source = parseSourceString<ModuleOp>(text, &context);
    source->walk([&](transformer::FusedOp fused) { op = fused; });
    OpBuilder builder = OpBuilder::atBlockEnd(source->getBody());
    module = gpu::GPUModuleOp::create(builder, source->getLoc(), "kernels");
    if (auto made = emitGpuKernel(contiguousSpec(op, "kernel"), module);
        succeeded(made))
      gpu = *made;
  }

  bool isCompiled() const { return cpu.isCompiled() && !gpu.parts.empty(); }
  const Geometry &geometry() const { return gpu.parts.front(); }
  int64_t items() const { return cpu.items(); }

  /// An element of the result, of the operands.
  using Formula = llvm::function_ref<double(ArrayRef<Sparse>, int64_t)>;
  /// `formula` stands in for the CPU where its items are too large to run.
  void expectEqual(ArrayRef<Part> parts, double relative = 4e-6,
                   Formula formula = {}) {
    std::vector<Sparse> operands;
    for (Type type : op.getInputs().getTypes())
      operands.emplace_back(type);
    for (const Part &part : parts)
      operands.front().fill(part.inputs);
    for (Sparse &small : MutableArrayRef(operands).drop_front())
      small.fill({0, small.count});
    Sparse expected(op.getResultTypes().front()),
        got(op.getResultTypes().front());
    std::vector<void *> cpuArgs;
    std::vector<uint64_t> gpuArgs;
    std::vector<Bytes> memory;
    auto give = [&](Sparse &tensor) {
      ASSERT_NE(tensor.begin, nullptr);
      gpuArgs.push_back(reinterpret_cast<uint64_t>(tensor.begin));
      memory.push_back({tensor.begin, tensor.bytes()});
    };
    for (Sparse &tensor : operands) {
      cpuArgs.push_back(tensor.begin);
      give(tensor);
    }
    cpuArgs.push_back(expected.begin);
    give(got);
    for (int32_t stream : gpu.streams)
      gpuArgs.push_back(static_cast<uint32_t>(stream));
    std::vector<Blocks> blocks;
    for (const Part &part : parts) {
      if (!formula)
        cpu.runItems(cpuArgs, part.items.begin, part.items.end);
      blocks.push_back({static_cast<uint64_t>(part.blocks.begin),
                        static_cast<uint64_t>(part.blocks.end)});
    }
    ASSERT_EQ(runEmulated(module, gpu, gpuArgs, memory, "sm_80", blocks), "");
    double sum = 0;
    for (const Part &part : parts)
      for (int64_t i : part.outputs) {
        double wanted = formula ? formula(operands, i) : expected.at(i);
        ASSERT_NEAR(got.at(i), wanted, relative * std::abs(wanted))
            << "element " << i;
        sum += std::abs(got.at(i));
      }
    EXPECT_GT(sum, 0);
  }

private:
  Kernel cpu;
  MLIRContext context;
  OwningOpRef<ModuleOp> source;
  transformer::FusedOp op;
  gpu::GPUModuleOp module;
  GpuKernel gpu;
};

std::vector<int64_t> all(Range range) {
  auto numbers = llvm::to_vector(llvm::seq(range.begin, range.end));
  return {numbers.begin(), numbers.end()};
}

/// Of a cluster whose elements are independent: `elements`, and the items and
/// blocks that have them, which follow each other as elements do.
Part partOf(const Both &both, Range elements, int64_t total) {
  auto share = [&](int64_t parts) -> Range {
    auto part = [&](int64_t element) {
      return static_cast<int64_t>(static_cast<double>(element) /
                                  static_cast<double>(total) *
                                  static_cast<double>(parts));
    };
    constexpr int64_t rounding = 8;
    return {std::max<int64_t>(0, part(elements.begin) - rounding),
            std::min(parts, part(elements.end) + rounding)};
  };
  return {elements, share(both.items()), share(both.geometry().grid()),
          all(elements)};
}

void expectEqualEverywhere(const std::string &text, int64_t total,
                           bool countsFar, double relative = 4e-6,
                           Both::Formula formula = {}) {
  Both both(text);
  ASSERT_TRUE(both.isCompiled());
  EXPECT_EQ(both.geometry().countsFar, countsFar);
  constexpr int64_t some = 8192;
  both.expectEqual({partOf(both, {0, some}, total),
                    partOf(both, {far - some, far + some}, total),
                    partOf(both, {total - some, total}, total)},
                   relative, formula);
}

constexpr const char *scaledDropout = R"(
#d = #transformer.dims<sequence, embed>
!x = tensor<$Rx$Cxbf16, #d>
!i = tensor<i32>
func.func @f(%x: !x, %seed: !i, %step: !i, %first: !i) -> !x {
  %r = transformer.fused rows <> cols #d ins(%x, %seed, %step, %first : !x, !i, !i, !i) -> !x {
  ^bb0(%a: !x, %b: !i, %c: !i, %d: !i):
    %y = transformer.map ins(%a, %b, %c, %d : !x, !i, !i, !i) -> !x {
    ^bb0(%v: f32, %e: i32, %f: i32, %g: i32):
      %m = transformer.dropout_mask %e, %f, %g stream 5 rate 2.5e-1
      %kept = arith.mulf %v, %m : f32
      transformer.yield %kept : f32
    }
    transformer.yield %y : !x
  }
  return %r : !x
}
)";

// Dims that are one loop; and the places of dropout beyond 2^32 - 1 bits.
TEST(GpuFar, ElementsOfOneLoop) {
  int64_t rows = (far >> 16) + 1;
  expectEqualEverywhere(
      fill(scaledDropout, {{"R", std::to_string(rows)}, {"C", "65536"}}),
      rows << 16, /*countsFar=*/true);
}

constexpr const char *biased = R"(
#d = #transformer.dims<batch, sequence, embed>
!x = tensor<$Bx$Rx$Cxbf16, #d>
!b = tensor<$Cxf32, #transformer.dims<embed>>
func.func @f(%x: !x, %b: !b) -> !x {
  %r = transformer.fused rows <$P> cols <$Q> ins(%x, %b : !x, !b) -> !x {
  ^bb0(%a: !x, %c: !b):
    %y = transformer.map ins(%a, %c : !x, !b) -> !x {
    ^bb0(%v: f32, %w: f32):
      %at = transformer.index "sequence" : i32
      %odd = arith.constant 1 : i32
      %bit = arith.andi %at, %odd : i32
      %z = arith.sitofp %bit : i32 to f32
      %u = arith.addf %v, %z : f32
      %s = arith.addf %u, %w : f32
      transformer.yield %s : f32
    }
    transformer.yield %y : !x
  }
  return %r : !x
}
)";

TEST(GpuFar, ElementsOfTwoLoops) {
  int64_t rows = far / 8200 + 1;
  auto text = [&](const char *batch, const char *rowDims, const char *colDims) {
    return fill(biased, {{"B", batch},
                         {"R", std::to_string(rows)},
                         {"C", "8200"},
                         {"P", rowDims},
                         {"Q", colDims}});
  };
  // The outer loop is the rows.
  expectEqualEverywhere(text("1", "", "batch, sequence, embed"), rows * 8200,
                        /*countsFar=*/false);
  auto formula = [&](ArrayRef<Sparse> operands, int64_t i) {
    return operands[0].at(i) + static_cast<double>(i / 8200 % rows % 2) +
           operands[1].at(i % 8200);
  };
  expectEqualEverywhere(text("2", "batch", "sequence, embed"), 2 * rows * 8200,
                        /*countsFar=*/true, 0.0079, formula);
}

constexpr const char *squares = R"(
#d = #transformer.dims<rows>
!x = tensor<$Rxbf16, #d>
!f = tensor<$Rxf32, #d>
!k = tensor<$Kxf32, #transformer.dims<chunk>>
func.func @f(%x: !x) -> !k {
  %y = transformer.fused rows <rows> cols <> ins(%x : !x) -> !k {
  ^bb0(%a: !x):
    %m = transformer.map ins(%a : !x) -> !f {
    ^bb0(%p: f32):
      %0 = arith.mulf %p, %p : f32
      transformer.yield %0 : f32
    }
    %s = transformer.reduce add %m over #d : !f -> tensor<f32>
    transformer.yield %s : tensor<f32>
  }
  return %y : !k
}
)";

TEST(GpuFar, SumsOverRows) {
  int64_t rows = far + 77, chunks = (1 << 20) + 1;
  Both both(fill(squares,
                 {{"R", std::to_string(rows)}, {"K", std::to_string(chunks)}}));
  ASSERT_TRUE(both.isCompiled());
  EXPECT_TRUE(both.geometry().countsFar);
  std::vector<Part> parts;
  for (int64_t chunk : {int64_t{0}, chunks - 2, chunks - 1})
    parts.push_back({{chunk * rows / chunks, (chunk + 1) * rows / chunks},
                     {chunk, chunk + 1},
                     {chunk, chunk + 1},
                     {chunk}});
  both.expectEqual(parts, 1e-5);
}

constexpr const char *transposed = R"(
!x = tensor<$Rx8xbf16, #transformer.dims<rows, cols>>
!y = tensor<8x$Rxbf16, #transformer.dims<cols, rows>>
func.func @f(%x: !x) -> !y {
  %r = transformer.fused rows <rows> cols <cols> ins(%x : !x) -> !y {
  ^bb0(%a: !x):
    %y = transformer.map ins(%a : !x) -> !y {
    ^bb0(%v: f32):
      %s = arith.addf %v, %v : f32
      transformer.yield %s : f32
    }
    transformer.yield %y : !y
  }
  return %r : !y
}
)";

// Lanes of a vector that lie further apart than 32 bits count.
TEST(GpuFar, LanesOfAVector) {
  int64_t rows = far / 7 + 2;
  rows += 1 - rows % 2; // No tiles of rows.
  Both both(fill(transposed, {{"R", std::to_string(rows)}}));
  ASSERT_TRUE(both.isCompiled());
  EXPECT_FALSE(both.geometry().countsFar);
  ASSERT_EQ(both.geometry().tileRows, 1);
  Part part = partOf(both, {(rows - 100) * 8, rows * 8}, rows * 8);
  part.outputs.clear();
  for (int64_t column = 0; column < 8; ++column)
    for (int64_t row = rows - 100; row < rows; ++row)
      part.outputs.push_back(column * rows + row);
  both.expectEqual(part);
}

} // namespace
} // namespace meshwork::codegen::test
