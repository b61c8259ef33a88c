// GPU kernels, executed in the emulator, against the CPU's kernels of the same
// clusters.
#include <cstdlib>
#include <functional>
#include <unistd.h>

#include "dialects/mesh/Mesh.h"
#include "dialects/schedule/Schedule.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "passes/codegen/gpu/GpuKernel.h"
#include "test/Codegen/Clusters.h"
#include "test/Codegen/Emulated.h"
#include "test/Codegen/Kernel.h"

using namespace mlir;
using namespace meshwork::codegen::test;
namespace meshwork::codegen {
namespace {

/// A tensor's memory, 16-byte aligned, with what must stay around it.
struct Tensor {
  Type element;
  std::vector<char> store;
  size_t bytes;
  explicit Tensor(Type type)
      : element(cast<RankedTensorType>(type).getElementType()) {
    bytes = cast<RankedTensorType>(type).getNumElements() *
            (element.getIntOrFloatBitWidth() / 8);
    store.assign(bytes + 96, 0x55);
  }
  char *begin() {
    return reinterpret_cast<char *>(
        (reinterpret_cast<uintptr_t>(store.data()) + 31) / 16 * 16);
  }
  /// Whether nothing was stored beside it.
  bool isWholeAround() {
    auto isFresh = [](char byte) { return byte == 0x55; };
    return std::all_of(store.data(), begin(), isFresh) &&
           std::all_of(begin() + bytes, store.data() + store.size(), isFresh);
  }
  size_t count() const { return bytes / (element.getIntOrFloatBitWidth() / 8); }
  double at(size_t i) {
    if (element.isBF16())
      return fromBf16(reinterpret_cast<uint16_t *>(begin())[i]);
    if (element.getIntOrFloatBitWidth() == 8) // its bits
      return reinterpret_cast<uint8_t *>(begin())[i];
    return reinterpret_cast<float *>(begin())[i];
  }
  /// Uniform in [low, 2); integers in [0, limit).
  void fillRandom(unsigned seed, float low, int64_t limit) {
    std::vector<float> values = randomFloats(count(), low, 2, seed);
    for (size_t i = 0; i < count(); ++i)
      if (element.isBF16())
        reinterpret_cast<uint16_t *>(begin())[i] = toBf16(values[i]);
      else if (element.isF32())
        reinterpret_cast<float *>(begin())[i] = values[i];
      else
        reinterpret_cast<int32_t *>(begin())[i] = static_cast<int32_t>(
            (values[i] - low) / (2 - low) * static_cast<float>(limit));
  }
};

struct Comparison {
  float low = -2; // of random operands
  double relative =
      4e-6;             // of results of f32; of bf16 one unit in the last place
  bool inPlace = false; // result 0 lies where operand 0 does
  const char *arch = "sm_80"; // f8 is there from sm_89 on
  std::function<void(std::vector<Tensor> &)> change = {}; // of operands
};

/// Runs the one cluster of `text` both ways on random operands.
void expectCpuResults(const std::string &text, Comparison &&how = {},
                      llvm::function_ref<void(const Geometry &)> look = {}) {
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
                  const std::string &type, int64_t chunks = 1) {
  return fill(text, {{"R", std::to_string(rows)},
                     {"C", std::to_string(cols)},
                     {"V", std::to_string(cols)},
                     {"K", std::to_string(chunks)},
                     {"T", type},
                     {"I", std::to_string(1.0 / static_cast<double>(cols))}});
}

TEST(GpuRmsNorm, AgreesWithTheCpu) {
  for (auto [rows, cols] : {std::pair<int64_t, int64_t>{37, 768},
                            {3, 1},
                            {5, 8},
                            {7, 12},
                            {9, 100},
                            {130, 3},
                            {3, 1600},
                            {5, 8192},
                            {2, 20011}})
    for (const char *type : {"f32", "bf16"})
      for (bool inPlace : {false, true}) {
        SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(cols) + " " +
                     type);
        expectCpuResults(sized(rmsNorm, rows, cols, type),
                         {.inPlace = inPlace});
      }
}

TEST(GpuRmsNorm, RowsAreHeldOrLooped) {
  expectCpuResults(sized(rmsNorm, 3, 1600, "bf16"), {}, [](const Geometry &g) {
    EXPECT_EQ(g.width, 8);
    EXPECT_FALSE(g.loops);
    EXPECT_LT(g.threadsPerRow, 128);
  });
  expectCpuResults(sized(rmsNorm, 2, 65536, "bf16"), {},
                   [](const Geometry &g) { EXPECT_TRUE(g.loops); });
}

TEST(GpuLayerNormGrad, AgreesWithTheCpu) {
  for (auto [rows, cols, chunks] :
       {std::tuple<int64_t, int64_t, int64_t>{50, 768, 8},
        {13, 100, 4},
        {6, 37, 32},
        {70, 64, 2},
        {9, 3072, 3}})
    for (const char *type : {"f32", "bf16"}) {
      SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(cols) + " " +
                   type);
      expectCpuResults(sized(layerNormGrad, rows, cols, type, chunks),
                       {.relative = 1e-5});
    }
}

TEST(GpuCrossEntropy, AgreesWithTheCpu) {
  for (auto [rows, vocab, chunks] :
       {std::tuple<int64_t, int64_t, int64_t>{5, 256, 2},
        {9, 1000, 4},
        {4, 32000, 2}})
    for (const char *type : {"f32", "bf16"}) {
      SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(vocab) + " " +
                   type);
      expectCpuResults(sized(crossEntropy, rows, vocab, type, chunks),
                       {.inPlace = true});
    }
}

std::string
replaceAll(std::string text,
           ArrayRef<std::pair<std::string_view, std::string_view>> changes) {
  for (auto [from, to] : changes)
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos;
         at += to.size())
      text.replace(at, from.size(), to);
  return text;
}

/// Cross-entropy with a loss per row, which no chunk sums.
std::string lossPerRow(const std::string &text) {
  return replaceAll(text,
                    {{"!x, !k", "!x, !r"},
                     {"%total = transformer.reduce add %loss over #r : "
                      "!r -> tensor<f32>",
                      ""},
                     {"%g, %total : !x, tensor<f32>", "%g, %loss : !x, !r"}});
}

/// The same, of a part of the vocabulary that begins at an operand.
std::string ofPart(const std::string &text) {
  return replaceAll(
      text,
      {{"%t: !i)", "%t: !i, %o: !s)"},
       {"!i = tensor", "!s = tensor<i32>\n!i = tensor"},
       {"ins(%x, %t : !x, !i)", "ins(%x, %t, %o : !x, !i, !s)"},
       {"%b: !i)", "%b: !i, %w: !s)"},
       {"ins(%a, %b : !x, !i)", "ins(%a, %b, %w : !x, !i, !s)"},
       {"ins(%e, %s, %b : !f, !r, !i)", "ins(%e, %s, %b, %w : !f, !r, !i, !s)"},
       {"%q: i32)", "%q: i32, %u: i32)"},
       {"%h: i32)", "%h: i32, %u: i32)"},
       {"eq, %c,", "eq, %v,"},
       {"%c = transformer.index \"vocab\" : i32",
        "%c = transformer.index \"vocab\" : i32\n"
        "%v = arith.addi %c, %u : i32"}});
}

/// Targets at the ends of a row of `size`, and none; infinities, and NaNs,
/// which a maximum ignores and a sum does not.
void makeHard(std::vector<Tensor> &operands, ArrayRef<int32_t> targets,
              int64_t size) {
  auto at = [&](Tensor &tensor, int64_t i) {
    return tensor.begin() + i * (tensor.element.getIntOrFloatBitWidth() / 8);
  };
  auto set = [&](int64_t row, int64_t column, float value) {
    char *to = at(operands[0], row * size + column);
    if (operands[0].element.isBF16())
      *reinterpret_cast<uint16_t *>(to) = toBf16(value);
    else
      *reinterpret_cast<float *>(to) = value;
  };
  uint32_t begin = 0;
  if (operands.size() > 2) // of a part
    *reinterpret_cast<uint32_t *>(operands[2].begin()) = begin = 30000;
  for (auto [row, target] : llvm::enumerate(targets))
    *reinterpret_cast<uint32_t *>(at(operands[1], row)) = target + begin;
  set(1, 5, -INFINITY);
  set(1, size - 1, -INFINITY);
  set(2, 3, 300);
  set(3, size / 3, NAN);
  set(4, 0, NAN);
}

// Rows of any alignment that are walked in loops.
TEST(GpuCrossEntropy, AgreesOnLongRows) {
  for (int64_t vocab : {30011, 30010, 32000, 50257})
    for (const char *type : {"f32", "bf16"})
      for (bool isPerRow : {false, true})
        for (bool isPart : {false, true}) {
          SCOPED_TRACE(std::to_string(vocab) + " " + type);
          auto size = static_cast<int32_t>(vocab);
          std::vector<int32_t> targets = {
              0,        1,        7,  8,    size - 9, size - 2,
              size - 1, size / 2, -1, size, INT32_MIN};
          std::string text =
              sized(crossEntropy, static_cast<int64_t>(targets.size()), vocab,
                    type, 2);
          text = isPerRow ? lossPerRow(text) : text;
          text = isPart ? ofPart(text) : text;
          expectCpuResults(text,
                           {.relative = 1e-5,
                            .inPlace = isPart,
                            .change =
                                [&](std::vector<Tensor> &operands) {
                                  makeHard(operands, targets, vocab);
                                }},
                           [&](const Geometry &g) {
                             EXPECT_TRUE(g.loops);
                             EXPECT_EQ(g.shifted, isPerRow && vocab != 32000);
                           });
        }
}

TEST(GpuElementwise, AgreesWithTheCpu) {
  for (auto [rows, cols] :
       {std::pair<int64_t, int64_t>{64, 1024}, {3, 7}, {1, 100}, {5, 520}}) {
    expectCpuResults(sized(swiglu, rows, cols, "bf16"));
    expectCpuResults(sized(adamw, rows, cols, "f32"), {.low = 0.5});
  }
}

constexpr const char *ropeAndDropout = R"(
#d = #transformer.dims<batch, sequence, heads, head_dim>
#t = #transformer.dims<sequence, head_dim>
!x = tensor<2x5x3x$Cxbf16, #d>
!c = tensor<5x$Cxf32, #t>
!i = tensor<i32>
func.func @f(%x: !x, %c: !c, %seed: !i, %step: !i, %first: !i) -> !x {
  %y = transformer.fused rows <batch, sequence, heads> cols <head_dim> ins(%x, %c, %seed, %step, %first : !x, !c, !i, !i, !i) -> !x {
  ^bb0(%a: !x, %b: !c, %s: !i, %t: !i, %f: !i):
    %r = transformer.roll %a by $S : !x
    %z = transformer.map ins(%a, %r, %b, %s, %t, %f : !x, !x, !c, !i, !i, !i) -> !x {
    ^bb0(%p: f32, %q: f32, %w: f32, %s0: i32, %t0: i32, %f0: i32):
      %0 = arith.mulf %q, %w : f32
      %1 = arith.addf %p, %0 : f32
      %m = transformer.dropout_mask %s0, %t0, %f0 stream 7 rate 2.5e-1
      %2 = arith.mulf %1, %m : f32
      transformer.yield %2 : f32
    }
    transformer.yield %z : !x
  }
  return %y : !x
}
)";

// The same random words at the same places, or a fourth of the elements differ.
TEST(GpuRollAndDropout, AgreeWithTheCpu) {
  for (auto [cols, shift] : {std::pair<const char *, const char *>{"64", "32"},
                             {"64", "0"},
                             {"6", "3"},
                             {"48", "20"},
                             {"128", "64"}})
    expectCpuResults(fill(ropeAndDropout, {{"C", cols}, {"S", shift}}));
}

// Each element has a position of its own, in no order.
TEST(GpuDropout, DrawsAtAnyPositionsOfAPart) {
  for (auto [names, shape, rows, cols, space] :
       {std::tuple<const char *, const char *, const char *, const char *,
                   const char *>{"batch, sequence", "2x12", "batch", "sequence",
                                 "2, 23"},
        {"batch, sequence, embed", "2x12x3", "batch", "sequence, embed",
         "2, 23, 3"},
        {"batch, sequence, embed", "2x12x20", "batch, sequence", "embed",
         "2, 23, 20"}})
    expectCpuResults(fill(
        partOfSequence,
        {{"Z", names}, {"S", shape}, {"P", rows}, {"Q", cols}, {"W", space}}));
}

constexpr const char *rounding = R"(
#d = #transformer.dims<ffn, embed>
!x = tensor<$Rx$Cxf32, #d>
!y = tensor<$Rx$Cxbf16, #d>
!i = tensor<i32>
func.func @f(%x: !x, %seed: !i, %step: !i, %at: !i) -> (!x, !y) {
  %r:2 = transformer.fused rows <ffn> cols <embed> ins(%x, %seed, %step, %at : !x, !i, !i, !i) -> !x, !y {
  ^bb0(%a: !x, %b: !i, %c: !i, %d: !i):
    %y:2 = transformer.map ins(%a, %b, %c, %d : !x, !i, !i, !i) -> !x, !y {
    ^bb0(%p: f32, %e: i32, %f: i32, %g: i32):
      %0 = transformer.stochastic_round %p by %e, %f, %e stream 7 of [5000, $C] at ["ffn"] %g
      transformer.yield %0, %0 : f32, f32
    }
    transformer.yield %y#0, %y#1 : !x, !y
  }
  return %r#0, %r#1 : !x, !y
}
)";

// What is rounded the other way is off by 2^-8, the f32 result may by 4e-6.
TEST(GpuStochasticRound, AgreesWithTheCpu) {
  for (auto [rows, cols] : {std::pair<int64_t, int64_t>{37, 768},
                            {3, 1},
                            {5, 8},
                            {7, 12},
                            {9, 100},
                            {2, 20011}})
    expectCpuResults(sized(rounding, rows, cols, "f32"));
}

// Scaled rows, as they lie and transposed; the rows are of two dims, which are
// one where the transposed copy has them side by side, too.
constexpr const char *copies = R"(
#d = #transformer.dims<batch, rows, cols>
#t = #transformer.dims<$D>
#r = #transformer.dims<batch, rows>
!x = tensor<2x$Rx$Cx$T, #d>
!y = tensor<2x$Rx$Cxf8E5M2, #d>
!t = tensor<$Sx$Rx$O, #t>
!r = tensor<2x$Rxf32, #r>
func.func @f(%x: !x, %s: !r) -> ($Y!t) {
  %y:$N = transformer.fused rows #r cols <cols> ins(%x, %s : !x, !r) -> $Y!t {
  ^bb0(%a: !x, %b: !r):
    %c = transformer.map ins(%a, %b : !x, !r) -> !y {
    ^bb0(%p: f32, %q: f32):
      %0 = arith.mulf %p, %q : f32
      transformer.yield %0 : f32
    }
    %t = transformer.map ins(%a, %b : !x, !r) -> !t {
    ^bb0(%p: f32, %q: f32):
      %0 = arith.mulf %p, %q : f32
      transformer.yield %0 : f32
    }
    transformer.yield $V%t : $Y!t
  }
  return $Z : $Y!t
}
)";

struct CopyCase {
  int64_t rows, cols;
  const char *from, *to;
  bool both;        // not the transposed one alone
  bool joined;      // rows
  int64_t tileRows; // of a thread
};

std::string textOf(const CopyCase &copy) {
  return fill(copies,
              {{"R", std::to_string(copy.rows)},
               {"C", std::to_string(copy.cols)},
               {"T", copy.from},
               {"O", copy.to},
               {"D", copy.joined ? "cols, batch, rows" : "batch, cols, rows"},
               {"S", (copy.joined ? std::to_string(copy.cols) + "x2"
                                  : "2x" + std::to_string(copy.cols))},
               {"N", copy.both ? "2" : "1"},
               {"Y", copy.both ? "!y, " : ""},
               {"V", copy.both ? "%c, " : ""},
               {"Z", copy.both ? "%y#0, %y#1" : "%y#0"}});
}

// Threads store eight rows of a column at once, or as many as divide the rows.
TEST(GpuTransposedCopies, AgreeWithTheCpu) {
  for (const CopyCase &copy :
       {CopyCase{256, 128, "bf16", "f8E4M3FN", true, true, 8},
        {40, 72, "f32", "f8E5M2", true, false, 8},
        {8, 8, "bf16", "bf16", false, true, 8},
        {12, 200, "bf16", "f8E4M3FN", true, false, 4},
        {6, 24, "f32", "f32", false, true, 4},
        {7, 40, "bf16", "f8E5M2", true, true, 2},
        {7, 40, "bf16", "f8E5M2", true, false, 1},
        {16, 9, "bf16", "f8E4M3FN", false, true, 1}}) {
    SCOPED_TRACE(textOf(copy));
    expectCpuResults(textOf(copy), {.arch = "sm_90a"}, [&](const Geometry &g) {
      EXPECT_EQ(g.tileRows, copy.tileRows);
    });
  }
}

constexpr const char *columnSums = R"(
#d = #transformer.dims<rows, cols>
#r = #transformer.dims<rows>
!x = tensor<$Rx$Cx$T, #d>
!k = tensor<$Kx$Cxf32, #transformer.dims<chunk, cols>>
!w = tensor<$Cxf32, #transformer.dims<cols>>
func.func @f(%x: !x) -> !k {
  %y = transformer.fused rows <rows> cols <cols> ins(%x : !x) -> !k {
  ^bb0(%a: !x):
    %s = transformer.reduce add %a over #r : !x -> !w
    transformer.yield %s : !w
  }
  return %y : !k
}
)";
constexpr const char *chunkSums = R"(
#k = #transformer.dims<chunk, cols>
#h = #transformer.dims<chunk>
#c = #transformer.dims<cols>
!k = tensor<$Kx$Cxf32, #k>
!w = tensor<$Cx$T, #c>
!f = tensor<$Cxf32, #c>
func.func @f(%g: !w, %x: !k) -> !w {
  %y = transformer.fused rows <> cols #c ins(%g, %x : !w, !k) -> !w {
  ^bb0(%b: !w, %a: !k):
    %s = transformer.reduce add %a over #h : !k -> !f
    %z = transformer.map ins(%b, %s : !w, !f) -> !w {
    ^bb0(%p: f32, %q: f32):
      %0 = arith.addf %p, %q : f32
      transformer.yield %0 : f32
    }
    transformer.yield %z : !w
  }
  return %y : !w
}
)";
constexpr const char *squares = R"(
#d = #transformer.dims<rows, cols>
!x = tensor<$Rx$Cx$T, #d>
!f = tensor<$Rx$Cxf32, #d>
!k = tensor<$Kxf32, #transformer.dims<chunk>>
func.func @f(%x: !x) -> !k {
  %y = transformer.fused rows <rows> cols <cols> ins(%x : !x) -> !k {
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

TEST(GpuSumsOverRows, AgreeWithTheCpu) {
  for (auto [rows, cols, chunks] :
       {std::tuple<int64_t, int64_t, int64_t>{77, 768, 8},
        {13, 100, 4},
        {6, 37, 32},
        {300, 5, 3},
        {1, 5, 1},
        {2, 1, 1},
        {1, 1, 1}})
    for (const char *type : {"f32", "bf16"}) {
      SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(cols) + " " +
                   type);
      expectCpuResults(sized(columnSums, rows, cols, type, chunks),
                       {.relative = 1e-5});
      expectCpuResults(sized(chunkSums, rows, cols, type, chunks),
                       {.inPlace = true});
      expectCpuResults(sized(squares, rows, cols, type, chunks),
                       {.relative = 1e-5});
    }
}

/// The same cluster with maxima in the place of sums.
std::string maximaOf(std::string text) {
  constexpr std::string_view sum = "reduce add", maximum = "reduce max";
  for (size_t at = 0; (at = text.find(sum, at)) != std::string::npos;)
    text.replace(at, sum.size(), maximum);
  return text;
}

TEST(GpuMaximaOverRows, AgreeWithTheCpu) {
  for (auto [rows, cols, chunks] :
       {std::tuple<int64_t, int64_t, int64_t>{77, 768, 8},
        {13, 100, 4},
        {37, 37, 32},
        {2, 20011, 2},
        {300, 5, 3}})
    for (const char *type : {"f32", "bf16"})
      for (const char *text : {columnSums, chunkSums, squares}) {
        SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(cols) + " " +
                     type);
        expectCpuResults(maximaOf(sized(text, rows, cols, type, chunks)),
                         {.relative = 0});
      }
}

constexpr const char *chunksOfScalar = R"(
#h = #transformer.dims<chunk>
!k = tensor<$Kxf32, #h>
!c = tensor<$Cxf32, #h>
func.func @f(%x: !k, %y: !c) -> tensor<f32> {
  %z = transformer.fused rows <> cols <> ins(%x, %y : !k, !c) -> tensor<f32> {
  ^bb0(%a: !k, %b: !c):
    %s = transformer.reduce add %a over #h : !k -> tensor<f32>
    %t = transformer.reduce add %b over #h : !c -> tensor<f32>
    %r = transformer.map ins(%s, %t : tensor<f32>, tensor<f32>) -> tensor<f32> {
    ^bb0(%p: f32, %q: f32):
      %0 = arith.addf %p, %q : f32
      transformer.yield %0 : f32
    }
    transformer.yield %r : tensor<f32>
  }
  return %z : tensor<f32>
}
)";

// Threads share a sum of many chunks, and all of them take part in each
// exchange.
TEST(GpuSumsOfChunks, ThreadsShareThem) {
  struct Case {
    int64_t chunks, cols, parts,
        partsOfBf16; // vectors of bf16 have twice the columns
  };
  for (Case c : {Case{256, 768, 16, 32},
                 {256, 40, 16, 32},
                 {256, 33, 4, 4},
                 {256, 7, 4, 4},
                 {48, 64, 4, 4},
                 {250, 64, 16, 16},
                 {15, 64, 1, 1},
                 {257, 24, 16, 32},
                 {16, 1 << 16, 1, 1}}) {
    auto expectParts = [&](int64_t parts) {
      return [=](const Geometry &g) {
        EXPECT_EQ(g.verticalParts, parts)
            << c.chunks << " chunks of " << c.cols;
      };
    };
    expectCpuResults(sized(chunkSums, 1, c.cols, "f32", c.chunks),
                     {.relative = 1e-5, .inPlace = true}, expectParts(c.parts));
    expectCpuResults(sized(chunkSums, 1, c.cols, "bf16", c.chunks),
                     {.inPlace = true}, expectParts(c.partsOfBf16));
  }
  for (auto [chunks, parts] : {std::pair<int64_t, int64_t>{256, 32},
                               {32, 4},
                               {100, 8},
                               {255, 16},
                               {300, 32},
                               {15, 1}})
    // Beside a sum of as many, of fewer than threads, and of a single one.
    for (int64_t others : {chunks, int64_t{9}, int64_t{1}})
      expectCpuResults(
          sized(chunksOfScalar, 1, others, "f32", chunks), {.relative = 1e-5},
          [&, parts = parts](const Geometry &g) {
            EXPECT_EQ(g.verticalParts, parts) << chunks << " and " << others;
          });
}

/// The kernels of a compiled example, each a text of its own, contiguous.
std::vector<std::string> kernelsOfExample(const std::string &model,
                                          const std::string &spec) {
  std::string file = testing::TempDir() + "gpu-kernels-" +
                     std::to_string(getpid()) + ".mlir",
              examples = MESHWORK_EXAMPLES;
  std::string command = std::string(MESHWORK_TOOL) + " compile " + examples +
                        "/" + model + " --spec " + examples + "/" + spec +
                        " --set target.device=cuda --compile-to=memory -o " +
                        file;
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.loadDialect<transformer::TransformerDialect, mesh::MeshDialect,
                      schedule::ScheduleDialect, func::FuncDialect>();
  auto module = parseSourceFile<ModuleOp>(file, &context);
  std::remove(file.c_str());
  std::vector<std::string> texts;
  if (module)
    for (auto function : module->getOps<func::FuncOp>()) {
      if (function.getOps<transformer::FusedOp>().empty())
        continue; // It calls others.
      function->removeAttr("schedule.strides");
      function.setPublic();
      llvm::raw_string_ostream stream(texts.emplace_back());
      function->print(stream, OpPrintingFlags().useLocalScope());
    }
  return texts;
}

TEST(GpuExamples, AllKernelsAgreeWithTheCpu) {
  for (const char *model : {"gpt2-tiny.json", "llama-tiny.json"}) {
    std::vector<std::string> texts = kernelsOfExample(model, "dp1.toml");
    EXPECT_GT(texts.size(), 15u);
    for (const std::string &text : texts) {
      SCOPED_TRACE(model + ("\n" + text));
      expectCpuResults(text, {.low = 0.1, .relative = 2e-5});
      if (HasFailure())
        return;
    }
  }
}

} // namespace
} // namespace meshwork::codegen
