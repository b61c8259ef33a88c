// GPU kernels, executed in the emulator, against the CPU's kernels of the same
// clusters. Sums over rows: GpuSumsTest.cpp; transposed copies:
// GpuCopiesTest.cpp.
#include <cstdlib>
#include <unistd.h>

#include "dialects/mesh/Mesh.h"
#include "dialects/schedule/Schedule.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "test/Codegen/Clusters.h"
#include "test/Codegen/Comparison.h"

using namespace mlir;
using namespace meshwork::codegen::test;
namespace meshwork::codegen {
namespace {

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

// Rows that no block holds in registers, as those of GPT-2 175B and Llama 3.1
// 405B; three rows of the first chunk and none of one.
TEST(GpuLayerNormGrad, AgreesOnRowsOfAnyWidth) {
  for (auto [cols, loops] : {std::pair<int64_t, bool>{8192, false},
                             {8448, true},
                             {12288, true},
                             {16384, true},
                             {16385, true},
                             {18432, true},
                             {53248, true}}) {
    SCOPED_TRACE(std::to_string(cols));
    for (auto [rows, chunks] :
         {std::pair<int64_t, int64_t>{5, 2}, std::pair<int64_t, int64_t>{2, 3}})
      expectCpuResults(
          sized(layerNormGrad, rows, cols, "bf16", chunks), {.relative = 1e-5},
          [loops = loops](const Geometry &g) { EXPECT_EQ(g.loops, loops); });
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
                             EXPECT_EQ(g.shifted, vocab != 32000);
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

TEST(GpuExactSum, AgreesWithTheCpu) {
  for (auto [rows, cols] :
       {std::pair<int64_t, int64_t>{3, 7}, {1, 100}, {5, 520}})
    expectCpuResults(fill(exactSum, {{"R", std::to_string(rows)},
                                     {"C", std::to_string(cols)}}),
                     {.change = [](std::vector<Tensor> &operands) {
                       auto *x = reinterpret_cast<float *>(operands[1].begin());
                       for (size_t i = 0; i < operands[1].count(); ++i)
                         x[i] = static_cast<float>(i);
                     }});
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
